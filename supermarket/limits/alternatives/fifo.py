"""What the claims on FIFO queues with general service times are told apart from."""

import math

import scipy

from supermarket.limits.fifo.depth import share_with
from supermarket.limits.fifo.recursions import characteristic_roots
from supermarket.limits.fifo.tails import critical_beta, power_law_exponent, q_exponent
from supermarket.limits.mean_field.fixed_point import fixed_point
from supermarket.models.jsq import Supermarket
from supermarket.service import Lomax
from supermarket.service.named import named_law

_OFF = 0.05  # of the tail index


def q_nearby(beta: float, d: int) -> list[float]:
    """Return q for a tail index that is 0.05 smaller or larger; 0 where that is on the line."""
    return [q_exponent(b, d) if b > critical_beta(d) else 0.0 for b in (beta - _OFF, beta + _OFF)]


def nearly_one(d: int) -> float:
    """Return q for the least whole tail index at which it is less than 0.001 below 1."""
    return next(q for beta in range(3, 40) if (q := q_exponent(beta, d)) > 1 - 1e-3)


def gamma_of_fewer(beta: float, d: int) -> list[float]:
    """Return the exponents of one choice, beta - 1, and of one choice less."""
    return [beta - 1, *([power_law_exponent(beta, d - 1)] if d > 2 else [])]


def constant_of_one(beta: float, d: int, lam: float) -> float:
    """Return K if jobs came to a queue of length k at the rate lam P_k^(d-1), without the d."""
    u = 1 - (d - 1) * (beta - 1)
    c = Lomax(beta).tail_constant
    return float((lam * c / (beta - 1) * (lam / u) ** (beta - 1)) ** (1 / u))


def rate_of_the_mean(d: int, lam: float, weight: float) -> float:
    """Return the rate at the line if the mean of W_r^(-s) were that power of the mean of W_r."""
    s, c = 1 / (d - 1), weight * Lomax(critical_beta(d)).tail_constant

    def excess(r: float) -> float:
        powers = s * math.log(math.expm1(-d * r) / math.expm1(-r))
        mean = math.log(-math.expm1(-(d - 1) * r))
        return math.log(c * (d - 1)) + (1 + s) * math.log(lam) + r + powers + s * mean

    return float(scipy.optimize.brentq(excess, 1e-9, 60.0))


def bare_prefactor(beta: float, lam: float) -> float:
    """Return the logarithm of the prefactor without its three Gamma functions."""
    return math.log(Lomax(beta).tail_constant) + beta * math.log(lam)


def sharp_without(beta: float) -> list[float]:
    """Return the ratio of P_k to the sharp form without its Gammas, and with Gamma(beta + 1)."""
    part = beta % 1
    reflected = math.pi / math.sin(math.pi * part) if part else 1.0
    bare = reflected / math.gamma(beta)
    return [1 / beta, *([bare] if abs(bare - 1) > 1e-9 else [])]


def growth_nearby(beta: float, d: int) -> list[float]:
    """Return 0 (no growth), and the growth at a tail index that is 0.05 smaller or larger."""
    roots = [characteristic_roots(beta + off, d)[0].real for off in (-_OFF, _OFF)]
    return [0.0, *(math.log(root) for root in roots)]


def other_part(beta: float, d: int) -> list[float]:
    """Return the right-hand side over the left of (27) if l were one smaller or one larger."""
    x = d ** -q_exponent(beta, d)
    return [x, 1 / x]


def exponential_instead(predicted: float, d: int, lam: float, k: int) -> list[float]:
    """Return P_k (or, for k = 0, the mean number of jobs) of exponential service with d and d - 1.

    Where the law is exponential only the latter; with two choices for one.
    """
    tails = [fixed_point(Supermarket(math.inf, choices, lam), 400) for choices in (d, d - 1 or 2)]
    found = [float(tail[k]) if k else float(tail[1:].sum()) for tail in tails]
    return [x for x in found if abs(x - predicted) > 1e-6 * predicted]


def one_choice_less(service: str, d: int, lam: float, k: int) -> float:
    """Return P_k of the same service law with one choice less; for one choice, with two."""
    law = named_law("service", service)
    return share_with(Supermarket(math.inf, d - 1 or 2, lam / law.mean, service=law), k)


def doubly_exponential(beta: float, d: int) -> list[str]:
    """Say so if the tail index is not above d / (d - 1)."""
    return [] if beta > critical_beta(d) else [r"$\beta > d/(d-1)$"]


def whole_index(beta: float, d: int) -> list[str]:
    """Say so if the tail index is not a whole number above d / (d - 1)."""
    return doubly_exponential(beta, d) + ([] if beta % 1 == 0 else [r"$\beta$ is a whole number"])


def fractional_index(beta: float, d: int) -> list[str]:
    """Say so if the tail index is a whole number, or not above d / (d - 1)."""
    return doubly_exponential(beta, d) + ([] if beta % 1 else [r"$\beta$ is not a whole number"])


def power_law(beta: float, d: int) -> list[str]:
    """Say so if the tail index is not strictly between 1 and d / (d - 1)."""
    return [] if 1 < beta < critical_beta(d) else [r"$1 < \beta < d/(d-1)$"]


def falling_hazard(service: str) -> list[str]:
    """Say so if the hazard rate of the service law may rise."""
    hazard = named_law("service", service).hazard
    return [] if hazard in ("decreasing", "constant") else ["the hazard rate does not increase"]
