"""The FIFO cavity equilibrium: the queue of one server when infinitely many share the arrivals."""

from dataclasses import dataclass

import numpy as np
from numba import njit

from supermarket.service import Mixture, ServiceLaw
from supermarket.validation import ParameterError, arrival_rate, choice, integer

_MARGIN = 42.0  # nodes reach down to exp(-42) = 6e-19 of the arrival rate
_SMALLEST = -650.0  # linear arithmetic stops where a transform may fall below exp(-650) = 5e-283
_MOST_NODES = 6_000_000  # 50 MB an array
_ROUNDING = 2.0**-52


@dataclass(frozen=True)
class CavityEquilibrium:
    """The law of the queue length in the cavity equilibrium.

    Attributes
    ----------
    tail : ndarray of float64, shape (levels + 1,)
        ``tail[k]`` is P_k, the share of queues with at least k jobs; 0 where it is below 1e-323.
    log_tail : ndarray of float64, shape (levels + 1,)
        Natural logarithm of P_k, finite at every level.
    rates : ndarray of float64, shape (levels,)
        ``rates[k]`` is the arrival rate at a queue with k jobs, per mean service time.
    log_rates : ndarray of float64, shape (levels,)
        Natural logarithm of `rates`, finite at every level.
    service, d, lam, levels
        The parameters: service law, choices (distinct queues, ties uniform), arrival rate per
        server, last level.
    arithmetic : str
        What was asked for: 'auto', 'linear' or 'log'.
    log_from : int or None
        First level whose tail was computed in logarithms; None if there is none.
    nodes : int
        Number of exponentials in the service law's mixture at the last level.
    step : float or None
        Step of the quadrature in the logarithm of their rates; None if the mixture is exact.
    """

    tail: np.ndarray
    log_tail: np.ndarray
    rates: np.ndarray
    log_rates: np.ndarray
    service: ServiceLaw
    d: int
    lam: float
    levels: int
    arithmetic: str
    log_from: int | None
    nodes: int
    step: float | None


def cavity(
    service: ServiceLaw, d: int, lam: float, levels: int, *, arithmetic: str = "auto"
) -> CavityEquilibrium:
    r"""Compute the FIFO cavity equilibrium level by level, with no truncation.

    Let :math:`g_k(a) \bar F(a)` be the stationary density of "k jobs, the one in service has age
    a", and :math:`p_k = P_k - P_{k+1}`. An arrival joins a queue with k jobs at rate

    .. math:: \lambda_k = \lambda \frac{P_k^d - P_{k+1}^d}{P_k - P_{k+1}},

    so that :math:`g_k' = -\lambda_k g_k + \lambda_{k-1} g_{k-1}`, with
    :math:`g_k(0) = \lambda_k p_k` for :math:`k \ge 2` (a departure leaves k jobs as often as an
    arrival meets k) and :math:`g_1(0) = \lambda_1 p_1 + \lambda_0 p_0`. The survival function is
    :math:`\bar F(a) = \sum_j w_j e^{-x_j a}`, its integral from a to infinity has weights
    :math:`v_j = w_j / x_j`, and the transforms :math:`G_k(x) = \int_0^\infty e^{-xa} g_k(a) \, da`
    obey

    .. math::
        G_k(x) &= \frac{\lambda_k p_k + \lambda_{k-1} G_{k-1}(x)}{x + \lambda_k},
            \qquad G_0 = p_0, \\
        P_{k+1} &= \lambda P_{k+1}^d + \lambda_k \sum_j v_j G_k(x_j).

    Starting from :math:`P_0 = 1`, :math:`P_1 = \lambda`, the second line is one scalar equation
    for :math:`P_{k+1}`, with positive terms only.

    Parameters
    ----------
    service : ServiceLaw
        `Exponential`, `Lomax` or `Hyperexponential`, of mean 1.
    d : int
        Choices, at least 1: an arrival joins the shortest of d distinct queues, ties at random.
    lam : float
        Arrival rate per server, in (0, 1).
    levels : int
        Last level, at least 1.
    arithmetic : {'auto', 'linear', 'log'}
        'auto' is linear until the tail comes near the end of float64's range, and goes on in
        logarithms. 'linear' stops with an error there.

    Returns
    -------
    CavityEquilibrium

    Raises
    ------
    ParameterError
        If a parameter is out of range, or 'linear' arithmetic can't reach the last level.

    Notes
    -----
    The equilibrium environment is that of [1]_, section 2, where lambda is called alpha and d is
    called D. That a large network tends to it is an ansatz there, which the same authors proved
    elsewhere for laws whose hazard rate decreases (all mixtures of exponentials) and for any law
    at small lambda. The level-by-level recursion is derived in this project, not taken from [1]_.

    References
    ----------
    .. [1] M. Bramson, Y. Lu, B. Prabhakar, Decay of tails at equilibrium for FIFO join the
       shortest queue networks, Ann. Appl. Probab. 23 (2013) 1841-1878.
    """
    if not isinstance(service, ServiceLaw):
        raise ParameterError(
            f"service = {service!r} is not a service law: use Exponential(), Lomax(beta) or "
            f"Hyperexponential(probabilities, rates)."
        )
    d = integer("d", d, 1)
    lam = arrival_rate(lam)
    levels = integer("levels", levels, 1)
    choice("arithmetic", arithmetic, ["auto", "linear", "log"])

    tail, rates = np.zeros(levels + 1), np.zeros(levels)
    tail[0], tail[1], rates[0] = 1.0, lam, lam * (1 - lam**d) / (1 - lam)
    log_tail, log_rates = np.zeros(levels + 1), np.zeros(levels)
    mixture = service.mixture(np.log(lam) * (d - 1) - 2 * _MARGIN)
    # one entry a node: lam_{k-1} G_{k-1}(x), which flows into the level k that comes next
    inflow = np.full(mixture.log_rate.size, rates[0] * (1 - lam))

    k = 1
    while arithmetic != "log" and k < levels and not _too_small(tail[k], d, lam):
        mixture, inflow = _reach(mixture, inflow, service, d, np.log(lam), np.log(tail[k]), k)
        nodes = np.exp(mixture.log_rate), np.exp(mixture.log_share)
        k = _linear_levels(tail, rates, inflow, *nodes, d, lam, k, mixture.low)
    if arithmetic == "linear" and k < levels:
        raise ParameterError(
            f"levels = {levels} is out of reach of linear arithmetic: choose levels <= {k} or "
            f"arithmetic = 'auto'."
        )
    log_tail[: k + 1], log_rates[:k] = np.log(tail[: k + 1]), np.log(rates[:k])

    log_from = k + 1 if k < levels else None
    log_inflow = np.log(inflow)
    while k < levels:
        mixture, log_inflow = _reach(mixture, log_inflow, service, d, np.log(lam), log_tail[k], k)
        nodes = mixture.log_rate, mixture.log_share
        k = _log_levels(log_tail, log_rates, log_inflow, *nodes, d, np.log(lam), k, mixture.low)
    if log_from is not None:
        tail[log_from:] = np.exp(log_tail[log_from:])
        rates[log_from - 1 :] = np.exp(log_rates[log_from - 1 :])
    return CavityEquilibrium(
        tail=tail,
        log_tail=log_tail,
        rates=rates,
        log_rates=log_rates,
        service=service,
        d=d,
        lam=lam,
        levels=levels,
        arithmetic=arithmetic,
        log_from=log_from,
        nodes=mixture.log_rate.size,
        step=mixture.step,
    )


def _reach(
    mixture: Mixture,
    state: np.ndarray,
    service: ServiceLaw,
    d: int,
    log_lam: float,
    log_tail: float,
    k: int,
) -> tuple[Mixture, np.ndarray]:
    """Extend the grid far below the arrival rate at level k; new nodes have the last one's state.

    A transform at x equals the one at 0 as long as x is far below every arrival rate so far.
    """
    log_rate = log_lam + (d - 1) * log_tail
    low = 1.25 * log_rate - 2 * _MARGIN
    if _too_deep(log_tail, d):
        raise ParameterError(
            f"log P_{k} = {log_tail:.4g}, and the next is beyond float64: choose levels <= {k}."
        )
    if log_rate - _MARGIN >= mixture.low:
        return mixture, state
    if -low / mixture.step > _MOST_NODES:
        raise ParameterError(
            f"log P_{k} = {log_tail:.4g}, and the next level needs more than {_MOST_NODES} "
            f"exponentials: choose levels <= {k}."
        )
    mixture = service.mixture(low)
    added = mixture.log_rate.size - state.size
    return mixture, np.concatenate([state, np.full(added, state[-1])])


@njit
def _too_small(tail: float, d: int, lam: float) -> bool:
    """Tell whether rate**2 * tail, the size of the least transform, may leave float64's range."""
    return 2 * np.log(lam) + (2 * d - 1) * np.log(tail) < _SMALLEST


@njit
def _too_deep(log_tail: float, d: int) -> bool:
    """Tell whether the next logarithm, near ``d * log_tail``, may leave float64's range."""
    return d * log_tail < -1e307


@njit
def _linear_levels(
    tail: np.ndarray,
    rates: np.ndarray,
    inflow: np.ndarray,
    x: np.ndarray,
    share: np.ndarray,
    d: int,
    lam: float,
    k: int,
    low: float,
) -> int:
    """Fill `tail` and `rates` from level k on; return the level reached with these nodes."""
    while k < tail.size - 1:
        here = tail[k]
        least = lam * here ** (d - 1)
        if _too_small(here, d, lam) or np.log(least) - _MARGIN < low:
            break
        bottom = least * np.sum(share * inflow / (x + least))
        ratio = here / tail[k - 1]
        start = max(bottom, here * ratio) if ratio > 0.5 else bottom
        args = (here, lam, d, share, inflow, x)
        after = _solve(_linear_image, start, bottom, here, 0.0, args)
        rate = least * _geometric(after / here, d)
        # The difference that the equation was solved with: any other value of p_k, even a more
        # accurate one, would no longer balance it, and the imbalance would grow with the level.
        inflow[:] = rate * (rate * (here - after) + inflow) / (x + rate)
        rates[k] = rate
        k += 1
        tail[k] = after
    return k


@njit
def _linear_image(after: float, args: tuple) -> float:
    """Return the right-hand side of the equation for P_{k+1}."""
    here, lam, d, share, inflow, x = args
    rate = lam * here ** (d - 1) * _geometric(after / here, d)
    served = np.sum(share * (rate * (here - after) + inflow) / (x + rate))
    return lam * after**d + rate * served


@njit
def _log_levels(
    log_tail: np.ndarray,
    log_rates: np.ndarray,
    log_inflow: np.ndarray,
    log_x: np.ndarray,
    log_share: np.ndarray,
    d: int,
    log_lam: float,
    k: int,
    low: float,
) -> int:
    """Do the work of `_linear_levels` with every quantity replaced by its logarithm."""
    while k < log_tail.size - 1:
        here = log_tail[k]
        least = log_lam + (d - 1) * here
        if least - _MARGIN < low or _too_deep(here, d):
            break
        bottom = least + _log_sum(log_share + log_inflow - np.logaddexp(log_x, least))
        ratio = here - log_tail[k - 1]
        start = max(bottom, here + ratio) if ratio > -0.7 else bottom
        args = (here, log_lam, d, log_share, log_inflow, log_x)
        after = _solve(_log_image, start, bottom, here, 1.0, args)
        rate = least + np.log(_geometric(np.exp(after - here), d))
        alone = _log_difference(here, after)
        log_inflow[:] = rate + np.logaddexp(rate + alone, log_inflow) - np.logaddexp(log_x, rate)
        log_rates[k] = rate
        k += 1
        log_tail[k] = after
    return k


@njit
def _log_image(after: float, args: tuple) -> float:
    """Return the logarithm of the right-hand side of the equation for P_{k+1}."""
    here, log_lam, d, log_share, log_inflow, log_x = args
    rate = log_lam + (d - 1) * here + np.log(_geometric(np.exp(after - here), d))
    met = np.logaddexp(rate + _log_difference(here, after), log_inflow)
    served = _log_sum(log_share + met - np.logaddexp(log_x, rate))
    return np.logaddexp(log_lam + d * after, rate + served)


@njit
def _geometric(ratio: float, d: int) -> float:
    """Return ``1 + ratio + ... + ratio**(d-1)``."""
    total = 1.0
    for _ in range(d - 1):
        total = total * ratio + 1.0
    return total


@njit
def _log_difference(above: float, below: float) -> float:
    """Return the logarithm of ``exp(above) - exp(below)``."""
    return above + np.log(-np.expm1(min(below - above, -_ROUNDING)))


@njit
def _log_sum(logs: np.ndarray) -> float:
    """Return the logarithm of the sum of ``exp(logs)``."""
    top = np.max(logs)
    return top + np.log(np.sum(np.exp(logs - top)))


@njit
def _solve(image: object, x: float, low: float, high: float, scale: float, args: tuple) -> float:
    """Return the root of ``image(x, args) = x`` between `low` and `high`, to a few roundings.

    The first step is to the image, then secants, and a bisection where a secant leaves the bracket
    or is slow. The tolerance is relative to ``max(|x|, scale)``.
    """
    before, gap_before = x, 0.0
    for turn in range(200):
        value = image(x, args)
        gap = value - x
        if abs(gap) <= 4 * _ROUNDING * max(abs(x), scale):
            return value
        if gap > 0:
            low = x
        else:
            high = x
        new = value
        if turn > 0:
            new = low if gap == gap_before else x - gap * (x - before) / (gap - gap_before)
        if turn % 16 == 15 or not low < new < high:
            new = 0.5 * (low + high)
        if abs(new - x) <= _ROUNDING * max(abs(x), scale):
            return new
        before, gap_before, x = x, gap, new
    return x
