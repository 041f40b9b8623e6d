"""How the tail of a FIFO queue decays under JSQ(d) when the service law has a power-law tail.

With ``survival(s) ~ c s**-beta`` there are three regimes, on the two sides of
``beta = d / (d - 1)`` and at it: doubly exponential, power law, exponential ([1]_, theorems 1.1
to 1.3; lambda is called alpha there, and d is called D).

References
----------
.. [1] M. Bramson, Y. Lu, B. Prabhakar, Decay of tails at equilibrium for FIFO join the shortest
   queue networks, Ann. Appl. Probab. 23 (2013) 1841-1878.
"""

import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike

from supermarket.estimate.intervals import Computed
from supermarket.limits.fifo.cavity import CavityEquilibrium, cavity
from supermarket.limits.fifo.deep_tails import DEEPEST, DeepTail, deep_tail
from supermarket.models.jsq import Supermarket
from supermarket.service import Lomax
from supermarket.validation import EXACT_MAX, ParameterError, arrival_rate, integer, numbers, real

__all__ = [
    "critical_beta",
    "critical_decay_rate",
    "limit_of",
    "power_law_constant",
    "power_law_exponent",
    "q_exponent",
]


def critical_beta(d: int) -> float:
    """Return ``d / (d - 1)``, where the tail changes its kind ([1]_ of this module, section 1).

    Parameters
    ----------
    d : int
        Choices, at least 2.

    Examples
    --------
    >>> from supermarket.limits.fifo.tails import critical_beta
    >>> critical_beta(2), critical_beta(3)
    (2.0, 1.5)
    """
    d = integer("d", d, 2, EXACT_MAX)
    return d / (d - 1)


def q_exponent(beta: float, d: int) -> float:
    r"""Return the doubly exponential exponent :math:`q_d(\beta)` ([1]_, theorem 1.1).

    .. math:: \lim_k \frac1k \log_d \log \frac1{P_k} = q_d(\beta) = \log_d \gamma_1,

    with :math:`\gamma_1` the positive root of
    :math:`\gamma^\ell = (d-1) [\gamma^{\ell-1} + \dots + \gamma + \eta]`,
    :math:`\ell = \lfloor \beta \rfloor`, :math:`\eta = \beta - \ell` ([1]_, proposition 3.3,
    equations (22) and (23)).

    Parameters
    ----------
    beta : float
        Tail index, above ``d / (d - 1)``; infinite for a tail lighter than every power.
    d : int
        Choices, at least 2.

    Raises
    ------
    ParameterError
        If `beta` is not above ``d / (d - 1)``: the tail is not doubly exponential there.

    Examples
    --------
    >>> from supermarket.limits.fifo.tails import q_exponent
    >>> round(q_exponent(2.5, 2), 6), round(q_exponent(3, 2), 6)
    (0.449984, 0.694242)
    """
    edge, d = critical_beta(d), int(d)
    if isinstance(beta, float | np.floating) and beta == math.inf:
        return 1.0
    beta = real("beta", beta)
    if beta <= edge:
        raise ParameterError(
            f"beta = {beta:.16g} with d = {d} has no doubly exponential tail: choose "
            f"beta > d/(d-1) = {edge:.16g}, or use power_law_exponent(beta, d) below it."
        )
    whole = min(math.floor(beta), 1100)  # x <= 0.5 there, and x**1100 is below the least float64
    powers = np.arange(1, whole)
    part = beta - math.floor(beta)

    def excess(x: float) -> float:
        return (d - 1) * (np.sum(x**powers) + part * x**whole) - 1

    return -math.log(scipy.optimize.brentq(excess, 0.5 / d, 1.0, xtol=1e-17)) / math.log(d)


def power_law_exponent(beta: float, d: int) -> float:
    r"""Return the exponent :math:`\gamma_d(\beta)` of a power-law tail ([1]_, theorem 1.2, (6)).

    .. math::
        \lim_k \frac{-\log P_k}{\log k} = \gamma_d(\beta) = \frac{\beta - 1}{1 - (d-1)(\beta - 1)}.

    Parameters
    ----------
    beta : float
        Tail index, strictly between 1 and ``d / (d - 1)``.
    d : int
        Choices, at least 2.

    Raises
    ------
    ParameterError
        If `beta` is outside the interval: the tail is not a power law there.

    Examples
    --------
    >>> from supermarket.limits.fifo.tails import power_law_exponent
    >>> round(power_law_exponent(1.5, 2), 6), round(power_law_exponent(1.3, 3), 6)
    (1.0, 0.75)
    """
    edge, d = critical_beta(d), int(d)
    beta = real("beta", beta)
    if not 1 < beta < edge:
        raise ParameterError(
            f"beta = {beta:.16g} with d = {d} has no power-law tail: choose "
            f"1 < beta < d/(d-1) = {edge:.16g}"
            + (", or use q_exponent(beta, d)." if beta > edge else ".")
        )
    return (beta - 1) / (1 - (d - 1) * (beta - 1))


def power_law_constant(beta: float, c: float, d: int, lam: float) -> float:
    r"""Return the constant K of :math:`P_k \sim K k^{-\gamma_d(\beta)}`.

    .. math::
        K^u = \frac{\lambda c}{\beta - 1} \Big(\frac{\lambda d}{u}\Big)^{\beta - 1},
        \qquad u = 1 - (d-1)(\beta - 1).

    Derived in this project and checked against the exact cavity; [1]_ has the exponent only.

    Parameters
    ----------
    beta : float
        Tail index, strictly between 1 and ``d / (d - 1)``.
    c : float
        Tail constant, positive: ``survival(s) ~ c s**-beta``.
    d : int
        Choices, at least 2.
    lam : float
        Arrival rate per server, in (0, 1).

    Examples
    --------
    >>> from supermarket import Lomax
    >>> from supermarket.limits.fifo.tails import power_law_constant
    >>> round(power_law_constant(1.5, Lomax(1.5).tail_constant, 2, 0.7), 4)
    0.686
    """
    power_law_exponent(beta, d)
    beta, d, c, lam = float(beta), int(d), real("c", c, 0.0, open_low=True), arrival_rate(lam)
    u = 1 - (d - 1) * (beta - 1)
    log = math.log(lam) + math.log(c) - math.log(beta - 1)
    log = (log + (beta - 1) * (math.log(lam) + math.log(d / u))) / u
    if log > 709:
        raise ParameterError(
            f"beta = {beta:.16g} with d = {d} is so near d/(d-1) that K = exp({log:.4g}) is more "
            "than a double holds: choose a smaller beta."
        )
    return (lam * c / (beta - 1) * (lam * d / u) ** (beta - 1)) ** (1 / u)


def critical_decay_rate(c: float, lam: float, d: int) -> float:
    r"""Return the rate r of the exponential tail at :math:`\beta = d / (d - 1)`.

    With :math:`s = 1 / (d - 1)`, the rate :math:`r = \lim_k \log(P_k / P_{k+1})` is the root of

    .. math::
        1 = c (d-1) \lambda^{1+s} e^r \Big[\frac{1 - e^{-dr}}{1 - e^{-r}}\Big]^s
        \, \mathbb E \, W_r^{-s}, \qquad W_r = \sum_{i \ge 0} e^{-(d-1) r i} E_i,

    where the :math:`E_i` are independent, exponential of rate 1. The expectation is r for d = 2,
    which gives :math:`c \lambda^2 r (1 + e^r) = 1`, and for d >= 3, with
    :math:`q = e^{-(d-1) r}`, Ramanujan's q-beta integral
    :math:`\Gamma(1-s) \, (q^{1-s}; q)_\infty / (q; q)_\infty`.

    Derived in this project and checked against the exact cavity to 8 digits. [1]_, theorem 1.3,
    equation (8), has only that the decay is exponential, between two rates that depend on c.

    Parameters
    ----------
    c : float
        Tail constant, positive: ``survival(s) ~ c s**(-d/(d-1))``.
    d : int
        Choices, at least 2.
    lam : float
        Arrival rate per server, in (0, 1).

    Examples
    --------
    >>> from supermarket.limits.fifo.tails import critical_decay_rate
    >>> round(critical_decay_rate(1.0, 0.9, 2), 8)
    0.47374193
    """
    d = integer("d", d, 2, EXACT_MAX)
    c = real("c", c, 0.0, open_low=True)
    lam = arrival_rate(lam)
    s = 1 / (d - 1)
    front = math.log(c) + math.log(d - 1) + (1 + s) * math.log(lam)

    def log_right(log_r: float) -> float:
        r = math.exp(log_r)
        sum_of_powers = math.log(math.expm1(-d * r) / math.expm1(-r))
        return front + r + s * sum_of_powers + _log_moment(r, d)

    low = high = 0.0
    while log_right(low) > 0:
        low -= 1
        if d > 2 and low < -12:
            raise ParameterError(
                f"c = {c:.6g} with d = {d}, lam = {lam:.6g} gives a rate below 1e-5, which the sum "
                f"here does not reach: choose a smaller c."
            )
    while log_right(high) < 0:
        high += 1
    return math.exp(scipy.optimize.brentq(log_right, low, high, xtol=1e-15))


def _log_moment(r: float, d: int) -> float:
    """Return ``log E W_r**(-1/(d-1))``."""
    if d == 2:
        return math.log(r)
    s = 1 / (d - 1)
    i = np.arange(math.ceil(45 / ((d - 1) * r)))
    above = np.log(-np.expm1(-(d - 1) * r * (i + 1 - s)))
    below = np.log(-np.expm1(-(d - 1) * r * (i + 1)))
    return float(scipy.special.gammaln(1 - s)) + float(np.sum(above - below))


def local_exponents(log_tail: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Return the slopes of the tail on a log-log scale, each one over a doubling of k.

    Parameters
    ----------
    log_tail : array_like of float64, shape (levels + 1,)
        ``log_tail[k]`` is log P_k, for at least 16 levels.

    Returns
    -------
    k : ndarray of int64, shape (m,)
        Starts of the doublings, each twice the one before, the last near ``levels / 2``.
    exponents : ndarray of float64, shape (m,)
        ``-log(P_2k / P_k) / log 2``.
    """
    log_tail = np.asarray(log_tail, dtype=np.float64)
    levels = integer("levels", log_tail.size - 1, 16)
    doublings = levels.bit_length() - 4
    k = (levels >> doublings) << np.arange(doublings)
    return k, -(log_tail[2 * k] - log_tail[k]) / math.log(2)


def power_law_limit(log_tail: ArrayLike, d: int) -> Computed:
    r"""Extrapolate the exponent of a power-law tail, with a numerical error.

    The slopes at k approach the exponent with corrections :math:`k^{-(d-1) \gamma}` and
    :math:`(a \log k + b) / k` (derived in this project). Along a sequence of doublings, each is a
    geometric one (the second with a polynomial factor), which the epsilon algorithm removes without
    being told the ratio: two of them, or three where the first is slower than :math:`k^{-1/2}` and
    there are 8192 levels. The error is twice the largest distance of its last value from the three
    before it, where the depth is halved once, twice and three times.

    Parameters
    ----------
    log_tail : array_like of float64, shape (levels + 1,)
        ``log_tail[k]`` is log P_k, for at least 1024 levels.
    d : int
        Choices, at least 2.

    Returns
    -------
    Computed
        Unsettled (the last slope, with NaN for ends) where the corrections die out too slowly to be
        extrapolated: slower than :math:`k^{-0.3}`, or :math:`k^{-0.2}` from 8192 levels on.

    Raises
    ------
    ParameterError
        If the levels are too few.
    """
    d = integer("d", d, 2)
    integer("levels", np.size(log_tail) - 1, 1024)
    _, exponents = local_exponents(log_tail)
    found = _limit(exponents, order=2, rounding=1e-12)
    if exponents.size >= 10 and (d - 1) * found.estimate < 0.5:
        found = _limit(exponents, order=3, rounding=1e-12)
    if (d - 1) * found.estimate < (0.3 if exponents.size < 10 else 0.2):
        return _unsettled(exponents)
    return found


def power_law_constant_limit(log_tail: ArrayLike, beta: float, d: int) -> Computed:
    r"""Extrapolate the constant of a power-law tail, with a numerical error.

    :math:`\log P_k + \gamma_d(\beta) \log k` along a sequence of doublings, extrapolated as in
    `power_law_limit`, with twice its error.

    Parameters
    ----------
    log_tail : array_like of float64, shape (levels + 1,)
        ``log_tail[k]`` is log P_k, for at least 1024 levels.
    beta : float
        Tail index of the service law, strictly between 1 and ``d / (d - 1)``.
    d : int
        Choices, at least 2.

    Returns
    -------
    Computed
        Unsettled where the sequence is, or its corrections die out more slowly than
        :math:`k^{-0.3}`.

    Raises
    ------
    ParameterError
        If a parameter is out of range.
    """
    exponent = power_law_exponent(beta, d)
    integer("levels", np.size(log_tail) - 1, 1024)
    k, _ = local_exponents(log_tail)
    k = np.append(k, 2 * k[-1])
    if (d - 1) * exponent < 0.3:
        return Computed(math.exp(log_tail[k[-1]] + exponent * math.log(k[-1])), math.nan, math.nan)
    found = _limit(np.asarray(log_tail)[k] + exponent * np.log(k), order=2, rounding=1e-12)
    ends = (found.estimate + 2 * (end - found.estimate) for end in (found.low, found.high))
    return Computed(math.exp(found.estimate), *map(math.exp, ends))


def local_growth(log_tail: ArrayLike, d: int) -> np.ndarray:
    r"""Return :math:`\log_d [(L_{k+1} - L_k) / (L_k - L_{k-1})]`, where :math:`L_k = -\log P_k`.

    Parameters
    ----------
    log_tail : array_like of float64, shape (levels + 1,)
        ``log_tail[k]`` is log P_k.
    d : int
        Choices, at least 2.

    Returns
    -------
    ndarray of float64, shape (levels - 1,)
        The values for k = 1 to ``levels - 1``.
    """
    growth = -np.diff(np.asarray(log_tail, dtype=np.float64))
    return np.log(growth[1:] / growth[:-1]) / math.log(integer("d", d, 2))


def doubly_exponential_limit(log_tail: ArrayLike, d: int) -> Computed:
    r"""Extrapolate the exponent of a doubly exponential tail, with a numerical error.

    With :math:`L_k = -\log P_k`, the sequence of `local_growth` tends to q, and faster than
    :math:`\frac1k \log_d L_k` of [1]_, theorem 1.1: L obeys the linear recursion (22) up to a
    constant, which the differences remove, so what is left is geometric, with the ratio of the
    second root of (22) to the first, or of 1 to the first where beta is a whole number. One step
    of Aitken's method takes the leading term away. The error is twice the largest distance of
    its last value from the three before it.

    Parameters
    ----------
    log_tail : array_like of float64, shape (levels + 1,)
        ``log_tail[k]`` is log P_k, for at least 6 levels.
    d : int
        Choices, at least 2.

    Returns
    -------
    Computed
        Unsettled where the sequence is.

    Raises
    ------
    ParameterError
        If the levels are too few.
    """
    integer("levels", np.size(log_tail) - 1, 6)
    return _limit(local_growth(log_tail, d), order=1, rounding=1e-13)


def exponential_limit(log_tail: ArrayLike) -> Computed:
    """Extrapolate the rate of an exponential tail, with a numerical error.

    The sequence log(P_k / P_{k+1}) tends to the rate geometrically, and one step of Aitken's method
    takes the leading term away. The error is twice the largest distance of its last
    value from the three before it, and the rounding of log P_k.

    Parameters
    ----------
    log_tail : array_like of float64, shape (levels + 1,)
        ``log_tail[k]`` is log P_k, for at least 10 levels.

    Returns
    -------
    Computed
        Unsettled where the sequence is.

    Raises
    ------
    ParameterError
        If the levels are too few.
    """
    log_tail = np.asarray(log_tail, dtype=np.float64)
    integer("levels", log_tail.size - 1, 10)
    return _limit(-np.diff(log_tail), order=1, rounding=64 * 2.0**-52 * max(1.0, -log_tail[-1]))


@dataclass(frozen=True)
class Tail:
    """What the theorem says of a tail, and what the exact cavity equilibrium shows of it.

    Attributes
    ----------
    regime : str
        'power law', 'exponential' or 'doubly exponential'.
    equilibrium : CavityEquilibrium or DeepTail
        The tail itself, with its parameters.
    predicted : float
        gamma, r or q: the exponent or rate that belongs to the regime.
    measured : Computed
        The same from the tail alone, extrapolated, with its numerical error. Where the sequence
        does not go deep enough to extrapolate, its last value, with NaN for ends.
    """

    regime: str
    equilibrium: CavityEquilibrium | DeepTail
    predicted: float
    measured: Computed


def lomax_tail(beta: float, d: int, lam: float, levels: int, depth: float) -> Tail:
    """Compute the FIFO tail for Lomax service, and its exponent next to the theorem's.

    Parameters
    ----------
    beta : float
        Tail index of the service law, above 1.
    d : int
        Choices, at least 2.
    lam : float
        Arrival rate per server, in (0, 1).
    levels : int
        Last level of a power-law tail, at least 1024. (An exponential tail ends at level 200: its
        rate settles geometrically.)
    depth : float
        A doubly exponential tail ends where ``-log P_k`` is above this, or at the sixth level
        beyond `beta` and at least the eighth, if that is deeper and in reach of `deep_tail`.

    Returns
    -------
    Tail

    Examples
    --------
    >>> from supermarket.limits.fifo.tails import lomax_tail
    >>> tail = lomax_tail(2.2, 20, 0.7, 1024, 1e4)
    >>> tail.regime, round(tail.predicted, 9), round(tail.measured.estimate, 9)
    ('doubly exponential', 0.986337431, 0.986337431)
    """
    service, edge = Lomax(beta), critical_beta(d)
    integer("levels", levels, 1024)
    depth = real("depth", depth, 0.0, DEEPEST, open_low=True)
    if service.beta > edge:
        least = max(8, math.floor(service.beta) + 6)
        deep = deep_tail(Supermarket(math.inf, d, lam, service=service), depth, least)
        measured = doubly_exponential_limit(deep.log_tail, d)
        return Tail("doubly exponential", deep, q_exponent(beta, d), measured)
    if service.beta < edge:
        equilibrium = cavity(Supermarket(math.inf, d, lam, service=service), levels)
        measured = power_law_limit(equilibrium.log_tail, d)
        return Tail("power law", equilibrium, power_law_exponent(beta, d), measured)
    equilibrium = cavity(Supermarket(math.inf, d, lam, service=service), 200)
    rate = critical_decay_rate(service.tail_constant, lam, d)
    return Tail("exponential", equilibrium, rate, exponential_limit(equilibrium.log_tail))


def straight(tail: Tail) -> tuple[np.ndarray, np.ndarray, np.ndarray, str]:
    """Return the tail where its kind is a straight line, and the line of the theorem's slope.

    Returns
    -------
    k : ndarray of int64, shape (m,)
        Queue lengths: powers of 2 for a power law, to be drawn on a logarithmic axis.
    y : ndarray of float64, shape (m,)
        ``log10 P_k``, or ``log_d log 1/P_k`` for a doubly exponential tail.
    line : ndarray of float64, shape (m,)
        The line with the predicted slope through the last point.
    label : str
        What `y` is.
    """
    d, levels = tail.equilibrium.d, tail.equilibrium.levels
    log_tail = tail.equilibrium.log_tail
    if tail.regime == "doubly exponential":
        k = np.arange(1, levels + 1)
        y = np.log(-log_tail[k]) / math.log(d)
        return k, y, y[-1] + tail.predicted * (k - k[-1]), f"$\\log_{{{d}}} \\log(1/P_k)$"
    if tail.regime == "power law":
        k = 2 ** np.arange(levels.bit_length())
        along = np.log(k / k[-1])
    else:
        k = np.arange(1, 31)
        along = k - k[-1]
    y = log_tail[k] / math.log(10)
    return k, y, y[-1] - tail.predicted * along / math.log(10), "$\\log_{10} P_k$"


def on_straight_axis(tail: Tail, shares: ArrayLike) -> np.ndarray:
    """Return measured shares of queues on the axis of `straight`, of the same shape."""
    logs = np.log(np.asarray(shares, dtype=np.float64))
    if tail.regime == "doubly exponential":
        return np.log(-logs) / math.log(tail.equilibrium.d)
    return logs / math.log(10)


def limit_of(sequence: ArrayLike, rounding: float) -> Computed:
    """Return the limit of a sequence, with a numerical error, by one step of Aitken's method.

    A sequence whose last two steps are no more than its rounding has settled, and is not
    extrapolated. Otherwise the error is twice the largest distance of the last extrapolated value
    from the three before it.

    Parameters
    ----------
    sequence : array_like of float64, shape (m,)
        Its terms, m >= 3.
    rounding : float
        How far rounding alone may move a term.

    Returns
    -------
    Computed
        Unsettled (the last term, with NaN for ends) where the steps do not get smaller.

    Examples
    --------
    >>> from supermarket.limits.fifo.tails import limit_of
    >>> found = limit_of([2 + 0.5**k for k in range(20)], 1e-15)
    >>> round(found.estimate, 12)
    2.0
    """
    terms, rounding = numbers("sequence", sequence), real("rounding", rounding, 0.0)
    if terms.ndim != 1 or len(terms) < 3:
        raise ParameterError(f"sequence of shape {terms.shape} must be a list of 3 terms or more.")
    return _limit(terms, 1, rounding)


def _limit(sequence: np.ndarray, order: int, rounding: float) -> Computed:
    """Return the limit of a sequence by Wynn's epsilon algorithm of the given order.

    A sequence whose last two steps are no more than rounding has settled, and its last term is the
    limit; nothing is extrapolated then. The error is an estimate: where the extrapolated values
    turn, it may be too small.
    """
    changes = np.abs(np.diff(sequence))
    if np.max(changes[-2:]) <= rounding:
        return Computed.within(float(sequence[-1]), 2 * rounding)
    last = _epsilon(sequence, order, rounding)[-4:]
    settling = np.max(changes[-2:]) < 0.9 * np.max(changes[-6:-2], initial=0.0)
    if last.size < 3 or not settling:
        return _unsettled(sequence)
    limit = float(last[-1])
    return Computed.within(limit, 2 * float(np.max(np.abs(last - limit))) + rounding)


def _epsilon(sequence: np.ndarray, order: int, rounding: float) -> np.ndarray:
    """Return the column of Wynn's epsilon table that takes `order` geometric terms away.

    By the rule of the cross, which needs no inverse differences: with the entries N, S above and
    below C, and W the one before C, 1/(E-C) = 1/(N-C) + 1/(S-C) - 1/(W-C). Where the steps to N or
    S are no more than rounding, or E would be farther from C than all terms of the sequence are
    from one another, there is nothing to take away, and S is kept.
    """
    spread = np.max(sequence) - np.min(sequence)
    west, column = np.full(sequence.size, math.inf), sequence
    for _ in range(order):
        north, here, south = column[:-2], column[1:-1], column[2:]
        with np.errstate(divide="ignore", invalid="ignore"):
            inverse = 1 / (north - here) + 1 / (south - here) - 1 / (west[1:-1] - here)
            east = here + 1 / inverse
        step = np.minimum(np.abs(north - here), np.abs(south - here))
        kept = (step <= rounding) | ~(np.abs(east - here) <= spread)
        west, column = here, np.where(kept, south, east)
    return column


def _unsettled(sequence: np.ndarray) -> Computed:
    """Return the last term of a sequence whose limit is not known."""
    return Computed(float(sequence[-1]), math.nan, math.nan)
