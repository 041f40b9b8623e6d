"""A grid of parameters times replicas, into a folder of Parquet files that survives anything.

The folder of a sweep holds ``sweep.json``, which says what is swept, and ``points/``, one file for
each finished point, with a row for each verdict. A file appears whole or not at all, and carries a
hash of its rows; so what is finished is what is there, and a sweep that was killed goes on.
"""

import errno
import json
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

from tqdm import tqdm

from supermarket.experiment import catalogue, points, rows, schedulers
from supermarket.experiment.catalogue import Notebook
from supermarket.experiment.files import OutsideError, alone, write
from supermarket.experiment.grids import Grid, check_grid, points_of
from supermarket.experiment.plans import VERDICT, plan
from supermarket.validation import ParameterError, integer

__all__ = ["sweep"]

_OF_A_START = {"lock", "lock.held", "sweep.json.part"}  # of a sweep that was killed at once


def sweep(
    name: str,
    grid: Grid,
    out: Path,
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    retry: bool = False,
) -> dict[str, int]:
    """Compute every point of a grid that is not finished yet, and keep each as it finishes.

    Parameters
    ----------
    name : str
        An experiment.
    grid : Grid
        What to compute. Point number p and replica r get the seed of stream r of stream p of the
        grid's seed, whoever computes them, in whatever order. Each has one thread.
    out : Path
        The folder of the sweep: a new one, or one in which this sweep was started.
    workers : int, optional
        Processes on this machine, as many as it has cores if not given.
    scheduler : str, optional
        Address of a Dask scheduler, such as tcp://127.0.0.1:8786, to compute there instead.
    retry : bool
        Whether to compute points again that ended with an error.

    Returns
    -------
    dict
        The numbers of "points", "before" (finished earlier), "failed" (ended with an error) and
        "rows".

    Raises
    ------
    ParameterError
        If the experiment or a parameter is unknown, a value is of the wrong type or out of range,
        or the folder holds something else. Values that do not go together fail as a point.
    OutsideError
        If the disk is full, or the Dask cluster is not there. What is finished is kept.

    Examples
    --------
    >>> from pathlib import Path
    >>> from supermarket.experiment.grids import Grid
    >>> from supermarket.experiment.sweeps import sweep
    >>> grid = Grid({"n": [100]}, replicas=1, seed=1)
    >>> sweep("fixed_pint", grid, Path("swept"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    supermarket.validation.ParameterError: fixed_pint is not an experiment: choose ...
    """
    notebook = catalogue.find_notebook(name)
    grid = check_grid(notebook, grid)
    if clash := rows.columns() & notebook.parameters.keys():
        raise ParameterError(f"{name} has a parameter {sorted(clash)[0]}, a column: rename it.")
    if workers is not None and scheduler is not None:
        raise ParameterError("Give workers on this machine or a scheduler, not both.")
    workers = integer("workers", _cores() if workers is None else workers, 1, 1000)
    todo = points_of(notebook, grid)
    with _one_sentence(out), _alone(out, _plan(notebook, grid, len(todo))):
        known = {point.file(out) for point in todo}
        if strange := [file for file in rows.files(out) if file not in known]:
            raise ParameterError(f"{strange[0]} is no point of this sweep: take it away.")
        finished = {}  # by number: whether it failed, and its rows
        for number, point in enumerate(todo):
            table = rows.read(point.file(out), point.key)
            if table is not None and not (retry and rows.failed(table)):
                finished[number] = rows.failed(table), len(table)
        before = len(finished)
        left = [number for number in range(len(todo)) if number not in finished]
        tasks = {number: (notebook, todo[number].values) for number in left}
        outcomes = (
            schedulers.dask(points.compute, tasks, scheduler)
            if scheduler
            else schedulers.local(points.compute, tasks, workers)
        )
        bar = tqdm(total=len(todo), initial=before, disable=None, unit="point")
        with bar, closing(outcomes):
            for number, outcome in outcomes if tasks else ():
                point = todo[number]
                table = rows.table_of(notebook, point, outcome)
                rows.keep(point.file(out), table, point.key)
                finished[number] = rows.failed(table), len(table)
                bar.update()
    return {
        "points": len(todo),
        "before": before,
        "failed": sum(failed for failed, _ in finished.values()),
        "rows": sum(count for _, count in finished.values()),
    }


def _plan(notebook: Notebook, grid: Grid, count: int) -> dict[str, Any]:
    return {
        "experiment": notebook.name,
        "grid": grid.values,
        "replicas": grid.replicas,
        "seed": grid.seed,
        "notebook": sha256("\0".join(notebook.cells).encode()).hexdigest(),
        "points": count,
        "verdict": list(VERDICT),
        **points.made(),
    }


@contextmanager
def _alone(out: Path, wanted: dict[str, Any]) -> Iterator[None]:
    """Make the folder of a sweep, or check that it is of this one, and keep others out of it."""
    started = out / "sweep.json"
    if not started.is_file():
        if out.is_dir() and {entry.name for entry in out.iterdir()} - _OF_A_START:
            raise ParameterError(f"{out} holds something else: choose a new folder.")
        out.mkdir(parents=True, exist_ok=True)
    with alone(out / "lock", f"Another sweep is at work in {out}: wait for it, or stop it."):
        if started.is_file() and any(out.glob("points/*.parquet")):
            there = plan(out)
            for what in ("experiment", "grid", "replicas", "seed", "notebook"):
                if there.get(what) != json.loads(json.dumps(wanted[what])):
                    raise ParameterError(
                        f"{out} holds the sweep of another {what}: choose a new folder"
                        + (", or give the notebook back its text." if what == "notebook" else ".")
                    )
        else:
            write(started, json.dumps(wanted, indent=1).encode())
        (out / "points").mkdir(exist_ok=True)
        if (out / "points").is_symlink():
            raise ParameterError(f"{out}/points is a link out of that folder: take it away.")
        for half in out.glob("points/*.part"):
            half.unlink()
        yield


@contextmanager
def _one_sentence(out: Path) -> Iterator[None]:
    """Turn what the disk refuses into one sentence."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise OutsideError(
                f"The disk is full: what was finished is kept in {out}, and the same command goes "
                "on from there once there is room."
            ) from None
        raise OutsideError(f"{error.filename or out} can't be written: {error.strerror}.") from None


def _cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # in a container fewer than there are
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
