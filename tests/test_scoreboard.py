"""The scoreboard and the page of the ledger, from made-up verdicts."""

import json
import math
from pathlib import Path
from types import SimpleNamespace

import pytest
from bs4 import BeautifulSoup

from supermarket.estimate.intervals import Computed, Interval
from supermarket.experiment.statements import statements
from supermarket.experiment.verdicts import judge
from tools import BuildError, scoreboard, statements_page
from tools.scoreboard import FIGURE, Claim, claims, draw, findings, place

ROOT = Path(__file__).resolve().parents[1]
LEDGER = """papers: {Someone2000: Someone & Other}
statements:
- {id: share, paper: Someone2000, number: Theorem 2, name: A share, standing: printed,
   statement: For all $n$., hypotheses: [$d$ is fixed], pages: [a, b],
   predicts: ["supermarket.limits.mean_field.fixed_point:fixed_point",
   "supermarket.experiment.digits:_first"], against: {what: one choice less, scale: 0.1, why: it
   is}}
- {id: other, paper: Someone2000, number: Theorem 1, name: Another, standing: printed,
   statement: It is so., unshown: the display is missing}
- {id: twin, paper: Someone2000, name: A twin, standing: derived, kind: self-check, statement: x,
   pages: [a]}
"""


@pytest.fixture(autouse=True)
def ledger(tmp_path, monkeypatch):
    (tmp_path / "statements.yml").write_text(LEDGER)
    monkeypatch.setenv("SUPERMARKET_NOTEBOOKS", str(tmp_path))


def verdict(claim, predicted=2.0, low=1.95, high=2.04, **options):
    found = Interval((low + high) / 2, low, high, 0.99)
    return judge(claim, "share", predicted, found, {}, **options)


def run(folder, name, title, verdicts):
    notebook = folder / f"{name}.ipynb"
    cells = [{"cell_type": "markdown", "source": [f"# {title}\n", "\n", "text"]}]
    notebook.write_text(json.dumps({"cells": cells}))
    file = folder / f"{name}.json"
    file.write_text(json.dumps(verdicts))
    place = folder / "runs" / "book" / name
    return SimpleNamespace(
        name=name, notebook=notebook, folder=place, results=lambda: {"verdicts": file}
    )


@pytest.fixture
def book(tmp_path):
    twin = judge("equal", "twin", 1, Computed(1), {}, relation="exactly")
    outside = verdict("outside") | {"hypotheses": ["$n < 3$"]}
    first = [verdict("k < 2"), verdict("it fails", predicted=3), twin, outside]
    second = [verdict("blunt", low=1.0, high=3.0), verdict("caught", predicted=3, control=True)]
    return [run(tmp_path, "a", "First page", first), run(tmp_path, "b", "Second page", second)]


@pytest.fixture
def board(book, tmp_path):
    why = {("a", "it fails"): "It is $x < y$ small."}
    text = scoreboard.scoreboard(book, why, tmp_path)
    return text, BeautifulSoup(text, "html.parser")


def test_statements_are_scored_apart_from_all_else(board):
    text, _ = board
    assert text.startswith("**3 claims: 1 holds, 1 does not hold and 1 is too blunt.**")
    assert "1 claim outside the hypotheses" in text
    assert "1 self-check; 0 inputs" in text
    assert "1 negative control, made to fail, of which 1 was refused" in text
    assert "| statement of a paper | 1 | 1 | 1 |  |  | 3 |" in text
    assert "| outside the hypotheses | 1 |  |  |  |  | 1 |" in text
    assert "| negative control, to be refused |  | 1 |  |  |  | 1 |" in text
    assert "| all | 3 | 2 | 1 |  |  | 6 |" in text


def test_what_does_not_hold_is_listed_with_its_reason_and_address(board):
    _, soup = board
    items = soup.select("ol.findings li")
    assert [item["id"] for item in items] == [
        "finding-a-claim-it-fails", "finding-b-claim-blunt",
    ]  # fmt: skip
    assert items[0].a["href"] == "../notebooks/a.html#claim-it-fails"
    assert items[0].select_one(".math").get_text() == r"\(x < y\)"
    said = " ".join(items[0].get_text().split())
    assert "does not hold; predicted 3, measured 1.995 ± 0.045" in said
    assert "No reason is on record" in items[1].get_text()


def test_every_claim_is_in_the_table_and_can_be_asked_for(board):
    _, soup = board
    rows = soup.select("details.claims tbody tr")
    names = {"a": ["k-2", "it-fails", "equal", "outside"], "b": ["blunt", "caught"]}
    assert [row.select_one(".claim a")["href"] for row in rows] == [
        f"../notebooks/{page}.html#claim-{name}" for page in names for name in names[page]
    ]
    assert [row["data-inside"] for row in rows] == ["yes"] * 3 + ["no"] + ["yes"] * 2
    assert "First page, 4 claims" in soup.select_one("summary").get_text()
    form = soup.select_one("form.filter")
    assert form.has_attr("hidden")  # until the script is there
    for field in form.select("select"):
        values = {option["value"] for option in field.select("option")} - {""}
        assert values == {row[f"data-{field['name']}"] for row in rows}


def test_the_picture_says_what_it_shows(board, tmp_path):
    text, _ = board
    assert (tmp_path / FIGURE).read_bytes().startswith(b"\x89PNG")
    assert ":alt: 6 points on 2 strips, one for each page. Of the 5 equalities 3 lie in the" in text
    assert "2 points are numbered" in text


def test_where_a_claim_is_in_the_picture():
    assert place(verdict("c", predicted=1.995)) == pytest.approx(0)
    assert place(verdict("c", predicted=1.95)) == pytest.approx(1)
    assert place(verdict("c", predicted=2.085)) == pytest.approx(-2)
    exact = [judge("c", "share", 2.0, Computed(x), {}) for x in (2.0, 3.0, 1.0)]
    assert [place(one) for one in exact] == [0, math.inf, -math.inf]
    assert place(judge("c", "share", 2.0, Computed(2, math.nan, math.nan), {})) is None


def test_misses_are_numbered_in_the_picture(tmp_path, monkeypatch):
    import matplotlib.axes

    numbers = []
    monkeypatch.setattr(
        matplotlib.axes.Axes, "annotate", lambda _, text, *a, **options: numbers.append(text)
    )
    verdicts = [verdict("x"), verdict("y", predicted=3), verdict("z", low=1, high=3)]
    draw([Claim("a", "A", "claim-x", one) for one in verdicts], tmp_path / "x.png")
    assert numbers == ["1", "2"]


def test_the_reasons_of_a_profile(book, tmp_path):
    (tmp_path / "notebooks").mkdir()
    file = tmp_path / "notebooks" / "findings.yml"
    assert findings(tmp_path, book) == {}
    entry = "[{page: a, claim: it fails, outcome: does not hold, why: It  is\n small.}]"
    file.write_text(f"smoke: []\nbook: {entry}")
    assert findings(tmp_path, book) == {("a", "it fails"): "It is small."}
    file.write_text(f"smoke: {entry}")
    assert findings(tmp_path, book) == {}
    for bad in ("[]", "book: [x]", "book: [{page: a}]", "book: ["):
        file.write_text(bad if bad != "[]" else "[1]")
        with pytest.raises(BuildError, match=r"findings\.yml must name profiles"):
            findings(tmp_path, book)


@pytest.fixture
def page(book):
    return statements_page.statements_page(ROOT, book)


def entry(page, name):
    return page[page.index(f'id="{name}"') :].partition("</section>")[0]


def test_every_statement_has_a_place_and_what_there_is_to_say(page):
    soup = BeautifulSoup(page, "html.parser")
    assert {section["id"] for section in soup.select("section")} == set(statements())
    share = entry(page, "share")
    assert "For all $n$." in share
    assert "**Hypotheses.** $d$ is fixed." in share
    assert "**Standing.** {cite:t}`Someone2000`, Theorem 2, in our words." in share
    assert "one choice less: a scale of 10 % of the prediction, since it is." in share
    assert '<a href="api_limits.html#supermarket.fixed_point">' in share
    assert "<code>supermarket.experiment.digits._first</code>" in share
    assert "**Not shown.** The display is missing." in entry(page, "other")
    assert "Claims on it are self-checks" in entry(page, "twin")


def test_a_statement_leads_to_its_claims(page):
    share = BeautifulSoup(entry(page, "share"), "html.parser")
    lines = [" ".join(item.get_text().split()) for item in share.select("li")]
    assert lines == [
        "First page: 1 × holds, 1 × does not hold, 1 × holds (outside) ✓ ✗ ✓",
        "Second page: 1 × too blunt, 1 × refused, as it should be ◐ ✗",
    ]
    marks = [a["href"] for a in share.select(".marks a")]
    assert marks[:2] == ["../notebooks/a.html#claim-k-2", "../notebooks/a.html#claim-it-fails"]


def test_theorems_come_by_number_with_a_count_before(page):
    own = page[page.index("## Someone & Other") :].partition("\n## ")[0]
    assert own.index('id="other"') < own.index('id="share"') < own.index('id="twin"')
    assert (
        "Of 3 statements, 1 is shown by claims inside the hypotheses, 1 by self-checks or inputs "
        "only; 1 has no claim" in own
    )
    index = BeautifulSoup(own, "html.parser").select_one(".ledger-index").get_text()
    assert index == "Theorem 1 · Theorem 2 ✓ · A twin ✓"


def test_claims_know_their_page(book):
    found = claims(book)
    assert [claim.link for claim in found[:1]] == ["../notebooks/a.html#claim-k-2"]
    assert len(found) == 6


@pytest.mark.parametrize("module", [scoreboard, statements_page])
def test_the_page_has_the_place_for_it(module):
    name = module.__name__.rpartition(".")[2].removesuffix("_page")
    assert module.PLACE in (ROOT / "book" / f"{name}.md").read_text()
    assert f"book/{name}" in (ROOT / "_toc.yml").read_text()
