r"""Server pools with concave utilities: what can be reached at best, and what oscillation costs.

n pools, tasks arriving at rate n rho, each served for a mean time of 1 by itself; utilities and the
order of the pairs (i, j) as in `supermarket.models.pools`. JLMU, join the largest marginal utility,
sends a task to a pool to which one more task adds most (D. Goldsztajn, S. C. Borst and J. S. H. van
Leeuwaarden, "Utility maximizing load balancing policies", arXiv:2112.08958). The formulas of this
module are derived in this project, by arguments that are not proofs.

The deficit of a policy is U^*(rho), the best utility a pool for a fluid of tasks, less the mean of
what it reaches. It has two parts. The number N of tasks is Poisson with mean n rho whatever the
policy does, and U^* is concave: so U^*(rho) - E U^*(N / n) is lost under every policy. The rest is
lost by tasks that are not where they would add most.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import ArrayLike, NDArray

from supermarket.estimate.intervals import Interval, batch_interval
from supermarket.kernels.compiled import kernel
from supermarket.limits.growing.reflection import constrained_flow
from supermarket.models.pools import ServerPools, pools_of
from supermarket.validation import (
    ParameterError,
    bounds,
    choice,
    integer,
    numbers,
    positive,
    real,
    said,
    seed_of,
)

__all__ = ["best_utility", "holes_bound", "optimum", "pools_fluid_limit"]

_ROUNDING = 1e-9  # of shares of pools: sums of fractions such as 1/3 are not exact


@dataclass(frozen=True)
class Optimum:
    """The optimal assignment of a fluid of rho tasks a pool.

    Attributes
    ----------
    q : ndarray of float64, shape (m, levels)
        ``q[i, j - 1]`` is the fraction of pools that are of class i with at least j tasks.
    utility : float
        U^*(rho), the aggregate utility a pool.
    rank : int
        Place in the order, from 0, of the last pair that has tasks: (i_*, j_*).
    integral : bool
        Whether that pair is full and the next one gains less: rho is at a kink of U^*. Otherwise
        rho is inside a linear piece, the fractional case.
    """

    q: NDArray[np.float64]
    utility: float
    rank: int
    integral: bool


def optimum(pools: ServerPools, rho: float) -> Optimum:
    """Return the optimal assignment: pairs are filled in their order until all tasks have a place.

    Parameters
    ----------
    pools : ServerPools
    rho : float
        Tasks a pool, above 0 and below `pools.levels`.

    Raises
    ------
    ParameterError
        If rho is out of range.

    Examples
    --------
    >>> from supermarket.models.pools import server_pools
    >>> from supermarket.limits.pools.utility import optimum
    >>> best = optimum(server_pools([0.5, 0.5], [[4, 2], [3, 1]], levels=2), 0.75)
    >>> best.q.tolist(), best.utility, best.integral
    ([[0.5, 0.0], [0.25, 0.0]], 2.75, False)
    """
    rho = _tasks(pools, rho)
    classes, levels = pools.order
    filled = np.cumsum(pools.alpha[classes])
    rank = int(np.searchsorted(filled, rho - _ROUNDING))
    shares = np.clip(rho - filled + pools.alpha[classes], 0.0, pools.alpha[classes])
    full = abs(filled[rank] - rho) <= _ROUNDING
    if full:  # not a trace of it in the next pair
        shares[rank], shares[rank + 1 :] = pools.alpha[classes[rank]], 0.0
    q = np.zeros_like(pools.marginals)
    q[classes, levels - 1] = shares
    gains = pools.marginals[classes, levels - 1]
    integral = bool(full and rank + 1 < len(gains) and gains[rank] > gains[rank + 1])
    return Optimum(q, float(pools.utility(q)), rank, integral)


def best_utility(pools: ServerPools, rho: ArrayLike) -> NDArray[np.float64]:
    """Return U^*(rho), concave and piecewise linear, for an array of rho in [0, pools.levels].

    No policy has a larger mean utility a pool, whatever n is.

    Examples
    --------
    >>> from supermarket import server_pools
    >>> from supermarket.limits.pools.utility import best_utility
    >>> pools = server_pools([0.5, 0.5], [[4, 2], [3, 1]], levels=2)
    >>> best_utility(pools, [0.5, 0.75, 1.0]).tolist()
    [2.0, 2.75, 3.5]
    """
    rho, most = numbers("rho", rho), float(pools_of(pools).levels)
    if np.any((rho < 0) | (rho > most)):
        raise ParameterError(f"rho = {said(rho)} is out of range: choose {bounds('rho', 0, most)}.")
    classes, levels = pools.order
    widths = pools.alpha[classes]
    gains = pools.marginals[classes, levels - 1]
    at = np.concatenate([[0.0], np.cumsum(widths)])
    return pools.alpha @ pools.empty + np.interp(
        rho, at, np.concatenate([[0.0], np.cumsum(widths * gains)])
    )


def unavoidable_deficit(pools: ServerPools, rho: float, n: int) -> float:
    """Return U^*(rho) - E U^*(N / n) with N Poisson of mean n rho, lost under every policy.

    Raises
    ------
    ParameterError
        If rho is out of range, or some 12 standard deviations above its mean N exceeds what the
        pools can hold.
    """
    from scipy.stats import poisson

    rho, n = _tasks(pools, rho), integer("n", n, 1, 10**12)
    spread = 12 * math.sqrt(rho / n) + 40 / n
    if rho + spread > pools.levels:
        raise ParameterError(
            f"rho = {rho:g} with n = {n} needs utilities known up to {math.ceil(rho + spread)} "
            f"tasks, and they are up to {pools.levels}: give more levels."
        )
    best = optimum(pools, rho)
    classes, levels = pools.order
    slope = pools.marginals[classes[best.rank], levels[best.rank] - 1]
    tasks = np.arange(max(0, math.floor(n * (rho - spread))), math.ceil(n * (rho + spread)) + 1)
    # Less than the tangent: nothing cancels, so the sum is exact however small it is.
    below = best.utility + slope * (tasks / n - rho) - best_utility(pools, tasks / n)
    return float(poisson.pmf(tasks, n * rho) @ np.maximum(below, 0.0))


def pools_fluid_limit(
    pools: ServerPools, rho: float, times: ArrayLike, *, start: ArrayLike | None = None
) -> NDArray[np.float64]:
    r"""Return the fluid limit of JLMU: every pair overflows to the next one in the order.

    .. math::
        q(i_l, j_l)(t) = q(i_l, j_l)(0) + v_{l-1}(t) - v_l(t)
        - \int_0^t j_l [q(i_l, j_l) - q(i_l, j_l + 1)] ds \le \alpha(i_l), \qquad v_0(t) = \rho t,

    v_l growing only while pair l is full. Its equilibrium is the optimal assignment.

    Parameters
    ----------
    pools : ServerPools
    rho : float
        Arrivals a pool in a mean service time.
    times : array_like of float, shape (t,)
        In mean service times, increasing, none below 0.
    start : array_like of float, shape (m, levels), optional
        q(0), not increasing in j, at most alpha(i); empty by default.

    Returns
    -------
    ndarray of float64, shape (t, m, levels)
        As exact as `supermarket.limits.growing.reflection.constrained_flow` is.

    Raises
    ------
    ParameterError
        If rho is out of range, the times do not increase, or `start` is not such an assignment.

    Examples
    --------
    >>> from supermarket import server_pools
    >>> from supermarket.limits.pools.utility import pools_fluid_limit
    >>> pools = server_pools([0.5, 0.5], [[4, 2], [3, 1]], levels=2)
    >>> pools_fluid_limit(pools, 0.75, [20.0]).round(4).tolist()
    [[[0.5, 0.0], [0.25, 0.0]]]
    """
    rho = _tasks(pools, rho)
    start = np.zeros_like(pools.marginals) if start is None else numbers("start", start)
    bounded = start.shape == pools.marginals.shape and np.all(start <= pools.alpha[:, np.newaxis])
    if not (bounded and np.all(start >= 0) and np.all(np.diff(start, axis=1) <= 0)):
        raise ParameterError(
            f"start must be shares of shape {pools.marginals.shape}, not increasing along a class "
            "and between 0 and its alpha."
        )
    classes, levels = pools.order
    place = np.zeros(pools.marginals.shape, dtype=np.int64)
    place[classes, levels - 1] = np.arange(len(classes))
    rates = np.diag(-levels.astype(np.float64))
    upper = levels < pools.levels
    rates[np.flatnonzero(upper), place[classes[upper], levels[upper]]] = levels[upper]
    # What starts empty and lies beyond all that may ever fill stays out of the equations.
    last = int(np.searchsorted(np.cumsum(pools.alpha[classes]), max(rho, start.sum()))) + 1
    last = max(last, 1 + int(np.max(np.flatnonzero(start[classes, levels - 1]), initial=0)))
    last = min(last, len(classes))
    flow = constrained_flow(
        rates[:last, :last], rho, pools.alpha[classes[:last]],
        start[classes[:last], levels[:last] - 1], times,
    )  # fmt: skip
    q = np.zeros((len(flow.times), *pools.marginals.shape))
    q[:, classes[:last], levels[:last] - 1] = flow.values
    return q


def deficit(
    pools: ServerPools, rho: float, n: ArrayLike, holes: float = math.nan, policy: str = "jlmu"
) -> NDArray[np.float64]:
    r"""Return the leading term of the deficit U^*(rho) - E u for large n.

    A hole is a task missing in a pair before the last one that has tasks. In the optimal assignment
    let w_l be the share of departures that leave a hole in pair l: tasks times pools whose highest
    pair is l, over rho. Arrivals fill holes first.

    In the fractional case the holes in the first l pairs are the customers of an M/M/1 queue with
    load r_l = w_1 + ... + w_l < 1, so their number has mean r_l / (1 - r_l), and with JLMU

    .. math::
        n (U^* - E u) \to \sum_{l < l_*} (\Delta_l - \Delta_{l+1}) \frac{r_l}{1 - r_l}.

    In the integral case the load of the last pair is 1: some sqrt(n) h holes in it, and
    sqrt(n) (U^* - E u) tends to (Delta_- - Delta_+) E h (see `mean_holes`), where Delta_- and
    Delta_+ are the gains of the last full pair and of the next.

    The threshold policy fills holes at random, so they lie in pair l in proportion to w_l: a hole
    costs the mean of Delta_l with these weights, less the gain of the pair that takes its task.

    Parameters
    ----------
    pools : ServerPools
    rho : float
    n : array_like of int
    holes : float
        E h, where rho is integral.
    policy : {"jlmu", "threshold"}
        The threshold policy is meant at its right threshold, that is with all pairs which are full
        in the optimum below it.

    Raises
    ------
    ParameterError
        If a parameter is out of range, or `holes` is missing in the integral case.
    """
    choice("policy", policy, ("jlmu", "threshold"))
    best = optimum(pools, rho)
    classes, levels = pools.order
    gains = pools.marginals[classes, levels - 1]
    n = numbers("n", n)
    above = np.pad(best.q, ((0, 0), (0, 1)))[classes, levels]
    weights = levels * (best.q[classes, levels - 1] - above) / rho
    if best.integral:
        if not math.isfinite(holes):
            raise ParameterError(
                f"rho = {rho:g} is at a kink of the best utility: give the mean number of holes."
            )
        filled = weights @ gains if policy == "threshold" else gains[best.rank]
        return (filled - gains[best.rank + 1]) * holes / np.sqrt(n)
    # Of pairs with equal gains all are filled alike: the last group's holes cost nothing.
    before = np.flatnonzero(gains[: best.rank] > gains[best.rank])
    if len(before) == 0:
        return np.zeros_like(n)
    load = np.cumsum(weights[before])
    if policy == "threshold":
        costs = weights[before] @ (gains[before] - gains[best.rank]) / (1 - load[-1])
    else:
        costs = (gains[before] - gains[before + 1]) @ (load / (1 - load))
    return costs / n


def mean_holes(
    rho: float,
    level: int,
    *,
    seed: int | SeedSequence,
    horizon: float = 20000.0,
    step: float | None = None,
    confidence: float = 0.99,
) -> Interval:
    r"""Return E h of the oscillation around a kink, by simulation of its diffusion limit.

    Let rho be at a kink of U^*, and let the next pair in the order be the level-th task of a pool.
    Holes in the last full pair, and surplus tasks in the next one, over sqrt(n), tend to

    .. math::
        dh = -[h + (j_+ - 1) s] dt + \sqrt{2 \rho}\, dB + d\eta, \qquad
        ds = -j_+ s\, dt + d\eta, \qquad h \ge 0,\ \int h\, d\eta = 0.

    x = s - h is an Ornstein-Uhlenbeck process of variance rho. So h = x^- + min(h, s) with
    E x^- = sqrt(rho / (2 pi)), a lower bound, and only the mean of min(h, s) is simulated. In one
    step x moves exactly and s decays exactly; the push is what keeps the minimum of a Brownian
    bridge between both ends of h at 0. What is left is a bias of first order in the step, at level
    13 some 0.15 sqrt(rho) times the step.

    Parameters
    ----------
    rho : float
        Tasks a pool, above 0.
    level : int
        j_+, at least 1. At level 1, E h = sqrt(2 rho / pi).
    seed : int or SeedSequence
    horizon : float
        Time simulated, in mean service times.
    step : float, optional
        1 / (64 level) by default.
    confidence : float
        Of the interval, in (0, 1); it does not hold the bias.

    Raises
    ------
    ParameterError
        If a parameter is out of range.
    """
    rho, level = positive("rho", rho), integer("level", level, 1, 10**4)
    horizon = real("horizon", horizon, 1.0, 1e7)
    step = 1 / (64 * level) if step is None else real("step", step, 0.0, 1.0, open_low=True)
    rng, state = np.random.default_rng(seed_of(seed)), np.zeros(2)
    steps = math.ceil(horizon / 64 / step)
    _oscillate(rng, state, level, step, math.ceil(10 / step))
    means = [_oscillate(rng, state, level, step, steps)[0] for _ in range(64)]
    unit = batch_interval(means, confidence)
    least, scale = holes_bound(rho), math.sqrt(rho)
    estimate, low, high = (least + scale * end for end in (unit.estimate, unit.low, unit.high))
    return Interval(estimate, low, high, confidence, unit.effective)


def holes_bound(rho: float) -> float:
    """Return sqrt(rho / (2 pi)), which E h exceeds: the share of `unavoidable_deficit` in it.

    Examples
    --------
    >>> from supermarket.limits.pools.utility import holes_bound
    >>> round(holes_bound(10.0), 4)
    1.2616
    """
    return math.sqrt(positive("rho", rho) / (2 * math.pi))


@kernel(nogil=True)
def _oscillate(
    rng: np.random.Generator, state: np.ndarray, level: int, step: float, steps: int
) -> np.ndarray:
    """Go on from state = (s, x) with rho = 1; return the means of min(h, s), s**2 and h s."""
    s, x = state
    kept, decay = math.exp(-step), math.exp(-level * step)
    deviation = math.sqrt(1.0 - kept * kept)
    means = np.zeros(3)
    for _ in range(steps):
        h = s - x
        x = kept * x + deviation * rng.standard_normal()
        s *= decay
        free = s - x
        # The minimum of a Brownian bridge from h to free, of variance 2 a unit of time.
        span = (free - h) ** 2 - 4.0 * step * math.log(1.0 - rng.random())
        s += max(0.0, (math.sqrt(span) - h - free) / 2.0)
        h = s - x
        means[0] += min(h, s)
        means[1] += s * s
        means[2] += h * s
    state[0], state[1] = s, x
    return means / steps


def _tasks(pools: ServerPools, rho: float) -> float:
    return real("rho", rho, 0.0, float(pools_of(pools).levels), open_low=True, open_high=True)
