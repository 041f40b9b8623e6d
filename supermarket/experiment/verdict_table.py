"""Tables that fit a page and a phone: of verdicts, of parameters, and of anything else.

Each shows as HTML on a page, as ``verdict_table.css`` beside this module dresses it, and as text in
a terminal. A claim's row has its address as id, and links to the statement that it shows on the
page of the ledger.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from supermarket.experiment.digits import Digits, numeral, with_powers
from supermarket.experiment.statements import HERE, find
from supermarket.experiment.verdicts import (
    BLUNT,
    CONTROL,
    FAILS,
    HOLDS,
    OUTCOMES,
    SHORT,
    UNSETTLED,
    addresses,
    as_expected,
    power,
    room,
)

if TYPE_CHECKING:
    pass

__all__ = ["Table", "VerdictTable"]

Verdict = Mapping[str, Any]

STYLE = Path(__file__).with_suffix(".css")
MOST = 12  # rows that are shown; of more, only those that say most
LEDGER = "../book/statements.html"
BOARD = "../book/scoreboard.html"
KINDS = {
    "paper": "",
    "derived": "derived here",
    "self-check": "self-check",
    "input": "input",
    CONTROL: "negative control, to be refused",
}
MARKS = {HOLDS: "✓", FAILS: "✗", BLUNT: "◐", SHORT: "…", UNSETTLED: "?"}
_CLASSES = {HOLDS: "holds", FAILS: "fails", BLUNT: "blunt", SHORT: "short", UNSETTLED: "short"}
_RELATIONS = {"equal": "=", "at most": "≤", "at least": "≥", "exactly": "exactly"}
_MANY = {HOLDS: "hold", FAILS: "do not hold", BLUNT: "are too blunt"}
_MATHS = re.compile(r"\$([^$]+)\$")
_ROLE = re.compile(r"\{[\w:]+\}`([^`]+)`")
_STRIP = 'class="strip" width="96" height="16" viewBox="0 0 96 16" aria-hidden="true"'


class Table:
    """A small table that shows as HTML on a page and as text in a terminal.

    Parameters
    ----------
    rows : list of dict, dict of columns or DataFrame
        What a `pandas.DataFrame` is made of.
    note : str
        What stands below it.

    Examples
    --------
    >>> from supermarket.experiment import Table
    >>> Table({"d": [1, 2], "mean queue": [9.0, 2.35]})
     d  mean queue
     1        9.00
     2        2.35
    """

    def __init__(self, rows: Any, note: str = "") -> None:
        import pandas as pd

        self.frame = pd.DataFrame(rows)
        self.note = note

    def _repr_html_(self) -> str:
        note = f'<p class="provenance">{self.note}</p>' if self.note else ""
        table = self.frame.to_html(index=False, border=0)
        return f'<div class="wide">{table}</div>{note}'

    def __repr__(self) -> str:
        return self.frame.to_string(index=False) + (f"\n{self.note}" if self.note else "")


class ParameterTable(Table):
    """The parameters of a page: each with its value and its meaning, as a card on a phone.

    Parameters
    ----------
    rows : list of (str, object, str)
        Name, value, meaning.
    """

    def __init__(self, rows: Sequence[tuple[str, Any, str]]) -> None:
        names = ("parameter", "value", "meaning")
        super().__init__(
            [dict(zip(names, (row[0], _value(row[1]), row[2]), strict=True)) for row in rows]
        )

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><td class="parameter"><code>{escape(name)}</code></td>'
            f'<td class="value">{with_powers(escape(value))}</td>'
            f'<td class="meaning">{inline(meaning)}</td></tr>'
            for name, value, meaning in self.frame.itertuples(index=False)
        )
        head = "".join(f"<th>{name}</th>" for name in self.frame.columns)
        return (
            "<details><summary>The parameters of this page</summary>"
            f'<table class="parameters"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
            "</details>"
        )


class VerdictTable:
    """The verdicts of a page.

    Of more than `MOST`, what is not as expected, the tightest and the bluntest are shown, and the
    rest is folded.

    Parameters
    ----------
    verdicts : list of dict
        As `supermarket.experiment.verdicts.judge` gives them.
    page : str
        The notebook's name without its ending.
    note : str
        What made them, below the table.

    Examples
    --------
    >>> from supermarket.estimate.intervals import Computed
    >>> from supermarket.experiment.verdict_table import VerdictTable
    >>> from supermarket.experiment.verdicts import judge
    >>> at = {"lam": 0.9, "d": 2, "k": 2}
    >>> found = judge("π(2)", "bl-fixed-point", 0.729, Computed(0.729), at)
    >>> VerdictTable([found], "mine")
    1 claim: 1 holds.
    outcome claim predicted measured                      shows
      holds  π(2)   = 0.729    0.729 Brightwell & Luczak, (1.2)
    """

    def __init__(self, verdicts: Sequence[Verdict], page: str, note: str = "") -> None:
        self.verdicts = list(verdicts)
        self.page = page
        self.note = note

    def _repr_html_(self) -> str:
        if not self.verdicts:
            return ""
        named = list(zip(self.verdicts, addresses(_claims(self.verdicts)), strict=True))
        said = extremes(self.verdicts) if len(named) > MOST else {}
        common = _common_authors(self.verdicts)
        seen = [
            (verdict, address, said.get(i, ""))
            for i, (verdict, address) in enumerate(named)
            if not said or i in said
        ]
        parts = [f'<p class="count">{count(self.verdicts)}</p>', table(seen, self.page, common)]
        if rest := [(v, a, "") for i, (v, a) in enumerate(named) if said and i not in said]:
            parts.append(
                f"<details><summary>The other {len(rest)} of all {len(named)} claims</summary>"
                f"{table(rest, self.page, common)}</details>"
            )
        parts.append(f'<p class="provenance">{_legend(self.verdicts, common)}</p>')
        if self.note:
            parts.append(f'<p class="provenance">{escape(self.note)}</p>')
        return f'<div class="judged">{"".join(parts)}</div>'

    def __repr__(self) -> str:
        import pandas as pd

        rows = []
        for verdict in self.verdicts:
            shown = Digits(verdict)
            rows.append(
                {
                    "outcome": outcome(verdict),
                    "claim": verdict["claim"],
                    "predicted": f"{_RELATIONS[verdict['relation']]} {shown.predicted}",
                    "measured": shown.both,
                    "shows": verdict["source"],
                }
            )
        text = pd.DataFrame(rows).to_string(index=False)
        return "\n".join(filter(None, [count(self.verdicts), text, self.note]))


def count(verdicts: Sequence[Verdict]) -> str:
    """Return how many claims there are and what came of them, in words.

    Examples
    --------
    >>> from supermarket.experiment.verdict_table import count
    >>> held = {"kind": "paper", "outcome": "holds", "hypotheses": []}
    >>> count([held, held | {"outcome": "too blunt"}])
    '2 claims: 1 holds and 1 is too blunt.'
    """
    if not verdicts:
        return "No claim could be judged at these parameters."
    found = Counter(outcome(verdict) for verdict in verdicts)
    order = {word: i for i, word in enumerate(OUTCOMES)}
    parts = []
    for word in sorted(found, key=lambda word: order.get(word, len(order))):
        number = found[word]
        if word in _MANY and number > 1:
            parts.append(f"{number} {_MANY[word]}")
        elif word in (HOLDS, FAILS):
            parts.append(f"{number} {word}")
        else:
            parts.append(f"{number} {'is' if number == 1 else 'are'} {word}")
    said = " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))
    total = f"{len(verdicts)} claim{'' if len(verdicts) == 1 else 's'}"
    outside = sum(bool(verdict["hypotheses"]) for verdict in verdicts)
    if not outside:
        return f"{total}: {said}."
    where = "is" if outside == 1 else "are"
    return f"{total}: {said}; {outside} of them {where} outside the hypotheses of a statement."


def outcome(verdict: Verdict) -> str:
    """Return the outcome in words; a negative control should be refused, and then is."""
    if verdict["kind"] != CONTROL:
        return str(verdict["outcome"])
    said = {FAILS: "refused, as it should be", HOLDS: "not refused"}
    return said.get(verdict["outcome"], str(verdict["outcome"]))


def extremes(verdicts: Sequence[Verdict]) -> dict[int, str]:
    """Return which of many verdicts are shown, with a word on why.

    What is not as expected; of the equalities that hold, the one whose nearest alternative is the
    most half-widths away, and the least; of the bounds that hold, the one with the least room.
    """
    found = {i: "" for i, verdict in enumerate(verdicts) if not as_expected(verdict)}
    held = [(i, v) for i, v in enumerate(verdicts) if v["kind"] != CONTROL and i not in found]
    powers = {i: far for i, v in held if (far := power(v)) is not None and far < math.inf}
    rooms = {i: far for i, v in held if (far := room(v)) is not None and far < math.inf}
    if powers:
        found.setdefault(max(powers, key=powers.__getitem__), "the tightest equality")
        found.setdefault(min(powers, key=powers.__getitem__), "the bluntest equality")
    if rooms:
        found.setdefault(min(rooms, key=rooms.__getitem__), "the tightest bound")
    if not found:  # all computed without an error
        found[0] = ""
    return dict(sorted(found.items()))


def table(
    rows: Iterable[tuple[Verdict, str, str]], page: str, common: str = "", *, here: bool = True
) -> str:
    """Return the HTML of a table of verdicts.

    Parameters
    ----------
    rows : iterable of (dict, str, str)
        A verdict, its address on its page, a word about it.
    page : str
        Which page that is.
    common : str
        Authors that need not be repeated in the rows.
    here : bool
        Whether the table is on that page: then a row has the address as its id, else it links.
    """
    body, explained = [], set()
    for verdict, address, word in rows:
        name = verdict["statement"]
        body.append(
            _row(verdict, address, page, common, word, first=name not in explained, here=here)
        )
        explained.add(name)
    head = "".join(f"<th>{name}</th>" for name in ("outcome", "claim", "predicted", "measured", ""))
    return (
        f'<table class="verdicts"><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table>"
    )


def _row(
    verdict: Verdict, address: str, page: str, common: str, word: str, *, first: bool, here: bool
) -> str:
    shown = Digits(verdict)
    mark = MARKS[verdict["outcome"]]
    css = _CLASSES[verdict["outcome"]]
    if verdict["kind"] == CONTROL and verdict["outcome"] in (HOLDS, FAILS):
        css, mark = ("holds", "✓") if as_expected(verdict) else ("fails", "✗")
    words = (
        f'<span class="sign" aria-hidden="true">{mark}</span> {outcome(verdict).partition(",")[0]}'
    )
    if not as_expected(verdict):
        words = f'<a href="{BOARD}#{finding(page, address)}">{words}</a>'
    claim = inline(verdict["claim"])
    if not here:
        claim = f'<a href="../notebooks/{page}.html#{address}">{claim}</a>'
    said = "; ".join(_remarks(verdict, shown, common, word, first=first))
    small = f"<small>{said}</small>" if said else ""
    predicted = f"{_RELATIONS[verdict['relation']]} {numeral_html(shown.predicted)}"
    place = f'id="{address}"' if here else _data(verdict)
    return (
        f'<tr {place} class="{css}"><td class="outcome">{words}</td>'
        f'<td class="claim">{claim}{small}</td>'
        f'<td class="predicted" data-label="predicted">{predicted}</td>'
        f'<td class="measured" data-label="measured">{_breakable(numeral_html(shown.both))}</td>'
        f'<td class="strip">{strip(verdict)}</td></tr>'
    )


def _data(verdict: Verdict) -> str:
    """Return what the filter of the scoreboard looks at."""
    what = {
        "outcome": outcome(verdict),
        "kind": verdict["kind"],
        "paper": find(verdict["statement"]).paper,
        "inside": "no" if verdict["hypotheses"] else "yes",
    }
    return " ".join(f'data-{key}="{escape(value)}"' for key, value in what.items())


def _remarks(
    verdict: Verdict, shown: Digits, common: str, word: str, *, first: bool
) -> Iterable[str]:
    """Yield what stands below a claim."""
    entry = find(verdict["statement"])
    if word:
        yield f"<strong>{word}</strong>"
    source = entry.number if entry.authors == common else entry.source
    link = f'<a href="{LEDGER}#{entry.id}">{escape(entry.name)}</a>'
    if kind := KINDS[verdict["kind"]]:
        link += f", {kind}"
    yield f"{link}, {escape(source)}" if source and entry.paper != HERE else link
    if verdict["hypotheses"]:
        failing = "; ".join(map(inline, verdict["hypotheses"]))
        yield f'<span class="outside">outside the hypotheses: {failing}</span>'
    if verdict["relation"] == "equal" and verdict["against"]:
        values = " and ".join(numeral_html(value) for value in dict.fromkeys(
            shown.other(value) for value in verdict["against"]))  # fmt: skip
        what = f": {inline(entry.against.what)}" if first and entry.against else ""
        yield f"told from {values}{what}"
    if (far := room(verdict)) is not None and math.isfinite(far):
        if verdict["outcome"] == FAILS:
            yield f"missed by a factor of {numeral_html(numeral(1 / far, 2))}" if far else "missed"
        elif verdict["outcome"] == HOLDS and far < 1.001:
            yield "no room"
        elif verdict["outcome"] == HOLDS:
            yield f"room for a factor of {numeral_html(numeral(far, 2 if far >= 1.1 else 3))}"
    if verdict.get("refused"):
        yield f"no interval: {escape(verdict['refused'])}"


def finding(page: str, address: str) -> str:
    """Return where the scoreboard says why a claim is not as expected.

    Examples
    --------
    >>> from supermarket.experiment.verdict_table import finding
    >>> finding("log_log", "claim-mean-d-2")
    'finding-log_log-claim-mean-d-2'
    """
    return f"finding-{page}-{address}"


def _breakable(number: str) -> str:
    """Let a line of a narrow column end before the half-width, or before the power of ten."""
    return number.replace("\xa0±", " ±").replace(")\xa0×", ") ×")


def strip(verdict: Verdict) -> str:
    """Return a small picture of a verdict, as SVG.

    The prediction is in the middle. The unit is how far the nearest alternative is away, or, for a
    bound, the bound itself; the picture ends at 2 of them on each side.
    """
    low, high, predicted = verdict["low"], verdict["high"], verdict["predicted"]
    if low is None:
        return ""
    against = verdict["against"] if verdict["relation"] == "equal" else []
    distances = [abs(value - predicted) for value in against if value != predicted]
    unit = min(distances, default=0) or abs(predicted) or max(abs(low), abs(high)) or 1.0
    parts = []
    if verdict["relation"] in ("at most", "at least"):
        left = 48 if verdict["relation"] == "at most" else 2
        parts.append(f'<rect class="forbidden" x="{left}" y="1" width="46" height="14"/>')
    parts.append('<path class="prediction" d="M48 0V16"/>')
    for value in against:
        if value != predicted and abs(value - predicted) <= 2 * unit:
            parts.append(f'<path class="other" d="M{_across(value, predicted, unit):.1f} 2V14"/>')
    start, end = (_across(value, predicted, unit) for value in (low, high))
    if max(start, end) > 2 and min(start, end) < 94:
        parts.append(
            f'<rect class="bar" x="{min(start, 94):.1f}" y="5" '
            f'width="{max(end - start, 2):.1f}" height="6"/>'
        )
    if start <= 2:
        parts.append('<path class="bar" d="M0 8l6 -5v10z"/>')
    if end >= 94:
        parts.append('<path class="bar" d="M96 8l-6 -5v10z"/>')
    return f"<svg {_STRIP}>{''.join(parts)}</svg>"


def _across(value: float, predicted: float, unit: float) -> float:
    return 48 + 23 * min(2.0, max(-2.0, (value - predicted) / unit))


def _legend(verdicts: Sequence[Verdict], common: str) -> str:
    """Return the line below a table: source, confidence, and how the strips are read."""
    parts = []
    if common:
        own = any(find(verdict["statement"]).paper == HERE for verdict in verdicts)
        rest = "; the rest is this project's" if own else ""
        parts.append(f"The statements are of {escape(common)}{rest}.")
    levels = sorted({v["confidence"] for v in verdicts if v["confidence"] is not None})
    if levels:
        said = " or ".join(f"{numeral(100 * level, 4)}\u202f%" for level in levels)
        parts.append(f"Intervals of confidence {said}; a number without one was computed.")
    parts.append(
        "Strip: the interval, and the prediction as the line in the middle; dashed ticks are what "
        "an equality is told from, grey is the side that a bound forbids."
    )
    return " ".join(parts)


def _common_authors(verdicts: Sequence[Verdict]) -> str:
    """Return the authors of all statements that are not this project's, if they are the same."""
    entries = [find(verdict["statement"]) for verdict in verdicts]
    authors = {entry.authors for entry in entries if entry.paper != HERE}
    return authors.pop() if len(authors) == 1 and len(verdicts) > 1 else ""


def _claims(verdicts: Iterable[Verdict]) -> list[str]:
    return [verdict["claim"] for verdict in verdicts]


def numeral_html(text: str) -> str:
    """Return a printed number as HTML that breaks only before its error."""
    parts = [text] if text.startswith("(") else re.split(r" (?=[±(])", text)
    return " ".join(with_powers(part).replace(" ", "\u00a0") for part in parts)


def inline(text: str) -> str:
    """Return a phrase of the ledger or of a page as HTML: formulas set, relations in one piece."""
    parts = _MATHS.split(_ROLE.sub(r"\1", text))
    for i, part in enumerate(parts):
        if i % 2:
            parts[i] = f'<span class="math notranslate nohighlight">\\({escape(part)}\\)</span>'
        else:
            joined = re.sub(r" (=|≤|≥|<|>) (?=\S)", "\u00a0\\1\u00a0", part)
            parts[i] = with_powers(escape(re.sub(r"(\d) %", "\\1\u202f%", joined)))
    return "".join(parts)


def _value(value: Any) -> str:
    """Return a parameter's value as a reader writes it."""
    if isinstance(value, list):
        return ", ".join(f"[{_value(v)}]" if isinstance(v, list) else _value(v) for v in value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,}" if isinstance(value, int) and abs(value) < 10**9 else numeral(value, 10)
