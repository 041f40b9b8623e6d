"""What would be so instead, against closed forms and against what it is to be told from."""

import math

import numpy as np
import pytest

from supermarket import Supermarket, cavity
from supermarket.experiment.statements import find
from supermarket.limits.alternatives import fifo
from supermarket.limits.fifo.tails import (
    critical_beta,
    critical_decay_rate,
    exponential_limit,
    power_law_constant,
    q_exponent,
)
from supermarket.service import Lomax


def test_q_a_little_beside():
    below, above = fifo.q_nearby(3.0, 2)
    assert below < q_exponent(3.0, 2) < above
    assert fifo.q_nearby(2.02, 2)[0] == 0.0
    assert fifo.nearly_one(2) == q_exponent(11.0, 2)
    assert 1 - 1e-3 < fifo.nearly_one(5) < 1


def test_gamma_and_its_constant_with_fewer_choices():
    assert fifo.gamma_of_fewer(1.5, 2) == [0.5]
    assert fifo.gamma_of_fewer(1.3, 3) == pytest.approx([0.3, 0.3 / 0.7])
    # u = 1/2: the factor d**(beta - 1) counts as d
    ratio = power_law_constant(1.5, 0.5**1.5, 2, 0.7) / fifo.constant_of_one(1.5, 2, 0.7)
    assert ratio == pytest.approx(2.0)


@pytest.mark.parametrize(("d", "lam", "weight"), [(2, 0.7, 1.0), (3, 0.9, 0.5), (5, 0.7, 0.01)])
def test_the_rate_of_the_mean_is_another_one(d, lam, weight):
    c = weight * Lomax(critical_beta(d)).tail_constant
    right, wrong = critical_decay_rate(c, lam, d), fifo.rate_of_the_mean(d, lam, weight)
    assert abs(wrong / right - 1) > 0.02
    if d == 2:  # 1 = c lam**2 (1 - exp(-r)) (1 + exp(r))
        assert c * lam**2 * (math.exp(wrong) - math.exp(-wrong)) == pytest.approx(1.0)
    if weight == 1:
        found = exponential_limit(
            cavity(Supermarket(math.inf, d, lam, service=Lomax(critical_beta(d))), 60).log_tail
        )
        assert found.low <= right <= found.high < wrong or wrong < found.low


def test_prefactors_without_their_constants():
    assert fifo.bare_prefactor(3.0, 0.5) == pytest.approx(math.log(8 * 0.125))
    assert fifo.sharp_without(2.5) == pytest.approx([0.4, math.pi / math.gamma(2.5)])
    assert fifo.sharp_without(2.0) == [0.5]
    none, below, above = fifo.growth_nearby(3.0, 2)
    assert none == 0.0
    assert below < math.log((1 + math.sqrt(5)) / 2) < above
    x = 2 ** -q_exponent(2.5, 2)
    assert np.prod(fifo.other_part(2.5, 2)) == pytest.approx(1.0)
    assert fifo.other_part(2.5, 2)[0] == pytest.approx(x)


def test_shares_of_other_systems():
    heavy = cavity(Supermarket(math.inf, 2, 0.7, service=Lomax(2.5)), 6).tail
    same, less = fifo.exponential_instead(float(heavy[4]), 2, 0.7, 4)
    assert same == pytest.approx(0.7**15)
    assert less == pytest.approx(0.7**4)
    assert fifo.exponential_instead(0.7**15, 2, 0.7, 4) == pytest.approx([0.7**4])
    assert fifo.exponential_instead(0.7**2, 1, 0.7, 2) == pytest.approx([0.7**3])  # d = 1: two
    assert fifo.exponential_instead(3.0, 2, 0.9, 0)[1] == pytest.approx(9.0)
    assert fifo.one_choice_less("Exponential()", 3, 0.7, 3) == pytest.approx(0.7**7)
    assert fifo.one_choice_less("Lomax(2.5)", 1, 0.7, 4) == pytest.approx(heavy[4])
    assert cavity(Supermarket(math.inf, 2, 0.7), 3).tail[3] == pytest.approx(0.7**7)


def test_hypotheses():
    assert not fifo.doubly_exponential(2.1, 2)
    assert fifo.doubly_exponential(2.0, 2)
    assert not fifo.power_law(1.4, 3)
    assert fifo.power_law(1.5, 3)
    assert not fifo.whole_index(3.0, 2)
    assert len(fifo.whole_index(1.5, 2)) == 2
    assert not fifo.fractional_index(2.5, 2)
    assert fifo.fractional_index(3.0, 2)
    assert not fifo.falling_hazard("Lomax(2.5)")
    assert not fifo.falling_hazard("Exponential()")
    assert fifo.falling_hazard("Deterministic()")
    assert find("blp-ansatz-proved").failing({"service": "Erlang(4)"})
