import math

import numpy as np
import pytest
from scipy.integrate import quad

from supermarket import Exponential, Hyperexponential, Lomax, ParameterError

TWO_PHASES = Hyperexponential([0.25, 0.75], [0.4, 2.0])
LAWS = [Exponential(), Lomax(1.1), Lomax(1.5), Lomax(2), Lomax(6.5), TWO_PHASES]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_the_mixture_is_the_law(law):
    mixture = law.mixture(-100.0)
    s = np.append(0.0, np.logspace(-3, 5, 45)) if law.tail_index < math.inf else np.linspace(0, 30)
    decay = np.exp(-np.exp(mixture.log_rate) * s[:, None])
    np.testing.assert_allclose(decay @ np.exp(mixture.log_weight), law.survival(s), rtol=3e-13)
    np.testing.assert_allclose(
        decay @ np.exp(mixture.log_share), law.integrated_tail(s), rtol=3e-13
    )


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_the_integrated_tail_is_the_integral_of_the_tail(law):
    assert law.integrated_tail(0.0) == pytest.approx(law.mean, rel=1e-15)
    for low in (0.0, 0.7, 5.0):
        work, _ = quad(law.survival, low, low + 3, epsabs=0, epsrel=1e-12)
        assert law.integrated_tail(low) - law.integrated_tail(low + 3) == pytest.approx(work)


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


def test_the_tail_of_lomax_is_a_power():
    law = Lomax(2.5)
    assert law.tail_index == 2.5
    assert law.survival(1e9) == pytest.approx(law.tail_constant * 1e9**-2.5, rel=1e-7)
    assert Exponential().tail_index == TWO_PHASES.tail_index == math.inf


@pytest.mark.parametrize("scv", [1.0, 1.0001, 4.0, 1e6])
def test_balanced_phases_have_mean_1_and_the_given_variance(scv):
    law = Hyperexponential.balanced(scv)
    p, rates = np.array(law.probabilities), np.array(law.rates)
    assert np.sum(p / rates) == pytest.approx(1, rel=1e-14)
    assert p[0] / rates[0] == pytest.approx(p[1] / rates[1], rel=1e-10)
    assert np.sum(2 * p / rates**2) - 1 == pytest.approx(scv, rel=1e-9)


def test_shapes_follow_the_argument():
    for law in LAWS:
        assert np.shape(law.survival(1.0)) == ()
        assert law.survival(np.ones((2, 3))).shape == (2, 3)
        assert law.integrated_tail([1.0, 2.0]).shape == (2,)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Lomax(1), "beta = 1 gives a service time without a mean: choose beta > 1"),
        (lambda: Lomax(0.9), "beta = 0.9 gives a service time without a mean: choose beta > 1"),
        (lambda: Lomax(math.inf), "beta = inf is not finite"),
        (lambda: Lomax("1.5"), "beta = '1.5' is text"),
        (lambda: Hyperexponential.balanced(0.5), r"scv = 0.5 is out of range: choose 1 <= scv"),
        (lambda: Hyperexponential([], []), "probabilities is empty"),
        (lambda: Hyperexponential(0.5, [1.0]), "probabilities = 0.5 is not a list"),
        (lambda: Hyperexponential([0.5, 0.5], [1.0]), "has 2 entries and rates has 1"),
        (lambda: Hyperexponential([0.5, 0.4], [1.0, 1.0]), "add up to 0.9, and they have to"),
        (lambda: Hyperexponential([1.5, -0.5], [1.0, 1.0]), r"probabilities\[1\] = -0.5 is out of"),
        (
            lambda: Hyperexponential([0.5, 0.5], [1.0, 4.0]),
            r"the mean service time is 0.625, and it has to be 1: multiply every rate by 0.625",
        ),
    ],
)
def test_a_wrong_law_gets_one_sentence(make, sentence):
    with pytest.raises(ParameterError, match=sentence):
        make()
