"""Two copies of the chain driven by the same events, until they are one.

The chance that two copies have not met by a step bounds the total variation distance of their laws
at that step. Two ways to share the events:

*By queue*, the coupling of Luczak and McDiarmid: both copies see an arrival or both a departure,
with the same ordered list of d queues, of which each joins its own first shortest one, or with the
same server. Neither the l1 nor the l-infinity distance of the lengths ever grows, and a copy whose
queues are all no longer than the other's stays so.

*By rank*: as above with the queues of each copy ranked by length. An arrival at rank r joins the
first queue as long as the one at r, a departure is offered to the last such one. The distances are
those of the sorted lengths, and S_j = sum of (length - j + 1)+ also stays ordered for all j
(see `supermarket.chains.perfect`). Only the counts of queues of length at least i are needed:
with a uniform w, the rank of an arrival is n w**(1/d), the last of d uniform ones. More choices,
with the same w, lead to a rank further down, and so to a smaller S_j.

Copies may differ in their arrival rate: the one with the smaller rate leaves out a share of the
arrivals. Copies that agree in it and in d can make many events at a time by rank, see
`supermarket.chains.coupled_batches`; and many pairs of few queues can go in lock step, see
`couple_replicas`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.random import Generator, SeedSequence
from numpy.typing import ArrayLike, NDArray

import supermarket
from supermarket.chains import coupled_batches
from supermarket.chains.event_loop import rule_of
from supermarket.chains.measure import Plan, Simulation, plan
from supermarket.chains.occupancy import start_counts
from supermarket.chains.queues import checked_lengths
from supermarket.chains.replicas import simulate_replicas
from supermarket.compiled import kernel
from supermarket.sampling import WITH
from supermarket.statistics import Interval, mean_interval
from supermarket.validation import EXACT_MAX, ParameterError, arrival_rate, choice, integer

# From here on many events at a time are faster than one.
BATCHES_ABOVE = 2 * 10**4


@dataclass(frozen=True)
class Coupling:
    """How two coupled copies approached each other, and everything that made them.

    Attributes
    ----------
    met : int or None
        Steps of the chain until the copies were the same; None if they were not by the horizon, or
        if the step was not looked for.
    times : ndarray of float64, shape (m,)
        Times since the start, in mean service times.
    l1, linf : ndarray of int64, shape (m,)
        At these times, the sum and the maximum over the queues (by rank: the sorted queues) of the
        difference in length.
    final : tuple of ndarray of int64
        Where the copies ended: n lengths each, or counts each.
    by : {"queue", "rank, scan", "rank, batches", "rank, replicas"}
    n, d, lam, horizon, seed, version
        What the run was asked for; d and lam are pairs, `seed` is (entropy, spawn key).
    """

    met: int | None
    times: NDArray[np.float64]
    l1: NDArray[np.int64]
    linf: NDArray[np.int64]
    final: tuple[NDArray[np.int64], NDArray[np.int64]]
    by: str
    n: int
    d: tuple[int, int]
    lam: tuple[float, float]
    horizon: float
    seed: tuple[int, tuple[int, ...]]
    version: str

    @property
    def time(self) -> float:
        """Mean service times until the copies met, n (1 + lam) steps each; inf if they did not.

        NaN where the step is not looked for, see `couple_replicas`.
        """
        if self.by == "rank, replicas":
            return math.nan
        return math.inf if self.met is None else self.met / (self.n * (1 + max(self.lam)))


def couple_queues(
    d: int,
    lam: float | tuple[float, float],
    *,
    lengths: tuple[ArrayLike, ArrayLike],
    horizon: float,
    seed: int | SeedSequence,
    times: ArrayLike = (),
    max_hours: float = 1.0,
    dry_run: bool = False,
) -> Coupling | None:
    """Run two copies coupled by queue until they meet.

    Parameters
    ----------
    d : int
        Number of queues that an arrival looks at, with replacement, at least 1.
    lam : float or pair of floats
        Arrival rate per queue in units of the service rate, in (0, 1); of each copy, if a pair.
    lengths : pair of array_like of int, each of shape (n,)
        Queue lengths of the two copies at the start, n at most 10**9.
    horizon : float
        Where to stop, in mean service times, of n (1 + lam) steps each (lam the larger one). Copies
        that agree in lam stop when they meet.
    seed : int or SeedSequence
        Fixes the result together with the other parameters.
    times : array_like of float
        Times at which the distances are recorded, not decreasing.
    max_hours : float
        A run that would take longer than about this is refused before it starts.
    dry_run : bool
        Check the parameters and return None, so that of many runs none is refused half-way.

    Returns
    -------
    Coupling

    Raises
    ------
    ParameterError
        If a parameter is not allowed, or the run might take longer than `max_hours`.

    References
    ----------
    .. [1] M. J. Luczak and C. McDiarmid, "On the maximum queue length in the supermarket model",
       Annals of Probability 34 (2006) 493.
    .. [2] G. Brightwell and M. Luczak, "The supermarket model with arrival rate tending to one",
       arXiv:1201.5523, sections 4 and 11.

    Examples
    --------
    >>> from supermarket.chains.coupled import couple_queues
    >>> run = couple_queues(2, 0.7, lengths=([0] * 50, [3] * 50), horizon=1000, seed=1)
    >>> run.met is not None and run.final[0].tolist() == run.final[1].tolist()
    True
    """
    x, y = _pair("lengths", lengths)
    n = integer("the number of queues", len(np.atleast_1d(x)), 1, 10**9)
    x, y = checked_lengths(x, n), checked_lengths(y, n)
    lams = _rates(lam)
    todo = plan(
        n, d, max(lams), horizon, seed, 0, times, 2, True, "service", max_hours,
        nanoseconds=lambda n: 20.0 + (8.0 if n < 10**6 else 80.0) * d,
    )  # fmt: skip
    if dry_run:
        return None
    rng = np.random.default_rng(todo.seed)
    return _run(_Queues(x, y, todo.d, lams, rng), "queue", (todo.d, todo.d), lams, todo)


def couple_ranks(
    n: int,
    d: int | tuple[int, int],
    lam: float | tuple[float, float],
    *,
    starts: tuple[str | ArrayLike, str | ArrayLike],
    horizon: float,
    seed: int | SeedSequence,
    times: ArrayLike = (),
    engine: str = "auto",
    max_hours: float = 1.0,
    dry_run: bool = False,
) -> Coupling | None:
    """Run two copies coupled by rank until they meet, by their counts alone.

    Parameters
    ----------
    n : int
        Number of queues, at least 1.
    d : int or pair of ints
        Number of queues that an arrival looks at, with replacement, at least 1; of each copy, if a
        pair.
    lam, horizon, seed, times, max_hours, dry_run
        As in `couple_queues`.
    starts : pair of {"fixed point", "empty"} or array_like of float
        The start of each copy, as in `supermarket.simulate`.
    engine : {"auto", "scan", "batches"}
        How events are found; both have the same law and different streams. "scan" makes one event
        at a time, up to n = 10**12; "batches" makes many, some sqrt(n), up to n = 2**53, for copies
        that agree in d and lam (see `supermarket.chains.coupled_batches`). "auto" takes what is
        faster at this n.

    Returns
    -------
    Coupling

    Raises
    ------
    ParameterError
        If a parameter is not allowed, or the run might take longer than `max_hours`.

    References
    ----------
    .. [1] S. R. E. Turner, "The effect of increasing routing choice on resource pooling",
       Probability in the Engineering and Informational Sciences 12 (1998) 109.

    Examples
    --------
    >>> from supermarket.chains.coupled import couple_ranks
    >>> run = couple_ranks(10**4, 2, 0.7, starts=("empty", [1.0, 1.0, 1.0]), horizon=1000, seed=1)
    >>> bool(10 < run.time < 100)
    True
    """
    engine = str(choice("engine", engine, ("auto", "scan", "batches")))
    first, second = d if isinstance(d, tuple | list) and len(d) == 2 else (d, d)
    ds = integer("d", first, 1, EXACT_MAX), integer("d", second, 1, EXACT_MAX)
    lams = _rates(lam)
    alike = ds[0] == ds[1] and lams[0] == lams[1]
    if engine == "batches" and not alike:
        raise ParameterError(
            "engine = 'batches' needs copies that agree in d and lam: use 'scan' or 'auto'."
        )
    n = integer("n", n, 1, EXACT_MAX)
    if engine == "auto":
        engine = "batches" if alike and n > BATCHES_ABOVE else "scan"
    if engine == "scan":
        integer("n", n, 1, 10**12)  # beyond, a double does not tell the ranks
    todo = plan(
        n, max(ds), max(lams), horizon, seed, 0, times, 2, True, "service", max_hours,
        nanoseconds=lambda n: 40.0 if engine == "scan" else 5e3 / n**0.5,
    )  # fmt: skip
    s, t = (
        start_counts(replace(todo, d=d, lam=lam), start)[0]
        for d, lam, start in zip(ds, lams, _pair("starts", starts), strict=True)
    )
    if dry_run:
        return None
    rng = np.random.default_rng(todo.seed)
    kind = _Ranks if engine == "scan" else _ManyRanks
    return _run(kind(s, t, ds, lams, rng), f"rank, {engine}", ds, lams, todo)


def couple_replicas(
    n: int,
    d: int,
    lam: float,
    replicas: int,
    *,
    starts: tuple[str | ArrayLike, str | ArrayLike],
    horizon: float,
    seed: int | SeedSequence,
    times: ArrayLike,
    threads: int = 1,
    max_hours: float = 1.0,
) -> list[Coupling]:
    """Run many pairs of copies coupled by rank in lock step, for their distances at given times.

    The copies of `supermarket.simulate_replicas` draw the ranks of their events, whatever their
    state is. So those with the same stream see the same events at the same ranks: two sets of
    copies with one seed are pairs. This takes a quarter of the time of `couple_ranks`, but the step
    at which a pair meets is not looked for, and the horizon is that of all pairs.

    Parameters
    ----------
    n : int
        Number of queues, from 1 to 32767.
    replicas : int
        Number of pairs; groups of 64 take as long whether they are full or not.
    starts, d, lam, horizon, seed, times
        As in `couple_ranks`; d and lam are the same for both copies.
    threads, max_hours
        As in `supermarket.simulate_replicas`.

    Returns
    -------
    list of Coupling
        One a pair.

    Raises
    ------
    ParameterError
        If a parameter is not allowed, or the runs would take longer than `max_hours`.

    Examples
    --------
    >>> from supermarket.chains.coupled import couple_replicas
    >>> starts = ("empty", [1.0, 1.0, 1.0])
    >>> pairs = couple_replicas(100, 2, 0.5, 8, starts=starts, horizon=4, times=[1, 4], seed=1)
    >>> len(pairs), all(pair.l1[1] <= pair.l1[0] <= 200 for pair in pairs)
    (8, True)
    """
    if not isinstance(seed, SeedSequence):
        seed = SeedSequence(integer("seed", seed, 0))
    copies = [
        simulate_replicas(
            n, d, lam, replicas, horizon=horizon, warmup=0, start=start, times=times, batches=2,
            seed=SeedSequence(seed.entropy, spawn_key=seed.spawn_key), threads=threads,
            max_hours=max_hours / 2,
        )
        for start in _pair("starts", starts)
    ]  # fmt: skip
    return [_seen_pair(first, second) for first, second in zip(*copies, strict=True)]


def _seen_pair(first: Simulation, second: Simulation) -> Coupling:
    """Return the distances of two copies that saw the same events."""
    both = [_side_by_side(*ends) for ends in zip(first.path, second.path, strict=True)]
    distances = np.array([_apart(*pair) for pair in both], dtype=np.int64).reshape(-1, 2)
    return Coupling(
        met=None,
        times=first.times,
        l1=distances[:, 0],
        linf=distances[:, 1],
        final=_side_by_side(first.final, second.final),
        by="rank, replicas",
        n=first.n,
        d=(first.d, first.d),
        lam=(first.lam, first.lam),
        horizon=first.horizon,
        seed=first.seed,
        version=supermarket.__version__,
    )


def decay_rate(runs: Sequence[Coupling], confidence: float = 0.95, *, among: int = 1) -> Interval:
    """Return the rate at which the mean l1 distance decays from the first time to the last.

    log(mean l1 at the first / mean l1 at the last) a mean service time, over independent runs with
    the same times; the interval is Student's for the linear part of the logarithm (delta method).

    Raises
    ------
    ParameterError
        If there are fewer than two runs, fewer than two times, or all have met by the last one.

    Examples
    --------
    >>> from supermarket.chains.coupled import couple_ranks, decay_rate
    >>> starts = ("empty", [1.0, 1.0, 1.0])
    >>> runs = [couple_ranks(1000, 2, 0.5, starts=starts, times=[2, 4], horizon=4, seed=seed)
    ...         for seed in (1, 2, 3, 4)]
    >>> rate = decay_rate(runs)
    >>> bool(0.3 < rate.estimate < 1.0)
    True
    """
    distances = np.array([run.l1 for run in runs], dtype=np.float64)
    if distances.ndim < 2 or distances.shape[1] < 2 or not np.all(distances.mean(axis=0)):
        raise ParameterError(
            "a rate of decay needs runs with two recorded times, not all at distance 0 by the last."
        )
    means = distances.mean(axis=0)
    length = runs[0].times[-1] - runs[0].times[0]
    parts = (distances[:, 0] / means[0] - distances[:, -1] / means[-1]) / length
    rate = math.log(means[0] / means[-1]) / length
    around = mean_interval(parts, confidence, among=among)
    return Interval(rate, rate + around.low, rate + around.high, confidence, around.effective)


def sorted_lengths(counts: ArrayLike) -> NDArray[np.int64]:
    """Return the lengths, the longest first, of counts[i] queues with length at least i.

    Examples
    --------
    >>> from supermarket.chains.coupled import sorted_lengths
    >>> sorted_lengths([4, 3, 1, 0]).tolist()
    [2, 1, 1, 0]
    """
    counts = np.asarray(counts, dtype=np.int64)
    exactly = counts - np.append(counts[1:], 0)
    return np.repeat(np.arange(len(counts))[::-1], exactly[::-1])


def _pair(name: str, given: object) -> Sequence:
    if isinstance(given, str) or not hasattr(given, "__len__") or len(given) != 2:
        raise ParameterError(f"{name} must be a pair: one for each of the two copies.")
    return given


def _rates(lam: object) -> tuple[float, float]:
    first, second = lam if isinstance(lam, tuple | list) and len(lam) == 2 else (lam, lam)
    return arrival_rate(first), arrival_rate(second)


class PairRule(NamedTuple):
    """The choices of either copy, and the shares of steps that bring it an arrival."""

    d_x: int
    d_y: int
    share_x: float
    share_y: float
    stops: bool  # when the copies meet: only if they stay together then


def pair_rule(ds: tuple[int, int], lams: tuple[float, float]) -> PairRule:
    """Return the law of a pair with these numbers of choices and arrival rates."""
    return PairRule(*ds, *_shares(lams), ds[0] == ds[1] and lams[0] == lams[1])


def _shares(lams: tuple[float, float]) -> tuple[float, float]:
    """Return for each copy the chance that a step brings it an arrival."""
    return lams[0] / (1 + max(lams)), lams[1] / (1 + max(lams))


class _Queues:
    """The lengths of both copies."""

    def __init__(
        self,
        x: NDArray[np.int64],
        y: NDArray[np.int64],
        d: int,
        lams: tuple[float, float],
        rng: Generator,
    ) -> None:
        self.copies = x.copy(), y.copy()
        self.rule = pair_rule((d, d), lams)
        self.rng = rng
        self.apart = self.distances()[0]
        self.steps_per_call = max(2**24 // (d + 2), 1)

    def advance(self, steps: int) -> int:
        done, self.apart = _by_queue(self.rng, *self.copies, self.rule, steps, self.apart)
        return done

    def distances(self) -> tuple[int, int]:
        between = np.abs(self.copies[0] - self.copies[1])
        return int(between.sum()), int(between.max())


class _Ranks:
    """The counts of both copies."""

    steps_per_call = 2**22

    def __init__(
        self,
        s: NDArray[np.int64],
        t: NDArray[np.int64],
        ds: tuple[int, int],
        lams: tuple[float, float],
        rng: Generator,
    ) -> None:
        self.copies = _side_by_side(s, t)
        self.d, self.lam = ds[0], lams[0]
        self.rule = pair_rule(ds, lams)
        self.rng = rng
        self.apart = self.distances()[0]

    def advance(self, steps: int) -> int:
        if any(copy[-2] > 0 for copy in self.copies):
            self.copies = _side_by_side(*self.copies)
        done, self.apart = self._step(steps)
        return done

    def _step(self, steps: int) -> tuple[int, int]:
        return _by_rank(self.rng, *self.copies, self.rule, steps, self.apart)

    def distances(self) -> tuple[int, int]:
        return _apart(*self.copies)


class _ManyRanks(_Ranks):
    """The same, many events at a time, for copies that agree in d and lam."""

    @property
    def steps_per_call(self) -> int:
        return int(3e4 * math.sqrt(self.copies[0][0]))

    def _step(self, steps: int) -> tuple[int, int]:
        rule = rule_of(self.copies[0], self.d, self.lam, WITH)
        return coupled_batches.advance(self.rng, *self.copies, rule, steps)


def _apart(s: NDArray[np.int64], t: NDArray[np.int64]) -> tuple[int, int]:
    """Return the sum and the largest of the differences of the sorted lengths."""
    # Sorted lengths can differ only from one of the counts to the next, taken together.
    ranks = np.union1d(s, t)[:-1]  # 0 is among them; n is no rank
    return int(np.abs(s - t).sum()), int(np.abs(_at(s, ranks) - _at(t, ranks)).max())


def _at(counts: NDArray[np.int64], ranks: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the lengths of the queues at these ranks, the longest queue at rank 0."""
    return (counts[np.newaxis, 1:] > ranks[:, np.newaxis]).sum(axis=1)


def _side_by_side(
    s: NDArray[np.int64], t: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return both with room for the same number of levels, twice as many as are taken."""
    levels = 16 + 2 * max(np.count_nonzero(s), np.count_nonzero(t))
    roomy = np.zeros((2, levels), dtype=np.int64)
    for row, counts in zip(roomy, (s, t), strict=True):
        taken = counts[counts > 0]
        row[: len(taken)] = taken
    return roomy[0], roomy[1]


def _run(
    pair: _Queues | _Ranks, by: str, ds: tuple[int, int], lams: tuple[float, float], todo: Plan
) -> Coupling:
    """Run the pair to its meeting or the horizon and record the distances on the way."""
    meets = ds[0] == ds[1] and lams[0] == lams[1]
    per_unit = todo.n * (1 + todo.lam)
    met, done = (0 if meets and pair.apart == 0 else None), 0
    l1, linf = np.zeros((2, len(todo.times)), dtype=np.int64)
    for m, moment in enumerate([*todo.times, todo.horizon]):
        stop = round(moment * per_unit)
        while done < stop and met is None:
            done += pair.advance(min(stop - done, pair.steps_per_call))
            if meets and pair.apart == 0:
                met = done
        if m < len(todo.times) and met is None:
            l1[m], linf[m] = pair.distances()
    return Coupling(
        met=met,
        times=todo.times,
        l1=l1,
        linf=linf,
        final=pair.copies,
        by=by,
        n=todo.n,
        d=ds,
        lam=lams,
        horizon=todo.horizon,
        seed=(int(todo.seed.entropy), tuple(todo.seed.spawn_key)),
        version=supermarket.__version__,
    )


@kernel(nogil=True)
def _by_queue(rng, x, y, rule, steps, apart):
    """Make up to `steps` steps in place; return how many, and the l1 distance.

    Fewer if the copies meet and are to stop there.
    """
    n = len(x)
    d, _, share_x, share_y, stops = rule
    arrival = max(share_x, share_y)
    for step in range(1, steps + 1):
        uniform = rng.random()
        i = j = int(rng.random() * n)
        if uniform < arrival:
            for _ in range(d - 1):
                other = int(rng.random() * n)
                if x[other] < x[i]:  # strictly: ties go to the first
                    i = other
                if y[other] < y[j]:
                    j = other
            if uniform < share_x:
                apart += 1 if x[i] >= y[i] else -1
                x[i] += 1
            if uniform < share_y:
                apart += 1 if y[j] >= x[j] else -1
                y[j] += 1
        else:
            if x[i] > 0:
                apart += 1 if x[i] <= y[i] else -1
                x[i] -= 1
            if y[j] > 0:
                apart += 1 if y[j] <= x[j] else -1
                y[j] -= 1
        if apart == 0 and stops:
            return step, apart
    return steps, apart


@kernel(nogil=True)
def _by_rank(rng, s, t, rule, steps, apart):
    """Make up to `steps` steps in place; return how many, and the l1 distance.

    Fewer if the copies meet and are to stop there, or if one uses up its room.
    """
    n = s[0]
    d_s, d_t, share_s, share_t, stops = rule
    top_s, top_t = np.count_nonzero(s) - 1, np.count_nonzero(t) - 1
    both, arrival = min(share_s, share_t), max(share_s, share_t)
    for step in range(1, steps + 1):
        uniform = rng.random()
        if uniform < arrival:
            # Rescaled, the same uniform picks the rank.
            w = uniform / both if uniform < both else (uniform - both) / (arrival - both)
            rank = _last_rank(w, n, d_s)
            if uniform < share_s:
                i = _level(s, top_s, rank) + 1
                apart += 1 if s[i] >= t[i] else -1
                s[i] += 1
                top_s = max(top_s, i)
            if uniform < share_t:
                if d_t != d_s:
                    rank = _last_rank(w, n, d_t)
                i = _level(t, top_t, rank) + 1
                apart += 1 if t[i] >= s[i] else -1
                t[i] += 1
                top_t = max(top_t, i)
            if max(top_s, top_t) == len(s) - 2:
                return step, apart
        else:
            rank = (uniform - arrival) / (1.0 - arrival) * n
            i = _level(s, top_s, rank)
            if i > 0:
                apart += 1 if s[i] <= t[i] else -1
                s[i] -= 1
                top_s -= s[top_s] == 0
            i = _level(t, top_t, rank)
            if i > 0:
                apart += 1 if t[i] <= s[i] else -1
                t[i] -= 1
                top_t -= t[top_t] == 0
        if apart == 0 and stops:
            return step, apart
    return steps, apart


@kernel(nogil=True)
def _last_rank(w, n, d):
    """Return the last of d uniform ranks, not rounded: it is below r with chance (r / n)**d."""
    if d == 1:
        return w * n
    return math.sqrt(w) * n if d == 2 else math.exp(math.log(w) / d) * n


@kernel(nogil=True)
def _level(s, top, rank):
    """Return the length of the queue at a rank, the longest one being at rank 0."""
    i = top
    while i > 0 and s[i] <= rank:
        i -= 1
    return i
