r"""The three diffusions of JSQ with a growing number of choices, simulated.

With d_n choices of n queues and arrival rate lam_n near 1, let Z_i = sqrt(n) (G_i - mu_i) be the
fluctuations of the share of queues with at least i jobs about its near-equilibrium value
(`supermarket.limits.growing.centre`). Most queues have k jobs, and for large n

.. math::
    dZ_k = (Z_{k+1} - 1_{k=1} Z_k)\,dt + \sqrt 2\,dB - dL, \qquad dZ_{k+1} = -Z_{k+1}\,dt + dL,

where L counts the jobs that overflow from level k to the next. S. Bhamidi, A. Budhiraja and
M. Dewaskar (arXiv:2006.03621) find a linear diffusion for d_n / sqrt(n) -> 0, one with an
exponential drift for d_n / sqrt(n) -> c, and one reflected at a barrier for d_n / sqrt(n) ->
infinity. The formulas are derived in this project.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import ArrayLike, NDArray

from supermarket.kernels.compiled import kernel
from supermarket.validation import (
    ParameterError,
    affordable,
    increasing_times,
    instance,
    integer,
    listed,
    real,
    seed_of,
)

__all__ = ["ReflectedOverflow", "effective_barrier", "exponential", "linear_covariance", "paths"]


class LinearOverflow(NamedTuple):
    """Overflow dL = alpha Z_k dt, for d_n / sqrt(n) -> 0; alpha > 0."""

    alpha: float


class ExponentialOverflow(NamedTuple):
    """Overflow dL = (exp(c (Z_k - barrier)) - exp(-c barrier)) / c dt, a soft barrier; c > 0.

    Its slope at 0 is alpha = exp(-c barrier): see `exponential`. As c grows it turns into a
    reflecting barrier, but slowly: see `effective_barrier`.
    """

    c: float
    barrier: float


class ReflectedOverflow(NamedTuple):
    """L grows only at Z_k = barrier and keeps Z_k from exceeding it; d_n / sqrt(n) -> infinity.

    Examples
    --------
    >>> from supermarket import ReflectedOverflow, stationary_law
    >>> float(stationary_law(ReflectedOverflow(barrier=0.5)).x[-1])  # the largest Z_1
    0.5
    """

    barrier: float


Overflow = LinearOverflow | ExponentialOverflow | ReflectedOverflow

HUGE = 1e100  # so that squares and quotients of parameters stay finite
MOST_UNITS = 1e15  # of time: beyond, doubling an interval rounds away what happens in it
MOST_STEPS, MOST_PATHS = 1e8, 20  # steps of so many paths: some minute at most


def overflow_of(given: object, kinds: tuple[type, ...] = ()) -> Overflow:
    """Return an overflow, of one of these kinds, with its numbers checked."""
    kinds = kinds or (LinearOverflow, ExponentialOverflow, ReflectedOverflow)
    overflow = instance("overflow", given, kinds, "make one of these")
    ranges = {"barrier": (-HUGE, HUGE), "alpha": (1 / HUGE, HUGE), "c": (1 / HUGE, HUGE)}
    each = {name: real(name, x, *ranges[name]) for name, x in overflow._asdict().items()}
    if "c" in each and -each["c"] * each["barrier"] > 700:
        raise ParameterError(
            f"barrier = {each['barrier']:g} with c = {each['c']:g} makes the slope exp(-c barrier) "
            "more than a double holds: choose a higher barrier."
        )
    return type(overflow)(**each)


def steps_of(overflow: Overflow, length: float, step: float, paths: int) -> None:
    """Refuse a number of steps that would take too long."""
    if isinstance(overflow, LinearOverflow):
        return
    per_unit = 1 / max(step, 1 / HUGE)
    if isinstance(overflow, ExponentialOverflow):  # within 1 / c of the barrier there are c**2
        per_unit += 10 * overflow.c
    told = f"{paths} paths of length {length:g} with {per_unit:.2g} steps a unit of time"
    steps = max(paths / MOST_PATHS, 1.0) * length * per_unit
    affordable(told, steps, "choose fewer, or a longer step", MOST_STEPS, "steps")


def exponential(alpha: float, c: float) -> ExponentialOverflow:
    """Return the overflow dL = (alpha / c) (exp(c Z_k) - 1) dt, for d_n / sqrt(n) -> c.

    Raises
    ------
    ParameterError
        If alpha or c is not above 0.

    Examples
    --------
    >>> from supermarket.limits.growing.diffusions import exponential
    >>> round(exponential(0.5, 2.0).barrier, 4)
    0.3466
    """
    alpha = real("alpha", alpha, 0.0, open_low=True)
    c = real("c", c, 1 / HUGE, HUGE)
    return overflow_of(ExponentialOverflow(c, -math.log(alpha) / c))


def effective_barrier(soft: ExponentialOverflow) -> float:
    r"""Return where a reflecting barrier has the same effect as a soft one, as c grows.

    Near the barrier Z_k is fast, and its density is in balance with the overflow: as far as
    sqrt(2) dB and the drift alone matter it is proportional to exp(-e^{c (z - b)} / c^2). A
    reflecting barrier that leaves the same room stands at

    .. math:: b + \frac{2 \log c - \gamma}{c}, \qquad \gamma = 0.5772\ldots \text{ (Euler's)}.

    The error is of smaller order than 1 / c (derived in this project).

    Examples
    --------
    >>> from supermarket import effective_barrier, exponential
    >>> round(effective_barrier(exponential(1.0, 2.0)), 4)
    0.4045
    """
    soft = overflow_of(soft, (ExponentialOverflow,))
    return soft.barrier + (2 * math.log(soft.c) - np.euler_gamma) / soft.c


def linear_covariance(alpha: float, k: int = 1, time: float = math.inf) -> NDArray[np.float64]:
    r"""Return the covariance matrix of (Z_k, Z_{k+1}) with linear overflow, after a start at 0.

    For k = 1 it tends to 1 / (2 + alpha) times ((2, alpha), (alpha, alpha^2)).

    Parameters
    ----------
    alpha : float
        Positive.
    k : int
        Length of most queues.
    time : float
        In mean service times; for k > 1 finite, since Z_k + Z_{k+1} is sqrt(2) times a Brownian
        motion.

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> from supermarket.limits.growing.diffusions import linear_covariance
    >>> linear_covariance(1.0).round(6).tolist()
    [[0.666667, 0.333333], [0.333333, 0.333333]]
    """
    from scipy.linalg import expm

    alpha = real("alpha", alpha, 1 / HUGE, HUGE)
    k, time = integer("k", k, 1), _time(time)
    if math.isinf(time) and k == 1:
        return np.array([[2.0, alpha], [alpha, alpha**2]]) / (2 + alpha)
    if not time * (2 + alpha) < MOST_UNITS:
        raise ParameterError(
            f"time = {time:g} with alpha = {alpha:g} is out of range: choose (2 + alpha) time "
            f"below {MOST_UNITS:.0e}."
        )
    # Van Loan: the integral of exp(A s) N exp(A' s) from the exponential of one larger matrix, over
    # a short time, which is then doubled.
    drift, noise = _linear_drift(alpha, k), np.diag([2.0, 0.0])
    doublings = max(0, math.ceil(math.log2(max(time * (2 + alpha), 1.0))))
    block = expm(time / 2**doublings * np.block([[-drift, noise], [np.zeros((2, 2)), drift.T]]))
    flow = block[2:, 2:].T
    covariance = flow @ block[:2, 2:]
    for _ in range(doublings):
        covariance = covariance + flow @ covariance @ flow.T
        flow = flow @ flow
    return covariance


def linear_autocorrelation(alpha: float, lags: ArrayLike) -> NDArray[np.float64]:
    """Return the stationary autocorrelations of Z_1 and Z_2 with linear overflow, k = 1.

    Parameters
    ----------
    alpha : float
        Positive.
    lags : array_like of float, shape (m,)
        In mean service times, none below 0.

    Returns
    -------
    ndarray of float64, shape (m, 2)
    """
    from scipy.linalg import expm

    covariance = linear_covariance(alpha)
    drift = _linear_drift(alpha, 1)
    later = np.array([np.diag(expm(drift * lag) @ covariance) for lag in np.atleast_1d(lags)])
    return later / np.diag(covariance)


def _time(given: float) -> float:
    known = isinstance(given, float) and given == math.inf
    return math.inf if known else real("time", given, 0.0)


def _linear_drift(alpha: float, k: int) -> NDArray[np.float64]:
    return np.array([[-alpha - (k == 1), 1.0], [alpha, -1.0]])


def paths(
    overflow: Overflow,
    times: ArrayLike,
    *,
    seed: int | SeedSequence,
    replicas: int = 1000,
    k: int = 1,
    start: tuple[float, float] = (0.0, 0.0),
    step: float = 0.02,
) -> NDArray[np.float64]:
    """Simulate (Z_k, Z_{k+1}) and return it at given times.

    Linear: exact at these times, whatever the step. Exponential: the overflow alone and the rest
    alone both have an exact solution; half a step of the first, one of the second, half a step of
    the first, so that moments are off by the order of step**2 (Strang). The step is cut near the
    barrier to a fraction of 1 / c**2. Reflected: what is pushed in a step is the excess of the
    path's maximum, drawn from the law of the maximum of a Brownian bridge [1]_; moments are off by
    the order of the step, the stationary mean of Z_2 by 0.2 steps with the barrier at 1. Looking at
    the barrier only at the end of each step is wrong by the order of its root: 0.17 at 0.02.

    Parameters
    ----------
    overflow : LinearOverflow, ExponentialOverflow or ReflectedOverflow
    times : array_like of float, shape (m,)
        In mean service times, increasing, none below 0.
    seed : int or SeedSequence
        Fixes the result together with the other parameters.
    replicas : int
        Number of independent paths.
    k : int
        Length of most queues: 1, or more.
    start : (float, float)
        (Z_k, Z_{k+1}) at time 0, the first not above a reflecting barrier.
    step : float
        Longest step, in mean service times.

    Returns
    -------
    ndarray of float64, shape (replicas, m, 2)

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    References
    ----------
    .. [1] S. Asmussen, P. Glynn and J. Pitman, "Discretization error in simulation of
       one-dimensional reflecting Brownian motion", Annals of Applied Probability 5 (1995) 875.

    Examples
    --------
    >>> from supermarket.limits.growing.diffusions import ReflectedOverflow, paths
    >>> found = paths(ReflectedOverflow(1.0), [1.0, 2.0], seed=1, replicas=10)
    >>> found.shape, bool(found[:, :, 0].max() <= 1.0)
    ((10, 2, 2), True)
    """
    overflow, times = overflow_of(overflow), increasing_times(times)
    replicas = integer("replicas", replicas, 1)
    affordable(f"replicas = {replicas}", 2.0 * replicas * len(times), "choose fewer")
    back = 1.0 if integer("k", k, 1) == 1 else 0.0
    x, y = (real("start", value) for value in listed("start", start, 2))
    step = real("step", step, 0.0, open_low=True)
    steps_of(overflow, float(times[-1]), step, replicas)
    rng = np.random.default_rng(seed_of(seed))
    found = np.empty((replicas, len(times), 2))
    if isinstance(overflow, ReflectedOverflow):
        barrier = overflow.barrier
        if x > barrier:
            raise ParameterError(
                f"start = {x:g} lies above the barrier {barrier:g}: start at or below it."
            )
        _reflected(rng, barrier, back, x, y, times, step, found)
    elif isinstance(overflow, ExponentialOverflow):
        effective = effective_barrier(overflow)
        _exponential(rng, overflow, effective, back, (x, y), times, step, found)
    else:
        _linear(rng, overflow.alpha, k, x, y, times, found)
    return found


def _linear(
    rng: np.random.Generator,
    alpha: float,
    k: int,
    x: float,
    y: float,
    times: NDArray[np.float64],
    found: NDArray[np.float64],
) -> None:
    """Draw every next state from its normal law given the one before."""
    from scipy.linalg import expm

    drift = _linear_drift(alpha, k)
    now, before = np.tile([x, y], (len(found), 1)), 0.0
    for j, time in enumerate(times):
        values, vectors = np.linalg.eigh(linear_covariance(alpha, k, time - before))
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        now = now @ expm(drift * (time - before)).T + rng.normal(size=now.shape) @ root.T
        found[:, j], before = now, time


@kernel(nogil=True)
def _exponential(
    rng: np.random.Generator,
    overflow: ExponentialOverflow,
    effective: float,
    back: float,
    start: tuple[float, float],
    times: NDArray[np.float64],
    step: float,
    found: NDArray[np.float64],
) -> None:
    """Strang's splitting; x = Z_k, y = Z_{k+1}."""
    c, barrier = overflow
    for path in found:
        (x, y), now = start, 0.0
        for j in range(len(times)):
            while now < times[j]:
                distance = max(effective - x, 1.0 / c)
                h = min(step, 0.1 * distance * distance)
                if now + h >= times[j]:
                    h = times[j] - now
                    now = times[j]
                else:
                    now += h
                x, y = overflowed(x, y, c, barrier, h / 2)
                # The rest is linear: x' = y - back x + noise, y' = -y.
                fall = math.exp(-h)
                if back == 1.0:
                    x = fall * (x + h * y) + math.sqrt(1.0 - fall * fall) * rng.standard_normal()
                else:
                    x += (1.0 - fall) * y + math.sqrt(2.0 * h) * rng.standard_normal()
                y *= fall
                x, y = overflowed(x, y, c, barrier, h / 2)
            path[j, 0], path[j, 1] = x, y


@kernel(nogil=True)
def overflowed(x: float, y: float, c: float, barrier: float, h: float) -> tuple[float, float]:
    """Solve x' = -(e^{c (x - barrier)} - e^{-c barrier}) / c, y' = -x' over a time h.

    w = e^{-c (x - barrier)} solves the linear equation w' = 1 - alpha w, alpha = e^{-c barrier}.
    """
    alpha = math.exp(-c * barrier)
    gained = -math.expm1(-alpha * h) / alpha if alpha > 1e-12 else h
    # log w(h) - log w(0); where w(0) overflows, x is far below the barrier and nothing happens.
    depth = c * (x - barrier)
    if depth > 0.0:
        change = depth + math.log(math.exp(-depth - alpha * h) + gained)
    else:
        change = math.log(math.exp(-alpha * h) + gained * math.exp(depth))
    return x - change / c, y + change / c


@kernel(nogil=True)
def _reflected(
    rng: np.random.Generator,
    barrier: float,
    back: float,
    x_start: float,
    y_start: float,
    times: NDArray[np.float64],
    step: float,
    found: NDArray[np.float64],
) -> None:
    """Step freely, then push by what the maximum of the path in between was above the barrier."""
    for path in found:
        x, y, now = x_start, y_start, 0.0
        for j in range(len(times)):
            steps = math.ceil((times[j] - now) / step)
            h = (times[j] - now) / max(steps, 1)
            fall, half = math.exp(-h), math.exp(-h / 2)
            spread = math.sqrt(1.0 - fall * fall) if back == 1.0 else math.sqrt(2.0 * h)
            for _ in range(steps):
                free = (fall if back == 1.0 else 1.0) * x + (1.0 - fall) * half * y
                free += spread * rng.standard_normal()
                rise = free - x
                exponential = rng.standard_exponential()
                highest = (x + free + math.sqrt(rise * rise + 4.0 * h * exponential)) / 2
                # Pushed half a step ago on average: since then a part of it has come back.
                pushed = max(highest - barrier, 0.0)
                x = free - pushed + (1.0 + back) * (1.0 - half) * pushed
                y = fall * y + half * pushed
                again = max(x - barrier, 0.0)
                x -= again
                y += again
            now = times[j]
            path[j, 0], path[j, 1] = x, y
