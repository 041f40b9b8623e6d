"""Every public name has an example, and stands in the API reference; `test_examples` runs them."""

import doctest
import importlib
import re
from pathlib import Path

import pytest

import supermarket

PAGE = (Path(__file__).parents[1] / "book" / "api.md").read_text(encoding="utf-8")
LISTED = re.findall(r"^\.\. auto(?:function|class):: supermarket\.(\S+)$", PAGE, re.MULTILINE)
# What a call returns: its example is that of the function that made it.
RETURNED = {
    "theory.small_chain.SmallChain",
    "theory.cavity.CavityEquilibrium",
    "chains.coupled.Coupling",
}


def documented(listed):
    """Return the docstring of an entry of the page, below the package."""
    module, _, name = listed.rpartition(".")
    home = importlib.import_module(f"supermarket.{module}") if module else supermarket
    return getattr(home, name).__doc__ or ""


def has_example(docstring):
    return bool(doctest.DocTestParser().get_examples(docstring))


@pytest.mark.parametrize("name", supermarket._HOME)
def test_a_public_name_has_an_example_and_is_on_the_page(name):
    assert has_example(documented(name)), f"{name} has no Examples section"
    assert name in LISTED, f"{name} is not in book/api.md"


@pytest.mark.parametrize("listed", sorted(set(LISTED) - RETURNED - set(supermarket._HOME)))
def test_an_entry_of_the_page_has_an_example(listed):
    assert has_example(documented(listed))


def test_the_page_lists_each_name_once():
    assert len(LISTED) > 80
    assert len(set(LISTED)) == len(LISTED)
    assert set(LISTED) >= RETURNED
    assert all(map(documented, RETURNED))


def test_a_missing_example_is_seen():
    assert not has_example("Return 1.\n\nExamples\n--------\nNone here.\n")
    assert has_example("Return 1.\n\n>>> 1\n1\n")
