import math
from dataclasses import replace

import numpy as np
import pytest
from oracles import counts_of, exact

from supermarket import Schedule, Supermarket, fixed_point, simulate, small_chain
from supermarket.estimate.controls import controlled_interval, job_controls
from supermarket.estimate.intervals import batch_interval, mean_interval
from supermarket.runs.controls import level_control, pair_control
from supermarket.validation import ParameterError

pytestmark = pytest.mark.book  # statistics of long runs: once is enough


def noisy(rng, m=32):
    control, other, rest = rng.normal(size=(3, m))
    return 1.0 + 3.0 * control - 2.0 * other + 0.3 * rest, control, other


def test_intervals_cover_as_often_as_they_say():
    # 1000 intervals of confidence 0.9 miss some 100 times, more than 145 times in 1 of 10**5 runs.
    # Some are wider than need be, where neighbouring batches seem correlated by chance.
    rng = np.random.default_rng(1)
    missed = 0
    for _ in range(1000):
        values, control, other = noisy(rng)
        found = controlled_interval(values, [control, other], 0.9)
        missed += not found.low <= 1.0 <= found.high
    assert 40 <= missed <= 145


def test_what_the_controls_explain_is_taken_out():
    values, control, other = noisy(np.random.default_rng(2))
    plain, found = mean_interval(values), controlled_interval(values, [control, other])
    assert found.high - found.low < 0.3 * (plain.high - plain.low)
    assert found.effective > 10 * len(values)


@pytest.mark.parametrize("centre", [0.0, 0.4, 2.0])
def test_the_number_of_jobs_has_no_trend_in_equilibrium(centre):
    """On small chains known exactly; without constants two would be off by 0.1 and more."""
    for n, d in ((2, 1), (3, 2), (3, 3)):
        longest = 9 if d > 1 else 25
        states, _, law = exact(n, d, 0.4, True, longest)
        shares = np.array([counts_of(state, longest) for state in states]) / n
        found = job_controls(shares[:, 1], shares[:, 1:].sum(axis=1), n, 0.4, centre)
        assert np.allclose([law @ one for one in found], 0.0, atol=1e-5)


def test_a_control_whose_mean_is_not_what_was_said_moves_the_estimate():
    values, control, other = noisy(np.random.default_rng(3))
    wrong = controlled_interval(values, [control + 0.5, other], 0.999)
    assert not wrong.low <= 1.0 <= wrong.high


def test_without_controls_it_is_students_interval():
    values = np.tile([1.0, -1.0, 2.0, 0.5], 16) + 3  # neighbours are negatively correlated
    found, plain = controlled_interval(values, [], 0.9), mean_interval(values, 0.9)
    assert (found.low, found.high) == pytest.approx((plain.low, plain.high))


def test_correlated_batches_widen_the_interval_enough():
    # Of 1000 intervals of confidence 0.9 more than 145 miss in 1 of 10**5 runs if they are right;
    # without the widening some 300 do.
    rng = np.random.default_rng(7)
    missed = 0
    for _ in range(1000):
        noise = rng.normal(size=80)
        for i in range(1, 80):
            noise[i] += 0.4 * noise[i - 1]
        control = rng.normal(size=64)
        found = controlled_interval(1.0 + control + noise[16:], [control], 0.9)
        missed += not found.low <= 1.0 <= found.high
    assert 40 <= missed <= 145


def test_a_control_that_is_a_multiple_of_another_changes_nothing():
    values, control, other = noisy(np.random.default_rng(5))
    two = controlled_interval(values, [control, other])
    three = controlled_interval(values, [control, other, control - 2 * other])
    assert (three.low, three.high) == pytest.approx((two.low, two.high))


def test_batches_that_remember_each_other_have_no_interval():
    rng = np.random.default_rng(6)
    values = np.cumsum(rng.normal(size=64))
    found = controlled_interval(values, [rng.normal(size=64)])
    assert np.isnan(found.low)
    assert "correlated" in found.refused


def test_a_run_of_few_relaxation_times_or_with_empty_batches_has_no_interval():
    values = np.random.default_rng(8).normal(5, 1, size=32)
    assert "relaxation times" in controlled_interval(values, [], relaxations=5.0).refused
    assert np.isfinite(controlled_interval(values, [], relaxations=50.0).low)
    values[:3] = 0
    found = controlled_interval(values, [])
    assert np.isnan(found.low)
    assert "not seen" in found.refused


def test_too_few_batches_and_lists_of_different_lengths_are_refused():
    with pytest.raises(ParameterError, match="too few"):
        controlled_interval(np.arange(8.0), [np.arange(8.0)])
    with pytest.raises(ParameterError, match="equal length"):
        controlled_interval(np.arange(16.0), [np.arange(15.0)])


def measured(lam=0.8, n=4, d=2, horizon=20_000):
    times = np.arange(0.25, horizon, 0.5)
    return simulate(Supermarket(n, d, lam), Schedule(horizon, batches=256, times=times), seed=8)


def test_the_control_of_a_level_has_mean_0_and_another_rate_has_not():
    """5 standard errors: 1 in 10**6; lam less by a tenth is seen at each level."""
    run = measured(n=50)
    for level in (1, 2, 3, 4):
        off = level_control(run, level)
        assert abs(off.mean()) < 5 * off.std(ddof=1) / 16
        shares = run.path / 50
        wrong = off + 0.1 * 0.8 * shares[:, level - 1].mean() ** 2
        assert abs(wrong.mean()) > 5 * wrong.std(ddof=1) / 16


def test_a_share_of_time_with_the_controls_of_its_levels_against_the_exact_one():
    """The matrix gives the share of time with a queue of 3; 99.99 % intervals, four times as sharp.

    Without the d-th power in the control the interval misses it.
    """
    chain = small_chain(Supermarket(4, 2, 0.8), 20)
    exact = chain.equilibrium[chain.states[:, 0] >= 3].sum()
    run = measured()
    share = run.batches["maximum"][:, 3:].sum(axis=1)
    controls = [level_control(run, level) for level in (1, 2, 3)]
    found = controlled_interval(share, controls, 0.9999)
    assert found.low <= exact <= found.high
    assert found.effective > 4 * len(share)
    power = (run.path[:, 2] / 4) ** 2 - run.path[:, 2] / 4
    wrong = controls[2] + 0.8 * power.mean()
    missed = controlled_interval(share, [*controls[:2], wrong], 0.9999)
    assert not missed.low <= exact <= missed.high


def test_the_control_of_a_level_needs_times_and_replacement():
    with pytest.raises(ParameterError, match="times has none in 64 of 64 batches"):
        level_control(simulate(Supermarket(100, 2, 0.5), 20, seed=1), 2)
    distinct = simulate(
        Supermarket(100, 2, 0.5, replacement=False),
        Schedule(20, batches=8, times=range(20)),
        seed=1,
    )
    with pytest.raises(ParameterError, match="with replacement"):
        level_control(distinct, 2)
    run = simulate(Supermarket(100, 2, 0.5), Schedule(20, batches=8, times=range(20)), seed=1)
    assert not level_control(run, 30).any()  # no queue was nearly so long
    with pytest.raises(ParameterError, match="with replacement"):
        pair_control(distinct, 1, 2)


def test_the_control_of_a_pair_is_the_drift_of_the_product_by_the_matrix():
    """In every state: against one step of the exact chain, times the steps in a unit of time."""
    chain = small_chain(Supermarket(4, 2, 0.8), 6)
    counts = (chain.states[:, :, None] >= np.arange(9)).sum(axis=1)
    run = measured(horizon=200)
    schedule = Schedule(len(counts), batches=len(counts), times=np.arange(len(counts)) + 0.5)
    profiles = {"profile": np.zeros((len(counts), 2))}
    every = replace(run, path=counts, schedule=schedule, batches=profiles)
    inside = counts[:, 6] == 0  # no arrival can be lost
    for i, j in ((1, 1), (1, 2), (2, 2), (1, 3)):
        off = counts / 4 - fixed_point(Supermarket(math.inf, 2, 0.8), 8)
        moved = (chain.matrix @ (off[:, i] * off[:, j]) - off[:, i] * off[:, j])[inside]
        found = pair_control(every, i, j)[inside]
        assert found == pytest.approx(moved * chain.steps_per_unit, abs=1e-12)
        assert not np.allclose(found, moved * chain.steps_per_unit * 1.01, atol=1e-3)


def test_a_mean_with_the_controls_of_its_pairs_against_the_exact_one():
    """Of a small system, 99.99 % interval; the fixed point itself, which lacks 1 / n, is missed."""
    chain = small_chain(Supermarket(4, 2, 0.8), 20)
    exact = chain.equilibrium @ (chain.states >= 2).mean(axis=1)
    run = measured()
    controls = [level_control(run, level) for level in (1, 2, 3)]
    controls += [pair_control(run, *two) for two in ((1, 1), (1, 2), (2, 2))]
    found = controlled_interval(run.batches["profile"][:, 2], controls, 0.9999)
    assert found.low <= exact <= found.high
    assert not found.low <= fixed_point(Supermarket(math.inf, 2, 0.8), 2)[2] <= found.high
    assert found.effective > 50 * len(run.batches["profile"])


@pytest.mark.parametrize(
    ("span", "controlled", "alone"), [(25.0, 0.055, 0.095), (50.0, 0.04, 0.05), (100.0, 0.03, 0.05)]
)
def test_how_often_intervals_miss_the_mean_of_a_short_series(span, controlled, alone):
    """Of 1500 series that forget exponentially, as often as the docstrings say.

    The bounds lie four standard errors or more above that. Power: batches of 0.8 relaxation times
    that count as independent miss in more than a tenth.
    """
    copies, m, steps = 1500, int(span / 0.8), 16
    rng = np.random.default_rng(3)
    keep = math.exp(-span / m / steps)
    now, batches = rng.normal(size=copies), np.zeros((copies, m))
    for batch in batches.T:
        for _ in range(steps):
            now = keep * now + math.sqrt(1 - keep**2) * rng.normal(size=copies)
            batch += now / steps
    useless = rng.normal(size=m)

    def missed(interval):
        given = [one for one in map(interval, batches) if not one.refused]
        return 1 - np.mean([one.low <= 0 <= one.high for one in given])

    assert missed(lambda x: controlled_interval(x, [useless], 0.99, relaxations=span)) < controlled
    assert missed(lambda x: batch_interval(x, 0.99, relaxations=span)) < alone
    assert missed(lambda x: mean_interval(x, 0.99)) > 0.1


@pytest.mark.parametrize("relaxations", [None, 100.0])
def test_a_rare_event_is_refused_with_its_reason_however_long_the_run(relaxations):
    values, control, _ = noisy(np.random.default_rng(3), 64)
    values = np.abs(values)
    values[7] = 0.0
    found = controlled_interval(values, [control], relaxations=relaxations)
    assert math.isnan(found.low)
    assert found.refused == "not seen in 2% of the batches"
    assert found.longer > 1
    short = controlled_interval(values, [control], relaxations=10.0)
    assert short.refused == "the run lasted 10 relaxation times and needs 20"
