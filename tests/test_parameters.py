"""What a line of a parameters cell allows, and that papermill reads the same lines."""

from pathlib import Path

import numpy as np
import pytest

from supermarket import ParameterError
from supermarket.experiment.catalogue import read
from supermarket.experiment.parameters import (
    Increasing,
    Law,
    Pair,
    Profile,
    Rate,
    TailIndex,
    Whole,
    declared,
)
from supermarket.experiment.parameters import kind as kind_of

ROOT = Path(__file__).parents[1]
WHOLES = kind_of(list[Whole[1]])


def refusal(kind, value, name="d"):
    with pytest.raises(ParameterError) as caught:
        kind(name, value)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_lists_hold_checked_entries():
    for value in ([1, np.int64(2), 3], (1, 2, 3), np.array([1, 2, 3]), iter([1, 2, 3])):
        found = WHOLES("d", value)
        assert found == [1, 2, 3]
        assert all(type(entry) is int for entry in found)
    assert WHOLES("d", 3) == [3]  # a number stands for the list of it alone
    assert kind_of(list[list[Rate]])("d", [[0.5], [0.1, 0.5]]) == [[0.5], [0.1, 0.5]]


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        (WHOLES, None, "d = None is not a list: write it as [None]."),
        (WHOLES, 0, "d = 0 is out of range"),
        (WHOLES, "3", "d = '3' is not a list: write it as [3]."),
        (WHOLES, "1\n2", "is not a list"),
        (WHOLES, [], "d = [] needs at least one entry"),
        (WHOLES, [2, 3, 2], "d = [2, 3, 2] needs at least one entry, each one once"),
        (WHOLES, [2, 0], "d[1] = 0 is out of range: choose 1 <= d[1]."),
        (WHOLES, [2, "3"], "d[1] = '3' is text"),
        (WHOLES, [[2], 3], "d[0] = [2] is not a whole number"),
        (Increasing[3, Whole[1]], [1, 3, 2], "needs at least three entries, the smallest first."),
        (Increasing[3, Whole[1]], [1, 2], "needs at least three entries, the smallest first."),
        (Pair[Rate], (0.5, 2), "d[1] = 2 is out of range"),
        (Pair[Rate], 0.5, "d = 0.5 must hold 2 entries: write it as [a, b]."),
        (Pair[Rate], "ab", "d = 'ab' must hold 2 entries"),
        (Pair[Rate], [], "d = [] must hold 2 entries"),
        (Pair[Rate], [0.1, 0.2, 0.3], "d = [0.1, 0.2, 0.3] must hold 2 entries"),
        (kind_of(list[Pair[Rate]]), [[0.5]], "d[0] = [0.5] must hold 2 entries"),
        (TailIndex, 0.9, "gives a service time without a mean"),
        (TailIndex, 101, "d = 101 is out of range: choose d <= 100."),
        (Law, "Lomacs(2)", "names no law that is known"),
        (Profile, [1.0, 0.5, 0.6], "must be a profile"),
        (kind_of(str), 1, "d = 1 is not text: write it in quotes."),
        (kind_of(list), None, "d = None is not a list: write it in brackets."),
    ],
)
def test_what_is_refused_is_named(kind, value, words):
    assert words in refusal(kind, value)


def test_pairs_hold_two_checked_entries():
    for value in ([0.5, 0.25], (0.5, 0.25), np.array([0.5, 0.25])):
        assert Pair[Rate]("d", value) == (0.5, 0.25)


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        (
            "Wole[1]",
            "Wole[1] is no kind of parameter: see supermarket.experiment.parameters (did you mean",
        ),
        ("print", "print is no kind of parameter"),
        ("().__class__", "().__class__ is no kind of parameter"),
        ("Whole[1, 2, 3]", "Whole[1, 2, 3] is no kind of parameter"),
        ("dict", "is no kind of parameter"),
        ("Tenth", "Tenth is no kind of parameter"),
        ("list", None),
        ("tuple[int, list[Pair[Whole[1, 1e9]]]]", None),
    ],
)
def test_annotations_are_read_and_never_run(annotation, words):
    line = f"d: {annotation} = [3]  # a # sign"
    if words is None:
        (found,) = declared(line).values()
        assert (found.name, found.default, found.meaning) == ("d", [3], "a # sign")
    else:
        with pytest.raises(ParameterError) as caught:
            declared(line)
        assert str(caught.value).startswith("d: ")
        assert words in str(caught.value)


@pytest.mark.parametrize("path", sorted(ROOT.glob("notebooks/*.ipynb")), ids=lambda path: path.stem)
def test_papermill_reads_the_same_parameters(path):
    import papermill

    notebook, seen = read(path), papermill.inspect_notebook(path)
    own, source = notebook.parameters, notebook.cells[notebook.parameters_cell]
    assert list(own) == list(seen)
    for name, parameter in own.items():
        assert parameter.meaning == seen[name]["help"]
        assert len(parameter.meaning) > 5
        assert seen[name]["inferred_type_name"] in source
        assert parameter.check(parameter.default) == parameter.default
