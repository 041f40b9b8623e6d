"""Light-tailed laws with one parameter or none, of mean 1."""

import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike

from supermarket.service.law import ServiceLaw
from supermarket.service.numerics import (
    exp,
    log,
    log_gamma_excess,
    log_gamma_tail,
    log_lognormal_excess,
)
from supermarket.validation import integer, real


@dataclass(frozen=True)
class Deterministic(ServiceLaw):
    """Every service takes 1.

    Examples
    --------
    >>> from supermarket.service import Deterministic
    >>> Deterministic().survival([0.5, 1.0]).tolist()
    [1.0, 0.0]
    """

    hazard = "increasing"
    breaks = (1.0,)
    end = 1.0
    scv = 0.0

    def survival(self, s: ArrayLike) -> np.ndarray:
        """Return 1 below 1, and 0 from there on."""
        return np.where(s < 1, 1.0, 0.0)

    def integrated_tail(self, s: ArrayLike) -> np.ndarray:
        """Return ``max(1 - s, 0)``."""
        return np.maximum(1 - s, 0.0)

    def log_survival(self, log_s: ArrayLike) -> np.ndarray:
        """Return the logarithm of `survival` at ``exp(log_s)``."""
        return np.where(log_s < 0, 0.0, -np.inf)

    def log_integrated_tail(self, log_s: ArrayLike) -> np.ndarray:
        """Return the logarithm of `integrated_tail` at ``exp(log_s)``."""
        return log(-np.expm1(np.minimum(log_s, 0.0)))

    def moment(self, k: int) -> float:
        """Return 1."""
        return 1.0

    def laplace(self, theta: ArrayLike) -> np.ndarray:
        """Return ``exp(-theta)``."""
        return np.exp(-theta)

    def inverse_survival(self, p: ArrayLike) -> np.ndarray:
        """Return 1, or 0 where ``p >= 1``."""
        return np.where(p < 1, 1.0, 0.0)

    def sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> np.ndarray:
        """Return ones; `rng` is not used."""
        return np.ones(size)


@dataclass(frozen=True)
class Uniform(ServiceLaw):
    """The uniform law on [0, 2].

    Examples
    --------
    >>> from supermarket.service import Uniform
    >>> Uniform().survival([0.5, 3.0]).tolist()
    [0.75, 0.0]
    """

    hazard = "increasing"
    breaks = (2.0,)
    end = 2.0
    scv = 1 / 3

    def survival(self, s: ArrayLike) -> np.ndarray:
        """Return ``1 - s/2``, 0 from 2 on."""
        return np.maximum(1 - s / 2, 0.0)

    def integrated_tail(self, s: ArrayLike) -> np.ndarray:
        """Return ``(1 - s/2)**2``, 0 from 2 on."""
        return self.survival(s) ** 2

    def log_survival(self, log_s: ArrayLike) -> np.ndarray:
        """Return the logarithm of `survival` at ``exp(log_s)``."""
        return log(-np.expm1(np.minimum(log_s - math.log(2), 0.0)))

    def log_integrated_tail(self, log_s: ArrayLike) -> np.ndarray:
        """Return the logarithm of `integrated_tail` at ``exp(log_s)``."""
        return 2 * self.log_survival(log_s)

    def moment(self, k: int) -> float:
        """Return ``2**k / (k + 1)``."""
        return 2.0**k / (k + 1)

    def laplace(self, theta: ArrayLike) -> np.ndarray:
        """Return ``(1 - exp(-2 theta)) / (2 theta)``."""
        twice = np.where(theta == 0, 1.0, 2 * theta)
        return np.where(theta == 0, 1.0, -np.expm1(-twice) / twice)

    def inverse_survival(self, p: ArrayLike) -> np.ndarray:
        """Return ``2 (1 - p)``."""
        return 2 * (1 - p)

    def sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> np.ndarray:
        """Return independent service times, an array of shape `size`."""
        return 2 * rng.random(size)


@dataclass(frozen=True)
class Gamma(ServiceLaw):
    """The Gamma law of mean 1: ``survival(s) = Q(a, a s)``, Q the upper incomplete Gamma function.

    Parameters
    ----------
    shape : float
        The shape a, positive; the variance is ``1 / a``.

    Raises
    ------
    ParameterError
        If `shape` is not a finite number between 0.001 and 1e4.

    Examples
    --------
    >>> from supermarket.service import Gamma
    >>> Gamma(0.5).scv, Gamma(0.5).hazard
    (2.0, 'decreasing')
    """

    shape: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", real("shape", self.shape, 1e-3, 1e4))

    @property
    def scv(self) -> float:
        """Squared coefficient of variation, ``1 / shape``."""
        return 1 / self.shape

    @property
    def hazard(self) -> str:
        """Decreasing for a shape below 1, increasing for one above."""
        return _hazard(self.shape)

    def survival(self, s: ArrayLike) -> np.ndarray:
        """Return P(service time > s)."""
        return exp(self.log_survival(log(s)))

    def integrated_tail(self, s: ArrayLike) -> np.ndarray:
        """Return the integral of `survival` from `s` to infinity."""
        return exp(self.log_integrated_tail(log(s)))

    def log_survival(self, log_s: ArrayLike) -> np.ndarray:
        """Return the logarithm of `survival` at ``exp(log_s)``."""
        return log_gamma_tail(self.shape, self._x(log_s))

    def log_integrated_tail(self, log_s: ArrayLike) -> np.ndarray:
        """Return the logarithm of `integrated_tail` at ``exp(log_s)``."""
        return log_gamma_excess(self.shape, self._x(log_s))

    def moment(self, k: int) -> float:
        """Return ``a (a + 1) ... (a + k - 1) / a**k``."""
        return math.prod(1 + i / self.shape for i in range(k))

    def laplace(self, theta: ArrayLike) -> np.ndarray:
        """Return ``(1 + theta / a)**-a``."""
        return np.exp(-self.shape * np.log1p(theta / self.shape))

    def inverse_survival(self, p: ArrayLike) -> np.ndarray:
        """Return the smallest s with ``survival(s) <= p``."""
        return scipy.special.gammainccinv(self.shape, p) / self.shape

    def sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> np.ndarray:
        """Return independent service times, an array of shape `size`."""
        return rng.standard_gamma(self.shape, size) / self.shape

    def _x(self, log_s: ArrayLike) -> np.ndarray:
        with np.errstate(over="ignore"):
            return self.shape * exp(log_s)


@dataclass(frozen=True)
class Erlang(Gamma):
    """The sum of `shape` exponential phases, each of mean ``1 / shape``.

    Parameters
    ----------
    shape : int
        Number of phases, at least 1; the variance is ``1 / shape``.

    Raises
    ------
    ParameterError
        If `shape` is not a whole number from 1 to 10**4.

    Examples
    --------
    >>> from supermarket.service import Erlang
    >>> Erlang(4).scv
    0.25
    """

    shape: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", integer("shape", self.shape, 1, 10**4))

    def phases(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Return (alpha, T): phases in a row, each of rate `shape`; None for more than 500."""
        if self.shape > 500:  # integrals over the age take less than matrices
            return None
        alpha = np.zeros(self.shape)
        alpha[0] = 1.0
        return alpha, self.shape * (np.eye(self.shape, k=1) - np.eye(self.shape))


@dataclass(frozen=True)
class Weibull(ServiceLaw):
    """The Weibull law of mean 1: ``survival(s) = exp(-(g s)**k)``, ``g = Gamma(1 + 1/k)``.

    Parameters
    ----------
    shape : float
        The shape k. The tail is heavier than exponential for k < 1, lighter than every power.

    Raises
    ------
    ParameterError
        If `shape` is not a finite number between 0.01 and 1000.

    Examples
    --------
    >>> from supermarket.service import Weibull
    >>> round(Weibull(0.5).scv, 12), Weibull(0.5).hazard
    (5.0, 'decreasing')
    """

    shape: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", real("shape", self.shape, 0.01, 1e3))

    @property
    def _log_g(self) -> float:
        return float(scipy.special.gammaln(1 + 1 / self.shape))

    @property
    def scv(self) -> float:
        """Squared coefficient of variation."""
        return math.expm1(float(scipy.special.gammaln(1 + 2 / self.shape)) - 2 * self._log_g)

    @property
    def hazard(self) -> str:
        """Decreasing for a shape below 1, increasing for one above."""
        return _hazard(self.shape)

    def survival(self, s: ArrayLike) -> np.ndarray:
        """Return P(service time > s)."""
        return exp(self.log_survival(log(s)))

    def integrated_tail(self, s: ArrayLike) -> np.ndarray:
        """Return the integral of `survival` from `s` to infinity: ``Q(1/k, (g s)**k)``."""
        return exp(self.log_integrated_tail(log(s)))

    def log_survival(self, log_s: ArrayLike) -> np.ndarray:
        """Return the logarithm of `survival` at ``exp(log_s)``."""
        return -exp(self.shape * (log_s + self._log_g))

    def log_integrated_tail(self, log_s: ArrayLike) -> np.ndarray:
        """Return the logarithm of `integrated_tail` at ``exp(log_s)``."""
        x = -self.log_survival(log_s)
        early = x < 1e-17  # hardly any service has ended; x itself may underflow
        below = np.log1p(-exp(np.where(early, log_s, -1.0)))
        return np.where(early, below, log_gamma_tail(1 / self.shape, x))

    def moment(self, k: int) -> float:
        """Return ``Gamma(1 + k / shape) / g**k``."""
        return float(exp(scipy.special.gammaln(1 + k / self.shape) - k * self._log_g))

    def inverse_survival(self, p: ArrayLike) -> np.ndarray:
        """Return the smallest s with ``survival(s) <= p``."""
        return exp(log(-log(p)) / self.shape - self._log_g)

    def sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> np.ndarray:
        """Return independent service times, an array of shape `size`."""
        return exp(log(rng.standard_exponential(size)) / self.shape - self._log_g)


@dataclass(frozen=True)
class Lognormal(ServiceLaw):
    """The law of ``exp(sigma Z - sigma**2 / 2)``, Z standard normal; its mean is 1.

    Parameters
    ----------
    sigma : float
        Standard deviation of the logarithm, positive; the variance is ``exp(sigma**2) - 1``.

    Raises
    ------
    ParameterError
        If `sigma` is not a finite number between 1e-6 and 25.

    Examples
    --------
    >>> from supermarket.service import Lognormal
    >>> round(Lognormal(1.0).scv, 12)
    1.718281828459
    """

    sigma: float

    hazard = "neither"

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", real("sigma", self.sigma, 1e-6, 25.0))

    @property
    def scv(self) -> float:
        """Squared coefficient of variation, ``exp(sigma**2) - 1``."""
        return math.expm1(self.sigma**2)

    def survival(self, s: ArrayLike) -> np.ndarray:
        """Return P(service time > s)."""
        return scipy.special.ndtr(-self._z(log(s)))

    def integrated_tail(self, s: ArrayLike) -> np.ndarray:
        """Return the integral of `survival` from `s` to infinity."""
        return exp(self.log_integrated_tail(log(s)))

    def log_survival(self, log_s: ArrayLike) -> np.ndarray:
        """Return the logarithm of `survival` at ``exp(log_s)``."""
        return scipy.special.log_ndtr(-self._z(log_s))

    def log_integrated_tail(self, log_s: ArrayLike) -> np.ndarray:
        """Return the logarithm of `integrated_tail` at ``exp(log_s)``."""
        return log_lognormal_excess(self.sigma, log_s)

    def moment(self, k: int) -> float:
        """Return ``exp(k (k - 1) sigma**2 / 2)``."""
        return float(exp(k * (k - 1) * self.sigma**2 / 2))

    def inverse_survival(self, p: ArrayLike) -> np.ndarray:
        """Return the smallest s with ``survival(s) <= p``."""
        return exp(-self.sigma * scipy.special.ndtri(p) - self.sigma**2 / 2)

    def sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> np.ndarray:
        """Return independent service times, an array of shape `size`."""
        return np.exp(self.sigma * rng.standard_normal(size) - self.sigma**2 / 2)

    def _z(self, log_s: ArrayLike) -> np.ndarray:
        return log_s / self.sigma + self.sigma / 2


def _hazard(shape: float) -> str:
    if shape == 1:
        return "constant"
    return "decreasing" if shape < 1 else "increasing"
