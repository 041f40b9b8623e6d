"""Theorem 1.2's hypotheses at their edges, N^eps, and the approximations of the fixed point."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from supermarket import ParameterError, Supermarket, fixed_point, k_lambda_d
from supermarket.limits.saturation.drifts import drift, stationary_covariance
from supermarket.limits.saturation.theorem import (
    fewest_queues,
    fixed_point_shorter,
    hypotheses,
    in_good_set,
    largest_delta,
    leading_shorter,
    length_counts,
    linear_good_set_share,
    linear_shorter,
    log_rate_bound,
    log_rate_of_longer,
    mean_of_longer,
    power_case,
    shorter_counts,
    smallest_eps,
    smallest_eps_of_lengths,
)

LITERAL = Supermarket(10**17, 8_000_000, 1 - 6e-11)


def by_name(*arguments, **options):
    return {h.name: h for h in hypotheses(*arguments, **options)}


# --- the hypotheses ------------------------------------------------------------------------------


def test_all_hold_in_the_literal_regime():
    assert all(h.holds for h in hypotheses(LITERAL, 0.1))
    assert all(h.ratio <= 1 for h in hypotheses(LITERAL, 0.1))
    # A 1 / log n in (C) would be too much even at this n; 5 % more choices are too many for (B).
    assert not by_name(LITERAL, 0.1, phi=lambda n: 1 / math.log(n))["C"].holds
    assert not by_name(Supermarket(10**17, 8_400_000, 1 - 6e-11), 0.1)["B"].holds


def test_each_side_is_what_the_paper_says():
    n, d, lam, eps = LITERAL.n, 300, 1 - 2.0**-14, 0.05
    h = by_name(Supermarket(n, d, lam), eps, phi=0.5)
    assert h["A"].left == pytest.approx(2 * math.log(n) ** 2)
    assert h["A"].right == pytest.approx(300**2 / 2**14)
    assert h["B"].left == pytest.approx(100 * 2 * 300 / 2**14)
    assert h["B"].right == eps
    assert (h["B, k"].left, h["B, k"].right) == (2, 2)
    assert h["C"].left == 2**14
    assert h["C"].right == pytest.approx(0.5 * 0.05 * math.sqrt(n * 300))
    assert h["B"].ratio == pytest.approx(h["B"].left / eps)
    assert not h["B"].holds


@pytest.mark.parametrize("n", [10**4, 10**15, 4 * 10**18])
def test_a_just_true_and_just_false(n):
    lam, k = 1 - 2.0**-40, 2
    least = math.ceil(math.sqrt(2 * math.log(n) ** 2 * 2**40))
    assert k_lambda_d(Supermarket(math.inf, least, lam)) == k
    above, below = (by_name(Supermarket(n, d, lam), 0.1)["A"] for d in (least, least - 1))
    assert above.holds
    assert not below.holds
    assert above.ratio == pytest.approx(1, rel=1e-6)
    assert below.ratio == pytest.approx(1, rel=1e-6)


def test_b_just_true_and_just_false():
    left = by_name(LITERAL, 0.1)["B"].left
    assert by_name(LITERAL, left)["B"].holds
    assert not by_name(LITERAL, np.nextafter(left, 0))["B"].holds
    assert by_name(LITERAL, 0.1)["B, eps"].holds
    assert not by_name(LITERAL, float(np.nextafter(0.1, 1)))["B, eps"].holds


def test_k_one_fails_at_a_name_of_its_own():
    h = by_name(Supermarket(10**17, 1000, 0.999), 0.1)  # d = 1 / (1 - lam)
    assert [name for name in h if not h[name].holds] == ["A", "B", "B, k"]
    assert h["B, k"].ratio == 2
    assert by_name(Supermarket(10**17, 999, 0.999), 0.1)["B, k"].holds


def test_c_just_true_and_just_false():
    n, d, lam = 10**10, 10**4, 1 - 2.0**-16
    factor = 2**16 / (0.1 * math.sqrt(n * d))
    assert by_name(Supermarket(n, d, lam), 0.1, phi=factor * (1 + 1e-12))["C"].holds
    assert not by_name(Supermarket(n, d, lam), 0.1, phi=factor * (1 - 1e-12))["C"].holds
    assert by_name(Supermarket(n, d, lam), 0.1, phi=lambda m: factor * (m == n) + 1e-9)["C"].holds


def test_slowest_family_of_the_introduction():
    """1 - lam = 1 / (C log(n)^2), d = c log(n)^2: (A) from c = sqrt(2 C), (B) up to eps C / 200."""
    n, eps, C = 10**20 // 25, 0.1, 2.5e7
    squared = math.log(n) ** 2
    lam = 1 - 1 / (C * squared)
    for c, a, b in (
        (math.sqrt(2 * C) * 0.9999, False, True),
        (math.sqrt(2 * C) * 1.0001, True, True),
        (eps * C / 200 * 0.9999, True, True),
        (eps * C / 200 * 1.0001, True, False),
    ):
        h = by_name(Supermarket(n, round(c * squared), lam), eps)
        assert (h["A"].holds, h["B"].holds) == (a, b)
        assert h["B, k"].right == 2


def test_no_fewer_than_ten_to_the_fifteen():
    """For k = 2 the best d leaves (A) and (B) without room; then (C) decides, here with phi = 1."""

    def possible(n):
        best = 4000 * math.log(n) ** 2
        return any(
            all(h.holds for h in hypotheses(Supermarket(n, d, 1 - 0.1 * s / (200 * d)), 0.1))
            for d in map(round, best * np.array([1.0001, 1.01, 1.1, 1.5, 3.0]))
            for s in (0.9999, 0.99, 0.9, 0.5)
        )

    assert not possible(10**15)
    assert possible(3 * 10**15)


@pytest.mark.parametrize(
    "wrong",
    [{"n": 0}, {"d": 1}, {"lam": 1.0}, {"eps": 0.0}, {"phi": -1.0}, {"phi": lambda n: math.nan}],
)
def test_hypotheses_refuse(wrong):
    given = {"n": 10**6, "d": 100, "lam": 0.999, "eps": 0.1, "phi": 1.0} | wrong
    eps, phi = given.pop("eps"), given.pop("phi")
    with pytest.raises(ParameterError, match=f"{next(iter(wrong))} = "):
        hypotheses(Supermarket(**given), eps, phi=phi)


# --- N^eps ---------------------------------------------------------------------------------------


def naive_eps(counts, d, lam, k):
    n, spare = counts[0], 1 - Fraction(lam)
    counts = [*counts, *[0] * (k + 2)]
    if counts[k + 1] > 0:
        return math.inf
    off = [
        abs(Fraction(n - counts[j]) / (n * spare * (Fraction(lam) * d) ** (j - 1)) - 1)
        for j in range(1, k + 1)
    ]
    return float(max(off) / 5)


def test_smallest_eps_against_fractions():
    rng = np.random.default_rng(1)
    n, d, lam = 10**15, 2000, 1 - 1e-9
    k = k_lambda_d(Supermarket(math.inf, d, lam))
    assert k == 3
    states = []
    for _ in range(50):
        w = leading_shorter(Supermarket(math.inf, d, lam), k)[1:] * rng.uniform(0.2, 2.0, k)
        states.append([n, *(n - np.rint(n * w).astype(int)), int(rng.random() < 0.2)])
    states = np.array(states)
    found = smallest_eps(Supermarket(math.inf, d, lam), states)
    expected = [naive_eps([int(x) for x in state], d, lam, k) for state in states]
    assert found == pytest.approx(expected, rel=1e-12)
    assert np.isinf(found).any()
    for state, eps in zip(states, found, strict=True):
        assert smallest_eps(Supermarket(math.inf, d, lam), state) == eps
        if eps < 0.09:
            assert in_good_set(Supermarket(math.inf, d, lam), state, eps)
            assert not in_good_set(Supermarket(math.inf, d, lam), state, eps * (1 - 1e-9))
    assert (
        smallest_eps(Supermarket(math.inf, d, lam), states[:, :-1]).max() < math.inf
    )  # missing levels are empty


def test_n_eps_of_empty_and_of_overfull_states():
    assert smallest_eps(Supermarket(math.inf, 50, 0.999), [100]) > 1
    assert smallest_eps(Supermarket(math.inf, 50, 0.999), [100, 100, 100]) == pytest.approx(0.2)
    assert smallest_eps(Supermarket(math.inf, 50, 0.999), [100, 100, 100, 1, 1, 0]) == math.inf


@pytest.mark.parametrize("eps", [0.0, 0.11])
def test_n_eps_is_defined_up_to_a_tenth(eps):
    with pytest.raises(ParameterError, match="eps"):
        in_good_set(Supermarket(math.inf, 50, 0.999), [100, 90, 0], eps)
    with pytest.raises(ParameterError, match="eps"):
        shorter_counts(Supermarket(100, 50, 0.999), eps)


def test_smallest_eps_refuses_what_is_not_a_state():
    for wrong in ([100, 101, 0], [[[100, 90, 0]]], []):
        with pytest.raises(ParameterError, match="counts"):
            smallest_eps(Supermarket(math.inf, 50, 0.999), wrong)


def test_states_of_n_eps_have_lengths_within_the_windows():
    """Items (b) and (d) after the definition follow from it where eps lam d >= 2."""
    rng = np.random.default_rng(2)
    n, d, lam, eps = 10**15, 2000, 1 - 1e-9, 0.02
    k = k_lambda_d(Supermarket(math.inf, d, lam))
    exactly, shorter = (
        length_counts(Supermarket(n, d, lam), eps),
        shorter_counts(Supermarket(n, d, lam), eps),
    )
    assert exactly.leading.sum() == pytest.approx(n, rel=1e-3)
    assert exactly.leading[0] == shorter.leading[0] == pytest.approx(n * 1e-9)
    for _ in range(200):
        corner = rng.choice([-1.0, -0.5, 0.5, 1.0], k) * 5 * eps * (1 - 1e-5)  # and rounding
        below = np.rint(
            n * leading_shorter(Supermarket(math.inf, d, lam), k)[1:] * (1 + corner)
        ).astype(np.int64)
        counts = np.array([n, *(n - below), 0])
        assert in_good_set(Supermarket(math.inf, d, lam), counts, eps)
        assert np.all((shorter.low < below) & (below < shorter.high))
        lengths = -np.diff(counts)
        assert np.all((exactly.low < lengths) & (lengths < exactly.high))


def test_single_lengths_need_enough_choices():
    with pytest.raises(ParameterError, match="choose eps"):
        length_counts(Supermarket(10**6, 100, 0.999), 0.01)
    assert (
        len(length_counts(Supermarket(10**6, 10**4, 0.999), 1e-5).leading) == 2
    )  # k = 1: nothing in between


# --- the fixed point and its approximations ------------------------------------------------------


@pytest.mark.parametrize(("d", "lam"), [(8_000_000, 1 - 6e-11), (300, 1 - 1 / 3000), (2, 0.7)])
def test_shorter_queues_keep_their_digits(d, lam):
    found = fixed_point_shorter(Supermarket(math.inf, d, lam), 3)
    with localcontext() as context:
        context.prec = 60
        for i in range(4):
            exponent = sum(d**j for j in range(i))
            exact = 1 - (Decimal(lam).ln() * exponent).exp()
            assert found[i] == pytest.approx(float(exact), rel=1e-14, abs=0)
    assert 1 - found == pytest.approx(fixed_point(Supermarket(math.inf, d, lam), 3), abs=1e-14)


@pytest.mark.parametrize("k", [1, 2, 5])
def test_linear_approximation_solves_its_equations(k):
    lam, d = 1 - 1e-9, 50
    w = linear_shorter(Supermarket(math.inf, d, lam), k)
    assert w[0] == 0
    slopes = np.diff(w)
    assert slopes[1:] == pytest.approx(lam * d * slopes[:-1], rel=1e-12, abs=0)
    assert w[k] == pytest.approx((1 - lam) + lam * d * w[k - 1], rel=1e-12, abs=0)


def test_leading_terms_at_three_sizes():
    """1 - pi(i) over (1-lam) (lam d)**(i-1), at sizes where the leaps are tried, too."""
    for d, spare, expected in (
        (300, 0.1 / 300, [1.0, 0.955]),
        (1000, 0.06 / 1000, [1.0, 0.972]),
        (40, 0.75 / 1600, [1.0, 1.016, 0.716]),
    ):
        k = len(expected)
        assert k_lambda_d(Supermarket(math.inf, d, 1 - spare)) == k
        ratio = (
            fixed_point_shorter(Supermarket(math.inf, d, 1 - spare), k)[1:]
            / leading_shorter(Supermarket(math.inf, d, 1 - spare), k)[1:]
        )
        assert ratio == pytest.approx(expected, abs=1.5e-3)


def test_power_case():
    case = power_case(10**10, 0.5, 0.3)
    assert (case.d, case.k) == (1000, 2)
    assert case.lam == 1 - 1e-5
    assert case.relaxation_time == pytest.approx(1000, rel=1e-4)
    assert case.balanced_share == pytest.approx(1 - 2e-2)
    assert power_case(4 * 10**18, 0.6, 0.45).k == 2
    with pytest.raises(ParameterError, match="rounds to d = 1"):
        power_case(10, 0.5, 0.1)


# --- edges, rates and the linear noise -----------------------------------------------------------


@pytest.mark.parametrize("phi", [1.0, 0.5])
def test_fewest_queues_is_the_edge_of_the_hypotheses(phi):
    """At it (A), (B), (C) hold for one pair of d and lam only; a little beyond, for many."""
    least = fewest_queues(0.1, phi)

    def possible(n):
        best = 4000 * math.log(n) ** 2
        shapes = product(np.linspace(0.95, 1.3, 36), np.linspace(0.95, 1.5, 56))
        models = (Supermarket(n, round(best * a), 1 - 0.1 / (200 * best * b)) for a, b in shapes)
        return any(all(h.holds for h in hypotheses(model, 0.1, phi=phi)) for model in models)

    assert least > 1e15
    assert not possible(int(0.99 * least))
    assert possible(int(1.1 * least))
    assert fewest_queues(0.05) > 10 * fewest_queues(0.1)


def test_largest_delta():
    assert largest_delta(0.6, 0.45) == pytest.approx(0.125)  # from (C)
    assert largest_delta(0.5, 0.45) == pytest.approx(0.05)  # from (B)
    assert largest_delta(0.9, 0.7) < 0
    assert largest_delta(0.5, 0.2) == pytest.approx(0.1)  # k = 3


def test_item_d_follows_from_the_good_set():
    rng = np.random.default_rng(3)
    n, d, lam = 10**15, 2000, 1 - 1e-9
    k = k_lambda_d(Supermarket(math.inf, d, lam))
    for eps in (0.1, 0.01):
        for _ in range(100):
            w = leading_shorter(Supermarket(math.inf, d, lam), k)[1:] * (
                1 + 5 * eps * rng.choice([-0.999, 0.999], k)
            )
            counts = np.array([n, *(n - np.rint(n * w).astype(np.int64)), 0])
            assert smallest_eps_of_lengths(Supermarket(math.inf, d, lam), counts) < eps
    assert smallest_eps_of_lengths(
        Supermarket(math.inf, 50, 0.999), [[10**4, 9990, 9400], [10**4, 9990, 9000]]
    ).shape == (2,)
    off = [10**6, 10**6 - 10**3, 10**6 - 10**3 - 2 * 49950, 0]  # twice as many of length 1
    assert smallest_eps_of_lengths(Supermarket(math.inf, 50, 0.999), off) == pytest.approx(1 / 6)
    assert (
        smallest_eps_of_lengths(Supermarket(math.inf, 10, 0.9), [100, 90]) == 0
    )  # k = 1: no such length


def test_good_set_share_against_draws():
    """10^5 normal draws; the share is off by 4 standard errors in one run of 10^4."""
    case = power_case(10**6, 0.6, 0.45)
    covariance = stationary_covariance(case.model)[1:3, 1:3] / case.n
    middle = fixed_point_shorter(case.model, 2)[1:]
    rng = np.random.default_rng(4)
    w = rng.multivariate_normal(middle, covariance, 10**5) / leading_shorter(case.model, 2)[1:]
    inside = np.mean(np.all(np.abs(w - 1) < 0.5, axis=1))
    found = linear_good_set_share(case.model, 0.1)
    assert abs(found - inside) < 4 * math.sqrt(found * (1 - found) / 10**5)
    assert linear_good_set_share(case.model, 0.05) < found - 0.1
    assert linear_good_set_share(case.model, 0.1, independent=True) > 1 - 1e-9


def test_rate_of_longer_is_that_of_the_drift():
    counts = [10**6, 10**6 - 300, 10**6 - 20_000, 0, 0]
    d, lam = 60, 1 - 2e-3
    assert k_lambda_d(Supermarket(math.inf, d, lam)) == 2
    rise = drift(Supermarket(math.inf, d, lam), counts)[3]
    assert math.exp(log_rate_of_longer(Supermarket(math.inf, d, lam), counts)) == pytest.approx(
        rise, rel=1e-9
    )
    assert log_rate_of_longer(Supermarket(math.inf, 60, lam), [100, 90, 0]) == -math.inf


def test_rate_bound_is_reached_at_the_edge_of_the_good_set():
    n, d, lam, eps = 10**15, 2000, 1 - 1e-6, 0.1
    least = 0.5 * leading_shorter(Supermarket(math.inf, d, lam), 2)[1:]
    edge = np.array([n, *(n - np.rint(n * least).astype(np.int64)), 0])
    bound = log_rate_bound(Supermarket(n, d, lam), eps)
    assert log_rate_of_longer(Supermarket(math.inf, d, lam), edge) == pytest.approx(bound, rel=1e-9)
    inside = edge.copy()
    inside[1:3] -= [n // 10**8, n // 10**4]
    assert in_good_set(Supermarket(math.inf, d, lam), inside, eps)
    assert log_rate_of_longer(Supermarket(math.inf, d, lam), inside) < bound - 0.1


def test_mean_of_longer_tends_to_the_fixed_point():
    d, lam = 1000, 1 - 2e-5
    for n, factor in ((10**15, 1.0), (2 * 10**9, math.exp(d**3 / 4e9))):
        expected = n * fixed_point(Supermarket(math.inf, d, lam), 3)[3] * factor
        assert mean_of_longer(Supermarket(n, d, lam)) == pytest.approx(expected, rel=2e-2)
