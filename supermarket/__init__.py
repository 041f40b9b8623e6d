"""Predictions and exact chains for the supermarket model, JSQ(d).

Names are imported when they are first used. So a notebook loads just the modules that it needs,
and the book's build knows from the loaded modules what to rerun after an edit.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "ParameterError": "validation",
    "Supermarket": "models.jsq",
    "PoolSystem": "pools",
    "JacksonNetwork": "stations",
    "Schedule": "runs.schedule",
    "Run": "runs.run",
    "simulate": "runs.front",
    "couple": "chains.coupled",
    "fixed_point": "theory.fixed_point",
    "log_fixed_point": "theory.fixed_point",
    "k_lambda_d": "theory.fixed_point",
    "max_queue_hypothesis": "theory.fixed_point",
    "mean_queue": "theory.fixed_point",
    "mean_sojourn": "theory.fixed_point",
    "relaxation_time": "theory.fixed_point",
    "trajectory": "theory.fixed_point",
    "refined_mean_field": "theory.refined_mean_field",
    "cavity": "theory.cavity",
    "leap": "chains.leaping",
    "small_chain": "theory.small_chain",
    "server_pools": "pools",
    "log_memory_fixed_point": "theory.memory",
    "memory_exponent": "theory.memory",
    "memory_max_queue": "theory.memory",
    "memory_trajectory": "theory.memory",
    "remembered_law": "theory.memory",
    "jackson_network": "stations",
    "network_fixed_point": "theory.jackson",
    "log_network_fixed_point": "theory.jackson",
    "network_trajectory": "theory.jackson",
    "read_sweep": "lab.results",
    "ServiceLaw": "service",
    "Exponential": "service",
    "Deterministic": "service",
    "Erlang": "service",
    "Gamma": "service",
    "Hyperexponential": "service",
    "Uniform": "service",
    "Weibull": "service",
    "Lognormal": "service",
    "Lomax": "service",
    "Pareto": "service",
    "BoundedPareto": "service",
    "PhaseType": "service",
    "hill_tail_index": "service",
}

__all__ = ["__version__", *_HOME]  # noqa: PLE0604  (the names are strings, built above)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
