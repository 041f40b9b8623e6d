"""The two rows of queues on the landing page: their numbers, the keyboard, and unwanted motion."""

import math
from pathlib import Path

import numpy as np
import pytest

from supermarket import Supermarket, fixed_point

pytestmark = pytest.mark.browser
ASSETS = Path(__file__).parents[2] / "book" / "assets"
PAGE = (
    '<!DOCTYPE html><html><head><meta charset="utf-8"><title>Q</title></head><body>'
    '<div class="living-queues" data-queues="30" data-load="0.9"></div>'
    f"<script>{(ASSETS / 'queues.js').read_text(encoding='utf-8')}</script></body></html>"
)


def uniforms(seed):
    """The generator of queues.js."""
    state = seed
    while True:
        state = (state + 0x6D2B79F5) & 0xFFFFFFFF
        mixed = ((state ^ (state >> 15)) * (1 | state)) & 0xFFFFFFFF
        mixed = (mixed + (((mixed ^ (mixed >> 7)) * (61 | mixed)) & 0xFFFFFFFF)) ^ mixed
        mixed &= 0xFFFFFFFF
        yield (mixed ^ (mixed >> 14)) / 2**32


def rows(n, d, load, seed, events):
    """Both rows after so many events, by the definition."""
    random = uniforms(seed)
    one, several = [0] * n, [0] * n
    for _ in range(events):
        looks = [int(next(random) * n)]
        if next(random) * (1 + load) >= load:
            for row in (one, several):
                row[looks[0]] = max(row[looks[0]] - 1, 0)
            continue
        looks += [int(next(random) * n) for _ in range(d - 1)]
        one[looks[0]] += 1
        several[min(looks, key=lambda queue: several[queue])] += 1
    return one, several


@pytest.fixture
def shown(visit, tmp_path):
    """Return a function that opens the page, which is closed at the end: it would move on."""
    file, opened = tmp_path / "page.html", []
    file.write_text(PAGE, encoding="utf-8")

    def show(**options):
        opened.append(visit(file.as_uri(), **options))
        return opened[-1]

    yield show
    for page in opened:
        page.context.close()


@pytest.mark.parametrize(("d", "load"), [(2, 0.9), (5, 0.7)])
def test_the_very_path_of_the_definition(shown, d, load):
    script = """([d, load]) => {
        const rows = new supermarketQueues.Rows(20, d, load, 7);
        for (let event = 0; event < 5000; event += 1) rows.event();
        return [[...rows.one], [...rows.several], rows.time];
    }"""
    one, several, time = shown().evaluate(script, [d, load])
    assert (one, several) == rows(20, d, load, 7, 5000)
    assert time == pytest.approx(5000 / (20 * (1 + load)))


def test_its_means_are_those_of_the_fixed_point(shown):
    # 2000 queues for 3000 mean service times; standard errors of some 0.002 and 0.006.
    script = """() => {
        const rows = new supermarketQueues.Rows(2000, 2, 0.7, 3).until(200);
        const sums = [0, 0];
        for (let time = 1; time <= 3000; time += 1) {
            rows.until(200 + time);
            for (const [which, row] of [rows.one, rows.several].entries()) {
                sums[which] += row.reduce((sum, jobs) => sum + jobs, 0) / 2000 / 3000;
            }
        }
        return sums;
    }"""
    found = shown().evaluate(script)
    for d, mean, error in ((1, found[0], 0.03), (2, found[1], 0.01)):
        pi = fixed_point(Supermarket(math.inf, d, 0.7), 200)
        assert mean == pytest.approx(np.sum(pi[1:]), abs=error)


def test_it_moves_unless_motion_is_unwanted_and_by_keyboard(shown):
    said = "document.querySelector('canvas').getAttribute('aria-label')"
    moving = shown()
    before = moving.evaluate(said)
    moving.wait_for_function(f"{said} !== {before!r}")
    still = shown(reduced_motion="reduce")
    before = still.evaluate(said)
    still.wait_for_timeout(500)
    assert still.evaluate(said) == before
    still.keyboard.press("Tab")
    assert still.evaluate("document.activeElement.textContent") == "Run"
    still.keyboard.press("Enter")
    still.wait_for_function(f"{said} !== {before!r}")
    still.keyboard.press("Enter")
    still.keyboard.press("Tab")
    still.keyboard.press("ArrowRight")
    assert "3 looks" in still.evaluate(said)
    assert moving.faults == still.faults == []
