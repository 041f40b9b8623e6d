"""Two coupled copies, many events at a time: the cut they share, their joint law, their meeting.

The bands are a matter of speed, so the tests also run with bands of one or two queues, where every
path through the code is common. Chi-square and Kolmogorov-Smirnov tests have the false-alarm rate
1e-6 each, z-tests (5.5) 4e-8; with fixed seeds and some 65 comparisons, the file raises a false
alarm once in 15 000 changes of the stream.
"""

import numpy as np
import pytest
from oracles import JIT, asked, counts_of
from scipy.stats import chi2, ks_2samp

from supermarket import ParameterError, couple
from supermarket.kernels.compiled import kernel
from supermarket.kernels.event_loop import rule_of
from supermarket.kernels.sampling import all_among
from supermarket.policies.jsq import fixed_point_counts
from supermarket.runs.counts import bursts as batches
from supermarket.runs.counts.bursts import USUAL, Width
from supermarket.runs.pairs import bursts as coupled_batches
from supermarket.runs.pairs import couple as coupled
from supermarket.runs.pairs.bursts import Copy
from supermarket.runs.pairs.couple import PairRule

# By name, so that they are part of what kernels here are kept by.
in_room, by_rank = coupled_batches._advance, coupled._by_rank
BANDS = [USUAL, Width(3.0, 0.0, 1), Width(3.0, 1.0, 0), Width(8.0, 0.5, 1)]


def twin(x, y, rank, arrives):
    """Return both copies, the longest queue first, after one event at a rank."""
    after = []
    for copy in (list(x), list(y)):
        there = [q for q, length in enumerate(copy) if length == copy[rank]]
        if arrives:
            copy[there[0]] += 1
        elif copy[rank] > 0:
            copy[there[-1]] -= 1
        after.append(tuple(copy))
    return tuple(after)


def exact_pairs(x, y, d, lam, steps):
    """Yield the law of the pair after each step; copies that have met stay where they are."""
    n, law = len(x), {(x, y): 1.0}
    for _ in range(steps):
        later = {}
        for (a, b), chance in law.items():
            if a == b:
                later[a, b] = later.get((a, b), 0.0) + chance
                continue
            for rank in range(n):
                joined = ((rank + 1) / n) ** d - (rank / n) ** d
                for arrives, weight in ((True, lam * joined), (False, 1 / n)):
                    after = twin(a, b, rank, arrives)
                    later[after] = later.get(after, 0.0) + chance * weight / (1 + lam)
        law = later
        yield law


def room_for(s):
    """Return all that the compiled steps of two copies with so many levels work with."""
    copies = coupled_batches.copy_of(s), coupled_batches.copy_of(s)
    return *copies, batches.room_for(2 * len(s)), np.zeros(2 * len(s) + 1, dtype=bool)


@kernel
def advance(rng, s, t, rule, steps, width, room):
    """As `coupled_batches.advance`, in compiled code."""
    one, other, both, rare = room
    one = Copy(s, one.bands, one.kinds, one.lengths)
    other = Copy(t, other.bands, other.kinds, other.lengths)
    return in_room(rng, one, other, rule, steps, width, both, rare)


@kernel
def ends(rng, s, t, rule, steps, runs, width, room):
    """Return the counts of both copies after up to `steps` steps, and the step of their meeting."""
    seen, met = np.zeros((runs, 2, len(s)), dtype=np.int64), np.zeros(runs, dtype=np.int64)
    for run in range(runs):
        v, w = s.copy(), t.copy()
        done, apart = advance(rng, v, w, rule, steps, width, room)
        met[run] = done if apart == 0 else steps + 1
        seen[run, 0], seen[run, 1] = v, w
    return seen, met


def is_law(seen, expected):
    """Chi-square, cells expected below 10 taken together."""
    rare = expected < 10
    seen = np.append(seen[~rare], seen[rare].sum())
    expected = np.append(expected[~rare], max(expected[rare].sum(), 1e-9))
    statistic = ((seen - expected) ** 2 / expected).sum()
    return statistic < chi2.isf(1e-6, len(seen) - 1)


@pytest.mark.parametrize("bands", BANDS)
@pytest.mark.parametrize(
    ("x", "y", "d", "lam", "steps"),
    [
        ((0, 0, 0), (3, 2, 2), 2, 0.8, 14),
        ((1, 1, 1, 1), (4, 0, 0, 0), 2, 0.8, 12),
        ((2, 1), (0, 0), 3, 0.5, 9),
        ((3, 0, 0, 0, 0), (1, 1, 1, 1, 0), 1, 0.9, 8),
    ],
)
def test_the_joint_law_is_that_of_the_exact_pair(x, y, d, lam, steps, bands):
    """And so is the law of the step at which they meet.

    Power: copies that move independently, or lag by one step, fail by far (tested below).
    """
    runs = 20_000 if JIT else 800
    laws = list(exact_pairs(x, y, d, lam, steps))
    counts = [counts_of(state, 30) for state in (x, y)]
    rule, room = rule_of(counts[0], d, lam), room_for(counts[0])
    rng = np.random.default_rng(len(x))
    seen, met = ends(rng, *counts, rule, steps, runs, bands, room)
    rows, times = np.unique(seen.reshape(runs, -1), axis=0, return_counts=True)
    found = {tuple(row): count for row, count in zip(rows, times, strict=True)}
    observed, expected = [], []
    for law in laws[-2:]:
        keys = [tuple(np.append(counts_of(a, 30), counts_of(b, 30))) for a, b in law]
        observed.append(np.array([found.get(key, 0) for key in keys]))
        expected.append(np.array(list(law.values())) * runs)
    assert observed[1].sum() == runs
    assert is_law(observed[1], expected[1])
    assert not JIT or not is_law(observed[0], expected[0])
    together = [sum(chance for (a, b), chance in law.items() if a == b) for law in laws]
    chances = np.diff([0.0, *together, 1.0])
    observed = np.bincount(met - 1, minlength=steps + 1)
    assert is_law(observed, chances * runs)
    assert not JIT or not is_law(observed, np.roll(chances, 1) * runs)


CASES = [
    (30, 3, 0.9), (10**4, 2, 0.9), (10**6, 1000, 0.999), (10**9, 1, 0.7), (10**12, 2, 0.9),
    (2**53, 2, 0.9),
]  # fmt: skip


def copies(n, d, lam, apart):
    """Return counts near the fixed point, and some that are lower by about this share."""
    s = fixed_point_counts(n, d, lam, True)
    t = s - np.int64(apart * s)
    t[0] = n
    return coupled._side_by_side(s, t)


def cut(s, t, d, lam, width):
    """Return both copies with their bands, and the joint cut of the unit interval."""
    rule, pair = rule_of(s, d, lam), [coupled_batches.copy_of(x) for x in (s, t)]
    (bands, parts, _), rare_falls = batches.room_for(2 * len(s)), np.zeros(2 * len(s) + 1, bool)
    for one in pair:
        coupled_batches._begin(one, rule, width)
    bounds = coupled_batches._merge(*pair, bands, rare_falls)
    arrivals, spans = batches._split(bands, rare_falls, bounds, rule, parts)
    rises, falls, weight = parts.rises[: bounds + 2], parts.falls[: bounds + 1], parts.weight
    return pair, bands, (rises, falls, weight[:arrivals], weight[arrivals:spans])


@pytest.mark.parametrize(("n", "d", "lam"), CASES)
@pytest.mark.parametrize("apart", [0.0, 1e-5, 0.01, 0.3])
@pytest.mark.parametrize("bands", [USUAL, Width(1.5, 0.0, 1)])
def test_a_certain_event_has_one_effect_wherever_the_counts_are_in_their_bands(
    n, d, lam, apart, bands
):
    s, t = copies(n, d, lam, apart)
    pair, (lows, highs, _), parts = cut(s, t, d, lam, bands)
    tops = [np.count_nonzero(one.counts) - 1 for one in pair]
    rises, falls, open_arrivals, open_departures = parts
    assert min(rises.min(), falls.min()) >= 0
    arrival = lam / (1 + lam)
    assert rises.sum() + open_arrivals.sum() == pytest.approx(arrival, rel=1e-12)
    assert falls.sum() + open_departures.sum() == pytest.approx(1 - arrival, rel=1e-12)
    if n >= 10**9:
        assert open_arrivals.sum() + open_departures.sum() < 0.02
    rng, found = np.random.default_rng(1), 0
    for _ in range(20):
        inside = []
        for one, top in zip(pair, tops, strict=True):
            low, high = one.bands.low, one.bands.high
            x = [rng.integers(low[i], high[i] + 1) for i in range(1, top + 1)]
            x = np.minimum.accumulate(np.array(x, dtype=np.int64))
            x = np.maximum(x, low[1 : top + 1])  # in the bands, and not increasing
            assert np.all(np.diff(x) <= 0)
            inside.append(x)
        for m in range(tops[0] + tops[1] + 1):
            if rises[m + 1] > 0 or falls[m] > 0:
                for rank in (highs[m + 1], lows[m] - 1):
                    assert [(x > rank).sum() for x in inside] == [one.lengths[m] for one in pair]
                found += 1
            if falls[m] > 0:
                assert falls[m] == pytest.approx((1 - arrival) * ((lows[m] - highs[m + 1]) / n))
            if rises[m + 1] > 1e-12:
                width = all_among(lows[m], n, d, True) - all_among(highs[m + 1], n, d, True)
                assert rises[m + 1] == pytest.approx(arrival * width, rel=1e-3)
    assert found > 0 or n < 100


@kernel
def many_at_a_time(rng, s, t, rule, stretches, seen, width, room):
    """Fill `seen` with both copies after each stretch, and return the step of each meeting."""
    met = np.zeros(len(seen), dtype=np.int64)
    for run in range(len(seen)):
        v, w, apart = s.copy(), t.copy(), 1
        for k, steps in enumerate(stretches):
            if apart > 0:
                done, apart = advance(rng, v, w, rule, steps, width, room)
                met[run] += done
            seen[run, k, 0], seen[run, k, 1] = v, w
    return met


@kernel
def one_at_a_time(rng, s, t, d, lam, stretches, seen):
    met, share, start = np.zeros(len(seen), dtype=np.int64), lam / (1 + lam), np.abs(s - t).sum()
    for run in range(len(seen)):
        v, w, apart = s.copy(), t.copy(), start
        for k, steps in enumerate(stretches):
            if apart > 0:
                rule = PairRule(d, d, share, share, True)
                done, apart = by_rank(rng, v, w, rule, steps, apart)
                met[run] += done
            seen[run, k, 0], seen[run, k, 1] = v, w
    return met


@pytest.mark.parametrize(("n", "d", "lam"), [(60, 2, 0.9), (3000, 2, 0.7), (3000, 50, 0.98)])
@pytest.mark.parametrize("bands", [USUAL, Width(8.0, 0.5, 1)])
def test_the_same_distances_in_law_as_one_event_at_a_time(n, d, lam, bands):
    """The l1 distance, all of it and above level 1, and two counts, at fixed times.

    Power: a distance off by a quarter of its standard deviation is seen.
    """
    runs, stretches = (1500, [n // 4, n, n]) if JIT else (30, [30, 30])
    s, t = copies(n, d, lam, 0.05)
    stretches = np.array(stretches)
    one, many = np.zeros((2, runs, len(stretches), 2, len(s)), dtype=np.int64)
    one_at_a_time(np.random.default_rng([n, 0]), s, t, d, lam, stretches, one)
    given = rule_of(s, d, lam), stretches, many, bands, room_for(s)
    many_at_a_time(np.random.default_rng([n, 1]), s, t, *given)

    def rows(seen):
        v, w = np.moveaxis(seen, 2, 0)
        apart = np.abs(v - w)
        numbers = apart.sum(axis=2), apart[:, :, 2:].sum(axis=2), v[:, :, 2], w[:, :, 1]
        return np.concatenate(numbers, axis=1).T

    assert rows(one).std(axis=1).min() > 0
    for a, b in zip(rows(one), rows(many), strict=True):
        assert ks_2samp(a, b, method="asymp").pvalue > 1e-6


@pytest.mark.parametrize(
    ("first", "second"),
    [([1.0, 0.9], [1.0, 0.5, 0.1]), ([1.0, 0.6, 0.2, 0.01], [1.0, 0.95, 0.1])],
)
@pytest.mark.parametrize("bands", [USUAL, Width(20.0, 2.0, 4)])
def test_the_same_law_from_crossing_starts_with_different_longest_queues(first, second, bands):
    """A new longest queue of one copy may come where the other one has many queues as long.

    Every count and the distance, after 300 events. Power: with such arrivals counted as certain,
    E t[3] is 1.11 and not 1.51, and its law is off by 0.11; 0.06 is seen.
    """
    n, d, lam, runs = 2000, 2, 0.9, 4000 if JIT else 25
    s, t = coupled._side_by_side(*(np.rint(n * np.array(u)).astype(int) for u in (first, second)))
    stretches = np.array([300 if JIT else 60])
    one, many = np.zeros((2, runs, 1, 2, len(s)), dtype=np.int64)
    one_at_a_time(np.random.default_rng(1), s, t, d, lam, stretches, one)
    many_at_a_time(
        np.random.default_rng(2), s, t, rule_of(s, d, lam), stretches, many, bands, room_for(s)
    )
    apart = [np.abs(seen[:, 0, 0] - seen[:, 0, 1]).sum(axis=1) for seen in (one, many)]
    assert ks_2samp(*apart, method="asymp").pvalue > 1e-6
    for copy in range(2):
        for i in range(1, 6):
            rows = (seen[:, 0, copy, i] for seen in (one, many))
            assert ks_2samp(*rows, method="asymp").pvalue > 1e-6, (copy, i)


@pytest.mark.parametrize(("n", "lam"), [(100, 0.7), (800, 0.5)])
def test_the_same_meeting_times_as_one_event_at_a_time(n, lam):
    """Power: times that are longer by a quarter fail by far (tested below)."""
    # Long enough for all to meet, and not endless for those that a fault keeps apart.
    runs, steps = (1000, 600 * n) if JIT else (10, 2 * n)
    s, t = coupled._side_by_side(np.array([n]), np.array([n, n, n // 2]))
    stretches, seen = np.array([steps]), np.zeros((2, runs, 1, 2, len(s)), dtype=np.int64)
    one = one_at_a_time(np.random.default_rng([n, 0]), s, t, 2, lam, stretches, seen[0])
    given = rule_of(s, 2, lam), stretches, seen[1], USUAL, room_for(s)
    many = many_at_a_time(np.random.default_rng([n, 1]), s, t, *given)
    assert ks_2samp(one, many, method="asymp").pvalue > 1e-6
    if JIT:
        assert np.array_equal(seen[:, :, :, 0], seen[:, :, :, 1])
        assert ks_2samp(many * 1.25, one, method="asymp").pvalue < 1e-6


@pytest.mark.parametrize("bands", BANDS)
@pytest.mark.parametrize(("n", "d", "lam"), [(20, 2, 0.9), (2000, 3, 0.8)])
def test_distances_never_grow_and_counts_stay_counts(n, d, lam, bands):
    rng = np.random.default_rng(5)
    s, t = coupled._side_by_side(np.array([n, n, n // 2, n // 2]), np.array([n, n // 3, n // 4]))
    l1, linf = 10**9, 10**9
    for _ in range(2000 if JIT else 60):
        before = s[1:].sum() + t[1:].sum()
        steps = int(rng.integers(1, 60))
        done, apart = coupled_batches.advance(rng, s, t, rule_of(s, d, lam), steps, bands)
        assert abs(s[1:].sum() + t[1:].sum() - before) <= 2 * done
        assert (s[0], t[0]) == (n, n)
        for x in (s, t):
            assert np.all(np.diff(x) <= 0)
            assert x[-1] == 0
        pair = coupled._Ranks(s, t, (d, d), (lam, lam), None)
        assert pair.distances()[0] == apart <= l1
        assert pair.distances()[1] <= linf
        l1, linf = pair.distances()
        if apart == 0:
            s, t = coupled._side_by_side(s, np.array([n, n, n // 3]))
            l1, linf = 10**9, 10**9


def test_a_room_that_is_used_up_grows():
    s, t = np.full((2, 18), 2, dtype=np.int64)
    s[-1:], t[-3:] = 0, 0
    rng = np.random.default_rng(1)
    done, _ = coupled_batches.advance(rng, s, t, rule_of(s, 2, 0.999), 100)
    assert done == 0
    pair = coupled._ManyRanks(s, t, (2, 2), (0.999, 0.999), rng)
    pair.copies = s, t
    assert pair.advance(5) == 5
    assert len(pair.copies[0]) > 18


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"engine": "bursts", "d": (2, 3)}, "engine = 'bursts' needs copies that agree in d"),
        ({"engine": "bursts", "lam": (0.5, 0.6)}, "engine = 'bursts' needs copies that agree"),
        ({"engine": "scan", "n": 10**13}, "n = 10000000000000 is out of range"),
        ({"n": 2**53 + 1}, "n = 9007199254740993 is out of range"),
        ({"engine": "table"}, "engine = 'table' is not"),
        ({"engine": "bursts", "horizon": 1e13}, "pass max_hours="),
    ],
)
def test_bad_input_gets_one_sentence(change, sentence):
    given = {"n": 5, "d": 2, "lam": 0.5, "starts": ("empty", [1.0, 0.5]), "horizon": 1, "seed": 1}
    with pytest.raises(ParameterError, match=sentence):
        asked(couple.check, **given | change)


def test_the_engine_is_chosen_by_size():
    given = {"d": 2, "lam": 0.5, "starts": ("empty", [1.0, 0.5]), "horizon": 0.2, "times": [0.1]}
    for n, engine in ((20_000, "scan"), (20_001, "bursts")):
        chosen, named = (
            asked(couple, n=n, seed=1, engine=how, **given) for how in ("auto", engine)
        )
        assert chosen.by == f"rank, {engine}"
        assert chosen.l1.tolist() == named.l1.tolist()
    far = asked(couple, n=2**53, seed=1, **given | {"horizon": 1e-8, "times": [1e-8]})
    assert far.l1[0] == pytest.approx(2**52, rel=1e-6)
