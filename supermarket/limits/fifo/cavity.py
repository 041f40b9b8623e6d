"""The cavity equilibrium: the queue of one server when infinitely many share the arrivals."""

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from supermarket.limits.fifo.by_age import SIZE, by_panels, panel_residuals, with_panels
from supermarket.limits.fifo.by_mixture import Thinned, by_mixture, mixture_residuals
from supermarket.limits.fifo.by_phases import by_phases
from supermarket.limits.fifo.sojourn import sojourn_survival
from supermarket.models.jsq import Supermarket, supermarket_of
from supermarket.service import Exponential, ServiceLaw
from supermarket.validation import (
    ParameterError,
    affordable,
    choice,
    instance,
    integer,
    numbers,
    real,
)

__all__ = ["CavityEquilibrium", "cavity"]

_METHODS = ["auto", "mixture", "phases", "panels"]
_NEGLIGIBLE = 1e-4  # a mean is refused where the levels left out are more of it than this


@dataclass(frozen=True)
class CavityEquilibrium:
    """The law of the queue length in the cavity equilibrium, and what follows from it.

    Attributes
    ----------
    tail : ndarray of float64, shape (levels + 1,)
        ``tail[k]`` is P_k, the share of queues with at least k jobs; 0 where it is below 1e-323.
    log_tail : ndarray of float64, shape (levels + 1,)
        Natural logarithm of P_k, finite at every level.
    rates : ndarray of float64, shape (levels,)
        ``rates[k]`` is the arrival rate at a queue with k jobs, in the unit of time of `lam`.
    log_rates : ndarray of float64, shape (levels,)
        Natural logarithm of `rates`, finite at every level.
    service, d, lam, levels
        The parameters: service law, choices (distinct queues, ties uniform), arrival rate per
        server, last level.
    discipline : str
        'fifo', 'ps' or 'lifo'.
    method : str
        'mixture', 'phases' or 'panels'.
    reason : str
        Why this method, in one sentence.
    arithmetic : str
        What was asked for: 'auto', 'linear' or 'log'.
    log_from : int or None
        First level whose tail was computed in logarithms; None if there is none.
    nodes : int
        Number of exponentials in the mixture at the last level, of phases, or of coefficients
        (16 a panel) that describe the age of the job in service.
    step : float or None
        Step of the quadrature in the logarithm of the mixture's rates; None where there is none.
    log_edges : ndarray of float64 or None
        Logarithms of the ages between panels, in mean service times; None without panels.
    """

    tail: np.ndarray
    log_tail: np.ndarray
    rates: np.ndarray
    log_rates: np.ndarray
    service: ServiceLaw
    d: int
    lam: float
    levels: int
    discipline: str
    method: str
    reason: str
    arithmetic: str
    log_from: int | None
    nodes: int
    step: float | None
    log_edges: np.ndarray | None = field(default=None, repr=False)

    @property
    def met(self) -> np.ndarray:
        """Law of the number of jobs that an arrival finds where it joins, shape (levels,)."""
        return self.rates * -np.diff(self.tail) / self.lam

    @property
    def mean_residual(self) -> np.ndarray:
        r"""Mean work left of the job in service given k jobs, FIFO; shape (levels,), NaN for k = 0.

        The equation for P_{k+1} in `cavity` gives it, with m the mean service time:
        :math:`m (P_{k+1} - \lambda m P_{k+1}^d) / (\lambda m (P_k^d - P_{k+1}^d))`.
        """
        self._needs_fifo("mean_residual")
        mean, d = self.service.mean, self.d
        log_load = math.log(self.lam * mean)
        here, after = self.log_tail[:-1], self.log_tail[1:]
        kept = after + np.log(-np.expm1(log_load + (d - 1) * after))
        met = log_load + d * here + np.log(-np.expm1(d * (after - here)))
        residual = mean * np.exp(kept - met)
        residual[0] = math.nan
        return residual

    @cached_property
    def mean_queue(self) -> float:
        """Mean number of jobs in a queue, the sum of P_k over k >= 1.

        Infinite where the tail is a power law with exponent at most 1. What lies beyond the last
        level is extrapolated, as a power law or a geometric series, and has to be small.

        Raises
        ------
        ParameterError
            If the levels beyond the last are more than 1e-4 of the sum.
        """
        beta, d = self.service.tail_index, self.d
        known = float(np.sum(self.tail[:0:-1]))
        room = 1 - (d - 1) * (beta - 1) if beta < math.inf else -math.inf
        if self.discipline == "fifo" and room > 0:  # see fifo_tails.power_law_exponent
            exponent = (beta - 1) / room
            if exponent <= 1:
                return math.inf
            rest = self.tail[-1] * (self.levels / (exponent - 1) - 0.5)
        else:
            ratio = math.exp(self.log_tail[-1] - self.log_tail[-2])
            rest = self.tail[-1] * ratio / (1 - ratio)
        if rest > _NEGLIGIBLE * known:
            raise ParameterError(
                f"levels = {self.levels} is too few for a mean: beyond the last one lies about "
                f"{rest / (known + rest):.2g} of it. Choose more levels."
            )
        return known + float(rest)

    @property
    def mean_sojourn(self) -> float:
        """Mean time of a job in the system, by Little's law; see `mean_queue`."""
        return self.mean_queue / self.lam

    @cached_property
    def error(self) -> np.ndarray | None:
        """How far a coarser quadrature is from `tail`, relatively; shape (levels + 1,).

        With panels, 12 coefficients in each instead of 16; with a mixture, every other of its
        nodes. Both rules converge exponentially, so the error itself is far smaller, but for the
        rounding: about ``1e-15 * max(1, -log_tail)``, times the number of levels.

        None where nothing but rounding is in error: phases, finite mixtures, 'ps' and 'lifo'.
        """
        law, lam = unit(self.service), self.lam * self.service.mean
        if self.log_edges is not None:
            given = law, self.d, lam, self.levels, self.log_edges
            coarse = with_panels(*given, coarse=True)[0]
        elif self.step is not None:
            coarse = by_mixture(Thinned(law), self.d, lam, self.levels, self.arithmetic).log_tail
        else:
            return None
        return np.abs(np.expm1(coarse - self.log_tail))

    def draw(self, rng: np.random.Generator, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Draw queues from the FIFO equilibrium: their lengths and the work left of the first job.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of the draws.
        size : int
            Number of queues.

        Returns
        -------
        lengths : ndarray of int64, shape (size,)
            Numbers of jobs, the one in service among them.
        residuals : ndarray of float64, shape (size,)
            Service still needed by the job in service; 0 where there is none.

        Raises
        ------
        ParameterError
            If the discipline is not 'fifo', or a queue is longer than the last level.
        """
        self._needs_fifo("draw")
        instance("rng", rng, np.random.Generator, "make one with np.random.default_rng(seed)")
        size = integer("size", size, 0)
        affordable(f"size = {size}", 10.0 * size, "draw fewer at a time")
        uniform = 1 - rng.random(size)
        lengths = np.searchsorted(-self.tail, -uniform, side="right") - 1
        if size and np.max(lengths) == self.levels:
            raise ParameterError(
                f"levels = {self.levels} is too few for {size} draws: a share of "
                f"{self.tail[-1]:.3g} of the queues is longer. Choose more levels."
            )
        law = unit(self.service)
        log_rates = self.log_rates + math.log(self.service.mean)
        if self.method == "mixture":
            residuals = mixture_residuals(law, self.tail, np.exp(log_rates), lengths, rng)
        else:
            edges = self._panels(int(np.max(lengths, initial=1)))
            residuals = panel_residuals(law, edges, self.log_tail, log_rates, lengths, rng)
        return lengths, self.service.mean * residuals

    def sojourn_survival(self, times: ArrayLike) -> np.ndarray:
        """Return P(a job's time in the system > t) for FIFO; see `sojourn.sojourn_survival`.

        Parameters
        ----------
        times : array_like of float64
            Times t >= 0.

        Returns
        -------
        ndarray of float64, of the shape of `times`
        """
        self._needs_fifo("sojourn_survival")
        times = numbers("times", times)
        return sojourn_survival(
            unit(self.service),
            self.log_edges,
            self.log_tail,
            self.log_rates + math.log(self.service.mean),
            self.lam * self.service.mean,
            self.d,
            times / self.service.mean,
        )

    def _panels(self, levels: int) -> np.ndarray:
        """Return the edges of panels of ages for the first levels."""
        if self.log_edges is not None:
            return self.log_edges
        return by_panels(unit(self.service), self.d, self.lam * self.service.mean, levels)[2]

    def _needs_fifo(self, name: str) -> None:
        if self.discipline != "fifo":
            raise ParameterError(
                f"{name} is known for discipline = 'fifo' only, and this one is "
                f"{self.discipline!r}."
            )


def cavity(
    model: Supermarket, levels: int, *, method: str = "auto", arithmetic: str = "auto"
) -> CavityEquilibrium:
    r"""Compute the cavity equilibrium level by level, with no truncation.

    Let :math:`g_k(a) \bar F(a)` be the stationary density of "k jobs, the one in service has age
    a", and :math:`p_k = P_k - P_{k+1}`. An arrival joins a queue with k jobs at rate

    .. math:: \lambda_k = \lambda \frac{P_k^d - P_{k+1}^d}{P_k - P_{k+1}},

    so that :math:`g_k' = -\lambda_k g_k + \lambda_{k-1} g_{k-1}`, with
    :math:`g_k(0) = \lambda_k p_k` for :math:`k \ge 2` (a departure leaves k jobs as often as an
    arrival meets k) and :math:`g_1(0) = \lambda_1 p_1 + \lambda_0 p_0`. With :math:`R(a)` the
    integral of :math:`\bar F` from a to infinity, and mean service time 1,

    .. math:: P_{k+1} = \lambda P_{k+1}^d + \lambda_k \int_0^\infty g_k(a) R(a) \, da.

    Starting from :math:`P_0 = 1`, :math:`P_1 = \lambda`, this is one scalar equation
    for :math:`P_{k+1}`, with positive terms only. The three methods differ in how they carry
    :math:`g_k`: see `by_mixture`, `by_phases` and `by_age`.

    Parameters
    ----------
    model : Supermarket
        Its n does not matter.
    levels : int
        Last level, at least 1.
    method : {'auto', 'mixture', 'phases', 'panels'}
        How FIFO is computed. 'auto' takes the mixture of exponentials where the law is one, then
        phases, then panels of ages, which any law has.
    arithmetic : {'auto', 'linear', 'log'}
        'auto' is linear in the mixture until the tail comes near the end of float64's range, and
        goes on in logarithms. 'linear', for a mixture only, stops with an error there. The other
        methods compute in logarithms at once.

    Returns
    -------
    CavityEquilibrium

    Raises
    ------
    ParameterError
        If a parameter is out of range, the method does not go with the law, or the last level is
        out of reach.

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

    Examples
    --------
    >>> from supermarket import Lomax, Supermarket, cavity
    >>> limit = cavity(Supermarket(1000, 2, 0.7, service=Lomax(2.5)), levels=20)
    >>> limit.tail[:4].round(6).tolist()
    [1.0, 0.7, 0.42396, 0.210228]
    >>> round(float(limit.log_tail[20]), 2), limit.method
    (-353.74, 'mixture')
    """
    model = supermarket_of(model)
    d, lam, service, discipline = model.d, model.lam, model.service, model.discipline
    choice("policy", model.policy, ["jsq"])
    lam = real("lam", lam, 0.0, 1 / service.mean, open_low=True, open_high=True)
    levels = integer("levels", levels, 1, 10**6)
    choice("method", method, _METHODS)
    choice("arithmetic", arithmetic, ["auto", "linear", "log"])
    # insensitive disciplines: the exponential law has the same queue lengths
    law = unit(service) if discipline == "fifo" else Exponential()
    method, reason = _method(law, discipline, method, arithmetic)

    load = lam * service.mean
    log_from, step, log_edges = 2 if levels > 1 else None, None, None
    if method == "mixture":
        found = by_mixture(law, d, load, levels, arithmetic)
        tail, rates, log_tail, log_rates = found.tail, found.rates, found.log_tail, found.log_rates
        log_from, nodes, step = found.log_from, found.nodes, found.step
    else:
        if method == "phases":
            log_tail, log_rates, nodes = by_phases(law, d, load, levels)
        else:
            log_tail, log_rates, log_edges = by_panels(law, d, load, levels)
            nodes = SIZE * (log_edges.size - 1)
        tail, rates = np.exp(log_tail), np.exp(log_rates)
    return CavityEquilibrium(
        tail=tail,
        log_tail=log_tail,
        rates=rates / service.mean,
        log_rates=log_rates - math.log(service.mean),
        service=service,
        d=d,
        lam=lam,
        levels=levels,
        discipline=discipline,
        method=method,
        reason=reason,
        arithmetic=arithmetic,
        log_from=log_from,
        nodes=nodes,
        step=step,
        log_edges=log_edges,
    )


def unit(service: ServiceLaw) -> ServiceLaw:
    """Return the law in units of its mean."""
    return service if service.mean == 1 else service.scaled(1.0)


def _method(service: ServiceLaw, discipline: str, method: str, arithmetic: str) -> tuple[str, str]:
    """Return the method to use, and why."""
    forms = {"mixture": service.is_mixture, "phases": service.phases() is not None, "panels": True}
    whys = {
        "mixture": "the service law is a mixture of exponentials",
        "phases": "the service law is of phase type",
        "panels": "the service law is neither a mixture of exponentials nor of phase type",
    }
    if method == "auto":
        method = next(form for form, fits in forms.items() if fits)
        reason = whys[method]
        if discipline != "fifo":
            reason = f"{discipline} is insensitive: its queues are those of exponential service"
    elif forms[method]:
        reason = "asked for"
    else:
        raise ParameterError(
            f"method = {method!r} does not go with service = {service!r}: use 'auto' or "
            f"{', '.join(repr(form) for form, fits in forms.items() if fits)}."
        )
    if arithmetic == "linear" and method != "mixture":
        raise ParameterError(
            f"arithmetic = 'linear' is for mixtures of exponentials, and the method here is "
            f"{method!r}: use arithmetic = 'auto'."
        )
    return method, reason
