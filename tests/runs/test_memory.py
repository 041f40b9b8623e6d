"""The chain with memory against its definition, exact laws, its labelled twin and the limit.

Statistical tests are z-tests on batch means or replicas. Each states its false-alarm rate: the
threshold Z = 5.5 gives 4e-8 a comparison for a normal estimate, and with Student's t on 64 batches
below 1e-6. The seeds are fixed.
"""

import itertools
import math
from collections import Counter
from functools import cache

import numpy as np
import pytest
from oracles import JIT, Uniforms, make_steps, plain

from supermarket import Schedule, Supermarket, policies, simulate
from supermarket.kernels.compiled import kernel
from supermarket.kernels.event_loop import Kept, Tally, rule_of
from supermarket.limits.mean_field.memory import log_memory_fixed_point, memory_trajectory
from supermarket.policies import jsq
from supermarket.policies.memory import fixed_point_counts
from supermarket.runs.counts import engines as occupancy
from supermarket.runs.counts import memory
from supermarket.runs.counts.clock import with_room
from supermarket.runs.counts.memory import MemoryTable

Z = 5.5
outcome = memory._outcome  # by name, so that it is part of what kernels here are kept by
SPAN = 1.0 if JIT else 0.01


def outcomes(lengths, remembered, d, lam, last=False):
    """Yield the chance of each event, the lengths and the remembered queue after it.

    Queues have labels, and every ordered list of d fresh queues is tried. Of several shortest
    queues the first that was looked at is joined or remembered, or, if asked, the last.
    """
    n = len(lengths)
    for fresh in itertools.product(range(n), repeat=d):
        seen = [remembered, *fresh]
        seen = seen[::-1] if last else seen
        after = list(lengths)
        after[min(seen, key=lambda q: lengths[q])] += 1
        yield lam / (1 + lam) / n**d, after, min(seen, key=lambda q: after[q])
    for q in range(n):
        after = list(lengths)
        after[q] = max(after[q] - 1, 0)
        yield 1 / (1 + lam) / n, after, remembered


def next_states(state, d, lam, last=False):
    """Return the law after one event from (remembered length, the other lengths sorted)."""
    law = Counter()
    for chance, after, kept in outcomes([state[0], *state[1]], 0, d, lam, last):
        others = sorted(after[:kept] + after[kept + 1 :])
        law[after[kept], tuple(others)] += chance
    return law


def all_states(n, longest):
    others = list(itertools.combinations_with_replacement(range(longest + 1), n - 1))
    return list(itertools.product(range(longest + 1), others))


def counts_of(state, room):
    """Return the counts of a state, with `room` levels."""
    return np.array([sum(x >= i for x in (state[0], *state[1])) for i in range(room)])


@cache
def exact(n, d, lam, longest):
    """Return states and their stationary law; an arrival that would exceed `longest` is lost."""
    states = all_states(n, longest)
    index = {state: row for row, state in enumerate(states)}
    matrix = np.zeros((len(states), len(states)))
    for state, row in index.items():
        for after, chance in next_states(state, d, lam).items():
            matrix[row, index.get(after, row)] += chance
    system = matrix.T - np.eye(len(states))
    system[0] = 1.0
    return states, np.linalg.solve(system, np.eye(len(states))[0])


SMALL = [(1, 1), (2, 1), (2, 2), (2, 3), (3, 1), (3, 2), (3, 3), (4, 2)]


@pytest.mark.parametrize(("n", "d"), SMALL)
def test_ties_do_not_matter(n, d):
    for state in all_states(n, 3):
        first, last = (next_states(state, d, 0.8, last) for last in (False, True))
        assert first.keys() == last.keys()
        assert all(first[key] == pytest.approx(last[key], rel=1e-12) for key in first)


def chain_of(counts, d, lam, tabled, rng):
    """Return the engine with or without a table, from these counts."""
    kind = MemoryTable if tabled else occupancy.Scan
    return kind(counts, Supermarket(int(counts[0]), d, lam, policy="memory"), rng)


def room_of(chain):
    """Return what `memory._look_up` works with, as the engine makes it."""
    guide = occupancy.guide_to(len(chain.counts), np.uint64)
    return guide, Kept(np.empty(memory._MOST_LEVELS + 8), chain.memory), chain.counts.copy()


def z_scores(batches, expected):
    mean = batches.mean(axis=0)
    error = batches.std(axis=0, ddof=1) / math.sqrt(len(batches))
    return (mean - expected) / np.maximum(error, 1e-12)


@pytest.mark.parametrize(("n", "d"), [(2, 1), (2, 2), (3, 1), (3, 2), (3, 3)])
@pytest.mark.parametrize("engine", ["scan", "table"])
def test_stationary_law_of_small_systems(engine, n, d):
    """Power: a bias of 1 % in any level's share is some 8 standard errors of the scan here.

    The table, slow at such n, has fewer events: its path is also compared with that of the scan.
    """
    lam, longest = 0.5, {2: 16, 3: 9}[n]
    states, law = exact(n, d, lam, longest)
    profile = law @ np.array([counts_of(state, longest + 2) for state in states]) / n
    horizon = 1e6 * SPAN if engine == "scan" else 5e4 if JIT else 1e3
    tops = np.bincount([max(state[0], *state[1]) for state in states], law)
    run = simulate(Supermarket(n, d, lam, policy="memory"), horizon, seed=n + 10 * d, engine=engine)
    for batches, expected, enough in (
        (run.batches["profile"], profile, 2000 / n),
        (run.batches["maximum"], tops, 2000),
    ):
        seen = np.flatnonzero(expected * horizon > enough)
        # Too short a run gives no error to rely on: there its path alone is compared.
        assert horizon <= 1e3 or np.abs(z_scores(batches[:, seen], expected[seen])).max() < Z


@pytest.mark.parametrize("tabled", [False, True])
def test_stationary_law_of_the_remembered_length(tabled):
    """Sampled every 20 events over 60 stretches. At |z| < 5.5, below 1e-6 false alarms each."""
    n, d, lam, stretches = 3, 2, 0.5, 60
    states, law = exact(n, d, lam, 9)
    expected = np.bincount([state[0] for state in states], law)[:4]
    rng = np.random.default_rng(2)
    chain = chain_of(with_room(np.array([n])), d, lam, tabled, rng)
    seen = np.zeros((stretches, 4))
    each = 800 if JIT else 20
    for stretch in seen:
        for _ in range(each):
            chain.advance(20, chain.counts * 0, chain.counts * 0)
            stretch[min(chain.memory[0], 3)] += 1 / each
    expected[3] = 1 - expected[:3].sum()
    assert np.abs(z_scores(seen, expected)).max() < Z


def test_without_memory_it_is_the_plain_chain():
    """A remembered queue longer than all is never used: then the same uniforms, the same path."""
    remembering, forgetting = (plain(policies.named(name).loop) for name in ("memory", "jsq"))
    for n, d in ((3, 1), (50, 2), (1000, 3)):
        uniforms = np.random.default_rng(n).random(2000)
        s = with_room(jsq.fixed_point_counts(n, d, 0.6, True))
        twin = s.copy()
        for uniform in uniforms:
            forgotten = np.array([len(s) - 2])
            one = (d, 0.6, True, 1, s * 0, s * 0)
            make_steps(remembering, Uniforms([uniform]), s, *one, forgotten)
            make_steps(forgetting, Uniforms([uniform]), twin, *one)
            np.testing.assert_array_equal(s, twin)


@kernel
def labelled(rng, x, remembered, d, lam, events):
    """The definition, queue by queue."""
    n = len(x)
    for _ in range(events):
        if rng.random() < lam / (1 + lam):
            seen = np.empty(d + 1, dtype=np.int64)
            seen[0] = remembered
            for j in range(1, d + 1):
                seen[j] = int(rng.random() * n)
            x[seen[np.argmin(x[seen])]] += 1
            remembered = seen[np.argmin(x[seen])]
        else:
            q = int(rng.random() * n)
            x[q] = max(x[q] - 1, 0)
    return remembered


@pytest.mark.parametrize(("n", "d"), [(100, 1), (1000, 2), (1000, 4)])
@pytest.mark.parametrize("tabled", [False, True])
def test_the_labelled_twin_agrees_at_a_thousand_queues(tabled, n, d):
    """Counts and remembered length after some events from empty: means of 400 replicas each."""
    lam, replicas, stretches = 0.9, 400 if JIT else 4, (n, n, 4 * n)
    samples = np.zeros((2, replicas, len(stretches), 7))
    for replica in range(replicas):
        rng = np.random.default_rng(replica)
        chain = chain_of(with_room(np.array([n])), d, lam, tabled, rng)
        x, kept = np.zeros(n, dtype=np.int64), 0
        for stretch, events in enumerate(stretches):
            assert chain.advance(events, chain.counts * 0, chain.counts * 0) == events
            kept = labelled(rng, x, kept, d, lam, events)
            samples[0, replica, stretch] = [*chain.counts[1:7], chain.memory[0]]
            samples[1, replica, stretch] = [*[(x >= i).sum() for i in range(1, 7)], x[kept]]
    a, b = samples
    error = np.sqrt((a.var(axis=0, ddof=1) + b.var(axis=0, ddof=1)) / replicas)
    difference = np.abs(a.mean(axis=0) - b.mean(axis=0))
    # A handful of replicas gives no error to rely on: there only gross mistakes are seen.
    assert np.all(difference <= Z * error + (1e-2 if JIT else n / 20 + 1))


@pytest.mark.parametrize(
    ("n", "d", "lam"), [(30, 2, 0.9), (500, 3, 0.7), (10**4, 1, 0.95), (10**6, 2, 0.8)]
)
def test_a_certain_bin_means_the_same_event_all_over_its_bands(n, d, lam):
    """Wherever the counts stand in their bands, both ends of a certain bin give its entry."""
    rng = np.random.default_rng(1)
    s = with_room(fixed_point_counts(n, d, lam, True))
    top, guide = int(np.flatnonzero(s)[-1]), occupancy.guide_to(len(s), np.uint64)
    rule = rule_of(s, d, lam)
    bins = 2 ** occupancy.choose_bands(s, top, rule, guide)
    base = memory._likely(s, top, rule, np.empty(top + 8))
    memory._make_table(bins, base, top, rule, guide)
    low, high, table = guide.low, guide.high, guide.table[:bins]
    for lane, m in enumerate(range(base, min(base + 6, top + 1))):
        row = table >> np.uint64(10 * lane)
        certain = np.flatnonzero(row & np.uint64(1) == 0)
        assert len(certain) > {30: 0, 500: 0.1}.get(n, 0.8) * bins
        sparse = 1 if JIT else max(1, bins // 100)
        for corner in range(8):
            state = s.copy()
            for i in range(1, top + 1):
                anywhere = rng.integers(low[i], high[i] + 1)
                state[i] = (low[i], high[i], anywhere)[corner if corner < 2 else rng.integers(3)]
            state[1 : top + 1] = np.minimum.accumulate(state[1 : top + 1])
            if state[m] == state[m + 1]:  # no queue of this length could be remembered
                continue
            given = m, state, np.zeros(len(s)), top, rule
            assert bins_agree(row, certain[::sparse], base, *given)


@kernel
def bins_agree(row, which, base, m, s, below, top, rule):
    for wanted in which:
        entry = np.int64(row[wanted])
        for shift in (0.0, 1 - 1e-9):
            uniform = (wanted + shift) / len(row)
            event, after = outcome(uniform, m, s, below, top, rule)
            if event != entry >> 4 & 63 or after != base + (entry >> 1 & 7):
                return False
    return True


@pytest.mark.parametrize(
    ("n", "d", "lam"), [(1, 1, 0.5), (5, 2, 0.9), (300, 2, 0.9), (10**6, 1, 0.97), (10**6, 9, 0.99)]
)
def test_the_table_makes_the_path_of_a_scan_of_all_levels(n, d, lam, monkeypatch):
    """With 2**14 bins and the same uniforms, those that the bins leave open drawn as 1/3."""
    steps = 10_000 if JIT else 500
    bits = np.random.default_rng(5).integers(0, 2**16, size=steps, dtype=np.uint16)
    bands = occupancy.choose_bands

    def fine_bands(*arguments):
        bands(*arguments)
        return 14

    monkeypatch.setattr(memory, "choose_bands", fine_bands)
    s = with_room(fixed_point_counts(n, d, lam, True))
    chain = chain_of(s, d, lam, True, Uniforms([1 / 3] * steps))
    m = chain.memory
    twin, m_twin, sums, sums_twin = s.copy(), m.copy(), [s * 0, s * 0], [s * 0, s * 0]
    given = chain.rng, s, rule_of(s, d, lam), Tally(*sums)
    done = plain(memory._look_up)(bits, *given, *room_of(chain))
    uniforms = Uniforms(((bits >> 2) + 1 / 3) / 2**14)
    make_steps(
        plain(policies.named("memory").loop), uniforms, twin, d, lam, True, done, *sums_twin, m_twin
    )
    np.testing.assert_array_equal(s, twin)
    assert m == m_twin
    np.testing.assert_array_equal(sums, sums_twin)


@pytest.mark.parametrize("tabled", [False, True])
def test_time_averages_are_those_of_the_path(tabled):
    """Runs of 1, 2, ... events with the same stream are one path; its plain sums are the truth."""
    start, steps = with_room(np.array([40, 30, 12, 2, 0])), 200
    total, tops, s = start * 0, start * 0, start
    for done in range(1, steps + 1):
        total += s
        tops[np.flatnonzero(s)[-1]] += 1
        chain = chain_of(start.copy(), 2, 0.9, tabled, np.random.default_rng(4))
        moved, at_top = start * 0, start * 0
        if tabled:  # the bits of a longer run are drawn before what the bins leave open
            bits = np.random.default_rng(3).integers(0, 2**16, size=steps, dtype=np.uint16)[:done]
            given = chain.rng, chain.counts, rule_of(start, 2, 0.9), Tally(moved, at_top)
            assert memory._look_up(bits, *given, *room_of(chain)) == done
        else:
            assert chain.advance(done, moved, at_top) == done
        s = chain.counts
        np.testing.assert_array_equal(s * done - moved, total)
        np.testing.assert_array_equal(at_top, tops)
    assert len(np.flatnonzero(tops)) > 1


@pytest.mark.parametrize(("d", "lam"), [(1, 0.7), (2, 0.8), (3, 0.7)])
def test_many_queues_follow_the_averaged_limit(d, lam):
    """Shares in equilibrium, within intervals of confidence 1 - 1e-7; and the way from empty."""
    n = 10**5 if JIT else 10**4
    run = simulate(
        Supermarket(n, d, lam, policy="memory"), 600.0 if JIT else 0.5, seed=d, engine="table"
    )
    shares = np.exp(log_memory_fixed_point(Supermarket(math.inf, d, lam, policy="memory"), 6))
    seen = np.flatnonzero(shares * n > 100)[1:]
    interval = run.interval("profile", 1 - 1e-7)
    if JIT:
        assert np.all(interval.low[seen] <= shares[seen])
        assert np.all(shares[seen] <= interval.high[seen])
    assert np.abs(run.profile[seen] - shares[seen]).max() < (2e-3 if JIT else 0.05)
    n = 10**6 if JIT else 10**4
    times = [0.5, 1.0, 2.0]
    run = simulate(
        Supermarket(n, d, lam, policy="memory"),
        Schedule(2.0, warmup=0, batches=2, times=times),
        seed=1,
        start="empty",
    )
    path = memory_trajectory(Supermarket(math.inf, d, lam, policy="memory"), times)[:, :5]
    # A share is a mean over n queues: its error is below 1 / sqrt(n), and the bound 6 times that.
    assert np.abs(run.path[:, :5] / n - path).max() < 6 / math.sqrt(n)


def test_a_billion_queues():
    run = simulate(Supermarket(10**9, 1, 0.8, policy="memory"), 1e-4, seed=1)
    assert run.engine == "table"
    shares = np.exp(log_memory_fixed_point(Supermarket(math.inf, 1, 0.8, policy="memory"), 6))
    np.testing.assert_allclose(run.profile[:7], shares, rtol=0, atol=1e-5)


@pytest.mark.parametrize("engine", ["scan", "table"])
def test_many_levels_find_room(engine):
    tall = np.append(np.ones(90), 0)
    run = simulate(
        Supermarket(3, 1, 0.9, policy="memory"),
        Schedule(2, warmup=0),
        seed=1,
        start=tall,
        engine=engine,
    )
    assert max(run.max_queue) >= 89
    one = simulate(
        Supermarket(1, 1, 0.97, policy="memory"), 4000 * SPAN + 50, seed=1, engine=engine
    )
    assert one.profile[-1] == 0
