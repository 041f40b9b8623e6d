"""beta_n against exact arithmetic, the centre and the rates, and the fluid limit."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from supermarket import ParameterError, Supermarket, fixed_point
from supermarket.limits.growing.centre import (
    barrier_rate,
    critical_arrival_rate,
    fluid_limit,
    log_beta,
    near_equilibrium,
    overflow_lag,
    soft_barrier,
)


def exact_beta(s, n, d, replacement):
    if replacement:
        return Fraction(s, n) ** d
    product = Fraction(1)
    for i in range(d):
        product *= Fraction(max(s - i, 0), n - i)
    return product


@pytest.mark.parametrize("replacement", [True, False])
@pytest.mark.parametrize("n", [1, 2, 7, 30])
def test_beta_agrees_with_fractions(n, replacement):
    for d in range(1, n + 1):
        for s in range(n + 1):
            beta = exact_beta(s, n, d, replacement)
            found = math.exp(log_beta(s / n, n, d, replacement=replacement))
            assert abs(found - beta) <= 1e-12 * beta


def test_beta_is_stable_at_large_sizes():
    n, d = 10**15, 10**7
    for others in (1, 10**8, 3 * 10**9):
        x = 1 - others / n
        with_replacement = log_beta(x, n, d)
        # x itself has 1e-16 of 1: the error of log beta is d times that, 1e-9.
        assert abs(with_replacement - d * math.log1p(-others / n)) < 3e-9
        # Distinct queues: symmetric in d and n - s, and only d (others d) / n^2 apart from it.
        assert abs(log_beta(x, n, d, replacement=False) - with_replacement) < 1e-5
    assert log_beta(1.0, n, n, replacement=False) == 0
    assert log_beta(1 - 1 / 2**50, 2**50, 2**50, replacement=False) == -math.inf
    # One queue outside: 1 - d / n.
    for size, choices in ((2**50, 2**49), (10**6, 10**6 - 1), (10**6, 3 * 10**5)):
        found = log_beta(1 - 1 / size, size, choices, replacement=False)
        assert abs(found - math.log1p(-choices / size)) < 1e-9


def test_between_whole_numbers_of_queues_log_beta_is_linear():
    low, high = (log_beta(s / 100, 100, 5, replacement=False) for s in (90, 91))
    assert abs(log_beta(0.9025, 100, 5, replacement=False) - (0.75 * low + 0.25 * high)) < 1e-12


def test_the_centre_is_the_fixed_point_with_replacement():
    mu = near_equilibrium(Supermarket(10**6, 5, 0.9), 5)
    assert np.allclose(mu, fixed_point(Supermarket(math.inf, 5, 0.9), 5), rtol=1e-12)
    distinct = near_equilibrium(Supermarket(20, 3, 0.9, replacement=False), 2)
    assert abs(distinct[2] - 0.9 * (18 * 17 * 16) / (20 * 19 * 18)) < 1e-12


@pytest.mark.parametrize(("n", "d", "k"), [(10**8, 500, 1), (10**8, 10**4, 1), (10**10, 500, 2)])
@pytest.mark.parametrize("alpha", [0.5, 2.0])
def test_the_critical_rate_gives_the_slope_asked_for(n, d, k, alpha):
    lam = critical_arrival_rate(n, d, alpha, k)
    mu = near_equilibrium(Supermarket(n, d, lam), k + 1)
    slope = lam * d * mu[k] ** (d - 1)  # lam beta'(mu_k)
    assert abs(slope - alpha) < 1e-6 * alpha
    soft = soft_barrier(Supermarket(n, d, lam), k)
    assert abs(math.exp(-soft.c * soft.barrier) - alpha) < 1e-6
    assert abs(soft.c - d / math.sqrt(n)) < 0.03 * soft.c
    # The limit's form, xi near -log alpha; what is left is of the order of log(d)^2 / d.
    xi = (1 - lam) * float(d) ** k - math.log(d)
    assert abs(xi + math.log(alpha)) < 2 * math.log(d) ** 2 / d


def test_distinct_queues_have_the_same_overflow_if_they_are_few():
    lam = critical_arrival_rate(10**8, 10**4, 1.0)
    one, other = (
        soft_barrier(Supermarket(10**8, 10**4, lam, replacement=r)) for r in (True, False)
    )
    assert abs(one.c - other.c) < 1e-3
    assert abs(one.barrier - other.barrier) < 1e-3
    many = soft_barrier(Supermarket(10**6, 9 * 10**5, 1 - 1e-5, replacement=False))
    # Of many distinct queues: as many as -n log(1 - d/n) with replacement.
    assert abs(many.c - 1e3 * math.log(10)) < 0.01 * many.c


@pytest.mark.parametrize("k", [1, 2])
def test_the_barrier_rate_puts_the_barrier_where_it_is_asked_for(k):
    soft = soft_barrier(Supermarket(10**8, 10**6, barrier_rate(10**8, 10**6, 1.5, k)), k)
    assert abs(soft.barrier - 1.5) < 1e-3
    assert abs(soft.c - 100) < 0.1


def test_the_fluid_limit_from_empty_fills_level_after_level():
    t = np.linspace(0, 6, 61)
    flow = fluid_limit(1.5, t)
    first = np.where(t < math.log(3), 1.5 * (1 - np.exp(-t)), 1)
    second = np.clip((t - math.log(3)) / 2, 0, 1)
    third = np.clip((t - math.log(3) - 2) / 2, 0, 1)
    assert np.abs(flow.values[:, :3] - np.column_stack([first, second, third])).max() < 1e-8


def test_the_fluid_limit_keeps_count_of_the_jobs():
    """Jobs: what came less what was served, with room enough for all levels."""
    t = np.linspace(0, 5, 5001)
    for lam, start in ((0.0, [1, 1, 0.5]), (0.8, [1, 0.9, 0.6]), (1.0, [1, 1]), (3.0, [1.0])):
        flow = fluid_limit(lam, t, start=start)
        served = np.sum((flow.values[1:, 0] + flow.values[:-1, 0]) / 2 * np.diff(t))
        assert abs(flow.values[-1].sum() - sum(start[1:]) - lam * 5 + served) < 1e-6
        assert flow.values[-1, -1] < 1
        assert not flow.pushed[:, -1].any()
        assert np.all(np.diff(flow.values, axis=1) < 1e-9)


def test_without_arrivals_queues_drain_like_poisson_counts():
    t = np.linspace(0, 3, 31)
    flow = fluid_limit(0.0, t, start=[1, 1, 1])
    expected = np.column_stack([(1 + t) * np.exp(-t), np.exp(-t)])
    assert np.abs(flow.values[:, :2] - expected).max() < 1e-9


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: log_beta(1.5, 10, 2), "x = 1.5 is out of range"),
        (lambda: log_beta(0.5, 10, 11, replacement=False), "distinct queues cannot be chosen"),
        (lambda: near_equilibrium(Supermarket(10, 2, 1.0), 2), "lam"),
        (lambda: soft_barrier(Supermarket(100, 100, 0.9, replacement=False)), "never all busy"),
        (lambda: critical_arrival_rate(100, 2, 1.0), "too small for alpha"),
        (lambda: critical_arrival_rate(10**8, 10, 1e9), "too small for alpha"),
        (lambda: barrier_rate(100, 10, 10.0), "lam"),
        (lambda: fluid_limit(1.5, [0.0, 1.0], start=[1, 0.2, 0.3]), "profile"),
        (lambda: fluid_limit(1.5, [0.0, 1e9]), "too many levels"),
    ],
)
def test_a_wrong_argument_is_refused(call, words):
    with pytest.raises(ParameterError, match=words):
        call()


def test_levels_that_overflow_lag_behind_by_one_over_d():
    """Against the mean-field equation with d choices, from empty queues at a rate of 1.5.

    Without noise d times the distance is 2.05 at d = 30 and 2.10 at 100, towards 2; were it
    log d / d it would be 3.4 and 4.6.
    """
    lam, times = 1.5, np.linspace(0, 4, 81)
    limit = fluid_limit(lam, times).values
    for d in (30, 100):

        def drift(_, u, d=d):
            above, here, below = np.append(1.0, u[:-1]), u, np.append(u[1:], 0.0)
            return lam * (above**d - here**d) - (here - below)

        solved = solve_ivp(drift, (0, 4), np.zeros(8), "LSODA", times, rtol=1e-9, atol=1e-12)
        shares = solved.y.T[:, : limit.shape[1]]
        far = np.abs(shares - limit).max()
        assert far == pytest.approx(overflow_lag(lam, d), rel=0.08)
        assert far < 0.7 * math.log(d) / d
    with pytest.raises(ParameterError, match="lam = 1 is out of range"):
        overflow_lag(1.0, 10)
