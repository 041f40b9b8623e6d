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
(see `supermarket.runs.perfect`). Only the counts of queues of length at least i are needed:
with a uniform w, the rank of an arrival is n w**(1/d), the last of d uniform ones. More choices,
with the same w, lead to a rank further down, and so to a smaller S_j.

Copies may differ in their arrival rate: the one with the smaller rate leaves out a share of the
arrivals. Copies that agree in it and in d can make many events at a time by rank, see
`supermarket.runs.pairs.bursts`; and many pairs of few queues can go in lock step, in lanes.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.random import Generator, SeedSequence
from numpy.typing import ArrayLike, NDArray

import supermarket
from supermarket.estimate.intervals import Interval, mean_interval
from supermarket.kernels.compiled import kernel
from supermarket.kernels.event_loop import rule_of
from supermarket.kernels.sampling import WITH
from supermarket.models.jsq import Supermarket
from supermarket.runs.counts import lanes as replicas
from supermarket.runs.counts.engines import start_counts
from supermarket.runs.many import MOST_THREADS, run_points
from supermarket.runs.pairs import bursts as coupled_batches
from supermarket.runs.run import Run, name_of_seed
from supermarket.runs.schedule import MOST_COPIES, Schedule, schedule_of, spawned
from supermarket.validation import (
    EXACT_MAX,
    MOST_LEVELS,
    ParameterError,
    affordable,
    arrival_rate,
    choice,
    counts_of,
    instance,
    integer,
    listed,
    queue_lengths,
    said,
    seed_of,
)

__all__ = ["Coupling", "couple", "decay_rate", "sorted_lengths"]

# From here on many events at a time are faster than one.
BURSTS_ABOVE = 2 * 10**4


@dataclass(frozen=True)
class Coupling:
    """How two coupled copies approached each other, and everything that made them.

    Attributes
    ----------
    models : tuple of Supermarket
        The two models.
    schedule : Schedule
        Its horizon and times, in mean service times of the copy with more arrivals.
    met : int or None
        Steps of the chain until the copies were the same; None if they were not by the horizon, or
        if the step was not looked for.
    l1, linf : ndarray of int64, shape (m,)
        At these times, the sum and the maximum over the queues (by rank: the sorted queues) of the
        difference in length.
    final : tuple of ndarray of int64
        Where the copies ended: n lengths each, or counts each.
    by : {"queue", "rank, scan", "rank, bursts", "rank, lanes"}
        How the events were shared, and what made them.
    seed : tuple
        (entropy, spawn key) of the seed sequence.
    version : str
        The version of the package.
    """

    models: tuple[Supermarket, Supermarket]
    schedule: Schedule
    met: int | None
    l1: NDArray[np.int64]
    linf: NDArray[np.int64]
    final: tuple[NDArray[np.int64], NDArray[np.int64]]
    by: str
    seed: tuple[int, tuple[int, ...]]
    version: str = supermarket.__version__

    @property
    def times(self) -> NDArray[np.float64]:
        """The times of `l1` and `linf`, since the start, shape (m,)."""
        return np.array(self.schedule.times)

    @property
    def time(self) -> float:
        """Mean service times until the copies met, n (1 + lam) steps each; inf if they did not.

        NaN where the step is not looked for, in lanes.
        """
        if self.by == "rank, lanes":
            return math.nan
        lam = max(model.lam for model in self.models)
        return math.inf if self.met is None else self.met / (self.models[0].n * (1 + lam))


def couple(
    model: Supermarket | Sequence[Supermarket],
    schedule: float | Schedule,
    *,
    starts: Sequence[object],
    seed: int | SeedSequence,
    by: str = "rank",
    engine: str = "auto",
    copies: int | None = None,
    threads: int = 1,
) -> Coupling | list[Coupling]:
    """Run two copies that see the same events until they meet.

    Parameters
    ----------
    model : Supermarket or pair of Supermarket
        Of both copies or of each, with the same n, with replacement, the policy "jsq" and
        exponential service. By rank, d and lam may differ; by queue lam.
    schedule : Schedule or float
        Its horizon says where to stop, in mean service times, of n (1 + lam) steps each (lam the
        larger one); copies that agree in d and lam stop when they meet. The distances are recorded
        at its times. There is no warm-up.
    starts : pair
        The start of each copy: by rank as in `supermarket.simulate`; by queue its n lengths.
    seed : int or SeedSequence
        Fixes the result together with the other parameters.
    by : {"rank", "queue"}
        How the events are shared, as described at the head of `supermarket.runs.pairs.couple`. By
        queue n is at most 10**9.
    engine : {"auto", "scan", "bursts", "lanes"}
        How events are found by rank; all have the same law and different streams. "scan" makes one
        event at a time, up to n = 10**12; "bursts" makes many, some sqrt(n), up to n = 2**53, for
        copies that agree in d and lam (see `supermarket.runs.pairs.bursts`). "lanes" is for
        many pairs of at most 32767 queues that agree in d and lam, 64 at a time: the copies of
        `supermarket.simulate` draw the ranks of their events whatever their state is, so those
        with one stream see the same events. That takes a quarter of the time, but the step at
        which a pair meets is not looked for, and all pairs go on to the horizon. "auto" is "scan"
        or "bursts", what is faster at this n.
    copies : int, optional
        Return so many independent pairs, with the streams spawned from `seed`.
    threads : int
        How many of these run at a time.

    Returns
    -------
    Coupling, or list of Coupling if there are `copies`

    Raises
    ------
    ParameterError
        If a parameter is not allowed, or the run might take longer than the schedule allows.

    References
    ----------
    .. [1] M. J. Luczak and C. McDiarmid, "On the maximum queue length in the supermarket model",
       Annals of Probability 34 (2006) 493.
    .. [2] S. R. E. Turner, "The effect of increasing routing choice on resource pooling",
       Probability in the Engineering and Informational Sciences 12 (1998) 109.
    .. [3] G. Brightwell and M. Luczak, "The supermarket model with arrival rate tending to one",
       arXiv:1201.5523, sections 4 and 11.

    Examples
    --------
    >>> from supermarket import Supermarket, couple
    >>> run = couple(Supermarket(10**4, 2, 0.7), 1000, starts=("empty", [1.0, 1.0, 1.0]), seed=1)
    >>> bool(10 < run.time < 100)
    True
    >>> shop = Supermarket(50, 2, 0.7)
    >>> run = couple(shop, 1000, starts=([0] * 50, [3] * 50), by="queue", seed=1)
    >>> run.met is not None and run.final[0].tolist() == run.final[1].tolist()
    True
    """
    asked = {"starts": starts, "by": by, "engine": engine, "copies": copies, "threads": threads}
    return _prepare(model, schedule, seed=seed, **asked)()


def _prepare(
    model: Supermarket | Sequence[Supermarket],
    schedule: float | Schedule,
    *,
    starts: Sequence[object],
    seed: int | SeedSequence,
    by: str = "rank",
    engine: str = "auto",
    copies: int | None = None,
    threads: int = 1,
) -> Callable[[], Coupling | list[Coupling]]:
    """Check what `couple` was asked for and return what makes the run, or the copies."""
    integer("threads", threads, 1, MOST_THREADS)
    choice("by", by, ("rank", "queue"))
    models, schedule, starts = _models(model), _schedule(schedule), _pair("starts", starts)
    if copies is None:
        return _pair_of(models, schedule, starts, seed_of(seed), by, engine)
    schedule.allow(0.0, 0.0, copies=integer("copies", copies, 1, MOST_COPIES))
    seeds = spawned(seed, copies)
    if by == "rank" and engine == "lanes":
        return _in_lanes(models, schedule, starts, seeds, threads)
    _pair_of(models, schedule, starts, seeds[0], by, engine)

    def run(one: SeedSequence, seed: SeedSequence) -> Coupling:
        return _pair_of(models, schedule, starts, one, by, engine)()

    return lambda: run_points(run, [{"one": one} for one in seeds], seed=0, threads=threads)


def _pair_of(
    models: tuple[Supermarket, Supermarket],
    schedule: Schedule,
    starts: Sequence[object],
    seed: SeedSequence,
    by: str,
    engine: str,
) -> Callable[[], Coupling]:
    """Check what one pair was asked for and return what makes its run."""
    choice("engine", engine, ("auto", "scan", "bursts", "lanes") if by == "rank" else ("auto",))
    if engine == "lanes":
        raise ParameterError("engine = 'lanes' makes many pairs at a time: say how many copies.")
    n, d, lam = models[0].n, models[0].d, models[0].lam
    alike = models[0] == models[1]
    events = n * (1 + max(one.lam for one in models)) * schedule.horizon
    if by == "queue":
        if d != models[1].d:
            raise ParameterError("copies coupled by queue look at the same d queues.")
        integer("n", n, 1, 10**9)
        x, y = (queue_lengths("lengths", start, n, MOST_LEVELS) for start in starts)
        schedule.allow(events, 20.0 + (8.0 if n < 10**6 else 80.0) * d)
        lams = lam, models[1].lam
        return lambda: _run(_Queues(x, y, d, lams, np.random.default_rng(seed)), by, models,
                            schedule, seed)  # fmt: skip
    if engine == "bursts" and not alike:
        raise ParameterError(
            "engine = 'bursts' needs copies that agree in d and lam: use 'scan' or 'auto'."
        )
    integer("n", n, 1, EXACT_MAX)
    if engine == "auto":
        engine = "bursts" if alike and n > BURSTS_ABOVE else "scan"
    if engine == "scan":
        integer("n", n, 1, 10**12)  # beyond, a double does not tell the ranks
    schedule.allow(events, 40.0 if engine == "scan" else 5e3 / n**0.5)
    s, t = (start_counts(one, start)[0] for one, start in zip(models, starts, strict=True))
    kind = _Ranks if engine == "scan" else _ManyRanks
    rules = (d, models[1].d), (lam, models[1].lam)
    return lambda: _run(kind(s, t, *rules, np.random.default_rng(seed)), f"rank, {engine}", models,
                        schedule, seed)  # fmt: skip


couple.check = _prepare


def _in_lanes(
    models: tuple[Supermarket, Supermarket],
    schedule: Schedule,
    starts: Sequence[object],
    seeds: list[SeedSequence],
    threads: int,
) -> Callable[[], list[Coupling]]:
    """Check what pairs with the same streams were asked for and return what makes them."""
    if models[0] != models[1]:
        raise ParameterError("engine = 'lanes' needs copies that agree in d and lam.")
    half = replace(schedule, warmup=0, batches=2, max_hours=schedule.max_hours / 2)
    made = [replicas.prepare(models[0], half, seeds, start, threads) for start in starts]
    return lambda: [_seen_pair(*pair) for pair in zip(*(run() for run in made), strict=True)]


def _seen_pair(first: Run, second: Run) -> Coupling:
    """Return the distances of two copies that saw the same events."""
    both = [_side_by_side(*ends) for ends in zip(first.path, second.path, strict=True)]
    distances = np.array([_apart(*pair) for pair in both], dtype=np.int64).reshape(-1, 2)
    return Coupling(
        models=(first.model, second.model),
        schedule=first.schedule,
        met=None,
        l1=distances[:, 0],
        linf=distances[:, 1],
        final=_side_by_side(first.final, second.final),
        by="rank, lanes",
        seed=first.seed,
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
    >>> from supermarket import Schedule, Supermarket, couple
    >>> from supermarket.runs.pairs.couple import decay_rate
    >>> shop, starts = Supermarket(1000, 2, 0.5), ("empty", [1.0, 1.0, 1.0])
    >>> runs = couple(shop, Schedule(4, times=[2, 4]), starts=starts, copies=4, seed=1)
    >>> rate = decay_rate(runs)
    >>> bool(0.3 < rate.estimate < 1.0)
    True
    """
    runs = [instance("runs", run, Coupling, "give those of couple") for run in listed("runs", runs)]
    same = {run.schedule.times for run in runs}
    distances = np.array([run.l1 for run in runs] if len(same) == 1 else [], dtype=np.float64)
    if distances.ndim < 2 or distances.shape[1] < 2 or not np.all(distances.mean(axis=0)):
        raise ParameterError(
            "a rate of decay needs runs with the same two recorded times or more, not all at "
            "distance 0 by the last."
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
    >>> from supermarket.runs.pairs.couple import sorted_lengths
    >>> sorted_lengths([4, 3, 1, 0]).tolist()
    [2, 1, 1, 0]
    """
    counts = counts_of(counts)
    if counts.ndim != 1:
        raise ParameterError("counts must be those of one state.")
    affordable(f"counts[0] = {counts[0]} queues", float(counts[0]), "choose fewer")
    exactly = counts - np.append(counts[1:], 0)
    return np.repeat(np.arange(len(counts))[::-1], exactly[::-1])


def _pair(name: str, given: object) -> Sequence:
    pair = None if isinstance(given, str) else listed(name, given)
    if pair is None or len(pair) != 2:
        raise ParameterError(f"{name} must be a pair: one for each of the two copies.")
    return pair


def _schedule(given: object) -> Schedule:
    """Return a schedule, checked: of what it says, a coupling has horizon and times alone."""
    schedule = schedule_of(given)
    if schedule.unit != "service" or schedule.warmup:
        raise ParameterError("a coupling has no warm-up, and unit='service' alone.")
    return schedule


def _models(given: object) -> tuple[Supermarket, Supermarket]:
    """Return the models of both copies, checked."""
    models = tuple(given) if isinstance(given, list | tuple) else (given, given)
    if len(models) != 2 or not all(isinstance(model, Supermarket) for model in models):
        raise ParameterError(
            f"model = {said(given)} is neither a Supermarket(n, d, lam) nor a pair of them."
        )
    for model in models:
        arrival_rate(model.lam)
        if not (model.replacement and model.policy == "jsq" and model.is_exponential):
            raise ParameterError(
                f"{model} cannot be coupled: only choices with replacement, the policy 'jsq' and "
                "exponential service can."
            )
    if models[0].n != models[1].n:
        raise ParameterError(f"coupled copies have one n: given {models[0].n} and {models[1].n}.")
    return models


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
    pair: _Queues | _Ranks,
    by: str,
    models: tuple[Supermarket, Supermarket],
    schedule: Schedule,
    seed: SeedSequence,
) -> Coupling:
    """Run the pair to its meeting or the horizon and record the distances on the way."""
    meets = models[0] == models[1]
    per_unit = models[0].n * (1 + max(model.lam for model in models))
    met, done = (0 if meets and pair.apart == 0 else None), 0
    l1, linf = np.zeros((2, len(schedule.times)), dtype=np.int64)
    for m, moment in enumerate([*schedule.times, schedule.horizon]):
        stop = round(moment * per_unit)
        while done < stop and met is None:
            done += pair.advance(min(stop - done, pair.steps_per_call))
            if meets and pair.apart == 0:
                met = done
        if m < len(schedule.times) and met is None:
            l1[m], linf[m] = pair.distances()
    return Coupling(models, schedule, met, l1, linf, pair.copies, by, name_of_seed(seed))


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
