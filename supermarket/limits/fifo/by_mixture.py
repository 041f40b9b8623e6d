r"""The FIFO cavity for a mixture of exponentials: one number a rate and level, in plain sums.

With :math:`\bar F(a) = \sum_j w_j e^{-x_j a}` and :math:`v_j = w_j / x_j`, the transforms
:math:`G_k(x) = \int_0^\infty e^{-xa} g_k(a) \, da` obey

.. math::
    G_k(x) = \frac{g_k(0) + \lambda_{k-1} G_{k-1}(x)}{x + \lambda_k}, \qquad
    \int_0^\infty g_k(a) R(a) \, da = \sum_j v_j G_k(x_j).

Derived in this project.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from supermarket.kernels.compiled import kernel
from supermarket.limits.fifo.level_equation import (
    climber,
    first_levels,
    geometric,
    solver,
    too_deep,
)
from supermarket.service import ServiceLaw
from supermarket.service.law import Mixture
from supermarket.validation import ParameterError, affordable

_MARGIN = 42.0  # nodes reach down to exp(-42) = 6e-19 of the arrival rate
_SMALLEST = -650.0  # linear arithmetic stops where a transform may fall below exp(-650) = 5e-283
_MOST_NODES = 6_000_000  # 50 MB an array


class Nodes(NamedTuple):
    """The exponentials of the mixture: v_j, lam_{k-1} G_{k-1}(x_j) and x_j."""

    share: np.ndarray
    inflow: np.ndarray
    x: np.ndarray


@dataclass(frozen=True)
class ByMixture:
    """The levels, and how they were computed; see `CavityEquilibrium`."""

    tail: np.ndarray
    rates: np.ndarray
    log_tail: np.ndarray
    log_rates: np.ndarray
    log_from: int | None
    nodes: int
    step: float | None


def by_mixture(service: ServiceLaw, d: int, lam: float, levels: int, arithmetic: str) -> ByMixture:
    """Climb the levels for a mixture of exponentials of mean 1.

    Parameters
    ----------
    service, d, lam, levels, arithmetic
        As in `cavity`, checked; the law is a mixture and has mean 1.

    Raises
    ------
    ParameterError
        If the last level needs too many exponentials, or is out of reach of the arithmetic.
    """
    log_lam = np.log(lam)
    log_tail, log_rates = first_levels(d, lam, levels)
    if service.tail_index < np.inf:  # a mixture of all rates, down to that of arrivals
        affordable(f"d = {d} with lam = {lam:.6g}", -8 * log_lam * d, "choose fewer", _MOST_NODES)
    mixture = service.mixture(log_lam * (d - 1) - 2 * _MARGIN)
    # one entry a node: lam_{k-1} G_{k-1}(x), which flows into the level k that comes next
    k, inflow = 1, np.zeros(mixture.log_rate.size)
    tail, rates = np.zeros(levels + 1), np.zeros(levels)
    tail[0], tail[1], rates[0] = 1.0, lam, lam * (1 - lam**d) / (1 - lam)
    if arithmetic != "log":
        while k < levels and not _too_small(tail[k], d, lam):
            mixture, inflow = _reach(mixture, inflow, service, d, log_lam, np.log(tail[k]), k)
            nodes = Nodes(np.exp(mixture.log_share), inflow, np.exp(mixture.log_rate))
            k = _linear_levels(tail, rates, nodes, d, lam, k, mixture.low)
        log_tail[2 : k + 1], log_rates[1:k] = np.log(tail[2 : k + 1]), np.log(rates[1:k])
    if arithmetic == "linear" and k < levels:
        raise ParameterError(
            f"levels = {levels} is out of reach of linear arithmetic: choose levels <= {k} or "
            f"arithmetic = 'auto'."
        )
    log_from = k + 1 if k < levels else None
    with np.errstate(divide="ignore"):
        log_inflow = np.log(inflow)
    while k < levels:
        mixture, log_inflow = _reach(mixture, log_inflow, service, d, log_lam, log_tail[k], k)
        state = log_inflow, np.empty_like(log_inflow), mixture.log_rate, mixture.log_share
        least_rate = mixture.low + _MARGIN
        k = _climb(log_tail, log_rates, k, d, log_lam, state, least_rate, -np.inf)
    if log_from is not None:
        tail[log_from:] = np.exp(log_tail[log_from:])
        rates[log_from - 1 :] = np.exp(log_rates[log_from - 1 :])
    return ByMixture(
        tail, rates, log_tail, log_rates, log_from, mixture.log_rate.size, mixture.step
    )


@dataclass(frozen=True)
class Thinned:
    """The mixture of a law with every other node: its quadrature with twice the step."""

    service: ServiceLaw

    @property
    def tail_index(self) -> float:
        """That of the law."""
        return self.service.tail_index

    def mixture(self, log_low: float) -> Mixture:
        """Return the mixture; see `ServiceLaw.mixture`."""
        full = self.service.mixture(log_low)
        nodes = full.log_rate.size - 1  # the last one stands for all the rates below
        fall = 2 * (full.log_share[nodes - 2] - full.log_share[nodes - 1])
        share = full.log_share[:nodes:2] + np.log(2)
        weight = full.log_weight[:nodes:2] + np.log(2)
        return Mixture(
            log_rate=np.append(full.log_rate[:nodes:2], -np.inf),
            log_weight=np.append(weight, -np.inf),
            log_share=np.append(share, share[-1] - np.log(np.expm1(fall))),
            step=2 * full.step,
            low=float(full.log_rate[:nodes:2][-1]),
        )


def mixture_residuals(
    service: ServiceLaw,
    tail: np.ndarray,
    rates: np.ndarray,
    lengths: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """Draw the work left of the job in service for queues of the given lengths.

    Given k jobs, the job in service is of the exponential with rate x_j with a probability
    proportional to ``w_j G_k(x_j)``, and the work left of it is exponential.

    Parameters
    ----------
    service : ServiceLaw
        A mixture of mean 1.
    tail, rates : ndarray of float64, shapes (levels + 1,) and (levels,)
        The equilibrium, in mean service times.
    lengths : ndarray of int64, shape (size,)
        Queue lengths below ``levels``.
    rng : numpy.random.Generator
        Source of the draws.

    Returns
    -------
    ndarray of float64, shape (size,)
        In mean service times; 0 for an empty queue.
    """
    longest = int(np.max(lengths, initial=0))
    mixture = service.mixture(float(np.log(rates[longest])) - 2 * _MARGIN)
    rate, weight = np.exp(mixture.log_rate), np.exp(mixture.log_weight)
    residuals = np.zeros(lengths.size)
    inflow = np.full(rate.size, rates[0] * (1 - tail[1]))
    places = np.split(np.argsort(lengths, kind="stable"), np.cumsum(np.bincount(lengths))[:-1])
    for k in range(1, longest + 1):
        transform = (rates[k] * (tail[k] - tail[k + 1]) + inflow) / (rate + rates[k])
        inflow = rates[k] * transform
        if places[k].size:
            cumulative = np.cumsum(weight * transform)
            uniform = rng.random(places[k].size) * cumulative[-1]
            node = np.searchsorted(cumulative, uniform, side="right")
            residuals[places[k]] = rng.standard_exponential(places[k].size) / rate[node]
    return residuals


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
    if too_deep(log_tail, d):
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


@kernel
def _too_small(tail: float, d: int, lam: float) -> bool:
    """Tell whether rate**2 * tail, the size of the least transform, may leave float64's range."""
    return 2 * np.log(lam) + (2 * d - 1) * np.log(tail) < _SMALLEST


@kernel
def _linear_levels(
    tail: np.ndarray,
    rates: np.ndarray,
    nodes: Nodes,
    d: int,
    lam: float,
    k: int,
    low: float,
) -> int:
    """Fill `tail` and `rates` from level k on; return the level reached with these nodes."""
    share, inflow, x = nodes
    while k < tail.size - 1:
        here = tail[k]
        least = lam * here ** (d - 1)
        if _too_small(here, d, lam) or np.log(least) - _MARGIN < low:
            break
        fresh = rates[0] * (1 - tail[1]) if k == 1 else 0.0
        bottom = least * _served(share, inflow, x, fresh, least)
        ratio = here / tail[k - 1]
        start = bottom
        if ratio > 0.5:  # the ratios settle: go on along their line
            change = ratio - tail[k - 1] / tail[k - 2] if k > 2 else 0.0
            start = min(max(bottom, here * (ratio + change)), here * (1 - 1e-12))
        args = (here, fresh, lam, d, share, inflow, x)
        after = _solve_linear(start, bottom, here, 0.0, args)
        rate = least * geometric(after / here, d)
        # see log_image of level_equation: the very difference that the equation was solved with
        began = rate * (here - after) + fresh
        for j in range(x.size):
            inflow[j] = rate * (began + inflow[j]) / (x[j] + rate)
        rates[k] = rate
        k += 1
        tail[k] = after
    return k


@kernel
def _linear_image(after: float, args: tuple) -> float:
    """Return the right-hand side of the equation for P_{k+1}."""
    here, fresh, lam, d, share, inflow, x = args
    rate = lam * here ** (d - 1) * geometric(after / here, d)
    return lam * after**d + rate * _served(share, inflow, x, rate * (here - after) + fresh, rate)


_solve_linear = solver(_linear_image)


@kernel(fastmath={"reassoc", "contract"})
def _served(
    share: np.ndarray, inflow: np.ndarray, x: np.ndarray, start: float, rate: float
) -> float:
    """Return the integral of ``g_k R``."""
    total = 0.0
    for j in range(x.size):
        total += share[j] * (start + inflow[j]) / (x[j] + rate)
    return total


@kernel
def _serve(state: tuple, log_rate: float, log_start: float) -> float:
    """Return the logarithm of the integral of ``g_k R``; leave the logarithms of G_k in `trial`."""
    log_inflow, trial, log_x, log_share = state
    top = -np.inf
    for j in range(trial.size):
        trial[j] = np.logaddexp(log_start, log_inflow[j]) - np.logaddexp(log_x[j], log_rate)
        top = max(top, log_share[j] + trial[j])
    total = 0.0
    for j in range(trial.size):
        total += np.exp(log_share[j] + trial[j] - top)
    return top + np.log(total)


@kernel
def _accept(state: tuple, log_rate: float) -> bool:
    """Make the last trial the inflow of the next level."""
    log_inflow, trial = state[:2]
    for j in range(trial.size):
        log_inflow[j] = log_rate + trial[j]
    return True


_climb = climber(_serve, _accept)
