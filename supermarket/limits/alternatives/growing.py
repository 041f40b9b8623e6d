"""What would be so instead, for the statements on growing numbers of choices."""

import math
from functools import cache

from supermarket.limits.growing.diffusions import Overflow
from supermarket.limits.growing.pathwise import mean_at, moments_at, three_limits
from supermarket.limits.growing.stationary import stationary_moments

_NEXT = {
    "linear": ("exponential",),
    "exponential": ("linear", "reflected"),
    "reflected": ("exponential",),
}


def _neighbours(regime: str, alpha: float, c: float = 1.0) -> list[Overflow]:
    """Return the limits of the regimes next to this one, at d / sqrt(n) = c of order 1."""
    three = three_limits(math.exp(-alpha) if regime == "reflected" else alpha, c)
    return [three[name] for name in _NEXT[regime]]


def stationary(regime: str, quantity: str, alpha: float, c: float = 1.0) -> list[float]:
    """Return a stationary moment, k = 1, in the neighbouring regimes."""
    place = ("E Z1", "E Z2", "Var Z1", "Cov(Z1, Z2)", "Var Z2").index(quantity)
    return [_moments(law)[place] for law in _neighbours(regime, alpha, c)]


@cache
def _moments(law: Overflow) -> tuple[float, ...]:
    return tuple(stationary_moments(law))


def after_a_time(
    regime: str, quantity: str, alpha: float, time: float, c: float = 1.0
) -> list[float]:
    """Return E Z_2 or a second moment of (Z_2, Z_3) at a time, k = 2, in neighbouring regimes."""
    laws = _neighbours(regime, alpha, c)
    if quantity == "E Z2":
        return [mean_at(law, time) for law in laws]
    place = ("E Z2^2", "E Z2 Z3", "E Z3^2").index(quantity)
    return [moments_at(law, time)[place] for law in laws]


def noise_of_its_own(predicted: float) -> float:
    """Return the noise of the second level if it had a Brownian motion of the first one's size."""
    return predicted + 2.0


def departures_alone(predicted: float) -> float:
    """Return the noise if arrivals were as regular as a clock."""
    return predicted / 2


def no_noise_of_its_own(predicted: float, lam: float) -> float:
    """Return the variance of the level below if it only followed the next one."""
    return predicted - (1 - lam)


def not_drained(predicted: float, start: float) -> float:
    """Return what the level would still be if it did not drain."""
    return start


def slope_of_log_over_d(d_low: int, d_high: int) -> float:
    """Return the slope of log(log d / d) against log d between two numbers of choices."""
    return -1 + math.log(math.log(d_high) / math.log(d_low)) / math.log(d_high / d_low)


def replaced(predicted: float, other: float) -> float:
    """Return the value with the choices made the other way, or with the term left out."""
    return other


def endless(lam: float, share: float) -> float:
    """Return how many choices an endless system would need."""
    return math.log(share) / math.log(lam)


def growing_hypotheses(n: int, d: int, replacement: bool = False) -> list[str]:
    """Return what fails of the paper's model: distinct choices, at most as many as queues."""
    failing = []
    if replacement:
        failing.append("the choices are distinct")
    if d > n:
        failing.append("$d_n \\le n$")
    return failing
