"""The explorer in a real browser: its numbers beside the package's, and its fields.

Its functions are compared through the page that readers open: the markup of book/explorer.md with
the same script and style, but without the rest of the book, which need not be built.
"""

import math
import re
from itertools import product
from pathlib import Path

import pytest

from supermarket import (
    Lomax,
    Supermarket,
    cavity,
    fixed_point,
    k_lambda_d,
    log_fixed_point,
    max_queue_hypothesis,
    mean_queue,
    mean_sojourn,
)
from supermarket.limits.fifo.depth import mean_sojourn_fifo
from supermarket.limits.fifo.tails import critical_beta, power_law_exponent, q_exponent
from supermarket.limits.mean_field.fixed_point import max_queue_law_one_choice
from supermarket.limits.saturation.theorem import hypotheses

pytestmark = pytest.mark.browser

ROOT = Path(__file__).resolve().parents[2]

LOADS = [0.001, 0.3, 0.5, 0.7, 0.9, 0.99, 1 - 2**-20, 0.999999, 1 - 1e-9, 1 - 1e-12]
CHOICES = [1, 2, 3, 5, 10, 50, 1000, 10**9]
SIZES = [1, 10, 1000, 10**6, 10**9, 10**15]


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    source = (ROOT / "book/explorer.md").read_text()
    markup = re.search(r"```\{raw\} html\n(.*?)\n```", source, re.DOTALL)[1]
    assets = ROOT / "book/assets"
    file = tmp_path_factory.mktemp("explorer") / "page.html"
    file.write_text(
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Explorer</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="icon" href="data:,">'
        f'<link rel="stylesheet" href="{(assets / "explorer.css").as_uri()}">'
        f'<script defer src="{(assets / "explorer.js").as_uri()}"></script>{markup}'
    )
    return file.as_uri()


@pytest.fixture(scope="module")
def page(visit, address):
    page = visit(address)
    yield page
    assert page.faults == []


@pytest.fixture
def fresh(visit, address):
    def opened(fragment="", **options):
        page = visit(f"{address}#{fragment}", **options)
        opened.pages.append(page)
        return page

    opened.pages = []
    yield opened
    assert [page.faults for page in opened.pages] == [[] for _ in opened.pages]


def ask(page, function, *points):
    """Return what a function of the script says at each of the points."""
    return page.evaluate(f"points => points.map(p => ({function})(...p))", list(points))


def test_the_fixed_point_to_twelve_digits(page):
    points = list(product(LOADS, CHOICES, range(1, 13)))
    found = ask(page, "SupermarketTheory.logFixedPoint", *points)
    expected = [log_fixed_point(Supermarket(math.inf, d, lam), k)[k] for lam, d, k in points]
    assert found == pytest.approx(expected, rel=1e-12)


def test_k_lambda_d_exactly(page):
    points = list(product([*LOADS, *(1 - 10.0**-e for e in range(1, 13))], CHOICES[1:]))
    assert ask(page, "SupermarketTheory.kLambdaD", *points) == [
        k_lambda_d(Supermarket(math.inf, d, lam)) for lam, d in points
    ]
    # where a rounded logarithm gives one more
    assert ask(page, "SupermarketTheory.kLambdaD", [0.9, 10], [1 - 2**-20, 2]) == [1, 20]


def test_the_longest_queue_exactly(page):
    points = list(product(SIZES, LOADS, CHOICES))
    found = ask(page, "SupermarketTheory.maxQueueHypothesis", *points)
    assert found == [max_queue_hypothesis(Supermarket(n, d, lam)) for n, lam, d in points]


def test_the_law_of_the_maximum_with_one_choice(page):
    points = list(product(SIZES, [0.3, 0.7, 0.9, 0.99], [0.05, 0.5, 0.95]))
    found = ask(page, "SupermarketTheory.maxQuantileOneChoice", *points)
    for (n, lam, p), m in zip(points, found, strict=True):
        at_most = max_queue_law_one_choice(Supermarket(n, 1, lam)).cumsum()
        assert at_most[m] >= p * (1 - 1e-9)
        assert m == 0 or at_most[m - 1] < p * (1 + 1e-9)


def test_the_mean_queue(page):
    points = list(product(LOADS, CHOICES))
    found = ask(page, "SupermarketTheory.meanQueueExponential", *points)
    expected = [mean_queue(Supermarket(math.inf, d, lam)) for lam, d in points]
    assert found == pytest.approx(expected, rel=1e-12)


def test_the_hypotheses_of_theorem_1_2(page):
    points = [*product([10**6, 10**15], LOADS, CHOICES[1:]), (10**15, 1 - 6e-11, 8_000_000)]
    found = ask(page, "SupermarketTheory.failedHypotheses", *points)
    for (n, lam, d), names in zip(points, found, strict=True):
        holds = {}
        for hypothesis in hypotheses(Supermarket(n, d, lam), 0.1):
            holds[hypothesis.name[0]] = holds.get(hypothesis.name[0], True) and hypothesis.holds
        assert names == [name for name, true in holds.items() if not true]


@pytest.mark.parametrize("d", [1, 2, 3, 11, 100])
def test_lomax_tails_to_eight_digits_of_the_logarithm(page, d):
    betas, loads = [1.1, 1.3, 1.5, 1.9, 2.0, 2.5, 3.0, 20.0], [0.001, 0.7, 0.95, 0.9999, 1 - 1e-6]
    points = [(beta, d, lam) for beta in betas for lam in loads]
    levels = 60
    found = ask(
        page,
        f"(b, d, l) => {{ const c = new SupermarketTheory.LomaxCavity(b, d, l).to({levels}); "
        "return [c.tail, c.ended]; }",
        *points,
    )
    for (beta, _, lam), (tail, ended) in zip(points, found, strict=True):
        assert ended == (len(tail) <= levels)
        expected = cavity(
            Supermarket(math.inf, d, lam, service=Lomax(beta)), len(tail) - 1
        ).log_tail
        assert [math.log(x) for x in tail] == pytest.approx(expected, rel=1e-8, abs=1e-9)
        if ended:  # what is left out cannot be told from 0: below 1e-26
            beyond = cavity(Supermarket(math.inf, d, lam, service=Lomax(beta)), len(tail)).log_tail[
                -1
            ]
            assert beyond < math.log(1e-26)


def test_deep_power_laws(page):
    points = [(1.3, 2, 0.7), (1.9, 2, 0.9), (1.2, 5, 0.99), (2.5, 1, 0.9)]
    found = ask(
        page, "(b, d, l) => new SupermarketTheory.LomaxCavity(b, d, l).to(1024).tail", *points
    )
    for (beta, d, lam), tail in zip(points, found, strict=True):
        expected = cavity(Supermarket(math.inf, d, lam, service=Lomax(beta)), 1024).log_tail
        assert [math.log(x) for x in tail] == pytest.approx(expected, rel=1e-8, abs=1e-9)


def test_mean_sojourn_times(page):
    points = list(product([1.3, 1.5, 1.7, 1.95, 2.5, 4.0], [1, 2, 3, 10], [0.3, 0.9, 0.99]))
    found = ask(
        page,
        "(b, d, l) => { const m = SupermarketTheory.system(l, d, b).meanSojourn(); "
        "return m === Infinity ? 'inf' : m; }",
        *points,
    )
    for (beta, d, lam), mean in zip(points, found, strict=True):
        expected = mean_sojourn_fifo(Supermarket(math.inf, d, lam, service=Lomax(beta)))
        if mean is None:
            assert math.isnan(expected)
        else:
            # The package extrapolates from where linear arithmetic ends, above level 12.
            assert float(mean) == pytest.approx(expected, rel=1e-5)


def test_the_kinds_of_tail(page):
    points = list(product([1.1, 1.25, 1.5, 1.9, 2.0, 2.5, 3.0, 20.0], range(1, 12)))
    kinds = ask(page, "SupermarketTheory.regime", *points)
    power = ask(page, "SupermarketTheory.powerLawExponent", *points)
    for (beta, d), kind, gamma in zip(points, kinds, power, strict=True):
        edge = critical_beta(d) if d > 1 else math.inf
        if math.isclose(beta, edge, rel_tol=1e-12):
            assert kind == "exponential"
        elif beta > edge:
            assert kind == "doubly exponential"
            (q,) = ask(page, "SupermarketTheory.qExponent", (beta, d))
            assert q == pytest.approx(q_exponent(beta, d), rel=1e-12)
        else:
            assert kind == "power law"
            assert gamma == pytest.approx(power_law_exponent(beta, d) if d > 1 else beta - 1)


def test_how_many_choices_are_enough(page):
    theory = "SupermarketTheory"
    points = [(0.9, 8, 1e-6), (0.99, 3, 1e-12), (1 - 1e-9, 2, 0.01), (0.5, 1, 0.4), (0.5, 1, 0.6)]
    share = f"(l, b, s) => {theory}.choicesForShare(l, Infinity, b, s, 1e9)"
    for (lam, jobs, target), d in zip(points, ask(page, share, *points), strict=True):
        if d is None:
            assert log_fixed_point(Supermarket(math.inf, 10**9, lam), jobs)[jobs] > math.log(target)
            continue
        assert log_fixed_point(Supermarket(math.inf, d, lam), jobs)[jobs] <= math.log(target)
        assert d == 1 or log_fixed_point(Supermarket(math.inf, d - 1, lam), jobs)[jobs] > math.log(
            target
        )
    points = [(0.9, 2.0), (0.999, 1.2), (0.5, 2.0), (0.9, 1.001)]
    mean = f"(l, m) => {theory}.choicesForMean(l, Infinity, m, 1e9)"
    for (lam, target), d in zip(points, ask(page, mean, *points), strict=True):
        assert mean_sojourn(Supermarket(math.inf, d, lam)) <= target
        assert d == 1 or mean_sojourn(Supermarket(math.inf, d - 1, lam)) > target
    (d,) = ask(
        page, f"(l, b, j, s) => {theory}.choicesForShare(l, b, j, s, 30)", (0.8, 1.7, 8, 1e-3)
    )
    shares = [
        cavity(Supermarket(math.inf, choices, 0.8, service=Lomax(1.7)), 8).tail[8]
        for choices in range(1, d + 1)
    ]
    assert [share <= 1e-3 for share in shares] == [False] * (d - 1) + [True]
    (d,) = ask(page, f"(l, b, m) => {theory}.choicesForMean(l, b, m, 30)", (0.8, 1.7, 1.5))
    means = [
        mean_sojourn_fifo(Supermarket(math.inf, choices, 0.8, service=Lomax(1.7)))
        for choices in range(1, d + 1)
    ]
    assert [mean <= 1.5 for mean in means] == [False] * (d - 1) + [True]


def shown(page, name):
    return page.locator(f"#explorer-{name}").inner_text()


def shares_shown(text):
    """Return the numbers after each "=" or of a cell, such as 0.81 or 1 - 2e-6."""
    terms = re.findall(r"(?:= |^)(1 - )?([\d.e-]*\d)", text)
    return [1 - float(x) if complement else float(x) for complement, x in terms]


def type_in(page, name, text):
    page.fill(f"#explorer-{name}", text)
    page.wait_for_timeout(150)  # the page waits for the hand to rest


def test_what_is_shown_is_what_python_says(fresh):
    for n, d, lam in [(10**6, 2, 0.9), (1000, 1, 0.5), (10**12, 10, 0.999999)]:
        page = fresh(f"n={n}&d={d}&lam={lam}")
        profile = fixed_point(Supermarket(math.inf, d, lam), 3)
        found = shares_shown(shown(page, "profile"))
        assert found == pytest.approx(profile[1:].tolist(), rel=6e-4)
        assert [1 - x for x in found] == pytest.approx((1 - profile[1:]).tolist(), rel=6e-4)
        assert int(shown(page, "longest").split(":")[0]) == max_queue_hypothesis(
            Supermarket(n, d, lam)
        )
        mean = float(shown(page, "mean-result").split()[0])
        assert mean == pytest.approx(mean_sojourn(Supermarket(math.inf, d, lam)), rel=6e-4)
        if d > 1:
            assert int(shown(page, "k").split(";")[0]) == k_lambda_d(Supermarket(math.inf, d, lam))
        page.click("#explorer summary")
        rows = page.locator("#explorer-rows tr").all_inner_texts()
        for row in rows[:4]:
            k, share, count = (shares_shown(cell)[0] for cell in row.split("\t"))
            assert share == pytest.approx(
                fixed_point(Supermarket(math.inf, d, lam), int(k))[int(k)], rel=6e-4
            )
            assert count == pytest.approx(n * share, rel=2e-3)


def test_what_is_shown_for_lomax(fresh):
    page = fresh("service=lomax&beta=2.5&d=3&lam=0.8&n=1e9")
    equilibrium = cavity(Supermarket(math.inf, 3, 0.8, service=Lomax(2.5)), 12)
    found = shares_shown(shown(page, "profile"))
    assert found == pytest.approx(equilibrium.tail[1:4].tolist(), rel=6e-4)
    longest = max(k for k in range(13) if 1e9 * equilibrium.tail[k] >= 1)
    assert shown(page, "longest").startswith(f"{longest}:")
    assert f"q = {q_exponent(2.5, 3):.4g}" in shown(page, "regime")
    type_in(page, "beta", "1.3")
    assert f"gamma = {power_law_exponent(1.3, 3):.4g}" in shown(page, "regime")
    type_in(page, "beta", "1.5")
    assert "Exponential: beta is equal to d/(d-1) = 1.5" in shown(page, "regime")
    type_in(page, "beta", "1.15")
    type_in(page, "d", "2")
    assert shown(page, "mean-result") == "Infinite."


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("n", "", "n is empty: give a number, such as 1000 or 1e3."),
        ("n", "a lot", "n = a lot is not a number: write it as 1000 or 1e3."),
        ("n", "2.5", "n = 2.5 is not a whole number: choose 3."),
        ("n", "1e16", "n = 1e16 is out of range: choose 1 <= n <= 1000000000000000."),
        ("d", "0", "d = 0 is out of range: choose 1 <= d <= 1000000000."),
        ("lam", "1", "lam = 1 is out of range: choose 0.001 <= lam <= 0.999999999999."),
        ("lam", "0,9", "lam = 0,9 is not a number: write it as 0.9 or 1e-6."),
        ("lam", "NaN", "lam = NaN is not a number: write it as 0.9 or 1e-6."),
        ("lam", "1e999", "lam = 1e999 is out of range: choose 0.001 <= lam <= 0.999999999999."),
        ("spare", "0", "1 - lam = 0 is out of range: choose 1e-12 <= 1 - lam <= 0.999."),
    ],
)
def test_a_bad_value_gets_one_sentence_and_no_results(fresh, name, text, sentence):
    page = fresh()
    type_in(page, name, text)
    assert shown(page, f"{name}-fault") == sentence
    assert page.locator(".explorer-fault:not(:empty)").count() == 1
    assert page.get_attribute(f"#explorer-{name}", "aria-invalid") == "true"
    assert not page.is_visible("#explorer-results")
    assert "NaN" not in page.locator("#explorer").inner_text().replace(sentence, "")
    assert shown(page, "status") == "No results: a field needs mending."
    type_in(page, name, {"n": "1000", "d": "2"}.get(name, "0.5"))
    assert page.locator(".explorer-fault:not(:empty)").count() == 0
    assert page.is_visible("#explorer-results")


def test_a_bad_target_blanks_its_own_result_alone(fresh):
    page = fresh()
    type_in(page, "share", "2")
    assert "share = 2 is out of range" in shown(page, "share-fault")
    assert shown(page, "choices-share") == ""
    assert shown(page, "choices-mean") == "d = 4 gives a mean time of at most 2, d = 3 does not."


def test_a_law_with_a_narrower_range_says_so(fresh):
    page = fresh("d=1000")
    page.select_option("#explorer-service", "lomax")
    page.wait_for_timeout(150)
    assert shown(page, "d-fault") == "d = 1000 is out of range: choose 1 <= d <= 100."


def test_never_nan_nor_undefined(fresh):
    """Every corner of the ranges."""
    page = fresh()
    for service, d, lam, beta, n in product(
        ["exponential", "lomax"], ["1", "100"], ["0.001", "0.999999"], ["1.1", "20"], ["1", "1e15"]
    ):
        page.evaluate(
            "f => { location.hash = f; }", f"service={service}&d={d}&lam={lam}&beta={beta}&n={n}"
        )
        page.wait_for_timeout(50)
        text = page.locator("#explorer-results").text_content()
        drawn = page.locator("#explorer-figure").inner_html()
        assert page.is_visible("#explorer-results")
        assert not re.search(r"NaN|undefined|null|Infinity", text + drawn), (service, d, lam, beta)


def test_keyboard_alone(fresh):
    page = fresh()
    reached = []
    for _ in range(16):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.tagName"))
    names = ["n", "n-slider", "d", "d-slider", "lam", "lam-slider", "spare", "service", "jobs"]
    assert reached[:11] == [f"explorer-{name}" for name in [*names, "share", "mean"]]
    assert "SUMMARY" in reached
    assert "explorer-command" in reached
    page.focus("#explorer-d-slider")
    page.keyboard.press("ArrowRight")
    page.wait_for_timeout(150)
    assert page.input_value("#explorer-d") == "3"
    assert float(shown(page, "mean-result").split()[0]) == pytest.approx(
        mean_sojourn(Supermarket(math.inf, 3, 0.9)), rel=6e-4
    )
    assert page.get_attribute("#explorer-d-slider", "aria-valuetext") == "3"
    page.focus("#explorer-spare")
    page.keyboard.press("Control+A")
    page.keyboard.type("1e-6")
    page.wait_for_timeout(150)
    assert page.input_value("#explorer-lam") == "0.999999"


def test_the_address_holds_the_state(fresh):
    page = fresh()
    type_in(page, "n", "1e9")
    type_in(page, "d", "5")
    page.select_option("#explorer-service", "lomax")
    type_in(page, "beta", "1.9")
    again = fresh(page.url.partition("#")[2])
    assert [again.input_value(f"#explorer-{name}") for name in ("n", "d", "service", "beta")] == [
        "1e9", "5", "lomax", "1.9",
    ]  # fmt: skip
    assert shown(again, "longest") == shown(page, "longest")
    # Whatever stands there, the page says what is wrong and does not run it.
    page = fresh("n=<img src=x onerror=alert(1)>&service=other")
    assert "is not a number" in shown(page, "n-fault")
    assert page.locator("#explorer img").count() == 0
    assert page.input_value("#explorer-service") == "exponential"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone(fresh, scheme):
    page = fresh("n=1e15&d=1&lam=0.999", width=390, color_scheme=scheme, reduced_motion="reduce")
    assert page.evaluate("document.scrollingElement.scrollWidth") <= 390
    type_in(page, "n", "9" * 60)
    assert page.evaluate("document.scrollingElement.scrollWidth") <= 390


def test_every_field_has_a_label(page):
    unnamed = page.evaluate(
        "[...document.querySelectorAll('#explorer input, #explorer select')].filter("
        "field => !field.labels.length && !field.getAttribute('aria-label')).map(f => f.id)"
    )
    assert unnamed == []
    assert page.get_attribute("#explorer-status", "role") == "status"
    assert len(page.get_attribute("#explorer-figure svg", "aria-label")) > 60
