"""How fast a stationary series forgets, from its autocorrelation."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from supermarket.estimate.intervals import Interval, checked_confidence, mean_interval
from supermarket.validation import ParameterError, integer, numbers, real

__all__ = ["autocorrelation_time", "forgetting_rate"]

WINDOW = 6.0  # autocorrelation times summed: exp(-6) of an exponential one is left out
SHORTEST = 50.0  # windows, at least, that the series must hold for an interval


def autocorrelation_time(
    series: ArrayLike, spacing: float = 1.0, confidence: float = 0.95, *, among: int = 1
) -> Interval:
    r"""Return the integrated autocorrelation time of a stationary series.

    .. math::
        \tau = h \Big(\tfrac12 + \sum_{t \ge 1} \rho_t\Big)

    for a distance h in time, which is 1 / mu for :math:`\rho_t = e^{-\mu h t}`, up to a share
    (mu h)**2 / 12. The sum ends at the first window of `WINDOW` times what was found so far [1]_.

    Parameters
    ----------
    series : array_like of float, shape (m,) or (copies, m)
        Values at equal distances in time, such as `Modes.values` along a path; or those of
        independent copies of one process.
    spacing : float
        The distance h.
    confidence : float
        In (0, 1).
    among : int
        Number of intervals that are to hold together with this confidence (Bonferroni).

    Returns
    -------
    Interval
        In the unit of `spacing`. Its ends are NaN where the series is shorter than `SHORTEST`
        windows in all, or a copy than two of them. They are those of a normal law with the variance
        2 (2 M + 1) / m of the relative error, M the window and m all values [1]_.

    Raises
    ------
    ParameterError
        If there are fewer than 10 values a copy, one is not finite, or all are the same.

    References
    ----------
    .. [1] A. D. Sokal, "Monte Carlo methods in statistical mechanics", in Functional Integration,
       Springer, 1997, section 3.

    Examples
    --------
    >>> import numpy as np
    >>> from supermarket.estimate.autocorrelation import autocorrelation_time
    >>> series = np.random.default_rng(1).normal(size=10000)
    >>> bool(abs(autocorrelation_time(series).estimate - 0.5) < 0.05)
    True
    """
    from scipy.special import ndtri

    confidence, among = checked_confidence(confidence, among)
    spacing, series = real("spacing", spacing, 0.0, open_low=True), _series(series)
    times = np.cumsum(_correlations(series)) - 0.5
    long_enough = np.arange(len(times)) >= WINDOW * times
    window = int(np.argmax(long_enough)) if long_enough.any() else len(times) - 1
    time = spacing * float(times[window])
    if not long_enough.any() or series.size < SHORTEST * window:
        return Interval(time, math.nan, math.nan, confidence)
    quantile = ndtri(1 - (1 - confidence) / (2 * among))
    half = quantile * time * math.sqrt(2 * (2 * window + 1) / series.size)
    return Interval(time, time - half, time + half, confidence)


def forgetting_rate(
    copies: ArrayLike, lag: int, spacing: float = 1.0, confidence: float = 0.95, *, among: int = 1
) -> Interval:
    """Return -log(autocorrelation at one lag) / lag: the rate, of a series that has but one.

    Over T times 1 / rate in all, and a lag short against that, the standard error is a share
    sqrt(2 / T): a third of that of `autocorrelation_time`, which needs no such assumption.

    Parameters
    ----------
    copies : array_like of float, shape (copies, m)
        Values at equal distances in time of independent copies of one stationary process.
    lag : int
        From 1 to m - 1, in values.
    spacing, confidence, among
        As in `autocorrelation_time`.

    Returns
    -------
    Interval
        Per unit of `spacing`; Student's over the copies, for the linear part of the logarithm. Its
        ends are NaN where the autocorrelation is not positive.

    Raises
    ------
    ParameterError
        If there are fewer than two copies, or as in `autocorrelation_time`.

    Examples
    --------
    >>> import numpy as np
    >>> from supermarket.estimate.autocorrelation import forgetting_rate
    >>> noise = np.random.default_rng(1).normal(size=(8, 10000))
    >>> copies = noise[:, 1:] + noise[:, :-1]
    >>> rate = forgetting_rate(copies, lag=1)
    >>> bool(abs(rate.estimate - np.log(2)) < 0.02)
    True
    """
    confidence, among = checked_confidence(confidence, among)
    copies, spacing = _series(copies), real("spacing", spacing, 0.0, open_low=True)
    lag = integer("lag", lag, 1, copies.shape[1] - 1)
    off = copies - copies.mean()
    # Both ends of a pair have the same law: their mean square halves the noise of the ratio.
    squares = (off[:, :-lag] ** 2 + off[:, lag:] ** 2).mean(axis=1) / 2
    products = (off[:, :-lag] * off[:, lag:]).mean(axis=1)
    correlation = products.mean() / squares.mean()
    if correlation <= 0:
        return Interval(math.inf, math.nan, math.nan, confidence)
    rate = -math.log(correlation) / (lag * spacing)
    parts = (squares / squares.mean() - products / products.mean()) / (lag * spacing)
    around = mean_interval(parts, confidence, among=among)
    return Interval(rate, rate + around.low, rate + around.high, confidence, around.effective)


def _series(series: ArrayLike) -> NDArray[np.float64]:
    series = np.atleast_2d(numbers("series", series))
    if series.ndim != 2 or not series.size or series.shape[1] < 10:
        raise ParameterError("series must hold at least 10 numbers, one row a copy.")
    if np.all(series == series[0, 0]):
        raise ParameterError("a series that never changes has no autocorrelation.")
    return series


def _correlations(series: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the autocorrelations at lags from 0 up to m / 2, about the mean of all copies."""
    from scipy.fft import irfft, next_fast_len, rfft

    m = series.shape[1]
    room = next_fast_len(2 * m, real=True)  # so that the ends do not meet
    power = np.abs(rfft(series - series.mean(), room, axis=1)) ** 2
    lags = np.arange(m // 2 + 1)
    products = irfft(power.mean(axis=0), room)[lags] / (m - lags)
    return products / products[0]
