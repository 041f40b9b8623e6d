"""The occupancy chain, many events at a time, exact in law.

Give each count a band around its present value. While every count stays inside its band, an event
whose uniform falls between the bands has one certain effect, wherever it stands among the events:
it is *certain*. So draw how many certain events come before the next open one (geometric), how many
of them are of each kind (multinomial), and add them up at once; then draw the open event inside the
bands and apply it to the counts as they stand. The order of the certain events matters only if it
could have led a count out of its band. That is ruled out when all rises, or all falls, of a count
alone would not; otherwise, which is rare, the order is drawn too, the events are
applied one by one up to the first that leaves a band, and the rest is dropped: whether to stop
there is decided by the events up to there, so the law stays exact. The bands can be as narrow as
they please; they cost an open event each time one falls into them.

Arrivals and departures have a unit interval each, an arrival's cut at beta(s[i]), a departure's at
s[i] / n, and positions inside a band are measured from its end, in whole queues for departures. So
no precision is lost where n is far beyond 2**53.

The idea is known for population protocols: P. Berenbrink, D. Hammer, D. Kaaser, U. Meyer,
M. Penschuck and H. Tran, "Simulating population protocols in sub-constant time per interaction",
ESA 2020.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from supermarket.kernels.compiled import kernel
from supermarket.kernels.draws import binomial
from supermarket.kernels.event_loop import Rule, Tally, rule_of
from supermarket.kernels.sampling import all_among, log_all_among, with_or_not
from supermarket.models.jsq import Supermarket
from supermarket.validation import ParameterError, counts_of

__all__ = ["bands"]


class Width(NamedTuple):
    """How wide the bands are, for speed alone.

    Room for a batch's mean number of rises, or falls, of the count, `spread` standard deviations
    more, and `margin`. A batch has about `wanted` open events.
    """

    wanted: float
    spread: float
    margin: int


class Bands(NamedTuple):
    """The values from `low` to `high` that each count may take; all rises of `rare` are open."""

    low: NDArray[np.int64]
    high: NDArray[np.int64]
    rare: NDArray[np.bool_]


class Cut(NamedTuple):
    """The unit intervals of an event, cut into certain and open spans: see `_split`.

    `rises`, `falls` are the chances that a certain event moves a count, `left` sums of them; open
    spans reach from boundary `first` to boundary `last` and have a chance of `weight`.
    """

    rises: NDArray[np.float64]
    falls: NDArray[np.float64]
    left: NDArray[np.float64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    weight: NDArray[np.float64]


class Kinds(NamedTuple):
    """How many certain events make each count rise, and fall."""

    up: NDArray[np.int64]
    down: NDArray[np.int64]


class Room(NamedTuple):
    """What a batch works with."""

    bands: Bands
    cut: Cut
    kinds: Kinds


USUAL = Width(1.5, 6.0, 8)


def room_for(levels: int) -> Room:
    """Return room for batches with so many levels."""
    size = levels + 1
    rare = np.zeros(size, dtype=np.bool_)
    low, high, up, down = np.zeros((4, size), dtype=np.int64)
    first, last = np.zeros((2, 2 * size), dtype=np.int64)
    cut = Cut(*np.zeros((2, size)), np.zeros(2 * size), first, last, np.zeros(2 * size))
    return Room(Bands(low, high, rare), cut, Kinds(up, down))


def advance(
    rng: Generator,
    s: NDArray[np.int64],
    rule: Rule,
    events: int,
    tally: Tally,
    width: Width = USUAL,
) -> int:
    """Make up to `events` steps in place and return how many: fewer if the room is used up.

    See `clock.Chain.advance`; `moved` gets the mean over the orders of the certain events.
    """
    return _advance(rng, s, rule, events, tally, width, room_for(len(s)))


@kernel(nogil=True)
def _advance(rng, s, rule, events, tally, width, room):
    moved, at_top = tally
    bands, cut, kinds = room
    low, high, up, down = bands.low, bands.high, kinds.up, kinds.down
    top = len(s) - 1
    while s[top] == 0:
        top -= 1
    done, since = 0, 0
    while done < events and top < len(s) - 2:
        batch = _bands(s, top, rule, bands, width)
        arrivals, spans = _split(bands, bands.rare, top, rule, cut)
        certain, open_ = _add_up(top, cut), _sum(cut.weight, spans)
        stop = min(events, done + batch)
        inside = True
        while done < stop and inside:
            count, hit = _until_open(rng, stop - done, certain, open_)
            _draw_kinds(rng, count, top, cut, kinds)
            if _any_order(s, top, kinds, bands):
                middle = done + (count + 1) / 2.0
                for i in range(1, top + 1):
                    s[i] += up[i] - down[i]
                    moved[i] += (up[i] - down[i]) * middle
                done += count
            else:
                done, inside = _in_order(rng, s, top, done, count, kinds, bands, moved)
            if hit and inside:
                done += 1
                i, change = _open_event(rng, s, rule, bands, cut, arrivals, spans)
                if i > 0:
                    s[i] += change
                    moved[i] += change * done
                    inside = low[i] <= s[i] and s[i] <= high[i]
            if not inside and (s[top] == 0 or s[top + 1] > 0):
                at_top[top] += done - since
                since = done
                top += 1 if s[top + 1] > 0 else -1
    at_top[top] += done - since
    return done


def bands(
    counts: NDArray[np.int64], d: int, lam: float, replacement: bool = True
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Return the bands that a batch from these counts would have.

    Parameters
    ----------
    counts : array_like of int, shape (levels,)
        Queues with length at least 0, 1, ..., all positive, not increasing.
    d, lam, replacement
        As in `supermarket.simulate`.

    Returns
    -------
    low, high : ndarray of int64, shape (levels,)
        The least and the greatest value that each count may take; n for level 0.
    events : int
        How many events they are meant for.

    Examples
    --------
    >>> from supermarket import bands
    >>> low, high, events = bands([10_000, 9000, 8000], d=2, lam=0.9)
    >>> bool((low <= [10_000, 9000, 8000]).all() and (high >= [10_000, 9000, 8000]).all())
    True
    """
    s = np.append(counts_of(counts), 0)
    model = Supermarket(int(s[0]), d, lam, replacement)
    if s.ndim != 1 or np.any(s[:-1] <= 0):
        raise ParameterError("counts must be those of one state, all positive.")
    found = room_for(len(s)).bands
    events = _bands(
        s, len(s) - 2, rule_of(s, model.d, model.lam, with_or_not(model.replacement)), found, USUAL
    )
    return found.low[: len(s) - 1], found.high[: len(s) - 1], events


@kernel(nogil=True)
def _bands(s, top, rule, bands, width):
    """Choose the bands, and return the number of events they are meant for.

    A count that rises with probability r an event and sits at a boundary of slope c in the unit
    interval, r and c summed over all, gives a batch of m events a share 2 c r m / n of open ones.
    The best m is the one in which about one event is open. A count that would hardly move in a
    batch is `rare`: all events that change it are open, which is cheaper than a band.
    """
    n, d, arrival, replacement = rule
    low, high, rare = bands
    wanted, spread, margin = width
    low[0] = high[0] = n
    low[top + 1] = high[top + 1] = 0
    rare[0], rare[top + 1] = False, True
    beta_below, work = 1.0, 0.0
    for i in range(1, top + 1):
        beta = all_among(s[i], n, d, replacement)
        touched = arrival * (beta_below - beta) + (1.0 - arrival) * (s[i] - s[i + 1]) / n
        work += touched * (arrival * d * beta * (n / s[i]) + 1.0 - arrival)
        beta_below = beta
    batch = max(16.0, min(math.sqrt(wanted * n / max(work, 1e-12)), 1e15))
    beta_below = 1.0
    for i in range(1, top + 1):
        log_ratio = log_all_among(s[i], s[i - 1], d, replacement)
        rise = batch * arrival * beta_below * -math.expm1(log_ratio)
        fall = batch * (1.0 - arrival) * (s[i] - s[i + 1]) / n
        beta_below *= math.exp(log_ratio)
        rare[i] = rise + fall < 4.0
        if rare[i]:
            rise = fall = 0.0
        high[i] = s[i] + min(int(rise + spread * math.sqrt(rise)) + margin, n - s[i])
        low[i] = max(s[i] - int(fall + spread * math.sqrt(fall)) - margin, 1)
    return int(batch)


@kernel(nogil=True)
def _split(bands, rare_falls, top, rule, cut):
    """Cut both unit intervals into certain and open spans.

    An open span reaches from boundary `first` to boundary `last` > `first` or equal, bands
    included; boundary i is where counts i and i + 1 meet, 0 the upper end, top + 1 the lower one.
    Returns the number of spans among arrivals, and of all spans; their weights, and those of the
    certain events, are probabilities of one event.
    """
    n, d, arrival, replacement = rule
    low, high, rare_rises = bands
    rises, falls, _, first, last, weight = cut
    spans, arrivals = 0, 0
    for departures in range(2):
        i = 0
        while i <= top + 1:
            # Boundaries i..j hang together: no certain event has room between two neighbours.
            j = i
            while j <= top and (
                high[j + 1] >= low[j] or (rare_falls[j] if departures else rare_rises[j + 1])
            ):
                j += 1
            for inner in range(i, min(j, top + 1)):
                if departures:
                    falls[inner] = 0.0
                else:
                    rises[inner + 1] = 0.0
            if departures:
                width = (1.0 - arrival) * ((high[i] - low[j]) / n)
            else:
                width = arrival * _gap(low[j], high[i], n, d, replacement)
            if width > 0.0:
                first[spans], last[spans], weight[spans] = i, j, width
                spans += 1
            if j <= top and departures:
                falls[j] = (1.0 - arrival) * ((low[j] - high[j + 1]) / n)
            elif j <= top:
                rises[j + 1] = arrival * _gap(high[j + 1], low[j], n, d, replacement)
            i = j + 1
        if not departures:
            arrivals = spans
    return arrivals, spans


@kernel(nogil=True)
def _gap(below, above, n, d, replacement):
    """Return beta(above) - beta(below), precise where the two are close."""
    if above <= 0:
        return 0.0
    outer = all_among(above, n, d, replacement)
    return outer * -math.expm1(log_all_among(below, above, d, replacement))


@kernel(nogil=True)
def _add_up(top, cut):
    """Return the chance of a certain event; write into `left` that of each kind and those below."""
    rises, falls, left = cut.rises, cut.falls, cut.left
    certain = falls[0]
    for i in range(1, top + 1):  # sums of positive terms: the smallest keeps its precision
        certain += falls[i]
        left[2 * i] = certain
        certain += rises[i]
        left[2 * i + 1] = certain
    return certain


@kernel(nogil=True)
def _sum(weight, spans):
    total = 0.0
    for span in range(spans):
        total += weight[span]
    return total


@kernel(nogil=True)
def _until_open(rng, room, certain, open_):
    """Draw how many certain events come before an open one, up to `room`, and whether one does."""
    if certain <= 0.0:
        return 0, True
    if open_ > 0.0:
        waiting = math.log(1.0 - rng.random()) / math.log1p(-open_ / (certain + open_))
        if waiting < room:
            return int(waiting), True
    return room, False


@kernel(nogil=True)
def _draw_kinds(rng, count, top, cut, kinds):
    """Draw how many of `count` certain events make each count rise or fall: a multinomial."""
    rises, falls, left = cut.rises, cut.falls, cut.left
    up, down = kinds
    for i in range(top, 0, -1):
        up[i] = down[i] = 0
        if rises[i] > 0.0 and count > 0:
            up[i] = binomial(rng, count, min(rises[i] / left[2 * i + 1], 1.0))
            count -= up[i]
        if falls[i] > 0.0 and count > 0:
            down[i] = binomial(rng, count, min(falls[i] / left[2 * i], 1.0))
            count -= down[i]
    up[0] = count  # departures from empty queues, which change nothing


@kernel(nogil=True)
def _any_order(s, top, kinds, bands):
    """Tell whether no order of these certain events leads a count out of its band on the way."""
    low, high, up, down = bands.low, bands.high, kinds.up, kinds.down
    inside = True
    for i in range(1, top + 1):
        inside = inside and s[i] + up[i] <= high[i] and s[i] - down[i] >= low[i]
    return inside


@kernel(nogil=True)
def _in_order(rng, s, top, done, count, kinds, bands, moved):
    """Apply certain events in a random order up to the first that leaves a band.

    Returns the number of steps done, and whether all counts are still inside their bands.
    """
    low, high, up, down = bands.low, bands.high, kinds.up, kinds.down
    while count > 0:
        pick = rng.random() * count
        count -= 1
        done += 1
        for i in range(top + 1):
            pick -= up[i]
            if pick < 0:
                up[i] -= 1
                if i > 0:
                    s[i] += 1
                    moved[i] += done
                    if s[i] > high[i]:
                        return done, False
                break
            pick -= down[i] if i > 0 else 0
            if pick < 0:
                down[i] -= 1
                s[i] -= 1
                moved[i] -= done
                if s[i] < low[i]:
                    return done, False
                break
    return done, True


@kernel(nogil=True)
def _open_event(rng, s, rule, bands, cut, arrivals, spans):
    """Draw one open event; return the count it moves, 0 for none, and its sign."""
    place = _open_place(rng, rule, bands, cut, arrivals, spans)
    i = _length_there(s, rule, place)
    return (i + 1, 1) if place[0] else (i, -1)


@kernel(nogil=True)
def _open_place(rng, rule, bands, cut, arrivals, spans):
    """Draw where an open event falls: (arrival, above, share, rank), see `_length_there`."""
    weight = cut.weight
    pick = rng.random() * _sum(weight, spans)
    span = 0
    while span < spans - 1 and pick >= weight[span]:
        pick -= weight[span]
        span += 1
    below, above = bands.low[cut.last[span]], bands.high[cut.first[span]]
    if span < arrivals:  # the share of beta(above) that is taken away, up to what the span takes
        beyond = log_all_among(below, above, rule.d, rule.replacement)
        return True, above, rng.random() * -math.expm1(beyond), below
    return False, above, 0.0, below + int(rng.random() * (above - below))


@kernel(nogil=True)
def _length_there(s, rule, place):
    """Return the length of the queue on which an event falls.

    A departure: the one at `rank`, the longest at 0. An arrival: its uniform is
    beta(above) (1 - share), and count i is below it if beta(s[i]) is.
    """
    arrival, above, share, rank = place
    i = 0
    while s[i + 1] > 0:
        if not arrival:
            beyond = s[i + 1] <= rank
        elif s[i + 1] >= above:
            beyond = False
        else:
            less = log_all_among(s[i + 1], above, rule.d, rule.replacement)
            beyond = share <= -math.expm1(less)
        if beyond:
            break
        i += 1
    return i
