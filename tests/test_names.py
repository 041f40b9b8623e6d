"""Names: one meaning each, over the whole package."""

import ast
import re
from collections import Counter
from pathlib import Path

import supermarket

ROOT = Path(__file__).parents[1]


def defined():
    """Count the modules that define a class or a function of each name."""
    found = Counter()
    for file in (ROOT / "supermarket").rglob("*.py"):
        body = ast.parse(file.read_text(encoding="utf-8")).body
        found.update(
            {node.name for node in body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
        )
    return found


def test_no_name_of_the_reference_is_defined_twice():
    text = (ROOT / "book" / "api.md").read_text(encoding="utf-8")
    paths = re.findall(r"auto(?:function|class):: supermarket\.([\w.]+)", text)
    names = {path.rpartition(".")[2] for path in (*paths, *supermarket.__all__)}
    assert len(names) > 150
    count = defined()
    assert {name for name in names if count[name] > 1} == set()
