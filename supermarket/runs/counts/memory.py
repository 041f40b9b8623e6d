"""A guide table for the policy with memory: most events by one look, whatever is remembered.

As `engines`, with six tables side by side, one for each of the lengths remembered most.

Many events at a time, as in `bursts`, are not made here. There the events of a batch can be
counted by kind without their order, for the counts that decide them hardly move; here an arrival
depends on the remembered length, which the arrival just before it has set: the order decides.
"""

import numpy as np
from numpy.typing import NDArray

from supermarket.kernels.borrowed import borrowed
from supermarket.kernels.compiled import kernel
from supermarket.kernels.event_loop import Kept, Tally
from supermarket.kernels.sampling import WITH, all_among
from supermarket.policies.memory import arrival_of, departure_of, one_or_none
from supermarket.runs.counts.engines import Scan, apply_seen, choose_bands, count_now, guide_to

# A word of the table holds six entries of ten bits: whether it is open, which entry of the next
# word is to follow, and the event; the number of the event limits the number of levels.
_ENTRIES, _STRIDE, _EVENT, _OPEN = np.uint64(6), np.uint64(10), np.uint64(4), np.uint64(1)
_MOST_LEVELS = 32


class MemoryTable(Scan):
    """One event at a time, most of them found by one look into a guide table."""

    events_per_call = 2**18  # less than 2**20, see `_look_up`

    @staticmethod
    def nanoseconds(n: int) -> float:
        """Return a rough time of an event."""
        return 4.0 + 8e2 / n**0.5

    def advance(self, events: int, moved: NDArray[np.int64], at_top: NDArray[np.int64]) -> int:
        """Make up to `events` steps; see `clock.Chain`."""
        if len(self.counts) > _MOST_LEVELS:
            return super().advance(events, moved, at_top)
        bits = self.rng.bit_generator.random_raw(-(-events // 4)).view(np.uint16)[:events]
        guide = guide_to(len(self.counts), np.uint64)
        kept = Kept(np.empty(_MOST_LEVELS + 8), self.memory)
        state = self.rng, self.counts, self.rule(WITH), Tally(moved, at_top)
        return _look_up(bits, *state, guide, kept, self.counts.copy())


@kernel(nogil=True)
def _look_up(bits, rng, s, rule, tally, guide, aux, now):
    """Make one step for each entry of `bits` and return how many: fewer if the room is used up.

    As `engines._look_up`, with six tables side by side: a word holds an entry for each of the
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

    The chance Q_k of length k or more is that of `supermarket.limits.mean_field.memory`.
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
    """Return the event of one uniform, and the length that is then remembered.

    The event is 2 i if count i rises, 2 i + 1 if it falls, 0 if neither; `beta` is room to work in.
    """
    n, d, arrival, _ = rule
    if uniform < arrival:
        for i in range(top + 2):
            beta[i] = all_among(s[i], n, d, WITH)
        i, m = arrival_of(uniform / arrival, m, s, beta, n, d)
        return 2 * (i + 1), m
    i, m = departure_of((uniform - arrival) / (1.0 - arrival) * n, m, s, top)
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
                left = arrival * one_or_none(max(low[i], low[i + 1]), low[i + 1], n, d)
                right = arrival * one_or_none(high[i], min(high[i], high[i + 1]), n, d)
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
