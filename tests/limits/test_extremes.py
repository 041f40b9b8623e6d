"""Very small and very large parameters: the right number, from a series or from many digits."""

import math
from fractions import Fraction

import numpy as np
import pytest

from supermarket import (
    Deterministic,
    Empirical,
    Erlang,
    Exponential,
    Gamma,
    Lomax,
    ParameterError,
    Supermarket,
    busy_control,
    cavity,
    cavity_down_to,
    fixed_point,
    fixed_point_shorter,
    jackson_network,
    mean_queue_correction,
    memory_trajectory,
    modes,
    network_trajectory,
    profile_correction,
    relaxation_time,
    smallest_eps,
    stationary_covariance,
    trajectory,
)

INF = math.inf


@pytest.mark.parametrize("lam", [1e-300, 1e-100, 1e-20])
def test_a_trickle_of_arrivals(lam):
    """v_1 = lam (1 - exp(-t)), to lam**2; the solver's tolerance is absolute, 1e-12."""
    times = [0.5, 20.0]
    expected = lam * -np.expm1(-np.array(times))
    net = jackson_network([lam], [[0.0]], 2)
    remembering = Supermarket(INF, 1, lam, policy="memory")
    for v in (
        trajectory(Supermarket(INF, 2, lam), times),
        memory_trajectory(remembering, times),
        network_trajectory(net, times)[:, 0],
    ):
        assert np.all(v[:, 0] == 1)
        assert v[:, 1] == pytest.approx(expected, abs=1e-12)
        assert np.all(v[:, 2:] == pytest.approx(0, abs=1e-12))


@pytest.mark.parametrize("time", [1e-320, 1e-150, 1e-99, 1e-30])
def test_the_first_instant(time):
    """v_1 = lam t, to t**2."""
    for v in (
        trajectory(Supermarket(INF, 2, 0.9), [time]),
        memory_trajectory(Supermarket(INF, 1, 0.9, policy="memory"), [time]),
        network_trajectory(jackson_network([0.9], [[0.0]], 2), [time])[:, 0],
    ):
        assert v[0, 1] == pytest.approx(0.9 * time, rel=1e-6)


@pytest.mark.parametrize("time", [1e6, 1e15])
def test_long_after(time):
    shop = Supermarket(INF, 2, 0.9)
    end = fixed_point(shop, 8)
    assert trajectory(shop, [time], levels=20)[0, :9] == pytest.approx(end, abs=1e-8)
    with pytest.raises(ParameterError, match=r"times = 1e\+308 is out of range"):
        trajectory(shop, [1e308])


@pytest.mark.parametrize("lam", [1e-9, 1e-6])
def test_relaxation_at_small_rates(lam):
    """1 / (1 - s / 2 + ...)**2 of the 2 x 2 matrix ((1, -s), (0, 1)), s**2 = 2 lam**2.

    Its smaller singular value is (sqrt(4 + s**2) - s) / 2; the next level changes it by lam**6.
    """
    s = math.sqrt(2) * lam
    least = (math.sqrt(4 + s * s) - s) / 2
    assert relaxation_time(Supermarket(INF, 2, lam)) == pytest.approx(least**-2, rel=1e-14)


def test_relaxation_of_one_choice_next_to_saturation():
    """(1 + sqrt(lam))**2 / (1 - lam)**2, with the difference exact."""
    for lam in (1 - 1e-16, 1 - 1e-9, 1 - 1e-7):
        spare = float(1 - Fraction(lam))
        expected = (2 - spare / 2 - spare**2 / 8) ** 2 / spare**2
        assert relaxation_time(Supermarket(INF, 1, lam)) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize(
    ("lam", "d", "expected"),
    [  # with 60 digits, by the eigenvectors of the symmetric matrix, lam the double itself
        (0.9, 2, 3.98642698717557),
        (0.999, 2, 498.399009076228),
        (1 - 1e-6, 2, 500040.703819731),
        (1 - 1e-9, 2, 500044747.341939),
        (1 - 1e-12, 2, 500055277878.769),
        (1 - 1e-12, 50, 381916138088.826),
        (1 - 1e-14, 2, 50036713047555.1),
        (1 - 1e-16, 2, 4.50390875301183e15),
        (1 - 1e-16, 3, 4.53182573703389e15),
    ],
)
def test_the_correction_next_to_saturation(lam, d, expected):
    rel = 2e-12 if lam < 0.9995 else 1e-14
    assert mean_queue_correction(Supermarket(INF, d, lam)) == pytest.approx(expected, rel=rel)


def test_a_correction_of_levels_that_nobody_reaches():
    found = profile_correction(Supermarket(INF, 2, 0.7), 10**6)
    assert found.size == 10**6 + 1
    assert np.all(found[40:] == 0)


def test_what_a_double_does_not_tell_is_refused():
    with pytest.raises(ParameterError, match=r"1 - lam = .* choose 1e-09 <= 1 - lam"):
        busy_control(Supermarket(INF, 2, 1 - 1e-12))
    with pytest.raises(ParameterError, match="beyond the largest double"):
        modes(Supermarket(INF, 400, 0.5), 200)
    with pytest.raises(ParameterError, match="must be above 0"):
        smallest_eps(Supermarket(10, 10, 0.9), [0])


@pytest.mark.parametrize("lam", [1e-200, 1e-17, 1e-10, 1e-4, 0.3])
def test_small_rates_keep_their_digits(lam):
    """lam**(1 + d) in 1 - pi(2) is out of sight; Var u_1 is 2 lam (1 - lam**d) / (2 (1 + a))."""
    shop = Supermarket(INF, 10, lam)
    assert 1 - fixed_point_shorter(shop, 1)[1] == pytest.approx(lam, abs=1e-15)
    covariance = stationary_covariance(shop)
    assert np.all(np.isfinite(covariance))
    if lam < 1e-3:
        assert covariance[1, 1] == pytest.approx(lam, rel=1e-14)


@pytest.mark.parametrize("service", [Exponential(), Erlang(2), Deterministic()], ids=repr)
@pytest.mark.parametrize("d", [1001, 10**6, 2**53])
def test_so_many_choices_that_hardly_anybody_waits(service, d):
    """P_2 = lam**(d + 1) E R of order, so log P_2 is d log lam to a few units; P_1 = lam."""
    found = cavity(Supermarket(INF, d, 0.7, service=service), 2)
    assert found.tail[1] == 0.7
    assert found.log_tail[2] == pytest.approx(d * math.log(0.7), abs=12, rel=1e-12)


def test_many_choices_with_exponential_service():
    """log P_2 = (1 + d) log lam, at 1000 choices by a loop and at 1001 by the closed form."""
    for d in (999, 1000, 1001, 1002, 10**6):
        found = cavity(Supermarket(INF, d, 0.999), 2)
        assert found.log_tail[2] == pytest.approx((1 + d) * math.log(0.999), rel=1e-12)


def test_panels_at_a_load_of_1e_9():
    """Gamma(1) is exponential: log P_k = (2**k - 1) log lam."""
    found = cavity(Supermarket(INF, 2, 1e-9, service=Gamma(1.0)), 4, method="panels")
    expected = np.array([0, 1, 3, 7, 15]) * math.log(1e-9)
    assert found.log_tail == pytest.approx(expected, rel=1e-12)
    steep = cavity(Supermarket(INF, 2, 1e-9, service=Gamma(1e4)), 3, method="panels")
    # P_2 is lam_1 times the mean of the work left: half a service, at a rate of lam**3.
    assert math.exp(steep.log_tail[2] - 3 * math.log(1e-9)) == pytest.approx(0.50005, rel=1e-6)


def test_a_tail_of_one_part_in_1e12_below_saturation():
    """Exponential: log P_k = (2**k - 1) log lam, which 1e-9 is below at 2**45."""
    assert cavity_down_to(Supermarket(INF, 2, 1 - 1e-12), 1e-9).levels >= 44


def test_no_job_leaves_before_its_own_service_is_over():
    """Exactly 1 before the least service; then never below the chance of a longer service."""
    empirical = Empirical((1.0, 2.0, 7.0)).scaled(1.0)
    for service, least in ((Deterministic(), 0.999), (empirical, 0.299)):
        found = cavity(Supermarket(INF, 2, 0.7, service=service), 8)
        early = found.sojourn_survival([0.0, 1e-320, 1e-9, 0.2, least])
        assert early.tolist() == [1.0] * 5
        times = np.array([0.5, 1.0, 1.001, 1.5, 2.0])
        late = found.sojourn_survival(times)
        assert np.all((late >= service.survival(times)) & (late <= 1))


@pytest.mark.book  # half a minute without the JIT
def test_exponential_sojourns_early_late_and_from_any_depth():
    """A job that meets k leaves after an Erlang time of k + 1 stages: summed level by level."""
    times = np.array([1e-320, 1e-14, 1e-6, 0.1, 1.0, 5.0, 20.0])
    u = fixed_point(Supermarket(INF, 2, 0.7), 12)
    met = u[:-1] ** 2 - u[1:] ** 2
    stages = np.array([times**k / math.factorial(k) for k in range(13)]) * np.exp(-times)
    exact = sum(share * stages[: k + 1].sum(axis=0) for k, share in enumerate(met))
    for levels in (9, 20, 40):
        found = cavity(Supermarket(INF, 2, 0.7), levels).sojourn_survival(times)
        assert found == pytest.approx(exact, abs=2e-10)


@pytest.mark.parametrize("time", [1e3, 1e12, 1e99])
def test_a_sojourn_that_long(time):
    """Nobody stays so long with exponential service; with a power law more levels are needed."""
    assert cavity(Supermarket(INF, 2, 0.7), 9).sojourn_survival(time) == pytest.approx(0, abs=1e-9)
    heavy = cavity(Supermarket(INF, 2, 0.7, service=Lomax(2.5)), 9)
    with pytest.raises(ParameterError, match="levels = 9 is too few"):
        heavy.sojourn_survival(time)
    with pytest.raises(ParameterError, match="out of range"):
        heavy.sojourn_survival(1e308)
