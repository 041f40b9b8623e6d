"""A claim judged: what is predicted, what was found, and what the finding can tell it from.

A verdict is a dict, which stands in the data of a run, in a row of a sweep, in a table of the book
and on a line of the terminal. Its keys, in order, are `KEYS`:

* claim: in one sentence;
* statement, kind, source: the entry of the ledger (`supermarket.experiment.statements`) that it
  shows; "paper", "derived" (in this project), "self-check", "input" or "negative control"; the
  paper with the number in it;
* relation, predicted: the true value is claimed to be "equal" to the prediction, "at most" or "at
  least" so much, or "exactly" so much;
* against: what would be so if an equality were not: numbers that the interval has to exclude;
* hypotheses: those of the statement that do not hold here, so far as they can be checked;
* measured, low, high, confidence, effective: the estimate; its interval; with what confidence, None
  for a number that was computed; and how many independent samples it is worth;
* outcome: one of `OUTCOMES`; and refused: why there is no interval, and what run would give one;
* parameters: of the page and of the point.
"""

import math
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from supermarket.estimate.intervals import Computed, Interval
from supermarket.experiment.statements import find
from supermarket.validation import ParameterError, choice

__all__ = ["addresses", "as_expected", "judge", "on_the_board", "power", "room"]

KEYS = (
    "claim", "statement", "kind", "relation", "against", "hypotheses", "predicted", "measured",
    "low", "high", "confidence", "effective", "outcome", "parameters", "source", "refused",
)  # fmt: skip
RELATIONS = ("equal", "at most", "at least", "exactly")
HOLDS, FAILS, BLUNT, SHORT, UNSETTLED = (
    "holds", "does not hold", "too blunt", "too short", "unsettled",
)  # fmt: skip
OUTCOMES = (HOLDS, FAILS, BLUNT, SHORT, UNSETTLED)
CONTROL = "negative control"
KINDS = ("paper", "derived", "self-check", "input", CONTROL)


def judge(
    claim: str,
    statement: str,
    predicted: float,
    measured: Interval | Computed,
    parameters: Mapping[str, Any],
    *,
    relation: str = "equal",
    control: bool = False,
) -> dict[str, Any]:
    """Return the verdict on a claim.

    Parameters
    ----------
    claim : str
        What is claimed, in one sentence.
    statement : str
        Its id in the ledger.
    predicted : float
        What the statement says.
    measured : Interval or Computed
        What was found: sampled, or computed.
    parameters : mapping of str
        Where; the ledger's functions take theirs by name from it.
    relation : {"equal", "at most", "at least", "exactly"}
        How the true value is claimed to lie to the prediction.
    control : bool
        Whether this claim is made to fail, to show that the method can tell.

    Returns
    -------
    dict
        With the keys `KEYS`.

    Raises
    ------
    ParameterError
        If a number is not finite, the relation or the statement is unknown, the ledger has nothing
        that an equality could be told from, or an interval of sampled numbers has no width.

    Examples
    --------
    >>> from supermarket.estimate.intervals import Interval
    >>> from supermarket.experiment.verdicts import judge
    >>> found = Interval(0.7287, 0.7270, 0.7304, 0.99)
    >>> at = {"lam": 0.9, "d": 2, "k": 2}
    >>> judge("share of queues with at least 2", "bl-fixed-point", 0.729, found, at)["outcome"]
    'holds'
    """
    choice("relation", relation, RELATIONS)
    entry = find(statement)
    random = isinstance(measured, Interval)
    predicted, estimate = float(predicted), float(measured.estimate)
    low, high = float(measured.low), float(measured.high)
    for name, value in (("predicted", predicted), ("measured", estimate)):
        if not math.isfinite(value):
            raise ParameterError(f"{name} = {value} for the claim {claim!r} is not finite.")
    known = math.isfinite(low) and math.isfinite(high)
    if random and known and not low < high:
        raise ParameterError(
            f"the interval of the claim {claim!r} has no width: give a random number an interval, "
            "or `Computed` for one that was computed."
        )
    against: list[float] = []
    if entry.against is not None and relation == "equal" and not control:
        against = entry.against.values(predicted, parameters)
    if relation == "equal" and not against and not control:
        raise ParameterError(
            f"the ledger does not say at this point what {statement} is to be told from, which the "
            f"equality {claim!r} needs."
        )
    if not known:
        outcome = SHORT if random else UNSETTLED
    else:
        outcome = _outcome(relation, predicted, low, high, against)
    effective = float(measured.effective) if random else math.nan
    return {
        "claim": claim,
        "statement": statement,
        "kind": CONTROL if control else entry.kind,
        "relation": relation,
        "against": against,
        "hypotheses": entry.failing(parameters),
        "predicted": predicted,
        "measured": estimate,
        "low": low if known else None,
        "high": high if known else None,
        "confidence": float(measured.confidence) if random else None,
        "effective": effective if math.isfinite(effective) else None,
        "outcome": outcome,
        "parameters": dict(parameters),
        "source": entry.source,
        "refused": "" if known else _why(measured),
    }


def is_verdict(data: Any) -> bool:
    """Tell whether data, such as a file may hold, are a verdict.

    Examples
    --------
    >>> from supermarket.experiment.verdicts import is_verdict
    >>> is_verdict({"claim": "π(2)", "holds": True})
    False
    """
    try:
        ends = [data["low"], data["high"]]
        known = [end for end in ends if end is not None]
        extra = [data[key] for key in ("confidence", "effective") if data[key] is not None]
        numbers = [data["predicted"], data["measured"], *data["against"], *known, *extra]
        texts = [*(data[key] for key in ("claim", "statement", "source", "refused"))]
        return (
            isinstance(data["against"], list)
            and isinstance(data["hypotheses"], list)
            and isinstance(data["parameters"], dict)
            and all(isinstance(text, str) for text in [*texts, *data["hypotheses"]])
            and all(isinstance(number, int | float) for number in numbers)
            and all(math.isfinite(number) for number in numbers)
            and len(known) in (0, 2)
            and known == sorted(known)
            and data["kind"] in KINDS
            and data["relation"] in RELATIONS
            and data["outcome"] in OUTCOMES
        )
    except (KeyError, TypeError, OverflowError):
        return False


def _why(measured: Interval | Computed) -> str:
    """Return why there is no interval, and what run would give one."""
    if isinstance(measured, Computed):
        return "the computation did not settle"
    reason = str(measured.refused) or "one of the estimates it is made of has no interval"
    if math.isfinite(measured.longer) and measured.longer > 1:
        return f"{reason}; a run {measured.longer:.2g} times as long would do"
    return reason


def _outcome(relation: str, predicted: float, low: float, high: float, against: list[float]) -> str:
    if relation == "at most":
        return HOLDS if high <= predicted else FAILS if low > predicted else BLUNT
    if relation == "at least":
        return HOLDS if low >= predicted else FAILS if high < predicted else BLUNT
    if not low <= predicted <= high:
        return FAILS
    if relation == "exactly":
        return HOLDS if low == high else BLUNT
    return BLUNT if any(low <= value <= high for value in against) else HOLDS


def as_expected(verdict: Mapping[str, Any]) -> bool:
    """Tell whether a verdict needs no explanation: it holds, or is a control that was refused.

    Examples
    --------
    >>> from supermarket.estimate.intervals import Interval
    >>> from supermarket.experiment.verdicts import as_expected, judge
    >>> at = {"lam": 0.9, "d": 2, "k": 2}
    >>> found = judge("π(2)", "bl-fixed-point", 0.729, Interval(0.7287, 0.7270, 0.7304, 0.99), at)
    >>> as_expected(found)
    True
    """
    return verdict["outcome"] == (FAILS if verdict["kind"] == CONTROL else HOLDS)


def on_the_board(verdict: Mapping[str, Any]) -> bool:
    """Tell whether a verdict counts for or against its statement, whose hypotheses it meets.

    Examples
    --------
    >>> from supermarket.estimate.intervals import Interval
    >>> from supermarket.experiment.verdicts import judge, on_the_board
    >>> at = {"lam": 0.9, "d": 2, "k": 2}
    >>> found = judge("π(2)", "bl-fixed-point", 0.729, Interval(0.7287, 0.7270, 0.7304, 0.99), at)
    >>> on_the_board(found)
    True
    """
    return verdict["kind"] in ("paper", "derived") and not verdict["hypotheses"]


def room(verdict: Mapping[str, Any]) -> float | None:
    """Return the factor by which a bound could have failed; None for what is no bound.

    It is the bound over the nearer end of the interval, or that over the bound: 1 is as tight as
    can be, below 1 it fails. Infinite where they differ in sign or one of them is 0.

    Examples
    --------
    >>> from supermarket.estimate.intervals import Interval
    >>> from supermarket.experiment.verdicts import judge, room
    >>> at = {"lam": 0.9, "d": 2, "k": 2}
    >>> found = judge("π(2)", "bl-fixed-point", 0.729, Interval(0.7287, 0.7270, 0.7304, 0.99), at)
    >>> room(found) is None  # an equality
    True
    """
    near = {"at most": verdict["high"], "at least": verdict["low"]}.get(verdict["relation"])
    if near is None:
        return None
    bound = verdict["predicted"]
    if bound * near <= 0:
        return math.inf
    factor = abs(bound / near)
    return factor if (verdict["relation"] == "at most") == (bound > 0) else 1 / factor


def power(verdict: Mapping[str, Any]) -> float | None:
    """Return how many half-widths of the interval the nearest alternative is away.

    Above 1, the interval around the prediction would exclude it. None where there is no
    alternative or no interval; infinite for an interval of no width.

    Examples
    --------
    >>> from supermarket.estimate.intervals import Interval
    >>> from supermarket.experiment.verdicts import judge, power
    >>> at = {"lam": 0.9, "d": 2, "k": 2}
    >>> found = judge("π(2)", "bl-fixed-point", 0.729, Interval(0.7287, 0.7270, 0.7304, 0.99), at)
    >>> round(power(found))  # 0.81, with one choice, is 48 half-widths away
    48
    """
    if verdict["low"] is None or not verdict["against"]:
        return None
    half = (verdict["high"] - verdict["low"]) / 2
    away = min(abs(value - verdict["predicted"]) for value in verdict["against"])
    return away / half if half > 0 else math.inf


def addresses(claims: list[str]) -> list[str]:
    """Return an address for each claim of a page, to be used in a link.

    Examples
    --------
    >>> from supermarket.experiment.verdicts import addresses
    >>> addresses(["π(2), d = 2", "π(2), d = 2"])
    ['claim-pi-2-d-2', 'claim-pi-2-d-2-2']
    """
    found: list[str] = []
    for claim in claims:
        plain = "".join(_plain(letter) for letter in unicodedata.normalize("NFKD", claim))
        name = address = "claim-" + re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")
        number = 1
        while address in found:
            number += 1
            address = f"{name}-{number}"
        found.append(address)
    return found


def _plain(letter: str) -> str:
    """Return a Greek letter by its name, a combining mark as nothing, others as they are."""
    if unicodedata.combining(letter):
        return ""
    name = unicodedata.name(letter, "")
    if not name.startswith("GREEK SMALL LETTER"):
        return letter
    return f" {name.split()[-1].replace('LAMDA', 'LAMBDA')} "  # Unicode has it without b
