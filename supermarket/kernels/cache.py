"""Where things are kept from one process to another: machine code, and runs of the book."""

import os
from pathlib import Path

from platformdirs import user_cache_path

KEPT = 30.0  # days that something is kept unused


def root() -> Path | None:
    """Return the folder of all that is kept, None for nowhere.

    The environment variable SUPERMARKET_CACHE names it, or is ``off``; else it is the user's cache
    folder.
    """
    named = os.environ.get("SUPERMARKET_CACHE")
    if named == "off":
        return None
    try:
        return Path(named) if named else user_cache_path("supermarket", appauthor=False)
    except (OSError, RuntimeError):  # no home
        return None
