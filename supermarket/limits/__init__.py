"""Predictions: closed forms, recursions and differential equations, a folder a part of the book."""
