"""Measure speed and memory and print one table of ratios: ``python -m benchmarks --help``."""

import argparse
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.memory import growth
from benchmarks.others import HORIZONS, OTHERS, installed
from benchmarks.twins import FLAGS, Compiler, Twins, find_compiler
from supermarket import Schedule, Supermarket, fixed_point, simulate
from supermarket.estimate.intervals import Interval, batch_interval
from supermarket.runs.counts import lanes as replicas
from supermarket.runs.counts import ranks

Steps = Callable[[int], object]  # makes so many steps of a chain
Case = tuple[int, float, int]  # d, lam, n

RULES = ((1, 0.9), (2, 0.9), (1000, 0.9), (1000, 0.999))
CASES: list[Case] = [(d, lam, n) for d, lam in RULES for n in (10**3, 10**5, 10**6, 10**9)]
CASES += [(2, 0.9, 10**8), (2, 0.9, 10**10), (2, 0.9, 10**12), (1000, 1 - 1e-4, 10**10)]
QUICK: list[Case] = [(2, 0.9, 10**3), (1000, 0.999, 10**5)]
OTHERS_CASE: Case = (2, 0.9, 100)
MOST_QUEUES = 10**7  # the labelled chain holds every queue in memory
MOST_STEPS = 5 * 10**10
PLAIN, TABLE, LANES = "C plain", "C table", "C lanes"
ENGINES = ("scan", "table", "ranks", "bursts")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmarks."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="some seconds, two cases, rough")
    parser.add_argument("--build", type=Path, default=Path("build"), help="folder of the results")
    asked = parser.parse_args(arguments)
    seconds, repeats = (0.01, 2) if asked.quick else (0.2, 7)

    memory = {f"{n:.0e}": growth(n, 10**3 if asked.quick else 10**6) for n in (10**3, 10**12)}
    compiler = find_compiler()
    if compiler is None:
        print("There is no C compiler (gcc, cc, clang, or CC): times are given without C twins.")
        twins = None
    else:
        twins = Twins(compiler, asked.build / "benchmarks")
    times = [
        {"d": d, "lam": lam, "n": n, "ns": interleaved(runs(twins, d, lam, n), seconds, repeats)}
        for d, lam, n in (QUICK if asked.quick else [OTHERS_CASE, *CASES])
    ]
    others = {name: against(name, 50.0 if asked.quick else HORIZONS[name]) for name in OTHERS}
    results = {
        "machine": machine(compiler),
        "quick": asked.quick,
        "times": times,
        "others": others,
        "memory_growth_mb": memory,
    }
    asked.build.mkdir(parents=True, exist_ok=True)
    asked.build.joinpath("benchmarks.json").write_text(json.dumps(results, indent=1) + "\n")
    report(results)


def runs(twins: Twins | None, d: int, lam: float, n: int) -> dict[str, Steps]:
    """Return by name what makes steps of the chain from its fixed point, ready to be timed."""
    shop, profile = Supermarket(n, d, lam), start_profile(n, d, lam)

    def twin(name: str) -> Steps:
        return lambda steps: twins.simulate(name, shop, in_steps(steps), seed=1, start=profile)

    def engine(name: str, start: NDArray = profile) -> Steps:
        return lambda steps: simulate(shop, in_steps(steps), seed=1, start=start, engine=name)

    ready = {} if twins is None else {PLAIN: twin("plain"), TABLE: twin("table")}
    ready |= {name: engine(name) for name in ENGINES if name != "ranks" or n <= ranks.MOST}

    def copies(run: Callable[..., object]) -> Steps:
        return lambda steps: run(
            shop, in_steps(max(steps // replicas.LANES, 2)), seed=1, start=profile,
            copies=replicas.LANES,
        )  # fmt: skip

    if n <= replicas.MOST:
        ready["lanes"] = copies(simulate)
        if twins is not None:
            ready[LANES] = copies(twins.simulate_lanes)
    if n <= MOST_QUEUES:
        counts = np.rint(profile * n).astype(np.int64)
        lengths = np.repeat(np.arange(len(counts)), -np.diff(counts, append=0))
        np.random.default_rng(1).shuffle(lengths)
        ready["labelled"] = engine("labelled", lengths)
    return ready


def in_steps(steps: int) -> Schedule:
    """Return the schedule of so many steps that are measured as little as can be."""
    return Schedule(steps, warmup=0, batches=2, unit="steps", max_hours=1e11)


def start_profile(n: int, d: int, lam: float) -> NDArray[np.float64]:
    """Return the levels of the fixed point that at least half a queue of n reaches."""
    profile = fixed_point(Supermarket(inf, d, lam), 250 if d == 1 else 10)
    return profile[profile * n > 0.5]


def interleaved(
    contenders: dict[str, Steps], seconds: float, repeats: int
) -> dict[str, list[float]]:
    """Return the times of each contender, in ns a step, taken by turns: A B C A B C ...

    Runs before these compile, and find out how many steps take about `seconds`.
    """
    steps = {name: _steps_in(seconds, run) for name, run in contenders.items()}
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(repeats):
        for name, run in contenders.items():
            taken[name].append(_timed(run, steps[name]) / steps[name] * 1e9)
    return taken


def _steps_in(seconds: float, run: Steps) -> int:
    run(1000)  # compiles
    steps = 1000
    while (rough := _timed(run, steps)) < seconds / 2 and steps < MOST_STEPS:
        steps = min(int(steps * min(seconds / rough, 10.0)) + 1, MOST_STEPS)
    return steps


def _timed(run: Steps, steps: int) -> float:
    began = time.perf_counter()
    run(steps)
    return time.perf_counter() - began


def against(name: str, horizon: float) -> dict[str, Any] | str:
    """Run another program on the model; return its time and whether it agrees with our chain.

    The time is a step of the chain, n (1 + lam) of which happen in a mean service time. Intervals
    (99.9 %) for the mean queue length have to meet; "agree" is None if a run is too short for one.
    """
    if not installed(name):
        return "not installed"
    d, lam, n = OTHERS_CASE
    warmup = 50.0
    means, seconds = OTHERS[name](n, d, lam, horizon, warmup, 32, 1)
    ours = simulate(Supermarket(n, d, lam), 10 * horizon, seed=2).interval("mean queue", 0.999)
    theirs = batch_interval(means, 0.999)
    known = np.isfinite([theirs.low, ours.low]).all()
    return {
        "ns": seconds / ((warmup + horizon) * n * (1 + lam)) * 1e9,
        "mean_queue": _ends(theirs),
        "our_mean_queue": _ends(ours),
        "agree": bool(theirs.low <= ours.high and ours.low <= theirs.high) if known else None,
    }


def _ends(interval: Interval) -> list[float | None]:
    ends = (interval.low, interval.estimate, interval.high)
    return [float(end) if np.isfinite(end) else None for end in ends]


def machine(compiler: Compiler | None) -> dict[str, str]:
    """Say where, when and with what the times were taken."""
    models = [
        line.split(":", 1)[1].strip()
        for line in _lines(Path("/proc/cpuinfo"))
        if line.startswith("model name")
    ]
    return {
        "cpu": models[0] if models else platform.processor() or platform.machine(),
        "system": platform.platform(),
        "compiler": "none" if compiler is None else f"{compiler.version}: {' '.join(FLAGS)}",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


def report(results: dict[str, Any]) -> None:
    """Print the table and what does not fit into it."""
    print(table(results).to_string(index=False, na_rep="-"))
    print(
        "\nC plain: ns a step, median (least to most). The others: how many times as fast as C "
        "plain, by the medians.\ntable / C table: time against C on the same algorithm; so are "
        f"replicas / C replicas. replicas: a step of one of {replicas.LANES} in lock step. queues: "
        "the labelled chain."
    )
    d, lam, n = OTHERS_CASE
    for name, other in results["others"].items():
        if isinstance(other, str):
            print(f"{name}: {other}.")
            continue
        verdict = {True: "they agree", False: "THEY DO NOT AGREE", None: "too short to tell"}
        print(
            f"{name}: {other['ns']:.0f} ns a step at n = {n}, d = {d}, lam = {lam}; mean queue "
            f"{_shown(other['mean_queue'])}, ours {_shown(other['our_mean_queue'])}: "
            f"{verdict[other['agree']]}."
        )
    told = ", ".join(f"n = {n}: {mb:.1f} MB" for n, mb in results["memory_growth_mb"].items())
    print(f"Growth of the peak memory during a run: {told}.")
    print(", ".join(f"{key} {value}" for key, value in results["machine"].items()))


def _shown(ends: list[float | None]) -> str:
    low, mean, high = ends
    return f"{mean:.3f}" if low is None or high is None else f"{mean:.3f} ({low:.3f} to {high:.3f})"


def table(results: dict[str, Any]) -> pd.DataFrame:
    """Return the ratios against the plain C twin, a row a case."""
    rows = []
    for case in results["times"]:
        ns = {name: statistics.median(taken) for name, taken in case["ns"].items()}
        row: dict[str, Any] = {"d": case["d"], "lam": case["lam"], "n": f"{case['n']:.0e}"}
        if PLAIN in ns:
            taken = case["ns"][PLAIN]
            row["C plain"] = f"{ns[PLAIN]:.1f} ({min(taken):.1f} to {max(taken):.1f})"
            names = (TABLE, LANES, *ENGINES, "lanes", "labelled")
            row |= {name: f"{ns[PLAIN] / ns[name]:.3g}" for name in names if name in ns}
            for name, twin in (("table", TABLE), ("lanes", LANES)):
                if name in ns:
                    row[f"{name} / {twin}"] = f"{ns[name] / ns[twin]:.2f}"
            if (case["d"], case["lam"], case["n"]) == OTHERS_CASE:
                row |= {
                    name: other if isinstance(other, str) else f"{ns[PLAIN] / other['ns']:.3g}"
                    for name, other in results["others"].items()
                }
        else:
            row |= {f"{name}, ns": f"{median:.1f}" for name, median in ns.items()}
        rows.append(row)
    return pd.DataFrame(rows)


if __name__ == "__main__":
    sys.exit(main())
