"""Two copies of the occupancy chain coupled by rank, many events at a time, exact in law.

As in `supermarket.chains.batches`, whose functions do most of it. One event has a place among the
ranks of the queues, the same for both copies, so the bands of both cut the same unit intervals.
Between two bands the queue there has one certain length in either copy, and the event one certain
effect on both. In a band, or where those of the copies overlap, the event is open: its place is
drawn and looked up in both.

The step of the meeting is exact too. A certain event that treats the copies differently lies
between bands of theirs that are apart, so they do not meet before a count leaves its band; one that
treats them alike leaves the distance as it is.
"""

import numpy as np

from supermarket.chains.batches import (
    MARGIN,
    OPEN,
    SPREAD,
    _add_up,
    _any_order,
    _bands,
    _draw_kinds,
    _length_there,
    _open_place,
    _split,
    _sum,
    _until_open,
)
from supermarket.compiled import kernel
from supermarket.sampling import WITH


def advance(rng, s, t, d, lam, steps, wanted=OPEN, spread=SPREAD, margin=MARGIN) -> tuple[int, int]:
    """Make up to `steps` steps in place; return how many, and the l1 distance of the copies.

    Fewer if the copies meet, or if one uses up its room.
    """
    levels, size = len(s) + 1, 2 * (2 * len(s) + 1)
    of_each = [
        (*np.zeros((4, levels), dtype=np.int64), np.zeros(size, dtype=np.int64)) for _ in (s, t)
    ]
    both = tuple(np.zeros((6, size), dtype=np.int64)), tuple(np.zeros((4, size)))
    rare = *np.zeros((2, levels), dtype=np.bool_), *np.zeros((2, size), dtype=np.bool_)
    width = float(wanted), float(spread), margin
    return _advance(rng, s, t, d, lam / (1.0 + lam), steps, *width, *of_each, *both, rare)


@kernel(nogil=True)
def _advance(
    rng, s, t, d, arrival, steps, wanted, spread, margin, of_s, of_t, whole, parts, rare
):  # fmt: skip
    low, high, up, down, lengths = of_s
    low_t, high_t, up_t, down_t, lengths_t = of_t
    # The same of both copies together.
    lows, highs, ups, downs, first, last = whole
    rises, falls, left, weight = parts
    rare_s, rare_t, rare_rises, rare_falls = rare
    n = s[0]
    done, apart = 0, _distance(s, t)
    while done < steps and apart > 0:
        top, top_t = _top(s), _top(t)
        highest = max(top, top_t)
        if highest == len(s) - 2:
            break
        for_s = _bands(s, n, top, d, arrival, WITH, low, high, rare_s, wanted, spread, margin)
        for_t = _bands(t, n, top_t, d, arrival, WITH, low_t, high_t, rare_t, wanted, spread, margin)
        batch = min(steps - done, for_s)
        _in_line(top, low, high)
        _in_line(top_t, low_t, high_t)
        bounds = _merge(
            top, low, high, rare_s, lengths, top_t, low_t, high_t, rare_t, lengths_t, lows, highs,
            rare_rises, rare_falls,
        )  # fmt: skip
        arrivals, spans = _split(
            lows, highs, rare_rises, n, bounds, d, arrival, WITH, rises, falls, first, last,
            weight, rare_falls,
        )  # fmt: skip
        certain, open_ = _add_up(bounds, rises, falls, left), _sum(weight, spans)
        stop = done + min(batch, for_t)
        inside = True
        while done < stop and inside and apart > 0:
            count, hit = _until_open(rng, stop - done, certain, open_)
            _draw_kinds(rng, count, bounds, rises, falls, left, ups, downs)
            _of_one(bounds, ups, downs, lengths, up, down)
            _of_one(bounds, ups, downs, lengths_t, up_t, down_t)
            if _any_order(s, top, up, down, low, high) and _any_order(
                t, top_t, up_t, down_t, low_t, high_t
            ):
                for i in range(1, highest + 1):
                    s[i] += up[i] - down[i]
                    t[i] += up_t[i] - down_t[i]
                done += count
            else:
                done, inside = _in_order(
                    rng, s, t, bounds, done, count, ups, downs, lengths, lengths_t, low, high,
                    low_t, high_t,
                )  # fmt: skip
            if hit and inside:
                done += 1
                place = _open_place(rng, d, WITH, lows, highs, arrivals, first, last, weight, spans)
                i, j = _length_there(s, d, WITH, *place), _length_there(t, d, WITH, *place)
                inside = _apply(s, i, place[0], low, high)
                inside = _apply(t, j, place[0], low_t, high_t) and inside
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
def _in_line(top, low, high):
    """Narrow bands: a count is no more than those before it, and no less than those after it."""
    for i in range(1, top + 1):
        high[i] = min(high[i], high[i - 1])
    for i in range(top - 1, 0, -1):
        low[i] = max(low[i], low[i + 1])


@kernel(nogil=True)
def _merge(
    top, low, high, rare, lengths, top_t, low_t, high_t, rare_t, lengths_t, lows, highs, rare_rises,
    rare_falls,
):  # fmt: skip
    """Write the bands of both copies as those of one list of boundaries, the uppermost first.

    lengths[m] and lengths_t[m] are the lengths, in either copy, of the queues between boundaries m
    and m + 1, if these are apart. Returns the number of boundaries.
    """
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
def _of_one(bounds, ups, downs, lengths, up, down):
    """Turn how often the kinds of certain events come into the rises and falls of each count."""
    for i in range(len(up)):
        up[i] = down[i] = 0
    for m in range(1, bounds + 1):
        up[lengths[m - 1] + 1] += ups[m]
        down[lengths[m]] += downs[m]
    down[0] = 0  # a departure from an empty queue changes nothing


@kernel(nogil=True)
def _in_order(
    rng, s, t, bounds, done, count, ups, downs, lengths, lengths_t, low, high, low_t, high_t
):
    """Apply certain events in a random order up to the first that leaves a band.

    Returns the number of steps done, and whether all counts are still inside their bands.
    """
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
                inside = _apply(s, lengths[k], arrives, low, high)
                inside = _apply(t, lengths_t[k], arrives, low_t, high_t) and inside
            break
    return done, inside


@kernel(nogil=True)
def _apply(x, level, arrives, low, high):
    """Let an event fall on a queue of this length; return whether its count is in its band."""
    level += arrives
    if level == 0:
        return True
    x[level] += 1 if arrives else -1
    return low[level] <= x[level] <= high[level]
