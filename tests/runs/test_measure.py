"""What a run says of its own length, and of the time that its maximum was one of some lengths."""

import math

import numpy as np
import pytest

from supermarket import Supermarket, relaxation_time, simulate
from supermarket.limits.mixing.exact import small_chain
from supermarket.runs.run import MaxQueueRange

pytestmark = pytest.mark.book  # statistics of long runs: once is enough


@pytest.mark.parametrize("d", [1, 2])
def test_a_run_of_a_few_relaxation_times_has_no_interval_though_nobody_asked(d):
    """Batch means alone gave 5 of 60 such runs at d = 1 an interval, and 3 of those were wrong."""
    lam, n = 0.8, 100
    time = relaxation_time(Supermarket(math.inf, d, lam))
    for seed in range(12):
        run = simulate(Supermarket(n, d, lam), 1.3 * time, seed=seed)
        for found in (run.interval("mean queue", 0.99), run.interval("profile", 0.99)[1]):
            assert math.isnan(found.low)
            assert found.refused == "the run lasted 1.3 relaxation times and needs 20"
            assert found.longer == pytest.approx(20 / 1.3)
    # One's own relaxation time takes the place of the theory's.
    run = simulate(Supermarket(n, d, lam), 60 * time, seed=1)
    assert math.isfinite(run.interval("mean queue", 0.99).low)
    assert math.isnan(run.interval("mean queue", 0.99, relaxation_time=10 * time).low)


def test_the_share_of_time_of_a_maximum_has_an_interval_also_where_nothing_else_was_seen():
    run = simulate(Supermarket(1000, 2, 0.7), 2000, seed=1)
    seen = run.max_queue_range()
    assert isinstance(seen, MaxQueueRange)
    always = run.interval("maximum", 0.99, at=range(20))
    assert (always.estimate, always.high) == (1.0, 1.0)
    assert 0.9 < always.low < 1
    share = run.max_queue[int(seen.median)]
    found = run.interval("maximum", 0.99, at=int(seen.median))
    assert found.low < found.estimate == pytest.approx(share)
    assert found.estimate < found.high <= 1
    never = run.interval("maximum", 0.99, at=[40])
    assert (never.estimate, never.low) == (0.0, 0.0)
    assert never.high == pytest.approx(1 - always.low)


def test_the_share_of_time_of_a_maximum_covers_the_exact_one():
    """Against the exact chain of 4 queues, in 300 runs of 50 relaxation times each.

    The chain is not reversible, so that this is a rule and no bound: it covers more than it says.
    At 0.9 and five standard errors a false alarm has a chance below 1e-6. Power: with ten times as
    many looks it covers 0.54 to 0.70 of the time.
    """
    n, d, lam, runs = 4, 2, 0.7, 300
    chain = small_chain(Supermarket(n, d, lam), longest=14)
    exact = np.bincount(chain.states[:, 0], weights=chain.equilibrium)
    results = [
        simulate(
            Supermarket(n, d, lam), 50 * relaxation_time(Supermarket(math.inf, d, lam)), seed=seed
        )
        for seed in range(runs)
    ]
    for length in (1, 2, 4, 6):
        found = [run.interval("maximum", 0.9, at=[length]) for run in results]
        held = np.mean([one.low <= exact[length] <= one.high for one in found])
        assert held > 0.9 - 5 * math.sqrt(0.09 / runs), (length, held, exact[length])
