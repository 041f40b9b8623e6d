"""What the results of a notebook depend on, and whether any of that has changed.

Only what can change a number or a figure counts: of a notebook its code, of a module of the package
what it compiles to, of the ledger what verdicts take from it, of the libraries the versions of
those that were loaded. So prose, comments, docstrings and line breaks repeat nothing. Contents
count, not dates: neither does a fresh checkout, or a saved but unchanged file.
"""

import ast
import json
import platform
from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path
from typing import Any

import yaml

from tools import digest

# What no verdict and no table of verdicts takes from an entry of the ledger.
PROSE = ("box", "hypotheses", "pages", "predicts", "statement", "unshown")


class Sources:
    """What a project's results may depend on, as it is now.

    Made before the first notebook starts, so that a file saved while one runs counts as changed.

    Parameters
    ----------
    root : Path
        The project.
    """

    def __init__(self, root: Path) -> None:
        self.entries = entries(root)
        self._texts = {
            _module(root, file): file.read_text(encoding="utf-8")
            for file in (root / "supermarket").rglob("*.py")
        }

    def modules(self, names: Iterable[str]) -> dict[str, dict[str, str] | None]:
        """Return two hashes of each module: of its text, and of what it compiles to."""
        return {
            name: {"text": _sha(text), "meaning": _sha(meaning(text))}
            if (text := self._texts.get(name)) is not None
            else None
            for name in names
        }


def beforehand(notebook: Path, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return all that a result depends on and that is known before the run."""
    return {
        "code": _sha(json.dumps(code(notebook))),
        "parameters": parameters,
        "python": platform.python_version(),
        "machine": [platform.system(), platform.machine()],
    }


def libraries(loaded: Iterable[str]) -> dict[str, str]:
    """Return the version of each distribution that holds one of these top-level modules."""
    holding = _distributions()
    return {name: version(name) for module in loaded for name in holding.get(module, ())}


def same_modules(recorded: dict[str, Any], root: Path) -> bool:
    """Tell whether every module still is, or at least compiles to, what is on record."""
    return all(_same_module(hashes, _file(root, name)) for name, hashes in recorded.items())


def same_libraries(recorded: dict[str, str]) -> bool:
    """Tell whether the libraries on record are installed at the same versions."""
    try:
        return all(_version(name) == number for name, number in recorded.items())
    except PackageNotFoundError:
        return False


def _same_module(hashes: dict[str, str] | None, file: Path) -> bool:
    now = digest(file)
    if hashes is None or now is None:
        return hashes is None and now is None
    if now == hashes["text"]:  # the same to the letter: nothing to parse
        return True
    return _sha(meaning(file.read_text(encoding="utf-8"))) == hashes["meaning"]


def code(notebook: Path) -> list[Any]:
    """Return what a notebook executes, cell by cell, without comments and layout.

    The cell of the parameters is taken to the letter: its comments are their meanings, which the
    page shows in a table.
    """
    return [
        text if "parameters" in cell.get("metadata", {}).get("tags", []) else meaning(text)
        for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        if cell["cell_type"] == "code"
        for text in ["".join(cell["source"])]
    ]


def meaning(text: str) -> str:
    """Return what Python makes of a source: its syntax tree without docstrings and `__all__`."""
    try:
        tree = ast.parse(text)
    except SyntaxError:  # of IPython, or broken
        return text
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if ast.get_docstring(node, clean=False) is not None:
                node.body = node.body[1:]
            node.body = [part for part in node.body if not _is_a_list_of_names(part)]
    return ast.dump(tree)


def _is_a_list_of_names(node: ast.stmt) -> bool:
    target = node.targets[0] if isinstance(node, ast.Assign) else None
    return isinstance(target, ast.Name) and target.id == "__all__"


def entries(root: Path) -> dict[str, str]:
    """Return a hash of what verdicts take from each entry of the ledger, by its id."""
    return _hashed((root / "supermarket" / "statements.yml").read_text(encoding="utf-8"))


@cache
def _hashed(text: str) -> dict[str, str]:
    ledger = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    hashes = {}
    for entry in ledger["statements"]:
        judged = {key: value for key, value in entry.items() if key not in PROSE}
        whole = [judged, ledger["papers"][entry["paper"]]]
        hashes[entry["id"]] = _sha(json.dumps(whole, sort_keys=True, default=str))
    return hashes


@cache
def _distributions() -> dict[str, list[str]]:
    return dict(packages_distributions())  # reads the list of files of all that is installed


@cache
def _version(name: str) -> str:
    return version(name)


def _module(root: Path, file: Path) -> str:
    parts = file.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _file(root: Path, name: str) -> Path:
    path = root.joinpath(*name.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _sha(text: str) -> str:
    return sha256(text.encode()).hexdigest()
