"""What one would take instead: the same model in SimPy, in Ciw and in GillesPy2.

Each function simulates from an empty start and returns the mean number of jobs a queue in each of
`batches` stretches of equal length that follow a warm-up, and the seconds that the run took.
"""

import os
import random
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

Run = Callable[[int, int, float, float, float, int, int], tuple[NDArray[np.float64], float]]


def with_simpy(
    n: int, d: int, lam: float, horizon: float, warmup: float, batches: int, seed: int
) -> tuple[NDArray[np.float64], float]:
    """Make every queue a SimPy resource, every customer and the stream of arrivals a process."""
    import simpy

    rng = random.Random(seed)
    env = simpy.Environment()
    servers = [simpy.Resource(env) for _ in range(n)]
    sojourns = 0.0  # customer-time up to now, if everyone present left at once
    entered: dict[int, float] = {}

    def jobs(server: simpy.Resource) -> int:
        return server.count + len(server.queue)

    def customer(name: int) -> Iterator[simpy.Event]:
        nonlocal sojourns
        entered[name] = env.now
        shortest = min((rng.choice(servers) for _ in range(d)), key=jobs)
        with shortest.request() as turn:
            yield turn
            yield env.timeout(rng.expovariate(1.0))
        sojourns += env.now - entered.pop(name)

    def arrivals() -> Iterator[simpy.Event]:
        name = 0
        while True:
            yield env.timeout(rng.expovariate(lam * n))
            env.process(customer(name))
            name += 1

    env.process(arrivals())
    ends = np.linspace(warmup, warmup + horizon, batches + 1)
    spent = np.zeros(len(ends))
    began = time.perf_counter()
    for k, end in enumerate(ends):
        env.run(until=end)
        spent[k] = sojourns + sum(end - moment for moment in entered.values())
    seconds = time.perf_counter() - began
    return np.diff(spent) / np.diff(ends) / n, seconds


def with_ciw(
    n: int, d: int, lam: float, horizon: float, warmup: float, batches: int, seed: int
) -> tuple[NDArray[np.float64], float]:
    """Make a Ciw network: a first node where no time passes sends each customer to its queue."""
    import ciw

    class Shortest(ciw.routing.NodeRouting):
        def next_node(self, ind: ciw.Individual) -> ciw.Node:
            nodes = self.simulation.nodes  # 0 is the outside, 1 the first node
            chosen = (nodes[2 + int(ciw.rng.random() * n)] for _ in range(d))
            return min(chosen, key=lambda node: node.number_of_individuals)

    ciw.seed(seed)
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(lam * n)] + [None] * n,
        service_distributions=[ciw.dists.Deterministic(0.0)] + [ciw.dists.Exponential(1.0)] * n,
        number_of_servers=[float("inf")] + [1] * n,
        routing=ciw.routing.NetworkRouting(
            routers=[Shortest()] + [ciw.routing.Leave() for _ in range(n)]
        ),
    )
    simulation = ciw.Simulation(network, tracker=ciw.trackers.SystemPopulation())
    began = time.perf_counter()
    simulation.simulate_until_max_time(warmup + horizon)
    seconds = time.perf_counter() - began
    moments, present = np.array(simulation.statetracker.history, dtype=np.float64).T
    spent = np.concatenate([[0.0], np.cumsum(np.diff(moments) * present[:-1])])
    ends = np.linspace(warmup, warmup + horizon, batches + 1)
    last = np.searchsorted(moments, ends, side="right") - 1
    at_ends = spent[last] + (ends - moments[last]) * present[last]
    return np.diff(at_ends) / np.diff(ends) / n, seconds


def with_gillespy2(
    n: int, d: int, lam: float, horizon: float, warmup: float, batches: int, seed: int
) -> tuple[NDArray[np.float64], float]:
    """Give the occupancy chain to GillesPy2's C++ SSA, as reactions between the first 16 levels.

    The compilation of the model is not timed. The means are over samples at whole times.
    """
    # It compiles through the Python behind the virtual environment, which does not see SCons.
    packages = str(Path(find_spec("SCons").origin).parents[1])
    with warnings.catch_warnings(), patch.dict(os.environ, PYTHONPATH=packages):
        warnings.simplefilter("ignore", DeprecationWarning)  # its own use of Python's ast
        return _with_gillespy2(n, d, lam, horizon, warmup, batches, seed)


def _with_gillespy2(
    n: int, d: int, lam: float, horizon: float, warmup: float, batches: int, seed: int
) -> tuple[NDArray[np.float64], float]:
    import gillespy2

    levels = 16
    model = gillespy2.Model(name="supermarket")
    counts = [gillespy2.Species(name=f"S{i}", initial_value=0) for i in range(1, levels + 1)]
    model.add_species(counts)
    share = ["1.0", *(f"pow(S{i} / {n}.0, {d})" for i in range(1, levels + 1))]
    for i, species in enumerate(counts, start=1):
        above = f" - S{i + 1}" if i < levels else ""
        model.add_reaction(
            [
                gillespy2.Reaction(
                    name=f"arrival{i}",
                    products={species: 1},
                    propensity_function=f"{lam * n} * ({share[i - 1]} - {share[i]})",
                ),
                gillespy2.Reaction(
                    name=f"departure{i}",
                    reactants={species: 1},
                    propensity_function=f"S{i}{above}",
                ),
            ]
        )
    end = int(warmup + horizon)
    model.timespan(gillespy2.TimeSpan.linspace(t=end, num_points=end + 1))
    solver = gillespy2.SSACSolver(model=model)
    solver.run(seed=seed)  # the first run compiles
    began = time.perf_counter()
    result = solver.run(seed=seed)
    seconds = time.perf_counter() - began
    jobs = sum(np.asarray(result[species.name]) for species in counts) / n
    stretches = np.array_split(jobs[-int(horizon) :], batches)
    return np.array([stretch.mean() for stretch in stretches]), seconds


OTHERS: dict[str, Run] = {"simpy": with_simpy, "ciw": with_ciw, "gillespy2": with_gillespy2}
HORIZONS = {"simpy": 2000.0, "ciw": 400.0, "gillespy2": 4000.0}  # some seconds; Ciw, half a minute


def installed(name: str) -> bool:
    """Return whether the package can be imported."""
    return find_spec(name) is not None
