import math

import numpy as np
import pytest
from oracles import JIT
from scipy.stats import gamma, ks_2samp, kstest

from supermarket import ParameterError, Supermarket, cavity
from supermarket.service import Deterministic, Erlang, Exponential, Gamma, Lomax, Pareto, Uniform

LAWS = [Exponential(), Lomax(2.5), Erlang(3), Deterministic(), Pareto(2.5)]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_what_an_arrival_meets_and_the_work_left(law):
    found = cavity(Supermarket(math.inf, 2, 0.7, service=law), 6)
    assert np.sum(found.met) == pytest.approx(1 - found.tail[-1] ** 2, rel=1e-13)
    # E R_k = 1 + B_k E R_{k-1} - 1 / lam_k with B_k = q_{k-1} / q_k, E R_0 = 1
    expected = [1.0]
    for k in range(1, 4):
        factor = found.met[k - 1] / found.met[k]
        expected.append(1 + factor * expected[-1] - 1 / found.rates[k])
    np.testing.assert_allclose(found.mean_residual[1:4], expected[1:], rtol=1e-6)
    assert math.isnan(found.mean_residual[0])


def test_the_mean_queue_where_the_tail_is_a_power_law():
    assert (
        cavity(Supermarket(math.inf, 2, 0.7, service=Lomax(1.5)), 50).mean_queue == math.inf
    )  # exponent 1
    assert (
        cavity(Supermarket(math.inf, 1, 0.7, service=Lomax(1.8)), 50).mean_sojourn == math.inf
    )  # infinite variance
    found = cavity(Supermarket(math.inf, 2, 0.7, service=Lomax(1.8)), 400)  # exponent 4
    longer = cavity(Supermarket(math.inf, 2, 0.7, service=Lomax(1.8)), 2000)
    # Beyond 400 levels lies a share of 4.6e-7, of which a hundredth or two is not known.
    assert found.mean_queue == pytest.approx(longer.mean_queue, rel=2e-8)
    assert found.mean_sojourn == found.mean_queue / 0.7
    with pytest.raises(ParameterError, match="levels = 10 is too few for a mean"):
        cavity(Supermarket(math.inf, 2, 0.7, service=Lomax(1.8)), 10).mean_queue  # noqa: B018
    # the insensitive disciplines have a finite mean whatever the tail
    assert cavity(
        Supermarket(math.inf, 1, 0.7, service=Lomax(1.5), discipline="ps"), 100
    ).mean_queue == pytest.approx(7 / 3)


# --- sojourn times

TIMES = np.array([0.0, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0])


def test_the_sojourn_time_of_an_exponential_queue():
    found = cavity(Supermarket(math.inf, 1, 0.6), 80 if JIT else 60)
    np.testing.assert_allclose(found.sojourn_survival(TIMES), np.exp(-0.4 * TIMES), atol=1e-9)


def test_the_sojourn_time_of_exponential_service_is_a_mixture_of_gammas():
    found = cavity(
        Supermarket(math.inf, 2, 0.3, service=Exponential().scaled(3.0)), 12 if JIT else 8
    )
    expected = sum(q * gamma.sf(TIMES / 3, k + 1) for k, q in enumerate(found.met))
    np.testing.assert_allclose(found.sojourn_survival(TIMES), expected, atol=1e-9)


def test_the_sojourn_time_of_deterministic_service_with_one_choice():
    """Crommelin's formula for M/D/1."""
    found = cavity(Supermarket(math.inf, 1, 0.7, service=Deterministic()), 80)

    def waits_at_most(t):
        j = np.arange(math.floor(t) + 1)
        steps = [(0.7 * (i - t)) ** i / math.factorial(i) * math.exp(-0.7 * (i - t)) for i in j]
        return 0.3 * sum(steps)

    times = np.array([0.5, 1.3, 1.5, 1.75, 2.5, 4.25])
    expected = [1 - waits_at_most(t - 1) if t > 1 else 1 for t in times]
    np.testing.assert_allclose(found.sojourn_survival(times), expected, atol=2e-4)


def test_the_mean_sojourn_time_is_that_of_little():
    found = cavity(Supermarket(math.inf, 2, 0.6, service=Uniform()), 8)
    nodes, weights = np.polynomial.legendre.leggauss(8)
    area = 0.0
    for left, right in ((0, 2), (2, 4), (4, 12)):
        at = left + (right - left) * (1 + nodes) / 2
        area += (right - left) / 2 * weights @ found.sojourn_survival(at)
    assert area == pytest.approx(found.mean_sojourn, rel=2e-3)


def test_too_few_levels_for_a_sojourn_time():
    found = cavity(Supermarket(math.inf, 1, 0.9), 10)
    with pytest.raises(ParameterError, match="levels = 10 is too few for a sojourn time of 50"):
        found.sojourn_survival([50.0])
    with pytest.raises(ParameterError, match="time = -1 is out of range"):
        found.sojourn_survival([-1.0])


# --- draws


@pytest.mark.parametrize("law", [*LAWS, Gamma(0.5), Pareto(1.8)], ids=str)
def test_draws_have_the_law_of_the_queue_and_of_the_work_left(law):
    """False alarms: below 1e-6 a law, 1e-7 from each test of Kolmogorov and each normal bound."""
    size = 50_000
    found = cavity(
        Supermarket(math.inf, 2, 0.2, service=law.scaled(2.0)), 150 if law == Pareto(1.8) else 9
    )
    lengths, residuals = found.draw(np.random.default_rng(5), size)
    assert lengths.shape == residuals.shape == (size,)
    np.testing.assert_array_equal(residuals > 0, lengths > 0)
    for k in (1, 2, 3):
        share = np.mean(lengths >= k)
        assert share == pytest.approx(
            found.tail[k], abs=5.4 * math.sqrt(found.tail[k] * (1 - found.tail[k]) / size)
        )
    # whatever the queue, a job in service has the equilibrium law of the work left
    busy = residuals[lengths > 0] / 2
    assert kstest(busy, lambda s: 1 - law.integrated_tail(s)).pvalue > 1e-7
    # ... but given the queue it has not
    if math.isfinite(law.moment(3)):
        for k in (1, 2):
            left = residuals[lengths == k]
            error = left.std() / math.sqrt(left.size)
            assert left.mean() == pytest.approx(found.mean_residual[k], abs=5.4 * error)
    again = found.draw(np.random.default_rng(5), size)
    np.testing.assert_array_equal(again, (lengths, residuals))


def test_draws_given_the_queue_are_those_of_the_other_method():
    """Exponentials and ages by two samplers; false alarm 1e-7."""
    law = Lomax(2.5)
    drawn = []
    for method in ("mixture", "panels"):
        found = cavity(Supermarket(math.inf, 2, 0.6, service=law), 9, method=method)
        lengths, residuals = found.draw(np.random.default_rng(6), 30_000)
        drawn.append(residuals[lengths == 2])
    assert ks_2samp(*drawn).pvalue > 1e-7


def test_draws_are_refused_where_they_are_not_known():
    found = cavity(Supermarket(math.inf, 2, 0.7, service=Lomax(1.5)), 10)
    with pytest.raises(ParameterError, match="levels = 10 is too few for 1000 draws"):
        found.draw(np.random.default_rng(1), 1000)
    shared = cavity(Supermarket(math.inf, 2, 0.7, service=Lomax(1.5), discipline="ps"), 10)
    for ask in (
        lambda: shared.draw(np.random.default_rng(1), 1000),
        lambda: shared.sojourn_survival([1.0]),
        lambda: shared.mean_residual,
    ):
        with pytest.raises(ParameterError, match="is known for discipline = 'fifo' only"):
            ask()
    lengths, residuals = cavity(Supermarket(math.inf, 2, 0.7, service=Deterministic()), 5).draw(
        np.random.default_rng(1), 0
    )
    assert lengths.shape == residuals.shape == (0,)
