"""Two copies of the occupancy chain coupled by rank, many events at a time, exact in law.

As in `supermarket.runs.counts.bursts`, whose functions do most of it. One event has a place among
the ranks of the queues, the same for both copies, so the bands of both cut the same unit intervals.
Between two bands the queue there has one certain length in either copy, and the event one certain
effect on both. In a band, or where those of the copies overlap, the event is open: its place is
drawn and looked up in both.

The step of the meeting is exact too. A certain event that treats the copies differently lies
between bands of theirs that are apart, so they do not meet before a count leaves its band; one that
treats them alike leaves the distance as it is.
"""

from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from supermarket.kernels.compiled import kernel
from supermarket.kernels.event_loop import Rule
from supermarket.runs.counts.bursts import (
    USUAL,
    Bands,
    Kinds,
    Width,
    _add_up,
    _any_order,
    _bands,
    _draw_kinds,
    _length_there,
    _open_place,
    _split,
    _sum,
    _until_open,
    room_for,
)


class Copy(NamedTuple):
    """One of the two copies of the chain.

    Its counts, their bands, what certain events make of them, and the lengths of the queues between
    the boundaries of both copies.
    """

    counts: NDArray[np.int64]
    bands: Bands
    kinds: Kinds
    lengths: NDArray[np.int64]


def copy_of(counts: NDArray[np.int64]) -> Copy:
    """Return a copy of the chain that changes these counts in place."""
    room = room_for(len(counts))
    return Copy(counts, room.bands, room.kinds, np.zeros(2 * len(counts) + 1, dtype=np.int64))


def advance(
    rng: Generator,
    s: NDArray[np.int64],
    t: NDArray[np.int64],
    rule: Rule,
    steps: int,
    width: Width = USUAL,
) -> tuple[int, int]:
    """Make up to `steps` steps in place; return how many, and the l1 distance of the copies.

    Fewer if the copies meet, or if one uses up its room.
    """
    room = room_for(2 * len(s))
    rare_falls = np.zeros_like(room.bands.rare)
    return _advance(rng, copy_of(s), copy_of(t), rule, steps, width, room, rare_falls)


@kernel(nogil=True)
def _advance(rng, first, second, rule, steps, width, room, rare_falls):
    bands, cut, kinds = room
    s, t = first.counts, second.counts
    (up, down), (up_t, down_t) = first.kinds, second.kinds
    done, apart = 0, _distance(s, t)
    while done < steps and apart > 0:
        top, top_t = _top(s), _top(t)
        highest = max(top, top_t)
        if highest == len(s) - 2:
            break
        batch = min(_begin(first, rule, width), _begin(second, rule, width))
        bounds = _merge(first, second, bands, rare_falls)
        arrivals, spans = _split(bands, rare_falls, bounds, rule, cut)
        certain, open_ = _add_up(bounds, cut), _sum(cut.weight, spans)
        stop = min(steps, done + batch)
        inside = True
        while done < stop and inside and apart > 0:
            count, hit = _until_open(rng, stop - done, certain, open_)
            _draw_kinds(rng, count, bounds, cut, kinds)
            _of_one(bounds, kinds, first.lengths, up, down)
            _of_one(bounds, kinds, second.lengths, up_t, down_t)
            if _any_order(s, top, first.kinds, first.bands) and _any_order(
                t, top_t, second.kinds, second.bands
            ):
                for i in range(1, highest + 1):
                    s[i] += up[i] - down[i]
                    t[i] += up_t[i] - down_t[i]
                done += count
            else:
                done, inside = _in_order(rng, first, second, bounds, done, count, kinds)
            if hit and inside:
                done += 1
                place = _open_place(rng, rule, bands, cut, arrivals, spans)
                inside = _fall(first, rule, place) & _fall(second, rule, place)
            if hit or not inside:
                apart = _distance(s, t)
    return done, _distance(s, t)


@kernel(nogil=True)
def _top(s):
    top = 0
    while s[top + 1] > 0:
        top += 1
    return top


@kernel(nogil=True)
def _distance(s, t):
    total = 0
    for i in range(len(s)):
        total += abs(s[i] - t[i])
    return total


@kernel(nogil=True)
def _begin(one, rule, width):
    """Choose the bands of a copy; return the number of events they are meant for.

    Narrow bands: a count is no more than those before it, and no less than those after it.
    """
    top = _top(one.counts)
    events = _bands(one.counts, top, rule, one.bands, width)
    low, high = one.bands.low, one.bands.high
    for i in range(1, top + 1):
        high[i] = min(high[i], high[i - 1])
    for i in range(top - 1, 0, -1):
        low[i] = max(low[i], low[i + 1])
    return events


@kernel(nogil=True)
def _of_one(bounds, kinds, lengths, up, down):
    """Turn how often the kinds of certain events come into the rises and falls of each count."""
    for i in range(len(up)):
        up[i] = down[i] = 0
    for m in range(1, bounds + 1):
        up[lengths[m - 1] + 1] += kinds.up[m]
        down[lengths[m]] += kinds.down[m]
    down[0] = 0  # a departure from an empty queue changes nothing


@kernel(nogil=True)
def _fall(one, rule, place):
    """Let an open event fall on a copy; return whether its count is in its band."""
    return _apply(one, _length_there(one.counts, rule, place), place[0])


@kernel(nogil=True)
def _merge(first, second, bands, rare_falls):
    """Write the bands of both copies as those of one list of boundaries, the uppermost first.

    lengths[m] of a copy is the length of its queues between boundaries m and m + 1, if these are
    apart. Returns the number of boundaries.
    """
    top, top_t = _top(first.counts), _top(second.counts)
    low, high, rare = first.bands
    low_t, high_t, rare_t = second.bands
    lengths, lengths_t = first.lengths, second.lengths
    lows, highs, rare_rises = bands
    bounds = top + top_t
    lows[0] = highs[0] = high[0]
    lows[bounds + 1] = highs[bounds + 1] = 0
    # The k-th upper ends and the k-th lower ends, as bands, cover what the bands themselves do.
    i = j = 0
    for m in range(1, bounds + 1):
        if j == top_t or (i < top and high[i + 1] >= high_t[j + 1]):
            i += 1
            highs[m] = high[i]
        else:
            j += 1
            highs[m] = high_t[j]
    i = j = 0
    for m in range(bounds + 1):
        if m > 0 and (j == top_t or (i < top and low[i + 1] >= low_t[j + 1])):
            i += 1
            lows[m] = low[i]
        elif m > 0:
            j += 1
            lows[m] = low_t[j]
        lengths[m], lengths_t[m] = i, j
        rare_falls[m] = rare[i] or rare_t[j]
        rare_rises[m + 1] = rare[i + 1] or rare_t[j + 1]
    return bounds


@kernel(nogil=True)
def _in_order(rng, first, second, bounds, done, count, kinds):
    """Apply certain events in a random order up to the first that leaves a band.

    Returns the number of steps done, and whether all counts are still inside their bands.
    """
    ups, downs = kinds
    inside = True
    while count > 0 and inside:
        pick = rng.random() * count
        count -= 1
        done += 1
        for m in range(bounds + 1):
            pick -= ups[m]
            arrives = pick < 0
            if arrives:
                ups[m] -= 1
            else:
                pick -= downs[m] if m > 0 else 0
                if pick >= 0:
                    continue
                downs[m] -= 1
            if m > 0:  # else a departure from an empty queue
                k = m - arrives
                inside = _apply(first, first.lengths[k], arrives) & _apply(
                    second, second.lengths[k], arrives
                )
            break
    return done, inside


@kernel(nogil=True)
def _apply(one, level, arrives):
    """Let an event fall on a queue of this length; return whether its count is in its band."""
    level += arrives
    if level == 0:
        return True
    s = one.counts
    s[level] += 1 if arrives else -1
    return one.bands.low[level] <= s[level] <= one.bands.high[level]
