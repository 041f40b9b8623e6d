"""Every claim of the book on one page: a picture, what does not hold and why, and a table.

All of it is made from the data that the notebooks left, and from ``notebooks/findings.yml``, which
says why a claim is not as expected.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import yaml

from supermarket.experiment import catalogue
from supermarket.experiment.digits import Digits
from supermarket.experiment.statements import statements
from supermarket.experiment.verdict_table import (
    count,
    finding,
    inline,
    numeral_html,
    outcome,
    table,
)
from supermarket.experiment.verdicts import (
    BLUNT,
    CONTROL,
    FAILS,
    OUTCOMES,
    SHORT,
    UNSETTLED,
    addresses,
    as_expected,
    on_the_board,
)
from tools import BuildError
from tools.runs import Run

PLACE = "<!-- scoreboard -->"  # in book/scoreboard.md
FIGURE = "scoreboard.png"
EDGE = 4.0  # half-widths at which the picture ends
Why = Mapping[tuple[str, str], str]


@dataclass(frozen=True)
class Claim:
    """A verdict, and where in the book it is.

    Attributes
    ----------
    page, title : str
        The notebook's name without its ending, and its heading.
    address : str
        Of the claim, on that page.
    verdict : dict
        As `supermarket.experiment.verdicts.judge` gives it.
    """

    page: str
    title: str
    address: str
    verdict: Mapping[str, Any]

    @property
    def link(self) -> str:
        """Where the claim is, from a page of the book."""
        return f"../notebooks/{self.page}.html#{self.address}"


def claims(runs: Iterable[Run]) -> list[Claim]:
    """Return all claims of the book, in its order."""
    found = []
    for run in runs:
        verdicts = json.loads(run.results()["verdicts"].read_text(encoding="utf-8"))
        cells = json.loads(run.notebook.read_text(encoding="utf-8"))["cells"]
        title = catalogue.paragraphs(cells)[0].lstrip("# ")
        named = zip(verdicts, addresses([v["claim"] for v in verdicts]), strict=True)
        found += [Claim(run.name, title, address, verdict) for verdict, address in named]
    return found


def findings(root: Path, runs: Iterable[Run]) -> dict[tuple[str, str], str]:
    """Return why claims are not as expected in the profile of these runs, by page and claim.

    Raises
    ------
    BuildError
        If ``notebooks/findings.yml`` is not a mapping of profiles to lists of findings.
    """
    file = root / "notebooks" / "findings.yml"
    profiles = {run.folder.parent.name for run in runs}
    if not file.is_file():
        return {}
    try:
        by_profile = yaml.safe_load(file.read_text(encoding="utf-8")) or {}
        listed = [entry for name in profiles for entry in by_profile.get(name) or []]
        return {(entry["page"], entry["claim"]): " ".join(entry["why"].split()) for entry in listed}
    except (yaml.YAMLError, AttributeError, KeyError, TypeError) as error:
        raise BuildError(
            "notebooks/findings.yml must name profiles, below each a list of page, claim, outcome "
            f"and why: {' '.join(str(error).split())}."
        ) from None


def scoreboard(runs: Iterable[Run], why: Why, folder: Path) -> str:
    """Return the page as Markdown, and draw its figure into the folder."""
    found = claims(runs)
    draw(found, folder / FIGURE)
    missed = [claim for claim in found if not as_expected(claim.verdict)]
    return "\n\n".join(
        [
            _score(found),
            "## All claims in one picture",
            f"```{{figure}} {FIGURE}\n:alt: {_alternative(found)}\n:width: 100%\n\n"
            f"{_caption(missed)}\n```",
            "## What does not hold, and why",
            _reasons(missed, why),
            "## Counts",
            _counts(found),
            "## All claims",
            all_claims(found),
        ]
    )


def _score(found: Sequence[Claim]) -> str:
    board = [claim.verdict for claim in found if on_the_board(claim.verdict)]
    rest = [claim.verdict for claim in found if not on_the_board(claim.verdict)]
    controls = [verdict for verdict in rest if verdict["kind"] == CONTROL]
    refused = sum(map(as_expected, controls))
    outside = sum(bool(v["hypotheses"]) and v["kind"] != CONTROL for v in rest)
    apart = [
        f"{_many(outside, 'claim')} outside the hypotheses of a statement, findings about size",
        _many(sum(v["kind"] == "self-check" for v in rest), "self-check"),
        _many(sum(v["kind"] == "input" for v in rest), "input"),
        f"{_many(len(controls), 'negative control')}, made to fail, of which {refused} "
        f"{'was' if refused == 1 else 'were'} refused, as it should be",
    ]
    score = f"**{count(board)}** That is the score of the statements, inside their hypotheses. "
    return f"{score if board else ''}Counted apart: {'; '.join(apart)}."


def _many(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _counts(found: Sequence[Claim]) -> str:
    """Return a table of how many claims of each kind have each outcome."""
    groups = {
        "statement of a paper": lambda v: v["kind"] == "paper" and not v["hypotheses"],
        "derived here": lambda v: v["kind"] == "derived" and not v["hypotheses"],
        "outside the hypotheses": lambda v: v["kind"] in ("paper", "derived") and v["hypotheses"],
        "self-check": lambda v: v["kind"] == "self-check",
        "input": lambda v: v["kind"] == "input",
        "negative control, to be refused": lambda v: v["kind"] == CONTROL,
    }
    head = ["kind", *OUTCOMES, "all"]
    lines = [f"| {' | '.join(head)} |", f"| --- {'| ---: ' * (len(head) - 1)}|"]
    for name, inside in groups.items():
        number = Counter(c.verdict["outcome"] for c in found if inside(c.verdict))
        numbers = [str(number[word] or "") for word in OUTCOMES]
        lines.append(f"| {name} | {' | '.join(numbers)} | {sum(number.values())} |")
    number = Counter(claim.verdict["outcome"] for claim in found)
    lines.append(f"| all | {' | '.join(str(number[w] or '') for w in OUTCOMES)} | {len(found)} |")
    return "\n".join(lines)


def _reasons(missed: Sequence[Claim], why: Why) -> str:
    """Return what is not as expected as a list, each with its address and its reason."""
    if not missed:
        return "Everything is as expected."
    items = []
    for number, claim in enumerate(missed, 1):
        verdict, shown = claim.verdict, Digits(claim.verdict)
        relation = {"equal": "", "at most": "at most ", "at least": "at least ", "exactly": ""}
        reason = why.get((claim.page, verdict["claim"]), "")
        items.append(
            f'<li id="{finding(claim.page, claim.address)}" value="{number}">'
            f'<a href="{claim.link}">{inline(verdict["claim"])}</a> '
            f"({escape(claim.title)}): <strong>{outcome(verdict)}</strong>; predicted "
            f"{relation[verdict['relation']]}{numeral_html(shown.predicted)}, measured "
            f"{numeral_html(shown.both)}. "
            + (inline(reason) if reason else "No reason is on record for this profile.")
            + "</li>"
        )
    return "\n".join(['<ol class="findings">', *items, "</ol>"])


def all_claims(found: Sequence[Claim]) -> str:
    """Return the table of all claims, a fold a page, and the form that filters it."""
    kinds = {"paper": "statement of a paper", "derived": "derived here"}
    papers = {entry.paper: entry.authors for entry in statements().values()}
    came = {outcome(claim.verdict) for claim in found}
    words = [*(word for word in OUTCOMES if word in came), *sorted(came - {*OUTCOMES})]
    present = list(dict.fromkeys(claim.verdict["kind"] for claim in found))
    shown = {claim.verdict["statement"] for claim in found}
    cited = {statements()[name].paper for name in shown}
    fields = [
        _select("outcome", "outcome", {word: word for word in words}),
        _select("kind", "kind", {kind: kinds.get(kind, kind) for kind in present}),
        _select("paper", "paper", {key: name for key, name in papers.items() if key in cited}),
        _select("inside", "hypotheses", {"yes": "all hold", "no": "outside"}),
    ]
    form = (
        '<form class="filter" hidden>'
        + "".join(fields)
        + '<label>text <input type="search" name="text"></label>'
        '<button type="reset">all</button><output aria-live="polite"></output></form>'
    )
    parts = [form]
    for page in dict.fromkeys(claim.page for claim in found):
        here = [claim for claim in found if claim.page == page]
        rows = [(claim.verdict, claim.address, "") for claim in here]
        parts.append(
            f'<details class="claims"><summary><strong>{escape(here[0].title)}</strong>, '
            f"{escape(count([claim.verdict for claim in here]))}</summary>"
            f"{table(rows, page, here=False)}</details>"
        )
    return '<div class="all-claims">\n' + "\n".join(parts) + "\n</div>"


def _select(name: str, label: str, options: Mapping[str, str]) -> str:
    inner = "".join(
        f'<option value="{escape(value)}">{escape(text)}</option>'
        for value, text in options.items()
    )
    return (
        f'<label>{label} <select name="{name}"><option value="">any</option>{inner}</select>'
        "</label>"
    )


def place(verdict: Mapping[str, Any]) -> float | None:
    """Return (measured - predicted) / half-width; None without an interval.

    A number computed without an error is infinitely far from a prediction that it is not equal to.
    """
    if verdict["low"] is None:
        return None
    off = verdict["measured"] - verdict["predicted"]
    half = (verdict["high"] - verdict["low"]) / 2
    if half == 0:
        return math.copysign(math.inf, off) if off else 0.0
    return off / half


def draw(found: Sequence[Claim], file: Path) -> None:
    """Draw every claim as a point on its page's strip, misses with their number in the list."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    from supermarket.experiment import plotting

    with mpl.rc_context():
        plotting.use_style()
        pages = list(dict.fromkeys((claim.page, claim.title) for claim in found))
        rows = {page: -i for i, (page, _) in enumerate(pages)}
        figure = Figure(figsize=(7.0, 1.1 + 0.3 * max(len(pages), 1)), layout="constrained")
        ax = figure.subplots()
        ax.axvspan(-1, 1, color="0.9", zorder=0)
        ax.axvline(0, color=plotting.THEOREM, linewidth=1)
        number = 0
        for claim in found:
            verdict = claim.verdict
            number += not as_expected(verdict)
            x = place(verdict)
            if x is None:
                x = 0.0
            x = min(EDGE, max(-EDGE, x))
            y, style = rows[claim.page], _style(verdict)
            ax.plot(x, y, linestyle="", clip_on=False, **style)
            if not as_expected(verdict):
                ax.annotate(
                    str(number), (x, y), (0, 4), textcoords="offset points", fontsize=7,
                    ha="center", color=style["color"], annotation_clip=False,
                )  # fmt: skip
        for label, style in _KEY.items():
            ax.plot([], [], linestyle="", label=label, **style)
        ax.set(
            xlim=(-EDGE, EDGE), ylim=(-len(pages) + 0.3, 0.7),
            xlabel="(measured − predicted) / half-width",
        )  # fmt: skip
        ax.set_yticks(list(rows.values()), [title for _, title in pages], fontsize=9)
        ax.set_xticks(range(-int(EDGE), int(EDGE) + 1))
        ticks = [f"{x:+d}" if x else "0" for x in range(-int(EDGE), int(EDGE) + 1)]
        ax.set_xticklabels([f"≤ {ticks[0]}", *ticks[1:-1], f"≥ {ticks[-1]}"])
        ax.tick_params(axis="y", length=0)
        figure.legend(loc="outside upper center", ncols=3, fontsize=8, handletextpad=0.2)
        figure.savefig(file, dpi=160)


_KEY: dict[str, dict[str, Any]] = {
    "equality, holds": {"marker": "o", "color": "#0072B2", "markersize": 4, "alpha": 0.6},
    "bound, holds": {"marker": "|", "color": "#0072B2", "markersize": 8, "alpha": 0.6},
    "outside the hypotheses": {"marker": "o", "color": "#7F7F7F", "markersize": 4,
                               "markerfacecolor": "none"},
    "does not hold": {"marker": "X", "color": "#A63C00", "markersize": 7},
    "too blunt, too short or unsettled": {"marker": "D", "color": "#5C5C5C", "markersize": 5,
                                          "markerfacecolor": "none"},
    "negative control, refused": {"marker": "x", "color": "#7F7F7F", "markersize": 5},
}  # fmt: skip


def _style(verdict: Mapping[str, Any]) -> dict[str, Any]:
    """Return how a verdict is drawn."""
    if verdict["kind"] == CONTROL and as_expected(verdict):
        return _KEY["negative control, refused"]
    if verdict["outcome"] == FAILS or verdict["kind"] == CONTROL:
        return _KEY["does not hold"]
    if verdict["outcome"] in (BLUNT, SHORT, UNSETTLED):
        return _KEY["too blunt, too short or unsettled"]
    if verdict["hypotheses"]:
        return _KEY["outside the hypotheses"]
    return _KEY["equality, holds" if verdict["relation"] == "equal" else "bound, holds"]


def _alternative(found: Sequence[Claim]) -> str:
    places = [place(c.verdict) for c in found if c.verdict["relation"] == "equal"]
    inside = sum(x is not None and abs(x) <= 1 for x in places)
    pages = len({claim.page for claim in found})
    missed = sum(not as_expected(claim.verdict) for claim in found)
    return (
        f"{len(found)} points on {pages} strips, one for each page. Of the {len(places)} "
        f"equalities {inside} lie in the band from -1 to 1; {missed} points are numbered because "
        "they are not as expected."
    )


def _caption(missed: Sequence[Claim]) -> str:
    numbers = "" if not missed else (
        f" The {len(missed)} claims that are not as expected have the numbers of the list below."
        if len(missed) > 1 else " The one that is not as expected has a number."
    )  # fmt: skip
    return (
        "Each claim of the book as a point. An equality lies in the grey band where its interval "
        "contains the prediction; a bound may lie as far off as it likes, on its own side. What is "
        "beyond an end is drawn there; what has no interval is drawn at 0." + numbers
    )
