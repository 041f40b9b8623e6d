"""The mean-field limit with exponential service: its ODE, its fixed point, the maximum queue.

Equation numbers are those of Brightwell & Luczak, arXiv:1201.5523.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from supermarket.limits.mean_field.flow import solved
from supermarket.models.jsq import Supermarket, numbers_of
from supermarket.validation import (
    ParameterError,
    affordable,
    increasing_times,
    integer,
    profile_of,
)

__all__ = [
    "fixed_point",
    "k_lambda_d",
    "log_fixed_point",
    "max_queue_hypothesis",
    "max_queue_law_one_choice",
    "mean_queue",
    "mean_sojourn",
    "relaxation_time",
    "trajectory",
]


def fixed_point(model: Supermarket, levels: int) -> NDArray[np.float64]:
    """Return the fixed point pi of the mean-field ODE, equation (1.2).

    pi(k) = lam ** (1 + d + ... + d**(k-1)), the share of queues with at least k jobs as n grows.

    Parameters
    ----------
    model : Supermarket
        Of exponential service; its n does not matter.
    levels : int
        Last level wanted, at least 0.

    Returns
    -------
    ndarray of float64, shape (levels + 1,)
        pi(0) = 1, ..., pi(levels). Below the smallest double it is 0: `log_fixed_point` goes on.

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> from supermarket import Supermarket, fixed_point
    >>> fixed_point(Supermarket(1000, 2, 0.7), 3).round(6).tolist()
    [1.0, 0.7, 0.343, 0.082354]
    """
    _, d, lam = numbers_of(model)
    exponents = _exponents(d, levels)
    with np.errstate(over="ignore"):
        return np.exp(exponents * math.log(lam))


def log_fixed_point(model: Supermarket, levels: int) -> NDArray[np.float64]:
    """Return log pi(0), ..., log pi(levels), finite at any depth (see `fixed_point`).

    Parameters
    ----------
    model : Supermarket
        Of exponential service; its n does not matter.

    Raises
    ------
    ParameterError
        If a parameter is out of range, or the logarithm itself is beyond the largest double: the
        sentence says how deep it goes.

    Examples
    --------
    >>> from supermarket import Supermarket, log_fixed_point
    >>> float(log_fixed_point(Supermarket(1000, 2, 0.7), 20)[20].round(2))
    -374000.43
    """
    _, d, lam = numbers_of(model)
    exponents = _exponents(d, levels)
    with np.errstate(over="ignore"):
        logs = exponents * math.log(lam)
    if not np.all(np.isfinite(logs)):
        deepest = int(np.flatnonzero(np.isfinite(logs))[-1])
        raise ParameterError(
            f"log pi({levels}) with d = {d} is beyond the largest double: "
            f"choose levels <= {deepest}."
        )
    return logs


def k_lambda_d(model: Supermarket) -> int:
    """Return k = ceil(log(1/(1-lam)) / log d), the maximum queue length of Theorem 1.2.

    Computed in exact arithmetic as the smallest k with d**k >= 1/(1-lam), `lam` taken as the
    number itself or as the decimal that it prints as, whichever is smaller: so k = 1 at lam = 0.9,
    d = 10, where a rounded logarithm gives 2, and k = 20 at lam = 1 - 2**-20, d = 2.

    Parameters
    ----------
    model : Supermarket
        Of exponential service; its n does not matter.

    Raises
    ------
    ParameterError
        If lam is not in (0, 1), or d < 2.

    Examples
    --------
    >>> from supermarket import Supermarket, k_lambda_d
    >>> k_lambda_d(Supermarket(1000, 50, 0.99)), k_lambda_d(Supermarket(1000, 10, 0.9))
    (2, 1)
    """
    _, d, lam = numbers_of(model, fewest=2)
    from fractions import Fraction  # loads decimal numbers too

    spare = 1 - min(Fraction(lam), Fraction(repr(lam)))
    k = 1
    while d**k * spare < 1:
        k += 1
    return k


def max_queue_hypothesis(model: Supermarket) -> int:
    """Return the largest k with n pi(k) >= 1, the general hypothesis on the maximum queue length.

    Brightwell & Luczak expect the maximum in equilibrium within 1 of the largest k for which an
    inequality holds that is not quoted here. That at least one queue is as long on average,
    n pi(k) >= 1, is this project's reading of it.

    Parameters
    ----------
    model : Supermarket
        Of exponential service.

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> from supermarket import Supermarket, max_queue_hypothesis
    >>> max_queue_hypothesis(Supermarket(10**4, 2, 0.9))
    6
    """
    n, d, lam = numbers_of(model, finite=True)
    largest_exponent = math.log(n) / -math.log(lam)
    if d == 1:
        return int(largest_exponent)
    k, exponent = 0, 1  # pi(k + 1) = lam ** exponent
    while exponent <= largest_exponent:
        k += 1
        exponent = 1 + d * exponent
    return k


def max_queue_law_one_choice(model: Supermarket) -> NDArray[np.float64]:
    """Return the exact equilibrium law of the maximum of n queues with one choice.

    With d = 1 the queues are independent M/M/1 queues: P(max <= m) = (1 - lam**(m + 1)) ** n.

    Parameters
    ----------
    model : Supermarket
        Of exponential service.

    Returns
    -------
    ndarray of float64, shape (levels,)
        P(max = 0), P(max = 1), ..., up to where less than 1e-18 is left.

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> from supermarket import Supermarket
    >>> from supermarket.limits.mean_field.fixed_point import max_queue_law_one_choice
    >>> max_queue_law_one_choice(Supermarket(2, 1, 0.5))[:3].tolist()
    [0.25, 0.3125, 0.203125]
    """
    n, d, lam = numbers_of(model, finite=True)
    if d > 1:
        raise ParameterError(f"d = {d} is out of range: this is the law for d = 1.")
    levels = int((math.log(n) + 42) / -math.log(lam)) + 1
    affordable(f"a law of {levels:.3g} levels", float(levels), "choose a smaller lam", 10**7)
    at_most = np.exp(n * np.log1p(-(lam ** np.arange(1.0, levels + 1))))
    return np.diff(at_most, prepend=0.0)


def mean_queue(model: Supermarket) -> float:
    """Return the mean number of jobs a queue at the fixed point, the sum of pi(k) over k >= 1.

    Parameters
    ----------
    model : Supermarket
        Of exponential service; its n does not matter.

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> from supermarket import Supermarket, mean_queue
    >>> [round(mean_queue(Supermarket(1000, d, 0.9)), 6) for d in (2, 1)]
    [2.352652, 9.0]
    """
    _, d, lam = numbers_of(model)
    if d == 1:
        return lam / (1 - lam)
    total, exponent, term = 0.0, 1.0, lam
    while term > 1e-18 * total:
        total += term
        exponent = 1.0 + d * exponent
        term = math.exp(exponent * math.log(lam))
    return total


def mean_sojourn(model: Supermarket) -> float:
    """Return the mean time a job spends in the system, in mean service times (Little's law).

    Parameters
    ----------
    model : Supermarket
        Of exponential service; its n does not matter.

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> from supermarket import Supermarket, mean_sojourn
    >>> [round(mean_sojourn(Supermarket(1000, d, 0.9)), 6) for d in (2, 1)]
    [2.614057, 10.0]
    """
    return mean_queue(model) / model.lam


def relaxation_time(model: Supermarket) -> float:
    r"""Return the time in which the mean-field ODE forgets its start, near the fixed point.

    It is 1 / mu, in mean service times, with mu the smallest eigenvalue of the drift (1.1)
    linearised at the fixed point. A deviation w of the profile drifts by

    .. math::
        \dot w_i = a_{i-1} w_{i-1} - (1 + a_i) w_i + w_{i+1}, \qquad a_i = \lambda d \pi(i)^{d-1},

    w_0 = 0. For d = 1 the time is that of one M/M/1 queue, (1 - sqrt(lam))**-2; for lam near 1 and
    large d it is close to (lam d)**(k-1), k = k_{lam,d}. A finite system may take longer: see
    `supermarket.limits.saturation.theorem.PowerCase.relaxation_time`.

    Parameters
    ----------
    model : Supermarket
        Of exponential service; its n does not matter.

    Raises
    ------
    ParameterError
        If lam is not in (0, 1), or d < 1.

    Examples
    --------
    >>> from supermarket import Supermarket, relaxation_time
    >>> round(relaxation_time(Supermarket(1000, 2, 0.9)), 2)
    13.25
    """
    _, d, lam = numbers_of(model)
    if d == 1:
        if lam > 1 - 1e-6:  # where the root of lam would lose its digits
            return ((1 + math.sqrt(lam)) / (1 - lam)) ** 2
        return (1 - math.sqrt(lam)) ** -2
    rates = []  # a_1, a_2, ... as far as anything moves up
    while not rates or rates[-1] > 1e-20:
        rates.append(lam * d * fixed_point(model, len(rates) + 1)[-1] ** (d - 1))
    # In units in which it is symmetric, minus the drift is B B^T with B = I - (superdiagonal of the
    # sqrt(rates)). The inverse of B has positive entries only, so nothing cancels in its norm.
    logs = np.append(0.0, np.cumsum(np.log(np.maximum(rates, 1e-300)) / 2))
    inverse = np.triu(np.exp(np.minimum(logs - logs[:, np.newaxis], 300.0)))
    return float(np.linalg.norm(inverse, 2) ** 2)


def trajectory(
    model: Supermarket, times: ArrayLike, *, start: ArrayLike = (1.0,), levels: int | None = None
) -> NDArray[np.float64]:
    """Solve the mean-field ODE, equation (1.1).

    dv_k/dt = lam (v_{k-1}**d - v_k**d) - (v_k - v_{k+1}) for k >= 1, with v_0 = 1.

    Parameters
    ----------
    model : Supermarket
        Of exponential service; its n does not matter.
    times : array_like of float, shape (m,)
        Times in mean service times, not negative, increasing.
    start : array_like of float
        v(0): shares 1 = v_0 >= v_1 >= ... >= 0, zero beyond the last given; empty by default.
    levels : int, optional
        Levels kept; v is taken as 0 beyond. By default enough that what is left out stays below
        1e-12 at all times.

    Returns
    -------
    ndarray of float64, shape (m, levels + 1)
        v at each time, with relative and absolute tolerances of 1e-9 and 1e-12 in the solver.

    Raises
    ------
    ParameterError
        If a parameter is out of range, or `start` is not a profile.

    Examples
    --------
    >>> from supermarket import Supermarket, trajectory
    >>> trajectory(Supermarket(1000, 2, 0.9), [1, 5], levels=8)[:, :4].round(3).tolist()
    [[1.0, 0.509, 0.079, 0.001], [1.0, 0.784, 0.459, 0.142]]
    """
    _, d, lam = numbers_of(model)
    times = increasing_times(times)
    v = profile_of("start", start)
    if levels is None:
        # An upper bound: the given jobs pushed up by what the fixed point holds above 1e-12.
        levels = len(v) - 1 + max_queue_hypothesis(Supermarket(10**12, d, lam)) + 2
    levels = integer("levels", levels, max(1, len(v) - 1), 10**6)
    padded = np.zeros(levels + 2)
    padded[: len(v)] = v

    def slope(_time: float, inner: NDArray[np.float64]) -> NDArray[np.float64]:
        padded[1:-1] = inner
        return lam * -np.diff(padded[:-1] ** d) + np.diff(padded[1:])

    # dv_k/dt depends on the neighbours of v_k alone.
    return np.column_stack(
        [np.ones(len(times)), solved(slope, times, padded[1:-1].copy(), lband=1, uband=1)]
    )


def _exponents(d: int, levels: int) -> NDArray[np.float64]:
    """Return 1 + d + ... + d**(k-1) for k = 0..levels, checked."""
    levels = integer("levels", levels, 0, 10**7)
    if d == 1:
        return np.arange(levels + 1, dtype=np.float64)
    exponents = np.full(levels + 1, np.inf)
    exponent = 0.0
    for k in range(levels + 1):
        exponents[k] = exponent
        if math.isinf(exponent):
            break
        exponent = 1.0 + d * exponent
    return exponents
