"""Laws at the ends of their parameters and of float64: the right number or one sentence."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from supermarket.service import (
    BoundedPareto,
    Deterministic,
    Empirical,
    Erlang,
    Exponential,
    Gamma,
    GivenScipy,
    GivenSurvival,
    Hyperexponential,
    Lognormal,
    Lomax,
    Pareto,
    PhaseType,
    Uniform,
    Weibull,
)
from supermarket.validation import ParameterError

LAWS = [
    Exponential(),
    Deterministic(),
    Uniform(),
    Gamma(0.001),
    Gamma(0.3),
    Gamma(1e4),
    Erlang(10**4),
    Weibull(0.01),
    Weibull(0.05),
    Weibull(1000),
    Lognormal(1e-6),
    Lognormal(12),
    Lognormal(25),
    Lomax(1 + 1e-12),
    Lomax(2.5),
    Lomax(1e6),
    Pareto(1 + 1e-9),
    Pareto(1e6),
    BoundedPareto(0.001, 1.001),
    BoundedPareto(0.001, 1e100),
    BoundedPareto(1, 10),
    BoundedPareto(2, 10),
    BoundedPareto(1000, 1.001),
    BoundedPareto(1000, 1e100),
    Hyperexponential.from_scv(1e12),
    Hyperexponential.from_scv(1, 1e-300),
    Hyperexponential([0.3, 0.7000000005], [1, 1]),
    PhaseType([0.3, 0.7000000001], [[-1, 0], [0, -2]]),
    PhaseType([1, 0], [[-1, 1.0000000005], [0, -1]]),
    PhaseType([0.5, 0.5], [[-1, 1 + 5e-10], [1 - 1e-6, -1]]),
    PhaseType([1], [[-1e-150]]),
    GivenSurvival(lambda s: np.exp(-s * s)),
    GivenSurvival(lambda s: (1 + s) ** -1.02),
    GivenScipy(stats.invgauss(1.5)),
    GivenScipy(stats.gamma(2, scale=1e-100)),
    Empirical([1e-150, 2e-150]),
    Empirical([5e149, 1e150]),
    Empirical([1, 1e12]),
    Empirical([1, 1, 1]),
    Exponential().scaled(1e-150),
    Lomax(1.5).scaled(1e150),
]
TIMES = [0, 5e-324, 1e-300, 1e-20, 1e-3, 0.5, 1, 2, 3.7, 100, 1e10, 1e100, 1e300, 1.7e308, np.inf]
LOGS = [-np.inf, -1e308, -1e5, -700, -1, 0, 0.5, 3, 700, 800, 1e5, 1e308, np.inf]
SHARES = [0, 5e-324, 1e-300, 1e-16, 1e-3, 0.5, 0.999, 1 - 1e-16, 1]
DOMAINS = {
    "survival": TIMES,
    "integrated_tail": TIMES,
    "laplace": TIMES,
    "log_survival": LOGS,
    "log_integrated_tail": LOGS,
    "inverse_survival": SHARES,
}


@pytest.mark.parametrize("law", LAWS, ids=lambda law: str(law)[:40])
def test_every_function_has_a_value_over_its_domain(law):
    """No NaN, no warning (they are errors here), nothing outside its range, nothing that rises."""
    for name, points in DOMAINS.items():
        values = getattr(law, name)(points)
        assert values.shape == (len(points),)
        assert not np.any(np.isnan(values)), name
        before = np.where(np.isfinite(values), values, 0)[:-1]
        assert np.all(values[1:] <= values[:-1] + 1e-12 * np.abs(before)), name
        least, most = (-np.inf if "log" in name else 0), {"survival": 1, "log_survival": 0}
        assert np.all(values >= least), name
        assert np.all(values <= most.get(name, np.inf) + 1e-15), name
    assert np.all(law.laplace(TIMES) <= 1 + 1e-12)
    assert law.survival(0) == pytest.approx(1, abs=2e-13)
    for k in (0, 1, 2, 20, 21, 170, 171, 1000):
        moment = law.moment(k)
        assert moment >= 0
        assert (moment == np.inf) or k < law.tail_index
        assert k > 1 or moment == pytest.approx(law.mean**k, rel=1e-9)
    assert law.scv >= 0
    sample = law.sample(np.random.default_rng(1), 1000)
    assert np.all((sample >= 0) & (sample < np.inf))
    if law.is_mixture:
        mixture = law.mixture(-50.0)
        work = np.sum(np.exp(mixture.log_share))
        assert work == pytest.approx(law.mean, rel=1e-9)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: str(law)[:40])
def test_every_kind_of_number_is_the_number(law):
    kinds = [np.float16, np.float32, np.longdouble, np.uint8, np.int64, int, Fraction]
    for name in ("survival", "integrated_tail", "log_survival", "laplace"):
        function = getattr(law, name)
        for number in (0.0, 1.0, 3.0, 200.0):
            value = function(number)
            assert all(function(kind(number)) == value for kind in kinds), (name, number)
            assert function([kinds[0](number)]) == pytest.approx(float(value), rel=1e-14)
        assert function(np.float16(0.1)) == function(float(np.float16(0.1)))
    assert law.inverse_survival(np.uint8(1)) == law.inverse_survival(1.0)
    assert law.moment(np.uint8(200)) == law.moment(200)
    assert law.scaled(np.longdouble(2)) == law.scaled(2.0)


@pytest.mark.parametrize(
    "law", [LAWS[0], Lomax(2.5), Uniform().scaled(2), Empirical([1, 2]), LAWS[-6]], ids=str
)
@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("survival", -1.0, "s = -1 is out of range: choose 0 <= s."),
        ("survival", [1, -5e-324], "s = -4.940656458412465e-324 is out of range: choose 0 <= s."),
        ("integrated_tail", -1, "s = -1 is out of range"),
        ("survival", math.nan, "s = nan is not a number."),
        ("survival", "1.5", "s must be a list of numbers, not '1.5'."),
        ("survival", [[1], [1, 2]], "s must be a list of numbers, not [[1], [1, 2]]."),
        ("survival", None, "s must be a list of numbers, not None."),
        ("survival", 1j, "s must be a list of numbers, not 1j."),
        ("survival", np.timedelta64(1, "s"), "s must be a list of numbers, not "),
        ("survival", -(10**400), "s = -inf is out of range"),
        ("log_survival", math.nan, "log_s = nan is not a number."),
        ("log_integrated_tail", "a", "log_s must be a list of numbers, not 'a'."),
        ("inverse_survival", -0.1, "p = -0.1 is out of range: choose 0 <= p <= 1."),
        ("inverse_survival", 2.0, "p = 2 is out of range: choose 0 <= p <= 1."),
        ("inverse_survival", [0.5, math.nan], "p = nan is not a number."),
        ("laplace", -1.0, "theta = -1 is out of range: choose 0 <= theta."),
        ("laplace", -1 + 1j, "theta = np.complex128(-1+1j) is out of range: choose finite numbers"),
        ("laplace", complex(0, math.nan), "is out of range: choose finite numbers with a real"),
        ("laplace", "x", "theta must be a list of numbers, not 'x'."),
        ("moment", -1, "k = -1 is out of range: choose 0 <= k <= 1000."),
        ("moment", 10**9, "k = 1000000000 is out of range"),
        ("moment", 1.5, "k = 1.5 is not a whole number"),
        ("scaled", 0.0, "mean = 0 is out of range: choose 1e-150 <= mean <= 1e+150."),
        ("scaled", 5e-324, "mean = 4.940656458412465e-324 is out of range"),
    ],
)
def test_outside_its_domain_a_function_says_so(law, name, value, words):
    with pytest.raises(ParameterError) as caught:
        getattr(law, name)(value)
    assert words in str(caught.value).replace("array(-1.+1.j)", "np.complex128(-1+1j)")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Lomax(1e12), "beta = 1000000000000 is out of range: choose beta <= 1000000."),
        (lambda: Pareto(1e300), "beta = 1e+300 is out of range"),
        (lambda: PhaseType([1, 0], [[-1e300, 1e300], [0, -1e-300]]), "T[0][0] = -1e+300 is out"),
        (lambda: PhaseType([1], [[-1e-151]]), "mean = 1e+151 is out of range"),
        (lambda: PhaseType([1, 0], [[-1, 1], [1e150, -1e150]]), "never leads to the end"),
        (lambda: GivenSurvival(lambda s: np.exp(-s * 1e160)), "mean = 1e-160 is out of range"),
        (lambda: GivenScipy(stats.expon(scale=1e160)), "mean = "),
        (lambda: Empirical([1e-200, 2e-200]), "samples[0] = 1e-200 is not a positive number"),
        (lambda: Empirical([1e200]), "samples[0] = 1e+200 is not a positive number up to 1e+150"),
        (lambda: Weibull(1001), "shape = 1001 is out of range"),
        (lambda: Lognormal(26), "sigma = 26 is out of range"),
    ],
)
def test_laws_beyond_float64_are_refused(make, words):
    with pytest.raises(ParameterError) as caught:
        make()
    assert words in str(caught.value)


def test_probabilities_and_rates_are_made_to_add_up():
    law = PhaseType([0.3, 0.7000000001], [[-1, 1.0000000005], [0, -2]])
    assert math.fsum(law.alpha) == pytest.approx(1, abs=1e-15)
    assert sum(law.T[0]) <= 0
    assert Hyperexponential([0.3, 0.7000000005], [1, 1]).laplace(0) == pytest.approx(1, abs=1e-15)
    # what adds up is left as it is given, to the last bit
    assert PhaseType([0.1, 0.2, 0.7], np.diag([-1.0] * 3)).alpha == (0.1, 0.2, 0.7)
    assert PhaseType([1], [[-1 / 3]]).T == ((-1 / 3,),)


def test_kinds_of_numbers_as_parameters():
    for kind in (np.float16, np.float32, np.longdouble, np.uint8, np.int64, Fraction):
        assert Lomax(kind(3)) == Lomax(3.0)
        assert hash(Gamma(kind(3))) == hash(Gamma(3.0))
        assert Lognormal(kind(2)).scv == Lognormal(2.0).scv
        assert BoundedPareto(kind(2), kind(10)) == BoundedPareto(2.0, 10.0)
        assert Hyperexponential([kind(1)], [kind(1)]) == Hyperexponential([1.0], [1.0])
        assert PhaseType([kind(1)], [[-float(kind(2))]]).mean == 0.5
        assert Empirical([kind(1), kind(200)]) == Empirical([1.0, 200.0])
    assert Lomax(np.float16(1.1)) == Lomax(float(np.float16(1.1)))
    assert Erlang(np.uint8(200)).scv == 1 / 200
    assert type(Pareto(np.float16(3)).beta) is float


def test_far_out_in_a_tail_logarithms_end():
    for sigma in (1e-6, 1.0, 25.0):
        law = Lognormal(sigma)
        assert law.log_integrated_tail([1e200, np.inf]).tolist() == [-np.inf, -np.inf]
        assert law.integrated_tail(np.inf) == 0
    power = GivenSurvival(lambda s: (1 + s) ** -1.02)
    assert power.integrated_tail([1e306, np.inf]) == pytest.approx([50 * 1e306**-0.02, 0])


def test_moments_beyond_float64_are_infinite():
    law = PhaseType([1, 0], [[-1e-5, 1e-5], [0, -1e5]])  # their powers end in inf - inf
    assert [law.moment(k) for k in (2, 100, 1000)] == [pytest.approx(2e10), math.inf, math.inf]


def test_quantiles_of_scipy_are_those_of_its_survival_function():
    """Its own are wrong by 30 orders of magnitude below 1e-16 for the inverse Gaussian law."""
    law = GivenScipy(stats.invgauss(1.5))
    p = np.array([1e-100, 1e-50, 1e-16, 1e-3])
    np.testing.assert_allclose(law.survival(law.inverse_survival(p)), p, rtol=1e-9)


def test_many_phases_in_a_row_are_a_gamma_law():
    assert Erlang(500).phases()[0].size == 500
    assert Erlang(501).phases() is None
