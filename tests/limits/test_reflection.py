"""The reflection map on paths with known answers, and the chained flow on closed forms."""

import math

import numpy as np
import pytest

from supermarket.limits.growing.reflection import constrained_flow, reflect
from supermarket.validation import ParameterError

LEVELS = 6
DEPARTURES = -np.eye(LEVELS) + np.eye(LEVELS, k=1)  # of JSQ: queues of length exactly i


def queues(lam, start, times):
    padded = np.zeros(LEVELS)
    padded[: len(start)] = start
    return constrained_flow(DEPARTURES, lam, np.ones(LEVELS), padded, times)


def naive_reflect(path, barrier):
    pushed = [max([0.0, *(value - barrier for value in path[: j + 1])]) for j in range(len(path))]
    return [value - push for value, push in zip(path, pushed, strict=True)], pushed


def test_a_path_below_its_barrier_is_left_alone():
    path = np.sin(np.linspace(0, 9, 50))
    reflected, pushed = reflect(path, 1.5)
    assert np.array_equal(reflected, path)
    assert not pushed.any()


def test_a_rising_line_is_held_at_the_barrier():
    t = np.linspace(0, 3, 31)
    reflected, pushed = reflect(2 * t, 1.0)
    assert np.allclose(reflected, np.minimum(2 * t, 1), atol=1e-15)
    assert np.allclose(pushed, np.maximum(2 * t - 1, 0), atol=1e-15)


def test_paths_in_rows_and_barriers_for_each_agree_with_the_definition():
    paths = np.cumsum(np.random.default_rng(1).normal(size=(7, 60)), axis=1)
    barriers = np.linspace(-1, 2, 7)
    reflected, pushed = reflect(paths, barriers)
    for row in range(7):
        expected = naive_reflect(list(paths[row]), barriers[row])
        assert np.array_equal(reflected[row], expected[0])
        assert np.array_equal(pushed[row], expected[1])
    assert np.all(reflected <= barriers[:, np.newaxis] + 1e-15)
    grows = np.diff(pushed, axis=1) > 0  # only at the barrier
    at = np.abs(reflected - barriers[:, np.newaxis])[:, 1:]
    assert grows.any()
    assert at[grows].max() < 1e-14


def test_from_empty_with_too_many_arrivals_level_after_level_fills():
    t = np.linspace(0, 8, 400)
    flow = queues(1.5, [0.0], t)
    full = math.log(3)
    first = np.where(t < full, 1.5 * (1 - np.exp(-t)), 1)
    assert np.abs(flow.values[:, 0] - first).max() < 1e-9
    for i in range(1, 5):  # v_i' = lam - 1 + g_(i+1): each level fills at rate 1/2
        line = np.clip((t - full - 2 * (i - 1)) / 2, 0, 1)
        assert np.abs(flow.values[:, i] - line).max() < 1e-9
    events = [at for at, _ in flow.held]
    assert np.allclose(events, [0, *(full + np.array([0, 2, 4, 6]))], rtol=0, atol=1e-9)


def test_a_held_level_is_let_go():
    # From (1, x): g2' = lam - 1 while g1 is held, until g2 = 1 - lam; then both relax.
    lam, x, t = 0.6, 0.9, np.linspace(0, 8, 400)
    flow = queues(lam, [1.0, x], t)
    let_go = (x - 1 + lam) / (1 - lam)
    since = np.maximum(t - let_go, 0)
    relaxing = (1 - lam) * np.exp(-since)
    second = np.where(t < let_go, x - (1 - lam) * t, relaxing)
    first = np.where(t < let_go, 1, lam + relaxing * (1 + since))
    assert np.abs(flow.values[:, :2] - np.column_stack([first, second])).max() < 1e-9
    assert not flow.values[:, 2:].any()
    v = np.where(t < let_go, lam * t - t + (x * t - (1 - lam) * t**2 / 2), 0)
    early = t < let_go
    assert np.abs(flow.pushed[early, 0] - v[early]).max() < 1e-9


@pytest.mark.parametrize("start", [[1.0, 0.3], [1.0, 1.0, 1.0], [0.4]])
def test_at_arrival_rate_one_the_last_level_is_anything(start):
    flow = queues(1.0, start, [0.0, 40.0])
    if start[0] == 1:  # a fixed point of the continuum
        assert np.abs(flow.values[1] - flow.values[0]).max() < 1e-9
    else:
        assert abs(flow.values[1, 0] - 1) < 1e-9


@pytest.mark.parametrize("lam", [0.7, 1.0, 1.3])
def test_the_flow_solves_the_integral_equation_with_the_reflection_map(lam):
    """Independent of the events: x_i is the reflected path of its own equation."""
    t = np.linspace(0, 4, 20001)
    start = np.array([1.0, 0.8, 0.8, 0.3, 0.1, 0.0])
    flow = queues(lam, start, t)
    drift = flow.values @ DEPARTURES.T
    steps = np.diff(t)[:, np.newaxis] * (drift[1:] + drift[:-1]) / 2
    integral = np.vstack([np.zeros(LEVELS), np.cumsum(steps, axis=0)])
    into = lam * t
    for i in range(LEVELS):
        reflected, pushed = reflect(start[i] + integral[:, i] + into, 1.0)
        # The trapezoid rule's error, h^2/12 a unit of time, and once h^2 at a kink.
        assert np.abs(reflected - flow.values[:, i]).max() < 1e-6
        assert np.abs(pushed - flow.pushed[:, i]).max() < 1e-6
        into = pushed


def test_unequal_barriers_and_rates():
    # Alone below barriers 1 and 2, with departures at rates 2 and 1: (5 - 2) = 3 flow on.
    flow = constrained_flow(np.diag([-2.0, -1.0]), 5.0, [1.0, 2.0], [1.0, 0.0], [0.0, 0.5, 4.0])
    full = -math.log(1 - 2 / 3)
    assert np.allclose(flow.values[1], [1, 3 * (1 - math.exp(-0.5))], atol=1e-9)
    assert np.allclose(flow.values[2], [1, 2], atol=1e-9)
    assert abs(flow.pushed[2, 1] - (4 - full)) < 1e-8


def test_at_time_zero_alone_nothing_happens():
    flow = queues(1.0, [0.5], [0.0])
    assert flow.values[0].tolist() == [0.5, 0, 0, 0, 0, 0]
    assert not flow.pushed.any()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rates": np.eye(3)}, "belong together"),
        ({"start": [1.5, 0.0]}, "above the barrier"),
        ({"times": [1.0, 0.5]}, "increasing list"),
        ({"times": []}, "one at least"),
        ({"inflow": -1.0}, "inflow"),
    ],
)
def test_a_wrong_argument_is_refused(change, words):
    given = {
        "rates": -np.eye(2),
        "inflow": 1.0,
        "barrier": [1.0, 1.0],
        "start": [0.0, 0.0],
        "times": [0.0, 1.0],
    }
    with pytest.raises(ParameterError, match=words):
        constrained_flow(**(given | change))


def test_a_path_of_no_numbers_is_refused():
    with pytest.raises(ParameterError, match="at one time at least"):
        reflect([], 1.0)
    with pytest.raises(ParameterError, match="numbers"):
        reflect([math.nan], 1.0)


def test_the_last_time_may_be_that_of_a_release():
    """There the event of the release found itself again and again in what was left of the time."""
    times = [0.999, 1.000000000033335]
    near = queues(0.7, [1.0, 0.6], times).values[-1]
    beyond = queues(0.7, [1.0, 0.6], [0.999, 1.001]).values[-1]
    assert near[0] == pytest.approx(1.0, abs=1e-6)
    assert np.abs(near - beyond).max() < 2e-3
