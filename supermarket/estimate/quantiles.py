"""Intervals for quantiles of a stationary series, from how many independent looks it is worth."""

import numpy as np
from numpy.typing import ArrayLike

from supermarket.estimate.intervals import Interval, share_interval
from supermarket.validation import ParameterError, numbers, real

__all__ = ["quantile_interval"]


def quantile_interval(
    series: ArrayLike, level: float, looks: float, confidence: float = 0.95, *, among: int = 1
) -> Interval:
    """Return an interval for a quantile of what a stationary series shows.

    Of so many independent looks a number as in the interval of Clopper and Pearson lies below the
    quantile; the ends are the order statistics at these shares. Nothing is assumed of the
    distribution, which may have infinite values.

    Parameters
    ----------
    series : array_like of float, shape (m,)
        Values, correlated or not.
    level : float
        In (0, 1): 0.5 for the median.
    looks : float
        How many independent looks the series is worth, above 0: for a function of a chain over T
        relaxation times at least T / 2 (see `supermarket.estimate.intervals.time_share_interval`).
    confidence, among
        As in `supermarket.estimate.intervals.mean_interval`.

    Returns
    -------
    Interval
        Refused where the level is too near 0 or 1 for so few looks.

    Raises
    ------
    ParameterError
        If a number is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from supermarket.estimate.quantiles import quantile_interval
    >>> found = quantile_interval(np.arange(1001), 0.5, looks=1001, confidence=0.99)
    >>> found.low, found.estimate, found.high
    (459.0, 500.0, 541.0)
    """
    values = np.sort(numbers("series", series, finite=False).ravel())
    level = real("level", level, 0.0, 1.0, open_low=True, open_high=True)
    looks = real("looks", looks, 0.0, open_low=True)
    if not values.size:
        raise ParameterError("series must hold numbers, at least one.")
    shares = share_interval(level * looks, looks, confidence, among=among)
    last = len(values) - 1
    estimate, low, high = (
        float(values[int(np.clip(round(float(share) * last), 0, last))])
        for share in (level, shares.low, shares.high)
    )
    if min(level, 1 - level) * looks < 5:
        why = f"{looks:.3g} looks do not show what is exceeded in {min(level, 1 - level):.2g}"
        longer = 5 / (min(level, 1 - level) * looks)
        return Interval(estimate, np.nan, np.nan, confidence, looks, refused=why, longer=longer)
    return Interval(estimate, low, high, confidence, looks)
