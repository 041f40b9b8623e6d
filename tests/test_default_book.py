"""The verdicts of the book as built: each has its place in the ledger, and could have failed.

Run after `make book`, with the checks of its pages.
"""

import json
import os
from collections import Counter
from pathlib import Path

import pytest

from supermarket.estimate.intervals import Computed, Interval
from supermarket.experiment.checks import check
from supermarket.experiment.statements import find, statements
from supermarket.experiment.verdicts import BLUNT, CONTROL, FAILS, HOLDS, judge

BUILD = Path(os.environ.get("SUPERMARKET_HTML", Path(__file__).parents[1] / "build" / "html"))
BUILD = BUILD.parent

pytestmark = pytest.mark.pages


@pytest.fixture(scope="module")
def verdicts():
    """Every verdict, with the page that it stands on."""
    found = []
    for file in sorted((BUILD / "verdicts").glob("*.json")):
        found += [{"page": file.stem} | one for one in json.loads(file.read_text())]
    assert len(found) > 300
    return found


def again(verdict, predicted):
    """Judge a verdict anew, with another prediction."""
    ends = verdict["measured"], verdict["low"], verdict["high"]
    measured = (
        Computed(*ends) if verdict["confidence"] is None else Interval(*ends, verdict["confidence"])
    )
    return judge(verdict["claim"], verdict["statement"], predicted, measured, verdict["parameters"])


def test_the_book_is_as_its_findings_say():
    assert check(BUILD)["surprises"] == []


def test_the_ledger_and_the_pages_name_one_another(verdicts):
    shown = {(verdict["statement"], verdict["page"]) for verdict in verdicts}
    listed = {(entry.id, page) for entry in statements().values() for page in entry.pages}
    assert shown == listed


def test_no_random_number_is_without_width(verdicts):
    for verdict in verdicts:
        if verdict["confidence"] is not None and verdict["low"] is not None:
            assert 0 < verdict["confidence"] < 1
            assert verdict["low"] < verdict["high"], verdict["claim"]


def test_equalities_are_sharp(verdicts):
    """At most one in twenty does not exclude what it is told from, and none holds that way."""
    equal = [v for v in verdicts if v["relation"] == "equal" and v["kind"] != CONTROL]
    counts = Counter(verdict["outcome"] for verdict in equal)
    assert counts[BLUNT] <= 0.05 * len(equal), counts
    for verdict in equal:
        if verdict["outcome"] == HOLDS:
            assert verdict["against"], verdict["claim"]
            assert not any(verdict["low"] <= x <= verdict["high"] for x in verdict["against"])


def test_an_equality_turns_when_its_alternative_is_put_in_its_place(verdicts):
    """Under the same ledger, at the same point: whatever it is told from is refused outright."""
    turned = 0
    for verdict in verdicts:
        if verdict["relation"] == "equal" and verdict["outcome"] == HOLDS:
            for value in verdict["against"]:
                assert again(verdict, value)["outcome"] == FAILS, verdict["claim"]
                turned += 1
    assert turned > 200


def test_what_is_printed_as_a_papers_is_in_it(verdicts):
    """A verdict's kind and source are those of its entry, whatever the page says."""
    for verdict in verdicts:
        entry = find(verdict["statement"])
        assert verdict["source"] == entry.source
        assert verdict["kind"] in (entry.kind, CONTROL)
