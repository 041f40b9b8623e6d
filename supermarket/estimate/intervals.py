"""Intervals for what the chains measure, and errors of what is computed."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from supermarket.validation import (
    MOST_QUEUES,
    ParameterError,
    choice,
    integer,
    numbers,
    real,
    said,
)

__all__ = [
    "Computed",
    "Interval",
    "batch_interval",
    "count_interval",
    "fit_interval",
    "mean_interval",
    "share_interval",
    "time_share_interval",
]

ENOUGH = 20.0  # relaxation times that a run must last to support an interval
SEEN = 0.9  # of the variance that batches show: less, and they are joined
LEAST = 0.5  # of it that 8 batches must show
UNSEEN = "the largest jobs last about as long as the run"
SKEW = 0.5  # over the root of the relaxation times: by so much an interval is wider (measured)


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
    refused : str or ndarray of str
        Why there is no interval, in one clause; empty where there is one.
    longer : float or ndarray of float64
        By what factor the run would have to be longer to support an interval, about: 1 where there
        is one, NaN where that is not known.

    Examples
    --------
    >>> from supermarket.estimate.intervals import Interval
    >>> share = Interval(estimate=0.81, low=0.80, high=0.82, confidence=0.95)
    >>> share.low <= 0.815 <= share.high
    True
    >>> more = share - Interval(0.5, 0.25, 0.75, 0.95)
    >>> round(more.low, 3), round(more.high, 3)
    (0.05, 0.57)
    """

    estimate: float | NDArray[np.float64]
    low: float | NDArray[np.float64]
    high: float | NDArray[np.float64]
    confidence: float
    effective: float | NDArray[np.float64] = math.nan
    refused: str | NDArray[np.object_] = ""
    longer: float | NDArray[np.float64] = 1.0

    def __post_init__(self) -> None:
        confidence = real("confidence", self.confidence, 0.0, open_low=True)
        object.__setattr__(self, "confidence", confidence)
        for name in ("estimate", "low", "high", "effective", "longer"):
            value = numbers(name, getattr(self, name), finite=False, nan=True)
            if isinstance(getattr(self, name), np.generic):
                object.__setattr__(self, name, float(value))
        rounding = 1e-12 * np.abs(self.high)
        if np.shape(self.low) != np.shape(self.high) or np.any(self.low > self.high + rounding):
            raise ParameterError(
                f"low = {said(self.low)} and high = {said(self.high)} are no ends of an interval."
            )
        if confidence >= 1.0:
            raise ParameterError(
                f"confidence = {self.confidence:g} is no confidence of a random number: give one "
                "below 1, or `Computed` for a number that was computed."
            )

    def __getitem__(self, index: int) -> "Interval":
        estimate, low, high, effective, longer = (
            float(np.broadcast_to(values, np.shape(self.estimate))[index])
            for values in (self.estimate, self.low, self.high, self.effective, self.longer)
        )
        refused = str(np.broadcast_to(self.refused, np.shape(self.estimate))[index])
        return Interval(estimate, low, high, self.confidence, effective, refused, longer)

    def __sub__(self, other: "Interval") -> "Interval":
        """Return the difference of two estimates, each anywhere in its own interval."""
        low, high = self.low - other.high, self.high - other.low
        return Interval(self.estimate - other.estimate, low, high, self.confidence)

    def within(self, low: float, high: float = math.inf) -> "Interval":
        """Return the interval, cut to a range in which the true value is for sure.

        Examples
        --------
        >>> from supermarket.estimate.intervals import mean_interval
        >>> share = mean_interval([0.2, 0.7]).within(0.0, 1.0)
        >>> share.low, share.high
        (0.0, 1.0)
        """
        ends = {end: np.clip(getattr(self, end), low, high) for end in ("estimate", "low", "high")}
        if np.ndim(self.estimate) == 0:
            ends = {name: float(value) for name, value in ends.items()}
        return replace(self, **ends)

    def wider(self, factor: ArrayLike) -> "Interval":
        """Return the interval with both ends so many times as far from the estimate."""
        middle = self.estimate
        low, high = (middle + (end - middle) * factor for end in (self.low, self.high))
        if np.ndim(middle) == 0:
            low, high = float(low), float(high)
        return replace(self, low=low, high=high)

    def without(self, why: str) -> "Interval":
        """Return the estimate with no interval, for the reason that one clause gives."""
        return replace(self, low=math.nan, high=math.nan, refused=why, longer=math.nan)

    def unless(self, why: ArrayLike, longer: ArrayLike) -> "Interval":
        """Return the intervals, but for those that a clause speaks against, and why."""
        spoken = np.asarray(why, dtype=object) != ""
        low, high, effective = (
            np.where(spoken, math.nan, end) for end in (self.low, self.high, self.effective)
        )
        refused = np.where(spoken, why, self.refused)
        longer = np.where(spoken, longer, self.longer)
        whole = Interval(
            np.asarray(self.estimate), low, high, self.confidence, effective, refused, longer
        )
        return whole[()] if np.ndim(self.estimate) == 0 else whole

    @classmethod
    def together(cls, intervals: Sequence["Interval"]) -> "Interval":
        """Return intervals of one confidence as one, whose estimate and ends are arrays."""
        ends = ([getattr(one, end) for one in intervals] for end in ("estimate", "low", "high"))
        return cls(*map(np.array, ends), intervals[0].confidence)


@dataclass(frozen=True)
class Computed:
    """A number that was computed, not sampled: it has an error and no confidence.

    Attributes
    ----------
    estimate : float
        The number.
    low, high : float, optional
        Between which it lies for sure, as far as its numerical error is known; `estimate` itself
        if not given. NaN where the computation did not settle.

    Examples
    --------
    >>> from supermarket.estimate.intervals import Computed
    >>> Computed(2).low, Computed.within(0.5, 1e-9).high > 0.5
    (2.0, True)
    """

    estimate: float
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        for name in ("estimate", "low", "high"):
            value = getattr(self, name)
            value = numbers(name, self.estimate if value is None else value, finite=False, nan=True)
            if value.shape != ():
                raise ParameterError(f"{name} = {said(value)} is not one number.")
            object.__setattr__(self, name, float(value))

    @classmethod
    def within(cls, estimate: float, error: float) -> "Computed":
        """Return the number that is known up to an error, of either sign."""
        estimate, error = real("estimate", estimate), real("error", error, 0.0)
        return cls(estimate, estimate - error, estimate + error)


def checked_confidence(confidence: float, among: int) -> tuple[float, int]:
    """Return a confidence in (0, 1), and among how many intervals it is shared."""
    within = {"open_low": True, "open_high": True}
    return real("confidence", confidence, 0.0, 1.0, **within), integer("among", among, 1, 10**9)


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
    >>> from supermarket.estimate.intervals import mean_interval
    >>> found = mean_interval([1.0, 2.0, 3.0], 0.95)
    >>> round(found.low, 3), found.estimate, round(found.high, 3)
    (-0.484, 2.0, 4.484)
    """
    from scipy.special import stdtrit

    confidence, among = checked_confidence(confidence, among)
    samples = numbers("samples", samples)
    m = samples.shape[0] if samples.ndim else 0
    if m < 2:
        raise ParameterError(f"{m} sample(s) give no interval: at least 2 are needed.")
    estimate = samples.mean(axis=0)
    quantile = stdtrit(m - 1, 1 - (1 - confidence) / (2 * among))
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
    noises: Sequence[Callable[[float], ArrayLike]] = (),
    scale: str = "plain",
) -> Interval:
    """Return the interval for the mean of a stationary series from its batch means.

    Neighbouring batches are joined, two into one, until their lag-1 autocorrelation is small or
    only 8 to 15 are left: then a batch is long against the time in which the chain forgets, and
    the batches count as independent.

    What correlation is left, and choosing by looking, cost coverage: of a series that forgets
    exponentially, intervals of confidence 0.99 miss the mean in 1 to 3 % of runs of 50 to 300
    relaxation times, and in 3 to 7 % of those of 25 (measured).

    Where it is known how long the chain remembers, batches are joined further, until their variance
    is `SEEN` of what it would be for independent ones or only 8 to 15 are left, and the
    interval is made wider for what is missing, as if all of the series were as slow as the slowest.
    With the scale of the quantity, intervals of confidence 0.95 then hold the mean in 0.93 to 0.98
    of runs of 25 relaxation times and more, of one M/M/1 queue or of 100 with two choices
    (measured: `python -m benchmarks.coverage`).

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
        Length of the run in relaxation times of the chain, where theory knows one: at least
        `ENOUGH` are needed.
    noises : sequence of callable
        What else is remembered: each gives the length times the variance of the mean over a
        share of the run, up to a factor, for all quantities or one number for each, such as
        `supermarket.estimate.large_jobs.LargeJobs.noise`.
    scale : {"plain", "positive", "share"}
        Where the interval has its estimate in the middle: as it is; on the scale of reciprocals,
        for a mean of what is not negative; or of the logarithms of odds, for one in [0, 1]. What
        has long excursions upwards has a skew mean whose noise grows with it, so that an interval
        must reach further up than down.

    Returns
    -------
    Interval
        Its ends are NaN where the run is too short to support an interval: fewer than 20
        relaxation times, batches still correlated when 8 to 15 are left or then with less than
        `LEAST` of their variance, a quantity that is 0 in some batch (a rare event, of which too
        few were seen; of the joined ones, where it is known how long the chain remembers), or one
        that never changed.

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
    >>> from supermarket import Supermarket, simulate
    >>> from supermarket.estimate.intervals import batch_interval
    >>> run = simulate(Supermarket(100, 2, 0.7), 200, seed=1)
    >>> found = batch_interval(run.batches["profile"][:, 2], 0.99)
    >>> bool(found.low < 0.343 < found.high)
    True
    >>> batch_interval(range(64)).low  # a trend: too short a run for an interval
    nan
    """
    confidence, among = checked_confidence(confidence, among)
    batches = numbers("batches", batches)
    if batches.ndim == 0 or len(batches) < 8:
        raise ParameterError(
            f"{batches.shape[0] if batches.ndim else 0} batches give no interval: at least 8 are "
            "needed."
        )
    snapshots = None if snapshots is None else numbers("snapshots", snapshots)
    if snapshots is not None and snapshots.shape != batches.shape:
        raise ParameterError(
            f"snapshots of shape {snapshots.shape} do not belong to batches of shape "
            f"{batches.shape}: give one at the end of each batch."
        )
    if relaxations is not None:
        relaxations = real("relaxations", relaxations, 0.0)
    choice("scale", scale, ("plain", "positive", "share"))
    columns = batches.reshape(len(batches), -1)
    known = [cache(noise) for noise in noises]
    wider = 1.0
    if relaxations:
        known.append(cache(_forgetting(relaxations)))
        wider += SKEW / math.sqrt(relaxations)
    each = [
        _batch_interval(column, confidence, among, [_at(noise, i) for noise in known], scale, wider)
        for i, column in enumerate(columns.T)
    ]
    if relaxations is not None and relaxations < ENOUGH:
        why = f"the run lasted {relaxations:.2g} relaxation times and needs {ENOUGH:g}"
        longer = ENOUGH / relaxations if relaxations > 0 else math.inf
        each = [_refused(one.estimate, confidence, why, longer) for one in each]
    estimate, low, high, effective, longer = (
        np.array([getattr(one, name) for one in each])
        for name in ("estimate", "low", "high", "effective", "longer")
    )
    refused = np.array([one.refused for one in each], dtype=object)
    if snapshots is not None:
        # The interval of so many effective batches is Student's, which gives back its error.
        from scipy.special import stdtrit

        quantile = stdtrit(effective - 1, 1 - (1 - confidence) / (2 * among))
        # (On another scale, about.)
        error = (high - low) / 2 / quantile
        variance = np.var(np.reshape(snapshots, columns.shape), axis=0, ddof=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            effective = np.where(error > 0, variance / error**2, np.nan)
    together = Interval(estimate, low, high, confidence, effective, refused, longer)
    return together[0] if batches.ndim == 1 else together


def _batch_interval(
    batches: NDArray[np.float64],
    confidence: float,
    among: int,
    noises: Sequence[Callable[[float], float]],
    scale: str,
    wider: float,
) -> Interval:
    mean = float(batches.mean())
    if np.all(batches == batches[0]):
        seen = "never seen" if batches[0] == 0 else "it never changed"
        return _refused(float(batches[0]), confidence, f"{seen} in the whole run")
    rare = batches
    while noises and not np.all(rare) and len(rare) >= 16:
        rare = joined(rare)
    if not np.all(rare):
        empty = float(np.mean(rare == 0))
        # Seen in a share 1 - p of m batches: in all of them, most likely, if each is as long as
        # log(100 m) / -log(p) of them.
        longer = math.log(100 * len(rare)) / max(-math.log(empty), 1e-9)
        return _refused(mean, confidence, f"not seen in {empty:.0%} of the batches", longer)
    # A series that forgets in m / 12 batches out of m or more slowly is too short to judge.
    short = (correlation := _lag_one(batches)) > math.exp(-12 / len(batches))
    slowest = correlation ** len(batches)  # what a run of this length remembers of its start
    while correlation > 0.1 and len(batches) >= 16:
        batches = joined(batches)
        correlation = _lag_one(batches)
        if not noises:  # otherwise it is known that they are long enough, and these are few
            short |= correlation > math.exp(-12 / len(batches))
            slowest = max(slowest, correlation ** len(batches))
    if short:
        # Three times the 12 memories that suffice on average, for they are seen with noise.
        longer = 36 / max(-math.log(min(slowest, 1.0)), 0.36)
        return _refused(mean, confidence, "neighbouring batches are still correlated", longer)
    while len(batches) >= 16 and (len(batches) > len(rare) or seen_by(noises, len(batches)) < SEEN):
        batches = joined(batches)
    seen = seen_by(noises, len(batches))
    if seen < LEAST:
        return _refused(mean, confidence, UNSEEN)
    plain = mean_interval(batches, confidence, among=among)
    half = wider * (plain.high - plain.low) / 2 / math.sqrt(seen)
    if scale == "positive":
        noise = half / mean
        if noise >= 1:
            why = "the noise is as large as the mean"
            return _refused(mean, confidence, why, (2 * noise) ** 2)
        low, high = mean / (1 + noise), mean / (1 - noise)
    elif scale == "share" and mean < 1:
        odds = math.exp(min(half / (mean * (1 - mean)), 700.0))
        low, high = mean / (mean + (1 - mean) * odds), mean * odds / (mean * odds + 1 - mean)
    else:
        low, high = mean - half, mean + half
    return Interval(mean, low, high, confidence, plain.effective)


def joined(batches: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return neighbours two into one; an odd one at the end is left out."""
    even = len(batches) // 2 * 2
    return (batches[0:even:2] + batches[1:even:2]) / 2


def _at(noise: Callable[[float], ArrayLike], column: int) -> Callable[[float], float]:
    """Return the noise of one column, where there is one for each."""
    return lambda share: float(np.ravel(noise(share))[column if np.ndim(noise(share)) else 0])


def _forgetting(relaxations: float) -> Callable[[float], float]:
    """Return the noise of a series that forgets exponentially over a share of so many memories."""

    def noise(share: float) -> float:
        length = share * relaxations
        return 1 + math.expm1(-length) / length

    return noise


def seen_by(noises: Sequence[Callable[[float], ArrayLike]], batches: int) -> float:
    """Return what share of the variance of their mean so many batches show, for the slowest."""
    shares = (
        float((noise(1 / batches) - noise(1.0) / batches) / (1 - 1 / batches) / noise(1.0))
        for noise in noises
    )
    return min([1.0, *shares])


def _refused(estimate: float, confidence: float, why: str, longer: float = math.nan) -> Interval:
    """Return an estimate that has no interval, and say why."""
    nan = math.nan
    return Interval(float(estimate), nan, nan, confidence, refused=why, longer=longer)


def _lag_one(batches: NDArray[np.float64]) -> float:
    """Return the lag-1 autocorrelation, 0 for a constant."""
    deviations = batches - batches.mean()
    spread = deviations @ deviations
    return float(deviations[1:] @ deviations[:-1] / spread) if spread > 0 else 0.0


def share_interval(
    seen: float, trials: float, confidence: float = 0.95, *, among: int = 1
) -> Interval:
    """Return the interval of Clopper and Pearson for a probability.

    Where nothing was seen, or never anything else, it is one-sided: one of its ends is 0 or 1.

    Parameters
    ----------
    seen : float
        How often it was seen, 0 <= seen <= trials. Neither needs to be whole: an effective number
        of independent looks stands for the trials of a correlated series.
    trials : float
        Above 0.
    confidence, among
        As in `mean_interval`.

    Returns
    -------
    Interval

    Raises
    ------
    ParameterError
        If a number is out of range.

    References
    ----------
    .. [1] C. J. Clopper and E. S. Pearson, "The use of confidence or fiducial limits illustrated in
       the case of the binomial", Biometrika 26 (1934) 404.

    Examples
    --------
    >>> from supermarket.estimate.intervals import share_interval
    >>> never = share_interval(0, 300, 0.95)
    >>> never.low, round(never.high, 4)
    (0.0, 0.0099)
    """
    from scipy.special import betaincinv

    confidence, among = checked_confidence(confidence, among)
    trials = real("trials", trials, 0.0, open_low=True)
    seen = real("seen", seen, 0.0, trials)
    # One-sided where only one side is open: the whole of the error then belongs to it.
    sides = 1 if seen in (0.0, trials) else 2
    error = (1 - confidence) / (sides * among)
    low = 0.0 if seen == 0 else float(betaincinv(seen, trials - seen + 1, error))
    high = 1.0 if seen == trials else float(betaincinv(seen + 1, trials - seen, 1 - error))
    return Interval(seen / trials, low, high, confidence, float(trials))


def time_share_interval(
    batches: ArrayLike, relaxations: float, confidence: float = 0.95, *, among: int = 1
) -> Interval:
    """Return an interval for the share of time that a stationary chain spends in a set of states.

    It holds also where the set was never left, or never entered, which batch means cannot tell from
    a set that is never left at all. A function of a reversible chain has an integrated
    autocorrelation time of at most the relaxation time, so a run of T relaxation times is worth at
    least T / 2 independent looks: the interval is that of `share_interval` for so many. It is too
    wide rather than too narrow where the set is left and entered faster than the chain forgets. The
    chains of this project are not reversible, so that it is a rule, which the tests compare with
    exact small chains.

    Parameters
    ----------
    batches : array_like of float, shape (m,)
        The share over consecutive stretches of equal length, or over one stretch (m = 1).
    relaxations : float
        Length of the whole run in relaxation times.
    confidence, among
        As in `mean_interval`.

    Returns
    -------
    Interval
        Refused where the run lasted less than `ENOUGH` relaxation times.

    Raises
    ------
    ParameterError
        If a share is outside [0, 1], or a number out of range.

    Examples
    --------
    >>> from supermarket.estimate.intervals import time_share_interval
    >>> inside = time_share_interval([1.0], relaxations=2000, confidence=0.99)
    >>> round(inside.low, 4), inside.high
    (0.9954, 1.0)
    """
    confidence, among = checked_confidence(confidence, among)
    shares = np.atleast_1d(numbers("batches", batches))
    relaxations = real("relaxations", relaxations, 0.0, open_low=True)
    rounding = 1e-9
    if not shares.size or not np.all((shares >= -rounding) & (shares <= 1 + rounding)):
        raise ParameterError("batches must hold shares of time, from 0 to 1.")
    share = float(np.clip(shares.mean(), 0.0, 1.0))
    share = 1.0 if share > 1 - rounding else share
    if relaxations < ENOUGH:
        why = f"the run lasted {relaxations:.2g} relaxation times and needs {ENOUGH:g}"
        return _refused(share, confidence, why, ENOUGH / relaxations)
    looks = relaxations / 2
    return share_interval(share * looks, looks, confidence, among=among)


def count_interval(
    events: int, exposure: float, confidence: float = 0.95, *, among: int = 1
) -> Interval:
    """Return Garwood's interval for the rate of independent events.

    Parameters
    ----------
    events : int
        How many were seen; with 0 the interval is one-sided.
    exposure : float
        Time, or whatever the rate is per, above 0.
    confidence, among
        As in `mean_interval`.

    Returns
    -------
    Interval

    Raises
    ------
    ParameterError
        If a number is out of range.

    References
    ----------
    .. [1] F. Garwood, "Fiducial limits for the Poisson distribution", Biometrika 28 (1936) 437.

    Examples
    --------
    >>> from supermarket.estimate.intervals import count_interval
    >>> none = count_interval(0, exposure=100.0, confidence=0.95)
    >>> none.low, round(none.high, 5)
    (0.0, 0.02996)
    """
    from scipy.special import gammaincinv

    confidence, among = checked_confidence(confidence, among)
    events = integer("events", events, 0, MOST_QUEUES)
    exposure = real("exposure", exposure, 1e-280)
    error = (1 - confidence) / ((1 if events == 0 else 2) * among)
    low = 0.0 if events == 0 else float(gammaincinv(events, error)) / exposure
    high = float(gammaincinv(events + 1, 1 - error)) / exposure
    return Interval(events / exposure, low, high, confidence, float(events))


def fit_interval(
    estimate: float, error: float, freedom: float, confidence: float = 0.95, *, among: int = 1
) -> Interval:
    """Return Student's interval for a fitted number with its standard error.

    Parameters
    ----------
    estimate, error : float
        The number, such as a slope, and its standard error, at least 0.
    freedom : float
        Degrees of freedom of the error: points less fitted numbers. Infinite for an error that is
        known.
    confidence, among
        As in `mean_interval`.

    Returns
    -------
    Interval

    Raises
    ------
    ParameterError
        If a number is out of range.

    Examples
    --------
    >>> from supermarket.estimate.intervals import fit_interval
    >>> found = fit_interval(2.0, 0.1, freedom=4, confidence=0.99)
    >>> round(found.low, 2), round(found.high, 2)
    (1.54, 2.46)
    """
    from scipy.special import stdtrit

    confidence, among = checked_confidence(confidence, among)
    estimate, error = real("estimate", estimate), real("error", error, 0.0)
    known = isinstance(freedom, float) and freedom == math.inf
    freedom = math.inf if known else real("freedom", freedom, 0.0, open_low=True)
    level = 1 - (1 - confidence) / (2 * among)
    half = error * float(stdtrit(freedom, level))
    effective = float(freedom + 1) if math.isfinite(freedom) else math.nan
    return Interval(estimate, estimate - half, estimate + half, confidence, effective)
