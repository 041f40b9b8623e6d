"""The network itself: n servers with any law of the service time, one event at a time.

Jobs come as a Poisson process of rate lam n. Each looks at d servers, joins one with the fewest
jobs, and is served there: FIFO, as in Bramson, Lu & Prabhakar, or by processor sharing or LIFO for
contrast (see `supermarket.chains.disciplines`). An event costs the same whatever n is, but for the
cache, and memory is some 40 bytes a server and 24 a job that waits.
"""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import ArrayLike, NDArray

import supermarket
from supermarket.chains.borrowed import borrowed, inlined, touch
from supermarket.chains.departures import STATE, Net, first_by, idle_servers, remove
from supermarket.chains.disciplines import DISCIPLINES, load, unused_jobs
from supermarket.chains.measure import Plan, Simulation, plan
from supermarket.compiled import kernel
from supermarket.service import ServiceLaw
from supermarket.statistics import Interval, batch_interval
from supermarket.validation import MOST_LEVELS, ParameterError, choice, nearest, positive

BLOCK = 2**16  # arrivals a call of the kernel: some hundredths of a second, so Ctrl-C is heard
MOST_SERVERS = 10**8
BYTES_PER_SERVER = 40
# Up to FEW choices an arrival, they are drawn ahead, all of them, and SOON arrivals before they are
# looked at they are fetched into the cache. More are drawn one by one, until one of them is idle.
FEW, SOON = 8, 16
# The grid of sojourn times: 8 steps an octave from 2**-12 to 2**52 mean service times.
STEPS, LOWEST, OCTAVES = 8, -12, 64
# What there is room for at first, beside those of the start; it grows.
ROOM, MORE_LEVELS = 1024, 30


@dataclass(frozen=True)
class FifoSimulation(Simulation):
    """What one run of the network gave, and everything that made it.

    All that `Simulation` has, averaged over time as it passed (`events` are arrivals and
    departures, `chain` is "network" with its discipline, `time_unit` is the service law's), and:

    Attributes
    ----------
    batch_squares : ndarray of float64, shape (batches, levels)
        Time averages of the squared number of queues with length at least i.
    sojourn_grid : ndarray of float64, shape (512,)
        Times fixed beforehand, 0 first and then 8 steps an octave.
    batch_sojourns : ndarray of int64, shape (batches, 512)
        Number of jobs whose sojourn time is at least each time of the grid. FIFO: of the jobs that
        came in the batch; otherwise of those that left in it.
    batch_sojourn_sums : ndarray of float64, shape (batches,)
        Sums of the sojourn times of these jobs.
    service : str
        The law of the service time.
    """

    batch_squares: NDArray[np.float64]
    sojourn_grid: NDArray[np.float64]
    batch_sojourns: NDArray[np.int64]
    batch_sojourn_sums: NDArray[np.float64]
    service: str

    @property
    def mean_sojourn(self) -> float:
        """Mean time that a job spends waiting and in service; NaN if none was seen."""
        jobs = self.batch_sojourns[:, 0].sum()
        return float(self.batch_sojourn_sums.sum() / jobs) if jobs else math.nan

    @property
    def sojourn_survival(self) -> NDArray[np.float64]:
        """Share of jobs with a sojourn time of at least each time of the grid, shape (512,)."""
        jobs = self.batch_sojourns.sum(axis=0)
        return jobs / jobs[0] if jobs[0] else np.full(len(jobs), math.nan)

    def mean_sojourn_interval(self, confidence: float = 0.95, *, among: int = 1) -> Interval:
        """Return the batch-means interval for the mean sojourn time."""
        sums = self.batch_sojourn_sums[:, None]
        return self._per_job(sums, confidence, among)[0]

    def sojourn_survival_interval(self, confidence: float = 0.95, *, among: int = 1) -> Interval:
        """Return batch-means intervals for `sojourn_survival`, one for every time of the grid."""
        return self._per_job(self.batch_sojourns, confidence, among)

    def covariance_interval(self, confidence: float = 0.95, *, among: int = 1) -> Interval:
        r"""Return intervals for n times the covariance of two queues' indicators, for every level.

        At level i it is :math:`n \operatorname{Cov}(1\{Q_1 \ge i\}, 1\{Q_2 \ge i\})`, with two
        different queues and the law of the stationary network. A run of length T has a bias of
        order 1 / T.

        Raises
        ------
        ParameterError
            If there is only one queue, or there are fewer than 8 batches.
        """
        return batch_interval(self.covariance_batches(), confidence, among=among)

    def covariance_batches(self) -> NDArray[np.float64]:
        r"""Return what each batch says of the covariances of `covariance_interval`.

        Queues are exchangeable, so with S of them of length at least i the covariance is
        E S (S - 1) / (n (n - 1)) - (E S / n)**2, and the means are over time. The second mean is
        that of the whole run, with the error of each batch to first order, so that the mean of the
        batches is the estimate.

        Returns
        -------
        ndarray of float64, shape (batches, levels)

        Raises
        ------
        ParameterError
            If there is only one queue.
        """
        n = self.n
        if n == 1:
            raise ParameterError("n = 1 has no two queues to compare: choose n >= 2.")
        mean = self.profile
        pairs = (self.batch_squares / n - self.batch_profiles) / (n - 1)
        return n * (pairs - 2 * mean * self.batch_profiles + mean**2)

    def _per_job(self, sums: NDArray, confidence: float, among: int) -> Interval:
        """Return intervals for ratios of sums over jobs to the number of jobs."""
        jobs = self.batch_sojourns[:, 0]
        ratio = sums.sum(axis=0) / jobs.sum() if jobs.any() else np.full(sums.shape[1], math.nan)
        # To first order; its mean is the ratio. A batch without the event tells of a rare one.
        batches = np.where(sums > 0, ratio + (sums - ratio * jobs[:, None]) / jobs.mean(), 0.0)
        found = batch_interval(batches, confidence, among=among)
        return replace(found, estimate=ratio)


def simulate_fifo(
    n: int,
    d: int,
    lam: float,
    service: ServiceLaw,
    *,
    horizon: float,
    seed: int | SeedSequence,
    warmup: float | None = None,
    start: str | tuple[ArrayLike, ArrayLike] = "empty",
    times: ArrayLike = (),
    batches: int = 64,
    replacement: bool = False,
    discipline: str = "fifo",
    max_hours: float = 1.0,
    dry_run: bool = False,
) -> FifoSimulation | None:
    """Simulate the network of n servers exactly, job by job.

    Time is in the unit of the service law and kept in float64: at time t, it is resolved to some
    1e-16 t.

    Parameters
    ----------
    n : int
        Number of servers, from 1 to 10**8.
    d : int
        Number of servers that an arrival looks at, at least 1.
    lam : float
        Arrivals a server and unit of time; ``lam * service.mean`` has to be below 1.
    service : ServiceLaw
        Law of the service time.
    horizon : float
        Length of the measured run.
    seed : int or SeedSequence
        Fixes the result together with the other parameters.
    warmup : float, optional
        Time that passes before anything is measured; a tenth of the horizon by default.
    start : "empty" or (lengths, residuals)
        State before the warm-up: all idle, or for FIFO int and float arrays of shape (n,), the
        number of jobs at each server and the time left of the job in service (ignored where there
        is none); the jobs behind it get fresh service times. **If the service time has an infinite
        variance, a run from an empty start is biased low for very long**: the rare huge jobs have
        not come yet. Draw `start` from equilibrium then.
    times : array_like of float
        Times since the end of the warm-up at which the counts are recorded, not decreasing.
    batches : int
        Number of stretches of equal length for batch means.
    replacement : bool
        Whether an arrival's d servers are chosen with replacement or distinct (as in [1]_).
    discipline : {"fifo", "ps", "lifo"}
        In order of arrival (as in [1]_), processor sharing, or last come first served, where a new
        job interrupts the one in service, which later goes on where it stopped.
    max_hours : float
        A run that would take longer than about this is refused before it starts.
    dry_run : bool
        Check the parameters and return None, so that of many runs none is refused half-way.

    Returns
    -------
    FifoSimulation

    Raises
    ------
    ParameterError
        If a parameter is not allowed, the run would take longer than `max_hours`, or a queue grows
        to 100000 jobs.

    References
    ----------
    .. [1] M. Bramson, Y. Lu and B. Prabhakar, "Decay of tails at equilibrium for FIFO join the
       shortest queue networks", Annals of Applied Probability 23 (2013) 1841, arXiv:1106.4582.

    Examples
    --------
    >>> from supermarket import Exponential, fixed_point, simulate_fifo
    >>> run = simulate_fifo(n=1000, d=2, lam=0.7, service=Exponential(), horizon=200, seed=1)
    >>> bool(abs(run.profile[2] - fixed_point(0.7, 2, 2)[2]) < 0.01)
    True
    """
    discipline = str(choice("discipline", discipline, DISCIPLINES))
    todo = _network_plan(
        n, d, lam, service, horizon, seed, warmup, times, batches, replacement, max_hours
    )
    given = _checked_start(start, todo.n, discipline)
    if dry_run:
        return None
    network = Network(todo, service, discipline, given)
    return _measure(network, todo, service, discipline, "empty" if given is None else "given")


def _network_plan(
    n: int, d: int, lam: float, service: ServiceLaw, horizon: float, seed: int | SeedSequence,
    warmup: float | None, times: ArrayLike, batches: int, replacement: bool, max_hours: float,
) -> Plan:  # fmt: skip
    if not isinstance(service, ServiceLaw):
        raise ParameterError(
            f"service = {service!r} is not a law of the service time: use one of "
            "supermarket.service, such as Exponential() or Lomax(2.5)."
        )
    lam = positive("lam", lam)
    load = lam * service.mean
    if load >= 1:
        raise ParameterError(
            f"lam = {lam:.12g} with a mean service time of {service.mean:.12g} brings {load:.12g} "
            f"of work a unit of time, more than a server can do: choose lam below "
            f"{1 / service.mean:.12g}."
        )
    # The hours are estimated below, by the rate of arrivals and departures here.
    todo = plan(n, d, load, horizon, seed, warmup, times, batches, replacement, "service", 1e300)
    if todo.n > MOST_SERVERS:
        raise ParameterError(
            f"n = {todo.n} servers would take some {BYTES_PER_SERVER * todo.n / 1e9:.2g} GB of "
            f"memory: choose n <= {MOST_SERVERS}."
        )
    max_hours = positive("max_hours", max_hours)
    events = 2 * todo.n * lam * (todo.horizon + todo.warmup)
    hours = events * (50.0 + 5.0 * todo.d) * (1.0 if todo.n < 10**5 else 2.0) * 1e-9 / 3600
    if hours > max_hours:
        raise ParameterError(
            f"about {events:.2g} events are asked for, which takes some {hours:.2g} hours: shorten "
            f"the horizon ({todo.horizon:g}), or pass max_hours={hours * 1.1:.2g} to go ahead."
        )
    return replace(todo, lam=lam)


def _checked_start(
    start: object, n: int, discipline: str
) -> tuple[NDArray[np.int32], NDArray[np.float64]] | None:
    if isinstance(start, str):
        if start == "empty":
            return None
        raise ParameterError(
            f"start = {start!r} is not known: use 'empty', or a pair (lengths, residuals)"
            f"{nearest(start, ['empty'])}."
        )
    if discipline != "fifo":
        raise ParameterError(
            f"start is given with discipline = {discipline!r}, where every job at a server has a "
            "residual time: use start='empty', or discipline='fifo'."
        )
    try:
        lengths, residuals = (np.asarray(values) for values in start)
        residuals = residuals.astype(np.float64)
    except (TypeError, ValueError):
        raise ParameterError("start must be a pair of lists (lengths, residuals).") from None
    if lengths.shape != (n,) or not np.issubdtype(lengths.dtype, np.integer) or lengths.min() < 0:
        raise ParameterError(
            f"the lengths of start must be n = {n} whole numbers, none below 0; "
            f"given: shape {lengths.shape}, type {lengths.dtype}."
        )
    if lengths.max() > MOST_LEVELS // 2:
        raise ParameterError(
            f"the lengths of start must not exceed {MOST_LEVELS // 2}: the longest is "
            f"{lengths.max()}."
        )
    busy = lengths > 0
    if residuals.shape != (n,) or not np.all((residuals > 0) & np.isfinite(residuals) | ~busy):
        raise ParameterError(
            f"the residuals of start must be n = {n} finite numbers, above 0 wherever a server has "
            f"a job; given: shape {residuals.shape}."
        )
    return lengths.astype(np.int32), residuals


# A level i: the number of queues with length at least i, when that last changed, and the integrals
# over time up to then of it, of its square, and of 1 where it is not 0.
LEVEL = np.dtype(
    [("count", "i8"), ("since", "f8"), ("area", "f8"), ("squares", "f8"), ("present", "f8")]
)
INTEGRALS = ["area", "squares", "present"]


class Tallies(NamedTuple):
    """What is counted of the events.

    Attributes
    ----------
    levels : ndarray of LEVEL, shape (levels,)
        The last one is empty.
    sojourns : ndarray of int64, shape (512,)
        Number of jobs by sojourn time.
    sojourn_sum : ndarray of float64, shape (1,)
    per_mean : float
        One over the mean service time.
    """

    levels: NDArray
    sojourns: NDArray[np.int64]
    sojourn_sum: NDArray[np.float64]
    per_mean: float


class Choices(NamedTuple):
    """Where arrivals look: `ahead` by choice and arrival, or, if it is empty, by `uniforms`.

    If they are distinct, these shuffle `order`, which else is empty.
    """

    d: int
    ahead: NDArray[np.int32]
    uniforms: NDArray[np.float64]
    order: NDArray[np.int64]


class Arrivals(NamedTuple):
    """The times between a block of arrivals, and the service times that they bring."""

    gaps: NDArray[np.float64]
    services: NDArray[np.float64]


class Network:
    """The network between two events, and its tallies.

    Its arrays are those of a `Net`, of `Tallies`, `Choices` and `Arrivals`.
    """

    def __init__(
        self,
        todo: Plan,
        service: ServiceLaw,
        discipline: str,
        start: tuple[NDArray[np.int32], NDArray[np.float64]] | None,
    ) -> None:
        n = todo.n
        self.rate = n * todo.lam
        self.service = service
        self.advance = ADVANCE[discipline]
        self.rng = np.random.default_rng(todo.seed)
        self.events = 0
        self.came = 0.0  # time of the last arrival
        self.gaps = self.services = np.zeros(0)
        self.used = 0  # arrivals made of those
        self.d, self.replacement = todo.d, todo.replacement
        few = todo.d <= (FEW if todo.replacement else min(FEW, n // 2))
        self.ahead = todo.d if few else 0
        # Drawing many distinct servers shuffles the front of this list; any order is a good start.
        self.order = np.arange(0 if few or todo.replacement else n)
        self.choices = np.zeros((0, 0), dtype=np.int32)
        self.uniforms, self.spent = np.zeros(0), 0

        self.servers = idle_servers(n)
        self.days = np.full(2 ** n.bit_length(), -1, dtype=np.int32)
        self.heap = np.zeros(n, dtype=np.int32)
        self.state = np.zeros(1, dtype=STATE)
        self.state["days_per_unit"] = self.rate / 2
        self.jobs = unused_jobs(0, ROOM)
        counts = np.array([n])
        if start is not None:
            self.servers["length"], residuals = start
            waiting = int(np.maximum(self.length - 1, 0).sum(dtype=np.int64))
            self.jobs = unused_jobs(0, waiting + ROOM)
            services = service.sample(self.rng, waiting)
            load(self._net(), residuals, services)
            counts = np.append(counts, n - np.cumsum(np.bincount(self.length)))
        self.levels = np.zeros(len(counts) + MORE_LEVELS, dtype=LEVEL)
        self.levels["count"][: len(counts)] = counts
        self.sojourns = np.zeros(STEPS * OCTAVES, dtype=np.int64)
        self.sojourn_sum = np.zeros(1)

    @property
    def length(self) -> NDArray[np.int32]:
        """Number of jobs at each server, shape (n,)."""
        return self.servers["length"]

    def run(self, until: float) -> None:
        """Make all events up to and including the time `until`."""
        more = True
        while more:
            if self.used == len(self.gaps):
                self._draw_arrivals()
            if len(self.uniforms) - self.spent < self.d and not self.ahead:
                self.uniforms, self.spent = self.rng.random(max(BLOCK, 4 * self.d)), 0
            if self.levels["count"][-2] > 0:
                self._add_levels()
            if self.state["spare"] < 0:
                self.state["spare"] = room = len(self.jobs)
                self.jobs = np.append(self.jobs, unused_jobs(room, 2 * room))
            tallies = Tallies(self.levels, self.sojourns, self.sojourn_sum, 1 / self.service.mean)
            choices = Choices(self.d, self.choices, self.uniforms, self.order)
            arrivals = Arrivals(self.gaps, self.services)
            more, self.used, self.spent, self.came, events = self.advance(
                self._net(), tallies, choices, arrivals, self.used, self.spent, self.came, until
            )
            self.events += events

    def _draw_arrivals(self) -> None:
        """Draw gaps, services and, if they are few, choices of the next block of arrivals."""
        n, ahead = len(self.servers), self.ahead
        self.gaps = self.rng.standard_exponential(BLOCK) / self.rate
        self.services = self.service.sample(self.rng, BLOCK)
        self.used = 0
        if not ahead:
            return
        # Columns at the end that none will use: the kernel looks ahead.
        choices = self.choices = np.zeros((ahead, BLOCK + SOON), dtype=np.int32)
        choices[:, :BLOCK] = self.rng.integers(n, size=(ahead, BLOCK), dtype=np.int32)
        for j in range(1, 1 if self.replacement else ahead):
            row = choices[j, :BLOCK]
            taken = choices[0, :BLOCK] == row
            for i in range(1, j):
                taken |= choices[i, :BLOCK] == row
            again = np.flatnonzero(taken)
            while len(again):
                row[again] = self.rng.integers(n, size=len(again), dtype=np.int32)
                again = again[(choices[:j, again] == row[again]).any(axis=0)]

    def settle(self, now: float) -> tuple[NDArray, NDArray[np.int64], float]:
        """Return levels, sojourns and their sum with all the time up to `now`; begin new ones."""
        levels = self.levels
        held = now - levels["since"]
        levels["area"] += levels["count"] * held
        levels["squares"] += levels["count"].astype(np.float64) ** 2 * held
        levels["present"] += (levels["count"] > 0) * held
        levels["since"] = now
        seen = levels.copy(), self.sojourns.copy(), float(self.sojourn_sum[0])
        for name in INTEGRALS:
            levels[name] = 0
        self.sojourns[:] = 0
        self.sojourn_sum[0] = 0
        return seen

    def _net(self) -> Net:
        return Net(self.servers, self.jobs, self.days, self.heap, self.state)

    def _add_levels(self) -> None:
        """Double the number of levels there is room for."""
        if len(self.levels) > MOST_LEVELS:
            raise ParameterError(
                f"a queue has grown to more than {MOST_LEVELS} jobs: choose a shorter horizon, a "
                "smaller lam, a larger d, or a service time with a lighter tail."
            )
        # Where a count is 0, so is every integral, and `since` does not matter.
        self.levels = np.append(self.levels, np.zeros_like(self.levels))


def _measure(
    network: Network, todo: Plan, service: ServiceLaw, discipline: str, start: str
) -> FifoSimulation:
    """Run the network through its warm-up and its horizon and return what was seen."""
    network.run(todo.warmup)
    network.settle(todo.warmup)
    ends = todo.warmup + np.linspace(0.0, todo.horizon, todo.batches + 1)
    upcoming = list(todo.warmup + todo.times)
    path, seen = [], []
    for end in ends[1:]:
        while upcoming and (upcoming[0] < end or end == ends[-1]):
            network.run(min(upcoming.pop(0), ends[-1]))
            path.append(network.levels["count"].copy())
        network.run(end)
        seen.append(network.settle(end))
    levels, sojourns, sums = zip(*seen, strict=True)
    room, lengths = len(network.levels), np.diff(ends)[:, None]
    profiles, squares, present = (
        _stack([level[name] for level in levels], room) / lengths for name in INTEGRALS
    )
    profiles /= todo.n
    tops = present - np.append(present[:, 1:], np.zeros((len(present), 1)), axis=1)
    law = tops.mean(axis=0)
    at_least = np.cumsum(np.array(sojourns)[:, ::-1], axis=1)[:, ::-1]
    return FifoSimulation(
        profile=profiles.mean(axis=0),
        max_queue={int(m): float(law[m]) for m in np.flatnonzero(law > 0)},
        times=todo.times,
        path=_stack(path, room).astype(np.int64),
        events=network.events,
        batch_profiles=profiles,
        batch_max_queue=tops,
        batch_ends=_stack([level["count"] for level in levels], room).astype(np.int64),
        final=network.levels["count"].copy(),
        chain=f"network, {discipline}",
        n=todo.n,
        d=todo.d,
        lam=todo.lam,
        replacement=todo.replacement,
        horizon=todo.horizon,
        warmup=todo.warmup,
        time_unit="of the service law",
        start=start,
        seed=(int(todo.seed.entropy), tuple(todo.seed.spawn_key)),
        version=supermarket.__version__,
        batch_squares=squares,
        sojourn_grid=service.mean * _grid(),
        batch_sojourns=at_least,
        batch_sojourn_sums=np.array(sums),
        service=repr(service),
    )


def _stack(rows: list[NDArray], levels: int) -> NDArray[np.float64]:
    """Return rows of different lengths as one array, each continued by zeros."""
    stacked = np.zeros((len(rows), levels))
    for row, values in zip(stacked, rows, strict=True):
        row[: len(values)] = values
    return stacked


def _grid() -> NDArray[np.float64]:
    """Return the lower ends of the steps that `_step` numbers, in mean service times."""
    octave = np.exp2(np.arange(LOWEST, LOWEST + OCTAVES, dtype=np.float64))
    grid = np.outer(octave, 1 + np.arange(STEPS) / STEPS).ravel()
    grid[0] = 0.0
    return grid


def _advancing(join, leave):
    """Return the kernel of one discipline."""

    @kernel(nogil=True)
    def advance(net, tallies, choices, arrivals, used, spent, came, until):
        """Make the events up to `until`, or up to an arrival after which something has run out.

        Return whether there may be more to do, the numbers of arrivals and of uniforms used, the
        time of the last arrival, and the number of events.
        """
        net, choices = borrowed(net), borrowed(choices)
        levels, sojourns, sojourn_sum, per_mean = borrowed(tallies)
        gaps, services = borrowed(arrivals)
        servers, ahead = net.servers, choices.ahead
        events = 0
        arrival = came + gaps[used]
        while True:
            q = first_by(net, arrival if arrival < until else until)
            if q >= 0:
                now, change = servers[q]["time"], -1
                remove(net, 0)
                i = np.int64(servers[q]["length"])
                servers[q]["length"] = i - 1
                sojourn = leave(net, q, i - 1, now)
            elif arrival <= until:
                now = came = arrival
                if len(ahead) > 0:
                    q = np.int64(ahead[0, used])
                    for j in range(1, choices.d):
                        if servers[ahead[j, used]]["length"] < servers[q]["length"]:
                            q = np.int64(ahead[j, used])
                    for j in range(choices.d):
                        touch(servers, ahead[j, used + SOON])
                else:
                    q, spent = _shortest(servers, choices, spent)
                i, change = np.int64(servers[q]["length"]) + 1, 1
                servers[q]["length"] = i
                sojourn = join(net, q, i - 1, services[used], now)
                used += 1
            else:
                return False, used, spent, came, events
            _count(levels, i, change, now)
            events += 1
            if sojourn >= 0:
                sojourn_sum[0] += sojourn
                sojourns[_step(sojourn * per_mean)] += 1
            if (
                used == len(gaps)
                or net.state[0]["spare"] < 0
                or levels[-2]["count"] > 0
                or (len(ahead) == 0 and len(choices.uniforms) - spent < choices.d)
            ):
                return True, used, spent, came, events
            arrival = came + gaps[used]

    return advance


@inlined
def _shortest(servers, choices, spent):
    """Return the first shortest of a list of d random servers; an empty one ends the search.

    Return also how many of the uniforms are spent.
    """
    n, order, uniforms = len(servers), choices.order, choices.uniforms
    joined = -1
    for j in range(choices.d):
        if len(order) > 0:  # distinct: the j-th step of a Fisher-Yates shuffle
            other = j + int(uniforms[spent] * (n - j))
            q = order[other]
            order[other] = order[j]
            order[j] = q
        else:
            q = int(uniforms[spent] * n)
        spent += 1
        if joined < 0 or servers[q]["length"] < servers[joined]["length"]:  # ties go to the first
            joined = q
            if servers[q]["length"] == 0:
                break
    return joined, spent


@inlined
def _count(levels, i, change, now):
    """Let the number of queues with length at least i change."""
    count, held = levels[i]["count"], now - levels[i]["since"]
    if count > 0:
        levels[i]["area"] += count * held
        levels[i]["squares"] += count * (count * held)
        levels[i]["present"] += held
    levels[i]["since"] = now
    levels[i]["count"] = count + change


@inlined
def _step(sojourn):
    """Return the step of the grid where a sojourn time, in mean service times, belongs."""
    mantissa, exponent = math.frexp(sojourn)  # the mantissa is in [0.5, 1)
    step = STEPS * (exponent - 1 - LOWEST) + int((2 * mantissa - 1) * STEPS)
    return min(max(step, 0), STEPS * OCTAVES - 1)


ADVANCE = {name: _advancing(*both) for name, both in DISCIPLINES.items()}
