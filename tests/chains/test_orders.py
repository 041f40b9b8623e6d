"""The exhaustive check of orders: against the kernels' own moves, and where an order is lost."""

import itertools

import pytest

from supermarket import ParameterError
from supermarket.chains import orders
from supermarket.chains.orders import try_every_move


@pytest.mark.parametrize(("n", "longest"), [(3, 3), (4, 2)])
@pytest.mark.parametrize("ds", [(2, 1), (3, 2), (2, 2)])
def test_more_choices_keep_tails_by_rank(n, longest, ds):
    for thinned in (False, True):
        tried = try_every_move(n, ds, longest, by="rank", order="tails", thinned=thinned)
        assert tried.broken == 0
        assert tried.moves == tried.pairs * ((1 + thinned) * n ** ds[0] + n)


@pytest.mark.parametrize(("n", "d", "longest"), [(3, 2, 2), (3, 3, 1), (4, 2, 1)])
def test_more_arrivals_keep_every_queue(n, d, longest):
    tried = try_every_move(n, (d, d), longest, by="queue", order="queues", thinned=True)
    assert tried.broken == 0
    # Each queue of the pair takes one of the ordered pairs of lengths.
    assert tried.pairs == ((longest + 1) * (longest + 2) // 2) ** n


def test_what_is_not_kept_is_seen():
    """Fewer choices for the smaller copy, no common ranks, and queue by queue with more choices."""
    assert try_every_move(3, (1, 2), 2, by="rank", order="tails").broken > 0
    assert try_every_move(3, (2, 1), 2, by="queue", order="queues").broken > 0
    assert try_every_move(3, (2, 1), 2, by="rank", order="queues").broken > 0
    assert try_every_move(3, (2, 1), 2, by="queue", order="tails").broken > 0


def test_a_pair_by_hand():
    """Two queues, (1, 0) and (1, 0), lists of two: all arrivals join the empty one but (0, 0)."""
    moves = list(orders._moves((1, 0), (1, 0), (2, 1), thinned=False))
    assert moves == [
        ((2, 0), (2, 0)),
        ((1, 1), (2, 0)),
        ((1, 1), (1, 1)),
        ((1, 1), (1, 1)),
        ((0, 0), (0, 0)),
        ((1, 0), (1, 0)),
    ]
    assert orders._joined((1, 1, 0), (1, 0)) == (1, 2, 0)  # a tie: the first in the list


def test_tails_are_numbers_of_customers():
    for x in itertools.product(range(4), repeat=3):
        assert orders._beyond(x, 1) == sum(x)
        assert orders._beyond(x, 3) == x.count(3)
    assert orders._fewer_beyond((2, 2, 2), (3, 2, 1))
    assert not orders._fewer_beyond((3, 2, 1), (2, 2, 2))
    assert not orders._below((2, 2, 2), (3, 2, 1))


def test_refuses():
    with pytest.raises(ParameterError, match="choose a smaller n"):
        try_every_move(12, (2, 1), 6, by="rank", order="tails")
    with pytest.raises(ParameterError, match="by = 'server' is not known"):
        try_every_move(3, (2, 1), 2, by="server", order="tails")
    with pytest.raises(ParameterError, match="order = 'lengths' is not known"):
        try_every_move(3, (2, 1), 2, by="rank", order="lengths")
