"""Drifts against the chain's own matrix, the functions Q_j, and the linear noise.

A draw beyond Z = 5.5 standard errors is a false alarm of 4e-8.
"""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from oracles import JIT, counts_of, exact
from scipy.linalg import solve_continuous_lyapunov

from supermarket import (
    ParameterError,
    Schedule,
    Supermarket,
    fixed_point,
    k_lambda_d,
    relaxation_time,
    simulate,
)
from supermarket.limits.saturation.drifts import (
    drift,
    drift_matrix,
    drift_slopes,
    fit_drift,
    modes,
    stationary_covariance,
)
from supermarket.limits.saturation.slow_mode import modes_at_fixed_point
from supermarket.limits.saturation.theorem import fixed_point_shorter

Z = 5.5


# --- the exact drift -----------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "d", "lam"), [(3, 2, 0.7), (3, 3, 0.9), (4, 2, 0.5)])
def test_drift_is_that_of_the_chain_in_every_state(n, d, lam):
    """Equation (2.1), n (1 + lam) steps to the unit of time; every list of choices enumerated."""
    longest = 4
    states, matrix, _ = exact(n, d, lam, True, longest)
    counts = np.array([counts_of(state, longest) for state in states])
    expected = n * (1 + lam) * (matrix @ counts - counts)
    inside = counts[:, longest] == 0  # elsewhere the oracle loses an arrival
    assert drift(Supermarket(math.inf, d, lam), counts[inside]) == pytest.approx(
        expected[inside], abs=1e-12
    )
    assert drift(Supermarket(math.inf, d, lam), counts[0]).shape == (longest + 2,)


@pytest.mark.parametrize(
    "counts",
    [
        [10**17, 10**17 - 6_000_000, 10**17 - 48 * 10**12, 0],
        [10**17, 10**17 - 6_005_000, 10**17 - 48 * 10**9, 17, 0],
        [4 * 10**18, 4 * 10**18 - 1, 4 * 10**18 - 1, 3 * 10**18, 0],
    ],
)
def test_drift_keeps_its_digits_near_saturation(counts):
    d, lam = 8_000_000, 1 - 6e-11
    with localcontext() as context:
        context.prec = 80
        n, shares = counts[0], [Decimal(s) / counts[0] for s in counts]
        powers = [(d * u.ln()).exp() if u > 0 else Decimal(0) for u in shares]
        for i in range(1, len(counts)):
            above = Decimal(counts[i + 1]) if i + 1 < len(counts) else Decimal(0)
            joins = Decimal(lam) * n * (powers[i - 1] - powers[i])
            leaves = counts[i] - above
            size = float(joins + leaves)
            found = drift(Supermarket(math.inf, d, lam), counts)[i]
            assert found == pytest.approx(float(joins - leaves), abs=1e-14 * size + 1e-300)


def test_drift_of_the_number_of_jobs():
    """Arrivals less departures, whatever the state: the telescoping sum of (2.1)."""
    rng = np.random.default_rng(3)
    counts = np.sort(rng.integers(0, 10**6, (20, 6)), axis=1)[:, ::-1]
    counts = np.column_stack([np.full(20, 10**6), counts, np.zeros((20, 2), dtype=int)])
    jobs = drift(Supermarket(math.inf, 3, 0.8), counts)[:, 1:].sum(axis=1)
    assert jobs == pytest.approx(0.8 * 10**6 - counts[:, 1], rel=1e-9)


@pytest.mark.parametrize(
    "wrong", [[10, 11, 0], [10, 5], [10.0, 5.0, 0.0], [0, 0], [[[10, 5, 0]]], [0]]
)
def test_drift_refuses_what_is_no_state(wrong):
    with pytest.raises(ParameterError, match="counts"):
        drift(Supermarket(math.inf, 2, 0.5), wrong)


# --- A_k and Q_1, ..., Q_k -----------------------------------------------------------------------


def test_matrix_is_the_drift_linearised():
    """For few short queues and no long ones, (w_1..w_k) drifts by -A_k w + (1 - lam) e_k."""
    n, d, lam, k = 10**18, 1000, 1 - 1e-7, 3
    w = np.array([1e-8, 2e-7, 1.5e-1])  # d w_2 small, d w_3 large
    below = np.rint(n * w).astype(np.int64)
    found = -drift(Supermarket(math.inf, d, lam), [n, *(n - below), 0, 0])[1 : k + 1] / n
    linear = -drift_matrix(Supermarket(math.inf, d, lam), k) @ w + np.array([0, 0, 1 - lam])
    assert found == pytest.approx(linear, rel=3e-4)  # d w_2 = 2e-4


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("steep", [20, 100, 200])
def test_spectral_facts(steep, k):
    lam, d = 0.5, 2 * steep
    matrix, found = (
        drift_matrix(Supermarket(math.inf, d, lam), k),
        modes(Supermarket(math.inf, d, lam), k),
    )
    rates, coefficients = found.rates, found.coefficients
    assert np.linalg.det(matrix) == pytest.approx(1, rel=1e-6)
    assert np.prod(rates) == pytest.approx(1, rel=1e-12)
    eigenvalues = np.sort(np.linalg.eigvals(matrix).real)[::-1]
    assert rates == pytest.approx(eigenvalues, abs=1e-12 * steep)
    # The drift of each is one of itself and of the next.
    following = np.vstack([coefficients[1:], np.zeros(k)])
    error = -coefficients @ matrix - (following - rates[:, np.newaxis] * coefficients)
    assert np.abs(error).max() < 1e-10 * steep ** (k / 2 + 1)
    assert np.all(np.diag(coefficients) == 1)
    assert np.all(coefficients[np.tril_indices(k)] > 0)
    assert np.all(coefficients[np.triu_indices(k, 1)] == 0)
    if k > 1:
        scaled = rates[-1] * float(steep) ** (k - 1)
        assert scaled == pytest.approx(1, abs=2.2 / steep)
        i = np.arange(1, k + 1)
        shape = (1 - float(steep) ** -i) / (1 - float(steep) ** -k)
        assert coefficients[-1] == pytest.approx(shape, rel=1.2 / steep**2 * k)
        others = 1 + steep - 2 * math.sqrt(steep) * np.cos(np.pi * i[:-1] / k)
        assert np.sort(rates[:-1]) == pytest.approx(np.sort(others), abs=2.0)


def test_smallest_rate_keeps_its_digits():
    lam, d = 1 - 6e-11, 8_000_000
    rate = modes(Supermarket(math.inf, d, lam), 2).rates[1]
    s = 2 + lam * d
    assert rate == pytest.approx(2 / (s + math.sqrt(s * s - 4)), rel=1e-14, abs=0)
    # The nonlinear one differs by the factor pi(1)**(d-1), which is 1 - 4.8e-4.
    assert rate * relaxation_time(Supermarket(math.inf, d, lam)) == pytest.approx(
        (1 - 6e-11) ** (d - 1.0), rel=1e-6
    )
    assert modes(Supermarket(math.inf, 10**5, lam), 4).rates[3] * (lam * 1e5) ** 3 == pytest.approx(
        1, abs=3e-5
    )


def test_values_and_drifts_of_the_functions():
    n, d, lam, k = 10**15, 1000, 1 - 1e-8, 3
    found = modes(Supermarket(math.inf, d, lam), k)
    below = np.array([[10**7, 10**10, 10**13], [2 * 10**7, 10**10, 2 * 10**13]])
    counts = np.column_stack([np.full(2, n), n - below, [0, 1000], [0, 0]])
    q = found.values(counts)
    assert q == pytest.approx(below @ found.coefficients.T, rel=1e-14)
    slopes = found.drifts(counts, lam)
    assert slopes[0, 0] == pytest.approx(q[0, 1] - found.rates[0] * q[0, 0], rel=1e-12)
    assert slopes[0, 2] == pytest.approx(n * (1 - lam) - found.rates[2] * q[0, 2], rel=1e-9)
    source = slopes[1, 2] + found.rates[2] * q[1, 2]
    assert source == pytest.approx(n * (1 - lam) - 1000, rel=1e-9)
    # Against the exact drift, to first order in d w_2 = 1e-2.
    exactly = -drift(Supermarket(math.inf, d, lam), counts)[:, 1 : k + 1] @ found.coefficients.T
    scale = np.abs(found.rates * q)
    assert np.all(np.abs(slopes - exactly)[:, :2] < 2e-2 * scale[:, :2])
    assert found.values(counts[0, :2] * 0 + [n, 0]) == pytest.approx(
        n * found.coefficients.sum(axis=1)
    )


# --- the linear noise ----------------------------------------------------------------------------


@pytest.mark.parametrize(("d", "lam"), [(2, 0.7), (3, 0.95), (20, 0.97), (300, 1 - 1 / 3000)])
def test_covariance_against_a_library(d, lam):
    found = stationary_covariance(Supermarket(math.inf, d, lam))
    levels = len(found) - 1
    pi = fixed_point(Supermarket(math.inf, d, lam), levels + 1)
    a = lam * d * pi[1:-1] ** (d - 1)
    jacobian = -np.diag(1 + a) + np.diag(np.ones(levels - 1), 1) + np.diag(a[:-1], -1)
    noise = 2 * -np.diff(pi[1:])
    scale = np.sqrt(pi[1:-1])
    expected = solve_continuous_lyapunov(
        jacobian / scale[:, np.newaxis] * scale, -np.diag(noise / scale**2)
    )
    assert found[1:, 1:] / np.outer(scale, scale) == pytest.approx(expected, rel=1e-8, abs=1e-10)
    assert np.all(found[0] == 0)


def test_covariance_in_the_literal_regime():
    """Two levels: the three equations solved in fractions."""
    lam, d = 1 - 6e-11, 8_000_000
    found = stationary_covariance(Supermarket(math.inf, d, lam))
    assert found.shape == (3, 3)
    a = Fraction(lam * d * math.exp((d - 1) * math.log1p(-6e-11)))
    pi = [math.exp(e * math.log1p(lam - 1)) for e in (1, d + 1)]
    first = Fraction(2 * pi[0] * -math.expm1(d * math.log1p(lam - 1)))
    second = Fraction(2 * pi[1])
    # -2 (1+a) x + 2 y = -first; a x - (2+a) y + z = 0; 2 a y - 2 z = -second
    # z = a y + second/2; y = (a x + second/2) / 2
    x = (first + second / 2) / (2 * (1 + a) - a)
    y = (a * x + second / 2) / 2
    z = a * y + second / 2
    assert found[1, 1] == pytest.approx(float(x), rel=1e-6, abs=0)  # 1 - lam has 6 digits
    assert found[1, 2] == pytest.approx(float(y), rel=1e-6, abs=0)
    assert found[2, 2] == pytest.approx(float(z), rel=1e-6, abs=0)
    assert found[2, 2] == pytest.approx(
        1 / modes(Supermarket(math.inf, d, lam), 2).rates[1], rel=1e-3
    )


def test_covariance_against_the_chain():
    """Snapshots some relaxation times apart; a relative error of 20 % would be seen."""
    n, d, lam = (1000, 3, 0.8) if JIT else (300, 3, 0.8)
    samples = 2500 if JIT else 30
    tau = relaxation_time(Supermarket(math.inf, d, lam))
    times = 6 * tau * np.arange(samples)
    run = simulate(
        Supermarket(n, d, lam), Schedule(float(times[-1]) + 1, warmup=10 * tau, times=times), seed=5
    )
    predicted = stationary_covariance(Supermarket(math.inf, d, lam))
    for i in (1, 2, 3):
        found = n * np.var(run.path[:, i] / n, ddof=1)
        assert found == pytest.approx(predicted[i, i], rel=Z * math.sqrt(2 / samples) + 20 / n)


# --- drifts fitted to a path ---------------------------------------------------------------------


def linear_path(rng, rates, noise, source, h, steps):
    """Euler's scheme, whose increments have exactly the drift that is to be found."""
    normals = np.sqrt(h) * noise * rng.standard_normal((steps, 2))
    q = np.zeros((steps + 1, 2))
    for i in range(steps):
        q[i + 1, 0] = q[i, 0] + h * (q[i, 1] - rates[0] * q[i, 0]) + normals[i, 0]
        q[i + 1, 1] = q[i, 1] + h * (source - rates[1] * q[i, 1]) + normals[i, 1]
    return q


def test_fit_finds_the_drift_and_its_intervals_hold():
    """80 fits of three intervals of 95 %: 240, of which 12 +- 3.4 miss."""
    rng = np.random.default_rng(7)
    rates, source, h, steps = (4.0, 0.5), 30.0, 0.01, 4000
    missed = 0
    for _ in range(80):
        q = linear_path(rng, rates, np.array([3.0, 1.0]), source, h, steps)
        times = h * np.arange(steps + 1)
        first = fit_drift(times, q[:, 0], q[:, 1])
        second = fit_drift(times, q[:, 1])
        assert second.following is None
        for interval, true in ((first.own, -4.0), (first.following, 1.0), (second.own, -0.5)):
            missed += not interval.low <= true <= interval.high
    assert missed < 12 + Z * 3.4


def test_fit_against_plain_least_squares():
    rng = np.random.default_rng(8)
    q = linear_path(rng, (4.0, 0.5), np.array([3.0, 1.0]), 30.0, 0.01, 500)
    times = 0.01 * np.arange(501)
    found = fit_drift(times, q[:, 0], q[:, 1])
    regressors = np.column_stack([q[:-1], np.ones(500)]) * 0.01
    expected, *_ = np.linalg.lstsq(regressors, np.diff(q[:, 0]))
    parts = [found.own, found.following, found.constant]
    assert [part.estimate for part in parts] == pytest.approx(list(expected), rel=1e-9)
    errors = np.diff(q[:, 0]) - regressors @ expected
    covariance = errors @ errors / 497 * np.linalg.inv(regressors.T @ regressors)
    half = [(part.high - part.low) / 2 / 1.959964 for part in parts]
    assert half == pytest.approx(list(np.sqrt(np.diag(covariance))), rel=1e-5)


def test_fit_to_the_chain():
    """Q_1 and Q_2 of a path recorded at 3 hundredths of the fast relaxation time."""
    n, d, lam = 10**5, 20, 0.985
    k = k_lambda_d(Supermarket(math.inf, d, lam))
    assert k == 2
    found = modes(Supermarket(math.inf, d, lam), k)
    samples = 20000 if JIT else 150
    h = 0.03 / found.rates[0]
    times = h * np.arange(samples)
    run = simulate(
        Supermarket(n, d, lam), Schedule(float(times[-1]), warmup=0.0, times=times), seed=9
    )
    q = found.values(run.path)
    fit = fit_drift(times, q[:, 0], q[:, 1], confidence=1 - 1e-7)
    # The drift at the fixed point: lam d pi(1)**(d-1) is 0.75 of lam d.
    bent = (1 + lam * d * lam ** (d - 1)) / (1 + lam * d)
    assert fit.own.low < -found.rates[0] * bent < fit.own.high
    if JIT:
        assert fit.own.high < -found.rates[0] / 4


def test_fit_refuses():
    t, q = np.arange(20.0), np.arange(20.0) ** 2
    for wrong in ((t[:5], q[:5]), (t, q[:10]), (t, q, q[:10]), (t[::-1], q), (t, 0 * q)):
        with pytest.raises(ParameterError):
            fit_drift(*wrong)


def test_slopes_of_the_exact_drift_are_the_eigenvalues_where_it_is_linear():
    """States within 1e-4 of the fixed point: the functions of that point, not those of A_k."""
    lam, d, k, n = 1 - 2.5e-5, 100, 3, 10**15
    shorter = n * fixed_point_shorter(Supermarket(math.inf, d, lam), k)
    moves = 1 + 1e-4 * np.random.default_rng(1).uniform(-1, 1, (50, k))
    counts = np.zeros((50, k + 2), dtype=np.int64)
    counts[:, 0] = n
    counts[:, 1 : k + 1] = n - np.rint(shorter[1:] * moves)
    here = modes_at_fixed_point(Supermarket(math.inf, d, lam), k)
    slopes = drift_slopes(Supermarket(math.inf, d, lam), counts, here)
    assert np.diag(slopes) == pytest.approx(-here.rates, rel=2e-3)
    assert np.diag(slopes, 1)[: k - 1] == pytest.approx(1, rel=2e-3)
    assert np.abs(np.tril(slopes, -1)).max() < 2e-3 * lam * d
    assert np.all(slopes[:, k] == 0)  # no queue was longer than k
    assert abs(-slopes[0, 0] / modes(Supermarket(math.inf, d, lam), k).rates[0] - 1) > 0.05
    with pytest.raises(ParameterError, match="need at least 6 states"):
        drift_slopes(Supermarket(math.inf, d, lam), counts[:4], here)
