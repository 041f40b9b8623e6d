"""Service-time laws, each of mean 1 unless it is scaled.

`law` says what every law can do. `phases` holds the exponential law and what is built of
exponential phases, `families` the light-tailed families, `powers` the power-law tails, and `given`
the laws that a reader brings: a survival function, measured times, a distribution of scipy.stats.
"""

from supermarket.service.families import Deterministic, Erlang, Gamma, Lognormal, Uniform, Weibull
from supermarket.service.given import Empirical, GivenScipy, GivenSurvival, hill_tail_index
from supermarket.service.law import ServiceLaw
from supermarket.service.phases import Exponential, Hyperexponential, PhaseType
from supermarket.service.powers import BoundedPareto, Lomax, Pareto

__all__ = [
    "BoundedPareto",
    "Deterministic",
    "Empirical",
    "Erlang",
    "Exponential",
    "Gamma",
    "GivenScipy",
    "GivenSurvival",
    "Hyperexponential",
    "Lognormal",
    "Lomax",
    "Pareto",
    "PhaseType",
    "ServiceLaw",
    "Uniform",
    "Weibull",
    "hill_tail_index",
]
