"""What the landing page has of all others: a card for each page, and the score."""

import base64
import io
import json

import pytest
from PIL import Image

from tools import BuildError, front
from tools.runs import Run


def verdict(outcome, kind="paper"):
    return {"claim": "c", "kind": kind, "outcome": outcome, "hypotheses": [], "low": 0}


@pytest.fixture
def project(tmp_path):
    (tmp_path / "_toc.yml").write_text(
        "root: notebooks/start\nparts:\n- caption: Fine things\n  chapters:\n"
        "  - file: notebooks/one\n- caption: Prose\n  chapters:\n  - file: book/text\n"
    )
    picture = io.BytesIO()
    Image.new("RGB", (1000, 2000), "red").save(picture, "png")
    png = base64.b64encode(picture.getvalue()).decode()
    cells = [{"cell_type": "markdown", "metadata": {}, "source": "# The first\n\nText."}]
    outputs = [{"data": {"text/plain": "text"}}, {"data": {"image/png": png}}]
    cells += [{"cell_type": "code", "metadata": {}, "source": "draw()", "outputs": outputs}]
    notebook = tmp_path / "one.ipynb"
    notebook.write_text(json.dumps({"cells": cells, "metadata": {"description": "It is so."}}))
    run = Run(notebook, tmp_path / "run", {})
    for file in run.results().values():
        file.parent.mkdir(parents=True, exist_ok=True)
    run.results()["notebook"].write_text(notebook.read_text())
    found = [verdict("holds"), verdict("holds", "derived"), verdict("does not hold")]
    found += [verdict("does not hold", "negative control"), verdict("holds", "negative control")]
    run.results()["verdicts"].write_text(json.dumps(found))
    return tmp_path, run


def test_a_card_for_each_page_with_a_small_picture(project):
    root, run = project
    made = front.fill(f"A\n\n{front.MAP}\n\nZ", root, [run], root / "page")
    assert made.startswith("A\n\n**Fine things**\n")
    assert made.count("grid-item-card") == 1
    assert "Prose" not in made
    for line in (
        ":::{grid-item-card} The first",
        ":link: one",
        "It is so.",
        ":img-top: map/one.png",
    ):
        assert line in made.splitlines()
    picture = Image.open(root / "page/map/one.png")
    assert picture.size == (480, 300)
    assert picture.convert("RGB").getpixel((10, 10)) == (255, 0, 0)


def test_how_often_the_book_is_wrong(project):
    root, run = project
    made = front.fill(front.SCORE, root, [run], root)
    assert "Of 3 claims" in made
    assert "2 hold and 1 does not" in made
    assert made.endswith("2 more were made to fail, to see whether a false claim is found out; "
                         "1 of these was refused.")  # fmt: skip


def test_other_texts_are_as_they_were_and_a_page_without_a_sentence_is_named(project):
    root, run = project
    assert front.fill("A text.", root, [run], root) == "A text."
    content = json.loads(run.notebook.read_text())
    run.notebook.write_text(json.dumps(content | {"metadata": {}}))
    with pytest.raises(BuildError, match=r"one\.ipynb has no description in its metadata"):
        front.fill(front.MAP, root, [run], root)
