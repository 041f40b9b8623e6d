import math

import numpy as np
import pytest
from numba import config

from supermarket import Lomax, ParameterError, Supermarket, cavity
from supermarket.limits.fifo import tails as fifo_tails
from supermarket.limits.fifo.tails import (
    critical_beta,
    critical_decay_rate,
    doubly_exponential_limit,
    exponential_limit,
    local_exponents,
    lomax_tail,
    on_straight_axis,
    power_law_constant,
    power_law_constant_limit,
    power_law_exponent,
    power_law_limit,
    q_exponent,
    straight,
)

JIT = not config.DISABLE_JIT
GOLDEN = (1 + math.sqrt(5)) / 2


@pytest.mark.parametrize(
    ("beta", "d", "root"),
    [
        (2.5, 2, (1 + math.sqrt(3)) / 2),
        (3, 2, GOLDEN),
        (1.6, 3, 1.2),
        (2, 3, 2),
        (2.5, 3, 1 + math.sqrt(2)),
        (3, 3, 1 + math.sqrt(3)),
        (1.6, 5, 2.4),
        (2.5, 5, 2 + math.sqrt(6)),
        (3, 5, 2 + 2 * math.sqrt(2)),
    ],
)
def test_q_where_the_root_is_known(beta, d, root):
    assert q_exponent(beta, d) == pytest.approx(math.log(root, d), rel=1e-13)


@pytest.mark.parametrize(
    ("beta", "d", "expected"),
    [
        (4, 2, 0.879146421607),
        (4, 3, 0.975285078600),
        (6, 2, 0.975225336064),
        (6, 5, 0.999840713824),
        (10, 2, 0.998577862554),
        (10, 3, 0.999969160113),
        (10, 5, 0.999999745500),
    ],
)
def test_q_in_the_table(beta, d, expected):
    assert q_exponent(beta, d) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("beta", "d"), [(2.3, 2), (3, 2), (5.7, 2), (1.7, 3), (4.25, 5)])
def test_q_is_the_growth_of_the_linear_recursion(beta, d):
    """Iterate R_k = (d-1) (R_{k-1} + ... + R_{k-l+1} + eta R_{k-l}) as the paper writes it."""
    whole = math.floor(beta)
    recent = [1.0] * whole
    for _ in range(600):
        new = (d - 1) * (sum(recent[1:]) + (beta - whole) * recent[0])
        growth = new / recent[-1]
        recent = [value / new for value in [*recent[1:], new]]
    assert q_exponent(beta, d) == pytest.approx(math.log(growth, d), rel=1e-12)


def test_q_rises_from_0_to_1():
    beta = np.linspace(2.0001, 12, 200)
    values = [q_exponent(float(b), 2) for b in beta]
    assert np.all(np.diff(values) > 0)
    assert values[0] < 1e-3
    assert q_exponent(math.inf, 2) == 1
    assert q_exponent(1e9, 2) == pytest.approx(1, rel=1e-15)
    # 1 - q ~ (d-1)/log(d) d^-floor(beta) (1 - part + part/d)
    assert (1 - q_exponent(20.25, 2)) * math.log(2) * 2**20 == pytest.approx(1 - 0.25 / 2, rel=1e-3)


def test_gamma_in_the_table():
    expected = {1.1: 1 / 9, 1.3: 3 / 7, 1.5: 1, 1.7: 7 / 3, 1.9: 9}
    for beta, value in expected.items():
        assert power_law_exponent(beta, 2) == pytest.approx(value, rel=1e-12)
    assert power_law_exponent(1.1, 3) == pytest.approx(0.125, rel=1e-12)
    assert power_law_exponent(1.3, 3) == pytest.approx(0.75, rel=1e-12)


@pytest.mark.parametrize(
    ("c", "d", "lam", "rate"),
    [(1, 2, 0.9, 0.47374193), (0.25, 2, 0.7, 1.4951284), (0.5**1.5, 3, 0.8, 0.43947963)],
)
def test_critical_rate_in_the_table(c, d, lam, rate):
    assert critical_decay_rate(c, lam, d) == pytest.approx(rate, rel=2e-8)


def test_the_moment_behind_the_critical_rate_by_simulation():
    """Ramanujan's integral for d = 4 against draws of W: false alarm below 1e-5."""
    r, d = 0.3, 4
    rng = np.random.default_rng(1)
    weights = np.exp(-(d - 1) * r * np.arange(60))
    draws = (rng.exponential(size=(40_000, 60)) @ weights) ** (-1 / (d - 1))
    error = draws.std() / math.sqrt(draws.size)
    assert math.exp(fifo_tails._log_moment(r, d)) == pytest.approx(draws.mean(), abs=4.5 * error)
    assert error < 0.002


def test_the_critical_rate_falls_with_the_load_and_with_the_weight_of_the_tail():
    for d in (2, 3, 6):
        assert (
            critical_decay_rate(0.1, 0.5, d)
            > critical_decay_rate(0.1, 0.9, d)
            > critical_decay_rate(0.2, 0.9, d)
        )
    c, lam = 20.0, 0.8  # small r
    small = (c * 2 * lam**1.5 * math.sqrt(6)) ** -2
    assert critical_decay_rate(c, lam, 3) == pytest.approx(small, rel=1e-3)


# --- the theorems against the exact cavity


@pytest.mark.parametrize(
    ("beta", "d", "lam"), [(1.5, 2, 0.7), (1.4, 2, 0.7), (1.7, 2, 0.7), (1.3, 3, 0.8)]
)
def test_the_cavity_has_the_power_law(beta, d, lam):
    levels = 2**14 if JIT else 2**11
    log_tail = cavity(Supermarket(math.inf, d, lam, service=Lomax(beta)), levels).log_tail
    found = power_law_limit(log_tail, d)
    assert found.low <= power_law_exponent(beta, d) <= found.high
    # An eighth of the levels, without the JIT, know the limit a good deal less well.
    assert found.high - found.low < (0.006 if JIT else 0.1) * (1 + power_law_exponent(beta, d))
    # the slope itself comes at least twice as near when k grows eightfold
    _, exponents = local_exponents(log_tail)
    assert (
        0
        < exponents[-1] - power_law_exponent(beta, d)
        < 0.5 * (exponents[-4] - power_law_exponent(beta, d))
    )
    constant = power_law_constant(beta, Lomax(beta).tail_constant, d, lam)
    found = math.exp(log_tail[levels] + power_law_exponent(beta, d) * math.log(levels))
    assert found == pytest.approx(constant, rel=0.003 if JIT else 0.02)


@pytest.mark.parametrize(
    ("beta", "d", "lam", "levels", "width"),
    [
        (2.5, 2, 0.7, 24, 1e-7),
        (3, 2, 0.7, 20, 1e-3),
        (3.5, 2, 0.9, 18, 1e-4),
        (1.6, 3, 0.7, 45, 1e-9),
        (2, 3, 0.7, 14, 1e-3),
        # Each level takes four times as long as the one before.
        (2.5, 5, 0.7, *((10, 1e-7) if JIT else (8, 1e-2))),
    ],
)
def test_the_cavity_is_doubly_exponential(beta, d, lam, levels, width):
    found = doubly_exponential_limit(
        cavity(Supermarket(math.inf, d, lam, service=Lomax(beta)), levels).log_tail, d
    )
    assert found.low <= q_exponent(beta, d) <= found.high
    assert found.high - found.low < width


@pytest.mark.parametrize("lam", [0.3, 0.7, 0.9])
@pytest.mark.parametrize("d", [2, 3, 5])
def test_the_cavity_is_exponential_at_the_line(d, lam):
    service = Lomax(critical_beta(d))
    found = exponential_limit(cavity(Supermarket(math.inf, d, lam, service=service), 60).log_tail)
    assert found.low <= critical_decay_rate(service.tail_constant, lam, d) <= found.high
    assert found.high - found.low < 1e-11


@pytest.mark.parametrize(
    ("beta", "regime"), [(1.5, "power law"), (2.0, "exponential"), (2.5, "doubly exponential")]
)
def test_the_kind_of_a_lomax_tail(beta, regime):
    tail = lomax_tail(beta, 2, 0.7, 2048, 2000.0)
    assert tail.regime == regime
    assert tail.measured.low <= tail.predicted <= tail.measured.high
    if regime == "doubly exponential":
        assert -10_000 < tail.equilibrium.log_tail[-1] <= -2000
    else:
        assert tail.equilibrium.levels == {"power law": 2048, "exponential": 200}[regime]
    k, y, line, label = straight(tail)
    assert y[-1] == line[-1]
    assert "P_k" in label
    np.testing.assert_allclose(y[-2:], line[-2:], rtol=0.01)
    slope = {"power law": np.log10(2), "exponential": np.log10(np.e), "doubly exponential": -1}
    assert np.diff(line)[-1] == pytest.approx(-slope[regime] * tail.predicted, rel=1e-6)
    shares = np.exp(tail.equilibrium.log_tail[k[:6]])
    np.testing.assert_allclose(on_straight_axis(tail, shares), y[:6], rtol=1e-9)
    assert k.shape == y.shape == line.shape


# --- the extrapolations on sequences with a known limit


def test_the_power_law_limit_of_a_made_up_tail():
    k = np.arange(1.0, 2**14 + 2)
    log_tail = np.append(0, -1.5 * np.log(k) + (0.7 * np.log(k) + 2) / (k + 3))
    found = power_law_limit(log_tail, 2)
    assert found.low <= 1.5 <= found.high
    assert found.high - found.low < 1e-4
    deeper = np.append(0, -0.25 * np.log(k) + k**-0.25 + k**-0.5 + 0.3 * k**-0.75)
    found = power_law_limit(deeper, 2)
    assert found.low <= 0.25 <= found.high
    assert found.high - found.low < 1e-3
    wrong = power_law_limit(np.append(0, -1.501 * np.log(k) + np.log(k) / k), 2)
    assert not wrong.low <= 1.5 <= wrong.high


def test_the_power_law_constant_of_a_made_up_tail_and_of_the_cavity():
    k = np.arange(1.0, 2**14 + 2)
    log_tail = np.append(0, math.log(0.3) - np.log(k) + (0.7 * np.log(k) + 2) / (k + 3))
    found = power_law_constant_limit(log_tail, 1.5, 2)  # gamma = 1
    assert found.low <= 0.3 <= found.high
    assert found.high - found.low < 1e-3
    exact = cavity(Supermarket(math.inf, 3, 0.7, service=Lomax(1.3)), 2**14 if JIT else 2**11)
    found = power_law_constant_limit(exact.log_tail, 1.3, 3)
    assert found.low <= power_law_constant(1.3, 0.3**1.3, 3, 0.7) <= found.high
    # An eighth of the levels knows 0.0011 of it, all know 5.6e-6.
    assert found.high - found.low < (1e-5 if JIT else 2e-3)


def test_the_other_limits_of_made_up_tails():
    k = np.arange(30.0)
    log_tail = -(1.4**k) + 0.1 * (-0.5) ** k + 0.8
    assert doubly_exponential_limit(log_tail, 2).estimate == pytest.approx(math.log2(1.4), abs=1e-8)
    assert exponential_limit(-0.3 * k + 0.4**k).estimate == pytest.approx(0.3, abs=1e-12)
    exact = exponential_limit(-0.3 * k)
    assert exact.low <= 0.3 <= exact.high
    assert 0 < exact.high - exact.low < 1e-12


# --- a sequence that has settled is done; one that has not gets no interval


def local_values(sequence, d=2):
    """Return the log tail whose `local_growth` is this sequence."""
    growth = -np.cumprod(np.append(1.0, float(d) ** np.asarray(sequence)))
    return np.append(0.0, np.cumsum(growth))


@pytest.mark.parametrize("equal", [2, 3, 4, 12])
def test_equal_terms_at_the_end_are_the_limit(equal):
    """Two zero steps in a row once gave a limit of 1e150."""
    settling = 0.7 + 0.1 * 0.3 ** np.arange(12.0)
    found = doubly_exponential_limit(local_values([*settling, *[0.7] * equal]), 2)
    assert found.low <= 0.7 <= found.high
    assert found.high - found.low < (1e-11 if equal > 2 else 1e-5)


def test_the_case_that_once_gave_1e150():
    log_tail = cavity(Supermarket(math.inf, 5, 0.7, service=Lomax(1.8)), 10).log_tail
    found = doubly_exponential_limit(log_tail, 5)
    assert found.estimate == pytest.approx(q_exponent(1.8, 5), abs=1e-12)
    assert found.high - found.low < 1e-11


def test_no_limit_is_farther_away_than_the_terms_are_from_one_another():
    """Random sequences, settled or not, with equal neighbours anywhere."""
    rng = np.random.default_rng(1)
    for _ in range(500):
        terms = rng.integers(0, 4, 12) * 10.0 ** -np.arange(12) + rng.random()
        column = fifo_tails._epsilon(terms, int(rng.integers(1, 4)), 1e-13)
        assert np.all(np.isfinite(column))
        assert np.max(np.abs(column - terms[-1])) <= 4 * np.ptp(terms)


@pytest.mark.parametrize(
    "found",
    [
        exponential_limit(-(np.arange(20.0) ** 2)),
        power_law_limit(-0.1 * np.log(np.arange(1, 5000)) + np.arange(1, 5000) ** -0.1, 2),
        power_law_constant_limit(-0.1 * np.log(np.arange(1, 5000)), 1 + 1 / 11, 2),
        doubly_exponential_limit(local_values(0.5 + 0.1 * (-1.0) ** np.arange(12)), 2),
    ],
)
def test_what_has_not_settled_says_so(found):
    assert math.isfinite(found.estimate)
    assert math.isnan(found.low)
    assert math.isnan(found.high)


@pytest.mark.parametrize("d", [10, 20, 100])
@pytest.mark.parametrize("beta", [1.005, 1.05, 2.2, 3.0])
def test_many_choices(beta, d):
    """Parameters that the pages suggest or allow, which once stopped them."""
    tail = lomax_tail(beta, d, 0.7, 1024, 20000.0)
    assert tail.measured.estimate == pytest.approx(tail.predicted, rel=0.1)
    if np.isfinite(tail.measured.low):
        assert tail.measured.low <= tail.predicted <= tail.measured.high
    else:
        assert (d - 1) * tail.predicted < 0.3


def test_local_exponents_double():
    k, exponents = local_exponents(np.append(0, -2 * np.log(np.arange(1, 1001))))
    assert np.all(k[1:] == 2 * k[:-1])
    assert 2 * k[-1] <= 1000 < 4 * k[-1]
    np.testing.assert_allclose(exponents, 2, rtol=1e-13)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: critical_beta(1), "d = 1 is out of range: choose 2 <= d"),
        (
            lambda: q_exponent(2, 2),
            r"beta = 2 with d = 2 has no doubly exponential tail: choose beta > d/",
        ),
        (lambda: q_exponent(math.nan, 2), "beta = nan is not finite"),
        (
            lambda: power_law_exponent(2, 2),
            r"beta = 2 with d = 2 has no power-law tail: choose 1 < beta < d/",
        ),
        (lambda: power_law_exponent(2.5, 2), r"or use q_exponent\(beta, d\)"),
        (lambda: power_law_exponent(1, 2), "beta = 1 with d = 2 has no power-law tail"),
        (lambda: power_law_constant(1.5, 0.0, 2, 0.7), "c = 0 is out of range: choose 0 < c"),
        (lambda: critical_decay_rate(1.0, 1.0, 2), "lam = 1 is out of range: choose 0 < lam < 1"),
        (lambda: critical_decay_rate(1e6, 0.9, 3), "gives a rate below 1e-5"),
        (lambda: local_exponents(np.zeros(9)), "levels = 8 is out of range: choose 16 <= levels"),
        (lambda: power_law_limit(np.zeros(999), 2), "levels = 998 is out of range"),
        (lambda: exponential_limit(np.zeros(4)), "levels = 3 is out of range"),
        (lambda: doubly_exponential_limit(np.zeros(6), 2), "levels = 5 is out of range"),
        (lambda: lomax_tail(2.5, 2, 0.7, 1024, 1e13), "depth = 10000000000000 is out of range"),
    ],
)
def test_a_wrong_parameter_gets_one_sentence(call, sentence):
    with pytest.raises(ParameterError, match=sentence):
        call()
