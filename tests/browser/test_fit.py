"""Tables of verdicts and of parameters in a real browser, and that what does not fit is seen.

`fit.js` looks at every page of the built book too, in test_pages.
"""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from supermarket.estimate.intervals import Interval
from supermarket.experiment.digits import numeral
from supermarket.experiment.verdict_table import STYLE, ParameterTable, VerdictTable
from supermarket.experiment.verdicts import judge
from tools.scoreboard import all_claims, claims

pytestmark = pytest.mark.browser

ROOT = Path(__file__).resolve().parents[2]
FIT = (ROOT / "tests" / "browser" / "fit.js").read_text(encoding="utf-8")
LEDGER = """papers: {}
statements:
- {id: long, paper: here, name: A statement that has a rather long name, standing: derived,
   statement: x, pages: [p], against: {what: "what would be so, in many words, if it were not",
   scale: 0.1, why: it is}}
"""


@pytest.fixture
def verdicts(tmp_path, monkeypatch):
    (tmp_path / "statements.yml").write_text(LEDGER)
    monkeypatch.setenv("SUPERMARKET_NOTEBOOKS", str(tmp_path))
    claim = "the share of queues of length exactly k is at least this, at λ = 0.999999, d = 316"
    found = []
    for scale in (1.0, 1e-9, 1e6, 1e12, -12345.678):
        for share in (0.01, 1e-7, 0.3):
            ends = sorted([scale * (1 - share), scale * (1 + 2 * share)])
            measured = Interval(scale, *ends, 0.99)
            predicted = scale if share == 0.01 else scale * 1.05
            found.append(judge(f"{claim} {numeral(scale)}", "long", predicted, measured, {}))
    return found


def shown(visit, tmp_path, inner, width):
    file = tmp_path / "page.html"
    file.write_text(
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>A page</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="icon" href="data:,"><style>body { max-width: 688px; margin: 1em auto; '
        f"font: 16px sans-serif; padding: 0 16px; }} {STYLE.read_text()}</style>"
        f"<main>{inner}</main></html>"
    )
    return visit(file.as_uri(), width=width)


@pytest.mark.parametrize("width", [1280, 390])
def test_any_numbers_fit_the_column_and_a_phone(visit, tmp_path, verdicts, width):
    table = VerdictTable(verdicts, "p")._repr_html_()
    parameters = ParameterTable(
        [("relaxations_copy", list(range(10**5, 10**5 + 30)), "what it means, in some words " * 4),
         ("eps", 1e-7, "")]
    )._repr_html_()  # fmt: skip
    page = shown(visit, tmp_path, table + parameters, width)
    assert page.evaluate(FIT) == []
    cards = page.evaluate(
        "getComputedStyle(document.querySelector('table.verdicts tr[id]')).display"
    )
    assert cards == ("table-row" if width == 1280 else "flex")


WIDE = '<td class="claim">x</td><td class="predicted">1</td><td class="measured">2</td>'

ROW = f'<table class="verdicts"><tbody><tr><td class="outcome">y</td>{WIDE}</tr></tbody></table>'


@pytest.mark.parametrize(
    ("inner", "width", "fault"),
    [
        ('<p class="math">a<mjx-container style="display:block;overflow-x:auto"><mjx-math '
         'style="display:inline-block;width:900px">x</mjx-math></mjx-container></p>', 1280,
         "a formula cut off"),
        ('<div class="math" style="overflow:hidden"><mjx-container style="display:block">'
         '<mjx-math style="display:inline-block;width:900px">x</mjx-math></mjx-container></div>',
         1280, "a formula cut off"),
        ('<p><mjx-container><mjx-math>x</mjx-math></mjx-container></p>', 1280, None),
        ('<div style="overflow-x:auto"><table class="verdicts" style="width:900px"><tbody><tr>'
         f'<td class="outcome">y</td>{WIDE}</tr></tbody></table></div>', 1280,
         "a table that has to be scrolled"),
        (f"{ROW}<style>td.measured {{ display: none }}</style>", 390,
         "measured is not all to be seen"),
        (ROW, 390, None),
        ('<table class="parameters"><tbody><tr><td class="parameter">n</td><td class="value">1</td>'
         '<td class="meaning" style="position:absolute;left:380px">what it is</td></tr></tbody>'
         "</table>", 390, "meaning is not all to be seen"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_seen(visit, tmp_path, inner, width, fault):
    faults = shown(visit, tmp_path, inner, width).evaluate(FIT)
    if fault is None:
        assert faults == []
    else:
        assert fault in "\n".join(faults)


def test_a_link_to_a_folded_claim_opens_it_and_the_filter_filters(visit, tmp_path, verdicts):
    notebook, data = tmp_path / "p.ipynb", tmp_path / "p.json"
    notebook.write_text('{"cells": []}')
    data.write_text(json.dumps(verdicts))
    run = SimpleNamespace(name="p", notebook=notebook, results=lambda: {"verdicts": data})
    script = (ROOT / "book" / "assets" / "pages.js").read_text()
    inner = VerdictTable(verdicts, "p")._repr_html_() + all_claims(claims([run]))
    page = shown(visit, tmp_path, f"{inner}<script>{script}</script>", 1280)
    folded = page.evaluate("document.querySelector('.judged details tr[id]').id")
    assert not page.locator(f"#{folded}").is_visible()
    page.evaluate("name => { location.hash = name }", folded)
    page.wait_for_function("name => document.getElementById(name).checkVisibility()", arg=folded)

    rows = page.locator("details.claims tbody tr")
    assert page.locator("output").inner_text() == "15 of 15 claims"
    assert not rows.first.is_visible()
    page.select_option("select[name=outcome]", "does not hold")
    expected = sum(verdict["outcome"] == "does not hold" for verdict in verdicts)
    assert page.locator("output").inner_text() == f"{expected} of 15 claims"
    assert rows.locator("visible=true").count() == expected
    page.fill("input[name=text]", "10⁻⁹ share")
    assert page.locator("output").inner_text() == "0 of 15 claims"
    page.fill("input[name=text]", "length 1,000,000")
    assert 0 < rows.locator("visible=true").count() < expected
    page.focus("button[type=reset]")
    page.keyboard.press("Enter")
    page.wait_for_function("document.querySelector('output').value === '15 of 15 claims'")
    assert not rows.first.is_visible()
    assert page.faults == []


def test_a_formula_a_little_too_wide_is_set_smaller_and_a_wider_one_is_not(visit, tmp_path):
    script = (ROOT / "book" / "assets" / "pages.js").read_text()
    formulas = "".join(
        '<p class="math"><mjx-container display="true" style="display:block;overflow-x:auto">'
        f'<mjx-math style="display:inline-block;width:{width}px">x</mjx-math></mjx-container></p>'
        for width in (600, 850, 1200)
    )
    page = shown(visit, tmp_path, f"{formulas}<script>{script}</script>", 1280)
    page.wait_for_function("document.documentElement.dataset.fitted")
    zooms = "[...document.querySelectorAll('mjx-container')].map(f => f.style.zoom)"
    first, second, third = page.evaluate(zooms)
    assert (first, third) == ("", "")
    assert 0.7 < float(second) < 0.85
    assert len(page.evaluate(FIT)) == 1
    page.set_viewport_size({"width": 390, "height": 800})
    page.wait_for_function(f"{zooms}.every(zoom => zoom === '')")
    assert page.faults == []
