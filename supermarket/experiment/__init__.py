"""What every notebook does: check its parameters, collect verdicts, say what made them.

A notebook calls `begin` in the first cell after its parameters, adds verdicts as it goes, and ends
with `finish`, which writes ``verdicts/<name>.json`` and ``provenance/<name>.json`` below the folder
named by the environment variable SUPERMARKET_BUILD (``build`` in the working folder if unset).
Whoever executes a notebook file says in SUPERMARKET_NAME how it is called.
"""

import ast
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import supermarket
from supermarket.estimate.intervals import Computed, Interval
from supermarket.experiment.files import write
from supermarket.experiment.parameters import declared, kind, plain
from supermarket.experiment.verdict_table import ParameterTable, Table, VerdictTable
from supermarket.experiment.verdicts import judge
from supermarket.validation import ParameterError, nearest, said

__all__ = ["Experiment", "begin"]

Result = TypeVar("Result")

# How the work is spread, not what comes out: kept out of the verdict data.
_SETTINGS = ("threads",)
_NOT_LIBRARIES = {"supermarket", "__main__", *sys.stdlib_module_names, *sys.builtin_module_names}
_LIBRARIES = ("numpy", "numba", "scipy", "pandas", "matplotlib")


@dataclass(frozen=True)
class Experiment:
    """One run of one notebook: its parameters, and the verdicts found so far.

    Attributes
    ----------
    name : str
        The notebook's file name without its ending.
    parameters : dict
        Name to checked value, without those that only say how the work is spread.
    table : Table
        The parameters with their meanings, for the page.
    threads : int
        Runs side by side, the parameter of that name or 1.
    verdicts : list of dict
        One per claim, in order, with the keys `supermarket.experiment.verdicts.KEYS`.

    Examples
    --------
    >>> from supermarket.experiment import begin
    >>> from supermarket.estimate.intervals import Interval
    >>> run = begin("mine", {"__annotations__": {"seed": int}, "seed": 1})
    >>> found = Interval(0.7287, 0.7270, 0.7304, 0.99)
    >>> run.verdict("π(2)", "bl-fixed-point", 0.729, found, lam=0.9, d=2, k=2)
    'holds'
    >>> run.verdicts[0]["low"], run.verdicts[0]["source"]
    (0.727, 'Brightwell & Luczak, (1.2)')
    """

    name: str
    parameters: dict[str, Any]
    table: Table
    threads: int = 1
    verdicts: list[dict[str, Any]] = field(default_factory=list)
    started: float = field(default_factory=time.perf_counter)

    def points(
        self,
        function: Callable[..., Result],
        points: Iterable[Mapping[str, Any]],
        *,
        seed: int | None = None,
    ) -> list[Result]:
        """Call ``function(**point, seed=...)`` for every point, `threads` at a time.

        Parameters
        ----------
        function, points
            As in `supermarket.runs.many.run_points`.
        seed : int, optional
            Root of all streams, in place of the parameter of that name.

        Examples
        --------
        >>> from supermarket import Supermarket, simulate
        >>> from supermarket.experiment import begin
        >>> run = begin("mine", {"__annotations__": {"seed": int}, "seed": 1})
        >>> runs = run.points(simulate, [{"model": Supermarket(1000, 2, 0.9), "schedule": 5}])
        >>> runs[0].model.n
        1000
        """
        from supermarket.runs.many import run_points  # whoever computes alone needs no threads

        seed = self.parameters["seed"] if seed is None else seed
        return run_points(function, points, seed=seed, threads=self.threads)

    def verdict(
        self,
        claim: str,
        statement: str,
        predicted: float,
        measured: Interval | Computed,
        *,
        relation: str = "equal",
        control: bool = False,
        **point: Any,
    ) -> str:
        """Add a verdict and return its outcome.

        Parameters
        ----------
        claim, statement, predicted, measured, relation, control
            As in `supermarket.experiment.verdicts.judge`.
        **point
            Where in the experiment this was measured (such as d=2), added to the parameters.

        Raises
        ------
        ParameterError
            As `supermarket.experiment.verdicts.judge`.
        """
        at = self.parameters | {key: plain(value) for key, value in point.items()}
        verdict = judge(
            claim, statement, predicted, measured, at, relation=relation, control=control
        )
        self.verdicts.append(verdict)
        return str(verdict["outcome"])

    def finish(self) -> VerdictTable:
        """Write the verdicts and what made them, and return the table of verdicts for the page.

        Raises
        ------
        RuntimeError
            If an axis of a figure drawn before has left all bounds:
            `supermarket.experiment.plotting.watch`.
        """
        plotting = sys.modules.get("supermarket.experiment.plotting")
        if plotting is not None and plotting.faults:
            raise RuntimeError(f"{self.name} has a broken figure: {'; '.join(plotting.faults)}.")
        build = Path(os.environ.get("SUPERMARKET_BUILD", "build"))
        provenance = {
            "notebook": self.name,
            "supermarket": supermarket.__version__,
            "commit": _commit(),
            "parameters": self.parameters,
            "python": platform.python_version(),
            **{library: version(library) for library in _LIBRARIES},
            "modules": sorted(name for name in sys.modules if name.split(".")[0] == "supermarket"),
            "libraries": sorted({name.split(".")[0] for name in sys.modules} - _NOT_LIBRARIES),
            "seconds": round(time.perf_counter() - self.started, 1),
        }
        for what, data in (("verdicts", self.verdicts), ("provenance", provenance)):
            text = json.dumps(data, indent=1, allow_nan=False) + "\n"
            write(build / what / f"{self.name}.json", text.encode())
        made = ", ".join(f"{library} {provenance[library]}" for library in _LIBRARIES)
        seed = f"seed {self.parameters['seed']}, " if "seed" in self.parameters else ""
        note = (
            f"Made by supermarket {supermarket.__version__}"
            f"{_at_commit(provenance['commit'])}, {seed}Python {provenance['python']}, {made}, "
            f"in {provenance['seconds']} s."
        )
        return VerdictTable(self.verdicts, self.name, note)


def begin(name: str, namespace: dict[str, Any]) -> Experiment:
    """Check a notebook's parameters before any work is done.

    Parameters
    ----------
    name : str
        What the notebook is called, by its file name without the ending. A copy under another name
        runs as well: what the command line, a sweep or the book executes goes by its file.
    namespace : dict
        The notebook's ``globals()``. What is annotated there with a kind of
        `supermarket.experiment.parameters` is a parameter; checked values are put back.

    Returns
    -------
    Experiment

    Raises
    ------
    ParameterError
        One sentence for a parameter that is unknown, missing, of the wrong type or out of range.

    Examples
    --------
    >>> from supermarket.experiment import begin
    >>> from supermarket.experiment.parameters import Rate, Whole
    >>> kinds = {"d": list[Whole[1]], "lam": Rate}
    >>> run = begin("mine", {"__annotations__": kinds, "d": 2, "lam": 0.9})
    >>> run.parameters
    {'d': [2], 'lam': 0.9}
    >>> begin("mine", {"__annotations__": kinds, "d": 2, "lam": 1.9})
    Traceback (most recent call last):
        ...
    supermarket.validation.ParameterError: lam = 1.9 is out of range: choose 0 < lam < 1.
    """
    name = os.environ.get("SUPERMARKET_NAME", name)
    if not name or Path(name).name != name:
        raise ParameterError(f"begin({said(name)}, ...) must name the notebook, without a folder.")
    cells = [str(cell) for cell in namespace.get("In", [])]
    annotated = namespace.get("__annotations__", {})
    kinds = {key: found for key, of in annotated.items() if (found := kind(of)) is not None}
    for given in _injected(cells):
        if given not in kinds:
            raise ParameterError(
                f"{given} is not a parameter of {name}: choose from {', '.join(kinds)}"
                f"{nearest(given, kinds)}."
            )
    clean = {}
    for parameter, check in kinds.items():
        if parameter not in namespace:
            raise ParameterError(f"{name} needs a value for {parameter}: run the cell above.")
        clean[parameter] = check(parameter, namespace[parameter])
    namespace.update(clean)
    meanings = _meanings(cells)
    rows = [(key, value, meanings.get(key, "")) for key, value in clean.items()]
    tracked = {key: plain(value) for key, value in clean.items() if key not in _SETTINGS}
    return Experiment(name, tracked, ParameterTable(rows), clean.get("threads", 1))


def _injected(cells: list[str]) -> list[str]:
    """Return the names that papermill injected: those set in the cell headed '# Parameters'."""
    names = []
    for cell in cells:
        if cell.startswith("# Parameters\n"):
            for node in ast.parse(cell).body:
                if isinstance(node, ast.Assign):
                    names += [target.id for target in node.targets if isinstance(target, ast.Name)]
    return names


def _meanings(cells: list[str]) -> dict[str, str]:
    """Return the meaning of each parameter that one of the cells declares."""
    found = {}
    for cell in cells:
        with suppress(SyntaxError, ParameterError):  # IPython's own, or no cell of parameters
            found |= {name: parameter.meaning for name, parameter in declared(cell).items()}
    return found


def _commit() -> str | None:
    """Return the commit of the checkout that holds the package, '+' appended if it was edited.

    None without a checkout, or where git can't tell.
    """
    root = _checkout()
    if root is None:
        return None
    try:
        commit = _git(root, "rev-parse", "--short=12", "HEAD")
        edited = _git(root, "status", "--porcelain", "-unormal", "--", "supermarket", "notebooks")
    except (OSError, subprocess.CalledProcessError):  # no git here, or no commit yet
        return None
    return commit + ("+" if edited else "")


def _checkout() -> Path | None:
    root = Path(supermarket.__file__).parents[1]
    return root if (root / ".git").exists() else None


def _git(root: Path, *arguments: str) -> str:
    # Whose code is running may be asked for its commit, whoever owns it.
    command = ["git", "-c", "safe.directory=*", "-C", str(root), *arguments]
    # Hooks and other tools set variables that stand for another repository.
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(command, env=own, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _at_commit(commit: str | None) -> str:
    if commit is None and _checkout() is not None:
        return " (its commit is unknown: git could not tell)"
    return f" (commit {commit})" if commit else ""
