"""Exact small systems: the matrix from the definition, closed forms for d = 1, simulated laws.

The chi-square tests have the false-alarm rate 1e-6 each, ten in all, with fixed seeds.
"""

import itertools
import math

import numpy as np
import pytest
from oracles import JIT, counts_of, exact
from scipy.stats import chi2

from supermarket import ParameterError, Schedule, Supermarket, relaxation_time, simulate
from supermarket.limits.mixing.exact import small_chain, two_level_rates


@pytest.mark.parametrize(("n", "d", "longest"), [(1, 1, 5), (2, 3, 4), (3, 2, 4), (4, 2, 3)])
def test_matrix_and_law_are_those_of_the_definition(n, d, longest):
    chain = small_chain(Supermarket(n, d, 0.8), longest)
    states, matrix, law = exact(n, d, 0.8, True, longest)
    rows = [chain.index(state) for state in states]
    assert sorted(rows) == list(range(len(states)))
    np.testing.assert_array_equal(chain.states[rows], states)
    np.testing.assert_allclose(chain.matrix.toarray()[np.ix_(rows, rows)], matrix, atol=1e-15)
    np.testing.assert_allclose(chain.equilibrium[rows], law, rtol=0, atol=1e-13)
    values = np.sort(np.linalg.eigvals(matrix).real)
    assert chain.gap == pytest.approx(1 - values[-2], abs=1e-11)


@pytest.mark.parametrize(("n", "longest"), [(2, 20), (4, 8)])
def test_one_choice_is_independent_queues(n, longest):
    """Each is an M/M/1 queue with a bound: geometric, and with known eigenvalues."""
    lam = 0.6
    chain = small_chain(Supermarket(n, 1, lam), longest)
    one = lam ** np.arange(longest + 1)
    law = [math.prod(one[list(x)]) * orders(x) for x in chain.states.tolist()]
    np.testing.assert_allclose(chain.equilibrium, law / one.sum() ** n, rtol=0, atol=1e-13)
    slowest = 1 + lam - 2 * math.sqrt(lam) * math.cos(math.pi / (longest + 1))
    assert chain.gap * chain.steps_per_unit == pytest.approx(slowest, rel=1e-9)
    lost = lam / (1 + lam) * one[longest] / one.sum()
    assert chain.losses @ chain.equilibrium == pytest.approx(lost, rel=1e-9)


def orders(lengths):
    """Return in how many ways these lengths can be given to the queues."""
    ways = math.factorial(len(lengths))
    for length in set(lengths):
        ways //= math.factorial(lengths.count(length))
    return ways


def test_mixing_is_that_of_the_powers_of_the_matrix():
    chain = small_chain(Supermarket(3, 2, 0.7), 6)
    matrix, law = chain.matrix.toarray(), chain.equilibrium
    steps = [0, 1, 5, 5, 40]
    for start in ([0, 0, 0], [1, 6, 2]):
        expected = [
            abs(np.linalg.matrix_power(matrix, m)[chain.index(start)] - law).sum() / 2
            for m in steps
        ]
        distance, error = chain.mixing(start, steps)
        np.testing.assert_allclose(distance, expected, rtol=0, atol=1e-12)
        assert np.all(np.diff(distance) <= 0)
        assert np.all(np.diff(error) >= 0)
        assert error[0] == chain.equilibrium_error
    uniform = np.full(len(law), 1 / len(law))
    (later, lost), *_ = chain.laws(uniform, [1])
    np.testing.assert_allclose(later, uniform @ matrix, rtol=0, atol=1e-14)
    assert lost == pytest.approx(chain.losses.mean())


@pytest.mark.parametrize(("lam", "short", "long"), [(0.5, 6, 10), (0.7, 8, 16)])
def test_the_error_covers_what_a_higher_bound_changes(lam, short, long):
    steps = np.arange(0, 200, 10)
    narrow, wide = (
        small_chain(Supermarket(3, 2, lam), short),
        small_chain(Supermarket(3, 2, lam), long),
    )
    for start in ([0, 0, 0], [short - 1] * 3):
        close, error = narrow.mixing(start, steps)
        exact_, _ = wide.mixing(start, steps)
        assert np.all(abs(close - exact_) <= error)
        for (law, lost), (wider, _) in zip(
            narrow.laws(start, steps), wide.laws(start, steps), strict=True
        ):
            there = [wide.index(state) for state in narrow.states]
            apart = abs(law - wider[there]).sum() / 2 + (1 - wider[there].sum()) / 2
            assert apart <= lost + 1e-12
    there = wide.equilibrium[[wide.index(state) for state in narrow.states]]
    apart = abs(narrow.equilibrium - there).sum() / 2 + (1 - there.sum()) / 2
    assert apart < narrow.equilibrium_error
    customers = [chain.equilibrium @ chain.states.sum(axis=1) for chain in (narrow, wide)]
    assert apart < customers[1] - customers[0]
    assert wide.equilibrium_error < narrow.equilibrium_error / 10
    assert narrow.equilibrium_error < 0.02


@pytest.mark.parametrize(
    ("n", "longest", "most"), [(4, 10, 3), (5, 9, 3), (6, 8, 3), (7, 7, 2), (8, 7, 2)]
)
@pytest.mark.parametrize("start", ["empty", "full"])
def test_simulated_laws_are_the_exact_ones(n, longest, most, start):
    """At a time when the distance from equilibrium is about a half."""
    d, lam, runs = 2, 0.7, 3000 if JIT else 600
    chain = small_chain(Supermarket(n, d, lam), longest)
    lengths = [0 if start == "empty" else most] * n
    steps = np.arange(1, 200)
    distance, error = chain.mixing(lengths, steps)
    m = int(steps[np.argmin(abs(distance - 0.5))])
    assert error[m] < 1e-3
    ((law, _),) = chain.laws(lengths, [m])
    seen = np.zeros(len(law))
    for seed in np.random.SeedSequence(n).spawn(runs):
        run = simulate(
            Supermarket(n, d, lam),
            Schedule(m, warmup=0, batches=2, unit="steps"),
            seed=seed,
            start=[1.0] * (lengths[0] + 1),
            engine="scan",
        )
        at_least = run.final[1 : longest + 1]  # a longer queue is as rare as what is pooled below
        seen[chain.index([(at_least > rank).sum() for rank in range(n)])] += 1
    expected = law * runs
    rare = expected < 10
    seen = np.append(seen[~rare], seen[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    statistic = ((seen - expected) ** 2 / expected).sum()
    assert statistic < chi2.isf(1e-6, len(seen) - 1)
    # The same runs against the law five steps later: this would be seen.
    ((later, _),) = chain.laws(lengths, [m + 5])
    later = np.append(later[~rare], later[rare].sum()) * runs
    assert not JIT or ((seen - later) ** 2 / later).sum() > chi2.isf(1e-6, len(seen) - 1)


def test_counts_of_states_do_not_depend_on_the_order():
    chain = small_chain(Supermarket(3, 2, 0.7), 4)
    for state in itertools.permutations((4, 1, 0)):
        assert chain.states[chain.index(state)].tolist() == [4, 1, 0]
    assert counts_of(chain.states[0], 4).tolist() == [3, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("lengths", [[1, 2], [0, 0, 5], [0, 0, -1], [0.5, 1, 1]])
def test_a_state_that_is_not_one(lengths):
    with pytest.raises(ParameterError, match="lengths must be n = 3 whole numbers from 0 to"):
        small_chain(Supermarket(3, 2, 0.7), 4).index(lengths)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ((8, 2, 0.7, 40), "n = 8 queues of length at most 40 have 3.77e\\+08 states"),
        ((3, 2, 1.0, 5), "lam = 1 is out of range"),
        ((3, 0, 0.5, 5), "d = 0 is out of range"),
        ((3, 2, 0.5, 0), "longest = 0 is out of range"),
    ],
)
def test_bad_input_gets_one_sentence(given, sentence):
    with pytest.raises(ParameterError, match=sentence):
        small_chain(Supermarket(*given[:3]), given[3])


def test_rates_of_two_levels_are_those_of_the_chain_of_all_lengths():
    """30 queues of length at most 2, from the sorted lengths; none of the states left out."""
    n, d, lam = 30, 6, 0.8
    chain = small_chain(Supermarket(n, d, lam), longest=2)
    gap, second = two_level_rates(Supermarket(n, d, lam), spread=50)
    assert gap == pytest.approx(chain.gap * chain.steps_per_unit, rel=1e-7)
    assert second > 1.5 * gap


def test_states_far_away_do_not_matter_and_the_gap_tends_to_the_mean_field():
    near, wide = (
        two_level_rates(Supermarket(500, 20, 0.97), spread=6),
        two_level_rates(Supermarket(500, 20, 0.97)),
    )
    assert near[0] == pytest.approx(wide[0], rel=2e-3)
    assert near[1] == pytest.approx(wide[1], rel=5e-3)  # its states lie farther out
    ratios = np.array([two_level_rates(Supermarket(n, 20, 0.97), 6) for n in (250, 500, 1000)])
    ratios *= relaxation_time(Supermarket(math.inf, 20, 0.97))
    assert np.all(np.diff(ratios[:, 0]) < 0)
    assert 1 < ratios[-1, 0] < 1.08
    with pytest.raises(ParameterError, match="choose a smaller n or d"):
        two_level_rates(Supermarket(10**5, 20, 0.97))
