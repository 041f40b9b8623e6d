"""Tables of verdicts and of parameters: what a reader sees of each row, and how many rows."""

import math
import re

import pandas as pd
import pytest
from bs4 import BeautifulSoup

from supermarket.estimate.intervals import Computed, Interval
from supermarket.experiment.verdict_table import (
    MOST,
    ParameterTable,
    Table,
    VerdictTable,
    count,
    extremes,
    finding,
    inline,
    strip,
    table,
)
from supermarket.experiment.verdicts import addresses, judge

LEDGER = """papers: {Someone2000: Someone & Other}
statements:
- {id: share, paper: Someone2000, number: Theorem 1, name: A share, standing: printed,
   statement: x, against: {what: one choice less, scale: 0.1, why: it is}, pages: [p]}
- {id: own, paper: here, name: Our own, standing: derived, statement: x, pages: [p],
   against: {what: nothing, scale: 0.1, why: it is}}
- {id: twin, paper: here, name: A twin, standing: derived, kind: self-check, statement: x,
   pages: [p]}
"""


@pytest.fixture(autouse=True)
def ledger(tmp_path, monkeypatch):
    (tmp_path / "statements.yml").write_text(LEDGER)
    monkeypatch.setenv("SUPERMARKET_NOTEBOOKS", str(tmp_path))


def between(low, high):
    return Interval((low + high) / 2, low, high, 0.99, 50.0)


def verdict(claim="c", predicted=2.0, low=1.95, high=2.04, statement="share", **options):
    return judge(claim, statement, predicted, between(low, high), {}, **options)


def row(*verdicts, page="p"):
    soup = BeautifulSoup(VerdictTable(verdicts, page)._repr_html_(), "html.parser")
    return soup.select_one("tbody tr")


def text(tag):
    return " ".join(tag.get_text().replace("\u202f", " ").split())


def test_a_row_says_relation_prediction_estimate_and_half_width():
    found = row(verdict("share, d = 2"))
    assert [cell["class"][0] for cell in found.select("td")] == [
        "outcome", "claim", "predicted", "measured", "strip",
    ]  # fmt: skip
    assert found["id"] == "claim-share-d-2"
    assert text(found.select_one(".outcome")) == "✓ holds"
    assert text(found.select_one(".predicted")) == "= 2"
    assert text(found.select_one(".measured")) == "1.995 ± 0.045"
    small = text(found.select_one("small"))
    assert small == "A share, Someone & Other, Theorem 1; told from 1.8 and 2.2: one choice less"
    assert found.select_one("small a")["href"] == "../book/statements.html#share"
    assert found.select_one("svg .bar")


@pytest.mark.parametrize(
    ("relation", "predicted", "shown", "said"),
    [
        ("at most", 3.0, "≤ 3", "room for a factor of 1.5"),
        ("at least", 1.0, "≥ 1", "room for a factor of 1.9"),
        ("at most", 1.0, "≤ 1", "missed by a factor of 2"),
        ("at most", 2.0, "≤ 2", "no room"),
        ("exactly", 2.0, "exactly 2", ""),
    ],
)
def test_by_what_factor_a_bound_could_have_failed(relation, predicted, shown, said):
    found = row(verdict(predicted=predicted, low=1.95, high=2.0, relation=relation))
    assert text(found.select_one(".predicted")) == shown
    assert (said in text(found.select_one("small"))) or not said
    assert "told from" not in text(found)


@pytest.mark.parametrize(
    ("one", "css", "words", "link"),
    [
        ({}, "holds", "✓ holds", False),
        ({"low": 2.5, "high": 2.6}, "fails", "✗ does not hold", True),
        ({"low": 1.5, "high": 2.6}, "blunt", "◐ too blunt", True),
        ({"low": 2.5, "high": 2.6, "control": True}, "holds", "✓ refused", False),
        ({"control": True}, "fails", "✗ not refused", True),
    ],
)
def test_an_outcome_is_a_mark_with_words_and_leads_to_its_reason(one, css, words, link):
    found = row(verdict("a claim", **one))
    assert found["class"] == [css]
    assert text(found.select_one(".outcome")) == words
    leads = [a["href"] for a in found.select(".outcome a")]
    address = finding("p", "claim-a-claim")
    assert leads == ([f"../book/scoreboard.html#{address}"] if link else [])
    said = "negative control, to be refused" in text(found.select_one("small"))
    assert said == one.get("control", False)


def test_a_refused_interval_says_why_and_what_would_do():
    short = Interval(2.0, math.nan, math.nan, 0.99, refused="2 relaxation times", longer=10.0)
    found = row(judge("c", "share", 2.0, short, {}))
    assert text(found.select_one(".measured")) == "2, no interval"
    assert "no interval: 2 relaxation times; a run 10 times as long would do" in text(found)
    assert not found.select("svg")
    open_end = row(judge("c", "share", 2.0, Computed(2.0, math.nan, math.nan), {}))
    assert text(open_end.select_one(".outcome")) == "? unsettled"


def test_what_a_claim_is_and_where_its_hypotheses_fail():
    outside = verdict() | {"hypotheses": ["$n < 10^{16}$ <"]}
    found = row(outside)
    assert "outside the hypotheses: \\(n < 10^{16}\\) <" in text(found.select_one(".outside"))
    assert found.select_one(".outside .math")
    assert "Our own, derived here" in text(row(verdict(statement="own")))
    twin = judge("c", "twin", 2, Computed(2), {}, relation="exactly")
    assert "A twin, self-check" in text(row(twin))


def test_claims_are_text_not_markup_and_do_not_break_within():
    found = row(verdict("k <b>x</b> at d = 2, 99 % of 10⁻⁷"))
    assert not found.select(".claim b")
    assert "d\u00a0=\u00a02, 99\u202f% of 10<sup>−7</sup>" in str(found.select_one(".claim"))
    assert inline("by {prf:ref}`x`, $a < b$") == (
        'by x, <span class="math notranslate nohighlight">\\(a &lt; b\\)</span>'
    )


def test_the_source_and_what_a_statement_is_told_from_stand_once():
    html = VerdictTable([verdict("a"), verdict("b")], "p", "Made by hand.")._repr_html_()
    assert html.count("Someone &amp; Other") == 1
    assert "The statements are of Someone &amp; Other." in html
    assert html.count("</a>, Theorem 1") == 2
    assert html.count("one choice less") == 1
    assert html.count("told from") == 3  # the legend has it too
    assert "Intervals of confidence 99\u202f%" in html
    assert "Made by hand." in html
    mixed = VerdictTable([verdict("a"), verdict("b", statement="own")], "p")._repr_html_()
    assert "The statements are of Someone &amp; Other; the rest is this project's." in mixed


def many():
    rows = [
        verdict(f"claim {i}", low=2 - 0.01 * (i + 1), high=2 + 0.01 * (i + 1)) for i in range(9)
    ]
    rows += [verdict(f"miss {i}", predicted=3) for i in range(2)]
    rows += [verdict(f"bound {i}", predicted=3 + i, relation="at most") for i in range(2)]
    return rows


def test_of_many_rows_only_what_says_most_is_not_folded():
    verdicts = many()
    assert len(verdicts) == MOST + 1
    soup = BeautifulSoup(VerdictTable(verdicts, "p")._repr_html_(), "html.parser")
    shown = [row["id"] for row in soup.select("tr[id]") if not row.find_parent("details")]
    assert shown == ["claim-claim-0", "claim-claim-8", "claim-miss-0", "claim-miss-1",
                     "claim-bound-0"]  # fmt: skip
    assert extremes(verdicts) == {
        0: "the tightest equality", 8: "the bluntest equality", 9: "", 10: "",
        11: "the tightest bound",
    }  # fmt: skip
    assert text(soup.select_one("summary")) == "The other 8 of all 13 claims"
    every = [row["id"] for row in soup.select("tr[id]")]
    assert sorted(every) == sorted(addresses([v["claim"] for v in verdicts]))
    few = VerdictTable(verdicts[:MOST], "p")._repr_html_()
    assert "<details>" not in few
    assert few.count("<tr id=") == MOST


def test_many_that_were_computed_and_none_at_all():
    exact = [judge(f"c{i}", "twin", 2, Computed(2), {}, relation="exactly") for i in range(20)]
    assert extremes(exact) == {0: ""}
    assert VerdictTable([], "p")._repr_html_() == ""


def test_on_another_page_a_row_leads_to_the_claim():
    html = table([(verdict("a claim"), "claim-a-claim", "")], "some_page", here=False)
    found = BeautifulSoup(html, "html.parser").select_one("tbody tr")
    assert "id" not in found.attrs
    assert found.select_one(".claim a")["href"] == "../notebooks/some_page.html#claim-a-claim"
    kinds = {key: found[f"data-{key}"] for key in ("outcome", "kind", "paper", "inside")}
    assert kinds == {"outcome": "holds", "kind": "paper", "paper": "Someone2000", "inside": "yes"}


def test_the_count_in_words():
    held, missed = verdict(), verdict(predicted=3)
    assert count([held]) == "1 claim: 1 holds."
    refused = verdict(predicted=3, control=True)
    assert count([held, held, missed, refused]) == (
        "4 claims: 2 hold, 1 does not hold and 1 is refused, as it should be."
    )
    outside = held | {"hypotheses": ["n"]}
    assert count([held, outside]).endswith("1 of them is outside the hypotheses of a statement.")


def places(one):
    """Return where the bar of a strip starts and ends, in units from the prediction."""
    bar = re.search(r'<rect class="bar" x="([\d.]+)" y="5" width="([\d.]+)"', strip(one))
    start, width = float(bar[1]), float(bar[2])
    return (start - 48) / 23, (start + width - 48) / 23


def test_the_strip_has_the_interval_around_the_prediction_and_the_alternatives():
    assert places(verdict(low=1.9, high=2.06)) == pytest.approx((-0.5, 0.3), abs=0.01)
    drawn = strip(verdict())
    ticks = [float(x) for x in re.findall(r'class="other" d="M([\d.]+) ', drawn)]
    assert ticks == [25.0, 71.0]
    off = strip(verdict(low=20.0, high=21.0))
    assert '<path class="bar" d="M96 8' in off
    assert "rect" not in off
    over = strip(verdict(low=-20.0, high=21.0))
    assert 'd="M96 8' in over
    assert 'd="M0 8' in over
    upper = strip(verdict(predicted=3, relation="at most"))
    assert '<rect class="forbidden" x="48"' in upper
    assert '<rect class="forbidden" x="2"' in strip(verdict(predicted=1, relation="at least"))


def test_parameters_with_value_and_meaning():
    shown = ParameterTable(
        [("n", [1000, 10**12], "queues, $n$"), ("eps", 1e-7, ""), ("ok", True, "k < 2"),
         ("pairs", [[1, 2]], "")]
    )  # fmt: skip
    rows = [
        [text(cell) for cell in row.select("td")]
        for row in BeautifulSoup(shown._repr_html_(), "html.parser").select("tbody tr")
    ]
    assert rows == [["n", "1,000, 1012", "queues, \\(n\\)"], ["eps", "10−7", ""],
                    ["ok", "True", "k < 2"], ["pairs", "[1, 2]", ""]]  # fmt: skip
    assert "10<sup>−7</sup>" in shown._repr_html_()
    assert "1,000, 10¹²" in repr(shown)


def test_any_other_table():
    plain = Table(pd.DataFrame({"a": [1]}))
    assert "provenance" not in plain._repr_html_()
    assert repr(plain) == pd.DataFrame({"a": [1]}).to_string(index=False)
    assert "&lt;" in Table(pd.DataFrame({"claim": ["k < 2"]}))._repr_html_()


def test_as_text_for_a_terminal():
    shown = repr(VerdictTable([verdict("share", predicted=3)], "p", "Made by hand."))
    assert shown.splitlines()[0] == "1 claim: 1 does not hold."
    assert "does not hold share       = 3 1.995 ± 0.045 Someone & Other, Theorem 1" in shown
    assert shown.endswith("\nMade by hand.")


def test_a_page_that_could_judge_nothing_says_so():
    empty = VerdictTable([], "page", "made by")
    assert "No claim could be judged at these parameters." in repr(empty)
