"""Run a chain over a stretch of time and measure it: what all chains here share.

Time is continuous: events come as a Poisson process of rate n (1 + lam) per mean service time, and
every event is one step of the discrete chain of Brightwell & Luczak. Given the number N of events
in an interval, its N + 1 holding times have the same law, so each state is weighted by 1 / (N + 1):
the mean over the holding times given the path, with the same expectation and less noise.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import ArrayLike, NDArray

import supermarket
from supermarket.statistics import Interval, batch_interval, time_share_interval
from supermarket.theory.fixed_point import relaxation_time
from supermarket.validation import (
    EXACT_MAX,
    ParameterError,
    arrival_rate,
    choice,
    integer,
    nearest,
    real,
)


class Chain(Protocol):
    """What `measure` needs of a chain."""

    counts: NDArray[np.int64]  # counts[i] = queues of length at least i; the last entry is 0
    tally: type  # int64, or float64 where single steps are not seen
    events_per_call: int  # as many as take a few tenths of a second, so that Ctrl-C is heard

    def advance(self, events: int, moved: NDArray[np.int64], at_top: NDArray[np.int64]) -> int:
        """Make up to `events` steps and return how many; fewer if the next level needs room.

        With the steps numbered from 1, add to ``moved[i]`` (change of counts[i]) * (step) for
        every change, and to ``at_top[m]`` the number of states left whose top level was m.
        """

    def grow(self) -> None:
        """Double the number of levels there is room for."""


@dataclass(frozen=True)
class Simulation:
    """What one run of a chain gave, and everything that made it.

    Attributes
    ----------
    profile : ndarray of float64, shape (levels,)
        ``profile[i]`` is the time-averaged share of queues with length at least i; it is 0 from the
        first level that was never reached.
    max_queue : dict of int to float
        Length to the share of time for which it was the maximum queue length.
    times : ndarray of float64, shape (m,)
        Times since the end of the warm-up, in `time_unit`.
    path : ndarray of int64, shape (m, levels)
        ``path[j, i]`` is the number of queues with length at least i at ``times[j]``.
    events : int
        Steps of the chain, those of the warm-up included.
    batch_profiles : ndarray of float64, shape (batches, levels)
        The profile over consecutive stretches of equal length.
    batch_max_queue : ndarray of float64, shape (batches, levels)
        The law of the maximum over the same stretches.
    batch_ends : ndarray of int64, shape (batches, levels)
        The counts at the end of each stretch.
    final : ndarray of int64, shape (levels,)
        The counts at the end.
    chain : str
        "occupancy" with its engine, or "queues".
    n, d, lam, replacement, horizon, warmup, time_unit, start, seed, version
        What the run was asked for. `start` is its name or "given"; `seed` is (entropy, spawn key).
    """

    profile: NDArray[np.float64]
    max_queue: dict[int, float]
    times: NDArray[np.float64]
    path: NDArray[np.int64]
    events: int
    batch_profiles: NDArray[np.float64]
    batch_max_queue: NDArray[np.float64]
    batch_ends: NDArray[np.int64]
    final: NDArray[np.int64]
    chain: str
    n: int
    d: int
    lam: float
    replacement: bool
    horizon: float
    warmup: float
    time_unit: str
    start: str
    seed: tuple[int, tuple[int, ...]]
    version: str

    @property
    def mean_queue(self) -> float:
        """Time-averaged number of jobs a queue."""
        return float(self.profile[1:].sum())

    def profile_interval(self, confidence: float = 0.95, **options: Any) -> Interval:
        """Return batch-means intervals for every level of the profile.

        Parameters
        ----------
        confidence : float
            In (0, 1).
        **options
            `among`, as in `supermarket.statistics.batch_interval`; and `relaxation_time`, in
            `time_unit`, where one is known that is better than this run's own.
            An interval is refused if the run is not `supermarket.statistics.ENOUGH` times as long.
        """
        return self._interval(self.batch_profiles, self.batch_ends / self.n, confidence, **options)

    def mean_queue_interval(self, confidence: float = 0.95, **options: Any) -> Interval:
        """Return the interval for the mean number of jobs a queue; see `profile_interval`."""
        means, ends = (x[:, 1:].sum(axis=1) for x in (self.batch_profiles, self.batch_ends))
        return self._interval(means, ends / self.n, confidence, **options)

    def exact_length_interval(
        self, length: int, confidence: float = 0.95, **options: Any
    ) -> Interval:
        """Return the interval for the share of queues with exactly this length."""
        levels = self.batch_profiles.shape[1]
        if length + 1 >= levels:
            why = "never seen in the whole run"
            return Interval(0.0, math.nan, math.nan, confidence, refused=why)
        share, ends = (
            x[:, length] - x[:, length + 1] for x in (self.batch_profiles, self.batch_ends)
        )
        return self._interval(share, ends / self.n, confidence, **options)

    def mean_max_queue_interval(self, confidence: float = 0.95, **options: Any) -> Interval:
        """Return the interval for the mean over time of the maximum queue length."""
        lengths = np.arange(self.batch_max_queue.shape[1])
        ends = (self.batch_ends > 0).sum(axis=1) - 1
        return self._interval(self.batch_max_queue @ lengths, ends, confidence, **options)

    def _interval(
        self,
        batches: NDArray[np.float64],
        ends: NDArray[np.float64],
        confidence: float,
        *,
        among: int = 1,
        relaxation_time: float | None = None,
    ) -> Interval:
        if relaxation_time is None:
            relaxation_time = self.relaxation_time
        relaxations = None if relaxation_time is None else self.horizon / relaxation_time
        return batch_interval(
            batches, confidence, among=among, snapshots=ends, relaxations=relaxations
        )

    @property
    def relaxation_time(self) -> float | None:
        """Time in which the chain forgets its start, in `time_unit`; None if theory knows none."""
        if not self.chain.startswith(("occupancy", "queues", "leaps")):
            return None
        per_unit = self.n * (1 + self.lam) if self.time_unit == "steps" else 1.0
        return relaxation_time(self.lam, self.d) * per_unit

    def time_share_interval(
        self, lengths: ArrayLike, confidence: float = 0.95, *, among: int = 1
    ) -> Interval:
        """Return an interval for the share of time for which the maximum was one of `lengths`.

        See `supermarket.statistics.time_share_interval`, which holds also where it always was, or
        never.

        Parameters
        ----------
        lengths : array_like of int
            Maximum queue lengths.
        confidence, among
            As in `profile_interval`.
        """
        if self.relaxation_time is None:
            raise ParameterError(f"{self.chain} has no relaxation time that theory knows.")
        share = sum(self.max_queue.get(int(length), 0.0) for length in np.ravel(lengths))
        relaxations = self.horizon / self.relaxation_time
        return time_share_interval(share, relaxations, confidence, among=among)

    def max_queue_range(self, share: float = 0.98) -> "MaxQueueRange":
        """Return the lengths that the maximum took for this share of the time, and its median.

        The same share of the time, (1 - share) / 2, is left out at either side. That is what was
        seen: see `time_share_interval` for what may be said of equilibrium.
        """
        lengths = sorted(self.max_queue)
        below = np.cumsum([self.max_queue[length] for length in lengths])
        low, middle, high = (
            float(lengths[min(int(np.searchsorted(below, level)), len(lengths) - 1)])
            for level in ((1 - share) / 2, 0.5, (1 + share) / 2)
        )
        return MaxQueueRange(middle, low, high)


class MaxQueueRange(NamedTuple):
    """Maximum queue lengths: the median over time, and the ends of the range that was taken."""

    median: float
    low: float
    high: float


@dataclass(frozen=True)
class Plan:
    """A run's checked parameters."""

    n: int
    d: int
    lam: float
    horizon: float
    warmup: float
    seed: SeedSequence
    times: NDArray[np.float64]
    batches: int
    replacement: bool
    time_unit: str


def plan(
    n: int,
    d: int,
    lam: float,
    horizon: float,
    seed: int | SeedSequence,
    warmup: float | None,
    times: ArrayLike,
    batches: int,
    replacement: bool,
    time_unit: str,
    max_hours: float,
    nanoseconds: Callable[[int], float] = lambda n: 40.0,
    most: int = EXACT_MAX,
    steady: bool = True,
) -> Plan:
    """Check a run's parameters; the sentences name what is allowed (see `supermarket.simulate`).

    Unless a `steady` state is asked for, the arrival rate may be 1 or more.
    """
    n = integer("n", n, 1, most)
    d = integer("d", d, 1, most)
    lam = arrival_rate(lam) if steady else real("lam", lam, 0.0, open_low=True)
    if isinstance(replacement, np.bool_):
        replacement = bool(replacement)
    replacement = bool(choice("replacement", replacement, (True, False)))
    time_unit = str(choice("time_unit", time_unit, ("service", "steps")))
    if not replacement and d > n:
        raise ParameterError(
            f"d = {d} distinct queues cannot be chosen among n = {n}: "
            "choose d <= n, or replacement=True."
        )
    horizon = real("horizon", horizon, 0.0, open_low=True)
    warmup = horizon / 10 if warmup is None else real("warmup", warmup, 0.0)
    batches = integer("batches", batches, 2, 10**6)
    if time_unit == "steps":
        if not (horizon.is_integer() and horizon >= batches):
            raise ParameterError(
                f"horizon = {horizon:g} steps is not a whole number, at least batches = {batches}."
            )
        warmup = float(int(warmup))
    moments = _floats("times", times)
    if time_unit == "steps" and np.any(moments % 1):
        raise ParameterError("times in steps must be whole numbers.")
    if moments.ndim != 1 or not np.all((moments >= 0) & (moments <= horizon)):
        raise ParameterError(f"times must be numbers between 0 and the horizon {horizon:g}.")
    if np.any(np.diff(moments) < 0):
        raise ParameterError("times must not decrease: sort them.")
    per_unit = n * (1 + lam) if time_unit == "service" else 1.0
    max_hours = real("max_hours", max_hours, 0.0, open_low=True)
    events = (horizon + warmup) * per_unit
    hours = events * nanoseconds(n) * 1e-9 / 3600
    if hours > max_hours:
        raise ParameterError(
            f"about {events:.2g} events are asked for, which takes some {hours:.2g} hours: "
            f"shorten the horizon ({horizon:g}), or pass max_hours={hours * 1.1:.2g} to go ahead."
        )
    if not isinstance(seed, SeedSequence):
        seed = SeedSequence(integer("seed", seed, 0))
    return Plan(n, d, lam, horizon, warmup, seed, moments, batches, replacement, time_unit)


def _floats(name: str, values: ArrayLike) -> NDArray[np.float64]:
    try:
        return np.atleast_1d(np.asarray(values, dtype=np.float64))
    except (TypeError, ValueError):
        raise ParameterError(f"{name} must be a list of numbers.") from None


def given_counts(n: int, start: ArrayLike) -> NDArray[np.int64]:
    """Return the counts of a start profile given as shares u[0] = 1 >= u[1] >= ... >= 0.

    Raises
    ------
    ParameterError
        If the profile is not such a sequence.
    """
    if isinstance(start, str):
        names = ("empty", "fixed point")
        raise ParameterError(
            f"start = {start!r} is not known: use 'empty', 'fixed point', or a profile of shares"
            f"{nearest(start, names)}."
        )
    u = _floats("start", start)
    if u.ndim != 1 or len(u) == 0 or not np.all(np.isfinite(u)):
        raise ParameterError("start must be a list of finite shares u[0], u[1], ...")
    if u[0] != 1 or np.any(np.diff(u) > 0) or u[-1] < 0:
        raise ParameterError(
            "start must be a profile: u[0] = 1 and no share above the one before it, none below 0."
        )
    counts = np.rint(u * n).astype(np.int64)
    return np.append(counts[counts > 0], 0)


def with_room(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the counts followed by zeros: at least two levels above the top, 32 in all."""
    top = int(np.flatnonzero(counts)[-1])
    roomy = np.zeros(max(32, top + 3), dtype=np.int64)
    roomy[: top + 1] = counts[: top + 1]
    return roomy


def measure(
    chain: Chain, name: str, start: str, todo: Plan, rng: np.random.Generator
) -> Simulation:
    """Run `chain` through its warm-up and its horizon and return what was seen."""
    clock = _Clock(chain, todo, rng)
    if todo.warmup > 0:
        clock.stretch(todo.warmup)
    ends = np.linspace(0.0, todo.horizon, todo.batches + 1)
    if todo.time_unit == "steps":
        ends = np.rint(ends)
    profiles: list[NDArray[np.float64]] = []
    tops: list[NDArray[np.float64]] = []
    path, last = [], []
    upcoming = list(todo.times)
    for begin, end in pairwise(ends):
        batch_profile, batch_top = np.zeros((2, len(chain.counts)))
        now = begin
        while upcoming and (upcoming[0] < end or end == ends[-1]):
            moment = upcoming.pop(0)
            if moment > now:
                profile, top = clock.stretch(moment - now)
                batch_profile = _add(batch_profile, profile * (moment - now))
                batch_top = _add(batch_top, top * (moment - now))
                now = moment
            path.append(chain.counts.copy())
        if end > now:
            profile, top = clock.stretch(end - now)
            batch_profile = _add(batch_profile, profile * (end - now))
            batch_top = _add(batch_top, top * (end - now))
        profiles.append(batch_profile / (end - begin))
        tops.append(batch_top / (end - begin))
        last.append(chain.counts.copy())
    levels = len(chain.counts)
    weights = np.diff(ends) / todo.horizon
    batch_profiles, batch_tops = _stack(profiles, levels), _stack(tops, levels)
    law = weights @ batch_tops
    return Simulation(
        profile=weights @ batch_profiles,
        max_queue={int(m): float(law[m]) for m in np.flatnonzero(law)},
        times=todo.times,
        path=_stack(path, levels, np.int64),
        events=clock.events,
        batch_profiles=batch_profiles,
        batch_max_queue=batch_tops,
        batch_ends=_stack(last, levels, np.int64),
        final=chain.counts.copy(),
        chain=name,
        n=todo.n,
        d=todo.d,
        lam=todo.lam,
        replacement=todo.replacement,
        horizon=todo.horizon,
        warmup=todo.warmup,
        time_unit=todo.time_unit,
        start=start,
        seed=(int(todo.seed.entropy), tuple(todo.seed.spawn_key)),
        version=supermarket.__version__,
    )


class _Clock:
    """Turns stretches of time into events and averages over them."""

    def __init__(self, chain: Chain, todo: Plan, rng: np.random.Generator) -> None:
        self.chain = chain
        self.todo = todo
        self.rng = rng
        self.events = 0

    def stretch(self, length: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Go on for `length` units of time; return the mean profile and the law of the maximum."""
        todo, chain = self.todo, self.chain
        in_steps = todo.time_unit == "steps"
        events = int(length) if in_steps else self._arrivals_and_departures(length)
        summed, at_top = np.zeros((2, len(chain.counts)))
        left = events
        while left > 0:
            moved = np.zeros(len(chain.counts), dtype=chain.tally)
            stayed = np.zeros_like(moved)
            done = chain.advance(min(left, chain.events_per_call), moved, stayed)
            # The sum of a count over the states left by steps 1..done, from its changes alone.
            summed = _add(summed, chain.counts * float(done) - moved)
            at_top = _add(at_top, stayed)
            left -= done
            if chain.counts[-2] > 0:
                chain.grow()
        self.events += events
        states = events
        if not in_steps:  # the state after the last event is held too
            summed = _add(summed, chain.counts)
            at_top[_top(chain.counts)] += 1.0
            states += 1
        return summed / (todo.n * states), at_top / states

    def _arrivals_and_departures(self, length: float) -> int:
        """Draw the number of events in `length` units of time, in parts that a double counts."""
        mean = length * self.todo.n * (1 + self.todo.lam)
        parts = math.ceil(mean / EXACT_MAX)
        return sum(int(self.rng.poisson(mean / parts)) for _ in range(parts))


def _top(counts: NDArray[np.int64]) -> int:
    return int(np.flatnonzero(counts)[-1])


def _add(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Add two arrays, the shorter one continued by zeros."""
    if len(a) == len(b):
        return a + b
    total = np.zeros(max(len(a), len(b)))
    total[: len(a)] += a
    total[: len(b)] += b
    return total


def _stack(rows: Sequence[NDArray], levels: int, dtype: type = np.float64) -> NDArray:
    """Return rows of different lengths as one array, each continued by zeros."""
    stacked = np.zeros((len(rows), levels), dtype=dtype)
    for row, values in zip(stacked, rows, strict=True):
        row[: len(values)] = values
    return stacked
