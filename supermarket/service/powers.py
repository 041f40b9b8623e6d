"""Laws with a power-law tail, cut off or not, of mean 1."""

import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike

from supermarket.service.law import Mixture, ServiceLaw, tail_index
from supermarket.service.numerics import exp, log, log_density_at_mean, power_or_infinity
from supermarket.validation import real

_EDGE = 46.0  # exp(-46) = 1e-20: a weight this far below the others is left out
_ALIASING = -40.0  # exp(-40) = 4e-18
_MOST_INDEX = 1e6  # the mixture has 90,000 nodes then; beyond, a power is an exponential


@dataclass(frozen=True)
class Lomax(ServiceLaw):
    r"""The Lomax (Pareto II) law of mean 1: a power-law tail and a decreasing hazard rate.

    .. math:: \bar F(s) = (1 + s / a)^{-\beta}, \qquad a = \beta - 1.

    Parameters
    ----------
    beta : float
        Tail index, above 1, at most 1e6. The variance is infinite for ``beta <= 2``.

    Raises
    ------
    ParameterError
        If `beta` is not a number above 1 and up to 1e6.

    Examples
    --------
    >>> from supermarket import Lomax
    >>> Lomax(2.0).survival(3.0).item(), Lomax(3.0).scv, Lomax(2.0).scv
    (0.0625, 3.0, inf)
    """

    beta: float

    hazard = "decreasing"
    is_mixture = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "beta", tail_index("beta", self.beta, _MOST_INDEX))

    @property
    def tail_index(self) -> float:
        """The tail index beta."""
        return self.beta

    @property
    def tail_constant(self) -> float:
        """The constant c of ``survival(s) ~ c s**-beta``: ``(beta - 1)**beta``."""
        return power_or_infinity(self.beta - 1, self.beta)

    @property
    def scv(self) -> float:
        """Squared coefficient of variation, ``beta / (beta - 2)`` for a beta above 2."""
        return self.beta / (self.beta - 2) if self.beta > 2 else math.inf

    def survival(self, s: ArrayLike) -> np.ndarray:
        """Return ``(1 + s/a)**-beta``, an array of the shape of `s`."""
        return np.exp(-self.beta * np.log1p(s / (self.beta - 1)))

    def integrated_tail(self, s: ArrayLike) -> np.ndarray:
        """Return ``(1 + s/a)**(1 - beta)``, an array of the shape of `s`."""
        return np.exp((1 - self.beta) * np.log1p(s / (self.beta - 1)))

    def log_survival(self, log_s: ArrayLike) -> np.ndarray:
        """Return the logarithm of `survival` at ``exp(log_s)``."""
        return -self.beta * self._log_one_plus(log_s)

    def log_integrated_tail(self, log_s: ArrayLike) -> np.ndarray:
        """Return the logarithm of `integrated_tail` at ``exp(log_s)``."""
        return (1 - self.beta) * self._log_one_plus(log_s)

    def moment(self, k: int) -> float:
        """Return ``a**k k! / ((beta - 1) ... (beta - k))``, infinite for k >= beta."""
        a = self.beta - 1
        if k >= self.beta:
            return math.inf
        return math.prod(a * i / (self.beta - i) for i in range(1, k + 1))

    def laplace(self, theta: ArrayLike) -> np.ndarray:
        """Return the mean of ``exp(-theta S)``, from the mixture."""
        mixture = self.mixture(0.0)
        rate, weight = np.exp(mixture.log_rate[:-1]), np.exp(mixture.log_weight[:-1])
        return (rate / (rate + theta[..., None])) @ weight

    def inverse_survival(self, p: ArrayLike) -> np.ndarray:
        """Return ``a (p**(-1/beta) - 1)``."""
        return (self.beta - 1) * np.expm1(-log(p) / self.beta)

    def sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> np.ndarray:
        """Return independent service times, an array of shape `size`."""
        return (self.beta - 1) * np.expm1(rng.standard_exponential(size) / self.beta)

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
        while (
            scipy.special.loggamma(beta + 1j * omega).real - scipy.special.gammaln(beta) > _ALIASING
        ):
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
            - float(scipy.special.gammaln(beta))
        )
        if beta > 100:  # the same, without large terms that cancel
            beyond = log_rate - peak
            log_weight = (
                math.log(step) + beta * (beyond - np.expm1(beyond)) + log_density_at_mean(beta)
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

    def _log_one_plus(self, log_s: ArrayLike) -> np.ndarray:
        return np.logaddexp(0.0, log_s - math.log(self.beta - 1))


@dataclass(frozen=True)
class Pareto(ServiceLaw):
    r"""The Pareto law of mean 1: a power law above the shortest service time.

    .. math:: \bar F(s) = (s / x)^{-\beta}, \quad s \ge x = (\beta - 1) / \beta.

    Parameters
    ----------
    beta : float
        Tail index, above 1, at most 1e6. The variance is infinite for ``beta <= 2``.

    Raises
    ------
    ParameterError
        If `beta` is not a number above 1 and up to 1e6.

    Examples
    --------
    >>> from supermarket.service import Pareto
    >>> Pareto(2.0).floor, Pareto(2.0).survival(4.0).item()
    (0.5, 0.015625)
    """

    beta: float

    hazard = "neither"

    def __post_init__(self) -> None:
        object.__setattr__(self, "beta", tail_index("beta", self.beta, _MOST_INDEX))

    @property
    def floor(self) -> float:
        """The shortest service time."""
        return (self.beta - 1) / self.beta

    @property
    def tail_index(self) -> float:
        """The tail index beta."""
        return self.beta

    @property
    def tail_constant(self) -> float:
        """The constant c of ``survival(s) = c s**-beta``: ``floor**beta``."""
        return self.floor**self.beta

    @property
    def breaks(self) -> tuple[float, ...]:
        """The floor, where the density jumps."""
        return (self.floor,)

    @property
    def scv(self) -> float:
        """Squared coefficient of variation, ``1 / (beta (beta - 2))`` for a beta above 2."""
        return 1 / (self.beta * (self.beta - 2)) if self.beta > 2 else math.inf

    def survival(self, s: ArrayLike) -> np.ndarray:
        """Return P(service time > s)."""
        s = np.maximum(s, self.floor)
        return (self.floor / s) ** self.beta

    def integrated_tail(self, s: ArrayLike) -> np.ndarray:
        """Return ``1 - s`` below the floor, ``(floor / s)**(beta - 1) / beta`` above."""
        beyond = (self.floor / np.maximum(s, self.floor)) ** (self.beta - 1) / self.beta
        return np.where(s < self.floor, 1 - s, beyond)

    def log_survival(self, log_s: ArrayLike) -> np.ndarray:
        """Return the logarithm of `survival` at ``exp(log_s)``."""
        return -self.beta * self._log_ratio(log_s)

    def log_integrated_tail(self, log_s: ArrayLike) -> np.ndarray:
        """Return the logarithm of `integrated_tail` at ``exp(log_s)``."""
        ratio = self._log_ratio(log_s)
        below = log(-np.expm1(np.minimum(log_s, math.log(self.floor))))
        return np.where(ratio > 0, (1 - self.beta) * ratio - math.log(self.beta), below)

    def moment(self, k: int) -> float:
        """Return ``beta floor**k / (beta - k)``, infinite for k >= beta."""
        return self.beta * self.floor**k / (self.beta - k) if k < self.beta else math.inf

    def laplace(self, theta: ArrayLike) -> np.ndarray:
        """Return the mean of ``exp(-theta S)``: beyond the floor, S has a Lomax law."""
        return np.exp(-self.floor * theta) * Lomax(self.beta).laplace(theta / self.beta)

    def inverse_survival(self, p: ArrayLike) -> np.ndarray:
        """Return ``floor p**(-1/beta)``, or 0 where ``p >= 1``."""
        return np.where(p < 1, self.floor * exp(-log(p) / self.beta), 0.0)

    def sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> np.ndarray:
        """Return independent service times, an array of shape `size`."""
        return self.floor * np.exp(rng.standard_exponential(size) / self.beta)

    def _log_ratio(self, log_s: ArrayLike) -> np.ndarray:
        return np.maximum(log_s - math.log(self.floor), 0.0)


@dataclass(frozen=True)
class BoundedPareto(ServiceLaw):
    r"""The Pareto law cut off at a multiple of the shortest service time, of mean 1.

    The density is proportional to :math:`s^{-\beta - 1}` between `low` and ``ratio * low``.

    Parameters
    ----------
    beta : float
        Exponent, positive. (The tail index of a bounded law is infinite.)
    ratio : float
        Longest service time over the shortest, above 1.

    Raises
    ------
    ParameterError
        If `beta` is not between 0.001 and 1000, or `ratio` not between 1.001 and 1e100.

    Examples
    --------
    >>> from supermarket.service import BoundedPareto
    >>> round(BoundedPareto(1.5, 1000).low, 6), round(BoundedPareto(1.5, 1000).scv, 6)
    (0.344208, 9.8848)
    """

    beta: float
    ratio: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "beta", real("beta", self.beta, 1e-3, 1e3))
        object.__setattr__(self, "ratio", real("ratio", self.ratio, 1.001, 1e100))

    @property
    def low(self) -> float:
        """The shortest service time."""
        return 1 / self._moment(1, 0.0)

    @property
    def end(self) -> float:
        """The longest service time."""
        return self.ratio * self.low

    @property
    def breaks(self) -> tuple[float, ...]:
        """The two ends, where the density jumps."""
        return (self.low, self.end)

    @property
    def hazard(self) -> str:
        """Increasing for ``ratio**beta <= beta + 1``; otherwise it falls after `low` for a time."""
        small = self.beta * math.log(self.ratio) <= math.log1p(self.beta)
        return "increasing" if small else "neither"

    def survival(self, s: ArrayLike) -> np.ndarray:
        """Return P(service time > s)."""
        return exp(self._log_survival(*self._place(s)))

    def integrated_tail(self, s: ArrayLike) -> np.ndarray:
        """Return the integral of `survival` from `s` to the end."""
        return np.where(s < self.low, 1 - s, exp(self._log_work(*self._place(s))))

    def log_survival(self, log_s: ArrayLike) -> np.ndarray:
        """Return the logarithm of `survival` at ``exp(log_s)``."""
        return self._log_survival(*self._log_place(log_s))

    def log_integrated_tail(self, log_s: ArrayLike) -> np.ndarray:
        """Return the logarithm of `integrated_tail` at ``exp(log_s)``."""
        log_low = math.log(self.low)
        below = log(-np.expm1(np.minimum(log_s, log_low)))
        return np.where(log_s < log_low, below, self._log_work(*self._log_place(log_s)))

    def moment(self, k: int) -> float:
        """Return the mean of ``S**k``."""
        return self._moment(k, math.log(self.low))

    def inverse_survival(self, p: ArrayLike) -> np.ndarray:
        """Return the smallest s with ``survival(s) <= p``."""
        power = p + (1 - p) * self.ratio**-self.beta
        return np.where(p < 1, self.low * np.exp(-log(power) / self.beta), 0.0)

    def sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> np.ndarray:
        """Return independent service times, an array of shape `size`, by inversion."""
        return self.inverse_survival(rng.random(size))

    def _moment(self, k: int, log_low: float) -> float:
        """Return the mean of ``S**k`` for a shortest service time of ``exp(log_low)``."""
        width, gap = math.log(self.ratio), k - self.beta
        integral = -math.expm1(-abs(gap) * width) / abs(gap) if gap else width
        front = float(exp(k * log_low + max(gap, 0.0) * width))
        return front * self.beta * integral / -math.expm1(-self.beta * width)

    def _place(self, s: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Return ``log(s / low)`` and ``log(end / s)``, with s moved between the ends."""
        s = np.clip(s, self.low, self.end)
        return np.log1p((s - self.low) / self.low), np.log1p((self.end - s) / s)

    def _log_place(self, log_s: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        width = math.log(self.ratio)
        gone = np.clip(log_s - math.log(self.low), 0.0, width)
        return gone, width - gone

    def _log_survival(self, gone: np.ndarray, left: np.ndarray) -> np.ndarray:
        logs = -self.beta * gone + log(-np.expm1(-self.beta * left)) - self._log_whole
        return np.minimum(logs, 0.0)

    def _log_work(self, gone: np.ndarray, left: np.ndarray) -> np.ndarray:
        """Return the logarithm of `integrated_tail`: of an integral of survival over ``log s``."""
        gap = self.beta - 1
        node, weight = np.polynomial.legendre.leggauss(20)
        y = left[..., None] * (1 + node) / 2
        # the integral of exp(y) (exp(-beta y) - exp(-beta left)) from 0 to left
        near = np.exp(-gap * y) * -np.expm1(-self.beta * (left[..., None] - y))
        near = left / 2 * (near @ weight)
        far = -np.expm1(-gap * left) / gap if gap else left
        far = far + np.exp(-gap * left) * np.expm1(-left)
        integral = np.where(left * (self.beta + 1) < 2, near, far)
        return math.log(self.low) - gap * gone + log(integral) - self._log_whole

    @property
    def _log_whole(self) -> float:
        return math.log(-math.expm1(-self.beta * math.log(self.ratio)))
