"""Execute the notebooks of the book, and only those whose results could have changed.

A run is one notebook with the parameters of one profile. It leaves a folder

    build/runs/<profile>/<notebook>/
        <notebook>.ipynb              the notebook, executed
        verdicts/<notebook>.json      claims, predictions and measurements
        provenance/<notebook>.json    what made them, and the `supermarket` modules loaded
        record.json                   what the results depend on (`tools.causes`), their hashes,
                                      and the seconds they took

and is repeated when anything in its record has changed. Finished runs are kept in the user's cache
folder too (`tools.kept`). A run that failed leaves build/failed/<notebook>.ipynb alone, until it
succeeds.
"""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterable
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import yaml

from supermarket.experiment import catalogue
from supermarket.experiment import jupyter as kernels
from supermarket.experiment.files import OutsideError
from supermarket.experiment.schedulers import end_with_parent
from supermarket.experiment.verdicts import KEYS
from supermarket.validation import ParameterError, nearest
from tools import BuildError, causes, digest, kept

VERDICT_KEYS = frozenset(KEYS)
NEEDED = frozenset(("modules", "libraries"))  # of what a run says of itself


@dataclass(frozen=True)
class Run:
    """A notebook and the parameters to execute it with.

    Attributes
    ----------
    notebook : Path
        The committed notebook.
    folder : Path
        Where its results go; it exists only if the run succeeded.
    parameters : dict
        Values that replace the notebook's own, by name.
    """

    notebook: Path
    folder: Path
    parameters: dict[str, Any]

    @property
    def name(self) -> str:
        """The notebook's name without its ending, which names all its results."""
        return self.notebook.stem

    def results(self, folder: Path | None = None) -> dict[str, Path]:
        """Return the files that a run leaves, by what they are."""
        folder = folder or self.folder
        return {
            "notebook": folder / self.notebook.name,
            "verdicts": folder / "verdicts" / f"{self.name}.json",
            "provenance": folder / "provenance" / f"{self.name}.json",
        }


def plan(root: Path, profile: str, notebooks: Iterable[Path]) -> list[Run]:
    """Return the run of each notebook under a profile of `notebooks/profiles.yml`.

    Raises
    ------
    BuildError
        If there is no such profile, or it names a notebook that is not in the book.
    """
    profiles = _profiles(root / "notebooks" / "profiles.yml")
    if profile not in profiles:
        raise BuildError(
            f"PROFILE={profile} is not in notebooks/profiles.yml{nearest(profile, profiles)}: "
            f"use {', '.join(profiles)}."
        )
    values = profiles[profile] or {}
    notebooks = list(notebooks)
    stems = [notebook.stem for notebook in notebooks]
    for name in values:
        if name not in stems:
            raise BuildError(
                f"Profile {profile} in notebooks/profiles.yml names the notebook {name}, "
                f"which is not in _toc.yml{nearest(name, stems)}."
            )
    folder = root / "build" / "runs" / profile
    return [Run(nb, folder / nb.stem, values.get(nb.stem) or {}) for nb in notebooks]


def _profiles(file: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """Read the profiles, by name; an empty one may be left out or written as {}."""
    try:
        profiles = yaml.safe_load(file.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise BuildError(
            f"notebooks/profiles.yml is not YAML: {' '.join(str(error).split())}."
        ) from None
    named = isinstance(profiles, dict) and all(
        isinstance(values or {}, dict)
        and all(isinstance(of_one or {}, dict) for of_one in (values or {}).values())
        for values in profiles.values()
    )
    if not named:
        raise BuildError(
            "notebooks/profiles.yml must name profiles, below each notebooks, below each "
            "parameters with their values."
        )
    return profiles


def is_current(run: Run, root: Path, folder: Path | None = None) -> bool:
    """Tell whether the results of `run` are there, untouched, and what it would give again.

    Parameters
    ----------
    run : Run
        The run.
    root : Path
        The project.
    folder : Path, optional
        Where its results are, if not in the run's own folder.
    """
    folder = folder or run.folder
    try:
        record = json.loads((folder / "record.json").read_text(encoding="utf-8"))
        known = causes.entries(root)
        return (
            # Through JSON, so that what was written and what is compared went the same way.
            record["before"] == _through_json(causes.beforehand(run.notebook, run.parameters))
            and record["results"] == _digests(run.results(folder))
            and record["statements"] == {name: known.get(name) for name in record["statements"]}
            and causes.same_libraries(record["libraries"])
            and causes.same_modules(record["modules"], root)
        )
    except (OSError, ValueError, KeyError, TypeError):
        return False


def fetch(run: Run, root: Path) -> bool:
    """Take a run from the user's cache folder, if it is kept there, and tell whether it is."""
    return any(
        is_current(run, root, folder) and kept.fetch(folder, run.folder)
        for folder in kept.candidates(run.folder)
    )


def check_parameters(run: Run) -> None:
    """Refuse a parameter that the notebook does not have, and a value that it does not allow.

    Raises
    ------
    BuildError
        If there is one; of an unknown name the sentence says the nearest one.
    """
    if not run.parameters:
        return
    try:
        catalogue.read(run.notebook).check(run.parameters)
    except ParameterError as error:
        raise BuildError(f"notebooks/profiles.yml, {run.name}: {error}") from None


def execute(
    runs: list[Run],
    root: Path,
    jobs: int,
    say: Callable[[str], None],
    limits: kernels.Limits | None = None,
) -> list[Run]:
    """Execute notebooks side by side, and return those that failed.

    A failed run leaves its notebook in `build/failed`; the others are finished and kept.

    Parameters
    ----------
    runs : list of Run
        What to execute.
    root : Path
        The project: notebooks run in this folder.
    jobs : int
        How many at a time.
    say : callable
        Is given each line of progress, and what went wrong with each failure.
    limits : Limits, optional
        How long each may take.
    """
    failed = []
    # Hashes from before the first cell: a file saved during the run must count as changed.
    sources = causes.Sources(root)
    before = {run.name: causes.beforehand(run.notebook, run.parameters) for run in runs}
    spent = 0.0
    # Fresh interpreters rather than forks: forking a process that has threads is not safe.
    with ProcessPoolExecutor(
        min(jobs, len(runs)), mp_context=get_context("spawn"), initializer=end_with_parent
    ) as pool:
        start = time.monotonic()
        futures = {pool.submit(_execute, run, root, limits): run for run in runs}
        say(f"Executing {', '.join(run.name for run in runs)} ({jobs} at a time)")
        for done, future in enumerate(as_completed(futures), 1):
            run = futures[future]
            try:
                cost, error = future.result()
            except BrokenExecutor:
                cost, error = Cost(0.0, 0.0), "The process that ran it was killed: out of memory?"
            error = error or _keep(run, before[run.name], sources, cost)
            spent += cost.cpu
            seen = _keep_failed(run, root, bool(error))
            shutil.rmtree(_part(run), ignore_errors=True)
            if error:
                failed.append(run)
                say(f"[{done}/{len(runs)}] {run.name} FAILED after {cost}\n{error}")
                if seen:
                    say(f"{seen.relative_to(root)} shows where.")
            else:
                say(f"[{done}/{len(runs)}] {run.name} took {cost}")
        say(f"Executed in {Cost(time.monotonic() - start, spent)}")
    return failed


def publish(runs: list[Run], root: Path, profile: str) -> None:
    """Make `build/verdicts` and `build/provenance` hold the results of these runs and no others.

    A notebook that someone executes by hand writes to the same place: its result is replaced here
    by the book's. `build/profile.json` says of which profile they are, and the hash of each file of
    verdicts, so that `supermarket check` takes no others for the book's.
    """
    for kind in ("verdicts", "provenance"):
        folder = root / "build" / kind
        folder.mkdir(parents=True, exist_ok=True)
        wanted = {run.results()[kind].name: run.results()[kind] for run in runs}
        for file in folder.glob("*.json"):
            if file.name not in wanted:
                file.unlink()
        for name, source in wanted.items():
            if digest(folder / name) != digest(source):
                shutil.copyfile(source, folder / name)
    shutil.rmtree(root / "build" / "failed", ignore_errors=True)  # of notebooks that are gone
    verdicts = {run.results()["verdicts"].name: digest(run.results()["verdicts"]) for run in runs}
    content = json.dumps({"profile": profile, "verdicts": verdicts}, indent=1)
    (root / "build" / "profile.json").write_text(content, encoding="utf-8")


def withdraw(root: Path) -> None:
    """Take away what `publish` left, so that nothing counts the verdicts of before as today's."""
    (root / "build" / "profile.json").unlink(missing_ok=True)
    for kind in ("verdicts", "provenance"):
        shutil.rmtree(root / "build" / kind, ignore_errors=True)


@dataclass(frozen=True)
class Cost:
    """Seconds of a clock on the wall, and of all processors together."""

    wall: float
    cpu: float

    def __str__(self) -> str:
        return f"{self.wall:.0f} s ({self.cpu:.0f} CPU s)"


def _execute(run: Run, root: Path, limits: kernels.Limits | None) -> tuple[Cost, str | None]:
    """Execute one notebook into its part folder; return what it cost and what went wrong."""
    from papermill.exceptions import PapermillExecutionError

    part = _part(run)
    shutil.rmtree(part, ignore_errors=True)
    # What the last run left is out of date, and must not be there if this one fails.
    shutil.rmtree(run.folder, ignore_errors=True)
    part.mkdir(parents=True)
    start, before = time.monotonic(), _cpu_seconds()
    error = None
    try:
        target = part / run.notebook.name
        kernels.execute(run.notebook, target, run.parameters, part, cwd=root, limits=limits)
    except ParameterError as refused:
        error = f"ParameterError: {refused}"
    except PapermillExecutionError as failure:
        error = "\n".join(failure.traceback)
    except OutsideError as failure:
        error = f"Stopped: {failure}."
    except Exception as failure:  # such as a file that is no notebook: the other runs go on
        error = f"{type(failure).__name__}: {' '.join(str(failure).split())}"
    return Cost(time.monotonic() - start, _cpu_seconds() - before), error


def _cpu_seconds() -> float:
    """Return the CPU seconds of this process and of those it started that have ended."""
    return sum(os.times()[:4])


def _keep_failed(run: Run, root: Path, failed: bool) -> Path | None:
    """Keep the notebook of a failed run, to see where it failed; drop that of an earlier time.

    Returns where it is, None if there is none.
    """
    kept = root / "build" / "failed" / run.notebook.name
    kept.unlink(missing_ok=True)
    executed = _part(run) / run.notebook.name
    if not (failed and executed.is_file()):
        return None
    kept.parent.mkdir(parents=True, exist_ok=True)
    return executed.replace(kept)


def _keep(run: Run, before: dict[str, Any], sources: causes.Sources, cost: Cost) -> str | None:
    """Check a finished run, write its record, move it to its place; return what went wrong."""
    part = _part(run)
    results = run.results(part)
    verdicts = _read(results["verdicts"])
    if not (
        isinstance(verdicts, list)
        and verdicts
        and all(isinstance(v, dict) and v.keys() >= VERDICT_KEYS for v in verdicts)
    ):
        return (
            f"{run.notebook.name} left no verdicts/{run.name}.json that lists objects with the "
            f"keys {', '.join(sorted(VERDICT_KEYS))}."
        )
    provenance = _read(results["provenance"])
    if not (
        isinstance(provenance, dict)
        and all(isinstance(provenance.get(key), list) for key in NEEDED)
    ):
        return (
            f"{run.notebook.name} left no provenance/{run.name}.json that lists the modules "
            "and the libraries it loaded."
        )
    record = {
        "before": before,
        "modules": sources.modules(provenance["modules"]),
        "libraries": causes.libraries(provenance["libraries"]),
        "statements": {v["statement"]: sources.entries.get(v["statement"]) for v in verdicts},
        "results": _digests(results),
        "seconds": {"wall": round(cost.wall, 1), "cpu": round(cost.cpu, 1)},
    }
    (part / "record.json").write_text(json.dumps(record, indent=1, default=str), encoding="utf-8")
    part.rename(run.folder)
    kept.keep(run.folder)
    return None


def _through_json(value: Any) -> Any:
    return json.loads(json.dumps(value, default=str))


def _digests(files: dict[str, Path]) -> dict[str, str | None]:
    return {what: digest(file) for what, file in files.items()}


def _part(run: Run) -> Path:
    """Return the folder of a run that has not finished."""
    return run.folder.with_name(run.folder.name + ".part")


def _read(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
