"""Leaps against the exact chain, the linear noise, the mean-field ODE, and themselves.

A draw beyond Z = 5.5 standard errors is a false alarm of 4e-8.
"""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from oracles import JIT, asked

from supermarket import (
    ParameterError,
    Schedule,
    Supermarket,
    k_lambda_d,
    relaxation_time,
    simulate,
    trajectory,
)
from supermarket.kernels.compiled import kernel
from supermarket.limits.saturation.drifts import drift, modes, stationary_covariance
from supermarket.limits.saturation.theorem import fixed_point_shorter, smallest_eps
from supermarket.runs import leap as leaping
from supermarket.runs.leap import leap

centred = leaping._centred  # by name, so that it is part of what a kernel here is kept by
Z = 5.5
LITERAL = (10**17, 8_000_000, 1 - 6e-11)
CASES = [
    LITERAL,
    (10**8, 300, 1 - 1 / 3000),
    (10**11, 40, 1 - 0.75 / 1600),
    (10**5, 20, 0.97),
    (10**9, 2, 0.9),
    (4 * 10**18, 1000, 1 - 1e-7),
    (10**6, 10, 0.5),
]


def fixed_point_counts(n, d, lam):
    return np.append(leaping.fixed_point_counts(n, d, lam, True), np.zeros(10, dtype=np.int64))


def relaxation(q, lag):
    """Return the relaxation time in samples from the autocorrelation at one lag."""
    q = q - q.mean()
    return -lag / math.log((q[:-lag] @ q[lag:]) / (q @ q))


# --- the parts -----------------------------------------------------------------------------------


@kernel
def mean_and_square(rng, mean, draws):
    """Return the mean of the noise of a leap, and of its square."""
    total, squares = 0.0, 0.0
    for _ in range(draws):
        noise = centred(rng, mean)
        total += noise
        squares += noise * noise
    return total / draws, squares / draws


@pytest.mark.parametrize("mean", [3.0, 999.0, 1001.0, 5000.0, 1e12])
def test_the_noise_of_a_leap_has_the_variance_of_a_poisson_variable(mean):
    """On both sides of the mean from which it is normal.

    Power: half a per cent more variance, or less, is 11 standard errors (with a mean of 3: 10).
    """
    draws = 10**7 if JIT else 10**4
    first, second = mean_and_square(np.random.default_rng(int(mean)), mean, draws)
    assert abs(first) < Z * math.sqrt(mean / draws)
    assert abs(second / mean - 1) < Z * math.sqrt((2 + 1 / mean) / draws)


@pytest.mark.parametrize(("n", "d", "lam"), CASES)
def test_rates_are_the_exact_drift(n, d, lam):
    """Off the fixed point by some standard deviations, as along a run."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        s = fixed_point_counts(n, d, lam)
        top = int(np.flatnonzero(s > 1000)[-1])
        room = np.minimum(s[1 : top + 1], n - s[1 : top + 1])
        s[1 : top + 1] += np.rint(rng.normal(size=top) * 3 * np.sqrt(room)).astype(np.int64)
        s[1 : top + 1] = np.minimum.accumulate(s[1 : top + 1])
        given = leaping.Room(*np.zeros((9, len(s))), s)
        rise, fall, free = given.rise, given.fall, given.free
        for i in range(1, top + 1):
            given.logs[i] = d * leaping._log_share(s[i], n)
        leaping._rates(s, top, leaping.Model(n, d, lam), given)
        expected = -drift(Supermarket(math.inf, d, lam), s)[1 : top + 1]
        size = (rise + fall)[1 : top + 1]
        assert np.all(np.abs(free[1 : top + 1] - expected) < 1e-13 * size)
        assert np.all(np.abs((fall - rise)[1 : top + 1] - expected) < 1e-13 * size)


@pytest.mark.parametrize("n", [1000, 10**9, 4 * 10**18])
def test_ratios_and_drops_keep_their_digits(n):
    with localcontext() as context:
        context.prec = 60
        for s in (1, 7, n // 3, n // 2 + 1, n - 1):
            share = (Decimal(s) / n).ln()
            assert leaping._log_share(s, n) == pytest.approx(float(share), rel=1e-14, abs=0)
            for before in {max(s - 1, 1), s + 1, max(s // 2, 1)}:
                ratio = (Decimal(s) / before).ln()
                assert leaping._log_ratio(s, before, n) == pytest.approx(
                    float(ratio), rel=1e-14, abs=0
                )
        for value in (1e-9, 0.3, 0.999):
            for log_factor in (1e-12, -1e-12, 0.02, -0.5, -3.0):
                drop = Decimal(value) * (1 - Decimal(log_factor).exp())
                found = leaping._drop(value, log_factor)
                assert found == pytest.approx(float(drop), rel=1e-14, abs=0)
    assert leaping._log_ratio(0, 5, n) < -1e200
    assert leaping._drop(0.0, -3.0) == 0.0
    assert leaping._drop(0.5, 400.0) == -0.5  # a share is never above 1


@pytest.mark.parametrize("top", [1, 2, 5])
def test_solver(top):
    rng = np.random.default_rng(top)
    steep = np.append(0.0, rng.uniform(0.1, 1e4, 8))
    for h in (1e-3, 1.0, 1e5):
        for stay in (1.0, 0.3):
            x = rng.normal(size=9)
            a = steep[1 : top + 1].copy()
            below = a[:-1].copy()
            a[-1] *= stay
            jacobian = -np.diag(1 + a) + np.diag(np.ones(top - 1), 1) + np.diag(below, -1)
            expected = np.linalg.solve(np.eye(top) - h * jacobian, x[1 : top + 1])
            leaping._solve(x, steep, top, h, stay, np.zeros(9))
            assert x[1 : top + 1] == pytest.approx(expected, rel=1e-8)


def test_default_step_comes_from_the_relaxation_time():
    for n, d, lam in CASES:
        s = fixed_point_counts(n, d, lam)
        found = leaping._relaxation_time(leaping._steepness(s, d, lam))
        assert found == pytest.approx(relaxation_time(Supermarket(math.inf, d, lam)), rel=1e-3)


@pytest.mark.parametrize("h", [0.3, 3.0])
def test_few_long_queues_lose_jobs_at_rate_one(h):
    """Level 3 and above are few: Poisson losses of what is there, a Poisson number of new ones."""
    n, d, lam, rate, draws = 10**9, 3, 0.9, 4.0, 20000 if JIT else 1500
    before = np.array([n, n // 2, n // 4, 12, 5, 2, 0, 0, 0, 0])
    lengths = np.repeat([3, 4, 5], [7, 3, 2])
    rng = np.random.default_rng(4)
    stay = -math.expm1(-h) / h
    seen = np.zeros((draws, 3))
    for i in range(draws):
        s = before.copy()
        leaping._few(rng, s, before, 2, h, stay, rate, leaping.Model(n, d, lam))
        assert np.all(np.diff(s) <= 0)
        seen[i] = s[3:6]
    expected, variance = np.zeros(3), np.zeros(3)
    for j, level in enumerate((3, 4, 5)):
        for length in lengths[lengths >= level]:
            chance = sum(math.exp(-h) * h**m / math.factorial(m) for m in range(length - level + 1))
            expected[j] += chance
            variance[j] += chance * (1 - chance)
    expected[0] += rate * h * stay
    variance[0] += rate * h * stay
    assert np.all(np.abs(seen.mean(axis=0) - expected) < Z * np.sqrt(variance / draws))
    assert seen.var(axis=0) == pytest.approx(variance, rel=Z * math.sqrt(3 / draws), abs=0.02)


# --- against what is known -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "d", "lam"), [LITERAL, (10**10, 1000, 1 - 6e-5), (10**11, 40, 1 - 0.75 / 1600)]
)
def test_stationary_law_of_the_linear_noise(n, d, lam):
    """Means, variances, correlations of all levels and the slow relaxation time.

    3000 relaxation times give the variances to 2.6 %, the relaxation time to 3.7 %.
    """
    k, tau = (
        k_lambda_d(Supermarket(math.inf, d, lam)),
        relaxation_time(Supermarket(math.inf, d, lam)),
    )
    relaxations = 3000 if JIT else 60
    times = np.arange(0, relaxations, 0.2) * tau
    run = leap(
        Supermarket(n, d, lam), Schedule(relaxations * tau, warmup=10 * tau, times=times), seed=1
    )
    w = (n - run.path[:, 1 : k + 1]) / n
    predicted = stationary_covariance(Supermarket(math.inf, d, lam))[1 : k + 1, 1 : k + 1] / n
    center = fixed_point_shorter(Supermarket(math.inf, d, lam), k)[1:]
    error = np.sqrt(np.diag(predicted) * 2 / relaxations)
    assert np.all(np.abs((1 - run.profile[1 : k + 1]) - center) < Z * error + 1e-9 * center)
    spread = np.cov(w.T)
    scale = np.sqrt(np.diag(predicted))
    allowed = Z * math.sqrt(2 / relaxations)
    assert spread / np.outer(scale, scale) == pytest.approx(
        predicted / np.outer(scale, scale), abs=allowed
    )
    assert np.all(np.abs(run.extra["bias"][1 : k + 1]) < 0.1 * error)
    if JIT:
        slow = modes(Supermarket(math.inf, d, lam), k).values(run.path)[:, -1]
        found = relaxation(slow, 5) * 0.2
        assert found == pytest.approx(1, rel=Z * math.sqrt(4 / relaxations))


def test_the_theorem_in_its_own_regime():
    n, d, lam = LITERAL
    tau = relaxation_time(Supermarket(math.inf, d, lam))
    relaxations = 1000 if JIT else 30
    times = np.arange(0, relaxations) * tau
    run = leap(Supermarket(n, d, lam), Schedule(relaxations * tau, warmup=tau, times=times), seed=2)
    assert run.max_queue == {2: 1.0}
    assert smallest_eps(Supermarket(math.inf, d, lam), run.path).max() < 0.1 / 3
    assert np.all(run.path[:, 0] == n)


@pytest.mark.parametrize(("n", "d", "lam"), [(10**4, 20, 0.97), (2 * 10**4, 8, 0.99)])
def test_against_the_exact_chain(n, d, lam):
    """Every level's mean and spread, and the maximum, where the longest queues come and go.

    k = 2 and 3. An error of a few hundredths in a mean, of a factor of 2 in a variance, is seen.
    """
    tau = relaxation_time(Supermarket(math.inf, d, lam))
    relaxations = (200 if d == 20 else 80) if JIT else 2 / tau
    times = np.arange(0, relaxations, 0.1) * tau
    schedule = Schedule(relaxations * tau, warmup=5 * tau if JIT else 0.0, times=times)
    shop = Supermarket(n, d, lam)
    runs = [simulate(shop, schedule, seed=3), leap(shop, schedule, seed=4)]
    # The profile, the mean maximum; batches of 3 relaxation times are nearly independent.
    batches = [
        np.column_stack([run.batches["profile"][:, 1:5], np.argmax(run.ends == 0, axis=1)])
        for run in runs
    ]
    error = 1.3 * np.hypot(*(x.std(axis=0, ddof=1) / 8 for x in batches))
    off = np.abs(batches[0].mean(axis=0) - batches[1].mean(axis=0))
    assert np.all(off <= (Z * error + 2 / n if JIT else 0.05))
    spreads = [np.var(run.path[:, 1:4] / n, axis=0) for run in runs]
    if JIT:
        assert spreads[1] == pytest.approx(spreads[0], rel=Z * math.sqrt(4 / relaxations))


@pytest.mark.parametrize(
    ("n", "d", "lam", "end"), [(10**12, 300, 1 - 1 / 3000, 300.0), (10**15, 2, 0.9, 60.0)]
)
def test_from_an_empty_start_along_the_ode(n, d, lam, end):
    times = np.concatenate([[0.0], np.geomspace(1e-3, end, 30)])
    run = leap(
        Supermarket(n, d, lam), Schedule(end, warmup=0.0, times=times), seed=5, start="empty"
    )
    v = trajectory(Supermarket(math.inf, d, lam), times)
    levels = min(v.shape[1], run.path.shape[1])
    assert np.all(run.path[0, 1:] == 0)
    assert np.abs(run.path[:, :levels] / n - v[:, :levels]).max() < 3e-3


def test_one_long_queue_empties_at_rate_one():
    """40 jobs at time 0, served at rate 1: 40 - t left, give or take sqrt(t)."""
    n, d, lam = 10**8, 300, 1 - 1 / 3000
    shares = [*(fixed_point_counts(n, d, lam)[:3] / n), *([1e-8] * 38)]
    times = [0.0, 10.0, 20.0]
    repeats = 40
    left = np.zeros(3)
    for seed in range(repeats):
        run = leap(
            Supermarket(n, d, lam), Schedule(20.0, warmup=0.0, times=times), seed=seed, start=shares
        )
        left += (run.path > 0).sum(axis=1) - 1
    error = np.sqrt(np.array([1e-9, 10, 20]) / repeats)
    assert np.all(np.abs(left / repeats - [40, 30, 20]) < Z * error)


# --- the step ------------------------------------------------------------------------------------


def test_half_the_step_changes_nothing():
    n, d, lam = 10**8, 300, 1 - 1 / 3000
    tau = relaxation_time(Supermarket(math.inf, d, lam))
    relaxations = 2000 if JIT else 40
    times = np.arange(0, relaxations, 0.5) * tau
    runs = [
        leap(
            Supermarket(n, d, lam),
            Schedule(relaxations * tau, warmup=10 * tau, times=times),
            seed=6,
            step=step,
        )
        for step in (tau / 25, tau / 50)
    ]
    assert runs[1].events > 1.8 * runs[0].events
    center = fixed_point_shorter(Supermarket(math.inf, d, lam), 2)[1:]
    spread = np.diag(stationary_covariance(Supermarket(math.inf, d, lam)))[1:3] / n
    for run in runs:
        off = (1 - run.profile[1:3]) - center
        assert np.all(np.abs(off) < Z * np.sqrt(2 * spread / relaxations) + 1e-5 * center)
    found = [run.path[:, 1:3].var(axis=0) / n**2 for run in runs]
    assert found[1] == pytest.approx(found[0], rel=Z * math.sqrt(4 / relaxations))


def test_bias_balances_the_curvature():
    """What the leaps hold at 0 on average is the drift less half the curvature of each level."""
    rng = np.random.default_rng(9)
    steep = np.array([5.0, 3.0, 1.0, 1e-3])
    q = np.append(np.append(0.0, rng.normal(size=4)), np.zeros(6))
    shift = leaping._bias(q, steep)
    # Linearised, per level: lam (1 - u_i**d) moves by steep (-shift), and f by
    # (joins above) - (joins here) + (leaves here) - (leaves above).
    bent = -steep * shift[1:5] - q[1:5] / 2
    assert -np.append(0.0, bent) == pytest.approx(shift[1:6], abs=1e-12)
    jacobian = np.diag(-1 - np.append(steep, 0)) + np.diag(np.ones(4), 1) + np.diag(steep, -1)
    defect = -np.diff(q[:6]) / 2
    assert jacobian @ -shift[1:6] == pytest.approx(defect, abs=1e-12)


def test_bias_accounts_for_a_long_step():
    """Long and short leaps differ by the difference of their biases, sign and all.

    The mean of u_1 is lam exactly. What the wandering of u_1 explains is taken out of u_2, which
    leaves an error of 4e-5; the biases are -0.00096 and -0.00046.
    """
    n, d, lam = 10**4, 20, 0.97
    tau = relaxation_time(Supermarket(math.inf, d, lam))
    relaxations = 4000 if JIT else 30
    means, errors, biases = [], [], []
    for step in (0.5, 0.02 if JIT else 0.1):
        run = leap(
            Supermarket(n, d, lam),
            Schedule(relaxations * tau, warmup=10 * tau),
            seed=7,
            step=step * tau,
        )
        off, u = run.batches["profile"][:, 1] - lam, run.batches["profile"][:, 2]
        left = u - np.cov(off, u)[0, 1] / np.var(off, ddof=1) * off
        means.append(left.mean())
        errors.append(left.std(ddof=2) / 8)
        biases.append(run.extra["bias"][2])
        assert run.extra["bias"][1] == 0
        assert run.extra["bias"][2] < 0
    if JIT:
        allowed = Z * math.hypot(*errors)
        assert abs(means[0] - means[1] - (biases[0] - biases[1])) < allowed
        assert abs(means[0] - means[1]) > allowed


def test_short_steps_follow_the_fast_level():
    """Some 15 events of level 1 in a step: Poisson noise, and rounding that must not add up.

    The mean of w_1 is 1 - lam exactly; 5 % would be seen, and 10 % in its relaxation time.
    """
    n, d, lam = 10**4, 20, 0.97
    fast = (
        1 / modes(Supermarket(math.inf, d, lam * lam ** (d - 1)), 2).rates[0]
    )  # d pi(1)**(d-1) at the fixed point
    step = fast / 20
    steps = 200_000 if JIT else 4000
    times = step * np.arange(steps)
    run = leap(
        Supermarket(n, d, lam),
        Schedule(float(times[-1]), warmup=fast, times=times),
        seed=10,
        step=step,
    )
    idle = 1 - run.batches["profile"][:, 1]
    error = idle.std(ddof=1) / 8
    assert run.events >= steps - 1
    if JIT:
        assert abs(idle.mean() - (1 - lam)) < Z * error < 0.05 * (1 - lam)
        # The fast function: w_1 less its value in balance with w_2.
        w = (n - run.path[:, 1:3]) / n
        slope = np.cov(w.T)[0, 1] / np.var(w[:, 1])
        assert relaxation(w[:, 0] - slope * w[:, 1], 10) == pytest.approx(20, rel=0.1)


# --- as a tool -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "d", "lam"), CASES)
def test_counts_stay_in_order_and_whole(n, d, lam):
    tau = relaxation_time(Supermarket(math.inf, d, lam))
    relaxations = 200 if JIT else 4
    times = np.linspace(0, relaxations * tau, 100)
    run = leap(Supermarket(n, d, lam), Schedule(relaxations * tau, times=times), seed=8)
    assert run.path.dtype == np.int64
    assert np.all(run.path[:, 0] == n)
    assert np.all(np.diff(run.path) <= 0)
    assert run.path.min() == 0
    assert run.profile[0] == pytest.approx(1, abs=1e-15)
    assert np.all(np.diff(run.profile) <= 0)
    assert sum(run.max_queue.values()) == pytest.approx(1, abs=1e-12)
    assert np.all(run.ends[-1] == run.final)
    assert (run.model, run.engine, run.seed) == (Supermarket(n, d, lam), "leaps", (8, ()))
    assert run.extra["step"] == pytest.approx(tau / 50, rel=1e-3)


def test_intervals_like_those_of_the_chain():
    run = leap(Supermarket(10**6, 10, 0.9), Schedule(600.0, batches=32), seed=3)
    interval = run.interval(
        "profile", 1 - 1e-7, relaxation_time=relaxation_time(Supermarket(math.inf, 10, 0.9))
    )
    assert run.batches["profile"].shape[0] == 32
    assert interval.low[1] < 0.9 < interval.high[1]


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"d": 1}, "choose 2 <= d"),
        ({"lam": 1 - 1e-7}, "idle servers are too few"),
        ({"horizon": 1e15}, "shorten the horizon"),
        ({"step": 0.0}, "step"),
        ({"start": "emtpy"}, "did you mean empty"),
        ({"replacement": False}, "cannot be simulated in leaps"),
        ({"policy": "memory"}, "cannot be simulated in leaps"),
        ({"n": 5 * 10**18}, "out of range"),
    ],
)
def test_refuses(wrong, sentence):
    given = {"n": 10**8, "d": 300, "lam": 0.999, "horizon": 10.0, "seed": 1} | wrong
    with pytest.raises(ParameterError, match=sentence):
        asked(leap, **given)


def test_stops_where_the_counts_would_get_out_of_order():
    """The number of jobs wanders as far as to leave no server idle."""
    with pytest.raises(ParameterError, match="out of order"):
        leap(Supermarket(10**10, 10**5, 1 - 7e-8), 1e7, seed=5)


def test_sums_of_counts_near_n_keep_what_they_lack():
    """The mean of idle servers, 6e-11 of all, over many leaps is that of the states on the way.

    Those differ by 2450 / sqrt(1000) of 6 million, 1.3e-5. Sums of the counts themselves lose more
    than 1e-4 in the rounding of numbers near 1e17 times so many leaps.
    """
    n, d, lam = 10**17, 8_000_000, 1 - 6e-11
    time = relaxation_time(Supermarket(math.inf, d, lam))
    times = np.arange(0, 100, 0.1) * time
    run = leap(
        Supermarket(n, d, lam), Schedule(100 * time, warmup=0.0, batches=2, times=times), seed=3
    )
    idle = n * (1 - run.profile[1])
    assert abs(idle / (n - run.path[:, 1]).mean() - 1) < 1e-4
