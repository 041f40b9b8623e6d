"""The ledger as a page of the book: every statement, what computes it, and what shows it."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from importlib import import_module
from pathlib import Path

from supermarket.boxes import provenance
from supermarket.statements import HERE, STANDINGS, Statement, resolve, statements
from supermarket.validation import ParameterError
from supermarket.verdict_table import MARKS, inline, outcome
from supermarket.verdicts import on_the_board
from tools.runs import Run
from tools.scoreboard import Claim, claims

PLACE = "<!-- statements -->"  # in book/statements.md
LISTED = re.compile(r"^\.\. auto(?:function|class|exception):: (supermarket\.\S+)", re.MULTILINE)


def statements_page(root: Path, runs: Iterable[Run]) -> str:
    """Return the page's text: for each paper a count, an index, and the statements by number."""
    found = claims(runs)
    documented = _documented(root / "book" / "api.md")
    by_paper: dict[str, list[Statement]] = {}
    for entry in statements().values():
        by_paper.setdefault(entry.paper, []).append(entry)
    # What is this project's own comes last.
    order = sorted(by_paper, key=lambda paper: paper == HERE)
    parts = [_total(list(statements().values()), found)]
    for paper in order:
        entries = sorted(by_paper[paper], key=_number)
        title = "This project" if paper == HERE else entries[0].authors
        said = "" if paper == HERE else f"The paper is {{cite:t}}`{paper}`. "
        parts += [f"## {title}", said + _total(entries, found), _index(entries, found)]
        parts += [_entry(entry, found, documented) for entry in entries]
    return "\n\n".join(parts)


def _total(entries: Sequence[Statement], found: Sequence[Claim]) -> str:
    """Return how many statements there are, and how many have which evidence."""
    shown, outside, other = 0, 0, 0
    for entry in entries:
        verdicts = [claim.verdict for claim in found if claim.verdict["statement"] == entry.id]
        if any(map(on_the_board, verdicts)):
            shown += 1
        elif any(verdict["hypotheses"] for verdict in verdicts):
            outside += 1
        elif verdicts:
            other += 1
    missing = len(entries) - shown - outside - other
    one = len(entries) == 1
    return (
        f"Of {len(entries)} statement{'' if one else 's'}, {shown} "
        f"{'is' if shown == 1 else 'are'} shown by claims inside the hypotheses"
        + (f", {outside} only outside of them" if outside else "")
        + (f", {other} by self-checks or inputs only" if other else "")
        + f"; {missing} {'has' if missing == 1 else 'have'} no claim, and the entry says why."
    )


def _index(entries: Sequence[Statement], found: Sequence[Claim]) -> str:
    shown = {claim.verdict["statement"] for claim in found}
    links = " · ".join(
        f'<a href="#{entry.id}">{escape(entry.number or entry.name)}</a>'
        + (" ✓" if entry.id in shown else "")
        for entry in entries
    )
    return f'<p class="ledger-index">{links}</p>'


def _entry(entry: Statement, found: Sequence[Claim], documented: dict[int, str]) -> str:
    number = f' <span class="number">{escape(entry.number)}</span>' if entry.number else ""
    source = provenance(entry).split(" <a")[0] if entry.paper != HERE else ""
    kind = f" It is used as {_KINDS[entry.kind]}." if entry.kind in _KINDS else ""
    facts = [f"**Standing.** {STANDINGS[entry.standing].capitalize()}.{kind} {source}".strip()]
    if entry.hypotheses:
        facts.insert(0, "**Hypotheses.** " + "; ".join(map(_sentence, entry.hypotheses)) + ".")
    if entry.against:
        facts.append(f"**Told from.** {_told(entry)}")
    if entry.predicts:
        facts.append(
            "**Computed by.** " + ", ".join(_function(name, documented) for name in entry.predicts)
        )
    facts.append(_evidence(entry, found))
    return "\n\n".join(
        [
            f'<section class="statement" id="{entry.id}">',
            f"<h3>{inline(entry.name)}{number}</h3>",
            entry.statement.strip(),
            *facts,
            "</section>",
        ]
    )


_KINDS = {"self-check": "a self-check of the method", "input": "an input"}


def _sentence(text: str) -> str:
    return text.strip().rstrip(".")


def _told(entry: Statement) -> str:
    against = entry.against
    if against is None or against.value:
        return f"{against.what if against else ''}."
    share = f"{100 * against.scale:g} % of the prediction"
    size = share if against.of == "prediction" else f"{against.scale:g}"
    return f"{against.what}: a scale of {size}, since {against.why.strip().rstrip('.')}."


def _function(name: str, documented: dict[int, str]) -> str:
    """Return a function's name, as a link where the API page has it."""
    try:
        listed = documented.get(id(resolve(name)))
    except ParameterError:
        listed = None
    shown = f"<code>{escape(listed or name.replace(':', '.'))}</code>"
    return f'<a href="api.html#{listed}">{shown}</a>' if listed else shown


def _documented(api: Path) -> dict[int, str]:
    """Return what the API page lists, by the identity of the objects."""
    if not api.is_file():
        return {}
    found = {}
    for name in LISTED.findall(api.read_text(encoding="utf-8")):
        module, _, member = name.rpartition(".")
        found[id(getattr(import_module(module), member))] = name
    return found


def _evidence(entry: Statement, found: Sequence[Claim]) -> str:
    """Return the claims that show a statement, page by page, or why there is none."""
    mine = [claim for claim in found if claim.verdict["statement"] == entry.id]
    if not mine:
        why = _sentence(entry.unshown) or "no claim in this build of the book"
        return f"**Not shown.** {why[0].upper()}{why[1:]}."
    parts = []
    for page in dict.fromkeys(claim.page for claim in mine):
        here = [claim for claim in mine if claim.page == page]
        number = Counter(
            outcome(claim.verdict) + (" (outside)" if claim.verdict["hypotheses"] else "")
            for claim in here
        )
        said = ", ".join(f"{many} × {word}" for word, many in number.items())
        marks = " ".join(
            f'<a href="{claim.link}" title="{escape(claim.verdict["claim"])}" '
            f'aria-label="{escape(claim.verdict["claim"])}: {escape(outcome(claim.verdict))}">'
            f"{MARKS[claim.verdict['outcome']]}</a>"
            for claim in here
        )
        parts.append(
            f'<li><a href="../notebooks/{page}.html">{escape(here[0].title)}</a>: {said} '
            f'<span class="marks">{marks}</span></li>'
        )
    return "**Shown by.**\n\n<ul>\n" + "\n".join(parts) + "\n</ul>"


def _number(entry: Statement) -> tuple[int, list[int], str]:
    """Return what sorts statements of a paper: theorems and sections, displays, the rest."""
    digits = [int(part) for part in re.findall(r"\d+", entry.number)]
    kind = 1 if re.fullmatch(r"\([\d.]+\)", entry.number) else 0 if digits else 2
    return kind, digits, ""
