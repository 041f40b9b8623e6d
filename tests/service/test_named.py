"""Laws named by a text."""

import pytest

from supermarket import ParameterError
from supermarket.service import (
    Deterministic,
    Empirical,
    Erlang,
    Hyperexponential,
    Lomax,
    PhaseType,
)
from supermarket.service.named import law_text, named_law


@pytest.mark.parametrize(
    ("text", "law"),
    [
        ("Lomax(1.5)", Lomax(1.5)),
        (" Lomax(beta=2.5) ", Lomax(2.5)),
        ("Deterministic()", Deterministic()),
        ("Erlang(3)", Erlang(3)),
        ("Hyperexponential.from_scv(4, 0.25)", Hyperexponential.from_scv(4, 0.25)),
        ("PhaseType([1, 0], [[-2, 2], [0, -2]])", PhaseType([1, 0], [[-2, 2], [0, -2]])),
    ],
)
def test_a_law_as_it_is_written(text, law):
    assert named_law("service", text) == law


def test_the_check_of_a_parameter_hands_back_the_text():
    assert law_text("service", "Erlang(2)") == "Erlang(2)"
    with pytest.raises(ParameterError, match="names no law"):
        law_text("service", "Erlan(2)")


def test_a_column_of_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tmp_path.joinpath("one.csv").write_text("seconds\n1\n3\n")
    tmp_path.joinpath("two.csv").write_text("id,seconds\na,1\nb,3\n")
    law = Empirical([1, 3])
    assert named_law("service", "one.csv") == named_law("service", "two.csv:seconds") == law
    with pytest.raises(ParameterError, match=r"choose a column of two.csv, one of id, seconds"):
        named_law("service", "two.csv")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (1.5, "service = 1.5 is not a text"),
        ("Lomax", r"does not name a law.*did you mean \"Lomax\(\)\""),
        ("Lomacs(1.5)", r"names no law.*did you mean Lomax"),
        ("__import__('os').system('ls')", "does not name a law|names no law"),
        ("Lomax(__import__('os'))", "does not name a law"),
        ("Lomax(1.5, 2, 3)", "too few or too many numbers"),
        ("Lomax(0.9)", "without a mean"),
        ("Lomax('x')", "beta"),
        ("nowhere.csv", "there is no file nowhere.csv"),
        ("Empirical([1])", "names no law"),
        ("Lomax(1.5", "does not name a law"),
    ],
)
def test_bad_text_gets_one_sentence(value, words):
    with pytest.raises(ParameterError, match=words) as caught:
        named_law("service", value)
    assert "\n" not in str(caught.value)
