"""The exact occupancy chain: how many queues have length at least i, one event at a time.

The counts s[i] = number of queues with length at least i are a Markov chain of their own. An
arrival joins a queue of length i when the shortest of its d queues has length i, which has
probability beta(s[i]) - beta(s[i+1]), where beta(s) is the probability that d chosen queues all
lie among s given ones. A departure leaves a queue of length i with probability (s[i] - s[i+1]) / n.
The cost of an event depends on the number of levels alone, whatever n and d are.
"""

import math

import numpy as np
from numba import njit
from numpy.random import Generator, SeedSequence
from numpy.typing import ArrayLike, NDArray

from supermarket.chains.measure import Simulation, given_counts, measure, plan, with_room


def simulate(
    n: int,
    d: int,
    lam: float,
    *,
    horizon: float,
    seed: int | SeedSequence,
    warmup: float | None = None,
    start: str | ArrayLike = "fixed point",
    times: ArrayLike = (),
    batches: int = 32,
    replacement: bool = True,
    time_unit: str = "service",
    max_events: float = 1e11,
) -> Simulation:
    """Simulate the supermarket model exactly, by the counts of queues of each length.

    Parameters
    ----------
    n : int
        Number of queues, from 1 to 2**53.
    d : int
        Number of queues that an arrival looks at, at least 1.
    lam : float
        Arrival rate per queue in units of the service rate, in (0, 1).
    horizon : float
        Length of the measured run, in `time_unit`.
    seed : int or SeedSequence
        Fixes the result together with the other parameters.
    warmup : float, optional
        Time that passes before anything is measured; a tenth of the horizon by default.
    start : {"fixed point", "empty"} or array_like of float
        State before the warm-up. The fixed point is u[i+1] = lam * beta(u[i]), with replacement
        equation (1.2) of [1]_, rounded to whole queues. A profile gives the shares u[0] = 1, u[1],
        ..., not increasing.
    times : array_like of float
        Times since the end of the warm-up at which the counts are recorded, not decreasing.
    batches : int
        Number of stretches of equal length for batch means.
    replacement : bool
        Whether an arrival's d queues are chosen with replacement (as in [1]_) or distinct (as in
        [2]_).
    time_unit : {"service", "steps"}
        Mean service times (n (1 + lam) events on average each), or steps of the chain of [1]_.
    max_events : float
        Longer runs than this are refused before they start.

    Returns
    -------
    Simulation

    Raises
    ------
    ParameterError
        If a parameter is not allowed, or the run would be longer than `max_events`.

    References
    ----------
    .. [1] G. Brightwell and M. Luczak, "The supermarket model with arrival rate tending to one",
       arXiv:1201.5523, section 1.
    .. [2] M. Bramson, Y. Lu and B. Prabhakar, "Decay of tails at equilibrium for FIFO join the
       shortest queue networks", Annals of Applied Probability 23 (2013) 1841, arXiv:1106.4582.

    Examples
    --------
    >>> from supermarket import fixed_point, simulate
    >>> run = simulate(n=1000, d=2, lam=0.7, horizon=200, seed=1)
    >>> abs(run.profile[2] - fixed_point(0.7, 2, 2)[2]) < 0.01
    True
    """
    todo = plan(
        n, d, lam, horizon, seed, warmup, times, batches, replacement, time_unit, max_events
    )
    rng = np.random.default_rng(todo.seed)
    if isinstance(start, str) and start == "fixed point":
        counts, named = _fixed_point_counts(todo.n, todo.d, todo.lam, todo.replacement), start
    elif isinstance(start, str) and start == "empty":
        counts, named = np.array([todo.n], dtype=np.int64), start
    else:
        counts, named = given_counts(todo.n, start), "given"
    chain = _Occupancy(with_room(counts), todo.d, todo.lam, todo.replacement, rng)
    return measure(chain, "occupancy", named, todo, rng)


class _Occupancy:
    def __init__(
        self, counts: NDArray[np.int64], d: int, lam: float, replacement: bool, rng: Generator
    ) -> None:
        self.counts = counts
        self._d = d
        self._lam = lam
        self._replacement = replacement
        self._rng = rng

    def advance(self, events: int, moved: NDArray[np.int64], at_top: NDArray[np.int64]) -> int:
        return _advance(
            self._rng, self.counts, self._d, self._lam, self._replacement, events, moved, at_top
        )

    def grow(self) -> None:
        self.counts = np.append(self.counts, np.zeros_like(self.counts))


def _fixed_point_counts(n: int, d: int, lam: float, replacement: bool) -> NDArray[np.int64]:
    """Return the counts nearest to the fixed point: s[i+1] = lam n beta(s[i]), rounded."""
    counts = [n]
    while counts[-1] > 0:
        nearest = round(lam * n * all_among(counts[-1], n, d, replacement))
        counts.append(min(nearest, counts[-1] - 1))  # rounded, 1 * lam would stay 1 for ever
    return np.array(counts, dtype=np.int64)


@njit(nogil=True)
def all_among(s: int, n: int, d: int, replacement: bool) -> float:
    """Return the probability that d chosen queues all lie among s given ones of n.

    (s/n)**d with replacement; without, C(s, d) / C(n, d), as a product of min(d, n - s) factors.
    """
    others = n - s
    if s <= 0 or (d / n) * others > 800.0:  # exp(-800) is 0 in double precision
        return 0.0
    if replacement:
        if d == 1:
            return s / n
        if d == 2:
            return (s / n) * (s / n)
        # log1p keeps the precision of the few other queues where nearly all are among the s.
        return math.exp(d * math.log1p(-others / n))
    if s < d:
        return 0.0
    product = 1.0
    if d <= others:
        for j in range(d):
            product *= (s - j) / (n - j)
            if product == 0.0:
                break
    else:
        for j in range(others):
            product *= (n - d - j) / (n - j)
            if product == 0.0:
                break
    return product


@njit(nogil=True)
def _advance(rng, s, d, lam, replacement, events, moved, at_top):  # noqa: ANN001, ANN202
    """Make up to `events` steps in place and return how many: fewer if the room is used up."""
    n = s[0]
    top = len(s) - 1
    while s[top] == 0:
        top -= 1
    beta = np.zeros(len(s))
    for i in range(top + 1):
        beta[i] = all_among(s[i], n, d, replacement)
    arrival = lam / (1.0 + lam)
    since = 0
    for step in range(1, events + 1):
        uniform = rng.random()
        if uniform < arrival:
            # Rescaled, the same uniform picks the level: i with beta[i] > w >= beta[i+1].
            w = uniform / arrival
            i = top
            while beta[i] <= w and i > 0:
                i -= 1
            i += 1
            s[i] += 1
            moved[i] += step
            if replacement or beta[i] < 1e-290:
                beta[i] = all_among(s[i], n, d, replacement)
            else:  # C(s, d) / C(s - 1, d); each call starts afresh, so rounding stays below 1e-12
                beta[i] *= s[i] / (s[i] - d)
            if i > top:
                at_top[top] += step - since
                since = step
                top = i
                if top == len(s) - 2:
                    return step
        else:
            v = (uniform - arrival) / (1.0 - arrival) * n
            i = top
            while s[i] <= v:
                i -= 1
            if i > 0:
                s[i] -= 1
                moved[i] -= step
                if replacement or beta[i] < 1e-290:
                    beta[i] = all_among(s[i], n, d, replacement)
                else:
                    beta[i] *= (s[i] + 1 - d) / (s[i] + 1)
                if s[top] == 0:
                    at_top[top] += step - since
                    since = step
                    top -= 1
    at_top[top] += events - since
    return events
