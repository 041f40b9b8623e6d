"""The rooms of the package: which may import which, and no circle."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "supermarket"
# Each imports from those before it only.
ORDER = (
    "validation", "kernels", "service", "policies", "models", "estimate", "limits", "runs",
    "experiment", "__main__",
)  # fmt: skip


def modules(package):
    """Return every module by its dotted name below the package."""
    found = {}
    for file in package.rglob("*.py"):
        parts = file.relative_to(package).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def imported(file, known):
    """Return the modules that a file imports, wherever in it, but for those of types alone."""
    tree, found = ast.parse(file.read_text(encoding="utf-8")), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("supermarket"):
            module = node.module.removeprefix("supermarket").removeprefix(".")
            for alias in node.names:
                below = f"{module}.{alias.name}".removeprefix(".")
                found.add(below if below in known else module)
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name.startswith("supermarket.")]
            found |= {name.removeprefix("supermarket.") for name in names}
    return found - {""}  # the package itself, for its version


def faults(package):
    """Return imports that run against the order, and modules that reach themselves."""
    known = modules(package)
    graph = {name: imported(file, known) for name, file in known.items() if name}
    wrong = [
        f"{name} imports {other}"
        for name, others in graph.items()
        for other in others
        if ORDER.index(other.partition(".")[0]) > ORDER.index(name.partition(".")[0])
    ]
    for start in graph:
        reached, left = set(), [start]
        while left:
            for other in graph.get(left.pop(), ()) - reached:
                reached.add(other)
                left.append(other)
        if start in reached:
            wrong.append(f"{start} is in a circle")
    return wrong


def test_imports_follow_the_order_of_the_rooms_and_no_circle():
    assert faults(PACKAGE) == []


@pytest.mark.parametrize(
    ("file", "line", "fault"),
    [
        ("limits/one.py", "from supermarket.runs import two", "limits.one imports runs.two"),
        (
            "limits/one.py",
            "def f():\n    import supermarket.runs.two",
            "limits.one imports runs.two",
        ),
        ("runs/two.py", "from supermarket.runs.two import x", "runs.two is in a circle"),
    ],
)
def test_a_wrong_import_is_seen(tmp_path, file, line, fault):
    for name in ("limits/one.py", "runs/two.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x = 1\n")
    (tmp_path / file).write_text(f"{line}\n")
    assert fault in faults(tmp_path)
