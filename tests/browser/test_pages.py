"""Every built page in a real browser without a network: what only a browser sees.

The pages are those in build/html, or in the folder that SUPERMARKET_HTML names: `make book` first.
Where there are none the tests skip, and fail under CI.
"""

import os
from pathlib import Path

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.pages]

HTML = Path(
    os.environ.get("SUPERMARKET_HTML", Path(__file__).resolve().parents[2] / "build" / "html")
)
PAGES = sorted(
    str(file.relative_to(HTML))
    for folder in (HTML / "notebooks", HTML / "book")
    for file in folder.glob("*.html")
)

# Faults of the page as it stands, each with a few words of where; colours as WCAG 2 defines them.
SCRIPT = r"""
() => {
  const faults = [];
  const shows = (e) => e.checkVisibility({ visibilityProperty: true, opacityProperty: true })
    && e.getClientRects().length > 0;
  const where = (e) => `<${e.tagName.toLowerCase()}${e.id ? "#" + e.id : ""} class="${
    e.getAttribute("class") || ""}"> ${(e.textContent || "").trim().slice(0, 40)}`;

  const width = document.scrollingElement.scrollWidth;
  if (width > innerWidth) {
    const wide = [...document.querySelectorAll("main *")].filter(
      (e) => e.getBoundingClientRect().right > innerWidth + 1)[0];
    faults.push(`wider than the screen: ${width} > ${innerWidth}, ${wide ? where(wide) : ""}`);
  }

  for (const image of document.images) {
    if (!(image.getAttribute("alt") || "").trim()) faults.push(`no alternative text: ${image.src}`);
    if (image.complete && !image.naturalWidth) faults.push(`not loaded: ${image.src}`);
  }

  const colour = (text) => {
    const numbers = (text.match(/[\d.]+/g) || []).map(Number);
    const scale = text.startsWith("color(") ? 255 : 1;
    const [r, g, b] = numbers.slice(0, 3).map((x) => x * scale);
    return { r, g, b, a: numbers.length > 3 ? numbers[3] : 1 };
  };
  const over = (top, below) => {
    const mix = (c) => top[c] * top.a + below[c] * (1 - top.a);
    return { r: mix("r"), g: mix("g"), b: mix("b"), a: 1 };
  };
  const luminance = ({ r, g, b }) => {
    const [x, y, z] = [r, g, b].map((c) => {
      c /= 255;
      return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const background = (e) => {
    const layers = [];
    for (; e; e = e.parentElement) {
      layers.push(colour(getComputedStyle(e).backgroundColor));
      if (layers[layers.length - 1].a === 1) break;
    }
    const white = { r: 255, g: 255, b: 255, a: 1 };
    return layers.reverse().reduce((below, top) => over(top, below), white);
  };
  const seen = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !shows(e)) continue;
    if (e.closest("script, style, noscript, [disabled], [aria-hidden=true], svg")) continue;
    if (e.closest("mjx-assistive-mml")) continue;
    const style = getComputedStyle(e);
    const back = background(e);
    const front = over(colour(style.color), back);
    const [high, low] = [luminance(front), luminance(back)].sort((a, b) => b - a);
    const ratio = (high + 0.05) / (low + 0.05);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (large ? 3 : 4.5)) {
      const pair = `${style.color} on rgb(${[back.r, back.g, back.b].map(Math.round)})`;
      const kind = `${e.tagName} ${e.getAttribute("class")} ${pair}`;
      if (!seen.has(kind)) faults.push(`contrast ${ratio.toFixed(2)}: ${pair}, ${where(e)}`);
      seen.add(kind);
    }
  }
  return faults;
}
"""


FIT = Path(__file__).with_name("fit.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module", autouse=True)
def built():
    if not PAGES:
        said = f"No pages in {HTML}: `make book` first."
        (pytest.fail if os.environ.get("CI") else pytest.skip)(said)


def settled(page):
    """Wait until the formulas are typeset."""
    page.wait_for_function(
        "!window.MathJax || !MathJax.startup || !MathJax.startup.promise"
        " || MathJax.startup.promise.then(() => true)"
    )
    page.wait_for_function("document.documentElement.dataset.fitted")
    return page


@pytest.mark.parametrize("name", PAGES or ["none"])
def test_a_page_in_light_and_dark_wide_and_on_a_phone(visit, name):
    page = settled(visit((HTML / name).as_uri()))
    faults = []
    for scheme, width in [("light", 1100), ("light", 390), ("dark", 390), ("dark", 1100)]:
        page.set_viewport_size({"width": width, "height": 800})
        page.evaluate("scheme => { document.documentElement.dataset.theme = scheme; }", scheme)
        faults += [f"{scheme}, {width} px: {fault}" for fault in page.evaluate(SCRIPT)]
    faults += page.faults
    page.close()
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("name", PAGES or ["none"])
def test_formulas_and_tables_fit(visit, name):
    """No formula is cut off, and no table of verdicts or parameters has to be scrolled."""
    page = settled(visit((HTML / name).as_uri(), width=1280))
    faults = [f"1280 px: {fault}" for fault in page.evaluate(FIT)]
    page.set_viewport_size({"width": 390, "height": 800})
    faults += [f"390 px: {fault}" for fault in page.evaluate(FIT)]
    page.close()
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("name", PAGES or ["none"])
def test_the_keyboard_reaches_the_page(visit, name):
    """Tab goes on from element to element, each one named, and the focus is to be seen."""
    page = settled(visit((HTML / name).as_uri()))
    page.keyboard.press("Tab")
    first = page.evaluate("document.activeElement.textContent.trim()")
    assert first == "Skip to main content"
    page.evaluate("document.querySelector('main, [role=main]').tabIndex = -1")
    page.focus("main, [role=main]")
    inside = 0
    for _ in range(12):
        page.keyboard.press("Tab")
        state = page.evaluate(
            """() => {
              const e = document.activeElement, style = getComputedStyle(e);
              const name = e.textContent.trim() || e.getAttribute("aria-label") || e.title
                || (e.labels && e.labels.length) || e.querySelector("img[alt]");
              const marked = style.outlineStyle !== "none" || style.boxShadow !== "none"
                || style.textDecorationLine !== "none";
              return [e.outerHTML.slice(0, 90), Boolean(name), marked, Boolean(e.closest("main"))];
            }"""
        )
        outside = "<body" in state[0]
        if outside:
            break
        assert state[1], f"no name: {state[0]}"
        assert state[2], f"the focus is not to be seen: {state[0]}"
        inside += state[3]
    assert inside
    assert page.faults == []
    page.close()
