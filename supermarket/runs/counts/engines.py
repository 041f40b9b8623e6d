"""The exact occupancy chain: how many queues have length at least i, one event at a time.

The counts s[i] = number of queues with length at least i are a Markov chain of their own. An
arrival joins a queue of length i when the shortest of its d queues has length i, which has
probability beta(s[i]) - beta(s[i+1]), where beta(s) is the probability that d chosen queues all
lie among s given ones. A departure leaves a queue of length i with probability (s[i] - s[i+1]) / n.
The cost of an event depends on the number of levels alone, whatever n and d are.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator, SeedSequence
from numpy.typing import NDArray

from supermarket import policies
from supermarket.kernels.borrowed import borrowed
from supermarket.kernels.compiled import kernel
from supermarket.kernels.event_loop import Kept, Rule, Tally, rule_of
from supermarket.kernels.sampling import all_among, with_or_not
from supermarket.models.jsq import Supermarket
from supermarket.runs.counts import bursts
from supermarket.runs.counts.clock import given_counts, measure, with_room
from supermarket.runs.run import Run, name_of_seed
from supermarket.runs.schedule import Schedule
from supermarket.validation import (
    EXACT_MAX,
    MOST_QUEUES,
    arrival_rate,
    integer,
)


def prepare(
    model: Supermarket, schedule: Schedule, seed: SeedSequence, start: object, engine: str
) -> Callable[[], Run]:
    """Check what `supermarket.simulate` was asked for and return what makes the run."""
    policy = policies.named(model.policy)
    n = integer("n", model.n, 1, MOST_QUEUES if engine == "auto" else policy.engine(engine).most)
    counts, named = start_counts(model, start)
    engine = policy.pick(n, model.d) if engine == "auto" else engine
    kind = policy.engine(engine)
    integer("n", n, 1, kind.most)
    schedule.allow(events_of(model, schedule), kind.nanoseconds(n))

    def run() -> Run:
        rng = np.random.default_rng(seed)
        told = {"start": named, "seed": name_of_seed(seed), "engine": engine}
        return measure(kind(counts, model, rng), model, schedule, rng, **told)

    return run


def events_of(model: Supermarket, schedule: Schedule) -> float:
    """Return the mean number of steps of the chain in a schedule."""
    per_unit = model.n * (1 + model.lam) if schedule.unit == "service" else 1.0
    return (schedule.horizon + schedule.lead) * per_unit


class Scan:
    """One event at a time, each found by a scan of the levels: the engine of every policy."""

    events_per_call = 2**22
    tally = np.int64
    most = EXACT_MAX

    def __init__(self, counts: NDArray[np.int64], model: Supermarket, rng: Generator) -> None:
        policy = policies.named(model.policy)
        self.counts, self.model, self.rng = counts, model, rng
        self.loop, self.memory = policy.loop, policy.memory(counts)

    @staticmethod
    def nanoseconds(n: int) -> float:
        """Return a rough time of an event, to refuse what would take days."""
        return 40.0

    def rule(self, replacement: Any) -> Rule:
        """Return what a kernel knows of the model."""
        return rule_of(self.counts, self.model.d, self.model.lam, replacement)

    def advance(self, events: int, moved: NDArray[np.int64], at_top: NDArray[np.int64]) -> int:
        """Make up to `events` steps; see `clock.Chain`."""
        kept, rule = (
            Kept(np.empty(len(self.counts)), self.memory),
            self.rule(self.model.replacement),
        )
        return self.loop(self.rng, self.counts, rule, kept, events, Tally(moved, at_top))

    def grow(self) -> None:
        """Double the number of levels there is room for."""
        self.counts = np.append(self.counts, np.zeros_like(self.counts))


class Guided(Scan):
    """One event at a time, most of them found by one look into a guide table."""

    events_per_call = 2**18  # less than 2**20, see `_look_up`

    @staticmethod
    def nanoseconds(n: int) -> float:
        """Return a rough time of an event."""
        return 5.0 + 5e3 / n**0.5

    def advance(self, events: int, moved: NDArray[np.int64], at_top: NDArray[np.int64]) -> int:
        """Make up to `events` steps; see `clock.Chain`."""
        if len(self.counts) > 2**13:  # more levels than the table has numbers for
            return super().advance(events, moved, at_top)
        # Sixteen random bits choose an event's bin; what the bin leaves open is drawn on demand.
        bits = self.rng.bit_generator.random_raw(-(-events // 4)).view(np.uint16)[:events]
        rule = self.rule(with_or_not(self.model.replacement))
        guide = guide_to(len(self.counts), np.int16)
        return _look_up(bits, self.rng, self.counts, rule, Tally(moved, at_top), guide)


class Guide(NamedTuple):
    """What tells the event of a uniform from where it falls, while counts are in their bands.

    `low` and `high` are the bands, `touched` how often an event touches each count, and `table`
    holds what each bin means. `seen` is what events were seen, and `limit` how often each may be
    before a count can have left its band: see `_look_up`.
    """

    low: NDArray[np.int64]
    high: NDArray[np.int64]
    touched: NDArray[np.float64]
    table: NDArray
    seen: NDArray[np.int64]
    limit: NDArray[np.int64]


def guide_to(levels: int, entry: type) -> Guide:
    """Return room for a guide to so many levels."""
    low, high = np.zeros((2, levels), dtype=np.int64)
    seen, limit = np.zeros(2 * levels, dtype=np.int64), np.full(2 * levels, 2**62)
    return Guide(low, high, np.empty(levels), np.empty(2**14, dtype=entry), seen, limit)


class Bursts(Scan):
    """Many events at a time."""

    tally = np.float64
    most = MOST_QUEUES

    @property
    def events_per_call(self) -> int:
        """As many as take a few tenths of a second."""
        return int(1e5 * math.sqrt(self.counts[0]))

    @staticmethod
    def nanoseconds(n: int) -> float:
        """Return a rough time of an event."""
        return 7e3 / n**0.5

    def advance(self, events: int, moved: NDArray[np.float64], at_top: NDArray[np.float64]) -> int:
        """Make up to `events` steps; see `clock.Chain`."""
        rule = self.rule(with_or_not(self.model.replacement))
        return bursts.advance(self.rng, self.counts, rule, events, Tally(moved, at_top))


def start_counts(model: Supermarket, start: object = None) -> tuple[NDArray[np.int64], str]:
    """Return the counts to start from, with room for more levels, and the name of the start."""
    policy = policies.named(model.policy)
    if start is None:
        start = "empty" if policy.fixed_point is None else "fixed point"
    if isinstance(start, str) and start == "fixed point" and policy.fixed_point is not None:
        lam = arrival_rate(model.lam)
        counts = policy.fixed_point(model.n, model.d, lam, model.replacement)
    elif isinstance(start, str) and start == "empty":
        counts = np.array([model.n], dtype=np.int64)
    else:
        return with_room(given_counts(model.n, start)), "given"
    return with_room(counts), start


@kernel(nogil=True)
def _look_up(bits, rng, s, rule, tally, guide):
    """Make one step for each entry of `bits` and return how many: fewer if the room is used up.

    The unit interval of the uniform that decides an event is cut into bins. As long as every count
    stays inside its band, no boundary between two events can enter a bin that holds none now, so
    such a bin means one certain event. In the others the uniform is drawn to the end and compared.

    seen[event] holds how often in units of 2**40 and, below, the sum of the steps: an event is one
    addition. No count can leave its band before an event was seen as often as its limit says.
    """
    s, guide = borrowed(s), borrowed(guide)
    moved, at_top = tally
    low, high, _, table, seen, limit = guide
    since, done = 0, 0
    top = len(s) - 1
    while s[top] == 0:
        top -= 1
    while done < len(bits) and top < len(s) - 2:
        width = choose_bands(s, top, rule, guide)
        bins = 1 << width
        _make_table(bins, top, rule, guide)
        shift = np.uint16(16 - width)
        for step in range(done + 1, len(bits) + 1):
            chosen = np.uint64(bits[step - 1] >> shift)  # unsigned: no test for an index below 0
            event = np.int64(table[chosen])
            if event < 0:
                uniform = (chosen + rng.random()) / bins
                event = _outcome(uniform, -1 - event, s, seen, top, rule)
            event = np.uint64(event)
            seen[event] += 2**40 + step
            if seen[event] >= limit[event]:
                i = np.int64(event >> np.uint64(1))
                now = count_now(i, s, seen)
                left = now - low[i] if event & np.uint64(1) else high[i] - now
                if left < 0:
                    break
                limit[event] = ((seen[event] >> 40) + left + 1) << 40
        done = step
        apply_seen(s, top, seen, moved)
        if s[top] == 0 or s[top + 1] > 0:
            at_top[top] += done - since
            since = done
            top += 1 if s[top + 1] > 0 else -1
    at_top[top] += done - since
    return done


@kernel(nogil=True)
def count_now(i: int, s: NDArray[np.int64], seen: NDArray[np.int64]) -> int:
    """Return count i: its value when the table was made, and what was seen since."""
    return s[i] + (seen[2 * i] >> 40) - (seen[2 * i + 1] >> 40)


@kernel(nogil=True)
def apply_seen(
    s: NDArray[np.int64], top: int, seen: NDArray[np.int64], moved: NDArray[np.int64]
) -> None:
    """Put the events that were seen into the counts and their tally, and begin anew."""
    for i in range(1, top + 2):
        s[i] = count_now(i, s, seen)
        moved[i] += (seen[2 * i] & (2**40 - 1)) - (seen[2 * i + 1] & (2**40 - 1))
        seen[2 * i] = seen[2 * i + 1] = 0


@kernel(nogil=True)
def _outcome(uniform, only, s, seen, top, rule):
    """Return the event of one uniform: 2 i if count i rises, 2 i + 1 if it falls, 0 if neither.

    Arrivals take [0, arrival); those that make count i rise [arrival beta(s[i]), arrival
    beta(s[i-1])). Departures take the rest; those that make count i fall [y(s[i+1]), y(s[i])) with
    y(s) = arrival + (1 - arrival) s / n. If `only` is a level, its boundary is the only one that
    has to be compared; if it is 0, all are.
    """
    i, last = (only, only) if only > 0 else (top, 1)
    if uniform < rule.arrival:
        while i >= last:
            beta = all_among(count_now(i, s, seen), rule.n, rule.d, rule.replacement)
            if uniform < rule.arrival * beta:
                break
            i -= 1
        return 2 * (i + 1)
    v = (uniform - rule.arrival) / (1.0 - rule.arrival) * rule.n
    while i >= last and count_now(i, s, seen) <= v:
        i -= 1
    return 2 * i + 1 if i > 0 else 0


@kernel(nogil=True)
def choose_bands(s: NDArray[np.int64], top: int, rule: Rule, guide: Guide) -> int:
    """Choose the band [low, high] that each count may wander in; return log2 of the bins' number.

    Write the limits, too.

    The choice is for speed alone: the table is made anew as soon as a count leaves its band. A
    count that events touch at rate r leaves a band of half-width 2 sqrt(r T) after some T events.
    T balances the work of making tables against that of the events that the bands leave open, and
    so does the number of bins.
    """
    n, d, arrival, replacement = rule
    low, high, touched = guide.low, guide.high, guide.touched
    low[0] = high[0] = n
    low[top + 1] = high[top + 1] = 0
    wandering, beta_below = 1e-3, 1.0
    for i in range(1, top + 1):
        beta = all_among(s[i], n, d, replacement)
        touched[i] = arrival * (beta_below - beta) + (1 - arrival) * (s[i] - s[i + 1]) / n
        slope = arrival * d * beta * n / s[i] + 1 - arrival
        wandering += math.sqrt(touched[i]) * slope
        beta_below = beta
    rounds = min(max((15.0 * n / wandering) ** (2.0 / 3.0), 16.0), 1e10)
    for i in range(1, top + 1):
        half = int(2.0 * math.sqrt(touched[i] * rounds)) + 1
        low[i] = max(s[i] - half, 1)
        high[i] = min(s[i] + half, n)
    for i in range(1, top + 2):
        guide.limit[2 * i] = (high[i] - s[i] + 1) << 40
        guide.limit[2 * i + 1] = (s[i] - low[i] + 1) << 40
    width = 6
    while width < 14 and 1 << 2 * width < 400.0 * (top + 1) * rounds:
        width += 1
    return width


@kernel(nogil=True)
def _make_table(bins, top, rule, guide):
    """Write into each bin what it means.

    A certain event; or -1 - i where the boundary of level i alone may lie in the bin, and -1 where
    several may, or the one between arrivals and departures.
    """
    n, d, arrival, replacement = rule
    low, high, table = guide.low, guide.high, guide.table[:bins]
    filled = 0
    # The boundaries from left to right: arrivals from the top level down, then departures.
    for j in range(2 * top + 1):
        if j < top:
            i = top - j
            left = arrival * all_among(low[i], n, d, replacement)
            right = arrival * all_among(high[i], n, d, replacement)
            event = 2 * (i + 1)  # of the bins to the left of this boundary
        elif j == top:
            i = 0
            left = right = arrival
            event = 2
        else:
            i = 2 * top + 1 - j
            left = arrival + (1.0 - arrival) * low[i] / n
            right = arrival + (1.0 - arrival) * high[i] / n
            event = 2 * i + 1
        # A little to spare for rounding: an open bin is only slower.
        first = int(max(left * bins - 1e-6, 0.0))
        last = min(int(right * bins + 1e-6) + 1, bins)
        table[filled:first] = event
        table[first:filled] = -1
        filled = max(filled, first)
        table[filled:last] = -1 - i
        filled = max(filled, last)
    table[filled:] = 0
