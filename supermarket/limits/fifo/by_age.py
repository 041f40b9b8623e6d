r"""The FIFO cavity for any service law: the age axis cut into panels, a polynomial in each.

In a panel of width h, :math:`g_k` is a Legendre series with coefficients c. The equation
:math:`g_k' = -\lambda_k g_k + \lambda_{k-1} g_{k-1}` is solved by the tau method: what it leaves
over is orthogonal to all polynomials of lower degree. With b the coefficients of the derivative,

.. math:: c_m = \frac h2 \Big[ \frac{b_{m-1}}{2m - 1} - \frac{b_{m+1}}{2m + 3} \Big],

a tridiagonal system, stable however large :math:`\lambda_k h` is. Each panel has its own exponent,
so ages, densities and the service law's tail may be far outside float64's range. A panel is halved
where the law or some :math:`g_k` is not resolved. Derived in this project.
"""

from typing import NamedTuple

import numpy as np
from numpy.polynomial import legendre

from supermarket.kernels.compiled import kernel
from supermarket.limits.fifo.level_equation import climber, first_levels
from supermarket.service import ServiceLaw
from supermarket.validation import ParameterError, affordable, real

SIZE = 16  # coefficients a panel
_UNRESOLVED = 1e-9  # last coefficients above this, relative to the first, halve a panel
_NARROW = 1e-7  # a panel as narrow as this, relative to its right end, stays
_MARGIN = 45.0  # what the ages beyond the last panel add is below exp(-45) = 3e-20
_FAR = 80.0
LONGEST = 600.0  # logarithm of the largest age that is not kept in logarithms
_MOST_WORK = 600_000  # panels times levels: some seconds
_LEAST_LOAD = 1e-150  # panels reach from one service to one arrival
_MOST_CHOICES = 10**5  # which ages far out are told by
_DEEPEST = 1e13  # minus log P_k; beyond, a rounding of the logarithm is felt in the densities


def by_panels(
    service: ServiceLaw, d: int, lam: float, levels: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return ``log_tail``, ``log_rates`` and the edges of the panels for a law of mean 1.

    Parameters
    ----------
    service, d, lam, levels
        As in `cavity`, checked; the law has mean 1.

    Returns
    -------
    log_tail : ndarray of float64, shape (levels + 1,)
    log_rates : ndarray of float64, shape (levels,)
    log_edges : ndarray of float64, shape (panels + 1,)
        Logarithms of the ages between panels, in mean service times; the first is minus infinity.

    Raises
    ------
    ParameterError
        If the last level needs too many panels.
    """
    # Panels for the ages that matter at levels with log P_k > -depth; where the tail goes deeper,
    # again. A law that ends somewhere needs no such limit.
    bounded = service.end < np.inf
    real("the load", lam, _LEAST_LOAD)
    if not bounded:
        affordable("a law without an end", float(d), "choose a smaller d", _MOST_CHOICES, "choices")
    depth, sure, log_sure = _DEEPEST if bounded else 10.0, 1, np.log(lam)
    while True:
        log_edges, below, most = _edges(service, d, lam, levels, depth), -depth, _MOST_WORK // sure
        if log_edges.size <= most:
            log_tail, log_rates, log_edges, k = with_panels(
                service, d, lam, levels, log_edges, -depth, most
            )
            below = log_tail[k]
            if k == levels and (bounded or below >= -depth):
                return log_tail, log_rates, log_edges
        if log_edges.size <= most:
            sure = k if bounded or below >= -depth else max(k - 1, 1)
            log_sure = log_tail[sure]
        if log_edges.size > most or below < -_DEEPEST:
            raise ParameterError(
                f"log P_{sure} = {log_sure:.4g}, and the next level is out of reach of the panels "
                f"of ages: choose levels <= {sure}."
            )
        depth = 2 * max(depth, -below)


def with_panels(
    service: ServiceLaw,
    d: int,
    lam: float,
    levels: int,
    log_edges: np.ndarray,
    least_tail: float = -np.inf,
    most: float = np.inf,
    coarse: bool = False,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Climb with these panels, or halves of them; also return the level reached.

    No panel is halved if it is to be `coarse`, with three quarters of the coefficients.
    """
    size = SIZE - SIZE // 4 if coarse else SIZE
    log_tail, log_rates = first_levels(d, lam, levels)
    while True:
        work, log_work = _work(service, log_edges, size)
        rough = _ends(work * (2 * np.arange(size) + 1)) > _UNRESOLVED
        if coarse or not np.any(rough & _wide(log_edges)) or log_edges.size > most:
            break
        log_edges = _halved(log_edges, rough & _wide(log_edges))
    flow, log_flow = np.zeros_like(work), np.full(work.shape[0], -np.inf)
    k = 1
    while k < levels and log_tail[k] >= least_tail and log_edges.size <= most:
        state = _state(flow, log_flow, work, log_work, log_edges, np.inf if coarse else _UNRESOLVED)
        before = k
        k = _climb(log_tail, log_rates, k, d, np.log(lam), state, -np.inf, least_tail)
        if k == before:
            break
        rough = state.rough & _wide(log_edges)
        if np.any(rough):
            log_edges = _halved(log_edges, rough)
            work, log_work = _work(service, log_edges, size)
            flow, log_flow = _flow_halved(flow, log_flow, rough)
    return log_tail, log_rates, log_edges, k


def panel_residuals(
    service: ServiceLaw,
    log_edges: np.ndarray,
    log_tail: np.ndarray,
    log_rates: np.ndarray,
    lengths: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """Draw the work left of the job in service for queues of the given lengths.

    Given k jobs, the age of the job in service has density proportional to
    ``g_k(a) survival(a)``; it is drawn by rejection within its panel. The work left is then the
    service time, given that it is longer, minus the age.

    Parameters
    ----------
    service : ServiceLaw
        Of mean 1.
    log_edges : ndarray of float64, shape (panels + 1,)
        From `by_panels`.
    log_tail, log_rates : ndarray of float64, shapes (levels + 1,) and (levels,)
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
    log_edges = log_edges[log_edges < LONGEST]
    replay = Replay(log_edges, log_tail, log_rates)
    left, width = np.exp(log_edges[:-1]), np.exp(log_width(log_edges))
    alive = service.survival(left)
    residuals = np.zeros(lengths.size)
    counts = np.bincount(lengths)
    places = np.split(np.argsort(lengths, kind="stable"), np.cumsum(counts)[:-1])
    for k in range(1, counts.size):
        flow, log_flow = replay.level(k)
        # a bound of the density in each panel; the coefficients' sizes add up to more than g_k
        scale = np.exp(log_flow - np.max(log_flow)) * alive
        bound = scale * np.sum(np.abs(flow), axis=1)
        cumulative = np.cumsum(bound * width)
        wanted = places[k]
        while wanted.size:
            panel = np.searchsorted(cumulative, rng.random(wanted.size) * cumulative[-1], "right")
            share = rng.random(wanted.size)
            age = left[panel] + share * width[panel]
            density = np.sum(flow[panel] * legendre.legvander(2 * share - 1, SIZE - 1), axis=1)
            density *= scale[panel] / alive[panel] * service.survival(age)
            kept = rng.random(wanted.size) * bound[panel] < density
            beyond = service.survival(age[kept]) * (1 - rng.random(np.count_nonzero(kept)))
            residuals[wanted[kept]] = np.maximum(service.inverse_survival(beyond) - age[kept], 0.0)
            wanted = wanted[~kept]
    return residuals


class Replay:
    """The densities of the age, level by level, for an equilibrium that is known.

    Parameters
    ----------
    log_edges : ndarray of float64, shape (panels + 1,)
        From `by_panels`, or finer.
    log_tail, log_rates : ndarray of float64, shapes (levels + 1,) and (levels,)
        The equilibrium, in mean service times.
    """

    def __init__(self, log_edges: np.ndarray, log_tail: np.ndarray, log_rates: np.ndarray) -> None:
        panels = log_edges.size - 1
        flow, log_flow = np.zeros((panels, SIZE)), np.full(panels, -np.inf)
        # the integral with R is not needed any more: that of g itself takes its place
        work = np.eye(1, SIZE).repeat(panels, axis=0)
        self._state = _state(flow, log_flow, work, log_width(log_edges), log_edges, np.inf)
        self._log_rates = log_rates
        self._log_starts = log_rates + log_tail[:-1] + np.log(-np.expm1(np.diff(log_tail)))
        self._log_starts[1:2] = np.logaddexp(self._log_starts[0], self._log_starts[1:2])

    def level(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return lam_k g_k, for k = 1, 2, ... one after the other.

        Returns
        -------
        flow : ndarray of float64, shape (panels, 16)
            Legendre coefficients in each panel, with a unit of their own.
        log_flow : ndarray of float64, shape (panels,)
            Logarithms of the units.
        """
        _serve(self._state, self._log_rates[k], self._log_starts[k])
        _accept(self._state, self._log_rates[k])
        return self._state.flow, self._state.log_flow


def _edges(service: ServiceLaw, d: int, lam: float, levels: int, depth: float) -> np.ndarray:
    """Return edges that double, and the breaks of the law, as far as ages matter.

    An age does not matter once the law's tail there is below that of the queue, nor once it
    is much longer than ``levels`` arrivals take at the least rate, ``lam * P_k**(d-1)``.
    """
    longest = min(np.log((2 * _MARGIN + 2 * levels) / lam) + (d - 1) * depth, 1e300)
    # for a law that is nearly constant, the ages that matter end soon after its mean
    for tries in (np.geomspace(0.1, longest, 2000), np.geomspace(1e-9, 0.1, 2000)):
        beyond = ~(service.log_integrated_tail(tries) + tries > -depth - _MARGIN)
        longest = tries[np.argmax(beyond)] if np.any(beyond) else longest
        if not beyond[0]:
            break
    longest = min(longest, np.log(service.end))
    longest = min(longest, 2 * _MOST_WORK * np.log(2))
    log_edges = np.arange(-np.log(d), longest, np.log(2))
    log_breaks = np.log(np.asarray(service.breaks, dtype=np.float64))
    log_edges = np.union1d(log_edges, np.append(log_breaks[log_breaks < longest], longest))
    return np.append(-np.inf, log_edges)


class State(NamedTuple):
    """What `_serve` and `_accept` share.

    Attributes
    ----------
    flow, trial : ndarray of float64, shape (panels, size)
        Coefficients of lam_{k-1} g_{k-1}, which flows into level k, and of the last trial of g_k.
    log_flow, log_trial : ndarray of float64, shape (panels,)
        Logarithms of their units.
    work, log_work : ndarray of float64, shapes (panels, size) and (panels,)
        What integrates g R: see `_work`.
    log_widths : ndarray of float64, shape (panels,)
    inverse : ndarray of float64, shape (size,)
        1 / (2 m + 1).
    scratch : ndarray of float64, shape (2, size)
    rough : ndarray of bool, shape (panels,)
        Which panels do not resolve g_k.
    unresolved : float
        Last coefficients above this, relative to the first, make a panel rough.
    """

    flow: np.ndarray
    log_flow: np.ndarray
    trial: np.ndarray
    log_trial: np.ndarray
    work: np.ndarray
    log_work: np.ndarray
    log_widths: np.ndarray
    inverse: np.ndarray
    scratch: np.ndarray
    rough: np.ndarray
    unresolved: float


def _state(
    flow: np.ndarray,
    log_flow: np.ndarray,
    work: np.ndarray,
    log_work: np.ndarray,
    log_edges: np.ndarray,
    unresolved: float,
) -> State:
    """Return the state before a level, with room for trials."""
    panels, size = flow.shape
    return State(
        flow,
        log_flow,
        trial=np.zeros_like(flow),
        log_trial=np.zeros_like(log_flow),
        work=work,
        log_work=log_work,
        log_widths=log_width(log_edges),
        inverse=1 / (2 * np.arange(size) + 1),
        scratch=np.zeros((2, size)),
        rough=np.zeros(panels, dtype=np.bool_),
        unresolved=unresolved,
    )


def _work(service: ServiceLaw, log_edges: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights, and their exponents, that integrate ``g R`` from g's coefficients."""
    points, weights = legendre.leggauss(size)
    log_widths = log_width(log_edges)
    share = (1 + points) / 2
    # log(left + share * width)
    log_age = np.logaddexp(log_edges[:-1, None], log_widths[:, None] + np.log(share))
    log_tail = service.log_integrated_tail(log_age)
    top = np.max(log_tail, axis=1)
    values = np.exp(log_tail - top[:, None])
    work = (values * weights / 2) @ legendre.legvander(points, size - 1)
    return work, top + log_widths


def _ends(coefficients: np.ndarray) -> np.ndarray:
    """Return the larger of the last two coefficients, relative to the largest."""
    sizes = np.abs(coefficients)
    return np.max(sizes[:, -2:], axis=1) / np.max(sizes, axis=1)


def log_width(log_edges: np.ndarray) -> np.ndarray:
    """Return the logarithms of the widths of the panels."""
    return log_edges[1:] + np.log(-np.expm1(log_edges[:-1] - log_edges[1:]))


def _wide(log_edges: np.ndarray) -> np.ndarray:
    first = np.arange(log_edges.size - 1) == 0
    width = np.where(first, log_edges[1:], log_width(log_edges) - log_edges[1:])
    return width > np.log(_NARROW)


def _halved(log_edges: np.ndarray, rough: np.ndarray) -> np.ndarray:
    middles = np.logaddexp(log_edges[:-1], log_edges[1:]) - np.log(2)
    return np.sort(np.concatenate([log_edges, middles[rough]]))


def _flow_halved(
    flow: np.ndarray, log_flow: np.ndarray, rough: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Write the polynomials of the rough panels out again on the two halves."""
    size = flow.shape[1]
    points, weights = legendre.leggauss(size)
    project = (legendre.legvander(points, size - 1) * weights[:, None]).T * (
        np.arange(size)[:, None] + 0.5
    )
    places = np.repeat(np.arange(rough.size), 1 + rough)
    new = flow[places]
    right = np.append(False, places[1:] == places[:-1])
    left = np.append(right[1:], False)
    for half, shift in ((left, -0.5), (right, 0.5)):
        at = legendre.legvander(points / 2 + shift, size - 1)
        new[half] = new[half] @ (project @ at).T
    return new, log_flow[places]


@kernel
def _serve(state: State, log_rate: float, log_start: float) -> float:
    """Solve for the coefficients of g_k, panel by panel; return the log of its integral with R."""
    flow, log_flow, trial, log_trial = state.flow, state.log_flow, state.trial, state.log_trial
    work, log_work, log_widths = state.work, state.log_work, state.log_widths
    size = flow.shape[1]
    left, log_left = 1.0, log_start
    total, log_total = 0.0, -np.inf
    for p in range(flow.shape[0]):
        # a panel that is far too wide for anything to survive may as well be narrower
        log_step = min(log_widths[p], _FAR - log_rate)
        log_source = log_flow[p] + log_step
        top = max(log_left, log_source)
        log_trial[p] = top
        if top == -np.inf:
            trial[p, :] = 0.0  # nothing reaches these ages
            continue
        half = 0.5 * np.exp(log_rate + log_step)
        source = 0.5 * np.exp(log_source - top)
        begin = left * np.exp(log_left - top)
        right = decay(flow[p], source, half, begin, state.inverse, state.scratch, trial[p])
        served = 0.0
        for m in range(size):
            served += trial[p, m] * work[p, m]
        left = np.sign(right)
        log_left = top + np.log(abs(right)) if right != 0 else -np.inf
        log_served = top + log_work[p]
        if log_served > log_total:
            total = total * np.exp(log_total - log_served) + served
            log_total = log_served
        else:
            total += served * np.exp(log_served - log_total)
    return log_total + np.log(total)


@kernel
def decay(
    inflow: np.ndarray,
    source: float,
    half: complex,
    begin: complex,
    inverse: np.ndarray,
    scratch: np.ndarray,
    out: np.ndarray,
) -> complex:
    """Solve ``y' = -half y + source inflow`` on (-1, 1) from ``y(-1) = begin``; return y(1).

    Legendre coefficients of `inflow` come in, those of y go out; ``inverse[m] = 1 / (2m + 1)``.
    The residual is orthogonal to the polynomials of degree size - 3 and vanishes at 1, which makes
    it the Radau collocation method: y(1) tends to 0 when `half` grows.
    """
    last = inflow.size - 1
    fixed, factor = scratch  # c_m = fixed_m + factor_m c_{m-1}
    pivot = 1 / (1 + half * inverse[last - 1])
    fixed[last] = source * (inflow[last - 1] + inflow[last]) * inverse[last - 1] * pivot
    factor[last] = -half * inverse[last - 1] * pivot
    fixed[last - 1] = source * inflow[last - 2] * inverse[last - 2]
    factor[last - 1] = -half * inverse[last - 2]
    pivot = 1 / (1 + factor[last] * factor[last - 1])
    at_top = fixed[last] + factor[last] * fixed[last - 1]
    fixed[last - 2] = (source * inflow[last - 3] * inverse[last - 3] - at_top) * pivot
    factor[last - 2] = -half * inverse[last - 3] * pivot
    for m in range(last - 3, 0, -1):
        above, below = inverse[m + 1], inverse[m - 1]
        right_side = source * (inflow[m - 1] * below - inflow[m + 1] * above)
        pivot = 1 / (1 - half * factor[m + 1] * above)
        fixed[m] = (right_side + half * fixed[m + 1] * above) * pivot
        factor[m] = -half * below * pivot
    # y(-1) as a function of c_0
    by_fixed, by_first, sign = 0.0 * half, 1.0 + 0.0 * half, 1.0
    sum_fixed, sum_first = 0.0 * half, 1.0 + 0.0 * half
    for m in range(1, last + 1):
        sign = -sign
        by_fixed = fixed[m] + factor[m] * by_fixed
        by_first = factor[m] * by_first
        sum_fixed += sign * by_fixed
        sum_first += sign * by_first
    coefficient = (begin - sum_fixed) / sum_first
    out[0] = end = coefficient
    for m in range(1, last + 1):
        coefficient = fixed[m] + factor[m] * coefficient
        out[m] = coefficient
        end += coefficient
    return end


@kernel
def _accept(state: State, log_rate: float) -> bool:
    """Make the last trial the inflow of the next level; mark the panels that do not resolve it."""
    flow, log_flow, trial, log_trial = state.flow, state.log_flow, state.trial, state.log_trial
    rough = state.rough
    size = flow.shape[1]
    highest, any_rough = -np.inf, False
    for p in range(flow.shape[0]):
        largest = 0.0
        for m in range(size):
            largest = max(largest, abs(trial[p, m]))
        log_largest = log_trial[p] + np.log(largest) if largest > 0 else -np.inf
        for m in range(size):
            flow[p, m] = trial[p, m] / max(largest, 1e-300)
        log_flow[p] = log_largest + log_rate
        # relative to the largest density at this age or below: younger ages flow into older ones
        highest = max(highest, log_largest)
        end = max(abs(flow[p, size - 1]), abs(flow[p, size - 2]))
        rough[p] = end * np.exp(log_largest - highest) > state.unresolved
        any_rough |= rough[p]
    return not any_rough


_climb = climber(_serve, _accept)
