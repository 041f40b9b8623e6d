"""Replicas of the occupancy chain in lock step: the fastest way for small n.

An event is a rank and a direction, drawn as in `ranks` from one table that all replicas share, and
its level is the number of counts s[1] >= s[2] >= ... above the rank: an arrival there raises the
next count, a departure lowers this one. No step of this depends on a branch, so `LANES` replicas
make it together, one in each lane of the processor's vector registers. Counts are held in 16 bits.

Each replica has a stream of its own, xoshiro256++ [1]_, which the compiler can run in lanes where
NumPy's generators go one by one.

References
----------
.. [1] D. Blackman and S. Vigna, "Scrambled linear pseudorandom number generators", ACM Transactions
   on Mathematical Software 47 (2021) 36.
"""

import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from supermarket.kernels.compiled import kernel
from supermarket.models.jsq import Supermarket
from supermarket.runs.counts.clock import measure
from supermarket.runs.counts.engines import events_of, start_counts
from supermarket.runs.counts.ranks import alias_table, law_of_ranks
from supermarket.runs.many import run_points
from supermarket.runs.run import Run, name_of_seed
from supermarket.runs.schedule import Schedule
from supermarket.validation import ParameterError, choice, integer

LANES = 64
MOST = 2**15 - 1  # queues: counts and ranks are held in 16 bits
TALLEST = 2**14  # levels
BLOCK = 255  # steps: the sum of the first so many fits into 16 bits
STEPS_PER_CALL = 2**10 * BLOCK  # some hundredths of a second, so that Ctrl-C is heard
NOTHING = -(2**15)  # the event of a lane that waits: a departure at a rank above all counts


def prepare(
    model: Supermarket, schedule: Schedule, seeds: list[SeedSequence], start: object, threads: int
) -> Callable[[], list[Run]]:
    """Check what `supermarket.simulate` was asked for and return what makes the copies' runs.

    They run in groups of `LANES`; a group takes as long whether it is full or not.
    """
    n = integer("n", model.n, 1, MOST)
    choice("policy", model.policy, ("jsq",))
    counts, named = start_counts(model, start)
    if len(counts) > TALLEST:
        raise ParameterError(
            f"the start has some {len(counts)} levels, and copies in lanes have {TALLEST} at most: "
            "use another engine."
        )
    groups = [{"seeds": seeds[k : k + LANES]} for k in range(0, len(seeds), LANES)]
    schedule.allow(events_of(model, schedule), 3.0 * LANES * len(groups), copies=len(seeds))

    def run() -> list[Run]:
        table = table_of_events(n, model.d, model.lam, model.replacement)

        def together(seeds: list[SeedSequence], seed: SeedSequence) -> list[Run]:
            return _together(model, schedule, seeds, table, (counts, named))

        runs = run_points(together, groups, seed=0, threads=threads)  # members have their seeds
        return [one for group in runs for one in group]

    return run


class Events(NamedTuple):
    """The alias table of events: bins with a cut each, and a pair of events."""

    cuts: NDArray[np.uint64]
    pairs: NDArray[np.int16]


class Streams(NamedTuple):
    """The random words of each lane, (4, LANES), and room to work in.

    `kept` is for words, and `events` for those drawn of them.
    """

    words: NDArray[np.uint64]
    kept: NDArray[np.uint64]
    events: NDArray[np.int16]


class Seen(NamedTuple):
    """Level by level and lane by lane, shape (levels, LANES).

    `moved` is as in `clock.Chain`, and above[i] the number of states left that had a queue of
    length at least i.
    """

    counts: NDArray[np.int16]
    moved: NDArray[np.int64]
    above: NDArray[np.int64]


def _together(
    model: Supermarket,
    schedule: Schedule,
    seeds: list[SeedSequence],
    table: Events,
    start: tuple[NDArray[np.int64], str],
) -> list[Run]:
    """Run up to `LANES` replicas side by side.

    How many events there are in a stretch of time does not depend on what they do. So the replicas
    first make the events of every stretch in lock step, and then measure what they saw.
    """
    stretches = _Stretches()
    schedule.follow(stretches)
    lengths = np.array(stretches.lengths)
    wanted = np.zeros((len(lengths), LANES), dtype=np.int64)
    words = np.zeros((4, LANES), dtype=np.uint64)
    for lane, seed in enumerate(seeds):
        clock, in_steps = np.random.default_rng(seed), schedule.unit == "steps"
        means = lengths * model.n * (1 + model.lam)
        wanted[:, lane] = lengths if in_steps else clock.poisson(means)
        words[:, lane] = seed.generate_state(8, np.uint64)[4:]  # the clock has the first four
    begin, named = start
    levels = int(np.flatnonzero(begin)[-1]) + 2
    counts = np.zeros((levels, LANES), dtype=np.int16)
    counts[:, : len(seeds)] = begin[:levels, None]
    seen = []
    for events in wanted:
        counts, moved, above = _stretch(words, table, events, counts)
        at_top = above
        at_top[:-1] -= above[1:]
        seen.append(np.array([counts, moved, at_top]))
    runs = []
    for lane, seed in enumerate(seeds):
        chain = _Seen(begin, [found[:, :, lane] for found in seen if found[2, :, lane].any()])
        told = {"start": named, "seed": name_of_seed(seed), "engine": "lanes"}
        runs.append(measure(chain, model, schedule, np.random.default_rng(seed), **told))
    return runs


def _stretch(
    words: NDArray[np.uint64],
    table: Events,
    wanted: NDArray[np.int64],
    counts: NDArray[np.int16],
) -> tuple[NDArray[np.int16], NDArray[np.int64], NDArray[np.int64]]:
    """Make wanted[k] steps in lane k; return counts, `moved` and `above`, see `_advance`."""
    seen = Seen(counts, np.zeros_like(counts, np.int64), np.zeros_like(counts, np.int64))
    streams = Streams(words, words.copy(), np.empty((BLOCK + 1, LANES), dtype=np.int16))
    done, end = 0, int(wanted.max())
    while done < end:
        last = min(done + STEPS_PER_CALL, end)
        with np.errstate(over="ignore"):  # the sums in the streams wrap around
            done = _advance(streams, table, wanted, done, last, seen)
        if done < last:
            seen = Seen(*(np.pad(rows, ((0, 1), (0, 0))) for rows in seen))
    return seen


class _Stretches:
    """Stands in for a chain, to learn the stretches of time of a schedule."""

    def __init__(self) -> None:
        self.lengths: list[float] = []

    def go(self, length: float, until: float) -> None:
        self.lengths.append(length)

    def look(self) -> None:
        """Nothing is recorded."""

    settle = look


class _Seen:
    """A chain that has made its steps: hands out what was seen of them, stretch by stretch."""

    events_per_call = sys.maxsize
    tally = np.int64

    def __init__(self, start: NDArray[np.int64], seen: list[NDArray[np.int64]]) -> None:
        """Take over the counts, `moved` and `at_top` of each stretch: arrays (3, levels)."""
        reached = max((np.flatnonzero(found.any(axis=0))[-1] for found in seen), default=0)
        room = len(start)
        while reached >= room - 2:  # as if the room had grown on the way
            room *= 2
        self.counts = np.zeros(room, dtype=np.int64)
        self.counts[: len(start)] = start
        self._seen: Iterator[NDArray[np.int64]] = iter(seen)

    def advance(self, events: int, moved: NDArray[np.int64], at_top: NDArray[np.int64]) -> int:
        found = next(self._seen)[:, : len(self.counts)]
        for mine, theirs in zip((self.counts, moved, at_top), found, strict=True):
            mine[:] = 0
            mine[: len(theirs)] = theirs
        return events


def table_of_events(n: int, d: int, lam: float, replacement: bool) -> Events:
    """Return the alias table of the ranks, for random numbers of 64 bits.

    The highest bits of a number name a bin. Below the bin's cut the event is the first of its two,
    else the second. An arrival at rank r is the number r, a departure -1 - r.
    """
    cut, part, alias = alias_table(law_of_ranks(n, d, lam, replacement))
    bins = np.arange(len(cut), dtype=np.uint64)
    first = bins << np.uint64(64 - int(bins[-1]).bit_length())
    outcomes = np.stack([bins.astype(np.int64), alias.astype(np.int64)], axis=1)
    ranks = outcomes >> 1
    events = np.where(outcomes & 1, -1 - ranks, ranks).astype(np.int16)
    # The cut of a full bin, whose two events are the same, may wrap around.
    return Events(first + ((cut + part) * 2.0**32).astype(np.uint64), events.ravel())


@kernel(nogil=True)
def _advance(streams, table, wanted, done, last, seen):
    """Go on from step `done` of a stretch, in which lane k makes wanted[k] steps, to step `last`.

    What was seen and the streams change in place. Return the step that was reached: fewer than
    `last` if more levels are needed.
    """
    words, kept, events = streams
    cuts, pairs = table
    counts, moved, above = seen
    levels = 2  # up to the first that is empty in all lanes
    while not _is_empty(counts, levels - 1):
        levels += 1
    while done < last:
        steps = min(BLOCK, last - done)
        _copy(words, kept)
        _draw(words, cuts, pairs, events)
        for lane in range(LANES):
            left = max(wanted[lane] - done, 0)
            if left == 0:  # it has drawn for nothing
                for i in range(4):
                    words[i, lane] = kept[i, lane]
            for step in range(min(left, steps), BLOCK + 1):
                events[step, lane] = NOTHING
        while True:
            rows = _make_steps(events, steps, counts, levels)
            if _is_empty(rows[levels - 1], 0) and _is_empty(rows[levels - 1], 2):
                break
            levels += 1  # the last level was not empty all the time: do it again with one more
            if levels > len(counts):
                _copy(kept, words)
                return done
        for lane in range(LANES):
            made = min(max(wanted[lane] - done, 0), steps)
            above[0, lane] += made
            for i in range(1, levels):
                count = np.int64(rows[i, 0, lane])
                moved[i, lane] += done * (count - counts[i, lane]) + rows[i, 1, lane]
                above[i, lane] += rows[i, 2, lane] - (steps - made if count > 0 else 0)
                counts[i, lane] = count
        done += steps
    return done


@kernel(nogil=True)
def _copy(words, to):
    for i in range(4):
        for lane in range(LANES):
            to[i, lane] = words[i, lane]


@kernel(nogil=True)
def _is_empty(counts, level):
    found = 0
    for lane in range(LANES):
        found |= counts[level, lane]
    return found == 0


# In the loops over lanes the compiler sees that they may run in vector registers, because their
# arrays are made in the same function, with `LANES` as a constant.


@kernel(nogil=True)
def _draw(words, cuts, pairs, events):
    """Draw `BLOCK` events for each lane, one from each word of its stream."""
    state = np.empty((4, LANES), dtype=np.uint64)
    _copy(words, state)
    drawn = np.empty((BLOCK, LANES), dtype=np.uint64)
    for step in range(BLOCK):
        for lane in range(LANES):
            drawn[step, lane] = _next(state, lane)
    _copy(state, words)
    width = 0
    while 1 << width < len(cuts):
        width += 1
    for step in range(BLOCK):
        for lane in range(LANES):
            k = drawn[step, lane] >> np.uint64(64 - width)
            beyond = np.uint64(drawn[step, lane] >= cuts[k])  # no branch: it could not be foreseen
            events[step, lane] = pairs[(k << np.uint64(1)) + beyond]


@kernel(nogil=True)
def _next(words, lane):
    """Return the next word of a stream: xoshiro256++."""
    a, b, c, d = words[0, lane], words[1, lane], words[2, lane], words[3, lane]
    total = a + d
    result = ((total << np.uint64(23)) | (total >> np.uint64(41))) + a
    shifted = b << np.uint64(17)
    c ^= a
    d ^= b
    words[0, lane] = a ^ d
    words[1, lane] = b ^ c
    words[2, lane] = c ^ shifted
    words[3, lane] = (d << np.uint64(45)) | (d >> np.uint64(19))
    return result


@kernel(nogil=True)
def _make_steps(events, steps, counts, levels):
    """Make so many steps in all lanes and return what was seen, (levels, 3, LANES).

    For every level the count, its changes times their steps, and the number of states left in which
    it was above 0. One pass over the levels makes an event and counts, for the next event, the
    levels above its rank; events[steps] is there to be read and has no effect.
    """
    rows = np.zeros((levels, 3, LANES), dtype=np.int16)
    for i in range(levels):
        for lane in range(LANES):
            rows[i, 0, lane] = counts[i, lane]
    now = np.zeros((5, LANES), dtype=np.int16)
    rank, above, target, change, weighted = 0, 1, 2, 3, 4
    for lane in range(LANES):
        now[rank, lane] = events[0, lane] ^ (events[0, lane] >> 15)
    for i in range(1, len(rows)):
        for lane in range(LANES):
            now[above, lane] += np.int16(rows[i, 0, lane] > now[rank, lane])
    for step in range(1, steps + 1):
        for lane in range(LANES):
            falls = events[step - 1, lane] >> 15  # -1 for a departure
            now[target, lane] = now[above, lane] + 1 + falls
            now[change, lane] = falls | 1
            now[weighted, lane] = (falls | 1) * step
            now[rank, lane] = events[step, lane] ^ (events[step, lane] >> 15)
            now[above, lane] = 0
        for i in range(1, len(rows)):
            for lane in range(LANES):
                before = rows[i, 0, lane]
                hit = -np.int16(now[target, lane] == np.int16(i))
                after = np.int16(before + (now[change, lane] & hit))
                rows[i, 0, lane] = after
                rows[i, 1, lane] += now[weighted, lane] & hit
                rows[i, 2, lane] += np.int16(before > 0)
                now[above, lane] += np.int16(after > now[rank, lane])
    return rows
