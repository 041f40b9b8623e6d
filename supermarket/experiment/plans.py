"""The plan of a sweep, as `sweep.json` in its folder keeps it."""

import json
from pathlib import Path
from typing import Any

from supermarket.experiment.verdicts import KEYS
from supermarket.validation import ParameterError

__all__ = ["plan"]

# The keys of a verdict in a row, but only what is its own of its parameters: others have columns.
VERDICT = tuple("at" if key == "parameters" else key for key in KEYS)


def plan(out: Path) -> dict[str, Any]:
    """Return what `sweep.json` says: experiment, grid, replicas, seed, points.

    Raises
    ------
    ParameterError
        If there is none, or its verdicts are of another form than this version's.

    Examples
    --------
    >>> from pathlib import Path
    >>> from supermarket.experiment.plans import plan
    >>> plan(Path("here"))
    Traceback (most recent call last):
        ...
    supermarket.validation.ParameterError: here is not the folder of a sweep: it has no sweep.json.
    """
    try:
        text = (out / "sweep.json").read_text(encoding="utf-8")
    except (OSError, ValueError):
        raise ParameterError(f"{out} is not the folder of a sweep: it has no sweep.json.") from None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ParameterError(f"{out}/sweep.json is damaged: start the sweep in a new folder.")
    if found.get("verdict") != list(VERDICT):
        raise ParameterError(
            f"{out} holds a sweep of another version of this package, whose verdicts have another "
            "form: sweep again, into a new folder."
        )
    return found
