r"""The diffusions of growing choices, driven by the noise of a chain that was run.

The number of jobs in the chain grows by arrivals and shrinks by departures. What of it is not
drift is a martingale,

.. math::
    W(t) = \sqrt n \Big[\sum_i G_i(t) - \sum_i G_i(0) - \lambda t + \int_0^t G_1(s)\,ds\Big],

whose variance grows by 2 a unit of time as the arrival rate tends to 1. Overflow from one level to
the next leaves the sum alone, so no rule of choice enters W. Fed with sqrt(2) dB = dW, each of the
limits of `supermarket.limits.growing.diffusions` has a path that can be laid beside the chain's:
their distance vanishes, as n grows, for the right limit and for no other. And a mean over the
chain is known much better from its difference to that of the driven limit, whose law is known, than
by itself (derived in this project).
"""

import math
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import ArrayLike, NDArray

from supermarket.kernels.compiled import kernel
from supermarket.limits.growing.diffusions import (
    ExponentialOverflow,
    LinearOverflow,
    Overflow,
    ReflectedOverflow,
    exponential,
    linear_covariance,
    overflow_of,
    overflowed,
    paths,
    steps_of,
)
from supermarket.validation import (
    ParameterError,
    counts_of,
    increasing_times,
    integer,
    numbers,
    real,
    seed_of,
)

__all__ = ["driven", "job_noise", "mean_at", "moments_at", "three_limits"]

Floats = NDArray[np.float64]


def job_noise(counts: ArrayLike, times: ArrayLike, lam: float) -> Floats:
    r"""Return the martingale W of the number of jobs, from recorded counts.

    Parameters
    ----------
    counts : array_like of int, shape (m, levels)
        Numbers of queues with length at least 0, 1, ..., as in the `path` of a simulation.
    times : array_like of float, shape (m,)
        When they were recorded, in mean service times, evenly spaced or not.
    lam : float
        Arrival rate per queue.

    Returns
    -------
    ndarray of float64, shape (m,)
        W in units of 1 / sqrt(n), 0 at the first time. The integral is that of the trapezoid rule:
        with records h apart it misses an independent error of variance h^3 / 6 each time.

    Raises
    ------
    ParameterError
        If the shapes do not agree, or times do not increase.

    Examples
    --------
    >>> from supermarket.limits.growing.pathwise import job_noise
    >>> still = [[100, 90, 10], [100, 90, 10], [100, 90, 10]]
    >>> abs(job_noise(still, [0.0, 1.0, 2.0], lam=0.9)).round(12).tolist()
    [0.0, 0.0, 0.0]
    """
    counts, times = counts_of(counts), _increasing(times)
    if counts.ndim != 2 or len(counts) != len(times) or counts.shape[1] < 2:
        raise ParameterError(
            f"counts of shape {counts.shape} do not belong to {len(times)} times: give a row for "
            "each, with the counts of level 0, 1, and more."
        )
    lam = real("lam", lam, 0.0)
    n = int(counts[0, 0])
    # Whole numbers first: the sum has as many digits as n.
    jobs = counts[:, 1:].sum(axis=1)
    idle = n - counts[:, 1]
    # The integral of G_1 less lam t is that of (1 - lam) - (idle share).
    drift = np.diff(times) * ((1 - lam) - (idle[1:] + idle[:-1]) / (2 * n))
    return ((jobs - jobs[0]) / n + np.append(0.0, np.cumsum(drift))) * math.sqrt(n)


def driven(
    overflow: Overflow,
    times: ArrayLike,
    noise: ArrayLike,
    *,
    seed: int | SeedSequence,
    k: int = 1,
    start: ArrayLike = (0.0, 0.0),
    step: float = 0.01,
) -> Floats:
    r"""Return the paths of (Z_k, Z_{k+1}) that a given noise drives.

    Between the times at which the noise is given a Brownian bridge is drawn, so the path has the
    law of the diffusion if the noise has that of sqrt(2) B. The schemes are those of
    `supermarket.limits.growing.diffusions.paths`, errors of the order of step**2 (linear,
    exponential) and step (reflected). From a start above level k + 1, Z_{k+2} decays as exp(-t) and
    flows into Z_{k+1}.

    Parameters
    ----------
    overflow : LinearOverflow, ExponentialOverflow or ReflectedOverflow
    times : array_like of float, shape (m,)
        Increasing.
    noise : array_like of float, shape (m,) or (replicas, m)
        sqrt(2) B at these times, such as `job_noise`; only its increments count.
    seed : int or SeedSequence
        For what happens between the times.
    k : int
        Length of most queues: 1, or more.
    start : array_like of float, shape (2,), (3,), (replicas, 2) or (replicas, 3)
        Z_k, Z_{k+1} and, if given, Z_{k+2} at the first time. What is above a reflecting barrier is
        pushed to the next level at once.
    step : float
        Longest step.

    Returns
    -------
    ndarray of float64, shape (m, 2) or (replicas, m, 2)

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from supermarket.limits.growing.diffusions import ReflectedOverflow
    >>> from supermarket.limits.growing.pathwise import driven
    >>> found = driven(ReflectedOverflow(1.0), [0.0, 1.0, 2.0], [0.0, 3.0, 3.0], seed=1)
    >>> found.shape, bool(found[:, 0].max() <= 1.0)
    ((3, 2), True)
    """
    times, noise = _increasing(times), numbers("noise", noise)
    rows = np.atleast_2d(noise)
    if rows.ndim != 2 or rows.shape[1] != len(times):
        raise ParameterError(
            f"noise of shape {noise.shape} does not belong to {len(times)} times: give finite "
            "numbers, one for each time."
        )
    step = real("step", step, 0.0, open_low=True)
    begun = numbers("start", start)
    if begun.shape[-1:] not in ((2,), (3,)) or begun.shape[:-1] not in ((), (len(rows),)):
        raise ParameterError(
            f"start of shape {begun.shape}: give Z_k, Z_(k+1) and perhaps Z_(k+2), for "
            "all paths or for each."
        )
    starts = np.zeros((len(rows), 3))
    starts[:, : begun.shape[-1]] = begun
    overflow = overflow_of(overflow)
    rule = _rule(overflow, 1.0 if integer("k", k, 1) == 1 else 0.0)
    if rule.kind == _REFLECTED:
        above = np.maximum(starts[:, 0] - rule.one, 0.0)
        starts[:, 0] -= above
        starts[:, 1] += above
    found = np.empty((*rows.shape, 2))
    rng = np.random.default_rng(seed_of(seed))
    steps_of(overflow, float(times[-1] - times[0]), step, len(rows))
    _drive(rng, rule, starts, times, rows, step, found)
    return found[0] if noise.ndim == 1 else found


def three_limits(alpha: float, c: float = 1.0) -> dict[str, Overflow]:
    """Return the limits of the three regimes that have the same slope, and so the same barrier.

    Parameters
    ----------
    alpha : float
        Slope of the overflow at the centre, positive.
    c : float
        d / sqrt(n) of the exponential regime; the barrier is -log(alpha) / c.

    Returns
    -------
    dict of str to overflow
        "linear", "exponential" and "reflected".

    Examples
    --------
    >>> from supermarket.limits.growing.pathwise import three_limits
    >>> three_limits(1.0)["reflected"]
    ReflectedOverflow(barrier=0.0)
    """
    soft = exponential(alpha, c)
    hard = ReflectedOverflow(soft.barrier + 0.0)
    alpha = real("alpha", alpha)  # above 0, as `exponential` has seen
    return {"linear": LinearOverflow(alpha), "exponential": soft, "reflected": hard}


def moments_at(overflow: Overflow, time: float, k: int = 2) -> tuple[float, float, float]:
    """Return E Z_k^2, E Z_k Z_{k+1} and E Z_{k+1}^2 at a time, from a start at 0.

    Linear: exact. Otherwise from 100 000 simulated paths, with a relative error of 1 %.

    Examples
    --------
    >>> from supermarket.limits.growing.diffusions import LinearOverflow
    >>> from supermarket.limits.growing.pathwise import moments_at
    >>> [round(value, 3) for value in moments_at(LinearOverflow(1.0), 1.0)]
    [1.055, 0.377, 0.19]
    """
    overflow, time, k = _checked(overflow, time, k)
    if isinstance(overflow, LinearOverflow):
        covariance = linear_covariance(overflow.alpha, k, time)
        return float(covariance[0, 0]), float(covariance[0, 1]), float(covariance[1, 1])
    return _simulated(overflow, time, k)[1:]


def mean_at(overflow: Overflow, time: float, k: int = 2) -> float:
    """Return E Z_k at a time, from a start at 0.

    Linear: 0. Otherwise from the paths of `moments_at`, with an error of some 0.003.

    Examples
    --------
    >>> from supermarket.limits.growing.diffusions import exponential
    >>> from supermarket.limits.growing.pathwise import mean_at
    >>> round(mean_at(exponential(1.0, 1.0), 1.0), 2)  # what overflows is more than what is missing
    -0.15
    """
    overflow, time, k = _checked(overflow, time, k)
    return 0.0 if isinstance(overflow, LinearOverflow) else _simulated(overflow, time, k)[0]


def _checked(overflow: Overflow, time: float, k: int) -> tuple[Overflow, float, int]:
    return overflow_of(overflow), real("time", time, 0.0), integer("k", k, 1)


@cache
def _simulated(overflow: Overflow, time: float, k: int) -> tuple[float, float, float, float]:
    """Return E Z_k and the second moments."""
    # With errors of first and of second order.
    step = 0.01 if isinstance(overflow, ReflectedOverflow) else 0.02
    x, y = paths(overflow, [time], seed=1, replicas=100_000, k=k, step=step)[:, 0].T
    return float(np.mean(x)), float(np.mean(x * x)), float(np.mean(x * y)), float(np.mean(y * y))


_LINEAR, _EXPONENTIAL, _REFLECTED = 0, 1, 2


class _Rule(NamedTuple):
    """The kind of overflow, its two numbers, and the rate at which level k falls back."""

    kind: int
    one: float
    other: float
    back: float


def _rule(overflow: Overflow, back: float) -> _Rule:
    """Return what the compiled loop knows of the diffusion."""
    if isinstance(overflow, LinearOverflow):
        return _Rule(_LINEAR, overflow.alpha, 0.0, back)
    if isinstance(overflow, ExponentialOverflow):
        return _Rule(_EXPONENTIAL, overflow.c, overflow.barrier, back)
    return _Rule(_REFLECTED, overflow.barrier, 0.0, back)


def _increasing(times: ArrayLike) -> Floats:
    return increasing_times(times, least=2, low=-math.inf)


@kernel(nogil=True)
def _drive(
    rng: np.random.Generator,
    rule: _Rule,
    starts: Floats,
    times: Floats,
    rows: Floats,
    step: float,
    found: Floats,
) -> None:
    """Step between the times along a bridge; x = Z_k, y = Z_{k+1}, z = Z_{k+2}."""
    kind, one, other, back = rule
    effective = (
        other + (2.0 * math.log(one) - 0.5772156649015329) / one if kind == _EXPONENTIAL else 0.0
    )
    for row in range(len(rows)):
        x, y, z = starts[row]
        found[row, 0, 0], found[row, 0, 1] = x, y
        for j in range(1, len(times)):
            left, rest = times[j] - times[j - 1], rows[row, j] - rows[row, j - 1]
            while left > 0.0:
                h = min(step, left)
                if kind == _EXPONENTIAL:
                    distance = max(effective - x, 1.0 / one)
                    h = min(h, 0.1 * distance * distance)
                if left - h < 1e-3 * h:
                    h = left
                kick = rest * h / left
                if h < left:
                    kick += math.sqrt(2.0 * h * (left - h) / left) * rng.standard_normal()
                rest -= kick
                left = left - h if h < left else 0.0
                if kind == _REFLECTED:
                    x, y = _reflect(rng, x, y, z, one, back, h, kick)
                else:
                    x, y = _overflow(kind, one, other, x, y, h / 2)
                    x, y = _free(x, y, z, back, h, kick)
                    x, y = _overflow(kind, one, other, x, y, h / 2)
                z *= math.exp(-h)
            found[row, j, 0], found[row, j, 1] = x, y


@kernel(nogil=True)
def _free(x: float, y: float, z: float, back: float, h: float, kick: float) -> tuple[float, float]:
    """Solve x' = y - back x + noise, y' = z - y, z' = -z over a time h."""
    fall = math.exp(-h)
    if back == 1.0:
        x = fall * (x + h * y + h * h / 2 * z) + math.sqrt(fall) * kick
    else:
        x += (1.0 - fall) * y + (1.0 - fall * (1.0 + h)) * z + kick
    return x, fall * (y + h * z)


@kernel(nogil=True)
def _overflow(
    kind: int, one: float, other: float, x: float, y: float, h: float
) -> tuple[float, float]:
    """Let level k overflow for a time h: x falls by what y gains."""
    if kind == _LINEAR:
        moved = -math.expm1(-one * h) * x
        return x - moved, y + moved
    return overflowed(x, y, one, other, h)


@kernel(nogil=True)
def _reflect(
    rng: np.random.Generator,
    x: float,
    y: float,
    z: float,
    barrier: float,
    back: float,
    h: float,
    kick: float,
) -> tuple[float, float]:
    """Step freely, then push by what the maximum of the path in between was above the barrier."""
    free, later = _free(x, y, z, back, h, kick)
    rise, half = free - x, math.exp(-h / 2)
    highest = (x + free + math.sqrt(rise * rise + 4.0 * h * rng.standard_exponential())) / 2
    # Pushed half a step ago on average: since then a part of it has come back.
    pushed = max(highest - barrier, 0.0)
    x = free - pushed + (1.0 + back) * (1.0 - half) * pushed
    y = later + half * pushed
    again = max(x - barrier, 0.0)
    return x - again, y + again
