"""Hypotheses that fail, alternatives that differ: what verdicts near saturation are told from."""

from math import inf

import pytest

from supermarket import Supermarket, fixed_point, k_lambda_d
from supermarket.limits.alternatives import saturation
from supermarket.limits.saturation.families import few_choices, slow_load, slowest_load
from supermarket.limits.saturation.theorem import mean_of_longer, power_case

LITERAL = {"n": 10**17, "d": 8_000_000, "lam": 1 - 6e-11}


def test_nothing_fails_in_the_literal_regime():
    assert saturation.theorem_1_2(**LITERAL, eps=0.1) == []
    assert saturation.single_lengths(**LITERAL, eps=0.1) == []


@pytest.mark.parametrize(
    ("changed", "failing"),
    [
        ({"d": 6_000_000}, ["(A)"]),
        ({"d": 8_400_000}, ["(B)"]),
        ({"n": 10**15}, ["(C)"]),
        ({"d": 10**12}, ["(A)", "(B) 2 ≤ k"]),
    ],
)
def test_each_hypothesis_fails_by_its_name(changed, failing):
    found = saturation.theorem_1_2(**(LITERAL | changed), eps=0.1)
    assert len(found) == len(failing)
    assert all(words.startswith(name) for words, name in zip(found, failing, strict=True))


def test_single_lengths_need_enough_choices():
    case = power_case(10**6, 0.6, 0.45)
    at = {"n": case.n, "d": case.d, "lam": case.lam}
    assert "ε λ d ≥ 2" not in saturation.single_lengths(**at, eps=0.1)
    assert "ε λ d ≥ 2" in saturation.single_lengths(**at, eps=0.001)


def test_exponents():
    assert saturation.power_exponents(0.6, 0.45) == []
    assert saturation.power_exponents(0.4, 0.5) == ["α > β"]
    assert saturation.power_exponents(0.5, 0.25) == ["α/β not whole"]
    assert saturation.power_exponents(0.9, 0.7) == ["2α < 1 + β"]
    assert saturation.integer_ratio(0.5, 0.25) == []
    assert saturation.integer_ratio(0.5, 0.26) == ["α/β = 2, 3, …"]
    assert saturation.integer_ratio(0.4, 0.4) == ["α/β = 2, 3, …"]
    case = power_case(10**6, 0.9, 0.7)
    found = saturation.power_family(case.n, case.d, case.lam, 0.9, 0.7)
    assert found[0] == "2α < 1 + β"
    assert {words[:3] for words in found[1:]} == {"(B)", "(C)"}


def test_families_name_their_own_conditions_first():
    n = 10**18
    d, lam = few_choices(n, 0.45, 2.5, 0.12)
    assert saturation.outside_few_choices(n, d, lam, 0.45, 2.5, 0.12)[0].startswith("(B)")
    assert saturation.outside_few_choices(n, d, lam, 0.55, 1.5, 0.2)[:3] == [
        "α < 1/2", "γ < α/3", "2 < θ < α/γ − 1",
    ]  # fmt: skip
    d, lam = slow_load(n, 5.0, 4.25)
    assert all(words[0] == "(" for words in saturation.outside_slow_load(n, d, lam, 5.0, 4.25))
    assert saturation.outside_slow_load(n, d, lam, 5.0, 3.4)[0] == "(α + 2)/k < β < α/(k − 1)"
    assert saturation.outside_slow_load(n, d, lam, 1.9, 1.5)[0] == "α > 2"


def test_the_slowest_family_asks_for_the_constant_of_the_paper():
    n = 10**18
    for large, small, failing in ((1.7e7, 7000.0, []), (8.2e6, 4060.0, ["C > 160000 / ε²"])):
        d, lam = slowest_load(n, large, small)
        assert saturation.outside_slowest_load(n, d, lam, large, small) == failing
    assert saturation.constant_of_the_paper(0.1) == pytest.approx(1.6e7)


def test_one_length():
    assert saturation.one_length(1000, 0.999) == []
    assert saturation.one_length(999, 0.999) == ["d ≥ 1/(1 − λ)"]


def test_alternatives_are_other_numbers():
    n, d, lam = 10**6, 30, 0.9833
    here = mean_of_longer(Supermarket(n, d, lam))
    still, fewer = saturation.longer_otherwise(n, d, lam)
    assert still == pytest.approx(n * fixed_point(Supermarket(inf, d, lam), 3)[3])
    assert 1.01 * still < here < fewer / 2
    assert fewer == mean_of_longer(
        Supermarket(n, d - 1, lam), k=k_lambda_d(Supermarket(inf, d, lam))
    )
    share = saturation.share_with_one_choice_less(10**12, d, lam, 2)
    pi = fixed_point(Supermarket(inf, d - 1, lam), 3)
    assert share == pytest.approx(pi[2] - pi[3], rel=1e-6)
    assert saturation.half_and_double(3.0) == [1.5, 6.0]
    leading, fixed = saturation.leading_and_uncorrected(30, 0.98, 2)
    assert leading == 1.0
    assert fixed == pytest.approx((1 - 0.98**31) / (0.02 * 0.98 * 30), rel=1e-12)
    case = power_case(10**6, 0.6, 0.45)
    assert saturation.independent_share(case.n, case.d, case.lam, 0.1) > 0.999
