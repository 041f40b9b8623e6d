"""An executed notebook as one HTML page, which opens from a folder without a network.

The book's own pages are built by Sphinx; this one needs nothing but a Markdown parser. It shows
what they show: of each output the form that they take, citations and boxes in words. What a link
of the book leads to is put on the page, or the link becomes plain text.
"""

import re
import shutil
from base64 import b64encode
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from mdit_py_plugins.anchors import anchors_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin

from supermarket.experiment import boxes, verdict_table
from supermarket.experiment.captions import captioned
from supermarket.experiment.statements import Statement, find, statements

_STYLE = """
body { font: 17px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem;
  color: #222; background: white; }
img { max-width: 100%; } .wide { overflow-x: auto; }
pre { overflow-x: auto; font-size: 14px; background: #f5f5f5; padding: .5rem; }
table { border-collapse: collapse; font-size: 15px; }
td, th { padding: .2rem .6rem; text-align: left; border-bottom: 1px solid #ddd; }
.theorem { border-left: 4px solid #0072B2; background: #f2f7fb; padding: .1rem 1rem;
  margin: 1rem 0; }
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
    r"^(?P<fence>`{3,}|:{3,})\{(?:prf:)?([\w-]+)\} *([^\n]*)\n((?::[^\n]*\n)*)(.*?)^(?P=fence)$",
    re.MULTILINE | re.DOTALL,
)
_LABEL = re.compile(r"^:label: *(\S+)$", re.MULTILINE)
_ROLE = re.compile(r"\{([\w:]+)\}`([^`]+)`")
_TITLED = re.compile(r"^(.*?) *<[^<>]*>$", re.DOTALL)  # the text of a role that names its target
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_TO_LEDGER = re.compile(rf'href="{re.escape(verdict_table.LEDGER)}#([^"]+)"')
_LINK = re.compile(r'<a\b[^>]*\bhref="([^"]*)"[^>]*>(.*?)</a>', re.DOTALL)
_PICTURE = re.compile(r'<img src="(?!data:|\w+://)[^"]*" alt="([^"]*)"[^>]*>')
_PLACE = re.compile(r'\bid="([^"]+)"')


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
    anchors_plugin(markdown, max_level=3)
    body = "\n".join(_cell(cell, markdown) for cell in joined(content["cells"]))
    body = _living(_TO_LEDGER.sub(r'href="#\1"', body + _cited(body, markdown)))
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

    So a page has one fold where it would have several, one below the other. A caption that the code
    made is that of its figure; a fold says what its code makes; the check of the parameters, which
    is the same on every page, has none.
    """
    found: list[dict[str, Any]] = []
    for cell in map(captioned, cells):
        before = found[-1] if found else cell
        if before["cell_type"] == cell["cell_type"] == "code" and (
            before["metadata"].get("tags") == cell["metadata"].get("tags")
            and before is not cell
            and not before["outputs"]
        ):
            sources = ("".join(found.pop()["source"]), "".join(cell["source"]))
            cell = cell | {"source": "\n\n\n".join(sources)}
        found.append(cell)
    return [_named(cell) if cell["cell_type"] == "code" else cell for cell in found]


def _named(cell: dict[str, Any]) -> dict[str, Any]:
    source, metadata = "".join(cell["source"]), cell["metadata"]
    shown = {kind for output in cell["outputs"] for kind in output.get("data", {})}
    if "experiment.begin(" in source and "image/png" not in shown:
        return cell | {"metadata": metadata | {"tags": [*metadata.get("tags", []), "remove-input"]}}
    what = (
        "this figure" if "image/png" in shown
        else "the verdicts" if "run.finish(" in source
        else "this table" if "text/html" in shown
        else "this step"
    )  # fmt: skip
    prompts = {"code_prompt_show": f"Code: {what}", "code_prompt_hide": f"Code: {what}"}
    return cell | {"metadata": metadata | {"mystnb": metadata.get("mystnb", {}) | prompts}}


def mathjax() -> Path | None:
    """Return the folder of MathJax in the Sphinx extension that brings it; None without that."""
    spec = find_spec("sphinx-mathjax-offline")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent / "static" / "mathjax"


def _cell(cell: dict[str, Any], markdown: MarkdownIt) -> str:
    source, tags = "".join(cell["source"]), set(cell["metadata"].get("tags", []))
    # Of the parameters a table follows.
    if cell["cell_type"] == "raw" or tags & {"remove-cell", "parameters", "injected-parameters"}:
        return ""
    if cell["cell_type"] == "markdown":
        return _text(source, markdown)
    parts = []
    if "remove-input" not in tags:
        name = cell["metadata"]["mystnb"]["code_prompt_show"]
        unfolded = " open" if "headline" in tags else ""
        parts.append(
            f"<details{unfolded}><summary>{name}</summary><pre>{escape(source)}</pre></details>"
        )
    if "remove-output" not in tags:
        about = cell["metadata"].get("mystnb", {})
        parts += [_output(output, about, markdown) for output in cell["outputs"]]
    return "\n".join(parts)


def _living(body: str) -> str:
    """Return a page without the links that lead nowhere from it, and without such pictures."""
    places = set(_PLACE.findall(body))

    def kept(link: re.Match[str]) -> str:
        target, text = link.groups()
        here = target.startswith("#") and target[1:] in places
        return link[0] if here or re.match(r"(https?|mailto):", target) else text

    return _PICTURE.sub(r"\1", _LINK.sub(kept, body))


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
        _, kind, name, options, statement = box.groups()
        heads = [] if kind == "admonition" else [kind.capitalize()]
        heads += [_line(name, markdown)] if name else []
        head = f"<p><strong>{': '.join(heads)}</strong></p>"
        label = _LABEL.search(options)
        place = f'<a id="{escape(label[1])}"></a>' if label else ""
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
    if kind == "math":
        return f"${name}$"
    if not kind.startswith("cite"):
        titled = _TITLED.match(name)
        return titled[1] if titled else name
    papers = {entry.paper: entry.authors for entry in statements().values()}
    known = ", ".join(papers.get(key.strip(), key.strip()) for key in name.split(","))
    return known if kind == "cite:t" else f"[{known}]"


def _output(output: dict[str, Any], about: dict[str, Any], markdown: MarkdownIt) -> str:
    """Return an output in the first of its forms that the book would show."""
    data = {form: "".join(text) for form, text in output.get("data", {}).items() if text}
    if "text/html" in data:
        return data["text/html"]
    for form in ("image/svg+xml", "image/png", "image/jpeg"):
        if form in data:
            return _figure(form, data[form], about, markdown)
    for form in ("text/markdown", "text/latex"):
        if form in data:
            return _text(data[form], markdown)
    said = "".join(output.get("text", "")) or "\n".join(output.get("traceback", []))
    return f"<pre>{escape(_ANSI.sub('', data.get('text/plain', said)))}</pre>"


def _figure(form: str, image: str, about: dict[str, Any], markdown: MarkdownIt) -> str:
    if form == "image/svg+xml":
        image = b64encode(image.encode()).decode()
    text = escape(about.get("image", {}).get("alt", "A figure"))
    caption = _line(about.get("figure", {}).get("caption", ""), markdown)
    source = f"data:{form};base64,{image.replace(chr(10), '')}"
    return f'<figure><img alt="{text}" src="{source}"><figcaption>{caption}</figcaption></figure>'


def _formula(text: str, options: dict[str, Any]) -> str:
    left, right = (r"\[", r"\]") if options.get("display_mode") else (r"\(", r"\)")
    return escape(f"{left}{text}{right}")


def _copy_mathjax(folder: Path) -> bool:
    source = mathjax()
    if source is None:
        return False
    shutil.copyfile(source / "tex-svg-full.js", folder / "mathjax.js")  # no fonts beside
    return True
