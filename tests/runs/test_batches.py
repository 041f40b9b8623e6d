"""The batched engine: its cut of the unit interval, its open events, its law.

The bands are a matter of speed, so the tests also run it with bands of one or two queues, in which
every path through the code is common: counts leave their bands all the time, and the order of the
certain events is drawn again and again. Z = 5.5 is a false alarm of 4e-8 a comparison.
"""

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from oracles import JIT, exact_profile

from supermarket import Schedule, Supermarket, policies
from supermarket.kernels.compiled import kernel
from supermarket.kernels.event_loop import Kept, Tally, rule_of
from supermarket.kernels.sampling import WITH, all_among
from supermarket.policies.jsq import fixed_point_counts
from supermarket.runs.counts import bursts as batches
from supermarket.runs.counts import engines as occupancy
from supermarket.runs.counts.bursts import Bands, Kinds, Width
from supermarket.runs.counts.clock import measure, with_room

# By name, so that they are part of what kernels here are kept by.
open_event, in_room, scan = batches._open_event, batches._advance, policies.named("jsq").loop
Z = 5.5
SPAN = 1.0 if JIT else 0.02
HUGE = 4 * 10**18
RARE = np.zeros(5, dtype=bool)  # where it does not matter which rises are open throughout
CASES = [
    (5, 2, 0.5, True),
    (30, 3, 0.9, False),
    (10**4, 2, 0.9, True),
    (10**6, 1000, 0.999, True),
    (10**6, 1000, 0.999, False),
    (10**9, 1, 0.7, True),
    (10**10, 1000, 1 - 1e-4, True),
    (10**12, 2, 0.9, False),
    (HUGE, 2, 0.9, True),
    (HUGE, 10**6, 1 - 1e-10, True),
    (HUGE, 10**6, 1 - 1e-10, False),
]


class Narrow(occupancy.Scan):
    """The engine with the bands of a test."""

    tally = np.float64
    events_per_call = 10**6

    def __init__(self, *arguments, width):
        super().__init__(*arguments)
        self.width = width

    def advance(self, events, moved, at_top):
        rule = self.rule(self.model.replacement)
        return batches.advance(
            self.rng, self.counts, rule, events, Tally(moved, at_top), self.width
        )


def simulate(model, schedule, bands, seed):
    rng = np.random.default_rng(seed)
    start, named = occupancy.start_counts(model)
    chain = Narrow(start, model, rng, width=Width(*bands))
    told = {"start": named, "seed": (seed, ()), "engine": "bursts"}
    return measure(chain, model, schedule, rng, **told)


def cut(n, d, lam, replacement, width=batches.USUAL):
    """Return the counts near the fixed point, their bands, and the cut of the unit interval."""
    s = with_room(fixed_point_counts(n, d, lam, replacement))
    top, rule = int(np.flatnonzero(s)[-1]), rule_of(s, d, lam, replacement)
    bands, parts, _ = batches.room_for(len(s))
    batches._bands(s, top, rule, bands, width)
    return s, top, rule, bands, parts, *batches._split(bands, bands.rare, top, rule, parts)


@pytest.mark.parametrize(("n", "d", "lam", "replacement"), CASES)
@pytest.mark.parametrize("bands", [(1.5, 6.0, 8), (1.5, 0.0, 1)])
def test_certain_and_open_parts_make_up_the_unit_interval(n, d, lam, replacement, bands):
    _, top, rule, (low, high, _), parts, arrivals, spans = cut(
        n, d, lam, replacement, Width(*bands)
    )
    rises, falls, weight, arrival = parts.rises, parts.falls, parts.weight, rule.arrival
    assert rises.min() >= 0
    assert falls.min() >= 0
    assert rises[1:].sum() + weight[:arrivals].sum() == pytest.approx(arrival, rel=1e-13)
    assert falls.sum() + weight[arrivals:spans].sum() == pytest.approx(1 - arrival, rel=1e-13)
    assert np.all(low[1 : top + 1] <= high[1 : top + 1])
    if n >= 10**6:
        assert weight[:spans].sum() < 0.1


@kernel
def draw_open(rng, s, rule, bands, parts, arrivals, spans, draws):
    """Return how often each event came: of no effect at [0, 0], else [level, 0 or 1 for up]."""
    seen = np.zeros((len(s), 2), dtype=np.int64)
    for _ in range(draws):
        i, change = open_event(rng, s, rule, bands, parts, arrivals, spans)
        seen[(i, (change + 1) // 2) if i > 0 else (0, 0)] += 1
    return seen


@pytest.mark.parametrize(("n", "d", "lam", "replacement"), CASES)
def test_open_events_have_what_the_certain_ones_leave_of_the_law(n, d, lam, replacement):
    """Anywhere in the bands: chance of an event = its certain part + its share of the open part.

    With 40000 draws an error of one part in a hundred of the open events is seen, even where a
    position in the unit interval has no double of its own.
    """
    draws = 40000 if JIT else 2000
    s, top, rule, bands, parts, arrivals, spans = cut(n, d, lam, replacement)
    (low, high, _), arrival = bands, rule.arrival
    rises, falls = parts.rises, parts.falls
    rng = np.random.default_rng(7)
    open_ = parts.weight[:spans].sum()
    for corner in range(3):
        for i in range(1, top + 1):
            s[i] = (low[i], high[i], rng.integers(low[i], high[i] + 1))[corner]
        s[1 : top + 1] = np.minimum.accumulate(s[1 : top + 1])
        found = draw_open(rng, s, rule, bands, parts, arrivals, spans, draws)
        seen = {(i, 2 * up - 1 if i else 0): found[i, up] for i, up in np.argwhere(found).tolist()}
        expected = {(0, 0): (1 - arrival) * float(int(n) - int(s[1])) / n - falls[0]}
        above = 1.0
        for i in range(1, top + 2):
            # beta(s[i-1]) - beta(s[i]), without cancellation: relative to the wider one
            inside = all_among(s[i], s[i - 1], d, replacement)
            exact = (
                -math.expm1(d * math.log1p(-(int(s[i - 1]) - int(s[i])) / int(s[i - 1])))
                if replacement and s[i] > 0
                else 1 - inside
            )
            expected[(i, 1)] = arrival * above * exact - rises[i]
            above *= inside
            if i <= top:
                share = float(int(s[i]) - int(s[i + 1])) / n
                expected[(i, -1)] = (1 - arrival) * share - falls[i]
        # What cancels where an event is nearly all certain is far below the open part.
        for event in expected.keys() | seen.keys():
            p = max(expected.get(event, 0.0), 0.0) / open_
            error = math.sqrt(max(p * (1 - p), 1e-9) / draws) + 1e-15 / open_ + 1e-9
            assert abs(seen.get(event, 0) / draws - p) < Z * error + 2.0 / draws, event


@pytest.mark.parametrize("replacement", [True, False])
@pytest.mark.parametrize(("n", "d"), [(2, 2), (3, 2), (4, 3), (5, 2)])
@pytest.mark.parametrize("bands", [(1.5, 6.0, 8), (3.0, 0.0, 1), (3.0, 1.0, 0)])
def test_stationary_law_of_small_systems(n, d, replacement, bands):
    """Power: a bias of 1 % in any level's share is some 5 standard errors here."""
    lam, longest = 0.5, {2: 24, 3: 14, 4: 11, 5: 9}[n]
    profile, tops = exact_profile(n, d, lam, replacement, longest)
    horizon = 3e5 * SPAN
    model = Supermarket(n, d, lam, replacement=replacement)
    run = simulate(model, Schedule(horizon, warmup=50), bands, seed=n)
    for law, seen in ((profile, run.batches["profile"]), (tops, run.batches["maximum"])):
        common = np.flatnonzero(law * horizon > 1000)
        mean = seen[:, common].mean(axis=0)
        error = seen[:, common].std(axis=0, ddof=1) / math.sqrt(len(seen))
        assert np.all(np.abs(mean - law[common]) <= Z * error + 1e-12)


@kernel
def many_at_a_time(rng, start, rule, stretches, seen, width, room):
    """Fill `seen` with counts, their changes and the time at each maximum, after each stretch."""
    for run in range(len(seen)):
        s = start.copy()
        for k, events in enumerate(stretches):
            moved, at_top = np.zeros(len(s)), np.zeros(len(s))
            in_room(rng, s, rule, events, Tally(moved, at_top), width, room)
            seen[run, k, 0], seen[run, k, 1], seen[run, k, 2] = s, moved, at_top


@kernel
def one_at_a_time(rng, start, rule, stretches, seen):
    for run in range(len(seen)):
        s = start.copy()
        for k, events in enumerate(stretches):
            moved, at_top = s * 0, s * 0
            kept = Kept(np.empty(len(s)), np.empty(0, dtype=np.int64))
            scan(rng, s, rule, kept, events, Tally(moved, at_top))
            seen[run, k, 0], seen[run, k, 1], seen[run, k, 2] = s, moved, at_top


@cache
def sample(n, d, lam, replacement, bands=None):
    """Return a row for each replica: counts, their means and the law of the maximum, after times.

    Started below the fixed point; without bands, one event at a time.
    """
    replicas, times = (3000, [0.2, 0.4, 0.9]) if JIT else (30, [0.05, 0.05, 0.1])
    start = fixed_point_counts(n, d, lam, replacement)
    start = np.concatenate([start[:1], start[1:] * 9 // 10, np.zeros(20, dtype=np.int64)])
    stretches = np.array([round(n * (1 + lam) * time) for time in times])
    seen = np.zeros((replicas, len(times), 3, len(start)))
    # The two are independent: with the same seed they could hide what both have wrong.
    rng = np.random.default_rng([n, d, 0 if bands is None else 1])
    rule = rule_of(start, d, lam, replacement)
    if bands is None:
        one_at_a_time(rng, start, rule, stretches, seen)
    else:
        room = batches.room_for(len(start))
        many_at_a_time(rng, start, rule, stretches, seen, Width(*bands), room)
    s, moved, at_top = np.moveaxis(seen, 2, 0)
    assert np.all(at_top.sum(axis=2) == stretches)
    averaged = s - moved / stretches[:, None]
    tops = at_top[:, :, :10] / stretches[:, None]
    parts = s[:, :, 1:7], averaged[:, :, 1:7], tops
    return np.concatenate([part.reshape(replicas, -1) for part in parts], axis=1)


@pytest.mark.parametrize(
    ("n", "d", "lam", "replacement"),
    [
        (300, 2, 0.9, True),
        (1000, 2, 0.7, False),
        (3000, 50, 0.98, True),
        (3000, 54, 0.95, False),
        (1000, 1000, 0.95, False),
    ],
)
@pytest.mark.parametrize("bands", [(1.5, 6.0, 8), (8.0, 0.5, 1)])
def test_same_paths_in_law_as_one_event_at_a_time(n, d, lam, replacement, bands):
    """Means, variances and covariances of the counts after some events, from replicas.

    Power: a mean off by a seventh of its standard deviation is beyond the threshold.
    """
    a, b = sample(n, d, lam, replacement, bands), sample(n, d, lam, replacement)
    replicas = len(a)
    spread = np.sqrt((a.var(axis=0, ddof=1) + b.var(axis=0, ddof=1)) / 2)
    moving = spread > 0.3
    error = spread * math.sqrt(2 / replicas)
    difference = np.abs(a.mean(axis=0) - b.mean(axis=0))
    limit = Z * error + (0 if JIT else 5)
    assert np.all(difference <= np.where(moving, limit, limit + 0.1))
    if JIT:
        # A count that is 0 most of the time has tails too heavy to compare second moments.
        usual = moving & (np.median(a, axis=0) > 2 * spread)
        assert usual.sum() >= 3
        centred = [x[:, usual] - x[:, usual].mean(axis=0) for x in (a, b)]
        one, other = (x.T @ x / replicas for x in centred)
        scale = np.sqrt(np.outer(np.diag(other), np.diag(other)))
        # A sample correlation, kurtosis allowed for, is off by less than 2 / sqrt(replicas).
        assert np.abs((one - other) / scale).max() < Z * 2 * math.sqrt(2 / replicas)


@pytest.mark.parametrize("d", [2, 3, 40])
@pytest.mark.parametrize("n", [1000, 10**9, 2**53 + 1, 4 * 10**18])
def test_the_chance_of_a_narrow_span_keeps_its_digits_at_any_n(n, d):
    """Where both ends have nearly the same chance, their difference would have no digits left."""
    for above in (n, n - 1, n - n // 1000, n // 2):
        for width in {1, 7, math.isqrt(n) // 4}:
            below = above - width
            exact = Fraction(above, n) ** d - Fraction(below, n) ** d
            found = batches._gap(below, above, n, d, WITH)
            assert found == pytest.approx(float(exact), rel=1e-12, abs=0)


def test_an_average_over_time_knows_that_events_are_spread_over_their_batch():
    """Departures alone, of queues of one job: the mean of their number is a geometric sum.

    Power: with all events of a batch at its end, it would be off by more than 20 standard errors.
    """
    n, lam, events, runs = 10**6, 1e-9, 10**5, 30 if JIT else 8
    seen, rng = [], np.random.default_rng(6)
    for _ in range(runs):
        s, moved, at_top = np.array([n, n, 0, 0, 0]), np.zeros(5), np.zeros(5)
        tally = Tally(moved, at_top)
        assert batches.advance(rng, s, rule_of(s, 2, lam), events, tally) == events
        seen.append(s[1] - moved[1] / events)
    kept = 1 - 1 / (1 + lam) / n
    mean = n * (1 - kept**events) / (1 - kept) / events
    error = np.std(seen, ddof=1) / math.sqrt(runs)
    assert abs(np.mean(seen) - mean) < (Z if JIT else 2 * Z) * error  # Student's t at 8 runs
    assert error < 25


@pytest.mark.parametrize(
    ("rises", "falls", "whatever_the_order"),
    [(2, 1, True), (0, 0, True), (3, 1, False), (3, 3, False), (0, 2, False), (2, 2, False)],
)
def test_the_order_does_not_matter_only_if_rises_alone_and_falls_alone_stay_inside(
    rises, falls, whatever_the_order
):
    s, low, high = np.array([10, 5, 0]), np.array([10, 4, 0]), np.array([10, 7, 0])
    kinds, bands = Kinds(np.array([0, rises, 0]), np.array([0, falls, 0])), Bands(low, high, RARE)
    assert batches._any_order(s, 1, kinds, bands) == whatever_the_order


def test_order_of_certain_events_stops_at_the_first_exit():
    """Three rises and two falls of one count with room for one step: stops where it leaves."""
    ends = set()
    for seed in range(200):
        s = np.array([10, 5, 0, 0])
        moved = np.zeros(4)
        up, down = np.array([4, 3, 0, 0]), np.array([0, 2, 0, 0])
        low, high = np.array([10, 4, 0, 0, 0]), np.array([10, 6, 0, 0, 0])
        done, inside = batches._in_order(
            np.random.default_rng(seed),
            s,
            1,
            100,
            9,
            Kinds(up, down),
            Bands(low, high, RARE),
            moved,
        )
        assert inside == (4 <= s[1] <= 6)
        assert 3 <= s[1] <= 7
        assert 5 + (3 - up[1]) - (2 - down[1]) == s[1]
        assert done - 100 == (4 - up[0]) + (3 - up[1]) + (2 - down[1])
        assert not inside or done == 109
        ends.add((done, s[1]))
    assert len(ends) > 5


def test_every_order_of_certain_events_is_equally_likely():
    """One rise, one fall and one event without effect: six orders, seen through when they come."""
    draws = 6000 if JIT else 1200
    seen = {}
    for seed in range(draws):
        moved = np.zeros(4)
        batches._in_order(
            np.random.default_rng(seed), np.array([10, 5, 2, 0]), 2, 0, 3,
            Kinds(np.array([1, 1, 0, 0]), np.array([0, 0, 1, 0])),
            Bands(np.array([10, 1, 1, 0, 0]), np.array([10, 9, 9, 0, 0]), RARE), moved,
        )  # fmt: skip
        seen[tuple(moved)] = seen.get(tuple(moved), 0) + 1
    assert len(seen) == 6
    for count in seen.values():
        assert abs(count / draws - 1 / 6) < Z * math.sqrt(5 / 36 / draws)


def test_the_bands_of_a_batch_hold_the_counts():
    counts = [10**6, 9 * 10**5, 7 * 10**5, 10**5, 3]
    low, high, events = batches.bands(counts, 2, 0.9)
    assert low[0] == high[0] == 10**6
    assert all(low <= counts)
    assert all(counts <= high)
    assert 100 < events < 10**5
