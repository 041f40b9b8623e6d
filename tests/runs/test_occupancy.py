"""The occupancy chain against its definition, exact laws, and its labelled twin.

Statistical tests are z-tests on batch means or replicas. Each states its false-alarm rate: the
threshold Z = 5.5 gives 4e-8 a comparison for a normal estimate, and with Student's t on 64 batches
below 1e-6; a file of some 200 comparisons raises a false alarm in fewer than one run in 5000. The
seeds are fixed, so a green test stays green until the stream or the code changes.
"""

import math
from fractions import Fraction
from functools import cache, partial

import numpy as np
import pytest
from oracles import JIT, Uniforms, counts_of, exact, exact_profile, make_steps, plain

from supermarket import (
    ParameterError,
    Schedule,
    Supermarket,
    fixed_point,
    policies,
    simulate,
)
from supermarket.kernels import sampling
from supermarket.kernels.compiled import kernel
from supermarket.kernels.event_loop import Tally, rule_of
from supermarket.kernels.sampling import WITH
from supermarket.policies.jsq import fixed_point_counts
from supermarket.runs.counts import engines as occupancy
from supermarket.runs.counts.clock import measure, with_room

Z = 5.5
scan = policies.named("jsq").loop
outcome = occupancy._outcome  # by name, so that it is part of what kernels here are kept by
# Pure Python steps cost some fifty times more: shorter runs there, the same comparisons.
SPAN = 1.0 if JIT else 0.02

ENGINES = ["scan", "table", "ranks", "labelled"]


def z_scores(batches, expected):
    mean = batches.mean(axis=0)
    error = batches.std(axis=0, ddof=1) / math.sqrt(len(batches))
    return (mean - expected) / np.maximum(error, 1e-12)


@pytest.mark.parametrize("replacement", [True, False])
@pytest.mark.parametrize(("n", "d"), [(2, 1), (2, 2), (3, 2), (4, 2), (4, 3)])
@pytest.mark.parametrize("engine", ENGINES)
def test_stationary_law_of_small_systems(engine, n, d, replacement):
    """Power: a bias of 1 % in any level's share is some 8 standard errors here."""
    lam, longest = 0.5, {2: 24, 3: 14, 4: 11}[n]
    profile, tops = exact_profile(n, d, lam, replacement, longest)
    # In plain Python a table, made anew at nearly each event, is slower still.
    horizon = 1e6 if JIT else 8e3 if engine == "table" else 2e4
    model = Supermarket(n, d, lam, replacement=replacement)
    run = simulate(model, horizon, seed=n + 10 * d, engine=engine)
    seen = np.flatnonzero(profile * n * horizon > 2000)
    scores = z_scores(run.batches["profile"][:, seen], profile[seen])
    assert np.abs(scores).max() < Z
    seen = np.flatnonzero(tops * horizon > 2000)
    scores = z_scores(run.batches["maximum"][:, seen], tops[seen])
    assert np.abs(scores).max() < Z


@pytest.mark.parametrize("engine", ENGINES)
def test_one_choice_is_independent_mm1_queues(engine):
    """At d = 1 every queue is M/M/1: geometric lengths, and the maximum of n of them."""
    n, lam = 100, 0.6
    run = simulate(Supermarket(n, 1, lam), 1e5 * SPAN, seed=5, engine=engine)
    levels = np.arange(12)
    assert np.abs(z_scores(run.batches["profile"][:, :12], lam**levels)).max() < Z
    at_most = (1 - lam ** (np.arange(32) + 1.0)) ** n
    law = np.diff(np.concatenate([[0.0], at_most]))
    seen = np.flatnonzero(law > 0.005)
    assert np.abs(z_scores(run.batches["maximum"][:, seen], law[seen])).max() < Z


@pytest.mark.book  # a statistic of long runs: once, compiled, is enough
@pytest.mark.parametrize(
    ("n", "d", "lam", "mean"),
    [(10, 2, 0.7, 1.219), (10, 2, 0.9, 2.800), (20, 2, 0.95, 3.712), (100, 2, 0.9, 2.393)],
)
def test_published_mean_queue_lengths(n, d, lam, mean):
    """Gast and Van Houdt's table (POMACS 1, 2017), with replacement; its last digit is rounded."""
    horizon = 6e7 / n
    run = simulate(Supermarket(n, d, lam), Schedule(horizon, batches=64), seed=17)
    interval = run.interval("mean queue", 0.9999999)  # a false alarm once in ten million
    assert interval.low - 6e-4 <= mean <= interval.high + 6e-4
    assert interval.high - interval.low < 0.05 * mean


@pytest.mark.book  # as above
def test_the_published_means_tell_the_replacement_rules_apart():
    """The wrong rule misses the published 1.219 by some 17 standard errors."""
    run = simulate(Supermarket(10, 2, 0.7, replacement=False), Schedule(2e5, batches=64), seed=17)
    interval = run.interval("mean queue", 0.9999999)
    assert interval.high < 1.219


@cache
def paths_of(engine, d, lam, replacement):
    """Return the counts at some times, from 40 replicas that start empty."""
    model = Supermarket(1000, d, lam, replacement=replacement)
    schedule = Schedule(8.0, warmup=0, times=[0.5, 1.0, 2.0, 4.0, 8.0], batches=2)
    runs = [
        simulate(model, schedule, seed=seed, start="empty", engine=engine).path[:, :8]
        for seed in range(40 if JIT else 4)
    ]
    return np.array(runs, dtype=float)


@pytest.mark.parametrize(("d", "lam"), [(2, 0.9), (50, 0.95)])
@pytest.mark.parametrize("replacement", [True, False])
@pytest.mark.parametrize("engine", ["scan", "table", "ranks"])
def test_both_chains_agree_at_a_thousand_queues(engine, d, lam, replacement):
    """Profiles, second moments at fixed times and the transient, from 40 replicas each."""
    n = 1000
    a, b = (paths_of(one, d, lam, replacement) for one in (engine, "labelled"))
    replicas = len(a)
    error = np.sqrt((a.var(axis=0, ddof=1) + b.var(axis=0, ddof=1)) / replicas)
    difference = a.mean(axis=0) - b.mean(axis=0)
    assert np.all(np.abs(difference) <= Z * error + 1e-9 + (0 if JIT else 20))
    if JIT:
        # log of a ratio of two sample variances has standard error 2 / sqrt(replicas - 1)
        busy = np.minimum(a.mean(axis=0), n - a.mean(axis=0)) > 50
        ratio = a.var(axis=0, ddof=1)[busy] / b.var(axis=0, ddof=1)[busy]
        assert np.abs(np.log(ratio)).max() < Z * 2 / math.sqrt(replicas - 1)


@pytest.mark.parametrize(
    ("n", "d", "lam", "replacement"),
    [(30, 2, 0.9, True), (500, 3, 0.7, True), (10**4, 1, 0.8, True), (10**6, 2, 0.95, True),
     (10**4, 80, 0.999, True), (10**4, 80, 0.999, False), (100, 100, 0.9, False)],
)  # fmt: skip
def test_a_certain_bin_means_the_same_event_all_over_its_bands(n, d, lam, replacement):
    """Wherever the counts stand in their bands, both ends of a certain bin give its event.

    And where one boundary alone may lie in a bin, the others need no comparison.
    """
    rng = np.random.default_rng(1)
    s = with_room(fixed_point_counts(n, d, lam, replacement))
    top, guide = int(np.flatnonzero(s)[-1]), occupancy.guide_to(len(s), np.int16)
    rule = rule_of(s, d, lam, replacement)
    bins = 2 ** occupancy.choose_bands(s, top, rule, guide)
    occupancy._make_table(bins, top, rule, guide)
    low, high, means = guide.low, guide.high, guide.table[:bins]
    certain, lone = np.flatnonzero(means >= 0), np.flatnonzero(means < -1)
    assert len(certain) > {30: 0, 100: 0, 500: 0.1}.get(n, 0.8) * bins
    sparse = 1 if JIT else max(1, bins // 200)
    for corner in range(12):
        state = s.copy()
        for i in range(1, top + 1):
            anywhere = rng.integers(low[i], high[i] + 1)
            state[i] = (low[i], high[i], anywhere)[corner if corner < 2 else rng.integers(3)]
        state[1 : top + 1] = np.minimum.accumulate(state[1 : top + 1])
        seen = np.zeros(2 * len(s), dtype=np.int64)
        given = state, seen, top, rule
        assert certain_bins_agree(means, certain[::sparse], *given)
        assert lone_bins_agree(means, lone[::sparse], rng.random(bins), *given)


@kernel
def certain_bins_agree(means, which, s, seen, top, rule):
    for wanted in which:
        for shift in (0.0, 1 - 1e-9):
            uniform = (wanted + shift) / len(means)
            if outcome(uniform, 0, s, seen, top, rule) != means[wanted]:
                return False
    return True


@kernel
def lone_bins_agree(means, which, inside, s, seen, top, rule):
    """Tell whether in these bins one comparison tells as much as all of them."""
    for one in which:
        for shift in (0.0, inside[one], 1 - 1e-9):
            uniform = (one + shift) / len(means)
            only = outcome(uniform, -1 - means[one], s, seen, top, rule)
            if only != outcome(uniform, 0, s, seen, top, rule):
                return False
    return True


@pytest.mark.parametrize(
    ("n", "d", "lam", "replacement"),
    [(1, 1, 0.5, True), (2, 2, 0.5, True), (3, 2, 0.5, False), (4, 3, 0.5, True),
     (4, 3, 0.5, False), (300, 2, 0.9, True), (5000, 70, 0.99, False), (10**6, 1000, 0.999, True)],
)  # fmt: skip
def test_the_table_makes_the_path_of_a_scan_of_all_levels(n, d, lam, replacement, monkeypatch):
    """With 2**14 bins and the same uniforms, those that the bins leave open drawn as 1/3."""
    steps = 40_000 if JIT else 1000
    bits = np.random.default_rng(5).integers(0, 2**16, size=steps, dtype=np.uint16)
    bands = occupancy.choose_bands

    def fine_bands(*arguments):
        bands(*arguments)
        return 14

    monkeypatch.setattr(occupancy, "choose_bands", fine_bands)
    look_up = getattr(occupancy._look_up, "py_func", occupancy._look_up)
    scan_all = partial(make_steps, plain(scan))
    s = with_room(fixed_point_counts(n, d, lam, replacement))
    twin, sums, sums_twin = s.copy(), [s * 0, s * 0], [s * 0, s * 0]
    guide, rule = occupancy.guide_to(len(s), np.int16), rule_of(s, d, lam, replacement)
    done = look_up(bits, Uniforms([1 / 3] * steps), s, rule, Tally(*sums), guide)
    uniforms = Uniforms(((bits >> 2) + 1 / 3) / 2**14)
    scan_all(uniforms, twin, d, lam, replacement, done, *sums_twin)
    np.testing.assert_array_equal(s, twin)
    np.testing.assert_array_equal(sums, sums_twin)


def test_compiled_and_plain_kernels_make_the_same_path():
    """The same stream gives the same counts, event for event, whatever the replacement rule."""
    for kernel_d, replacement in [(1, True), (2, True), (7, True), (2, False), (60, False)]:
        s = with_room(np.array([100, 80, 30, 2, 0]))
        twin, moved, at_top = s.copy(), s * 0, s * 0
        moved_twin, at_top_twin = s * 0, s * 0
        arguments = (kernel_d, 0.9, replacement, 3000)
        make_steps(scan, np.random.default_rng(4), s, *arguments, moved, at_top)
        rng = np.random.default_rng(4)
        make_steps(plain(scan), rng, twin, *arguments, moved_twin, at_top_twin)
        np.testing.assert_array_equal(s, twin)
        np.testing.assert_array_equal(moved, moved_twin)
        np.testing.assert_array_equal(at_top, at_top_twin)


def test_time_averages_are_those_of_the_path():
    """Sums over states from the running changes equal the plain sums, room growing on the way."""
    n, d, lam, events = 5, 1, 0.97, 3000
    start = np.array([5, 5, 5, 5, 4, 1, 0, 0])
    kernel = partial(make_steps, plain(scan))
    stream = np.random.default_rng(8).random(events)
    # The plain way: one event at a time, adding up what stands before each event.
    s, total, tops = with_room(start), np.zeros(200), np.zeros(200)
    s = np.append(s, np.zeros(200 - len(s), dtype=s.dtype))
    for uniform in stream:
        total += s
        tops[np.flatnonzero(s)[-1]] += 1
        kernel(Uniforms([uniform]), s, d, lam, True, 1, s * 0, s * 0)

    class Fed(occupancy.Scan):
        def advance(self, events, moved, at_top):
            return kernel(uniforms, self.counts, d, lam, True, events, moved, at_top)

    uniforms = Uniforms(stream)
    chain = Fed(start.copy(), Supermarket(n, d, lam), None)
    schedule = Schedule(events, warmup=0, batches=2, unit="steps")
    told = {"start": "given", "seed": (0, ()), "engine": "scan"}
    run = measure(chain, Supermarket(n, d, lam), schedule, np.random.default_rng(0), **told)
    np.testing.assert_allclose(run.profile, total[: len(run.profile)] / events / n, rtol=1e-12)
    for length, share in run.max_queue.items():
        assert share == pytest.approx(tops[length] / events, rel=1e-12)
    assert sum(run.max_queue.values()) == pytest.approx(1)
    np.testing.assert_array_equal(run.final, s[: len(run.final)])


def test_time_averages_of_the_table_are_those_of_its_path():
    """Runs of 1, 2, ... events with the same stream are one path; its plain sums are the truth."""
    start, steps = with_room(np.array([40, 30, 12, 2, 0])), 300
    bits = np.random.default_rng(3).integers(0, 2**16, size=steps, dtype=np.uint16)
    total, tops, s = start * 0, start * 0, start
    for done in range(1, steps + 1):
        total += s
        tops[np.flatnonzero(s)[-1]] += 1
        s, moved, at_top = start.copy(), start * 0, start * 0
        rng = np.random.default_rng(4)
        guide, rule = occupancy.guide_to(len(s), np.int16), rule_of(s, 2, 0.9)
        tally = Tally(moved, at_top)
        assert occupancy._look_up(bits[:done], rng, s, rule, tally, guide) == done
        np.testing.assert_array_equal(s * done - moved, total)
        np.testing.assert_array_equal(at_top, tops)
    assert len(np.flatnonzero(tops)) > 1


@pytest.mark.parametrize(
    ("n", "d"),
    [(5, 1), (6, 2), (7, 3), (40, 11), (1000, 900), (200, 200), (200, 66), (9999, 700), (3000, 70)],
)
def test_chance_that_all_chosen_lie_among_some(n, d):
    far = {n - n // part for part in (2, 3, 10, 30, 300)}  # from a third on a sum has two ends
    for s in {0, 1, d - 1, d, n - 1, n} | far:
        with_replacement = float(Fraction(s, n) ** d)
        without = float(Fraction(math.comb(s, d), math.comb(n, d)))
        assert occupancy.all_among(s, n, d, True) == pytest.approx(with_replacement, rel=1e-12)
        assert occupancy.all_among(s, n, d, False) == pytest.approx(without, rel=1e-11, abs=1e-300)
        for kind in (True, WITH, False):
            chance = occupancy.all_among(s, n, d, kind)
            assert kind is not WITH or chance == occupancy.all_among(s, n, d, True)
            log = sampling.log_all_among(s, n, d, kind)
            assert math.exp(log) == pytest.approx(chance, rel=1e-11, abs=1e-300)


def test_chance_keeps_its_precision_where_nearly_all_queues_count():
    n, d = 10**15, 10**13
    for others in (0, 1, 7, 1000):
        expected = math.exp(d * math.log1p(-others / n))
        assert occupancy.all_among(n - others, n, d, True) == pytest.approx(expected, rel=1e-13)


def test_path_starts_where_it_is_told():
    run = simulate(
        Supermarket(10, 2, 0.5), Schedule(1, warmup=0, times=[0, 0, 1]), seed=1, start=[1, 0.5, 0.2]
    )
    assert run.path[0, :4].tolist() == [10, 5, 2, 0]
    assert sum(run.max_queue.values()) == pytest.approx(1, rel=1e-12)
    np.testing.assert_array_equal(run.path[0], run.path[1])
    np.testing.assert_array_equal(run.path[2], run.final)
    run = simulate(Supermarket(1000, 2, 0.9), Schedule(1, warmup=0, times=[0]), seed=1)
    expected = np.rint(1000 * fixed_point(Supermarket(math.inf, 2, 0.9), 6))
    assert np.abs(run.path[0, :7] - expected).max() <= 2


def test_many_levels_find_room():
    """A start far above the first capacity, and growth during the run."""
    tall = np.append(np.ones(90), 0)
    run = simulate(Supermarket(3, 1, 0.9), Schedule(2, warmup=0), seed=1, start=tall)
    assert max(run.max_queue) >= 89
    higher = np.append(np.ones(20_000), 0)  # more than the entries of a table can name
    brief = Schedule(2, warmup=0)
    run = simulate(Supermarket(3, 1, 0.9), brief, seed=1, start=higher, engine="table")
    assert max(run.max_queue) >= 19_990
    run = simulate(Supermarket(10, 1, 0.99), 20000 * SPAN + 10, seed=1)
    assert run.profile[-1] == 0


@pytest.mark.parametrize("engine", ["scan", "table", "ranks", "bursts"])
def test_from_a_given_start_arrivals_may_outpace_the_servers(engine):
    """After 8 steps of rate 1.5 from empty: exact means. At |z| < 5.5, 4e-8 false alarms each."""
    n, d, lam, steps, runs = 3, 2, 1.5, 8, 1000 if JIT else 300
    states, matrix, _ = exact(n, d, lam, True, steps)
    law = np.linalg.matrix_power(matrix, steps)[states.index((0,) * n)]
    counts = np.array([counts_of(state, steps) for state in states])[:, 1:4]
    seen = np.zeros((runs, 3))
    schedule = Schedule(steps, warmup=0, batches=2, unit="steps")
    for run, seed in zip(seen, np.random.SeedSequence(1).spawn(runs), strict=True):
        model = Supermarket(n, d, lam)
        run[:] = simulate(model, schedule, seed=seed, engine=engine, start="empty").final[1:4]
    assert np.abs(z_scores(seen, law @ counts)).max() < Z
    with pytest.raises(ParameterError, match=r"lam = 1.5 is out of range"):
        simulate(Supermarket(n, d, lam), 8, seed=1, engine=engine)
