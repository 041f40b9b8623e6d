"""Say what is wrong with the built pages: faults that Sphinx does not see or does not mind."""

import json
import math
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup, Tag

from supermarket.experiment.statements import statements
from supermarket.experiment.verdicts import CONTROL, HOLDS, addresses

# How myst-nb marks what a cell wrote to stderr, and the traceback of an exception.
BAD_OUTPUT = ".output.stderr, .output.traceback, .output.error"
# Where TeX, dollars and braces are meant to be seen, or are not seen at all.
LITERAL = ".math, pre, code, script, style, template"
# The data of a page's verdicts, beside the page for readers to take away.
VERDICTS = "_downloads/*/*.verdicts.json"
FAR = 1000  # times a prediction: no equality is measured there unless the computation broke
# A role or directive of MyST that nothing has replaced, such as {glue:text}`x`.
RAW_ROLE = re.compile(r"\{glue\b|\{[a-z][a-z:_-]*\}`")
RAW_TEX = re.compile(r"\$\$|\\[()\[\]]|\\[a-zA-Z]{2,}|\$[^$\n]*[\\^_][^$\n]*\$")
CSS_URL = re.compile(
    r"""url\(\s*['"]?((?:https?:)?//[^'")]+)|@import\s+['"]((?:https?:)?//[^'"]+)"""
)


def check_pages(html: Path, pages: list[str]) -> list[str]:
    """Return the faults of a folder of HTML, one line each; an empty list if there are none.

    Parameters
    ----------
    html : Path
        The folder.
    pages : list of str
        Pages that must be in it, such as 'book/intro'.
    """
    faults = [f"{page}.html: listed in _toc.yml, but not built" for page in pages
              if not (html / f"{page}.html").is_file()]  # fmt: skip
    for file in sorted(html.rglob("*.html")):
        if "_static" in file.relative_to(html).parts:
            continue  # pieces of the theme, not pages
        soup = _parse(file)
        for check in (_bad_outputs, _bare_values, _claims, _images, _links, _remote, _raw_text):
            faults += [f"{file.relative_to(html)}: {fault}" for fault in check(soup, file, html)]
    for sheet in sorted(html.rglob("*.css")):
        for match in CSS_URL.finditer(sheet.read_text(encoding="utf-8")):
            faults.append(f"{sheet.relative_to(html)}: fetches {match[1] or match[2]}")
    faults += [*_verdicts(html), *_ledger(html)]
    _parse.cache_clear()
    _anchors.cache_clear()
    return faults


@cache
def _parse(file: Path) -> BeautifulSoup:
    return BeautifulSoup(file.read_text(encoding="utf-8"), "html.parser")


@cache
def _anchors(file: Path) -> set[str]:
    soup = _parse(file)
    return {str(tag["id"]) for tag in soup.select("[id]")} | {
        str(tag["name"]) for tag in soup.select("a[name]")
    }


def _bad_outputs(soup: BeautifulSoup, _file: Path, _html: Path) -> Iterator[str]:
    for output in soup.select(BAD_OUTPUT):
        lines = output.get_text().strip().splitlines() or [""]
        telling = next((line for line in lines if "Warning:" in line), lines[-1])
        yield f"a cell's error output: {telling}"


def _bare_values(soup: BeautifulSoup, _file: Path, _html: Path) -> Iterator[str]:
    """Yield what the last line of a cell left by accident, such as True; a headline shows it."""
    for output in soup.select(".output.text_plain:not(.tag_headline *)"):
        yield f"a bare value: {' '.join(output.get_text().split())[:60]}"


def _claims(soup: BeautifulSoup, _file: Path, _html: Path) -> Iterator[str]:
    """Yield each row of a table of verdicts that has no address, nor leads to one."""
    for row in soup.select("table.verdicts tbody tr"):
        if not str(row.get("id", "")).startswith("claim-") and not row.select("a[href*='#claim-']"):
            yield f"a claim without an address: {' '.join(row.get_text().split())[:60]}"


def _verdicts(html: Path) -> Iterator[str]:
    """Yield what is wrong with the verdicts' data, and each claim that its page does not show."""
    for file in sorted(html.glob(VERDICTS)):
        name = file.name.partition(".")[0]
        page = html / "notebooks" / f"{name}.html"
        shown = _anchors(page) if page.is_file() else set()
        verdicts = json.loads(file.read_text(encoding="utf-8"))
        named = addresses([verdict["claim"] for verdict in verdicts])
        for verdict, address in zip(verdicts, named, strict=True):
            for fault in _of_a_verdict(verdict):
                yield f"{name}: {verdict['claim']}: {fault}"
            if address not in shown:
                yield f"{name}: {verdict['claim']}: no row of the page has its address, {address}"


def _of_a_verdict(verdict: dict[str, Any]) -> Iterator[str]:
    numbers = [verdict[key] for key in ("predicted", "measured", "low", "high", "confidence")]
    if not all(x is None or math.isfinite(x) for x in [*numbers, *verdict["against"]]):
        yield "a number that is not finite"
        return
    predicted, measured, low, high, confidence = numbers
    if confidence is not None and low is not None and not low < high:
        yield "a random number with an interval of no width"
    if verdict["relation"] != "equal" or verdict["kind"] == CONTROL:
        return
    near = min((abs(value - predicted) for value in verdict["against"]), default=0.0)
    # A prediction that is next to nothing beside what it is told from may be measured as 0.
    if abs(measured) > FAR * abs(predicted) > 0 and abs(measured - predicted) > near:
        yield f"measured {measured:g}, more than {FAR} times the predicted {predicted:g}"
    if verdict["outcome"] == HOLDS:
        for value in verdict["against"]:
            if low is None or low <= value <= high:
                yield f"it counts as holding, but the interval does not exclude {value:g}"


def _ledger(html: Path) -> Iterator[str]:
    """Yield each statement that the page of the ledger has no place for."""
    page = html / "book" / "statements.html"
    if page.is_file():
        for name in statements():
            if name not in _anchors(page):
                yield f"book/statements.html: no place for the statement {name}"


def _images(soup: BeautifulSoup, _file: Path, _html: Path) -> Iterator[str]:
    for image in soup.select("img"):
        alternative = str(image.get("alt", "")).strip()
        if not alternative or alternative.endswith((".png", ".svg", ".jpg")):
            yield f"an image without alternative text: {image.get('src')}"


def _links(soup: BeautifulSoup, file: Path, html: Path) -> Iterator[str]:
    """Yield each address inside the book that leads nowhere."""
    for address in sorted(set(_addresses(soup))):
        url = urlsplit(address)
        if url.scheme or url.netloc:
            continue
        target = (file.parent / unquote(url.path)).resolve() if url.path else file
        if target.is_dir():
            target /= "index.html"
        if not target.is_relative_to(html.resolve()) and url.path:
            yield f"a link out of the book: {address}"
        elif not target.is_file():
            yield f"a broken link: {address}"
        elif (
            url.fragment
            and target.suffix == ".html"
            and unquote(url.fragment) not in _anchors(target)
        ):
            yield f"a link to a place that is not on its page: {address}"


def _addresses(soup: BeautifulSoup) -> Iterator[str]:
    for tag in soup.select("[href], [src]"):
        yield from (str(tag[key]) for key in ("href", "src") if tag.get(key))
    for tag in soup.select("meta[http-equiv]"):
        if str(tag["http-equiv"]).lower() == "refresh":
            yield str(tag["content"]).partition("url=")[2]


def _remote(soup: BeautifulSoup, _file: Path, _html: Path) -> Iterator[str]:
    """Yield what a browser would fetch from elsewhere on opening the page."""
    for tag in soup.select("[src], link[href]"):
        rel = tag.get("rel") or []
        if tag.name == "link" and not {"stylesheet", "preload", "icon", "shortcut"} & set(rel):
            continue
        address = str(tag.get("src") or tag.get("href"))
        if urlsplit(address).netloc:
            yield f"fetches {address}"


def _raw_text(soup: BeautifulSoup, _file: Path, _html: Path) -> Iterator[str]:
    """Yield TeX and MyST that a reader would see as it was typed."""
    for text in soup.find_all(string=True):
        if type(text).__name__ != "NavigableString" or _is_literal(text.parent):
            continue
        for pattern, what in ((RAW_ROLE, "unreplaced MyST"), (RAW_TEX, "raw TeX")):
            if match := pattern.search(text):
                around = text[max(0, match.start() - 20) : match.end() + 20]
                yield f"{what}: {' '.join(around.split())}"


def _is_literal(tag: Tag | None) -> bool:
    return tag is not None and (tag.css.match(LITERAL) or _is_literal(tag.parent))
