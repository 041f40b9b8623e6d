"""What a person may type, and the one sentence that answers anything else."""

import math
from fractions import Fraction

import numpy as np
import pytest

from supermarket.experiment.parameters import Above, Below, Positive, Rate, Real, Whole
from supermarket.validation import (
    EXACT_MAX,
    ParameterError,
    arrival_rate,
    choice,
    integer,
    nearest,
    real,
    whole_numbers,
)


def refusal(check, *arguments, **options):
    with pytest.raises(ParameterError) as caught:
        check(*arguments, **options)
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert sentence.endswith(".")
    return sentence


@pytest.mark.parametrize("value", [3, np.int8(3), np.int64(3), np.uint32(3)])
def test_whole_numbers_come_back_as_int(value):
    clean = integer("n", value, 3, 3)
    assert clean == 3
    assert type(clean) is int


@pytest.mark.parametrize("value", [0.5, np.float32(0.5), np.float64(0.5), Fraction(1, 2)])
def test_numbers_come_back_as_float(value):
    clean = real("x", value, 0.5, 0.5)
    assert clean == 0.5
    assert type(clean) is float
    assert type(real("x", 2)) is float


def test_each_end_is_allowed_unless_open():
    assert integer("n", 2, 2, 5) == 2
    assert integer("n", 5, 2, 5) == 5
    assert integer("n", -(10**30)) == -(10**30)
    assert real("x", 1, 1.0, 2.0) == 1.0
    assert real("x", 2, 1.0, 2.0) == 2.0
    just_inside = math.nextafter(1.0, 2.0), math.nextafter(2.0, 1.0)
    for x in just_inside:
        assert real("x", x, 1.0, 2.0, open_low=True, open_high=True) == x
    for x in (1.0, 2.0):
        refusal(real, "x", x, 1.0, 2.0, open_low=True, open_high=True)
    for x in (math.nextafter(1.0, 0.0), math.nextafter(2.0, 3.0)):
        refusal(real, "x", x, 1.0, 2.0)
    assert arrival_rate(math.nextafter(1.0, 0.0)) < 1
    assert arrival_rate(5e-324) > 0
    assert integer("n", EXACT_MAX, 1, EXACT_MAX) == 2**53


@pytest.mark.parametrize(
    ("check", "value", "sentence"),
    [
        (Whole[1], 0, "x = 0 is out of range: choose 1 <= x."),
        (Whole[1, 5], 6, "x = 6 is out of range: choose 1 <= x <= 5."),
        (Whole[1, 5], -6, "x = -6 is out of range: choose 1 <= x <= 5."),
        (Whole[1], 2**70, None),
        (Rate, 1.2, "x = 1.2 is out of range: choose 0 < x < 1."),
        (Rate, 1, "x = 1 is out of range: choose 0 < x < 1."),
        (Rate, 0.0, "x = 0 is out of range: choose 0 < x < 1."),
        (Positive, 0, "x = 0 is out of range: choose 0 < x."),
        (Positive, -1e-9, "x = -1e-09 is out of range: choose 0 < x."),
        (Real[0, 1], 1.25, "x = 1.25 is out of range: choose 0 <= x <= 1."),
        (Below[0, 1], 1, "x = 1 is out of range: choose 0 <= x < 1."),
        (Above[0, 1], 0, "x = 0 is out of range: choose 0 < x <= 1."),
        (Real[1e-12, 0.1], 0.123456789012345, None),
    ],
)
def test_out_of_range_says_the_value_and_what_is_allowed(check, value, sentence):
    if sentence is None:
        if value == 2**70:
            assert check("x", value) == value
            return
        sentence = "x = 0.123456789012345 is out of range: choose 1e-12 <= x <= 0.1."
    assert refusal(check, "x", value) == sentence


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("1e6", ["n = '1e6' is text", "n = 1000000."]),
        ("1000", ["n = '1000' is text", "n = 1000."]),
        ("many", ["n = 'many' is text", "digits alone."]),
        ("1,000", ["n = '1,000' is text", "n = 1000."]),
        ("2.5", ["n = '2.5' is text", "digits alone."]),
        ("0", ["n = '0' is text", "digits alone."]),  # is out of range
        ("99999999999999999999", ["is text", "digits alone."]),
        ("inf", ["n = 'inf' is text"]),
        ("nan", ["n = 'nan' is text"]),
        ("1e400", ["n = '1e400' is text"]),
        ("", ["n = '' is text"]),
        ("1\n2", ["n = '1\\n2' is text"]),
        (1e6, ["n = 1000000.0 is not a whole number", "n = 1000000."]),
        (np.float64(1e6), ["is not a whole number", "n = 1000000."]),
        (2.5, ["n = 2.5 is not a whole number"]),
        (math.nan, ["n = nan is not a whole number"]),
        (math.inf, ["n = inf is not a whole number"]),
        (True, ["n = True is not a whole number"]),
        (np.True_, ["is not a whole number"]),
        (None, ["n = None is not a whole number"]),
        ([3], ["n = [3] is not a whole number"]),
        (3 + 0j, ["n = (3+0j) is not a whole number"]),
    ],
)
def test_no_whole_number_says_what_to_write(value, words):
    sentence = refusal(integer, "n", value, 1, 10**7)
    assert all(word in sentence for word in words)
    assert "such as n = 2" not in sentence  # 2.5 is not to be rounded for the reader
    if words[-1].endswith("."):
        assert sentence.endswith((" such as " + words[-1], "write it with " + words[-1]))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("0.9", ["lam = '0.9' is text", "lam = 0.9 without quotes"]),
        ("95e-2", ["lam = '95e-2' is text", "lam = 0.95 without quotes"]),
        ("0,7", ["write lam = 0.7 without quotes and with a decimal point."]),
        (" ,75 ", ["write lam = 0.75 without"]),
        ("80%", ["write lam = 0.8 without"]),
        ("62,5 %", ["write lam = 0.625 without"]),
        ("0,700", ["write lam = 0.7 without"]),
        (
            "1,5",
            ["a number is needed: give a decimal number with 0 <= lam <= 1."],
        ),
        ("7", ["give a decimal number with 0 <= lam <= 1."]),
        (
            "high",
            ["lam = 'high' is text, and a number is needed: give a decimal number"],
        ),
        (math.nan, ["lam = nan is not finite"]),
        (math.inf, ["lam = inf is not finite"]),
        (-math.inf, ["lam = -inf is not finite"]),
        (np.float64("nan"), ["lam = nan is not finite"]),
        (True, ["lam = True is not a number"]),
        (np.False_, ["is not a number"]),
        (None, ["lam = None is not a number"]),
        ([0.5], ["lam = [0.5] is not a number"]),
        (0.5j, ["lam = 0.5j is not a number"]),
    ],
)
def test_no_number_says_what_to_write(value, words):
    sentence = refusal(real, "lam", value, 0.0, 1.0)
    assert all(word in sentence for word in words)


def test_a_number_beyond_the_doubles_is_refused():
    assert "x" in refusal(real, "x", 10**400)


@pytest.mark.parametrize(
    ("check", "value"),
    [
        (Whole[1], np.zeros((3, 3))),
        (Rate, np.zeros((3, 3))),
        (lambda name, value: choice(name, value, "ab"), np.zeros(1000)),
    ],
)
def test_a_refused_value_of_many_lines_still_gives_one_line(check, value):
    refusal(check, "x", value)


def test_a_choice_is_told_what_there_is():
    assert choice("start", "empty", ["empty", "fixed point"]) == "empty"
    assert choice("replacement", False, (True, False)) is False
    sentence = refusal(choice, "start", "emtpy", iter(["empty", "fixed point"]))
    assert sentence == (
        "start = 'emtpy' is not known: use 'empty', 'fixed point' (did you mean empty?)."
    )
    assert "did you mean" not in refusal(choice, "start", "zzz", ["empty", "fixed point"])
    refusal(choice, "replacement", 1, (True, False))  # 1 == True, but is no answer to yes or no
    refusal(choice, "d", True, (1, 2))
    refusal(choice, "x", ["a"], ["a"])


def test_nearest_names_one_word_or_nothing():
    assert nearest("lamb", ["n", "lam", "seed"]) == " (did you mean lam?)"
    assert nearest("quux", ["n", "lam", "seed"]) == ""
    assert nearest(12, []) == ""


def test_in_a_notebook_the_sentence_stands_alone():
    error = ParameterError("n = 0 is out of range: choose 1 <= n.")
    assert error._render_traceback_() == ["ParameterError: n = 0 is out of range: choose 1 <= n."]
    assert isinstance(error, ValueError)


def test_an_array_of_floats_that_are_whole_is_one_of_whole_numbers():
    """As shares times n are; a list of them was typed, and a fraction is no count."""
    assert whole_numbers("counts", np.array([4.0, 3.0])).tolist() == [4, 3]
    for given in (np.array([4.0, 3.5]), np.array([np.nan]), np.array([1e300]), [4.0]):
        with pytest.raises(ParameterError):
            whole_numbers("counts", given)
