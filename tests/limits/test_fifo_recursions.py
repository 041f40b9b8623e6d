"""The paper's recursions against the exact cavity, and against their own closed forms."""

import math

import numpy as np
import pytest

from supermarket import Lomax, ParameterError, Supermarket, cavity
from supermarket.limits.fifo.recursions import (
    characteristic_roots,
    growth,
    log_prefactor,
    log_prefactor_limit,
    recursion,
    sharp_log_tail,
)
from supermarket.limits.fifo.tails import q_exponent

CASES = [(1.7, 3, 16), (2.5, 2, 22), (3.5, 2, 15), (2.5, 3, 10), (3.0, 2, 20), (4.0, 2, 15)]


@pytest.mark.parametrize(("beta", "d", "levels"), CASES)
def test_the_recursion_is_iterated_as_written(beta, d, levels):
    whole, part = math.floor(beta), beta - math.floor(beta)
    values = dict.fromkeys(range(1 - whole, 1), 1.0)
    for k in range(1, levels + 1):
        values[k] = (d - 1) * (
            sum(values[k - i] for i in range(1, whole)) + part * values[k - whole]
        )
    expected = [values[k] for k in range(levels + 1)]
    np.testing.assert_allclose(recursion(beta, d, levels), expected, rtol=1e-13)


@pytest.mark.parametrize(("beta", "d", "levels"), CASES)
def test_the_roots_solve_the_equation_and_the_first_is_the_growth(beta, d, levels):
    roots = characteristic_roots(beta, d)
    whole, part = math.floor(beta), beta - math.floor(beta)
    assert len(roots) == whole
    right = sum(roots**i for i in range(1, whole)) + part
    np.testing.assert_allclose(roots**whole, (d - 1) * right, atol=1e-9)
    assert roots[0].imag == 0
    assert math.log(roots[0].real, d) == pytest.approx(q_exponent(beta, d), rel=1e-12)
    assert all(abs(roots[1:]) < roots[0].real)
    growth = recursion(beta, d, 300)
    assert growth[-1] / growth[-2] == pytest.approx(roots[0].real, rel=1e-12)


@pytest.mark.parametrize(
    ("beta", "d"), [(2.05, 2), (2.5, 2), (3.0, 2), (1.7, 3), (6.0, 5), (4, 20)]
)
def test_the_growth_is_read_off_the_iteration(beta, d):
    found = growth(beta, d)
    assert found.low <= q_exponent(beta, d) <= found.high
    assert found.high - found.low < 1e-9


def test_known_growths():
    golden = (1 + math.sqrt(5)) / 2
    assert characteristic_roots(3.0, 2)[0].real == pytest.approx(golden, rel=1e-14)
    assert characteristic_roots(2.5, 2)[0].real == pytest.approx((1 + math.sqrt(3)) / 2, rel=1e-14)
    assert characteristic_roots(2.0, 5)[0].real == pytest.approx(4, rel=1e-14)


@pytest.mark.parametrize(("beta", "d", "levels"), CASES)
def test_the_sharp_form_is_the_exact_tail_far_down(beta, d, levels):
    service, lam = Lomax(beta), 0.7
    exact = cavity(Supermarket(math.inf, d, lam, service=service), levels)
    sharp = sharp_log_tail(exact.log_rates, beta, service.tail_constant, d, lam)
    assert np.isnan(sharp[: math.floor(beta)]).all()
    assert sharp.shape == exact.log_tail.shape
    off = np.abs(exact.log_tail - sharp)[math.floor(beta) :]
    assert off[-1] < 1e-3
    assert off[-1] < 1e-2 * off[0]
    # What the test would see of a wrong power: a rate in place of its neighbour.
    assert abs(exact.log_tail[-2] - sharp[-1]) > 1


@pytest.mark.parametrize(("beta", "d", "levels"), [case for case in CASES if case[0] % 1])
def test_the_prefactor_tends_to_its_limit(beta, d, levels):
    service, lam = Lomax(beta), 0.7
    exact = cavity(Supermarket(math.inf, d, lam, service=service), levels)
    limit = log_prefactor_limit(beta, service.tail_constant, d, lam)
    assert log_prefactor(exact.log_tail, beta, d)[-1] == pytest.approx(limit, abs=2e-3)


def test_the_prefactor_grows_with_k_at_a_whole_tail_index():
    """Its logarithm by log of the golden ratio a level; delta bends it down."""
    exact = cavity(Supermarket(math.inf, 2, 0.7, service=Lomax(3.0)), 22)
    grows = np.diff(log_prefactor(exact.log_tail, 3.0, 2))
    assert grows[-1] == pytest.approx(math.log((1 + math.sqrt(5)) / 2), rel=1e-3)
    assert np.all(np.diff(log_prefactor(exact.log_tail, 3.0, 2, delta=0.1))[-5:] < 0)
    # The definition of (21), written out at one level.
    k, delta, log_tail = 9, 0.1, exact.log_tail
    expected = log_tail[k] - (1 - delta) * log_tail[k - 2] - log_tail[k - 1]
    assert log_prefactor(log_tail, 3.0, 2, delta=delta)[k] == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: recursion(2.0, 2, 5), r"beta = 2 with d = 2 has no doubly exponential tail"),
        (lambda: recursion(math.nan, 2, 5), "beta = nan"),
        (lambda: recursion(3.0, 2, 0), "levels = 0"),
        (lambda: recursion(3.0, 10, 10**4), r"R_10000 is beyond the largest double: choose levels"),
        (lambda: characteristic_roots(1e9, 2), "choose d/"),
        (lambda: log_prefactor(np.zeros(9), 2.5, 2, delta=0.1), "delta = 0.1 has no meaning"),
        (lambda: log_prefactor(np.zeros(9), 3.0, 2, delta=1.0), "delta = 1 is out of range"),
        (lambda: log_prefactor_limit(3.0, 1.0, 2, 0.7), "beta = 3 is a whole number"),
    ],
)  # fmt: skip
def test_bad_input_gets_one_sentence(call, words):
    with pytest.raises(ParameterError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)
