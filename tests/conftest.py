"""What tests in several folders share."""

import signal

import pytest


@pytest.fixture
def interruptible():
    """Let SIGINT interrupt this process and those it starts.

    What a script puts in the background is told to ignore it, and so are all that come from it.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
