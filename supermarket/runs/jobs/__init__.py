"""Single jobs, with any law of the service time."""
