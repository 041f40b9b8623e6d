"""The exhaustive check of orders: against the kernels' own moves, and where an order is lost."""

import itertools

import pytest

from supermarket import ParameterError
from supermarket.runs.pairs import orders
from supermarket.runs.pairs.orders import try_every_move

# The twin, by definition: one pair and one move after the other.


def moves(x, y, lists, thinned):
    for first, second in lists:
        y_after = joined(y, second)
        yield joined(x, first), y_after
        if thinned:
            yield x, y_after
    for q in range(len(x)):
        yield left(x, q), left(y, q)


def joined(state, chosen):
    """Return the state after an arrival at the first shortest of the chosen queues."""
    q = min(chosen, key=lambda q: state[q])
    return (*state[:q], state[q] + 1, *state[q + 1 :])


def left(state, q):
    return (*state[:q], max(state[q] - 1, 0), *state[q + 1 :])


def below(x, y):
    return all(a <= b for a, b in zip(x, y, strict=True))


def any_(_x, _y):
    return True


def no_farther(x, y, x_after, y_after):
    """Tell whether neither the sum nor the largest of the differences has grown."""
    before = [abs(a - b) for a, b in zip(x, y, strict=True)]
    after = [abs(a - b) for a, b in zip(x_after, y_after, strict=True)]
    return sum(after) <= sum(before) and max(after) <= max(before)


def fewer_beyond(x, y):
    return all(beyond(x, j) <= beyond(y, j) for j in range(1, max(*x, *y) + 1))


def beyond(x, j):
    """Return S_j, the number of customers in position j or higher."""
    return sum(max(a - j + 1, 0) for a in x)


def tried_one_by_one(n, ds, longest, by, order, thinned):
    kept = {"queues": below, "tails": fewer_beyond, "distances": any_}[order]
    lengths, sorts = range(longest, -1, -1), by != "queue"
    states = list(
        itertools.combinations_with_replacement(lengths, n)
        if sorts
        else itertools.product(lengths, repeat=n)
    )
    lists = orders._quantiles(n, ds) if by == "quantile" else list(orders._lists(n, ds))
    pairs = [(x, y) for x, y in itertools.product(states, repeat=2) if kept(x, y)]
    broken = made = 0
    for x, y in pairs:
        for after in moves(x, y, lists, thinned):
            made += 1
            end = tuple(tuple(sorted(z, reverse=True)) if sorts else z for z in after)
            broken += not (no_farther(x, y, *end) if order == "distances" else kept(*end))
    return len(pairs), made, broken


@pytest.mark.parametrize("order", ["queues", "tails", "distances"])
@pytest.mark.parametrize("by", ["queue", "rank", "quantile"])
@pytest.mark.parametrize("thinned", [False, True])
def test_all_at_once_are_as_many_as_one_by_one(by, order, thinned):
    """Also where most moves break the order, so that the counts are not 0."""
    broken = 0
    for n, ds, longest in ((2, (2, 1), 3), (3, (1, 2), 2), (3, (2, 2), 2), (1, (3, 2), 4)):
        found = try_every_move(n, ds, longest, by=by, order=order, thinned=thinned)
        assert found == tried_one_by_one(n, ds, longest, by, order, thinned)
        broken += found.broken
    assert broken > 0


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


@pytest.mark.parametrize(("n", "longest"), [(3, 3), (4, 3)])
@pytest.mark.parametrize("ds", [(2, 1), (3, 2), (10, 3)])
def test_more_choices_keep_tails_by_one_uniform_number(n, longest, ds):
    """The coupling that large systems are run with; the wrong way round it loses the order."""
    tried = try_every_move(n, ds, longest, by="quantile", order="tails", thinned=True)
    assert tried.broken == 0
    assert try_every_move(n, ds[::-1], longest, by="quantile", order="tails").broken > 0
    assert try_every_move(n, ds, longest, by="quantile", order="queues").broken > 0


@pytest.mark.parametrize(("n", "d", "longest"), [(3, 2, 3), (3, 3, 2), (4, 2, 2)])
@pytest.mark.parametrize("by", ["queue", "rank"])
def test_the_distance_of_two_copies_never_grows(n, d, longest, by):
    tried = try_every_move(n, (d, d), longest, by=by, order="distances")
    assert tried.broken == 0
    if by == "queue":
        assert tried.pairs == (longest + 1) ** (2 * n)
    assert try_every_move(n, (d, d - 1), longest, by=by, order="distances").broken > 0


def test_the_pieces_of_the_uniform_number_have_the_chances_of_the_ranks():
    """Each copy joins rank r with chance ((r + 1) / n)**d - (r / n)**d, as by a list."""
    n, ds = 4, (3, 2)
    ends = sorted({(r / n) ** d for r in range(n + 1) for d in ds})
    pieces = orders._quantiles(n, ds)
    for copy, d in enumerate(ds):
        chance = [0.0] * n
        for ranks, low, high in zip(pieces, ends[:-1], ends[1:], strict=True):
            chance[ranks[copy][0]] += high - low
        assert chance == pytest.approx([((r + 1) / n) ** d - (r / n) ** d for r in range(n)])
    listed = [max(lists[0]) for lists in orders._lists(n, ds)]  # the shortest queue of a list
    assert [listed.count(r) / n**3 for r in range(n)] == pytest.approx(
        [((r + 1) / n) ** 3 - (r / n) ** 3 for r in range(n)]
    )


def test_a_pair_by_hand():
    """Two queues, (1, 0) and (1, 0), lists of two: all arrivals join the empty one but (0, 0)."""
    made = list(moves((1, 0), (1, 0), list(orders._lists(2, (2, 1))), False))
    assert made == [
        ((2, 0), (2, 0)),
        ((1, 1), (2, 0)),
        ((1, 1), (1, 1)),
        ((1, 1), (1, 1)),
        ((0, 0), (0, 0)),
        ((1, 0), (1, 0)),
    ]
    assert joined((1, 1, 0), (1, 0)) == (1, 2, 0)  # a tie: the first in the list


def test_tails_are_numbers_of_customers():
    for x in itertools.product(range(4), repeat=3):
        assert beyond(x, 1) == sum(x)
        assert beyond(x, 3) == x.count(3)
    assert fewer_beyond((2, 2, 2), (3, 2, 1))
    assert not fewer_beyond((3, 2, 1), (2, 2, 2))
    assert not below((2, 2, 2), (3, 2, 1))


def test_refuses():
    with pytest.raises(ParameterError, match="choose a smaller n"):
        try_every_move(12, (2, 1), 6, by="rank", order="tails")
    with pytest.raises(ParameterError, match="by = 'server' is not known"):
        try_every_move(3, (2, 1), 2, by="server", order="tails")
    with pytest.raises(ParameterError, match="order = 'lengths' is not known"):
        try_every_move(3, (2, 1), 2, by="rank", order="lengths")
