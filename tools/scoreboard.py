"""Every verdict of the book on one page, from the data that the notebooks left."""

import json
from collections.abc import Iterable
from html import escape
from pathlib import Path

from supermarket.digits import in_digits
from tools.runs import Run

PLACE = "<!-- scoreboard -->"  # in book/scoreboard.md
WORDS = {True: "yes", False: "NO", None: "run too short"}


def scoreboard(runs: Iterable[Run]) -> str:
    """Return the page's tables as Markdown: a summary, then the verdicts notebook by notebook."""
    sections, summary, total = [], [], {True: 0, False: 0, None: 0}
    for run in runs:
        verdicts = json.loads(run.results()["verdicts"].read_text(encoding="utf-8"))
        title, link = _title(run.notebook), f"../notebooks/{run.notebook.name}"
        counts = {holds: sum(v["holds"] is holds for v in verdicts) for holds in WORDS}
        total = {holds: total[holds] + count for holds, count in counts.items()}
        summary.append(f"| [{title}]({link}) | {' | '.join(map(str, counts.values()))} |")
        rows = [
            [v["claim"], WORDS[v["holds"]], *in_digits(v).values(), v["source"]] for v in verdicts
        ]
        sections.append(f"## {title}\n\n[The page]({link})\n\n{_table(rows)}")
    claims = sum(total.values())
    return "\n".join(
        [
            f"{claims} claims: {total[True]} hold, {total[False]} do not, and for {total[None]} "
            "the run was too short to tell.",
            "",
            "| page | hold | do not | too short |",
            "| --- | --- | --- | --- |",
            *summary,
            "",
            *sections,
        ]
    )


def _title(notebook: Path) -> str:
    """Return the heading of a notebook."""
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        for line in "".join(cell["source"]).splitlines():
            if line.startswith("# ") and cell["cell_type"] == "markdown":
                return line[2:].strip()
    return notebook.stem


def _table(rows: list[list[str]]) -> str:
    """Return a table in HTML, on lines without a gap, so that Markdown leaves it alone."""
    head = ("claim", "holds", "predicted", "measured", "interval", "source")
    lines = ['<div class="wide"><table class="dataframe verdicts">', "<thead><tr>"]
    lines += [f"<th>{name}</th>" for name in head]
    lines.append("</tr></thead><tbody>")
    for row in rows:
        lines.append("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>")
    return "\n".join([*lines, "</tbody></table></div>", ""])
