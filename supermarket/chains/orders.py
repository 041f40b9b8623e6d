"""Do couplings keep their order? Every move of every ordered pair of small systems, by definition.

Two orders are known to be kept (`supermarket.chains.coupled` runs the same couplings for large n):

* "queues", X <= Y queue by queue: coupled by queue, Y may get arrivals that X does not [1]_;
* "tails", the number of customers in position j or higher, S_j = sum_q (x_q - j + 1)^+, is at most
  that of Y for every j: coupled by rank, X may look at more queues than Y [2]_.

References
----------
.. [1] M. J. Luczak and C. McDiarmid, "On the maximum queue length in the supermarket model", Annals
   of Probability 34 (2006) 493.
.. [2] S. R. E. Turner, "The effect of increasing routing choice on resource pooling", Probability
   in the Engineering and Informational Sciences 12 (1998) 109.
"""

from collections.abc import Iterator
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
    by : {"queue", "rank"}
        What the copies share: queues, or ranks among the queues sorted by length.
    order : {"queues", "tails"}
        See the module's text. By rank, "queues" compares the sorted lengths.
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
    choice("by", by, ("queue", "rank"))
    kept = {"queues": _below, "tails": _fewer_beyond}[choice("order", order, ("queues", "tails"))]
    lengths = range(longest, -1, -1)
    sorts = by == "rank"
    states = list(
        combinations_with_replacement(lengths, n) if sorts else product(lengths, repeat=n)
    )
    if len(states) ** 2 * n ** max(ds) > _MOST:
        raise ParameterError(
            f"there are some {len(states) ** 2 * n ** max(ds):.1g} moves to try, and at most "
            f"{_MOST:.0g} are feasible: choose a smaller n, d or longest."
        )
    pairs = [(x, y) for x, y in product(states, repeat=2) if kept(x, y)]
    broken = moves = 0
    for x, y in pairs:
        for after in _moves(x, y, ds, thinned):
            moves += 1
            broken += not kept(*(tuple(sorted(z, reverse=True)) if sorts else z for z in after))
    return Tried(len(pairs), moves, broken)


def _moves(x: State, y: State, ds: tuple[int, int], thinned: bool) -> Iterator[tuple[State, State]]:
    for chosen in product(range(len(x)), repeat=max(ds)):
        joined = _joined(y, chosen[: ds[1]])
        yield _joined(x, chosen[: ds[0]]), joined
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


def _fewer_beyond(x: State, y: State) -> bool:
    return all(_beyond(x, j) <= _beyond(y, j) for j in range(1, max(*x, *y) + 1))


def _beyond(x: State, j: int) -> int:
    """Return S_j, the number of customers in position j or higher."""
    return sum(max(a - j + 1, 0) for a in x)
