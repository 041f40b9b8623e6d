"""Coupled copies."""
