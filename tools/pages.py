"""Turn the executed notebooks and the prose into HTML.

Jupyter Book reads a staged tree, `build/src`, that mirrors the project: `_config.yml`, `_toc.yml`,
`book/` and, in place of the committed notebooks, the executed ones.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from supermarket.experiment import boxes, verdict_table
from supermarket.experiment.page import joined, mathjax
from supermarket.experiment.statements import Statement
from supermarket.validation import ParameterError
from tools import BuildError, api_pages, front, scoreboard, statements_page
from tools.runs import Run

DATA = ("verdicts", "provenance")  # beside each notebook, for readers to take away
THEBE = re.compile(
    r"<script>const THEBE_JS_URL[^<]*</script>|<script[^>]*sphinx-thebe\.js[^>]*></script>"
)


def listed(root: Path) -> list[Path]:
    """Return the source file of every page in `_toc.yml`, in the order of the book.

    Raises
    ------
    BuildError
        If an entry is neither a notebook nor a Markdown file.
    """
    pages = []
    for entry in _entries(yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))):
        found = [file for end in (".ipynb", ".md") if (file := root / f"{entry}{end}").is_file()]
        if len(found) != 1:
            problem = "both are there" if found else "neither is there"
            raise BuildError(f"_toc.yml lists {entry}: {entry}.ipynb or {entry}.md, but {problem}.")
        pages += found
    return pages


def stage(root: Path, runs: Iterable[Run]) -> Path:
    """Lay out the tree that Jupyter Book reads, and return it."""
    runs = list(runs)
    src = root / "build" / "src"
    shutil.rmtree(src, ignore_errors=True)
    shutil.copytree(root / "book", src / "book")
    for name in ("_config.yml", "_toc.yml"):
        shutil.copyfile(root / name, src / name)
    _copy_mathjax(src / "book" / "assets" / "mathjax")
    shutil.copyfile(verdict_table.STYLE, src / "book" / "assets" / "verdicts.css")
    board, ledger = src / "book" / "scoreboard.md", src / "book" / "statements.md"
    if board.is_file():
        why = scoreboard.findings(root, runs)
        _fill(board, scoreboard.PLACE, scoreboard.scoreboard(runs, why, src / "book"))
    if ledger.is_file():
        _fill(ledger, statements_page.PLACE, statements_page.statements_page(root, runs))
    by_notebook = {run.notebook: run for run in runs}
    texts = Boxes(listed(root))
    for page in listed(root):
        target = src / page.relative_to(root)
        if page.suffix == ".md":
            text = api_pages.expand(texts.expand(target.read_text(encoding="utf-8")), root)
            if page.name == "notation.md":
                text = api_pages.link(text, root)
            target.write_text(text, encoding="utf-8")
        elif page in by_notebook:
            _stage_notebook(
                by_notebook[page], target, texts,
                lambda text, folder=target.parent: front.fill(text, root, runs, folder),
            )  # fmt: skip
    return src


def _fill(page: Path, place: str, text: str) -> None:
    page.write_text(page.read_text(encoding="utf-8").replace(place, text), encoding="utf-8")


def _stage_notebook(run: Run, target: Path, texts: "Boxes", fill: Callable[[str], str]) -> None:
    content = with_results(run)
    target.parent.mkdir(exist_ok=True)
    for cell in content["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = texts.expand(fill("".join(cell["source"])))
    content["cells"].append(_to_take_away(run))
    for kind in DATA:
        shutil.copyfile(run.results()[kind], target.with_suffix(f".{kind}.json"))
    target.write_text(json.dumps(_for_readers(content), indent=1), encoding="utf-8")


def with_results(run: Run) -> dict[str, Any]:
    """Return the committed notebook with the results of its run.

    Prose may have changed since the run, and comments in the code: these are the committed ones.
    """
    executed = json.loads(run.results()["notebook"].read_text(encoding="utf-8"))
    code = [cell for cell in executed["cells"] if cell["cell_type"] == "code"]
    put_in = [cell for cell in code if "injected-parameters" in cell["metadata"].get("tags", [])]
    done = iter([cell for cell in code if cell not in put_in])
    content = json.loads(run.notebook.read_text(encoding="utf-8"))
    cells = []
    for cell in content["cells"]:
        cells.append(cell)
        if cell["cell_type"] == "code":
            result = next(done)
            cell["outputs"], cell["execution_count"] = result["outputs"], result["execution_count"]
            if "parameters" in cell["metadata"].get("tags", []):
                cells += put_in  # where papermill put them
    return content | {"cells": cells}


class Boxes:
    """The boxes of the book: each statement in full where it comes first, then a sentence.

    Parameters
    ----------
    pages : list of Path
        In the order of the book.

    Raises
    ------
    BuildError
        If a page has a box of a statement that is not in the ledger.
    """

    def __init__(self, pages: Iterable[Path]) -> None:
        self.boxed: set[str] = set()
        self._seen: set[str] = set()
        for page in pages:
            for text in _texts(page):
                try:
                    boxes.expand(text, lambda entry: self.boxed.add(entry.id) or "")
                except ParameterError as error:
                    raise BuildError(f"{page.name}: {error}") from None

    def expand(self, text: str) -> str:
        """Return a text of the next page with its boxes, and its references to statements."""
        return boxes.linked(boxes.expand(text, self._shown), self.boxed)

    def _shown(self, entry: Statement) -> str:
        if entry.id in self._seen:
            return boxes.pointer(entry)
        self._seen.add(entry.id)
        return boxes.box(entry)


def _texts(page: Path) -> list[str]:
    """Return the Markdown of a page: of its cells, if it is a notebook."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".md":
        return [text]
    cells = json.loads(text)["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]


def build_html(src: Path, output: Path) -> Path:
    """Run Jupyter Book from clean on a staged tree, and return the folder of the pages.

    Raises
    ------
    BuildError
        On any error or warning; its text holds all that Sphinx said.
    """
    shutil.rmtree(output, ignore_errors=True)
    command = [
        Path(sys.executable).with_name("jupyter-book"), "build", src,
        "--config", src / "_config.yml", "--toc", src / "_toc.yml", "--path-output", output,
        "-W", "-n", "--keep-going", "-q",
    ]  # fmt: skip
    done = subprocess.run(
        list(map(str, command)),
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])},  # for tools.docstrings
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    if done.returncode:
        said = done.stdout.decode("utf-8", errors="replace")
        # Jupyter Book ends with a traceback of its own, which says nothing about the book.
        raise BuildError("Sphinx refused the book:\n" + said.partition("Traceback (most")[0])
    html = output / "_build" / "html"
    _drop_thebe(html)
    return html


def _drop_thebe(html: Path) -> None:
    """Remove the scripts of live cells: they stand twice in each page, which is an error there."""
    for page in html.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        page.write_text(THEBE.sub("", text), encoding="utf-8")


def _entries(toc: Any) -> Iterator[str]:
    """Yield the pages of a table of contents, whatever its nesting."""
    if isinstance(toc, dict):
        yield from (toc[key] for key in ("root", "file") if key in toc)
        toc = list(toc.values())
    if isinstance(toc, list):
        for part in toc:
            yield from _entries(part)


def _for_readers(content: dict[str, Any]) -> dict[str, Any]:
    """Hide the parameter cells on the page, where a table of the parameters used stands instead.

    They stay in the file, which readers download and can execute again. Code that shows nothing
    is folded with what follows it. The paths and times that papermill adds are for neither.
    """
    content["metadata"].pop("papermill", None)
    for cell in content["cells"]:
        cell["metadata"].pop("papermill", None)
        cell["metadata"].pop("execution", None)
        tags = cell["metadata"].get("tags", [])
        if {"parameters", "injected-parameters"} & set(tags):
            cell["metadata"]["tags"] = [*tags, "remove-cell"]
    return content | {"cells": joined(content["cells"])}


def _to_take_away(run: Run) -> dict[str, Any]:
    """Return the last cell of a page: the command that computes it again, and its files."""
    change = " seed=2" if "seed" in _parameters(run) else ""
    text = (
        "**With your own numbers**, from the root of the repository:\n\n```bash\n"
        f".venv/bin/python -m supermarket run {run.name}{change} --out mine\n```\n\n"
        f"**Files of this page**: {{download}}`the executed notebook <{run.notebook.name}>`, "
        f"{{download}}`its verdicts <{run.name}.verdicts.json>` and "
        f"{{download}}`what made them <{run.name}.provenance.json>`.\n"
    )
    return {"cell_type": "markdown", "id": "take-away", "metadata": {}, "source": text}


def _parameters(run: Run) -> dict[str, Any]:
    provenance = json.loads(run.results()["provenance"].read_text(encoding="utf-8"))
    return provenance.get("parameters", {})


def _copy_mathjax(target: Path) -> None:
    """Copy the part of MathJax that the pages use, so that formulas need no network.

    The package that holds it is a Sphinx extension that would copy all of its 15 MB.
    """
    source = mathjax()
    if source is None:
        raise BuildError(
            "The package sphinx-mathjax-offline is not installed: remove .venv and `make book`."
        )
    fonts = Path("output", "chtml", "fonts", "woff-v2")
    shutil.copytree(source / fonts, target / fonts)
    shutil.copy(source / "tex-chtml-full.js", target)  # with every TeX extension, none to fetch
