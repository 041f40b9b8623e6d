r"""The one-dimensional Skorokhod map at an upper barrier, and flows that are held below barriers.

A path f that starts at or below the barrier b is pushed down by as little as keeps it there:

.. math::
    \hat\Gamma(f)(t) = \sup_{s \le t} (f(s) - b)^+, \qquad \Gamma(f) = f - \hat\Gamma(f).

In a chain of coordinates what is pushed out of one flows into the next: so fill the levels of JSQ
with a growing number of choices (S. Bhamidi, A. Budhiraja and M. Dewaskar, arXiv:2006.03621), and
the classes of server pools in their order of preference (D. Goldsztajn, S. C. Borst and
J. S. H. van Leeuwaarden, arXiv:2112.08958).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from supermarket.validation import ParameterError, affordable, increasing_times, numbers, real

__all__ = ["reflect"]

# A held coordinate is let go when its net inflow falls below -SLACK: below 0 by less, rounding
# could hold it and let it go for ever. The flow is wrong by at most SLACK a unit of time.
_SLACK = 1e-11
MOST_RATES = 10**7
MOST_WORK = 10**5  # coordinates times the units of time of the fastest: some ten seconds
_INSTANT = 1e-10  # a last stretch of this length is a straight line, far within the error


def reflect(path: ArrayLike, barrier: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the reflected path and what was pushed, the maps above.

    Parameters
    ----------
    path : array_like of float, shape (m,) or (..., m)
        Values at m times, along the last axis.
    barrier : array_like of float
        One number for each path, or one for all.

    Returns
    -------
    reflected, pushed : ndarray of float64, of the shape of `path`
        Exact at these times if the path is linear between them, or jumps at them alone. A path
        that starts above its barrier is pushed down to it at once.

    Raises
    ------
    ParameterError
        If the path is empty, or a value is not a number.

    Examples
    --------
    >>> from supermarket.limits.growing.reflection import reflect
    >>> reflected, pushed = reflect([0, 2, 1, 3], 1)
    >>> reflected.tolist(), pushed.tolist()
    ([0.0, 1.0, 0.0, 1.0], [0.0, 1.0, 1.0, 2.0])
    """
    path, barrier = (numbers(*one, finite=False) for one in (("path", path), ("barrier", barrier)))
    if path.ndim == 0 or path.shape[-1] == 0:
        raise ParameterError("path must hold its values at one time at least.")
    try:
        np.broadcast_shapes(path.shape[:-1], barrier.shape)
    except ValueError:
        raise ParameterError(
            f"barrier of shape {barrier.shape} does not belong to paths of shape {path.shape}: "
            "give one for each path, or one for all."
        ) from None
    excess = np.maximum(path - barrier[..., np.newaxis], 0.0)
    pushed = np.maximum.accumulate(excess, axis=-1)
    return path - pushed, pushed


Floats = NDArray[np.float64]
Held = NDArray[np.bool_]


class ConstrainedFlow(NamedTuple):
    """A flow below barriers at given times.

    Attributes
    ----------
    times : ndarray of float64, shape (m,)
    values : ndarray of float64, shape (m, r)
        The coordinates x_1, ..., x_r.
    pushed : ndarray of float64, shape (m, r)
        v_1, ..., v_r: what has been pushed on from each coordinate up to then.
    held : list of (float, ndarray of bool)
        From which time on which coordinates are held at their barriers; the first time is 0.
    """

    times: NDArray[np.float64]
    values: NDArray[np.float64]
    pushed: NDArray[np.float64]
    held: list[tuple[float, NDArray[np.bool_]]]


def constrained_flow(
    rates: ArrayLike, inflow: float, barrier: ArrayLike, start: ArrayLike, times: ArrayLike
) -> ConstrainedFlow:
    r"""Solve a chain of linear equations, each held below its barrier and overflowing to the next.

    .. math::
        x_i(t) = x_i(0) + \int_0^t (A x)_i\,ds + v_{i-1}(t) - v_i(t) \le b_i, \qquad
        v_0(t) = \text{inflow} \cdot t,

    with v_i non-decreasing and growing only while x_i = b_i. Between two times at which a
    coordinate reaches its barrier or leaves it, this is a linear ODE. It is solved up to the event,
    which is located on the solution.

    Parameters
    ----------
    rates : array_like of float, shape (r, r)
        A, in units of 1 / time.
    inflow : float
        Rate into the first coordinate, at least 0.
    barrier, start : array_like of float, shape (r,)
        b and x(0), x(0) <= b.
    times : array_like of float, shape (m,)
        Increasing, none below 0.

    Returns
    -------
    ConstrainedFlow
        Values with an error below 1e-8 where they, the rates and the times are of order 1 to 10
        (tested on closed forms). What leaves the last coordinate is lost.

    Raises
    ------
    ParameterError
        If the shapes do not agree, a start lies above its barrier, or times do not increase.
    """
    from scipy.integrate import solve_ivp

    rates, barrier, start = (
        numbers(*one) for one in (("rates", rates), ("barrier", barrier), ("start", start))
    )
    times = increasing_times(times)
    inflow = real("inflow", inflow, 0.0, 1e100)
    r = len(start) if start.ndim == 1 else 0
    if r == 0 or rates.shape != (r, r) or barrier.shape != (r,):
        raise ParameterError(
            f"rates of shape {rates.shape}, barrier {barrier.shape} and start {start.shape} do not "
            "belong together: give (r, r), (r,) and (r,)."
        )
    if not np.all(start <= barrier):
        raise ParameterError("start must not lie above the barrier.")

    # An explicit solver takes some steps in each unit of the fastest rate.
    work = float(times[-1] * np.max(np.abs(rates))) * r
    affordable(
        f"times = {times[-1]:g} with {r} coordinates", work, "stop sooner", MOST_WORK, "steps"
    )
    now, y = 0.0, np.concatenate([start, np.zeros(r)])
    found, history = np.zeros((len(times), 2 * r)), [(0.0, _holds(rates, inflow, barrier, start))]
    while now < times[-1]:
        held = history[-1][1]
        slope, events = _mode(rates, inflow, barrier, held)
        if times[-1] - now < _INSTANT:  # so short that an event would find itself again
            found[times >= now] = y + np.outer(times[times >= now] - now, slope(now, y))
            break
        solution = solve_ivp(
            slope, (now, times[-1]), y, method="DOP853", events=events, dense_output=True,
            rtol=1e-11, atol=1e-13,
        )  # fmt: skip
        if not solution.success or len(history) > 10**4:
            raise ParameterError(f"the ODE solver stopped at t = {now:g}: {solution.message}.")
        inside = (times >= now) & (times <= solution.t[-1])
        if inside.any():
            found[inside] = solution.sol(times[inside]).T
        now, y = float(solution.t[-1]), solution.y[:, -1]
        for i in range(r):
            if len(solution.t_events[i]) and not held[i]:
                y[i] = barrier[i]
        if now < times[-1]:
            history.append((now, _holds(rates, inflow, barrier, y[:r])))
    if times[-1] == 0:
        found[0] = y
    return ConstrainedFlow(times, found[:, :r], found[:, r:], history)


def _net(rates: Floats, inflow: float, x: Floats, held: Held) -> Floats:
    """Return (A x)_i + v_{i-1}': what x_i would change by if it were not held."""
    change, over = rates @ x, inflow
    for i in range(len(x)):
        change[i] += over
        over = change[i] if held[i] else 0.0
    return change


def _holds(rates: Floats, inflow: float, barrier: Floats, x: Floats) -> Held:
    """Tell which coordinates are held: one after the other, as what overflows decides."""
    held = np.zeros(len(x), dtype=np.bool_)
    for i in range(len(x)):
        held[i] = x[i] >= barrier[i] and _net(rates, inflow, x, held)[i] >= -_SLACK / 2
    return held


def _mode(
    rates: Floats, inflow: float, barrier: Floats, held: Held
) -> tuple[Callable[[float, Floats], Floats], list[Callable[[float, Floats], float]]]:
    """Return the linear ODE of (x, v) while these are held, and the functions that end it at 0.

    A free coordinate reaches its barrier; a held one is let go.
    """
    r = len(held)

    def slope(_time: float, y: Floats) -> Floats:
        change = _net(rates, inflow, y[:r], held)
        return np.concatenate([np.where(held, 0.0, change), np.where(held, change, 0.0)])

    def event(i: int) -> Callable[[float, Floats], float]:
        def value(_time: float, y: Floats) -> float:
            return _net(rates, inflow, y[:r], held)[i] + _SLACK if held[i] else y[i] - barrier[i]

        value.terminal, value.direction = True, -1.0 if held[i] else 1.0
        return value

    return slope, [event(i) for i in range(r)]
