"""Server pools, exactly: how many pools of each class have how many tasks, one event at a time.

Tasks arrive at rate n rho and are served in parallel, each for a mean time of 1 by itself. Pools of
one class are exchangeable, so the numbers of pools with each number of tasks are a Markov chain of
their own, whose size does not depend on n. The policies:

- "jlmu", join the largest marginal utility (D. Goldsztajn, S. C. Borst and J. S. H. van
  Leeuwaarden, arXiv:2112.08958): a pool to which one more task adds most. Of equal ones that of the
  earlier class is taken: the task goes to the first pair in the order that is not full.
- "threshold", which learns the order's last full pair and needs no comparison of utilities. At
  threshold r the first r pairs of the order are meant to be full. A pool that lacks a task of these
  is green; a pool whose next task is of pair r + 1 is yellow. A task goes to a random green pool;
  if there is none, to a random yellow pool; if there is none, to a random pool. On the state that
  it finds, r falls by 1 if the fraction of green pools is at least the tolerance, and else rises
  by 1 if at most one pool is green or yellow. For one class, r tasks a pool, this is the policy of
  D. Goldsztajn, S. C. Borst, J. S. H. van Leeuwaarden, D. Mukherjee and P. A. Whiting,
  arXiv:2010.15525, with 1 - tolerance for their alpha. For several it is a reconstruction: the
  rule of arXiv:2112.08958 may differ in its details.
- "jsq", join the shortest queue: a random one of the pools with the fewest tasks.
- "random": a random pool.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import ArrayLike, NDArray

import supermarket
from supermarket.compiled import kernel
from supermarket.controls import controlled_interval
from supermarket.pools import ServerPools
from supermarket.statistics import Interval
from supermarket.theory.utility import best_utility, unavoidable_deficit
from supermarket.validation import ParameterError, choice, integer, real

_POLICIES = ("jlmu", "threshold", "jsq", "random")
_EVENTS_PER_CALL = 2**22  # some tenths of a second, so that Ctrl-C is heard
_NANOSECONDS = 60.0  # a rough time of an event, to refuse what would take days


@dataclass(frozen=True)
class PoolSimulation:
    """What one run gave, and everything that made it.

    Attributes
    ----------
    profile : ndarray of float64, shape (m, levels)
        ``profile[i, j - 1]``: time-averaged fraction of pools that are of class i with at least j
        tasks.
    utility : float
        Time-averaged aggregate utility a pool.
    misplaced : float
        Time average of what the best assignment of the tasks present would add to it, at least 0.
    max_tasks : int
        The most tasks that a pool had, warm-up included.
    times : ndarray of float64, shape (t,)
        Times since the end of the warm-up, in mean service times.
    path : ndarray of int64, shape (t, m, levels)
        ``path[k, i, j - 1]`` is the number of pools of class i with at least j tasks at times[k].
    threshold_path : ndarray of int64, shape (t,)
        The threshold at these times; for other policies than "threshold" it stays what it was.
    thresholds : dict of int to float
        Threshold to the share of time for which it was used.
    tasks : float
        Time-averaged number of tasks a pool.
    batch_utility, batch_misplaced, batch_tasks : ndarray of float64, shape (batches,)
        The same averages over consecutive stretches of equal length.
    batch_profile : ndarray of float64, shape (batches, m, levels)
        The profile over the same stretches.
    batch_threshold : ndarray of float64, shape (batches, m * levels)
        The share of time at each threshold over the same stretches.
    events : int
        Arrivals and departures, those of the warm-up included.
    pools, n, rho, policy, tolerance, horizon, warmup, start, seed, version
        What the run was asked for. `start` is its name or "given"; `seed` is (entropy, spawn key).
    """

    profile: NDArray[np.float64]
    utility: float
    misplaced: float
    max_tasks: int
    times: NDArray[np.float64]
    path: NDArray[np.int64]
    threshold_path: NDArray[np.int64]
    thresholds: dict[int, float]
    tasks: float
    batch_utility: NDArray[np.float64]
    batch_misplaced: NDArray[np.float64]
    batch_tasks: NDArray[np.float64]
    batch_profile: NDArray[np.float64]
    batch_threshold: NDArray[np.float64]
    events: int
    pools: ServerPools
    n: int
    rho: float
    policy: str
    tolerance: float
    horizon: float
    warmup: float
    start: str
    seed: tuple[int, tuple[int, ...]]
    version: str

    def utility_interval(self, confidence: float = 0.95, **options: Any) -> Interval:
        """Return the interval for the mean utility in steady state.

        The mean number of tasks a pool is rho under every policy: it is a control variate (see
        `supermarket.controls.controlled_interval`, which the options are for).
        """
        return controlled_interval(self.batch_utility, self._controls[:1], confidence, **options)

    def misplaced_interval(self, confidence: float = 0.95, **options: Any) -> Interval:
        """Return the interval for `misplaced` in steady state, far narrower than for the utility.

        The utility is the best one for the tasks present less this. The number of tasks is Poisson
        of mean n rho under every policy, so the means of it and of the best utility are known:
        both are control variates.
        """
        return controlled_interval(self.batch_misplaced, self._controls, confidence, **options)

    def profile_interval(
        self, i: int, j: int, confidence: float = 0.95, **options: Any
    ) -> Interval:
        """Return the interval for ``profile[i, j - 1]``, with the number of tasks as a control."""
        shares = self.batch_profile[:, i, j - 1]
        return controlled_interval(shares, self._controls[:1], confidence, **options)

    @property
    def _controls(self) -> list[NDArray[np.float64]]:
        """Tasks and best utility in each batch, less their means in steady state."""
        known = float(best_utility(self.pools, self.rho))
        known -= unavoidable_deficit(self.pools, self.rho, self.n)
        return [self.batch_tasks - self.rho, self.batch_utility + self.batch_misplaced - known]


def simulate_pools(
    pools: ServerPools,
    n: int,
    rho: float,
    *,
    horizon: float,
    seed: int | SeedSequence,
    policy: str = "jlmu",
    tolerance: float = 0.1,
    threshold: int = 0,
    warmup: float | None = None,
    start: str | ArrayLike = "optimum",
    times: ArrayLike = (),
    batches: int = 64,
    max_hours: float = 1.0,
    dry_run: bool = False,
) -> PoolSimulation | None:
    """Simulate n server pools exactly.

    Parameters
    ----------
    pools : ServerPools
        Classes and utilities (see `supermarket.pools.server_pools`).
    n : int
        Number of pools, such that every class has a whole number of them.
    rho : float
        Arrivals a pool in a mean service time, so also the mean number of tasks a pool.
    horizon : float
        Length of the measured run, in mean service times.
    seed : int or SeedSequence
        Fixes the result together with the other parameters.
    policy : {"jlmu", "threshold", "jsq", "random"}
        As described at the head of this module.
    tolerance : float
        Fraction of green pools at which the threshold falls, in (0, 1).
    threshold : int
        The threshold to begin with, from 0.
    warmup : float, optional
        Time that passes before anything is measured; a tenth of the horizon by default.
    start : {"optimum", "empty"} or array_like of float
        State before the warm-up: n rho tasks placed as well as can be, none, or shares of shape
        (m, levels), rounded to whole pools.
    times : array_like of float
        Times since the end of the warm-up at which the state is recorded, not decreasing.
    batches : int
        Number of stretches of equal length for batch means, at least 8.
    max_hours : float
        A run that would take longer than about this is refused before it starts.
    dry_run : bool
        Check the parameters and return None.

    Raises
    ------
    ParameterError
        If a parameter is not allowed, the run would take longer than `max_hours`, or a pool comes
        to hold as many tasks as its utility is known for.

    Examples
    --------
    >>> from supermarket.chains.server_pools import simulate_pools
    >>> from supermarket.pools import server_pools
    >>> pools = server_pools([1.0], [lambda x: -x * x], levels=40)
    >>> run = simulate_pools(pools, 100, 3.5, horizon=20, seed=1)
    >>> bool(abs(run.tasks - 3.5) < 0.3), run.max_tasks
    (True, 4)
    """
    pools.sizes(n)
    rho = real("rho", rho, 0.0, float(pools.levels), open_low=True, open_high=True)
    policy = str(choice("policy", policy, _POLICIES))
    tolerance = real("tolerance", tolerance, 0.0, 1.0, open_low=True, open_high=True)
    threshold = integer("threshold", threshold, 0, pools.marginals.size - 1)
    horizon = real("horizon", horizon, 0.0, open_low=True)
    warmup = horizon / 10 if warmup is None else real("warmup", warmup, 0.0)
    batches = integer("batches", batches, 8, 10**6)
    times = _moments(times, horizon)
    max_hours = real("max_hours", max_hours, 0.0, open_low=True)
    hours = 2 * n * rho * (horizon + warmup) * _NANOSECONDS * 1e-9 / 3600
    if hours > max_hours:
        raise ParameterError(
            f"about {2 * n * rho * (horizon + warmup):.2g} events are asked for, which takes some "
            f"{hours:.2g} hours: shorten the horizon ({horizon:g}), or pass "
            f"max_hours={hours * 1.1:.2g} to go ahead."
        )
    if not isinstance(seed, SeedSequence):
        seed = SeedSequence(integer("seed", seed, 0))
    at_least, named = _start(pools, n, rho, start)
    if dry_run:
        return None
    chain = _Pools(pools, n, rho, _POLICIES.index(policy), tolerance, threshold, at_least, seed)
    if warmup > 0:
        chain.stretch(warmup)
    seen, path, threshold_path, upcoming = [], [], [], list(times)
    ends = np.linspace(0.0, horizon, batches + 1)
    for begin, end in pairwise(ends):
        now, parts = begin, []
        while upcoming and (upcoming[0] < end or end == ends[-1]):
            moment = upcoming.pop(0)
            if moment > now:
                parts.append(chain.stretch(moment - now))
                now = moment
            path.append(chain.at_least())
            threshold_path.append(int(chain.state["threshold"][0]))
        if end > now:
            parts.append(chain.stretch(end - now))
        seen.append([sum(part) / (end - begin) for part in zip(*parts, strict=True)])
    taken, best, used = (np.array(rows) for rows in zip(*seen, strict=True))
    by_pair = np.zeros((2, batches, *pools.marginals.shape))
    classes, levels = pools.order
    by_pair[:, :, classes, levels - 1] = taken, best
    utility, best_utility = pools.utility(by_pair)
    misplaced = best_utility - utility
    law = used.mean(axis=0)
    return PoolSimulation(
        profile=by_pair[0].mean(axis=0),
        utility=float(utility.mean()),
        misplaced=float(misplaced.mean()),
        max_tasks=int(chain.state["most"][0]),
        times=times,
        path=np.array(path, dtype=np.int64).reshape(-1, *pools.marginals.shape),
        threshold_path=np.array(threshold_path, dtype=np.int64),
        thresholds={int(r): float(law[r]) for r in np.flatnonzero(law)},
        tasks=float(by_pair[0].sum(axis=(1, 2)).mean()),
        batch_utility=utility,
        batch_misplaced=misplaced,
        batch_tasks=by_pair[0].sum(axis=(1, 2)),
        batch_profile=by_pair[0],
        batch_threshold=used,
        events=chain.events,
        pools=pools,
        n=n,
        rho=rho,
        policy=policy,
        tolerance=tolerance,
        horizon=horizon,
        warmup=warmup,
        start=named,
        seed=(int(seed.entropy), tuple(seed.spawn_key)),
        version=supermarket.__version__,
    )


def _moments(times: ArrayLike, horizon: float) -> NDArray[np.float64]:
    try:
        moments = np.atleast_1d(np.asarray(times, dtype=np.float64))
    except (TypeError, ValueError):
        raise ParameterError("times must be a list of numbers.") from None
    if moments.ndim != 1 or not np.all((moments >= 0) & (moments <= horizon)):
        raise ParameterError(f"times must be numbers between 0 and the horizon {horizon:g}.")
    if np.any(np.diff(moments) < 0):
        raise ParameterError("times must not decrease: sort them.")
    return moments


def _start(
    pools: ServerPools, n: int, rho: float, start: str | ArrayLike
) -> tuple[NDArray[np.int64], str]:
    """Return the numbers of pools with at least j tasks, and the name of the start."""
    shape = pools.marginals.shape
    if isinstance(start, str):
        choice("start", start, ("optimum", "empty"))
        return pools.assignment(n, round(n * rho) if start == "optimum" else 0), start
    shares = np.asarray(start, dtype=np.float64)
    inside = shares.shape == shape and np.all(shares <= pools.alpha[:, np.newaxis] + 1e-12)
    if not (inside and np.all(shares >= 0) and np.all(np.diff(shares, axis=1) <= 0)):
        raise ParameterError(
            f"start must be 'optimum', 'empty', or shares of shape {shape}, not increasing along a "
            "class and between 0 and its alpha."
        )
    return np.rint(shares * n).astype(np.int64), "given"


# All tasks; the first pair that is not full, and the one that the last task should be in; the
# fewest tasks of a pool; the threshold, the number of green pools; the most tasks of a pool so far.
_STATE = np.dtype(
    [(name, "i8") for name in ("tasks", "first", "tip", "fewest", "threshold", "green", "most")]
)


class _Counts(NamedTuple):
    """The pools of each class with each number of tasks, and what is looked up in them.

    `limits` holds the tasks that a pool of each class should have, `state` is of _STATE, shape
    (1,), and `classes` and `levels` are the pairs in their order.
    """

    exact: NDArray[np.int64]
    limits: NDArray[np.int64]
    state: NDArray
    classes: NDArray[np.int64]
    levels: NDArray[np.int64]


class _Order(NamedTuple):
    """The place of each pair of a class and a level, and how many tasks there are room for.

    `full` is for the pair alone, `room` for it and those before.
    """

    place: NDArray[np.int64]
    full: NDArray[np.int64]
    room: NDArray[np.int64]


class _Law(NamedTuple):
    """The number of pools, the rate of arrivals, the policy, and the tolerance in pools."""

    n: int
    arrivals: float
    policy: int
    tolerance: float


class _Sums(NamedTuple):
    """The tasks in each pair, as they are and as they should be, and what a stretch adds up.

    `moved` gathers (change of a count) * (time of the change) for each change of `pairs`, and
    `used[r]` the time at threshold r.
    """

    pairs: NDArray[np.int64]
    moved: NDArray[np.float64]
    used: NDArray[np.float64]


class _Pools:
    """The counts, and what the policies look up in them."""

    def __init__(
        self,
        pools: ServerPools,
        n: int,
        rho: float,
        policy: int,
        tolerance: float,
        threshold: int,
        at_least: NDArray[np.int64],
        seed: SeedSequence,
    ) -> None:
        classes, levels = pools.order
        sizes = pools.sizes(n)
        m, most = pools.marginals.shape
        self.n, self.rng = n, np.random.default_rng(seed)
        self.law = _Law(n, n * rho, policy, tolerance * n)
        place = np.zeros((m, most + 1), dtype=np.int64)
        place[classes, levels] = np.arange(m * most)
        self.exact = -np.diff(np.column_stack([sizes, at_least, np.zeros_like(sizes)]), axis=1)
        self.order = _Order(place, sizes[classes], np.cumsum(sizes[classes]))
        tasks = int(at_least.sum())
        both = np.stack([at_least, pools.assignment(n, tasks)])
        self.pairs = both[:, classes, levels - 1]
        first = int(np.argmax(self.pairs[0] < self.order.full))
        tip = int(np.searchsorted(self.order.room, tasks))
        highest = int(np.max(np.nonzero(self.exact)[1]))
        self.state = np.array([(tasks, first, tip, 0, threshold, 0, highest)], dtype=_STATE)
        limits = np.zeros(m, dtype=np.int64)
        self.counts = _Counts(self.exact, limits, self.state, classes, levels)
        self.state["green"] = _limit(self.counts)
        self.events = 0

    def at_least(self) -> NDArray[np.int64]:
        """Return the numbers of pools of each class with at least 1, 2, ... tasks."""
        return np.cumsum(self.exact[:, :0:-1], axis=1)[:, ::-1]

    def stretch(self, length: float) -> tuple[NDArray[np.float64], ...]:
        """Go on for this time.

        Return the integrals over it of the shares in each pair, of what they would be in the best
        assignment of the same tasks, and of the indicator of each threshold.
        """
        pairs, used = np.zeros(self.pairs.shape), np.zeros(self.pairs.shape[1])
        left = length
        while left > 0:
            moved, before = np.zeros(self.pairs.shape), left
            sums = _Sums(self.pairs, moved, used)
            given = self.counts, self.order, self.law, left, _EVENTS_PER_CALL, sums
            done, left = _advance(self.rng, *given)
            # The integral of a count, from its changes and their times alone.
            pairs += self.pairs * (before - left) - moved
            self.events += done
            if self.exact[:, -1].any():
                raise ParameterError(
                    f"a pool came to hold {self.exact.shape[1] - 1} tasks, for which its utility "
                    "is no longer known: give more levels."
                )
        return pairs[0] / self.n, pairs[1] / self.n, used


@kernel(nogil=True)
def _advance(rng, counts, order, law, length, most_events, sums):
    """Go on for `length` or `most_events`; return the events made and the time that is left."""
    exact, _, states, classes, levels = counts
    place, full, room = order
    n, arrivals, policy, tolerance = law
    pairs, moved, used = sums
    state = states[0]
    now, since = 0.0, 0.0
    top = exact.shape[1] - 1
    for done in range(most_events):
        rate = arrivals + state["tasks"]
        now += rng.standard_exponential() / rate
        if now >= length:  # without memory: what is left of the holding time is drawn anew
            used[state["threshold"]] += length - since
            return done, 0.0
        if rng.random() * rate < arrivals:
            if policy == 0:
                chosen, j = classes[state["first"]], levels[state["first"]] - 1
            elif policy == 1:
                r = state["threshold"]
                chosen, j = _by_threshold(rng, counts, n)
                state["threshold"] = _learned(counts, tolerance)
            elif policy == 2:
                while _with_tasks(exact, state["fewest"]) == 0:
                    state["fewest"] += 1
                j = state["fewest"]
                chosen = _one_of(rng, exact, j)
            else:
                chosen, j = _any_pool(rng, exact, n)
            _change(counts, chosen, j, 1)
            pair = place[chosen, j + 1]
            pairs[0, pair] += 1
            moved[0, pair] += now
            while pairs[0, state["first"]] == full[state["first"]]:
                state["first"] += 1
            if state["tasks"] > room[state["tip"]]:
                state["tip"] += 1
            pairs[1, state["tip"]] += 1
            moved[1, state["tip"]] += now
            if policy == 1 and state["threshold"] != r:
                used[r] += now - since
                since = now
                state["green"] = _limit(counts)
            if j + 1 == top:
                used[state["threshold"]] += now - since
                return done + 1, length - now
        else:
            chosen, j = _leaving(rng, counts)
            _change(counts, chosen, j, -1)
            pair = place[chosen, j]
            pairs[0, pair] -= 1
            moved[0, pair] -= now
            state["first"] = min(state["first"], pair)
            state["fewest"] = min(state["fewest"], j - 1)
            pairs[1, state["tip"]] -= 1
            moved[1, state["tip"]] -= now
            if pairs[1, state["tip"]] == 0 and state["tip"] > 0:
                state["tip"] -= 1
    used[state["threshold"]] += now - since
    return most_events, length - now


@kernel(nogil=True)
def _change(counts, chosen, j, by):
    """Move one pool of class `chosen` from j tasks to j + by."""
    exact, limits, state = counts.exact, counts.limits, counts.state[0]
    exact[chosen, j] -= 1
    exact[chosen, j + by] += 1
    state["tasks"] += by
    state["most"] = max(state["most"], j + by)
    state["green"] += int(j + by < limits[chosen]) - int(j < limits[chosen])


@kernel(nogil=True)
def _leaving(rng, counts):
    """Return class and tasks of the pool of a task chosen at random."""
    exact, state = counts.exact, counts.state[0]
    left = int(rng.random() * state["tasks"])
    for j in range(min(state["most"], exact.shape[1] - 1), 0, -1):
        for i in range(len(exact)):
            left -= j * exact[i, j]
            if left < 0:
                return i, j
    raise AssertionError("there are fewer tasks than counted")


@kernel(nogil=True)
def _with_tasks(exact, j):
    """Return how many pools have j tasks."""
    total = 0
    for i in range(len(exact)):
        total += exact[i, j]
    return total


@kernel(nogil=True)
def _one_of(rng, exact, j):
    """Return the class of a pool chosen at random among those with j tasks."""
    left = int(rng.random() * _with_tasks(exact, j))
    i = 0
    while left >= exact[i, j]:
        left -= exact[i, j]
        i += 1
    return i


@kernel(nogil=True)
def _any_pool(rng, exact, n):
    """Return class and tasks of a pool chosen at random."""
    left = int(rng.random() * n)
    for i in range(len(exact)):
        for j in range(exact.shape[1]):
            left -= exact[i, j]
            if left < 0:
                return i, j
    raise AssertionError("there are fewer pools than counted")


@kernel(nogil=True)
def _by_threshold(rng, counts, n):
    """Return class and tasks of a random green, else yellow, else any pool."""
    exact, limits, states, classes, levels = counts
    state = states[0]
    if state["green"] > 0:
        left = int(rng.random() * state["green"])
        for i in range(len(exact)):
            for j in range(limits[i] - 1, -1, -1):
                left -= exact[i, j]
                if left < 0:
                    return i, j
    i, j = classes[state["threshold"]], levels[state["threshold"]] - 1
    if exact[i, j] > 0:
        return i, j
    return _any_pool(rng, exact, n)


@kernel(nogil=True)
def _learned(counts, tolerance):
    """Return the threshold after an arrival, from the state that it finds."""
    exact, _, states, classes, levels = counts
    state = states[0]
    r, green = state["threshold"], state["green"]
    if r > 0 and green >= tolerance:
        return r - 1
    if green + exact[classes[r], levels[r] - 1] <= 1 and r + 1 < len(classes):
        return r + 1
    return r


@kernel(nogil=True)
def _limit(counts):
    """Set the tasks that a pool of each class should have; return the number of green pools."""
    exact, limits, states, classes, levels = counts
    for i in range(len(limits)):
        limits[i] = 0
    for pair in range(states[0]["threshold"]):
        limits[classes[pair]] = levels[pair]
    green = 0
    for i in range(len(exact)):
        for j in range(limits[i]):
            green += exact[i, j]
    return green
