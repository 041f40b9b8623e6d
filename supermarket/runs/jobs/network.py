"""The network itself: n servers with any law of the service time, one event at a time.

Jobs come as a Poisson process of rate lam n. Each looks at d servers, joins one with the fewest
jobs, and is served there: FIFO, as in Bramson, Lu & Prabhakar, or by processor sharing or LIFO for
contrast (see `supermarket.runs.jobs.disciplines`). An event costs the same whatever n is, but for
the cache, and memory is some 40 bytes a server and 24 a job that waits.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from supermarket.kernels.borrowed import borrowed, inlined, touch
from supermarket.kernels.compiled import kernel
from supermarket.models.jsq import Supermarket
from supermarket.runs.jobs.calendar import STATE, Net, first_by, idle_servers, remove
from supermarket.runs.jobs.disciplines import DISCIPLINES, load, unused_jobs
from supermarket.runs.run import Run, name_of_seed
from supermarket.runs.schedule import Schedule, spawned, stack
from supermarket.validation import (
    MOST_LEVELS,
    ParameterError,
    integer,
    listed,
    nearest,
    numbers,
    queue_lengths,
)

if TYPE_CHECKING:
    from supermarket.limits.fifo.cavity import CavityEquilibrium

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


def prepare(
    model: Supermarket, schedule: Schedule, seed: SeedSequence, start: object
) -> Callable[[], Run]:
    """Check what `supermarket.simulate` was asked for and return what makes the run."""
    n = integer("n", model.n, 1, 2**63)
    if model.policy != "jsq":
        raise ParameterError(
            f"policy = {model.policy!r} is not known for single jobs: use exponential service and "
            "discipline = 'fifo'."
        )
    if schedule.unit != "service":
        raise ParameterError("single jobs know no steps: use unit='service'.")
    if model.load >= 1:
        raise ParameterError(
            f"lam = {model.lam:.12g} with a mean service time of {model.service.mean:.12g} brings "
            f"{model.load:.12g} of work per unit of time, more than a server can do: choose lam "
            f"below {1 / model.service.mean:.12g}."
        )
    if n > MOST_SERVERS:
        raise ParameterError(
            f"n = {n} servers would take some {BYTES_PER_SERVER * n / 1e9:.2g} GB of memory: "
            f"choose n <= {MOST_SERVERS}."
        )
    events = 2 * n * model.lam * (schedule.horizon + schedule.lead)
    schedule.allow(events, (50.0 + 5.0 * model.d) * (1.0 if n < 10**5 else 2.0), width=700)
    drawn = isinstance(start, str) and start == "equilibrium"
    limit = _equilibrium(model) if drawn else None
    given = None if start is None or drawn else _checked_start(start, n, model.discipline)

    def run() -> Run:
        if limit is None:
            network = Network(model, seed, given)
            return _measure(network, schedule, seed, "empty" if given is None else "given")
        first, second = spawned(seed, 2)
        network = Network(model, second, limit.draw(np.random.default_rng(first), n))
        return _measure(network, schedule, seed, "equilibrium")

    return run


@lru_cache(64)
def _equilibrium(model: Supermarket) -> "CavityEquilibrium":
    """Return the cavity equilibrium, so deep that no draw is expected beyond its last level."""
    from supermarket.limits.fifo.depth import cavity_down_to

    if model.discipline != "fifo":
        raise ParameterError(
            f"start = 'equilibrium' is known for discipline = 'fifo', not {model.discipline!r}."
        )
    return cavity_down_to(model, 1e-4 / model.n)


def _checked_start(
    start: object, n: int, discipline: str
) -> tuple[NDArray[np.int32], NDArray[np.float64]] | None:
    if isinstance(start, str):
        if start == "empty":
            return None
        raise ParameterError(
            f"start = {start!r} is not known: use 'empty', 'equilibrium', or a pair (lengths, "
            f"residuals){nearest(start, ['empty', 'equilibrium'])}."
        )
    if discipline != "fifo":
        raise ParameterError(
            f"start is given with discipline = {discipline!r}, where every job at a server has a "
            "residual time: use start='empty', or discipline='fifo'."
        )
    if len(pair := listed("start", start)) != 2:
        raise ParameterError("start must be a pair of lists (lengths, residuals).")
    lengths = queue_lengths("lengths of start", pair[0], n, MOST_LEVELS // 2)
    residuals = numbers("residuals of start", pair[1], finite=False, nan=True)
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
        model: Supermarket,
        seed: SeedSequence,
        start: tuple[NDArray[np.int32], NDArray[np.float64]] | None,
    ) -> None:
        n, d, service = model.n, model.d, model.service
        self.model = model
        self.rate = n * model.lam
        self.service = service
        self.advance = ADVANCE[model.discipline]
        self.rng = np.random.default_rng(seed)
        self.events = 0
        self.now = self.came = 0.0  # time of the last arrival
        self.gaps = self.services = np.zeros(0)
        self.used = 0  # arrivals made of those
        self.d, self.replacement = d, model.replacement
        few = d <= (FEW if model.replacement else min(FEW, n // 2))
        self.ahead = d if few else 0
        # Drawing many distinct servers shuffles the front of this list; any order is a good start.
        self.order = np.arange(0 if few or model.replacement else n)
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

    def look(self) -> NDArray[np.int64]:
        """Return the number of queues with length at least i, for every i."""
        return self.levels["count"].copy()

    def go(self, length: float, until: float) -> None:
        """Make all events up to and including the time `until`."""
        self.now = until
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
        with np.errstate(over="ignore"):  # at the least of rates none comes
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

    def settle(self) -> tuple[NDArray, NDArray[np.int64], float]:
        """Return levels, sojourns and their sum with all the time up to now; begin new ones."""
        now = self.now
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


def _measure(network: Network, schedule: Schedule, seed: SeedSequence, start: str) -> Run:
    """Run the network through a schedule and return what was seen."""
    tallies, path = schedule.follow(network)
    levels, sojourns, sums = zip(*tallies, strict=True)
    final = network.look()
    lengths = np.diff(schedule.lead + schedule.edges)[:, np.newaxis]
    profiles, squares, present = (
        stack([level[name] for level in levels], final) / lengths for name in INTEGRALS
    )
    return Run(
        model=network.model,
        schedule=schedule,
        start=start,
        seed=name_of_seed(seed),
        engine="jobs",
        events=network.events,
        path=stack(path, final),
        final=final,
        batches={
            "profile": profiles / network.model.n,
            "maximum": present - np.append(present[:, 1:], np.zeros((len(present), 1)), axis=1),
            "squares": squares,
            "sojourns": np.cumsum(np.array(sojourns)[:, ::-1], axis=1)[:, ::-1],
            "sojourn sums": np.array(sums),
        },
        ends=stack([level["count"] for level in levels], final),
        extra={"sojourn grid": network.service.mean * _grid()},
    )


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
