"""Server pools: event for event against labelled pools, and against exact stationary laws.

Statistical tests are z-tests over independent replicas. The threshold Z = 6.5 gives 1e-10 a
comparison for a normal estimate and, with Student's t on 63 degrees of freedom, 2e-8: the some 150
comparisons of this file raise a false alarm in fewer than one run in 200,000. The seeds are fixed.
"""

import math
from functools import cache

import numpy as np
import pytest
from numpy.random import SeedSequence
from oracles import JIT, asked
from scipy.sparse import csr_array, eye_array
from scipy.sparse.linalg import spsolve
from scipy.stats import chi2, poisson

from supermarket import ParameterError, PoolSystem, Schedule, simulate
from supermarket.estimate.intervals import batch_interval
from supermarket.limits.pools.utility import best_utility, deficit, unavoidable_deficit
from supermarket.models.pools import server_pools
from supermarket.runs import pools as chain

Z = 6.5
POLICIES = ("jlmu", "threshold", "jsq", "random")


def shared(capacity):
    return lambda x: x * math.log(capacity / x) if x else 0.0


def example():
    return server_pools([0.5, 0.5], [shared(20), shared(34)], levels=40)


def tied():
    return server_pools([1 / 3, 2 / 3], [-np.arange(40), -2 * (np.arange(40) // 2)], levels=40)


class Labelled:
    """Pools with labels, a class and tasks for each, and the policies from their words."""

    def __init__(self, pools, n, rho, policy, tolerance, r, counts, rng):
        self.classes = np.repeat(np.arange(len(pools.alpha)), pools.sizes(n))
        self.tasks = np.zeros(n, dtype=int)
        for i in range(len(pools.alpha)):
            of_class = np.arange(np.sum(self.classes == i))[:, np.newaxis]
            self.tasks[self.classes == i] = (of_class < counts[i]).sum(axis=1)
        self.pools, self.rho, self.policy, self.rng, self.r = pools, rho, policy, rng, r
        self.n, self.tolerance, self.most = n, tolerance, self.tasks.max()
        gains = pools.marginals
        self.pairs = sorted(
            ((i, j) for i in range(len(gains)) for j in range(1, gains.shape[1] + 1)),
            key=lambda pair: (-gains[pair[0], pair[1] - 1], *pair),
        )

    def gain(self, k):
        return self.pools.marginals[self.classes[k], self.tasks[k]]

    def utility(self):
        return sum(self.pools.marginals[i, :x].sum() for i, x in self.labels()) / self.n

    def labels(self):
        return zip(self.classes, self.tasks, strict=True)

    def best(self):
        return best_utility(self.pools, self.tasks.sum() / self.n)

    def colours(self):
        """Return the green and the yellow pools at threshold r."""
        meant = self.pairs[: self.r]
        limits = [max((j for i, j in meant if i == own), default=0) for own in self.classes]
        following, level = self.pairs[self.r]
        green = [k for k in range(self.n) if self.tasks[k] < limits[k]]
        yellow = [k for k, (i, x) in enumerate(self.labels()) if (i, x) == (following, level - 1)]
        return green, yellow

    def candidates(self):
        """Return the pools of which a random one gets the task."""
        everyone = list(range(self.n))
        if self.policy == "jlmu":
            # The largest gain, of equal ones the earliest class and there the fewest tasks.
            places = [(-self.gain(k), self.classes[k], self.tasks[k]) for k in everyone]
            return [k for k in everyone if places[k] == min(places)]
        if self.policy == "threshold":
            green, yellow = self.colours()
            return green or yellow or everyone
        if self.policy == "jsq":
            return [k for k in everyone if self.tasks[k] == self.tasks.min()]
        return everyone

    def learn(self):
        green, yellow = self.colours()
        if self.r > 0 and len(green) >= self.tolerance * self.n:
            self.r -= 1
        elif len(green) + len(yellow) <= 1:
            self.r += 1

    def arrive(self):
        candidates = self.candidates()
        green, yellow = self.colours()
        coloured = self.policy == "threshold" and bool(green or yellow)
        # As the chain finds them: by class, and by the number of tasks.
        down = -1 if coloured else 1
        candidates.sort(key=lambda k: (self.classes[k], down * self.tasks[k]))
        # Nothing is drawn where all candidates are alike for sure.
        alike = self.policy == "jlmu" or (coloured and not green)
        chosen = candidates[0 if alike else int(self.rng.random() * len(candidates))]
        if self.policy == "threshold":
            self.learn()
        self.tasks[chosen] += 1
        self.most = max(self.most, self.tasks[chosen])

    def leave(self):
        served = sorted(range(self.n), key=lambda k: (-self.tasks[k], self.classes[k]))
        task_of = [k for k in served for _ in range(self.tasks[k])]
        self.tasks[task_of[int(self.rng.random() * len(task_of))]] -= 1

    def run(self, length):
        """Return the time averages of utility and of the best utility, and the time at each r."""
        left, integral, used = length, np.zeros(2), {}
        while True:
            rate = self.n * self.rho + self.tasks.sum()
            holding = self.rng.standard_exponential() / rate
            held = min(holding, left)
            integral += held * np.array([self.utility(), self.best()])
            used[self.r] = used.get(self.r, 0.0) + held
            left -= holding
            if left <= 0:
                return integral / length, used
            if self.rng.random() * rate < self.n * self.rho:
                self.arrive()
            else:
                self.leave()

    def counts(self):
        levels = np.arange(1, self.pools.levels + 1)
        return np.array([
            (self.tasks[self.classes == i][:, np.newaxis] >= levels).sum(axis=0)
            for i in range(len(self.pools.alpha))
        ])  # fmt: skip


def shares(run):
    """Return the share of time at each threshold that was ever taken."""
    return {int(r): run["threshold"][r] for r in np.flatnonzero(run["threshold"])}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("pools", [example(), tied()], ids=["example", "tied"])
@pytest.mark.parametrize("start", ["empty", "optimum"])
def test_event_for_event_as_labelled_pools(policy, pools, start, monkeypatch):
    monkeypatch.setattr(chain, "_EVENTS_PER_CALL", 37)  # stopping in between changes nothing
    n, rho, tolerance, r = 6, 3.4, 0.5, 9
    times = np.arange(0.5, 8.1, 0.5)
    run = simulate(
        PoolSystem(pools, n, rho, policy=policy, tolerance=tolerance, threshold=r),
        Schedule(8, warmup=0, batches=8, times=times),
        seed=5,
        start=start,
    )
    counts = pools.assignment(n, round(n * rho) if start == "optimum" else 0)
    rng = np.random.default_rng(SeedSequence(5))
    naive = Labelled(pools, n, rho, policy, tolerance, r, counts, rng)
    reached, used = np.zeros(2), {}
    for k in range(16):
        part, times_at = naive.run(0.5)
        reached += part / 16
        for at, time in times_at.items():
            used[at] = used.get(at, 0.0) + time / 8
        assert np.array_equal(run.path[k], naive.counts())
        if policy == "threshold":
            assert run.extra["threshold path"][k] == naive.r
    assert run.extra["most tasks"] == naive.most
    assert run["utility"] == pytest.approx(reached[0], abs=1e-9)
    assert run["misplaced"] == pytest.approx(reached[1] - reached[0], abs=1e-9)
    if policy == "threshold":
        assert shares(run) == pytest.approx(used)


@pytest.mark.parametrize("alpha", [0.6, 0.8])
def test_with_one_class_the_threshold_policy_is_the_published_one(alpha):
    """Its words: green below l tasks, yellow at l, and h = l + 1."""
    pools, n, rho = server_pools([1.0], [shared(50)], levels=50), 5, 3.0
    times = np.arange(0.25, 20, 0.25)
    run = simulate(
        PoolSystem(pools, n, rho, policy="threshold", tolerance=1 - alpha, threshold=1),
        Schedule(20, warmup=0, times=times),
        seed=2,
        start="empty",
    )
    rng = np.random.default_rng(SeedSequence(2))
    tasks, threshold, now, k = [0] * n, 1, 0.0, 0
    ends = np.union1d(times, np.linspace(0, 20, 65)[1:])
    for end in ends:
        while True:
            rate = n * rho + sum(tasks)
            now += rng.standard_exponential() / rate
            if now >= end:
                now = end
                break
            tasks.sort(reverse=True)
            if rng.random() * rate < n * rho:
                seen = list(tasks)
                green = [q for q in range(n) if tasks[q] < threshold]
                yellow = [q for q in range(n) if tasks[q] == threshold]
                if green:
                    tasks[green[int(rng.random() * len(green))]] += 1
                elif yellow:
                    tasks[yellow[0]] += 1
                else:
                    tasks[n - 1 - int(rng.random() * n)] += 1
                if sum(x >= threshold for x in seen) <= alpha * n and threshold > 0:
                    threshold -= 1
                elif sum(x >= threshold + 1 for x in seen) >= n - 1:
                    threshold += 1
            else:
                task_of = [q for q in range(n) for _ in range(tasks[q])]
                tasks[task_of[int(rng.random() * len(task_of))]] -= 1
        if end in times:
            assert run.path[k, 0].sum() == sum(tasks)
            assert run.extra["threshold path"][k] == threshold
            k += 1
    assert len(set(run.extra["threshold path"])) > 2


@cache
def stationary(name, n, rho, policy, tolerance, most):
    """Solve for the law of labelled pools and threshold; more than `most` tasks are turned away.

    Return the law's means of utility, of what is misplaced, and the law of the threshold.
    """
    pools = {"example": example, "tied": tied}[name]()
    naive = Labelled(pools, n, rho, policy, tolerance, 0, np.zeros((2, 40), dtype=int), None)
    index, rows, columns, rates = {}, [], [], []
    todo = [(*[0] * n, 0)]
    index[todo[0]] = 0
    values = []
    while todo:
        state = todo.pop(0)
        naive.tasks, naive.r = np.array(state[:-1]), state[-1]
        values.append((naive.utility(), naive.best() - naive.utility(), naive.r))
        moves = []
        if sum(state[:-1]) < most:
            candidates = naive.candidates()
            if policy == "threshold":
                naive.learn()
            for k in candidates:
                after = list(state[:-1])
                after[k] += 1
                moves.append(((*after, naive.r), n * rho / len(candidates)))
        for k in range(n):
            if state[k]:
                after = list(state)
                after[k] -= 1
                moves.append((tuple(after), state[k]))
        for after, rate in moves:
            if after not in index:
                index[after] = len(index)
                todo.append(after)
            rows.append(index[state])
            columns.append(index[after])
            rates.append(rate)
    size = len(index)
    flow = csr_array((rates, (rows, columns)), shape=(size, size))
    system = (flow.T - eye_array(size).multiply(flow.sum(axis=1))).tolil()
    system[0] = np.ones(size)
    law = spsolve(system.tocsc(), np.eye(1, size)[0])
    values = np.array(values)
    used = np.bincount(values[:, 2].astype(int), weights=law)
    return law @ values[:, 0], law @ values[:, 1], used


def agrees(samples, exact):
    """Compare the mean of independent samples with the exact one; equal samples must be exact."""
    error = np.std(samples, ddof=1) / math.sqrt(len(samples))
    return abs(np.mean(samples) - exact) <= Z * error + 1e-9


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    ("name", "n", "rho", "most"), [("example", 2, 1.8, 22), ("tied", 3, 0.8, 15)]
)
def test_against_the_exact_stationary_law(policy, name, n, rho, most):
    pools = {"example": example, "tied": tied}[name]()
    utility, misplaced, used = stationary(name, n, rho, policy, 0.5, most)
    system = PoolSystem(pools, n, rho, policy=policy, tolerance=0.5)
    runs = simulate(system, Schedule(1500 if JIT else 25, warmup=15), seed=11, copies=64)
    # Turning away beyond `most` tasks changes these by less than 1e-7: Poisson tails.
    assert poisson.sf(most, n * rho) < 1e-8
    assert agrees([run["utility"] for run in runs], utility)
    assert agrees([run["misplaced"] for run in runs], misplaced)
    if policy == "threshold":
        for r in range(len(used)):
            if used[r] > 1e-3:
                assert agrees([run["threshold"][r] for run in runs], used[r])


@pytest.mark.parametrize("policy", POLICIES)
def test_the_number_of_tasks_is_poisson(policy):
    """Under every policy: sixteen classes of equal probability, chi-square at 1e-8."""
    n, rho, samples = 4, 2.5, 4000 if JIT else 200
    gap = 20.0 if JIT else 10.0  # correlation exp(-gap)
    run = simulate(
        PoolSystem(example(), n, rho, policy=policy),
        Schedule(gap * samples, times=gap * np.arange(1, samples + 1)),
        seed=8,
    )
    totals = run.path.sum(axis=(1, 2))
    expected = samples * poisson.pmf(np.arange(60), n * rho)
    seen = np.bincount(totals, minlength=60)
    bins = np.unique(np.searchsorted(np.cumsum(expected), np.arange(1, 16) * samples / 16))
    pairs = [(part.sum(), whole.sum()) for part, whole in
             zip(np.split(seen, bins), np.split(expected, bins), strict=True)]  # fmt: skip
    assert min(whole for _, whole in pairs) > 3
    statistic = sum((part - whole) ** 2 / whole for part, whole in pairs)
    assert statistic < chi2.isf(1e-8, len(pairs) - 1)
    assert run["tasks"] == pytest.approx(rho, abs=Z * math.sqrt(2 * rho / n / (gap * samples)))


def test_few_are_misplaced_in_the_fractional_case():
    """One class with 1.5 tasks a pool: as many pools are empty as an M/M/1 queue holds customers.

    The prediction is off by some 1 / n of itself; kinks are 13 standard deviations away.
    """
    pools, n = server_pools([1.0], [6.0 - np.arange(12.0)], levels=12), 1000 if JIT else 40
    runs = [
        simulate(
            PoolSystem(pools, n, 1.5),
            Schedule(20 if JIT else 1, warmup=5 if JIT else 1),
            seed=stream,
        )
        for stream in SeedSequence(4).spawn(64 if JIT else 8)
    ]
    misplaced = np.array([run["misplaced"] for run in runs])
    error = misplaced.std(ddof=1) / math.sqrt(len(runs))
    off = abs(misplaced.mean() - deficit(pools, 1.5, n))
    assert off < (Z * error + 5 / n * misplaced.mean() if JIT else 1.0)
    assert error < 0.02 * misplaced.mean() or not JIT


def test_averages_are_those_of_the_profile():
    run = simulate(PoolSystem(example(), 20, 4.0), 30 if JIT else 2, seed=1)
    assert run["utility"] == pytest.approx(run.model.pools.utility(run.profile))
    assert run["tasks"] == pytest.approx(run.profile.sum())
    assert run.batches["tasks"].mean() == pytest.approx(run["tasks"])
    assert run["threshold"].sum() == pytest.approx(1)
    assert np.all(run.batches["misplaced"] > -1e-12)
    assert np.allclose(run.batches["profile"].mean(axis=0), run.profile)
    assert np.allclose(run.batches["threshold"].sum(axis=1), 1)
    assert run.extra["most tasks"] >= np.flatnonzero(run.profile.sum(axis=0))[-1] + 1


@pytest.mark.skipif(not JIT, reason="needs a long run")
def test_known_means_take_the_noise_out_and_leave_the_mean():
    pools = server_pools([0.5, 0.5], [shared(80), shared(120)])
    run = simulate(PoolSystem(pools, 3200, 10.25), 100, seed=1)
    raw = batch_interval(run.batches["misplaced"], 0.9999)
    found = run.interval("misplaced", 0.9999)
    assert found.high - found.low < 0.5 * (raw.high - raw.low)
    # Two ways to the same mean, each wrong in 1 of 10**4 runs: by what is lost, and by what is had.
    known = float(best_utility(pools, 10.25)) - unavoidable_deficit(pools, 10.25, 3200)
    utility = run.interval("utility", 0.9999)
    assert utility.low < known - found.low
    assert known - found.high < utility.high
    # Shares with the same control add up as the tasks do, whose mean is known.
    shares = [
        run.interval("profile", 0.9999, at=(i, j)).estimate for i in (0, 1) for j in range(1, 20)
    ]
    assert sum(shares) == pytest.approx(10.25, abs=1e-6)


def test_a_given_start_is_where_it_starts():
    shares = np.zeros((2, 40))
    shares[0, :3], shares[1, :7] = 0.25, 0.5
    run = simulate(
        PoolSystem(example(), 8, 4.0), Schedule(1, warmup=0, times=[0.0]), seed=1, start=shares
    )
    assert np.array_equal(run.path[0] / 8, shares)
    assert run.start == "given"
    assert run.extra["threshold path"].tolist() == [0]


def test_the_threshold_is_learned():
    """From either side to the optimum's full pairs, 12 in `example` at 6.4: then it stays near."""
    pools, n = example(), 1000 if JIT else 100
    for threshold, start in ((0, "empty"), (40, "optimum")):
        run = simulate(
            PoolSystem(pools, n, 6.25, policy="threshold", tolerance=0.1, threshold=threshold),
            Schedule(10, warmup=8 if JIT else 4),
            seed=6,
            start=start,
        )
        assert set(shares(run)) == {12} if JIT else min(shares(run)) >= 11


SIX = {"pools": example(), "n": 6, "rho": 3.0, "horizon": 5.0, "seed": 1}


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"n": 7}, "n = 7 pools have no whole number"),
        ({"n": "6"}, "n = '6' is text"),
        ({"rho": 0.0}, "rho = 0 is out of range"),
        ({"rho": 40.0}, "rho = 40 is out of range"),
        ({"policy": "jlm"}, "did you mean jlmu?"),
        ({"tolerance": 1.0}, "tolerance = 1 is out of range"),
        ({"threshold": 80}, "threshold = 80 is out of range"),
        ({"pools": None}, "make them with server_pools"),
        ({"batches": 4}, "batches = 4 is out of range"),
        ({"start": "full"}, "use 'optimum', 'empty'"),
        ({"start": [1.0, 0.5]}, "shares of shape (2, 40)"),
        ({"start": np.full((2, 40), 0.6)}, "between 0 and its alpha"),
        ({"start": ["a"]}, "start must be a list of numbers"),
        ({"policy": "random", "rho": 30.0}, "a pool came to hold 40 tasks"),
    ],
)
def test_wrong_input_is_one_sentence(wrong, sentence):
    with pytest.raises(ParameterError, match=r"^[^\n]+$") as error:
        asked(**(SIX | wrong))
    assert sentence in str(error.value)
