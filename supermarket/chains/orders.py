"""Do couplings keep their order? Every move of every ordered pair of small systems, by definition.

Two orders are known to be kept (`supermarket.chains.coupled` runs the same couplings for large n):

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

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import NamedTuple

from supermarket.validation import ParameterError, choice, integer

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
    >>> from supermarket.chains.orders import try_every_move
    >>> try_every_move(3, (2, 1), 2, by="rank", order="tails")
    Tried(pairs=54, moves=648, broken=0)
    """
    n, longest = integer("n", n, 1), integer("longest", longest, 0)
    ds = tuple(integer("d", choices, 1) for choices in d)
    choice("by", by, ("queue", "rank", "quantile"))
    choice("order", order, ("queues", "tails", "distances"))
    kept = {"queues": _below, "tails": _fewer_beyond, "distances": _any}[order]
    lengths = range(longest, -1, -1)
    sorts = by != "queue"
    states = list(
        combinations_with_replacement(lengths, n) if sorts else product(lengths, repeat=n)
    )
    most = len(states) ** 2 * (2 * n if by == "quantile" else n ** max(ds))
    if most > _MOST:
        raise ParameterError(
            f"there are some {most:.1g} moves to try, and at most "
            f"{_MOST:.0g} are feasible: choose a smaller n, d or longest."
        )
    lists = _quantiles(n, ds) if by == "quantile" else list(_lists(n, ds))
    pairs = [(x, y) for x, y in product(states, repeat=2) if kept(x, y)]
    broken = moves = 0
    for x, y in pairs:
        for after in _moves(x, y, lists, thinned):
            moves += 1
            end = tuple(tuple(sorted(z, reverse=True)) if sorts else z for z in after)
            broken += not (_no_farther(x, y, *end) if order == "distances" else kept(*end))
    return Tried(len(pairs), moves, broken)


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


def _moves(
    x: State, y: State, lists: list[tuple[State, State]], thinned: bool
) -> Iterator[tuple[State, State]]:
    for first, second in lists:
        joined = _joined(y, second)
        yield _joined(x, first), joined
        if thinned:
            yield x, joined
    for q in range(len(x)):
        yield _left(x, q), _left(y, q)


def _joined(state: State, chosen: tuple[int, ...]) -> State:
    """Return the state after an arrival at the first shortest of the chosen queues."""
    q = min(chosen, key=lambda q: state[q])
    return (*state[:q], state[q] + 1, *state[q + 1 :])


def _left(state: State, q: int) -> State:
    return (*state[:q], max(state[q] - 1, 0), *state[q + 1 :])


def _below(x: State, y: State) -> bool:
    return all(a <= b for a, b in zip(x, y, strict=True))


def _any(_x: State, _y: State) -> bool:
    return True


def _no_farther(x: State, y: State, x_after: State, y_after: State) -> bool:
    """Tell whether neither the sum nor the largest of the differences has grown."""
    before = [abs(a - b) for a, b in zip(x, y, strict=True)]
    after = [abs(a - b) for a, b in zip(x_after, y_after, strict=True)]
    return sum(after) <= sum(before) and max(after) <= max(before)


def _fewer_beyond(x: State, y: State) -> bool:
    return all(_beyond(x, j) <= _beyond(y, j) for j in range(1, max(*x, *y) + 1))


def _beyond(x: State, j: int) -> int:
    """Return S_j, the number of customers in position j or higher."""
    return sum(max(a - j + 1, 0) for a in x)
