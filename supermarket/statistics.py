"""Intervals for what the chains measure."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from supermarket.validation import ParameterError, integer, number, real


@dataclass(frozen=True)
class Interval:
    """An estimate between two ends that hold the true value with the stated confidence.

    Attributes
    ----------
    estimate, low, high : float or ndarray of float64
        All of the same shape.
    confidence : float
        Share of repetitions in which [low, high] would hold the true value, in (0, 1).
    effective : float or ndarray of float64
        Effective sample size: how many independent samples would give this interval. NaN where
        there is no interval, or none made of samples.

    Examples
    --------
    >>> from supermarket.statistics import Interval
    >>> share = Interval(estimate=0.81, low=0.80, high=0.82, confidence=0.95)
    >>> share.low <= 0.815 <= share.high
    True
    """

    estimate: float | NDArray[np.float64]
    low: float | NDArray[np.float64]
    high: float | NDArray[np.float64]
    confidence: float
    effective: float | NDArray[np.float64] = math.nan

    def __getitem__(self, index: int) -> "Interval":
        estimate, low, high, effective = (
            float(np.broadcast_to(values, np.shape(self.estimate))[index])
            for values in (self.estimate, self.low, self.high, self.effective)
        )
        return Interval(estimate, low, high, self.confidence, effective)


def mean_interval(samples: ArrayLike, confidence: float = 0.95, *, among: int = 1) -> Interval:
    """Return Student's t interval for the mean of independent samples.

    Parameters
    ----------
    samples : array_like, shape (m,) or (m, ...)
        m >= 2 independent replicas along the first axis.
    confidence : float
        In (0, 1).
    among : int
        Number of intervals that are to hold together with this confidence (Bonferroni).

    Returns
    -------
    Interval
        Of the shape of one sample.

    Raises
    ------
    ParameterError
        If there are fewer than two samples, or confidence is not in (0, 1).

    Examples
    --------
    >>> from supermarket.statistics import mean_interval
    >>> found = mean_interval([1.0, 2.0, 3.0], 0.95)
    >>> round(found.low, 3), found.estimate, round(found.high, 3)
    (-0.484, 2.0, 4.484)
    """
    from scipy.stats import t

    confidence = number(0.0, 1.0, open_low=True, open_high=True)("confidence", confidence)
    among = integer("among", among, 1)
    samples = np.asarray(samples, dtype=np.float64)
    m = samples.shape[0] if samples.ndim else 0
    if m < 2:
        raise ParameterError(f"{m} sample(s) give no interval: at least 2 are needed.")
    estimate = samples.mean(axis=0)
    quantile = t.ppf(1 - (1 - confidence) / (2 * among), m - 1)
    half = quantile * samples.std(axis=0, ddof=1) / np.sqrt(m)
    if samples.ndim == 1:
        estimate, half = float(estimate), float(half)
    return Interval(estimate, estimate - half, estimate + half, confidence, float(m))


def batch_interval(
    batches: ArrayLike,
    confidence: float = 0.95,
    *,
    among: int = 1,
    snapshots: ArrayLike | None = None,
    relaxations: float | None = None,
) -> Interval:
    """Return the interval for the mean of a stationary series from its batch means.

    Neighbouring batches are joined, two into one, until their lag-1 autocorrelation is small or
    only 8 to 15 are left: then a batch is long against the time in which the chain forgets, and
    the batches count as independent.

    Parameters
    ----------
    batches : array_like of float, shape (m,) or (m, q)
        Means over consecutive stretches of equal length, m >= 8, of one or of q quantities, each
        of which is treated by itself.
    confidence, among
        As in `mean_interval`.
    snapshots : array_like of float, shape (m,) or (m, q), optional
        The quantities at the ends of the batches. Their variance over the squared standard error
        is the effective sample size: the length of the run over the integrated autocorrelation
        time. Without them it is the number of batches left after joining.
    relaxations : float, optional
        Length of the run in relaxation times of the chain, where theory knows one.

    Returns
    -------
    Interval
        Its ends are NaN where the run is too short to support an interval: fewer than 20
        relaxation times, batches still correlated when 8 to 15 are left, a quantity that is 0 in
        some batch (a rare event, of which too few were seen), or one that never changed.

    Raises
    ------
    ParameterError
        If there are fewer than 8 batches, the snapshots have another shape than the batches, or
        confidence is not in (0, 1).

    References
    ----------
    .. [1] S. Asmussen and P. W. Glynn, *Stochastic Simulation*, Springer, 2007, section IV.5.

    Examples
    --------
    >>> from supermarket import simulate
    >>> from supermarket.statistics import batch_interval
    >>> run = simulate(n=100, d=2, lam=0.7, horizon=200, seed=1)
    >>> found = batch_interval(run.batch_profiles[:, 2], 0.99)
    >>> bool(found.low < 0.343 < found.high)
    True
    >>> batch_interval(range(64)).low  # a trend: too short a run for an interval
    nan
    """
    confidence = number(0.0, 1.0, open_low=True, open_high=True)("confidence", confidence)
    among = integer("among", among, 1)
    batches = np.asarray(batches, dtype=np.float64)
    if batches.ndim == 0 or len(batches) < 8:
        raise ParameterError(
            f"{batches.shape[0] if batches.ndim else 0} batches give no interval: at least 8 are "
            "needed."
        )
    if snapshots is not None and np.shape(snapshots) != batches.shape:
        raise ParameterError(
            f"snapshots of shape {np.shape(snapshots)} do not belong to batches of shape "
            f"{batches.shape}: give one at the end of each batch."
        )
    if relaxations is not None:
        relaxations = real("relaxations", relaxations, 0.0)
    columns = batches.reshape(len(batches), -1)
    each = [_batch_interval(column, confidence, among) for column in columns.T]
    if relaxations is not None and relaxations < 20:
        each = [Interval(one.estimate, math.nan, math.nan, confidence) for one in each]
    estimate, low, high, effective = (
        np.array([getattr(one, name) for one in each])
        for name in ("estimate", "low", "high", "effective")
    )
    if snapshots is not None:
        # The interval of so many effective batches is Student's, which gives back its error.
        from scipy.stats import t

        quantile = t.ppf(1 - (1 - confidence) / (2 * among), effective - 1)
        error = (high - low) / 2 / quantile
        variance = np.var(np.reshape(snapshots, columns.shape), axis=0, ddof=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            effective = np.where(error > 0, variance / error**2, np.nan)
    together = Interval(estimate, low, high, confidence, effective)
    return together[0] if batches.ndim == 1 else together


def _batch_interval(batches: NDArray[np.float64], confidence: float, among: int) -> Interval:
    mean = float(batches.mean())
    if np.all(batches == batches[0]):  # nothing happened in the whole run
        return Interval(float(batches[0]), np.nan, np.nan, confidence)
    # A series that forgets in m / 12 batches out of m or more slowly is too short to judge.
    short = (correlation := _lag_one(batches)) > math.exp(-12 / len(batches))
    while correlation > 0.1 and len(batches) >= 16:
        even = len(batches) // 2 * 2
        batches = (batches[0:even:2] + batches[1:even:2]) / 2
        correlation = _lag_one(batches)
        short |= correlation > math.exp(-12 / len(batches))
    rare = not np.all(batches)
    if rare or short:
        return Interval(mean, np.nan, np.nan, confidence)
    interval = mean_interval(batches, confidence, among=among)
    shift = mean - interval.estimate  # a batch may have been left over
    return Interval(
        mean, interval.low + shift, interval.high + shift, confidence, interval.effective
    )


def _lag_one(batches: NDArray[np.float64]) -> float:
    """Return the lag-1 autocorrelation, 0 for a constant."""
    deviations = batches - batches.mean()
    spread = deviations @ deviations
    return float(deviations[1:] @ deviations[:-1] / spread) if spread > 0 else 0.0
