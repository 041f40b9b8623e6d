"""The averaged limit: another route in many digits, the fast chain itself, and the exponent."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest

from supermarket import ParameterError, Supermarket
from supermarket.limits.mean_field.memory import (
    log_memory_fixed_point,
    memory_exponent,
    memory_max_queue,
    memory_relaxation_time,
    memory_trajectory,
    remembered_law,
)


@pytest.mark.parametrize(("lam", "d"), [(0.5, 1), (0.9, 2), (0.999, 1), (1 - 1e-9, 3), (1e-3, 5)])
def test_the_recursion_in_logs_against_the_balance_in_sixty_digits(lam, d):
    """v_{k+1} = lam Q_k v_k^d and the product for Q_k, as they stand, in decimal arithmetic."""
    with localcontext() as context:
        context.prec, context.Emin = 60, -(10**15)
        v, longer, expected = [Decimal(1)], Decimal(1), [0.0]
        for _ in range(8):
            v.append(Decimal(lam) * longer * v[-1] ** d)
            expected.append(float(v[-1].ln()))
            longer *= v[-1] ** d / (1 - d * (v[-2] - v[-1]) * v[-1] ** (d - 1))
    np.testing.assert_allclose(
        log_memory_fixed_point(Supermarket(math.inf, d, lam, policy="memory"), 8),
        expected,
        rtol=2e-14,
    )


@pytest.mark.parametrize("d", [1, 2, 3, 10])
def test_successive_logs_have_the_ratio_alpha(d):
    logs = log_memory_fixed_point(Supermarket(math.inf, d, 0.9, policy="memory"), 25)
    assert logs[25] / logs[24] == pytest.approx(memory_exponent(d), abs=1e-9)
    alpha = memory_exponent(d)
    assert alpha**2 - (2 * d + 1) * alpha + d == pytest.approx(0, abs=1e-12 * alpha**2)
    assert memory_exponent(1) == pytest.approx(((1 + math.sqrt(5)) / 2) ** 2, rel=1e-15)


def fast_chain(v, d, longest):
    """The matrix of the remembered length, every list of d fresh lengths one by one."""
    share = np.append(v, np.zeros(longest + 2 - len(v)))
    share = share[:-1] - share[1:]
    matrix = np.zeros((longest + 1, longest + 1))
    for m in range(longest + 1):
        for fresh in np.ndindex(*[longest + 1] * d):
            seen = sorted([m, *fresh])
            seen[0] += 1
            matrix[m, min(*seen, longest)] += np.prod(share[list(fresh)])
    return matrix


@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_remembered_law_is_left_unchanged_by_the_fast_chain(d):
    v = np.array([1.0, 0.8, 0.5, 0.45, 0.1])
    law = np.append(remembered_law(v, d), 0.0)
    matrix = fast_chain(v, d, len(v))
    assert law.sum() == pytest.approx(1, abs=1e-15)
    np.testing.assert_allclose(law @ matrix, law, atol=1e-15)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_slope_is_that_of_the_fast_chain(d):
    """dv_k/dt from the joins counted list by list, against a short step of the solver."""
    lam, v = 0.9, np.array([1.0, 0.8, 0.5, 0.3])
    law, share = remembered_law(v, d), v - np.append(v[1:], 0.0)
    joins = np.zeros(len(v) + 1)
    for m, *fresh in np.ndindex(*[len(v)] * (d + 1)):
        joins[min(m, *fresh) + 1] += law[m] * np.prod(share[list(fresh)])
    slope = lam * joins[1:4] - share[1:4]
    step = 1e-4
    after = memory_trajectory(Supermarket(math.inf, d, lam, policy="memory"), [step], start=v)[0]
    np.testing.assert_allclose((after[1:4] - v[1:]) / step, slope, atol=1e-3)


@pytest.mark.parametrize(("lam", "d"), [(0.7, 1), (0.9, 1), (0.9, 3)])
def test_the_way_ends_at_the_fixed_point(lam, d):
    start = [1.0, 1.0, 0.5]
    path = memory_trajectory(Supermarket(math.inf, d, lam, policy="memory"), [0, 400], start=start)
    np.testing.assert_allclose(path[0, :3], start)
    levels = path.shape[1] - 1
    expected = np.exp(
        log_memory_fixed_point(Supermarket(math.inf, d, lam, policy="memory"), levels)
    )
    np.testing.assert_allclose(path[1], expected, atol=1e-8)
    assert path[1, -1] < 1e-12
    np.testing.assert_allclose(
        memory_trajectory(Supermarket(math.inf, d, lam, policy="memory"), [0], start=start)[0],
        path[0],
        atol=1e-15,
    )


def test_near_saturation_it_falls_as_with_one_more_choice():
    spare = 1e-9
    for d in (1, 2, 5):
        logs = log_memory_fixed_point(Supermarket(math.inf, d, 1 - spare, policy="memory"), 4)
        np.testing.assert_allclose(logs[1:] / -spare, (d + 1.0) ** np.arange(4), rtol=1e-4)


def test_all_queues_alike():
    assert remembered_law([1.0, 1.0], 1).tolist() == [0.0, 1.0]
    assert remembered_law([1.0], 2).tolist() == [1.0]


def test_largest_level_that_some_queue_reaches():
    for n, lam, d in ((10, 0.8, 1), (10**9, 0.8, 2), (10**6, 0.9999, 1), (1, 0.5, 1)):
        k = memory_max_queue(Supermarket(n, d, lam, policy="memory"))
        logs = log_memory_fixed_point(Supermarket(math.inf, d, lam, policy="memory"), k + 1)
        assert logs[k] >= -math.log(n) > logs[k + 1]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: memory_exponent(0), "d = 0 is out of range"),
        (
            lambda: log_memory_fixed_point(Supermarket(math.inf, 2, 1.0, policy="memory"), 3),
            "lam = 1 is out of range",
        ),
        (
            lambda: log_memory_fixed_point(Supermarket(math.inf, 2, 0.5, policy="memory"), 600),
            "beyond the largest double: choose levels <",
        ),
        (lambda: remembered_law([0.9, 0.5], 1), "profile must be a profile: 1 first"),
        (
            lambda: memory_trajectory(
                Supermarket(math.inf, 1, 0.5, policy="memory"), [1], start=[1, 0.2, 0.3]
            ),
            "start must be a profile",
        ),
        (
            lambda: memory_trajectory(Supermarket(math.inf, 1, 0.5, policy="memory"), [2, 1]),
            "times must be an increasing list",
        ),
        (
            lambda: memory_trajectory(Supermarket(math.inf, 1, 0.5, policy="memory"), [-1]),
            "none below 0",
        ),
    ],
)
def test_bad_input_gets_one_sentence(call, sentence):
    with pytest.raises(ParameterError, match=sentence) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("lam", [1e-17, 1e-12, 1e-3])
def test_few_jobs_and_one_fresh_queue(lam):
    # v_2 = lam**2 exactly: Q_1 = 1 for d = 1.
    assert log_memory_fixed_point(Supermarket(math.inf, 1, lam, policy="memory"), 2)[
        2
    ] == pytest.approx(2 * np.log(lam), rel=1e-14)
    assert remembered_law([1.0, lam], 1).tolist() == pytest.approx([0.0, 1.0], abs=1e-15)


@pytest.mark.parametrize(("lam", "d"), [(0.5, 1), (0.8, 2), (0.9, 1)])
def test_the_slowest_mode_of_the_equations_is_what_a_path_forgets_by(lam, d):
    time = memory_relaxation_time(Supermarket(math.inf, d, lam, policy="memory"))
    off = memory_trajectory(
        Supermarket(math.inf, d, lam, policy="memory"), [6 * time, 7 * time], start=[1, 1, 0.2]
    )
    fixed = np.exp(
        log_memory_fixed_point(Supermarket(math.inf, d, lam, policy="memory"), off.shape[1] - 1)
    )
    far, near = (off - fixed)[:, 1]
    assert math.log(far / near) == pytest.approx(1, abs=0.01)
