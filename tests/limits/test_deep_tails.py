"""The sparse nodes against the full grid of the cavity, and far beyond it."""

import math

import numpy as np
import pytest
from numba import config

from supermarket import Lomax, ParameterError, Supermarket, cavity
from supermarket.limits.fifo import deep_tails
from supermarket.limits.fifo.deep_tails import deep_tail

JIT = not config.DISABLE_JIT


@pytest.mark.parametrize(
    ("beta", "d", "lam", "levels"),
    [(2.5, 2, 0.7, 32), (3.0, 2, 0.9, 24), (1.8, 5, 0.7, 10), (6.0, 3, 0.9, 10), (1.6, 3, 0.3, 36)],
)
def test_the_same_tail_as_on_the_full_grid(beta, d, lam, levels):
    levels = levels if JIT else levels // 2
    full = cavity(Supermarket(math.inf, d, lam, service=Lomax(beta)), levels)
    sparse = deep_tail(
        Supermarket(math.inf, d, lam, service=Lomax(beta)), -float(full.log_tail[-1]) * 0.999
    )
    assert sparse.levels == levels
    np.testing.assert_allclose(sparse.log_tail, full.log_tail, rtol=2e-14)
    np.testing.assert_allclose(sparse.log_rates, full.log_rates, rtol=2e-14)
    if JIT:  # most of the grid is left out, so that the test is of the sums over what is
        assert -full.log_tail[-1] > 1000


def test_the_depth_and_the_least_number_of_levels():
    tail = deep_tail(Supermarket(math.inf, 20, 0.7, service=Lomax(2.5)), 100.0)
    assert -tail.log_tail[-1] > 100 >= -tail.log_tail[-2]
    assert deep_tail(Supermarket(math.inf, 20, 0.7, service=Lomax(2.5)), 100.0, 5).levels == 5
    stopped = deep_tail(
        Supermarket(math.inf, 100, 0.7, service=Lomax(2.5)), 100.0, 20
    )  # the next would be deeper than DEEPEST
    assert -stopped.log_tail[-1] <= deep_tails.DEEPEST < -100 * stopped.log_tail[-1]


def test_the_tail_goes_on_to_1e12_as_its_sharp_form_does():
    """log P_k - (log P_k1) / 2 - log P_(k1+1) has a limit for beta = 2.5 and d = 2."""
    deepest = deep_tails.DEEPEST if JIT else 1e4
    log_tail = deep_tail(Supermarket(math.inf, 2, 0.7, service=Lomax(2.5)), deepest).log_tail
    assert -log_tail[-1] > deepest
    prefactor = log_tail[2:] - 0.5 * log_tail[:-2] - log_tail[1:-1]
    limit = math.log(1.5**2.5 * 0.7**2.5 * math.pi / math.gamma(2.5))
    assert prefactor[-1] == pytest.approx(limit, abs=1e-3 + 1e-14 * deepest)


def test_the_sum_between_two_dense_stretches():
    """Against the terms themselves, on one line and on two that meet."""
    i = np.arange(1, 1001)
    for begins, ends in ((-0.3, -0.3), (0.0, 0.0), (-0.3, 0.0), (-0.5, 0.4), (0.1, 0.3)):
        two = np.maximum(begins * i, 300 * begins + ends * (i - 300.0))
        below = float(two[-1] + (ends if begins != ends else begins))
        lines = np.maximum(begins * i, below - ends * (1001 - i))
        found = deep_tails._between(0.0, below, begins, ends, 1000.0)
        assert math.log(found) == pytest.approx(np.logaddexp.reduce(lines), abs=1e-6)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: deep_tail(Supermarket(math.inf, 2, 0.7), 10.0),
            "is not of Lomax service in order of arrival: use `cavity`",
        ),
        (
            lambda: deep_tail(Supermarket(math.inf, 1, 0.7, service=Lomax(2.5)), 10.0),
            "d = 1 is out of range",
        ),
        (
            lambda: deep_tail(Supermarket(math.inf, 2, 1.0, service=Lomax(2.5)), 10.0),
            "lam = 1 is out of range",
        ),
        (
            lambda: deep_tail(Supermarket(math.inf, 2, 0.7, service=Lomax(2.5)), 1e13),
            "depth = 10000000000000 is out of range",
        ),
        (
            lambda: deep_tail(Supermarket(math.inf, 2, 0.7, service=Lomax(2.5)), 10.0, 0),
            "least = 0 is out of range",
        ),
    ],
)
def test_a_wrong_parameter_gets_one_sentence(call, words):
    with pytest.raises(ParameterError, match=words):
        call()
