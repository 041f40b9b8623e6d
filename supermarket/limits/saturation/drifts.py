r"""Drifts near the fixed point: the matrix A_k, the functions Q_1, ..., Q_k, the linear noise.

Let w_i = 1 - u_i be the share of queues shorter than i, w_0 = 0. By (2.1) of Brightwell & Luczak,
arXiv:1201.5523, per mean service time

.. math::
    f_i(w) = (w_{i+1} - w_i) - \lambda\,(u_{i-1}^d - u_i^d),

n (1 + lam) steps of their chain. Everything here is written in the w_i: near saturation they are
tiny, and in the u_i all their digits would cancel. What goes beyond (2.1) is derived in this
project.

A jump moves one count by one, so the noise has no correlations. The Jacobian at the fixed point has
a_i = lam d pi(i)**(d-1) below the diagonal, 1 above it, and -(1 + a_i) on it. In units in which it
is symmetric it is -B B^T with B = I - (superdiagonal of the sqrt(a_i)), so its eigenvalues are
squares of singular values of a bidiagonal matrix, which are found with all their digits although
they span d**k.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from supermarket.estimate.intervals import Interval
from supermarket.models.jsq import Supermarket, numbers_of
from supermarket.validation import (
    ParameterError,
    arrival_rate,
    counts_of,
    instance,
    integer,
    numbers,
    real,
)

__all__ = ["drift", "drift_matrix", "drift_slopes", "modes", "stationary_covariance"]

_NEGLIGIBLE = 2.0**-60


def drift(model: Supermarket, counts: ArrayLike) -> NDArray[np.float64]:
    """Return the exact drift of the counts at a state, (2.1) for all levels at once.

    The drift of any linear functional sum_i c_i counts[i] is its product with `c`.

    Parameters
    ----------
    model : Supermarket
        Of exponential service; its n does not matter.
    counts : array_like, shape (levels,) or (m, levels)
        ``counts[..., i]`` is the number of queues with length at least i, the last one 0.

    Returns
    -------
    ndarray of float64, the shape of `counts`
        Mean change of each count in a mean service time; divide by n (1 + lam) for that in a step.

    Raises
    ------
    ParameterError
        If a parameter is out of range, or the counts increase or end above 0.

    Examples
    --------
    >>> from supermarket import Supermarket
    >>> from supermarket.limits.saturation.drifts import drift
    >>> shop = Supermarket(100, 2, 0.5)  # 19 of 100 pairs hold an idle server
    >>> drift(shop, [100, 90, 10, 0]).round(6).tolist()
    [0.0, -70.5, 30.0, 0.5]
    """
    _, d, lam = numbers_of(model, distinct=False)
    counts = _counts(counts)
    n = counts[..., :1].astype(np.float64)
    with np.errstate(divide="ignore"):
        # log(u_i**d), from the number of shorter queues where that is the smaller one.
        shorter = (counts[..., :1] - counts) / n
        logs = d * np.where(shorter < 0.5, np.log1p(-shorter), np.log(counts / n))
    joins = np.zeros_like(shorter)
    tiny = np.maximum(logs, -1e300)
    joins[..., 1:] = np.exp(tiny[..., :-1]) * -np.expm1(tiny[..., 1:] - tiny[..., :-1])
    leaves = counts - np.roll(counts, -1, axis=-1)
    leaves[..., 0] = 0
    leaves[..., -1] = 0
    return lam * n * joins - leaves


def drift_matrix(model: Supermarket, k: int) -> NDArray[np.float64]:
    r"""Return A_k: (w_1, ..., w_k) drifts by (0, ..., 0, 1 - lam - u_{k+1}) - A_k w.

    The linear approximation of section 2 of Brightwell & Luczak: u_i**d is taken as 1 - d w_i for
    i < k and as 0 for i = k. The paper's M_k is -A_k, up to transposition and a shift.

    Parameters
    ----------
    model : Supermarket
        Of exponential service; its n does not matter.
    k : int
        Number of levels, at least 1.

    Returns
    -------
    ndarray of float64, shape (k, k)
        Row i, column j: entry for w_{i+1}, w_{j+1}.

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> from supermarket import Supermarket
    >>> from supermarket.limits.saturation.drifts import drift_matrix
    >>> drift_matrix(Supermarket(1000, 20, 0.5), 3).tolist()
    [[11.0, -1.0, 0.0], [-10.0, 11.0, -1.0], [0.0, -10.0, 1.0]]
    """
    _, d, lam = numbers_of(model, fewest=2)
    steep = _linear(lam, d, k)
    diagonal = 1 + np.append(steep, 0.0)
    return np.diag(diagonal) - np.diag(np.ones(len(steep)), 1) - np.diag(steep, -1)


@dataclass(frozen=True)
class Modes:
    """The functions Q_j = n sum_i coefficients[j-1, i-1] w_i, j = 1..k, and their drifts.

    In the linear approximation, per mean service time,

        drift of Q_j = Q_{j+1} - rates[j-1] Q_j                for j < k,
        drift of Q_k = n (1 - lam - u_{k+1}) - rates[k-1] Q_k.

    Attributes
    ----------
    rates : ndarray of float64, shape (k,)
        The eigenvalues of A_k, decreasing; the last is about (lam d)**-(k-1), the others lam d.
    coefficients : ndarray of float64, shape (k, k)
        Lower triangular, positive, 1 on the diagonal.
    """

    rates: NDArray[np.float64]
    coefficients: NDArray[np.float64]

    def values(self, counts: ArrayLike) -> NDArray[np.float64]:
        """Return Q_1, ..., Q_k of counts of shape (levels,) or (m, levels); see `drift`."""
        counts = _counts(counts)
        k = len(self.rates)
        shorter = np.broadcast_to(counts[..., :1], (*counts.shape[:-1], k)).copy()
        inside = min(k, counts.shape[-1] - 1)
        shorter[..., :inside] -= counts[..., 1 : inside + 1]
        return shorter @ self.coefficients.T

    def drifts(self, counts: ArrayLike, lam: float) -> NDArray[np.float64]:
        """Return the drifts predicted for Q_1, ..., Q_k, per mean service time."""
        counts = _counts(counts)
        k = len(self.rates)
        q = self.values(counts)
        longer = counts[..., k + 1] if counts.shape[-1] > k + 1 else np.zeros(counts.shape[:-1])
        source = counts[..., 0] * (1 - arrival_rate(lam)) - longer
        return np.append(q[..., 1:], source[..., np.newaxis], axis=-1) - self.rates * q


def modes(model: Supermarket, k: int) -> Modes:
    """Return Q_1, ..., Q_k: the drift of each is one of itself and of the next.

    The paper's coefficients serve as bounds; these are exact for A_k. With its eigenvalues
    rho_1 > ... > rho_k and gamma_1 = (1, 0, ..., 0), gamma_{j+1} = gamma_j (rho_j I - A_k) has its
    support on the first j + 1 levels, and gamma_k is the positive left eigenvector of rho_k, by
    the theorem of Cayley and Hamilton.

    Parameters
    ----------
    model : Supermarket
        Of exponential service; its n does not matter.
    k
        As in `drift_matrix`.

    Returns
    -------
    Modes

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> from supermarket import Supermarket
    >>> from supermarket.limits.saturation.drifts import modes
    >>> modes(Supermarket(1000, 400, 0.5), 2).rates.round(6).tolist()
    [201.995049, 0.004951]
    """
    _, d, lam = numbers_of(model, fewest=2)
    steep = _linear(lam, d, k)
    found = modes_of(steep)
    rates, coefficients = found.rates, found.coefficients
    # The last one once more, from sums of positive terms.
    step, last = rates[-1], coefficients[-1]
    for i in range(len(rates) - 2, -1, -1):
        last[i] = last[i + 1] - step
        step = steep[i] * step + rates[-1] * last[i]
    return found


def stationary_covariance(model: Supermarket) -> NDArray[np.float64]:
    """Return n times the stationary covariance of the profile, in the linear noise approximation.

    The solution W of J W + W J^T + N = 0, with J the Jacobian at the fixed point and N diagonal,
    the rate of the jumps of each level.

    Parameters
    ----------
    model : Supermarket
        Of exponential service; its n does not matter.

    Returns
    -------
    ndarray of float64, shape (levels + 1, levels + 1)
        Entry i, j is n Cov(u_i, u_j), to leading order in 1 / n. Level 0 is constant. The levels
        end where they are coupled to the next below rounding.

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> from supermarket import Supermarket
    >>> from supermarket.limits.saturation.drifts import stationary_covariance
    >>> stationary_covariance(Supermarket(1000, 100, 0.999))[1:3, 1:3].round(3).tolist()
    [[0.012, 0.983], [0.983, 89.825]]
    """
    _, d, lam = numbers_of(model, fewest=2)
    steep = _steepness(lam, d)
    levels = len(steep) + 1
    exponents = np.cumsum(float(d) ** np.arange(levels + 1))
    pi = np.exp(exponents * log_of(lam))  # pi(1), ..., pi(levels + 1)
    leaves = pi[:-1] * -np.expm1(np.diff(exponents) * log_of(lam))
    scale = np.cumprod(np.append(1.0, np.sqrt(steep)))
    vectors, roots, _ = np.linalg.svd(_factor(steep))
    rates = roots**2
    inner = (vectors.T * (2 * leaves / scale**2)) @ vectors
    scaled = vectors @ (inner / (rates[:, np.newaxis] + rates)) @ vectors.T
    covariance = np.zeros((levels + 1, levels + 1))
    covariance[1:, 1:] = scale[:, np.newaxis] * scaled * scale
    return covariance


@dataclass(frozen=True)
class DriftFit:
    """A drift constant + own Q + following Q', per unit of time, fitted to a path.

    Attributes
    ----------
    own, following, constant : Interval
    """

    own: Interval
    following: Interval | None
    constant: Interval


def fit_drift(
    times: ArrayLike,
    q: ArrayLike,
    following: ArrayLike | None = None,
    confidence: float = 0.95,
) -> DriftFit:
    """Fit the drift of a function of a path as a linear function of itself and of another.

    Least squares of the increments over their durations, weighted by these. An increment's noise is
    independent of what was before it, and the intervals take its variance as constant. Over a
    duration h a rate rho shows as (1 - exp(-rho h)) / h: record the path at distances of some
    hundredths of 1 / rho.

    Parameters
    ----------
    times : array_like of float, shape (m,)
        Increasing.
    q, following : array_like of float, shape (m,)
        Such as Q_j and Q_{j+1} (see `Modes.values`); the second may be left out, as for Q_k.
    confidence : float
        In (0, 1), of each interval.

    Returns
    -------
    DriftFit
        The slopes per unit of `times`; the intervals are normal ones, for long paths.

    Raises
    ------
    ParameterError
        If the arrays differ in length or have fewer than 10 entries, the times do not increase, or
        a regressor is constant.
    """
    from scipy.special import ndtri

    confidence = real("confidence", confidence, 0.0, 1.0, open_low=True, open_high=True)
    times, q = numbers("times", times), numbers("q", q)
    columns = [q] if following is None else [q, numbers("following", following)]
    if times.ndim != 1 or len(times) < 10 or any(x.shape != times.shape for x in columns):
        raise ParameterError("times and functions must be lists of one length, at least 10.")
    steps = np.diff(times)
    if not np.all(steps > 0):
        raise ParameterError("times must increase.")
    # Centred and scaled, so that a small wandering about a large mean keeps its digits.
    means = [x[:-1].mean() for x in columns]
    spreads = [x[:-1].std() for x in columns]
    if min(spreads) == 0:
        raise ParameterError("a function that is constant along the path has no slope.")
    moved = [(x[:-1] - m) / s for x, m, s in zip(columns, means, spreads, strict=True)]
    regressors = np.column_stack([*moved, np.ones(len(steps))]) * np.sqrt(steps)[:, np.newaxis]
    increments = np.diff(q) / np.sqrt(steps)
    inverse = np.linalg.pinv(regressors)
    fitted = inverse @ increments
    left = increments - regressors @ fitted
    variance = (left @ left) / (len(left) - len(fitted))
    transform = np.diag([*(1 / np.array(spreads)), 1.0])
    transform[-1, :-1] = -np.array(means) / spreads
    slopes = transform @ fitted
    covariance = variance * transform @ (inverse @ inverse.T) @ transform.T
    half = ndtri((1 + confidence) / 2) * np.sqrt(np.diag(covariance))
    own, *others, constant = (
        Interval(float(x), float(x - e), float(x + e), confidence)
        for x, e in zip(slopes, half, strict=True)
    )
    return DriftFit(own, others[0] if others else None, constant)


def drift_slopes(model: Supermarket, counts: ArrayLike, functions: Modes) -> NDArray[np.float64]:
    """Return how the exact drifts of Q_1, ..., Q_k follow Q_1, ..., Q_k where a path has been.

    Least squares over the states of a path, with a constant. The drift (2.1) of a state is the mean
    of the next increment, without its noise: the slopes are far more precise than from the path's
    own increments (`fit_drift`), and have no error but what is not linear.

    Parameters
    ----------
    model : Supermarket
        Of exponential service; its n does not matter.
    counts : array_like of int, shape (m, levels)
        States, as in `drift`; some more than k + 2 different ones.
    functions : Modes
        Q_1, ..., Q_k.

    Returns
    -------
    ndarray of float64, shape (k, k + 1)
        Entry [i, j]: how much the drift of Q_{i+1}, per mean service time, grows with Q_{j+1}; in
        the last column, with the number of queues longer than k.

    Raises
    ------
    ParameterError
        If a parameter is out of range, or there are too few states.

    Examples
    --------
    >>> from supermarket import Schedule, Supermarket, drift_slopes, modes, simulate
    >>> shop = Supermarket(10**5, 20, 0.99)
    >>> run = simulate(shop, Schedule(20, times=range(21)), seed=1)
    >>> slopes = drift_slopes(shop, run.path, modes(shop, 1))
    >>> slopes.shape
    (1, 2)
    """
    counts, k = _counts(counts), len(instance("functions", functions, Modes, "use modes").rates)
    if counts.ndim != 2 or len(counts) < k + 3:
        raise ParameterError(f"slopes for {k} functions need at least {k + 3} states.")
    values = functions.values(counts)
    room = max(k + 2 - counts.shape[1], 0)
    longer = np.pad(counts, ((0, 0), (0, room)))[:, k + 1]
    moves = np.pad(drift(model, counts), ((0, 0), (0, room)))[:, 1 : k + 1]
    drifts = -moves @ functions.coefficients.T  # Q_j counts queues that are shorter
    regressors = np.column_stack([values, longer]).astype(np.float64)
    regressors -= regressors.mean(axis=0)
    spreads = regressors.std(axis=0)
    seen = spreads > 0  # perhaps no queue was longer than k
    slopes = np.zeros((k + 1, k))
    slopes[seen] = np.linalg.lstsq(
        regressors[:, seen] / spreads[seen], drifts - drifts.mean(axis=0), rcond=None
    )[0]
    slopes[seen] /= spreads[seen, np.newaxis]
    return slopes.T


def log_of(lam: float) -> float:
    """Return log lam, precise near 0 and near 1: 1 - lam is exact from 1/2 on."""
    return math.log1p(-(1 - lam)) if lam >= 0.5 else math.log(lam)


def modes_of(steep: NDArray[np.float64]) -> Modes:
    """Return Q_1, ..., Q_k for the matrix with this below its diagonal; see `modes`."""
    k = len(steep) + 1
    matrix = np.diag(1 + np.append(steep, 0.0)) - np.diag(np.ones(k - 1), 1) - np.diag(steep, -1)
    # Squares of singular values, which keep their digits (see the module's text).
    rates = np.linalg.svd(_factor(steep), compute_uv=False) ** 2
    coefficients = np.eye(k)
    with np.errstate(over="ignore", invalid="ignore"):
        for j in range(k - 1):
            coefficients[j + 1] = coefficients[j] @ (rates[j] * np.eye(k) - matrix)
            if not np.all(np.isfinite(coefficients[j + 1])):
                raise ParameterError(
                    f"k = {k} functions with rates from {rates[-1]:.2g} to {rates[0]:.2g} have "
                    "coefficients beyond the largest double: choose a smaller k or d."
                )
    return Modes(rates, coefficients)


def _counts(counts: ArrayLike) -> NDArray[np.int64]:
    counts = counts_of(counts)
    if counts.shape[-1] < 2 or np.any(counts[..., -1] != 0):
        raise ParameterError("counts must end in 0, at the first level that no queue has reached.")
    return counts


def _linear(lam: float, d: int, k: int) -> NDArray[np.float64]:
    """Return lam d, k - 1 times: what is below the diagonal of -A_k."""
    return np.full(integer("k", k, 1, 1000) - 1, lam * d)


def _steepness(lam: float, d: int) -> NDArray[np.float64]:
    """Return lam d pi(i)**(d-1) for i = 1, 2, ..., up to the last that is not negligible."""
    steep, exponent = [], 1.0
    while (last := lam * d * math.exp((d - 1) * exponent * log_of(lam))) > _NEGLIGIBLE:
        steep.append(last)
        exponent = 1 + d * exponent
    return np.array(steep)


def _factor(steep: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return B of the module's text."""
    return np.eye(len(steep) + 1) - np.diag(np.sqrt(steep), 1)
