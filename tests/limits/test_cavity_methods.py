import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from oracles import JIT, shown
from scipy.stats import nbinom, poisson

from supermarket import ParameterError, Supermarket, cavity
from supermarket.limits.fifo import by_age
from supermarket.limits.fifo.by_mixture import Thinned
from supermarket.limits.fifo.tails import doubly_exponential_limit, q_exponent
from supermarket.service import (
    BoundedPareto,
    Deterministic,
    Empirical,
    Erlang,
    Exponential,
    Gamma,
    Hyperexponential,
    Lognormal,
    Lomax,
    Pareto,
    PhaseType,
    Uniform,
    Weibull,
)

TWO_PHASES = Hyperexponential([0.125, 0.875], [0.25, 1.75])
CYCLE = PhaseType([0.25, 0.75], [[-1.5, 0.5], [1.0, -2.0]]).scaled(1.0)


@pytest.mark.parametrize(
    ("law", "d", "lam", "levels", "methods"),
    [
        (Exponential(), 2, 0.7, 11, ["mixture", "phases", "panels"]),
        (Exponential(), 3, 0.8, 7, ["phases", "panels"]),
        (Exponential(), 1, 0.9, 300, ["mixture", "phases", "panels"]),
        (Lomax(1.5), 2, 0.7, 300, ["mixture", "panels"]),
        (Lomax(1.5), 3, 0.8, 60, ["mixture", "panels"]),
        (Lomax(2.5), 2, 0.7, 23, ["mixture", "panels"]),
        (Lomax(2.5), 1, 0.9, 100, ["mixture", "panels"]),
        (TWO_PHASES, 2, 0.99, 19, ["mixture", "phases", "panels"]),
        (Hyperexponential.from_scv(100), 2, 0.7, 15, ["mixture", "phases", "panels"]),
        (Erlang(3), 2, 0.7, 10, ["phases", "panels"]),
        (Erlang(20), 3, 0.9, 7, ["phases", "panels"]),
        (CYCLE, 2, 0.8, 12, ["phases", "panels"]),
        (CYCLE, 1, 0.5, 60, ["phases", "panels"]),
    ],
    ids=shown,
)
def test_the_methods_agree_down_to_the_end_of_float64(law, d, lam, levels, methods):
    if not JIT:
        levels = min(levels, 8)
    found = [
        cavity(Supermarket(math.inf, d, lam, service=law), levels, method=method)
        for method in methods
    ]
    assert [one.method for one in found] == methods
    for other in found[1:]:
        np.testing.assert_allclose(other.log_tail, found[0].log_tail, rtol=0, atol=1e-10)
        np.testing.assert_allclose(other.log_rates, found[0].log_rates, rtol=0, atol=1e-10)
        shown = found[0].tail > 1e-300
        np.testing.assert_allclose(other.tail[shown], found[0].tail[shown], rtol=1e-10)


def test_panels_and_phases_agree_far_below_float64():
    levels = 12 if JIT else 7
    by_panels = cavity(Supermarket(math.inf, 2, 0.7, service=Erlang(3)), levels, method="panels")
    by_phases = cavity(Supermarket(math.inf, 2, 0.7, service=Erlang(3)), levels)
    np.testing.assert_allclose(by_panels.log_tail, by_phases.log_tail, rtol=1e-14, atol=1e-12)
    if JIT:
        assert by_phases.log_tail[-1] < -2000


def test_panels_and_the_mixture_agree_far_below_float64():
    levels = 28 if JIT else 6
    panels = cavity(Supermarket(math.inf, 2, 0.7, service=Lomax(2.5)), levels, method="panels")
    mixture = cavity(Supermarket(math.inf, 2, 0.7, service=Lomax(2.5)), levels)
    np.testing.assert_allclose(panels.log_tail, mixture.log_tail, rtol=1e-14, atol=1e-12)
    if JIT:
        assert panels.log_tail[-1] < -4000


# --- values that come from elsewhere

# P_2 to P_7, computed in 400 digits from the transforms (a recursion of another kind).
REFERENCE = [
    (Pareto(1.5), 2, 0.7, "0.384713757011 0.206767016933 0.125505332194 0.0861589420991 "
     "0.0643600710705 0.0508616848076"),
    (Pareto(3), 2, 0.7, "0.235499648123 0.0245929656124 5.20680490102e-4 1.39877643102e-6 "
     "1.35275022105e-10 5.62147032371e-17"),
]  # fmt: skip


@pytest.mark.parametrize(("law", "d", "lam", "expected"), REFERENCE)
def test_reference_values(law, d, lam, expected):
    found = cavity(Supermarket(math.inf, d, lam, service=law), 7)
    assert found.method == "panels"
    np.testing.assert_allclose(found.tail[2:], np.array(expected.split(), float), rtol=1e-11)


def residual_recursion(transform, d, lam, levels, digits=120):
    """Return P_0..P_levels in Decimal from the transforms; `transform(t)` is 1 - E exp(-t S).

    M_n/G/1 by its residual service times, bisection for each level. It subtracts near-equal
    numbers, so it needs the digits, and shares nothing with the code but the model.
    """
    with localcontext() as context:
        context.prec = digits
        lam = Decimal(lam)
        tail, rates, factors = [Decimal(1), lam], [], []

        def residual(t):
            value = base = transform(t)
            for rate, factor in zip(rates, factors, strict=True):
                value = (rate * base + rate * factor * value - t) / (rate - t)
            return value

        for _ in range(1, levels):
            below, here = tail[-2:]

            def rate_if(after, here=here):
                return lam * sum(here**i * after ** (d - 1 - i) for i in range(d))

            def excess(after, here=here, below=below):
                rate = rate_if(after)
                left = (here**d - after**d) * (1 - transform(rate))
                return left - (below**d - here**d) * residual(rate)

            low, high = Decimal(0), here
            for _ in range(160):
                middle = (low + high) / 2
                low, high = (middle, high) if excess(middle) > 0 else (low, middle)
            rate = rate_if(low)
            factors.append((1 - transform(rate)) / residual(rate))
            rates.append(rate)
            tail.append(low)
        return np.array([float(value) for value in tail])


@pytest.mark.parametrize(("d", "lam", "levels"), [(2, "0.7", 6), (3, "0.9", 4)])
def test_deterministic_service_in_many_digits(d, lam, levels):
    expected = residual_recursion(lambda t: 1 - (-t).exp(), d, lam, levels)
    found = cavity(Supermarket(math.inf, d, float(lam), service=Deterministic()), levels)
    np.testing.assert_allclose(found.tail, expected, rtol=1e-11)
    if (d, lam) == (2, "0.7"):
        assert found.tail[2] == pytest.approx(0.2022538694, abs=1e-10)


def test_uniform_service_in_many_digits():
    expected = residual_recursion(
        lambda t: 1 - (1 - (-2 * t).exp()) / (2 * t) if t else Decimal(0), 2, "0.9", 6
    )
    np.testing.assert_allclose(
        cavity(Supermarket(math.inf, 2, 0.9, service=Uniform()), 6).tail, expected, rtol=1e-11
    )


def embedded_law(arrivals, load, levels):
    """Return P(queue >= k) of M/G/1 from the law of the arrivals in a service time."""
    law = [1 - load]
    for n in range(levels):
        inner = sum(law[i] * arrivals[n + 1 - i] for i in range(1, n + 1))
        law.append((law[n] - law[0] * arrivals[n] - inner) / arrivals[0])
    return 1 - np.concatenate([[0], np.cumsum(law[:levels])])


@pytest.mark.parametrize(
    ("law", "arrivals"),
    [
        (Deterministic(), poisson(0.6)),
        (Gamma(0.5), nbinom(0.5, 0.5 / (0.5 + 0.6))),
        (Gamma(2.7), nbinom(2.7, 2.7 / (2.7 + 0.6))),
        (Erlang(4), nbinom(4, 4 / (4 + 0.6))),
    ],
    ids=shown,
)
def test_one_choice_is_the_queue_of_pollaczek_and_khinchine(law, arrivals):
    expected = embedded_law(arrivals.pmf(np.arange(20)), 0.6, 12)
    np.testing.assert_allclose(
        cavity(Supermarket(math.inf, 1, 0.6, service=law), 12).tail, expected, rtol=0, atol=1e-12
    )


@pytest.mark.parametrize(
    "law",
    [
        Deterministic(),
        Uniform(),
        Erlang(3),
        Gamma(0.5),
        Weibull(0.7),
        Weibull(2.0),
        Lognormal(0.8),
        BoundedPareto(1.5, 30.0),
        Hyperexponential.from_scv(4),
        Empirical([0.1, 0.4, 0.5, 1.0, 3.0]).scaled(1.0),
    ],
    ids=shown,
)
def test_the_mean_queue_of_one_choice(law):
    levels, lam = (200, 0.5) if JIT else (30, 0.1)
    expected = lam + lam**2 * (1 + law.scv) / (2 * (1 - lam))
    assert cavity(Supermarket(math.inf, 1, lam, service=law), levels).mean_queue == pytest.approx(
        expected, rel=1e-8
    )


def test_pareto_and_deterministic_have_the_exponents_of_the_theorem():
    log_tail = cavity(
        Supermarket(math.inf, 2, 0.7, service=Pareto(2.5)), 24 if JIT else 10
    ).log_tail
    found = doubly_exponential_limit(log_tail, 2)
    assert found.estimate == pytest.approx(q_exponent(2.5, 2), abs=1e-5 if JIT else 0.01)
    log_tail = cavity(
        Supermarket(math.inf, 2, 0.7, service=Deterministic()), 16 if JIT else 10
    ).log_tail
    assert log_tail[-1] < (-50_000 if JIT else -800)
    assert log_tail[-1] / log_tail[-2] == pytest.approx(2, rel=2e-3 if JIT else 0.01)


# --- the errors of the panels


@pytest.mark.parametrize("law", [Pareto(1.5), Lognormal(1.0), Weibull(0.5), Deterministic()])
def test_fewer_coefficients_change_nothing(law):
    found = cavity(Supermarket(math.inf, 2, 0.8, service=law), 12 if JIT else 5)
    assert found.error.shape == found.tail.shape
    assert np.all(found.error <= 1e-10 * np.maximum(1, -found.log_tail))
    assert found.nodes == 16 * (found.log_edges.size - 1)


def test_the_error_tells_when_the_panels_are_too_coarse(monkeypatch):
    monkeypatch.setattr(by_age, "_UNRESOLVED", math.inf)
    law = Lognormal(0.02)
    levels = 6 if JIT else 4
    coarse = cavity(Supermarket(math.inf, 2, 0.8, service=law), levels)
    monkeypatch.undo()
    fine = cavity(Supermarket(math.inf, 2, 0.8, service=law), levels)
    wrong = np.abs(coarse.tail / fine.tail - 1)
    assert wrong[-1] > 1e-8
    assert coarse.error[-1] > 0.3 * wrong[-1]
    assert fine.error[-1] < 1e-9
    assert cavity(Supermarket(math.inf, 2, 0.8), levels).error is None


# --- choices of the method, units of time, disciplines


@pytest.mark.parametrize(
    ("law", "method", "reason"),
    [
        (Lomax(3), "mixture", "is a mixture of exponentials"),
        (Erlang(2), "phases", "is of phase type"),
        (Deterministic(), "panels", "is neither a mixture of exponentials nor of phase type"),
    ],
)
def test_the_method_is_chosen_and_says_why(law, method, reason):
    found = cavity(Supermarket(math.inf, 2, 0.5, service=law), 3)
    assert found.method == method
    assert reason in found.reason
    assert (
        cavity(Supermarket(math.inf, 2, 0.5, service=law), 3, method=method).reason == "asked for"
    )


@pytest.mark.parametrize("law", [Lomax(2.5), Erlang(2), Deterministic()])
def test_another_unit_of_time(law):
    here = cavity(Supermarket(math.inf, 2, 0.8, service=law), 6)
    there = cavity(Supermarket(math.inf, 2, 0.2, service=law.scaled(4.0)), 6)
    np.testing.assert_allclose(there.tail, here.tail, rtol=1e-13)
    np.testing.assert_allclose(4 * there.rates, here.rates, rtol=1e-13)
    np.testing.assert_allclose(there.met, here.met, rtol=1e-11)
    np.testing.assert_allclose(there.mean_residual[1:], 4 * here.mean_residual[1:], rtol=1e-9)


def test_processor_sharing_and_lifo_are_insensitive():
    expected = cavity(Supermarket(math.inf, 3, 0.8), 6).log_tail
    for discipline in ("ps", "lifo"):
        found = cavity(
            Supermarket(
                math.inf, 3, 0.4, service=Deterministic().scaled(2.0), discipline=discipline
            ),
            6,
        )
        np.testing.assert_allclose(found.log_tail, expected, rtol=1e-14)
        assert f"{discipline} is insensitive" in found.reason
        assert found.service == Deterministic().scaled(2.0)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"lam": 0.5}, "lam = 0.5 is out of range: choose 0 < lam < 0.5"),
        ({"method": "mixture"}, r"method = 'mixture' does not go with .*use 'auto' or 'panels'"),
        ({"method": "panel"}, r"method = 'panel' is not known.*did you mean panels\?"),
        ({"arithmetic": "linear"}, "'linear' is for mixtures of exponentials, and the method here"),
        ({"discipline": "sjf"}, "discipline = 'sjf' is not known: use 'fifo', 'ps', 'lifo'"),
        ({"service": Pareto(2.5), "levels": 99}, "is out of reach of the panels of ages: choose"),
        ({"service": Erlang(2), "levels": 2000}, "beyond float64: choose levels <= 10"),
    ],
)
def test_a_wrong_parameter_gets_one_sentence(change, sentence, monkeypatch):
    monkeypatch.setattr(by_age, "_MOST_WORK", 2_000)
    given = {"service": Deterministic().scaled(2.0), "d": 2, "lam": 0.3, "levels": 5} | change
    options = {name: given.pop(name) for name in set(given) & {"levels", "method", "arithmetic"}}
    with pytest.raises(ParameterError, match=sentence):
        cavity(Supermarket(math.inf, **given), **options)


@pytest.mark.parametrize(("beta", "levels"), [(1.5, 500 if JIT else 50), (2.5, 14), (4.0, 9)])
def test_the_error_of_a_mixture(beta, levels):
    """Half as many nodes; the true error is seen against the panels, and is far smaller."""
    found = cavity(Supermarket(math.inf, 2, 0.7, service=Lomax(beta)), levels)
    panels = cavity(Supermarket(math.inf, 2, 0.7, service=Lomax(beta)), levels, method="panels")
    true = np.abs(np.expm1(panels.log_tail - found.log_tail)).max()
    assert found.error.shape == found.tail.shape
    assert found.error[1] == 0
    assert true < 1e-10
    assert true < found.error.max() < 1e-4


@pytest.mark.parametrize("beta", [1.02, 1.1, 1.5, 4.0])
@pytest.mark.parametrize("log_low", [0.0, -200.0])
def test_half_the_nodes_still_hold_all_the_work(beta, log_low):
    """A third of it lies below the lowest rate at beta = 1.02."""
    half, full = Thinned(Lomax(beta)).mixture(log_low), Lomax(beta).mixture(log_low)
    assert np.sum(np.exp(full.log_share)) == pytest.approx(1, rel=1e-13)
    assert np.sum(np.exp(half.log_share)) == pytest.approx(1, rel=1e-8)
    assert half.step == 2 * full.step


@pytest.mark.parametrize(("law", "spread"), [(Weibull(1000), 1e-5), (Lognormal(1e-6), 1e-11)])
def test_laws_that_are_nearly_constant_have_nearly_the_queues_of_constant_times(law, spread):
    """They took minutes, in panels of ages that no service reaches."""
    found = cavity(Supermarket(math.inf, 2, 0.7, service=law), 6)
    constant = cavity(Supermarket(math.inf, 2, 0.7, service=Deterministic()), 6)
    assert found.nodes < 1000
    np.testing.assert_allclose(found.log_tail, constant.log_tail, rtol=spread, atol=spread)
    assert np.all(found.tail >= constant.tail * (1 - 1e-13))
