"""What would be so instead, for the statements on growing numbers of choices."""

import math
from functools import cache

import numpy as np

from supermarket.theory.growing_diffusions import (
    Linear,
    Overflow,
    Reflected,
    exponential,
    linear_covariance,
    paths,
)
from supermarket.theory.growing_stationary import stationary_moments

_NEXT = {
    "linear": ("exponential",),
    "exponential": ("linear", "reflected"),
    "reflected": ("exponential",),
}


def limits(alpha: float, c: float = 1.0, barrier: float | None = None) -> dict[str, Overflow]:
    """Return the three limits with the same slope alpha, or barrier, of the overflow.

    A barrier b and a slope belong together by alpha = exp(-c b).
    """
    alpha = alpha if barrier is None else math.exp(-c * barrier)
    soft = exponential(alpha, c)
    return {"linear": Linear(alpha), "exponential": soft, "reflected": Reflected(soft.barrier)}


def neighbours(regime: str, alpha: float, c: float = 1.0) -> list[Overflow]:
    """Return the limits of the regimes next to this one, at d / sqrt(n) = c of order 1."""
    three = limits(alpha, c) if regime != "reflected" else limits(0.0, 1.0, alpha)
    return [three[name] for name in _NEXT[regime]]


def stationary(regime: str, quantity: str, alpha: float, c: float = 1.0) -> list[float]:
    """Return a stationary moment, k = 1, in the neighbouring regimes."""
    place = ("E Z1", "E Z2", "Var Z1", "Cov(Z1, Z2)", "Var Z2").index(quantity)
    return [_moments(law)[place] for law in neighbours(regime, alpha, c)]


@cache
def _moments(law: Overflow) -> tuple[float, ...]:
    return tuple(stationary_moments(law))


def after_a_time(
    regime: str, quantity: str, alpha: float, time: float, c: float = 1.0
) -> list[float]:
    """Return a second moment of (Z_2, Z_3) about 0 at a time, k = 2, in neighbouring regimes."""
    place = ("E Z2^2", "E Z2 Z3", "E Z3^2").index(quantity)
    return [second_moments(law, time)[place] for law in neighbours(regime, alpha, c)]


@cache
def second_moments(law: Overflow, time: float, k: int = 2) -> tuple[float, float, float]:
    """Return E Z_k^2, E Z_k Z_(k+1), E Z_(k+1)^2 at a time from a start at 0."""
    if isinstance(law, Linear):
        covariance = linear_covariance(law.alpha, k, time)
        return float(covariance[0, 0]), float(covariance[0, 1]), float(covariance[1, 1])
    x, y = paths(law, [time], seed=1, replicas=100_000, k=k, step=0.01)[:, 0].T
    return float(np.mean(x * x)), float(np.mean(x * y)), float(np.mean(y * y))


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


def log_over_d(d: int) -> float:
    """Return d times the distance if it were log d / d."""
    return math.log(d)


def release_without_root(d: int) -> list[float]:
    """Return d times the distance if it were log d / d, or of the order 1 / d."""
    return [math.log(d), 1.0]


def without_displacement(predicted: float, hard: float) -> float:
    """Return the soft barrier's own place, where the overflow has the rate 1 / c."""
    return hard


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
