"""What docstrings, comments and pages point to is there."""

import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ADDRESS = re.compile(r"`{1,2}(supermarket(?:\.\w+)+)`{1,2}")
PARTS = ("supermarket", "tools", "benchmarks")
FILES = [
    *(file for part in PARTS for file in (ROOT / part).rglob("*.py")),
    *(ROOT / "book").glob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md",
]  # fmt: skip


def is_there(address):
    parts = address.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found = import_module(".".join(parts[:end]))
        except ImportError:
            continue
        for name in parts[end:]:
            found = getattr(found, name, None)
        return found is not None
    return False


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_addresses_are_there(file):
    named = set(ADDRESS.findall(file.read_text(encoding="utf-8"))) - {"supermarket.x"}
    assert {address for address in named if not is_there(address)} == set()


def test_a_wrong_address_is_seen():
    assert is_there("supermarket.limits.fifo.cavity")
    assert is_there("supermarket.Run.interval")
    assert not is_there("supermarket.theory.cavity")
    assert not is_there("supermarket.limits.fifo.cavities")
