"""Theorem boxes: what a page writes, and what the book and the page of one run make of it."""

import json
import re

import pytest

from supermarket import ParameterError
from supermarket.experiment import boxes
from supermarket.experiment.page import page
from supermarket.experiment.statements import find
from tools import BuildError
from tools.pages import Boxes

LEDGER = """papers: {Someone2000: Someone & Other}
statements:
- {id: first, paper: Someone2000, number: Theorem 1, name: The first, standing: printed,
   box: theorem, statement: "For all $n < 3$, by {cite:t}`Someone2000`, as {prf:ref}`second`.",
   hypotheses: ["$d$ is fixed"], pages: [p]}
- {id: second, paper: Someone2000, name: The second, standing: form, statement: It is so.,
   unshown: it is a definition}
- {id: third, paper: here, name: The third, standing: derived, statement: It is ours., pages: [p]}
"""
BOX = "Before.\n\n```{statement} first\n```\n\nAfter, {prf:ref}`first` and {prf:ref}`second`.\n"


@pytest.fixture(autouse=True)
def ledger(tmp_path, monkeypatch):
    (tmp_path / "statements.yml").write_text(LEDGER)
    monkeypatch.setenv("SUPERMARKET_NOTEBOOKS", str(tmp_path))


@pytest.fixture
def book(tmp_path):
    """Two pages that have the same box, a notebook and prose."""
    notebook, prose = tmp_path / "one.ipynb", tmp_path / "two.md"
    cells = [{"cell_type": "markdown", "source": BOX.splitlines(keepends=True)},
             {"cell_type": "code", "source": "```{statement} nothing\n```"}]  # fmt: skip
    notebook.write_text(json.dumps({"cells": cells}))
    prose.write_text(BOX)
    return [notebook, prose]


def test_a_statement_is_in_full_once_and_then_a_sentence(book):
    texts = Boxes(book)
    full, later = texts.expand(BOX), texts.expand(BOX)
    assert "````{prf:theorem} The first\n:label: first\n\nFor all $n < 3$" in full
    assert "{cite:t}`Someone2000`, Theorem 1, in our words." in full
    assert '<a href="../book/statements.html#first">In the ledger</a>' in full
    assert "{prf:theorem}" not in later
    assert (
        "**The first** (Someone & Other, Theorem 1) is stated in full as {prf:ref}`first`." in later
    )


def test_a_reference_leads_to_the_box_or_to_the_ledger(book):
    for text in (Boxes(book).expand(BOX), Boxes(book).expand("As {prf:ref}`second`")):
        assert '<a href="../book/statements.html#second">The second</a>' in text
        assert "{prf:ref}`second`" not in text
    assert "After, {prf:ref}`first`" in Boxes(book).expand(BOX)
    assert Boxes(book).expand("{prf:ref}`elsewhere`") == "{prf:ref}`elsewhere`"


def test_what_is_not_in_the_ledger_stops_the_book(book):
    book[1].write_text(BOX.replace("first", "frist"))
    with pytest.raises(BuildError, match=r"two.md: frist is not .* \(did you mean first\?\)"):
        Boxes(book)


def test_where_a_statement_comes_from():
    assert boxes.provenance(find("second")).startswith("In the form of {cite:t}`Someone2000`;")
    assert boxes.provenance(find("third")).startswith("Derived in this project. <a")
    assert boxes.named(BOX + "```{statement} third\n:class: x\n```") == ["first", "third"]
    with pytest.raises(ParameterError, match="frist is not a statement"):
        boxes.expand("```{statement} frist\n```", boxes.box)


def links(html):
    return re.findall(r'href="([^"]+)"', html)


def test_the_page_of_one_run_has_each_statement_in_full_and_no_link_dangles(tmp_path):
    shown = '<a href="../book/statements.html#third">T</a> <a href="../book/x.html#y">no</a>'
    output = {"data": {"text/html": shown}}
    cells = [
        {"cell_type": "markdown", "source": BOX + BOX + "[next](other.ipynb)", "metadata": {}},
        {"cell_type": "code", "source": "1", "metadata": {}, "outputs": [output]},
    ]
    html = page({"cells": cells}, "One", tmp_path)
    assert html.count("Theorem: The first") == 2  # as often as the page has it
    assert "<li><span" in html or "<li>" in html  # its hypotheses
    assert "by Someone &amp; Other, as" in html
    assert html.count("Proposition: The second") == html.count("Proposition: The third") == 1
    anchors = set(re.findall(r'id="([^"]+)"', html))
    assert links(html)
    assert all(link[0] == "#" and link[1:] in anchors for link in links(html))
    assert "no" in html
    assert "next" in html
    assert "{" + "cite" not in html
    assert "table.verdicts" in html  # dressed


def test_the_page_of_one_run_refuses_what_is_not_in_the_ledger(tmp_path):
    cells = [{"cell_type": "markdown", "source": "```{statement} frist\n```", "metadata": {}}]
    with pytest.raises(ParameterError, match="frist is not a statement"):
        page({"cells": cells}, "One", tmp_path)
