"""What a run gave: labelled quantities, each with its batches, and one way to an interval."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import ArrayLike, NDArray

import supermarket
from supermarket.estimate.intervals import Interval, batch_interval, time_share_interval
from supermarket.estimate.large_jobs import (
    FACTORS,
    FEW,
    STILL,
    large_jobs,
    reached,
    refusals,
    waits_for_all,
)
from supermarket.runs.schedule import Schedule
from supermarket.service import Exponential
from supermarket.validation import (
    ParameterError,
    choice,
    instance,
    integer,
    listed,
    positive,
    real,
    said,
    whole_numbers,
)

__all__ = ["Run"]


@dataclass(frozen=True, repr=False)
class Run:
    """What one run gave, and everything that made it.

    ``run[name]`` is the mean of a quantity over the run, and `interval` its interval.

    Attributes
    ----------
    model : Supermarket, JacksonNetwork or PoolSystem
        What was simulated; of one station of a network, its queues as a model of their own.
    schedule : Schedule
        When it was measured.
    start : str
        The name of the start, or "given".
    seed : tuple
        (entropy, spawn key) of the seed sequence.
    engine : str
        What made the events.
    events : int
        Events made, those of the warm-up included: for exponential service with steps of the chain
        that change nothing, of leaps their number.
    path : ndarray of int64, shape (m, levels) or, for pools, (m, classes, levels)
        The state at each of `times`: ``path[j, i]`` is the number of queues with length at least i;
        ``path[j, c, i - 1]`` the number of pools of class c with at least i tasks.
    final : ndarray of int64
        The state at the end.
    batches : dict of str to ndarray of float64, shape (batches, ...)
        Averages over consecutive stretches of equal length, by name.

        - "profile", (batches, levels): the share of queues with length at least i; for pools
          (batches, classes, levels): of class c with at least i + 1 tasks.
        - "maximum", (batches, levels): the law of the maximum queue length.
        - "squares", (batches, levels), of single jobs: the squared number of queues with length at
          least i.
        - "sojourns", (batches, 512), and "sojourn sums", (batches,), of single jobs: the number of
          jobs whose sojourn time is at least each time of the grid, and the sum of their sojourn
          times. FIFO: of the jobs that came in the batch; otherwise of those that left in it.
        - "utility", "misplaced", "tasks", (batches,), of pools: the aggregate utility per pool,
          what the best assignment of the same tasks would add to it, the number of tasks per pool.
        - "threshold", (batches, classes * levels), of pools: the share of time at each threshold.
    ends : ndarray of int64, shape (batches, levels)
        The state at the end of each batch; empty for pools.
    extra : dict of str to anything
        What only this kind of run has: "sojourn grid"; "lengths", the queues at the end; "step" and
        "bias" of leaps; "threshold path" and "most tasks" of pools; "moves" of a network.
    stations : dict of str to Run
        Of a network, the runs of its stations by name.
    version : str
        The version of the package.

    Examples
    --------
    >>> from supermarket import Supermarket, simulate
    >>> run = simulate(Supermarket(n=100, d=2, lam=0.7), 200, seed=1)
    >>> run
    <Run of Supermarket(n=100, d=2, lam=0.7): horizon 200, 37399 events, ranks>
    >>> found = run.interval("profile", 0.99, at=2)
    >>> bool(found.low < 0.343 < found.high)
    True
    """

    model: Any
    schedule: Schedule
    start: str
    seed: tuple[int, tuple[int, ...]]
    engine: str
    events: int
    path: NDArray[np.int64]
    final: NDArray[np.int64]
    batches: Mapping[str, NDArray[np.float64]]
    ends: NDArray[np.int64]
    extra: Mapping[str, Any] = field(default_factory=dict)
    stations: "Mapping[str, Run]" = field(default_factory=dict)
    version: str = supermarket.__version__

    def __repr__(self) -> str:
        """Return one line."""
        horizon = f"horizon {self.schedule.horizon:g}"
        return f"<Run of {self.model!r}: {horizon}, {self.events} events, {self.engine}>"

    def __getitem__(self, name: str) -> NDArray[np.float64]:
        """Return the mean over the run of a quantity that has batches."""
        values = self._batches_of(name)
        if self.schedule.unit == "service":  # batches of one length
            return values.mean(axis=0)
        return np.tensordot(self.schedule.weights, values, 1)

    def _batches_of(self, name: str) -> NDArray[np.float64]:
        self._check(name, self.batches)
        return self.batches[name]

    def _check(self, quantity: str, known: Collection[str]) -> None:
        if not self.batches:
            raise ParameterError(f"{self!r} has no averages of its own: its stations have.")
        choice("quantity", quantity, known)

    @property
    def times(self) -> NDArray[np.float64]:
        """The times of `path`, since the end of the warm-up, shape (m,)."""
        return np.array(self.schedule.times)

    @property
    def profile(self) -> NDArray[np.float64]:
        """Time-averaged share of queues with length at least i: 0 where none was that long."""
        return self["profile"]

    @property
    def mean_queue(self) -> float:
        """Time-averaged number of jobs per queue, of tasks per pool."""
        return float(self["tasks"] if "tasks" in self.batches else self.profile[1:].sum())

    @property
    def max_queue(self) -> dict[int, float]:
        """Length to the share of time for which it was the maximum queue length."""
        law = self["maximum"]
        return {int(m): float(law[m]) for m in np.flatnonzero(law > 0)}

    @property
    def mean_sojourn(self) -> float:
        """Mean time that a job spends waiting and in service; NaN if none was seen."""
        jobs = self._batches_of("sojourns")[:, 0].sum()
        return float(self.batches["sojourn sums"].sum() / jobs) if jobs else math.nan

    @property
    def sojourn_survival(self) -> NDArray[np.float64]:
        """Share of jobs that stay each time of the "sojourn grid" or more; NaN if none came."""
        jobs = self._batches_of("sojourns").sum(axis=0)
        return jobs / jobs[0] if jobs[0] else np.full(len(jobs), math.nan)

    @property
    def relaxation_time(self) -> float | None:
        """Time in which the chain forgets its start, in the schedule's unit, if theory knows it.

        That of the mean field, or of few queues that share their work, as one server n times as
        fast would, if that is longer (derived here, compared with exact chains). Of single jobs
        that of exponential service at this load; times (1 + scv) / 2 where all wait for the
        largest jobs, as in heavy traffic.
        """
        from supermarket.limits.mean_field.fixed_point import relaxation_time
        from supermarket.models.jsq import Supermarket

        model = self.model
        if self.engine == "network" or not (
            isinstance(model, Supermarket) and model.policy == "jsq"
        ):
            return None
        alike = Supermarket(model.n, model.d, model.load)
        time = max(relaxation_time(alike), (1 - math.sqrt(model.load)) ** -2 / model.n)
        if self.engine == "jobs":
            return time * model.service.mean * self._uneven()
        return time * (model.n * (1 + model.lam) if self.schedule.unit == "steps" else 1.0)

    def _uneven(self) -> float:
        """Return by what factor the run forgets more slowly because service is not exponential."""
        if self._exponential or not waits_for_all(self.model):
            return 1.0
        lengths = self.schedule.horizon, self.schedule.lead
        return max((1 + large_jobs(self.model, *lengths, self.profile).scv) / 2, 1.0)

    @property
    def _exponential(self) -> bool:
        return self.model.service.scaled(1.0) == Exponential()

    def relaxations(self, relaxation_time: float | None = None) -> float | None:
        """Return the length of the run in relaxation times: those given, or its own if known."""
        if relaxation_time is None:
            relaxation_time = self.relaxation_time
        else:
            relaxation_time = positive("relaxation_time", relaxation_time)
        return None if relaxation_time is None else self.schedule.horizon / relaxation_time

    def interval(
        self,
        quantity: str,
        confidence: float = 0.95,
        *,
        at: ArrayLike | None = None,
        among: int = 1,
        relaxation_time: float | None = None,
        controls: Sequence[ArrayLike] = (),
    ) -> Interval:
        """Return the interval for a mean in equilibrium, from the batches.

        Parameters
        ----------
        quantity : str
            What there are means of:

            - "profile": the share of queues with length at least i, for each i or that of `at`;
              for pools that of class c with at least j tasks, `at` = (c, j);
            - "length": the share of queues with exactly the length `at`;
            - "mean queue": the number of jobs per queue;
            - "maximum": the maximum queue length; or the share of time for which it was one of the
              lengths of `at` (see `supermarket.estimate.intervals.time_share_interval`, which holds
              also where it always was, or never);
            - "sojourn": the sojourn time of single jobs; "sojourn survival": the share of jobs
              that stay at least each time of the grid;
            - "covariance": n times the covariance of two queues' indicators of length at least i;
            - "utility" and "misplaced" of pools, the latter far narrower. The number of tasks is
              Poisson of mean n rho under every policy: it and the best utility for it are control
              variates (see `supermarket.estimate.controls.controlled_interval`).
        confidence : float
            In (0, 1).
        at : int or array_like of int, optional
            Which part of the quantity is meant, as above.
        among : int
            The number of intervals that are to hold together, as in
            `supermarket.estimate.intervals.batch_interval`.
        relaxation_time : float, optional
            In the unit of the schedule, where one is known that is better than this run's own.
        controls : sequence of array_like of float, shape (batches,)
            Averages over the batches less their known means, for a quantity with one mean that is
            not of pools: what they explain is taken out, as in
            `supermarket.estimate.controls.controlled_interval`.

        Returns
        -------
        Interval
            Refused if the run is not `supermarket.estimate.intervals.ENOUGH` times as long as the
            relaxation time; and, of single jobs, where it takes more moments of the service time
            than there are, the run has not seen enough of the largest jobs, or an empty start is
            still felt (see `supermarket.estimate.large_jobs`). Shares and means stay in their
            ranges.

        Raises
        ------
        ParameterError
            If the run has no such quantity.
        """
        from supermarket.estimate.controls import controlled_interval

        made = {name: make for name, make in _QUANTITIES.items() if _needs(name) in self.batches}
        self._check(quantity, made)
        if at is not None and quantity not in ("profile", "length", "maximum"):
            raise ParameterError(f"at = {said(at)} is for 'profile', 'length' and 'maximum' alone.")
        relaxations = self.relaxations(relaxation_time)
        if quantity == "maximum" and at is not None:
            if relaxations is None:
                raise ParameterError(f"{self!r} has no relaxation time that theory knows.")
            lengths = dict.fromkeys(whole_numbers("at", at).ravel().tolist())
            share = sum(self.max_queue.get(length, 0.0) for length in lengths)
            about = self._about(False, 0.0, share)
            if about is not None:
                found = large_jobs(**about)
                looks = found.horizon * found.weight @ found.held / float(found.noise(1.0))
                relaxations = min(relaxations, 2 * looks)
            found = time_share_interval(share, relaxations, confidence, among=among)
            return self._trusted(found, about, relaxations, among).within(0.0, 1.0)
        seen = made[quantity](self, at)
        if isinstance(seen, Interval):
            return replace(seen, confidence=confidence)
        scale, limits = _SCALES[quantity]
        if seen.controls is not None:
            found = controlled_interval(
                seen.batches, seen.controls, confidence, among=among, relaxations=relaxations
            )
            return found.within(*limits)
        about = self._about(
            scale == "positive", _beyond(self, quantity, at), seen.batches.mean(axis=0)
        )
        known = {"relaxations": relaxations, "noises": []}
        if about is not None:
            known["noises"] = [large_jobs(**about).noise]
        if len(controls):
            found = controlled_interval(seen.batches, controls, confidence, among=among, **known)
        else:
            found = batch_interval(
                seen.batches, confidence, among=among, snapshots=seen.ends, scale=scale, **known
            )
        if seen.estimate is not None:
            found = replace(found, estimate=seen.estimate)
        if quantity == "covariance":
            limits = (-0.25 * self.model.n / (self.model.n - 1), 0.25 * self.model.n)
        return self._trusted(found, about, relaxations, among).within(*limits)

    def _about(self, mean: bool, beyond: ArrayLike, share: ArrayLike) -> dict[str, Any] | None:
        """Return what there is to say of the largest jobs of a run; None for exponential service.

        Exponential jobs are never much larger than the queues that they meet.
        """
        if self.engine != "jobs" or self._exponential:
            return None
        beyond = np.broadcast_to(beyond, np.shape(share))
        return {
            "model": self.model, "horizon": self.schedule.horizon, "lead": self.schedule.lead,
            "profile": self.profile, "mean": mean, "beyond": beyond,
            "share": np.asarray(share),
        }  # fmt: skip

    def _trusted(
        self, found: Interval, about: dict[str, Any] | None, relaxations: float | None, among: int
    ) -> Interval:
        """Return the intervals, but for those that the run was too short for."""
        empty = self.start == "empty"
        if about is not None:
            # The fewer large jobs, the more their noise is seen too small with the mean (measured).
            few = np.maximum(large_jobs(**about).effective, FEW)
            found = found.wider(1 + few**-0.5).unless(*refusals(**about, empty=empty))
        if empty and relaxations is not None:
            lengths = self.schedule.horizon, self.schedule.lead
            found = found.unless(*_start_felt(found, relaxations, lengths, among))
        return found

    def covariance_batches(self) -> NDArray[np.float64]:
        r"""Return what each batch says of the covariances of two different queues.

        At level i it is :math:`n \operatorname{Cov}(1\{Q_1 \ge i\}, 1\{Q_2 \ge i\})`. Queues are
        exchangeable, so with S of them of length at least i the covariance is
        E S (S - 1) / (n (n - 1)) - (E S / n)**2, and the means are over time. The second mean is
        that of the whole run, with the error of each batch to first order, so that the mean of the
        batches is the estimate. A run of length T has a bias of order 1 / T.

        Returns
        -------
        ndarray of float64, shape (batches, levels)

        Raises
        ------
        ParameterError
            If there is only one queue.
        """
        n = self.model.n
        if n == 1:
            raise ParameterError("n = 1 has no two queues to compare: choose n >= 2.")
        squares = self._batches_of("squares")
        mean, profiles = self.profile, self.batches["profile"]
        pairs = (squares / n - profiles) / (n - 1)
        return n * (pairs - 2 * mean * profiles + mean**2)

    def max_queue_range(self, share: float = 0.98) -> "MaxQueueRange":
        """Return the lengths that the maximum took for this share of the time, and its median.

        The same share of the time, (1 - share) / 2, is left out at either side. That is what was
        seen: see `supermarket.estimate.intervals.time_share_interval` for what may be said of
        equilibrium.
        """
        share, law = real("share", share, 0.0, 1.0), self.max_queue
        lengths = sorted(law)
        below = np.cumsum([law[length] for length in lengths])
        low, middle, high = (
            float(lengths[min(int(np.searchsorted(below, level)), len(lengths) - 1)])
            for level in ((1 - share) / 2, 0.5, (1 + share) / 2)
        )
        return MaxQueueRange(middle, low, high)


class MaxQueueRange(NamedTuple):
    """Maximum queue lengths: the median over time, and the ends of the range that was taken."""

    median: float
    low: float
    high: float


class _Seen(NamedTuple):
    """A quantity by batches, and what makes its interval narrower or surer."""

    batches: NDArray[np.float64]
    ends: NDArray[np.float64] | None = None
    controls: list[NDArray[np.float64]] | None = None
    estimate: NDArray[np.float64] | None = None


def _profile(run: Run, at: Any) -> _Seen:
    profiles = run.batches["profile"]
    if "utility" in run.batches:
        c, j = listed("at", at, 2)  # the class, from 0, and the number of tasks
        classes, levels = profiles.shape[1:]
        c, j = integer("class", c, 0, classes - 1), integer("tasks", j, 1, levels)
        return _Seen(profiles[:, c, j - 1], controls=_controls(run)[:1])
    if at is not None:
        at = integer("at", at, 0, profiles.shape[1] - 1)
        return _Seen(profiles[:, at], run.ends[:, at] / run.model.n)
    return _Seen(profiles, run.ends / run.model.n)


def _mean_queue(run: Run, at: Any) -> _Seen:
    means, ends = (x[:, 1:].sum(axis=1) for x in (run.batches["profile"], run.ends))
    return _Seen(means, ends / run.model.n)


def _length(run: Run, at: Any) -> _Seen | Interval:
    profiles, at = run.batches["profile"], integer("at", at, 0)
    if at + 1 >= profiles.shape[1]:
        return Interval(0.0, math.nan, math.nan, 0.95, refused="never seen in the whole run")
    share, ends = (x[:, at] - x[:, at + 1] for x in (profiles, run.ends))
    return _Seen(share, ends / run.model.n)


def _maximum(run: Run, at: Any) -> _Seen:
    law = run.batches["maximum"]
    return _Seen(law @ np.arange(law.shape[1]), (run.ends > 0).sum(axis=1) - 1)


def _per_job(run: Run, sums: NDArray) -> _Seen:
    """Return ratios of sums over jobs to the number of jobs, to first order."""
    jobs = run.batches["sojourns"][:, 0]
    ratio = sums.sum(axis=0) / jobs.sum() if jobs.any() else np.full(sums.shape[1], math.nan)
    # Its mean is the ratio. A batch without the event tells of a rare one.
    batches = np.where(sums > 0, ratio + (sums - ratio * jobs[:, None]) / jobs.mean(), 0.0)
    return _Seen(batches, estimate=ratio)


def _sojourn(run: Run, at: Any) -> _Seen:
    seen = _per_job(run, run.batches["sojourn sums"][:, None])
    return _Seen(seen.batches[:, 0], estimate=seen.estimate[0])


_QUANTITIES: dict[str, Callable[[Run, Any], _Seen | Interval]] = {
    "profile": _profile,
    "length": _length,
    "mean queue": _mean_queue,
    "maximum": _maximum,
    "sojourn": _sojourn,
    "sojourn survival": lambda run, at: _per_job(run, run.batches["sojourns"]),
    "covariance": lambda run, at: _Seen(run.covariance_batches()),
    "utility": lambda run, at: _Seen(run.batches["utility"], controls=_controls(run)[:1]),
    "misplaced": lambda run, at: _Seen(run.batches["misplaced"], controls=_controls(run)),
}


_SHARE, _POSITIVE = ("share", (0.0, 1.0)), ("positive", (0.0, math.inf))
_SCALES = {
    "profile": _SHARE, "length": _SHARE, "sojourn survival": _SHARE, "mean queue": _POSITIVE,
    "maximum": _POSITIVE, "sojourn": _POSITIVE, "covariance": ("plain", (-math.inf, math.inf)),
    "utility": ("plain", (-math.inf, math.inf)), "misplaced": _POSITIVE,
}  # fmt: skip


def _beyond(run: Run, quantity: str, at: Any) -> float | NDArray[np.float64]:
    """Return the size of a job, in mean service times, up to which alone it adds to no share."""
    if run.model.discipline != "fifo":
        return 0.0
    if quantity == "sojourn survival":
        return run.extra["sojourn grid"] / run.model.service.mean
    if quantity in ("profile", "length"):
        reach = reached(run.model, run.profile)
        return reach if at is None else float(reach[at])
    return 0.0


def _start_felt(
    found: Interval, relaxations: float, lengths: tuple[float, float], among: int
) -> tuple[NDArray[np.object_], NDArray[np.float64]]:
    """Return where a start from empty queues is still felt, and how much longer a run would do."""
    from scipy.special import stdtrit

    horizon, lead = lengths
    quantile = stdtrit(7, 1 - (1 - found.confidence) / (2 * among))
    error = (np.asarray(found.high) - found.low) / 2 / quantile
    factors = np.r_[1.0, FACTORS][:, np.newaxis]
    left = np.exp(-relaxations * lead / horizon * factors) / (relaxations * np.sqrt(factors))
    felt = left * np.ravel(found.estimate) > STILL * np.ravel(error)
    first = np.argmin(felt, axis=0)
    longer = np.where(felt.all(axis=0), math.inf, factors.ravel()[first])
    why = np.where(felt[0], "the start from empty queues is still felt", "").astype(object)
    shape = np.shape(found.estimate)
    return why.reshape(shape), longer.reshape(shape)


def _controls(run: Run) -> list[NDArray[np.float64]]:
    """Return tasks and best utility in each batch, less their means in steady state."""
    from supermarket.limits.pools.utility import best_utility, unavoidable_deficit

    pools, rho = run.model.pools, run.model.rho
    known = float(best_utility(pools, rho)) - unavoidable_deficit(pools, rho, run.model.n)
    best = run.batches["utility"] + run.batches["misplaced"]
    return [run.batches["tasks"] - rho, best - known]


def _needs(quantity: str) -> str:
    """Return the batches that a quantity is made of."""
    return {
        "length": "maximum", "mean queue": "maximum", "sojourn": "sojourns",
        "sojourn survival": "sojourns", "covariance": "squares",
    }.get(quantity, quantity)  # fmt: skip


def run_of(given: object) -> Run:
    """Return the run, or refuse what is none."""
    return instance("run", given, Run, "give one of simulate")


def name_of_seed(seed: SeedSequence) -> tuple[int, tuple[int, ...]]:
    """Return what a run keeps of its seed: (entropy, spawn key)."""
    return int(seed.entropy), tuple(seed.spawn_key)
