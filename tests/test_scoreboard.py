"""The page of all verdicts, from made-up ones."""

import json
from pathlib import Path
from types import SimpleNamespace

from tools.scoreboard import PLACE, scoreboard

ROOT = Path(__file__).resolve().parents[1]


def run(folder, name, title, verdicts):
    notebook = folder / f"{name}.ipynb"
    cells = [{"cell_type": "markdown", "source": [f"# {title}\n", "text"]}]
    notebook.write_text(json.dumps({"cells": cells}))
    file = folder / f"{name}.json"
    file.write_text(json.dumps(verdicts))
    return SimpleNamespace(notebook=notebook, results=lambda: {"verdicts": file})


def verdict(claim, holds, low=0.4, high=0.6):
    ends = {"low": low, "high": high} if holds is not None else {"low": None, "high": None}
    return {"claim": claim, "source": "s", "predicted": 0.5, "measured": 0.5, "holds": holds} | ends


def test_every_verdict_is_there_and_counted(tmp_path):
    first = run(tmp_path, "a", "First page", [verdict("k < 2", True), verdict("c2", False)])
    second = run(tmp_path, "b", "Second page", [verdict("c3", None)])
    text = scoreboard([first, second])
    assert text.startswith("3 claims: 1 hold, 1 do not, and for 1 the run was too short to tell.")
    assert "| [First page](../notebooks/a.ipynb) | 1 | 1 | 0 |" in text
    assert "| [Second page](../notebooks/b.ipynb) | 0 | 0 | 1 |" in text
    assert "<td>k &lt; 2</td><td>yes</td><td>0.5</td><td>0.5</td><td>0.4 to 0.6</td>" in text
    assert "<td>c2</td><td>NO</td>" in text
    assert "<td>c3</td><td>run too short</td>" in text
    assert text.index("## First page") < text.index("## Second page")


def test_the_page_has_the_place_for_it():
    assert PLACE in (ROOT / "book" / "scoreboard.md").read_text()
