"""A notebook executed in a Jupyter kernel of its own, beside others, on any machine.

A kernel that talks over TCP is given ports that were free a moment before: another one, started
at the same time, may have taken them, and the later of the two dies with "Address already in use".
So kernels talk here over Unix sockets, in a folder that no other process knows.
"""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any, NamedTuple

from supermarket.experiment.files import OutsideError
from supermarket.validation import ParameterError

LONGEST = 100  # of a socket's path, in bytes: Linux takes 107, macOS 103


class Limits(NamedTuple):
    """Minutes that a cell, and the whole of a notebook, may take."""

    cell: float
    notebook: float


def execute(
    notebook: Path,
    target: Path,
    parameters: dict[str, Any],
    build: Path,
    *,
    cwd: Path | None = None,
    progress: bool = False,
    limits: Limits | None = None,
) -> None:
    """Execute a notebook by papermill, and write it with its results, also if it failed.

    Parameters
    ----------
    notebook, target : Path
        What to execute, and where the executed notebook goes.
    parameters : dict
        Values that replace the notebook's own, by name.
    build : Path
        Where it writes ``verdicts/`` and ``provenance/``.
    cwd : Path, optional
        The folder it runs in, that of this process if not given.
    progress : bool
        Whether a bar on stderr shows the cells.
    limits : Limits, optional
        How long it may take.

    Raises
    ------
    ParameterError
        If the notebook refuses a parameter.
    papermill.exceptions.PapermillExecutionError
        If a cell fails otherwise.
    nbclient.exceptions.DeadKernelError
        If the kernel's process ends before the notebook does.
    OutsideError
        If a limit is reached.
    """
    import papermill  # takes half a second
    from nbclient.exceptions import CellTimeoutError
    from papermill.exceptions import PapermillExecutionError

    wanted = {
        "SUPERMARKET_BUILD": str(build.resolve()),
        "JUPYTER_PREFER_ENV_PATH": "1",  # this environment's kernel, not the user's own
        # Matrices here are small: more threads only wait for one another, and count as CPU time.
        "OPENBLAS_NUM_THREADS": os.environ.get("OPENBLAS_NUM_THREADS", "1"),
    }
    start, options = time.monotonic(), {}
    if limits is not None:
        # Nothing is left to a cell once the notebook has had all of its time: 0 would be no limit.
        options["timeout_func"] = lambda cell: max(
            0.1, min(60 * limits.cell, start + 60 * limits.notebook - time.monotonic())
        )
    with environment(wanted), _transport() as config:
        try:
            papermill.execute_notebook(
                str(notebook),
                str(target),
                parameters=parameters,
                kernel_name="python3",
                language="python",
                cwd=None if cwd is None else str(cwd),
                progress_bar=progress,
                config=config,
                # Else it shows a traceback at Ctrl-C, and warns of TCP where it needs that.
                extra_arguments=["--IPKernelApp.log_level=CRITICAL"],
                **options,
            )
        except CellTimeoutError:
            whole = time.monotonic() - start >= 60 * limits.notebook
            what, most = ("it", limits.notebook) if whole else ("one of its cells", limits.cell)
            raise OutsideError(f"{what} took more than {most:g} minutes") from None
        except PapermillExecutionError as failure:
            if failure.ename == "ParameterError":
                raise ParameterError(failure.evalue) from None
            raise


@contextmanager
def _transport() -> Iterator[Any]:
    """Make what a kernel needs to talk with this process, and yield how to configure both."""
    from traitlets.config import Config

    above = _short_folder()
    if above is None:
        yield Config()  # TCP, on ports that jupyter_client picks
        return
    with TemporaryDirectory(prefix="kernel-", dir=above) as folder:  # readable by its owner alone
        yield Config(
            KernelManager={
                "transport": "ipc",
                "ip": f"{folder}/s",  # sockets are s-1 to s-5
                "connection_file": f"{folder}/kernel.json",
            }
        )


def _short_folder() -> str | None:
    """Return a folder for temporary files in which a socket may have a path; None if none has."""
    if sys.platform == "win32":
        return None
    for folder in (gettempdir(), "/tmp"):
        longest = os.path.join(folder, "kernel-12345678", "s-5")
        if len(os.fsencode(longest)) <= LONGEST and os.access(folder, os.W_OK):
            return folder
    return None


@contextmanager
def environment(values: dict[str, str]) -> Iterator[None]:
    """Set environment variables, which a kernel inherits, and put back what was there."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
