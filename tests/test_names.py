"""Names: one meaning each, over the whole package."""

import ast
from collections import Counter
from pathlib import Path

from tools import api_pages

ROOT = Path(__file__).parents[1]


def defined():
    """Count the modules that define a class or a function of each name, commands apart."""
    found = Counter()
    for file in set((ROOT / "supermarket").rglob("*.py")) - {ROOT / "supermarket/__main__.py"}:
        body = ast.parse(file.read_text(encoding="utf-8")).body
        found.update(
            {node.name for node in body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
        )
    return found


MOST_PARAMETERS = 8
WIDE = {"burst_elsewhere"}  # it takes the parameters of a page by their names


def parameters(function):
    """Return the names of all parameters; `self` and `cls` are none."""
    given = function.args
    named = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    return [one.arg for one in named if one is not None and one.arg not in ("self", "cls")]


def test_no_function_has_more_than_eight_parameters():
    files = [
        file
        for folder in ("supermarket", "tools", "benchmarks")
        for file in (ROOT / folder).rglob("*.py")
    ]
    functions = [
        node
        for file in files
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    assert len(functions) > 1000
    wide = {one.name for one in functions if len(parameters(one)) > MOST_PARAMETERS}
    assert wide == WIDE


def test_no_name_of_the_reference_is_defined_twice():
    names = {path.rpartition(".")[2] for path in api_pages.addresses(ROOT)}
    assert len(names) > 150
    count = defined()
    assert {name for name in names if count[name] > 1} == set()
