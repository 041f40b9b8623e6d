"""Networks of stations: traffic equations, fixed point and ODE; and what makes no network."""

from math import inf

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import simpson

from supermarket import ParameterError, Supermarket, fixed_point, log_fixed_point, trajectory
from supermarket.limits.mean_field.stations import (
    log_network_fixed_point,
    network_fixed_point,
    network_trajectory,
)
from supermarket.models.stations import jackson_network

ROUTING = [[0.1, 0.6, 0.2], [0.3, 0.0, 0.4], [0.1, 0.1, 0.0]]


def three(**changes):
    options = {"choices": [2, 3, 1], "service": [1.0, 0.8, 1.3], "names": ["a", "b", "c"]}
    return jackson_network([0.3, 0.0, 0.1], ROUTING, **(options | changes))


def test_traffic_equations_count_every_visit():
    """Arrivals from outside, and from there after one hop, two hops, ..."""
    network, coming = three(), np.zeros(3)
    hop = np.array([0.3, 0.0, 0.1])
    for _ in range(400):
        coming += hop
        hop = [sum(hop[j] * ROUTING[j][k] for j in range(3)) for k in range(3)]
    assert_allclose(network.rates, coming, rtol=1e-12)
    assert_allclose(network.loads, coming / [1.0, 0.8, 1.3], rtol=1e-12)


def test_feedback_multiplies_the_load():
    """One station to which a job returns with probability p: each job comes 1 / (1 - p) times."""
    network = jackson_network([0.2], [[0.6]], 2)
    assert_allclose(network.loads, [0.5], rtol=1e-15)
    assert network.names == ("station 0",)


def test_each_station_has_its_own_fixed_point():
    network = three()
    for j, d in enumerate([2, 3, 1]):
        rho = network.loads[j]
        assert_allclose(
            network_fixed_point(network, 5)[j], fixed_point(Supermarket(inf, d, rho), 5), rtol=1e-14
        )
        logs = log_network_fixed_point(network, 30)[j]
        assert_allclose(logs, log_fixed_point(Supermarket(inf, d, rho), 30), rtol=1e-14)
    exponents = [0, 1, 4, 13]  # (3**k - 1) / 2
    assert_allclose(network_fixed_point(network, 3)[1], network.loads[1] ** np.array(exponents))


def test_the_fixed_point_stays_and_is_reached():
    network = three()
    still = network_trajectory(network, [0.0, 1.0, 30.0], start="fixed point")
    levels = still.shape[2] - 1
    for u in still:
        assert_allclose(u, network_fixed_point(network, levels), atol=1e-9)
    for start in ("empty", [[1.0], [1.0] * 9, [1.0, 0.5]]):
        u = network_trajectory(network, [300.0], start=start)[0]
        assert_allclose(u, network_fixed_point(network, u.shape[1] - 1), atol=1e-8)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_one_station_is_the_supermarket_model(d):
    times, start = [0.5, 2.0, 7.0], [1.0, 0.8, 0.3, 0.3]
    alone = trajectory(Supermarket(inf, d, 0.7), times, start=start)
    network = jackson_network([1.4], [[0.0]], d, service=2.0)  # twice as fast
    u = network_trajectory(network, np.array(times) / 2, start=[start])
    shared = min(alone.shape[1], u.shape[2])
    assert_allclose(u[:, 0, :shared], alone[:, :shared], atol=1e-8)
    assert np.max(alone[:, shared:], initial=0) < 1e-9


def naive_slope(u, a, r, d, mu):
    """Write the ODE out, term by term."""
    change = np.zeros_like(u)
    for j in range(len(u)):
        coming = a[j] + sum(mu[k] * u[k][1] * r[k][j] for k in range(len(u)))
        for i in range(1, u.shape[1] - 1):
            change[j, i] += coming * (u[j, i - 1] ** d[j] - u[j, i] ** d[j])
            change[j, i] -= mu[j] * (u[j, i] - u[j, i + 1])
    return change


def test_ode_against_small_steps_of_its_definition():
    a, d, mu = [0.3, 0.0, 0.1], [2, 3, 1], [1.0, 0.8, 1.3]
    start = [[1.0, 1.0, 1.0, 0.5], [1.0], [1.0, 0.2]]
    u, h = np.zeros((3, 26)), 0.02
    for row, profile in zip(u, start, strict=True):
        row[: len(profile)] = profile
    for _ in range(100):  # Runge and Kutta
        k1 = naive_slope(u, a, ROUTING, d, mu)
        k2 = naive_slope(u + h / 2 * k1, a, ROUTING, d, mu)
        k3 = naive_slope(u + h / 2 * k2, a, ROUTING, d, mu)
        k4 = naive_slope(u + h * k3, a, ROUTING, d, mu)
        u = u + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    solved = network_trajectory(three(), [0.0, 2.0], start=start)
    shared = min(solved.shape[2], 25)
    assert_allclose(solved[1, :, :shared], u[:, :shared], atol=1e-7)


def test_no_job_is_lost_even_where_a_burst_overflows_a_slower_station():
    """The burst leaves a for b faster than b serves: its queues grow far beyond any fixed point."""
    network = jackson_network([0.1, 0.0], [[0, 1], [0.2, 0]], [1, 1], service=[4.0, 0.5])
    times = np.linspace(0, 4, 401)
    u = network_trajectory(network, times, start=[[1.0] * 9, [1.0]])
    jobs = u[:, :, 1:].sum(axis=(1, 2))
    leaving = 0.5 * u[:, 1, 1] * 0.8
    assert_allclose(jobs[-1] - jobs[0], simpson(0.1 - leaving, x=times), atol=1e-6)
    assert jobs[0] == 8
    assert u[:, 1, 1:].sum(axis=1).max() > 5
    assert u[:, :, -1].max() < 1e-10


SQUARE = {"arrivals": [0.3, 0.1], "routing": [[0, 0.5], [0.2, 0]], "choices": 2}


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"arrivals": [0.9, 0.7]}, "station 1 is unstable: 1.27778 jobs a server come"),
        ({"names": ["x", "desk"], "service": [1, 0.1]}, "desk is unstable"),
        ({"arrivals": [0.5, 0.0], "routing": [[0, 1], [0, 0]], "service": [1.0, 0.5]},
         "station 1 is unstable"),
        ({"routing": [[0.5, 0.6], [0, 0]]}, "row 0 of routing, from station 0, sums to 1.1"),
        ({"routing": [[0, -0.1], [0, 0]]}, "routing[0][1] = -0.1 is out of range"),
        ({"routing": [[0, float("nan")], [0, 0]]}, "routing[0][1] = nan is not finite"),
        ({"routing": [[0, 1.5], [0, 0]]}, "routing[0][1] = 1.5 is out of range"),
        ({"routing": [[0, 0.5], [0.2]]}, "routing has rows of [2, 1] entries for 2 stations"),
        ({"routing": [[0.5]]}, "routing has rows of [1] entries"),
        ({"routing": "none"}, "routing = 'none' is not a list"),
        ({"routing": [[0, "half"], [0, 0]]}, "routing[0][1] = 'half' is text"),
        ({"routing": 0.5}, "routing = 0.5 is not a list"),
        ({"routing": [[0, 1], [1, 0]]}, "jobs that reach station 0 never leave the network"),
        ({"arrivals": [0.3, 0.1, 0.1], "routing": [[0, 0.5, 0.5], [0, 1, 0], [0, 0, 0]]},
         "jobs that reach station 1 never leave the network"),
        ({"arrivals": [0.0, 0.0]}, "no job comes from outside, which makes a closed network"),
        ({"arrivals": [0.3, 0.0], "routing": [[0, 0], [0.2, 0]]}, "no job ever reaches station 1"),
        ({"arrivals": [0.3, -0.1]}, "arrivals at station 1 = -0.1 is out of range"),
        ({"arrivals": [0.3, None]}, "arrivals[1] = None is not a number"),
        ({"arrivals": "many"}, "arrivals = 'many' is not a list"),
        ({"arrivals": []}, "arrivals is empty"),
        ({"choices": [2, 2, 2]}, "choices has 3 entries for 2 stations"),
        ({"choices": [2, 0]}, "choices of station 1 = 0 is out of range"),
        ({"choices": 1.5}, "choices of station 0 = 1.5 is not a whole number"),
        ({"choices": "two"}, "choices of station 0 = 'two' is text"),
        ({"service": [1.0]}, "service has 1 entries for 2 stations"),
        ({"service": 0.0}, "service of station 0 = 0 is out of range"),
        ({"names": ["one"]}, "names = ['one'] does not name each of 2 stations"),
        ({"names": ["one", "one"]}, "give 2 different names"),
        ({"names": 2}, "names = 2 is not a list"),
    ],
)  # fmt: skip
def test_no_network_is_one_sentence(wrong, sentence):
    with pytest.raises(ParameterError, match=r"^[^\n]+$") as error:
        jackson_network(**(SQUARE | wrong))
    assert sentence in str(error.value)


def test_a_row_that_sums_to_one_but_for_rounding_is_taken():
    third = [0.1, 0.2, 0.7 + 1e-15]
    network = jackson_network([0.1, 0.1, 0.1], [third, [0, 0, 0], [0, 0, 0]], 2)
    assert sum(third) > 1
    assert_allclose(network.rates, [1 / 9, 0.1 + 0.2 / 9, 0.1 + 0.7 / 9])


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"times": [2.0, 1.0]}, "times must be an increasing list"),
        ({"times": "soon"}, "times must be a list of numbers"),
        ({"times": []}, "one at least"),
        ({"times": [-1.0]}, "none below 0"),
        ({"start": "full"}, "use 'empty', 'fixed point'"),
        ({"start": [[1.0], [1.0]]}, "start holds 2 profiles: give one for each station (a, b, c)"),
        ({"start": [[1.0], [1.0, 0.2, 0.3], [1.0]]}, "start of b must be a profile"),
        ({"start": [[1.0], [0.9], [1.0]]}, "start of b must be a profile"),
        ({"start": [[1.0], [1.0], 1.0]}, "start of c = 1.0 is not a list"),
    ],
)
def test_wrong_trajectories_are_one_sentence(wrong, sentence):
    with pytest.raises(ParameterError, match=r"^[^\n]+$") as error:
        network_trajectory(three(), **({"times": [1.0]} | wrong))
    assert sentence in str(error.value)


@pytest.mark.parametrize("row", [[1.0, 5e-13], [1.0, 0.0]])
def test_jobs_that_hardly_ever_leave_are_refused(row):
    with pytest.raises(ParameterError, match=r"never leave|let more of them leave"):
        jackson_network([0.3, 0.05], [row, [0.5, 0.0]], 2)
