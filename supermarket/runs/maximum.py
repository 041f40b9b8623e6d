"""How seldom the maximum queue length is outside given lengths, without waiting to see it there.

A run that never saw a queue of length 8 says little of how often there is one. The chain says more:
queues reach length k + 1 or more as often as they fall below it, hence in equilibrium

    E s_{k+1} = lam n E u_k**d,

with s_k queues of length k or more, u_k = s_k / n, and choices with replacement. The right side is
seen at every moment, however small it is.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from supermarket.estimate.controls import controlled_interval
from supermarket.estimate.intervals import Interval, batch_interval
from supermarket.models.jsq import numbers_of
from supermarket.runs.controls import over_batches
from supermarket.runs.run import Run, run_of
from supermarket.validation import integer

__all__ = ["outside_interval"]


def outside_interval(
    run: Run,
    low: int,
    high: int,
    confidence: float = 0.95,
    *,
    among: int = 1,
    controls: Sequence[ArrayLike] | None = None,
) -> Interval:
    """Return the interval of a bound on the share of time that the maximum is not in [low, high].

    The maximum exceeds `high` with at most the probability E s_{high+1} = lam n E u_high**d
    (Markov), and stays below `low` with at most Var(s_low) / (E s_low)**2 (Chebyshev). The sum is
    averaged over the ends of the run's batches, or over its recorded times if there are controls.

    Parameters
    ----------
    run : Run
        Of the occupancy chain, with replacement.
    low, high : int
        Maximum queue lengths, 1 <= low <= high.
    confidence, among
        As in `supermarket.estimate.intervals.mean_interval`.
    controls : sequence of array_like of float, shape (batches,), optional
        As in `supermarket.estimate.controls.controlled_interval`; the run has recorded times in
        each batch.

    Returns
    -------
    Interval
        Of the bound; refused where the run is too short, as in `batch_interval`. Its estimate is 1
        or more where `low` was not always reached with room to spare.

    Raises
    ------
    ParameterError
        If the choices are distinct, or low > high.

    Examples
    --------
    >>> from supermarket import Supermarket, simulate
    >>> from supermarket.runs.maximum import outside_interval
    >>> run = simulate(Supermarket(100_000, 2, 0.5), 200, seed=1)
    >>> bound = outside_interval(run, 3, 4, 0.99)
    >>> bool(bound.high < 0.01)
    True
    """
    n, d, lam = numbers_of(run_of(run).model, distinct=False)
    low, high = integer("low", low, 1), integer("high", high, low)
    seen = run.ends if controls is None else run.path
    counts = np.zeros((len(seen), max(high + 1, seen.shape[1])))
    counts[:, : seen.shape[1]] = seen
    longer = lam * n * (counts[:, high] / n) ** d
    reached = counts[:, low].mean()
    if reached == 0:
        where = "end of any batch" if controls is None else "recorded times"
        why = f"no queue of length {low} at the {where}"
        return Interval(1.0, math.nan, math.nan, confidence, refused=why, longer=math.nan)
    shorter = (counts[:, low] / reached - 1) ** 2
    relaxations = run.relaxations()
    bounds = longer + shorter
    if controls is None:
        return batch_interval(bounds, confidence, among=among, relaxations=relaxations)
    return controlled_interval(
        over_batches(run, bounds), controls, confidence, among=among, relaxations=relaxations
    )
