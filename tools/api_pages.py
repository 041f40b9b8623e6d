"""The API reference: what each module lists in `__all__`, from its docstrings, a page a part.

A page asks for the modules below a folder with ``<!-- api: limits/fifo -->``: a new module is found
by itself.
"""

import ast
import re
from collections.abc import Iterable
from pathlib import Path

PLACE = re.compile(r"^<!-- api: ([\w/. ]+) -->$", re.MULTILINE)
_LIST = re.compile(r"^__all__ = \[(.*?)\]$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`([A-Za-z_]\w*)[^`]*`")
# Rooms whose names are also names of the package itself.
TOP = ("models", "service", "limits", "runs", "estimate")


def expand(text: str, root: Path) -> str:
    """Return a page with the entries of the modules that it asks for."""

    def entries(asked: re.Match) -> str:
        found = [entry(root, file) for path in asked[1].split() for file in modules(root, path)]
        return "\n".join(found)

    return PLACE.sub(entries, text)


def modules(root: Path, path: str) -> Iterable[Path]:
    """Return the modules of a folder of the package, or the one module, that list names."""
    place = root / "supermarket" / path
    files = sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]
    return [file for file in files if names(file)]


def names(file: Path) -> list[str]:
    """Return the names that a module lists."""
    found = _LIST.search(file.read_text(encoding="utf-8"))
    return re.findall(r'"(\w+)"', found[1]) if found else []


def entry(root: Path, file: Path) -> str:
    """Return the head of a module, and each of its names."""
    parts = file.relative_to(root).with_suffix("").parts
    module = ".".join(part for part in parts if part != "__init__")
    home = "supermarket" if parts[1] in TOP else module
    tree = ast.parse(file.read_text(encoding="utf-8"))
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    title = parts[-2] if parts[-1] == "__init__" else parts[-1]
    where = f"In ``{'/'.join(parts)}.py``."
    lines = [f"### {title}", "", "```{eval-rst}", f".. automodule:: {module}", "", where, ""]
    for name in names(file):
        kind = "class" if name[0].isupper() else "function"
        lines.append(f".. auto{kind}:: {home}.{name}")
        if name in classes and any(map(_is_public, classes[name].body)):
            lines.append("   :members:")
    return "\n".join([*lines, "```", ""])


def _is_public(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef) and not node.name.startswith("_")


def link(text: str, root: Path) -> str:
    """Return a page in which the names of the reference in tables lead there."""
    found = addresses(root)
    tops = {name.rpartition(".")[2]: address for name, address in found.items()}

    def linked(code: re.Match) -> str:
        address = tops.get(code[1])
        shown = re.sub(r"[_.(\[]", r"\g<0><wbr>", code[0][1:-1])  # where a narrow column breaks it
        shown = f'<code class="literal">{shown}</code>'
        return f'<a href="{address}">{shown}</a>' if address else shown

    lines = [
        CODE.sub(linked, line) if line.startswith("|") else line for line in text.splitlines(True)
    ]
    return "".join(lines)


def addresses(root: Path) -> dict[str, str]:
    """Return where each name stands: its page and anchor, by the path it is documented under."""
    found = {}
    for page in sorted((root / "book").glob("api*.md")):
        for asked in PLACE.finditer(page.read_text(encoding="utf-8")):
            for path in asked[1].split():
                for file in modules(root, path):
                    listed = re.findall(r"auto\w+:: (\S+)", entry(root, file))[1:]
                    found |= {name: f"{page.stem}.html#{name}" for name in listed}
    return found
