r"""JSQ with a number of choices that grows with the number of queues: centre and fluid limit.

An arrival looks at d_n of n queues. Let G_i be the share of queues with at least i jobs and
beta_n(x) the chance that all d_n queues lie among the share x. As d_n grows the shares follow a
flow in which each level is held at 1 while it is full and what it cannot take goes to the next.
From S. Bhamidi, A. Budhiraja and M. Dewaskar, "Near equilibrium fluctuations for supermarket models
with growing choices", Annals of Applied Probability 32 (2022) 2083, arXiv:2006.03621; the formulas
are derived in this project. The fluctuations are in `supermarket.limits.growing.diffusions`.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from supermarket.kernels.sampling import log_all_among
from supermarket.limits.growing.diffusions import ExponentialOverflow
from supermarket.limits.growing.reflection import (
    MOST_RATES,
    ConstrainedFlow,
    constrained_flow,
)
from supermarket.models.jsq import Supermarket, numbers_of
from supermarket.validation import (
    MOST_QUEUES,
    ParameterError,
    affordable,
    arrival_rate,
    choice,
    increasing_times,
    integer,
    profile_of,
    real,
)

__all__ = [
    "barrier_rate",
    "critical_arrival_rate",
    "fluid_limit",
    "log_beta",
    "near_equilibrium",
    "overflow_lag",
    "soft_barrier",
]


def log_beta(x: float, n: int, d: int, *, replacement: bool = True) -> float:
    r"""Return log beta_n(x), the chance that d chosen queues all lie among the share x of n.

    .. math::
        \beta_n(x) = x^d \text{ (with replacement)}, \qquad
        \beta_n(x) = \prod_{i=0}^{d-1} \frac{(x - i/n)^+}{1 - i/n} \text{ (without)}.

    Without replacement log beta_n is interpolated between whole numbers of queues: a share is never
    anything else.

    Parameters
    ----------
    x : float
        In [0, 1].
    n, d : int
        Numbers of queues, up to 4e18, and of choices; d <= n without replacement.

    Returns
    -------
    float
        -inf where the chance is 0.

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> from supermarket.limits.growing.centre import log_beta
    >>> round(log_beta(1 - 1e-7, 10**15, 10**7), 6)
    -1.0
    """
    n, d = _sizes(n, d, replacement)
    x = real("x", x, 0.0, 1.0)
    if x == 0.0:
        return -math.inf
    if replacement:
        return d * math.log(x)
    outside = (1 - x) * n  # queues that are not among the share
    whole = round(outside) if abs(outside - round(outside)) <= 1e-15 * n else math.floor(outside)
    log = float(log_all_among(n - whole, n, d, False))
    part = max(outside - whole, 0.0)
    if part <= 1e-15 * n or math.isinf(log):  # x itself is not known better
        return log
    return (1 - part) * log + part * float(log_all_among(n - whole - 1, n, d, False))


def near_equilibrium(model: Supermarket, levels: int) -> NDArray[np.float64]:
    """Return mu_0 = 1, mu_1 = lam, mu_{i+1} = lam beta_n(mu_i), the centre of the fluctuations.

    Parameters
    ----------
    model : Supermarket
        Of exponential service.
    levels : int
        Last level wanted, at least 1.

    Returns
    -------
    ndarray of float64, shape (levels + 1,)

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> from supermarket import Supermarket
    >>> from supermarket.limits.growing.centre import near_equilibrium
    >>> near_equilibrium(Supermarket(10**10, 100, 0.98), 3).round(6).tolist()
    [1.0, 0.98, 0.129967, 0.0]
    """
    n, d, lam = numbers_of(model, finite=True)
    mu = [1.0, lam]
    for _ in range(integer("levels", levels, 1, 10**6) - 1):
        mu.append(lam * math.exp(log_beta(mu[-1], n, d, replacement=model.replacement)))
    return np.array(mu)


def soft_barrier(model: Supermarket, k: int = 1) -> ExponentialOverflow:
    r"""Return the overflow from level k of a finite system: what stands before the limit.

    With L = (log beta_n)'(mu_k), the slope of the overflow at the centre and its growth are

    .. math:: \alpha_n = \lambda\,\beta_n'(\mu_k) = \mu_{k+1} L, \qquad c_n = L / \sqrt n,

    and the barrier is -log(alpha_n) / c_n, in units of 1 / sqrt(n).

    Parameters
    ----------
    model : Supermarket
        Of exponential service.

    Raises
    ------
    ParameterError
        If a parameter is out of range, or mu_k leaves no chance of an overflow (full JSQ, d = n):
        then only `ReflectedOverflow` applies.

    Examples
    --------
    >>> from supermarket import Supermarket
    >>> from supermarket.limits.growing.centre import soft_barrier
    >>> soft = soft_barrier(Supermarket(10**4, 100, 0.95))
    >>> round(soft.c, 4), round(soft.barrier, 4)
    (1.0526, 0.498)
    """
    n, d, lam = numbers_of(model, finite=True)
    replacement = model.replacement
    mu = float(near_equilibrium(model, integer("k", k, 1))[k])
    log = log_beta(mu, n, d, replacement=replacement)
    if math.isinf(log):
        raise ParameterError(
            f"d = {d} distinct queues of n = {n} are never all busy near mu_{k} = {mu:.6g}: "
            "choose a smaller d, or replacement=True."
        )
    # Over as many queues as change beta_n by little, at least one.
    width = max(1, round(1e-4 * n / d)) / n
    growth = (
        d / mu if replacement else (log - log_beta(mu - width, n, d, replacement=False)) / width
    )
    c = growth / math.sqrt(n)
    return ExponentialOverflow(c, -(math.log(lam) + log + math.log(growth)) / c)


def critical_arrival_rate(n: int, d: int, alpha: float, k: int = 1) -> float:
    r"""Return the arrival rate whose overflow from level k has slope alpha_n = alpha.

    In the paper's form 1 - lam = (xi + log d) / d**k with xi near -log alpha; here xi is such that
    `soft_barrier` (with replacement) has exactly the slope alpha. For d / sqrt(n) -> 0 or c.

    Raises
    ------
    ParameterError
        If a parameter is out of range, or there is no such rate for this d.

    Examples
    --------
    >>> from supermarket.limits.growing.centre import critical_arrival_rate
    >>> round(critical_arrival_rate(10**8, 1000, 1.0), 6)
    0.993116
    """
    from scipy.optimize import brentq

    n, d = _sizes(n, d, True)
    alpha, k = real("alpha", alpha, 0.0, open_low=True), integer("k", k, 1)
    scale = _power(d, k)

    def excess(xi: float) -> float:
        soft = soft_barrier(Supermarket(n, d, 1 - (xi + math.log(d)) / scale), k)
        return -soft.c * soft.barrier - math.log(alpha)

    least, most = -0.999 * math.log(d), min(d - math.log(d) - 1, 50.0)
    if d < 3 or excess(least) < 0 or excess(most) > 0:
        raise ParameterError(f"d = {d} is too small for alpha = {alpha:g}: choose a larger d.")
    return 1 - (brentq(excess, least, most) + math.log(d)) / scale


def barrier_rate(n: int, d: int, alpha: float, k: int = 1) -> float:
    r"""Return the arrival rate that puts the reflecting barrier at alpha, for d / sqrt(n) large.

    .. math:: 1 - \lambda = \frac{\log d}{d^k} + \frac{\alpha}{\sqrt n\, d^{k-1}}.

    Raises
    ------
    ParameterError
        If a parameter is out of range, or the rate is not in (0, 1).

    Examples
    --------
    >>> from supermarket.limits.growing.centre import barrier_rate
    >>> round(barrier_rate(10**4, 5000, 1.0), 6)
    0.988297
    """
    n, d = _sizes(n, d, True)
    alpha, k = real("alpha", alpha), integer("k", k, 1)
    return arrival_rate(1 - (math.log(d) + alpha * d / math.sqrt(n)) / _power(d, k))


def fluid_limit(lam: float, times: ArrayLike, *, start: ArrayLike = (1.0,)) -> ConstrainedFlow:
    r"""Solve the fluid limit of growing choices, for any arrival rate.

    .. math::
        g_i(t) = g_i(0) - \int_0^t (g_i - g_{i+1})\,ds + v_{i-1}(t) - v_i(t) \le 1, \qquad
        v_0(t) = \lambda t,

    with v_i non-decreasing and growing only while g_i = 1. Below 1 the flow tends to (lam, 0, ...);
    at 1 every (1, ..., 1, x, 0, ...) is a fixed point; above, level after level fills.

    Parameters
    ----------
    lam : float
        Arrival rate per queue, at least 0.
    times : array_like of float, shape (m,)
        In mean service times, increasing, none below 0.
    start : array_like of float
        Shares 1 = g_0 >= g_1 >= ... >= 0, zero beyond the last given; empty by default.

    Returns
    -------
    ConstrainedFlow
        ``values[:, i - 1]`` is g_i, for as many levels as can be reached up to the last time; with
        an error below 1e-8.

    Raises
    ------
    ParameterError
        If a parameter is out of range, or `start` is not a profile.

    Examples
    --------
    >>> from supermarket.limits.growing.centre import fluid_limit
    >>> flow = fluid_limit(1.5, [1.0, 2.0])
    >>> flow.values[:, :3].round(4).tolist()
    [[0.9482, 0.0, 0.0], [1.0, 0.4507, 0.0]]
    """
    lam = real("lam", lam, 0.0)
    g = profile_of("start", start)
    times = increasing_times(times)
    last = float(times[-1])
    if not last * lam < 1e4:
        raise ParameterError(
            f"lam = {lam:g} up to time {last:g} fills too many levels: stop sooner."
        )
    # Level i has room for all jobs of the start and all arrivals if i > their number a queue.
    levels = len(g) + math.ceil(g[1:].sum() + lam * last) if lam > 1 else len(g) + 1
    affordable(f"a flow of {levels} levels", float(levels) ** 2, "stop sooner", MOST_RATES)
    padded = np.zeros(levels)
    padded[: len(g) - 1] = g[1:]
    rates = np.eye(levels, k=1) - np.eye(levels)
    return constrained_flow(rates, lam, np.ones(levels), padded, times)


def overflow_lag(lam: float, d: float) -> float:
    """Return how far a system with d choices is from the fluid limit where levels overflow.

    From empty queues at an arrival rate above 1, to leading order in 1 / d: the largest distance of
    a share over levels and times, 1 / ((lam - 1) d), reached by the third level as the second
    fills. Derived in this project.

    Parameters
    ----------
    lam : float
        Arrival rate per queue, above 1.
    d : float
        Number of choices, at least 2.

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> from supermarket.limits.growing.centre import overflow_lag
    >>> overflow_lag(1.5, 1000)
    0.002
    """
    lam, d = real("lam", lam, 1.0, open_low=True), real("d", d, 2.0)
    return 1 / ((lam - 1) * d)


def _power(d: int, k: int) -> float:
    """Return d**k, or refuse what makes 1 - lam less than a double tells from 0."""
    if k * math.log(d) > 36:
        raise ParameterError(
            f"k = {k} with d = {d} puts the arrival rate within 1e-15 of 1, where a double does "
            "not tell it from 1: choose a smaller k or d."
        )
    return float(d) ** k


def _sizes(n: int, d: int, replacement: bool) -> tuple[int, int]:
    n, d = integer("n", n, 1, MOST_QUEUES), integer("d", d, 1, MOST_QUEUES)
    given = bool(replacement) if isinstance(replacement, np.bool_) else replacement
    choice("replacement", given, (True, False))
    if not replacement and d > n:
        raise ParameterError(
            f"d = {d} distinct queues cannot be chosen among n = {n}: "
            "choose d <= n, or replacement=True."
        )
    return n, d
