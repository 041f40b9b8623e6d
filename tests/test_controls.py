import numpy as np
import pytest

from supermarket.controls import controlled_interval
from supermarket.statistics import mean_interval
from supermarket.validation import ParameterError


def noisy(rng, m=32):
    control, other, rest = rng.normal(size=(3, m))
    return 1.0 + 3.0 * control - 2.0 * other + 0.3 * rest, control, other


def test_intervals_cover_as_often_as_they_say():
    # 1000 intervals of confidence 0.9 miss some 100 times, more than 145 times in 1 of 10**5 runs.
    # Some are wider than need be, where neighbouring batches seem correlated.
    rng = np.random.default_rng(1)
    missed = 0
    for _ in range(1000):
        values, control, other = noisy(rng)
        found = controlled_interval(values, [control, other], 0.9)
        missed += not found.low <= 1.0 <= found.high
    assert 40 <= missed <= 145


def test_what_the_controls_explain_is_taken_out():
    values, control, other = noisy(np.random.default_rng(2))
    plain, found = mean_interval(values), controlled_interval(values, [control, other])
    assert found.high - found.low < 0.3 * (plain.high - plain.low)
    assert found.effective > 10 * len(values)


def test_a_control_whose_mean_is_not_what_was_said_moves_the_estimate():
    values, control, other = noisy(np.random.default_rng(3))
    wrong = controlled_interval(values, [control + 0.5, other], 0.999)
    assert not wrong.low <= 1.0 <= wrong.high


def test_without_controls_it_is_the_interval_of_the_batches():
    values = np.random.default_rng(4).normal(size=64)
    found, plain = controlled_interval(values, [], 0.9), mean_interval(values, 0.9)
    assert (found.low, found.high) == pytest.approx((plain.low, plain.high))


def test_a_control_that_is_a_multiple_of_another_changes_nothing():
    values, control, other = noisy(np.random.default_rng(5))
    two = controlled_interval(values, [control, other])
    three = controlled_interval(values, [control, other, control - 2 * other])
    assert (three.low, three.high) == pytest.approx((two.low, two.high))


def test_batches_that_remember_each_other_have_no_interval():
    rng = np.random.default_rng(6)
    values = np.cumsum(rng.normal(size=64))
    found = controlled_interval(values, [rng.normal(size=64)])
    assert np.isnan(found.low)
    assert "correlated" in found.refused


def test_too_few_batches_and_lists_of_different_lengths_are_refused():
    with pytest.raises(ParameterError, match="too few"):
        controlled_interval(np.arange(8.0), [np.arange(8.0)])
    with pytest.raises(ParameterError, match="equal length"):
        controlled_interval(np.arange(16.0), [np.arange(15.0)])
