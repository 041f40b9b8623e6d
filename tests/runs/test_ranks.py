"""The law of the ranks, its alias table, and the kernel against a twin that sorts the queues."""

import numpy as np
import pytest
from oracles import counts_of, exact

from supermarket import ParameterError, Schedule, Supermarket, simulate
from supermarket.policies.jsq import FAST
from supermarket.runs.counts import ranks
from supermarket.runs.counts.clock import with_room

RULES = [(1, 1, True), (3, 2, False), (7, 7, False), (100, 1, True), (1000, 2, True),
         (1000, 400, True), (1000, 400, False), (1024, 10**6, True)]  # fmt: skip


def after(queues, event):
    """Return the sorted queues after an arrival (2 r) or a departure (2 r + 1) at rank r."""
    queues = list(queues)
    rank, falls = divmod(event, 2)
    queues[rank] = max(queues[rank] - 1, 0) if falls else queues[rank] + 1
    return tuple(sorted(queues, reverse=True))


@pytest.mark.parametrize("replacement", [True, False])
@pytest.mark.parametrize(("n", "d"), [(2, 1), (2, 2), (3, 2), (3, 3), (4, 2), (4, 3), (4, 4)])
def test_the_law_of_the_ranks_gives_every_transition(n, d, replacement):
    lam, longest = 0.8, 3
    states, matrix, _ = exact(n, d, lam, replacement, longest + 1)
    law = ranks.law_of_ranks(n, d, lam, replacement)
    for state, row in zip(states, matrix, strict=True):
        if max(state) > longest:
            continue
        made = dict.fromkeys(states, 0.0)
        for event, probability in enumerate(law):
            made[after(state, event)] += probability
        np.testing.assert_allclose(list(made.values()), row, rtol=0, atol=1e-14)


@pytest.mark.parametrize(("n", "d", "replacement"), RULES)
def test_the_alias_table_reproduces_the_law(n, d, replacement):
    law = ranks.law_of_ranks(n, d, 0.9, replacement)
    assert law.min() >= 0
    assert law.sum() == pytest.approx(1, abs=1e-14)
    cut, part, alias = ranks.alias_table(law)
    bins = len(cut)
    share = (cut + part) * bins / 2**32
    assert 0 <= share.min() <= share.max() <= 1
    made = share / bins
    np.add.at(made, alias, (1 - share) / bins)
    np.testing.assert_allclose(made[: 2 * n], law, rtol=0, atol=1e-15)
    assert not made[2 * n :].any()


@pytest.mark.parametrize("start", [[40, 30, 12, 2, 0], [40, 0], [40, 40, 40, 39, 1, 0]])
@pytest.mark.parametrize(("d", "replacement"), [(1, True), (2, True), (2, False), (30, False)])
def test_the_kernel_makes_the_path_of_sorted_queues_and_its_sums(start, d, replacement):
    """Runs of 1, 2, ... words are one path; a third of the words are left open by their bin."""
    start, n, steps = with_room(np.array(start)), 40, 200
    cut, part, alias = ranks.alias_table(ranks.law_of_ranks(n, d, 0.8, replacement))
    per_bin = 2**32 // len(cut)
    words = np.random.default_rng(3).integers(0, 2**32, size=steps, dtype=np.uint32)
    open_ = (np.arange(steps) % 3 == 0) & (cut[words // per_bin] < per_bin)
    words[open_] = (words // per_bin * per_bin + cut[words // per_bin])[open_]
    lengths = np.array([(start[1:] > rank).sum() for rank in range(n)] + [0], dtype=np.int32)

    queues, rng = tuple(lengths[:n].tolist()), np.random.default_rng(4)
    total, tops = start * 0, start * 0
    for done in range(1, steps + 1):
        total[:10] += counts_of(queues, 8)
        tops[max(queues)] += 1
        k, rest = divmod(int(words[done - 1]), per_bin)
        own = rng.random() < part[k] if rest == cut[k] else rest < cut[k]
        queues = after(queues, k if own else int(alias[k]))

        s, moved, at_top, sorted_ = start.copy(), start * 0, start * 0, lengths.copy()
        stream = np.random.default_rng(4)
        table = (cut, part, alias)
        assert ranks._follow(words[:done], stream, table, sorted_, s, moved, at_top) == done
        assert tuple(sorted_[:n]) == queues
        np.testing.assert_array_equal(s[:10], counts_of(queues, 8))
        np.testing.assert_array_equal(s * done - moved, total)
        np.testing.assert_array_equal(at_top, tops)
    assert max(queues) < 8


def test_the_queues_of_any_start_are_taken_over():
    counts = with_room(np.array([5, 4, 2, 2, 1, 0]))
    chain = ranks.Ranks(counts, Supermarket(5, 2, 0.9), np.random.default_rng(1))
    assert chain._lengths.tolist() == [4, 3, 1, 1, 0, 0]


def test_a_full_room_stops_the_kernel_and_grows():
    counts = np.array([3, 3, 3, 2, 0, 0])
    chain = ranks.Ranks(counts, Supermarket(3, 3, 0.999), np.random.default_rng(1))
    done = chain.advance(10**4, counts * 0, counts * 0)
    assert done < 10**4
    assert chain.counts[4] == 1
    chain.grow()
    assert len(chain.counts) == 12
    assert chain.advance(1, chain.counts * 0, chain.counts * 0) == 1


def test_too_many_queues_get_one_sentence():
    with pytest.raises(ParameterError, match="n = 1000001 is too many: choose n <= 1000000"):
        simulate(Supermarket(10**6 + 1, 2, 0.9), 1, seed=1, engine="ranks")


@pytest.mark.parametrize(("n", "engine"), [(1, "ranks"), (FAST, "ranks"),
                                           (FAST + 1, "table")])  # fmt: skip
def test_auto_takes_ranks_while_they_fit_into_the_cache(n, engine):
    run = simulate(Supermarket(n, 2, 0.9), Schedule(2, batches=2, unit="steps"), seed=1)
    assert run.engine == engine
