"""Every public name has an example, and stands in the reference; `test_examples` runs them."""

import ast
import doctest
import importlib
import json
from pathlib import Path
from types import ModuleType

import pytest

import supermarket
from tools import api_pages

ROOT = Path(__file__).parents[1]
LISTED = api_pages.addresses(ROOT)
# What a call returns: its example is that of the function that made it.
RETURNED = {"CavityEquilibrium", "Coupling", "SmallChain"}


def documented(path):
    """Return the docstring of an entry of the reference."""
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name).__doc__ or ""


def has_example(docstring):
    return bool(doctest.DocTestParser().get_examples(docstring))


@pytest.mark.parametrize("path", [p for p in LISTED if p.rpartition(".")[2] not in RETURNED])
def test_an_entry_of_the_reference_has_an_example(path):
    assert has_example(documented(path)), f"{path} has no Examples section"


@pytest.mark.parametrize("name", sorted(set(supermarket.homes()) - {"ParameterError"}))
def test_a_public_name_stands_in_the_reference(name):
    home = supermarket.homes()[name]
    room = home.partition(".")[0]
    assert f"supermarket.{name if room in api_pages.TOP else f'{home}.{name}'}" in LISTED


def test_what_a_notebook_imports_is_public():
    """But for constants, and kinds of parameters: `supermarket.experiment.parameters` has them."""
    for file in (ROOT / "notebooks").glob("*.ipynb"):
        for cell in json.loads(file.read_text(encoding="utf-8"))["cells"]:
            text = "".join(cell["source"])
            if cell["cell_type"] != "code" or "from supermarket" not in text:
                continue
            for node in ast.walk(ast.parse(text)):
                if not isinstance(node, ast.ImportFrom) or not node.module.startswith("superm"):
                    continue
                if node.module != "supermarket.experiment.parameters":
                    for alias in node.names:
                        assert is_public(node.module, alias.name), f"{file.stem}: {alias.name}"


def is_public(module, name):
    try:
        thing = getattr(importlib.import_module(module), name)
    except AttributeError:
        thing = importlib.import_module(f"{module}.{name}")
    listed = name in supermarket.homes() or f"{module}.{name}" in LISTED
    return listed or name.isupper() or isinstance(thing, ModuleType)


def test_a_missing_example_is_seen():
    assert not has_example("Return 1.\n\nExamples\n--------\nNone here.\n")
    assert has_example("Return 1.\n\n>>> 1\n1\n")
