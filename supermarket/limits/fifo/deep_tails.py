r"""The FIFO cavity for Lomax service at any depth, where the tail is doubly exponential.

With the notation of `by_mixture`: between two arrival rates that are far apart, a transform
:math:`G_k(x)` is a power of x to every digit that float64 has. So the nodes need to be dense only
around the arrival rates :math:`\lambda_k`, some hundreds of them a level, and the sum over those
left out in between is a geometric series. That reaches :math:`P_k = e^{-10^{12}}` with some
thousands of nodes, where the full grid needs :math:`10^{13}`. Derived in this project; where both
can be computed the results agree to rounding.
"""

import math
from dataclasses import dataclass

import numpy as np

from supermarket.kernels.compiled import kernel
from supermarket.limits.fifo.by_mixture import _accept
from supermarket.limits.fifo.level_equation import climber, first_levels
from supermarket.models.jsq import Supermarket, supermarket_of
from supermarket.service import Lomax
from supermarket.validation import ParameterError, affordable, arrival_rate, integer, real

__all__ = ["deep_tail"]

DEEPEST = 1e12  # size of -log P_k: its rounding is then still far below one step of the nodes
_MARGIN = 45.0  # nodes are dense from exp(-45) to exp(45) = 3e19 times an arrival rate
_EDGE = 16  # nodes from which the slope at the end of a dense stretch is taken

_Nodes = tuple[np.ndarray, np.ndarray, np.ndarray]  # log rates, log shares, how many are left out


@dataclass(frozen=True)
class DeepTail:
    """The law of the queue length in the FIFO cavity equilibrium with Lomax service, in logarithms.

    Attributes
    ----------
    log_tail : ndarray of float64, shape (levels + 1,)
        ``log_tail[k]`` is log P_k.
    log_rates : ndarray of float64, shape (levels,)
        ``log_rates[k]`` is the logarithm of the arrival rate at a queue with k jobs.
    service : Lomax
        The service law.
    d : int
        Choices for each arriving job.
    lam : float
        Arrival rate per server.
    """

    log_tail: np.ndarray
    log_rates: np.ndarray
    service: Lomax
    d: int
    lam: float

    @property
    def levels(self) -> int:
        """The last level."""
        return self.log_tail.size - 1


def deep_tail(model: Supermarket, depth: float, least: int = 1) -> DeepTail:
    r"""Compute the tail level by level until it is below ``exp(-depth)``.

    Parameters
    ----------
    model : Supermarket
        Its n does not matter.
    depth : float
        The last level is the first with :math:`-\log P_k` above this, at most `DEEPEST`.
    least : int
        Or this one, if it is deeper and above `DEEPEST`.

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> from supermarket import Lomax, Supermarket
    >>> from supermarket.limits.fifo.deep_tails import deep_tail
    >>> tail = deep_tail(Supermarket(1000, 2, 0.7, service=Lomax(2.5)), 1e9)
    >>> tail.log_tail[20].round(2).item(), tail.levels
    (-353.74, 68)
    """
    model = supermarket_of(model)
    d, lam, service = model.d, model.lam, model.service
    if not isinstance(service, Lomax) or (model.policy, model.discipline) != ("jsq", "fifo"):
        raise ParameterError(f"{model} is not of Lomax service in order of arrival: use `cavity`.")
    d, lam = integer("d", d, 2), arrival_rate(lam)
    depth = real("depth", depth, 0.0, DEEPEST, open_low=True)
    least = integer("least", least, 1)
    log_lam = math.log(lam)
    affordable(f"d = {d} with lam = {lam:.6g}", -8 * log_lam * d, "choose fewer", 6e6)
    mixture = service.mixture(log_lam * d - 2 * _MARGIN)
    step, fall = float(mixture.step), (service.beta - 1) * float(mixture.step)
    nodes = mixture.log_rate, mixture.log_share, np.zeros(mixture.log_rate.size)
    log_tail, log_rates = first_levels(d, lam, 64)
    inflow = np.full(nodes[0].size, -np.inf)
    k = 1
    while -log_tail[k] <= depth or (k < least and -log_tail[k] * d <= DEEPEST):
        if k == log_tail.size - 1:
            log_tail, log_rates = np.pad(log_tail, (0, k)), np.pad(log_rates, (0, k))
        nodes, inflow = _reach(nodes, inflow, log_lam + (d - 1) * log_tail[k], d, step, fall)
        log_rate, log_share, missing = nodes
        state = inflow, np.empty_like(inflow), log_rate, log_share, missing
        end = log_rate[-2] + _MARGIN
        _climb(log_tail[: k + 2], log_rates[: k + 1], k, d, log_lam, state, end, -np.inf)
        k += 1
    return DeepTail(log_tail[: k + 1].copy(), log_rates[:k].copy(), service, d, lam)


def _reach(
    nodes: _Nodes, state: np.ndarray, least: float, d: int, step: float, fall: float
) -> tuple[_Nodes, np.ndarray]:
    """Add a dense stretch around the next arrival rate, between ``exp(least)`` and d times that.

    From one node to the next, the rates fall by the factor ``exp(step)``, and far below 1 the
    shares by ``exp(fall)``.
    """
    log_rate, log_share, missing = nodes
    lowest = log_rate[-2]
    if least - _MARGIN >= lowest:
        return nodes, state
    # In steps below the lowest node.
    first = max(1.0, math.floor((lowest - least - math.log(d) - _MARGIN) / step))
    last = math.ceil((lowest - least + _MARGIN) / step)
    added = np.arange(first, last + 1)
    log_rate = np.concatenate([log_rate[:-1], lowest - step * added, [-np.inf]])
    shares = log_share[-2] - fall * added
    log_share = np.concatenate([log_share[:-1], shares, [shares[-1] - math.log(math.expm1(fall))]])
    missing = np.concatenate([missing[:-1], np.zeros(added.size + 1)])
    missing[-added.size - 2] = first - 1
    return (log_rate, log_share, missing), np.append(state, np.full(added.size, state[-1]))


@kernel
def _serve(state: tuple, log_rate: float, log_start: float) -> float:
    """Return the logarithm of the integral of ``g_k R``; leave the logarithms of G_k in `trial`."""
    log_inflow, trial, log_x, log_share, missing = state
    top = -np.inf
    for j in range(trial.size):
        trial[j] = np.logaddexp(log_start, log_inflow[j]) - np.logaddexp(log_x[j], log_rate)
        top = max(top, log_share[j] + trial[j])
    total = 0.0
    for j in range(trial.size):
        here = log_share[j] + trial[j]
        total += np.exp(here - top)
        if missing[j] > 0:
            after = log_share[j + 1] + trial[j + 1]
            begins = (here - log_share[j - _EDGE] - trial[j - _EDGE]) / _EDGE
            ends = (log_share[j + 1 + _EDGE] + trial[j + 1 + _EDGE] - after) / _EDGE
            total += _between(here - top, after - top, begins, ends, missing[j])
    return top + np.log(total)


@kernel
def _between(above: float, below: float, begins: float, ends: float, count: float) -> float:
    """Return the sum of `count` terms between two whose logarithms are given.

    The logarithms of the terms lie on a line, or on two, if those of a level that a departure
    started pass those that an arrival did: the slopes at both ends, per term, tell.
    """
    chord = (below - above) / (count + 1)
    if max(abs(begins - chord), abs(ends - chord)) < 1e-3:
        return _series(above, chord, count)
    crossing = (above - below + (count + 1) * ends) / (ends - begins)
    first = min(max(np.floor(crossing), 0.0), count)
    return _series(above, begins, first) + _series(below, -ends, count - first)


@kernel
def _series(start: float, slope: float, count: float) -> float:
    """Return the sum of ``exp(start + i slope)`` for i from 1 to `count`."""
    if count <= 0:
        return 0.0
    if abs(slope) * count < 1e-12:
        return np.exp(start) * count
    if slope > 0:
        start, slope = start + (count + 1) * slope, -slope
    return np.exp(start + slope) * np.expm1(count * slope) / np.expm1(slope)


_climb = climber(_serve, _accept)
