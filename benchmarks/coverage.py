"""How often the intervals of a run hold the truth, and how often one is given: by hand.

    python -m benchmarks.coverage [seeds] [confidence]

For each service law, number of queues and choices: runs of single jobs from empty queues, each of
which is asked for its intervals. The truth is Pollaczek and Khinchine's with one choice; otherwise
the mean of 20 runs, all of them together as long as 20 + seeds, from other seeds.
"""

import math
import sys
from collections.abc import Iterator

import numpy as np

from supermarket import (
    Interval,
    Lognormal,
    Lomax,
    Schedule,
    Supermarket,
    relaxation_time,
    share_interval,
    simulate,
)
from supermarket.runs.run import Run
from supermarket.service import BoundedPareto, ServiceLaw

QUANTITIES = {"sojourn": ("sojourn", None), "share of 2": ("profile", 2)}
POOL = 20  # runs that make the truth


def cases() -> Iterator[tuple[str, Supermarket, float]]:
    """Yield what each run is called, its model and its horizon."""
    for n, d, lam in ((1, 1, 0.5), (1, 1, 0.9), (10, 2, 0.7), (100, 2, 0.9)):
        shop = Supermarket(n, d, lam)
        time = max(relaxation_time(shop), (1 - math.sqrt(lam)) ** -2 / n)
        for times in (25, 100, 400):
            yield f"exponential, {times} relaxation times", shop, times * time
    laws: list[tuple[str, ServiceLaw]] = [
        ("Lomax 2.5", Lomax(2.5)),
        ("bounded Pareto 1.5 to 1e4", BoundedPareto(1.5, 1e4)),
        ("lognormal 1", Lognormal(1.0)),
    ]
    for name, law in laws:
        yield name, Supermarket(1, 1, 0.5, service=law), 2e5
        yield name, Supermarket(1, 1, 0.5, service=law), 3e6 if "bounded" in name else 2e4
        for n, horizon in ((10, 2e4), (100, 2e3), (1000, 1e3)):
            yield name, Supermarket(n, 2, 0.7, service=law), horizon
            if n > 10:
                yield name, Supermarket(n, 2, 0.7, replacement=False, service=law), horizon


def truth(shop: Supermarket, horizon: float, seeds: int, name: str) -> float:
    """Return the mean in equilibrium of what is asked for."""
    law, lam = shop.service, shop.lam
    if shop.d > 1:
        schedule = Schedule(horizon * (1 + seeds / POOL))
        pool = simulate(shop, schedule, seed=10**9, engine="jobs", copies=POOL)
        return float(np.mean([asked(run, name).estimate for run in pool]))
    if name == "sojourn":
        return 1 + lam * law.moment(2) / (2 * (1 - lam))
    return lam - (1 - lam) * (1 / float(law.laplace(lam)) - 1)


def asked(run: Run, name: str, confidence: float = 0.95) -> Interval:
    """Return the interval of a run for a quantity."""
    quantity, at = QUANTITIES[name]
    return run.interval(quantity, confidence, at=at)


def main(seeds: int = 300, confidence: float = 0.95) -> None:
    """Print a line for each case and quantity: given, and of those the share that hold."""
    print(f"{'service':38}{'n':>6}{'d':>3}{'lam':>5} {'quantity':11}{'given':>6}  holding")
    for name, shop, horizon in cases():
        runs = [simulate(shop, horizon, seed=seed, engine="jobs") for seed in range(seeds)]
        for what in QUANTITIES:
            found = [asked(run, what, confidence) for run in runs]
            given = [one for one in found if not math.isnan(one.low)]
            line = f"{name:38}{shop.n:6}{shop.d:3}{shop.lam:5} {what:11}{len(given) / seeds:6.0%}"
            if given:
                value = truth(shop, horizon, seeds, what)
                held = sum(one.low <= value <= one.high for one in given)
                exact = share_interval(held, len(given), 0.95)
                line += f"  {held / len(given):.3f} ({exact.low:.3f} to {exact.high:.3f})"
            else:
                line += f"  {found[0].refused}"
            print(line, flush=True)


if __name__ == "__main__":
    main(*map(float if "." in sys.argv[-1] else int, sys.argv[1:]))
