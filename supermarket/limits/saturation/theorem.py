r"""Arrival rate tending to one: Theorem 1.2 of Brightwell & Luczak and its power family.

Near saturation a share of about (1-lam) (lam d)**(j-1) of the queues is shorter than j, for j up to
k = k_{lam,d}, and no queue is longer than k. Equation numbers are those of arXiv:1201.5523. For
queues of each length everything is given as the share of *shorter* queues, 1 - u_j, which is tiny:
u_j itself would lose its digits.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from supermarket.limits.mean_field.fixed_point import fixed_point, k_lambda_d
from supermarket.limits.saturation.drifts import log_of, stationary_covariance
from supermarket.models.jsq import Supermarket, numbers_of
from supermarket.validation import (
    MOST_QUEUES,
    ParameterError,
    arrival_rate,
    called,
    counts_of,
    integer,
    real,
)

__all__ = [
    "fewest_queues",
    "fixed_point_shorter",
    "hypotheses",
    "in_good_set",
    "largest_delta",
    "leading_shorter",
    "length_counts",
    "linear_good_set_share",
    "linear_shorter",
    "log_rate_bound",
    "log_rate_of_longer",
    "mean_of_longer",
    "power_case",
    "shorter_counts",
    "smallest_eps",
    "smallest_eps_of_lengths",
]

LARGEST_EPS = 0.1


class PowerCase(NamedTuple):
    """One member of the family lam = 1 - n**-alpha, d = n**beta, rounded to a whole d.

    Attributes
    ----------
    n, d, lam
        Number of queues, choices and arrival rate.
    k : int
        k_{lam,d}, the maximum queue length of Theorem 1.2; ceil(alpha / beta) but for the rounding.
    """

    n: int
    d: int
    lam: float
    k: int

    @property
    def model(self) -> Supermarket:
        """The supermarket model with these n, d and lam."""
        return Supermarket(self.n, self.d, self.lam)

    @property
    def relaxation_time(self) -> float:
        """Order of the slowest relaxation, in mean service times.

        The longer of (lam d)**(k-1), section 2 of the paper, and 1 / (n (1-lam)**2): where that is
        above 1 the number of jobs wanders by more than the number of idle servers, as in a single
        queue in heavy traffic (derived here).
        """
        wandering = 1 / (self.n * (1 - self.lam) ** 2)
        return max((self.lam * self.d) ** (self.k - 1), wandering)

    @property
    def balanced_share(self) -> float:
        """Share of queues of length exactly k at least to be expected, 1 - 2 (1-lam) d**(k-1).

        In the family, 1 - 2 n**(-alpha + (k-1) beta), as in the abstract of G. Brightwell,
        M. Fairthorne and M. J. Luczak, J. Stat. Phys. 173 (2018) 1149.
        """
        return 1 - 2 * (1 - self.lam) * float(self.d) ** (self.k - 1)


def power_case(n: int, alpha: float, beta: float) -> PowerCase:
    """Return the member (n, alpha, beta) of the family lam = 1 - n**-alpha, d = n**beta.

    Parameters
    ----------
    n : int
        Number of queues, at least 2.
    alpha, beta : float
        In (0, 1).

    Raises
    ------
    ParameterError
        If a parameter is out of range, or n**beta rounds to d = 1.

    Examples
    --------
    >>> from supermarket.limits.saturation.theorem import power_case
    >>> power_case(10**4, 0.5, 0.4)
    PowerCase(n=10000, d=40, lam=0.99, k=2)
    """
    n = integer("n", n, 2, MOST_QUEUES)
    alpha = real("alpha", alpha, 0.0, 1.0, open_low=True, open_high=True)
    beta = real("beta", beta, 0.0, 1.0, open_low=True, open_high=True)
    d = round(n**beta)
    if d < 2:
        raise ParameterError(f"n**beta = {n**beta:.3g} rounds to d = 1: choose a larger n or beta.")
    lam = arrival_rate(1 - n**-alpha)
    return PowerCase(n, d, lam, k_lambda_d(Supermarket(n, d, lam)))


@dataclass(frozen=True)
class Hypothesis:
    """One hypothesis of Theorem 1.2, as `left <= right`.

    Attributes
    ----------
    name, statement : str
    left, right : float
    """

    name: str
    statement: str
    left: float
    right: float

    @property
    def holds(self) -> bool:
        """Whether left <= right."""
        return self.left <= self.right

    @property
    def ratio(self) -> float:
        """How many times left is what it may be at most: the hypothesis holds up to 1."""
        return self.left / self.right


def hypotheses(
    model: Supermarket, eps: float, *, phi: float | Callable[[int], float] = 1.0
) -> list[Hypothesis]:
    r"""Return the hypotheses of Theorem 1.2 for k = k_{lam,d}, each with both its sides.

    .. math::
        (A)\ 2 \log^2 n \le d^k (1-\lambda), \quad
        (B)\ 100\,k\,(1-\lambda)\,d^{k-1} \le \varepsilon \le 1/10,\ k \ge 2, \quad
        (C)\ (1-\lambda)^{-1} \le \varphi\, \varepsilon \sqrt{n d}.

    Parameters
    ----------
    model : Supermarket
        Of exponential service.
    eps : float
        Above 0; more than 1/10 is allowed, and fails.
    phi : float or callable
        The factor in (C), or a function of n that gives it. *The paper's own is not known here.*
        That 1/(1-lam) is to be small against sqrt(n d) is what it says of the power family; the
        factor eps comes from the width of N^eps. For k = 2 it cannot be constant if the good set is
        to last for exp(c log(n)**2): with phi = 1 its edges may be 5 standard deviations of the
        linear noise away, which is passed after some exp(12.5) relaxation times. So a multiple of
        1 / log n belongs to it (derived here): pass ``lambda n: 1 / math.log(n)`` to try that.

    Returns
    -------
    list of Hypothesis
        "A", the three parts of "B", and "C", in this order.

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> from supermarket import Supermarket
    >>> from supermarket.limits.saturation.theorem import hypotheses
    >>> [h.holds for h in hypotheses(Supermarket(10**17, 8_000_000, 1 - 6e-11), 0.1)]
    [True, True, True, True, True]
    >>> [h.name for h in hypotheses(Supermarket(10**8, 300, 1 - 1 / 3000), 0.1) if not h.holds]
    ['A', 'B']
    """
    n, d, lam = numbers_of(model, fewest=2, finite=True)
    eps = real("eps", eps, 0.0, open_low=True)
    factor = real("phi", called("phi", phi, n) if callable(phi) else phi, 0.0, open_low=True)
    k, spare = k_lambda_d(model), 1 - lam
    named = "" if factor == 1 else f"{factor:.3g} "
    return [
        Hypothesis("A", "2 log²n ≤ d^k (1 − λ)", 2 * math.log(n) ** 2, spare * float(d) ** k),
        Hypothesis("B", "100 k (1 − λ) d^(k−1) ≤ ε", 100 * k * spare * float(d) ** (k - 1), eps),
        Hypothesis("B, eps", "ε ≤ 1/10", eps, LARGEST_EPS),
        Hypothesis("B, k", "2 ≤ k", 2.0, float(k)),
        Hypothesis("C", f"1/(1 − λ) ≤ {named}ε √(n d)", 1 / spare, factor * eps * math.sqrt(n * d)),
    ]


def fewest_queues(eps: float = LARGEST_EPS, phi: float = 1.0) -> float:
    r"""Return the smallest n at which the hypotheses of Theorem 1.2 can be met, for some d and lam.

    (A) and (B) ask for d >= 200 k log(n)**2 / eps, and (B) and (C) for

    .. math::
        \sqrt{n d} \ge \frac{100\,k\,d^{k-1}}{\varphi\,\varepsilon^2}:

    the fewest choices are best, and k = 2.

    Parameters
    ----------
    eps : float
        In (0, 1/10].
    phi : float
        The factor in (C), see `hypotheses`.

    Returns
    -------
    float

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> from supermarket.limits.saturation.theorem import fewest_queues
    >>> f"{fewest_queues():.3g}"
    '1.99e+15'
    """
    eps = real("eps", eps, 1e-100, LARGEST_EPS)
    phi = real("phi", phi, 1e-100, 100.0)
    least = math.inf
    for k in range(2, 10):
        # In logarithms: n = (100 k / (phi eps**2))**2 d**(2k-3), d = 200 k log(n)**2 / eps.
        log_n, before = 10.0, 0.0
        while abs(log_n - before) > 1e-13 * abs(log_n):
            before = log_n
            log_d = math.log(200 * k * log_n**2 / eps)
            log_n = 2 * math.log(100 * k / (phi * eps**2)) + (2 * k - 3) * log_d
        least = min(least, log_n)
    if least > 709:
        raise ParameterError(
            f"eps = {eps:g} with phi = {phi:g} takes exp({least:.4g}) queues, more than a double "
            "holds: choose a larger eps or phi."
        )
    return math.exp(least)


def largest_delta(alpha: float, beta: float) -> float:
    """Return how fast N^eps may narrow in the power family: eps = n**-delta, delta below this.

    It is min(alpha - (k-1) beta, (1 + beta)/2 - alpha), k = ceil(alpha / beta): the first from (B),
    the second from (C) with a constant factor (derived here; the paper's range is not known). At or
    below 0 there is none.

    Parameters
    ----------
    alpha, beta : float
        In (0, 1).

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> from supermarket.limits.saturation.theorem import largest_delta
    >>> round(largest_delta(0.6, 0.45), 3)
    0.125
    """
    alpha = real("alpha", alpha, 0.0, 1.0, open_low=True, open_high=True)
    beta = real("beta", beta, 0.0, 1.0, open_low=True, open_high=True)
    k = math.ceil(alpha / max(beta, 1e-300))
    return min(alpha - (k - 1) * beta, (1 + beta) / 2 - alpha)


def smallest_eps(model: Supermarket, counts: ArrayLike) -> NDArray[np.float64]:
    """Return the smallest eps for which a state is in N^eps(n, d, lam, k_{lam,d}).

    A state is in N^eps if no queue is longer than k and the number of queues shorter than j is
    within a factor 1 +- 5 eps of n (1-lam) (lam d)**(j-1), for j = 1..k. The paper defines this for
    eps up to 1/10; what is returned may be larger.

    Parameters
    ----------
    model : Supermarket
        Of exponential service; its n does not matter.
    counts : array_like, shape (levels,) or (m, levels)
        ``counts[..., i]`` is the number of queues with length at least i, such as the rows of
        `Run.path`; missing levels count as 0. Shares will do instead of numbers, with fewer
        digits.

    Returns
    -------
    ndarray of float64, shape () or (m,)
        Infinite where a queue is longer than k.

    Raises
    ------
    ParameterError
        If a parameter is out of range, or the counts increase.

    Examples
    --------
    >>> from supermarket import Supermarket
    >>> from supermarket.limits.saturation.theorem import smallest_eps
    >>> states = [[10000, 9990, 9500, 0], [10000, 9990, 9500, 1]]
    >>> smallest_eps(Supermarket(10000, 50, 0.999), states).round(3).tolist()
    [0.0, inf]
    """
    padded, k = _states(model, counts)
    shorter = padded[..., :1] - padded[..., 1 : k + 1]
    expected = leading_shorter(model, k)[1:]
    off = np.abs(shorter / (padded[..., :1] * expected) - 1).max(axis=-1) / 5
    return np.where(padded[..., k + 1] > 0, np.inf, off)


def in_good_set(model: Supermarket, counts: ArrayLike, eps: float) -> NDArray[np.bool_]:
    """Return whether a state, or each of many, is in N^eps: `smallest_eps` is at most eps.

    Parameters
    ----------
    model : Supermarket
        Of exponential service; its n does not matter.

    Raises
    ------
    ParameterError
        As in `smallest_eps`, or if eps is not in (0, 1/10].

    Examples
    --------
    >>> from supermarket import Supermarket
    >>> from supermarket.limits.saturation.theorem import in_good_set
    >>> bool(in_good_set(Supermarket(1000, 10, 0.9), [10**6, 0.9 * 10**6, 0], 0.1))
    True
    """
    eps = real("eps", eps, 0.0, LARGEST_EPS, open_low=True)
    return smallest_eps(model, counts) <= eps


class Window(NamedTuple):
    """Predicted numbers of queues and the range that N^eps leaves to them.

    Attributes
    ----------
    low, leading, high : ndarray of float64
    """

    low: NDArray[np.float64]
    leading: NDArray[np.float64]
    high: NDArray[np.float64]


def shorter_counts(model: Supermarket, eps: float) -> Window:
    """Return the numbers of queues shorter than j, j = 1..k, in N^eps.

    They are n (1-lam) (lam d)**(j-1) up to a factor 1 +- 5 eps, item (b) after the definition.

    Parameters
    ----------
    model : Supermarket
        Of exponential service.
    eps : float
        In (0, 1/10].

    Returns
    -------
    Window
        Of shape (k,); entry j - 1 is that of j.

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> from supermarket import Supermarket, shorter_counts
    >>> shorter_counts(Supermarket(10**6, 50, 0.999), 0.1).high.round().tolist()
    [1500.0, 74925.0]
    """
    n, _, _ = numbers_of(model, fewest=2, finite=True)
    eps = real("eps", eps, 0.0, LARGEST_EPS, open_low=True)
    leading = n * leading_shorter(model, k_lambda_d(model))[1:]
    return Window((1 - 5 * eps) * leading, leading, (1 + 5 * eps) * leading)


def length_counts(model: Supermarket, eps: float) -> Window:
    """Return the numbers of queues of length exactly 0, ..., k in N^eps.

    Empty queues: those shorter than 1. Length j = 1..k-1: n (1-lam) (lam d)**j up to 1 +- 6 eps,
    item (d) after the definition, which asks for eps lam d >= 2. Length k: all others, those
    shorter than k taken from n.

    Parameters
    ----------
    model : Supermarket
        Of exponential service.
    eps
        As in `shorter_counts`.

    Returns
    -------
    Window
        Of shape (k + 1,).

    Raises
    ------
    ParameterError
        If a parameter is out of range, or eps lam d < 2 and k > 1.

    Examples
    --------
    >>> from supermarket import Supermarket
    >>> from supermarket.limits.saturation.theorem import length_counts
    >>> [f"{x:.4g}" for x in length_counts(Supermarket(10**17, 8_000_000, 1 - 6e-11), 0.1).leading]
    ['6e+06', '4.8e+13', '9.995e+16']
    """
    n, d, lam = numbers_of(model, finite=True)
    shorter, eps = shorter_counts(model, eps), float(eps)
    k = len(shorter.leading)
    if k > 1 and eps * lam * d < 2:
        raise ParameterError(
            f"eps lam d = {eps * lam * d:.3g} is below 2, and N^eps gives no range for single "
            f"lengths: choose eps >= {2 / (lam * d):.3g}."
        )
    middle = shorter.leading[1:]
    return Window(
        np.array([shorter.low[0], *(1 - 6 * eps) * middle, n - shorter.high[-1]]),
        np.array([shorter.leading[0], *middle, n - shorter.leading[-1]]),
        np.array([shorter.high[0], *(1 + 6 * eps) * middle, n - shorter.low[-1]]),
    )


def smallest_eps_of_lengths(model: Supermarket, counts: ArrayLike) -> NDArray[np.float64]:
    """Return the smallest eps with which item (d) holds for a state: single lengths below k.

    The number of queues of length exactly j, j = 1..k-1, is within a factor 1 +- 6 eps of
    n (1-lam) (lam d)**j. For a state of N^eps it follows where eps lam d >= 2.

    Parameters
    ----------
    model : Supermarket
        Of exponential service; its n does not matter.
    counts
        As in `smallest_eps`.

    Returns
    -------
    ndarray of float64, shape () or (m,)
        0 for k = 1, where there is no such length.

    Raises
    ------
    ParameterError
        As in `smallest_eps`.

    Examples
    --------
    >>> from supermarket import Supermarket
    >>> from supermarket.limits.saturation.theorem import smallest_eps_of_lengths
    >>> shop = Supermarket(10000, 50, 0.999)
    >>> float(smallest_eps_of_lengths(shop, [10000, 9990, 9400, 0]).round(3))
    0.03
    """
    padded, k = _states(model, counts)
    exactly = padded[..., 1:k] - padded[..., 2 : k + 1]
    expected = leading_shorter(model, k)[2:]
    off = np.abs(exactly / (padded[..., :1] * expected) - 1) / 6
    return off.max(axis=-1, initial=0.0)


def linear_good_set_share(model: Supermarket, eps: float, *, independent: bool = False) -> float:
    """Return the probability of the edges of N^eps in the linear noise about the fixed point.

    Queues longer than k are left out, so it is good where they are rare.

    Parameters
    ----------
    model : Supermarket
        Of exponential service.
    eps : float
        In (0, 1/10].
    independent : bool
        Whether to take the noise of n independent queues instead, as a thing to compare with.

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> from supermarket import Supermarket
    >>> from supermarket.limits.saturation.theorem import linear_good_set_share
    >>> round(linear_good_set_share(Supermarket(10**6, 501, 1 - 10**-3.6), 0.1), 3)
    0.987
    """
    n, _, _ = numbers_of(model, finite=True)
    from scipy.stats import multivariate_normal

    window = shorter_counts(model, eps)
    k = len(window.leading)
    middle = fixed_point_shorter(model, k)[1:]
    if independent:
        covariance = np.minimum.outer(middle, middle) - np.outer(middle, middle)
    else:
        covariance = stationary_covariance(model)[1 : k + 1, 1 : k + 1]
    scale = np.sqrt(n * np.diag(covariance))
    low, high = ((edge - n * middle) / scale for edge in (window.low, window.high))
    correlation = n * covariance / np.outer(scale, scale)
    law = multivariate_normal(np.zeros(k), correlation, allow_singular=True, seed=1)
    return float(law.cdf(high, lower_limit=low))


def log_rate_of_longer(model: Supermarket, counts: ArrayLike) -> NDArray[np.float64]:
    """Return the logarithm of the rate at which a queue of length k + 1 appears, k = k_{lam,d}.

    It is lam n u_k**d per mean service time. In equilibrium its mean is also the mean number of
    queues longer than k, since each of them leaves that length again at rate 1 (derived here).

    Parameters
    ----------
    model : Supermarket
        Of exponential service; its n does not matter.
    counts
        As in `smallest_eps`.

    Returns
    -------
    ndarray of float64, shape () or (m,)
        Minus infinity where no queue has length k.

    Raises
    ------
    ParameterError
        As in `smallest_eps`.

    Examples
    --------
    >>> from supermarket import Supermarket
    >>> from supermarket.limits.saturation.theorem import log_rate_of_longer
    >>> float(log_rate_of_longer(Supermarket(1000, 50, 0.999), [10000, 9990, 9000, 0]).round(3))
    3.941
    """
    _, d, lam = numbers_of(model, distinct=False)
    padded, k = _states(model, counts)
    n = padded[..., 0]
    with np.errstate(divide="ignore"):
        logs = np.log1p(-(n - padded[..., k]) / n)
    return np.log(lam * n) + d * logs


def log_rate_bound(model: Supermarket, eps: float) -> float:
    """Return a bound on `log_rate_of_longer` in all states of N^eps.

    There u_k is at most 1 - (1 - 5 eps) (1-lam) (lam d)**(k-1).

    Parameters
    ----------
    model : Supermarket
        Of exponential service.
    eps
        As in `shorter_counts`.

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> from supermarket import Supermarket
    >>> from supermarket.limits.saturation.theorem import log_rate_bound
    >>> round(log_rate_bound(Supermarket(10**17, 8_000_000, 1 - 6e-11), 0.1), 1)
    -1881.1
    """
    n, d, lam = numbers_of(model, finite=True)
    least = shorter_counts(model, eps).low[-1] / n
    return math.log(lam * n) + d * math.log1p(-least)


def mean_of_longer(model: Supermarket, *, k: int | None = None) -> float:
    """Return the mean number of queues longer than k in equilibrium, with normal fluctuations.

    lam n E u_k**d with u_k normal about the fixed point: lam n pi(k)**d exp(d (d-1) Var / 2), Var
    the relative variance of u_k in the linear noise (derived here). Good while the exponent is
    below 1 or so.

    Parameters
    ----------
    model : Supermarket
        Of exponential service.
    k : int, optional
        The length, k_{lam,d} if not given.

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> from supermarket import Supermarket
    >>> from supermarket.limits.saturation.theorem import mean_of_longer
    >>> round(mean_of_longer(Supermarket(10**6, 30, 0.9833)), 3)
    0.158
    """
    n, d, lam = numbers_of(model, fewest=2, finite=True)
    k = k_lambda_d(model) if k is None else integer("k", k, 1, 1000)
    level, covariance = fixed_point(model, k)[k], stationary_covariance(model)
    variance = covariance[k, k] / n / level**2 if k < len(covariance) else math.inf
    bend = d * (d - 1) * variance / 2
    if bend > 700:
        raise ParameterError(
            f"k = {k} with {model} is out of reach of normal fluctuations, which would change the "
            f"mean by exp({bend:.3g}): choose a smaller k, or more queues."
        )
    return float(lam * n * level**d * math.exp(bend))


def fixed_point_shorter(model: Supermarket, levels: int) -> NDArray[np.float64]:
    """Return 1 - pi(i) for i = 0..levels, precise where pi(i) is near 1, from (1.2).

    Parameters
    ----------
    model : Supermarket
        Of exponential service; its n does not matter.
    levels : int
        At least 0.

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> from supermarket import Supermarket, fixed_point_shorter
    >>> fixed_point_shorter(Supermarket(10**6, 50, 0.999), 2).round(4).tolist()
    [0.0, 0.001, 0.0497]
    """
    _, d, lam = numbers_of(model, fewest=2)
    powers = float(d) ** np.arange(integer("levels", levels, 0, 1000))
    return -np.expm1(np.append(0.0, np.cumsum(powers)) * log_of(lam))


def linear_shorter(model: Supermarket, k: int) -> NDArray[np.float64]:
    """Return 1 - u~_i = (1-lam) (1 + lam d + ... + (lam d)**(i-1)) for i = 0..k.

    The solution of the linear approximation to the equations of the fixed point, section 2 of the
    paper: good as long as d (1 - u~_{k-1}) is small and d (1 - u~_k) large.

    Parameters
    ----------
    model : Supermarket
        Of exponential service; its n does not matter.
    k : int
        At least 0.

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> from supermarket import Supermarket
    >>> from supermarket.limits.saturation.theorem import linear_shorter
    >>> linear_shorter(Supermarket(1000, 100, 0.999), 2).round(4).tolist()
    [0.0, 0.001, 0.1009]
    """
    return np.cumsum(leading_shorter(model, k))


def leading_shorter(model: Supermarket, k: int) -> NDArray[np.float64]:
    """Return (1-lam) (lam d)**(i-1) for i = 1..k, after a 0: the leading terms of 1 - u~_i.

    Parameters
    ----------
    model : Supermarket
        Of exponential service; its n does not matter.
    k
        As in `linear_shorter`.

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> from supermarket import Supermarket, leading_shorter
    >>> leading_shorter(Supermarket(10**6, 50, 0.999), 2).round(4).tolist()
    [0.0, 0.001, 0.05]
    """
    _, d, lam = numbers_of(model, fewest=2)
    powers = (lam * d) ** np.arange(integer("k", k, 0, 1000), dtype=np.float64)
    return np.append(0.0, (1 - lam) * powers)


def _states(model: Supermarket, counts: ArrayLike) -> tuple[NDArray, int]:
    """Return the counts with levels up to k + 1 at least, and k, checked."""
    counts = counts_of(counts, whole=False)
    k = k_lambda_d(model)
    missing = max(0, k + 2 - counts.shape[-1])
    return np.pad(counts, [*[(0, 0)] * (counts.ndim - 1), (0, missing)]), k
