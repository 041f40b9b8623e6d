from decimal import Decimal, localcontext
from importlib import import_module
from math import inf

import numpy as np
import pytest
from numba import config
from oracles import shown
from scipy.integrate import quad
from scipy.special import gammaln

from supermarket import Exponential, Hyperexponential, Lomax, ParameterError, Supermarket, cavity
from supermarket.limits.fifo.level_equation import log_difference
from supermarket.service.law import Mixture

TWO_PHASES = Hyperexponential([0.125, 0.875], [0.25, 1.75])  # exact in binary, mean 1

# P_2 to P_7, computed in 400 digits from the transforms (a recursion of another kind).
REFERENCE = [
    (Exponential(), 2, 0.7, "0.343 0.0823543 0.00474756150994 1.57775382035e-5 1.74251498234e-10 "
     "2.12545092457e-20"),
    (Lomax(1.5), 2, 0.7, "0.507265246232 0.377128626247 0.287914985813 0.226225187115 "
     "0.182901180519 0.151761396901"),
    (Lomax(2), 2, 0.7, "0.451826443725 0.265178587851 0.143260870657 0.0735924915185 "
     "0.0371118543266 0.0186718325519"),
    (Lomax(2.5), 2, 0.7, "0.423959808698 0.210228228699 0.0818735556864 0.024380018405 "
     "0.00530927669084 7.65531599348e-4"),
    (Exponential(), 3, 0.8, "0.4096 0.0549755813888 1.32922799578e-4 1.87883406622e-12 "
     "5.3058536291e-36 1.1949666427e-106"),
    (Lomax(1.5), 3, 0.8, "0.600620993243 0.420483513143 0.279466470315 0.181291533067 "
     "0.116863781109 0.0752865179499"),
]  # fmt: skip


@pytest.mark.parametrize("arithmetic", ["linear", "log"])
@pytest.mark.parametrize(("service", "d", "lam", "expected"), REFERENCE)
def test_reference_values(service, d, lam, expected, arithmetic):
    result = cavity(Supermarket(inf, d, lam, service=service), 7, arithmetic=arithmetic)
    expected = np.array(expected.split(), dtype=float)
    assert result.tail[0] == 1
    assert result.tail[1] == pytest.approx(lam, rel=1e-15)
    np.testing.assert_allclose(result.tail[2:], expected, rtol=1e-11)
    np.testing.assert_allclose(result.log_tail[2:], np.log(expected), rtol=0, atol=1e-11)


@pytest.mark.parametrize("arithmetic", ["auto", "log"])
@pytest.mark.parametrize(("d", "lam", "levels"), [(2, 0.7, 60), (3, 0.99, 40), (40, 0.5, 9)])
def test_exponential_service_has_the_closed_form(d, lam, levels, arithmetic):
    result = cavity(Supermarket(inf, d, lam), levels, arithmetic=arithmetic)
    k = np.arange(levels + 1.0)
    np.testing.assert_allclose(result.log_tail, np.log(lam) * (d**k - 1) / (d - 1), rtol=1e-13)
    assert np.all(result.tail[result.log_tail > -700] > 0)


def decimal_recursion(survival_transform, d, lam, levels, digits):
    """Return P_0..P_levels from the transforms of the residual service, in many digits.

    The recursion subtracts near-equal numbers at every level, so it needs the digits; it shares
    nothing with the positive recursion but the model. `survival_transform(t)` is 1 - E exp(-t S).
    """
    with localcontext() as context:
        context.prec = digits
        lam = Decimal(lam)
        tail, rates, factors = [Decimal(1), lam], [], []

        def residual(t):
            value = base = survival_transform(t)
            for rate, factor in zip(rates, factors, strict=True):
                value = (rate * base + rate * factor * value - t) / (rate - t)
            return value

        for _ in range(1, levels):
            below, here = tail[-2:]
            flow = lam * (below**d - here**d)

            def rate_if(after, here=here):
                return lam * sum(here**i * after ** (d - 1 - i) for i in range(d))

            def excess(after, here=here, flow=flow):
                rate = rate_if(after)
                served = lam * (here**d - after**d) * (1 - survival_transform(rate))
                return served - flow * residual(rate)

            low, high = Decimal(0), here
            x, y = here / 2, here / 3
            at_x, at_y = excess(x), excess(y)
            while abs(x - y) > here * Decimal(10) ** (5 - digits) and at_x != at_y:
                low, high = (y, high) if at_y > 0 else (low, y)
                new = y - at_y * (y - x) / (at_y - at_x)
                if not low < new < high:
                    new = (low + high) / 2
                x, at_x, y = y, at_y, new
                at_y = excess(y)
            rate = rate_if(y)
            factors.append((1 - survival_transform(rate)) / residual(rate))
            rates.append(rate)
            tail.append(y)
        return np.array([float(value) for value in tail])


def lomax_transform(numerator, digits):
    """Return 1 - E exp(-t S) for Lomax(numerator / 2), numerator odd: z exp(z) E_beta(z)."""

    def transform(t):
        with localcontext() as context:
            context.prec = digits
            beta = Decimal(numerator) / 2
            z = (beta - 1) * t
            # Gamma(1 - beta) by its recursion from Gamma(1/2) = sqrt(pi)
            front, argument = pi(digits).sqrt(), Decimal("0.5")
            while argument > 1 - beta:
                argument -= 1
                front /= argument
            total, term, m = Decimal(0), Decimal(1), 0
            while term and (m < 5 or abs(term) > Decimal(10) ** (-digits)):
                total += term / (m + 1 - beta)
                m += 1
                term *= -z / m
            return z * z.exp() * (front * z ** (beta - 1) - total)

    return transform


def pi(digits):
    """Return pi by Machin's formula."""

    def arctan_of_inverse(n):
        total, power, k = Decimal(0), Decimal(1) / n, 0
        while power > Decimal(10) ** (-digits - 2):
            total += (-1) ** k * power / (2 * k + 1)
            power /= n * n
            k += 1
        return total

    return 4 * (4 * arctan_of_inverse(5) - arctan_of_inverse(239))


def phases_transform(t):
    parts = zip(TWO_PHASES.probabilities, TWO_PHASES.rates, strict=True)
    return sum(Decimal(p) * t / (Decimal(r) + t) for p, r in parts)


@pytest.mark.parametrize(
    ("service", "transform", "d", "lam", "levels", "digits"),
    [
        (TWO_PHASES, phases_transform, 2, 0.8, 10, 400),
        (TWO_PHASES, phases_transform, 3, 0.6, 6, 300),
        (Lomax(1.5), lomax_transform(3, 120), 2, 0.9, 12, 120),
        (Lomax(2.5), lomax_transform(5, 160), 2, 0.9, 10, 160),
        (Lomax(3.5), lomax_transform(7, 160), 3, 0.95, 7, 160),
    ],
    ids=shown,
)
def test_the_transform_recursion_in_many_digits(service, transform, d, lam, levels, digits):
    expected = decimal_recursion(transform, d, lam, levels, digits)
    assert np.all(np.diff(expected) < 0)
    np.testing.assert_allclose(
        cavity(Supermarket(inf, d, lam, service=service), levels).tail, expected, rtol=1e-12
    )


@pytest.mark.parametrize("lam", [0.3, 0.95])
@pytest.mark.parametrize("service", [Exponential(), Lomax(1.4), Lomax(3), TWO_PHASES], ids=shown)
def test_one_choice_is_the_m_g_1_queue(service, lam):
    """Pollaczek-Khinchine, in the form of a recursion with the law of the arrivals in a service."""
    levels = 12

    def more_arrivals(k):
        # P(more than k arrivals in a service): the integral of lam Poisson(k; lam s) survival(s)
        def density(u):
            s = u / (1 - u)
            log_poisson = k * np.log(lam * s) - lam * s - gammaln(k + 1)
            return lam * np.exp(log_poisson) * service.survival(s) / (1 - u) ** 2

        return quad(density, 0, 1, epsabs=1e-15, epsrel=1e-12, limit=500)[0]

    more = [more_arrivals(k) for k in range(levels)]
    # level crossing in the chain seen at departures: p_k a_0 = p_0 more_{k-1} + sum p_j more_{k-j}
    p = [1 - lam]
    for k in range(1, levels):
        up = p[0] * more[k - 1] + sum(p[j] * more[k - j] for j in range(1, k))
        p.append(up / (1 - more[0]))
    result = cavity(Supermarket(inf, 1, lam, service=service), levels)
    np.testing.assert_allclose(-np.diff(result.tail), p, rtol=1e-11)
    np.testing.assert_allclose(result.rates, lam, rtol=1e-15)


@pytest.mark.parametrize(
    ("service", "d", "lam", "levels"),
    [
        (Lomax(1.5), 2, 0.7, 300),
        (Lomax(1.05), 5, 0.99, 60),  # rates above 1: an imbalance would grow threefold a level
        (Lomax(1.25), 5, 0.99, 80),
        (Lomax(2), 2, 0.9, 60),
        (Lomax(2.5), 2, 0.7, 16),
        (Lomax(7), 3, 0.8, 6),
        (TWO_PHASES, 2, 0.9, 11),
        (TWO_PHASES, 1, 0.9, 100),
    ],
    ids=shown,
)
def test_linear_and_log_arithmetic_agree(service, d, lam, levels):
    linear = cavity(Supermarket(inf, d, lam, service=service), levels, arithmetic="linear")
    log = cavity(Supermarket(inf, d, lam, service=service), levels, arithmetic="log")
    np.testing.assert_allclose(linear.log_tail, log.log_tail, rtol=0, atol=2e-12)
    np.testing.assert_allclose(linear.log_rates, log.log_rates, rtol=0, atol=2e-12)
    assert (linear.log_from, log.log_from) == (None, 2)


@pytest.mark.parametrize(
    ("beta", "d", "lam", "levels"), [(1.5, 2, 0.9, 200), (2, 2, 0.99, 60), (3.3, 2, 0.7, 14)]
)
def test_half_the_step_changes_nothing(monkeypatch, beta, d, lam, levels):
    coarse = cavity(Supermarket(inf, d, lam, service=Lomax(beta)), levels)

    def finer(self, log_low):
        """Write the Gamma density out again, with half of the step and other nodes."""
        step, a = coarse.step / 2, beta - 1
        log_rate = 6.0 - step * np.arange(int((6 - min(log_low, -100)) / step))
        log_share = (
            np.log(step) + beta * np.log(a) - gammaln(beta) + a * log_rate - a * np.exp(log_rate)
        )
        rest = log_share[-1] - np.log(np.expm1(a * step))
        log_rate, log_share = np.append(log_rate, -np.inf), np.append(log_share, rest)
        return Mixture(log_rate, log_share + log_rate, log_share, step, log_rate[-2])

    monkeypatch.setattr(Lomax, "mixture", finer)
    fine = cavity(Supermarket(inf, d, lam, service=Lomax(beta)), levels)
    assert fine.step == coarse.step / 2
    assert fine.nodes > coarse.nodes
    np.testing.assert_allclose(fine.log_tail, coarse.log_tail, rtol=1e-13, atol=2e-13)


def test_the_difference_of_two_levels_keeps_its_digits():
    """In logarithms, where two levels are nearly the same and where they are far apart."""
    for above in (0.0, -1e5):
        for fall in (1e-14, 1e-9, 1e-3, 0.5, 30.0, 800.0):
            below = above - fall
            if below == above:  # no two levels: their difference is that of a rounding
                continue
            with localcontext() as context:
                context.prec = 60
                exact = (1 - (Decimal(below) - Decimal(above)).exp()).ln() + Decimal(above)
            found = log_difference(above, below)
            assert found == pytest.approx(float(exact), rel=1e-15, abs=3e-16)


def test_deep_levels_in_logs():
    result = cavity(
        Supermarket(inf, 2, 0.7, service=Lomax(2.5)), 34 if not config.DISABLE_JIT else 26
    )
    assert np.all(np.isfinite(result.log_tail))
    assert np.all(np.diff(result.log_tail) < 0)
    assert result.log_from == 20
    if not config.DISABLE_JIT:
        assert round(result.log_tail[34]) == -27716
        assert result.tail[34] == 0
    # sharp asymptotics: P_k ~ lam c pi / (sin(pi/2) Gamma(5/2)) lam_{k-2}^(1/2) lam_{k-1}
    k = result.levels
    constant = 0.7 * 1.5**2.5 * np.pi / (0.75 * np.sqrt(np.pi))
    sharp = np.log(constant) + result.log_rates[k - 2] / 2 + result.log_rates[k - 1]
    assert result.log_tail[k] == pytest.approx(sharp, abs=1e-6)


def test_the_switch_to_logs_leaves_no_mark():
    auto = cavity(Supermarket(inf, 2, 0.7, service=Lomax(2.5)), 24)
    log = cavity(Supermarket(inf, 2, 0.7, service=Lomax(2.5)), 24, arithmetic="log")
    assert auto.log_from is not None
    np.testing.assert_allclose(auto.log_tail, log.log_tail, rtol=1e-14, atol=1e-12)


def test_the_rates_are_those_of_the_tail():
    result = cavity(Supermarket(inf, 3, 0.9, service=Lomax(1.7)), 20)
    flow = 0.9 * (result.tail[:-1] ** 3 - result.tail[1:] ** 3)
    np.testing.assert_allclose(result.rates, flow / -np.diff(result.tail), rtol=1e-12)
    assert result.rates.shape == (20,)
    # one job served in a unit of time by each busy server
    deep = cavity(Supermarket(inf, 3, 0.9), 12)
    assert np.sum(-deep.rates * np.diff(deep.tail)) == pytest.approx(0.9, rel=1e-14)


def test_one_level_and_hardly_any_load():
    np.testing.assert_array_equal(
        cavity(Supermarket(inf, 2, 0.25, service=Lomax(3)), 1).tail, [1, 0.25]
    )
    idle = cavity(Supermarket(inf, 2, 1e-200, service=Lomax(1.5)), 3)
    assert idle.log_tail[1] == pytest.approx(-200 * np.log(10))
    assert np.all(np.isfinite(idle.log_tail))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"service": Lomax}, "is no ServiceLaw: use a law of supermarket.service"),
        ({"service": "lomax"}, "service = 'lomax' is no ServiceLaw"),
        ({"d": 0}, "d = 0 is out of range: choose 1 <= d"),
        ({"d": 2.0}, "d = 2.0 is not a whole number"),
        ({"lam": 1.2}, "lam = 1.2 is out of range: choose 0 < lam < 1"),
        ({"levels": 0}, "levels = 0 is out of range: choose 1 <= levels"),
        ({"arithmetic": "logs"}, r"arithmetic = 'logs' is not known.*did you mean log\?"),
        ({"arithmetic": "linear", "levels": 40}, "levels = 40 is out of reach of linear"),
        ({"levels": 10**4}, "more than 20000 exponentials: choose levels <= 2"),
        ({"service": Exponential(), "levels": 1100}, "beyond float64: choose levels <= 10"),
    ],
)
def test_a_wrong_parameter_gets_one_sentence(change, sentence, monkeypatch):
    given = {"service": Lomax(2.5), "d": 2, "lam": 0.7, "levels": 5} | change
    options = {name: given.pop(name) for name in set(given) & {"levels", "arithmetic"}}
    monkeypatch.setattr(import_module("supermarket.limits.fifo.by_mixture"), "_MOST_NODES", 20_000)
    with pytest.raises(ParameterError, match=sentence):
        cavity(Supermarket(inf, **given), **options)
