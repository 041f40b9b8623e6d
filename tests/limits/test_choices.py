"""How deep an answer has to go."""

import math

import numpy as np
import pytest

from supermarket import (
    Exponential,
    Hyperexponential,
    Lomax,
    ParameterError,
    Supermarket,
    cavity,
    fixed_point,
)
from supermarket.limits.fifo.depth import cavity_down_to, deepest, mean_sojourn_fifo, share_with
from supermarket.service import Empirical

MIXED = Hyperexponential.from_scv(4)


@pytest.mark.parametrize("d", [1, 2, 10])
def test_as_deep_as_was_asked_or_as_float64_goes(d):
    found = deepest(Supermarket(math.inf, d, 0.7), 40)
    np.testing.assert_allclose(
        found.tail, fixed_point(Supermarket(math.inf, d, 0.7), found.levels), rtol=1e-9, atol=1e-320
    )
    if d == 1:
        assert found.levels == 40
    else:
        assert found.tail[-2] > 1e-100
        assert found.levels < 12


def test_the_share_with_many_jobs():
    assert (
        share_with(Supermarket(math.inf, 2, 0.7, service=MIXED), 6)
        == cavity(Supermarket(math.inf, 2, 0.7, service=MIXED), 6).tail[6]
    )
    assert share_with(Supermarket(math.inf, 2, 0.7, service=Lomax(1.5)), 1000) == pytest.approx(
        0.7e-3, rel=0.05
    )
    assert share_with(Supermarket(math.inf, 10, 0.7), 9) == 0.0
    assert share_with(
        Supermarket(math.inf, 2, 0.7 / 3, service=MIXED.scaled(3.0)), 6
    ) == pytest.approx(share_with(Supermarket(math.inf, 2, 0.7, service=MIXED), 6), rel=1e-12)


def test_the_mean_time_in_the_system():
    assert mean_sojourn_fifo(Supermarket(math.inf, 1, 0.9)) == pytest.approx(10, rel=1e-9)
    # Pollaczek and Khinchine, with a squared coefficient of variation of 4
    assert mean_sojourn_fifo(Supermarket(math.inf, 1, 0.7, service=MIXED)) == pytest.approx(
        1 + 0.7 * 2.5 / 0.3, rel=1e-6
    )
    exact = fixed_point(Supermarket(math.inf, 2, 0.99), 30)[1:].sum() / 0.99
    assert mean_sojourn_fifo(Supermarket(math.inf, 2, 0.99)) == pytest.approx(exact, rel=1e-9)
    assert mean_sojourn_fifo(Supermarket(math.inf, 2, 0.7, service=Lomax(1.5))) == math.inf
    assert mean_sojourn_fifo(
        Supermarket(math.inf, 2, 0.7 / 3, service=MIXED.scaled(3.0))
    ) == pytest.approx(
        3 * mean_sojourn_fifo(Supermarket(math.inf, 2, 0.7, service=MIXED)), rel=1e-9
    )


@pytest.mark.book  # minutes without the JIT, where other laws run the same kernels
def test_thousands_of_measured_times():
    """Answers in seconds, and a tail that is doubly exponential at the end."""
    times = np.random.default_rng(1).pareto(1.4, 3000) + 0.1
    law = Empirical(times)
    means = [
        mean_sojourn_fifo(Supermarket(math.inf, d, 0.8 / law.mean, service=law)) / law.mean
        for d in (1, 2, 3)
    ]
    assert means[0] == pytest.approx(1 + 0.8 * (1 + law.scv) / (2 * 0.2), rel=1e-12)
    assert means[0] > 4 * means[1] > 6 * means[2] > 6
    assert share_with(Supermarket(math.inf, 10, 0.8 / law.mean, service=law), 12) < 1e-100


@pytest.mark.parametrize(
    ("service", "d", "lam", "tail"),
    [(Exponential(), 1, 0.9, 1e-12), (MIXED, 2, 0.9, 1e-9), (Lomax(1.8), 2, 0.7, 1e-9),
     (Exponential(), 50, 0.9, 1e-90)],
)  # fmt: skip
def test_down_to_a_share(service, d, lam, tail):
    assert (
        cavity_down_to(Supermarket(math.inf, d, lam, service=service), tail).tail[-1] < tail
        or d == 50
    )


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: cavity_down_to(Supermarket(math.inf, 2, 0.7, service=Lomax(1.2)), 1e-9),
            "choose a larger tail, or a law with",
        ),
        (lambda: cavity_down_to(Supermarket(math.inf, 2, 0.7), 0.0), "tail = 0 is out of range"),
        (lambda: deepest(Supermarket(math.inf, 2, 1.7), 9), "lam"),
        (lambda: deepest(Supermarket(math.inf, 0, 0.7), 9), "d = 0"),
        (lambda: deepest(Supermarket(math.inf, 2, 0.7), 0), "levels = 0"),
        (lambda: share_with(Supermarket(math.inf, 2, 0.7), 1.5), "jobs = 1.5"),
    ],
)
def test_bad_input_gets_one_sentence(call, words):
    with pytest.raises(ParameterError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)
