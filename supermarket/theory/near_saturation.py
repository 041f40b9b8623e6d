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

from supermarket.theory.fixed_point import k_lambda_d
from supermarket.validation import (
    EXACT_MAX,
    MOST_QUEUES,
    ParameterError,
    arrival_rate,
    integer,
    real,
)

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
    >>> from supermarket.theory.near_saturation import power_case
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
    return PowerCase(n, d, lam, k_lambda_d(lam, d))


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
    n: int, d: int, lam: float, eps: float, *, phi: float | Callable[[int], float] = 1.0
) -> list[Hypothesis]:
    r"""Return the hypotheses of Theorem 1.2 for k = k_{lam,d}, each with both its sides.

    .. math::
        (A)\ 2 \log^2 n \le d^k (1-\lambda), \quad
        (B)\ 100\,k\,(1-\lambda)\,d^{k-1} \le \varepsilon \le 1/10,\ k \ge 2, \quad
        (C)\ (1-\lambda)^{-1} \le \varphi\, \varepsilon \sqrt{n d}.

    Parameters
    ----------
    n, d : int
        Numbers of queues and of choices.
    lam : float
        Arrival rate per queue, in (0, 1).
    eps : float
        Above 0; more than 1/10 is allowed, and fails.
    phi : float or callable
        The factor in (C), or a function of n that gives it. *The paper's own is not known here.*
        That 1/(1-lam) is to be small against sqrt(n d) is what it says of the power family; the
        factor eps comes from the width of N^eps, and a 1 / log n may belong to it: then pass
        ``lambda n: 1 / math.log(n)``.

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
    >>> from supermarket.theory.near_saturation import hypotheses
    >>> [h.holds for h in hypotheses(10**17, 8_000_000, 1 - 6e-11, 0.1)]
    [True, True, True, True, True]
    >>> [h.name for h in hypotheses(10**8, 300, 1 - 1 / 3000, 0.1) if not h.holds]
    ['A', 'B']
    """
    n, d, lam = _checked(n, d, lam)
    eps = real("eps", eps, 0.0, open_low=True)
    factor = real("phi", phi(n) if callable(phi) else phi, 0.0, open_low=True)
    k, spare = k_lambda_d(lam, d), 1 - lam
    return [
        Hypothesis("A", "2 log(n)^2 <= d^k (1-lam)", 2 * math.log(n) ** 2, spare * float(d) ** k),
        Hypothesis("B", "100 k (1-lam) d^(k-1) <= eps", 100 * k * spare * float(d) ** (k - 1), eps),
        Hypothesis("B, eps", "eps <= 1/10", eps, LARGEST_EPS),
        Hypothesis("B, k", "2 <= k", 2.0, float(k)),
        Hypothesis(
            "C", "1/(1-lam) <= phi eps sqrt(n d)", 1 / spare, factor * eps * math.sqrt(n * d)
        ),
    ]


def smallest_eps(counts: ArrayLike, d: int, lam: float) -> NDArray[np.float64]:
    """Return the smallest eps for which a state is in N^eps(n, d, lam, k_{lam,d}).

    A state is in N^eps if no queue is longer than k and the number of queues shorter than j is
    within a factor 1 +- 5 eps of n (1-lam) (lam d)**(j-1), for j = 1..k. The paper defines this for
    eps up to 1/10; what is returned may be larger.

    Parameters
    ----------
    counts : array_like, shape (levels,) or (m, levels)
        ``counts[..., i]`` is the number of queues with length at least i, such as the rows of
        `Simulation.path`; missing levels count as 0. Shares will do instead of numbers, with fewer
        digits.
    d, lam
        As in `hypotheses`.

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
    >>> from supermarket.theory.near_saturation import smallest_eps
    >>> smallest_eps([[10000, 9990, 9500, 0], [10000, 9990, 9500, 1]], 50, 0.999).round(3).tolist()
    [0.0, inf]
    """
    counts = np.asarray(counts)
    if counts.ndim not in (1, 2) or counts.shape[-1] < 1 or np.any(np.diff(counts) > 0):
        raise ParameterError("counts must not increase from level to level, one row a state.")
    _, d, lam = _checked(1, d, lam)
    k = k_lambda_d(lam, d)
    missing = max(0, k + 2 - counts.shape[-1])
    padded = np.pad(counts, [*[(0, 0)] * (counts.ndim - 1), (0, missing)])
    shorter = padded[..., :1] - padded[..., 1 : k + 1]
    expected = leading_shorter(lam, d, k)[1:]
    off = np.abs(shorter / (padded[..., :1] * expected) - 1).max(axis=-1) / 5
    return np.where(padded[..., k + 1] > 0, np.inf, off)


def in_good_set(counts: ArrayLike, d: int, lam: float, eps: float) -> NDArray[np.bool_]:
    """Return whether a state, or each of many, is in N^eps: `smallest_eps` is at most eps.

    Raises
    ------
    ParameterError
        As in `smallest_eps`, or if eps is not in (0, 1/10].

    Examples
    --------
    >>> from supermarket.theory.near_saturation import in_good_set
    >>> bool(in_good_set([10**6, 0.9 * 10**6, 0], 10, 0.9, 0.1))
    True
    """
    eps = real("eps", eps, 0.0, LARGEST_EPS, open_low=True)
    return smallest_eps(counts, d, lam) <= eps


class Window(NamedTuple):
    """Predicted numbers of queues and the range that N^eps leaves to them.

    Attributes
    ----------
    low, leading, high : ndarray of float64
    """

    low: NDArray[np.float64]
    leading: NDArray[np.float64]
    high: NDArray[np.float64]


def shorter_counts(n: int, d: int, lam: float, eps: float) -> Window:
    """Return the numbers of queues shorter than j, j = 1..k, in N^eps.

    They are n (1-lam) (lam d)**(j-1) up to a factor 1 +- 5 eps, item (b) after the definition.

    Parameters
    ----------
    n, d, lam
        As in `hypotheses`.
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
    """
    n, d, lam = _checked(n, d, lam)
    eps = real("eps", eps, 0.0, LARGEST_EPS, open_low=True)
    leading = n * leading_shorter(lam, d, k_lambda_d(lam, d))[1:]
    return Window((1 - 5 * eps) * leading, leading, (1 + 5 * eps) * leading)


def length_counts(n: int, d: int, lam: float, eps: float) -> Window:
    """Return the numbers of queues of length exactly 0, ..., k in N^eps.

    Empty queues: those shorter than 1. Length j = 1..k-1: n (1-lam) (lam d)**j up to 1 +- 6 eps,
    item (d) after the definition, which asks for eps lam d >= 2. Length k: all others, those
    shorter than k taken from n.

    Parameters
    ----------
    n, d, lam, eps
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
    >>> from supermarket.theory.near_saturation import length_counts
    >>> [f"{x:.4g}" for x in length_counts(10**17, 8_000_000, 1 - 6e-11, 0.1).leading]
    ['6e+06', '4.8e+13', '9.995e+16']
    """
    shorter = shorter_counts(n, d, lam, eps)
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


def fixed_point_shorter(lam: float, d: int, levels: int) -> NDArray[np.float64]:
    """Return 1 - pi(i) for i = 0..levels, precise where pi(i) is near 1, from (1.2).

    Parameters
    ----------
    lam, d
        As in `hypotheses`.
    levels : int
        At least 0.

    Raises
    ------
    ParameterError
        If a parameter is out of range.
    """
    _, d, lam = _checked(1, d, lam)
    powers = float(d) ** np.arange(integer("levels", levels, 0, 1000))
    return -np.expm1(np.append(0.0, np.cumsum(powers)) * math.log1p(-(1 - lam)))


def linear_shorter(lam: float, d: int, k: int) -> NDArray[np.float64]:
    """Return 1 - u~_i = (1-lam) (1 + lam d + ... + (lam d)**(i-1)) for i = 0..k.

    The solution of the linear approximation to the equations of the fixed point, section 2 of the
    paper: good as long as d (1 - u~_{k-1}) is small and d (1 - u~_k) large.

    Parameters
    ----------
    lam, d
        As in `hypotheses`.
    k : int
        At least 0.

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> from supermarket.theory.near_saturation import linear_shorter
    >>> linear_shorter(0.999, 100, 2).round(4).tolist()
    [0.0, 0.001, 0.1009]
    """
    return np.cumsum(leading_shorter(lam, d, k))


def leading_shorter(lam: float, d: int, k: int) -> NDArray[np.float64]:
    """Return (1-lam) (lam d)**(i-1) for i = 1..k, after a 0: the leading terms of 1 - u~_i.

    Parameters
    ----------
    lam, d, k
        As in `linear_shorter`.

    Raises
    ------
    ParameterError
        If a parameter is out of range.
    """
    _, d, lam = _checked(1, d, lam)
    powers = (lam * d) ** np.arange(integer("k", k, 0, 1000), dtype=np.float64)
    return np.append(0.0, (1 - lam) * powers)


def _checked(n: int, d: int, lam: float) -> tuple[int, int, float]:
    return integer("n", n, 1, MOST_QUEUES), integer("d", d, 2, EXACT_MAX), arrival_rate(lam)
