"""Print the book into one file: `python -m tools.pdf`, or `make pdf`.

The pages are those of `build/html`, built first where they are not up to date. They are put one
after the other into a single page, which headless Chromium prints once every formula is set.
"""

import argparse
import logging
import os
import re
import shutil
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any
from unicodedata import normalize
from urllib.parse import unquote, urlsplit

import yaml
from bs4 import BeautifulSoup, Tag

from supermarket.experiment.files import OutsideError, alone
from tools import BuildError, book, pages

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
STYLE = Path("book", "assets", "print.css")
# A4 less the margins below, in CSS pixels: what the page is laid out for before it is printed.
WIDTH = 673
MARGIN = {"top": "18mm", "bottom": "20mm", "left": "16mm", "right": "16mm"}
NOT_PRINTED = "details.hide, a.headerlink, button, script, style, .toctree-wrapper, .no-print"
# The styles of the page do not reach the footer: without a size of its own nothing shows.
FOOTER = (
    '<div style="font: 9px sans-serif; width: 100%; text-align: center;">'
    '<span class="pageNumber"></span></div>'
)
# What would stick out of the paper becomes as small as it takes.
FIT = """
for (const wide of document.querySelectorAll("table, mjx-container[display=true], pre, svg")) {
  const room = wide.parentElement.closest("article, li, td, dd, blockquote, .admonition");
  const inner = wide.matches("mjx-container") ? wide.querySelector("mjx-math") : wide;
  const excess = Math.max(inner.scrollWidth, inner.getBoundingClientRect().width)
    / (room.clientWidth || 1);
  if (excess > 1) wide.style.zoom = 0.98 / excess;
}
"""
# Faults that only a browser sees.
FAULTS = """
() => [
  ...[...document.querySelectorAll("mjx-merror")].map(x => "a formula: " + x.textContent),
  ...[...document.querySelectorAll(".math")].filter(x => !x.querySelector("mjx-container"))
    .map(x => "a formula that is not set: " + x.textContent),
  ...[...document.images].filter(x => !x.naturalWidth).map(x => "an image: " + x.src),
]
"""
HEADINGS = """
() => [...document.querySelectorAll("h1, h2, h3, h4, h5, h6")].map(x => x.innerText.trim())
"""
FILL = """
numbers => document.querySelectorAll(".contents-of-book p").forEach((line, i) => {
  const place = line.querySelector(".page");
  if (place) place.textContent = numbers[i];
})
"""


def find_browser() -> str:
    """Return the path of Chromium or of a browser like it.

    Raises
    ------
    BuildError
        If there is none.
    """
    given = os.environ.get("SUPERMARKET_CHROMIUM")
    for name in (given,) if given else BROWSERS:
        if path := shutil.which(name):
            return path
    missing = f"SUPERMARKET_CHROMIUM={given} is not a program" if given else "Chromium is missing"
    raise BuildError(
        f"{missing}: install it (on Debian, apt-get install chromium), or name a browser that "
        "prints as it does in SUPERMARKET_CHROMIUM."
    )


def make_pdf(root: Path, profile: str, jobs: int) -> Path:
    """Bring the book up to date, print it to `build/supermarket.pdf`, and return that file.

    Raises
    ------
    BuildError
        If there is no browser, the book has a fault, or the printed one has.
    OutsideError
        If it is being built or printed already.
    """
    browser = find_browser()
    book.build(root, profile, jobs)
    with alone(root / "build" / "pdf.lock", f"Another PDF is made in {root}: wait for it."):
        return _make_pdf(root, browser)


def _make_pdf(root: Path, browser: str) -> Path:
    folder = root / "build" / "pdf"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    single, aside = folder / "book.html", folder / "book.pdf"
    titles = join(root, root / "build" / "html", single)
    logging.getLogger("pypdf").setLevel(logging.ERROR)  # it warns of how Chromium numbers objects
    faults = print_page(browser, single, aside, titles) or check_pdf(aside, titles)
    if faults:
        raise BuildError("No PDF, because of these faults:\n" + "\n".join(faults))
    return aside.replace(root / "build" / "supermarket.pdf")


def join(root: Path, html: Path, target: Path) -> list[str]:
    """Write all pages of the book as one, and return its headings: parts and pages, in order."""
    toc = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    names = [page.relative_to(root).with_suffix("").as_posix() for page in pages.listed(root)]
    captions = {
        next(iter(part["chapters"]))["file"]: part["caption"] for part in toc.get("parts", [])
    }
    body, contents, titles = [], [], []
    for name in names:
        soup = BeautifulSoup((html / f"{name}.html").read_text(encoding="utf-8"), "html.parser")
        article = _article(soup, name, set(names), html)
        title = article.find("h1").get_text().strip()
        below = name != names[0]  # the first page stands beside the parts
        if caption := captions.get(name):
            anchor = f"part-{len(titles)}"
            body.append(f'<h1 class="part" id="{anchor}">{escape(caption)}</h1>')
            contents.append(f'<p class="part"><a href="#{anchor}">{escape(caption)}</a></p>')
            titles.append(caption)
        if below:
            for heading in article.find_all(re.compile("^h[1-5]$")):
                heading.name = f"h{int(heading.name[1]) + 1}"
        contents.append(f'<p><a href="#{name}">{escape(title)}</a> <span class="page"></span></p>')
        titles.append(title)
        body.append(str(article))
    first = BeautifulSoup((html / f"{names[0]}.html").read_text(encoding="utf-8"), "html.parser")
    target.write_text(
        '<!doctype html><html lang="en" data-theme="light"><head><meta charset="utf-8">'
        f"<title>{escape(titles[0])}</title>"
        + "".join(_head(first, (html / names[0]).parent))
        + f'<link rel="stylesheet" href="{(root / STYLE).resolve().as_uri()}"></head><body>'
        + f'<div class="cover">{escape(titles[0])}</div>'
        + '<nav class="contents-of-book"><div class="title">Contents</div>'
        + "".join(contents)
        + "</nav>"
        + "".join(body)
        + "</body></html>",
        encoding="utf-8",
    )
    return titles


def _head(soup: BeautifulSoup, here: Path) -> Iterator[str]:
    """Yield the styles and MathJax of a page, and none of its other scripts."""
    for tag in soup.select("link[rel=stylesheet], script"):
        address = str(tag.get("href") or tag.get("src") or "")
        if tag.name == "script" and "mathjax" not in address + tag.get_text().lower():
            continue
        if address:
            uri = (here / unquote(urlsplit(address).path)).resolve().as_uri()
            tag["href" if tag.name == "link" else "src"] = uri
        yield str(tag)


def _article(soup: BeautifulSoup, name: str, names: set[str], html: Path) -> Tag:
    """Return the text of a page: places and links fit for one file, no folded code, no buttons."""
    article = soup.select_one("article.bd-article")
    file = html / f"{name}.html"
    for tag in article.select(NOT_PRINTED):
        tag.decompose()
    for tag in article.select("details"):
        tag["open"] = ""
    for tag in article.select("[id]"):
        tag["id"] = f"{name}/{tag['id']}"
    article["id"] = name
    for tag in article.select("[src]"):
        tag["src"] = (file.parent / unquote(str(tag["src"]))).resolve().as_uri()
        tag["loading"] = "eager"
    for tag in article.select("a[href]"):
        url = urlsplit(str(tag["href"]))
        if url.scheme or url.netloc:
            continue
        aim = (file.parent / unquote(url.path)).resolve() if url.path else file.resolve()
        page = aim.relative_to(html.resolve()).with_suffix("").as_posix()
        if page in names:
            tag["href"] = f"#{page}/{url.fragment}" if url.fragment else f"#{page}"
        elif tag.find("img"):
            del tag["href"]  # a figure's link to itself
        else:
            tag.unwrap()  # a file to download, which paper cannot give
    return article


def print_page(browser: str, page: Path, pdf: Path, titles: list[str]) -> list[str]:
    """Print a page, its table of contents filled with page numbers, and return its faults."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--disable-gpu"])
        sheet = chromium.new_page(viewport={"width": WIDTH, "height": 1000})
        faults: list[str] = []
        sheet.on("requestfailed", lambda request: faults.append(f"not found: {request.url}"))
        sheet.on("pageerror", lambda error: faults.append(f"a script: {error}"))
        sheet.emulate_media(media="print", color_scheme="light")
        sheet.set_default_timeout(300_000)
        sheet.goto(page.resolve().as_uri())
        sheet.evaluate("async () => { await MathJax.startup.promise; await document.fonts.ready }")
        faults += sheet.evaluate(FAULTS)
        sheet.evaluate(FIT)
        options = {
            "path": pdf,
            "format": "A4",
            "margin": MARGIN,
            "print_background": True,
            "outline": True,
            "tagged": True,
            "display_header_footer": True,
            "header_template": "<span></span>",
            "footer_template": FOOTER,
        }
        headings = sheet.evaluate(HEADINGS)
        sheet.pdf(**options)
        _name_outline(pdf, headings)
        sheet.evaluate(FILL, [number for _, number in _places(pdf, titles)])
        sheet.pdf(**options)
        _name_outline(pdf, headings)
        chromium.close()
    return faults


def _name_outline(pdf: Path, headings: list[str]) -> None:
    """Give the entries of the outline the texts of the headings.

    Chromium writes a heading at the top of a page twice into one entry.
    """
    from pypdf import PdfWriter
    from pypdf.generic import NameObject, TextStringObject

    def entries(parent: Any) -> Iterator[Any]:
        entry = parent.get("/First")
        while entry is not None:
            entry = entry.get_object()
            yield entry
            yield from entries(entry)
            entry = entry.get("/Next")

    writer = PdfWriter(clone_from=pdf)
    for entry, heading in zip(entries(writer.root_object["/Outlines"]), headings, strict=True):
        entry[NameObject("/Title")] = TextStringObject(heading)
    writer.write(pdf)


def _places(pdf: Path, titles: list[str]) -> list[tuple[str, int | None]]:
    """Return each title with its page number, from the outline; None where it is not there."""
    from pypdf import PdfReader

    reader = PdfReader(pdf)

    def flat(entries: list[Any]) -> Iterator[tuple[str, int]]:
        for entry in entries:
            if isinstance(entry, list):
                yield from flat(entry)
            else:
                yield _plain(entry.title), reader.get_destination_page_number(entry) + 1

    entries, places = flat(reader.outline), []
    for title in titles:
        found = next((number for text, number in entries if text == _plain(title)), None)
        places.append((title, found))
    return places


def check_pdf(pdf: Path, titles: list[str]) -> list[str]:
    """Return the faults of a printed book, one line each: a page or an outline entry missing."""
    from pypdf import PdfReader

    texts = [_plain(page.extract_text()) for page in PdfReader(pdf).pages]
    faults = []
    for title, number in _places(pdf, titles):
        if number is None:
            faults.append(f"not in the outline: {title}")
        elif _plain(title) not in texts[number - 1]:
            faults.append(f"not on its page {number}: {title}")
    return faults


def _plain(text: str) -> str:
    """Return the letters and digits alone: what breaking lines and ligatures leave as they are."""
    return "".join(re.findall(r"\w+", normalize("NFKC", text)))


def main() -> int:
    """Read the command line, print the book, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.pdf", description=__doc__)
    parser.add_argument("--profile", default="book", help="parameters, from notebooks/profiles.yml")
    parser.add_argument("--jobs", type=int, default=2, help="notebooks to execute at a time")
    parser.add_argument("--root", type=Path, default=book.ROOT, help="the project")
    given = parser.parse_args()
    if given.jobs < 1:
        parser.error(f"--jobs {given.jobs}: at least 1 is needed")
    try:
        pdf = make_pdf(given.root.resolve(), given.profile, given.jobs)
    except (BuildError, OutsideError) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"The book, profile {given.profile}, in one file: {pdf}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
