"""The list of bugs that tests must see fits the code, and leaves no kernel and no law out.

That each is seen is for `make mutants`, which takes longer than CI should. Here it runs on a tiny
project, with bugs that are seen, that are not, that never end and that break the file.
"""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from supermarket import policies, service
from supermarket.service import ServiceLaw
from tools import BuildError, mutants
from tools.mutants import BROKEN, GREEN, LONG, RED

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "supermarket"
LISTED = mutants.listed(ROOT)


def functions(file, kernels=False):
    """Yield each function of a file, or each that is compiled, with its source."""
    text = file.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            made = {
                part.id
                for decorator in node.decorator_list
                for part in ast.walk(decorator)
                if isinstance(part, ast.Name)
            }
            if not kernels or made & {"kernel", "inlined"}:
                yield node.name, ast.get_source_segment(text, node)


def changed(file):
    """Return for each bug of a file where its text begins and ends."""
    text = file.read_text(encoding="utf-8")
    names = file.relative_to(ROOT).as_posix()
    return [
        (at := text.index(mutant.text), at + len(mutant.text))
        for mutant in LISTED
        if mutant.file == names
    ]


# Where the tables begin that are most likely of use: no error there changes a result.
FOR_SPEED_ALONE = ["supermarket/runs/counts/memory.py: _likely"]


def test_every_kernel_has_a_bug():
    """One within its lines."""
    without = []
    for file in PACKAGE.rglob("*.py"):
        text, spans = file.read_text(encoding="utf-8"), changed(file)
        for name, source in functions(file, kernels=True):
            begin = text.index(source)
            if not any(begin <= a and b <= begin + len(source) for a, b in spans):
                without.append(f"{file.relative_to(ROOT)}: {name}")
    assert without == FOR_SPEED_ALONE


def test_kernels_are_found_by_their_decorators():
    found = [name for name, _ in functions(PACKAGE / "runs" / "jobs" / "network.py", True)]
    assert sorted(found) == ["_count", "_shortest", "_step", "advance"]


@pytest.mark.parametrize("what", ["sample", "survival"])
@pytest.mark.parametrize(
    "law", [n for n in service.__all__ if n not in ("ServiceLaw", "hill_tail_index")]
)
def test_every_law_has_a_bug_in_its_sampler_and_one_elsewhere(law, what):
    """In the class itself or, where this takes it over, in the one above."""
    found = []
    for kind in getattr(service, law).__mro__:
        if not issubclass(kind, ServiceLaw) or kind is ServiceLaw:
            continue
        file = Path(sys.modules[kind.__module__].__file__)
        text = file.read_text(encoding="utf-8")
        (node,) = [n for n in ast.parse(text).body if getattr(n, "name", "") == kind.__name__]
        own = ast.get_source_segment(text, node)
        begin = text.index(own)
        sampler = re.search(r"    def sample\(.*?(?=\n    def |\Z)", own, re.DOTALL)
        inside = [(a - begin, b - begin) for a, b in changed(file) if begin <= a < begin + len(own)]
        in_sampler = [
            bool(sampler) and sampler.start() <= a and b <= sampler.end() for a, b in inside
        ]
        found += [yes == (what == "sample") for yes in in_sampler]
    if what == "survival" and law.startswith("Given"):  # all they are known by
        found += [mutant.file.endswith("service/panels.py") for mutant in LISTED]
    assert any(found), law


ELSEWHERE = [
    *(PACKAGE / "limits").rglob("*.py"),
    *(PACKAGE / "estimate").glob("*.py"),
    *(PACKAGE / "runs").rglob("*.py"),
    *(PACKAGE / "policies" / f"{name.replace(' ', '_')}.py" for name in policies.names()),
]


@pytest.mark.parametrize("file", ELSEWHERE, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_every_module_that_computes_has_a_bug(file):
    computes = any(True for _ in functions(file))
    assert changed(file) or not computes or file.name == "front.py"  # which only hands on


def test_texts_are_short_and_names_are_words():
    for mutant in LISTED:
        assert re.fullmatch("[a-z0-9]+(-[a-z0-9]+)+", mutant.name), mutant.name
        assert mutant.text != mutant.bug
        assert mutant.text.count("\n") <= 3, mutant.name


# The script itself, on a project of one file.
SOURCE = "def half(x):\n    # divided\n    return x / 2\n"
TESTS = "from one import half\ndef test_half():\n    assert half(4) == 2\n"
BUGS = {
    "is-seen": ("x / 2", "x / 3", RED, "test_one.py::test_half"),
    "changes-nothing": ("# divided", "# parted", GREEN, ""),
    "no-import": ("def half", "import nothing_there\ndef half", BROKEN, ""),
    "no-end": ("    return", "    while x: pass\n    return", LONG, "more than 3 s"),
}


@pytest.fixture
def project(tmp_path):
    """Return a folder with one file, its test, and bugs."""
    fixed = {"file": "one.py", "why": "", "tests": "test_one.py"}
    entries = [{"name": name, "text": a, "bug": b} | fixed for name, (a, b, _, _) in BUGS.items()]
    (tmp_path / "one.py").write_text(SOURCE)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_one.py").write_text(TESTS)
    (tmp_path / "tools").mkdir()
    (tmp_path / mutants.LIST).write_text(json.dumps(entries))
    return tmp_path


@pytest.mark.book  # starts pytest
@pytest.mark.parametrize("name", BUGS)
def test_bugs_are_told_apart_and_the_file_is_put_back(project, name):
    """The one that changes nothing must not be taken for seen, nor one that never ends."""
    (bug,) = mutants.listed(project, [name])
    limit = 3.0 if name == "no-end" else mutants.LIMIT
    seen = mutants.tried(project, bug, limit, project / "cache")
    assert seen.result == BUGS[name][2]
    assert seen.by.startswith(BUGS[name][3])
    assert ("nothing_there" in seen.by) == (name == "no-import")
    assert (project / "one.py").read_text() == SOURCE


@pytest.mark.book  # starts pytest
def test_what_was_seen_is_kept_and_the_exit_status_says_whether_all_were(project):
    def told(*names):
        command = [sys.executable, "-m", "tools.mutants", "--root", str(project), *names]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.stderr == ""
        return done.returncode, done.stdout.splitlines()

    status, first = told("is-seen")
    assert (status, first[-1]) == (0, "1 bugs, 1 seen by a test, 0 not.")
    assert first[0] == "Without any bug 1 of tests are green."
    status, both = told("is-seen", "changes-nothing", "--jobs", "2")
    assert (status, both[-1]) == (1, "2 bugs, 1 seen by a test, 1 not.")
    assert both[0] == first[1] + " kept"
    assert both[2].startswith("GREEN")
    assert (project / "one.py").read_text() == SOURCE
    (project / "tests" / "test_one.py").write_text("def test_half():\n    pass\n")
    assert told("is-seen")[1][-1] == "1 bugs, 0 seen by a test, 1 not."  # nothing is kept of it


@pytest.mark.book  # starts pytest
def test_tests_that_fail_without_a_bug_say_nothing(project):
    (project / "tests" / "test_one.py").write_text(TESTS.replace("== 2", "== 3"))
    with pytest.raises(
        BuildError, match=r"Without any bug the tests are red: test_one.py::test_ha"
    ):
        mutants.run(project, mutants.listed(project, ["is-seen"]))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"text": "x / 4"}, "the text of is-seen stands 0 times in one.py, and must once"),
        ({"text": "x"}, "the text of is-seen stands 2 times"),
        ({"bug": "x /"}, "is-seen is no Python"),
        ({"tests": "test_two.py"}, "there is no test_two.py, which is-seen names"),
        ({"name": "no-end"}, "no-end stands twice"),
    ],
)
def test_a_list_that_does_not_fit_is_refused(project, change, sentence):
    entries = json.loads((project / mutants.LIST).read_text())
    (project / mutants.LIST).write_text(json.dumps([entries[0] | change, *entries[1:]]))
    with pytest.raises(BuildError, match=sentence):
        mutants.listed(project)


def test_a_name_that_is_not_listed_is_refused(project):
    with pytest.raises(BuildError, match="has no none-such: --list shows what it has"):
        mutants.listed(project, ["is-seen", "none-such"])
