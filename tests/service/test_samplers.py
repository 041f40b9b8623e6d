"""Samplers against their own law, with the power to see a fault of one per cent.

For a law and the same law with a fault, the share of each bin is known. What tells the two apart
best is the sum over the draws of the ratio of these shares (Neyman and Pearson); in units of its
standard deviation under the right law it is z, and under the fault z is around
``sqrt(size) * far``, where far squared is the chi-square distance of the two. A right sampler goes
beyond 4.5 with probability 7e-6, a faulty one stays within with probability 0.6 % or less, as the
fault is 7 away or more: asserted for every law and fault. Where a draw is a function of one number
of the stream, the function is known: no statistics is needed.
"""

import math

import numpy as np
import pytest
from oracles import shown
from scipy import special, stats

from supermarket.service import (
    BoundedPareto,
    Deterministic,
    Empirical,
    Erlang,
    Exponential,
    Gamma,
    GivenScipy,
    GivenSurvival,
    Hyperexponential,
    Lognormal,
    Lomax,
    Pareto,
    PhaseType,
    Uniform,
    Weibull,
)

SIZE = 1_000_000  # draws at a time
SIDE = [[-1e4, 0], [0, -1]]


def phases(probability, slow):
    """Return two phases, the slow one with this probability and rate; their mean is 1."""
    rest = 1 - probability
    return Hyperexponential([probability, rest], [slow, rest / (1 - probability / slow)])


LOOP = PhaseType([0.5, 0.5, 0], [[-3.0, 2.0, 0.0], [0.5, -1.0, 0.25], [0.0, 0.0, -2.0]])
FAULTS = [
    (Gamma(0.3), Gamma(0.303)),
    (Gamma(0.5), Gamma(0.505)),
    (Gamma(7.5), Gamma(7.575)),
    (Erlang(3), Gamma(3.03)),
    (PhaseType([0.5, 0.5], SIDE), PhaseType([0.505, 0.495], SIDE)),
    (PhaseType([0.5, 0.5], SIDE), PhaseType([0.5, 0.5], [[-10100, 0], [0, -1]])),
    (PhaseType([0.5, 0.5], SIDE), PhaseType([0.5, 0.5], [[-1e4, 0], [0, -1.01]])),
    (PhaseType([1, 0], [[-1e4, 5e3], [0, -1]]), PhaseType([1, 0], [[-1e4, 5050], [0, -1]])),
    (PhaseType([0, 1], [[-1, 0], [5e3, -1e4]]), PhaseType([0, 1], [[-1, 0], [5050, -1e4]])),
    (phases(0.25, 0.3), phases(0.2525, 0.3)),
    (phases(0.25, 0.3), PhaseType([0.2525, 0.7475], [[-0.3, 0], [0, -4.5]])),  # another mean
    (phases(0.25, 0.3), phases(0.25, 0.303)),
    (phases(0.5, 0.501), phases(0.505, 0.506)),
    (GivenScipy(stats.invgauss(1.5)), GivenScipy(stats.invgauss(1.515))),
    (Empirical([1, 2, 3, 4]), Empirical([1] * 101 + [2] * 99 + [3] * 100 + [4] * 100)),
]
SAME = [LOOP, *dict.fromkeys(law for law, _ in FAULTS)]
FAULTS += [(law, law.scaled(1.01 * law.mean)) for law in [*SAME, Gamma(0.5).scaled(3)]]


def shares(law, edges):
    """Return the probability of each bin: up to the first edge, between two, beyond the last."""
    return -np.diff(law.survival(edges), prepend=1, append=0)


@pytest.mark.parametrize(("law", "fault"), FAULTS, ids=lambda law: str(law)[:40])
def test_a_fault_of_one_per_cent_is_seen(law, fault):
    p = special.expit(np.linspace(-13, 13, 300))
    edges = np.unique([law.inverse_survival(p), fault.inverse_survival(p)])
    share, wrong = shares(law, edges), shares(fault, edges)
    seen = share > 0
    weight = wrong[seen] / share[seen] - 1
    far = math.sqrt(np.sum(share[seen] * weight**2))
    size = SIZE * min(max(math.ceil((7 / far) ** 2 / SIZE), 1), 4)
    assert math.sqrt(size) * far > 7

    def z(sampled):
        counts = np.zeros(edges.size + 1)
        for seed in range(size // SIZE):
            sample = sampled.sample(np.random.default_rng([5, seed]), SIZE)
            counts += np.bincount(np.searchsorted(edges, sample), minlength=counts.size)
        return np.sum(weight * (counts[seen] - size * share[seen])) / (math.sqrt(size) * far)

    assert abs(z(law)) < 4.5
    assert z(fault) > 4.5


@pytest.mark.parametrize(
    "law",
    [
        Exponential(),
        Lomax(1.5),
        Lomax(2.5),
        Pareto(1.3),
        Weibull(0.4),
        Weibull(3),
        Uniform(),
        Lognormal(0.1),
        Lognormal(2),
        BoundedPareto(1.5, 1000),
        BoundedPareto(1, 9),
        GivenSurvival(lambda s: (1 + s) ** -2.5),
        Lomax(2.5).scaled(3),
        Weibull(3).scaled(0.1),
    ],
    ids=shown,
)
def test_samples_are_quantiles_of_the_stream(law):
    """Exact, without any false alarm: survival of a draw is the number that it is made of."""
    plain = law.law if hasattr(law, "law") else law
    sample = law.sample(np.random.default_rng(7), 10_000)
    rng = np.random.default_rng(7)
    if isinstance(plain, Exponential | Lomax | Pareto | Weibull):
        wanted = np.exp(-rng.standard_exponential(10_000))
    elif isinstance(plain, Lognormal):
        wanted = special.ndtr(-rng.standard_normal(10_000))
    elif isinstance(plain, BoundedPareto):
        wanted = rng.random(10_000)
    else:
        wanted = 1 - rng.random(10_000)
    np.testing.assert_allclose(law.survival(sample), wanted, rtol=1e-9)


def test_constant_times_and_measured_ones():
    rng = np.random.default_rng(3)
    assert np.all(Deterministic().sample(rng, 1000) == 1)
    law = Empirical([3.0, 1.0, 2.0])
    sample = law.sample(np.random.default_rng(3), 1000)
    wanted = np.random.default_rng(3).integers(3, size=1000) + 1
    np.testing.assert_array_equal(sample, wanted)
