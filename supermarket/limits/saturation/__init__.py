"""Arrival rate tending to one: what Brightwell & Luczak prove, and what is near it."""
