"""Intervals: how often they hold the truth, and when they are refused.

Coverage is counted over thousands of series with a known mean. The count is binomial, so with the
threshold Z = 5.5 standard errors a comparison raises a false alarm with probability 4e-8 (below
1e-7 where the count is a little skewed); the seeds are fixed, so a green test stays green.
"""

import math
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from scipy import stats

from supermarket import ParameterError
from supermarket.estimate.intervals import (
    Computed,
    Interval,
    batch_interval,
    count_interval,
    fit_interval,
    mean_interval,
    share_interval,
    time_share_interval,
)

Z = 5.5
MEAN = 3.0


def covered(interval, mean=MEAN):
    return (interval.low <= mean) & (mean <= interval.high)


def standard_error(share, copies):
    return math.sqrt(share * (1 - share) / copies)


def batch_means(phi, batches, length, copies, seed):
    """Return batch means of stationary AR(1) series x' = phi x + noise about MEAN, one a column."""
    return batches_and_ends(phi, batches, length, copies, seed)[0]


def batches_and_ends(phi, batches, length, copies, seed):
    """Return the batch means, and the series at the ends of the batches."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(copies) / math.sqrt(1 - phi**2)
    means, ends = np.empty((batches, copies)), np.empty((batches, copies))
    for batch in range(batches):
        total = np.zeros(copies)
        for _ in range(length):
            total += x
            x = phi * x + rng.standard_normal(copies)
        means[batch], ends[batch] = total / length, x
    return MEAN + means, MEAN + ends


# --- independent samples -------------------------------------------------------------------------


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("m", [2, 3, 20])
def test_mean_interval_is_students(m, confidence):
    samples = np.random.default_rng(m).normal(5, 2, size=m)
    interval = mean_interval(samples, confidence)
    expected = stats.ttest_1samp(samples, 0).confidence_interval(confidence)
    assert interval.low == pytest.approx(expected.low, rel=1e-12)
    assert interval.high == pytest.approx(expected.high, rel=1e-12)
    assert interval.estimate == pytest.approx(samples.mean(), rel=1e-15)
    assert interval.confidence == confidence
    assert type(interval.estimate) is type(interval.low) is type(interval.high) is float


@pytest.mark.parametrize(("m", "confidence"), [(2, 0.9), (5, 0.95), (30, 0.8)])
def test_mean_interval_covers_the_mean(m, confidence):
    """Power: at m = 5 a normal quantile covers 0.88, and dividing by m covers 0.92, not 0.95."""
    copies = 20000
    samples = np.random.default_rng(1).normal(MEAN, 2, size=(m, copies))
    share = covered(mean_interval(samples, confidence)).mean()
    assert abs(share - confidence) < Z * standard_error(confidence, copies)


def test_intervals_that_are_to_hold_together():
    """Four independent ones at the Bonferroni level: (1 - 0.05 / 4)**4 = 0.951 hold at once."""
    copies, among = 20000, 4
    samples = np.random.default_rng(2).normal(MEAN, 2, size=(6, copies, among))
    share = covered(mean_interval(samples, 0.95, among=among)).all(axis=1).mean()
    expected = (1 - 0.05 / among) ** among
    assert abs(share - expected) < Z * standard_error(expected, copies)
    alone = covered(mean_interval(samples, 0.95)).all(axis=1).mean()
    assert alone < 0.95**4 + Z * standard_error(0.95**4, copies)


def test_mean_interval_takes_each_quantity_by_itself():
    samples = np.random.default_rng(3).normal(size=(7, 3, 2))
    interval = mean_interval(samples, 0.9)
    assert interval.low.shape == interval.high.shape == interval.estimate.shape == (3, 2)
    alone = mean_interval(samples[:, 2, 1], 0.9)
    assert interval.low[2, 1] == pytest.approx(alone.low, rel=1e-14)
    assert interval.high[2, 1] == pytest.approx(alone.high, rel=1e-14)


def test_equal_samples_leave_no_width():
    assert mean_interval([2.5, 2.5, 2.5]) == Interval(2.5, 2.5, 2.5, 0.95, 3.0)


# --- batch means ---------------------------------------------------------------------------------

LONG = [
    # phi, batches, length: the run is at least 60 times the time in which the series forgets
    (0.5, 64, 100),
    (0.9, 64, 10),
    (0.9, 1024, 2),
    (0.98, 256, 25),
]


@pytest.mark.parametrize(("phi", "batches", "length"), LONG)
def test_batch_interval_covers_the_mean_of_a_long_series(phi, batches, length):
    """It covers 0.93 to 0.955, for choosing the batches by looking at them costs a little.

    So the bounds are 0.95, and 0.925, with Z standard errors beyond; some may be refused.
    """
    copies = 3000 if batches < 1000 else 1500
    interval = batch_interval(batch_means(phi, batches, length, copies, seed=5))
    kept = ~np.isnan(interval.low)
    assert kept.mean() > 0.85
    share = covered(interval)[kept].mean()
    assert 0.925 - Z * standard_error(0.925, copies) < share
    assert share < 0.95 + Z * standard_error(0.95, copies)


@pytest.mark.parametrize(("phi", "batches", "length"), LONG[1:])
def test_the_bounds_on_coverage_refuse_batches_that_were_not_joined(phi, batches, length):
    """What the test above is there to catch: correlated batches taken as independent."""
    copies = 1500
    share = covered(mean_interval(batch_means(phi, batches, length, copies, seed=5))).mean()
    assert share < 0.925 - 2 * Z * standard_error(0.925, copies)


def test_long_batches_have_nominal_coverage():
    copies = 6000
    interval = batch_interval(batch_means(0.3, 64, 60, copies, seed=6), 0.9)
    kept = ~np.isnan(interval.low)
    assert kept.mean() > 0.99
    assert abs(covered(interval)[kept].mean() - 0.9) < Z * standard_error(0.9, copies)


def test_a_run_shorter_than_the_memory_is_refused():
    """128 steps of a series that forgets in 1000."""
    interval = batch_interval(batch_means(0.999, 64, 2, 1000, seed=7))
    assert np.isnan(interval.low).mean() > 0.9


def test_a_drift_is_refused():
    for batches in (8, 15, 16, 64, 100):
        interval = batch_interval(np.linspace(1.0, 2.0, batches))
        assert interval.estimate == pytest.approx(1.5)
        assert math.isnan(interval.low)
        assert math.isnan(interval.high)


def test_neighbours_are_joined_until_they_are_independent():
    """Pairs of like batches are two halves of one: the interval is that of the pairs."""
    rng = np.random.default_rng(12)
    values, halves = rng.normal(MEAN, 1, size=32), rng.normal(0, 0.3, size=32)
    pairs = np.column_stack([values - halves, values + halves]).ravel()
    interval, expected = batch_interval(pairs), mean_interval(values)
    assert interval.low == pytest.approx(expected.low, rel=1e-13)
    assert interval.high == pytest.approx(expected.high, rel=1e-13)
    # One batch more is left over in joining, but counts in the estimate.
    batches = np.append(pairs, 9.0)
    interval = batch_interval(batches)
    assert interval.estimate == pytest.approx(batches.mean(), rel=1e-15)
    assert interval.high - interval.low == pytest.approx(expected.high - expected.low, rel=1e-12)
    assert interval.high + interval.low == pytest.approx(2 * batches.mean(), rel=1e-13)


@pytest.mark.parametrize(("phi", "length"), [(0.0, 20), (0.5, 50), (0.9, 100)])
def test_the_effective_sample_size_is_the_length_over_the_autocorrelation_time(phi, length):
    """For AR(1) that time is (1 + phi) / (1 - phi) steps.

    A copy's value is a ratio of two chi-squares with 63 degrees of freedom, or fewer for joined
    batches, so its median over 2000 copies has a standard error below 1 %; the joining biases it
    by a few per cent more. Correlated samples counted as independent ones give twice as many at
    least.
    """
    means, ends = batches_and_ends(phi, 64, length, 2000, seed=13)
    found = batch_interval(means, snapshots=ends).effective
    expected = 64 * length * (1 - phi) / (1 + phi)
    assert np.nanmedian(found) == pytest.approx(expected, rel=0.1)
    alone = batch_interval(means[:, 0], snapshots=ends[:, 0])
    assert alone.effective == pytest.approx(found[0], rel=1e-12)


def test_a_run_of_fewer_than_twenty_relaxation_times_is_refused():
    means = batch_means(0.3, 64, 60, 3, seed=6)
    for relaxations, refused in [(19.9, True), (20, False), (None, False)]:
        interval = batch_interval(means, relaxations=relaxations)
        assert np.isnan([interval.low, interval.high, interval.effective]).all() == refused
        np.testing.assert_allclose(interval.estimate, means.mean(axis=0), rtol=1e-14)


def test_independent_batches_are_left_as_they_are():
    for m in (8, 9, 15, 40):
        batches = np.random.default_rng(m).normal(MEAN, 1, size=m)
        # An alternating series has no positive correlation whatever is drawn.
        batches = np.where(np.arange(m) % 2, np.abs(batches), -np.abs(batches))
        assert batch_interval(batches, 0.9, among=3) == mean_interval(batches, 0.9, among=3)


def test_a_rare_event_is_refused():
    batches = np.random.default_rng(1).random(64)
    assert math.isfinite(batch_interval(batches).low)
    batches[10] = 0
    interval = batch_interval(batches)
    assert interval.estimate == pytest.approx(batches.mean())
    assert math.isnan(interval.low)
    assert math.isnan(interval.high)
    once = np.zeros(64)
    once[3] = 1e-6
    assert math.isnan(batch_interval(once).low)


@pytest.mark.parametrize("constant", [0.0, 1.0, 0.25, 0.1, 1 / 3])
def test_a_quantity_that_never_changed_is_refused(constant):
    """A run in which nothing happened says nothing of how much could have."""
    for m in range(8, 80):
        interval = batch_interval(np.full(m, constant))
        assert interval.estimate == constant
        assert np.isnan(interval.low)
        assert np.isnan(interval.high)


def test_each_quantity_is_treated_by_itself():
    columns = np.column_stack(
        [
            np.ones(64),
            np.zeros(64),
            batch_means(0.9, 64, 5, 1, seed=8)[:, 0],
            np.arange(64.0) == 3,
            np.random.default_rng(9).normal(size=64),
        ]
    )
    together = batch_interval(columns, 0.9, among=2)
    assert together.low.shape == together.high.shape == together.estimate.shape == (5,)
    for column, batches in enumerate(columns.T):
        alone = batch_interval(batches, 0.9, among=2)
        np.testing.assert_array_equal(
            [together[column].estimate, together[column].low, together[column].high],
            [alone.estimate, alone.low, alone.high],
        )
    np.testing.assert_array_equal(np.isnan(together.low), [True, True, False, True, False])


def test_more_confidence_is_wider():
    batches = np.random.default_rng(4).random(64)
    widths = [
        interval.high - interval.low
        for interval in (
            batch_interval(batches, 0.9),
            batch_interval(batches, 0.99),
            batch_interval(batches, 0.99, among=100),
        )
    ]
    assert widths == sorted(widths)
    assert len(set(widths)) == 3


# --- what both refuse ----------------------------------------------------------------------------


def test_an_interval_is_frozen_and_has_entries():
    interval = Interval(np.array([1.0, 2.0]), np.array([0.5, 1.5]), np.array([1.5, 2.5]), 0.9)
    one = interval[1]
    assert (one.estimate, one.low, one.high, one.confidence) == (2.0, 1.5, 2.5, 0.9)
    assert math.isnan(one.effective)
    each = Interval(interval.estimate, interval.low, interval.high, 0.9, np.array([7.0, 8.0]))
    assert each[1] == Interval(2.0, 1.5, 2.5, 0.9, 8.0)
    assert type(interval[1].low) is float
    with pytest.raises(FrozenInstanceError):
        interval.low = 0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: batch_interval(np.ones(8), snapshots=np.ones(7)), r"snapshots of shape \(7,\) do"),
        (lambda: batch_interval(np.ones(8), relaxations=math.nan), "relaxations = nan"),
        (lambda: mean_interval([1.0]), r"1 sample.* at least 2 are needed"),
        (lambda: mean_interval([]), r"0 sample.* at least 2 are needed"),
        (lambda: mean_interval(3.0), r"0 sample.* at least 2 are needed"),
        (lambda: mean_interval([1, 2], 1.0), "confidence = 1 is out of range: choose 0 < conf"),
        (lambda: mean_interval([1, 2], 0.0), "confidence = 0 is out of range"),
        (lambda: mean_interval([1, 2], 95), "confidence = 95 is out of range"),
        (lambda: mean_interval([1, 2], "0.95"), "confidence = '0.95' is text"),
        (lambda: mean_interval([1, 2], among=0), "among = 0 is out of range: choose 1 <= among"),
        (lambda: mean_interval([1, 2], among=2.5), "among = 2.5 is not a whole number"),
        (lambda: batch_interval(np.ones(7)), "7 batches give no interval: at least 8"),
        (lambda: batch_interval(np.ones((7, 9))), "7 batches give no interval: at least 8"),
        (lambda: batch_interval(1.0), "0 batches give no interval: at least 8"),
        (lambda: batch_interval(np.ones(9), 1.5), "confidence = 1.5 is out of range"),
        (lambda: batch_interval(np.ones(9), among=0), "among = 0 is out of range"),
        pytest.param(
            lambda: batch_interval([0, *[1] * 9], 1.5), "confidence = 1.5 is out of range",
        ),
        pytest.param(
            lambda: batch_interval(np.arange(64), among=0), "among = 0 is out of range",
        ),
    ],
)  # fmt: skip
def test_bad_input_gets_one_sentence(call, words):
    with pytest.raises(ParameterError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)


# --- rare events, shares of time, fits -----------------------------------------------------------


@pytest.mark.parametrize("among", [1, 3])
@pytest.mark.parametrize("share", [0.003, 0.3, 0.999])
def test_share_interval_never_covers_too_seldom(share, among):
    """Summed over the binomial law, so there is no noise and no false alarm.

    Power: a normal interval, or one with the error of one side at both, falls below the confidence
    at one of these shares.
    """
    trials, confidence = 200, 0.95
    seen = np.arange(trials + 1)
    law = stats.binom.pmf(seen, trials, share)
    found = [share_interval(x, trials, confidence, among=among) for x in seen]
    held = np.array([one.low <= share <= one.high for one in found])
    assert law @ held >= 1 - (1 - confidence) / among - 1e-12
    rough = np.sqrt(seen / trials * (1 - seen / trials) / trials)
    normal = np.abs(seen / trials - share) <= stats.norm.ppf(1 - 0.025 / among) * rough
    assert law @ normal < 1 - (1 - confidence) / among


def test_share_interval_is_scipys_and_one_sided_at_the_ends():
    expected = stats.binomtest(7, 50).proportion_ci(0.9, method="exact")
    found = share_interval(7, 50, 0.9)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), rel=1e-12)
    never, always = share_interval(0, 50, 0.9), share_interval(50, 50, 0.9)
    assert (never.low, always.high) == (0.0, 1.0)
    assert never.high == pytest.approx(1 - 0.1 ** (1 / 50), rel=1e-12)
    assert always.low == pytest.approx(0.1 ** (1 / 50), rel=1e-12)


@pytest.mark.parametrize("mean", [0.02, 1.0, 30.0])
def test_count_interval_never_covers_too_seldom(mean):
    events = np.arange(int(mean + 40 * math.sqrt(mean) + 40))
    found = [count_interval(int(x), 1.0, 0.95) for x in events]
    held = np.array([one.low <= mean <= one.high for one in found])
    covered = stats.poisson.pmf(events, mean) @ held
    assert covered >= 0.95 - 1e-9
    assert covered < 1.0 or mean < 0.1
    assert count_interval(0, 10.0, 0.95).high == pytest.approx(-math.log(0.05) / 10)


def two_states(leave, enter, steps, copies, seed):
    """Return the share of steps that a two-state chain, started in equilibrium, is inside."""
    rng = np.random.default_rng(seed)
    inside = rng.random(copies) < enter / (leave + enter)
    total = np.zeros(copies)
    for _ in range(steps):
        total += inside
        u = rng.random(copies)
        inside = np.where(inside, u >= leave, u < enter)
    return total / steps


@pytest.mark.parametrize(("leave", "enter"), [(0.001, 0.049), (0.02, 0.03), (0.0001, 0.0499)])
def test_time_share_interval_covers_also_where_the_state_was_never_left(leave, enter):
    """The relaxation time is 1 / (leave + enter) = 20 steps; a false alarm has chance 2e-8.

    Power: with the steps as independent looks it covers less than 0.8 in the second case.
    """
    steps, copies = 2000, 1500
    shares = two_states(leave, enter, steps, copies, seed=3)
    truth = enter / (leave + enter)
    found = [time_share_interval([x], steps / 20, 0.95) for x in shares]
    held = np.mean([one.low <= truth <= one.high for one in found])
    assert held > 0.95 - Z * standard_error(0.95, copies)
    if leave > 0.01:
        short = [share_interval(x * steps, steps, 0.95) for x in shares]
        assert np.mean([one.low <= truth <= one.high for one in short]) < 0.8
    if leave < 0.001:
        assert np.mean(shares == 1) > 0.1
        assert all(one.low < 1 == one.high for one, x in zip(found, shares, strict=True) if x == 1)


def test_time_share_interval_refuses_a_run_too_short_for_it():
    found = time_share_interval([0.5, 0.7], relaxations=5, confidence=0.99)
    assert found.estimate == pytest.approx(0.6)
    assert math.isnan(found.low)
    assert found.refused == "the run lasted 5 relaxation times and needs 20"
    assert found.longer == pytest.approx(4)
    with pytest.raises(ParameterError, match="must hold shares of time"):
        time_share_interval([1.2], 100)


def test_fit_interval_is_students_at_its_own_degrees_of_freedom():
    """4.6 is the quantile at 4 degrees of freedom only: at 2 and 3 it is 9.92 and 5.84."""
    for points in (4, 5, 6, 30):
        x = np.arange(points) + np.random.default_rng(points).normal(size=points)
        fit = stats.linregress(np.arange(points), x)
        found = fit_interval(fit.slope, fit.stderr, points - 2, 0.99)
        half = stats.t.ppf(0.995, points - 2) * fit.stderr
        assert found.high - found.estimate == pytest.approx(half, rel=1e-12)
    known = fit_interval(1.0, 0.5, math.inf, 0.95, among=2)
    assert known.high == pytest.approx(1 + 0.5 * stats.norm.ppf(1 - 0.05 / 4))
    with pytest.raises(ParameterError, match="freedom = 0 is out of range"):
        fit_interval(1.0, 0.1, 0)


# --- refusals ------------------------------------------------------------------------------------


def test_a_refused_interval_says_why_and_how_much_longer_a_run_would_do():
    never, same = batch_interval(np.zeros(64)), batch_interval(np.ones(64))
    assert never.refused == "never seen in the whole run"
    assert same.refused == "it never changed in the whole run"
    rare = batch_interval(np.r_[np.zeros(32), np.random.default_rng(1).random(32)])
    assert rare.refused == "not seen in 50% of the batches"
    assert rare.longer == pytest.approx(math.log(6400) / math.log(2))
    drift = batch_interval(np.linspace(1, 2, 64))
    assert drift.refused == "neighbouring batches are still correlated"
    assert drift.longer > 1
    both = batch_interval(np.column_stack([np.zeros(64), np.random.default_rng(2).random(64)]))
    assert (both[0].refused, both[1].refused) == ("never seen in the whole run", "")
    short = batch_interval(np.random.default_rng(2).random(64), relaxations=10)
    assert short.refused == "the run lasted 10 relaxation times and needs 20"
    assert short.longer == pytest.approx(2)


def test_the_longer_run_that_is_named_is_long_enough():
    """Refused for its correlation, a series is accepted in four of five cases at that length.

    Of 200, so that 0.65 is 5 standard errors below.
    """
    means = batch_means(0.99, 64, 10, 200, seed=8)  # 6.4 memories
    refused = [batch_interval(one) for one in means.T]
    longer = np.median([one.longer for one in refused if one.refused])
    assert 1 < longer < 30
    accepted = batch_interval(batch_means(0.99, 64, int(10 * longer), 200, seed=9))
    assert np.isfinite(accepted.low).mean() > 0.65


def test_confidence_one_is_refused():
    with pytest.raises(ParameterError, match="`Computed` for a number that was computed"):
        Interval(0.5, 0.5, 0.5, 1.0)


def test_computed_numbers_have_an_error_and_no_confidence():
    assert Computed(3) == Computed(3.0, 3.0, 3.0)
    assert Computed.within(1.0, 0.25) == Computed(1.0, 0.75, 1.25)
    assert not hasattr(Computed(3), "confidence")
