"""Notebooks executed in IPython, without a Jupyter kernel for each.

A kernel pays for its imports before its first cell: some four seconds. Here one process imports
everything and then forks for each notebook, so that none sees what another one left. It reads its
orders as lines of JSON: notebook, parameters, and the folder to run in.
"""

import contextlib
import importlib
import io
import json
import os
import pkgutil
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
    # Each figure is drawn once: to cut its margins off it would be drawn a second time.
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


def serve():
    import papermill.parameterize  # noqa: F401
    from IPython.core import interactiveshell  # noqa: F401
    from matplotlib_inline import backend_inline  # noqa: F401

    import supermarket

    for _, name, _ in pkgutil.walk_packages(supermarket.__path__, "supermarket."):
        if not name.endswith("__main__"):
            importlib.import_module(name)
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
