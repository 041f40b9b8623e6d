"""Control variates for batch means: noise whose source is known is taken out.

In a run some averages have means that are known exactly, such as the share of busy servers or the
number of tasks. What such an average is off by in a batch tells of what others are off by. In the
supermarket model every level has one: as many queues reach length i as fall below it, so that

    E u_i = lam E u_{i-1}**d

in equilibrium, with choices with replacement; and so has every product of two.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from supermarket.models.jsq import numbers_of
from supermarket.runs.run import Run
from supermarket.statistics import ENOUGH, Interval, batch_interval
from supermarket.theory.fixed_point import fixed_point
from supermarket.validation import ParameterError, integer

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
    >>> from supermarket.controls import job_controls
    >>> run = simulate(Supermarket(100, 2, 0.7), Schedule(2000, batches=4000), seed=1)
    >>> busy, jobs = run.ends[:, 1] / 100, run.ends[:, 1:].sum(axis=1) / 100
    >>> [bool(abs(x.mean()) < 0.02) for x in job_controls(busy, jobs, 100, 0.7, centre=1.1)]
    [True, True, True]
    """
    over = np.asarray(busy, dtype=np.float64) - lam
    away = np.asarray(jobs, dtype=np.float64) - centre
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
        As in `supermarket.statistics.mean_interval`.
    relaxations : float, optional
        As in `supermarket.statistics.batch_interval`.

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
    >>> from supermarket.controls import controlled_interval
    >>> rng = np.random.default_rng(1)
    >>> busy = rng.normal(0.0, 0.1, 64)
    >>> waiting = 2.0 + 5.0 * busy + rng.normal(0.0, 0.01, 64)
    >>> found = controlled_interval(waiting, [busy], 0.99)
    >>> bool(found.low < 2.0 < found.high), bool(found.high - found.low < 0.02)
    (True, True)
    """
    from scipy.special import stdtrit

    y = np.asarray(batches, dtype=np.float64)
    columns = [np.asarray(control, dtype=np.float64) for control in controls]
    if y.ndim != 1 or any(column.shape != y.shape for column in columns):
        raise ParameterError("batches and controls must be lists of numbers of equal length.")
    if len(y) < len(columns) + 8:
        raise ParameterError(
            f"{len(y)} batches are too few for {len(columns)} controls: give at least "
            f"{len(columns) + 8}."
        )
    design = np.ones((len(y), 1))
    for column in columns:
        rest = column - design @ np.linalg.lstsq(design, column, rcond=None)[0]
        spread = column - column.mean()
        if rest @ rest > _CONSTANT * (spread @ spread):
            design = np.column_stack([design, column])
    fitted = np.linalg.lstsq(design, y, rcond=None)[0]
    rest = y - design @ fitted
    unseen = np.min(y) == 0 or np.ptp(y) == 0
    if unseen or (relaxations is not None and relaxations < ENOUGH):
        refused = batch_interval(y, confidence, among=among, relaxations=relaxations)
        return replace(refused, estimate=float(fitted[0]), low=math.nan, high=math.nan)
    m, freedom = len(y), len(y) - design.shape[1]
    spread = float(rest @ rest)
    correlation = float(rest[1:] @ rest[:-1]) / spread if spread > 0 else 0.0
    correlation = max(correlation + (1 + 3 * correlation) / m, 0.0)  # it is biased by so much
    if correlation >= math.exp(-12 / m):
        return Interval(
            float(fitted[0]), math.nan, math.nan, confidence,
            refused="neighbouring batches are still correlated",
            longer=12 / max(-m * math.log(min(correlation, 1.0)), 0.12),
        )  # fmt: skip
    error = math.sqrt(spread / freedom * np.linalg.inv(design.T @ design)[0, 0])
    error *= math.sqrt((1 + correlation) / (1 - correlation))
    level = 1 - (1 - confidence) / (2 * integer("among", among, 1))
    half = float(stdtrit(freedom, level)) * error
    plain = float(stdtrit(m - 1, level)) * float(y.std(ddof=1))
    return Interval(
        float(fitted[0]), float(fitted[0]) - half, float(fitted[0]) + half, confidence,
        (plain / half) ** 2 if half > 0 else math.nan,
    )  # fmt: skip


def level_control(run: Run, level: int) -> NDArray[np.float64]:
    """Return, for each batch of a run, an average that has mean 0 in equilibrium, for one level.

    It is that of u_i - lam u_{i-1}**d over the recorded times in the batch, with i the level: by
    how much its queues are more than the level below will make of them. The share of time for
    which there is such a queue, and the mean share of them, follow it closely.

    Parameters
    ----------
    run : Run
        Of the occupancy chain, with replacement, with `times` in every batch; the denser they are,
        the more of the noise is explained.
    level : int
        At least 1, for which it is the share of busy servers less lam.

    Returns
    -------
    ndarray of float64, shape (batches,)

    Raises
    ------
    ParameterError
        If the choices are distinct, or a batch has no recorded time.

    Examples
    --------
    >>> import numpy as np
    >>> from supermarket import Schedule, Supermarket, simulate
    >>> from supermarket.controls import controlled_interval, level_control
    >>> times = np.arange(0, 600, 0.25)
    >>> run = simulate(Supermarket(700, 2, 0.8), Schedule(600, times=times, batches=32), seed=1)
    >>> share = run.batches["maximum"][:, 5:].sum(axis=1)  # of the time with a queue of 5 jobs
    >>> controls = [level_control(run, level) for level in (1, 4, 5)]
    >>> found = controlled_interval(share, controls, 0.99)
    >>> bool(found.effective > 2 * len(share))  # as if the run were more than twice as long
    True
    """
    level = integer("level", level, 1)
    shares = _recorded(run, level)
    return over_batches(run, shares[:, level] - run.model.lam * shares[:, level - 1] ** run.model.d)


def pair_control(run: Run, first: int, second: int) -> NDArray[np.float64]:
    """Return, for each batch of a run, an average that has mean 0 in equilibrium, for two levels.

    It is that of the drift of (u_i - pi(i)) (u_j - pi(j)) over the recorded times in the batch: in
    equilibrium the mean of no function of the state moves. What fluctuations add to a mean, of
    order 1 / n, follows these controls of all pairs of levels up to its own, beside those of
    `level_control`, as the mean itself follows the latter.

    Parameters
    ----------
    run : Run
        As in `level_control`.
    first, second : int
        The levels i and j, at least 1; they may be the same.

    Returns
    -------
    ndarray of float64, shape (batches,)

    Raises
    ------
    ParameterError
        As in `level_control`.

    Examples
    --------
    >>> import numpy as np
    >>> from supermarket import Schedule, Supermarket, simulate
    >>> from supermarket.controls import controlled_interval, level_control, pair_control
    >>> times = np.arange(0, 600, 0.25)
    >>> run = simulate(Supermarket(700, 2, 0.8), Schedule(600, times=times), seed=1)
    >>> levels = [level_control(run, level) for level in (1, 2)]
    >>> pairs = [pair_control(run, *two) for two in ((1, 1), (1, 2), (2, 2))]
    >>> found = controlled_interval(run.batches["profile"][:, 2], levels + pairs, 0.99)
    >>> bool(found.effective > 100 * len(run.batches["profile"]))
    True
    """
    i, j = integer("first", first, 1), integer("second", second, 1)
    top = max(i, j) + 1
    shares = _recorded(run, top)
    d, lam = run.model.d, run.model.lam
    risen = lam * -np.diff(shares[:, : top + 1] ** d)  # rate at which u_1, u_2, ... rise
    fallen = -np.diff(shares[:, 1 : top + 1])
    off = shares[:, : top + 1] - fixed_point(run.model, top)
    drift = off[:, i] * (risen[:, j - 1] - fallen[:, j - 1])
    drift += off[:, j] * (risen[:, i - 1] - fallen[:, i - 1])
    if i == j:
        drift += (risen[:, i - 1] + fallen[:, i - 1]) / run.model.n  # each event moves it by 1 / n
    return over_batches(run, drift)


def over_batches(run: Run, values: ArrayLike) -> NDArray[np.float64]:
    """Return the average, for each batch of a run, of what belongs to its recorded times.

    Parameters
    ----------
    run : Run
        With `times` in every batch.
    values : array_like of float, shape (times,)

    Returns
    -------
    ndarray of float64, shape (batches,)

    Raises
    ------
    ParameterError
        If a batch has no recorded time.

    Examples
    --------
    >>> from supermarket import Schedule, Supermarket, simulate
    >>> from supermarket.controls import over_batches
    >>> schedule = Schedule(4, times=[0, 1, 3, 4], batches=2)
    >>> run = simulate(Supermarket(10, 2, 0.5), schedule, seed=1)
    >>> over_batches(run, [1.0, 3.0, 5.0, 6.0]).tolist()
    [2.0, 5.5]
    """
    batches = len(run.batches["profile"])
    ends = np.linspace(0.0, run.schedule.horizon, batches + 1)
    batch = np.searchsorted(ends[1:-1], run.times, side="right")
    seen = np.bincount(batch, minlength=batches)
    if not seen.all():
        raise ParameterError(
            f"times has none in {np.count_nonzero(seen == 0)} of {batches} batches: record at "
            "least one in each."
        )
    return np.bincount(batch, values, batches) / seen


def _recorded(run: Run, level: int) -> NDArray[np.float64]:
    """Return the shares u_0, u_1, ... at the recorded times, up to this level at least."""
    n, _, _ = numbers_of(run.model, distinct=False)
    shares = np.zeros((len(run.times), max(level + 1, run.path.shape[1])))
    shares[:, : run.path.shape[1]] = run.path / n
    return shares
