"""The page of a run: all that the book's page shows, and nothing that leads nowhere."""

import json
import os
import re
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from markdown_it import MarkdownIt

from supermarket.experiment import boxes
from supermarket.experiment.page import page

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
HTML = Path(os.environ.get("SUPERMARKET_HTML", ROOT / "build" / "html"))
EXECUTED = sorted((ROOT / "build" / "runs").glob("*/*/*.ipynb"))

pytestmark = pytest.mark.book  # text alone: once is enough


def made(cells, tmp_path):
    soup = BeautifulSoup(page({"cells": cells}, "A title", tmp_path), "html.parser")
    for script in soup.find_all(["script", "style"]):
        script.decompose()
    return soup


def cell(*outputs, tags=(), source="1 + 1"):
    metadata = {"tags": list(tags)}
    return {"cell_type": "code", "metadata": metadata, "source": source, "outputs": list(outputs)}


def text(source, kind="markdown"):
    return {"cell_type": kind, "metadata": {}, "source": source}


def shown(**data):
    data = {form.replace("_", "/"): value for form, value in data.items()}
    return {"output_type": "display_data", "metadata": {}, "data": data}


def words(text):
    """Return a text as a reader sees it: without what only sets it, with single spaces."""
    text = re.sub(r"\\[()\[\]]|\$", "", text)
    return " ".join(re.sub(r"\s+", " ", text).split())


@pytest.mark.parametrize(
    ("output", "tag", "said"),
    [
        (shown(text_markdown="**d = 2** so $x < 1$", text_plain="<M>"), "strong", "d = 2"),
        (shown(text_html="<b>a</b>", text_markdown="no", image_png="no"), "b", "a"),
        (shown(text_latex="$$x^2$$", text_plain="<L>"), "div", "\n\\[x^2\\]\n"),
        (shown(text_plain=["a <b>\n", "c"]), "pre", "a <b>\nc"),
        ({"output_type": "stream", "text": ["so \x1b[31mmuch\x1b[0m\n"]}, "pre", "so much\n"),
        ({"output_type": "error", "traceback": ["\x1b[31mE\x1b[0m: 3", "x"]}, "pre", "E: 3\nx"),
    ],
)
def test_every_kind_of_output_is_shown_as_the_book_shows_it(output, tag, said, tmp_path):
    soup = made([cell(output, tags=["remove-input"])], tmp_path)
    assert [found.get_text() for found in soup.body.find_all(tag)] == [said]
    assert "<M>" not in soup.get_text()


@pytest.mark.parametrize(
    ("form", "source"),
    [("image_png", "data:image/png;base64,iVBOR"), ("image_jpeg", "data:image/jpeg;base64,iVBOR")],
)
def test_a_picture_is_a_figure_whatever_its_form(form, source, tmp_path):
    soup = made([cell(shown(**{form: "iVBO\nR", "text_plain": "<Figure>"}))], tmp_path)
    assert soup.img["src"] == source
    svg = made([cell(shown(**{"image_svg+xml": "<svg/>", "text_plain": "<Figure>"}))], tmp_path)
    assert svg.img["src"] == "data:image/svg+xml;base64,PHN2Zy8+"
    assert "<Figure>" not in soup.get_text() + svg.get_text()


def test_what_the_book_leaves_out_is_left_out(tmp_path):
    output = shown(text_plain="seen")
    cells = [
        cell(output, tags=["remove-cell"]), cell(output, tags=["remove-output"]),
        text("seen", "raw"),
    ]  # fmt: skip
    soup = made(cells, tmp_path)
    assert "seen" not in soup.get_text()
    assert len(soup.find_all("details")) == 1


def test_a_link_is_alive_or_plain_text(tmp_path):
    source = (
        "# A title\n\n## What is *seen*\n\n"
        "[here](#what-is-seen) [gone](#gone) [book](../book/lab.md) [file](<a b.csv>)\n"
        "[net](https://x.org)\n"
        "[other](log_log.ipynb) <a class='x' href=\"y.html\">raw</a> ![no picture](p.png)\n\n"
        "{cite:t}`BrightwellLuczak2012` {cite}`Nobody2000` {doc}`the lab <lab>` {ref}`plain` "
        "{math}`x^2`"
    )
    soup = made([text(source)], tmp_path)
    assert [link["href"] for link in soup.find_all("a")] == ["#what-is-seen", "https://x.org"]
    assert soup.find(id="what-is-seen").name == "h2"
    assert soup.img is None
    for word in ("here", "gone", "book", "file", "net", "other", "raw", "no picture", "the lab"):
        assert word in soup.get_text()
    assert "Brightwell & Luczak" in soup.get_text()
    assert "[Nobody2000] the lab plain \\(x^2\\)" in soup.get_text()


def test_boxes_of_any_fence_are_boxes(tmp_path):
    source = (
        "Before\n\n::::{admonition} Choices, $x$\n:class: dropdown note\n\nInside.\n::::\n\n"
        "```{prf:proof}\nIt is so.\n```\n\n```{note}\nMind.\n```\n\nAfter\n\n"
        "```python\nx = {1}\n```"
    )
    soup = made([text(source)], tmp_path)
    found = [
        [words(part.get_text()) for part in box.find_all("p")] for box in soup.select(".theorem")
    ]
    assert found == [["Choices, x", "Inside."], ["Proof", "It is so."], ["Note", "Mind."]]
    assert soup.pre.get_text() == "x = {1}\n"


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_nothing_on_a_page_leads_nowhere_or_is_left_as_it_is_written(file, tmp_path):
    content = json.loads(file.read_text(encoding="utf-8"))
    soup = made(content["cells"], tmp_path)
    places = {tag["id"] for tag in soup.find_all(id=True)}
    for link in soup.find_all("a", href=True):
        target = link["href"]
        assert target.startswith("https://") or target.removeprefix("#") in places, target
    for code in soup.find_all(["pre", "code"]):
        code.decompose()
    left = re.findall(r"\{[\w:-]+\}`|:::|```|\]\(", soup.get_text())
    assert left == []
    sources = "\n".join(
        "".join(c["source"]) for c in content["cells"] if c["cell_type"] == "markdown"
    )
    assert {f"{name}" for name in boxes.named(sources)} <= places


def said_by(output):
    """Return what an output says, by its data alone."""
    data = {form: "".join(value) for form, value in output.get("data", {}).items()}
    if "image/png" in data:
        return ""
    if "text/html" not in data and "text/markdown" in data:
        data["text/html"] = MarkdownIt().render(data["text/markdown"])
    if "text/html" in data:
        return BeautifulSoup(data["text/html"], "html.parser").get_text()
    return data.get("text/plain", "".join(output.get("text", "")))


@pytest.mark.pages
@pytest.mark.parametrize("file", EXECUTED, ids=lambda file: "-".join(file.parts[-3:-1]))
def test_the_page_of_a_run_says_what_the_page_of_the_book_says(file, tmp_path):
    """After `make book`: all text of all outputs is on both, and as many figures and tables."""
    content = json.loads(file.read_text(encoding="utf-8"))
    built = BeautifulSoup((HTML / "notebooks" / f"{file.stem}.html").read_text(), "html.parser")
    article = built.find("article")
    mine = made(content["cells"], tmp_path)
    outputs = [o for c in content["cells"] for o in c.get("outputs", [])]
    texts = [words(said_by(output)) for output in outputs]
    assert any(texts)
    for said in texts:
        assert said in words(mine.get_text())
        assert said in words(article.get_text())
    assert len(mine.find_all("table")) == len(article.find_all("table"))
    drawn = article.select("img:not(.sd-card-img-top)")  # not those of the map of the book
    assert len(mine.find_all("img")) == len(drawn)


@pytest.mark.pages
def test_there_are_pages_to_compare():
    if not EXECUTED:
        said = "No runs in build/runs: `make book` first."
        (pytest.fail if os.environ.get("CI") else pytest.skip)(said)
