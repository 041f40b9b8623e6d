"""The printed book: a tiny one, built by hand, through the same browser."""

import base64
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tools import BuildError, pages, pdf

ROOT = Path(__file__).resolve().parents[1]
# One pixel.
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
PAGE = """\
<html><head><link rel="stylesheet" href="_static/book.css">
<script>window.MathJax = {{}}</script><script src="_static/mathjax/tex-chtml-full.js"></script>
<script src="_static/missing.js"></script></head><body><nav>The sidebar</nav>
<article class="bd-article"><section id="top"><h1>{title}<a class="headerlink">#</a></h1>{text}
</section></article></body></html>
"""
CODE = """
<details class="admonition hide"><summary>Show</summary><pre>secret = 1</pre></details>
<p>The share is <span class="math">\\(\\frac{\\lambda}{d}\\)</span>, see
<a href="second.html#place">there</a> and <a href="second.html">that page</a>.</p>
<p><a href="data.csv">the data</a></p><img src="_images/one.png" alt="one"><button>Copy</button>
"""
WIDE = "<table><tr>" + "<td>abcdefghijklmnopqrstuvwxyz</td>" * 9 + "<td>LAST</td></tr></table>"


@pytest.fixture
def project(tmp_path):
    html = tmp_path / "build" / "html"
    (html / "_images").mkdir(parents=True)
    (html / "_images" / "one.png").write_bytes(PNG)
    pages._copy_mathjax(html / "_static" / "mathjax")
    (html / "_static" / "book.css").write_text("body { color: black; }")
    (tmp_path / "_toc.yml").write_text(
        "format: jb-book\nroot: first\nparts:\n- caption: Fine things\n  chapters:\n"
        "  - file: second\n"
    )
    style = tmp_path / pdf.STYLE
    style.parent.mkdir(parents=True)
    style.write_bytes((ROOT / pdf.STYLE).read_bytes())
    for name in ("first", "second"):
        (tmp_path / f"{name}.md").write_text("")
    (html / "first.html").write_text(PAGE.format(title="A first page", text=CODE))
    (html / "second.html").write_text(
        PAGE.format(title="Office & files", text=f'<p id="place">Here.</p><h2>More</h2>{WIDE}')
    )
    return tmp_path


@pytest.fixture
def browser():
    try:
        return pdf.find_browser()
    except BuildError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))


def printed(project, browser):
    """Print the pages of a project; return the faults, the file and its titles."""
    folder = project / "build" / "pdf"
    folder.mkdir(exist_ok=True)
    titles = pdf.join(project, project / "build" / "html", folder / "book.html")
    # The browser of other tests may be open in this process, and a thread has one event loop.
    with ThreadPoolExecutor(1) as thread:
        printing = thread.submit(
            pdf.print_page, browser, folder / "book.html", folder / "book.pdf", titles
        )
        faults = printing.result()
    return faults, folder / "book.pdf", titles


@pytest.mark.book
def test_the_book_in_one_file(project, browser):
    from pypdf import PdfReader

    faults, file, titles = printed(project, browser)
    assert faults == []
    assert titles == ["A first page", "Fine things", "Office & files"]
    assert pdf.check_pdf(file, titles) == []
    reader = PdfReader(file)
    # Cover, contents, a page, the title of the part, a page.
    assert len(reader.pages) == 5
    assert [entry.title for entry in reader.outline if not isinstance(entry, list)] == titles[:2]
    assert reader.outline[2][0].title == "Office & files"
    texts = [page.extract_text() for page in reader.pages]
    assert all(number in texts[1] for number in "35")
    assert "secret" not in texts[2]
    assert "Copy" not in texts[2]
    assert "frac" not in texts[2]
    assert len(reader.pages[2].images) == 1
    assert len(reader.pages[2]["/Annots"]) == 2, "both links into the book, not the one out of it"
    assert "LAST" in texts[4]
    x = [at[4] for text, at in _placed(reader.pages[4]) if "LAST" in text]
    assert 0 < x[0] < float(reader.pages[4].mediabox.width)


def _placed(page):
    found = []
    page.extract_text(visitor_text=lambda text, cm, tm, *_: found.append((text, _times(tm, cm))))
    return found


def _times(a, b):
    return [0, 0, 0, 0, a[4] * b[0] + a[5] * b[2] + b[4], 0]


@pytest.mark.book
def test_a_fault_that_only_a_browser_sees(project, browser):
    first = project / "build" / "html" / "first.html"
    good = first.read_text()
    first.write_text(good.replace("one.png", "gone.png"))
    faults, _, _ = printed(project, browser)
    assert any("gone.png" in fault for fault in faults)
    first.write_text(good.replace("\\frac{", "\\frac"))
    faults, _, _ = printed(project, browser)
    assert any("a formula: " in fault for fault in faults)
    first.write_text(good.replace('<p id="place">', "").replace("\\(", "").replace("\\)", ""))
    faults, _, _ = printed(project, browser)
    assert any("a formula that is not set" in fault for fault in faults)


@pytest.mark.book
def test_the_outline_has_the_texts_of_the_headings(project, browser):
    _, file, _ = printed(project, browser)
    pdf._name_outline(file, ["One", "Two α", "Three", "Four"])
    assert [number for _, number in pdf._places(file, ["One", "Two α", "Three", "Four"])] == [
        3, 4, 5, 5,
    ]  # fmt: skip
    with pytest.raises(ValueError, match="shorter"):
        pdf._name_outline(file, ["One"])


@pytest.mark.book
def test_a_missing_page_is_seen(project, browser):
    _, file, titles = printed(project, browser)
    assert pdf.check_pdf(file, [*titles, "Nowhere"]) == ["not in the outline: Nowhere"]


def test_a_missing_browser_is_one_sentence(monkeypatch):
    monkeypatch.delenv("SUPERMARKET_CHROMIUM", raising=False)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(BuildError, match="Chromium is missing: install it"):
        pdf.find_browser()
    monkeypatch.setenv("SUPERMARKET_CHROMIUM", "/nowhere/chrome")
    with pytest.raises(BuildError, match="SUPERMARKET_CHROMIUM=/nowhere/chrome is not a program"):
        pdf.find_browser()
