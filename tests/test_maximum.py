"""The bound on how seldom the maximum is outside given lengths, against runs that see it there."""

import math

import numpy as np
import pytest

from supermarket import (
    ParameterError,
    Schedule,
    Supermarket,
    fixed_point,
    max_queue_hypothesis,
    simulate,
)
from supermarket.runs.controls import level_control
from supermarket.runs.maximum import outside_interval

pytestmark = pytest.mark.book  # statistics of long runs: once is enough


def test_queues_reach_a_length_as_often_as_the_level_below_says():
    """E s_(k+1) = lam n E u_k**d, on which the bound rests; 5 standard errors: 1 in 10**6."""
    run = simulate(Supermarket(50, 2, 0.9), Schedule(40_000, batches=8192), seed=3)
    for level in (1, 2, 3, 4):
        rate = 0.9 * 50 * (run.ends[:, level] / 50) ** 2
        off = 50 * run.batches["profile"][:, level + 1] - rate
        joined = off.reshape(64, -1).mean(axis=1)  # far longer than the relaxation time of 13
        assert abs(joined.mean()) < 5 * joined.std(ddof=1) / 8
        wrong = 50 * run.batches["profile"][:, level + 1] - rate / 0.9
        assert abs(wrong.mean()) > 5 * wrong.reshape(64, -1).mean(axis=1).std(ddof=1) / 8


def test_the_bound_is_above_the_share_that_a_long_run_sees():
    run = simulate(Supermarket(1000, 2, 0.8), 20_000, seed=4)
    bound = outside_interval(run, 4, 5, 0.999)
    seen = sum(share for length, share in run.max_queue.items() if length not in (4, 5))
    assert 0 < seen < 0.05  # it was there, so the bound has something to exceed
    assert seen < bound.low
    tight = outside_interval(run, 3, 4, 0.999)
    above = sum(share for length, share in run.max_queue.items() if length > 4)
    assert above <= tight.high
    assert tight.low < 1000 * fixed_point(Supermarket(math.inf, 2, 0.8), 5)[5] * 1.5


def test_where_it_was_never_seen_the_bound_still_is_a_number():
    run = simulate(Supermarket(10**6, 2, 0.8), 150, seed=5)
    k = max_queue_hypothesis(Supermarket(10**6, 2, 0.8))
    assert set(run.max_queue) <= {k, k + 1}
    bound = outside_interval(run, k, k + 1, 0.99)
    assert 0 < bound.low < bound.high < 0.01
    assert outside_interval(run, k + 1, k + 2, 0.99).estimate > 0.2  # k + 1 is not always there


def test_with_controls_the_bound_is_the_same_and_sharper():
    """5 standard errors at most: 1 in 10**6."""
    times = np.arange(0.0, 4000, 0.5)
    run = simulate(Supermarket(1000, 2, 0.8), Schedule(4000, times=times), seed=7)
    controls = [level_control(run, level) for level in (1, 4, 5)]
    plain, found = outside_interval(run, 3, 4), outside_interval(run, 3, 4, controls=controls)
    half = (plain.high - plain.low) / 2
    assert abs(found.estimate - plain.estimate) < 2.5 * half
    assert found.high - found.low < 0.7 * (plain.high - plain.low)


def test_refusals():
    run = simulate(Supermarket(1000, 2, 0.8), 20, seed=6)
    short = outside_interval(run, 3, 4, 0.99)
    assert math.isnan(short.low)
    assert "relaxation times" in short.refused
    never = outside_interval(run, 9, 10, 0.99)
    assert math.isnan(never.high)
    assert never.estimate == 1.0
    assert np.isfinite(outside_interval(run, 1, 30).estimate)
    with pytest.raises(ParameterError, match="low"):
        outside_interval(run, 0, 3)
    with pytest.raises(ParameterError, match="high"):
        outside_interval(run, 4, 3)
    distinct = simulate(Supermarket(1000, 2, 0.8, replacement=False), 20, seed=6)
    with pytest.raises(ParameterError, match="with replacement"):
        outside_interval(distinct, 3, 4)
