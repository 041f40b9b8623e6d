"""Alternatives to the mean field, its correction and the maximum queue with few choices."""

import math

import numpy as np

from supermarket.limits.mean_field.correction import mean_queue_correction
from supermarket.limits.mean_field.fixed_point import (
    fixed_point,
    mean_queue,
    mean_sojourn,
    trajectory,
)
from supermarket.models.jsq import Supermarket


def one_choice_less(lam: float, d: int, k: int) -> float:
    """Return the share of queues with at least k jobs with d - 1 choices; with 2 for d = 1."""
    return float(fixed_point(Supermarket(math.inf, _other(d), lam), k)[k])


def mean_with_one_choice_less(lam: float, d: int) -> float:
    """Return the mean number of jobs per queue with d - 1 choices; with 2 for d = 1."""
    return mean_queue(Supermarket(math.inf, _other(d), lam))


def sojourn_with_one_choice_less(lam: float, d: int) -> float:
    """Return the mean time in the system with d - 1 choices; with 2 for d = 1."""
    return mean_sojourn(Supermarket(math.inf, _other(d), lam))


def other_fixed_point(lam: float, d: int) -> float:
    """Return how far the fixed point with one choice less is away, at the level that differs most.

    It is that with 2 choices for d = 1.
    """
    here, other = (
        fixed_point(Supermarket(math.inf, choices, lam), 1000) for choices in (d, _other(d))
    )
    return float(np.max(np.abs(here - other)))


def path_with_one_choice_less(lam: float, d: int, time: float, k: int = 0) -> float:
    """Return v_k at a time after an empty start with d - 1 choices; for k = 0 the mean queue."""
    v = trajectory(Supermarket(math.inf, _other(d), lam), [time], levels=_levels(lam, k))[0]
    return float(v[k] if k else v[1:].sum())


def joined_with_one_choice_less(lam: float, d: int, k: int, time: float) -> float:
    """Return by what factor other jobs would make queues of k if d - 1 of the choices counted.

    The path is that of d choices from an empty start; with d = 1 it is as if 2 counted.
    """
    times = np.linspace(0.0, time, 401)
    v = trajectory(Supermarket(math.inf, d, lam), times, levels=_levels(lam, k))
    joined = [
        np.trapezoid(v[:, k - 1] ** choices - v[:, k] ** choices, times)
        for choices in (_other(d), d)
    ]
    return float(joined[0] / joined[1])


def uncorrected(lam: float, d: int, replacement: bool) -> list[float]:
    """Return no correction at all, and the one of the other rule of choice."""
    return [0.0, mean_queue_correction(Supermarket(math.inf, d, lam, replacement=not replacement))]


def one_queue_in_n(n: int, lam: float) -> float:
    """Return the length that one queue in n has, log n / log(1/lam): the law without its mean."""
    return math.log(n) / -math.log(lam)


def growth_with_two_choices(lam: float, n: int, n_low: int) -> float:
    """Return how fast the largest k with n pi(k) >= 1 grows with log n for two choices."""
    high, low = (_smooth_largest(size, lam, 2) for size in (n, n_low))
    return (high - low) / math.log(n / n_low)


def growth_with_one_choice_less(d: int) -> float:
    """Return 1 / log(d - 1), which is 1 / log 3 for d = 2."""
    return 1 / math.log(d - 1 if d > 2 else 3)


def step_with_other_choices(n: int, lam: float, d: int, k: int) -> list[float]:
    """Return the share of time with a queue of k jobs at this n, with d - 1 and d + 1 choices."""
    return [
        -math.expm1(-n * fixed_point(Supermarket(math.inf, c, lam), k)[k]) for c in (d - 1, d + 1)
    ]


def _other(d: int) -> int:
    return d - 1 if d > 1 else 2


def _levels(lam: float, k: int) -> int:
    """Return how many levels the equation needs, with one choice too."""
    return max(k + 1, int(28 / -math.log(lam)) + 2)


def _smooth_largest(n: int, lam: float, d: int) -> float:
    """Return the k with n pi(k) = 1, between whole numbers as well."""
    return math.log1p((d - 1) * math.log(n) / -math.log(lam)) / math.log(d)
