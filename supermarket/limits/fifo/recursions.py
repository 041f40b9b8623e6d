r"""The recursions behind the doubly exponential tail under FIFO, and its sharp form.

A queue reaches length k during one long service, of length s say: the lower levels are climbed
for free, and each of the last :math:`\lfloor \beta \rfloor - 1` costs a factor
:math:`\lambda_j s`. With
:math:`k_1 = k - \lfloor \beta \rfloor` and :math:`\hat\beta = \beta - \lfloor \beta \rfloor`, this
gives :math:`P_k` in terms of the levels from :math:`k_1` on. Equation numbers are those of Bramson,
Lu & Prabhakar, Ann. Appl. Probab. 23 (2013) 1841, arXiv:1106.4582.
"""

import math

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from supermarket.estimate.intervals import Computed
from supermarket.limits.fifo.tails import critical_beta, doubly_exponential_limit
from supermarket.validation import ParameterError, integer, real

__all__ = ["characteristic_roots", "growth", "recursion"]


def recursion(beta: float, d: int, levels: int) -> NDArray[np.float64]:
    r"""Iterate the linear recursion (22), the logarithm of the tail without its prefactors.

    .. math::
        R_k = (d-1) \Big[\sum_{i=1}^{\ell-1} R_{k-i} + \hat\beta R_{k-\ell}\Big],
        \qquad \ell = \lfloor \beta \rfloor, \quad R_0 = R_{-1} = \dots = 1.

    Parameters
    ----------
    beta : float
        Tail index of the service law, above ``d / (d - 1)``.
    d : int
        Choices, at least 2.
    levels : int
        Last level, at least 1.

    Returns
    -------
    ndarray of float64, shape (levels + 1,)
        R_0 to R_levels; ``log(R_k) / (k log d)`` tends to q_d(beta), (23).

    Raises
    ------
    ParameterError
        If a parameter is out of range, or R grows beyond the largest double.

    Examples
    --------
    >>> from supermarket.limits.fifo.recursions import recursion
    >>> recursion(3.0, 2, 6).round(4).tolist()
    [1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 21.0]
    """
    whole, part, d = _parts(beta, d)
    levels = integer("levels", levels, 1, 10**6)
    weights = (d - 1) * np.append(np.ones(whole - 1), part)
    values = np.ones(whole + levels)  # values[whole - 1 + k] is R_k
    with np.errstate(over="ignore", invalid="ignore"):
        for k in range(1, levels + 1):
            values[whole - 1 + k] = weights @ values[k - 1 : k - 1 + whole][::-1]
    if not np.all(np.isfinite(values)):
        deepest = int(np.flatnonzero(np.isfinite(values))[-1]) - whole + 1
        raise ParameterError(
            f"R_{levels} is beyond the largest double: choose levels <= {deepest}."
        )
    return values[whole - 1 :]


def growth(beta: float, d: int) -> Computed:
    r"""Read the limit (23) off the recursion (22) itself, as q is read off a tail.

    Parameters
    ----------
    beta, d
        As in `recursion`.

    Returns
    -------
    Computed
        The limit of :math:`\frac1k \log_d R_k`, from as many levels as are below 1e280; see
        `tails.doubly_exponential_limit`.

    Examples
    --------
    >>> from supermarket.limits.fifo.recursions import growth
    >>> round(growth(3.0, 2).estimate, 6)
    0.694242
    """
    log = math.log(characteristic_roots(beta, d)[0].real)
    levels = math.floor(640 / max(log, 1e-3))
    return doubly_exponential_limit(-recursion(beta, d, min(levels, 20_000)), d)


def characteristic_roots(beta: float, d: int) -> NDArray[np.complex128]:
    r"""Return the roots of the characteristic polynomial of (22), the largest modulus first.

    The roots of :math:`\gamma^\ell = (d-1) [\gamma^{\ell-1} + \dots + \gamma + \hat\beta]`. The
    first is positive and is :math:`d^{q_d(\beta)}`; the second says how fast it is approached.

    Parameters
    ----------
    beta, d
        As in `recursion`.

    Returns
    -------
    ndarray of complex128, shape (floor(beta),)
        One root is 0 where beta is a whole number.

    Examples
    --------
    >>> from supermarket.limits.fifo.recursions import characteristic_roots
    >>> [round(float(abs(root)), 4) for root in characteristic_roots(3.0, 2)]
    [1.618, 0.618, 0.0]
    """
    whole, part, d = _parts(beta, d)
    roots = np.roots(np.append(1.0, (1 - d) * np.append(np.ones(whole - 1), part)))
    roots = np.append(roots, np.zeros(whole - len(roots)))  # np.roots strips those at 0
    return roots[np.argsort(-np.abs(roots))].astype(np.complex128)


def log_prefactor(log_tail: ArrayLike, beta: float, d: int, delta: float = 0.0) -> NDArray:
    r"""Return what the bounds (18) and (20)-(21) leave open: the logarithm of their prefactor.

    .. math::
        \log P_k - (d-1) \Big[\hat\beta \log P_{k_1} + \sum_{i=k_1+1}^{k-1} \log P_i\Big].

    The lower bound (18) says that this is at least :math:`\log C_1 - k \log 3`, the upper bound
    (20) that it is at most :math:`\log C_2 + k \log b`. Where beta is a whole number,
    (21) has :math:`(1 - \delta) \log P_{k_1+1}` in place of :math:`\log P_{k_1+1}`, for every
    :math:`\delta \in (0, 1)`; delta = 0 says more than all of them.

    Parameters
    ----------
    log_tail : array_like of float64, shape (levels + 1,)
        ``log_tail[k]`` is log P_k.
    beta, d
        As in `recursion`.
    delta : float
        In [0, 1); other than 0 only where beta is a whole number.

    Returns
    -------
    ndarray of float64, shape (levels + 1,)
        NaN for k below ``floor(beta)``.
    """
    whole, part, d = _parts(beta, d)
    delta = real("delta", delta, 0.0, 1.0, open_high=True)
    if delta > 0 and part > 0:
        raise ParameterError(
            f"delta = {delta:g} has no meaning at beta = {beta:g}: (21) is for whole beta; "
            "choose delta = 0."
        )
    log_tail = np.asarray(log_tail, dtype=np.float64)
    return log_tail - (d - 1) * _weighted(log_tail, whole, part, delta)


def log_prefactor_limit(beta: float, c: float, d: int, lam: float) -> float:
    r"""Return the limit of `log_prefactor` where beta is not a whole number.

    .. math::
        \log \frac{c \lambda^\beta}{\Gamma(\beta)} \Gamma(\hat\beta) \Gamma(1 - \hat\beta).

    So the exponential prefactors of (18) and (20) are not needed. Derived in this project from
    `sharp_log_tail` and :math:`\lambda_j \sim \lambda P_j^{d-1}`.

    Parameters
    ----------
    beta, d
        As in `recursion`.
    c : float
        Tail constant of the service law, positive: ``survival(s) ~ c s**-beta``.
    lam : float
        Arrival rate per server, in (0, 1).
    """
    _, part, _ = _parts(beta, d)
    if part == 0:
        raise ParameterError(
            f"beta = {beta:g} is a whole number, where the prefactor grows with k: "
            f"choose beta = {beta + 0.1:g}."
        )
    return math.log(c) + beta * math.log(lam) - scipy.special.gammaln(beta) + _log_beta(part)


def sharp_log_tail(
    log_rates: ArrayLike, beta: float, c: float, d: int, lam: float
) -> NDArray[np.float64]:
    r"""Return the logarithm of the sharp form of the doubly exponential tail.

    .. math::
        P_k &\sim \lambda c \frac{\Gamma(\hat\beta) \Gamma(1 - \hat\beta)}{\Gamma(\beta)}
            \lambda_{k_1}^{\hat\beta} \prod_{j=k_1+1}^{k-1} \lambda_j, \\
        P_k &\sim \frac{\lambda c}{\Gamma(\beta)} \log \frac{\lambda_{k_1}}{\lambda_{k_1+1}}
            \prod_{j=k_1+1}^{k-1} \lambda_j \quad \text{for whole } \beta,

    where :math:`\lambda_j` is the arrival rate at a queue with j jobs. From
    :math:`P_k \approx \lambda \mathbb E (S - T_k)^+` with :math:`T_k` the time in which k arrivals
    come. Derived in this project; stronger than (18) and (20)-(21), which it implies.

    Parameters
    ----------
    log_rates : array_like of float64, shape (levels,)
        ``log_rates[j]`` is the logarithm of the arrival rate at a queue with j jobs.
    beta, d
        As in `recursion`.
    c, lam
        As in `log_prefactor_limit`.

    Returns
    -------
    ndarray of float64, shape (levels + 1,)
        NaN for k below ``floor(beta)``.
    """
    whole, part, _ = _parts(beta, d)
    log_rates = np.append(np.asarray(log_rates, dtype=np.float64), np.nan)
    front = math.log(lam * c) - scipy.special.gammaln(beta)
    if part > 0:
        return front + _log_beta(part) + _weighted(log_rates, whole, part, 0.0)
    sharp = front + _weighted(log_rates, whole, 0.0, 0.0)
    falls = -np.diff(log_rates)
    with np.errstate(invalid="ignore"):
        sharp[whole:] += np.log(falls[: len(sharp) - whole])
    return sharp


def _weighted(logs: NDArray, whole: int, part: float, delta: float) -> NDArray[np.float64]:
    """Return part logs[k1] + logs[k1+1] + ... + logs[k-1], k1 = k - whole, NaN for k < whole."""
    total = np.full(len(logs), np.nan)
    for k in range(whole, len(logs)):
        total[k] = part * logs[k - whole] + np.sum(logs[k - whole + 1 : k])
        if delta > 0:
            total[k] -= delta * logs[k - whole + 1]
    return total


def _log_beta(part: float) -> float:
    """Return the logarithm of Gamma(part) Gamma(1 - part)."""
    return math.log(math.pi / math.sin(math.pi * part))


def _parts(beta: float, d: int) -> tuple[int, float, int]:
    """Return the whole part of beta, what is left, and d, checked."""
    edge = critical_beta(d)
    beta = real("beta", beta)
    if not edge < beta <= 1000:
        raise ParameterError(
            f"beta = {beta:.16g} with d = {d} has no doubly exponential tail to iterate: choose "
            f"d/(d-1) = {edge:.16g} < beta <= 1000."
        )
    return math.floor(beta), beta - math.floor(beta), int(d)
