"""The network of servers: a plain twin, exact laws, and what must not depend on the service law.

Statistical tests have fixed seeds, for which no interval is refused. Those against exact values use
intervals of confidence 1 - 1e-6 for all levels together, unless they say otherwise.
"""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from numpy.random import SeedSequence
from oracles import JIT, asked, counts_of, exact, exact_profile

from supermarket import ParameterError, Schedule, Supermarket, simulate
from supermarket.runs.jobs import network as fifo
from supermarket.service import (
    Deterministic,
    Erlang,
    Exponential,
    Hyperexponential,
    Lomax,
    Weibull,
)

SURE = 1 - 1e-6
SLOW = 1 if JIT else 40  # a run without the JIT is shorter by this factor
LAWS = [Exponential(), Deterministic(), Lomax(1.5), Hyperexponential.from_scv(6.0)]


class Plain:
    """The network from its definition: at each server a list of [came, work left], oldest first.

    All the work is updated at every event. `path` holds the time of each event and the lengths
    after it; `sojourns` the time at which each was known, and the sojourn time.
    """

    def __init__(self, n, d, lam, service, seed, replacement, discipline, start=None):
        self.n, self.d, self.rate, self.service = n, d, n * lam, service
        self.replacement, self.discipline = replacement, discipline
        self.rng = np.random.default_rng(seed)
        self.order = list(range(n))
        self.uniforms = []
        self.servers = [[] for _ in range(n)]
        self.now = 0.0
        self.given = iter(())
        if start is not None:
            draws = iter(service.sample(self.rng, int(sum(max(x - 1, 0) for x in start[0]))))
            for server, length, residual in zip(self.servers, *start, strict=True):
                for i in range(length):
                    server.append([0.0, residual if i == 0 else next(draws)])
        self.path = [(0.0, [len(server) for server in self.servers])]
        self.sojourns = []

    def arrivals(self):
        """Yield gap, service and the servers to choose from, drawn as the simulator draws them.

        Up to 8 of many servers are drawn for a block of arrivals at a time, and those that are not
        new among their arrival's are drawn again, place by place; else they are drawn when needed.
        """
        size, few = (
            fifo.BLOCK,
            self.d <= (fifo.FEW if self.replacement else min(fifo.FEW, self.n // 2)),
        )
        while True:
            gaps = self.rng.standard_exponential(size) / self.rate
            services = self.service.sample(self.rng, size)
            if not few:
                yield from (
                    (gap, service, None) for gap, service in zip(gaps, services, strict=True)
                )
                continue
            rows = self.rng.integers(self.n, size=(self.d, size), dtype=np.int32).T.tolist()
            for j in range(0 if self.replacement else self.d):
                while again := [row for row in rows if row[j] in row[:j]]:
                    new = self.rng.integers(self.n, size=len(again), dtype=np.int32)
                    for row, q in zip(again, new, strict=True):
                        row[j] = q
            yield from zip(gaps, services, rows, strict=True)

    def uniform(self):
        """Return the next of a block of uniforms, which is thrown away if d might not be left."""
        if not self.uniforms:
            self.uniforms = list(self.rng.random(max(fifo.BLOCK, 4 * self.d)))
        return self.uniforms.pop(0)

    def left(self, server):
        """Return how long it takes until a job leaves, and which one."""
        if self.discipline == "fifo":
            return server[0][1], 0
        if self.discipline == "lifo":
            return server[-1][1], len(server) - 1
        i = min(range(len(server)), key=lambda i: server[i][1])
        return server[i][1] * len(server), i

    def serve(self, time):
        self.now += time
        for server in self.servers:
            if server and self.discipline == "fifo":
                server[0][1] -= time
            elif server and self.discipline == "lifo":
                server[-1][1] -= time
            for job in server if self.discipline == "ps" else []:
                job[1] -= time / len(server)

    def chosen(self):
        """Yield d servers of the uniforms."""
        if len(self.uniforms) < self.d:
            self.uniforms = []
        for j in range(self.d):
            if self.replacement:
                yield int(self.uniform() * self.n)
                continue
            k = j + int(self.uniform() * (self.n - j))
            self.order[j], self.order[k] = self.order[k], self.order[j]
            yield self.order[j]

    def join(self, service, choices):
        joined = None
        for q in choices or self.chosen():
            if joined is None or len(self.servers[q]) < len(self.servers[joined]):
                joined = q
            if not self.servers[joined]:
                break  # nothing is shorter: the others need not be looked at
        self.servers[joined].append([self.now, service])
        if self.discipline == "fifo":
            ahead = math.fsum(work for _, work in self.servers[joined])
            self.sojourns.append((self.now, ahead))

    def run(self, until):
        coming = self.arrivals()
        gap, service, choices = next(coming)
        while self.now < until:
            ends = [(*self.left(server), q) for q, server in enumerate(self.servers) if server]
            first, i, q = min(ends, default=(math.inf, 0, 0))
            if first < gap:
                self.serve(first)
                gap -= first
                came, _ = self.servers[q].pop(i)
                if self.discipline != "fifo":
                    self.sojourns.append((self.now, self.now - came))
            else:
                self.serve(gap)
                self.join(service, choices)
                gap, service, choices = next(coming)
            self.path.append((self.now, [len(server) for server in self.servers]))
        return self


CASES = [  # n, d, lam, replacement: ahead, a shuffle, both with replacement, and one server
    (6, 3, 0.9, False),
    (12, 10, 0.95, False),
    (4, 3, 0.9, True),
    (4, 10, 0.9, True),
    (1, 1, 0.9, False),
]


@pytest.fixture
def small_steps(monkeypatch):
    """Let blocks, levels and lists of jobs run out often."""
    monkeypatch.setattr(fifo, "BLOCK", 37)
    monkeypatch.setattr(fifo, "ROOM", 3)
    monkeypatch.setattr(fifo, "MORE_LEVELS", 2)


@pytest.mark.usefixtures("small_steps")
@pytest.mark.parametrize("discipline", ["fifo", "ps", "lifo"])
@pytest.mark.parametrize("service", LAWS, ids=lambda law: type(law).__name__)
@pytest.mark.parametrize(("n", "d", "lam", "replacement"), CASES)
def test_the_very_path_of_the_plain_network(n, d, lam, replacement, service, discipline):
    """The same gaps, services and uniforms give the same lengths after every event."""
    horizon = 150 / n
    plain = Plain(n, d, lam, service, 7, replacement, discipline).run(horizon)
    model = Supermarket(n, d, lam, replacement, service=service, discipline=discipline)
    network = fifo.Network(model, SeedSequence(7), None)
    for (time, lengths), (later, _) in pairwise(plain.path):
        if later > time:
            network.go(0.0, (time + later) / 2)
            assert network.length.tolist() == lengths


@pytest.mark.usefixtures("small_steps")
@pytest.mark.parametrize(
    ("discipline", "start"),
    [(name, "empty") for name in fifo.DISCIPLINES]
    + [("fifo", ([4, 0, 1, 2], [9, np.nan, 0.2, 0.3]))],
)
def test_everything_measured_is_that_of_the_plain_path(discipline, start):
    n, warmup, horizon, batches, service = 4, 5.0, 40.0, 8, Lomax(2.5)
    plain = Plain(
        n, 2, 0.8, service, 3, False, discipline, None if start == "empty" else start
    ).run(warmup + horizon)
    times = [0.0, 0.1, 17.0, 40.0]
    run = simulate(
        Supermarket(n, 2, 0.8, replacement=False, service=service, discipline=discipline),
        Schedule(horizon, warmup=warmup, batches=batches, times=times),
        engine="jobs",
        seed=3,
        start=start,
    )
    levels = len(run.profile)
    moments = np.array([time for time, _ in plain.path])
    counts = np.array([[sum(x >= i for x in y) for i in range(levels)] for _, y in plain.path])
    ends = warmup + np.linspace(0, horizon, batches + 1)
    for b, (begin, end) in enumerate(pairwise(ends)):
        held = np.diff(np.clip(moments, begin, end), append=end) / (end - begin)
        assert held.sum() == pytest.approx(1)
        np.testing.assert_allclose(
            run.batches["profile"][b], held @ counts / n, rtol=1e-9, atol=1e-12
        )
        np.testing.assert_allclose(
            run.batches["squares"][b], held @ counts**2, rtol=1e-9, atol=1e-12
        )
        tops = [held[(counts > 0).sum(axis=1) - 1 == m].sum() for m in range(levels)]
        np.testing.assert_allclose(run.batches["maximum"][b], tops, atol=1e-12)
        known = np.array([sojourn for time, sojourn in plain.sojourns if begin < time <= end])
        assert run.batches["sojourn sums"][b] == pytest.approx(known.sum(), rel=1e-9)
        at_least = (known[:, None] >= run.extra["sojourn grid"]).sum(axis=0)
        np.testing.assert_array_equal(run.batches["sojourns"][b], at_least)
        assert run.ends[b].tolist() == counts[np.flatnonzero(moments <= end)[-1]].tolist()
    for time, row in zip(times, run.path, strict=True):
        assert row.tolist() == counts[np.flatnonzero(moments <= warmup + time)[-1]].tolist()
    assert run.events == (moments[1:] <= warmup + horizon).sum()
    assert run.final.tolist() == run.path[-1].tolist()
    np.testing.assert_allclose(run.profile, run.batches["profile"].mean(axis=0), rtol=1e-12)
    assert sum(run.max_queue.values()) == pytest.approx(1)
    assert run.mean_sojourn == pytest.approx(
        run.batches["sojourn sums"].sum() / run.batches["sojourns"][:, 0].sum()
    )


@pytest.mark.parametrize("replacement", [False, True])
@pytest.mark.parametrize(("n", "d", "longest"), [(2, 2, 22), (4, 2, 9)])
def test_exponential_service_against_the_exact_law(n, d, longest, replacement):
    lam = 0.7
    states, _, law = exact(n, d, lam, replacement, longest)
    profile, tops = exact_profile(n, d, lam, replacement, longest)
    run = simulate(
        Supermarket(n, d, lam, replacement=replacement), 4e5 if JIT else 5e3, engine="jobs", seed=11
    )
    found = run.interval("profile", SURE, among=5)
    assert_holds(found, profile, 1, 4)
    jobs = profile[1:].sum()
    assert_holds_one(run.interval("mean queue", SURE), jobs)
    assert_holds_one(run.interval("sojourn", SURE), jobs / lam)  # Little's law
    expected = tops @ np.arange(longest + 1)
    assert_holds_one(run.interval("maximum", SURE), expected)
    counts = np.array([counts_of(state, longest) for state in states])
    pairs = law @ (counts * (counts - 1)) / (n * (n - 1))
    assert_holds(run.interval("covariance", SURE, among=5), n * (pairs - profile**2), 1, 4)


def assert_holds(interval, values, low, high):
    """The interval holds the values at these levels, and is narrow enough to tell of an error."""
    assert np.isfinite(interval.low[low:high]).all()
    assert np.all(interval.low[low:high] <= values[low:high])
    assert np.all(values[low:high] <= interval.high[low:high])


def assert_holds_one(interval, value):
    assert interval.low <= value <= interval.high


def mg1(arrivals_in_a_service, lam, levels):
    """Return P(at least i jobs) in the M/G/1 queue, by its embedded chain."""
    a = arrivals_in_a_service
    law = [1 - lam]
    for k in range(levels - 1):
        rest = law[0] * a[k] + sum(law[j] * a[k + 1 - j] for j in range(1, k + 1))
        law.append((law[k] - rest) / a[0])
    return 1 - np.concatenate([[0], np.cumsum(law)])


def arrivals_in(service, lam, levels):
    k = np.arange(levels)
    if isinstance(service, Deterministic):
        return np.exp(-lam) * lam**k / np.array([math.factorial(i) for i in k])
    weights, rates = np.array(service.probabilities), np.array(service.rates)
    return (weights * rates / (rates + lam)) @ (lam / (rates + lam))[:, None] ** k


@pytest.mark.parametrize(
    "service",
    [
        pytest.param(Deterministic(), id="M/D/1"),
        # Without the JIT the run would be too short for an interval.
        pytest.param(Hyperexponential.from_scv(4.0), id="M/H2/1", marks=pytest.mark.book),
    ],
)
def test_one_choice_is_the_mg1_queue(service):
    lam = 0.6
    run = simulate(
        Supermarket(50, 1, lam, replacement=False, service=service),
        3e4 / SLOW,
        engine="jobs",
        seed=9,
    )
    profile = mg1(arrivals_in(service, lam, 6), lam, 6)
    assert profile[1] == pytest.approx(lam)
    assert_holds(run.interval("profile", SURE, among=4), profile, 1, 5)
    sojourn = 1 + lam * (1 + service.scv) / (2 * (1 - lam))  # Pollaczek and Khinchine
    assert_holds_one(run.interval("sojourn", SURE), sojourn)
    # Different queues are independent, and their covariance is 0.
    assert_holds(run.interval("covariance", SURE, among=3), np.zeros(4), 1, 4)


def test_the_sojourn_time_of_the_mm1_queue_is_exponential():
    lam = 0.3
    run = simulate(Supermarket(50, 1, lam, replacement=False), 2e4 / SLOW, engine="jobs", seed=6)
    survival = np.exp(-(1 - lam) * run.extra["sojourn grid"])
    rare = 0.02 if JIT else 0.2
    common = np.flatnonzero((survival > rare) & (survival < 1 - rare))
    assert len(common) > 20
    found = run.interval("sojourn survival", SURE, among=len(common))
    assert_holds(found, survival, common[0], common[-1] + 1)
    np.testing.assert_allclose(found.estimate, run.sojourn_survival)


@pytest.mark.parametrize("discipline", ["ps", "lifo"])
@pytest.mark.parametrize("service", [Hyperexponential.from_scv(3.0), Erlang(3)], ids=["H2", "E3"])
def test_sharing_and_lifo_do_not_feel_the_service_law(service, discipline):
    """One choice: the length is geometric and the mean sojourn time 1 / (1 - lam) for any law."""
    lam = 0.6
    run = simulate(
        Supermarket(50, 1, lam, replacement=False, service=service, discipline=discipline),
        2e4 / SLOW,
        engine="jobs",
        seed=13,
    )
    assert_holds(run.interval("profile", SURE, among=4), lam ** np.arange(5.0), 1, 5)
    assert_holds_one(run.interval("sojourn", SURE), 1 / (1 - lam))


@pytest.mark.parametrize(
    ("d", "replacement", "discipline"),
    [
        (2, True, "fifo"),
        (3, False, "fifo"),
        (12, False, "fifo"),
        (3, False, "ps"),
        (3, True, "lifo"),
    ],
)
def test_exponential_service_is_the_supermarket_chain(d, replacement, discipline):
    """For exponential service all disciplines have the lengths of the occupancy chain."""
    model = Supermarket(20, d, 0.7, replacement, discipline=discipline)
    horizon, batches = (4e4, 64) if JIT else (300, 16)
    run = simulate(model, Schedule(horizon, batches=batches), engine="jobs", seed=9)
    chain = simulate(replace(model, discipline="fifo"), 5 * horizon, seed=10)
    ours, theirs = (x.interval("profile", SURE, among=2) for x in (run, chain))
    for i in (1, 2):
        assert ours[i].low <= theirs[i].high
        assert theirs[i].low <= ours[i].high


def test_work_is_conserved_along_the_path():
    """Little's law without an error: the time spent by all jobs, but for those still there."""
    service, end = Lomax(1.5), 2000.0 / SLOW
    model = Supermarket(50, 2, 0.8, replacement=False, service=service)
    network = fifo.Network(model, SeedSequence(4), None)
    network.go(end, end)
    later = 0.0
    for length, server in zip(network.length, network.servers, strict=True):
        if length > 0:
            later += server["time"] - end
            job = server["first"]
            for _ in range(length - 1):
                later += network.jobs[job]["mark"] - end
                job = network.jobs[job]["behind"]
            assert job == -1
    levels, sojourns, total = network.settle()
    assert levels["area"][1:].sum() == pytest.approx(total - later, rel=1e-9)
    assert network.events == 2 * sojourns.sum() - network.length.sum()


def mg1_equilibrium(rng, n, lam, phases):
    """Return exact draws of the number of jobs and the residual service in an M/G/1 queue.

    A server is busy with probability lam. The service has been chosen in proportion to its length,
    here as a phase by its work, and its age and residual have the same law and, for an exponential
    phase, are independent. It began with as many jobs as a departure left behind, or with one if
    that is none; a departure sees the stationary law: drawn in the same way.
    """
    weights, rates = np.array(phases.probabilities), np.array(phases.rates)
    lengths, residuals = np.zeros(n, dtype=int), np.zeros(n)
    busy = np.flatnonzero(rng.random(n) < lam)
    if len(busy):
        at_start = np.maximum(mg1_equilibrium(rng, len(busy), lam, phases)[0], 1)
        rate = rng.choice(rates, size=len(busy), p=weights / rates)
        lengths[busy] = at_start + rng.poisson(lam * rng.standard_exponential(len(busy)) / rate)
        residuals[busy] = rng.standard_exponential(len(busy)) / rate
    return lengths, residuals


def test_a_start_in_equilibrium_stays_there():
    """Counts of independent queues are binomial: 20 of them within 6 deviations, 4e-8 in all."""
    n, lam, service = 20_000 if JIT else 2000, 0.6, Hyperexponential.from_scv(5.0)
    start = mg1_equilibrium(np.random.default_rng(1), n, lam, service)
    run = simulate(
        Supermarket(n, 1, lam, replacement=False, service=service),
        Schedule(4, warmup=0, times=[0, 0.5, 1, 2, 4]),
        engine="jobs",
        seed=2,
        start=start,
    )
    share = mg1(arrivals_in(service, lam, 5), lam, 5)[1:5]
    deviation = np.sqrt(n * share * (1 - share))
    assert np.all(np.abs(run.path[:, 1:5] - n * share) < 6 * deviation)
    assert run.start == "given"


def test_many_servers_that_finish_at_the_same_time_and_one_that_never_does():
    n = 1000
    residuals = np.ones(n)
    residuals[0] = 1e300
    run = simulate(
        Supermarket(n, 1, 1e-9, replacement=False, service=Deterministic()),
        Schedule(3, warmup=0, batches=8, times=[0.99, 1.01, 1.99, 2.01]),
        engine="jobs",
        seed=1,
        start=(np.full(n, 2), residuals),
    )
    assert run.path[:, 1:3].tolist() == [[n, n], [n, 1], [n, 1], [1, 1]]


def test_the_unit_of_time_does_not_matter():
    one = simulate(
        Supermarket(30, 2, 0.8, replacement=False, service=Lomax(2.5)), 40, engine="jobs", seed=3
    )
    other = simulate(
        Supermarket(30, 2, 8.0, replacement=False, service=Lomax(2.5).scaled(0.1)),
        4,
        engine="jobs",
        seed=3,
    )
    np.testing.assert_array_equal(one.ends, other.ends)
    np.testing.assert_allclose(one.batches["profile"], other.batches["profile"], rtol=1e-9)
    np.testing.assert_allclose(0.1 * one.extra["sojourn grid"], other.extra["sojourn grid"])
    assert one.mean_sojourn == pytest.approx(10 * other.mean_sojourn)
    np.testing.assert_array_equal(one.batches["sojourns"], other.batches["sojourns"])


@pytest.mark.parametrize("factor", [2.0**-5, 2.0**7])
@pytest.mark.parametrize("discipline", ["fifo", "ps", "lifo"])
def test_in_a_unit_that_is_a_power_of_two_every_number_is_the_same_to_the_last_bit(
    discipline, factor
):
    law, length = Weibull(0.7), 60.0
    plain = Supermarket(12, 2, 0.8, service=law, discipline=discipline)
    long = replace(plain, lam=0.8 / factor, service=law.scaled(factor))
    one, other = (
        simulate(model, Schedule(horizon, warmup=0, batches=8, times=[horizon / 2]), seed=5)
        for model, horizon in ((plain, length), (long, factor * length))
    )
    assert other.events == one.events > 500
    np.testing.assert_array_equal(other.path, one.path)
    for name, values in one.batches.items():
        scale = factor if name == "sojourn sums" else 1.0
        np.testing.assert_array_equal(other.batches[name], scale * values, name)
    grids = other.extra["sojourn grid"], factor * one.extra["sojourn grid"]
    np.testing.assert_array_equal(*grids)


@pytest.mark.parametrize("discipline", ["fifo", "ps", "lifo"])
def test_the_place_of_a_job_that_has_left_is_used_again(discipline):
    model = Supermarket(9, 2, 0.9, service=Erlang(2), discipline=discipline)
    network = fifo.Network(model, SeedSequence(2), None)
    network.go(100.0, 100.0)
    unused, spare = 0, int(network.state["spare"][0])
    while spare >= 0:
        unused += 1
        spare = int(network.jobs["behind"][spare])
    listed = network.length - (discipline == "fifo") * (network.length > 0)
    assert network.events > 1000
    assert unused + listed.sum() == len(network.jobs) == fifo.ROOM


def test_the_same_seed_gives_the_same_run_however_it_is_watched():
    model, schedule = Supermarket(10, 2, 0.9, False), Schedule(50, batches=10, times=[1, 2, 30])
    one = simulate(model, 50, engine="jobs", seed=4)
    seed = SeedSequence(4)
    other, again = (simulate(model, schedule, engine="jobs", seed=seed) for _ in range(2))
    assert one.final.tolist() == other.final.tolist() == again.final.tolist()
    np.testing.assert_allclose(one.profile, other.profile, rtol=1e-12)
    np.testing.assert_array_equal(other.batches["profile"], again.batches["profile"])
    assert one.seed == (4, ())
    assert one.engine == "jobs"


def test_a_run_of_nothing():
    run = simulate(Supermarket(3, 2, 1e-12, replacement=False), 1, engine="jobs", seed=1)
    assert run.profile[:2].tolist() == [1, 0]
    assert run.max_queue == {0: 1.0}
    assert math.isnan(run.mean_sojourn)
    assert math.isnan(run.interval("sojourn").low)
    assert np.isnan(run.sojourn_survival).all()


GOOD = {"n": 5, "d": 2, "lam": 0.5, "replacement": False, "horizon": 1, "seed": 1, "engine": "jobs"}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"lam": 1.0}, "brings 1 of work per unit of time, .*: choose lam below 1"),
        ({"lam": 0.6, "service": Exponential().scaled(2)}, "choose lam below 0.5"),
        ({"n": 10**9, "horizon": 1e-9}, "would take some 40 GB of memory: choose n <= 100000000"),
        ({"start": [1, 2, 3]}, "start must be a pair of lists"),
        ({"start": ([1] * 4, [1.0] * 5)}, "lengths of start must be n = 5 whole numbers"),
        ({"start": ([-1] * 5, [1.0] * 5)}, "lengths of start must be n = 5 whole numbers"),
        ({"start": ([0.5] * 5, [1.0] * 5)}, "lengths of start must be n = 5 whole numbers"),
        ({"start": ([1] * 5, [1.0] * 4)}, "residuals of start must be n = 5 finite numbers"),
        ({"start": ([1] * 5, [1.0] * 4 + [0.0])}, "residuals of start must be n = 5 finite"),
        ({"start": ([1] * 5, [1.0] * 4 + [np.nan])}, "residuals of start must be n = 5 finite"),
        ({"start": ([1] * 5, [1.0] * 4 + [np.inf])}, "residuals of start must be n = 5 finite"),
        (
            {"start": ([10**6] * 5, [1.0] * 5)},
            "lengths of start must be n = 5 whole numbers from 0 to 50000",
        ),
        ({"start": ([0] * 5, [1.0] * 5), "discipline": "ps"}, "every job at a server has a resid"),
        ({"start": "equilibrium", "discipline": "ps"}, "is known for discipline = 'fifo'"),
    ],
)
def test_bad_input_gets_one_sentence(change, sentence):
    for call in (simulate.check, simulate):
        with pytest.raises(ParameterError, match=sentence):
            asked(call, **GOOD | change)


def test_a_queue_too_long_to_count(monkeypatch):
    monkeypatch.setattr(fifo, "MOST_LEVELS", 20)
    with pytest.raises(ParameterError, match="a queue has grown to more than 20 jobs"):
        simulate(
            Supermarket(1, 1, 0.5, replacement=False),
            Schedule(500, warmup=0),
            engine="jobs",
            seed=1,
            start=([1], [1000.0]),
        )


def test_the_batches_of_the_covariance_have_the_estimate_for_their_mean():
    run = simulate(Supermarket(6, 2, 0.8, replacement=False), 50, engine="jobs", seed=1)
    pairs = (run.batches["squares"].mean(axis=0) - 6 * run.profile) / 30
    estimate = 6 * (pairs - run.profile**2)
    np.testing.assert_allclose(run.covariance_batches().mean(axis=0), estimate, atol=1e-12)


def test_one_queue_has_no_other():
    run = simulate(Supermarket(1, 1, 0.5, replacement=False), 10, engine="jobs", seed=1)
    with pytest.raises(ParameterError, match="no two queues to compare"):
        run.interval("covariance")
