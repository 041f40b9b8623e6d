"""The examples in the docstrings of the package's public names do what they say."""

import doctest
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import supermarket

pytestmark = pytest.mark.book  # documentation: once is enough, and the twins run without the JIT

ROOT = Path(__file__).parents[1]
MODULES = [
    name for _, name, _ in pkgutil.walk_packages(supermarket.__path__, prefix="supermarket.")
]


def examples(name):
    """Return the doctests of a public name, those of a class's methods included."""
    value = getattr(supermarket, name)
    module = inspect.getmodule(value) or supermarket
    finder = doctest.DocTestFinder(exclude_empty=True)
    return [test for test in finder.find(value, name, module=module, globs={}) if test.examples]


def failures(tests):
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    told = []
    for test in tests:
        runner.run(test, out=told.append)
    return "".join(told)


@pytest.mark.parametrize("name", supermarket.__all__)
def test_examples_of_a_public_name(name):
    told = failures(examples(name))
    assert not told, told


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_the_other_names(name):
    """Examples elsewhere in a module, such as in the helpers that a notebook imports by name."""
    module = importlib.import_module(name)
    public = {test.docstring for name in supermarket.__all__ for test in examples(name)}
    tests = [
        test
        for test in doctest.DocTestFinder(exclude_empty=True).find(module, globs={})
        if test.examples and test.docstring not in public
    ]
    told = failures(tests)
    assert not told, told


def test_the_examples_are_found():
    """Otherwise the tests above would pass by running nothing."""
    with_examples = {name for name in supermarket.__all__ if examples(name)}
    assert {"fixed_point", "k_lambda_d", "simulate"} <= with_examples


def test_a_wrong_example_is_seen():
    wrong = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", None, 0)
    assert "Expected" in failures([wrong])
    raising = doctest.DocTestParser().get_doctest(">>> 1 / 0\n", {}, "raising", None, 0)
    assert "ZeroDivisionError" in failures([raising])


# The page on sweeps reads one that its commands made: tests/experiment runs those.
PAGES = [ROOT / "README.md", *(set((ROOT / "book").glob("*.md")) - {ROOT / "book" / "lab.md"})]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = [
    pytest.param(block, id=f"{file.name}-{k}")
    for file in sorted(PAGES)
    for k, block in enumerate(BLOCK.findall(file.read_text(encoding="utf-8")))
]


@pytest.mark.parametrize("block", BLOCKS)
def test_what_the_readme_and_the_pages_show_runs(block):
    exec(compile(block, "shown", "exec"), {})


def test_there_are_blocks_to_run():
    assert len(BLOCKS) >= 4
