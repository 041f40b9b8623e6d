"""What verdicts on the mean field, its correction and the maximum are told from."""

import math

import pytest

from supermarket import Supermarket, fixed_point, mean_queue, mean_sojourn, trajectory
from supermarket.limits.alternatives import mean_field
from supermarket.limits.mean_field.correction import mean_queue_correction


def test_one_choice_less_is_that_and_two_for_one():
    assert mean_field.one_choice_less(0.8, 3, 2) == fixed_point(Supermarket(math.inf, 2, 0.8), 2)[2]
    assert mean_field.one_choice_less(0.8, 1, 2) == fixed_point(Supermarket(math.inf, 2, 0.8), 2)[2]
    assert mean_field.mean_with_one_choice_less(0.8, 2) == mean_queue(Supermarket(math.inf, 1, 0.8))
    assert mean_field.sojourn_with_one_choice_less(0.8, 5) == mean_sojourn(
        Supermarket(math.inf, 4, 0.8)
    )
    # 0.8**7 against 0.8**3 at level 3, which no other level exceeds.
    assert mean_field.other_fixed_point(0.8, 2) == pytest.approx(0.8**4 - 0.8**15)


def test_paths():
    v = trajectory(Supermarket(math.inf, 1, 0.8), [2.0], levels=120)[0]
    assert mean_field.path_with_one_choice_less(0.8, 2, 2.0, 2) == pytest.approx(v[2], abs=1e-8)
    assert mean_field.path_with_one_choice_less(0.8, 2, 2.0) == pytest.approx(v[1:].sum(), abs=1e-7)


def test_jobs_joined_differ_as_the_powers_do():
    """At level 1, soon after the start, v_1 is small: 1 - v_1 against 1 - v_1**2."""
    time = 0.01
    v = 0.8 * time / 2  # the mean of v_1 until then
    ratio = mean_field.joined_with_one_choice_less(0.8, 2, 1, time)
    assert ratio == pytest.approx((1 - v) / (1 - v * v), rel=1e-3)
    assert mean_field.joined_with_one_choice_less(0.8, 1, 1, time) == pytest.approx(1 + v, rel=1e-3)


def test_no_correction_and_that_of_the_other_rule():
    zero, other = mean_field.uncorrected(0.9, 2, True)
    assert zero == 0
    assert other == mean_queue_correction(Supermarket(math.inf, 2, 0.9, replacement=False))
    assert mean_field.uncorrected(0.9, 2, False)[1] == mean_queue_correction(
        Supermarket(math.inf, 2, 0.9)
    )


def test_growth_of_the_maximum():
    assert mean_field.one_queue_in_n(1000, 0.8) == pytest.approx(30.96, abs=0.01)
    # With two choices, 1000 and 10 queues: n pi(k) = 1 at k = 5.0 and 3.5.
    assert mean_field.growth_with_two_choices(0.8, 1000, 10) * math.log(100) == pytest.approx(
        math.log2((1 + 30.96) / (1 + 10.32)), rel=1e-3
    )
    assert mean_field.growth_with_one_choice_less(3) == pytest.approx(1 / math.log(2))
    assert mean_field.growth_with_one_choice_less(2) == pytest.approx(1 / math.log(3))
    less, more = mean_field.step_with_other_choices(888_000, 0.8, 2, 6)
    assert less == 1.0
    assert more < 1e-3
