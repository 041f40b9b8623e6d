"""The experiments: their notebooks, with what each asks and its parameters."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import supermarket
from supermarket.experiment.parameters import Parameter, declared
from supermarket.validation import ParameterError, nearest, said


@dataclass(frozen=True)
class Notebook:
    """One experiment.

    Attributes
    ----------
    name, title, question : str
        File name without its ending, heading, and first paragraph.
    path : Path
        The notebook's file.
    parameters : dict of str to Parameter
        In the order of the notebook.
    cells : tuple of str
        Source of each code cell.
    parameters_cell : int
        Which of them holds the parameters.
    """

    name: str
    title: str
    question: str
    path: Path
    parameters: dict[str, Parameter]
    cells: tuple[str, ...]
    parameters_cell: int

    def check(self, values: Mapping[str, object]) -> dict[str, Any]:
        """Return `values`, each as its parameter's kind has it.

        Raises
        ------
        ParameterError
            If a name is unknown, or a value of another type or out of range.
        """
        return {name: self.parameter(name).check(value) for name, value in values.items()}

    def parse(self, words: list[str]) -> dict[str, Any]:
        """Return the values of words such as ``n=1000``, as typed on a command line.

        Raises
        ------
        ParameterError
            If a word has no ``=``, a name is unknown or repeated, or a value is refused.
        """
        values: dict[str, Any] = {}
        for word in words:
            name, equals, text = word.partition("=")
            if not equals:
                raise ParameterError(
                    f"{said(word, str)} gives no value: write name=value, such as n=1000."
                )
            if name in values:
                raise ParameterError(f"{said(name, str)} is given twice: give it once.")
            values[name] = self.parameter(name).parse(text)
        return values

    def parameter(self, name: str) -> Parameter:
        """Return a parameter by its name.

        Raises
        ------
        ParameterError
            If there is none; the sentence lists those there are, and names the nearest.
        """
        if name not in self.parameters:
            raise ParameterError(
                f"{said(name, str)} is not a parameter of {self.name}: choose from "
                f"{', '.join(self.parameters)}{nearest(name, self.parameters)}."
            )
        return self.parameters[name]

    def code(self, values: Mapping[str, Any]) -> list[str]:
        """Return the code cells with `values` set in a cell after the parameters, as papermill."""
        lines = ["# Parameters", *(f"{name} = {value!r}" for name, value in values.items())]
        at = self.parameters_cell + 1
        return [*self.cells[:at], "\n".join(lines) + "\n", *self.cells[at:]]


def folder() -> Path:
    """Return where the notebooks are.

    The environment variable SUPERMARKET_NOTEBOOKS names another folder with notebooks of the same
    form; else they lie inside an installed package, or beside the package in a checkout.
    """
    if named := os.environ.get("SUPERMARKET_NOTEBOOKS"):
        return Path(named)
    package = Path(supermarket.__file__).parent
    installed = package / "notebooks"
    return installed if installed.is_dir() else package.parent / "notebooks"


def names() -> list[str]:
    """Return the names of all experiments, in alphabetical order.

    Raises
    ------
    ParameterError
        If there are none.
    """
    found = sorted(path.stem for path in folder().glob("[!.]*.ipynb") if path.is_file())
    if not found:
        raise ParameterError(
            f"{folder()} holds no notebooks: name their folder in SUPERMARKET_NOTEBOOKS."
        )
    return found


def find_notebook(name: str) -> Notebook:
    """Return an experiment by its name.

    Raises
    ------
    ParameterError
        If there is none; the sentence lists those there are, and names the nearest.
    """
    known = names()
    if name not in known:
        raise ParameterError(
            f"{said(name, str)} is not an experiment: choose from {', '.join(known)}"
            f"{nearest(name, known)}."
        )
    return read(folder() / f"{name}.ipynb")


def read(path: Path) -> Notebook:
    """Return the experiment in a file.

    Raises
    ------
    ParameterError
        If it can't be read, has no parameters cell, or that is none.
    """
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        title, question, *_ = [*paragraphs(cells), ""]
        code = [cell for cell in cells if cell["cell_type"] == "code"]
        tagged = [i for i, c in enumerate(code) if "parameters" in c["metadata"].get("tags", [])]
        sources = tuple("".join(cell["source"]) for cell in code)
    except OSError as error:
        raise ParameterError(f"{path} can't be read: {error.strerror}.") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ParameterError(
            f"{path} is no Jupyter notebook of version 4: mend or remove it."
        ) from None
    if len(tagged) != 1:
        raise ParameterError(
            f"{path} needs one cell with the tag parameters: it has {len(tagged)}."
        )
    try:
        parameters = declared(sources[tagged[0]])
    except ParameterError as error:
        raise ParameterError(f"{path}: {error}") from None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ParameterError(f"{path}: its cell of parameters is not Python.") from None
    return Notebook(
        name=path.stem,
        title=title.lstrip("# "),
        question=question,
        path=path,
        parameters=parameters,
        cells=sources,
        parameters_cell=tagged[0],
    )


def paragraphs(cells: list[dict[str, Any]]) -> list[str]:
    """Return the text of a notebook, each paragraph in a line; the first is its heading."""
    text = "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    return [" ".join(part.split()) for part in text.split("\n\n")]


def depth(value: object) -> int:
    """Return how many lists lie one in another: 0 for a number, 1 for a list of numbers."""
    return 1 + depth(value[0]) if isinstance(value, list) and value else int(value == [])
