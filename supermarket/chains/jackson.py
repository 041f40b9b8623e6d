"""Jackson networks, exactly: the occupancy chains of the stations, coupled by the jobs that move.

The network is that of J. B. Martin and Yu. M. Suhov, "Fast Jackson networks", Annals of Applied
Probability 9 (1999) 854-870; see `supermarket.stations`. The counts s[j, i] = number of queues of
station j with length at least i are a Markov chain of their own. Events come as a Poisson process
of rate n sum_j (a_j + mu_j): an arrival from outside at station j, or the end of a service at a
random server of station j, which is nothing where the server is idle. A job that moves on, to
another station or back to its own, leaves its queue first and looks at d_k queues of its new
station then, at the same instant and in the same event. The cost of an event depends on the number
of levels alone, and so does memory, whatever n and the d_j are.

With one choice everywhere, the queues that jobs come to are random, and the product form of a
Jackson network holds for any n. With feedback and d >= 2 it does not, nor is one station with
feedback the supermarket model of the same load: a job that comes back is moved to a shorter queue.
That agrees in the limit of large n only.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.random import Generator, SeedSequence
from numpy.typing import ArrayLike, NDArray

import supermarket
from supermarket.chains.event_loop import Tally
from supermarket.chains.measure import Plan, Simulation, given_counts, plan, with_room
from supermarket.chains.occupancy import fixed_point_counts
from supermarket.compiled import kernel
from supermarket.sampling import all_among, with_or_not
from supermarket.stations import JacksonNetwork
from supermarket.validation import ParameterError, choice

_MOST = 10**12  # a uniform double, shared by stations and levels, still picks a queue evenly
_EVENTS_PER_CALL = 2**22  # some tenths of a second, so that Ctrl-C is heard
_NANOSECONDS = 40.0  # a rough time of an event, to refuse what would take days


@dataclass(frozen=True)
class NetworkSimulation:
    """What one run of a network gave, and everything that made it.

    Attributes
    ----------
    stations : tuple of Simulation
        One for each station, in the order of the network: its profile, maximum, path and intervals
        (see `supermarket.chains.measure.Simulation`). There `d` is the station's d_j, `lam` its
        load rho_j, and times are in the unit of the network's rates.
    events : int
        Arrivals from outside and ends of services, idle ones and the warm-up included.
    moves : int
        Jobs that went on from a station to one, the warm-up included.
    network : JacksonNetwork
        What was simulated. The other parameters stand in each station's Simulation.
    """

    stations: tuple[Simulation, ...]
    events: int
    moves: int
    network: JacksonNetwork

    def __getitem__(self, name: str) -> Simulation:
        """Return the station of this name."""
        choice("station", name, self.network.names)
        return self.stations[self.network.names.index(name)]


def simulate_network(
    network: JacksonNetwork,
    n: int,
    *,
    horizon: float,
    seed: int | SeedSequence,
    warmup: float | None = None,
    start: str | ArrayLike = "fixed point",
    times: ArrayLike = (),
    batches: int = 64,
    replacement: bool = True,
    max_hours: float = 1.0,
    dry_run: bool = False,
) -> NetworkSimulation | None:
    """Simulate a Jackson network of stations of n queues each exactly.

    Parameters
    ----------
    network : JacksonNetwork
        See `supermarket.stations.jackson_network`.
    n : int
        Number of queues of each station, from 1 to 10**12.
    horizon : float
        Length of the measured run, in the unit of the network's rates.
    seed : int or SeedSequence
        Fixes the result together with the other parameters.
    warmup : float, optional
        Time that passes before anything is measured; a tenth of the horizon by default.
    start : {"fixed point", "empty"} or sequence of J array_like of float
        State before the warm-up: each station at the fixed point of its load, rounded to whole
        queues, no jobs, or a profile of shares u[0] = 1, u[1], ... for each station.
    times : array_like of float
        Times since the end of the warm-up at which the counts are recorded, not decreasing.
    batches : int
        Number of stretches of equal length for batch means.
    replacement : bool
        Whether a job's d_j queues are chosen with replacement or distinct.
    max_hours : float
        A run that would take longer than about this is refused before it starts.
    dry_run : bool
        Check the parameters and return None, so that of many runs none is refused half-way.

    Returns
    -------
    NetworkSimulation

    Raises
    ------
    ParameterError
        If a parameter is not allowed, or the run would take longer than `max_hours`.

    Examples
    --------
    >>> from supermarket import fixed_point
    >>> from supermarket.chains.jackson import simulate_network
    >>> from supermarket.stations import jackson_network
    >>> network = jackson_network([0.3, 0.0], [[0.0, 1.0], [0.5, 0.0]], 2, names=["desk", "till"])
    >>> run = simulate_network(network, 1000, horizon=200, seed=1)
    >>> bool(abs(run["till"].profile[2] - fixed_point(0.6, 2, 2)[2]) < 0.01)
    True
    """
    todo = plan(
        n, int(network.choices.max()), 1.0, horizon, seed, warmup, times, batches, replacement,
        "service", max_hours, nanoseconds=lambda n: 0.0, most=_MOST, steady=False,
    )  # fmt: skip
    total = float(network.arrivals.sum() + network.service.sum())
    events = todo.n * total * (todo.horizon + todo.warmup)
    hours = events * _NANOSECONDS * 1e-9 / 3600
    if hours > max_hours:
        raise ParameterError(
            f"about {events:.2g} events are asked for, which takes some {hours:.2g} hours: "
            f"shorten the horizon ({horizon:g}), or pass max_hours={hours * 1.1:.2g} to go ahead."
        )
    counts, named = _start_counts(network, todo, start)
    if dry_run:
        return None
    chain = _Network(network, counts, todo, np.random.default_rng(todo.seed))
    return _measure(chain, todo, named)


def _start_counts(
    network: JacksonNetwork, todo: Plan, start: str | ArrayLike
) -> tuple[NDArray[np.int64], str]:
    """Return the counts to start from, with room for more levels, and the name of the start."""
    if isinstance(start, str):
        named = str(choice("start", start, ("fixed point", "empty")))
    else:
        named = "given"
        profiles = network.profiles(start)
    rows = []
    for j, (rho, d) in enumerate(zip(network.loads, network.choices, strict=True)):
        if named == "fixed point":
            row = fixed_point_counts(todo.n, int(d), float(rho), todo.replacement)
        else:
            row = given_counts(todo.n, [1.0] if named == "empty" else profiles[j])
        rows.append(with_room(row))
    counts = np.zeros((len(rows), max(map(len, rows))), dtype=np.int64)
    for j, row in enumerate(rows):
        counts[j, : len(row)] = row
    return counts, named


class Routes(NamedTuple):
    """Where events happen, and where jobs go.

    `kinds` holds the cumulated probabilities of arrivals at each station and then of services at
    each, from 0; the rows of `routing` are cumulated too, and `per_kind` and `per_route` are one
    over each probability.
    """

    kinds: NDArray[np.float64]
    per_kind: NDArray[np.float64]
    routing: NDArray[np.float64]
    per_route: NDArray[np.float64]
    choices: NDArray[np.int64]
    replacement: bool | None


class _Network:
    """The counts of all stations, and the law by which they change."""

    def __init__(
        self, network: JacksonNetwork, counts: NDArray[np.int64], todo: Plan, rng: Generator
    ) -> None:
        rates = np.concatenate([network.arrivals, network.service])
        self.network, self.counts, self.n, self.rng = network, counts, todo.n, rng
        self.events_per_time = todo.n * float(rates.sum())
        kinds = np.append(0.0, np.cumsum(rates / rates.sum()))
        kinds[-1] = 1.0
        routing = np.cumsum(np.column_stack([np.zeros(len(counts)), network.routing]), axis=1)
        with np.errstate(divide="ignore"):  # what has probability 0 is never looked up
            scales = 1 / np.diff(kinds), 1 / np.diff(routing, axis=1)
        choose = network.choices, with_or_not(todo.replacement)
        self.routes = Routes(kinds, scales[0], routing, scales[1], *choose)
        self.events = self.moves = 0

    def stretch(self, length: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Go on for this time; return the integrals of the profiles and of the maxima's laws.

        Given the number N of events, each of the N + 1 states counts with 1 / (N + 1), as in
        `supermarket.chains.measure`.
        """
        events = left = int(self.rng.poisson(length * self.events_per_time))
        summed, at_top = np.zeros(self.counts.shape), np.zeros(self.counts.shape)
        while left > 0:
            moved, stayed = np.zeros_like(self.counts), np.zeros_like(self.counts)
            asked, tally = min(left, _EVENTS_PER_CALL), Tally(moved, stayed)
            done, moves = _advance(self.rng, self.counts, self.routes, asked, tally)
            # The sum of a count over the states left by steps 1..done, from its changes alone.
            summed += self.counts * float(done) - moved
            at_top += stayed
            left -= done
            self.moves += moves
            if np.any(self.counts[:, -2]):
                self.counts, summed, at_top = map(_with_more_room, (self.counts, summed, at_top))
        self.events += events
        summed += self.counts  # the state after the last event is held too
        tops = (self.counts > 0).sum(axis=1) - 1
        at_top[np.arange(len(tops)), tops] += 1
        return summed / (self.n * (events + 1)) * length, at_top / (events + 1) * length


def _with_more_room(values: NDArray) -> NDArray:
    return np.concatenate([values, np.zeros_like(values)], axis=1)


def _measure(chain: _Network, todo: Plan, start: str) -> NetworkSimulation:
    """Run the chain through its warm-up and its horizon and return what was seen."""
    if todo.warmup > 0:
        chain.stretch(todo.warmup)
    ends = np.linspace(0.0, todo.horizon, todo.batches + 1)
    profiles, tops, path, last = [], [], [], []
    upcoming = list(todo.times)
    for begin, end in pairwise(ends):
        now, parts = begin, []
        while upcoming and (upcoming[0] < end or end == ends[-1]):
            moment = upcoming.pop(0)
            if moment > now:
                parts.append(chain.stretch(moment - now))
                now = moment
            path.append(chain.counts.copy())
        if end > now:
            parts.append(chain.stretch(end - now))
        for rows, each in zip((profiles, tops), zip(*parts, strict=True), strict=True):
            rows.append(sum(_padded(part, chain.counts.shape) for part in each) / (end - begin))
        last.append(chain.counts.copy())
    shape = chain.counts.shape
    profiles, tops, path, last = (
        np.array([_padded(row, shape) for row in rows]).reshape(-1, *shape)
        for rows in (profiles, tops, path, last)
    )
    network, law = chain.network, tops.mean(axis=0)
    stations = tuple(
        Simulation(
            profile=profiles[:, j].mean(axis=0),
            max_queue={int(m): float(law[j, m]) for m in np.flatnonzero(law[j])},
            times=todo.times,
            path=path[:, j].astype(np.int64),
            events=chain.events,
            batch_profiles=profiles[:, j],
            batch_max_queue=tops[:, j],
            batch_ends=last[:, j],
            final=chain.counts[j].copy(),
            chain=f"network, {name}",
            n=todo.n,
            d=int(network.choices[j]),
            lam=float(network.loads[j]),
            replacement=todo.replacement,
            horizon=todo.horizon,
            warmup=todo.warmup,
            time_unit="that of the rates",
            start=start,
            seed=(int(todo.seed.entropy), tuple(todo.seed.spawn_key)),
            version=supermarket.__version__,
        )
        for j, name in enumerate(network.names)
    )
    return NetworkSimulation(stations, chain.events, chain.moves, network)


def _padded(values: NDArray, shape: tuple[int, int]) -> NDArray:
    """Return the values of each station continued by zeros."""
    return np.pad(values, ((0, 0), (0, shape[1] - values.shape[1])))


@kernel(nogil=True)
def _advance(rng, s, routes, events, tally):
    """Make up to `events` steps in place and return how many, and how many jobs moved on.

    It makes fewer if the room for levels is used up. The tally gathers what
    `measure.Chain.advance` does, station by station.
    """
    kinds, per_kind, routing, per_route, choices, replacement = routes
    moved, at_top = tally
    size, levels = s.shape
    n = s[0, 0]
    top, since = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    beta = np.zeros(s.shape)
    for j in range(size):
        while top[j] < levels - 1 and s[j, top[j] + 1] > 0:
            top[j] += 1
        for i in range(top[j] + 1):
            beta[j, i] = all_among(s[j, i], n, choices[j], replacement)
    moves, step, full = 0, 0, False
    while step < events and not full:
        step += 1
        uniform = rng.random()
        kind = _place(kinds, uniform)
        # Rescaled, the same uniform picks the level.
        rest = (uniform - kinds[kind]) * per_kind[kind]
        to = kind
        if kind >= size:
            j = kind - size
            to = -1
            v = rest * n
            i = top[j]
            while i > 0 and s[j, i] <= v:
                i -= 1
            if i > 0:
                s[j, i] -= 1
                moved[j, i] -= step
                beta[j, i] = all_among(s[j, i], n, choices[j], replacement)
                if s[j, i] == 0:
                    at_top[j, i] += step - since[j]
                    since[j] = step
                    top[j] -= 1
                if routing[j, size] > 0.0:  # no draw where all jobs leave
                    uniform = rng.random()
                    if uniform < routing[j, size]:
                        to = _place(routing[j], uniform)
                        rest = (uniform - routing[j, to]) * per_route[j, to]
                        moves += 1
        if to >= 0:  # i with beta[i] > rest >= beta[i+1] is the length of the queue joined
            i = top[to]
            while i > 0 and beta[to, i] <= rest:
                i -= 1
            i += 1
            s[to, i] += 1
            moved[to, i] += step
            beta[to, i] = all_among(s[to, i], n, choices[to], replacement)
            if i > top[to]:
                at_top[to, i - 1] += step - since[to]
                since[to] = step
                top[to] = i
                full = i == levels - 2
    for j in range(size):
        at_top[j, top[j]] += step - since[j]
    return step, moves


@kernel(nogil=True)
def _place(ends, uniform):
    """Return k with ends[k] <= uniform < ends[k+1]; no branch, as its way can't be foreseen."""
    k = 0
    for j in range(1, len(ends) - 1):
        k += uniform >= ends[j]
    return k
