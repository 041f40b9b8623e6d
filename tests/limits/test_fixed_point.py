"""The mean-field limit against exact arithmetic, and its ODE against naive solvers."""

import math
import sys
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy.linalg import expm

from supermarket import (
    ParameterError,
    Supermarket,
    fixed_point,
    k_lambda_d,
    log_fixed_point,
    max_queue_hypothesis,
    mean_queue,
    mean_sojourn,
    relaxation_time,
    trajectory,
)

EPS = 2.0**-52
LIMIT = Supermarket(math.inf, 2, 0.9)
LAMS = [1e-5, 0.1, 0.5, 0.7, 0.9, 0.99, 1 - 1e-9, 1 - 2.0**-53]


def exponent(d, k):
    """Return 1 + d + ... + d**(k-1) as an exact integer."""
    return sum(d**j for j in range(k))


def exact_log(lam, d, k):
    """Return log pi(k) to 60 digits, for the very number that `lam` is in binary."""
    with localcontext() as context:
        context.prec = 60
        return Decimal(lam).ln() * exponent(d, k)


# --- the fixed point -----------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2, 3, 7, 100, 10**9, 2**53])
@pytest.mark.parametrize("lam", LAMS)
def test_fixed_point_against_exact_exponents(lam, d):
    levels = 30
    linear, log = (
        fixed_point(Supermarket(math.inf, d, lam), levels),
        log_fixed_point(Supermarket(math.inf, d, lam), min(levels, 18)),
    )
    assert linear.shape == (levels + 1,)
    assert linear.dtype == log.dtype == np.float64
    assert linear[0] == 1
    assert log[0] == 0
    for k in range(levels + 1):
        depth = exact_log(lam, d, k)
        if k < log.size:
            assert log[k] == pytest.approx(float(depth), rel=8 * EPS)
        with localcontext() as context:
            context.prec = 60
            expected = float(depth.exp()) if depth > -800 else 0.0
        rel = 8 * EPS * (1 + abs(float(depth)))
        assert linear[k] == pytest.approx(expected, rel=rel, abs=5e-324)


def test_linear_form_underflows_to_zero_where_the_log_form_goes_on():
    """d = 2, lam = 0.9: pi(12) = 0.9**4095 is a double, pi(13) = 0.9**8191 is below them all."""
    linear, log = (
        fixed_point(LIMIT, 1023),
        log_fixed_point(LIMIT, 1023),
    )
    assert linear[12] == pytest.approx(0.9**4095, rel=1e-12, abs=0)
    assert not linear[13:].any()
    for k in (13, 60, 500, 1023):
        assert log[k] == pytest.approx(float(exact_log(0.9, 2, k)), rel=8 * EPS)
    assert not fixed_point(LIMIT, 5000)[13:].any()  # exponents beyond the doubles too


def test_one_choice_is_geometric():
    np.testing.assert_allclose(
        fixed_point(Supermarket(math.inf, 1, 0.8), 50), 0.8 ** np.arange(51), rtol=1e-14
    )
    assert log_fixed_point(Supermarket(math.inf, 1, 0.5), 10**6)[-1] == pytest.approx(
        -(10**6) * math.log(2), rel=8 * EPS
    )


@pytest.mark.parametrize(("lam", "d"), [(0.9, 2), (0.5, 3), (0.999, 50), (0.7, 2**53)])
def test_log_form_says_how_deep_it_goes(lam, d):
    with pytest.raises(ParameterError, match="beyond the largest double") as caught:
        log_fixed_point(Supermarket(math.inf, d, lam), 5000)
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert "log pi(5000)" in sentence
    deepest = int(sentence.rstrip(".").rsplit(" ", 1)[1])
    assert np.all(np.isfinite(log_fixed_point(Supermarket(math.inf, d, lam), deepest)))
    with pytest.raises(ParameterError):
        log_fixed_point(Supermarket(math.inf, d, lam), deepest + 1)
    # The next exponent, or its product with log(lam), is too large: not one level is given away.
    assert (
        exponent(d, deepest + 1) > sys.float_info.max
        or float(exact_log(lam, d, deepest + 1)) == -math.inf
    )


def test_overflow_of_the_logarithm_alone_is_refused_too():
    """The exponent 2**1023 - 1 is a double, its product with log(1e-10) is not."""
    assert not fixed_point(Supermarket(math.inf, 2, 1e-10), 1023)[-1]
    with pytest.raises(ParameterError, match="choose levels <= 1019"):
        log_fixed_point(Supermarket(math.inf, 2, 1e-10), 1023)


# --- the maximum queue length --------------------------------------------------------------------


def least_power(d, spare):
    """Return the least k >= 1 with d**k * spare >= 1, from integers alone."""
    return next(k for k in range(1, 2000) if d**k * spare.numerator >= spare.denominator)


@pytest.mark.parametrize("d", [2, 3, 4, 5, 7, 10, 16, 100, 1000, 10**6, 2**53])
def test_k_lambda_d_over_a_grid_of_decimals(d):
    for places in range(1, 16):
        for spare in (1, 2, 3, 4, 5, 7, 9):
            lam = float("0." + str(10**places - spare).zfill(places))
            assert k_lambda_d(Supermarket(math.inf, d, lam)) == least_power(
                d, Fraction(spare, 10**places)
            )


@pytest.mark.parametrize(
    ("lam", "d", "k"),
    [(0.9, 10, 1), (0.99, 10, 2), (0.999, 10, 3), (0.9999, 100, 2), (0.99999, 10, 5),
     (0.9, 9, 2), (0.9, 11, 1), (0.99, 100, 1), (0.75, 2, 2), (0.75, 4, 1), (0.96, 5, 2),
     (0.1, 2, 1), (1e-300, 2, 1), (0.5, 2, 1)],
)  # fmt: skip
def test_k_lambda_d_at_exact_powers(lam, d, k):
    assert k_lambda_d(Supermarket(math.inf, d, lam)) == k
    assert k_lambda_d(Supermarket(math.inf, np.int64(d), np.float64(lam))) == k


def test_k_lambda_d_satisfies_its_definition():
    """d**(k-1) < 1/(1-lam) <= d**k, away from equality, for computed rates as well."""
    rng = np.random.default_rng(2)
    for _ in range(500):
        lam = float(1 - 10 ** -rng.uniform(0.05, 12))
        d = int(10 ** rng.uniform(0.31, 4))
        k, spare = k_lambda_d(Supermarket(math.inf, d, lam)), 1 - Fraction(lam)
        assert k == 1 or d ** (k - 1) * spare < 1
        assert d**k * spare >= 1


@pytest.mark.parametrize("k", range(1, 17))
def test_k_lambda_d_at_powers_of_two(k):
    assert k_lambda_d(Supermarket(math.inf, 2, 1 - 2.0**-k)) == k


def test_k_lambda_d_at_finer_powers_of_two():
    assert [k_lambda_d(Supermarket(math.inf, 2, 1 - 2.0**-k)) for k in range(17, 54)] == list(
        range(17, 54)
    )


@pytest.mark.parametrize(
    ("n", "d", "lam", "k"),
    [(10**4, 2, 0.9, 6), (10**5, 2, 0.9, 6), (10**4, 3, 0.95, 5), (10**4, 10, 0.99, 3),
     (10**5, 10, 0.99, 4), (10**4, 50, 0.999, 3)],
)  # fmt: skip
def test_max_queue_hypothesis_against_the_table(n, d, lam, k):
    assert max_queue_hypothesis(Supermarket(n, d, lam)) == k


def largest_level(n, lam, d):
    """Return the largest k with n pi(k) >= 1 by whole numbers, and whether equality comes up."""
    lam, k, tie = Fraction(repr(lam)), 0, False
    while n * lam.numerator ** (e := exponent(d, k + 1)) >= lam.denominator**e:
        tie |= n * lam.numerator**e == lam.denominator**e
        k += 1
    return k, tie


@pytest.mark.parametrize("d", [1, 2, 3, 10, 1000])
@pytest.mark.parametrize("lam", [0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.95])
def test_max_queue_hypothesis_against_whole_numbers(lam, d):
    rng, compared = np.random.default_rng(7), 0
    for n in [1, 2, 3, 999, 1001, 10**6 + 1, *(10 ** rng.uniform(0, 12, size=25)).astype(int)]:
        k, tie = largest_level(int(n), lam, d)
        if not tie:
            assert max_queue_hypothesis(Supermarket(int(n), d, lam)) == k
            compared += 1
    assert compared > 20


@pytest.mark.parametrize("lam", [0.5, 0.25, 0.2, 0.1, 0.05, 0.04, 0.01])
def test_max_queue_hypothesis_where_n_pi_is_exactly_one(lam):
    """n = lam**-e for the exponents e of the fixed point, as far as n is a size one could mean."""
    for d in (1, 2, 3):
        for k in range(1, 60):
            n = (1 / Fraction(repr(lam))) ** exponent(d, k)
            if n > 10**18:
                break
            assert largest_level(int(n), lam, d) == (k, True)
            assert max_queue_hypothesis(Supermarket(int(n), d, lam)) == k
            fewer = int(n) - 1 - int(n) // 10**12
            assert max_queue_hypothesis(Supermarket(fewer, d, lam)) == k - 1


def test_max_queue_hypothesis_goes_far():
    assert max_queue_hypothesis(Supermarket(1, 2, 0.5)) == 0
    assert max_queue_hypothesis(Supermarket(4 * 10**18, 1, 0.5)) == 61  # 2**62 = 4.6e18
    assert max_queue_hypothesis(Supermarket(10**15, 2**53, 1 - 1e-12)) == 1


# --- means ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2, 3, 10, 10**6, 2**53])
@pytest.mark.parametrize("lam", [1e-300, 1e-5, 0.3, 0.7, 0.9, 0.99, 1 - 1e-9])
def test_means_against_a_sum_in_sixty_digits(lam, d):
    with localcontext() as context:
        context.prec = 60
        exact, k = Decimal(0), 1
        if d == 1:
            exact = Decimal(lam) / (1 - Decimal(lam))
        while d > 1 and exact_log(lam, d, k) > -2000:
            exact += exact_log(lam, d, k).exp()
            k += 1
        sojourn = exact / Decimal(lam)
    assert mean_queue(Supermarket(math.inf, d, lam)) == pytest.approx(float(exact), rel=1e-14)
    assert mean_sojourn(Supermarket(math.inf, d, lam)) == pytest.approx(float(sojourn), rel=1e-14)


# --- the ODE -------------------------------------------------------------------------------------


def runge_kutta(lam, d, times, start, levels, step=1 / 256):
    """Solve equation (1.1) by the classical method of order 4, term by term."""

    def slope(v):
        return [0.0] + [
            lam * (v[k - 1] ** d - v[k] ** d) - (v[k] - (v[k + 1] if k < levels else 0.0))
            for k in range(1, levels + 1)
        ]

    def ahead(v, direction, by):
        return [x + by * y for x, y in zip(v, direction, strict=True)]

    v = [*start, *[0.0] * (levels + 1 - len(start))]
    path, now = [], 0
    for time in times:
        for _ in range(now, round(time / step)):
            a = slope(v)
            b = slope(ahead(v, a, step / 2))
            c = slope(ahead(v, b, step / 2))
            e = slope(ahead(v, c, step))
            v = [x + step / 6 * (p + 2 * q + 2 * r + s)
                 for x, p, q, r, s in zip(v, a, b, c, e, strict=True)]  # fmt: skip
        now = round(time / step)
        path.append(v)
    return np.array(path)


@pytest.mark.parametrize("start", [(1.0,), (1.0, 0.8, 0.5, 0.5, 0.1), (1.0, 1.0, 1.0)])
@pytest.mark.parametrize(("lam", "d"), [(0.5, 1), (0.9, 2), (0.7, 3), (0.95, 8)])
def test_trajectory_against_runge_kutta(lam, d, start):
    """Runge-Kutta is right to 1e-9 here (halving its step moves it by less)."""
    times = [0, 0.25, 1, 4, 10]
    path = trajectory(Supermarket(math.inf, d, lam), times, start=start)
    naive = runge_kutta(lam, d, times, start, levels=50 if d == 1 else 12)
    levels = min(path.shape[1], naive.shape[1])
    np.testing.assert_allclose(path[:, :levels], naive[:, :levels], rtol=0, atol=2e-7)
    assert np.abs(path[:, levels:]).max(initial=0) < 1e-9
    assert np.abs(naive[:, levels:]).max(initial=0) < 1e-9
    assert path.dtype == np.float64
    assert np.all(path[:, 0] == 1)
    np.testing.assert_allclose(path[0, : len(start)], start, rtol=0, atol=1e-15)


def test_one_choice_is_the_transient_of_an_mm1_queue():
    lam, lengths, times = 0.6, 90, [0.5, 2.0, 9.0]
    rates = lam * np.eye(lengths, k=1) + np.eye(lengths, k=-1)
    rates -= np.diag(rates.sum(axis=1))
    path = trajectory(Supermarket(math.inf, 1, lam), times)
    for time, v in zip(times, path, strict=True):
        law = expm(rates * time)[0]
        at_least = law[::-1].cumsum()[::-1]
        width = min(len(v), lengths)
        np.testing.assert_allclose(v[:width], at_least[:width], rtol=0, atol=2e-7)


def test_trajectory_of_twenty_thousand_levels():
    """At d = 1 the tail is that long; for a short while the empty start sees little of it."""
    lam, lengths, time = 0.999, 120, 10.0
    rates = lam * np.eye(lengths, k=1) + np.eye(lengths, k=-1)
    rates -= np.diag(rates.sum(axis=1))
    at_least = expm(rates * time)[0][::-1].cumsum()[::-1]
    path = trajectory(Supermarket(math.inf, 1, lam), [time])
    np.testing.assert_allclose(path[0, :lengths], at_least, rtol=0, atol=2e-7)
    assert path.shape[1] > 20000


@pytest.mark.parametrize(("lam", "d"), [(0.5, 1), (0.7, 2), (0.9, 2), (0.95, 5), (0.99, 50)])
def test_trajectory_settles_on_the_fixed_point_from_below_and_above(lam, d):
    """It is on its way for long, then stays: the error of the solver is all that is left."""
    for start in [(1.0,), (1.0, 1.0, 1.0, 0.4)]:
        path = trajectory(Supermarket(math.inf, d, lam), [1.0, 3000.0], start=start)
        settled = fixed_point(Supermarket(math.inf, d, lam), path.shape[1] - 1)
        assert np.abs(path[0] - settled).max() > 0.03
        np.testing.assert_allclose(path[1], settled, rtol=0, atol=2e-7)


def test_trajectory_from_the_fixed_point_stays_there():
    start = fixed_point(LIMIT, 9)
    path = trajectory(LIMIT, [0.0, 1.0, 50.0], start=start)
    assert np.abs(path[:, :10] - start).max() < 1e-8


def test_trajectory_stays_a_profile_and_grows_from_empty():
    path = trajectory(LIMIT, np.linspace(0, 20, 50))
    assert np.all(np.diff(path, axis=0) >= -1e-8)
    assert np.all(np.diff(path, axis=1) <= 1e-10)
    assert path.min() >= -1e-10
    # Jobs come at rate lam a queue and go at rate v_1: the balance of equation (1.1), summed.
    times = np.linspace(0, 20, 2001)
    jobs = trajectory(LIMIT, times)[:, 1:].sum(axis=1)
    busy = trajectory(LIMIT, times)[:, 1]
    gone = np.concatenate([[0], np.cumsum((busy[1:] + busy[:-1]) / 2 * np.diff(times))])
    np.testing.assert_allclose(jobs, 0.9 * times - gone, atol=2e-5)


@pytest.mark.parametrize(("lam", "d"), [(0.6, 1), (0.9, 2), (0.99, 10)])
@pytest.mark.parametrize("start", [(1.0,), (1.0,) * 7])
def test_levels_left_out_do_not_matter(lam, d, start):
    times = [0.5, 3.0, 30.0]
    default = trajectory(Supermarket(math.inf, d, lam), times, start=start)
    levels = default.shape[1] - 1
    more = trajectory(Supermarket(math.inf, d, lam), times, start=start, levels=levels + 25)
    assert more.shape == (3, levels + 26)
    np.testing.assert_allclose(more[:, : levels + 1], default, rtol=0, atol=2e-7)
    assert np.abs(more[:, levels + 1 :]).max() < 1e-11
    few = trajectory(Supermarket(math.inf, d, lam), times, levels=len(start) + 1)
    assert few.shape == (3, len(start) + 2)


def test_trajectory_with_very_many_choices_fills_one_level_at_a_time():
    """As d grows the first level takes all arrivals: v_1 = lam (1 - exp(-t)), nothing above."""
    times = np.array([0.5, 2.0, 30.0])
    path = trajectory(Supermarket(math.inf, 2**53, 0.9), times)
    np.testing.assert_allclose(path[:, 1], 0.9 * -np.expm1(-times), atol=1e-8)
    assert not path[:, 2:].any()


def test_trajectory_at_time_zero_alone_is_the_start():
    assert trajectory(Supermarket(math.inf, 2, 0.5), [0.0], start=[1, 0.5])[0, :3].tolist() == [
        1,
        0.5,
        0,
    ]


@pytest.mark.parametrize(("lam", "d"), [(0.5, 2), (0.9, 2), (0.99, 3), (0.95, 10), (0.999, 50)])
def test_relaxation_time_is_the_slowest_of_the_linearised_drift(lam, d):
    levels = 14
    up = lam * d * fixed_point(Supermarket(math.inf, d, lam), levels) ** (d - 1)
    jacobian = np.diag(-1 - up[1:]) + np.diag(up[1:-1], -1) + np.diag(np.ones(levels - 1), 1)
    slowest = np.linalg.eigvals(jacobian).real.max()
    assert relaxation_time(Supermarket(math.inf, d, lam)) == pytest.approx(-1 / slowest, rel=1e-10)


def test_relaxation_time_in_the_regime_of_the_theorem():
    """Close to (lam d)**(k-1), k = 2 and 3, with 1 - lam far below d**(1-k)."""
    assert relaxation_time(Supermarket(math.inf, 10**6, 1 - 1e-10)) == pytest.approx(
        10**6, rel=3e-4
    )
    assert relaxation_time(Supermarket(math.inf, 10**4, 1 - 3e-11)) == pytest.approx(
        10**8, rel=0.01
    )
    assert relaxation_time(Supermarket(math.inf, 2**53, 0.5)) == pytest.approx(1, rel=1e-12)


def test_relaxation_time_seen_in_the_ode():
    late = trajectory(LIMIT, [60.0, 70.0])
    gap = np.abs(late - fixed_point(LIMIT, late.shape[1] - 1))[:, 1]
    assert 10 / math.log(gap[0] / gap[1]) == pytest.approx(relaxation_time(LIMIT), rel=0.02)


def test_relaxation_time_with_one_choice_is_that_of_one_queue():
    """The gap of the M/M/1 queue, the bottom of a continuous spectrum."""
    levels, lam = 2000, 0.5
    jacobian = np.diag(np.full(levels, -1 - lam))
    root = np.full(levels - 1, math.sqrt(lam))  # made symmetric
    slowest = np.linalg.eigvalsh(jacobian + np.diag(root, 1) + np.diag(root, -1)).max()
    assert relaxation_time(Supermarket(math.inf, 1, lam)) == pytest.approx(-1 / slowest, rel=1e-4)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: relaxation_time(Supermarket(math.inf, 2, 1.0)), "lam = 1 is out of range"),
        (lambda: relaxation_time(Supermarket(math.inf, 0, 0.9)), "d = 0 is out of range"),
        (lambda: fixed_point(replace(LIMIT, lam=1.2), 3), "lam = 1.2 is out.*choose 0 < lam < 1"),
        (lambda: fixed_point(Supermarket(math.inf, 2, "0.9"), 3), "lam = '0.9' is text"),
        (lambda: fixed_point(Supermarket(math.inf, 0, 0.9), 3), "d = 0 is out of range"),
        (lambda: fixed_point(Supermarket(math.inf, 2.0, 0.9), 3), "d = 2.0 is not a whole number"),
        (lambda: fixed_point(LIMIT, -1), "levels = -1 is out of range"),
        (lambda: log_fixed_point(Supermarket(math.inf, 2, math.nan), 3), "lam = nan is not finite"),
        (lambda: log_fixed_point(replace(LIMIT, d=2**53 + 1), 3), "d = 9007199254740993 is out of"),
        (lambda: k_lambda_d(Supermarket(math.inf, 1, 0.9)), "d = 1 is out of range: choose 2 <= d"),
        (lambda: k_lambda_d(Supermarket(math.inf, 2, 1.0)), "lam = 1 is out of range"),
        (lambda: max_queue_hypothesis(Supermarket(0, 2, 0.9)), "n = 0 is out of range"),
        (lambda: max_queue_hypothesis(Supermarket(10, 2, 0)), "lam = 0 is out of range"),
        (lambda: max_queue_hypothesis(Supermarket(10, 0, 0.9)), "d = 0 is out of range"),
        (lambda: mean_queue(Supermarket(math.inf, 0, 0.9)), "d = 0 is out of range"),
        (lambda: mean_sojourn(Supermarket(math.inf, 2, 1.5)), "lam = 1.5 is out of range"),
        (lambda: trajectory(Supermarket(math.inf, 2, 1.2), [1]), "lam = 1.2 is out of range"),
        (lambda: trajectory(Supermarket(math.inf, 0, 0.9), [1]), "d = 0 is out of range"),
        (lambda: trajectory(LIMIT, [2, 1]), "times must be an increasing list"),
        (lambda: trajectory(LIMIT, [1, 1]), "times must be an increasing list"),
        (lambda: trajectory(LIMIT, [[1, 2]]), "times must be an increasing list"),
        (lambda: trajectory(LIMIT, [1, math.inf]), "finite numbers"),
        (lambda: trajectory(LIMIT, [math.nan]), "finite numbers"),
        (lambda: trajectory(LIMIT, []), "one at least"),
        (lambda: trajectory(LIMIT, [-1, 1]), "none below 0"),
        (lambda: trajectory(LIMIT, [1], start=[0.9]), "start must be a profile"),
        (lambda: trajectory(LIMIT, [1], start=[]), "start must be a profile"),
        (lambda: trajectory(LIMIT, [1], start=[1, "a"]), "start must be a list of numbers"),
        (lambda: trajectory(LIMIT, [1], start=[1, 0.2, 0.3]), "start must be a profile"),
        (lambda: trajectory(LIMIT, [1], start=[1, -0.1]), "start must be a profile"),
        (lambda: trajectory(LIMIT, [1], start=[1, math.nan]), "start must be a list of finite num"),
        (lambda: trajectory(LIMIT, [1], start=[[1, 0.5]]), "start must be a profile"),
        (lambda: trajectory(LIMIT, [1], start=[1, 1, 1], levels=1), "levels = 1 is out of range"),
        (lambda: trajectory(LIMIT, [1], levels=0), "levels = 0 is out of range"),
    ],
)  # fmt: skip
def test_bad_input_gets_one_sentence(call, words):
    with pytest.raises(ParameterError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)
