"""Time memory and Jackson networks beside the plain chain: ``python -m benchmarks.relatives``."""

import argparse
import statistics
import sys
from collections.abc import Sequence

import numpy as np
import pandas as pd

from benchmarks.__main__ import Steps, interleaved, start_profile
from supermarket import (
    jackson_network,
    log_memory_fixed_point,
    network_fixed_point,
    simulate,
    simulate_memory,
    simulate_network,
)

LAM = 0.9
ROUTING = [[0.0, 0.3, 0.1], [0.1, 0.0, 0.3], [0.3, 0.1, 0.0]]  # three stations with feedback
ALONE = np.zeros((3, 3))


def contenders(n: int, d: int) -> dict[str, Steps]:
    """Return by name what makes steps of each chain from its fixed point, ready to be timed."""
    rule = {"seed": 1, "warmup": 0.0, "batches": 2}
    steps = rule | {"time_unit": "steps"}
    plain = start_profile(n, d, LAM)
    shares = np.exp(log_memory_fixed_point(LAM, d, 60))
    shares = shares[shares * n > 0.5]

    def ours(engine: str) -> Steps:
        return lambda count: simulate(n, d, LAM, horizon=count, start=plain, engine=engine, **steps)

    def memory(engine: str) -> Steps:
        return lambda count: simulate_memory(
            n, d, LAM, horizon=count, start=shares, engine=engine, **steps
        )

    def stations(routing: Sequence) -> Steps:
        # Arrivals that give each of the three stations the load LAM.
        arrivals = LAM * (1 - np.asarray(routing).sum(axis=0))
        network = jackson_network(arrivals, routing, d)
        start = [row[row * n > 0.5] for row in network_fixed_point(network, 250 if d == 1 else 10)]
        events = n * float(network.arrivals.sum() + network.service.sum())
        return lambda count: simulate_network(
            network, n, horizon=count / events, start=start, **rule
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
