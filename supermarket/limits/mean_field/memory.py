r"""The supermarket model with memory: the limit with the remembered length averaged out.

An arrival looks at d fresh queues and at the remembered one, joins a shortest of them, and a
shortest of them after joining is remembered. Among n queues the length m of the remembered one
moves n times as fast as the shares v_k of queues with length at least k. So, as n grows, m is at
all times in the equilibrium that belongs to the present v [1]_. The rest of this page is derived in
this project.

With v fixed, after an arrival the remembered queue has length at least k if all queues seen have,
or all but exactly one, and that one has length k - 1: it is joined. If Q_k is the equilibrium
chance that m >= k, then

.. math::
    Q_k = Q_k (v_k^d + d (v_{k-1} - v_k) v_k^{d-1}) + (Q_{k-1} - Q_k) v_k^d,
    \qquad Q_k = Q_{k-1} \frac{v_k^d}{1 - d (v_{k-1} - v_k) v_k^{d-1}}, \quad Q_0 = 1.

An arrival joins a queue of length at least k with probability Q_k v_k^d, and so

.. math::
    \dot v_k = \lambda (Q_{k-1} v_{k-1}^d - Q_k v_k^d) - (v_k - v_{k+1}), \qquad v_0 = 1.

At the fixed point v_{k+1} = lam Q_k v_k^d. With v_k = lam Q_{k-1} v_{k-1}^d it eliminates Q:

.. math::
    \log v_{k+1} = (2 d + 1) \log v_k - d \log v_{k-1}
    - \log (1 - d (v_{k-1} - v_k) v_k^{d-1}).

The last term vanishes with v. What is left grows like alpha^k, where alpha is the larger root of
x^2 - (2 d + 1) x + d = 0. Where lam tends to one all shares at a fixed level tend to one, the last
term is about d (log v_{k-1} - log v_k), and log v_{k+1} is about (d + 1) log v_k: there the shares
fall as fast as with d + 1 choices and no memory, up to a shift of at most one level.

References
----------
.. [1] M. J. Luczak and J. R. Norris, "Averaging over fast variables in the fluid limit for Markov
   chains: application to the supermarket model with memory", Annals of Applied Probability 23
   (2013) 957.
.. [2] M. Mitzenmacher, B. Prabhakar and D. Shah, "Load balancing with memory", Proceedings of the
   43rd Symposium on Foundations of Computer Science (2002) 799.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from supermarket.limits.mean_field.flow import solved
from supermarket.models.jsq import Supermarket, numbers_of
from supermarket.validation import (
    EXACT_MAX,
    ParameterError,
    increasing_times,
    integer,
    profile_of,
)

__all__ = [
    "log_memory_fixed_point",
    "memory_exponent",
    "memory_max_queue",
    "memory_relaxation_time",
    "memory_trajectory",
    "remembered_law",
]


def memory_exponent(d: int) -> float:
    """Return alpha = d + 1/2 + sqrt(d**2 + 1/4): log v_k grows like alpha**k [1]_, [2]_.

    With d choices and no memory it is d. For d = 1 it is the square of the golden ratio.

    Raises
    ------
    ParameterError
        If d < 1.

    Examples
    --------
    >>> from supermarket.limits.mean_field.memory import memory_exponent
    >>> round(memory_exponent(1), 6)
    2.618034
    """
    d = integer("d", d, 1, EXACT_MAX)
    return d + 0.5 + math.hypot(d, 0.5)


def log_memory_fixed_point(model: Supermarket, levels: int) -> NDArray[np.float64]:
    """Return log v_0, ..., log v_levels at the fixed point of the averaged limit.

    Parameters
    ----------
    model : Supermarket
        Of the policy "memory", with exponential service; its n does not matter.
    levels : int
        Last level wanted, at least 0.

    Returns
    -------
    ndarray of float64, shape (levels + 1,)
        v_k is the share of queues with at least k jobs as n grows.

    Raises
    ------
    ParameterError
        If a parameter is out of range, or a logarithm is beyond the largest double: the sentence
        says how deep it goes.

    Examples
    --------
    >>> from supermarket import Supermarket
    >>> from supermarket.limits.mean_field.memory import log_memory_fixed_point
    >>> log_memory_fixed_point(Supermarket(1000, 1, 0.7, policy="memory"), 4).round(3).tolist()
    [0.0, -0.357, -0.713, -1.548, -3.605]
    """
    _, d, lam = numbers_of(model, "memory")
    levels = integer("levels", levels, 0, 10**7)
    logs = np.zeros(levels + 1)
    logs[1:2] = math.log(lam)
    for k in range(1, levels):
        below, here = float(logs[k - 1]), float(logs[k])
        both = d * -math.expm1(here - below) * math.exp(below + (d - 1) * here)
        if d == 1 and both > 0.5:  # 1 - b_k without a difference, which is lost where v_k is small
            log_rest = math.log(math.exp(here) - math.expm1(below))
        else:
            log_rest = math.log1p(-both)
        logs[k + 1] = (2 * d + 1) * here - d * below - log_rest
        if not math.isfinite(logs[k + 1]):
            raise ParameterError(
                f"log v({levels}) with d = {d} is beyond the largest double: choose levels <= {k}."
            )
    return logs


def memory_max_queue(model: Supermarket) -> int:
    """Return the largest k with n v_k >= 1, near which the maximum queue length is expected.

    The same reading of the fixed point as `supermarket.max_queue_hypothesis`; not a theorem here.

    Parameters
    ----------
    model : Supermarket
        Of the policy "memory", with exponential service.

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> from supermarket import Supermarket
    >>> from supermarket.limits.mean_field.memory import memory_max_queue
    >>> [memory_max_queue(Supermarket(10**9, d, 0.8, policy="memory")) for d in (1, 2)]
    [6, 4]
    """
    n, _, _ = numbers_of(model, "memory", finite=True)
    levels = 8
    while (logs := log_memory_fixed_point(model, levels))[-1] >= -math.log(n):
        levels *= 2
    return int(np.flatnonzero(logs >= -math.log(n))[-1])


def memory_relaxation_time(model: Supermarket) -> float:
    """Return the time in which the averaged ODE forgets its start, in mean service times.

    It is -1 over the largest real part of an eigenvalue of the Jacobian at the fixed point, by
    central differences, with the levels that more than 1e-9 of the queues reach.

    Parameters
    ----------
    model : Supermarket
        Of the policy "memory", with exponential service; its n does not matter.

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> from supermarket import Supermarket
    >>> from supermarket.limits.mean_field.memory import memory_relaxation_time
    >>> round(memory_relaxation_time(Supermarket(1000, 1, 0.8, policy="memory")), 2)
    7.21
    """
    _, d, lam = numbers_of(model, "memory")
    levels = memory_max_queue(Supermarket(10**9, d, lam, policy="memory"))
    fixed = np.exp(log_memory_fixed_point(model, levels))[1:]
    padded = np.append(np.append(1.0, fixed), 0.0)
    jacobian = np.zeros((levels, levels))
    for k, step in enumerate(1e-6 * fixed):
        for side in (1, -1):
            padded[1:-1] = fixed
            padded[1 + k] += side * step
            jacobian[:, k] += side * _slope(lam, d, padded) / (2 * step)
    return float(-1 / np.linalg.eigvals(jacobian).real.max())


def remembered_law(profile: ArrayLike, d: int) -> NDArray[np.float64]:
    """Return the equilibrium law of the remembered length while the profile stands still.

    Parameters
    ----------
    profile : array_like of float, shape (levels + 1,)
        Shares v_0 = 1, ..., not increasing; 0 beyond the last one.
    d : int
        Number of fresh queues that an arrival looks at, at least 1.

    Returns
    -------
    ndarray of float64, shape (levels + 1,)
        The chance that the remembered queue has length 0, 1, ... . If all queues have the same
        length and d = 1, every law on it and the next one is an equilibrium; this is the one on it
        alone.

    Raises
    ------
    ParameterError
        If `profile` is not a profile, or d < 1.

    Examples
    --------
    >>> from supermarket import remembered_law
    >>> remembered_law([1.0, 0.8, 0.5, 0.1], 1).round(4).tolist()
    [0.0, 0.2857, 0.5952, 0.119]
    """
    d = integer("d", d, 1, EXACT_MAX)
    v = profile_of("profile", profile)
    at_least = _remembered(v, d)
    return at_least - np.append(at_least[1:], 0.0)


def memory_trajectory(
    model: Supermarket, times: ArrayLike, *, start: ArrayLike = (1.0,)
) -> NDArray[np.float64]:
    """Solve the averaged ODE of this module.

    Parameters
    ----------
    model : Supermarket
        Of the policy "memory", with exponential service; its n does not matter.
    times : array_like of float, shape (m,)
        Times in mean service times, not negative, increasing.
    start : array_like of float
        v(0): shares 1 = v_0 >= v_1 >= ... >= 0, zero beyond the last given; empty by default.

    Returns
    -------
    ndarray of float64, shape (m, levels + 1)
        v at each time, with relative and absolute tolerances of 1e-9 and 1e-12 in the solver, up to
        where the fixed point, pushed up by the levels given, is below 1e-12.

    Raises
    ------
    ParameterError
        If a parameter is out of range, or `start` is not a profile.

    Examples
    --------
    >>> from supermarket import Supermarket, memory_trajectory
    >>> shop = Supermarket(1000, 1, 0.8, policy="memory")
    >>> memory_trajectory(shop, [0, 5, 50])[:, 1].round(3).tolist()
    [0.0, 0.692, 0.8]
    """
    _, d, lam = numbers_of(model, "memory")
    times = increasing_times(times)
    v = profile_of("start", start)
    padded = np.zeros(len(v) + memory_max_queue(Supermarket(10**12, d, lam, policy="memory")) + 3)
    padded[: len(v)] = v

    def slope(_time: float, inner: NDArray[np.float64]) -> NDArray[np.float64]:
        padded[1:-1] = inner
        return _slope(lam, d, padded)

    return np.column_stack([np.ones(len(times)), solved(slope, times, padded[1:-1].copy())])


def _slope(lam: float, d: int, padded: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return dv_k / dt for all k but the first and the last of `padded`, v_0 = 1 and 0."""
    joined = _remembered(padded[:-1], d) * padded[:-1] ** d
    return -lam * np.diff(joined) + np.diff(padded[1:])


def _remembered(v: NDArray[np.float64], d: int) -> NDArray[np.float64]:
    """Return Q_k for every level of v."""
    rest = 1 - d * (v[:-1] - v[1:]) * v[1:] ** (d - 1)
    if d == 1:  # as in `log_memory_fixed_point`
        rest = (1 - v[:-1]) + v[1:]
    rise = v[1:] ** d
    with np.errstate(invalid="ignore"):
        ratio = np.where(rise > 0, rise / rest, 0.0)
    return np.cumprod(np.append(1.0, ratio))
