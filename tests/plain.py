"""Which files of tests can reach no kernel: what runs there is the same with the JIT and without.

A file is plain if neither it nor what it imports of the package, nor what that imports, compiles
anything. Imports inside functions count too; whoever imports the package as a whole, or finds its
modules by name while running, may reach everything.
"""

import ast
from functools import cache
from pathlib import Path

import supermarket

HOME = Path(supermarket.__file__).parent
# The modules that find others by name. A model looks only at the names of policies.
BY_NAME = ("supermarket", "supermarket.runs.front")


def is_plain(file):
    """Tell whether no kernel can be reached from a file of tests."""
    return not any(map(reaches_a_kernel, imported(file)))


@cache
def reaches_a_kernel(name, above=()):
    """Tell whether a module of the package has a kernel, or one of those that it can reach."""
    if name in BY_NAME:
        return True
    file = source(name)
    text = file.read_text(encoding="utf-8")
    if "@kernel" in text or "= kernel(" in text:
        return True
    return any(
        reaches_a_kernel(one, (*above, name)) for one in imported(file) if one not in (*above, name)
    )


def imported(file):
    """Return the modules of the package that a file imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                home = node.module
                if home == "supermarket":  # a public name stands for the module that has it
                    home = f"supermarket.{supermarket.homes().get(alias.name, alias.name)}"
                below = f"{home}.{alias.name}"
                found.add(below if source(below) else home)
    return {name for name in found if name.partition(".")[0] == "supermarket"}


def source(name):
    """Return the file of a module of the package, None if there is none."""
    path = HOME.joinpath(*name.split(".")[1:])
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if file.is_file():
            return file
    return None
