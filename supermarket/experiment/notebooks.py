"""One experiment: the executed notebook, its page, its figures and its verdicts, in a folder."""

import base64
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from supermarket.experiment import catalogue
from supermarket.experiment import jupyter as kernels
from supermarket.experiment.files import PATH, OutsideError, alone, make_folder, remove, write
from supermarket.experiment.page import page
from supermarket.validation import ParameterError, said


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
        share it, also at the same time.
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
        folder holds its results already, or can't hold them.
    OutsideError
        If the notebook fails otherwise; ``<name>.failed.ipynb`` then shows where. Or if another
        run of this experiment is at work in the folder.
    """
    notebook = catalogue.find_notebook(name)
    values = notebook.check(values)
    made = make_folder(out)
    lock, part = out / f".{name}.lock", out / f".{name}.part"
    busy = f"Another run of {name} is at work in {said(out, str, PATH)}: wait for it, or stop it."
    try:
        with alone(lock, busy):
            try:
                _check_free(name, out)
                own = {file.name for file in part.glob("figures/*")}  # of a run that was killed
                others = {file.name for file in out.glob("figures/*")} - own
                remove(part)
                part.mkdir()
                _execute(notebook, values, part, out, progress)
                figures = _results(notebook, part, others)
                # What is copied stays: it tells whose it is. With the notebook all is there.
                for file in sorted(part.rglob("*"), key=lambda file: file.suffix == ".ipynb"):
                    if file.is_file():
                        write(out / file.relative_to(part), file.read_bytes())
                verdicts = (part / "verdicts" / f"{name}.json").read_text(encoding="utf-8")
            finally:
                remove(part)
                lock.unlink(missing_ok=True)
    finally:
        if made and not any(out.iterdir()):
            out.rmdir()
    return {
        "notebook": str(out / f"{name}.ipynb"),
        "page": str(out / f"{name}.html"),
        "figures": [str(out / "figures" / figure) for figure in figures],
        "verdicts": json.loads(verdicts),
    }


def _check_free(name: str, out: Path) -> None:
    """Refuse a folder that holds results, or from which links lead elsewhere."""
    if (out / f"{name}.ipynb").exists() or (out / "sweep.json").exists():
        raise ParameterError(
            f"{said(out, str, PATH)} holds the results of an earlier run: choose another folder."
        )
    for folder in ("figures", "verdicts", "provenance"):
        if (out / folder).is_symlink():
            raise ParameterError(
                f"{said(out / folder, str, PATH)} is a link to another folder: remove it, or choose"
                " another folder."
            )


def _results(notebook: catalogue.Notebook, part: Path, others: set[str]) -> list[str]:
    """Make the page and the figures of an executed notebook; return the names of the figures."""
    content = json.loads((part / f"{notebook.name}.ipynb").read_text(encoding="utf-8"))
    html = page(content, notebook.title, part)
    (part / f"{notebook.name}.html").write_text(html, encoding="utf-8")
    names = []
    for figure, image in _figures(content["cells"]):
        # The notebook of another run in this folder may have given the same name.
        clash = f"{figure}.png" in others
        names.append(f"{notebook.name}-{figure}.png" if clash else f"{figure}.png")
        (part / "figures").mkdir(exist_ok=True)
        (part / "figures" / names[-1]).write_bytes(image)
    return names


def _execute(
    notebook: catalogue.Notebook, values: dict[str, Any], part: Path, out: Path, progress: bool
) -> None:
    from papermill.exceptions import PapermillExecutionError

    executed = part / f"{notebook.name}.ipynb"
    try:
        kernels.execute(
            notebook.path, executed, values, part, progress=progress and sys.stderr.isatty()
        )
        if not (part / "verdicts" / f"{notebook.name}.json").is_file():
            raise OutsideError("it left no verdicts, which run.finish() writes")
        return
    except PapermillExecutionError as failure:
        why = said(f"{failure.ename}: {failure.evalue}".rstrip(": "), str, longest=300)
    except OutsideError as failure:
        why = str(failure)
    failed = out / f"{notebook.name}.failed.ipynb"
    executed.replace(failed)
    raise OutsideError(f"{notebook.name} failed ({why}): {failed} shows where.")


def _figures(cells: list[dict[str, Any]]) -> Iterator[tuple[str, bytes]]:
    """Yield the figures as PNG, each with its name, of which no two are the same."""
    seen: set[str] = set()
    for cell in cells:
        for output in cell.get("outputs", []):
            if image := output.get("data", {}).get("image/png"):
                shown = cell["metadata"].get("mystnb", {}).get("figure", {})
                name = re.sub(r"[^\w.-]+", "-", str(shown.get("name", "figure"))).lstrip(".")
                while name in seen:
                    name += "-more"
                seen.add(name)
                yield name, base64.b64decode("".join(image))
