"""Replicas in lock step: event for event against sorted queues, and against exact laws.

Statistical tests are z-tests over independent replicas. The threshold Z = 6 gives 2e-9 a comparison
for a normal estimate and, with Student's t on 64 replicas, 1e-7: some 500 comparisons raise a false
alarm in fewer than one run in 20,000. The seeds are fixed.
"""

import dataclasses
import math

import numpy as np
import pytest
from numpy.random import SeedSequence
from oracles import JIT, counts_of, exact_profile

from supermarket import ParameterError, Schedule, Supermarket, simulate
from supermarket.runs.counts import lanes as replicas
from supermarket.runs.counts import ranks
from supermarket.runs.counts.clock import measure, with_room

Z = 6.0
SPAN = 1.0 if JIT else 0.0001


@pytest.fixture(autouse=True)
def smaller_without_compiler(monkeypatch):
    """Pure Python is slow: fewer lanes and shorter blocks there, on which nothing else depends."""
    if not JIT:
        for name, value in (("LANES", 14), ("BLOCK", 20), ("STEPS_PER_CALL", 80)):
            monkeypatch.setattr(replicas, name, value)


def xoshiro(words):
    """Yield xoshiro256++ from the definition, and change `words` as it goes."""
    mask = 2**64 - 1

    def turned(x, k):
        return (x << k | x >> (64 - k)) & mask

    while True:
        result = (turned((words[0] + words[3]) & mask, 23) + words[0]) & mask
        shifted = words[1] << 17 & mask
        words[2] ^= words[0]
        words[3] ^= words[1]
        words[1] ^= words[2]
        words[0] ^= words[3]
        words[2] ^= shifted
        words[3] = turned(words[3], 45)
        yield result


class Naive:
    """A chain for `measure`: sorted queues, and the events that a replica's stream means."""

    events_per_call = 10**9
    tally = np.int64

    def __init__(self, counts, table, words):
        self.counts = counts.copy()
        self.cuts, self.pairs = ([int(x) for x in part] for part in table)
        self.words = [int(word) for word in words]
        self.stream = xoshiro(self.words)
        n = counts[0]
        self.queues = [int((counts[1:] > rank).sum()) for rank in range(n)]

    def advance(self, events, moved, at_top):
        for step in range(1, events + 1):
            at_top[self.queues[0]] += 1
            word = next(self.stream)
            k = word >> (64 - (len(self.cuts) - 1).bit_length())
            event = self.pairs[2 * k + (word >= self.cuts[k])]
            if event >= 0:
                self.queues[event] += 1
            elif self.queues[-1 - event] > 0:
                self.queues[-1 - event] -= 1
            self.queues.sort(reverse=True)
            before = self.counts.copy()
            self.counts[:] = counts_of(self.queues, len(self.counts) - 2)
            moved += step * (self.counts - before)
        for _ in range(-events % replicas.BLOCK):  # what a block has drawn and has no use for
            next(self.stream)
        return events


def same(a, b):
    for field in dataclasses.fields(a):
        np.testing.assert_equal(getattr(a, field.name), getattr(b, field.name), field.name)


def test_the_stream_is_xoshiro256_plus_plus():
    """The first numbers of its authors' C code from the state 1, 2, 3, 4, and ours after them."""
    known = [
        41943041, 58720359, 3588806011781223, 3591011842654386, 9228616714210784205,
        9973669472204895162, 14011001112246962877, 12406186145184390807, 15849039046786891736,
        10450023813501588000,
    ]  # fmt: skip
    naive = xoshiro([1, 2, 3, 4])
    assert [next(naive) for _ in known] == known
    naive = xoshiro([1, 2, 3, 4])
    words = np.zeros((4, replicas.LANES), dtype=np.uint64)
    words[:, 5] = [1, 2, 3, 4]
    with np.errstate(over="ignore"):
        assert [replicas._next(words, 5) for _ in range(300)] == [next(naive) for _ in range(300)]
    assert not words[:, :5].any()


@pytest.mark.parametrize(("n", "d", "replacement"), [
    (1, 1, True), (3, 2, False), (7, 7, False), (100, 1, True), (1000, 2, True), (1000, 400, False),
    (1024, 10**6, True), (32767, 1000, True)])  # fmt: skip
def test_the_table_of_events_reproduces_the_law_of_the_ranks(n, d, replacement):
    law = ranks.law_of_ranks(n, d, 0.9, replacement)
    cuts, pairs = replicas.table_of_events(n, d, 0.9, replacement)
    bins = len(cuts)
    size = 2**64 // bins
    below = [int(cut) - k * size for k, cut in enumerate(cuts)]
    made = np.zeros(2 * n)
    for share, own, other in zip(below, pairs[::2], pairs[1::2], strict=True):
        assert own == other or 0 <= share <= size
        share = share / size if own != other else 1.0
        for event, part in ((own, share), (other, 1 - share)):
            if part > 0:
                rank = int(event) if event >= 0 else -1 - int(event)
                made[2 * rank + (event < 0)] += part / bins
    np.testing.assert_allclose(made, law, rtol=0, atol=1e-15)


@pytest.mark.parametrize(("d", "replacement"), [(1, True), (2, True), (2, False), (30, False)])
@pytest.mark.parametrize("start", [[40, 30, 12, 2], [40], [40, 40, 40, 39, 1]])
def test_every_lane_makes_the_path_of_sorted_queues_and_its_sums(start, d, replacement):
    """Lanes stop at different steps, about the ends of blocks; some have not even started."""
    start, n, lanes = np.array([*start, 0]), 40, 12
    wanted = np.zeros(replicas.LANES, dtype=np.int64)
    block = replicas.BLOCK
    wanted[:lanes] = [
        0, 1, 2, block // 2, block - 1, block, block + 1, 0, 2 * block - 3, 2 * block,
        2 * block + 1, 2 * block + 20,
    ]  # fmt: skip
    table = replicas.table_of_events(n, d, 0.8, replacement)
    words = SeedSequence(d).generate_state(4 * replicas.LANES, np.uint64).reshape(4, replicas.LANES)
    before = words.copy()
    counts = np.zeros((len(start), replicas.LANES), dtype=np.int16)
    counts[:, :lanes] = start[:, None]
    counts, moved, above = replicas._stretch(words, table, wanted, counts)
    for lane in range(lanes):
        naive = Naive(with_room(start), table, before[:, lane])
        sums, at_top = naive.counts * 0, naive.counts * 0
        naive.advance(wanted[lane], sums, at_top)
        levels = len(counts)
        assert not naive.counts[levels:].any()
        np.testing.assert_array_equal(counts[:, lane], naive.counts[:levels])
        np.testing.assert_array_equal(moved[:, lane], sums[:levels])
        np.testing.assert_array_equal(above[:, lane], at_top[::-1].cumsum()[::-1][:levels])
        assert [int(word) for word in words[:, lane]] == naive.words
    np.testing.assert_array_equal(words[:, lanes:], before[:, lanes:])


@pytest.mark.parametrize("unit", ["service", "steps"])
def test_a_replica_is_measured_like_any_chain(unit):
    """All that a run says is what `measure` finds for a naive chain with the same streams."""
    n, d, lam = 30, 2, 0.8
    horizon, times = (300, [0, 7, 150]) if unit == "steps" else (6, [0, 0.001, 3.7, 6])
    model = Supermarket(n, d, lam)
    schedule = Schedule(horizon, warmup=horizon / 3, batches=5, times=times, unit=unit)
    runs = simulate(model, schedule, seed=7, start="empty", copies=3)
    table = replicas.table_of_events(n, d, lam, True)
    for k, run in enumerate(runs):
        seed = SeedSequence(7, spawn_key=(k,))
        naive = Naive(with_room(np.array([n])), table, seed.generate_state(8, np.uint64)[4:])
        rng = np.random.default_rng(seed)
        told = {"start": "empty", "seed": (7, (k,)), "engine": "lanes"}
        same(run, measure(naive, model, schedule, rng, **told))


def test_a_replica_does_not_depend_on_its_neighbours():
    """Alone, among others in one group or in two, and on two threads: the same in every field."""
    model, schedule = (
        Supermarket(25, 2, 0.95),
        Schedule(20 * max(SPAN, 0.05), batches=4, times=[0.5]),
    )
    many = simulate(model, schedule, copies=replicas.LANES + 2, seed=3)
    threaded = simulate(model, schedule, copies=replicas.LANES + 2, seed=3, threads=2)
    assert len({run.events for run in many}) > 1  # they finish at different times
    for copies in (1, 3):
        for a, b in zip(many, simulate(model, schedule, copies=copies, seed=3), strict=False):
            same(a, b)
    for a, b in zip(many, threaded, strict=True):
        same(a, b)
    seed = SeedSequence(3, spawn_key=(replicas.LANES + 1,))
    start = replicas.start_counts(model, "fixed point")
    table = replicas.table_of_events(25, 2, 0.95, True)
    same(many[-1], replicas._together(model, schedule, [seed], table, start)[0])
    assert [run.seed for run in many[:2]] == [(3, (0,)), (3, (1,))]
    assert not np.array_equal(many[0].profile, many[1].profile)


def test_long_stretches_are_made_in_parts():
    """Stretches of whole blocks draw the same numbers, whether one call makes them or several."""
    blocks = 4 * replicas.STEPS_PER_CALL // replicas.BLOCK
    few, many = (
        Schedule(blocks * replicas.BLOCK, warmup=0, batches=batches, unit="steps")
        for batches in (2, 16)
    )
    few, many = (simulate(Supermarket(50, 2, 0.9), one, copies=2, seed=1) for one in (few, many))
    for a, b in zip(few, many, strict=True):
        np.testing.assert_array_equal(a.final, b.final)
        np.testing.assert_allclose(a.profile, b.profile, rtol=1e-12)
        assert a.max_queue == pytest.approx(b.max_queue, rel=1e-12)


def test_room_grows_as_for_a_single_chain():
    start = np.append(np.ones(29), 0)  # the top level is 28: there are 32
    runs = simulate(
        Supermarket(20, 1, 0.99),
        Schedule(40 * max(SPAN, 0.05), warmup=0, batches=2),
        copies=8,
        seed=1,
        start=start,
    )
    assert {len(run.profile) for run in runs} <= {32, 64}
    for run in runs:
        assert len(run.profile) == (64 if max(run.max_queue) >= 30 else 32)
        assert sum(run.max_queue.values()) == pytest.approx(1, rel=1e-12)
    assert max(max(run.max_queue) for run in runs) >= 30


def z_scores(estimates, expected):
    error = estimates.std(axis=0, ddof=1) / math.sqrt(len(estimates))
    return (estimates.mean(axis=0) - expected) / np.maximum(error, 1e-12)


def against_the_exact_law(n, d, replacement, seed):
    """Return z-scores of the profile and of the law of the maximum, over 64 replicas."""
    lam, longest = 0.5, {2: 24, 3: 14, 4: 11}[n]
    profile, tops = exact_profile(n, d, lam, replacement, longest)
    horizon = 1e6 * SPAN / n
    runs = simulate(
        Supermarket(n, d, lam, replacement=replacement),
        Schedule(horizon, batches=2),
        copies=64 if JIT else 14,
        seed=seed,
    )
    enough = 200 if JIT else 25
    seen = profile * n * horizon > enough
    profiles = np.array([run.profile[: len(profile)] for run in runs])[:, seen]
    laws = np.array([[run.max_queue.get(m, 0.0) for m in range(len(tops))] for run in runs])
    often = tops * horizon > enough
    return np.append(z_scores(profiles, profile[seen]), z_scores(laws[:, often], tops[often]))


@pytest.mark.parametrize("replacement", [True, False])
@pytest.mark.parametrize(("n", "d"), [(2, 1), (2, 2), (3, 2), (3, 3), (4, 2), (4, 3)])
def test_stationary_law_of_small_systems(n, d, replacement):
    assert np.abs(against_the_exact_law(n, d, replacement, n + 10 * d)).max() < Z


def test_one_wrong_event_in_a_thousand_is_noticed(monkeypatch):
    """The power of the test above: an arrival in place of a departure once in 1000 events."""

    def wrong(n, d, lam, replacement):
        law = ranks.law_of_ranks(n, d, lam, replacement)
        law[0::2] *= 1 + 1e-3 / law[0::2].sum()
        law[1::2] *= 1 - 1e-3 / law[1::2].sum()
        return law

    monkeypatch.setattr(replicas, "law_of_ranks", wrong)
    scores = against_the_exact_law(3, 2, True, 23)
    assert not JIT or np.abs(scores).max() > 2 * Z


@pytest.mark.parametrize(("d", "lam"), [(2, 0.9), (50, 0.95), (1000, 0.99)])
@pytest.mark.parametrize("replacement", [True, False])
def test_replicas_agree_with_single_chains_at_a_thousand_queues(d, lam, replacement):
    """Means, variances and the maximum, in the transient from an empty start."""
    n, copies = 1000, 192 if JIT else 4
    horizon = 8.0 if JIT else 0.2
    model = Supermarket(n, d, lam, replacement=replacement)
    schedule = Schedule(horizon, warmup=0, batches=2, times=np.linspace(0.1, 1, 4) * horizon)
    many = simulate(model, schedule, start="empty", seed=1, copies=copies)
    single = [
        simulate(model, schedule, start="empty", seed=2 + k, engine="scan") for k in range(copies)
    ]
    a, b = (np.array([run.path[:, :8] for run in runs], dtype=float) for runs in (many, single))
    error = np.sqrt((a.var(axis=0, ddof=1) + b.var(axis=0, ddof=1)) / copies)
    difference = a.mean(axis=0) - b.mean(axis=0)
    assert np.all(np.abs(difference) <= Z * error + (1e-9 if JIT else 20))
    laws = [
        np.array([[run.max_queue.get(m, 0.0) for m in range(10)] for run in runs])
        for runs in (many, single)
    ]
    if JIT:
        # log of a ratio of two sample variances has standard error 2 / sqrt(copies - 1)
        busy = np.minimum(a.mean(axis=0), n - a.mean(axis=0)) > 20
        ratio = a.var(axis=0, ddof=1)[busy] / b.var(axis=0, ddof=1)[busy]
        assert np.abs(np.log(ratio)).max() < Z * 2 / math.sqrt(copies - 1)
        error = np.sqrt(sum(law.var(axis=0, ddof=1) for law in laws) / copies)
        assert np.all(np.abs(laws[0].mean(axis=0) - laws[1].mean(axis=0)) <= Z * error + 1e-9)


def test_a_start_with_too_many_levels_gets_one_sentence():
    with pytest.raises(ParameterError, match="has some 20002 levels, and copies in lanes have 163"):
        simulate(Supermarket(10, 2, 0.5), 10, seed=1, copies=2, start=np.ones(20_000))
