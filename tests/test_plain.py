"""Which files run in one suite alone: no kernel may be reached from them."""

from pathlib import Path

import pytest
from plain import imported, is_plain

TESTS = Path(__file__).parent


@pytest.mark.parametrize("name", ["test_verdicts", "test_statistics", "limits/test_families"])
def test_plain_files_are_found(name):
    assert is_plain(TESTS / f"{name}.py")


@pytest.mark.parametrize(
    "name", ["runs/test_occupancy", "limits/test_cavity", "test_examples", "limits/test_drifts"]
)
def test_what_reaches_a_kernel_is_not_plain(name):
    assert not is_plain(TESTS / f"{name}.py")


@pytest.mark.parametrize(
    ("text", "module"),
    [
        ("from supermarket import simulate", "supermarket.runs.front"),
        ("from supermarket.runs.jobs import network", "supermarket.runs.jobs.network"),
        (
            "def f():\n    from supermarket.limits.fifo.cavity import cavity",
            "supermarket.limits.fifo.cavity",
        ),
        ("import supermarket", "supermarket"),
    ],
)
def test_a_kernel_is_seen_however_it_is_imported(tmp_path, text, module):
    file = tmp_path / "test_new.py"
    file.write_text(text + "\n")
    assert imported(file) == {module}
    assert not is_plain(file)
