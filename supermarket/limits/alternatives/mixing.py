"""What would be so if statements about drifts, couplings and mixing were not, and where they fail.

Near saturation (Brightwell & Luczak, arXiv:1201.5523), and for the couplings that their proofs use.
"""

import math

import numpy as np

from supermarket.limits.mean_field.fixed_point import k_lambda_d, relaxation_time
from supermarket.limits.saturation.drifts import drift, modes
from supermarket.models.jsq import Supermarket


def theorem_1_2(n: int, d: int, lam: float) -> list[str]:
    """Return those of (A), (B) of Theorem 1.2 that fail at eps = 1/10, the largest allowed."""
    return _failing(n, d, lam, 0.1)


def theorem_1_3(n: int, d: int, lam: float) -> list[str]:
    """Return those of (A), (B) that fail at eps = 1/60."""
    return _failing(n, d, lam, 1 / 60)


def gap_of_powers(n: int, alpha: float, beside: float) -> list[str]:
    """Return which of the systems at either side of a gap, and which sizes, miss the theorem."""
    beta, failing = alpha / 2, []
    if not 2 * (alpha + beside) < 1 + beta:
        failing.append(r"$2\alpha_+ < 1 + \beta$")
    if any((alpha + side * beside) / beta % 1 == 0 for side in (-1, 1)):
        failing.append(r"$\alpha_\pm / \beta$ is not a whole number")
    if any(_failing(n, round(n**beta), 1 - n ** -(alpha + side * beside), 0.1) for side in (-1, 1)):
        failing.append("$n$ is large enough for Theorem 1.2 at both sides")
    return failing


def _failing(n: int, d: int, lam: float, eps: float) -> list[str]:
    k, failing = k_lambda_d(Supermarket(math.inf, d, lam)), []
    if k < 2:
        failing.append(r"$k \ge 2$")
    if d**k * (1 - lam) < 2 * math.log(n) ** 2:
        failing.append(r"$d^k (1-\lambda) \ge 2 \log^2 n$")
    if 100 * k * (1 - lam) * d ** (k - 1) > eps:
        failing.append(rf"$100\, k\, (1-\lambda)\, d^{{k-1}} \le \varepsilon = 1/{1 / eps:.0f}$")
    return failing


def distinct_choices(small_n: int, small_d: int, small_lam: float, longest: int) -> list[float]:
    """Return how far the drift would be off if the d queues of an arrival were distinct."""
    from supermarket.limits.mixing.exact import small_chain

    n, d = small_n, small_d
    states = small_chain(Supermarket(n, d, small_lam), longest).states
    counts = (states[:, :, np.newaxis] >= np.arange(longest + 2)).sum(axis=1)
    counts = counts[counts[:, longest] == 0]
    ways = np.array([math.comb(c, d) for c in range(n + 1)]) / math.comb(n, d) if n >= d else None
    if ways is None:
        return [1.0]
    rates = drift(Supermarket(math.inf, d, small_lam), counts)
    joins = small_lam * n * -np.diff((counts / n) ** d, axis=1)
    distinct = small_lam * n * -np.diff(ways[counts], axis=1)
    other = rates[:, 1:] - joins + distinct
    return [float(np.abs(other - rates[:, 1:]).max() / (n * (1 + small_lam)))]


def one_level_off(predicted: float, d: int) -> list[float]:
    """Return the value with d to the power of the level before, or of the next one."""
    return [predicted / d, predicted * d]


def slopes_of_others(
    predicted: float, lam: float, d: int, k: int, j: int, quantity: str
) -> list[float]:
    """Return the slope by A_k; 0 for a drift of Q_j alone; or, for the level before, that of w."""
    if quantity == "rate":
        return [float(modes(Supermarket(math.inf, d, lam), k).rates[j - 1])]
    return [0.0] if quantity == "next" else [1.0]


def as_at_the_start(at_start: float) -> float:
    """Return the ratio that was there at the start: nothing has moved yet."""
    return at_start


def power_of_choices(lam: float, d: int, k: int) -> float:
    """Return (lam d)**-(k-1), the limit of the slowest rate as (1-lam) d**(k-1) vanishes."""
    return (lam * d) ** (1 - k)


def unit_for_step(predicted: float, lam: float) -> list[float]:
    """Return the value without the n (1 + lam) steps in a unit of time: n for them."""
    return [predicted * (1 + lam), predicted / (1 + lam)]


def independent_copies(independent: float = math.nan) -> float:
    """Return the rate at which copies that share nothing meet."""
    return independent


def levels_beside(predicted: float) -> list[float]:
    """Return the exponent of d with one level less, and with one more."""
    return [predicted - 1, predicted + 1]


def half_a_logarithm(predicted: float) -> list[float]:
    """Return 1/2, for laws that differ by about sqrt(n) customers, and 0, for no logarithm."""
    return [predicted / 2, 0.0]


def other_bad_times(
    predicted: float, lam: float, quantity: str, least: float = math.nan, most: float = math.nan
) -> list[float]:
    """Return the slope without 1 + lam between steps and time, or the exponent of x log x."""
    if quantity == "slope":
        return [predicted / (1 + lam)]
    return [1 + math.log(math.log(most) / math.log(least)) / math.log(most / least)]


def other_growth(sizes: list[int]) -> list[float]:
    """Return the ratio of gains, later over earlier half, for log(n)**2 and for log log n."""
    first, middle, last = (math.log(sizes[i]) for i in (0, len(sizes) // 2, -1))
    each = (lambda x: x**2, math.log)
    return [(f(last) - f(middle)) / (f(middle) - f(first)) for f in each]


def sides_of_the_gap(predicted: float) -> list[float]:
    """Return the share longer than k at the lower side, none, and at the upper one, all."""
    return [0.0, 1.0]


def limit_over_drift(lam: float, d: int, k: int) -> float:
    """Return (lam d)**-(k-1) over the smallest eigenvalue of the linearised drift."""
    return power_of_choices(lam, d, k) * relaxation_time(Supermarket(math.inf, d, lam))


def other_multiples(predicted: float) -> list[float]:
    """Return 1 and 3 for the multiple 2 of a rate."""
    return [predicted - 1, predicted + 1]
