"""Numbers as they are printed: what the interval supports, and on which side of it they lie."""

import math
import re

import numpy as np
import pytest

from supermarket.experiment.digits import Digits, in_digits, numeral, with_powers

UNRAISED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹−", "-0123456789-")


def digits(predicted, measured, low, high):
    return Digits({"predicted": predicted, "measured": measured, "low": low, "high": high})


def number(text):
    """Return what a reader takes a printed number for."""
    mantissa, _, power = text.replace(",", "").partition(" × 10")
    if not power and re.fullmatch("−?10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+", mantissa):
        sign, power = mantissa.startswith("−"), mantissa.removeprefix("−")[2:]
        return (-1.0 if sign else 1.0) * 10.0 ** int(power.translate(UNRAISED))
    return float(mantissa.translate(UNRAISED)) * 10.0 ** int(power.translate(UNRAISED) or 0)


def ends(shown):
    """Return the ends that a reader sees."""
    if shown.interval.startswith("± "):
        half = number(shown.interval[2:])
        return number(shown.measured) - half, number(shown.measured) + half
    if not shown.interval:
        return (number(shown.measured),) * 2
    low, high = shown.interval.split(" to ")
    power = re.search(" × 10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+$", high)
    return number(low + (power[0] if power else "")), number(high)


@pytest.mark.parametrize(
    ("numbers", "predicted", "both"),
    [
        ((3, 2, 2, 2), "3", "2"),
        ((2.0, 2.0, 1.0, 3.0), "2", "2.0 ± 1.0"),
        ((0, 0, 0, 0), "0", "0"),
        ((-4, -4, -4, -4), "−4", "−4"),
        ((1 / 3, 1 / 3, 1 / 3, 1 / 3), "0.333333", "0.333333"),
        ((0.343, 0.34297431, 0.34261, 0.34333), "0.34300", "0.34297 ± 0.00036"),
        ((2.614057, 2.616183, 2.612303, 2.620064), "2.6141", "2.6162 ± 0.0039"),
        ((226, 228.84, 210.93, 249.93), "226", "229 ± 20"),
        ((1e-7, 1.02e-7, 0.9e-7, 1.14e-7), "1.00 × 10⁻⁷", "(1.02 ± 0.12) × 10⁻⁷"),
        ((9.28e-7, 0.0109, -0.0276, 0.0493), "9.3 × 10⁻⁷", "0.011 ± 0.038"),
        ((0.723, 1e150, -1e150, 3e150), "0.72", "(1.0 ± 2.0) × 10¹⁵⁰"),
        ((1e20, 1e20, 1e20, 1e20), "10²⁰", "10²⁰"),
        ((10000, 0.5, 0.48, 0.52), "10,000", "0.500 ± 0.020"),
        ((0.001, 0, 0, 0.00031), "0.001", "0 (0 to 3.1) × 10⁻⁴"),
        ((0.98, 1, 0.995, 1), "0.9800", "1.0000 (0.9950 to 1.0000)"),
        ((0.7, 0.64672066, 0.64672053, 0.64672079), "0.70000000", "0.64672066 ± 1.3 × 10⁻⁷"),
        ((1.0, 12.0, None, None), "1", "12, no interval"),
    ],
)
def test_what_is_shown(numbers, predicted, both):
    shown = digits(*numbers)
    assert (shown.predicted, shown.both) == (predicted, both)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (10000, "10,000"), (999999.6, "1,000,000"), (0.5, "0.5"), (1e-3, "0.001"), (-2, "−2"),
        (1e-4, "10⁻⁴"), (1.5e-7, "1.5 × 10⁻⁷"), (-1e-9, "−10⁻⁹"), (1e9, "10⁹"), (math.inf, "∞"),
        (-math.inf, "−∞"), (math.nan, "—"), (0.0, "0"), (123456789, "1.23457 × 10⁸"),
    ],
)  # fmt: skip
def test_a_number_of_its_own(value, shown):
    assert numeral(value) == shown


def test_powers_are_raised_and_nothing_else():
    assert with_powers("(1.0 ± 0.2) × 10⁻⁷") == "(1.0 ± 0.2) × 10<sup>−7</sup>"
    assert with_powers("10²⁰ and 10²") == "10<sup>20</sup> and 10<sup>2</sup>"
    assert with_powers("x² = 10, log v₂₀") == "x² = 10, log v₂₀"


def test_as_plain_text():
    assert in_digits({"predicted": 2, "measured": 2, "low": 2, "high": 2}) == {
        "predicted": "2", "measured": "2", "interval": "computed",
    }  # fmt: skip


def outside_by(share, seed, *, symmetric=True):
    """Yield numbers whose prediction lies outside the interval by this share of its width."""
    rng = np.random.default_rng(seed)
    for _ in range(3000):
        scale = 10.0 ** rng.integers(-12, 7)
        low = scale * rng.uniform(-1, 1)
        width = abs(low) * 10.0 ** rng.uniform(-5, 1)
        predicted = (low - share * width, low + (1 + share) * width)[rng.integers(2)]
        yield predicted, low + (0.5 if symmetric else rng.random()) * width, low, low + width


def seen_outside(numbers):
    shown = digits(*numbers)
    low, high = ends(shown)
    slack = 1e-9 * (high - low)
    return not low - slack <= number(shown.predicted) <= high + slack


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("share", [0.02, 0.1, 1.0, 100.0])
def test_a_prediction_outside_the_interval_is_seen_to_be_outside(share, symmetric):
    assert all(map(seen_outside, outside_by(share, seed=1, symmetric=symmetric)))


@pytest.mark.parametrize(
    "numbers",
    [
        (0.2000001, 0.15, 0.1, 0.2),
        (0.2004, 0.15, 0.1, 0.2),
        (2.0000001, 2.0, 2.0, 2.0),
        (0.33333334, 1 / 3, 1 / 3, 1 / 3),
    ],
)
def test_a_prediction_just_outside_is_seen_to_be_outside(numbers):
    assert seen_outside(numbers)


@pytest.mark.parametrize("symmetric", [True, False])
def test_a_prediction_inside_the_interval_is_seen_to_be_inside(symmetric):
    rng = np.random.default_rng(2)
    for _, measured, low, high in outside_by(0.5, seed=3, symmetric=symmetric):
        predicted = low + rng.uniform(0.03, 0.97) * (high - low)
        assert not seen_outside((predicted, measured, low, high))


def test_the_half_width_has_two_digits_and_the_estimate_its_place():
    for _, measured, low, high in outside_by(0.5, seed=4):
        shown = digits(measured, measured, low, high)
        half = shown.interval.removeprefix("± ").partition(" ×")[0].replace(",", "")
        half = re.sub("^10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+$", "1", half)
        assert len(half.strip("0.").replace(".", "")) <= 2
        assert abs(number(shown.interval[2:]) / ((high - low) / 2) - 1) < 0.051
        assert abs(number(shown.measured) - measured) <= 0.051 * (high - low) / 2
