"""Time the network of servers against its C twin: ``python -m benchmarks.network --help``.

One table, and the same as data in build/network.json. An event is an arrival or a departure.
"""

import argparse
import ctypes
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.random import SeedSequence
from numpy.typing import NDArray

from benchmarks.__main__ import machine
from benchmarks.others import OTHERS, installed
from benchmarks.twins import Compiler, compiled, find_compiler
from supermarket import Schedule, Supermarket, simulate
from supermarket.estimate.intervals import batch_interval
from supermarket.runs.jobs import network as fifo
from supermarket.runs.jobs.calendar import Net
from supermarket.service import Exponential, Lomax, ServiceLaw

SOURCE = Path(__file__).with_name("fifo.c")
LAM, WARMUP = 0.9, 20.0
Case = tuple[str, ServiceLaw, int, int]  # discipline, law, d, n

SIZES = (10**2, 10**3, 10**4, 10**5)
CASES: list[Case] = [("fifo", Exponential(), 2, n) for n in (*SIZES, 10**6)]
CASES += [("fifo", Lomax(2.5), 2, n) for n in SIZES]
CASES += [("fifo", Exponential(), d, 10**4) for d in (1, 5, 50)]
CASES += [(name, Lomax(2.5), 2, n) for name in ("ps", "lifo") for n in (10**2, 10**4)]
QUICK: list[Case] = [("fifo", Lomax(2.5), 2, 200), ("ps", Exponential(), 2, 10**2)]
OTHERS_HORIZONS = {"simpy": 1000.0, "ciw": 200.0}
Run = Callable[[float], None]


class Twin:
    """The FIFO network's kernel in C, called as that of `network.ADVANCE` is."""

    def __init__(self, compiler: Compiler, folder: Path) -> None:
        self._advance = compiled(SOURCE, compiler, folder).advance

    def __call__(
        self, net: Net, tallies: fifo.Tallies, choices: fifo.Choices, arrivals: fifo.Arrivals,
        used: int, spent: int, came: float, until: float,
    ) -> tuple[bool, int, int, float, int]:  # fmt: skip
        """Do what the kernel does."""
        clock, progress = np.array([came]), np.array([used, spent, 0])
        *seen, per_mean = tallies
        d, ahead, uniforms, order = choices
        given = (
            len(net.servers), net.servers, net.jobs, len(net.days), net.days, net.heap, net.state,
            len(tallies.levels), *seen, d, ahead.shape[1], ahead, len(uniforms), uniforms,
            int(len(order) > 0), order, len(arrivals.gaps), *arrivals, float(until),
            float(per_mean), clock, progress,
        )  # fmt: skip
        more = self._advance(*map(_as_c, given))
        used, spent, events = map(int, progress)
        return bool(more), used, spent, float(clock[0]), events


def _as_c(value: NDArray | int | float) -> Any:
    if isinstance(value, np.ndarray):
        return value.ctypes.data_as(ctypes.c_void_p)
    return ctypes.c_double(value) if isinstance(value, float) else ctypes.c_int64(value)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmarks."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.network", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="some seconds, two cases, rough")
    parser.add_argument("--build", type=Path, default=Path("build"), help="folder of the results")
    asked = parser.parse_args(arguments)
    seconds, repeats = (0.01, 2) if asked.quick else (0.3, 7)

    compiler = find_compiler()
    if compiler is None:
        print("There is no C compiler (gcc, cc, clang, or CC): times are given without C twins.")
    twin = None if compiler is None else Twin(compiler, asked.build / "benchmarks")
    times = [timed(twin, *case, seconds, repeats) for case in (QUICK if asked.quick else CASES)]
    others = {
        name: against(name, 50.0 if asked.quick else horizon)
        for name, horizon in OTHERS_HORIZONS.items()
    }
    results = {"machine": machine(compiler), "quick": asked.quick, "times": times, "others": others}
    asked.build.mkdir(parents=True, exist_ok=True)
    asked.build.joinpath("network.json").write_text(json.dumps(results, indent=1) + "\n")
    report(results)


def timed(
    twin: Twin | None, discipline: str, service: ServiceLaw, d: int, n: int, seconds: float,
    repeats: int,
) -> dict[str, Any]:  # fmt: skip
    """Return the CPU times of an event in ns, ours and of the twin by turns, after a warm-up."""
    networks = {"ours": _network(discipline, service, d, n)}
    if twin is not None and discipline == "fifo":
        networks["C"] = _network(discipline, service, d, n)
        networks["C"].advance = twin

    def run(name: str, until: float) -> tuple[float, int]:
        network = networks[name]
        events, began = network.events, time.process_time()
        network.go(0.0, until)
        return time.process_time() - began, network.events - events

    for name in reversed(networks):
        run(name, WARMUP / 2)  # compiles
        took, events = run(name, WARMUP)
    stretch = max(seconds * events / took, 1000.0) / (2 * LAM * n)  # by our time
    taken: dict[str, list[float]] = {name: [] for name in networks}
    for repeat in range(1, repeats + 1):
        for name in networks:
            took, events = run(name, WARMUP + repeat * stretch)
            taken[name].append(took / events * 1e9)
    lengths = [network.length for network in networks.values()]
    return {
        "discipline": discipline,
        "service": repr(service),
        "d": d,
        "n": n,
        "ns": taken,
        "same_path": bool(np.array_equal(lengths[0], lengths[-1])),
    }


def _network(discipline: str, service: ServiceLaw, d: int, n: int) -> fifo.Network:
    model = Supermarket(n, d, LAM, False, service=service, discipline=discipline)
    return fifo.Network(model, SeedSequence(1), None)


def against(name: str, horizon: float) -> dict[str, Any] | str:
    """Run another program on exponential FIFO servers; return its and our time of an event.

    Both start empty, choose with replacement, and measure after a warm-up. Intervals (99.9 %) for
    the mean queue length have to meet; "agree" is None if a run is too short for one.
    """
    if not installed(name):
        return "not installed"
    n, d, warmup = 100, 2, 50.0
    means, seconds = OTHERS[name](n, d, LAM, horizon, warmup, 32, 1)
    began = time.perf_counter()
    run = simulate(
        Supermarket(n, d, LAM), Schedule(10 * horizon, warmup=warmup), seed=2, engine="jobs"
    )
    ours = (time.perf_counter() - began) / run.events * 1e9
    found, theirs = run.interval("mean queue", 0.999), batch_interval(means, 0.999)
    known = np.isfinite([theirs.low, found.low]).all()
    return {
        "ns": seconds / ((warmup + horizon) * n * 2 * LAM) * 1e9,
        "our_ns": ours,
        "mean_queue": float(np.mean(means)),
        "our_mean_queue": run.mean_queue,
        "agree": bool(theirs.low <= found.high and found.low <= theirs.high) if known else None,
    }


def report(results: dict[str, Any]) -> None:
    """Print the table and what does not fit into it."""
    rows = []
    for case in results["times"]:
        row = {name: case[name] for name in ("discipline", "service", "d")} | {
            "n": f"{case['n']:.0e}"
        }
        for name, taken in case["ns"].items():
            row[f"{name}, ns"] = (
                f"{statistics.median(taken):.1f} ({min(taken):.1f} to {max(taken):.1f})"
            )
        if "C" in case["ns"]:
            ours, c = (statistics.median(case["ns"][name]) for name in ("ours", "C"))
            row |= {"ours / C": f"{ours / c:.2f}", "same path": case["same_path"]}
        rows.append(row)
    print(pd.DataFrame(rows).to_string(index=False, na_rep="-"))
    print(f"\nCPU times of an event at lam = {LAM}, median (least to most).")
    ours = {
        case["n"]: statistics.median(case["ns"]["ours"])
        for case in results["times"]
        if (case["discipline"], case["service"], case["d"]) == ("fifo", "Exponential()", 2)
    }
    if {100, 10**6} <= ours.keys():
        print(f"A million servers take {ours[10**6] / ours[100]:.2f} times as long as a hundred.")
    for name, other in results["others"].items():
        if isinstance(other, str):
            print(f"{name}: {other}.")
            continue
        verdict = {True: "they agree", False: "THEY DO NOT AGREE", None: "too short to tell"}
        print(
            f"{name}: {other['ns']:.0f} ns an event at n = 100, d = 2, ours {other['our_ns']:.0f}; "
            f"mean queue {other['mean_queue']:.3f}, ours {other['our_mean_queue']:.3f}: "
            f"{verdict[other['agree']]}."
        )
    print(", ".join(f"{key} {value}" for key, value in results["machine"].items()))


if __name__ == "__main__":
    sys.exit(main())
