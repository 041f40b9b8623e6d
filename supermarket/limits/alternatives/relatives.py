"""Alternatives to the statements on server pools, memory, networks and other orders of service."""

import math
from collections.abc import Sequence
from functools import cache

import numpy as np

from supermarket.limits.fifo.depth import mean_sojourn_fifo, share_with
from supermarket.limits.mean_field.fixed_point import fixed_point, log_fixed_point, mean_queue
from supermarket.limits.mean_field.memory import memory_exponent
from supermarket.limits.mean_field.stations import network_fixed_point, network_trajectory
from supermarket.limits.pools import utility
from supermarket.models.jsq import Supermarket
from supermarket.models.pools import ServerPools, server_pools
from supermarket.models.stations import JacksonNetwork, jackson_network
from supermarket.service.named import named_law

# Server pools, with the utilities of the page: the logarithm of a task's share of the capacity.


def no_coexistence(rho_kink: float) -> float:
    """Return E h if holes and surplus tasks were never there at once: the bound."""
    return utility.holes_bound(rho_kink)


def other_policy(
    capacity: Sequence[float], rho: float, policy: str, holes: float = math.nan
) -> float:
    """Return the constant of the deficit with the other policy: holes filled at random, or not."""
    other = {"jlmu": "threshold", "threshold": "jlmu"}[policy]
    return float(utility.deficit(_pools(tuple(capacity)), rho, 1, holes, other))


def task_before(capacity: Sequence[float], i: int, j: int) -> float:
    """Return Delta(i, j - 1), the gain of the task before the one that takes a pool beyond j."""
    return float(_pools(tuple(capacity)).marginals[i - 1, j - 1])


def wrong_assignments(capacity: Sequence[float], rho: float) -> list[float]:
    """Return the deficits in the limit with one pair too many filled at random, and with JSQ."""
    return [_threshold_too_high(capacity, rho), _deficit_of_fewest(tuple(capacity), rho)]


def _threshold_too_high(capacity: Sequence[float], rho: float) -> float:
    """Return the deficit in the limit if the pairs up to one that is never full fill at random.

    A random pool below its limit gets a task at the same rate, whatever it has: each is then an
    Erlang loss system, all with the one rate at which there are rho tasks per pool.
    """
    from scipy.optimize import brentq

    pools = _pools(tuple(capacity))
    best = utility.optimum(pools, rho)
    classes, levels = pools.order
    filled = slice(0, best.rank + 1 + best.integral)
    limits = [int(np.max(levels[filled][classes[filled] == i], initial=0)) for i in (0, 1)]

    def shares(rate: float) -> np.ndarray:
        q = np.zeros_like(pools.marginals)
        for i, limit in enumerate(limits):
            law = np.cumprod(np.append(1.0, rate / np.arange(1, limit + 1)))
            q[i, :limit] = pools.alpha[i] * (1 - np.cumsum(law / law.sum())[:-1])
        return q

    rate = brentq(lambda rate: shares(rate).sum() - rho, 1e-9, 1e9)
    return best.utility - float(pools.utility(shares(rate)))


def fewest_share(capacity: Sequence[float], rho: float, i: int, j: int) -> float:
    """Return q(i, j) in the limit if tasks join a pool with the fewest."""
    return float(_fewest(tuple(capacity), rho)[i - 1, j - 1])


def fewest_path(capacity: Sequence[float], rho: float, i: int, j: int, time: float) -> float:
    """Return q(i, j) at a time after an empty start if tasks join a pool with the fewest."""
    pools = _pools(tuple(capacity))
    alike = server_pools([1.0], [-np.arange(pools.levels, dtype=float)], levels=pools.levels)
    return float(pools.alpha[i - 1] * utility.pools_fluid_limit(alike, rho, [time])[0, 0, j - 1])


def not_balanced(capacity: Sequence[float], rho: float) -> float:
    """Return what the root of n times the deficit would be if the last pair were just full."""
    pools = _pools(tuple(capacity))
    classes, levels = pools.order
    gains = pools.marginals[classes, levels - 1]
    rank = utility.optimum(pools, rho).rank
    return float((gains[rank] - gains[rank + 1]) * utility.holes_bound(rho))


def threshold_can_fall(
    capacity: Sequence[float], rho: float, policy: str, tolerance: float
) -> list[str]:
    """Say so if a threshold that is one too high finds too few green pools to fall again."""
    pools = _pools(tuple(capacity))
    best = utility.optimum(pools, rho)
    i, j = (int(x[best.rank + best.integral]) for x in pools.order)
    if policy != "threshold" or pools.alpha[i] - best.q[i, j - 1] > tolerance:
        return []
    return ["more pools than the tolerance lack a task when the threshold is one too high"]


def the_example(capacity: Sequence[float], rho_kink: float) -> list[str]:
    """Say so if it is not pools of class 2 with 12 tasks that are full last."""
    pools = _pools(tuple(capacity))
    best = utility.optimum(pools, rho_kink)
    last = tuple(int(x[best.rank]) for x in pools.order)
    return [] if best.integral and last == (1, 12) else ["the last full pair is (2, 12)"]


@cache
def _pools(capacity: tuple[float, ...]) -> ServerPools:
    shares = [lambda x, c=c: x * math.log(c / x) if x else 0.0 for c in capacity]
    return server_pools([0.5, 0.5], shares)


def _fewest(capacity: tuple[float, ...], rho: float) -> np.ndarray:
    pools = _pools(capacity)
    return pools.alpha[:, np.newaxis] * np.clip(rho - np.arange(pools.levels), 0.0, 1.0)


def _deficit_of_fewest(capacity: tuple[float, ...], rho: float) -> float:
    pools = _pools(capacity)
    return utility.optimum(pools, rho).utility - float(pools.utility(_fewest(capacity, rho)))


# One queue remembered.


def plain_share(predicted: float, lam: float, d: int, k: int) -> list[float]:
    """Return the shares with d and with d + 1 fresh queues and no memory, where they differ."""
    return _others(
        predicted,
        [fixed_point(Supermarket(math.inf, choices, lam), k)[k] for choices in (d, d + 1)],
    )


def plain_exponents(d: int) -> list[float]:
    """Return the exponents of d + 1 and of 2 d fresh queues without memory, over alpha."""
    return [choices / memory_exponent(d) for choices in {d + 1, 2 * d}]


def plain_ratio(predicted: float, lam: float, d: int, k: int) -> list[float]:
    """Return log u_k / log u_(k-1) with d and with d + 1 fresh queues and no memory."""
    logs = [log_fixed_point(Supermarket(math.inf, choices, lam), k) for choices in (d, d + 1)]
    return _others(predicted, [log[k] / log[k - 1] for log in logs])


def plain_jobs(lam: float, d: int) -> float:
    """Return the mean number of jobs with as many looks, all fresh."""
    return float(mean_queue(Supermarket(math.inf, d + 1, lam)))


def plain_longest(lam: float, d: int, n: int, k: int) -> float:
    """Return the share of time with a queue of length k if one more queue were fresh instead."""
    return -math.expm1(-n * fixed_point(Supermarket(math.inf, d + 1, lam), k)[k])


def _others(predicted: float, values: Sequence[float]) -> list[float]:
    return [x for x in map(float, values) if abs(x - predicted) > 1e-9 * abs(predicted)]


# Networks of stations.

Matrix = Sequence[Sequence[float]]


def station_shares(
    arrivals: Sequence[float], routing: Matrix, service: Sequence[float], d: int, station: int,
    k: int,
) -> list[float]:  # fmt: skip
    """Return u(station, k) without jobs that come back, and with d - 1 choices (2 for d = 1)."""
    network = jackson_network(arrivals, routing, d, service=service)
    rho = network.loads[station]
    once = fixed_point(Supermarket(math.inf, d, _first_visits(network)[station]), k)[k]
    return [
        float(once),
        float(fixed_point(Supermarket(math.inf, d - 1 if d > 1 else 2, rho), k)[k]),
    ]


def stations_apart(
    arrivals: Sequence[float], routing: Matrix, service: Sequence[float], d: int,
    other_routing: Matrix, other_service: Sequence[float], station: int, k: int,
) -> float:  # fmt: skip
    """Return the difference of two networks, over u(station, k), without jobs that come back."""
    pair = _pair(arrivals, routing, service, d, other_routing, other_service)
    one, two = (
        fixed_point(Supermarket(math.inf, d, _first_visits(network)[station]), k)[k]
        for network in pair
    )
    return float((one - two) / fixed_point(Supermarket(math.inf, d, pair[0].loads[station]), k)[k])


def burst_elsewhere(
    arrivals: Sequence[float], routing: Matrix, service: Sequence[float], choices: Sequence[int],
    other_routing: Matrix, other_service: Sequence[float], burst: int, station: int, time: float,
) -> float:  # fmt: skip
    """Return the mean number of jobs at a time after the burst in the network of the same loads."""
    _, other = _pair(arrivals, routing, service, choices, other_routing, other_service)
    pi = network_fixed_point(other, 40)
    start = [np.ones(burst + 1), *pi[1:]]
    return float(network_trajectory(other, [0.0, time], start=start)[1, station, 1:].sum())


def same_choices(choices: int | Sequence[int]) -> list[str]:
    """Say so if the stations differ in their numbers of choices."""
    return [] if len(np.unique(choices)) == 1 else ["all stations have the same number of choices"]


def _pair(
    arrivals: Sequence[float], routing: Matrix, service: Sequence[float],
    choices: int | Sequence[int], other_routing: Matrix, other_service: Sequence[float],
) -> tuple[JacksonNetwork, JacksonNetwork]:  # fmt: skip
    """Return the network, and another one whose arrivals give it the same loads."""
    network = jackson_network(arrivals, routing, choices, service=service)
    rates = network.loads * np.array(other_service)
    outside = rates - np.array(other_routing).T @ rates
    return network, jackson_network(outside, other_routing, choices, service=other_service)


def _first_visits(network: JacksonNetwork) -> np.ndarray:
    """Return the loads if each job counted only when it first comes to a station."""
    visits = np.linalg.inv(np.eye(len(network.loads)) - network.routing)
    return network.loads / np.diag(visits)


# Orders of service.


def other_order(
    predicted: float, service: str, discipline: str, d: int, lam: float, k: int
) -> list[float]:
    """Return the mean number of jobs (k = 0) or P_k of the other orders of service, or with d - 1.

    Where the law is exponential the order makes no difference, and what is told apart is one choice
    less, or of one choice, one more.
    """
    law = named_law("service", service).scaled(1.0)

    def plain(choices: int) -> float:
        return float(
            fixed_point(Supermarket(math.inf, choices, lam), k)[k]
            if k
            else mean_queue(Supermarket(math.inf, choices, lam))
        )

    if discipline == "fifo":
        other = plain(d)
    elif k:
        other = share_with(Supermarket(math.inf, d, lam, service=law), k)
    else:
        other = lam * mean_sojourn_fifo(Supermarket(math.inf, d, lam, service=law))
    return [x for x in (other, plain(d - 1 or 2)) if abs(x - predicted) > 1e-6 * predicted]


# A sweep.


def swept(alternative: float) -> float:
    """Return how far off the mean would be if what the swept claim is told from were true."""
    return alternative
