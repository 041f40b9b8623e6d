"""Control variates for batch means: noise whose source is known is taken out.

In a run some averages have means that are known exactly, such as the share of busy servers or the
number of tasks. What such an average is off by in a batch tells of what others are off by. In the
supermarket model every level has one: as many queues reach length i as fall below it, so that

    E u_i = lam E u_{i-1}**d

in equilibrium, with choices with replacement; and so has every product of two.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from supermarket.estimate.intervals import (
    ENOUGH,
    LEAST,
    SEEN,
    UNSEEN,
    Interval,
    batch_interval,
    checked_confidence,
    joined,
    seen_by,
)
from supermarket.validation import (
    MOST_QUEUES,
    ParameterError,
    integer,
    listed,
    numbers,
    real,
    reals,
)

__all__ = ["controlled_interval", "job_controls"]

_HUGE = 1e100  # so that squares stay finite
_CONSTANT = 1e-9  # of a control's variance: less than this, and it is a combination of the others


def job_controls(
    busy: ArrayLike, jobs: ArrayLike, n: int, lam: float, centre: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    r"""Return three numbers for each state whose mean in equilibrium is 0, as controls.

    The number of jobs grows by arrivals at rate lam n and falls at rate n G, with G the share of
    busy queues, whatever the rule of choice. In equilibrium its first three powers have no trend.
    With S the jobs per queue less any fixed number c that is,

    .. math::
        \mathbb E\,(G - \lambda) = 0, \qquad
        \mathbb E\Big[S (G - \lambda) - \frac\lambda n\Big] = 0, \qquad
        \mathbb E\Big[S^2 (G - \lambda) - \frac{2 \lambda}n S - \frac\lambda{n^2}\Big] = 0.

    Near saturation the second tells most of what the mean number of waiting jobs is off by (derived
    in this project).

    Parameters
    ----------
    busy, jobs : array_like of float, shape (m,)
        Share of busy queues and number of jobs per queue in m states, not averages over time.
    n : int
        Number of queues, with exponential service times of mean 1.
    lam : float
        Arrival rate per queue.
    centre : float
        c, chosen before the run. The nearer to the mean of `jobs`, the more the controls tell.

    Returns
    -------
    tuple of ndarray of float64, shape (m,)
        Times 1, sqrt(n) and n: of the size of the fluctuations of G.

    Examples
    --------
    >>> from supermarket import Schedule, Supermarket, simulate
    >>> from supermarket.estimate.controls import job_controls
    >>> run = simulate(Supermarket(100, 2, 0.7), Schedule(2000, batches=4000), seed=1)
    >>> busy, jobs = run.ends[:, 1] / 100, run.ends[:, 1:].sum(axis=1) / 100
    >>> [bool(abs(x.mean()) < 0.02) for x in job_controls(busy, jobs, 100, 0.7, centre=1.1)]
    [True, True, True]
    """
    n, lam = integer("n", n, 1, MOST_QUEUES), real("lam", lam, 0.0, _HUGE, open_low=True)
    centre = real("centre", centre, -_HUGE, _HUGE)
    over, away = (
        reals(name, values, -_HUGE, _HUGE) - less
        for name, values, less in (("busy", busy, lam), ("jobs", jobs, centre))
    )
    if over.shape != away.shape:
        raise ParameterError(
            f"busy of shape {over.shape} and jobs of shape {away.shape} are not of the same states."
        )
    root = math.sqrt(n)
    second = root * (away * over - lam / n)
    third = n * (away**2 * over - 2 * lam / n * away - lam / n**2)
    return over, second, third


def controlled_interval(
    batches: ArrayLike,
    controls: Sequence[ArrayLike],
    confidence: float = 0.95,
    *,
    among: int = 1,
    relaxations: float | None = None,
    noises: Sequence[Callable[[float], ArrayLike]] = (),
) -> Interval:
    """Return Student's interval for a mean over batches, less what the controls explain.

    The batches are fitted, by least squares, as a constant plus multiples of the controls. The
    constant is the mean where all controls are 0. Its error includes that of the multiples, and is
    widened for what is left of the correlation of neighbouring batches, as if it fell geometrically
    with their distance. The interval is refused where the run lasts less than 12 times as long as
    that correlation, and where some batches saw nothing of what is not negative. The bias of the
    fit is of order 1 / m. Of a series that forgets exponentially, intervals of confidence 0.99 miss
    the mean in 0 to 2 % of runs of 50 to 300 relaxation times, in 2 to 3 % of those of 25
    (measured, with batches of 0.25 to 3 relaxation times).

    Parameters
    ----------
    batches : array_like of float, shape (m,)
        Means over consecutive stretches of equal length, or of independent copies.
    controls : sequence of array_like of float, shape (m,)
        Averages over the same stretches less their known means. One that is a combination of those
        before it is left out.
    confidence, among
        As in `supermarket.estimate.intervals.mean_interval`.
    relaxations : float, optional
        As in `supermarket.estimate.intervals.batch_interval`.
    noises : sequence of callable
        As there: for what is remembered so long, batches are joined and the interval made wider.

    Returns
    -------
    Interval
        `effective` is the number of samples without controls that would give the same interval.

    Raises
    ------
    ParameterError
        If the shapes do not agree, or there are fewer than 8 batches more than controls.

    Examples
    --------
    >>> import numpy as np
    >>> from supermarket.estimate.controls import controlled_interval
    >>> rng = np.random.default_rng(1)
    >>> busy = rng.normal(0.0, 0.1, 64)
    >>> waiting = 2.0 + 5.0 * busy + rng.normal(0.0, 0.01, 64)
    >>> found = controlled_interval(waiting, [busy], 0.99)
    >>> bool(found.low < 2.0 < found.high), bool(found.high - found.low < 0.02)
    (True, True)
    """
    from scipy.special import stdtrit

    confidence, among = checked_confidence(confidence, among)
    relaxations = None if relaxations is None else real("relaxations", relaxations, 0.0)
    y = numbers("batches", batches)
    columns = [numbers("controls", control) for control in listed("controls", controls)]
    if y.ndim != 1 or any(column.shape != y.shape for column in columns):
        raise ParameterError("batches and controls must be lists of numbers of equal length.")
    if len(y) < len(columns) + 8:
        raise ParameterError(
            f"{len(y)} batches are too few for {len(columns)} controls: give at least "
            f"{len(columns) + 8}."
        )
    whole, first = float(y.mean()), len(y)
    while seen_by(noises, len(y)) < SEEN and len(y) >= 2 * (len(columns) + 8):
        y, *columns = (joined(column) for column in (y, *columns))
    y = y + (whole - y.mean())  # a batch may have been left over
    if (seen := seen_by(noises, len(y))) < LEAST:
        nan = math.nan
        return Interval(whole, nan, nan, confidence, refused=UNSEEN, longer=nan)
    design = np.ones((len(y), 1))
    for column in columns:
        rest = column - design @ np.linalg.lstsq(design, column, rcond=None)[0]
        spread = column - column.mean()
        if rest @ rest > _CONSTANT * (spread @ spread):
            design = np.column_stack([design, column])
    fitted = np.linalg.lstsq(design, y, rcond=None)[0]
    rest = y - design @ fitted
    unseen = np.min(y) == 0 or np.ptp(y) == 0
    short = relaxations is not None and relaxations < ENOUGH
    if unseen or short:
        refused = batch_interval(
            y, confidence, among=among, relaxations=relaxations if short else None
        )
        return replace(refused, estimate=float(fitted[0]), low=math.nan, high=math.nan)
    m, freedom = len(y), len(y) - design.shape[1]
    spread = float(rest @ rest)
    correlation = float(rest[1:] @ rest[:-1]) / spread if spread > 0 else 0.0
    correlation = max(correlation + (1 + 3 * correlation) / m, 0.0)  # it is biased by so much
    # Where it is known how long batches must be, the few that are left say little of it.
    if correlation >= math.exp(-12 / (first if noises else m)):
        return Interval(
            float(fitted[0]), math.nan, math.nan, confidence,
            refused="neighbouring batches are still correlated",
            longer=12 / max(-m * math.log(min(correlation, 1.0)), 0.12),
        )  # fmt: skip
    error = math.sqrt(spread / freedom * np.linalg.inv(design.T @ design)[0, 0])
    error *= math.sqrt(max((1 + correlation) / (1 - correlation), 1 / seen))
    level = 1 - (1 - confidence) / (2 * among)
    half = float(stdtrit(freedom, level)) * error
    plain = float(stdtrit(m - 1, level)) * float(y.std(ddof=1))
    return Interval(
        float(fitted[0]), float(fitted[0]) - half, float(fitted[0]) + half, confidence,
        (plain / half) ** 2 if half > 0 else math.nan,
    )  # fmt: skip
