r"""Jackson networks of stations: what the theory and the chains share, as with server pools.

Each of J stations has the same number n of servers, each with its own queue, first in first out.
Jobs reach station j from outside at rate n a_j. A server of station j works at rate mu_j; a job
that it has served goes to station k with probability R_jk and leaves with what is missing to 1. A
job that reaches station j, from wherever it comes, joins the shortest of d_j random queues of that
station. The model is that of J. B. Martin and Yu. M. Suhov, "Fast Jackson networks", Annals of
Applied Probability 9 (1999) 854-870, but for the d_j, which are all the same there.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from supermarket.models.jsq import Supermarket
from supermarket.validation import (
    EXACT_MAX,
    ParameterError,
    affordable,
    instance,
    integer,
    listed,
    profile_of,
    real,
    said,
)

__all__ = ["JacksonNetwork", "jackson_network"]


@dataclass(frozen=True, eq=False, repr=False)
class JacksonNetwork:
    """A stable, open network. Made by `jackson_network`, which checks it.

    ``dataclasses.replace(network, n=1000)`` is the same network with 1000 queues per station.

    Attributes
    ----------
    arrivals : ndarray of float64, shape (J,)
        Arrivals from outside at each station, a server and a unit of time: a.
    routing : ndarray of float64, shape (J, J)
        ``routing[j, k]`` is the probability that a job served at j goes to k: R.
    choices : ndarray of int64, shape (J,)
        Queues that a job looks at.
    service : ndarray of float64, shape (J,)
        Rate of a busy server: mu.
    names : tuple of str
        The stations' names.
    rates : ndarray of float64, shape (J,)
        Arrivals in equilibrium, a server and a unit of time, from outside and from the stations:
        the solution of the traffic equations lambda = a + R^T lambda.
    n : int
        Number of queues of each station; infinity, unless given, for the limit of many.
    replacement : bool
        Whether a job's queues are chosen with replacement or distinct.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from supermarket import jackson_network
    >>> network = jackson_network([0.5, 0.0], [[0.0, 1.0], [0.0, 0.0]], 2, names=["in", "out"])
    >>> replace(network, n=1000)
    <JacksonNetwork of loads in: 0.5, out: 0.5; n=1000>
    """

    arrivals: NDArray[np.float64]
    routing: NDArray[np.float64]
    choices: NDArray[np.int64]
    service: NDArray[np.float64]
    names: tuple[str, ...]
    rates: NDArray[np.float64]
    n: float = math.inf
    replacement: bool = True

    def __post_init__(self) -> None:
        for d in self.choices.tolist():  # n and d of each station are those of its own queues
            queues = Supermarket(self.n, d, 1.0, self.replacement)
        for name in ("n", "replacement"):
            object.__setattr__(self, name, getattr(queues, name))

    def __repr__(self) -> str:
        """Return the stations with their loads."""
        loads = ", ".join(
            f"{name}: {load:.4g}" for name, load in zip(self.names, self.loads, strict=True)
        )
        return f"<JacksonNetwork of loads {loads}; n={self.n}>"

    @property
    def loads(self) -> NDArray[np.float64]:
        """The share of busy servers in equilibrium, rho_j = lambda_j / mu_j, each below 1."""
        return self.rates / self.service

    def profiles(self, start: ArrayLike | Sequence[ArrayLike]) -> list[NDArray[np.float64]]:
        """Return one profile a station from lists u[0] = 1, u[1], ..., which may differ in length.

        Raises
        ------
        ParameterError
            If there is not one profile for each station.
        """
        stations = ", ".join(self.names)
        rows = _entries("start", start)
        if len(rows) != len(self.names):
            raise ParameterError(
                f"start holds {len(rows)} profiles: give one for each station ({stations})."
            )
        return [
            profile_of(f"start of {name}", _row(f"start of {name}", row))
            for name, row in zip(self.names, rows, strict=True)
        ]


def jackson_network(
    arrivals: ArrayLike,
    routing: ArrayLike,
    choices: int | Sequence[int],
    *,
    service: float | ArrayLike = 1.0,
    names: Sequence[str] | None = None,
    n: float = math.inf,
    replacement: bool = True,
) -> JacksonNetwork:
    """Return a network of stations, checked.

    Parameters
    ----------
    arrivals : array_like of float, shape (J,)
        Rate at which jobs reach each station from outside, a server; at least one above 0.
    routing : array_like of float, shape (J, J)
        ``routing[j][k]`` is the probability that a job served at station j goes to station k. Rows
        sum to at most 1: what is missing is the probability that the job leaves.
    choices : int or sequence of int, shape (J,)
        Number of queues that a job looks at, at least 1; one number holds for all stations.
    service : float or array_like of float, shape (J,)
        Service rate of a server, above 0; one number holds for all stations.
    names : sequence of str, optional
        The stations' names, "station 0", ... by default.
    n, replacement
        See `JacksonNetwork`.

    Returns
    -------
    JacksonNetwork

    Raises
    ------
    ParameterError
        If a number is not allowed, jobs never reach a station or never leave it for good, or more
        work comes to a station than it can do; the sentence names the station.

    Examples
    --------
    >>> from supermarket.models.stations import jackson_network
    >>> network = jackson_network([0.3, 0.0], [[0.0, 1.0], [0.5, 0.0]], 2)
    >>> network.loads.round(6).tolist()
    [0.6, 0.6]
    """
    a = _row("arrivals", arrivals)
    size = len(a)
    affordable(f"a network of {size} stations", float(size) ** 2, "choose fewer", 10**7)
    if size == 0:
        raise ParameterError("arrivals is empty: give the rate from outside for each station.")
    names = [f"station {j}" for j in range(size)] if names is None else _entries("names", names)
    names = tuple(said(name, str) for name in names)
    if len(names) != size or len(set(names)) != size:
        raise ParameterError(
            f"names = {said(list(names))} does not name each of {size} stations: give {size} "
            "different names."
        )
    for name, rate in zip(names, a, strict=True):
        real(f"arrivals at {name}", float(rate), 0.0)
    r = _matrix(routing, names)
    service = [service] * size if _is_one(service) else _entries("service", service)
    choices = [choices] * size if _is_one(choices) else _entries("choices", choices)
    for what, given in (("service", service), ("choices", choices)):
        if len(given) != size:
            raise ParameterError(
                f"{what} has {len(given)} entries for {size} stations: give one for each, or one "
                "number for all."
            )
    mu = np.array(
        [real(f"service of {name}", x, 0.0, open_low=True)
         for name, x in zip(names, service, strict=True)]
    )  # fmt: skip
    d = np.array(
        [integer(f"choices of {name}", x, 1, EXACT_MAX)
         for name, x in zip(names, choices, strict=True)]
    )  # fmt: skip
    _check_open(a, r, names)
    try:
        rates = np.linalg.solve(np.eye(size) - r.T, a)
    except np.linalg.LinAlgError:
        rates = np.full(size, np.nan)
    if not np.all(np.isfinite(rates)) or np.any(rates < 0):
        raise ParameterError(
            "routing lets jobs out so rarely that the traffic equations have no solution in "
            "float64: let more of them leave."
        )
    network = JacksonNetwork(a, r, d, mu, names, rates, n, replacement)
    worst = int(np.argmax(network.loads))
    if network.loads[worst] >= 1:
        raise ParameterError(
            f"{names[worst]} is unstable: {rates[worst]:.6g} jobs a server come in a unit of time "
            f"and {mu[worst]:.6g} can be served, so lower its arrivals or raise its service rate."
        )
    return network


def network_of(given: object) -> JacksonNetwork:
    """Return the network, or refuse what is none."""
    return instance("network", given, JacksonNetwork, "make one with jackson_network")


def _check_open(a: NDArray[np.float64], r: NDArray[np.float64], names: tuple[str, ...]) -> None:
    """Refuse a network in which some station is never reached, or never left for good."""
    if not np.any(a > 0):
        raise ParameterError(
            "no job comes from outside, which makes a closed network: give some station arrivals "
            "above 0."
        )
    onward = r > 0
    reached, leaving = a > 0, r.sum(axis=1) < 1 - 1e-12
    for _ in names:
        reached = reached | (reached @ onward)
        leaving = leaving | (onward @ leaving)
    if not np.all(reached):
        raise ParameterError(
            f"no job ever reaches {names[int(np.argmin(reached))]}: leave this station out, or "
            "send it some."
        )
    if not np.all(leaving):
        raise ParameterError(
            f"jobs that reach {names[int(np.argmin(leaving))]} never leave the network: some row "
            "of routing that they meet must sum to less than 1."
        )


def _matrix(routing: ArrayLike, names: tuple[str, ...]) -> NDArray[np.float64]:
    size = len(names)
    rows = [_row(f"routing[{j}]", row) for j, row in enumerate(_entries("routing", routing))]
    if [len(row) for row in rows] != [size] * size:
        raise ParameterError(
            f"routing has rows of {said([len(row) for row in rows])} entries for {size} stations: "
            f"give {size} rows of {size} probabilities."
        )
    for j, row in enumerate(rows):
        for k, probability in enumerate(row):
            real(f"routing[{j}][{k}]", float(probability), 0.0, 1.0)
        if row.sum() > 1 + 1e-12:
            raise ParameterError(
                f"row {j} of routing, from {names[j]}, sums to {row.sum():.12g}: probabilities of "
                "where a job goes sum to at most 1."
            )
    return np.array(rows)


def _is_one(value: object) -> bool:
    many = hasattr(value, "__len__") and getattr(value, "shape", None) != ()
    return isinstance(value, str) or not many


def _entries(name: str, values: object) -> list:
    if _is_one(values):
        told = f"{name} = {said(values)}"
        raise ParameterError(f"{told} is not a list: give one entry for each station.")
    return listed(name, values)


def _row(name: str, values: object) -> NDArray[np.float64]:
    entries = [real(f"{name}[{i}]", x) for i, x in enumerate(_entries(name, values))]
    return np.array(entries, dtype=np.float64)
