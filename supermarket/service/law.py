"""What every service-time law can do, and the same law with another mean."""

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from supermarket.service.numerics import laplace, power_or_infinity, smallest_above
from supermarket.validation import ParameterError, integer, real, reals, said

# Times that are measured, and means: their squares, and sums of those, are within float64's range.
SHORTEST, LONGEST = 1e-150, 1e150


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


def _transformed(theta: ArrayLike) -> np.ndarray:
    """Return theta as finite float64 or complex128, with a real part that is not negative."""
    if not np.iscomplexobj(theta):
        return np.minimum(reals("theta", theta, 0.0), np.finfo(np.float64).max)
    theta = np.asarray(theta, dtype=np.complex128)
    if not (np.all(theta.real >= 0) and np.all(np.isfinite(theta))):
        raise ParameterError(
            f"theta = {said(theta)} is out of range: choose finite numbers with a real part of 0 "
            f"or more."
        )
    return theta


_ARGUMENTS: dict[str, Callable[[Any], Any]] = {
    "survival": lambda s: reals("s", s, 0.0),
    "integrated_tail": lambda s: reals("s", s, 0.0),
    "log_survival": lambda log_s: reals("log_s", log_s),
    "log_integrated_tail": lambda log_s: reals("log_s", log_s),
    "inverse_survival": lambda p: reals("p", p, 0.0, 1.0),
    "laplace": _transformed,
    "moment": lambda k: integer("k", k, 0, 1000),
}


def _checked(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method of a law that hands on its argument checked, and as float64.

    What is above 1e308 is infinite in it, and what is below 1e-324 is 0, without a warning.
    """
    check = _ARGUMENTS[method.__name__]

    @functools.wraps(method)
    def wrapped(self: "ServiceLaw", *given: Any, **named: Any) -> Any:
        given, named = tuple(map(check, given)), {name: check(x) for name, x in named.items()}
        with np.errstate(over="ignore", under="ignore"):
            return method(self, *given, **named)

    return wrapped


class ServiceLaw(ABC):
    """A law of the service time. Every named law has mean 1; `scaled` gives it another.

    Functions of s take any array_like of nonnegative numbers and return float64 of its shape. What
    is outside the domain of a function, such as a negative time, is refused with a ParameterError,
    here and for every law.

    Attributes
    ----------
    mean : float
        Finite and positive; 1 for every named law.
    scv : float
        Squared coefficient of variation, ``variance / mean**2``; infinite if the variance is.
    tail_index : float
        beta where ``survival(s)`` is of order ``s**-beta``; infinite for a lighter tail.
    tail_constant : float
        c of ``survival(s) ~ c s**-beta``; NaN where the tail index is infinite.
    hazard : str
        How the hazard rate goes with the age: 'constant', 'decreasing', 'increasing' (a law with
        an atom at the right end of its support may be), 'neither' or 'unknown'.
    breaks : tuple of float
        Increasing positive points where `survival` or a derivative jumps.
    end : float
        Right end of the support, infinite if there is none.
    is_mixture : bool
        Whether the law is a mixture of exponentials that `mixture` can give.

    Examples
    --------
    >>> from supermarket import Lomax, ServiceLaw
    >>> law = Lomax(2.5).scaled(2.0)
    >>> isinstance(law, ServiceLaw), law.mean, law.scv, law.tail_index
    (True, 2.0, 5.0, 2.5)
    >>> round(float(law.survival(3.0)), 6)
    0.176777
    """

    mean: float = 1.0
    tail_index: float = math.inf
    tail_constant: float = math.nan
    hazard: str = "unknown"
    breaks: tuple[float, ...] = ()
    end: float = math.inf
    is_mixture: bool = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in _ARGUMENTS.keys() & vars(cls).keys():
            setattr(cls, name, _checked(vars(cls)[name]))

    @property
    def scv(self) -> float:
        """Squared coefficient of variation."""
        return max(self.moment(2) / self.mean**2 - 1, 0.0)

    @abstractmethod
    def survival(self, s: ArrayLike) -> np.ndarray:
        """Return P(service time > s)."""

    @abstractmethod
    def integrated_tail(self, s: ArrayLike) -> np.ndarray:
        """Return the integral of `survival` from `s` to infinity: the mean work left beyond s."""

    @abstractmethod
    def log_survival(self, log_s: ArrayLike) -> np.ndarray:
        """Return the logarithm of `survival` at ``exp(log_s)``, also where that is below 1e-308."""

    @abstractmethod
    def log_integrated_tail(self, log_s: ArrayLike) -> np.ndarray:
        """Return the logarithm of `integrated_tail` at ``exp(log_s)``."""

    @abstractmethod
    def moment(self, k: int) -> float:
        """Return the mean of ``S**k``, k from 0 to 1000; infinite if it is, or is above 1e308."""

    @_checked
    def laplace(self, theta: ArrayLike) -> np.ndarray:
        """Return the mean of ``exp(-theta S)`` for theta >= 0, with an absolute error near 1e-13.

        Laws with a closed form also take complex theta with a nonnegative real part, and are
        accurate relatively.
        """
        small = 10.0 ** -np.arange(1, 17)
        quantiles = self.inverse_survival(np.concatenate([1 - small, [0.75, 0.5, 0.25], small]))
        edges = np.unique([*quantiles, *self.breaks, self.end])
        return laplace(self.survival, theta, edges)

    @_checked
    def inverse_survival(self, p: ArrayLike) -> np.ndarray:
        """Return the smallest s with ``survival(s) <= p``, for p in [0, 1]."""
        return smallest_above(self.survival, p)

    @abstractmethod
    def sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> np.ndarray:
        """Return independent service times, an array of shape `size`."""

    def scaled(self, mean: float) -> "ServiceLaw":
        """Return the law of the same shape with another mean (that of ``mean / self.mean * S``)."""
        mean = mean_time(mean)
        return self if mean == self.mean else Scaled(self, mean)

    def mixture(self, log_low: float) -> Mixture:
        """Return the law as a mixture of exponentials with every rate down to ``exp(log_low)``.

        Mixtures with different `log_low` have their common nodes at the same places, so a sum can
        be continued to lower rates without starting again.

        Raises
        ------
        ParameterError
            If the law is not such a mixture (`is_mixture`).
        """
        raise ParameterError(
            f"service = {self!r} is not a mixture of exponentials: use Exponential(), Lomax(beta) "
            f"or Hyperexponential(probabilities, rates)."
        )

    def phases(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Return (alpha, T), shapes (m,) and (m, m), if the law is of phase type; otherwise None.

        Phases start from alpha and move at the rates of the sub-generator T, so that
        ``survival(s) = alpha @ expm(T s) @ ones``.
        """
        return None


@dataclass(frozen=True, repr=False)
class Scaled(ServiceLaw):
    """The law of ``mean / law.mean * S`` where S has the given law; `ServiceLaw.scaled` makes it.

    Parameters
    ----------
    law : ServiceLaw
        The law before scaling.
    mean : float
        The mean after it.
    """

    law: ServiceLaw
    mean: float

    def __repr__(self) -> str:
        return f"{self.law!r}.scaled({self.mean!r})"

    @property
    def factor(self) -> float:
        """The factor that every service time is multiplied by."""
        return self.mean / self.law.mean

    @property
    def scv(self) -> float:
        """That of the law before scaling, as are the tail index, the hazard and `is_mixture`."""
        return self.law.scv

    @property
    def tail_index(self) -> float:
        """The tail index."""
        return self.law.tail_index

    @property
    def tail_constant(self) -> float:
        """The tail constant, ``factor**beta`` times that before scaling."""
        beta = self.law.tail_index
        return (
            self.law.tail_constant * power_or_infinity(self.factor, beta)
            if beta < math.inf
            else math.nan
        )

    @property
    def hazard(self) -> str:
        """How the hazard rate goes with the age."""
        return self.law.hazard

    @property
    def breaks(self) -> tuple[float, ...]:
        """The points where `survival` or a derivative jumps."""
        return tuple(self.factor * point for point in self.law.breaks)

    @property
    def end(self) -> float:
        """Right end of the support."""
        return self.factor * self.law.end

    @property
    def is_mixture(self) -> bool:
        """Whether the law is a mixture of exponentials."""
        return self.law.is_mixture

    def survival(self, s: ArrayLike) -> np.ndarray:
        """Return P(service time > s)."""
        return self.law.survival(s / self.factor)

    def integrated_tail(self, s: ArrayLike) -> np.ndarray:
        """Return the integral of `survival` from `s` to infinity."""
        return self.factor * self.law.integrated_tail(s / self.factor)

    def log_survival(self, log_s: ArrayLike) -> np.ndarray:
        """Return the logarithm of `survival` at ``exp(log_s)``."""
        return self.law.log_survival(log_s - math.log(self.factor))

    def log_integrated_tail(self, log_s: ArrayLike) -> np.ndarray:
        """Return the logarithm of `integrated_tail` at ``exp(log_s)``."""
        shift = math.log(self.factor)
        return shift + self.law.log_integrated_tail(log_s - shift)

    def moment(self, k: int) -> float:
        """Return the mean of ``S**k``."""
        moment, power = self.law.moment(k), power_or_infinity(self.factor, k)
        if power == 0 and moment == math.inf:  # beyond float64, unless the tail makes it infinite
            return math.inf if k >= self.tail_index else 0.0
        return power * moment

    def laplace(self, theta: ArrayLike) -> np.ndarray:
        """Return the mean of ``exp(-theta S)``."""
        return self.law.laplace(theta * self.factor)

    def inverse_survival(self, p: ArrayLike) -> np.ndarray:
        """Return the smallest s with ``survival(s) <= p``."""
        return self.factor * self.law.inverse_survival(p)

    def sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> np.ndarray:
        """Return independent service times, an array of shape `size`."""
        return self.factor * self.law.sample(rng, size)

    def scaled(self, mean: float) -> ServiceLaw:
        """Return the law of the same shape with another mean."""
        return self if mean == self.mean else self.law.scaled(mean)

    def mixture(self, log_low: float) -> Mixture:
        """Return the law as a mixture of exponentials."""
        shift = math.log(self.factor)
        mixture = self.law.mixture(log_low + shift)
        return Mixture(
            log_rate=mixture.log_rate - shift,
            log_weight=mixture.log_weight,
            log_share=mixture.log_share + shift,
            step=mixture.step,
            low=mixture.low - shift,
        )

    def phases(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Return (alpha, T) if the law is of phase type."""
        phases = self.law.phases()
        return None if phases is None else (phases[0], phases[1] / self.factor)


def mean_time(value: object) -> float:
    """Return `value` as a mean service time.

    Raises
    ------
    ParameterError
        If it is not a number from 1e-150 to 1e150.
    """
    return real("mean", value, SHORTEST, LONGEST)


def tail_index(name: str, value: object, high: float = math.inf) -> float:
    """Return `value` as a tail index, above 1: the mean is infinite otherwise.

    Raises
    ------
    ParameterError
        If it is not a finite number above 1, or is above `high`.
    """
    value = real(name, value, high=high)
    if value <= 1:
        raise ParameterError(
            f"{name} = {value:.16g} gives a service time without a mean: choose {name} > 1, "
            f"such as {name} = 1.5."
        )
    return value
