"""The three diffusions: closed forms, two schemes against each other, identities, convergence.

The simulated moments are z-tests on independent replicas. The threshold 5.5 gives 4e-8 a comparison
for a normal estimate; the file makes some 60. The seeds are fixed.
"""

import math

import numpy as np
import pytest
from oracles import JIT, counts_of, exact

from supermarket import ParameterError, Supermarket
from supermarket.limits.growing import stationary as growing_stationary
from supermarket.limits.growing.diffusions import (
    ExponentialOverflow,
    LinearOverflow,
    ReflectedOverflow,
    _linear_drift,
    effective_barrier,
    exponential,
    linear_autocorrelation,
    linear_covariance,
    paths,
)
from supermarket.limits.growing.stationary import (
    chain_moments,
    stationary_law,
    stationary_moments,
    waiting_share,
)

Z = 5.5
REPLICAS = 2000 if JIT else 100
LASTING = np.arange(10.0, 60.0 if JIT else 20.0, 1.0)


def moments_of(samples):
    """Return each replica's means of x, y, x^2, xy, y^2."""
    x, y = samples[..., 0], samples[..., 1]
    return np.stack([x, y, x * x, x * y, y * y], axis=-1).mean(axis=1)


def raw(moments):
    m1, m2, v1, c, v2 = moments
    return np.array([m1, m2, v1 + m1**2, c + m1 * m2, v2 + m2**2])


def z_scores(replicas, expected, bias=0.0):
    error = replicas.std(axis=0, ddof=1) / math.sqrt(len(replicas))
    off = np.abs(replicas.mean(axis=0) - expected)
    return np.maximum(off - bias, 0) / error


def test_the_linear_covariance_has_its_closed_form():
    for alpha in (0.5, 1.0, 2.0):
        closed = np.array([[2, alpha], [alpha, alpha**2]]) / (2 + alpha)
        assert np.allclose(linear_covariance(alpha), closed, atol=1e-15)
        assert np.allclose(linear_covariance(alpha, 1, 200.0), closed, atol=1e-12)
        assert np.allclose(
            stationary_moments(LinearOverflow(alpha))[2:], closed[np.triu_indices(2)]
        )
        assert linear_autocorrelation(alpha, [0.0]).tolist() == [[1.0, 1.0]]


@pytest.mark.parametrize("k", [1, 2])
def test_the_linear_covariance_solves_its_equation(k):
    """C' = A C + C A' + N, by central differences; and for k = 2 Var(Z_2 + Z_3) = 2 t."""
    for t in (0.3, 1.0, 7.0):
        before, now, after = (linear_covariance(0.7, k, t + e) for e in (-1e-4, 0, 1e-4))
        drift = _linear_drift(0.7, k)
        slope = drift @ now + now @ drift.T + np.diag([2.0, 0.0])
        assert np.allclose((after - before) / 2e-4, slope, atol=1e-7)
        if k == 2:
            assert abs(now.sum() - 2 * t) < 1e-12
    assert np.allclose(
        linear_covariance(1.0, 2, 1.0).ravel(), [1.055, 0.377, 0.377, 0.190], atol=1e-3
    )


def test_linear_paths_have_the_covariances_of_their_law():
    x = paths(LinearOverflow(1.0), [0.5, 2.0], seed=1, replicas=20 * REPLICAS, start=(0.5, -1.0))
    mean = x.mean(axis=0)
    for j, t in enumerate((0.5, 2.0)):
        values, vectors = np.linalg.eig(_linear_drift(1.0, 1))
        flow = (vectors * np.exp(values * t)) @ np.linalg.inv(vectors) @ [0.5, -1.0]
        assert z_scores(x[:, j], flow).max() < Z
        second = (x[:, j, :, np.newaxis] - flow[:, np.newaxis]) * (x[:, j] - flow)[:, np.newaxis]
        expected = linear_covariance(1.0, 1, t)
        assert z_scores(second, expected).max() < Z
    assert mean.shape == (2, 2)


@pytest.mark.parametrize(
    "overflow", [exponential(1.0, 1.0), exponential(0.5, 2.0), ReflectedOverflow(1.0)]
)
def test_two_schemes_agree_on_the_stationary_moments(overflow):
    """Simulation against the lattice, which shares no step with it."""
    x = paths(overflow, LASTING, seed=2, replicas=REPLICAS)
    bias = np.array([0, 2, 2, 3, 8]) * 1e-3  # of the step 0.02 and the lattice, see below
    assert z_scores(moments_of(x), raw(stationary_moments(overflow)), bias).max() < Z


def test_a_small_c_is_linear_and_a_large_one_reflects():
    near = stationary_moments(exponential(1.0, 0.01), 0.1)
    assert np.allclose(near, stationary_moments(LinearOverflow(1.0)), atol=5e-3)
    # c = 32: within what the effective barrier leaves out.
    soft = ExponentialOverflow(32.0, 1.0)
    hard = stationary_moments(ReflectedOverflow(effective_barrier(soft)), 0.1)
    assert np.allclose(stationary_moments(soft, 0.05), hard, atol=0.01)
    far = stationary_moments(ReflectedOverflow(1.0), 0.1)
    assert far.mean_2 - hard.mean_2 > 0.25  # without the displacement it would not do


@pytest.mark.parametrize(
    "overflow", [exponential(1.0, 1.0), ExponentialOverflow(8.0, 1.0), ReflectedOverflow(1.0)]
)
def test_the_lattice_keeps_the_identities_and_converges(overflow):
    law = stationary_law(overflow)
    moments = law.moments
    assert abs(law.mass.sum() - 1) < 1e-12
    assert abs(moments.mean_1) < 1e-4
    assert abs(moments.variance_1 + moments.covariance - 1) < 1e-3
    coarse, fine = stationary_moments(overflow, 0.2), stationary_moments(overflow, 0.1)
    assert np.allclose(coarse, fine, atol=0.01)


def test_all_that_overflows_arrives_where_hardly_anything_does():
    """E of the overflow is E Z_2, also where Z_2 is mostly at its lowest, which is one row."""
    c, barrier = overflow = ExponentialOverflow(2.0, 0.4)
    law = stationary_law(overflow, 0.1)
    out = (np.exp(c * (law.x - barrier)) - math.exp(-c * barrier)) / c
    # With half of it lost in the lowest row the two are 4e-4 apart.
    assert abs(law.mass.sum(axis=1) @ out / law.moments.mean_2 - 1) < 1e-4


def test_a_coarse_lattice_is_enough_for_a_smooth_barrier(monkeypatch):
    """Where c is small `chain_moments` takes longer steps: halved, they give the same."""
    for n, d in ((1000, 50), (10**4, 150), (10**4, 1000)):
        coarse = chain_moments(Supermarket(n, d, 0.97))
        with monkeypatch.context() as patch:
            patch.setattr(growing_stationary, "_SMOOTH", 0.0)
            patch.setattr(growing_stationary, "_ROUGH", 0.65)
            fine = chain_moments(Supermarket(n, d, 0.97))
        assert np.allclose(coarse, fine, rtol=2e-4, atol=1e-5)
        assert coarse != fine  # not the same lattice


def test_as_many_jobs_wait_as_queues_have_two():
    """The identity E beta(G_1) = E G_2 / lam on a small chain that is known exactly."""
    n, d, lam, longest = 3, 2, 0.6, 9
    states, _, law = exact(n, d, lam, True, longest)
    shares = np.array([counts_of(state, longest) for state in states]) / n
    assert abs(law @ shares[:, 1] ** d - law @ shares[:, 2] / lam) < 1e-3  # cut at length 9
    # In an endless system all d queues are busy with probability lam**d; in a small one more often.
    assert abs(waiting_share(Supermarket(10**14, 150, 0.97)) / 0.97**150 - 1) < 1e-3
    assert waiting_share(Supermarket(10**4, 150, 0.97)) > 1.3 * 0.97**150


def test_with_the_barrier_far_above_nothing_overflows():
    moments = stationary_moments(ReflectedOverflow(4.0), 0.1)
    assert np.allclose(moments, [0, 0, 1, 0, 0], atol=2e-3)


def test_the_reflected_scheme_without_drift_is_exact():
    """A reflected Brownian motion at time 1, from one step or from many: its mean is known.

    With k = 2 and y = 0, what is pushed feeds back, so one short step is looked at: from the
    barrier, pushed has the law of the maximum, of mean sqrt(4 h / pi).
    """
    h = 1e-4
    x = paths(ReflectedOverflow(0.0), [h], seed=3, replicas=50 * REPLICAS, k=2, step=h)[:, 0]
    mean = math.sqrt(4 * h / math.pi)
    assert z_scores(x[:, 1], mean, 1e-4 * mean).max() < Z
    assert z_scores(x[:, 0], -mean, 1e-4 * mean).max() < Z
    assert z_scores(x[:, 0] ** 2, 2 * h, 4e-4 * h).max() < Z


def test_long_steps_are_wrong_by_little_more_than_the_step():
    """Looking at the barrier at the ends of steps alone would miss 0.29 of the mean of Z_2."""
    x = paths(ReflectedOverflow(1.0), LASTING, seed=4, replicas=REPLICAS, step=0.1)
    expected = raw(stationary_moments(ReflectedOverflow(1.0), 0.1))
    assert z_scores(moments_of(x)[:, :3], expected[:3], 0.025).max() < Z


def test_most_queues_of_two_or_more_have_no_restoring_force():
    """Z_k + Z_{k+1} is sqrt(2) times a Brownian motion whatever the overflow."""
    for overflow in (LinearOverflow(1.0), exponential(1.0, 1.0), ReflectedOverflow(1.0)):
        x = paths(overflow, [1.0], seed=5, replicas=5 * REPLICAS, k=2)[:, 0].sum(axis=1)
        assert z_scores(x, 0.0).max() < Z
        assert z_scores(x**2, 2.0, 0.01).max() < Z


def test_paths_depend_on_the_seed_alone():
    for overflow in (LinearOverflow(1.0), exponential(1.0, 1.0), ReflectedOverflow(1.0)):
        one, same, other = (paths(overflow, [1.0, 2.0], seed=s, replicas=3) for s in (1, 1, 2))
        assert np.array_equal(one, same)
        assert not np.array_equal(one, other)
    barrier = paths(ReflectedOverflow(1.0), np.linspace(0, 5, 11), seed=1, replicas=100, step=0.5)
    assert barrier[..., 0].max() <= 1.0
    assert np.array_equal(barrier[:, 0], np.zeros((100, 2)))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: exponential(0.0, 1.0), "alpha"),
        (lambda: exponential(1.0, -1.0), "c = -1"),
        (
            lambda: paths(ReflectedOverflow(1.0), [1.0], seed=1, start=(2.0, 0.0)),
            "above the barrier",
        ),
        (lambda: paths(LinearOverflow(1.0), [2.0, 1.0], seed=1), "increasing list"),
        (lambda: paths(LinearOverflow(1.0), [], seed=1), "one at least"),
        (lambda: linear_covariance(1.0, 2), "time = inf"),
        (lambda: stationary_law(LinearOverflow(1.0)), "normal"),
        (lambda: stationary_moments(ReflectedOverflow(0.1)), "so low"),
        (lambda: stationary_moments(ReflectedOverflow(1.0), 0.5), "spacing"),
    ],
)
def test_a_wrong_argument_is_refused(call, words):
    with pytest.raises(ParameterError, match=words):
        call()
