"""One experiment: the executed notebook, its page, its figures and its verdicts, in a folder."""

import base64
import json
import shutil
import sys
from pathlib import Path
from typing import Any

from supermarket.experiment import catalogue
from supermarket.experiment import jupyter as kernels
from supermarket.experiment.files import OutsideError
from supermarket.experiment.page import page
from supermarket.validation import ParameterError


def run(name: str, values: dict[str, Any], out: Path, *, progress: bool = False) -> dict[str, Any]:
    """Execute an experiment in a Jupyter kernel of its own.

    Parameters
    ----------
    name : str
        An experiment.
    values : dict
        Parameters to change, by name.
    out : Path
        Where the results go: ``<name>.ipynb``, ``<name>.html``, ``figures/``,
        ``verdicts/<name>.json`` and ``provenance/<name>.json``. Runs of several experiments may
        share it.
    progress : bool
        Whether a bar on stderr shows the cells.

    Returns
    -------
    dict
        "verdicts", and the paths of the "notebook", "page" and "figures".

    Raises
    ------
    ParameterError
        If the experiment or a parameter is unknown, of the wrong type or out of range, or the
        folder holds its results already.
    OutsideError
        If the notebook fails otherwise; ``<name>.failed.ipynb`` then shows where.
    """
    notebook = catalogue.find_notebook(name)
    values = notebook.check(values)
    if (out / f"{name}.ipynb").exists() or (out / "sweep.json").exists():
        raise ParameterError(f"{out} holds the results of an earlier run: choose another folder.")
    part = out / f".{name}.part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        _execute(notebook, values, part, out, progress)
        content = json.loads((part / f"{name}.ipynb").read_text(encoding="utf-8"))
        figures = _figures(content, part / "figures")
        html = page(content, notebook.title, part)
        (part / f"{name}.html").write_text(html, encoding="utf-8")
        verdicts = json.loads((part / "verdicts" / f"{name}.json").read_text(encoding="utf-8"))
        # The notebook comes last: with it the results are there.
        for file in sorted(part.rglob("*"), key=lambda file: file.suffix == ".ipynb"):
            if file.is_file():
                target = out / file.relative_to(part)
                target.parent.mkdir(exist_ok=True)
                file.replace(target)
    finally:
        shutil.rmtree(part, ignore_errors=True)
        if not any(out.iterdir()):
            out.rmdir()
    return {
        "notebook": str(out / f"{name}.ipynb"),
        "page": str(out / f"{name}.html"),
        "figures": [str(out / "figures" / figure) for figure in figures],
        "verdicts": verdicts,
    }


def _execute(
    notebook: catalogue.Notebook, values: dict[str, Any], part: Path, out: Path, progress: bool
) -> None:
    from nbclient.exceptions import DeadKernelError
    from papermill.exceptions import PapermillExecutionError

    executed = part / f"{notebook.name}.ipynb"
    try:
        kernels.execute(
            notebook.path, executed, values, part, progress=progress and sys.stderr.isatty()
        )
    except (PapermillExecutionError, DeadKernelError) as failure:
        failed = out / f"{notebook.name}.failed.ipynb"
        executed.replace(failed)
        if isinstance(failure, DeadKernelError):
            said = "its process died: out of memory?"
        else:
            said = " ".join(f"{failure.ename}: {failure.evalue}".split())
        raise OutsideError(f"{notebook.name} failed ({said}): {failed} shows where.") from None


def _figures(content: dict[str, Any], folder: Path) -> list[str]:
    """Write the figures as PNG, named as in the notebook, and return their names."""
    names = []
    for cell in content["cells"]:
        for output in cell.get("outputs", []):
            if image := output.get("data", {}).get("image/png"):
                name = cell["metadata"].get("mystnb", {}).get("figure", {}).get("name", "figure")
                while f"{name}.png" in names:
                    name += "-more"
                folder.mkdir(exist_ok=True)
                (folder / f"{name}.png").write_bytes(base64.b64decode("".join(image)))
                names.append(f"{name}.png")
    return names
