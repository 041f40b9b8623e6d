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
    each = *np.zeros((4, 2, levels), dtype=np.int64), np.zeros((2, size), dtype=np.int64)
    both = tuple(np.zeros((6, size), dtype=np.int64)), tuple(np.zeros((4, size)))
    rare = np.zeros((2, levels), dtype=np.bool_), *np.zeros((2, size), dtype=np.bool_)
    width = float(wanted), float(spread), margin
    return _advance(rng, s, t, d, lam / (1.0 + lam), steps, *width, each, *both, *rare)


@kernel(nogil=True)
def _advance(
    rng, s, t, d, arrival, steps, wanted, spread, margin, each, whole, parts, rare, rare_rises,
    rare_falls,
):  # fmt: skip
    low, high, up, down, lengths = each
    # The same of both copies together.
    lows, highs, ups, downs, first, last = whole
    rises, falls, left, weight = parts
    n = s[0]
    done, apart = 0, _distance(s, t)
    while done < steps and apart > 0:
        tops = _top(s), _top(t)
        if max(tops) == len(s) - 2:
            break
        batch = steps - done
        for copy in range(2):
            x, top = (s, tops[0]) if copy == 0 else (t, tops[1])
            room = _bands(
                x, n, top, d, arrival, WITH, low[copy], high[copy], rare[copy], wanted, spread,
                margin,
            )  # fmt: skip
            batch = min(batch, room)
        bounds = _merge(low, high, rare, tops, lows, highs, rare_rises, rare_falls, lengths)
        arrivals, spans = _split(
            lows, highs, rare_rises, n, bounds, d, arrival, WITH, rises, falls, first, last,
            weight, rare_falls,
        )  # fmt: skip
        certain, open_ = _add_up(bounds, rises, falls, left), _sum(weight, spans)
        stop = done + batch
        inside = True
        while done < stop and inside and apart > 0:
            count, hit = _until_open(rng, stop - done, certain, open_)
            _draw_kinds(rng, count, bounds, rises, falls, left, ups, downs)
            _of_each(bounds, ups, downs, lengths, up, down)
            if _any_order(s, tops[0], up[0], down[0], low[0], high[0]) and _any_order(
                t, tops[1], up[1], down[1], low[1], high[1]
            ):
                for i in range(1, max(tops) + 1):
                    s[i] += up[0, i] - down[0, i]
                    t[i] += up[1, i] - down[1, i]
                done += count
            else:
                done, inside = _in_order(
                    rng, s, t, bounds, done, count, ups, downs, lengths, low, high
                )
            if hit and inside:
                done += 1
                place = _open_place(rng, d, WITH, lows, highs, arrivals, first, last, weight, spans)
                i, j = _length_there(s, d, WITH, *place), _length_there(t, d, WITH, *place)
                inside = _apply(s, t, i, j, place[0], low, high)
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
def _merge(low, high, rare, tops, lows, highs, rare_rises, rare_falls, lengths):
    """Write the bands of both copies as those of one list of boundaries, the uppermost first.

    lengths[:, m] are the lengths, in either copy, of the queues between boundaries m and m + 1, if
    these are apart. Returns the number of boundaries.
    """
    bounds = tops[0] + tops[1]
    for copy in range(2):
        # A count is no more than those before it, and no less than those after it.
        for i in range(1, tops[copy] + 1):
            high[copy, i] = min(high[copy, i], high[copy, i - 1])
        for i in range(tops[copy] - 1, 0, -1):
            low[copy, i] = max(low[copy, i], low[copy, i + 1])
    lows[0] = highs[0] = high[0, 0]
    lows[bounds + 1] = highs[bounds + 1] = 0
    # The k-th upper ends and the k-th lower ends, as bands, cover what the bands themselves do.
    i = j = 0
    for m in range(1, bounds + 1):
        from_first = j == tops[1] or (i < tops[0] and high[0, i + 1] >= high[1, j + 1])
        i, j = (i + 1, j) if from_first else (i, j + 1)
        highs[m] = high[0, i] if from_first else high[1, j]
    i = j = 0
    for m in range(bounds + 2):
        if 0 < m <= bounds:
            from_first = j == tops[1] or (i < tops[0] and low[0, i + 1] >= low[1, j + 1])
            i, j = (i + 1, j) if from_first else (i, j + 1)
            lows[m] = low[0, i] if from_first else low[1, j]
        lengths[0, m], lengths[1, m] = i, j
    for m in range(bounds + 1):
        i, j = lengths[0, m], lengths[1, m]
        rare_falls[m] = rare[0, i] or rare[1, j]
        rare_rises[m + 1] = rare[0, i + 1] or rare[1, j + 1]
    return bounds


@kernel(nogil=True)
def _of_each(bounds, ups, downs, lengths, up, down):
    """Turn how often the kinds of certain events come into the rises and falls of each count."""
    for copy in range(2):
        for i in range(up.shape[1]):
            up[copy, i] = down[copy, i] = 0
    for m in range(1, bounds + 1):
        for copy in range(2):
            up[copy, lengths[copy, m - 1] + 1] += ups[m]
            down[copy, lengths[copy, m]] += downs[m]
    down[0, 0] = down[1, 0] = 0  # a departure from an empty queue changes nothing


@kernel(nogil=True)
def _in_order(rng, s, t, bounds, done, count, ups, downs, lengths, low, high):
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
            if pick < 0:
                ups[m] -= 1
                if m > 0:
                    i, j = lengths[0, m - 1], lengths[1, m - 1]
                    inside = _apply(s, t, i, j, True, low, high)
                break
            pick -= downs[m] if m > 0 else 0
            if pick < 0:
                downs[m] -= 1
                inside = _apply(s, t, lengths[0, m], lengths[1, m], False, low, high)
                break
    return done, inside


@kernel(nogil=True)
def _apply(s, t, i, j, arrives, low, high):
    """Let an event fall on queues of length i and j; return whether all stay inside their bands."""
    inside = True
    for copy in range(2):
        x, level = (s, i) if copy == 0 else (t, j)
        level += arrives
        if level > 0:
            x[level] += 1 if arrives else -1
            inside &= low[copy, level] <= x[level] <= high[copy, level]
    return inside
