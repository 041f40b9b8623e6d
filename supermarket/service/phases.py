"""The exponential law, and laws built of exponential phases."""

import itertools
import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from supermarket.service.law import LONGEST, Mixture, ServiceLaw, mean_time
from supermarket.service.numerics import exp, log
from supermarket.validation import ParameterError, real


@dataclass(frozen=True)
class Exponential(ServiceLaw):
    """The exponential law of rate 1: ``survival(s) = exp(-s)``.

    Examples
    --------
    >>> from supermarket import Exponential
    >>> Exponential().scaled(2.0).survival(0.0).item(), Exponential().moment(3)
    (1.0, 6.0)
    """

    hazard = "constant"
    is_mixture = True
    scv = 1.0

    def survival(self, s: ArrayLike) -> np.ndarray:
        """Return ``exp(-s)``, an array of the shape of `s`."""
        return np.exp(-s)

    def integrated_tail(self, s: ArrayLike) -> np.ndarray:
        """Return ``exp(-s)``, an array of the shape of `s`."""
        return self.survival(s)

    def log_survival(self, log_s: ArrayLike) -> np.ndarray:
        """Return ``-exp(log_s)``."""
        return -exp(log_s)

    def log_integrated_tail(self, log_s: ArrayLike) -> np.ndarray:
        """Return ``-exp(log_s)``."""
        return -exp(log_s)

    def moment(self, k: int) -> float:
        """Return ``k!``."""
        return _factorial(k)

    def laplace(self, theta: ArrayLike) -> np.ndarray:
        """Return ``1 / (1 + theta)``."""
        return 1 / (1 + theta)

    def inverse_survival(self, p: ArrayLike) -> np.ndarray:
        """Return ``-log(p)``."""
        return -log(p) + 0.0

    def sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> np.ndarray:
        """Return independent service times, an array of shape `size`."""
        return rng.standard_exponential(size)

    def mixture(self, log_low: float) -> Mixture:
        """Return the one node, at rate 1."""
        return _atoms(np.ones(1), np.ones(1))

    def phases(self) -> tuple[np.ndarray, np.ndarray]:
        """Return (alpha, T) of the one phase."""
        return np.ones(1), -np.ones((1, 1))


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

    Examples
    --------
    >>> from supermarket import Hyperexponential
    >>> law = Hyperexponential.from_scv(4.0, fraction=0.9)
    >>> round(law.scv, 12), law.hazard
    (4.0, 'decreasing')
    """

    probabilities: tuple[float, ...]
    rates: tuple[float, ...]

    is_mixture = True

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
        object.__setattr__(self, "probabilities", _shares(probabilities))
        object.__setattr__(self, "rates", rates)

    @classmethod
    def from_scv(cls, scv: float, fraction: float = 0.5) -> Self:
        """Return two phases, of mean 1 and variance `scv`.

        Parameters
        ----------
        scv : float
            Squared coefficient of variation, at least 1 (1 is the exponential law).
        fraction : float
            Share of the work, in (0, 1), that the first phase does: the one of the short services.

        Raises
        ------
        ParameterError
            If a number is out of range.
        """
        scv = real("scv", scv, 1.0)
        fraction = real("fraction", fraction, 0.0, 1.0, open_low=True, open_high=True)
        # With rates x >= y: f x + (1-f) y = 1 and f/x + (1-f)/y = (scv+1) / 2 = half. Each root is
        # written so that nothing cancels.
        rest, half = 1 - fraction, (scv + 1) / 2
        spread = math.sqrt(half - 1) * math.sqrt(half - 1 + 4 * fraction * rest)
        fast = (half - 1 + 2 * fraction + spread) / (2 * half * fraction)
        slow = 2 * rest / (half - 1 + 2 * rest + spread)
        return cls((fraction * fast, rest * slow), (fast, slow))

    @property
    def hazard(self) -> str:
        """Decreasing, unless all rates are equal."""
        return "constant" if len(set(self.rates)) == 1 else "decreasing"

    def survival(self, s: ArrayLike) -> np.ndarray:
        """Return P(service time > s), an array of the shape of `s`."""
        return self._sum(s, np.array(self.probabilities))

    def integrated_tail(self, s: ArrayLike) -> np.ndarray:
        """Return the integral of `survival` from `s` to infinity, of the shape of `s`."""
        return self._sum(s, np.array(self.probabilities) / np.array(self.rates))

    def log_survival(self, log_s: ArrayLike) -> np.ndarray:
        """Return the logarithm of `survival` at ``exp(log_s)``."""
        return self._log_sum(log_s, np.log(self.probabilities))

    def log_integrated_tail(self, log_s: ArrayLike) -> np.ndarray:
        """Return the logarithm of `integrated_tail` at ``exp(log_s)``."""
        return self._log_sum(log_s, np.log(self.probabilities) - np.log(self.rates))

    def moment(self, k: int) -> float:
        """Return ``k! sum_j p_j / r_j**k``."""
        means = 1 / np.array(self.rates)
        with np.errstate(over="ignore"):
            return _factorial(k) * float(np.array(self.probabilities) * means @ means ** (k - 1))

    def laplace(self, theta: ArrayLike) -> np.ndarray:
        """Return ``sum_j p_j r_j / (r_j + theta)``."""
        rates = np.array(self.rates)
        return (rates / (rates + theta[..., None])) @ np.array(self.probabilities)

    def sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> np.ndarray:
        """Return independent service times, an array of shape `size`."""
        share = np.array(self.probabilities) / math.fsum(self.probabilities)
        phase = rng.choice(share.size, size, p=share)
        return rng.standard_exponential(size) / np.array(self.rates)[phase]

    def mixture(self, log_low: float) -> Mixture:
        """Return the phases themselves."""
        return _atoms(np.array(self.probabilities), np.array(self.rates))

    def phases(self) -> tuple[np.ndarray, np.ndarray]:
        """Return (alpha, T): the phases side by side."""
        return np.array(self.probabilities), -np.diag(self.rates)

    def _sum(self, s: ArrayLike, weights: np.ndarray) -> np.ndarray:
        return np.exp(-s[..., None] * np.array(self.rates)) @ weights

    def _log_sum(self, log_s: ArrayLike, log_weights: np.ndarray) -> np.ndarray:
        return np.logaddexp.reduce(
            log_weights - exp(log_s)[..., None] * np.array(self.rates), axis=-1
        )


@dataclass(frozen=True)
class PhaseType(ServiceLaw):
    """The time to leave a finite Markov chain; its mean is whatever it is.

    ``survival(s) = alpha @ expm(T s) @ ones``. ``PhaseType(alpha, T).scaled(1)`` has mean 1.
    The logarithms of a long chain end at minus infinity: near s = 4000 for 100 phases in a row of
    mean 1, beyond 1e8 for 40.

    Parameters
    ----------
    alpha : sequence of float, shape (m,)
        Probability of starting in each phase, with sum 1.
    T : sequence of sequences of float, shape (m, m)
        Rates: ``T[i][j]`` from phase i to phase j, and ``-T[i][i]`` out of phase i. A row has sum 0
        or less; what is missing is the rate of the service's end.

    Raises
    ------
    ParameterError
        If the shapes differ, a number is out of range, or a phase never leads to the end.

    Examples
    --------
    >>> from supermarket.service import PhaseType
    >>> law = PhaseType([1.0, 0.0], [[-2.0, 1.0], [0.0, -1.0]])
    >>> law.mean, law.moment(2)
    (1.0, 2.0)
    """

    alpha: tuple[float, ...]
    T: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        alpha = _numbers("alpha", self.alpha)
        alpha = tuple(real(f"alpha[{i}]", value, 0.0, 1.0) for i, value in enumerate(alpha))
        total = math.fsum(alpha)
        if abs(total - 1) > 1e-9:
            raise ParameterError(
                f"alpha adds up to {total:.12g}, and it has to add up to 1: a service takes "
                f"a positive time."
            )
        rows = tuple(_numbers(f"T[{i}]", row) for i, row in enumerate(_numbers("T", self.T)))
        if len(rows) != len(alpha) or any(len(row) != len(alpha) for row in rows):
            raise ParameterError(
                f"T has {len(rows)} rows of lengths {sorted({len(row) for row in rows})}: give a "
                f"square of the size of alpha, {len(alpha)}."
            )
        rows = tuple(
            tuple(
                real(f"T[{i}][{j}]", value, *((-LONGEST, 0.0) if i == j else (0.0, LONGEST)))
                for j, value in enumerate(row)
            )
            for i, row in enumerate(rows)
        )
        for i, row in enumerate(rows):
            if math.fsum(row) > 1e-9 * abs(row[i]):
                raise ParameterError(
                    f"T[{i}] adds up to {math.fsum(row):.6g}, and a row of rates adds up to 0 or "
                    f"less: lower T[{i}][{i}]."
                )
        object.__setattr__(self, "alpha", _shares(alpha))
        object.__setattr__(self, "T", tuple(itertools.starmap(_row, enumerate(rows))))
        ends = self._exits > 0
        for _ in rows:
            ends = ends | ((np.array(rows) > 0) @ ends)
        if not np.all(ends):
            raise ParameterError(
                f"phase {int(np.argmin(ends))} never leads to the end of the service: give it, or "
                f"a phase after it, a row of T with a sum below 0."
            )
        mean_time(self.mean)

    @property
    def mean(self) -> float:
        """The mean, ``alpha @ inv(-T) @ ones``."""
        return self.moment(1)

    @property
    def hazard(self) -> str:
        """'constant' for one phase, otherwise not worked out."""
        return "constant" if len(self.alpha) == 1 else "unknown"

    def survival(self, s: ArrayLike) -> np.ndarray:
        """Return P(service time > s)."""
        return exp(self.log_survival(log(s)))

    def integrated_tail(self, s: ArrayLike) -> np.ndarray:
        """Return the integral of `survival` from `s` to infinity."""
        return exp(self.log_integrated_tail(log(s)))

    def log_survival(self, log_s: ArrayLike) -> np.ndarray:
        """Return the logarithm of `survival` at ``exp(log_s)``."""
        return self._log_product(log_s, np.ones(len(self.alpha)))

    def log_integrated_tail(self, log_s: ArrayLike) -> np.ndarray:
        """Return the logarithm of `integrated_tail` at ``exp(log_s)``."""
        return self._log_product(log_s, self._left(1))

    def moment(self, k: int) -> float:
        """Return ``k! alpha @ inv(-T)**k @ ones``."""
        left = self._left(k)
        if not np.all(np.isfinite(left)):
            return math.inf
        return _factorial(k) * float(np.array(self.alpha) @ left)

    def laplace(self, theta: ArrayLike) -> np.ndarray:
        """Return ``alpha @ inv(theta - T) @ exits``."""
        system = theta[..., None, None] * np.eye(len(self.alpha)) - np.array(self.T)
        ends = np.linalg.solve(
            system, np.broadcast_to(self._exits[:, None], (*theta.shape, len(self.alpha), 1))
        )
        return ends[..., 0] @ np.array(self.alpha)

    def sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> np.ndarray:
        """Return independent service times, an array of shape `size`.

        The chain is run; where that takes more than 10,000 jumps on average, by inversion.
        """
        rates = -np.diag(self.T)
        jumps = np.array(self.T) + np.diag(rates)
        if np.array(self.alpha) @ self._left(1, jumps / rates[:, None] - np.eye(rates.size)) > 1e4:
            return self.inverse_survival(1 - rng.random(size))
        upto = np.cumsum(jumps, axis=1) / rates[:, None]
        times = np.zeros(math.prod(size) if isinstance(size, tuple) else size)
        share = np.array(self.alpha) / math.fsum(self.alpha)
        running, phase = np.arange(times.size), rng.choice(share.size, times.size, p=share)
        while running.size:
            times[running] += rng.standard_exponential(running.size) / rates[phase]
            after = np.sum(rng.random(running.size)[:, None] >= upto[phase], axis=1)
            running, phase = running[after < rates.size], after[after < rates.size]
        return times.reshape(size)

    def phases(self) -> tuple[np.ndarray, np.ndarray]:
        """Return (alpha, T) as arrays."""
        return np.array(self.alpha), np.array(self.T)

    @property
    def _exits(self) -> np.ndarray:
        return np.array([max(-math.fsum(row), 0.0) for row in self.T])

    def _left(self, k: int, generator: np.ndarray | None = None) -> np.ndarray:
        """Return ``inv(-T)**k @ ones``; for k = 1, the mean time to the end from each phase."""
        generator = np.array(self.T) if generator is None else generator
        left = np.ones(len(self.alpha))
        for _ in range(k):
            left = np.linalg.solve(-generator, left)
        return left

    def _log_product(self, log_s: ArrayLike, right: np.ndarray) -> np.ndarray:
        """Return the logarithm of ``alpha @ expm(T exp(log_s)) @ right``."""
        pace = float(np.max(-np.diag(self.T)))
        s = np.minimum(exp(log_s), 1e300 / max(pace, 1.0))
        chunk = max(1, 2_000_000 // right.size**2)
        parts = [
            self._log_products(s.ravel()[i : i + chunk], right) for i in range(0, s.size, chunk)
        ]
        product = np.concatenate([np.empty(0), *parts]).reshape(s.shape)
        return np.where(s < 1e300 / max(pace, 1.0), product, -np.inf)

    def _log_products(self, s: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Square the matrix of a short time as often as needed; every term is nonnegative.

        Beside it goes the probability that the service has ended. As long as that is small, it
        gives the sums of the rows, so that rates far apart cost no digits.
        """
        pace = float(np.max(-np.diag(self.T)))
        jump, end = np.eye(right.size) + np.array(self.T) / pace, self._exits / pace
        doublings = np.maximum(np.ceil(np.log2(np.maximum(pace * s, 1e-300))), 0).astype(np.int64)
        x = pace * s / 2.0**doublings
        # uniformisation: a Poisson number of jumps, of mean x <= 1
        matrix, ended = np.zeros((s.size, right.size, right.size)), np.zeros((s.size, right.size))
        term, power, gone = np.exp(-x), np.eye(right.size), np.zeros(right.size)
        for n in range(1, 24):
            matrix += term[:, None, None] * power
            ended += term[:, None] * gone
            term, power, gone = term * x / n, power @ jump, jump @ gone + end
        log_scale = np.zeros(s.size)
        for doubling in range(int(np.max(doublings, initial=0))):
            at = np.flatnonzero(doublings > doubling)
            now = matrix[at]
            scale = np.exp(np.maximum(log_scale[at], -700))[:, None]
            ended[at] = np.minimum(ended[at] + scale * np.einsum("aij,aj->ai", now, ended[at]), 1)
            now = now @ now
            rows = np.sum(now, axis=2)
            early = (ended[at] < 0.5) & (log_scale[at] == 0)[:, None]
            now *= np.where(early, (1 - ended[at]) / np.where(early, rows, 1.0), 1.0)[:, :, None]
            # halfway, in logarithms, between the largest entry and the largest one that persists
            most = np.max(now, axis=(1, 2))
            top = np.sqrt(most) * np.sqrt(np.max(np.einsum("aii->ai", now), axis=1))
            deep = (most < 1e-10) | (log_scale[at] < 0)
            top = np.where(deep & (top > 0), top, 1.0)
            matrix[at] = now / top[:, None, None]
            log_scale[at] = 2 * log_scale[at] + np.log(top)
        return log(np.array(self.alpha) @ matrix @ right) + log_scale


def _factorial(k: int) -> float:
    return float(math.factorial(k)) if k <= 170 else math.inf


def _numbers(name: str, values: object) -> tuple:
    try:
        values = () if isinstance(values, str) else tuple(values)
    except TypeError:
        raise ParameterError(
            f"{name} = {values!r} is not a list of numbers: give one number a phase, "
            f"such as {name} = [0.5, 0.5]."
        ) from None
    if not values:
        raise ParameterError(f"{name} is empty: give one number a phase.")
    return values


def _shares(probabilities: tuple[float, ...]) -> tuple[float, ...]:
    """Return probabilities that add up to 1, up to rounding."""
    total = math.fsum(probabilities)
    if abs(total - 1) < 1e-15 * len(probabilities):
        return probabilities
    return tuple(p / total for p in probabilities)


def _row(i: int, row: tuple[float, ...]) -> tuple[float, ...]:
    """Return row i of the rates, with a sum of 0 or less."""
    over = math.fsum(row)
    return tuple(rate - over if over > 0 and i == j else rate for j, rate in enumerate(row))


def _positive(name: str, values: object) -> tuple[float, ...]:
    values = _numbers(name, values)
    return tuple(real(f"{name}[{i}]", value, 0.0, open_low=True) for i, value in enumerate(values))


def _atoms(weights: np.ndarray, rates: np.ndarray) -> Mixture:
    order = np.argsort(-rates)
    log_rate, log_weight = np.log(rates[order]), np.log(weights[order])
    return Mixture(log_rate, log_weight, log_weight - log_rate, step=None, low=-math.inf)
