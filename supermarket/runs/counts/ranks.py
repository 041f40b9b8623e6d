"""The occupancy chain by ranks: one look into one table that never changes.

Rank the queues by length, the longest first. Whatever the lengths are, the last in rank of the d
queues that an arrival looks at is a shortest one, and it is among the first r with probability
beta(r) (see `engines`); a departure picks every rank with the same probability. So an event is a
draw from one fixed law on 2 n outcomes, made by an alias table [1]_. The queues of length i hold
the ranks s[i+1], ..., s[i] - 1: an arrival at any of them lengthens the first, a departure shortens
the last, and the order stays. The cost of an event depends on neither d nor the number of levels;
memory is at most 70 bytes a queue, and while all of it is in the cache this is the fastest way.

References
----------
.. [1] A. J. Walker, "An efficient method for generating discrete random variables with general
   distributions", ACM Transactions on Mathematical Software 3 (1977) 253; the table is made as in
   M. D. Vose, IEEE Transactions on Software Engineering 17 (1991) 972.
"""

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from supermarket.kernels.compiled import kernel
from supermarket.kernels.sampling import all_among, with_or_not
from supermarket.models.jsq import Supermarket
from supermarket.validation import EXACT_MAX, ParameterError

MOST = 10**6


class Ranks:
    """One event at a time, drawn from the law of the ranks.

    Raises
    ------
    ParameterError
        If there are more than `MOST` queues.
    """

    events_per_call = 2**18  # less than 2**20, see `_advance`
    tally = np.int64

    most = EXACT_MAX

    def __init__(self, counts: NDArray[np.int64], model: Supermarket, rng: Generator) -> None:
        if counts[0] > MOST:
            raise ParameterError(
                f"engine = 'ranks' holds every queue in memory, and n = {counts[0]} is too many: "
                f"choose n <= {MOST}, or engine='table'."
            )
        self.counts = counts
        exactly = counts - np.append(counts[1:], 0)
        lengths = np.repeat(np.arange(len(counts), dtype=np.int32)[::-1], exactly[::-1])
        self._lengths = np.append(lengths, np.int32(0))  # and room for what is not to be kept
        self._table = alias_table(law_of_ranks(counts[0], model.d, model.lam, model.replacement))
        self._rng = rng

    @staticmethod
    def nanoseconds(n: int) -> float:
        """Return a rough time of an event, to refuse what would take days."""
        return 6.0 + n / 1e4

    def advance(self, events: int, moved: NDArray[np.int64], at_top: NDArray[np.int64]) -> int:
        """Make up to `events` steps; see `clock.Chain`."""
        # 32 random bits choose an outcome; where they leave it open, more are drawn on demand.
        words = self._rng.bit_generator.random_raw(-(-events // 2)).view(np.uint32)[:events]
        return _follow(words, self._rng, self._table, self._lengths, self.counts, moved, at_top)

    def grow(self) -> None:
        """Double the number of levels there is room for."""
        self.counts = np.append(self.counts, np.zeros_like(self.counts))


def _follow(words, rng, table, lengths, counts, moved, at_top) -> int:
    """Make one step for each of `words` and return how many: fewer if the room is used up."""
    # place[i] holds counts[i] in units of 2**40 and, below, 2**39 + what is to join moved[i]: an
    # event is one addition.
    place = (counts << 40) + 2**39
    place[0] += 2**40
    done = _advance(words, rng, *table, lengths, place, at_top)
    counts[1:] = place[1:] >> 40
    moved[1:] += (place[1:] & (2**40 - 1)) - 2**39
    return done


def law_of_ranks(n: int, d: int, lam: float, replacement: bool) -> NDArray[np.float64]:
    """Return the probabilities of an arrival (outcome 2 r) and a departure (2 r + 1) at rank r."""
    law = np.empty(2 * n)
    _write_law(law, n, d, lam / (1.0 + lam), with_or_not(replacement))
    return law


@kernel(nogil=True)
def _write_law(law, n, d, arrival, replacement):
    below = 0.0
    for r in range(n):
        beta = all_among(r + 1, n, d, replacement)
        law[2 * r] = arrival * (beta - below)
        law[2 * r + 1] = (1.0 - arrival) / n
        below = beta


def alias_table(
    law: NDArray[np.float64],
) -> tuple[NDArray[np.uint32], NDArray[np.float64], NDArray[np.uint32]]:
    """Return the table of a law: bin k means outcome k in a part of it, alias[k] in the rest.

    There are 2**width bins, chosen by the high bits of 32. Of the values of the other bits, the
    first cut[k] mean outcome k, and so does the next one with probability part[k].
    """
    width = max(1, (len(law) - 1).bit_length())
    bins = 2**width
    share = np.zeros(bins)
    share[: len(law)] = law * bins
    alias = np.arange(bins, dtype=np.uint32)
    _fill_up(share, share.copy(), alias, np.empty(bins, dtype=np.int64))
    values = share * 2.0 ** (32 - width)
    cut = np.floor(values)
    return cut.astype(np.uint32), values - cut, alias


@kernel(nogil=True)
def _fill_up(share, rest, alias, order):
    """Fill every bin of less than 1 up with another outcome, its alias; `rest` is like `share`."""
    # From either end of `order`: bins to be filled up by others, and outcomes with too much. Of
    # these, `rest` is what is not yet given away.
    short, over = 0, len(share)
    for k in range(len(share)):
        if share[k] < 1.0:
            order[short] = k
            short += 1
        else:
            over -= 1
            order[over] = k
    while short > 0 and over < len(share):
        short -= 1
        k, giver = order[short], order[over]
        share[k], alias[k] = rest[k], giver
        rest[giver] -= 1.0 - rest[k]
        if rest[giver] < 1.0:
            over += 1
            order[short] = giver
            short += 1
    # What is left over is full, but for rounding.
    for j in range(short):
        share[order[j]] = 1.0
    for j in range(over, len(share)):
        share[order[j]] = 1.0


@kernel(nogil=True)
def _advance(words, rng, cut, part, alias, lengths, place, at_top):
    """Make one step for each of `words`, see `_follow`."""
    bits = 32
    while len(cut) >> (32 - bits) > 1:
        bits -= 1
    shift, mask = np.uint32(bits), np.uint32(2**bits - 1)
    # A departure from an empty queue writes past the last rank and adds nothing.
    top = len(place) - 1
    while place[top] < 2**40:
        top -= 1
    since, step = 0, 0
    for step in range(1, len(words) + 1):
        # Selections without a branch: which way they go can't be foreseen. Unsigned: an index
        # that can't be below 0 needs no test for it.
        word = words[step - 1]
        k = np.uint64(word >> shift)
        rest = word & mask
        other = np.uint64(alias[k])
        event = k if rest < cut[k] else other
        if rest == cut[k] and rng.random() < part[k]:
            event = k
        falls = np.int64(event & np.uint64(1))
        level = np.int64(lengths[event >> np.uint64(1)]) + 1 - falls
        change = 2**40 + step if falls == 0 else -(2**40) - step
        change = change if level != 0 else 0
        i = np.uint64(level)
        before = place[i]
        after = before + change
        place[i] = after
        lengths[np.uint64((before >> 40) - falls)] = level - falls
        if level > top or after < 2**40:
            at_top[top] += step - since
            since = step
            top += 1 if level > top else -1
            if top == len(place) - 2:
                break
    at_top[top] += step - since
    return step
