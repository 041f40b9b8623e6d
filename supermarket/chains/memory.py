"""The exact occupancy chain of a dispatcher that remembers one queue, one event at a time.

An arrival looks at d fresh queues, chosen with replacement, and at the remembered one; it joins a
shortest of them, and a shortest of them after joining is remembered [1]_. The state is the counts
s[i] = number of queues with length at least i, and the length m of the remembered queue. That is
enough to go on: queues of one length differ in nothing else, so the length i of the shortest fresh
queue has the law of `occupancy`, and

* if i > m, or if i = m and no fresh queue of length m is another than the remembered one, then the
  remembered queue is joined and its length is m + 1;
* if i = m otherwise, two queues of length m are seen: one is joined, one of length m remembered;
* if i < m, a fresh one is joined, and the length remembered is i where another queue of length i is
  among the fresh ones, i + 1 where not.

Ties decide which queue is remembered, and never its length. The remembered queue is served like the
others, so m falls with probability 1 / n in a departure.

Many events at a time, as in `batches`, are not made here. There the events of a batch can be
counted by kind without their order, for the counts that decide them hardly move; here an arrival
depends on m, which the arrival just before it has set, so that the order decides.

References
----------
.. [1] M. J. Luczak and J. R. Norris, "Averaging over fast variables in the fluid limit for Markov
   chains: application to the supermarket model with memory", Annals of Applied Probability 23
   (2013) 957.
"""

import math

import numpy as np
from numpy.random import Generator, SeedSequence
from numpy.typing import ArrayLike, NDArray

from supermarket.chains.borrowed import borrowed, inlined
from supermarket.chains.event_loop import Kept, Tally, event_loop, rule_of
from supermarket.chains.measure import Simulation, given_counts, measure, plan, with_room
from supermarket.chains.occupancy import Guide, apply_seen, choose_bands, count_now, guide_to
from supermarket.compiled import kernel
from supermarket.sampling import WITH, all_among
from supermarket.validation import MOST_LEVELS, ParameterError, choice

# A word of the table holds six entries of ten bits: whether it is open, which entry of the next
# word is to follow, and the event; the number of the event limits the number of levels.
_ENTRIES, _STRIDE, _EVENT, _OPEN = np.uint64(6), np.uint64(10), np.uint64(4), np.uint64(1)
_MOST_LEVELS = 32


def simulate_memory(
    n: int,
    d: int,
    lam: float,
    *,
    horizon: float,
    seed: int | SeedSequence,
    warmup: float | None = None,
    start: str | ArrayLike = "fixed point",
    times: ArrayLike = (),
    batches: int = 64,
    time_unit: str = "service",
    engine: str = "auto",
    max_hours: float = 1.0,
    dry_run: bool = False,
) -> Simulation | None:
    """Simulate the supermarket model with memory exactly, by the counts of queues of each length.

    Parameters
    ----------
    n : int
        Number of queues, from 1 to 2**53.
    d : int
        Number of fresh queues that an arrival looks at beside the remembered one, at least 1.
    lam, horizon, seed, warmup, times, batches, time_unit, max_hours, dry_run
        As in `supermarket.simulate`.
    start : {"fixed point", "empty"} or array_like of float
        State before the warm-up: the fixed point of the averaged limit (see
        `supermarket.theory.memory`), rounded to whole queues, the empty system, or a profile. A
        shortest queue is remembered.
    engine : {"auto", "scan", "table"}
        How events are found; both have the same law and different streams. "scan" compares the
        uniform with level after level, "table" finds most events by one look into a guide table.
        "auto" takes what is faster at this n.

    Returns
    -------
    Simulation

    Raises
    ------
    ParameterError
        If a parameter is not allowed, or the run would take longer than `max_hours`.

    References
    ----------
    .. [1] M. Mitzenmacher, B. Prabhakar and D. Shah, "Load balancing with memory", Proceedings of
       the 43rd Symposium on Foundations of Computer Science (2002) 799.

    Examples
    --------
    >>> from supermarket.chains.memory import simulate_memory
    >>> run = simulate_memory(n=1000, d=1, lam=0.7, horizon=200, seed=1)
    >>> bool(abs(run.profile[2] - 0.49) < 0.01)
    True
    """
    engine = str(choice("engine", engine, ("auto", *_NANOSECONDS)))
    todo = plan(
        n, d, lam, horizon, seed, warmup, times, batches, True, time_unit, max_hours,
        nanoseconds=lambda n: _NANOSECONDS[_pick(engine, n)](n),
        steady=isinstance(start, str) and start == "fixed point",
    )  # fmt: skip
    rng = np.random.default_rng(todo.seed)
    if isinstance(start, str) and start in ("fixed point", "empty"):
        named = start
        counts = (
            np.array([todo.n])
            if start == "empty"
            else _fixed_point_counts(todo.n, todo.d, todo.lam)
        )
    else:
        counts, named = given_counts(todo.n, start), "given"
    if dry_run:
        return None
    engine = _pick(engine, todo.n)
    chain = Memory(with_room(counts), todo.d, todo.lam, engine == "table", rng)
    return measure(chain, f"memory, {engine}", named, todo, rng)


# Rough times of an event, to refuse what would take days.
_NANOSECONDS = {"scan": lambda n: 40.0, "table": lambda n: 4.0 + 8e2 / n**0.5}


def _pick(engine: str, n: int) -> str:
    return engine if engine != "auto" else "scan" if n < 1000 else "table"


class Memory:
    """The chain: `counts`, and `remembered[0]`, the length of the remembered queue."""

    events_per_call = 2**18  # less than 2**20, see `_look_up`
    tally = np.int64

    def __init__(
        self, counts: NDArray[np.int64], d: int, lam: float, tabled: bool, rng: Generator
    ) -> None:
        self.counts = counts
        shortest = int(np.flatnonzero(np.diff(counts))[0])
        self.remembered = np.array([shortest])
        self.rule = (d, lam)
        self.tabled = tabled
        self.rng = rng

    def advance(self, events: int, moved: NDArray[np.int64], at_top: NDArray[np.int64]) -> int:
        """Make up to `events` steps; see `measure.Chain`."""
        tally = Tally(moved, at_top)
        if not self.tabled or len(self.counts) > _MOST_LEVELS:
            aux = Kept(np.empty(len(self.counts)), self.remembered)
            rule = rule_of(self.counts, *self.rule)
            return _scan(self.rng, self.counts, rule, aux, events, tally)
        bits = self.rng.bit_generator.random_raw(-(-events // 4)).view(np.uint16)[:events]
        rule = rule_of(self.counts, *self.rule, WITH)
        return _look_up(bits, self.rng, self.counts, rule, tally, *_room(self))

    def grow(self) -> None:
        """Double the number of levels there is room for."""
        self.counts = np.append(self.counts, np.zeros_like(self.counts))


def _room(chain: Memory) -> tuple[Guide, Kept, NDArray[np.int64]]:
    """Return what else `_look_up` works with."""
    guide = guide_to(len(chain.counts), np.uint64)
    return guide, Kept(np.empty(_MOST_LEVELS + 8), chain.remembered), chain.counts.copy()


def _fixed_point_counts(n: int, d: int, lam: float) -> NDArray[np.int64]:
    """Return the counts nearest to the fixed point of the averaged limit."""
    counts, share, longer = [n], 1.0, 1.0  # longer: chance that the remembered queue is that long
    while counts[-1] > 0:
        if len(counts) > MOST_LEVELS:
            raise ParameterError(
                f"lam = {lam:.16g} with d = {d} has a fixed point of more than {MOST_LEVELS} "
                "levels: choose a smaller lam or a larger d."
            )
        below, share = share, lam * longer * share**d
        alone = (1 - below) + share if d == 1 else 1 - d * (below - share) * share ** (d - 1)
        longer *= share**d / alone
        counts.append(min(round(n * share), counts[-1] - 1))
    return np.array(counts, dtype=np.int64)


@kernel(nogil=True)
def _one_or_none(a, b, n, d):
    """Return the chance that of a ranked queues all d are, at most one of them beyond the first b.

    It is (b/n)**d + (a - b) (((b + 1)/n)**d - (b/n)**d), precise where a - b is large.
    """
    beta = all_among(b, n, d, WITH)
    if d == 2:
        return beta + (a - b) / n * ((2.0 * b + 1.0) / n)
    if b == 0:
        return (a / n) * (1.0 / n) ** (d - 1)
    return beta + (a - b) * beta * math.expm1(d * math.log1p(1.0 / b))


@inlined
def _arrival(w, m, s, beta, n, d):
    """Return the length of the queue that is joined, and the length that is then remembered."""
    if w < beta[m]:  # no fresh queue is shorter: is one of them another of length m?
        alone = w < beta[m + 1] or w < all_among(s[m + 1] + 1, n, d, WITH)
        return m, (m + 1 if alone else m)
    i = m - 1
    while beta[i] <= w and i > 0:
        i -= 1
    two = d > 1 and s[i] - s[i + 1] > 1 and w >= _one_or_none(s[i], s[i + 1], n, d)
    return i, (i if two else i + 1)


@inlined
def _departure(v, m, s, top):
    """Return the length of the queue that is served, and the length that is then remembered."""
    i = top
    while s[i] <= v:
        i -= 1
    # Of the queues of its length, the remembered one is the first.
    return i, (m - 1 if i == m and m > 0 and v < s[m + 1] + 1 else m)


@inlined
def _join(w, s, top, rule, aux):
    i, aux.memory[0] = _arrival(w, aux.memory[0], s, aux.beta, rule.n, rule.d)
    return i


@inlined
def _leave(v, s, top, rule, aux):
    i, aux.memory[0] = _departure(v, aux.memory[0], s, top)
    return i


_scan = event_loop(_join, _leave)


@kernel(nogil=True)
def _look_up(bits, rng, s, rule, tally, guide, aux, now):
    """Make one step for each entry of `bits` and return how many: fewer if the room is used up.

    As `occupancy._look_up`, with six tables side by side: a word holds an entry for each of the
    remembered lengths base, ..., base + 5. So it is read before that length is known, and an event
    waits for the one before it no longer than it takes to shift the word. `now` is room for counts.
    """
    s, guide, aux, now = borrowed(s), borrowed(guide), borrowed(aux), borrowed(now)
    moved, at_top = tally
    low, high, _, table, seen, limit = guide
    m = aux.memory[0]
    since, done = 0, 0
    top = len(s) - 1
    while s[top] == 0:
        top -= 1
    while done < len(bits) and top < len(s) - 2:
        width = choose_bands(s, top, rule, guide)
        bins = 1 << width
        base = _likely(s, top, rule, aux.beta)
        _make_table(bins, base, top, rule, guide)
        shift = np.uint16(16 - width)
        lane = _lane(m, base)
        for step in range(done + 1, len(bits) + 1):
            chosen = np.uint64(bits[step - 1] >> shift)
            entry = table[chosen] >> (lane * _STRIDE)
            event = (entry >> _EVENT) & np.uint64(63)
            if entry & _OPEN:
                if lane < _ENTRIES:
                    m = base + np.int64(lane)
                for i in range(1, top + 2):
                    now[i] = count_now(i, s, seen)
                uniform = (chosen + rng.random()) / bins
                outcome, m = _outcome(uniform, m, now, aux.beta, top, rule)
                event = np.uint64(outcome)
                lane = _lane(m, base)
            else:
                lane = (entry >> np.uint64(1)) & np.uint64(7)
            seen[event] += 2**40 + step
            if seen[event] >= limit[event]:
                i = np.int64(event >> np.uint64(1))
                count = count_now(i, s, seen)
                left = count - low[i] if event & np.uint64(1) else high[i] - count
                if left < 0:
                    break
                limit[event] = ((seen[event] >> 40) + left + 1) << 40
        if lane < _ENTRIES:
            m = base + np.int64(lane)
        done = step
        apply_seen(s, top, seen, moved)
        if s[top] == 0 or s[top + 1] > 0:
            at_top[top] += done - since
            since = done
            top += 1 if s[top + 1] > 0 else -1
    at_top[top] += done - since
    aux.memory[0] = m
    return done


@kernel(nogil=True)
def _lane(m, base):
    """Return which entry of a word belongs to m: the seventh, always open, for all but six."""
    return np.uint64(m - base if 0 <= m - base < 6 else 6)


@kernel(nogil=True)
def _likely(s, top, rule, longer):
    """Return where the six neighbouring lengths begin that are remembered most, for speed alone.

    The chance Q_k of length k or more is that of `supermarket.theory.memory`.
    """
    n, d = rule.n, rule.d
    longer[0] = 1.0
    for k in range(top + 1, top + 8):
        longer[k] = 0.0
    best = 0
    for k in range(1, top + 1):
        v, below = s[k] / n, s[k - 1] / n
        longer[k] = longer[k - 1] * v**d / max(1.0 - d * (below - v) * v ** (d - 1), 1e-9)
    for k in range(1, top + 1):
        if longer[k] - longer[k + 6] > longer[best] - longer[best + 6]:
            best = k
    return best


@kernel(nogil=True)
def _outcome(uniform, m, s, beta, top, rule):
    """Return the event of one uniform, and the length that is then remembered, as in `_scan`.

    The event is 2 i if count i rises, 2 i + 1 if it falls, 0 if neither; `beta` is room to work in.
    """
    n, d, arrival, _ = rule
    if uniform < arrival:
        for i in range(top + 2):
            beta[i] = all_among(s[i], n, d, WITH)
        i, m = _arrival(uniform / arrival, m, s, beta, n, d)
        return 2 * (i + 1), m
    i, m = _departure((uniform - arrival) / (1.0 - arrival) * n, m, s, top)
    return (2 * i + 1 if i > 0 else 0), m


@kernel(nogil=True)
def _make_table(bins, base, top, rule, guide):
    """Write into each bin what all its uniforms mean wherever the counts stand in their bands."""
    n, d, arrival, _ = rule
    low, high, table = guide.low, guide.high, guide.table
    for k in range(bins):
        table[k] = _OPEN << (_ENTRIES * _STRIDE)
    for m in range(base, base + 6):
        # The boundaries from left to right; every one of them rises with each count. Two for each
        # length of the queue joined, one for each level served, and the end.
        arrivals = 2 * (m + 1)
        last = arrivals + top + 1
        shift, filled = np.uint64(m - base) * _STRIDE, 0
        for j in range(last + 1 if m <= top + 1 else 0):
            i = m - j // 2 if j < arrivals else last - j
            event, after = 2 * (i + 1), i + 1 - j % 2
            if j == last:
                left = right = 1.0
                event, after = 0, m
            elif j >= arrivals:  # a queue of length i or more is served
                one = 1 if i == m + 1 else 0  # the remembered queue is the first of length m
                left = arrival + (1.0 - arrival) * low[i] / n
                right = arrival + (1.0 - arrival) * (high[i] + one) / n
                event, after = 2 * i + 1, m
            elif j % 2 == 0 and i < m:
                left = arrival * _one_or_none(max(low[i], low[i + 1]), low[i + 1], n, d)
                right = arrival * _one_or_none(high[i], min(high[i], high[i + 1]), n, d)
            else:
                least, most = (low[m + 1] + 1, high[m + 1] + 1) if j == 0 else (low[i], high[i])
                left = arrival * all_among(least, n, d, WITH)
                right = arrival * all_among(most, n, d, WITH)
            # A little to spare for rounding: an open bin is only slower.
            first = int(max(left * bins - 1e-6, 0.0)) if left < 1.0 else bins
            beyond = min(int(right * bins + 1e-6) + 1, bins)
            # From a length without a table an event must find its own way back: it is open.
            lane = _lane(after, base)
            known = (np.uint64(event) << _EVENT) + (lane << np.uint64(1))
            entry = known if lane < _ENTRIES else _OPEN
            while filled < beyond:
                table[filled] |= (entry if filled < first else _OPEN) << shift
                filled += 1
        if m > top + 1:
            for k in range(bins):
                table[k] |= _OPEN << shift
