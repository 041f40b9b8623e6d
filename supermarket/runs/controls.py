"""Control variates of a run: averages over its batches whose means in equilibrium are 0."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from supermarket.limits.mean_field.fixed_point import fixed_point
from supermarket.models.jsq import numbers_of
from supermarket.runs.run import Run, run_of
from supermarket.validation import MOST_LEVELS, ParameterError, integer, numbers

__all__ = ["level_control", "over_batches", "pair_control"]


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
    >>> from supermarket.estimate.controls import controlled_interval
    >>> from supermarket.runs.controls import level_control
    >>> times = np.arange(0, 600, 0.25)
    >>> run = simulate(Supermarket(700, 2, 0.8), Schedule(600, times=times, batches=32), seed=1)
    >>> share = run.batches["maximum"][:, 5:].sum(axis=1)  # of the time with a queue of 5 jobs
    >>> controls = [level_control(run, level) for level in (1, 4, 5)]
    >>> found = controlled_interval(share, controls, 0.99)
    >>> bool(found.effective > 2 * len(share))  # as if the run were more than twice as long
    True
    """
    level = integer("level", level, 1, MOST_LEVELS)
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
    >>> from supermarket.estimate.controls import controlled_interval
    >>> from supermarket.runs.controls import level_control, pair_control
    >>> times = np.arange(0, 600, 0.25)
    >>> run = simulate(Supermarket(700, 2, 0.8), Schedule(600, times=times), seed=1)
    >>> levels = [level_control(run, level) for level in (1, 2)]
    >>> pairs = [pair_control(run, *two) for two in ((1, 1), (1, 2), (2, 2))]
    >>> found = controlled_interval(run.batches["profile"][:, 2], levels + pairs, 0.99)
    >>> bool(found.effective > 100 * len(run.batches["profile"]))
    True
    """
    i, j = (integer(*one, 1, MOST_LEVELS) for one in (("first", first), ("second", second)))
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
    >>> from supermarket.runs.controls import over_batches
    >>> schedule = Schedule(4, times=[0, 1, 3, 4], batches=2)
    >>> run = simulate(Supermarket(10, 2, 0.5), schedule, seed=1)
    >>> over_batches(run, [1.0, 3.0, 5.0, 6.0]).tolist()
    [2.0, 5.5]
    """
    batches, values = run_of(run).schedule.batches, numbers("values", values)
    if values.shape != run.times.shape:
        raise ParameterError(
            f"values of shape {values.shape} must be one for each of {len(run.times)} times."
        )
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
    n, _, _ = numbers_of(run_of(run).model, distinct=False)
    shares = np.zeros((len(run.times), max(level + 1, run.path.shape[1])))
    shares[:, : run.path.shape[1]] = run.path / n
    return shares
