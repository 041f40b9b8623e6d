"""Notebooks executed in IPython, without a Jupyter kernel for each.

A kernel pays for its imports before its first cell, and for the first figure: some four seconds.
Here one process does both and then forks for each notebook, so that none sees what another one
left. It knows the libraries alone: a notebook that uses a module of the package which it did not
import fails as in a kernel. Orders are lines of JSON: notebook, parameters, the folder to run in.
"""

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path


class Forks:
    """The process that forks, as a test sees it."""

    def __init__(self):
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, notebook, folder, parameters):
        """Run a notebook in `folder`, which gets its `build`; return what it showed."""
        order = json.dumps([str(notebook), str(folder), parameters])  # it writes NaN, and reads it
        self._process.stdin.write(order + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self):
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


def execute(notebook, parameters):
    """Return errors as [name, sentence, traceback], the kinds of what was shown, what was printed.

    As Jupyter does it: the cell of parameters that papermill adds, figures drawn to PNG, the value
    of a cell in all its formats, no cell after an error.
    """
    from IPython.core.displayhook import DisplayHook
    from IPython.core.displaypub import DisplayPublisher
    from IPython.core.interactiveshell import InteractiveShell
    from matplotlib import pyplot as plt
    from matplotlib_inline.config import InlineBackend
    from papermill.iorw import load_notebook_node
    from papermill.parameterize import parameterize_notebook
    from traitlets.config import Config

    errors, kinds = [], []

    class Hook(DisplayHook):
        def write_output_prompt(self):
            pass

        def write_format_data(self, format_dict, md_dict=None):
            kinds.append(sorted(format_dict))

        def finish_displayhook(self):
            pass

    class Publisher(DisplayPublisher):
        def publish(self, data, *arguments, **options):
            kinds.append(sorted(data))

    class Shell(InteractiveShell):
        displayhook_class = Hook
        display_pub_class = Publisher

        def enable_gui(self, gui=None):
            pass

        def _showtraceback(self, etype, evalue, stb):
            errors.append([etype.__name__, str(evalue), stb])

    shell = Shell.instance(config=Config(HistoryManager={"enabled": False}))
    shell.enable_matplotlib("inline")
    # Each figure is drawn once: not after each cell too, nor a second time to cut its margins off.
    plt.uninstall_repl_displayhook()
    InlineBackend.instance(parent=shell).print_figure_kwargs = {"bbox_inches": None}
    content = parameterize_notebook(
        load_notebook_node(notebook), parameters, kernel_name="python3", language="python"
    )
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        for cell in content.cells:
            if cell.cell_type == "code" and not errors:
                shell.run_cell(cell.source, store_history=True)
    return {"errors": errors, "kinds": kinds, "printed": printed.getvalue()}


def warm_up():
    """Do once what every notebook does: import libraries, compile something, draw something."""
    import numba
    import pandas  # noqa: F401
    import papermill.parameterize  # noqa: F401
    import scipy.integrate
    import scipy.optimize
    import scipy.sparse.linalg
    import scipy.stats  # noqa: F401
    from IPython.core import interactiveshell  # noqa: F401
    from matplotlib import pyplot as plt
    from matplotlib_inline import backend_inline  # noqa: F401

    numba.njit(lambda: 0)()
    figure, ax = plt.subplots(layout="constrained")
    ax.loglog([1, 1000], [1, 1000], label=r"$\lambda_k^{d}$")
    ax.legend()
    figure.savefig(io.BytesIO())
    plt.close(figure)


def serve():
    warm_up()
    for line in sys.stdin:
        notebook, folder, parameters = json.loads(line)
        with tempfile.TemporaryFile("w+") as answer:
            child = os.fork()
            if child == 0:
                try:
                    os.chdir(folder)
                    os.environ["SUPERMARKET_BUILD"] = str(Path(folder, "build"))
                    json.dump(execute(notebook, parameters), answer)
                    answer.flush()
                    os._exit(0)
                except BaseException:
                    traceback.print_exc()
                    os._exit(1)
            _, status = os.waitpid(child, 0)
            answer.seek(0)
            died = {"errors": [["Died", f"status {status}", []]], "kinds": [], "printed": ""}
            print(json.dumps(died) if status else answer.read(), flush=True)


if __name__ == "__main__":
    serve()
