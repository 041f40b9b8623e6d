"""Jackson networks, exactly: the occupancy chains of the stations, coupled by the jobs that move.

The network is that of J. B. Martin and Yu. M. Suhov, "Fast Jackson networks", Annals of Applied
Probability 9 (1999) 854-870; see `supermarket.models.stations`. The counts s[j, i] = number of
queues of station j with length at least i are a Markov chain of their own. Events come as a Poisson
process
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

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.random import Generator, SeedSequence
from numpy.typing import ArrayLike, NDArray

from supermarket.kernels.compiled import kernel
from supermarket.kernels.event_loop import Tally
from supermarket.kernels.sampling import all_among, with_or_not
from supermarket.models.jsq import Supermarket
from supermarket.models.stations import JacksonNetwork
from supermarket.policies.jsq import fixed_point_counts
from supermarket.runs.counts.clock import given_counts, with_room
from supermarket.runs.run import Run, name_of_seed
from supermarket.runs.schedule import Schedule, stack
from supermarket.validation import ParameterError, choice, integer

_MOST = 10**12  # a uniform double, shared by stations and levels, still picks a queue evenly
_EVENTS_PER_CALL = 2**22  # some tenths of a second, so that Ctrl-C is heard
_NANOSECONDS = 40.0  # a rough time of an event, to refuse what would take days


def prepare(
    network: JacksonNetwork, schedule: Schedule, seed: SeedSequence, start: object
) -> Callable[[], Run]:
    """Check what `supermarket.simulate` was asked for and return what makes the run."""
    n = integer("n", network.n, 1, _MOST)
    if schedule.unit != "service":
        raise ParameterError("a network knows no steps: use unit='service'.")
    total = float(network.arrivals.sum() + network.service.sum())
    schedule.allow(n * total * (schedule.horizon + schedule.lead), _NANOSECONDS)
    counts, named = _start_counts(network, "fixed point" if start is None else start)

    def run() -> Run:
        chain = _Network(network, counts.copy(), np.random.default_rng(seed))
        return _measure(chain, schedule, seed, named)

    return run


def _start_counts(network: JacksonNetwork, start: str | ArrayLike) -> tuple[NDArray[np.int64], str]:
    """Return the counts to start from, with room for more levels, and the name of the start."""
    if isinstance(start, str):
        named = str(choice("start", start, ("fixed point", "empty")))
    else:
        named = "given"
        profiles = network.profiles(start)
    rows = []
    for j, (rho, d) in enumerate(zip(network.loads, network.choices, strict=True)):
        if named == "fixed point":
            row = fixed_point_counts(network.n, int(d), float(rho), network.replacement)
        else:
            row = given_counts(network.n, [1.0] if named == "empty" else profiles[j])
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

    def __init__(self, network: JacksonNetwork, counts: NDArray[np.int64], rng: Generator) -> None:
        rates = np.concatenate([network.arrivals, network.service])
        self.network, self.counts, self.n, self.rng = network, counts, network.n, rng
        self.events_per_time = network.n * float(rates.sum())
        kinds = np.append(0.0, np.cumsum(rates / rates.sum()))
        kinds[-1] = 1.0
        routing = np.cumsum(np.column_stack([np.zeros(len(counts)), network.routing]), axis=1)
        with np.errstate(divide="ignore"):  # what has probability 0 is never looked up
            scales = 1 / np.diff(kinds), 1 / np.diff(routing, axis=1)
        choose = network.choices, with_or_not(network.replacement)
        self.routes = Routes(kinds, scales[0], routing, scales[1], *choose)
        self.events = self.moves = 0
        self.profile = self.at_top = np.zeros((len(counts), 0))

    def look(self) -> NDArray[np.int64]:
        """Return the counts of all stations."""
        return self.counts.copy()

    def settle(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
        """Return the integrals of profiles and laws of the maxima, and the counts; begin anew."""
        seen = self.profile, self.at_top, self.look()
        self.profile = self.at_top = np.zeros((len(self.counts), 0))
        return seen

    def go(self, length: float, until: float) -> None:
        """Go on for this time.

        Given the number N of events, each of the N + 1 states counts with 1 / (N + 1), as in
        `supermarket.runs.counts.clock`.
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
        for name, part in (
            ("profile", summed / (self.n * (events + 1)) * length),
            ("at_top", at_top / (events + 1) * length),
        ):
            (before,) = stack([getattr(self, name)], part)
            setattr(self, name, before + part)


def _with_more_room(values: NDArray) -> NDArray:
    return np.concatenate([values, np.zeros_like(values)], axis=1)


def _measure(chain: _Network, schedule: Schedule, seed: SeedSequence, start: str) -> Run:
    """Run the chain through a schedule and return what was seen."""
    tallies, path = schedule.follow(chain)
    profiles, tops, ends = zip(*tallies, strict=True)
    network, final = chain.network, chain.look()
    told = {
        "schedule": schedule, "start": start, "seed": name_of_seed(seed), "engine": "network",
        "events": chain.events,
    }  # fmt: skip
    profiles, tops, ends, path = (stack(rows, final) for rows in (profiles, tops, ends, path))
    lengths = np.diff(schedule.edges)[:, np.newaxis]
    stations = {
        name: Run(
            model=Supermarket(network.n, int(d), float(load), network.replacement),
            path=path[:, j],
            final=final[j],
            batches={"profile": profiles[:, j] / lengths, "maximum": tops[:, j] / lengths},
            ends=ends[:, j],
            **told,
        )
        for j, (name, d, load) in enumerate(
            zip(network.names, network.choices, network.loads, strict=True)
        )
    }
    return Run(
        model=network, path=path, final=final, batches={}, ends=ends,
        extra={"moves": chain.moves}, stations=stations, **told,
    )  # fmt: skip


@kernel(nogil=True)
def _advance(rng, s, routes, events, tally):
    """Make up to `events` steps in place and return how many, and how many jobs moved on.

    It makes fewer if the room for levels is used up. The tally gathers what
    `clock.Chain.advance` does, station by station.
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
