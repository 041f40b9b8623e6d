"""What tests in several folders share."""

import signal

import pytest
from plain import is_plain


def pytest_addoption(parser):
    help_ = "files of tests that can reach a kernel: run all files (default), only these, or none"
    parser.addoption("--long", action="store_true", help="more of all that is drawn: hours")
    parser.addoption("--kernels", choices=["all", "only", "none"], default="all", help=help_)


def pytest_ignore_collect(collection_path, config):
    """Leave files out before they are imported, which takes longer than most tests."""
    wanted = config.getoption("kernels")
    if wanted == "all" or collection_path.suffix != ".py":
        return None
    return True if is_plain(collection_path) == (wanted == "only") else None


@pytest.fixture
def long(request):
    """Whether there are hours rather than minutes."""
    return request.config.getoption("long")


@pytest.fixture
def interruptible():
    """Let SIGINT interrupt this process and those it starts.

    What a script puts in the background is told to ignore it, and so are all that come from it.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
