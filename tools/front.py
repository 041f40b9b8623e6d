"""What the landing page has of all others: three doors, a map with a picture each, the score."""

import base64
import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from supermarket.experiment import catalogue
from supermarket.experiment.verdicts import CONTROL, as_expected, on_the_board
from tools import BuildError
from tools.runs import Run
from tools.scoreboard import claims

DOORS, MAP, SCORE = (f"<!-- front: {name} -->" for name in ("doors", "map", "score"))
WIDTH = 480  # of a picture, in pixels: twice as many as it is shown with

_DOORS = """\
::::{grid} 1 3 3 3
:gutter: 2

:::{grid-item-card} I have servers
:link: which_d
:link-type: doc

How many queues should each job look at, for your load and your service times?
:::
:::{grid-item-card} Show me the theorem
:link: maximum_queue
:link-type: doc

Nearly every queue of exactly the same length: what is left of it at real sizes?
:::
:::{grid-item-card} Let me play
:link: ../book/explorer
:link-type: doc

Move load, looks and number of queues, and see what the limit says.
:::
::::"""


def fill(source: str, root: Path, runs: Iterable[Run], folder: Path) -> str:
    """Return a text of the landing page with what belongs in its places.

    Parameters
    ----------
    source : str
        The text.
    root : Path
        The project.
    runs : iterable of Run
        Of all notebooks.
    folder : Path
        That of the page, in which a folder ``map`` gets the pictures.
    """
    runs = list(runs)
    for place, made in ((DOORS, lambda: _DOORS), (SCORE, lambda: _score(runs)),
                        (MAP, lambda: _map(root, runs, folder))):  # fmt: skip
        if place in source:
            source = source.replace(place, made())
    return source


def _map(root: Path, runs: list[Run], folder: Path) -> str:
    """Return cards of all experiments, in the parts of the book."""
    by_name = {run.name: run for run in runs}
    parts = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8")).get("parts", [])
    lines = []
    for part in parts:
        names = [Path(chapter["file"]).name for chapter in part["chapters"]]
        if cards := [_card(by_name[name], folder) for name in names if name in by_name]:
            lines += [f"**{part['caption']}**", "", "::::{grid} 1 2 3 3", ":gutter: 2", ""]
            lines += [*cards, "::::", ""]
    return "\n".join(lines)


def _card(run: Run, folder: Path) -> str:
    notebook = json.loads(run.notebook.read_text(encoding="utf-8"))
    description = notebook["metadata"].get("description")
    if not description:
        raise BuildError(f"{run.notebook.name} has no description in its metadata: write one.")
    title = catalogue.paragraphs(notebook["cells"])[0].lstrip("# ")
    top = ""
    if picture := _picture(run):
        (folder / "map").mkdir(parents=True, exist_ok=True)
        (folder / "map" / f"{run.name}.png").write_bytes(picture)
        top = f":img-top: map/{run.name}.png\n:img-alt: The first figure of {title}\n"
    return (
        f":::{{grid-item-card}} {title}\n{top}:link: {run.name}\n:link-type: doc\n\n"
        f"{description}\n:::"
    )


def _picture(run: Run) -> bytes | None:
    """Return the first figure of a page, small; None if it has none."""
    from PIL import Image

    executed: dict[str, Any] = json.loads(run.results()["notebook"].read_text(encoding="utf-8"))
    for cell in executed["cells"]:
        for output in cell.get("outputs", []):
            if png := output.get("data", {}).get("image/png"):
                image = Image.open(io.BytesIO(base64.b64decode("".join(png)))).convert("RGB")
                image = image.crop((0, 0, image.width, min(image.height, image.width * 5 // 8)))
                image.thumbnail((WIDTH, WIDTH))
                small = io.BytesIO()
                image.quantize(64).save(small, "png", optimize=True)
                return small.getvalue()
    return None


def _score(runs: list[Run]) -> str:
    """Return how often the book is wrong."""
    found = [claim.verdict for claim in claims(runs)]
    board = [verdict for verdict in found if on_the_board(verdict)]
    controls = [verdict for verdict in found if verdict["kind"] == CONTROL]
    missed = [verdict for verdict in board if not as_expected(verdict)]
    refused = sum(map(as_expected, controls))
    return (
        f"Of {len(board)} claims that theorems and derivations make of the sizes shown here, "
        f"{len(board) - len(missed)} hold and {len(missed)} "
        f"{'does' if len(missed) == 1 else 'do'} not, or could not be decided. "
        f"{len(controls)} more were made to fail, to see whether a false claim is found out; "
        f"{refused} of these {'was' if refused == 1 else 'were'} refused."
    )
