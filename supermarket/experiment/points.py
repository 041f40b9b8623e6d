"""One point of a sweep: a notebook's code cells, executed in this process.

A Jupyter kernel for each point would cost seconds, and compile the chains anew each time.
"""

import io
import json
import platform
import threading
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import supermarket
from supermarket import experiment
from supermarket.experiment.catalogue import Notebook
from supermarket.experiment.jupyter import environment

# The folder of the verdicts and the figures belong to the process: a Dask worker may have threads.
_one_at_a_time = threading.Lock()


def compute(notebook: Notebook, values: dict[str, Any]) -> dict[str, Any]:
    """Execute the code cells of a notebook one after another, and return its verdicts.

    Parameters
    ----------
    notebook : Notebook
        The experiment.
    values : dict
        Parameters to change, by name.

    Returns
    -------
    dict
        "verdicts", the list that the notebook wrote, empty if it failed; "parameters", those that
        it tracks; "error", None or one line; "made", the versions of what computed it.
    """
    import matplotlib as mpl

    mpl.use("Agg")  # figures are drawn, so that their code is checked too, and not shown
    import matplotlib.pyplot as plt

    verdicts, parameters, error = [], {}, None
    with _one_at_a_time, TemporaryDirectory(prefix="supermarket-") as build:
        try:
            # Progress bars would draw over the sweep's own.
            with (
                environment({"SUPERMARKET_BUILD": build, "SUPERMARKET_NAME": notebook.name}),
                redirect_stdout(io.StringIO()),
                redirect_stderr(io.StringIO()),
            ):
                _execute(notebook.name, notebook.code(values))
            verdicts, provenance = (
                json.loads(Path(build, kind, f"{notebook.name}.json").read_text(encoding="utf-8"))
                for kind in ("verdicts", "provenance")
            )
            parameters = provenance["parameters"]
        except (Exception, SystemExit) as failure:  # whatever it is, the other points go on
            error = f"{type(failure).__name__}: {' '.join(str(failure).split())}"
        finally:
            plt.close("all")
    return {"verdicts": verdicts, "parameters": parameters, "error": error, "made": made()}


@cache
def made() -> dict[str, str | None]:
    """Return the versions of the package, its checkout, Python and the libraries."""
    return {
        "supermarket": supermarket.__version__,
        "commit": experiment._commit(),
        "python": platform.python_version(),
        **{library: version(library) for library in experiment._LIBRARIES},
    }


def _execute(name: str, cells: list[str]) -> None:
    # What `experiment.begin` looks for in IPython's namespace: the cells so far, from number 1.
    namespace: dict[str, Any] = {"__name__": "__main__", "In": [""]}
    for number, cell in enumerate(cells, 1):
        namespace["In"].append(cell)
        exec(compile(cell, f"<{name}, code cell {number}>", "exec"), namespace)
