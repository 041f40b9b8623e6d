"""Do couplings keep their order? Every move of every ordered pair of small systems, by definition.

Two orders are known to be kept (`supermarket.runs.pairs.couple` runs the same couplings for large
n):

* "queues", X <= Y queue by queue: coupled by queue, Y may get arrivals that X does not [1]_;
* "tails", the number of customers in position j or higher, S_j = sum_q (x_q - j + 1)^+, is at most
  that of Y for every j: coupled by rank, X may look at more queues than Y [2]_.

And by queue, with the same number of choices, neither the sum nor the largest of the differences of
two copies in any state ever grows ("distances") [1]_.

By rank there are two ways to look at different numbers of queues: at the first so many ranks of one
list, or at ranks from one uniform number w, the d-th part of which sits at rank n w**(1/d), the
last of d uniform ones. Large systems are run in the second way.

References
----------
.. [1] M. J. Luczak and C. McDiarmid, "On the maximum queue length in the supermarket model", Annals
   of Probability 34 (2006) 493.
.. [2] S. R. E. Turner, "The effect of increasing routing choice on resource pooling", Probability
   in the Engineering and Informational Sciences 12 (1998) 109.
"""

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from supermarket.validation import EXACT_MAX, ParameterError, choice, integer, listed

__all__ = ["try_every_move"]

State = tuple[int, ...]
_MOST = 10**8


class Tried(NamedTuple):
    """What was tried: numbers of ordered pairs, of their moves, and of moves that end the order."""

    pairs: int
    moves: int
    broken: int


def try_every_move(
    n: int, d: tuple[int, int], longest: int, *, by: str, order: str, thinned: bool = False
) -> Tried:
    """Make every move of every ordered pair and count those after which the order is gone.

    Parameters
    ----------
    n : int
        Number of queues.
    d : pair of ints
        Number of queues that an arrival looks at, of either copy: of one list as long as the
        larger number, with replacement, each copy looks at the first so many.
    longest : int
        Longest queue before the move.
    by : {"queue", "rank", "quantile"}
        What the copies share: a list of queues; a list of ranks among the queues sorted by length;
        or the uniform number from which the rank that an arrival joins is drawn.
    order : {"queues", "tails", "distances"}
        See the module's text. By rank or quantile, "queues" and "distances" compare the sorted
        lengths; for "distances", all pairs are ordered.
    thinned : bool
        Whether there are also arrivals for the second copy alone.

    Returns
    -------
    Tried

    Raises
    ------
    ParameterError
        If a parameter is out of range, or there are more than 1e8 moves.

    Examples
    --------
    >>> from supermarket.runs.pairs.orders import try_every_move
    >>> try_every_move(3, (2, 1), 2, by="rank", order="tails")
    Tried(pairs=54, moves=648, broken=0)
    """
    n, longest = integer("n", n, 1), integer("longest", longest, 0)
    ds = tuple(integer("d", choices, 1, EXACT_MAX) for choices in listed("d", d, 2))
    choice("by", by, ("queue", "rank", "quantile"))
    choice("order", order, ("queues", "tails", "distances"))
    choice("thinned", thinned, (False, True))
    lengths = range(longest, -1, -1)
    sorts = by != "queue"
    # In logarithms first: the numbers themselves may have billions of digits.
    log_most = 2 * min(n, longest) * math.log(2) if sorts else 2 * n * math.log(longest + 1)
    log_most += math.log(2 * n) if by == "quantile" else max(ds) * math.log(n)
    many = math.comb(n + longest, n) if sorts else (longest + 1) ** n if log_most < 99 else 0
    most = many**2 * (2 * n if by == "quantile" else n ** max(ds)) if log_most < 99 else 10**99
    if most > _MOST or (by == "quantile" and max(ds) > 1000):
        raise ParameterError(
            f"there are some {most:.1g} moves to try, and at most "
            f"{_MOST:.0g} are feasible: choose a smaller n, d or longest."
        )
    states = list(
        combinations_with_replacement(lengths, n) if sorts else product(lengths, repeat=n)
    )
    lists = _quantiles(n, ds) if by == "quantile" else list(_lists(n, ds))
    before = np.array(states, dtype=np.int16)
    served = [_changed(before, np.full(len(before), q), -1) for q in range(n)]
    joined = {
        chosen: _changed(before, np.array(chosen)[np.argmin(before[:, chosen], axis=1)], 1)
        for both in lists
        for chosen in both
    }  # argmin is the first of the shortest
    after = [(joined[first], joined[second]) for first, second in lists]
    if thinned:
        after += [(before, joined[second]) for _, second in lists]
    after += [(z, z) for z in served]
    if sorts:
        after = [(_sorted(first), _sorted(second)) for first, second in after]
    x, y = (which.ravel() for which in np.indices((len(states),) * 2))
    if order == "distances":
        farther = _distances(before, before, x, y)
        broken = [(_distances(*ends, x, y) > farther).any(axis=1).sum() for ends in after]
    else:
        seen = _tails if order == "tails" else np.asarray
        kept = _all_below(seen(before), seen(before), x, y)
        x, y = x[kept], y[kept]
        broken = [(~_all_below(seen(first), seen(second), x, y)).sum() for first, second in after]
    return Tried(len(x), len(x) * len(after), int(np.sum(broken)))


def _lists(n: int, ds: tuple[int, int]) -> Iterator[tuple[State, State]]:
    """Yield the queues that either copy looks at: the first so many of one list."""
    for chosen in product(range(n), repeat=max(ds)):
        yield chosen[: ds[0]], chosen[: ds[1]]


def _quantiles(n: int, ds: tuple[int, int]) -> list[tuple[State, State]]:
    """Return the rank that either copy joins, once for each piece of (0, 1) where w may lie."""
    ends = sorted({Fraction(r, n) ** d for r in range(n + 1) for d in ds})
    pieces = []
    for low in ends[:-1]:
        # The rank r of a copy is the one with (r / n)**d <= w < ((r + 1) / n)**d.
        ranks = ([r for r in range(n) if Fraction(r, n) ** d <= low] for d in ds)
        pieces.append(tuple((rank[-1],) for rank in ranks))
    return pieces


def _changed(states: NDArray[np.int16], queues: NDArray[np.int64], by: int) -> NDArray[np.int16]:
    """Return the states after one queue of each, by its number, has got or lost a customer."""
    changed = states.copy()
    changed[np.arange(len(states)), queues] += by
    return np.maximum(changed, 0)


def _sorted(states: NDArray[np.int16]) -> NDArray[np.int16]:
    return -np.sort(-states, axis=1)


def _tails(states: NDArray[np.int16]) -> NDArray[np.int16]:
    """Return S_1, S_2, ..., the numbers of customers in position j or higher, of each state."""
    top = int(states.max(initial=0)) + 1
    beyond = np.maximum(states[:, :, np.newaxis] - np.arange(top, dtype=np.int16), 0)
    return beyond.sum(axis=1, dtype=np.int16)


def _all_below(
    first: NDArray[np.int16], second: NDArray[np.int16], x: NDArray[np.int64], y: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Tell for pairs of rows whether no number of the first is above that of the second."""
    width = max(first.shape[1], second.shape[1])  # numbers that are not there are 0
    first, second = (np.pad(z, ((0, 0), (0, width - z.shape[1]))) for z in (first, second))
    return (first[x] <= second[y]).all(axis=1)


def _distances(
    first: NDArray[np.int16], second: NDArray[np.int16], x: NDArray[np.int64], y: NDArray[np.int64]
) -> NDArray[np.int16]:
    """Return the sum and the largest of the differences of pairs of rows."""
    apart = np.abs(first[x] - second[y])
    return np.stack([apart.sum(axis=1, dtype=np.int16), apart.max(axis=1)], axis=1)
