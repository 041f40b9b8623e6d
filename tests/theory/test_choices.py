"""How deep an answer has to go."""

import math

import numpy as np
import pytest

from supermarket import (
    Exponential,
    Hyperexponential,
    Lomax,
    ParameterError,
    ServiceLaw,
    cavity,
    fixed_point,
)
from supermarket.theory.choices import cavity_down_to, deepest, mean_sojourn_fifo, share_with

MIXED = Hyperexponential.from_scv(4)


@pytest.mark.parametrize("d", [1, 2, 10])
def test_as_deep_as_was_asked_or_as_float64_goes(d):
    found = deepest(Exponential(), d, 0.7, 40)
    np.testing.assert_allclose(
        found.tail, fixed_point(0.7, d, found.levels), rtol=1e-9, atol=1e-320
    )
    if d == 1:
        assert found.levels == 40
    else:
        assert found.tail[-2] > 1e-100
        assert found.levels < 12


def test_the_share_with_many_jobs():
    assert share_with(MIXED, 2, 0.7, 6) == cavity(MIXED, 2, 0.7, 6).tail[6]
    assert share_with(Lomax(1.5), 2, 0.7, 1000) == pytest.approx(0.7e-3, rel=0.05)
    assert share_with(Exponential(), 10, 0.7, 9) == 0.0
    assert share_with(MIXED.scaled(3.0), 2, 0.7 / 3, 6) == pytest.approx(
        share_with(MIXED, 2, 0.7, 6), rel=1e-12
    )


def test_the_mean_time_in_the_system():
    assert mean_sojourn_fifo(Exponential(), 1, 0.9) == pytest.approx(10, rel=1e-9)
    # Pollaczek and Khinchine, with a squared coefficient of variation of 4
    assert mean_sojourn_fifo(MIXED, 1, 0.7) == pytest.approx(1 + 0.7 * 2.5 / 0.3, rel=1e-6)
    exact = fixed_point(0.99, 2, 30)[1:].sum() / 0.99
    assert mean_sojourn_fifo(Exponential(), 2, 0.99) == pytest.approx(exact, rel=1e-9)
    assert mean_sojourn_fifo(Lomax(1.5), 2, 0.7) == math.inf
    assert mean_sojourn_fifo(MIXED.scaled(3.0), 2, 0.7 / 3) == pytest.approx(
        3 * mean_sojourn_fifo(MIXED, 2, 0.7), rel=1e-9
    )


@pytest.mark.book  # minutes without the JIT, where other laws run the same kernels
def test_thousands_of_measured_times():
    """Answers in seconds, and a tail that is doubly exponential at the end."""
    times = np.random.default_rng(1).pareto(1.4, 3000) + 0.1
    law = ServiceLaw.from_samples(times)
    means = [mean_sojourn_fifo(law, d, 0.8 / law.mean) / law.mean for d in (1, 2, 3)]
    assert means[0] == pytest.approx(1 + 0.8 * (1 + law.scv) / (2 * 0.2), rel=1e-12)
    assert means[0] > 4 * means[1] > 6 * means[2] > 6
    assert share_with(law, 10, 0.8 / law.mean, 12) < 1e-100


@pytest.mark.parametrize(
    ("service", "d", "lam", "tail"),
    [(Exponential(), 1, 0.9, 1e-12), (MIXED, 2, 0.9, 1e-9), (Lomax(1.8), 2, 0.7, 1e-9),
     (Exponential(), 50, 0.9, 1e-90)],
)  # fmt: skip
def test_down_to_a_share(service, d, lam, tail):
    assert cavity_down_to(service, d, lam, tail).tail[-1] < tail or d == 50


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: cavity_down_to(Lomax(1.2), 2, 0.7, 1e-9), "choose a larger tail, or a law with"),
        (lambda: cavity_down_to(Exponential(), 2, 0.7, 0.0), "tail = 0 is out of range"),
        (lambda: deepest(Exponential(), 2, 1.7, 9), "lam"),
        (lambda: deepest(Exponential(), 0, 0.7, 9), "d = 0"),
        (lambda: deepest(Exponential(), 2, 0.7, 0), "levels = 0"),
        (lambda: share_with(Exponential(), 2, 0.7, 1.5), "jobs = 1.5"),
    ],
)
def test_bad_input_gets_one_sentence(call, words):
    with pytest.raises(ParameterError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)
