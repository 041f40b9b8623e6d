"""Predictions and exact chains for the supermarket model, JSQ(d).

Names are imported when they are first used. So a notebook loads just the modules that it needs,
and the book's build knows from the loaded modules what to rerun after an edit.
"""

import re
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

__version__ = "0.2.0"

_ROOMS = ("models", "service", "limits", "runs", "estimate")
_MORE = {"ParameterError": "validation", "read_sweep": "experiment.results"}
_LIST = re.compile(r"^__all__ = \[(.*?)\]$", re.MULTILINE | re.DOTALL)


@cache
def homes() -> dict[str, str]:
    """Return the module of each public name: those that modules of the rooms list in `__all__`.

    Examples
    --------
    >>> import supermarket
    >>> supermarket.homes()["fixed_point"]
    'limits.mean_field.fixed_point'
    """
    found = dict(_MORE)
    here = Path(__file__).parent
    for file in sorted(file for room in _ROOMS for file in (here / room).rglob("*.py")):
        for listed in _LIST.findall(file.read_text(encoding="utf-8")):
            module = ".".join(file.relative_to(here).with_suffix("").parts)
            names = re.findall(r'"(\w+)"', listed)
            found |= dict.fromkeys(names, module.removesuffix(".__init__"))
    return found


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return ["__version__", *homes()]
    if name.startswith("_") or name not in homes():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{homes()[name]}"), name)


def __dir__() -> list[str]:
    return sorted(["__version__", *homes()])
