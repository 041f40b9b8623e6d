"""The grammar of a verdict: what holds, what fails, and what cannot tell, each with a fault."""

import json
import math

import pytest

from supermarket import ParameterError
from supermarket.estimate.intervals import Computed, Interval
from supermarket.experiment.verdicts import (
    BLUNT,
    CONTROL,
    FAILS,
    HOLDS,
    KEYS,
    RELATIONS,
    SHORT,
    UNSETTLED,
    addresses,
    as_expected,
    judge,
    on_the_board,
    power,
    room,
)

LEDGER = """papers: {Someone2000: Someone & Other}
statements:
- {id: relative, paper: Someone2000, number: (1), name: A, standing: printed, statement: x,
   against: {what: five per cent off, scale: 0.05, why: it is}, pages: [p]}
- {id: absolute, paper: here, name: B, standing: derived, statement: x, pages: [p],
   against: {what: one off, scale: 1, of: one, why: whole numbers}}
- {id: bound, paper: Someone2000, name: C, standing: form, statement: x, pages: [p]}
- {id: twin, paper: here, name: D, standing: derived, kind: self-check, statement: x, pages: [p]}
"""


@pytest.fixture(autouse=True)
def ledger(tmp_path, monkeypatch):
    (tmp_path / "statements.yml").write_text(LEDGER)
    monkeypatch.setenv("SUPERMARKET_NOTEBOOKS", str(tmp_path))


def between(low, high, estimate=None):
    return Interval((low + high) / 2 if estimate is None else estimate, low, high, 0.99, 50.0)


@pytest.mark.parametrize(
    ("predicted", "measured", "outcome"),
    [
        (2.0, between(1.95, 2.04), HOLDS),
        (2.0, between(2.0, 2.04), HOLDS),
        (2.0, between(2.01, 2.04), FAILS),
        (2.0, between(1.8, 1.9), FAILS),
        (2.0, between(1.8, 2.04), BLUNT),  # 1.9 would be so if the claim were not
        (2.0, between(1.9, 2.04), BLUNT),  # and is not excluded at the end of the interval
        (2.0, between(1.95, 2.2), BLUNT),
        (2.0, between(-1e150, 3e150, 1e150), BLUNT),
        (2.0, Interval(2.1, math.nan, math.nan, 0.99), SHORT),
        (2.0, Computed(2.0), HOLDS),
        (2.0, Computed(2.001), FAILS),
        (2.0, Computed.within(2.001, 0.002), HOLDS),
        (2.0, Computed.within(2.0, 0.2), BLUNT),
        (2.0, Computed(2.0, math.nan, math.nan), UNSETTLED),
    ],
)
def test_an_equality(predicted, measured, outcome):
    assert judge("c", "relative", predicted, measured, {})["outcome"] == outcome


def test_an_equality_whose_prediction_is_the_alternative_turns():
    """Whatever is excluded as an alternative is refused as a prediction."""
    held = judge("c", "relative", 2.0, between(1.95, 2.04), {})
    for value in held["against"]:
        assert judge("c", "relative", value, between(1.95, 2.04), {})["outcome"] != HOLDS


@pytest.mark.parametrize(
    ("relation", "measured", "outcome"),
    [
        ("at most", between(0.2, 0.9), HOLDS),
        ("at most", between(0.2, 1.0), HOLDS),
        ("at most", between(0.2, 1.5), BLUNT),
        ("at most", between(1.1, 1.5), FAILS),
        ("at least", between(1.0, 1.5), HOLDS),
        ("at least", between(0.2, 1.5), BLUNT),
        ("at least", between(0.2, 0.9), FAILS),
        ("at least", Interval(2.0, math.nan, math.nan, 0.9), SHORT),
        ("exactly", Computed(1), HOLDS),
        ("exactly", Computed(2), FAILS),
        ("exactly", Computed(1, 1, 2), BLUNT),
        ("exactly", between(0.9, 1.1), BLUNT),
    ],
)
def test_a_bound(relation, measured, outcome):
    found = judge("c", "bound", 1, measured, {}, relation=relation)
    assert (found["outcome"], found["against"]) == (outcome, [])


def test_a_random_number_without_width_is_refused():
    for relation in RELATIONS:
        with pytest.raises(ParameterError, match="has no width: give a random number an interval"):
            judge("share", "relative", 1, between(1.0, 1.0), {}, relation=relation)
    # Not an infinite one, nor one that was computed.
    assert judge("c", "relative", 1, Computed(1), {})["outcome"] == HOLDS


def test_an_equality_needs_something_to_be_told_from():
    with pytest.raises(ParameterError, match="does not say at this point what bound is to be told"):
        judge("c", "bound", 1, between(0.9, 1.1), {})
    control = judge("c", "bound", 1, between(0.9, 1.1), {}, control=True)
    assert control["against"] == []


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_not_finite_are_refused(bad):
    with pytest.raises(ParameterError, match=r"predicted = .* is not finite"):
        judge("c", "relative", bad, between(0, 1), {})
    with pytest.raises(ParameterError, match=r"measured = .* is not finite"):
        judge("c", "relative", 1.0, between(0, 1, bad), {})


def test_what_is_said_beside_the_outcome():
    found = judge("c", "relative", 2, between(1.95, 2.04), {"n": 5})
    assert tuple(found) == KEYS
    assert found["source"] == "Someone & Other, (1)"
    assert (found["kind"], found["relation"]) == ("paper", "equal")
    assert found["against"] == [1.9, 2.1]
    assert (found["confidence"], found["effective"]) == (0.99, 50.0)
    assert found["parameters"] == {"n": 5}
    json.dumps(found, allow_nan=False)
    computed = judge("c", "absolute", 2, Computed.within(2, 0.1), {})
    assert (computed["kind"], computed["confidence"], computed["effective"]) == (
        "derived", None, None,
    )  # fmt: skip
    assert computed["against"] == [1.0, 3.0]
    json.dumps(computed, allow_nan=False)
    assert judge("c", "twin", 2, Computed(2), {}, relation="exactly")["kind"] == "self-check"


def test_a_refused_interval_says_why_and_what_would_do():
    short = Interval(2.0, math.nan, math.nan, 0.99, refused="never seen", longer=3.0)
    found = judge("c", "relative", 2, short, {})
    assert found["refused"] == "never seen; a run 3 times as long would do"
    assert found["low"] is found["high"] is None
    open_end = judge("c", "relative", 2, Computed(2, math.nan, math.nan), {})
    assert open_end["refused"] == "the computation did not settle"
    assert judge("c", "relative", 2, between(1.95, 2.04), {})["refused"] == ""


def test_what_needs_no_explanation_and_what_is_on_the_board():
    held = judge("c", "relative", 2, between(1.95, 2.04), {})
    refused = judge("c", "relative", 3, between(1.95, 2.04), {}, control=True)
    passed = judge("c", "relative", 2, between(1.95, 2.04), {}, control=True)
    assert (refused["kind"], refused["outcome"]) == (CONTROL, FAILS)
    assert [as_expected(v) for v in (held, refused, passed)] == [True, True, False]
    twin = judge("c", "twin", 2, Computed(2), {}, relation="exactly")
    outside = held | {"hypotheses": ["(A)"]}
    assert [on_the_board(v) for v in (held, refused, twin, outside)] == [True, False, False, False]


@pytest.mark.parametrize(
    ("relation", "bound", "measured", "factor"),
    [
        ("at most", 10, (1, 2), 5),
        ("at most", 1, (1, 2), 0.5),
        ("at least", 2, (8, 9), 4),
        ("at most", -1, (-4, -3), 3),
        ("at least", -4, (-2, -1), 2),
        ("at most", 1, (-2, -1), math.inf),
        ("at most", 0, (-2, -1), math.inf),
        ("equal", 2, (1.95, 2.04), None),
    ],
)
def test_by_what_factor_a_bound_could_have_failed(relation, bound, measured, factor):
    name = "relative" if relation == "equal" else "bound"
    verdict = judge("c", name, bound, between(*measured), {}, relation=relation)
    assert room(verdict) == (factor if factor is None else pytest.approx(factor))


def test_the_power_of_an_equality():
    assert power(judge("c", "absolute", 2, between(1.5, 2.5), {})) == pytest.approx(2)
    assert power(judge("c", "absolute", 2, Computed(2), {})) == math.inf
    assert power(judge("c", "bound", 2, Computed(2), {}, relation="at most")) is None


def test_each_claim_of_a_page_has_an_address_of_its_own():
    claims = ["u_k: λ = 0.9", "u_k: λ = 0.9", "u_k: λ = 0.9 2", "n π(k) ≥ 1", "log v₂₀, é"]
    found = addresses(claims)
    assert found[0] == "claim-u-k-lambda-0-9"
    assert len(set(found)) == len(claims)
    assert all(set(one) <= set("abcdefghijklmnopqrstuvwxyz0123456789-") for one in found)
    assert found[4] == "claim-log-v20-e"
