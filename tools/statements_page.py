"""The ledger as a page of the book: every statement, what computes it, and what shows it."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from importlib import import_module
from pathlib import Path

import yaml

import supermarket
from supermarket.experiment.boxes import provenance
from supermarket.experiment.statements import HERE, Statement, resolve, statements
from supermarket.experiment.verdict_table import MARKS, inline, outcome
from supermarket.experiment.verdicts import on_the_board
from supermarket.validation import ParameterError
from tools import api_pages
from tools.runs import Run
from tools.scoreboard import Claim, claims

LEDGER = Path(supermarket.__file__).with_name("statements.yml")
PLACE = "<!-- statements -->"  # in book/statements.md
THEOREM = re.compile("(Theorem|Proposition|Lemma|Corollary)")
DISPLAY = re.compile(r"\(\d")


def statements_page(root: Path, runs: Iterable[Run]) -> str:
    """Return the page's text: for each paper a count, an index, and the statements by number."""
    found = claims(runs)
    documented = _documented(root)
    by_paper: dict[str, list[Statement]] = {}
    for entry in statements().values():
        by_paper.setdefault(entry.paper, []).append(entry)
    ledger = yaml.safe_load(LEDGER.read_text(encoding="utf-8"))["papers"]
    # In the order of the ledger's papers; what is this project's own comes last.
    listed = [paper for paper in ledger if paper != HERE]
    order = sorted(
        by_paper,
        key=lambda paper: (paper == HERE, listed.index(paper) if paper in listed else len(listed)),
    )
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
    """Return a line of links: theorems and displays by number, marked where a claim shows them."""
    shown = {claim.verdict["statement"] for claim in found}
    number = Counter(entry.number for entry in entries)
    links = []
    for entry in entries:
        telling = _number(entry)[0] in (0, 2) and number[entry.number] == 1
        label = escape(entry.number) if telling else inline(entry.name)
        mark = " ✓" if entry.id in shown else ""
        links.append(f'<a href="#{entry.id}">{label}</a>{mark}')
    return f'<p class="ledger-index">{" · ".join(links)}</p>'


def _entry(entry: Statement, found: Sequence[Claim], documented: dict[int, tuple[str, str]]) -> str:
    number = f' <span class="number">{escape(entry.number)}</span>' if entry.number else ""
    standing = provenance(entry).split(" <a")[0]
    if entry.kind in _KINDS:
        standing += f" Claims on it are {_KINDS[entry.kind]}."
    facts = [f"**Standing.** {standing}"]
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


_KINDS = {"self-check": "self-checks of the method", "input": "inputs"}


def _sentence(text: str) -> str:
    return text.strip().rstrip(".")


def _told(entry: Statement) -> str:
    against = entry.against
    if against is None or against.value:
        return f"{against.what if against else ''}."
    share = f"{100 * against.scale:g} % of the prediction"
    size = share if against.of == "prediction" else f"{against.scale:g}"
    return f"{against.what}: a scale of {size}, since {against.why.strip().rstrip('.')}."


def _function(name: str, documented: dict[int, tuple[str, str]]) -> str:
    """Return a function's name, as a link where the reference has it."""
    try:
        listed, link = documented.get(id(resolve(name)), ("", ""))
    except ParameterError:
        listed = link = ""
    shown = f"<code>{escape(listed or name.replace(':', '.'))}</code>"
    return f'<a href="{link}">{shown}</a>' if link else shown


def _documented(root: Path) -> dict[int, tuple[str, str]]:
    """Return what the reference lists, by the identity of the objects: the name and the link."""
    found = {}
    for name, link in api_pages.addresses(root).items():
        module, _, member = name.rpartition(".")
        found[id(getattr(import_module(module), member))] = name, link
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


def _number(entry: Statement) -> tuple[int, list[int]]:
    """Return what sorts statements of a paper: theorems, then sections, then displays."""
    digits = [int(part) for part in re.findall(r"\d+", entry.number)]
    if THEOREM.match(entry.number):
        return 0, digits
    return (2 if DISPLAY.match(entry.number) else 1 if digits else 3), digits
