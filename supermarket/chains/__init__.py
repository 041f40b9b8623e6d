"""Measurements: the exact simulators, one module a model."""
