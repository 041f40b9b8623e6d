"""Predictions: closed forms, recursions and ODEs, one module a paper topic."""
