r"""What the largest jobs do to an interval: how many a run saw, and how long they are felt.

An average over a run is the sum of what its jobs do to it. A job of size s holds its server up for
a time of order s, and for so long a share of queues is off by a constant, so that the sum over
jobs is one of numbers X of order s: its variance needs two moments of the service time. A mean
number of jobs, and with it the time that they stay, is off by those that come behind it. With one
choice they are lam s, so that X is of order s**2, and the variance needs **four** moments, as is
known of the M/G/1 queue [1]_. With d >= 2 choices others avoid that server, and two moments are
enough, but for two reasons (derived here):

* with replacement an arrival looks at that server alone with probability n**-d, so that its queue
  grows at rate lam n**(1-d) all the same;
* where n - 1 servers cannot do the work of n, lam n > n - 1, the whole network fills up.

Under processor sharing and LIFO nobody waits for the whole of a large job: two moments are enough.

Moments that exist are of no use in a run too short to see what they are made of. Jobs so large that
none is expected, with chance `UNSEEN` of any, are left out. The sum over the others is as skew as
that over so many alike, of an exponential size,

.. math:: N \, (\mathbb E X^2)^3 / (\mathbb E X^3)^2,

N the number of jobs in the run. It needs `FEW` of them. And an average over a stretch of the
run that is not long against the largest jobs has less noise than its length says: see `noise`.

.. [1] S. Asmussen and P. W. Glynn, *Stochastic Simulation*, Springer, 2007, section IV.6.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from supermarket.models.jsq import Supermarket

UNSEEN = 0.02  # chance that a run has a job larger than those that are reckoned with
FEW = 20.0  # large jobs that a run must have seen
STILL = 0.3  # standard errors that an average may be off by because of an empty start
FACTORS = np.geomspace(1.25, 1e6, 40)  # so much longer runs are looked at
POINTS = 1000  # quantiles that stand for the law


@dataclass(frozen=True)
class LargeJobs:
    """What the jobs of a run do to one of its averages, or to several.

    Attributes
    ----------
    size, weight, held : ndarray of float64, shape (m,)
        Sizes of jobs in mean service times, their probabilities, and how long each is felt.
    off : ndarray of float64, shape (..., m)
        By how much it then puts each average off, up to a factor.
    jobs : float
        Expected number of jobs in the run.
    horizon, lead : float
        Length of the run and of its warm-up, in mean service times.
    """

    size: NDArray[np.float64]
    weight: NDArray[np.float64]
    off: NDArray[np.float64]
    held: NDArray[np.float64]
    jobs: float
    horizon: float
    lead: float

    @property
    def scv(self) -> float:
        """Squared coefficient of variation of the sizes that are reckoned with."""
        first, second = self.weight @ self.size, self.weight @ self.size**2
        return float(second / first**2 - 1)

    @property
    def effective(self) -> NDArray[np.float64]:
        """How many jobs alike would make a sum as skew as that of this run."""
        done = self.off * np.minimum(self.held, self.horizon)
        second, third = done**2 @ self.weight, done**3 @ self.weight
        return self.jobs * second * (second / np.maximum(third, 1e-300)) ** 2

    def noise(self, share: float) -> NDArray[np.float64]:
        """Return length times variance of the average over this share of the run, up to a factor.

        Jobs come as a Poisson process, and each puts the average off while it is held.
        """
        length = share * self.horizon
        short, long = np.minimum(self.held, length), np.maximum(self.held, length)
        noise = (self.off**2 * short**2 * (long - short / 3)) @ self.weight / length
        return np.maximum(noise, 1e-200)

    @property
    def missed(self) -> NDArray[np.float64]:
        """How many standard errors the average is off by after a start from empty queues.

        What came before the start is missing until it would have left.
        """
        late = np.maximum(self.held - self.lead, 0.0)
        later = np.maximum(self.held - self.lead - self.horizon, 0.0)
        missing = (self.off * (late**2 - later**2)) @ self.weight / (2 * self.horizon)
        return missing * np.sqrt(self.jobs / self.noise(1.0))


def blocked_growth(model: Supermarket) -> float:
    """Return at what rate jobs come behind one that is served for ever, per mean service time."""
    n, load = model.n, model.load
    if model.discipline != "fifo":
        return 0.0
    if model.d == 1:
        return load
    alone = load * float(n) ** (1 - model.d) if model.replacement else 0.0
    return min(alone + max(load * n - (n - 1), 0.0), load * n)


def waits_for_all(model: Supermarket) -> bool:
    """Return whether a large job makes others wait for its whole size, rather than avoid it."""
    return model.discipline == "fifo" and (model.d == 1 or model.load * model.n > model.n - 1)


def reached(model: Supermarket, profile: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return after what time a server that is held up has i jobs, i = 0, 1, ...

    With j jobs it gets lam d u_j**(d-1) more per unit of time at most, and at least those of
    `blocked_growth`.

    Parameters
    ----------
    model : Supermarket
    profile : ndarray of float64, shape (levels,)
        Share of servers with at least 0, 1, ... jobs.
    """
    rate = np.maximum(
        model.load * model.d * profile[1:-1] ** (model.d - 1.0), blocked_growth(model)
    )
    steps = 1 / np.maximum(np.minimum(rate, model.load * model.n), 1e-300)
    return np.concatenate([[0.0, 0.0], np.cumsum(steps)])


def large_jobs(
    model: Supermarket,
    horizon: float,
    lead: float,
    profile: NDArray[np.float64],
    *,
    mean: bool = False,
    beyond: ArrayLike = 0.0,
    share: ArrayLike = 0.0,
) -> LargeJobs:
    """Return what jobs do to averages of a run.

    Parameters
    ----------
    model : Supermarket
        With a load below 1.
    horizon, lead : float
        Length of the run and of its warm-up, in the model's unit of time.
    profile : ndarray of float64, shape (levels,)
        Share of servers with at least 0, 1, ... jobs, as the run saw it.
    mean : bool
        Whether they are means of a number of jobs or a time; otherwise they are shares.
    beyond : array_like of float
        Size of a job, in mean service times, up to which a job alone does nothing to each share.
    share : array_like of float
        What each share was. What single jobs do not explain of it is put to all, by their size.
    """
    law = model.service
    horizon, lead = horizon / law.mean, lead / law.mean
    jobs = max(model.n * model.load * horizon, 1.0)
    edges = np.linspace(math.log(UNSEEN / jobs), 0.0, POINTS + 1)
    size = law.inverse_survival(np.exp((edges[1:] + edges[:-1]) / 2)) / law.mean
    weight = np.diff(np.exp(edges))
    fifo = model.discipline == "fifo"
    if mean and fifo:
        reach = reached(model, profile)
        more = np.maximum(size - reach[-1], 0.0)
        behind = np.maximum(size[:, np.newaxis] - reach[1:], 0.0).sum(axis=1)
        done = behind + blocked_growth(model) * more**2 / 2
    else:
        done = np.maximum(size - np.asarray(beyond)[..., np.newaxis], 0.0)
        rest = np.maximum(np.asarray(share) / model.load - done @ weight, 0.0)
        done = done + rest[..., np.newaxis] * size
    if fifo:
        slower = 1 / (1 - model.load) if waits_for_all(model) else 1.0
    else:  # all that share the server, or interrupt
        slower = max(float(profile[1:].sum()) / model.load, 1.0)
    return LargeJobs(
        size=size,
        weight=weight,
        off=done / size,
        held=slower * size,
        jobs=jobs,
        horizon=horizon,
        lead=lead,
    )


def refusals(
    model: Supermarket,
    horizon: float,
    lead: float,
    profile: NDArray[np.float64],
    *,
    mean: bool,
    beyond: NDArray[np.float64],
    share: NDArray[np.float64],
    empty: bool,
) -> tuple[NDArray[np.object_], NDArray[np.float64]]:
    """Return why a run gives no intervals for averages, each in one clause, and what would.

    Parameters
    ----------
    model, horizon, lead, profile, mean, beyond, share
        As in `large_jobs`.
    empty : bool
        Whether the run started from empty queues.

    Returns
    -------
    why : ndarray of str, of the shape of `beyond`
        Empty where there is an interval.
    longer : ndarray of float64
        By what factor a run would have to be longer: 1 where there is one, infinite where no run
        of any length would do.
    """
    shape, beyond, share = np.shape(beyond), np.ravel(beyond), np.ravel(share)

    def seen(factor: float, which: NDArray) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        about = {"mean": mean, "beyond": beyond[which], "share": share[which]}
        found = large_jobs(model, factor * horizon, factor * lead, profile, **about)
        several = np.ones(len(which))  # a mean has one for all
        return found.effective * several, (found.missed * several > STILL) & empty

    few, late = seen(1.0, np.arange(len(share)))
    longer = np.where((few >= FEW) & ~late, 1.0, math.inf)
    for factor in FACTORS:
        left = np.flatnonzero(np.isinf(longer) & (share > 0))  # the others were never seen at all
        if not len(left):
            break
        more, then = seen(factor, left)
        longer[left] = np.where((more >= FEW) & ~then, factor, math.inf)
    law, needed = model.service, 4 if mean and blocked_growth(model) > 0 else 2
    missing = f"it takes {needed} moments of the service time, and {law!r} has "
    missing += f"{math.ceil(law.tail_index) - 1}" if law.tail_index < math.inf else "more"
    why = np.full(few.shape, "large jobs of before the empty start are missing", dtype=object)
    for i in np.ndindex(few.shape):
        if few[i] < FEW:
            why[i] = f"the run saw some {few[i]:.2g} of the largest jobs and needs {FEW:g}"
    why[np.isinf(longer) & (law.tail_index <= needed)] = missing
    why[longer == 1] = ""
    return why.reshape(shape), longer.reshape(shape)
