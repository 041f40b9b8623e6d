"""Jackson networks as the number of servers grows: fixed point and mean-field ODE.

The limit is that of J. B. Martin and Yu. M. Suhov, "Fast Jackson networks", Annals of Applied
Probability 9 (1999) 854-870: the stations' queues become independent, and each station looks like a
supermarket model by itself at the load that the traffic equations give it.
"""

from math import inf

import numpy as np
from numpy.typing import ArrayLike, NDArray

from supermarket.limits.mean_field.fixed_point import fixed_point, log_fixed_point
from supermarket.limits.mean_field.flow import solved
from supermarket.models.jsq import Supermarket
from supermarket.models.stations import JacksonNetwork, network_of
from supermarket.validation import MOST_LEVELS, ParameterError, choice, increasing_times

__all__ = ["log_network_fixed_point", "network_fixed_point", "network_trajectory"]

_LEFT_OUT = 1e-11  # share of queues beyond the levels kept, ten times the solver's tolerance


def network_fixed_point(network: JacksonNetwork, levels: int) -> NDArray[np.float64]:
    """Return the fixed point of each station, rho_j ** (1 + d_j + ... + d_j**(k-1)).

    Parameters
    ----------
    network : JacksonNetwork
        See `supermarket.models.stations.jackson_network`.
    levels : int
        Last level wanted, at least 0.

    Returns
    -------
    ndarray of float64, shape (J, levels + 1)
        Shares of the queues of each station with at least 0, 1, ... jobs.

    Raises
    ------
    ParameterError
        If `levels` is out of range.

    Examples
    --------
    >>> from supermarket.models.stations import jackson_network
    >>> from supermarket.limits.mean_field.stations import network_fixed_point
    >>> network = jackson_network([0.3, 0.0], [[0.0, 1.0], [0.5, 0.0]], [1, 2])
    >>> network_fixed_point(network, 2).round(6).tolist()
    [[1.0, 0.6, 0.36], [1.0, 0.6, 0.216]]
    """
    return np.array(
        [fixed_point(Supermarket(inf, d, rho), levels) for rho, d in _stations(network)]
    )


def log_network_fixed_point(network: JacksonNetwork, levels: int) -> NDArray[np.float64]:
    """Return the logarithms of `network_fixed_point`, finite at any depth.

    Raises
    ------
    ParameterError
        If `levels` is out of range, or a logarithm is beyond the largest double.

    Examples
    --------
    >>> from supermarket import jackson_network, log_network_fixed_point
    >>> net = jackson_network([0.5, 0], [[0, 0.6], [0.2, 0]], [2, 2], names=["web", "disk"])
    >>> log_network_fixed_point(net, 3)[1, 1:].round(3).tolist()
    [-1.076, -3.228, -7.533]
    """
    return np.array(
        [log_fixed_point(Supermarket(inf, d, rho), levels) for rho, d in _stations(network)]
    )


def network_trajectory(
    network: JacksonNetwork, times: ArrayLike, *, start: str | ArrayLike = "empty"
) -> NDArray[np.float64]:
    r"""Solve the mean-field ODE of all stations.

    With u_{j,i} the share of queues of station j with at least i jobs, u_{j,0} = 1, and
    A_j = a_j + sum_k mu_k u_{k,1} R_kj jobs a server coming to station j,

    .. math::
        \dot u_{j,i} = A_j\,(u_{j,i-1}^{d_j} - u_{j,i}^{d_j}) - \mu_j\,(u_{j,i} - u_{j,i+1}).

    Parameters
    ----------
    network : JacksonNetwork
        See `supermarket.models.stations.jackson_network`.
    times : array_like of float, shape (m,)
        Times in the unit of the network's rates, not negative, increasing.
    start : {"empty", "fixed point"} or sequence of J array_like of float
        u at time 0; profiles are zero beyond the last share given.

    Returns
    -------
    ndarray of float64, shape (m, J, levels + 1)
        u at each time, with relative and absolute tolerances of 1e-9 and 1e-12 in the solver. There
        are as many levels as it takes for less than 1e-11 of any station's queues to be longer.

    Raises
    ------
    ParameterError
        If the times are not such, or `start` is not such.

    Examples
    --------
    >>> from supermarket import jackson_network, network_trajectory
    >>> net = jackson_network([0.5, 0], [[0, 0.6], [0.2, 0]], [2, 2], names=["web", "disk"])
    >>> network_trajectory(net, [0, 100])[:, :, 1].round(4).tolist()
    [[0.0, 0.0], [0.5682, 0.3409]]
    """
    times, network = increasing_times(times), network_of(network)
    if isinstance(start, str):
        choice("start", start, ("empty", "fixed point"))
        profiles = [np.ones(1)] * len(network.names)
        levels = 8
        if start == "fixed point":
            while np.any(network_fixed_point(network, levels)[:, -1] > _LEFT_OUT):
                levels *= 2
            profiles = list(network_fixed_point(network, levels))
    else:
        profiles = network.profiles(start)
        levels = max(8, *(2 * len(profile) for profile in profiles))
    while levels <= MOST_LEVELS:
        padded = np.zeros((len(profiles), levels + 2))
        for row, profile in zip(padded, profiles, strict=True):
            row[: len(profile)] = profile
        u = _solve(network, times, padded)
        if np.max(u[:, :, -1]) < _LEFT_OUT:
            return u
        levels *= 2
    raise ParameterError(
        f"more than {MOST_LEVELS} levels are needed: choose earlier times, or lower loads."
    )


def _solve(
    network: JacksonNetwork, times: NDArray[np.float64], padded: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return u at the times with as many levels as `padded`, whose last stays 0, but for one."""
    size, levels = len(padded), padded.shape[1] - 2
    mu, d = network.service[:, np.newaxis], network.choices[:, np.newaxis]

    def slope(_time: float, inner: NDArray[np.float64]) -> NDArray[np.float64]:
        padded[:, 1:-1] = inner.reshape(size, levels)
        coming = network.arrivals + (network.service * padded[:, 1]) @ network.routing
        joins = -np.diff(padded[:, :-1] ** d, axis=1)
        return (coming[:, np.newaxis] * joins + mu * np.diff(padded[:, 1:], axis=1)).ravel()

    u = np.ones((len(times), size, levels + 1))
    u[:, :, 1:] = solved(slope, times, padded[:, 1:-1].ravel()).reshape(len(times), size, levels)
    return u


def _stations(network: JacksonNetwork) -> zip:
    network = network_of(network)
    return zip(network.loads.tolist(), network.choices.tolist(), strict=True)
