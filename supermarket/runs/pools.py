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

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import ArrayLike, NDArray

from supermarket.kernels.compiled import kernel
from supermarket.models.pools import POLICIES, PoolSystem, ServerPools
from supermarket.runs.run import Run, name_of_seed
from supermarket.runs.schedule import Schedule, stack
from supermarket.validation import ParameterError, choice, integer, numbers

_EVENTS_PER_CALL = 2**22  # some tenths of a second, so that Ctrl-C is heard
_NANOSECONDS = 60.0  # a rough time of an event, to refuse what would take days


def prepare(
    model: PoolSystem, schedule: Schedule, seed: SeedSequence, start: object
) -> Callable[[], Run]:
    """Check what `supermarket.simulate` was asked for and return what makes the run."""
    pools, n, rho = model.pools, model.n, model.rho
    if schedule.unit != "service":
        raise ParameterError("pools know no steps: use unit='service'.")
    schedule.allow(2 * n * rho * (schedule.horizon + schedule.lead), _NANOSECONDS)
    integer("batches", schedule.batches, 8)
    at_least, named = _start(pools, n, rho, "optimum" if start is None else start)

    def run() -> Run:
        chain = _Pools(model, at_least, seed)
        tallies, path = schedule.follow(chain)
        lengths = np.diff(schedule.edges)
        taken, best, used = (
            np.array(rows) / lengths[:, np.newaxis] for rows in zip(*tallies, strict=True)
        )
        by_pair = np.zeros((2, schedule.batches, *pools.marginals.shape))
        classes, levels = pools.order
        by_pair[:, :, classes, levels - 1] = taken, best
        utility, best_utility = pools.utility(by_pair)
        final = chain.at_least()
        return Run(
            model=model,
            schedule=schedule,
            start=named,
            seed=name_of_seed(seed),
            engine="pools",
            events=chain.events,
            path=stack([state for state, _ in path], final),
            final=final,
            batches={
                "profile": by_pair[0],
                "utility": utility,
                "misplaced": best_utility - utility,
                "tasks": by_pair[0].sum(axis=(1, 2)),
                "threshold": used,
            },
            ends=np.zeros((0, *final.shape), dtype=np.int64),
            extra={
                "threshold path": np.array([threshold for _, threshold in path], dtype=np.int64),
                "most tasks": int(chain.state["most"][0]),
            },
        )

    return run


def _start(
    pools: ServerPools, n: int, rho: float, start: str | ArrayLike
) -> tuple[NDArray[np.int64], str]:
    """Return the numbers of pools with at least j tasks, and the name of the start."""
    shape = pools.marginals.shape
    if isinstance(start, str):
        choice("start", start, ("optimum", "empty"))
        return pools.assignment(n, round(n * rho) if start == "optimum" else 0), start
    shares = numbers("start", start)
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

    def __init__(self, model: PoolSystem, at_least: NDArray[np.int64], seed: SeedSequence) -> None:
        pools, n, rho, threshold = model.pools, model.n, model.rho, model.threshold
        policy, tolerance = POLICIES.index(model.policy), model.tolerance
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
        self.tally = np.zeros((3, self.pairs.shape[1]))

    def at_least(self) -> NDArray[np.int64]:
        """Return the numbers of pools of each class with at least 1, 2, ... tasks."""
        return np.cumsum(self.exact[:, :0:-1], axis=1)[:, ::-1]

    def look(self) -> tuple[NDArray[np.int64], int]:
        """Return the numbers of pools with at least 1, 2, ... tasks, and the threshold."""
        return self.at_least(), int(self.state["threshold"][0])

    def settle(self) -> tuple[NDArray[np.float64], ...]:
        """Return what `go` has added up, and begin anew.

        These are the integrals of the shares in each pair, of what they would be in the best
        assignment of the same tasks, and of the indicator of each threshold.
        """
        seen = self.tally
        self.tally = np.zeros((3, self.pairs.shape[1]))
        return tuple(seen)

    def go(self, length: float, until: float) -> None:
        """Go on for this time."""
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
        self.tally += pairs[0] / self.n, pairs[1] / self.n, used


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
