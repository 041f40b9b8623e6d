"""Q_1, ..., Q_k at the fixed point: against numerical derivatives of the exact drift."""

from math import inf

import numpy as np
import pytest

from supermarket import ParameterError, Supermarket, relaxation_time
from supermarket.limits.saturation.drifts import drift, modes
from supermarket.limits.saturation.slow_mode import modes_at_fixed_point
from supermarket.limits.saturation.theorem import fixed_point_shorter

CASES = [(0.97, 20, 2), (1 - 15e-6, 100, 3), (1 - 6e-5, 1000, 2), (1 - 1e-4, 12, 4)]


def counts_at(n, lam, d, k, moved):
    """Return the counts at the fixed point up to level k, some queues moved, none longer than k."""
    shorter = np.rint(n * fixed_point_shorter(Supermarket(inf, d, lam), k)).astype(np.int64)
    shorter[1:] += moved
    return np.append(n - shorter, 0)


@pytest.mark.parametrize(("lam", "d", "k"), CASES)
def test_each_drift_is_one_of_itself_and_of_the_next(lam, d, k):
    """For n = 1e16 queues; what joins level k + 1 is taken out, as its change is neglected."""
    n = 10**16
    found = modes_at_fixed_point(Supermarket(inf, d, lam), k)
    for level in range(k):
        step = int(1e-6 * n * fixed_point_shorter(Supermarket(inf, d, lam), k)[level + 1])
        moved = np.zeros(k, dtype=np.int64)
        moved[level] = step
        up, down = (counts_at(n, lam, d, k, sign * moved) for sign in (1, -1))
        measured = (drift(Supermarket(inf, d, lam), up) - drift(Supermarket(inf, d, lam), down))[
            1 : k + 1
        ]
        joins = [lam * n * np.exp(d * np.log1p(-(n - s[k]) / n)) for s in (up, down)]
        measured[-1] += joins[0] - joins[1]
        change = found.coefficients[:, level] * 2 * step
        expected = np.append(change[1:], 0.0) - found.rates * change
        scale = found.coefficients @ np.abs(measured) + found.rates * np.abs(change)
        assert np.all(np.abs(-found.coefficients @ measured - expected) <= 2e-5 * scale)


@pytest.mark.parametrize(("lam", "d", "k"), CASES)
def test_one_rate_is_small_and_the_functions_are_positive(lam, d, k):
    found = modes_at_fixed_point(Supermarket(inf, d, lam), k)
    assert np.prod(found.rates) == pytest.approx(1, rel=1e-9)
    assert np.all(found.rates[:-1] > 1)
    assert np.all(np.diff(found.rates) < 0)
    assert np.all(np.diag(found.coefficients) == pytest.approx(1))
    assert np.all(np.tril(found.coefficients) > -1e-9)
    assert np.triu(found.coefficients, 1) == pytest.approx(np.zeros((k, k)), abs=1e-6)


def test_rates_between_the_limit_and_all_levels():
    """A_k as (1-lam) d**(k-1) -> 0, and the whole Jacobian as level k + 1 empties."""
    assert modes_at_fixed_point(Supermarket(inf, 1000, 1 - 1e-9), 2).rates == pytest.approx(
        modes(Supermarket(inf, 1000, 1 - 1e-9), 2).rates, rel=1e-5
    )
    for lam, d, k in ((1 - 2.5e-3, 100, 2), (1 - 15e-6, 100, 3)):
        slow = modes_at_fixed_point(Supermarket(inf, d, lam), k).rates[-1]
        assert slow == pytest.approx(1 / relaxation_time(Supermarket(inf, d, lam)), rel=1e-3)
        assert abs(slow / modes(Supermarket(inf, d, lam), k).rates[-1] - 1) > 0.1


def test_refuses():
    with pytest.raises(ParameterError, match="too far apart"):
        modes_at_fixed_point(Supermarket(inf, 8_000_000, 1 - 6e-11), 2)
    with pytest.raises(ParameterError, match="lam = 1 is out of range"):
        modes_at_fixed_point(Supermarket(inf, 20, 1.0), 2)
    with pytest.raises(ParameterError, match="k = 0 is out of range"):
        modes_at_fixed_point(Supermarket(inf, 20, 0.9), 0)
