"""The cells that show their code run as they stand, and every page says what it is."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))
HEADLINES = [
    pytest.param("".join(cell["source"]), id=f"{file.stem}-{cell['id']}")
    for file in NOTEBOOKS
    for cell in json.loads(file.read_text(encoding="utf-8"))["cells"]
    if "headline" in cell["metadata"].get("tags", [])
]

pytestmark = pytest.mark.book  # once is enough


@pytest.mark.parametrize("code", HEADLINES)
def test_it_runs_in_a_fresh_interpreter_and_gives_a_number(code):
    work = [line for line in code.splitlines() if line and "import" not in line]
    assert len(work) <= 6
    *before, last = ast.parse(code).body
    shown = "\n".join([*map(ast.unparse, before), f"print(repr({ast.unparse(last)}))"])
    done = subprocess.run(
        [sys.executable, "-c", shown], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert any(figure.isdigit() for figure in done.stdout)
    assert "." not in done.stderr


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_each_page_has_a_sentence_for_the_map(file):
    if file.stem == "introduction":
        return
    sentence = json.loads(file.read_text(encoding="utf-8"))["metadata"]["description"]
    assert sentence[-1] in ".?"
    assert 30 < len(sentence) < 120
