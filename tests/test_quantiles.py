"""Intervals for quantiles hold the true value as often as they say."""

import math

import numpy as np
import pytest
from scipy.stats import expon

from supermarket import ParameterError
from supermarket.estimate.quantiles import quantile_interval

pytestmark = pytest.mark.book  # statistics of long runs: once is enough


@pytest.mark.parametrize("level", [0.1, 0.5, 0.97])
def test_coverage(level):
    """1000 intervals of 90 %: fewer than 870 or more than 970 hold it in one run of 10^3 at most.

    Clopper and Pearson's interval holds a share at least as often as it says.
    """
    rng = np.random.default_rng(1)
    true = expon.ppf(level)
    found = [quantile_interval(rng.exponential(size=400), level, 400, 0.9) for _ in range(1000)]
    assert 870 <= sum(one.low <= true <= one.high for one in found) <= 970


def test_repeated_values_count_by_their_looks():
    """Each of 200 values seen 20 times: the looks stay 200, and the interval with them."""
    values = np.random.default_rng(2).normal(size=200)
    one = quantile_interval(values, 0.5, 200, 0.9)
    many = quantile_interval(np.repeat(values, 20), 0.5, 200, 0.9)
    assert many.low == pytest.approx(one.low, abs=0.05)
    assert many.high == pytest.approx(one.high, abs=0.05)
    too_sure = quantile_interval(np.repeat(values, 20), 0.5, 4000, 0.9)
    assert too_sure.high - too_sure.low < (many.high - many.low) / 2


def test_infinite_values_and_too_few_looks():
    values = [1.0] * 95 + [math.inf] * 5
    assert quantile_interval(values, 0.5, 100).high == 1.0
    assert quantile_interval(values, 0.9, 1000).high == 1.0
    assert quantile_interval(values, 0.96, 1000).high == math.inf
    few = quantile_interval(values, 0.99, 100)
    assert math.isnan(few.low)
    assert "100 looks" in few.refused
    assert few.longer == pytest.approx(5)
    for wrong in ([], [math.nan]):
        with pytest.raises(ParameterError, match="series"):
            quantile_interval(wrong, 0.5, 10)
    with pytest.raises(ParameterError, match="level"):
        quantile_interval([1.0], 1.0, 10)
