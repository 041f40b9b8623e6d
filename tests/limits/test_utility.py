"""Server pools: optima by linear programming and enumeration, the fluid limit, the oscillation.

The statistical tests compare means over 64 stretches of one long run with closed forms or exact
identities, at Z = 6 standard errors: with Student's t on 63 degrees of freedom a false alarm in
1e-7 of all runs for each of some ten comparisons. The seeds are fixed.
"""

import itertools
import math

import numpy as np
import pytest
from oracles import JIT
from scipy.optimize import linprog
from scipy.stats import poisson

from supermarket import ParameterError
from supermarket.limits.pools import utility
from supermarket.limits.pools.utility import (
    best_utility,
    deficit,
    holes_bound,
    mean_holes,
    optimum,
    pools_fluid_limit,
    unavoidable_deficit,
)
from supermarket.models.pools import server_pools

Z = 6.0


def shared(capacity):
    """Return the utility of sharing a capacity evenly, the logarithm of its share to each task."""
    return lambda x: x * math.log(capacity / x) if x else 0.0


def example(levels=40):
    """Return two classes with a kink at 10 tasks a pool: then comes a class-2 pool's task 13."""
    return server_pools([0.5, 0.5], [shared(80), shared(120)], levels=levels)


def some_pools(seed, m=3, levels=6, whole=False):
    rng = np.random.default_rng(seed)
    alpha = rng.dirichlet(np.full(m, 3.0))
    gains = rng.integers(-5, 6, (m, levels)) if whole else rng.standard_normal((m, levels))
    return server_pools(alpha / alpha.sum(), -np.sort(-gains), levels=levels)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("whole", [False, True])  # whole numbers: many ties
def test_the_optimum_solves_the_linear_programme(seed, whole):
    pools = some_pools(seed, whole=whole)
    m, levels = pools.marginals.shape
    for rho in (0.3, 1.7, 4.0, 5.9):
        solved = linprog(
            -pools.marginals.ravel(),
            A_eq=np.ones((1, m * levels)),
            b_eq=[rho],
            bounds=[(0, share) for share in np.repeat(pools.alpha, levels)],
        )
        best = optimum(pools, rho)
        assert best.utility == pytest.approx(-solved.fun, abs=1e-9)
        assert best_utility(pools, rho) == pytest.approx(best.utility, abs=1e-12)
        assert best.q.sum() == pytest.approx(rho)
        assert np.all(np.diff(best.q, axis=1) <= 0)
        assert np.all(best.q <= pools.alpha[:, np.newaxis])


@pytest.mark.parametrize("seed", range(3))
def test_the_integral_assignment_is_the_best_of_all(seed):
    gains = some_pools(seed, m=2, levels=3).marginals
    pools = server_pools([0.25, 0.75], gains, levels=3)
    of_class = [0, 1, 1, 1]
    best = {}
    for tasks in itertools.product(range(4), repeat=4):
        reached = sum(gains[i, :x].sum() for i, x in zip(of_class, tasks, strict=True)) / 4
        best[sum(tasks)] = max(best.get(sum(tasks), -np.inf), reached)
    for total, reached in best.items():
        counts = pools.assignment(4, total)
        assert counts.sum() == total
        assert np.all(np.diff(counts, axis=1) <= 0)
        assert pools.utility(counts / 4) == pytest.approx(reached)
        assert best_utility(pools, total / 4) == pytest.approx(reached)


def test_the_order_of_the_pairs():
    pools = server_pools([0.5, 0.5], [[3, 2, 2], [3, 2, 1]], levels=3)
    classes, levels = pools.order
    assert classes.tolist() == [0, 1, 0, 0, 1, 1]
    assert levels.tolist() == [1, 1, 2, 3, 2, 3]


def test_a_utility_is_what_its_marginal_utilities_say():
    by_values = server_pools([0.2, 0.8], [lambda x: 3 - x * x, shared(30)], levels=9)
    by_gains = server_pools([0.2, 0.8], by_values.marginals, levels=9)
    q = optimum(by_values, 4.4).q
    assert by_values.utility(q) == pytest.approx(0.2 * 3 + by_gains.utility(q))
    # Four tasks in every pool of class 2, and none in class 1.
    q = np.outer([0.0, 0.8], np.arange(9) < 4)
    assert by_values.utility(q) == pytest.approx(0.2 * 3 + 0.8 * shared(30)(4))
    straight = server_pools([1.0], [lambda x: 0.1 * x], levels=1000)
    assert np.ptp(straight.marginals) < 1e-12


def test_kinks_are_where_the_gain_falls():
    pools = example()
    assert [optimum(pools, rho).integral for rho in (9.9, 10.0, 10.25, 10.5)] == [
        False, True, False, True,
    ]  # fmt: skip
    best = optimum(pools, 10.0)
    assert best.q.sum(axis=1).tolist() == [4.0, 6.0]
    classes, levels = pools.order
    assert (classes[best.rank], levels[best.rank]) == (1, 12)
    assert (classes[best.rank + 1], levels[best.rank + 1]) == (1, 13)
    # Full, but the next pair gains as much; and thirds, whose sums are rounded.
    tied = server_pools([0.5, 0.5], [[2, 1], [2, 1]], levels=2)
    assert [optimum(tied, rho).integral for rho in (0.5, 1.0)] == [False, True]
    thirds = server_pools([1 / 3] * 3, [[3, 0], [2, 0], [1, 0]], levels=2)
    assert [optimum(thirds, k / 3).integral for k in (1, 2, 3)] == [True] * 3
    assert np.count_nonzero(optimum(thirds, 2 / 3).q) == 2


def test_what_no_policy_can_avoid():
    pools = example()
    for rho, n in ((10.0, 6), (10.25, 6), (3.3, 50)):
        tasks = np.arange(int(n * rho + 40 * math.sqrt(n * rho) + 40))
        tasks = tasks[tasks / n < pools.levels]
        reached = poisson.pmf(tasks, n * rho) @ best_utility(pools, tasks / n)
        direct = best_utility(pools, rho) - reached
        assert unavoidable_deficit(pools, rho, n) == pytest.approx(direct, rel=1e-9)
    classes, levels = pools.order
    gains = pools.marginals[classes, levels - 1]
    loss = gains[19] - gains[20]
    n = 10**6
    asymptotic = loss * holes_bound(10.0) / math.sqrt(n)
    assert unavoidable_deficit(pools, 10.0, n) == pytest.approx(asymptotic, rel=1e-3)
    assert 0 < unavoidable_deficit(pools, 10.25, 10**4) < 1e-12


def test_the_fluid_limit_of_one_class_in_closed_form():
    pools = server_pools([1.0], [[3, 2, 1, 0]], levels=4)
    times, full = np.array([0.0, 0.4, 1.0, 1.5, 3.0, 8.0]), math.log(3)
    q = pools_fluid_limit(pools, 1.5, times)
    after = np.maximum(times - full, 0)
    np.testing.assert_allclose(q[:, 0, 0], np.minimum(1.5 * -np.expm1(-times), 1), atol=1e-8)
    np.testing.assert_allclose(q[:, 0, 1], -0.5 * np.expm1(-after), atol=1e-8)
    assert np.all(q[:, 0, 2:] == 0)


def overfull():
    start = np.zeros((2, 20))
    start[0, :14], start[1, :3] = 0.3, 0.4
    start[0, :9] = 0.5
    return start


@pytest.mark.parametrize("start", [None, overfull()], ids=["empty", "uneven"])
@pytest.mark.parametrize("rho", [10.0, 10.25])
def test_the_fluid_limit_against_small_steps(rho, start):
    """Euler steps of the definition: what arrives fills the pairs in their order."""
    pools = example(levels=20)
    times = np.arange(0.0, 4.01, 0.5)
    q = pools_fluid_limit(pools, rho, times, start=start)
    x, jobs = np.zeros((2, 20)) if start is None else start.copy(), np.arange(1, 21)
    room, step = np.full((2, 20), 0.5), 1 / (2000 if JIT else 500)
    pairs = list(zip(*pools.order, strict=True))
    for k in range(round(4 / step) + 1):
        if k * step % 0.5 < 1e-9:
            np.testing.assert_allclose(q[round(k * step / 0.5)], x, atol=12 * step)
        x -= step * jobs * (x - np.pad(x[:, 1:], ((0, 0), (0, 1))))
        arriving = rho * step
        for i, j in pairs:
            taken = min(arriving, room[i, j - 1] - x[i, j - 1])
            x[i, j - 1] += taken
            arriving -= taken
            if arriving <= 0:
                break
    total = q.sum(axis=(1, 2))
    np.testing.assert_allclose(total, rho + (total[0] - rho) * np.exp(-times), atol=1e-8)
    late = pools_fluid_limit(pools, rho, [30.0], start=start)[0]
    np.testing.assert_allclose(late, optimum(pools, rho).q, atol=1e-8)


def test_deficits_by_hand():
    # One class, 1.5 tasks a pool: a third of the departures empty a pool. M/M/1 with that load has
    # half a customer; each hole takes a task from gain 5 to gain 1.
    one = server_pools([1.0], [[5, 1, 0]], levels=3)
    assert deficit(one, 1.5, 100) == pytest.approx(0.5 * 4 / 100)
    assert deficit(one, 1.5, 100, policy="threshold") == pytest.approx(0.5 * 4 / 100)
    # Classes with 1 and 2 tasks in a pool, and a fourth pair half full: loads 1/7, 1/7 and 5/7.
    two = server_pools([0.5, 0.5], [[9, 1, 1], [8, 7, 0]], levels=3)
    assert deficit(two, 1.75, 1) == pytest.approx(1 / 6 + 1 / 6 + 6 * 5 / 2)
    # At a kink the loss is that of the last full pair, or the mean over the pools' last tasks.
    kink = server_pools([0.5, 0.5], [[9, 1, 1], [8, 7, 0]], levels=3)
    assert deficit(kink, 1.5, 16, holes=2.0) == pytest.approx((7 - 1) * 2 / 4)
    mean = (9 * 0.5 + 7 * 1.0) / 1.5
    assert deficit(kink, 1.5, 16, holes=2.0, policy="threshold") == pytest.approx(
        (mean - 1) * 2 / 4
    )
    # Holes cost nothing in the first pair, or where all gains are the same.
    assert deficit(one, 0.5, 100) == 0
    assert deficit(server_pools([1.0], [[2, 2, 2]], levels=3), 1.5, 100) == 0


def test_more_pools_lose_less():
    n = np.array([100, 400])
    fractional, integral = deficit(example(), 10.25, n), deficit(example(), 10.0, n, holes=1.46)
    assert fractional[0] / fractional[1] == pytest.approx(4)
    assert integral[0] / integral[1] == pytest.approx(2)


def oscillation(level, step, horizon):
    rng, state = np.random.default_rng(7), np.zeros(2)
    utility._oscillate(rng, state, level, step, int(10 / step))
    steps = int(horizon / 64 / step)
    return np.array([utility._oscillate(rng, state, level, step, steps) for _ in range(64)])


def z_score(samples):
    return np.mean(samples) / (np.std(samples, ddof=1) / math.sqrt(len(samples)))


def test_the_first_level_is_a_reflected_ornstein_uhlenbeck_process():
    interval = mean_holes(10.0, 1, seed=3, horizon=50_000 if JIT else 1500, confidence=1 - 1e-7)
    assert interval.low < math.sqrt(20 / math.pi) < interval.high
    assert interval.high - interval.low < (0.1 if JIT else 0.6)


@pytest.mark.parametrize("level", [2, 13])
def test_second_moments_of_the_oscillation(level):
    """Stationarity of s**2 and of h s gives E s**2 = (1 + level) E h s, at any level."""
    step = 1 / (32 * level)
    _, squares, products = oscillation(level, step, 20_000 if JIT else 200).T
    assert abs(z_score(squares - (1 + level) * products)) < Z


def test_the_bias_is_of_first_order_in_the_step():
    step = 1 / 4
    coarse, fine, finest = (
        oscillation(4, step / k, 20_000 if JIT else 100)[:, 0] for k in (1, 2, 8)
    )
    assert z_score(coarse - finest) > (Z if JIT else -Z)  # seen where it is large
    assert abs(z_score((fine - finest) - 3 / 7 * (coarse - finest))) < Z


def test_holes_scale_with_the_number_of_tasks():
    few, many = (mean_holes(rho, 5, seed=1, horizon=200 if JIT else 20) for rho in (1.0, 9.0))
    assert many.estimate == pytest.approx(3 * few.estimate)
    assert few.low > holes_bound(1.0)


def three(bad):
    return [[3, 2, 1], bad]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: server_pools([0.5, 0.6], three([1, 1, 1]), levels=3), "sum 1"),
        (lambda: server_pools([1.5, -0.5], three([1, 1, 1]), levels=3), "above 0"),
        (lambda: server_pools([1.0], three([1, 1, 1]), levels=3), "one for each class"),
        (lambda: server_pools([0.5, 0.5], three([1, 2, 1]), levels=3), "utility 1 is not concave"),
        (
            lambda: server_pools([0.5, 0.5], three([1, 1]), levels=3),
            "must be levels = 3 finite numbers",
        ),
        (lambda: server_pools([1.0], [lambda x: x * x]), "task 2 adds 3, more than the 1 of task"),
        (lambda: server_pools([1.0], [lambda x: -math.inf], levels=3), "finite"),
        (lambda: example().sizes(51), "n = 51 pools have no whole number in each class"),
        (lambda: example().assignment(50, 2001), "tasks = 2001 is out of range"),
        (lambda: optimum(example(), 0.0), "rho = 0 is out of range"),
        (lambda: optimum(example(), 40), "rho = 40 is out of range"),
        (lambda: unavoidable_deficit(example(), 39.0, 10), "give more levels"),
        (lambda: pools_fluid_limit(example(), 10.0, [1.0], start=np.ones((2, 40))), "its alpha"),
        (lambda: pools_fluid_limit(example(), 10.0, [1.0], start=[1.0]), "shape"),
        (lambda: deficit(example(), 10.0, 50), "at a kink"),
        (lambda: deficit(example(), 10.0, 50, 1.0, policy="best"), "not known"),
        (lambda: mean_holes(-1.0, 2, seed=1), "rho = -1 is out of range"),
        (lambda: mean_holes(1.0, 0, seed=1), "level = 0 is out of range"),
        (lambda: mean_holes(1.0, 2, seed=1, step=0.0), "step = 0 is out of range"),
    ],
)
def test_wrong_input_is_one_sentence(call, sentence):
    with pytest.raises(ParameterError, match=r"^[^\n]+$") as error:
        call()
    assert sentence in str(error.value)
