"""Mixing, exactly, where the chain is small enough."""
