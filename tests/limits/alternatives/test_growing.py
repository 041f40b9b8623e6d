"""What the claims of growing choices are told from, by hand."""

import math

import pytest

from supermarket.limits.alternatives import growing
from supermarket.limits.growing.diffusions import LinearOverflow, ReflectedOverflow, exponential


def test_a_limit_is_told_from_those_beside_it():
    alpha = 0.5
    soft, linear = exponential(alpha, 1.0), LinearOverflow(alpha)
    hard = ReflectedOverflow(soft.barrier)
    asked = "Var Z1", alpha
    variances = {law: growing._moments(law)[2] for law in (linear, soft, hard)}
    assert growing.stationary("linear", *asked) == [variances[soft]]
    assert growing.stationary("exponential", *asked) == [variances[linear], variances[hard]]
    # A reflected limit is named by its barrier, at which the overflow begins.
    beside = growing.stationary("reflected", "Var Z1", soft.barrier)
    assert beside == [pytest.approx(variances[soft])]
    assert len({round(variance, 3) for variance in variances.values()}) == 3


@pytest.mark.book  # 100,000 paths
def test_a_moment_at_a_time_is_that_of_the_neighbour():
    (second,) = growing.after_a_time("reflected", "E Z2^2", 1.0, 0.5)
    assert 0.1 < second < 1.0
    assert growing.after_a_time("exponential", "E Z2", 1.0, 0.5)[0] == 0.0  # linear


def test_other_noise_and_other_growth():
    assert growing.noise_of_its_own(0.5) == 2.5
    assert growing.departures_alone(0.5) == 0.25
    assert growing.no_noise_of_its_own(0.5, lam=0.9) == pytest.approx(0.4)
    assert growing.not_drained(1.0, start=3.0) == 3.0
    assert growing.replaced(1.0, other=2.0) == 2.0
    low, high = 10, 1000  # the slope of log(log(d) / d) over log(d)
    slope = (math.log(math.log(high) / high) - math.log(math.log(low) / low)) / math.log(100)
    assert growing.slope_of_log_over_d(low, high) == pytest.approx(slope)
    assert growing.endless(0.5, share=0.125) == pytest.approx(3.0)  # 0.5**3


def test_hypotheses():
    assert growing.growing_hypotheses(10, 10) == []
    assert growing.growing_hypotheses(10, 11) == ["$d_n \\le n$"]
    assert growing.growing_hypotheses(10, 5, replacement=True) == ["the choices are distinct"]
