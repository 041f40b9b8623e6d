import math

import numpy as np
import pandas as pd
import pytest
from oracles import shown
from scipy import stats

from supermarket.service import (
    BoundedPareto,
    Deterministic,
    Empirical,
    Exponential,
    Gamma,
    GivenScipy,
    GivenSurvival,
    Lognormal,
    Lomax,
    Pareto,
    Uniform,
    Weibull,
    hill_tail_index,
)
from supermarket.validation import ParameterError

KNOWN = [
    (Exponential(), lambda s: np.exp(-s)),
    (Exponential(), lambda s: math.exp(-s)),
    (Deterministic(), lambda s: 1.0 if s < 1 else 0.0),
    (Uniform(), lambda s: np.maximum(1 - s / 2, 0)),
    (Weibull(0.2), Weibull(0.2).survival),
    (Weibull(5), Weibull(5).survival),
    (Lognormal(2), Lognormal(2).survival),
    (BoundedPareto(1.2, 1e4), BoundedPareto(1.2, 1e4).survival),
    (Lomax(1.02), lambda s: (1 + s / 0.02) ** -1.02),
    (Lomax(1.5), lambda s: (1 + 2 * s) ** -1.5),
    (Lomax(5), lambda s: (1 + s / 4) ** -5),
    (Pareto(1.3), Pareto(1.3).survival),
    (Pareto(2.5), lambda s: 1.0 if s < 0.6 else (s / 0.6) ** -2.5),
]
FROZEN = [
    (Exponential(), stats.expon()),
    (Uniform(), stats.uniform(loc=0, scale=2)),
    (Gamma(3), stats.gamma(3, scale=1 / 3)),
    (Lognormal(1), stats.lognorm(1, scale=math.exp(-0.5))),
    (Lomax(2.5), stats.lomax(2.5, scale=1.5)),
    (Pareto(2.2), stats.pareto(2.2, scale=1.2 / 2.2)),
]
PAIRS = [(law, GivenSurvival(function)) for law, function in KNOWN] + [
    (law, GivenScipy(frozen)) for law, frozen in FROZEN
]


@pytest.mark.parametrize(("law", "given"), PAIRS, ids=shown)
def test_a_known_law_given_by_its_survival_function(law, given):
    s = np.append(0.0, np.logspace(-6, 4, 300))
    assert given.mean == pytest.approx(1, rel=1e-13)
    assert given.scv == pytest.approx(law.scv, rel=1e-11, abs=1e-13)
    assert given.tail_index == law.tail_index
    assert given.tail_constant == pytest.approx(law.tail_constant, rel=1e-11, nan_ok=True)
    assert [given.moment(k) for k in (1, 2, 3)] == pytest.approx(
        [law.moment(k) for k in (1, 2, 3)], rel=1e-11
    )
    for name in ("survival", "integrated_tail"):
        expected = getattr(law, name)(s)
        seen = expected > 1e-270
        np.testing.assert_allclose(getattr(given, name)(s)[seen], expected[seen], rtol=1e-12)
        log_s = np.array([-800.0, -3, 0.1, 2, 50, 300, 800, 2000])
        expected = getattr(law, f"log_{name}")(log_s)
        seen = expected > (-600 if law.tail_index == math.inf else -np.inf)
        logs = getattr(given, f"log_{name}")(log_s)
        np.testing.assert_allclose(logs[seen], expected[seen], rtol=1e-12, atol=1e-13)
    theta = [0.0, 0.1, 1.0, 10.0]
    np.testing.assert_allclose(given.laplace(theta), law.laplace(theta), atol=1e-13)


def test_the_work_beyond_the_last_panel_goes_on_as_the_power_does():
    """Panels end where the survival function is 1e-290, near 1e116 here; at 1e120 it is 1e-300."""
    law = GivenSurvival(lambda s: (1 + s) ** -2.5)
    for s in (1e100, 1e115, 1e118, 1e120):
        assert law.survival(s) > 1e-305
        assert law.integrated_tail(s) == pytest.approx(s**-1.5 / 1.5, rel=1e-9, abs=0)


def test_options_of_a_given_survival_function():
    function = Uniform().survival
    law = GivenSurvival(function, end=2, breaks=[0.5, 0.5])
    assert (law.end, law.breaks, law.mean) == (2.0, (0.5,), pytest.approx(1, rel=1e-15))
    assert law == GivenSurvival(function, end=2, breaks=[0.5])
    assert law != GivenSurvival(lambda s: np.maximum(1 - s / 2, 0), end=2, breaks=[0.5])
    # a slow factor: the remainder beyond float64 is of the given power, not of the local slope
    slow = GivenSurvival(lambda s: (1 + s) ** -1.5 * (1 + np.log1p(s)), tail_index=1.5)
    assert slow.tail_index == 1.5
    # the integral of (1+s)**-1.5 (1 + log(1+s)) is 2 + 4
    assert slow.mean == pytest.approx(6, rel=1e-10)
    light = GivenSurvival(lambda s: np.exp(-np.sqrt(s)), tail_index=math.inf)
    assert light.mean == pytest.approx(2, rel=1e-13)


def test_a_survival_function_with_rounding_noise():
    law = GivenSurvival(lambda s: 1 - (1 - np.exp(-s)))
    assert law.mean == pytest.approx(1, rel=1e-12)
    assert law.tail_index == math.inf


def test_a_formula_that_ends_in_nan():
    law = GivenSurvival(lambda s: np.exp(s) * np.exp(-2 * s))  # inf * 0 from 710 on
    assert law.mean == pytest.approx(1, rel=1e-13)
    assert law.survival([2.0, 1000.0]) == pytest.approx([math.exp(-2), 0], rel=1e-13)


def test_an_empirical_law():
    x = np.random.default_rng(3).pareto(1.5, 3000) + 0.5
    law = Empirical(pd.Series(x, index=np.arange(3000) + 7))
    assert law == Empirical(x[::-1].tolist())
    assert hash(law) == hash(Empirical(x))
    assert law.mean == pytest.approx(np.mean(x), rel=1e-14)
    assert law.scv == pytest.approx(np.var(x) / np.mean(x) ** 2, rel=1e-13)
    assert (law.end, law.tail_index, len(law.breaks)) == (np.max(x), math.inf, 3000)
    s = np.array([0.0, 0.5, 1.0, 7.7, np.sort(x)[-2], np.max(x), 1e9])
    above = x[:, None] - s
    np.testing.assert_allclose(law.survival(s), np.mean(above > 0, axis=0), rtol=1e-15)
    expected = np.mean(np.maximum(above, 0), axis=0)
    np.testing.assert_allclose(law.integrated_tail(s), expected, rtol=1e-12)
    assert law.moment(3) == pytest.approx(np.mean(x**3), rel=1e-14)
    np.testing.assert_allclose(law.laplace([0.1, 1j]), np.mean(np.exp(-x[:, None] * [0.1, 1j]), 0))


def test_ties_in_an_empirical_law():
    law = Empirical([2, 1, 2, 5])
    assert law.inverse_survival([1.0, 0.9, 0.75, 0.5, 0.25, 0.2, 1e-9]).tolist() == [
        0, 1, 1, 2, 2, 5, 5,
    ]  # fmt: skip
    assert law.survival([0.5, 1, 2, 4.9, 5]).tolist() == [1, 0.75, 0.25, 0.25, 0]
    assert law.breaks == (1.0, 2.0, 5.0)
    assert repr(law) == "Empirical(<4 samples with mean 2.5>)"


def test_laws_of_scipy():
    law = GivenScipy(stats.gamma(2, scale=0.5))
    assert law == GivenScipy(stats.gamma(2, scale=0.5))
    assert law != GivenScipy(stats.gamma(2, scale=0.25))
    assert hash(law) == hash(GivenScipy(stats.gamma(2, scale=0.5)))
    assert repr(law) == "GivenScipy(gamma(2, scale=0.5))"
    shifted = GivenScipy(stats.uniform(1, 2))
    assert (shifted.breaks, shifted.end) == ((1.0, 3.0), 3.0)
    assert shifted.mean == pytest.approx(2, rel=1e-14)
    # its survival function is NaN far out
    assert GivenScipy(stats.invgauss(0.5)).moment(2) == pytest.approx(0.375, rel=1e-9)


def test_hill():
    """Five standard errors: a false alarm has probability 6e-7 in each direction's sum."""
    x = Pareto(1.5).sample(np.random.default_rng(5), 100_000)
    index, error = hill_tail_index(x, 20_000)
    assert error == pytest.approx(index / math.sqrt(20_000))
    assert abs(index - 1.5) < 5 * error
    assert hill_tail_index([1, 2, 4, 8], 2)[0] == pytest.approx(2 / (3 * math.log(2)))


def given(function, **options):
    return lambda: GivenSurvival(function, **options)


def samples(values):
    return lambda: Empirical(values)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (given(3), "survival = 3 is not a function: give one"),
        (given(lambda s: 0.5 * np.exp(-s)), r"survival\(0\) = 0.5, and it has to be 1"),
        (given(lambda s: s * np.nan), r"survival\(0\) = nan, and it has to be 1"),
        (given(lambda s: 1 - s), r"survival\(2\) = -1, and a probability lies in \[0, 1\]"),
        (given(lambda s: np.where(s < 1, 1, np.nan)), r"survival\(1\) = nan, and a probability"),
        (
            given(lambda s: np.exp(-s) * (1 + 0.5 * np.sin(9 * s))),
            r"survival\(.*\) = 1.00000000\d+, and a probability",
        ),
        (given(lambda s: np.where((s > 2) & (s < 3), 0.5, np.exp(-s))), "survival rises from 0.13"),
        (
            given(lambda s: 1 / (1 + s)),
            r"survival\(s\) falls like s\*\*-1 near s = .*infinite mean",
        ),
        (given(lambda s: 1 / np.sqrt(1 + s)), r"falls like s\*\*-0.5 near"),
        (given(np.ones_like), r"falls like s\*\*-0 near"),
        (given(np.exp, tail_index=1), "tail_index = 1 gives a service time without a mean"),
        (given(np.exp, end=0), "end = 0 is out of range"),
        (given(np.exp, end=2, tail_index=1.5), "tail_index = 1.5 and end = 2 contradict"),
        (given(np.exp, breaks=[-1]), r"breaks\[0\] = -1 is out of range"),
        (samples([]), "samples is empty: give at least one service time"),
        (samples("1.5"), "samples is not a list of numbers"),
        (samples(1.5), "samples is not a list of numbers"),
        (samples([[1.0, 2.0], [3.0]]), "samples is not a list of numbers"),
        (samples([[1.0, 2.0]]), "samples is not a list of numbers"),
        (samples([1.0, math.nan, 2.0, math.nan]), "samples has 2 missing values among 4"),
        (samples([1.0, None]), "samples has 1 missing values among 2"),
        (samples(pd.Series([1.5, pd.NA], dtype="Float64")), "samples has 1 missing values among 2"),
        (samples(["1.5", "2"]), r"samples\[0\] = '1.5' is text, as are 2 of 2 entries"),
        (samples(pd.Series(["1.5", "x"])), r"samples\[1\] = 'x' is not a number, as are 1 of 2"),
        (samples(["1.5", "-", "2", "-"]), r"samples\[1\] = '-' is not a number, as are 2 of 4"),
        (samples([1.0, "x"]), r"samples\[1\] = 'x' is not a number"),
        (samples([True, False]), "samples holds entries of type bool"),
        (
            samples([1.0, 0.0, -2.0]),
            r"samples\[1\] = 0 is not a positive number up to 1e\+150, as are 2 of 3 entries",
        ),
        (samples([1.0, math.inf]), r"samples\[1\] = inf is not a positive number up to"),
        (samples([1e200, 2.0]), r"samples\[0\] = 1e\+200 is not a positive number up to"),
        (samples([1e-200]), r"samples\[0\] = 1e-200 is not a positive .* or take another unit"),
        (samples(pd.to_datetime(["2020-01-01"])), "samples holds entries of type "),
        (lambda: GivenScipy(stats.gamma), "is not a frozen continuous distribution"),
        (
            lambda: GivenScipy(stats.poisson(2)),
            "is not a frozen continuous distribution",
        ),
        (lambda: GivenScipy(3), "frozen = 3 is not a frozen continuous distribution"),
        (
            lambda: GivenScipy(stats.norm()),
            r"scipy.stats.norm has its support on \[-inf, inf\], and a service time is not",
        ),
        (
            lambda: GivenScipy(stats.pareto(0.9)),
            "scipy.stats.pareto has mean inf with these parameters",
        ),
        (lambda: hill_tail_index([1.0, 2.0], 1), "samples has 2 entries: give at least 3"),
        (lambda: hill_tail_index([1.0, 2.0, 3.0], 3), "k = 3 is out of range: choose 2 <= k <= 2"),
        (lambda: hill_tail_index([2.0] * 4, 2), "the 3 largest samples are equal"),
    ],
)
def test_a_wrong_law_gets_one_sentence(make, sentence):
    with pytest.raises(ParameterError, match=sentence) as told:
        make()
    assert str(told.value).count(". ") == 0
