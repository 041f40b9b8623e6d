"""Exact draws from equilibrium: the order they rest on, then their law.

A chi-square test has the false-alarm rate 1e-6; z-tests use the threshold 5.5, below 1e-6 with
Student's t on 60 samples or more. With some 40 comparisons and fixed seeds, the file raises a false
alarm once in 25 000 changes of the stream. Two errors are planted at the end, and must be seen.
"""

import itertools
import math

import numpy as np
import pytest
from oracles import JIT, counts_of, exact
from scipy.stats import chi2

from supermarket import ParameterError, Supermarket, simulate
from supermarket.kernels.sampling import all_among
from supermarket.runs import perfect
from supermarket.runs.perfect import equilibrium_draws

# Pure Python steps cost some fifty times more: fewer draws there, the same comparisons.
DRAWS = 3000 if JIT else 1500
SHARE = 1.0 if JIT else 0.04
LONGEST = {2: 24, 3: 14, 4: 11}


def excess(seen, expected):
    """Return chi-square over its 1 - 1e-6 quantile; cells expected below 10 are taken together."""
    rare = expected < 10
    seen = np.append(seen[~rare], seen[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    seen, expected = seen[expected > 1e-6], expected[expected > 1e-6]
    return ((seen - expected) ** 2 / expected).sum() / chi2.isf(1e-6, len(seen) - 1)


def against_the_exact_law(n, d, lam, replacement, draws):
    """Compare the full law of the sorted states."""
    states, _, law = exact(n, d, lam, replacement, LONGEST[n])
    index = {tuple(counts_of(state, LONGEST[n])): row for row, state in enumerate(states)}
    counts = equilibrium_draws(Supermarket(n, d, lam, replacement), draws=draws, seed=n)
    counts = np.pad(counts, ((0, 0), (0, LONGEST[n])))[:, : LONGEST[n] + 2]
    seen = np.zeros(len(states))
    for row in counts.tolist():
        seen[index[tuple(row)]] += 1
    return excess(seen, law * draws)


def after(state, rank, change):
    """Return the sorted lengths once the queue at `rank` has one customer more or fewer."""
    lengths = list(state)
    lengths[rank] = max(lengths[rank] + change, 0)
    return tuple(sorted(lengths, reverse=True))


def states_up_to(n, longest):
    return list(itertools.combinations_with_replacement(range(longest, -1, -1), n))


def below(x, y):
    """Return whether x <= y in all partial sums S_j."""
    top = max(x[0], y[0])
    return all(
        sum(max(q - j + 1, 0) for q in x) <= sum(max(q - j + 1, 0) for q in y)
        for j in range(1, top + 1)
    )


@pytest.mark.parametrize("n", [3, 4])
def test_events_keep_the_order(n):
    """Of all pairs x <= y, all lists of ranks: JSQ(d) stays below JSQ(d), and below d = 1."""
    states = states_up_to(n, 3)
    larger = {x: {y for y in states_up_to(n, 4) if below(x, y)} for x in states_up_to(n, 4)}
    lists = [c for d in range(1, n + 1) for c in itertools.product(range(n), repeat=d)]
    joined = {}
    for x in states:
        joined[x] = set()
        for ranks in lists:  # those of distinct ranks are among them
            rank = max(ranks)
            assert x[rank] == min(x[r] for r in ranks)
            joined[x].add((ranks[0], rank))
    pairs = [(x, y) for x in states for y in states if y in larger[x]]
    assert len(pairs) > len(states) * 5
    for x, y in pairs:
        for rank in range(n):
            assert after(y, rank, -1) in larger[after(x, rank, -1)]
        for first, rank in joined[x]:
            assert after(y, rank, 1) in larger[after(x, rank, 1)]
            assert after(y, first, 1) in larger[after(x, rank, 1)]


def test_the_order_would_be_lost_by_another_coupling():
    """Were a departure offered to other ranks of the two copies, the check above would fail."""
    x, y = (2, 1, 0), (2, 1, 0)
    assert below(x, y)
    assert not below(after(x, 1, -1), after(y, 0, -1))


@pytest.mark.parametrize("n", [1, 3])
def test_moves_are_those_of_sorted_lists(n):
    for state in states_up_to(n, 3):
        for rank in range(n):
            for change, move in ((1, perfect._arrive), (-1, perfect._depart)):
                lengths, counts = np.array(state), counts_of(state, 5)
                level = move(lengths, counts, rank)
                assert tuple(lengths) == after(state, rank, change)
                assert counts.tolist() == counts_of(tuple(lengths), 5).tolist()
                assert level == state[rank] + (change + 1) // 2


@pytest.mark.parametrize("replacement", [True, False])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_past_events_are_independent_and_have_their_law(d, replacement):
    """Two events in a row, read off the dominating process: the full joint law of 2 x 3 ranks."""
    n, lam, draws = 3, 0.6, 2 * DRAWS
    beta = [all_among(r, n, d, replacement) for r in range(n + 1)]
    law = np.append(np.full(n, 1 / n), lam * np.diff(beta)) / (1 + lam)  # departures, arrivals
    others = perfect._others(n, d, replacement)
    rng = np.random.default_rng(d)
    seen = np.zeros((2 * n, 2 * n))
    past = np.empty(2, dtype=np.int32)
    for _ in range(draws):
        lengths = perfect._dominating(rng, n, lam)
        counts = counts_of(lengths.tolist(), int(lengths[0]) + 8)
        perfect._look_back(rng, lengths, counts, lam, others, past)
        seen[tuple(past + n)] += 1
    # -1 - rank + n: departures come first, from the last rank up
    assert excess(seen.ravel(), np.outer(law, law).ravel() * draws) < 1


def test_room_grows():
    """Going back from short queues at lam near 1, the dominating ones outgrow the first room."""
    rng = np.random.default_rng(1)
    lengths, counts = np.array([1, 0]), np.array([2, 1, 0, 0])
    past = np.empty(2000, dtype=np.int32)
    counts = perfect._look_back(rng, lengths, counts, 0.99, np.empty(0), past)
    assert len(counts) > 4
    assert counts.tolist() == counts_of(lengths.tolist(), len(counts) - 2).tolist()


@pytest.mark.parametrize("n", [1, 2, 7])
def test_one_choice_gives_the_dominating_state_back(n):
    """With d = 1 the upper copy is the dominating process: forwards it undoes every step."""
    for seed in range(int(100 * SHARE) + 2):
        expected = perfect._dominating(np.random.default_rng(seed), n, 0.6)
        counts = equilibrium_draws(Supermarket(n, 1, 0.6), draws=1, seed=seed)
        assert counts[0].tolist() == counts_of(expected.tolist(), int(expected[0])).tolist()


def test_one_choice_has_the_product_law():
    """Two independent M/M/1 queues: their joint law is lam**(x + y) (1 - lam)**2."""
    lam, draws = 0.6, DRAWS
    counts = equilibrium_draws(Supermarket(2, 1, lam), draws=draws, seed=4)
    shorter, longer = (counts[:, 1:] == 2).sum(axis=1), (counts[:, 1:] >= 1).sum(axis=1)
    top = longer.max() + 1
    x, y = np.indices((top, top))
    law = np.where(x < y, 2.0, x == y) * (1 - lam) ** 2 * lam ** (x + y)
    seen = np.zeros((top, top))
    np.add.at(seen, (shorter, longer), 1)
    beyond = draws * (1 - law.sum())
    assert excess(np.append(seen.ravel(), 0), np.append(law.ravel() * draws, beyond)) < 1


@pytest.mark.parametrize("replacement", [True, False])
@pytest.mark.parametrize(("n", "d"), [(2, 2), (3, 2), (3, 3), (4, 2), (4, 3)])
def test_law_of_the_sorted_states(n, d, replacement):
    """Power: see the planted errors."""
    assert against_the_exact_law(n, d, 0.5, replacement, DRAWS) < 1


@pytest.mark.book  # a statistic of long runs: once, compiled, is enough
@pytest.mark.parametrize("replacement", [True, False])
def test_mean_profile_of_a_hundred_queues(replacement):
    """Against a long run; a bias of 3 % in u[1] is some ten standard errors."""
    n, d, lam = 100, 2, 0.7
    model = Supermarket(n, d, lam, replacement)
    counts = equilibrium_draws(model, draws=830, seed=3)
    run = simulate(model, 1e4, seed=4, engine="scan")
    shares = counts[:, 1:5] / n
    error = shares.var(axis=0, ddof=1) / len(shares) + run.batches["profile"][:, 1:5].var(
        axis=0, ddof=1
    ) / len(run.batches["profile"])
    z = (shares.mean(axis=0) - run.profile[1:5]) / np.sqrt(error)
    assert np.all(np.abs(z) < 5.5)
    known = (shares[:, 0].mean() - lam) / math.sqrt(shares[:, 0].var(ddof=1) / len(shares))
    assert abs(known) < 5.5


def test_same_seed_same_draws():
    first, again = (equilibrium_draws(Supermarket(20, 2, 0.8), draws=6, seed=5) for _ in range(2))
    fewer = equilibrium_draws(Supermarket(20, 2, 0.8), draws=3, seed=np.random.SeedSequence(5))
    other = equilibrium_draws(Supermarket(20, 2, 0.8), draws=6, seed=6)
    assert np.array_equal(first, again)
    assert np.array_equal(first[:3, :4], fewer[:, :4])
    assert not np.array_equal(first[:, :4], other[:, :4])


def test_shape_and_type():
    counts = equilibrium_draws(Supermarket(30, 3, 0.5, replacement=np.False_), draws=4, seed=1)
    assert counts.dtype == np.int64
    assert counts.shape[0] == 4
    assert np.all(counts[:, 0] == 30)
    assert np.all(np.diff(counts) <= 0)
    assert np.all(counts[:, -1] == 0)
    assert np.any(counts[:, -2] > 0)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"lam": 1.0}, "lam = 1 is out of range: choose 0 < lam < 1"),
        ({"n": 10**6}, "choose 1 <= n <= 100000"),
        ({"d": 0}, "d = 0 is out of range"),
        ({"d": 11, "replacement": False}, "choose d <= n, or replacement=True"),
        ({"draws": 0}, "choose 1 <= draws"),
        ({"seed": -1}, "seed = -1 is out of range"),
        ({"replacement": 1}, "replacement = 1 is not known"),
        ({"draws": 10**7, "lam": 0.95}, r"take some \S+ hours: choose fewer, or pass max_hours="),
        ({"n": 10**5, "lam": 0.999}, "choose a smaller n or lam"),
        ({"n": 2, "lam": math.nextafter(1.0, 0.0)}, "choose a smaller n or lam"),
    ],
)
def test_bad_input_gets_one_sentence(changed, sentence):
    given = {"n": 10, "d": 2, "lam": 0.5, "draws": 1, "seed": 1} | changed
    options = {name: given.pop(name) for name in ("draws", "seed")}
    with pytest.raises(ParameterError, match=sentence):
        equilibrium_draws(Supermarket(**given), **options)


def forgetful(rng, n, lam, others, first):
    """Draw new events, not older ones before the same, whenever the copies have not met."""
    while True:
        lengths = perfect._dominating(rng, n, lam)
        counts = perfect.with_room(counts_of(lengths.tolist(), int(lengths[0])))
        past = np.empty(first, dtype=np.int32)
        counts = perfect._look_back(rng, lengths, counts, lam, others, past)
        met, now = perfect._replay(past, lengths.copy(), counts.copy())
        if met:
            return np.trim_zeros(now, "b")
        first *= 2


def test_events_drawn_anew_are_seen(monkeypatch):
    monkeypatch.setattr(perfect, "_draw", forgetful)
    assert against_the_exact_law(2, 2, 0.5, True, DRAWS) > 1.5


def test_a_wrong_dominating_law_is_seen(monkeypatch):
    right = perfect._dominating
    monkeypatch.setattr(perfect, "_dominating", lambda rng, n, lam: right(rng, n, lam - 0.1))
    assert against_the_exact_law(2, 2, 0.5, True, DRAWS) > 1.5
