"""Autocorrelation: against series whose own is known, a naive twin, and too short a series.

Coverage is counted over independent series with fixed seeds: as many misses as one fair test in
10**6 would have are allowed, and half the width of the intervals must give more.
"""

import math

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.stats import binom

from supermarket import ParameterError
from supermarket.estimate.autocorrelation import autocorrelation_time, forgetting_rate

PHI = 0.8
TIME = 0.5 + PHI / (1 - PHI)


def autoregressive(rng, copies, m, phi=PHI):
    """x[t + 1] = phi x[t] + noise, stationary from the start."""
    noise = rng.normal(size=(copies, m))
    noise[:, 0] /= math.sqrt(1 - phi**2)
    return lfilter([1.0], [1.0, -phi], noise, axis=1)


def naive_time(series, window):
    """Sum the autocorrelations one by one, about the mean of all copies."""
    off = series - series.mean()
    m = series.shape[1]

    def covariance(lag):
        return np.mean([x[: m - lag] @ x[lag:] / (m - lag) for x in off])

    return 0.5 + sum(covariance(lag) for lag in range(1, window + 1)) / covariance(0)


@pytest.mark.parametrize("copies", [1, 3])
def test_the_sum_is_that_of_the_autocorrelations(copies):
    series = 5 + autoregressive(np.random.default_rng(1), copies, 6000)
    found = autocorrelation_time(series, 0.5)
    times = [naive_time(series, window) for window in range(80)]
    window = next(m for m, time in enumerate(times) if m >= 6 * time)
    assert found.estimate == pytest.approx(0.5 * times[window], rel=1e-10)
    half = 1.959964 * found.estimate * math.sqrt(2 * (2 * window + 1) / series.size)
    assert (found.low + found.high) / 2 == pytest.approx(found.estimate)
    assert (found.high - found.low) / 2 == pytest.approx(half, rel=1e-6)


def misses(intervals, truth, narrower=1.0):
    return sum(
        not (abs(i.estimate - truth) <= narrower * max(i.high - i.estimate, i.estimate - i.low))
        for i in intervals
    )


@pytest.mark.parametrize("copies", [1, 10])
def test_the_intervals_hold_the_true_time(copies):
    rng = np.random.default_rng(2)
    found = [
        autocorrelation_time(autoregressive(rng, copies, 20_000 // copies)) for _ in range(400)
    ]
    # 5 % misses, and 3 % allowed for the window's bias and for the error of the error.
    allowed = binom.isf(1e-6, 400, 0.08)
    assert misses(found, TIME) <= allowed < misses(found, TIME, narrower=0.5)


def test_several_rates_are_weighted_by_their_variances():
    """Half the variance white, which counts for half a step, and half of it slow."""
    rng = np.random.default_rng(3)
    slow = autoregressive(rng, 1, 2_000_000)[0] * math.sqrt(1 - PHI**2)
    found = autocorrelation_time(slow + rng.normal(size=slow.size), confidence=1 - 1e-6)
    assert found.low < (TIME + 0.5) / 2 < found.high < TIME
    assert found.high - found.low < 0.15


def test_the_rate_of_one_lag():
    """The estimate moves by the reversible half of the noise only, as the standard error says."""
    rng = np.random.default_rng(4)
    found = [forgetting_rate(autoregressive(rng, 20, 1000), 2, 0.1) for _ in range(400)]
    rate = -math.log(PHI) / 0.1
    assert misses(found, rate) <= binom.isf(1e-6, 400, 0.06) < misses(found, rate, narrower=0.5)
    error = np.mean([(i.high - i.low) / 2 / 2.093 for i in found]) / rate
    relaxations = 20_000 * -math.log(PHI)
    assert math.sqrt(2 / relaxations) < error < 1.3 * math.sqrt(2 / relaxations)
    assert found[0].effective == 20


def test_a_series_that_is_too_short_has_no_interval():
    rng = np.random.default_rng(5)
    few = autocorrelation_time(autoregressive(rng, 1, 500))
    assert math.isnan(few.low)
    assert math.isnan(few.high)
    assert few.estimate > 0
    # Long in all, but no copy is: it never comes to the end of its window.
    split = autocorrelation_time(autoregressive(rng, 1000, 12, phi=0.999))
    assert math.isnan(split.low)
    wandering = autocorrelation_time(np.cumsum(rng.normal(size=10_000)))
    assert math.isnan(wandering.low)
    alternating = np.tile([1.0, -1.0], (3, 50))
    assert math.isnan(forgetting_rate(alternating, 1).low)


@pytest.mark.parametrize(
    ("series", "sentence"),
    [
        ([1.0] * 20, "never changes"),
        (np.arange(9), "at least 10 numbers"),
        ([1.0, math.nan] * 10, "finite"),
        (np.zeros((2, 3, 20)), "one row a copy"),
    ],
)
def test_refuses(series, sentence):
    with pytest.raises(ParameterError, match=sentence):
        autocorrelation_time(series)
    with pytest.raises(ParameterError, match=sentence):
        forgetting_rate(series, 1)


def test_refuses_options():
    x = np.arange(20.0)
    with pytest.raises(ParameterError, match="lag = 20 is out of range"):
        forgetting_rate([x, x], 20)
    with pytest.raises(ParameterError, match="spacing = 0"):
        autocorrelation_time(x, 0.0)
    with pytest.raises(ParameterError, match="confidence"):
        autocorrelation_time(x, confidence=1.0)
    with pytest.raises(ParameterError, match="at least 2 are needed"):
        forgetting_rate([x], 1)
