"""Limits driven by a given noise: against linear equations, the diffusion, and a chain."""

import math

import numba
import numpy as np
import pytest
from scipy.linalg import expm

from supermarket import ParameterError, Schedule, Supermarket, simulate
from supermarket.limits.growing.diffusions import (
    LinearOverflow,
    ReflectedOverflow,
    exponential,
    linear_covariance,
)
from supermarket.limits.growing.pathwise import driven, job_noise, moments_at, three_limits

JIT = not numba.config.DISABLE_JIT


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("alpha", [0.5, 2.0])
def test_without_noise_the_linear_limit_is_its_linear_equation(alpha, k):
    times = np.linspace(0, 2, 401)
    found = driven(
        LinearOverflow(alpha), times, np.zeros(401), seed=1, k=k, start=(1.0, -0.5), step=0.005
    )
    matrix = np.array([[-alpha - (k == 1), 1.0], [alpha, -1.0]])
    expected = np.array([expm(matrix * t) @ [1.0, -0.5] for t in times])
    # Second order in the step: halving it divides the error by four, and this is the bound at 5e-3.
    np.testing.assert_allclose(found, expected, atol=5e-5)
    rough = driven(
        LinearOverflow(alpha), times[::2], np.zeros(201), seed=1, k=k, start=(1.0, -0.5), step=1
    )
    assert np.abs(rough - expected[::2]).max() > 2 * np.abs(found - expected).max()


def test_queues_above_the_next_level_drain_into_it():
    times = np.linspace(0, 3, 601)
    found = driven(
        LinearOverflow(1.0), times, np.zeros(601), seed=1, start=(0.0, 0.0, 1.0), step=0.005
    )
    rate = np.array([[-2.0, 1.0, 0.0], [1.0, -1.0, 1.0], [0.0, 0.0, -1.0]])
    expected = np.array([expm(rate * t) @ [0.0, 0.0, 1.0] for t in times])[:, :2]
    np.testing.assert_allclose(found, expected, atol=5e-5)


def test_the_law_is_that_of_the_diffusion_where_the_noise_is_brownian():
    """Five standard errors of a second moment: a false alarm in 10^6 for each of three.

    Power: a noise 5 % too large moves them by 10 %, and the standard error is 1.2 % at most.
    """
    rows = 20000 if JIT else 2000
    times = np.linspace(0, 1, 21)
    rng = np.random.default_rng(3)
    steps = rng.normal(scale=math.sqrt(2 * 0.05), size=(rows, 20))
    noise = np.concatenate([np.zeros((rows, 1)), np.cumsum(steps, axis=1)], axis=1)
    z = driven(LinearOverflow(1.0), times, noise, seed=4, k=2, step=0.05)[:, -1]
    expected = linear_covariance(1.0, 2, 1.0)
    for i, j in ((0, 0), (0, 1), (1, 1)):
        products = z[:, i] * z[:, j]
        error = products.std() / math.sqrt(rows)
        assert abs(products.mean() - expected[i, j]) < 5 * error + 1e-3
    loud = driven(LinearOverflow(1.0), times, 1.05 * noise, seed=4, k=2, step=0.05)[:, -1, 0] ** 2
    if JIT:
        assert loud.mean() - expected[0, 0] > 5 * loud.std() / math.sqrt(rows)


def test_a_reflected_limit_never_passes_its_barrier_and_moves_what_is_pushed():
    noise = np.cumsum(np.random.default_rng(5).normal(scale=0.1, size=400))
    times = np.linspace(0, 2, 400)
    x, y = driven(ReflectedOverflow(0.3), times, noise, seed=6, start=(1.0, 0.0), step=0.005).T
    assert x.max() <= 0.3 + 1e-12
    assert (x[0], y[0]) == pytest.approx((0.3, 0.7))  # what is above is pushed at once
    assert np.all(y >= 0)


@pytest.mark.parametrize("limit", three_limits(0.8, 2.0).values(), ids=lambda x: type(x).__name__)
def test_what_overflows_is_not_lost(limit):
    """In the second level nothing draws the sum back: it moves as the noise does."""
    noise = np.cumsum(np.random.default_rng(5).normal(scale=0.2, size=200))
    times = np.linspace(0, 2, 200)
    found = driven(limit, times, noise, seed=6, k=2, start=(0.1, 0.7), step=0.004)
    assert np.abs(found[:, 1]).max() > 0.3
    np.testing.assert_allclose(found.sum(axis=1), 0.8 + noise - noise[0], atol=1e-12)


def test_between_given_times_the_noise_is_a_brownian_bridge():
    """Pinned to 0 at both ends, so that z_1 = -z_2, of a variance that an integral gives.

    5.5 standard errors, 4e-8. Power: noise of half the variance is 70 standard errors away.
    """
    rows, points = 40_000 if JIT else 400, (np.arange(400) + 0.5) / 400
    z = driven(LinearOverflow(1.0), [0.0, 1.0], np.zeros((rows, 2)), seed=8, k=2, step=0.01)[:, 1]
    np.testing.assert_allclose(z[:, 0], -z[:, 1], atol=1e-12)
    s, t = np.meshgrid(points, points)
    weight = np.exp(-2 * (1 - s) - 2 * (1 - t))
    variance = np.mean(weight * 2 * (np.minimum(s, t) - s * t))
    found = np.mean(z[:, 0] ** 2)
    assert found == pytest.approx(variance, rel=5.5 * math.sqrt(2 / rows) + 2e-3)


def test_the_noise_of_the_chain_is_its_martingale():
    """Against its definition, summed event by event as the records show it."""
    run = simulate(Supermarket(200, 2, 0.8), Schedule(50, times=np.linspace(0, 50, 501)), seed=1)
    found = job_noise(run.path, run.times, 0.8)
    jobs, busy = run.path[:, 1:].sum(axis=1), run.path[:, 1]
    total = 0.0
    for j in range(1, len(found)):
        served = (busy[j] + busy[j - 1]) / 2 * (run.times[j] - run.times[j - 1])
        came = 200 * 0.8 * (run.times[j] - run.times[j - 1])
        total += jobs[j] - jobs[j - 1] - came + served
        assert found[j] == pytest.approx(total / math.sqrt(200), abs=1e-9)
    # Its variance grows by 2 lam a unit: 500 squares, five standard errors of which are 0.32.
    squares = np.diff(found) ** 2 / 0.1
    assert squares.mean() == pytest.approx(1.6, abs=0.6)


def test_three_limits_have_one_slope_and_moments_are_those_of_the_limit():
    three = three_limits(0.5, 2.0)
    assert three["linear"] == LinearOverflow(0.5)
    assert three["exponential"] == exponential(0.5, 2.0)
    assert three["reflected"].barrier == pytest.approx(math.log(2) / 2)
    exact = linear_covariance(1.0, 2, 1.0)
    assert moments_at(LinearOverflow(1.0), 1.0) == pytest.approx(exact[[0, 0, 1], [0, 1, 1]])


@pytest.mark.parametrize(
    ("times", "noise", "options", "sentence"),
    [
        ([0.0, 0.0], [0.0, 0.0], {}, "times must be an increasing list"),
        ([0.0], [0.0], {}, "two at least"),
        ([0.0, 1.0], [0.0], {}, "does not belong to 2 times"),
        ([0.0, 1.0], [0.0, math.nan], {}, "noise must be a list of finite numbers"),
        ([0.0, 1.0], [0.0, 0.0], {"start": (1.0,)}, r"start of shape \(1,\)"),
        ([0.0, 1.0], [0.0, 0.0], {"step": 0.0}, "step = 0 is out of range"),
    ],
)
def test_bad_input_gets_one_sentence(times, noise, options, sentence):
    with pytest.raises(ParameterError, match=sentence):
        driven(LinearOverflow(1.0), times, noise, seed=1, **options)
    with pytest.raises(ParameterError, match="do not belong to 3 times"):
        job_noise([[10, 5, 0]], [0.0, 1.0, 2.0], 0.5)
