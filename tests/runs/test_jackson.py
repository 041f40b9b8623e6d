"""Networks of stations: event for event against labelled queues, and against exact laws.

Statistical tests are z-tests over 64 independent replicas. The threshold Z = 6.5 gives 1e-10 a
comparison for a normal estimate and, with Student's t on 63 degrees of freedom, 2e-8: the some 100
comparisons of this file raise a false alarm in fewer than one run in 400,000. The chi-square test
has 1e-8. The seeds are fixed.
"""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.random import SeedSequence
from numpy.testing import assert_allclose
from oracles import JIT, asked
from scipy.sparse import csr_array, eye_array
from scipy.sparse.linalg import spsolve
from scipy.stats import chi2, nbinom

from supermarket import ParameterError, Schedule, Supermarket, simulate
from supermarket.limits.mean_field.stations import network_trajectory
from supermarket.models.stations import jackson_network
from supermarket.runs import stations as chain

Z = 6.5
# Without the JIT runs are shorter, and higher levels too rare for a normal law of their means.
LEVELS = slice(1, 5 if JIT else 3)


def three(**changes):
    routing = [[0.1, 0.6, 0.2], [0.3, 0.0, 0.4], [0.0, 0.0, 0.0]]
    options = {"choices": [2, 3, 1], "service": [1.0, 0.8, 1.3], "names": ["a", "b", "c"]}
    return jackson_network([0.3, 0.0, 0.1], routing, **(options | changes))


def pair(choices):
    """Two stations with feedback to each and to itself."""
    return jackson_network(
        [0.1, 0.05], [[0.2, 0.5], [0.3, 0.1]], choices, service=[1.0, 0.8], names=["x", "y"]
    )


def looks(n, d, replacement):
    """Return all ordered lists of d queues that a job may look at."""
    if replacement:
        return list(itertools.product(range(n), repeat=d))
    return list(itertools.permutations(range(n), int(d)))


class Labelled:
    """Queues with labels at each station, and what happens to them from its words."""

    def __init__(self, network, n, replacement, lengths, rng):
        self.network, self.n, self.rng = network, n, rng
        self.lengths = [list(row) for row in lengths]
        self.looks = [looks(n, d, replacement) for d in network.choices]
        self.rate = n * (network.arrivals.sum() + network.service.sum())
        self.moves = 0

    def join(self, j, part):
        """Send a job to station j; the smaller `part`, the longer the shortest queue it sees."""
        queues = self.lengths[j]
        seen = sorted((min(queues[q] for q in look) for look in self.looks[j]), reverse=True)
        shortest = seen[int(part * len(seen))]
        queues[queues.index(shortest)] += 1

    def step(self):
        network, uniform = self.network, self.rng.random()
        for rates, event in ((network.arrivals, self.join), (network.service, self.serve)):
            for j, rate in enumerate(rates):
                share = self.n * rate / self.rate
                if uniform < share:
                    event(j, uniform / share)
                    return
                uniform -= share

    def serve(self, j, part):
        queues = self.lengths[j]
        queues.sort(reverse=True)
        served = int(part * self.n)
        if queues[served] == 0:
            return
        queues[served] -= 1
        if not self.network.routing[j].any():
            return
        uniform = self.rng.random()
        for k, probability in enumerate(self.network.routing[j]):
            if uniform < probability:
                self.moves += 1
                self.join(k, uniform / probability)
                return
            uniform -= probability

    def counts(self, levels):
        return np.array([[sum(x >= i for x in row) for i in range(levels)] for row in self.lengths])


@pytest.mark.parametrize("replacement", [True, False])
def test_event_for_event_as_labelled_queues(replacement, monkeypatch):
    monkeypatch.setattr(chain, "_EVENTS_PER_CALL", 29)  # stopping in between changes nothing
    network, n = three(), 4
    start = [[1.0, 0.5, 0.25], [1.0], [1.0, 1.0] + [0.25] * 30]  # room for more levels is needed
    times = np.arange(0.5, 30.1, 0.5)
    run = simulate(
        replace(network, n=n, replacement=replacement),
        Schedule(30, warmup=0, batches=8, times=times),
        seed=5,
        start=start,
    )
    rng = np.random.default_rng(SeedSequence(5))
    lengths = [[0] * n, [0] * n, [0] * n]
    for row, profile in zip(lengths, start, strict=True):
        for share in profile[1:]:
            for q in range(round(share * n)):
                row[q] += 1
    naive = Labelled(network, n, replacement, lengths, rng)
    levels = len(run.stations["a"].profile)
    ends = np.union1d(times, np.linspace(0, 30, 9)[1:])
    shares, tops, events, now, profiles = np.zeros((3, levels)), {}, 0, 0.0, []
    for end in ends:
        steps = rng.poisson((end - now) * naive.rate)
        weight = (end - now) / (steps + 1) / 30
        for k in range(steps + 1):
            if k:
                naive.step()
            shares += weight * naive.counts(levels) / n
            for j, row in enumerate(naive.lengths):
                tops[j, max(row)] = tops.get((j, max(row)), 0.0) + weight
        events, now = events + steps, end
        if end in times:
            profiles.append(naive.counts(levels))
    for j, station in enumerate(run.stations.values()):
        assert np.array_equal(station.path, [counts[j] for counts in profiles])
        assert_allclose(station.profile, shares[j], atol=1e-12)
        expected = {m: time for (k, m), time in tops.items() if k == j}
        assert station.max_queue == pytest.approx(expected, abs=1e-12)
        assert np.array_equal(station.final, naive.counts(levels)[j])
        assert_allclose(station.batches["profile"].mean(axis=0), station.profile, atol=1e-12)
    assert (run.events, run.extra["moves"]) == (events, naive.moves)
    assert run.extra["moves"] > 50


def sorted_states(n, longest):
    return list(itertools.combinations_with_replacement(range(longest, -1, -1), n))


def stationary(network, n, replacement, longest):
    """Solve for the law of the sorted lengths; a job beyond `longest` is lost.

    Return the states of the stations and their probabilities.
    """
    size = len(network.names)
    states = list(itertools.product(sorted_states(n, longest), repeat=size))
    index = {state: k for k, state in enumerate(states)}
    rows, columns, rates = [], [], []

    def joined(state, j, rate):
        """Yield each state after one more job at j, and its rate."""
        every = looks(n, network.choices[j], replacement)
        for look in every:
            queues = list(state[j])
            shortest = min(queues[q] for q in look)
            queues[queues.index(shortest)] = min(shortest + 1, longest)
            yield with_station(state, j, queues), rate / len(every)

    def with_station(state, j, queues):
        return (*state[:j], tuple(sorted(queues, reverse=True)), *state[j + 1 :])

    for state in states:
        moves = []
        for j in range(size):
            moves += joined(state, j, n * network.arrivals[j])
            for q in range(n):
                if state[j][q]:
                    queues = list(state[j])
                    queues[q] -= 1
                    after, mu = with_station(state, j, queues), network.service[j]
                    moves.append((after, mu * (1 - network.routing[j].sum())))
                    for k in range(size):
                        moves += joined(after, k, mu * network.routing[j, k])
        for after, rate in moves:
            rows.append(index[state])
            columns.append(index[after])
            rates.append(rate)
    flow = csr_array((rates, (rows, columns)), shape=(len(states), len(states)))
    system = (flow.T - eye_array(len(states)).multiply(flow.sum(axis=1))).tolil()
    system[0] = np.ones(len(states))
    return states, spsolve(system.tocsc(), np.eye(1, len(states))[0])


def exact_profile(states, law, j, n, longest):
    """Return the mean share of queues of station j with at least 0, 1, ... jobs."""
    lengths = np.array([state[j] for state in states])
    return np.array([law @ (lengths >= i).sum(axis=1) / n for i in range(longest + 1)])


def agrees(samples, exact):
    """Compare means of independent samples with the exact ones."""
    samples = np.asarray(samples)
    error = samples.std(axis=0, ddof=1) / math.sqrt(len(samples))
    return np.all(np.abs(samples.mean(axis=0) - exact) <= Z * error + 1e-9)


def replicas(network, n, horizon, **options):
    schedule = Schedule(horizon if JIT else horizon / 1000, warmup=30, batches=8)
    runs = simulate(replace(network, n=n, **options), schedule, seed=11, copies=64)
    return [list(run.stations.values()) for run in runs]


@pytest.mark.parametrize(
    ("choices", "replacement"), [([2, 1], True), ([2, 2], True), ([2, 2], False), ([1, 3], True)]
)
def test_against_the_exact_law_of_two_stations(choices, replacement):
    """Power: a load that is off by 1 % is 8 standard errors off, by 2 % is 15."""
    n, longest, network = 2, 9, pair(choices)
    states, law = stationary(network, n, replacement, longest)
    runs = replicas(network, n, 100_000, replacement=replacement)
    for j in range(2):
        exact = exact_profile(states, law, j, n, longest)
        assert exact[longest] < 1e-6  # the levels compared change by at most 2e-7
        assert agrees([run[j].profile[LEVELS] for run in runs], exact[LEVELS])
        tops = np.bincount([max(state[j]) for state in states], weights=law)
        for m in range(3 if JIT else 2):
            assert agrees([run[j].max_queue.get(m, 0.0) for run in runs], tops[m])


def test_one_station_without_feedback_is_the_plain_chain():
    """The same chain from the same numbers, event for event."""
    schedule = Schedule(40 if JIT else 4, times=[1.0, 3.5])
    for replacement in (True, False):
        shop = Supermarket(300, 3, 0.9, replacement=replacement)
        plain = simulate(shop, schedule, engine="scan", seed=3)
        network = replace(jackson_network([0.9], [[0.0]], 3), n=300, replacement=replacement)
        run = simulate(network, schedule, seed=3).stations["station 0"]
        assert run.model == shop
        assert np.array_equal(run.path, plain.path)
        assert np.array_equal(run.final, plain.final)
        assert run.events == plain.events
        assert run.max_queue == pytest.approx(plain.max_queue)
        assert_allclose(run.profile, plain.profile, atol=1e-12)
        assert_allclose(run.batches["profile"], plain.batches["profile"], atol=1e-12)
        mine, same = run.interval("profile", 0.9), plain.interval("profile", 0.9)
        assert_allclose(mine.low[1:], same.low[1:], atol=1e-12)


def test_one_server_with_feedback_is_a_slower_one():
    """A job that returns to its only queue changes nothing: M/M/1 with service rate 1 - p."""
    network = jackson_network([0.24], [[0.6]], 2)
    runs = replicas(network, 1, 200_000)
    seen = [run[0].profile[LEVELS] for run in runs]
    assert agrees(seen, (0.6 ** np.arange(8))[LEVELS])


def test_one_station_with_feedback_is_better_balanced_than_the_plain_chain():
    """Two servers, d = 2: jobs that return are moved, so longer queues are rarer at one load."""
    n, longest = 2, 14
    network = jackson_network([0.24], [[0.6]], 2)
    back, plain = (
        exact_profile(*stationary(one, n, True, longest), 0, n, longest)
        for one in (network, jackson_network([0.6], [[0.0]], 2))
    )
    assert back[1] == pytest.approx(plain[1], abs=1e-4)  # the load: all work is done
    assert back[3] < 0.98 * plain[3]
    seen = [run[0].profile[LEVELS] for run in replicas(network, n, 200_000)]
    assert agrees(seen, back[LEVELS])
    assert not (JIT and agrees(seen, plain[LEVELS]))


def test_one_choice_has_the_product_form():
    """Two stations of two queues: the joint law of the numbers of jobs, and of single queues.

    With d = 1 queues are independent and geometric, so a station holds a negative binomial number
    of jobs, independent of the other's. Chi-square at 1e-8.
    """
    network, n, samples = pair(1), 2, 4000 if JIT else 150
    gap = 40.0  # over ten relaxation times of either station
    run = simulate(
        replace(network, n=n),
        Schedule(gap * samples, times=gap * np.arange(1, samples + 1)),
        seed=8,
    )
    jobs = [np.minimum(station.path[:, 1:].sum(axis=1), 4) for station in run.stations.values()]
    laws = [nbinom.pmf(np.arange(4), n, 1 - rho) for rho in network.loads]
    laws = [np.append(law, 1 - law.sum()) for law in laws]
    expected = samples * np.outer(*laws).ravel()
    seen = np.bincount(5 * jobs[0] + jobs[1], minlength=25)
    order = np.argsort(expected)
    few = order[np.cumsum(expected[order]) < 12]  # the rare classes together
    parts = [[*np.delete(x, few), x[few].sum()] for x in (seen, expected)]
    statistic = sum((part - whole) ** 2 / whole for part, whole in zip(*parts, strict=True))
    assert statistic < chi2.isf(1e-8, len(parts[0]) - 1)
    runs = replicas(network, 3, 50_000)
    for j, rho in enumerate(network.loads):
        seen = [run[j].profile[LEVELS] for run in runs]
        assert agrees(seen, (rho ** np.arange(8))[LEVELS])


def test_many_servers_follow_the_ode_from_a_burst():
    """Each share is within 6.5 / sqrt(n) of the limit, 0.02 at n = 10**5; half of them move."""
    network, n = three(), 10**5 if JIT else 400
    start, times = [[1.0] * 6, [1.0], [1.0]], np.array([0.5, 2.0, 5.0])
    limit = network_trajectory(network, times, start=start)
    run = simulate(replace(network, n=n), Schedule(5, warmup=0, times=times), seed=2, start=start)
    for j, station in enumerate(run.stations.values()):
        levels = min(limit.shape[2], station.path.shape[1])
        off = np.abs(station.path[:, :levels] / n - limit[:, j, :levels])
        assert off.max() < 6.5 / math.sqrt(n)


def test_stations_carry_what_made_them():
    network = three()
    network = replace(network, n=50)
    run = simulate(network, Schedule(20, batches=16), seed=1)
    assert list(run.stations) == list("abc")
    for j, station in enumerate(run.stations.values()):
        assert station.model == Supermarket(50, network.choices[j], network.loads[j])
        assert sum(station.max_queue.values()) == pytest.approx(1)
        assert station.batches["profile"].shape == (16, len(station.profile))
        assert station.interval("mean queue").estimate == pytest.approx(station.mean_queue)
    assert run.model is network


SMALL = {"network": three(), "n": 6, "horizon": 5.0, "seed": 1}


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"n": 10**13}, "n = 10000000000000 is out of range"),
        ({"n": 2, "replacement": False}, "d = 3 distinct queues cannot be chosen among n = 2"),
        ({"start": [[1.0, 0.5]]}, "give one for each station (a, b, c)"),
        ({"start": [[1.0], [1.0], [1.0, 2.0]]}, "start of c must be a profile"),
    ],
)
def test_wrong_input_is_one_sentence(wrong, sentence):
    with pytest.raises(ParameterError, match=r"^[^\n]+$") as error:
        asked(**(SMALL | wrong))
    assert sentence in str(error.value)
