"""The families of the introduction: their formulas, and where Theorem 1.2's hypotheses hold."""

import math

import pytest

from supermarket import ParameterError, Supermarket, k_lambda_d
from supermarket.limits.saturation.families import (
    few_choices,
    levels_of_few_choices,
    slow_load,
    slowest_load,
)
from supermarket.limits.saturation.theorem import hypotheses

SIZES = [10**8, 10**12, 10**16, 4 * 10**18]


@pytest.mark.parametrize("n", SIZES)
def test_members_are_those_of_the_formulas(n):
    log = math.log(n)
    d, lam = few_choices(n, 0.45, 2.5, 0.12)
    assert lam == 1 - n**-0.45
    k = k_lambda_d(Supermarket(math.inf, d, lam))
    assert k == levels_of_few_choices(n, 0.12)
    assert float(d) ** k == pytest.approx(n**0.45 * log**2.5, rel=k / d)
    d, lam = slow_load(n, 3.0, 2.6)
    assert d == round(log**2.6)
    assert lam == 1 - log**-3.0
    d, lam = slowest_load(n, 1000, 45)
    assert d == round(45 * log**2)
    assert 1 / (1 - lam) == pytest.approx(1000 * log**2, rel=1e-8)


def test_few_choices_have_k_2_for_long():
    assert {levels_of_few_choices(10.0**m, 0.12) for m in range(3, 31)} == {2}
    assert levels_of_few_choices(1e31, 0.12) == 3


def test_k_grows_and_d_does_not_keep_up_with_any_power():
    levels = [levels_of_few_choices(10.0**m, 0.3) for m in (4, 8, 16, 32, 64, 128)]
    assert levels == [2, 2, 4, 6, 9, 16]
    k = [levels_of_few_choices(10.0**m, 0.3) for m in range(50, 300)]
    d = [0.45 * m / level for m, level in zip(range(50, 300), k, strict=True)]  # powers of ten
    assert d[-1] / 299 < d[0] / 50 / 3


def holding(n, d, lam):
    return [h.holds for h in hypotheses(Supermarket(n, d, lam), 0.1)]


@pytest.mark.parametrize("n", SIZES)
def test_hypotheses_of_the_slowest_load_do_not_depend_on_n(n):
    """C = 80000 / eps**2 and c = sqrt(2 C) = eps C / 200 is the edge of both."""
    assert holding(n, *slowest_load(n, 8.2e6, 4060))[:2] == [True, True]
    assert holding(n, *slowest_load(n, 8.2e6, 4040))[:2] == [False, True]
    assert holding(n, *slowest_load(n, 8.2e6, 4110))[:2] == [True, False]


@pytest.mark.parametrize("c", [5840.0, 7000.0, 8490.0])
def test_members_that_the_paper_names(c):
    """C > 160000 / eps**2 and sqrt(2 C) <= c <= eps C / 200: at large n every hypothesis holds."""
    assert all(holding(10**17, *slowest_load(10**17, 1.7e7, c)))
    assert not holding(10**14, *slowest_load(10**14, 1.7e7, c))[-1]
    assert not all(holding(10**17, *slowest_load(10**17, 1.7e7, 0.99 * math.sqrt(2 * 1.7e7))))
    assert not all(holding(10**17, *slowest_load(10**17, 1.7e7, 1.01 * 0.1 * 1.7e7 / 200)))


@pytest.mark.parametrize("n", SIZES)
def test_first_hypothesis_of_the_others_is_their_condition_on_the_exponents(n):
    for theta in (2.1, 1.7):
        left = few_choices(n, 0.45, theta, 0.12)
        ratio = hypotheses(Supermarket(n, *left), 0.1)[0].ratio
        assert ratio == pytest.approx(2 * math.log(n) ** (2 - theta), rel=1e-2)
    for beta in (2.6, 2.4):
        ratio = hypotheses(Supermarket(n, *slow_load(n, 3.0, beta)), 0.1)[0].ratio
        assert ratio == pytest.approx(2 * math.log(n) ** (5 - 2 * beta), rel=1e-2)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: few_choices(2, 0.5, 2.0, 0.1), "n = 2 is out of range"),
        (lambda: few_choices(10**6, 1.0, 2.0, 0.1), "alpha = 1 is out of range"),
        (lambda: few_choices(10**6, 0.5, 0.0, 0.1), "theta = 0"),
        (lambda: levels_of_few_choices(2.0, 0.1), "n = 2 is out of range"),
        (lambda: slow_load(10**6, 3.0, 0.1), "is no number of choices"),
        (lambda: slow_load(10**6, 3.0, 30.0), "is no number of choices"),
        (lambda: slowest_load(10**6, 0.0, 1.0), "large = 0"),
        (lambda: slowest_load(10**6, 1000, 1e-3), "is no number of choices"),
    ],
)
def test_refuses(call, sentence):
    with pytest.raises(ParameterError, match=sentence):
        call()
