import itertools
import math

import numpy as np
import pytest
from oracles import shown
from scipy import stats
from scipy.integrate import quad
from scipy.linalg import expm

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

TWO_PHASES = Hyperexponential([0.25, 0.75], [0.4, 2.0])
LOOP = PhaseType([0.5, 0.5, 0], [[-3.0, 2.0, 0.0], [0.5, -1.0, 0.25], [0.0, 0.0, -2.0]])
MIXTURES = [Exponential(), Lomax(1.1), Lomax(1.5), Lomax(2), Lomax(6.5), TWO_PHASES]
NAMED = [
    *MIXTURES,
    Deterministic(),
    Uniform(),
    Gamma(0.3),
    Gamma(7.5),
    Erlang(3),
    Weibull(0.4),
    Weibull(3),
    Lognormal(0.1),
    Lognormal(1.0),
    Pareto(1.3),
    Pareto(3.5),
    BoundedPareto(1.5, 1000),
    BoundedPareto(1, 50),
    BoundedPareto(0.5, 1.2),
]
GIVEN = [
    GivenSurvival(lambda s: np.exp(-2 * s) * (1 + s)),
    GivenSurvival(lambda s: (1 + s * s) ** -1.25),
    Empirical([0.5, 3.0, 0.25, 0.5, 8.0]),
    GivenScipy(stats.invgauss(1.5)),
]
LAWS = [*NAMED, LOOP, *GIVEN, Lomax(1.5).scaled(3), Uniform().scaled(0.5), LOOP.scaled(1)]

TWINS = [
    (Exponential(), stats.expon()),
    (Uniform(), stats.uniform(0, 2)),
    (Gamma(0.3), stats.gamma(0.3, scale=1 / 0.3)),
    (Erlang(3), stats.gamma(3, scale=1 / 3)),
    (Weibull(0.4), stats.weibull_min(0.4, scale=1 / math.gamma(3.5))),
    (Weibull(3), stats.weibull_min(3, scale=1 / math.gamma(4 / 3))),
    (Lognormal(1.0), stats.lognorm(1, scale=math.exp(-0.5))),
    (Lomax(1.5), stats.lomax(1.5, scale=0.5)),
    (Lomax(6.5), stats.lomax(6.5, scale=5.5)),
    (Pareto(1.3), stats.pareto(1.3, scale=0.3 / 1.3)),
    (Pareto(4.5), stats.pareto(4.5, scale=3.5 / 4.5)),
    (
        BoundedPareto(1.5, 1000),
        stats.truncpareto(1.5, 1000, scale=BoundedPareto(1.5, 1000).low),
    ),
    (TWO_PHASES.scaled(3), None),
    (LOOP, None),
]

# Logarithms of survival and integrated tail by mpmath with 600 digits, from the definitions with
# incomplete Gamma and error functions; s is exact.
REFERENCE = [
    (Gamma(0.3), 9.5367431640625e-07, -0.012206297885768209, -9.4477470457007649e-7),
    (Gamma(0.3), 0.5, -0.94094242684394873, -0.30386729053067275),
    (Gamma(0.3), 1.0, -1.2981272458577811, -0.55301703178992032),
    (Gamma(0.3), 3.0, -2.3253691703011888, -1.4129365757213751),
    (Gamma(0.3), 1500.0, -455.37382221878657, -454.17139691465188),
    (Gamma(0.3), 16384.0, -4922.2460017775472, -4921.0421713205486),
    (Gamma(7.5), 0.5, -0.059470729750087402, -0.68325228419203461),
    (Gamma(7.5), 1.0, -0.7953632867794415, -1.937494603234012),
    (Gamma(7.5), 1.25, -1.490380029236053, -2.7893612006906822),
    (Gamma(7.5), 3.0, -9.4772705090466043, -11.191545935024996),
    (Gamma(7.5), 80.0, -565.94344742718361, -567.94749472499229),
    (Gamma(7.5), 4096.0, -30660.371802915519, -30662.386494338911),
    (Gamma(1000.0), 0.875, -1.8939118156491534e-5, -2.07944058180835),
    (Gamma(1000.0), 1.0, -0.7015932366459725, -4.3728995060262968),
    (Gamma(1000.0), 1.0078125, -0.91977200653544666, -4.6969289083275582),
    (Gamma(1000.0), 1.25, -29.862208742529915, -35.194106463481674),
    (Gamma(1000.0), 1.75, -194.47252081583661, -200.53781467503474),
    (Gamma(1000.0), 64.0, -58849.63296699732, -58856.524990295585),
    (Gamma(10000.0), 0.984375, -0.060295265564002017, -4.1431583746416867),
    (Gamma(10000.0), 1.0078125, -1.5281161360748195, -6.6846674678519312),
    (Gamma(10000.0), 1.0625, -21.530905018953688, -27.956033020928051),
    (Gamma(10000.0), 1.25, -272.70430043278509, -280.30877596777163),
    (Erlang(3), 9.5367431640625e-07, -3.9031194457536985e-18, -9.5367477115389001e-7),
    (Erlang(3), 1.0, -0.85993383650372923, -1.4959226032237259),
    (Erlang(3), 4.0, -7.5573487435096835, -8.5034924385335198),
    (Erlang(3), 180.0, -528.10630520618366, -529.20122065818578),
    (Erlang(3), 4096.0, -12269.860227509369, -12270.958677050867),
    (Weibull(0.4), 9.5367431640625e-07, -0.0063152495714514204, -9.4938339174977717e-7),
    (Weibull(0.4), 0.5, -1.2252324348283664, -0.2434279234035663),
    (Weibull(0.4), 2.0, -2.1332535726170322, -0.66998237303206172),
    (Weibull(0.4), 1000000.0, -406.09765657921339, -397.36875754012294),
    (Weibull(0.4), 1099511627776.0, -105952.30615414801, -105935.23470636636),
    (Weibull(3), 9.5367431640625e-07, -6.176248251450132e-19, -9.5367477115389001e-7),
    (Weibull(3), 0.5, -0.089009117836091174, -0.67168129743564292),
    (Weibull(3), 1.5, -2.4032461815744617, -4.1687300106970894),
    (Weibull(3), 8.0, -364.58134665662945, -369.50108904481722),
    (Weibull(3), 1024.0, -764582500.30364377, -764582514.92562474),
    (Weibull(60), 9.5367431640625e-07, -3.3054381825859977e-362, -9.5367477115389001e-7),
    (Weibull(60), 0.875, -0.00018867181078696119, -2.0794198920802808),
    (Weibull(60), 1.0625, -21.625201340367317, -28.775468838039616),
    (Weibull(60), 1.125, -667.38306653588458, -677.86446239369709),
    (Weibull(60), 4.0, -7.5652505530700847e35, -7.5652505530700847e35),
    (Lognormal(0.1), 0.5, -2.9618650092429587e-12, -0.69314718055990448),
    (Lognormal(0.1), 0.984375, -0.61101928775294324, -3.0393127297698851),
    (Lognormal(0.1), 1.0, -0.73384169536936003, -3.2219402234264527),
    (Lognormal(0.1), 1.25, -4.4863792765984265, -7.6030461701024894),
    (Lognormal(0.1), 16.0, -389.99435430995979, -392.84750519238241),
    (Lognormal(0.1), 1048576.0, -9621.8441557474837, -9615.2153450207751),
    (Lognormal(1.0), 9.5367431640625e-07, -4.9774118518816347e-41, -9.5367477115389001e-7),
    (Lognormal(1.0), 0.5, -0.55064439210393717, -0.51868130294358085),
    (Lognormal(1.0), 1.0, -1.1759117615936186, -0.95991633369562232),
    (Lognormal(1.0), 8.0, -5.3087697382606472, -4.0436519213012136),
    (Lognormal(1.0), 35184372088832.0, -506.55547227290117, -478.78992003115051),
    (Lognormal(1.0), 1.2089258196146292e24, -1570.2442796157266, -1518.7996166885276),
    (Lognormal(5.0), 9.5367431640625e-07, -0.49854252262287544, -6.4653297529973757e-7),
    (Lognormal(5.0), 0.5, -4.6990673959063445, -0.0087521661988524547),
    (Lognormal(5.0), 1.0, -5.0816482772786905, -0.01249709506390489),
    (Lognormal(5.0), 1024.0, -9.8857844544362289, -0.2043429134852074),
    (Lognormal(5.0), 1.6069380442589903e60, -461.13085806044449, -324.12272216877512),
    (Lognormal(5.0), 8.452712498170644e270, -8104.1453402453703, -7483.5097739815896),
    (BoundedPareto(1.5, 1000), 0.25, 0.0, -0.28768207245178093),
    (BoundedPareto(1.5, 1000), 0.5, -0.56006847790061736, -0.61885274049486459),
    (BoundedPareto(1.5, 1000), 4.0, -3.6804289459251054, -1.7753666712070298),
    (BoundedPareto(1.5, 1000), 300.0, -11.83567284183733, -8.7988431182520643),
    (BoundedPareto(1, 1e6), 0.03125, 0.0, -0.031748698314580301),
    (BoundedPareto(1, 1e6), 1.0, -2.6258057300958195, -0.30441142097311507),
    (BoundedPareto(1, 1e6), 1000.0, -9.5474590403818341, -1.4331496927822572),
    (BoundedPareto(0.5, 4), 0.25, 0.0, -0.28768207245178093),
    (BoundedPareto(0.5, 4), 0.75, -0.45729565965231095, -1.2022733917564028),
    (BoundedPareto(0.5, 4), 1.875, -3.4174621694466656, -6.206315679470957),
]


@pytest.mark.parametrize(("law", "s", "log_survival", "log_work"), REFERENCE)
def test_against_600_digits(law, s, log_survival, log_work):
    for log_s in (math.log(s), np.array([math.log(s)])):
        assert law.log_survival(log_s) == pytest.approx(log_survival, rel=4e-14, abs=4e-14)
        assert law.log_integrated_tail(log_s) == pytest.approx(log_work, rel=4e-14, abs=4e-14)
    # the logarithm of float64's s has an error of its own near s = 0
    for found, log_value in ((law.survival(s), log_survival), (law.integrated_tail(s), log_work)):
        if log_value > -650:
            tolerance = 1e-14 * (1 + abs(log_value))
            assert found == pytest.approx(math.exp(log_value), rel=tolerance)


@pytest.mark.parametrize(("law", "twin"), TWINS, ids=shown)
def test_against_scipy(law, twin):
    s = np.append(0.0, np.logspace(-4, 3, 60))
    if twin is None:
        alpha, T = law.phases()
        expected = [np.sum(alpha @ expm(T * x)) for x in s]
        moments = [
            math.factorial(k) * np.sum(alpha @ np.linalg.matrix_power(np.linalg.inv(-T), k))
            for k in range(4)
        ]
        np.testing.assert_allclose(law.survival(s), expected, rtol=1e-11, atol=1e-300)
    else:
        moments = [1.0, *(twin.moment(k) if k < law.tail_index else math.inf for k in (1, 2, 3))]
        np.testing.assert_allclose(law.survival(s), twin.sf(s), rtol=5e-12, atol=1e-280)
        p = np.array([1e-12, 1e-3, 0.3, 0.9, 0.999])
        np.testing.assert_allclose(law.inverse_survival(p), twin.isf(p), rtol=1e-9)
    assert [law.moment(k) for k in range(4)] == pytest.approx(moments, rel=1e-9)


@pytest.mark.parametrize("law", LAWS, ids=shown)
def test_the_integrated_tail_is_the_integral_of_the_tail(law):
    assert law.integrated_tail(0.0) == pytest.approx(law.mean, rel=1e-14)
    edges = [0.0, *law.mean * np.array([0.01, 0.1, 0.4, 1, 1.6, 2.5, 4, 8, 15, 30, 100, 1000])]
    edges = np.unique([*edges, *law.breaks])
    for low, high in itertools.pairwise(edges):
        work, _ = quad(law.survival, low, high, epsabs=0, epsrel=1e-11, limit=200)
        difference = law.integrated_tail(low) - law.integrated_tail(high)
        assert difference == pytest.approx(work, rel=1e-9, abs=1e-15 * law.mean)


@pytest.mark.parametrize("law", LAWS, ids=shown)
def test_logarithms_agree_with_the_functions_and_go_further(law):
    log_s = np.linspace(-30, 12, 200)
    log_s = log_s[np.exp(log_s) < law.end * (1 - 1e-9)]
    for name in ("survival", "integrated_tail"):
        plain, logs = getattr(law, name), getattr(law, f"log_{name}")
        values = plain(np.exp(log_s))
        seen = values > 1e-280
        assert np.count_nonzero(seen) > 100
        np.testing.assert_allclose(logs(log_s)[seen], np.log(values[seen]), rtol=1e-12, atol=1e-12)
        assert logs(-np.inf) == pytest.approx(math.log(plain(0.0)), abs=1e-15)
        far = logs(np.array([100.0, 800.0, 1e5]))
        assert np.all(np.diff(far[np.isfinite(far)]) < 0)
        if law.tail_index < math.inf:
            slope = law.tail_index - (name == "integrated_tail")
            assert far[2] - far[1] == pytest.approx(-slope * (1e5 - 800), rel=1e-12)
        if law.end < math.inf:
            assert np.all(np.isneginf(far))
            assert plain(law.end) == 0
            assert plain(law.end * (1 - 1e-12)) > 0


@pytest.mark.parametrize("law", LAWS, ids=shown)
def test_moments_and_transform(law):
    assert law.moment(0) == 1
    assert law.moment(1) == pytest.approx(law.mean, rel=1e-13)
    assert law.scv == pytest.approx(law.moment(2) / law.mean**2 - 1, rel=1e-9, abs=1e-13)
    assert (law.scv == math.inf) == (law.tail_index <= 2)
    theta = np.array([[0.0, 0.02], [1.0, 30.0]]) / law.mean
    found = law.laplace(theta)
    assert found.shape == theta.shape
    assert found[0, 0] == pytest.approx(1, abs=1e-14)
    cuts = np.unique([0, *np.logspace(-5, 6, 45) * law.mean, *law.breaks])
    for value, x in zip(found.ravel()[1:], theta.ravel()[1:], strict=True):
        ends = cuts[cuts * x < 800]
        pieces = [
            quad(lambda s: math.exp(-x * s) * law.survival(s), low, high, epsabs=1e-15)[0]  # noqa: B023
            for low, high in itertools.pairwise(ends)
        ]
        assert value == pytest.approx(1 - x * math.fsum(pieces), abs=1e-10)


@pytest.mark.parametrize("law", LAWS, ids=shown)
def test_the_inverse_is_the_smallest_s(law):
    p = np.array([[1.0, 1 - 1e-9, 0.9], [0.5, 0.1, 1e-3], [1e-9, 1e-12, 1e-15]])
    s = law.inverse_survival(p)
    assert s.shape == p.shape
    assert s[0, 0] == 0
    at, before = law.survival(s * (1 + 1e-9)), law.survival(s * (1 - 1e-9))
    assert np.all(at <= p * (1 + 1e-9))
    assert np.all(before >= p * (1 - 1e-9))


@pytest.mark.parametrize("law", LAWS, ids=shown)
def test_samples_have_the_law(law):
    """Kolmogorov-Smirnov: a right sampler fails with probability 2 exp(-2 * 2.7**2) = 1e-6 each."""
    size = (1000, 100)
    sample = law.sample(np.random.default_rng(7), size)
    assert sample.shape == size
    assert np.all(sample > 0)
    times, counts = np.unique(sample, return_counts=True)
    upto = np.cumsum(counts) / sample.size
    below = law.survival(np.nextafter(times, 0))
    distance = max(
        np.max(np.abs(1 - upto - law.survival(times))),
        np.max(np.abs(1 - upto + counts / sample.size - below)),
    )
    assert distance * math.sqrt(sample.size) < 2.7
    np.testing.assert_array_equal(law.sample(np.random.default_rng(7), size), sample)
    assert law.sample(np.random.default_rng(7), 3).shape == (3,)
    rng = np.random.default_rng(7)
    first, second = law.sample(rng, 30), law.sample(rng, 30)  # the stream goes on
    assert np.array_equal(first, second) == (law == Deterministic())


@pytest.mark.parametrize("law", LAWS, ids=shown)
def test_scaling(law):
    twice = law.scaled(2 * law.mean)
    assert twice.mean == 2 * law.mean
    assert law.scaled(law.mean) is law
    assert twice.scaled(law.mean) == law
    assert twice.scaled(3 * law.mean) == law.scaled(3 * law.mean)
    assert hash(twice) == hash(law.scaled(2 * law.mean))
    assert twice != law
    assert (twice.scv, twice.tail_index, twice.hazard) == (law.scv, law.tail_index, law.hazard)
    assert twice.end == 2 * law.end
    assert twice.breaks == pytest.approx([2 * x for x in law.breaks])
    s = np.array([0.0, 0.3, 1.7])
    np.testing.assert_allclose(twice.survival(2 * s), law.survival(s), rtol=1e-12)
    np.testing.assert_allclose(twice.integrated_tail(2 * s), 2 * law.integrated_tail(s), rtol=1e-12)
    log_s = np.array([-2.0, 0.5])
    for name in ("survival", "integrated_tail"):
        logs = getattr(twice, f"log_{name}")(log_s)
        np.testing.assert_allclose(np.exp(logs), getattr(twice, name)(np.exp(log_s)), rtol=1e-12)
    assert twice.moment(1) == pytest.approx(2 * law.moment(1))
    assert twice.laplace(0.5) == pytest.approx(law.laplace(1.0), rel=1e-12)
    np.testing.assert_allclose(twice.inverse_survival(0.3), 2 * law.inverse_survival(0.3))
    one, other = (x.sample(np.random.default_rng(2), 9) for x in (law, twice))
    np.testing.assert_allclose(other, 2 * one, rtol=1e-14)
    if law.is_mixture:
        assert np.sum(np.exp(twice.mixture(-9.0).log_share)) == pytest.approx(twice.mean)
        assert np.sum(np.exp(twice.mixture(-9.0).log_weight)) == pytest.approx(1.0)
    if law.tail_index < math.inf:
        assert twice.tail_constant == pytest.approx(2**law.tail_index * law.tail_constant)
        limit = math.exp(law.log_survival(300.0) + law.tail_index * 300)
        assert law.tail_constant == pytest.approx(limit, rel=1e-10)
    else:
        assert math.isnan(twice.tail_constant)
    if law in NAMED:
        assert repr(twice) == f"{law!r}.scaled(2.0)"


@pytest.mark.parametrize(
    "law", [*NAMED, LOOP, BoundedPareto(2, 1.4), Gamma(1.0), Weibull(1.0)], ids=shown
)
def test_the_hazard_rate_goes_as_said(law):
    s = np.linspace(0.003, min(6.0, 0.97 * law.end), 400)
    rate = np.diff(-np.log(law.survival(s)))
    slope = np.diff(rate)
    tolerance = 1e-12
    word = {
        (False, False): "constant",
        (True, False): "increasing",
        (False, True): "decreasing",
        (True, True): "neither",
    }[bool(np.any(slope > tolerance)), bool(np.any(slope < -tolerance))]
    if isinstance(law, Deterministic):
        word = "increasing"  # 0, then an atom at the end
    assert law.hazard in (word, "unknown")
    assert (law.hazard == "unknown") == (law is LOOP)


@pytest.mark.parametrize(
    "law", [Exponential(), Erlang(3), TWO_PHASES, LOOP, LOOP.scaled(1)], ids=shown
)
def test_a_law_with_phases_is_of_phase_type(law):
    built = PhaseType(*law.phases())
    s = np.append(0.0, np.logspace(-3, 2, 30))
    np.testing.assert_allclose(built.survival(s), law.survival(s), rtol=1e-12)
    np.testing.assert_allclose(built.integrated_tail(s), law.integrated_tail(s), rtol=1e-12)
    assert Lomax(2).phases() is None
    assert Lomax(2).scaled(2).phases() is None


def test_rates_far_apart_cost_no_digits():
    """The short phases are passed 1e9 times as fast as the long one, all with closed forms."""
    chain = PhaseType([1.0, 0.0], [[-1e6, 1e6], [0.0, -1e-3]])
    s = np.array([1e-7, 1e-3, 1.0, 1e3, 3e5])
    expected = (1e6 * np.exp(-1e-3 * s) - 1e-3 * np.exp(-1e6 * s)) / (1e6 - 1e-3)
    np.testing.assert_allclose(chain.survival(s), expected, rtol=1e-12)
    # 20 phases, far out: the logarithm of the Erlang law
    row = PhaseType(*Erlang(20).phases())
    log_s = np.log([30.0, 100.0, 1000.0])
    np.testing.assert_allclose(row.log_survival(log_s), Erlang(20).log_survival(log_s), rtol=1e-13)


def test_complex_transforms():
    theta = np.array([0.5 + 2j, 3j])
    for law in (Exponential(), Deterministic(), Uniform(), Gamma(2.5), TWO_PHASES, LOOP, Erlang(2)):
        for x, value in zip(theta, law.laplace(theta), strict=True):
            f = lambda s: np.exp(-x * s) * law.survival(s)  # noqa: B023, E731
            integral = quad(f, 0, min(law.end, 60), complex_func=True, limit=500)[0]
            assert value == pytest.approx(1 - x * integral, abs=1e-7)
    # Lomax and Pareto, against the same integral along a line where the integrand decays
    law = Lomax(1.5)
    for x, value in zip(theta, law.laplace(theta), strict=True):
        f = lambda u: np.exp(-u) * (1 + u / x / 0.5) ** -1.5  # noqa: B023, E731
        assert value == pytest.approx(1 - quad(f, 0, 60, complex_func=True)[0], abs=1e-8)
    with pytest.raises(ParameterError, match="theta is complex, and this law has no closed form"):
        Weibull(0.4).laplace(theta)


@pytest.mark.parametrize("law", MIXTURES, ids=shown)
def test_the_mixture_is_the_law(law):
    assert law.is_mixture
    for law in (law, law.scaled(2.5)):  # noqa: B020
        mixture = law.mixture(-100.0)
        s = np.linspace(0, 30)
        if law.tail_index < math.inf:
            s = np.append(0.0, np.logspace(-3, 5, 45))
        decay = np.exp(-np.exp(mixture.log_rate) * s[:, None])
        np.testing.assert_allclose(decay @ np.exp(mixture.log_weight), law.survival(s), rtol=3e-13)
        np.testing.assert_allclose(
            decay @ np.exp(mixture.log_share), law.integrated_tail(s), rtol=3e-13
        )
        assert mixture.low <= -100


@pytest.mark.parametrize("beta", [1.02, 1.5, 4.0])
def test_a_longer_mixture_has_the_nodes_of_a_shorter_one(beta):
    short, long = Lomax(beta).mixture(-100.0), Lomax(beta).mixture(-300.0)
    last = short.log_rate.size - 1
    for name in ("log_rate", "log_weight", "log_share"):
        np.testing.assert_array_equal(getattr(short, name)[:last], getattr(long, name)[:last])
    assert short.low == short.log_rate[last - 1] <= -100
    # what the longer one adds is what the shorter one holds together in its last node
    added = np.logaddexp.reduce(long.log_share[last:])
    assert added == pytest.approx(short.log_share[-1], rel=1e-12)


@pytest.mark.parametrize("scv", [1.0, 1.0001, 4.0, 1e6])
@pytest.mark.parametrize("fraction", [0.5, 0.1, 0.95])
def test_two_phases_of_a_given_variance(scv, fraction):
    law = Hyperexponential.from_scv(scv, fraction)
    p, rates = np.array(law.probabilities), np.array(law.rates)
    assert np.sum(p) == pytest.approx(1, rel=1e-14)
    assert np.sum(p / rates) == pytest.approx(1, rel=1e-14)
    assert p[0] / rates[0] == pytest.approx(fraction, rel=1e-13)
    assert rates[0] >= rates[1]
    assert np.sum(2 * p / rates**2) - 1 == pytest.approx(scv, rel=1e-9)


def test_numbers_near_the_end_of_float64():
    wide = Hyperexponential.from_scv(1e300, 0.3)
    assert wide.scv == pytest.approx(1e300)
    assert wide.moment(3) == math.inf
    assert Lomax(1e6).tail_constant == math.inf
    assert Lomax(500.0).scaled(1e9).tail_constant == math.inf
    assert BoundedPareto(1.5, 1e100).moment(4) == pytest.approx(
        1.5 / 2.5 * BoundedPareto(1.5, 1e100).low ** 1.5 * BoundedPareto(1.5, 1e100).end ** 2.5
    )
    assert np.all(np.isfinite(Gamma(0.001).log_integrated_tail([-700.0, 0.0, 700.0])))


def test_equal_fractions_have_the_known_form():
    small = 1 / (9 + 1 + math.sqrt(80))
    law = Hyperexponential.from_scv(9)
    assert law.probabilities == pytest.approx((1 - small, small), rel=1e-15)
    assert law.rates == pytest.approx((2 * (1 - small), 2 * small), rel=1e-15)
    assert Hyperexponential.from_scv(1).hazard == "constant"


def test_shapes_follow_the_argument():
    for law in LAWS:
        for name in ("survival", "integrated_tail", "log_survival", "log_integrated_tail"):
            function = getattr(law, name)
            assert np.shape(function(1.0)) == ()
            assert function(np.ones((2, 3))).shape == (2, 3)
            assert function([1, 2]).dtype == np.float64
            assert function(np.ones((0, 2))).shape == (0, 2)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Lomax(1), "beta = 1 gives a service time without a mean: choose beta > 1"),
        (lambda: Lomax(0.9), "beta = 0.9 gives a service time without a mean: choose beta > 1"),
        (lambda: Lomax(math.inf), "beta = inf is not finite"),
        (lambda: Lomax("1.5"), "beta = '1.5' is text"),
        (lambda: Pareto(1.0), "beta = 1 gives a service time without a mean: choose beta > 1"),
        (lambda: Pareto(math.nan), "beta = nan is not finite"),
        (lambda: Gamma(0), "shape = 0 is out of range: choose 0.001 <= shape <= 10000"),
        (lambda: Gamma(True), "shape = True is not a number"),
        (lambda: Erlang(2.0), "shape = 2.0 is not a whole number"),
        (lambda: Erlang(0), "shape = 0 is out of range: choose 1 <= shape <= 10000"),
        (lambda: Weibull(-1), "shape = -1 is out of range: choose 0.01 <= shape <= 1000"),
        (lambda: Weibull(math.nan), "shape = nan is not finite"),
        (lambda: Lognormal(0), "sigma = 0 is out of range"),
        (lambda: BoundedPareto(1.5, 1), "ratio = 1 is out of range: choose 1.001 <= ratio"),
        (lambda: BoundedPareto("a", 2), "beta = 'a' is text"),
        (lambda: Exponential().scaled(0), "mean = 0 is out of range: choose 1e-150 <="),
        (lambda: Exponential().scaled(math.inf), "mean = inf is not finite"),
        (lambda: Exponential().moment(-1), "k = -1 is out of range"),
        (lambda: Pareto(2).mixture(0.0), r"service = Pareto\(beta=2.0\) is not a mixture of exp"),
        (lambda: Hyperexponential.from_scv(0.5), r"scv = 0.5 is out of range: choose 1 <= scv"),
        (lambda: Hyperexponential.from_scv(2, 1), r"fraction = 1 is out of range: choose 0 < fr"),
        (lambda: Hyperexponential([], []), "probabilities is empty"),
        (lambda: Hyperexponential(0.5, [1.0]), "probabilities = 0.5 is not a list"),
        (lambda: Hyperexponential([0.5, 0.5], [1.0]), "has 2 entries and rates has 1"),
        (lambda: Hyperexponential([0.5, 0.4], [1.0, 1.0]), "add up to 0.9, and they have to"),
        (lambda: Hyperexponential([1.5, -0.5], [1.0, 1.0]), r"probabilities\[1\] = -0.5 is out of"),
        (
            lambda: Hyperexponential([0.5, 0.5], [1.0, 4.0]),
            r"the mean service time is 0.625, and it has to be 1: multiply every rate by 0.625",
        ),
        (lambda: PhaseType([0.5], [[-1.0]]), "alpha adds up to 0.5, and it has to add up to 1"),
        (lambda: PhaseType([1.0], [[-1.0, 1.0]]), r"T has 1 rows of lengths \[2\]: give a square"),
        (lambda: PhaseType([1.0], 3), "T = 3 is not a list"),
        (lambda: PhaseType([1.0], [[1.0]]), r"T\[0\]\[0\] = 1 is out of range: choose -1e"),
        (lambda: PhaseType([1, 0], [[-1, -1], [0, -1]]), r"T\[0\]\[1\] = -1 is out of range"),
        (lambda: PhaseType([1, 0], [[-1, 2], [0, -1]]), r"T\[0\] adds up to 1, and a row of rates"),
        (lambda: PhaseType([1, 0], [[-1, 0], [0, 0]]), "phase 1 never leads to the end"),
    ],
)
def test_a_wrong_law_gets_one_sentence(make, sentence):
    with pytest.raises(ParameterError, match=sentence) as told:
        make()
    assert str(told.value).count(". ") == 0
