"""Measurements: one `simulate`, its schedule and its result."""
