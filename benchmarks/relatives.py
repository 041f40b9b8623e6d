"""Time memory and Jackson networks beside the plain chain: ``python -m benchmarks.relatives``."""

import argparse
import statistics
import sys
from collections.abc import Sequence
from math import inf

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.__main__ import Steps, in_steps, interleaved, start_profile
from supermarket import (
    Schedule,
    Supermarket,
    jackson_network,
    log_memory_fixed_point,
    network_fixed_point,
    simulate,
)

LAM = 0.9
ROUTING = [[0.0, 0.3, 0.1], [0.1, 0.0, 0.3], [0.3, 0.1, 0.0]]  # three stations with feedback
ALONE = np.zeros((3, 3))


def contenders(n: int, d: int) -> dict[str, Steps]:
    """Return by name what makes steps of each chain from its fixed point, ready to be timed."""
    plain = start_profile(n, d, LAM)
    shares = np.exp(log_memory_fixed_point(Supermarket(inf, d, LAM, policy="memory"), 60))
    shares = shares[shares * n > 0.5]

    def ours(engine: str, start: NDArray = plain, policy: str = "jsq") -> Steps:
        shop = Supermarket(n, d, LAM, policy=policy)
        return lambda count: simulate(shop, in_steps(count), seed=1, start=start, engine=engine)

    def memory(engine: str) -> Steps:
        return ours(engine, shares, "memory")

    def stations(routing: Sequence) -> Steps:
        # Arrivals that give each of the three stations the load LAM.
        arrivals = LAM * (1 - np.asarray(routing).sum(axis=0))
        network = jackson_network(arrivals, routing, d, n=n)
        start = [row[row * n > 0.5] for row in network_fixed_point(network, 250 if d == 1 else 10)]
        events = n * float(network.arrivals.sum() + network.service.sum())
        return lambda count: simulate(
            network, Schedule(count / events, warmup=0, batches=2), seed=1, start=start
        )

    return {
        "scan": ours("scan"),
        "scan, memory": memory("scan"),
        "scan, three stations": stations(ALONE),
        "scan, three stations with feedback": stations(ROUTING),
        "table": ours("table"),
        "table, memory": memory("table"),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Time the chains by turns, and print the ratios to the plain chain of the same engine."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.relatives", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="some seconds, one case, rough")
    asked = parser.parse_args(arguments)
    seconds, repeats = (0.01, 2) if asked.quick else (0.2, 7)
    cases = [(10**3, 2)] if asked.quick else [(n, d) for n in (10**3, 10**6) for d in (1, 2, 3)]
    rows = []
    for n, d in cases:
        times = interleaved(contenders(n, d), seconds, repeats)
        median = {name: statistics.median(taken) for name, taken in times.items()}
        rows += [
            {"n": n, "d": d, "chain": name, "ns an event": round(taken, 1),
             "beside the plain chain": round(taken / median[name.partition(",")[0]], 2)}
            for name, taken in median.items()
        ]  # fmt: skip
    print(pd.DataFrame(rows).to_string(index=False))


if __name__ == "__main__":
    sys.exit(main())
