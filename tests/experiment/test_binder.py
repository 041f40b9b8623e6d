"""What can be told offline of the files that Binder reads."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
BINDER = ROOT / ".binder"


def test_binder_installs_the_pinned_versions_and_the_package():
    lines = [
        line
        for line in (BINDER / "requirements.txt").read_text().splitlines()
        if line and not line.startswith("#")
    ]
    # By reference, so that they can't differ. pip resolves -r beside the file, -e from the root.
    (given,) = lines
    assert given.startswith("-r ")
    pinned = (BINDER / given.removeprefix("-r ")).resolve()
    assert pinned == ROOT / "requirements.txt"
    pins = [line for line in pinned.read_text().splitlines() if not line.startswith("#")]
    assert pins[0] == "-e ."
    names = [re.match(r"([\w.-]+)==[\w.]+(?: ; .*)?$", pin)[1] for pin in pins[1:]]
    assert {"ipykernel", "numba", "matplotlib", "papermill"} <= set(names)


def test_binder_takes_a_python_that_the_package_allows():
    written = (BINDER / "runtime.txt").read_text()
    version = re.fullmatch(r"python-(3\.\d+)\n", written)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    low, high = re.fullmatch(r">=3\.(\d+),<3\.(\d+)", project["requires-python"]).groups()
    assert int(low) <= int(version[1].removeprefix("3.")) < int(high)


def test_binder_finds_nothing_else_to_build_from():
    # repo2docker takes the first of these that it knows, before requirements.txt.
    assert {file.name for file in BINDER.iterdir()} == {"requirements.txt", "runtime.txt"}
