"""Alternatives to the statements on drifts, couplings and mixing, and where these do not apply."""

import itertools
import math

import numpy as np
import pytest

from supermarket import Supermarket, relaxation_time
from supermarket.limits.alternatives import mixing
from supermarket.limits.saturation.drifts import drift, modes


def test_the_conditions_of_theorem_1_2_are_read_as_they_stand():
    """All hold at the page on the literal regime; each fails alone where it is broken."""
    n, d, lam = 4 * 10**18, 8 * 10**6, 1 - 6e-11
    assert mixing.theorem_1_2(n, d, lam) == []
    (few,) = mixing.theorem_1_2(n, 10**6, 1 - 6e-11)  # d**2 (1 - lam) = 60
    assert few.startswith("$d^k")
    (near,) = mixing.theorem_1_2(10**6, 10**4, 1 - 5e-6)  # 200 (1 - lam) d = 10
    assert near.startswith("$100")
    assert len(mixing.theorem_1_2(10**6, 100, 0.999)) == 2
    assert r"$k \ge 2$" in mixing.theorem_1_2(10**6, 100, 0.99)


def test_theorem_1_3_asks_for_a_smaller_eps():
    n, d, lam = 4 * 10**18, 8 * 10**6, 1 - 6e-11
    assert 1 / 60 < 200 * (1 - lam) * d < 0.1
    assert mixing.theorem_1_2(n, d, lam) == []
    (near,) = mixing.theorem_1_3(n, d, lam)
    assert near.endswith("1/60$")
    assert mixing.theorem_1_3(n, d // 6, 1 - 6e-11 * 25) != []


def test_the_sides_of_a_gap_are_checked_for_both():
    assert r"$2\alpha_+ < 1 + \beta$" in mixing.gap_of_powers(10**18, 0.5, 0.125)
    assert r"$2\alpha_+ < 1 + \beta$" not in mixing.gap_of_powers(10**18, 0.5, 0.1)
    assert "whole number" in " ".join(mixing.gap_of_powers(10**18, 0.5, 0.25))
    assert "large enough" in " ".join(mixing.gap_of_powers(10**6, 0.5, 0.1))


def test_the_drift_with_distinct_queues_is_that_of_every_list():
    """By listing the lists: 3 queues up to length 2, 2 distinct ones of them."""
    n, d, lam, longest = 3, 2, 0.6, 2
    worst = 0.0
    for state in itertools.product(range(longest), repeat=n):
        counts = np.array([sum(x >= i for x in state) for i in range(longest + 2)])
        change = np.zeros(longest + 2)
        for chosen in itertools.permutations(range(n), d):
            change[min(state[q] for q in chosen) + 1] += lam / math.perm(n, d)
        for x in state:
            if x > 0:
                change[x] -= 1 / n
        with_replacement = drift(Supermarket(math.inf, d, lam), counts) / n
        worst = max(worst, np.abs(change - with_replacement)[1:].max() / (1 + lam))
    assert mixing.distinct_choices(n, d, lam, longest) == pytest.approx([worst])
    assert worst > 0.03
    assert mixing.distinct_choices(2, 3, lam, longest) == [1.0]  # too few queues for three


def test_rates_and_slopes_of_the_alternatives():
    lam, d, k = 0.97, 20, 2
    assert mixing.slopes_of_others(1.0, lam, d, k, 2, "rate") == [
        modes(Supermarket(math.inf, d, lam), k).rates[1]
    ]
    assert mixing.slopes_of_others(1.0, lam, d, k, 1, "next") == [0.0]
    assert mixing.slopes_of_others(0.0, lam, d, k, 2, "before") == [1.0]
    assert mixing.power_of_choices(lam, d, k) == pytest.approx(1 / 19.4)
    assert mixing.limit_over_drift(lam, d, k) == pytest.approx(
        relaxation_time(Supermarket(math.inf, d, lam)) / 19.4
    )
    assert mixing.unit_for_step(1 / (1 + lam), lam)[0] == pytest.approx(1)
    assert mixing.one_level_off(1.0, 10) == [0.1, 10.0]
    assert mixing.levels_beside(1.8) == pytest.approx([0.8, 2.8])


def test_growth_of_other_functions_of_n():
    """From 1e2 to 1e6 and on to 1e10: in decades 4 to 36 to 100, and log 2 to log 6 to log 10."""
    squares, iterated = mixing.other_growth([10**2, 10**4, 10**6, 10**8, 10**10])
    assert squares == pytest.approx((100 - 36) / (36 - 4))
    assert iterated == pytest.approx(math.log(5 / 3) / math.log(3))


def test_bad_starts_with_another_constant_or_a_logarithm():
    assert mixing.other_bad_times(10, 0.9, "slope") == pytest.approx([10 / 1.9])
    (exponent,) = mixing.other_bad_times(1, 0.9, "exponent", 10, 1000)
    assert exponent == pytest.approx(math.log(1000 * 3 / 10) / math.log(100))
