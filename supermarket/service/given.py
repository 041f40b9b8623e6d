"""Laws that a reader brings: a survival function, measured times, a law of scipy.stats."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from supermarket.service.law import LONGEST, SHORTEST, ServiceLaw, mean_time, tail_index
from supermarket.service.numerics import exp, laplace, log
from supermarket.service.panels import Panels
from supermarket.validation import ParameterError, integer, is_number, real, said


class _Numerical(ServiceLaw):
    """A law known by its survival function alone: integrals come from its panels.

    Logarithms go on below float64's range where the tail is a power; a lighter tail is 0 there.
    """

    _panels: Panels

    @property
    def mean(self) -> float:
        """The mean, the integral of `survival`."""
        return self._panels.mean

    @property
    def tail_constant(self) -> float:
        """The constant c of ``survival(s) ~ c s**-beta``, from the far end of float64's range."""
        if self.tail_index == math.inf:
            return math.nan
        return math.exp(self._panels.log_last + self.tail_index * math.log(self._panels.last))

    def survival(self, s: ArrayLike) -> np.ndarray:
        """Return P(service time > s)."""
        return self._panels.survival(s)

    def integrated_tail(self, s: ArrayLike) -> np.ndarray:
        """Return the integral of `survival` from `s` to infinity."""
        return self._panels.integral(s)

    def log_survival(self, log_s: ArrayLike) -> np.ndarray:
        """Return the logarithm of `survival` at ``exp(log_s)``."""
        return self._logs(log_s, self.survival, self._panels.log_last, self.tail_index)

    def log_integrated_tail(self, log_s: ArrayLike) -> np.ndarray:
        """Return the logarithm of `integrated_tail` at ``exp(log_s)``."""
        beta, log_work = self.tail_index, 0.0
        if beta < math.inf:
            log_work = self._panels.log_last + math.log(self._panels.last) - math.log(beta - 1)
        return self._logs(log_s, self.integrated_tail, log_work, beta - 1)

    def moment(self, k: int) -> float:
        """Return the mean of ``S**k``; infinite for k at or above the tail index."""
        return self._panels.moment(k)

    def laplace(self, theta: ArrayLike) -> np.ndarray:
        """Return the mean of ``exp(-theta S)`` for real theta >= 0."""
        return laplace(self.survival, theta, self._panels.edges)

    def _logs(
        self,
        log_s: ArrayLike,
        function: Callable[[ArrayLike], np.ndarray],
        log_last: float,
        exponent: float,
    ) -> np.ndarray:
        if exponent == math.inf:
            return log(function(exp(log_s)))
        beyond = log_s - math.log(self._panels.last)
        near = log(function(exp(np.where(beyond > 0, 0.0, log_s))))
        return np.where(beyond > 0, log_last - exponent * beyond, near)


@dataclass(frozen=True)
class GivenSurvival(_Numerical):
    """The law with a survival function of your own; `GivenSurvival` makes it.

    Two such laws are equal if they have the same function (the same object) and the same options.

    Parameters
    ----------
    function : callable
        ``function(s)`` is P(S > s), non-increasing from 1 at s = 0. It is called with an array of
        float64; if it does not return an array of that shape, it is called number by number.
    breaks : sequence of float
        Points where it or a derivative jumps. The others are found, at some cost.
    end : float
        Right end of the support, infinite if there is none.
    tail_index : float or None
        beta of a tail of order ``s**-beta``, infinite for a lighter one; None to read it off the
        function between 1e-12 of the end of float64's range and that end.

    Raises
    ------
    ParameterError
        If the function is not a survival function, has an atom at 0, or an infinite mean.

    Examples
    --------
    >>> from supermarket.service import GivenSurvival
    >>> law = GivenSurvival(lambda s: (1 + s) ** -2.5)
    >>> round(law.mean, 12), law.tail_index, law.scaled(1).mean
    (0.666666666667, 2.5, 1.0)
    """

    function: Callable[[Any], Any]
    breaks: tuple[float, ...] = ()
    end: float = math.inf
    tail_index: float | None = None
    _panels: Panels = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise ParameterError(
                f"survival = {self.function!r} is not a function: give one, such as "
                f"lambda s: numpy.exp(-s)."
            )
        breaks = tuple(
            real(f"breaks[{i}]", point, 0.0, open_low=True) for i, point in enumerate(self.breaks)
        )
        end = self.end
        if not (isinstance(end, float | np.floating) and end == math.inf):
            end = real("end", end, 0.0, open_low=True)
        beta = self.tail_index
        if beta is not None and not (isinstance(beta, float | np.floating) and beta == math.inf):
            beta = tail_index("tail_index", beta)
        if end < math.inf and beta is not None and beta < math.inf:
            raise ParameterError(
                f"tail_index = {beta:.6g} and end = {end:.6g} contradict each other, as a bounded "
                f"law has no power tail: leave one of them out."
            )
        object.__setattr__(self, "breaks", tuple(sorted(set(breaks))))
        object.__setattr__(self, "end", float(end))
        panels = Panels(_vectorised(self.function), self.breaks, self.end, beta)
        object.__setattr__(self, "_panels", panels)
        object.__setattr__(self, "tail_index", panels.tail_index)
        mean_time(self.mean)

    def sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> np.ndarray:
        """Return independent service times, an array of shape `size`, by inversion."""
        return self.inverse_survival(1 - rng.random(size))


@dataclass(frozen=True, repr=False)
class GivenScipy(_Numerical):
    """The law of a frozen distribution of scipy.stats; `GivenScipy` makes it.

    Its survival function and sampler are scipy's. Integrals and quantiles are numerical, and no
    better far out than scipy's survival function.

    Parameters
    ----------
    frozen : scipy.stats frozen continuous distribution
        Supported on nonnegative numbers, with a finite mean.

    Raises
    ------
    ParameterError
        If it is not such a distribution.

    Examples
    --------
    >>> from scipy.stats import invgauss
    >>> from supermarket.service import GivenScipy
    >>> law = GivenScipy(invgauss(2.0))
    >>> round(law.mean, 12), round(law.scv, 9)
    (2.0, 2.0)
    """

    name: str
    parameters: tuple
    frozen: Any = field(compare=False)
    _panels: Panels = field(compare=False)

    def __init__(self, frozen: Any) -> None:
        from scipy import stats

        if not isinstance(getattr(frozen, "dist", None), stats.rv_continuous):
            raise ParameterError(
                f"frozen = {str(frozen)[:60]} is not a frozen continuous distribution of "
                f"scipy.stats: give one with its parameters, such as scipy.stats.gamma(2.0)."
            )
        low, high = (float(end) for end in frozen.support())
        if not low >= 0:
            raise ParameterError(
                f"scipy.stats.{frozen.dist.name} has its support on [{low:.6g}, {high:.6g}], and a "
                f"service time is not negative: choose parameters with support on [0, inf)."
            )
        mean = float(frozen.mean())
        if not math.isfinite(mean):
            raise ParameterError(
                f"scipy.stats.{frozen.dist.name} has mean {mean} with these parameters, and a "
                f"service time needs a finite one: choose others."
            )
        object.__setattr__(self, "name", frozen.dist.name)
        object.__setattr__(self, "parameters", (*frozen.args, *sorted(frozen.kwds.items())))
        object.__setattr__(self, "frozen", frozen)
        object.__setattr__(self, "breaks", tuple(x for x in (low, high) if 0 < x < math.inf))
        object.__setattr__(self, "end", high)
        panels = Panels(frozen.sf, self.breaks, high, None)
        object.__setattr__(self, "_panels", panels)
        object.__setattr__(self, "tail_index", panels.tail_index)
        mean_time(self.mean)

    def __repr__(self) -> str:
        given = (*map(repr, self.frozen.args), *(f"{k}={v!r}" for k, v in self.frozen.kwds.items()))
        return f"GivenScipy({self.name}({', '.join(given)}))"

    def sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> np.ndarray:
        """Return independent service times, an array of shape `size`."""
        return np.asarray(self.frozen.rvs(size=size, random_state=rng), dtype=np.float64)


@dataclass(frozen=True, repr=False)
class Empirical(ServiceLaw):
    """The empirical law of measured service times; `Empirical` makes it.

    Each sample has the same probability, so the support is bounded and the tail index infinite,
    whatever law the samples come from; `hill_tail_index` estimates the tail index of that one.

    Parameters
    ----------
    samples : array_like of float, shape (m,)
        Numbers from 1e-150 to 1e150, at least one, kept in increasing order. A pandas Series will
        do.

    Raises
    ------
    ParameterError
        If there is none, or one is missing, not a number, or not positive.

    Examples
    --------
    >>> from supermarket.service import Empirical
    >>> law = Empirical([3.0, 1.0])
    >>> law.mean, law.survival([0.5, 1.0, 3.0]).tolist()
    (2.0, [1.0, 0.5, 0.0])
    """

    samples: tuple[float, ...]
    mean: float = field(init=False, repr=False, compare=False)
    breaks: tuple[float, ...] = field(init=False, repr=False, compare=False)
    _times: np.ndarray = field(init=False, repr=False, compare=False)
    _beyond: np.ndarray = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        times = np.sort(_times(self.samples))
        # the integral of survival from each sample on, in terms that are not negative
        gaps = np.diff(times) * np.arange(times.size - 1, 0, -1) / times.size
        beyond = np.append(np.cumsum(gaps[::-1])[::-1], 0.0)
        object.__setattr__(self, "samples", tuple(times.tolist()))
        object.__setattr__(self, "mean", math.fsum(self.samples) / times.size)
        object.__setattr__(self, "breaks", tuple(np.unique(times).tolist()))
        object.__setattr__(self, "_times", times)
        object.__setattr__(self, "_beyond", np.append(beyond, 0.0))

    def __repr__(self) -> str:
        some = f"{len(self.samples)} samples with mean {self.mean:.6g}"
        return f"Empirical(<{some}>)"

    @property
    def scv(self) -> float:
        """Variance of the samples (divided by their number) over the squared mean."""
        return float(np.var(self._times)) / self.mean**2

    @property
    def end(self) -> float:
        """The largest sample."""
        return self.samples[-1]

    def survival(self, s: ArrayLike) -> np.ndarray:
        """Return the share of samples above s."""
        size = self._times.size
        return (size - np.searchsorted(self._times, s, side="right")) / size

    def integrated_tail(self, s: ArrayLike) -> np.ndarray:
        """Return the mean of ``max(sample - s, 0)``."""
        i = np.searchsorted(self._times, s, side="right")
        share = (self._times.size - i) / self._times.size
        room = np.append(self._times, self.end)[i] - s
        return share * np.maximum(room, 0.0) + self._beyond[i]

    def log_survival(self, log_s: ArrayLike) -> np.ndarray:
        """Return the logarithm of `survival` at ``exp(log_s)``."""
        return log(self.survival(exp(log_s)))

    def log_integrated_tail(self, log_s: ArrayLike) -> np.ndarray:
        """Return the logarithm of `integrated_tail` at ``exp(log_s)``."""
        return log(self.integrated_tail(exp(log_s)))

    def moment(self, k: int) -> float:
        """Return the mean of ``sample**k``."""
        return float(np.mean(self._times**k))

    def laplace(self, theta: ArrayLike) -> np.ndarray:
        """Return the mean of ``exp(-theta sample)``."""
        means = [np.mean(np.exp(-x * self._times)) for x in theta.ravel()]
        return np.array(means).reshape(theta.shape)

    def inverse_survival(self, p: ArrayLike) -> np.ndarray:
        """Return the smallest s with ``survival(s) <= p``: a sample, or 0 where ``p >= 1``."""
        i = np.searchsorted(np.arange(1 - self._times.size, 1) / self._times.size, -p)
        return np.where(p < 1, self._times[np.minimum(i, self._times.size - 1)], 0.0)

    def sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> np.ndarray:
        """Return samples drawn with replacement, an array of shape `size`."""
        return self._times[rng.integers(self._times.size, size=size)]


def hill_tail_index(samples: ArrayLike, k: int) -> tuple[float, float]:
    r"""Estimate the tail index of the law that samples come from, by Hill's estimator.

    With the samples in decreasing order, :math:`x_1 \ge x_2 \ge \dots`,

    .. math:: \hat\beta = k \Big/ \sum_{i \le k} \log (x_i / x_{k+1}).

    Parameters
    ----------
    samples : array_like of float, shape (m,)
        Positive finite numbers.
    k : int
        Number of largest samples used, from 2 to m - 1. A large k has a bias where the law is not a
        power yet, a small one a large error: look where the estimate stays level.

    Returns
    -------
    index : float
        The estimate.
    error : float
        Its standard error for independent samples of an exact power law, ``index / sqrt(k)``.

    Raises
    ------
    ParameterError
        If a sample or k is out of range, or the k + 1 largest are equal.

    References
    ----------
    .. [1] B. M. Hill, A simple general approach to inference about the tail of a distribution,
       Ann. Statist. 3 (1975) 1163-1174.

    Examples
    --------
    >>> from supermarket.service import hill_tail_index
    >>> index, error = hill_tail_index([1.0, 2.0, 4.0, 8.0], 3)
    >>> round(index, 4), round(error, 4)
    (0.7213, 0.4165)
    """
    times = np.sort(_times(samples))
    if times.size < 3:
        raise ParameterError(f"samples has {times.size} entries: give at least 3.")
    k = integer("k", k, 2, times.size - 1)
    total = float(np.sum(np.log(times[-k:] / times[-k - 1])))
    if total == 0:
        raise ParameterError(
            f"the {k + 1} largest samples are equal, which tells nothing of a tail: choose k > {k}."
        )
    return k / total, math.sqrt(k) / total


def _vectorised(function: Callable[[Any], Any]) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function of arrays, from one of arrays or of single numbers."""
    probe = np.array([0.25, 0.5, 1.0])
    try:
        takes_arrays = np.shape(function(probe)) == probe.shape
    except (TypeError, ValueError):
        takes_arrays = False
    if takes_arrays:
        return function
    return np.vectorize(function, otypes=[np.float64])


def _times(samples: ArrayLike) -> np.ndarray:
    """Return `samples` as float64, shape (m,), every one positive and finite."""
    try:
        shape = np.shape(samples)
    except ValueError:  # lists of different lengths
        shape = ()
    if isinstance(samples, str) or len(shape) != 1:
        raise ParameterError(
            "samples is not a list of numbers: give a list, an array or one column of a table."
        )
    given = np.asarray(samples)
    if given.size == 0:
        raise ParameterError("samples is empty: give at least one service time.")
    if given.dtype.kind in "USO":
        text = [(i, x) for i, x in enumerate(given.tolist()) if isinstance(x, str)]
        odd = [(i, x) for i, x in text if not is_number(x)]
        if odd:
            raise ParameterError(
                f"samples[{odd[0][0]}] = {said(odd[0][1])} is not a number, as are {len(odd)} of "
                f"{given.size} entries: correct them, or leave them out."
            )
        if text:
            raise ParameterError(
                f"samples[{text[0][0]}] = {text[0][1]!r} is text, as are {len(text)} of "
                f"{given.size} entries: read the column as numbers, such as with pandas.to_numeric."
            )
        import pandas as pd

        given = np.where(pd.isna(given), np.nan, given)
    try:
        if given.dtype.kind in "bmMc":
            raise TypeError
        times = given.astype(np.float64)
    except (TypeError, ValueError):
        raise ParameterError(
            f"samples holds entries of type {type(given[0]).__name__}: give decimal numbers."
        ) from None
    missing = np.count_nonzero(np.isnan(times))
    if missing:
        raise ParameterError(
            f"samples has {missing} missing values among {times.size}: leave them out, such as "
            f"with dropna()."
        )
    wrong = np.flatnonzero(~((times >= SHORTEST) & (times <= LONGEST)))
    if wrong.size:
        raise ParameterError(
            f"samples[{wrong[0]}] = {times[wrong[0]]:.6g} is not a positive number up to "
            f"{LONGEST:g}, as are {wrong.size} of {times.size} entries: leave them out, or take "
            f"another unit."
        )
    return times
