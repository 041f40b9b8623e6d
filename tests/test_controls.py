import numpy as np
import pytest

from supermarket.controls import controlled_interval
from supermarket.statistics import mean_interval
from supermarket.validation import ParameterError

pytestmark = pytest.mark.book  # statistics of long runs: once is enough


def noisy(rng, m=32):
    control, other, rest = rng.normal(size=(3, m))
    return 1.0 + 3.0 * control - 2.0 * other + 0.3 * rest, control, other


def test_intervals_cover_as_often_as_they_say():
    # 1000 intervals of confidence 0.9 miss some 100 times, more than 145 times in 1 of 10**5 runs.
    # Some are wider than need be, where neighbouring batches seem correlated by chance.
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


def test_without_controls_it_is_students_interval():
    values = np.tile([1.0, -1.0, 2.0, 0.5], 16) + 3  # neighbours are negatively correlated
    found, plain = controlled_interval(values, [], 0.9), mean_interval(values, 0.9)
    assert (found.low, found.high) == pytest.approx((plain.low, plain.high))


def test_correlated_batches_widen_the_interval_enough():
    # Of 1000 intervals of confidence 0.9 more than 145 miss in 1 of 10**5 runs if they are right;
    # without the widening some 300 do.
    rng = np.random.default_rng(7)
    missed = 0
    for _ in range(1000):
        noise = rng.normal(size=80)
        for i in range(1, 80):
            noise[i] += 0.4 * noise[i - 1]
        control = rng.normal(size=64)
        found = controlled_interval(1.0 + control + noise[16:], [control], 0.9)
        missed += not found.low <= 1.0 <= found.high
    assert 40 <= missed <= 145


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


def test_a_run_of_few_relaxation_times_or_with_empty_batches_has_no_interval():
    values = np.random.default_rng(8).normal(5, 1, size=32)
    assert "relaxation times" in controlled_interval(values, [], relaxations=5.0).refused
    assert np.isfinite(controlled_interval(values, [], relaxations=50.0).low)
    values[:3] = 0
    found = controlled_interval(values, [])
    assert np.isnan(found.low)
    assert "not seen" in found.refused


def test_too_few_batches_and_lists_of_different_lengths_are_refused():
    with pytest.raises(ParameterError, match="too few"):
        controlled_interval(np.arange(8.0), [np.arange(8.0)])
    with pytest.raises(ParameterError, match="equal length"):
        controlled_interval(np.arange(16.0), [np.arange(15.0)])
