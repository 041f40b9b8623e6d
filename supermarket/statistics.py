"""Intervals for what the chains measure."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from supermarket.validation import ParameterError, number


@dataclass(frozen=True)
class Interval:
    """An estimate between two ends that hold the true value with the stated confidence.

    Attributes
    ----------
    estimate, low, high : float or ndarray of float64
        All of the same shape.
    confidence : float
        Share of repetitions in which [low, high] would hold the true value, in (0, 1).
    """

    estimate: float | NDArray[np.float64]
    low: float | NDArray[np.float64]
    high: float | NDArray[np.float64]
    confidence: float

    def __getitem__(self, index: int) -> "Interval":
        return Interval(
            float(self.estimate[index]),
            float(self.low[index]),
            float(self.high[index]),
            self.confidence,
        )


def mean_interval(samples: ArrayLike, confidence: float = 0.95, *, among: int = 1) -> Interval:
    """Return Student's t interval for the mean of independent samples.

    With batch means the samples are the averages over consecutive stretches of one run: they count
    as independent once a stretch is long against the relaxation time of the chain.

    Parameters
    ----------
    samples : array_like, shape (m,) or (m, ...)
        m >= 2 independent replicas or batch means along the first axis.
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

    References
    ----------
    .. [1] S. Asmussen and P. W. Glynn, *Stochastic Simulation*, Springer, 2007, section IV.5.
    """
    from scipy.stats import t

    confidence = number(0.0, 1.0, open_low=True, open_high=True)("confidence", confidence)
    samples = np.asarray(samples, dtype=np.float64)
    m = samples.shape[0] if samples.ndim else 0
    if m < 2:
        raise ParameterError(f"{m} sample(s) give no interval: at least 2 are needed.")
    estimate = samples.mean(axis=0)
    quantile = t.ppf(1 - (1 - confidence) / (2 * among), m - 1)
    half = quantile * samples.std(axis=0, ddof=1) / np.sqrt(m)
    if samples.ndim == 1:
        estimate, half = float(estimate), float(half)
    return Interval(estimate, estimate - half, estimate + half, confidence)
