"""A notebook executed in a Jupyter kernel of its own, beside others, on any machine.

What a machine has set up for other purposes changes nothing: a kernel is this interpreter with this
package, gets of the environment only what `PASSED` lists, and reads nobody's settings
(`supermarket.experiment.kernel`).

A kernel that talks over TCP is given ports that were free a moment before: another one, started
at the same time, may have taken them, and the later of the two dies with "Address already in use".
So kernels talk here over Unix sockets, in a folder that no other process knows.
"""

import json
import logging
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any, NamedTuple

from supermarket.experiment.files import OutsideError
from supermarket.kernels import cache
from supermarket.validation import ParameterError, said

# What a kernel gets of the environment. All else could change what it shows, computes or says of
# itself: a backend of Matplotlib's, another Git repository, Numba's switches, Python's own.
PASSED = (
    *("PATH", "HOME", "USER", "LOGNAME", "TZ"),  # where programs are, and whose this is
    *("LANG", "LC_ALL", "LC_CTYPE", "PYTHONUTF8"),  # how names of files are written
    *("TMPDIR", "TEMP", "TMP", "XDG_CACHE_HOME", "MPLCONFIGDIR"),  # where files may be put
    *("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"),
    *("PYTHONHOME", "PYTHONNOUSERSITE", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "LD_PRELOAD"),
    *("SYSTEMROOT", "USERPROFILE", "LOCALAPPDATA"),  # Windows
)
PREFIXES = (
    "SUPERMARKET_",  # this package's own
    *("OPENBLAS_", "OMP_", "MKL_"),  # what the processor can do, and how many threads are wanted
    *("DASK_", "COV_"),  # of a cluster, of a measurement of coverage
)

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
        Where it writes ``verdicts/`` and ``provenance/``, under the name of its file.
    cwd : Path, optional
        The folder it runs in, that of this process if not given. If it holds this package, that is
        the one that the notebook imports.
    progress : bool
        Whether a bar on stderr shows the cells.
    limits : Limits, optional
        How long it may take.

    Raises
    ------
    ParameterError
        If the notebook refuses a parameter.
    OutsideError
        If the kernel does not start, or its process ends before the notebook does, a cell that
        should show a figure does not, or a limit is reached.
    papermill.exceptions.PapermillExecutionError
        If a cell fails otherwise.
    """
    import papermill  # takes half a second
    from nbclient.exceptions import CellTimeoutError, DeadKernelError
    from papermill.exceptions import PapermillExecutionError
    from papermill.log import logger

    if not logger.handlers:  # what it would write on stderr is raised too
        logger.addHandler(logging.NullHandler())
    home = Path(__file__).parents[2]
    if cwd is not None and (cwd / "supermarket" / "__init__.py").is_file():
        home = cwd
    wanted = {
        "SUPERMARKET_BUILD": str(build.resolve()),
        "SUPERMARKET_NAME": notebook.stem,
        "SUPERMARKET_PATH": json.dumps([str(home), *sys.path]),
    }
    start, options = time.monotonic(), {}
    if limits is not None:
        # Nothing is left to a cell once the notebook has had all of its time: 0 would be no limit.
        options["timeout_func"] = lambda cell: max(
            0.1, min(60 * limits.cell, start + 60 * limits.notebook - time.monotonic())
        )
    with _own_folder() as (folder, config), environment(_jupyter_in(folder)):
        try:
            done = papermill.execute_notebook(
                _literal(notebook),
                _literal(target),
                parameters=parameters,
                kernel_name="python3",
                language="python",
                cwd=None if cwd is None else str(cwd),
                progress_bar=progress,
                config=config,
                kernel_manager_class=_manager(clean(folder) | wanted, folder),
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
        except DeadKernelError:
            raise OutsideError("its kernel died, as when memory runs out") from None
        except RuntimeError as failure:
            if "Kernel died" not in str(failure):
                raise
            *_, last = ["", *Path(folder, "said").read_text(errors="replace").split("\n")[:-1]]
            why = f" ({said(last, str, 200)})" if last else ""
            raise OutsideError(f"its kernel could not be started{why}") from None
    if name := without_figure(done["cells"]):
        raise OutsideError(f"the cell of the figure {name} shows none as PNG")


def without_figure(cells: list[dict[str, Any]]) -> str | None:
    """Return the name of a figure that a cell declares and does not show; None if all are there."""
    for cell in cells:
        name = cell["metadata"].get("mystnb", {}).get("figure", {}).get("name")
        if name and not any("image/png" in out.get("data", {}) for out in cell.get("outputs", [])):
            return str(name)
    return None


def is_passed(name: str) -> bool:
    """Tell whether a kernel gets this variable of the environment."""
    return name in PASSED or name.startswith(PREFIXES)


def clean(folder: str) -> dict[str, str]:
    """Return the environment of a kernel, the same for everyone who executes a notebook.

    Parameters
    ----------
    folder : str
        A folder of its own, for what needs one and has none.
    """
    passed = {name: os.environ[name] for name in os.environ if is_passed(name)}
    kept = cache.root()
    home = os.path.expanduser("~")
    if not (os.path.isabs(home) and os.access(home, os.W_OK)):  # a user whom nobody knows
        passed["HOME"] = folder
    return passed | {
        # Matrices here are small: more threads only wait for one another, and count as CPU time.
        "OPENBLAS_NUM_THREADS": passed.get("OPENBLAS_NUM_THREADS", "1"),
        "SUPERMARKET_CACHE": "off" if kept is None else str(kept.absolute()),
        "IPYTHONDIR": folder,
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
    }


def _jupyter_in(folder: str) -> dict[str, str]:
    """Return where this process's side of Jupyter looks and writes: not in anyone's home."""
    return {f"JUPYTER_{what}_DIR": folder for what in ("CONFIG", "DATA", "RUNTIME")}


def _literal(path: Path) -> str:
    """Return a path as papermill takes it, to which braces are places to fill in."""
    return str(path).replace("{", "{{").replace("}", "}}")


def _manager(values: dict[str, str], folder: str) -> type:
    """Return the class of what starts a kernel of this interpreter, with an environment.

    What the process itself writes on stderr, not the notebook, goes into the file ``said``.
    """
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import AsyncKernelManager

    class Manager(AsyncKernelManager):
        kernel_spec = KernelSpec(language="python")  # whatever this machine has by that name

        def format_kernel_cmd(self, extra_arguments: list[str] | None = None) -> list[str]:
            script = str(Path(__file__).with_name("kernel.py"))
            start = [sys.executable, "-P", script, "-f", self.connection_file]
            return [*start, *(extra_arguments or [])]

        async def start_kernel(self, **options: Any) -> None:
            with Path(folder, "said").open("wb") as file:
                await self._async_start_kernel(**options, env=values, stderr=file)

    return Manager


@contextmanager
def _own_folder() -> Iterator[tuple[str, Any]]:
    """Make a kernel's folder, and yield it and how the kernel talks with this process."""
    from traitlets.config import Config

    above = _short_folder()
    with TemporaryDirectory(prefix="kernel-", dir=above) as folder:  # readable by its owner alone
        config = Config(KernelManager={"connection_file": os.path.join(folder, "kernel.json")})
        if above is not None:  # else TCP, on ports that jupyter_client picks
            config.KernelManager |= {"transport": "ipc", "ip": f"{folder}/s"}  # s-1 to s-5
        yield folder, config


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
