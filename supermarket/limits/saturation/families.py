"""Families with arrival rate tending to one, beside lam = 1 - n**-alpha and d = n**beta.

Brightwell & Luczak, arXiv:1201.5523, give them as examples of Theorem 1.2 in their introduction.
The exponents decide what the limit is; where the hypotheses begin to hold, `hypotheses` of
`supermarket.limits.saturation.theorem` tells for each member.
"""

import math

from supermarket.service.numerics import power_or_infinity
from supermarket.validation import (
    EXACT_MAX,
    MOST_QUEUES,
    ParameterError,
    arrival_rate,
    integer,
    real,
)

__all__ = ["few_choices", "levels_of_few_choices", "slow_load", "slowest_load"]


def few_choices(n: int, alpha: float, theta: float, gamma: float) -> tuple[int, float]:
    r"""Return d and lam = 1 - n**-alpha where d grows slower than any power of n.

    .. math::
        d^k = n^\alpha \log^\theta n, \qquad k = \lceil \gamma \log n / \log\log n \rceil \ge 2,

    so that d is of the order of (log n)**(alpha / gamma) and k tends to infinity, slowly: with
    gamma = 0.12 it is 2 up to n = 10**30. The paper asks for alpha < 1/2, gamma < alpha / 3 and
    2 < theta < alpha / gamma - 1; hypothesis (A) needs the lower end and (B) the upper one. The
    rounding of k is this project's.

    Parameters
    ----------
    n : int
        Number of queues, at least 3.
    alpha : float
        In (0, 1).
    theta, gamma : float
        Above 0.

    Returns
    -------
    d : int
    lam : float

    Raises
    ------
    ParameterError
        If a parameter is out of range, or d comes out below 2.

    Examples
    --------
    >>> from supermarket.limits.saturation.families import few_choices
    >>> few_choices(10**8, 0.5, 2.5, 0.12)
    (3816, 0.9999)
    """
    n, log = _size(n)
    alpha = real("alpha", alpha, 0.0, 1.0, open_low=True, open_high=True)
    theta, gamma = _above_zero(theta=theta, gamma=gamma)
    k = levels_of_few_choices(n, gamma)
    return _choices((n**alpha * power_or_infinity(log, theta)) ** (1 / k)), arrival_rate(
        1 - n**-alpha
    )


def levels_of_few_choices(n: float, gamma: float) -> int:
    """Return the k of `few_choices`, at any n from 3 on: also at sizes that nothing reaches.

    Examples
    --------
    >>> from supermarket import levels_of_few_choices
    >>> levels_of_few_choices(10**6, 0.3)
    2
    """
    log = math.log(real("n", n, 3.0))
    return max(2, math.ceil(real("gamma", gamma, 0.0, 1e9, open_low=True) * log / math.log(log)))


def slow_load(n: int, alpha: float, beta: float) -> tuple[int, float]:
    """Return d = (log n)**beta and lam = 1 - (log n)**-alpha.

    The paper asks for alpha > 2 and (alpha + 2) / k < beta < alpha / (k - 1), k >= 2: in the limit
    hypothesis (A) needs the lower end and (B) the upper one; (C) holds.

    Parameters
    ----------
    n : int
        Number of queues, at least 3.
    alpha, beta : float
        Above 0.

    Returns
    -------
    d : int
    lam : float

    Raises
    ------
    ParameterError
        If a parameter is out of range, or d comes out below 2.

    Examples
    --------
    >>> from supermarket.limits.saturation.families import slow_load
    >>> slow_load(10**6, 3, 2.6)[0]
    922
    """
    _, log = _size(n)
    alpha, beta = _above_zero(alpha=alpha, beta=beta)
    return _choices(power_or_infinity(log, beta)), arrival_rate(1 - log**-alpha)


def slowest_load(n: int, large: float, small: float) -> tuple[int, float]:
    """Return d = c log(n)**2 and lam = 1 - 1 / (C log(n)**2): the slowest approach of all.

    With k = 2 and at every n, hypothesis (A) is c >= sqrt(2 C), and (B) is c <= eps C / 200: there
    is such a c for C >= 80000 / eps**2. The paper asks for twice that, C > 160000 / eps**2.

    Parameters
    ----------
    n : int
        Number of queues, at least 3.
    large, small : float
        C and c, above 0.

    Returns
    -------
    d : int
    lam : float

    Raises
    ------
    ParameterError
        If a parameter is out of range, or d comes out below 2.

    Examples
    --------
    >>> from supermarket.limits.saturation.families import slowest_load
    >>> slowest_load(10**10, 1000, 45)[0]
    23859
    """
    _, log = _size(n)
    large, small = _above_zero(large=large, small=small)
    return _choices(small * log**2), arrival_rate(1 - 1 / (large * log**2))


def _size(n: int) -> tuple[int, float]:
    n = integer("n", n, 3, MOST_QUEUES)
    return n, math.log(n)


def _above_zero(**values: float) -> list[float]:
    return [real(name, value, 0.0, open_low=True) for name, value in values.items()]


def _choices(d: float) -> int:
    if not 1.5 < d <= EXACT_MAX:
        raise ParameterError(
            f"d = {d:.3g} is no number of choices from 2 to {EXACT_MAX:.1e}: "
            "choose other exponents."
        )
    return round(d)
