"""Service-time laws of mean 1, each one a mixture of exponentials.

A law with survival function ``F(s) = sum_j w_j exp(-x_j s)``, all weights positive, is what the
cavity recursion needs (`supermarket.theory.cavity`). A Lomax law is such a mixture with a Gamma
density for the rates, and the trapezoidal rule in ``log x`` turns it into a sum.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, loggamma

from supermarket.validation import ParameterError, real

_EDGE = 46.0  # exp(-46) = 1e-20: a weight this far below the others is left out
_ALIASING = -40.0  # exp(-40) = 4e-18


@dataclass(frozen=True)
class Mixture:
    """Nodes and positive weights of a law written as a mixture of exponentials, in logs.

    ``survival(s) = sum_j exp(log_weight[j] - x_j s)`` and
    ``integrated_tail(s) = sum_j exp(log_share[j] - x_j s)``, where ``x_j = exp(log_rate[j])``.

    Attributes
    ----------
    log_rate : ndarray of float64, shape (m,)
        Logarithms of the rates, decreasing. A last node at minus infinity holds together all the
        rates below `low`, whose weight is nothing but whose share of the work is not.
    log_weight : ndarray of float64, shape (m,)
        Logarithms of the weights (the share of the jobs).
    log_share : ndarray of float64, shape (m,)
        ``log_weight - log_rate`` (the share of the work; a law of mean 1 has sum 1).
    step : float or None
        Step of the trapezoidal rule in ``log x``; None if the sum is exact.
    low : float
        Logarithm of the least positive rate kept; minus infinity if none is left out.
    """

    log_rate: np.ndarray
    log_weight: np.ndarray
    log_share: np.ndarray
    step: float | None
    low: float


class ServiceLaw(ABC):
    """A law of the service time, with mean 1.

    Attributes
    ----------
    mean : float
        1: time is in mean service times everywhere.
    tail_index : float
        beta where ``survival(s)`` is of order ``s**-beta``; infinite for a lighter tail.
    """

    mean: float = 1.0
    tail_index: float = math.inf

    @abstractmethod
    def survival(self, s: ArrayLike) -> np.ndarray:
        """Return P(service time > s), an array of the shape of `s` (mean service times)."""

    @abstractmethod
    def integrated_tail(self, s: ArrayLike) -> np.ndarray:
        """Return the integral of `survival` from `s` to infinity, of the shape of `s`."""

    @abstractmethod
    def mixture(self, log_low: float) -> Mixture:
        """Return the law as a mixture of exponentials with every rate down to ``exp(log_low)``.

        Mixtures with different `log_low` have their common nodes at the same places, so a sum can
        be continued to lower rates without starting again.
        """


@dataclass(frozen=True)
class Exponential(ServiceLaw):
    """The exponential law of rate 1: ``survival(s) = exp(-s)``."""

    def survival(self, s: ArrayLike) -> np.ndarray:
        """Return ``exp(-s)``, an array of the shape of `s`."""
        return np.exp(-np.asarray(s, dtype=np.float64))

    def integrated_tail(self, s: ArrayLike) -> np.ndarray:
        """Return ``exp(-s)``, an array of the shape of `s`."""
        return self.survival(s)

    def mixture(self, log_low: float) -> Mixture:
        """Return the one node, at rate 1."""
        return _atoms(np.ones(1), np.ones(1))


@dataclass(frozen=True)
class Lomax(ServiceLaw):
    r"""The Lomax (Pareto II) law of mean 1: a power-law tail and a decreasing hazard rate.

    .. math:: \bar F(s) = (1 + s / a)^{-\beta}, \qquad a = \beta - 1.

    Parameters
    ----------
    beta : float
        Tail index, above 1. The variance is infinite for ``beta <= 2``.

    Raises
    ------
    ParameterError
        If `beta` is not a finite number above 1.
    """

    beta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "beta", tail_index("beta", self.beta))

    @property
    def tail_index(self) -> float:
        """The tail index beta."""
        return self.beta

    @property
    def tail_constant(self) -> float:
        """The constant c of ``survival(s) ~ c s**-beta``: ``(beta - 1)**beta``."""
        return (self.beta - 1) ** self.beta

    def survival(self, s: ArrayLike) -> np.ndarray:
        """Return ``(1 + s/a)**-beta``, an array of the shape of `s`."""
        s = np.asarray(s, dtype=np.float64)
        return np.exp(-self.beta * np.log1p(s / (self.beta - 1)))

    def integrated_tail(self, s: ArrayLike) -> np.ndarray:
        """Return ``(1 + s/a)**(1 - beta)``, an array of the shape of `s`."""
        s = np.asarray(s, dtype=np.float64)
        return np.exp((1 - self.beta) * np.log1p(s / (self.beta - 1)))

    def mixture(self, log_low: float) -> Mixture:
        r"""Return the trapezoidal rule in :math:`t = \log x` of the Gamma mixture.

        .. math::
            \bar F(s) = \frac{a^\beta}{\Gamma(\beta)}
            \int_{-\infty}^{\infty} e^{\beta t - a e^t} \exp(-e^t s) \, dt.

        With step h, the relative error is :math:`2 |\Gamma(\beta + i \omega)| / \Gamma(\beta)`,
        :math:`\omega = 2 \pi / h`, at every s (the integrand's Fourier transform). The step makes
        it 1e-17.
        """
        beta, a = self.beta, self.beta - 1
        omega = 28.0
        while loggamma(beta + 1j * omega).real - gammaln(beta) > _ALIASING:
            omega *= 1.05
        step = 2 * math.pi / omega
        peak = math.log(beta / a)
        # beta (t - peak) - beta (exp(t - peak) - 1) < -_EDGE beyond this
        above = math.log1p(_EDGE / beta + math.sqrt(2 * _EDGE / beta))
        low = min(log_low, -math.log(a) - _EDGE, -_EDGE)
        count = math.ceil((peak + above - low) / step) + 1
        log_rate = peak + above - step * np.arange(count)
        log_weight = (
            math.log(step)
            + beta * (math.log(a) + log_rate)
            - a * np.exp(log_rate)
            - float(gammaln(beta))
        )
        log_share = log_weight - log_rate
        # below the lowest node the shares are geometric, with ratio exp(-a step)
        rest = log_share[-1] - math.log(math.expm1(a * step))
        return Mixture(
            log_rate=np.append(log_rate, -np.inf),
            log_weight=np.append(log_weight, -np.inf),
            log_share=np.append(log_share, rest),
            step=step,
            low=float(log_rate[-1]),
        )


@dataclass(frozen=True)
class Hyperexponential(ServiceLaw):
    """A choice between exponential phases: ``survival(s) = sum_j p_j exp(-r_j s)``, mean 1.

    Parameters
    ----------
    probabilities : sequence of float, shape (m,)
        Probability of each phase, positive, with sum 1.
    rates : sequence of float, shape (m,)
        Rate of each phase, positive. The mean, ``sum(p / r)``, has to be 1.

    Raises
    ------
    ParameterError
        If the lengths differ, a number is not positive, or a sum is not 1 within 1e-9.
    """

    probabilities: tuple[float, ...]
    rates: tuple[float, ...]

    def __post_init__(self) -> None:
        probabilities = _positive("probabilities", self.probabilities)
        rates = _positive("rates", self.rates)
        if len(probabilities) != len(rates):
            raise ParameterError(
                f"probabilities has {len(probabilities)} entries and rates has {len(rates)}: "
                f"give one rate for each phase."
            )
        total = math.fsum(probabilities)
        if abs(total - 1) > 1e-9:
            raise ParameterError(
                f"probabilities add up to {total:.12g}, and they have to add up to 1: "
                f"divide each by {total:.12g}."
            )
        mean = math.fsum(p / r for p, r in zip(probabilities, rates, strict=True))
        if abs(mean - 1) > 1e-9:
            raise ParameterError(
                f"the mean service time is {mean:.12g}, and it has to be 1: "
                f"multiply every rate by {mean:.12g}."
            )
        object.__setattr__(self, "probabilities", probabilities)
        object.__setattr__(self, "rates", rates)

    @classmethod
    def balanced(cls, scv: float) -> Self:
        """Return two phases, each with half of the work, of mean 1 and variance `scv`.

        Parameters
        ----------
        scv : float
            Squared coefficient of variation, at least 1 (1 is the exponential law).
        """
        scv = real("scv", scv, 1.0)
        # 1 - p computed without cancellation, so a rate stays positive for any scv
        small = 1 / (scv + 1 + math.sqrt((scv - 1) * (scv + 1)))
        return cls((1 - small, small), (2 * (1 - small), 2 * small))

    def survival(self, s: ArrayLike) -> np.ndarray:
        """Return P(service time > s), an array of the shape of `s`."""
        return self._sum(s, np.array(self.probabilities))

    def integrated_tail(self, s: ArrayLike) -> np.ndarray:
        """Return the integral of `survival` from `s` to infinity, of the shape of `s`."""
        return self._sum(s, np.array(self.probabilities) / np.array(self.rates))

    def mixture(self, log_low: float) -> Mixture:
        """Return the phases themselves."""
        return _atoms(np.array(self.probabilities), np.array(self.rates))

    def _sum(self, s: ArrayLike, weights: np.ndarray) -> np.ndarray:
        s = np.asarray(s, dtype=np.float64)
        return np.exp(-s[..., None] * np.array(self.rates)) @ weights


def tail_index(name: str, value: object) -> float:
    """Return `value` as a tail index, above 1: the mean is infinite otherwise.

    Raises
    ------
    ParameterError
        If it is not a finite number above 1.
    """
    value = real(name, value)
    if value <= 1:
        raise ParameterError(
            f"{name} = {value:.16g} gives a service time without a mean: choose {name} > 1, "
            f"such as {name} = 1.5."
        )
    return value


def _positive(name: str, values: object) -> tuple[float, ...]:
    try:
        values = tuple(values)
    except TypeError:
        raise ParameterError(
            f"{name} = {values!r} is not a list of numbers: give one number a phase, "
            f"such as {name} = [0.5, 0.5]."
        ) from None
    if not values:
        raise ParameterError(f"{name} is empty: give one number a phase.")
    return tuple(real(f"{name}[{i}]", value, 0.0, open_low=True) for i, value in enumerate(values))


def _atoms(weights: np.ndarray, rates: np.ndarray) -> Mixture:
    order = np.argsort(-rates)
    log_rate, log_weight = np.log(rates[order]), np.log(weights[order])
    return Mixture(log_rate, log_weight, log_weight - log_rate, step=None, low=-math.inf)
