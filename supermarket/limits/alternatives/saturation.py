"""Near saturation: the theorem's hypotheses at a point, and what its verdicts are told from."""

import math

from supermarket.limits.mean_field.correction import refined_mean_field
from supermarket.limits.mean_field.fixed_point import fixed_point, k_lambda_d
from supermarket.limits.saturation.theorem import (
    fixed_point_shorter,
    hypotheses,
    leading_shorter,
    linear_good_set_share,
    mean_of_longer,
)
from supermarket.models.jsq import Supermarket


def theorem_1_2(n: int, d: int, lam: float, eps: float = 0.1) -> list[str]:
    """Return which of (A), (B), (C) fail, with a factor of 1 in (C)."""
    return [
        f"({h.name[0]}) {h.statement}"
        for h in hypotheses(Supermarket(n, d, lam), eps)
        if not h.holds
    ]


def single_lengths(n: int, d: int, lam: float, eps: float = 0.1) -> list[str]:
    """Return what fails of Theorem 1.2, and eps lam d >= 2."""
    return theorem_1_2(n, d, lam, eps) + ([] if eps * lam * d >= 2 else ["ε λ d ≥ 2"])


def power_exponents(alpha: float, beta: float) -> list[str]:
    """Return which conditions on the exponents of the power family fail."""
    return [
        words
        for words, holds in (
            ("α > β", alpha > beta),
            ("α/β not whole", not math.isclose(alpha / beta, round(alpha / beta))),
            ("2α < 1 + β", 2 * alpha < 1 + beta),
        )
        if not holds
    ]


def power_family(
    n: int, d: int, lam: float, alpha: float, beta: float, eps: float = 0.1
) -> list[str]:
    """Return which conditions on the exponents fail, and which of (A), (B), (C) at this n."""
    return power_exponents(alpha, beta) + theorem_1_2(n, d, lam, eps)


def integer_ratio(alpha: float, beta: float) -> list[str]:
    """Return whether alpha / beta is no whole number, or below 2, or (C) fails in the limit."""
    ratio = alpha / beta
    whole = math.isclose(ratio, round(ratio)) and round(ratio) >= 2
    return ([] if whole else ["α/β = 2, 3, …"]) + ([] if 2 * alpha < 1 + beta else ["2α < 1 + β"])


def outside_few_choices(
    n: int, d: int, lam: float, alpha: float, theta: float, gamma: float, eps: float = 0.1
) -> list[str]:
    """Return what fails of the conditions on alpha, theta, gamma, and of (A), (B), (C)."""
    conditions = (
        ("α < 1/2", alpha < 0.5),
        ("γ < α/3", gamma < alpha / 3),
        ("2 < θ < α/γ − 1", 2 < theta < alpha / gamma - 1),
    )
    return [words for words, holds in conditions if not holds] + theorem_1_2(n, d, lam, eps)


def outside_slow_load(
    n: int, d: int, lam: float, alpha_load: float, beta_load: float, eps: float = 0.1
) -> list[str]:
    """Return what fails of the conditions on alpha and beta, and of (A), (B), (C)."""
    ks = range(2, max(2, math.ceil(alpha_load / 2 + 1)))
    fits = any((alpha_load + 2) / k < beta_load < alpha_load / (k - 1) for k in ks)
    conditions = (("α > 2", alpha_load > 2), ("(α + 2)/k < β < α/(k − 1)", fits))
    return [words for words, holds in conditions if not holds] + theorem_1_2(n, d, lam, eps)


def outside_slowest_load(
    n: int, d: int, lam: float, large: float, small: float, eps: float = 0.1
) -> list[str]:
    """Return what fails of the conditions on C and c, and of (A), (B), (C)."""
    conditions = (
        ("C > 160000 / ε²", large > 160000 / eps**2),
        ("√(2C) ≤ c ≤ ε C / 200", math.sqrt(2 * large) <= small <= eps * large / 200),
    )
    return [words for words, holds in conditions if not holds] + theorem_1_2(n, d, lam, eps)


def one_length(d: int, lam: float) -> list[str]:
    """Return whether there are fewer than 1 / (1 - lam) choices."""
    return [] if k_lambda_d(Supermarket(math.inf, d, lam)) == 1 else ["d ≥ 1/(1 − λ)"]


def constant_of_the_paper(eps: float = 0.1) -> float:
    """Return the C of the slowest family that the paper asks for."""
    return 160000 / eps**2


def leading_and_uncorrected(d: int, lam: float, level: int) -> list[float]:
    """Return a leading term and what the fixed point has in its place, both over the former."""
    leading = leading_shorter(Supermarket(math.inf, d, lam), level)[level]
    return [1.0, float(fixed_point_shorter(Supermarket(math.inf, d, lam), level)[level] / leading)]


def independent_share(n: int, d: int, lam: float, eps: float = 0.1) -> float:
    """Return the share of time in the good set if the queues were independent."""
    return linear_good_set_share(Supermarket(n, d, lam), eps, independent=True)


def longer_otherwise(n: int, d: int, lam: float) -> list[float]:
    """Return the mean number of queues longer than k: without fluctuations; with d - 1 choices."""
    k = k_lambda_d(Supermarket(math.inf, d, lam))
    return [
        n * float(fixed_point(Supermarket(math.inf, d, lam), k + 1)[k + 1]),
        mean_of_longer(Supermarket(n, d - 1, lam), k=k),
    ]


def share_with_one_choice_less(n: int, d: int, lam: float, length: int) -> float:
    """Return the share of queues of a length, with d - 1 choices."""
    levels = refined_mean_field(Supermarket(n, d - 1, lam), length + 1)
    return float(levels[length] - levels[length + 1])


def half_and_double(predicted: float) -> list[float]:
    """Return half of the prediction and twice as much."""
    return [predicted / 2, 2 * predicted]
