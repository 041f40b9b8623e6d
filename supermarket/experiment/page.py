"""An executed notebook as one HTML page, which opens from a folder without a network.

The book's own pages are built by Sphinx; this one needs nothing but a Markdown parser. What a link
of the book leads to is put on the page, or the link becomes plain text.
"""

import re
import shutil
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin

from supermarket.experiment import boxes, verdict_table
from supermarket.experiment.statements import Statement, find, statements

_STYLE = """
body { font: 17px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem;
  color: #222; background: white; }
img { max-width: 100%; } .wide { overflow-x: auto; }
pre { overflow-x: auto; font-size: 14px; background: #f5f5f5; padding: .5rem; }
table { border-collapse: collapse; font-size: 15px; }
td, th { padding: .2rem .6rem; text-align: left; border-bottom: 1px solid #ddd; }
.theorem { border-left: 4px solid #0072B2; background: #f2f7fb; padding: .1rem 1rem; }
figcaption, .provenance { font-size: 14px; color: #555; }
summary { color: #555; cursor: pointer; }
"""
# A link to a folded claim opens the fold.
_SCRIPT = """
const reveal = () => {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let fold = target; fold; fold = fold.parentElement) {
    if (fold.open === false) fold.open = true;
  }
  if (target) target.scrollIntoView();
};
addEventListener("hashchange", reveal);
addEventListener("DOMContentLoaded", reveal);
"""
_DIRECTIVE = re.compile(
    r"^```\{prf:(\w+)\} *([^\n]*)\n(?::label: *(\S+)\n)?(?::[^\n]*\n)*(.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_ROLE = re.compile(r"\{([\w:]+)\}`([^`]+)`")
_TO_LEDGER = re.compile(rf'href="{re.escape(verdict_table.LEDGER)}#([^"]+)"')
_TO_BOOK = re.compile(r'<a href="(?!#|\w+:)[^"]*">(.*?)</a>', re.DOTALL)


def page(content: dict[str, Any], title: str, folder: Path) -> str:
    """Return the page of an executed notebook.

    Parameters
    ----------
    content : dict
        The notebook.
    title : str
        Of the page.
    folder : Path
        Where MathJax is put as ``mathjax.js``, if the book's copy of it is installed; without it
        formulas show as TeX.
    """
    markdown = MarkdownIt("commonmark").enable("table")
    dollarmath_plugin(markdown, renderer=_formula, double_inline=True)
    body = "\n".join(_cell(cell, markdown) for cell in joined(content["cells"]))
    body = _TO_BOOK.sub(r"\1", _TO_LEDGER.sub(r'href="#\1"', body + _cited(body, markdown)))
    script = '<script src="mathjax.js"></script>' if _copy_mathjax(folder) else ""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}{verdict_table.STYLE.read_text(encoding='utf-8')}"
        f"</style>{script}<script>{_SCRIPT}</script></head>\n"
        f"<body>\n{body}\n</body></html>\n"
    )


def joined(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the cells of a notebook, code that shows nothing joined to the code that follows it.

    So a page has one fold where it would have several, one below the other.
    """
    found: list[dict[str, Any]] = []
    for cell in cells:
        before = found[-1] if found else cell
        if before["cell_type"] == cell["cell_type"] == "code" and (
            before["metadata"].get("tags") == cell["metadata"].get("tags")
            and before is not cell
            and not before["outputs"]
        ):
            sources = ("".join(found.pop()["source"]), "".join(cell["source"]))
            cell = cell | {"source": "\n\n\n".join(sources)}
        found.append(cell)
    return found


def mathjax() -> Path | None:
    """Return the folder of MathJax in the Sphinx extension that brings it; None without that."""
    spec = find_spec("sphinx-mathjax-offline")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent / "static" / "mathjax"


def _cell(cell: dict[str, Any], markdown: MarkdownIt) -> str:
    source = "".join(cell["source"])
    if cell["cell_type"] != "code":
        return _text(source, markdown)
    if {"parameters", "injected-parameters"} & set(cell["metadata"].get("tags", [])):
        return ""  # a table of them follows
    code = f"<details><summary>Code</summary><pre>{escape(source)}</pre></details>"
    shown = [_output(output, cell["metadata"].get("mystnb", {})) for output in cell["outputs"]]
    return "\n".join([code, *shown])


def _cited(body: str, markdown: MarkdownIt) -> str:
    """Return the statements that the page links to and does not have, until none is missing."""
    added = ""
    while missing := [
        name
        for name in dict.fromkeys(_TO_LEDGER.findall(body + added))
        if f'id="{name}"' not in body + added
    ]:
        added += "".join(_text(_written(find(name)), markdown) for name in missing)
    return f"<h2>The statements</h2>\n{added}" if added else ""


def _written(entry: Statement) -> str:
    """Return a box, with the hypotheses that the book has on another page."""
    lines = "".join(f"\n* {hypothesis.strip()}" for hypothesis in entry.hypotheses)
    said = f"Hypotheses:\n{lines}\n\n" if lines else ""
    source = boxes.provenance(entry).split(" <a")[0]
    return (
        f"```{{prf:{entry.box}}} {entry.name}\n:label: {entry.id}\n\n"
        f"{entry.statement.strip()}\n\n{said}{source}\n```"
    )


def _text(source: str, markdown: MarkdownIt) -> str:
    """Return Markdown as HTML, a statement in a box, a citation or reference in words."""
    source = boxes.expand(source, _written)
    box = _DIRECTIVE.search(source)
    if box:
        kind, name, label, statement = box.groups()
        head = f"<p><strong>{escape(kind.capitalize())}: {_line(name, markdown)}</strong></p>"
        place = f'<a id="{escape(label)}"></a>' if label else ""
        inside = f'{place}<div class="theorem">{head}{_text(statement, markdown)}</div>\n'
        before, after = source[: box.start()], source[box.end() :]
        return _text(before, markdown) + inside + _text(after, markdown)
    return markdown.render(_ROLE.sub(_in_words, source))


def _line(text: str, markdown: MarkdownIt) -> str:
    return markdown.renderInline(_ROLE.sub(_in_words, text))


def _in_words(role: re.Match[str]) -> str:
    """Return a role of MyST as a reader needs it where there is no book around."""
    kind, name = role.groups()
    if kind == "prf:ref" and name in statements():
        return f'<a href="{verdict_table.LEDGER}#{name}">{find(name).name}</a>'
    papers = {entry.paper: entry.authors for entry in statements().values()}
    known = ", ".join(papers.get(key.strip(), key.strip()) for key in name.split(","))
    return known if kind == "cite:t" else f"[{known}]"


def _output(output: dict[str, Any], shown: dict[str, Any]) -> str:
    data = output.get("data", {})
    if "image/png" in data:
        image = "".join(data["image/png"]).replace("\n", "")
        text = escape(shown.get("image", {}).get("alt", "A figure"))
        caption = escape(shown.get("figure", {}).get("caption", ""))
        return (
            f'<figure><img alt="{text}" src="data:image/png;base64,{image}">'
            f"<figcaption>{caption}</figcaption></figure>"
        )
    if "text/html" in data:
        return "".join(data["text/html"])
    return f"<pre>{escape(''.join(data.get('text/plain', output.get('text', ''))))}</pre>"


def _formula(text: str, options: dict[str, Any]) -> str:
    left, right = (r"\[", r"\]") if options.get("display_mode") else (r"\(", r"\)")
    return escape(f"{left}{text}{right}")


def _copy_mathjax(folder: Path) -> bool:
    source = mathjax()
    if source is None:
        return False
    shutil.copyfile(source / "tex-svg-full.js", folder / "mathjax.js")  # no fonts beside
    return True
