"""The build of the book, on a tiny project whose notebooks compute nothing."""

import json
import math
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from bs4 import BeautifulSoup

from supermarket.experiment.checks import check
from supermarket.experiment.statements import statements
from supermarket.validation import ParameterError
from tools import check_notebooks, kept, runs
from tools.check_pages import check_pages

ROOT = Path(__file__).resolve().parents[1]

PARAMETERS = "n: int = 10  # number of servers"
# What supermarket.experiment does in the real notebooks: verdicts, and the modules it loaded.
WORK = """\
import json, os, sys
from pathlib import Path
import supermarket.theory.{name}
from IPython.display import HTML, display
verdict = dict(claim="c", statement="bl-fixed-point", kind="paper", relation="equal", against=[3])
verdict |= dict(hypotheses=[], predicted=1, measured=1, low=0, high=2, confidence=0.9)
verdict |= dict(effective=None, outcome="holds", parameters=dict(n=n), source="s", refused="")
loaded = sorted(name for name in sys.modules if name.split(".")[0] == "supermarket")
provenance = dict(modules=loaded, libraries=["IPython"])
results = dict(verdicts=[verdict], provenance=provenance)
for kind, data in results.items():
    file = Path(os.environ["SUPERMARKET_BUILD"], kind, "{name}.json")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(data))
print("n is", n)
display(HTML('<table class="verdicts"><tbody><tr id="claim-c"><td>c</td></tr></tbody></table>'))
"""


def write_notebook(file, *code, title="An experiment"):
    cells = [{"cell_type": "markdown", "id": "title", "metadata": {}, "source": f"# {title}\n"}]
    for i, source in enumerate((PARAMETERS, *code)):
        cells.append(
            {
                "cell_type": "code",
                "id": f"code-{i}",
                "metadata": {"tags": [] if i else ["parameters"]},
                "source": source,
                "outputs": [],
                "execution_count": None,
            }
        )
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    content = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4}
    file.write_text(json.dumps(content | {"nbformat_minor": 5}))


def write_ledger(project, **changes):
    """Write the entry that both notebooks judge, and one that none does."""
    entry = {
        "paper": "P2000",
        "name": "N",
        "standing": "printed",
        "statement": "S",
        "pages": ["one"],
    }
    entries = [entry | changes | {"id": "bl-fixed-point"}, entry | {"id": "another"}]
    ledger = {"papers": {"P2000": "Paper"}, "statements": entries}
    (project / "supermarket" / "statements.yml").write_text(json.dumps(ledger))  # JSON is YAML


def make(project, *arguments, html=False, cache="off"):
    """Run the build as `make book` does; return its status, what it executed, and what it said."""
    command = [sys.executable, "-m", "tools.book", "--root", str(project), *arguments]
    # The kernels find the project's own package behind what PYTHONPATH names: the tests' copy.
    environment = {name: os.environ[name] for name in os.environ if name != "PYTHONPATH"}
    done = subprocess.run(
        command + ([] if html else ["--no-html"]),
        env=environment | {"SUPERMARKET_CACHE": str(cache)},
        cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )  # fmt: skip
    executed = {
        line.split()[1] for line in done.stdout.splitlines() if line.startswith("[") and "/" in line
    }
    return done.returncode, executed, done.stdout


def stale(project):
    """Return what a build would execute."""
    plan = runs.plan(project, "book", sorted((project / "notebooks").glob("*.ipynb")))
    return {run.name for run in plan if not runs.is_current(run, project)}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Make a project with two notebooks, `one` and `two`, execute them, and keep that beside it."""
    project = tmp_path_factory.mktemp("built") / "project"
    project.mkdir()
    shutil.copy(ROOT / "_config.yml", project)
    shutil.copytree(ROOT / "book" / "assets", project / "book" / "assets")
    (project / "book" / "references.bib").write_text("")
    (project / "book" / "intro.md").write_text("# Introduction\n\nThe share is $u_k$.\n")
    (project / "_toc.yml").write_text(
        "format: jb-book\nroot: book/intro\nparts:\n- caption: Experiments\n  chapters:\n"
        "  - file: notebooks/one\n  - file: notebooks/two\n"
    )
    (project / "requirements.txt").write_text("numpy==2.4.6\n")
    theory = project / "supermarket" / "theory"
    theory.mkdir(parents=True)
    (project / "notebooks").mkdir()
    (project / "notebooks" / "profiles.yml").write_text("book: {}\nsmoke: {two: {n: 2}}\n")
    write_ledger(project)
    for name in ("__init__", "one", "two", "unused"):
        (theory / f"{name}.py").write_text("def f():\n    return 1\n")
    (project / "supermarket" / "__init__.py").write_text('__all__ = ["a"]\nx = "b"\n')
    for name in ("one", "two"):
        write_notebook(project / "notebooks" / f"{name}.ipynb", WORK.format(name=name))
    status, executed, said = make(project, cache=project.with_name("kept"))
    assert (status, executed) == (0, {"one", "two"}), said
    return project


@pytest.fixture
def project(built, tmp_path):
    """Copy the executed project; nothing in it depends on where it lies, nor on dates."""
    return shutil.copytree(built, tmp_path / "project", copy_function=shutil.copyfile)


def add(file, text):
    file.write_text(file.read_text() + text)


@pytest.mark.book
def test_a_run_leaves_its_verdicts_where_readers_look(project):
    verdicts = json.loads((project / "build/verdicts/one.json").read_text())
    assert verdicts[0]["parameters"] == {"n": 10}
    assert (project / "build/provenance/two.json").is_file()


@pytest.mark.book
def test_nothing_changed_executes_nothing_and_restores_the_verdicts(project):
    published = project / "build/verdicts/one.json"
    original = published.read_text()
    published.write_text("[]")  # as after papermill by hand
    (project / "build/verdicts/gone.json").write_text("[]")
    status, executed, said = make(project)
    assert (status, executed) == (0, set()), said
    assert published.read_text() == original
    assert not (project / "build/verdicts/gone.json").exists()


@pytest.mark.book
@pytest.mark.parametrize(
    ("file", "text", "reruns"),
    [
        ("supermarket/theory/one.py", "x = 1\n", {"one"}),
        ("supermarket/theory/__init__.py", "x = 1\n", {"one", "two"}),
        ("supermarket/theory/unused.py", "x = 1\n", set()),
        ("supermarket/theory/one.py", "\n\n# a comment\n", set()),
        ("notebooks/profiles.yml", "\n# a comment\n", set()),
        ("book/intro.md", "More.\n", set()),
        ("requirements.txt", "scipy==1.17.1\n", set()),  # what is loaded is on record
        ("build/runs/book/two/two.ipynb", " ", {"two"}),
    ],
)
def test_an_edit_reruns_what_depends_on_it(project, file, text, reruns):
    add(project / file, text)
    assert stale(project) == reruns


@pytest.mark.book
@pytest.mark.parametrize(
    ("file", "old", "new", "reruns"),
    [
        ("supermarket/theory/one.py", "def f():", 'def f():\n    """Return 1."""', set()),
        ("supermarket/theory/one.py", "return 1", "return (1)", set()),
        ("supermarket/theory/one.py", "return 1", "return 2", {"one"}),
        # What a module offers to others is in nobody's numbers.
        ("supermarket/__init__.py", '"a"', '"c"', set()),
        ("supermarket/__init__.py", '"b"', '"c"', {"one", "two"}),
        ("notebooks/two.ipynb", "An experiment", "Another title", set()),
        ("notebooks/two.ipynb", "import json", "# a comment\\nimport json", set()),
        ("notebooks/two.ipynb", 'n is\\"', 'n =\\"', {"two"}),
        ("notebooks/two.ipynb", "number of servers", "how many servers", {"two"}),
        ("build/runs/book/two/record.json", '"ipython": "', '"ipython": "0.', {"two"}),
        ("build/runs/book/two/record.json", '"ipython": "', '"ipithon": "', {"two"}),
    ],
)
def test_only_what_is_computed_counts(project, file, old, new, reruns):
    """Prose, comments, docstrings and layout repeat nothing; what could change a number does."""
    text = (project / file).read_text()
    assert text.count(old) == 1
    (project / file).write_text(text.replace(old, new))
    assert stale(project) == reruns


@pytest.mark.book
def test_what_is_stale_is_executed_and_then_current(project):
    add(project / "supermarket/theory/one.py", "x = 1\n")
    add(project / "supermarket/theory/two.py", "# a comment\n")
    status, executed, said = make(project)
    assert (status, executed) == (0, {"one"}), said
    assert make(project)[1] == stale(project) == set()


@pytest.mark.book
def test_a_page_has_the_prose_of_today_and_the_results_of_its_run(project):
    assert make(project, "--profile", "smoke", html=True)[0] == 0  # with a parameter put in
    file = project / "notebooks/two.ipynb"
    file.write_text(file.read_text().replace("An experiment", "Of today"))
    status, executed, said = make(project, "--profile", "smoke", html=True)
    assert (status, executed) == (0, set()), said
    page = (project / "build/html/notebooks/two.html").read_text()
    assert "<h1>Of today<" in page
    assert "n is 2" in page
    taken = (project / "build/html/_sources/notebooks/two.ipynb").read_text()
    assert "injected-parameters" in taken


@pytest.mark.book
def test_a_fresh_checkout_takes_what_was_kept(project, built, tmp_path):
    kept = shutil.copytree(built.with_name("kept"), tmp_path / "kept")
    verdicts = (project / "build/verdicts/one.json").read_text()

    def fresh():
        shutil.rmtree(project / "build")

    fresh()
    status, executed, said = make(project, cache=kept)
    assert (status, executed) == (0, set()), said
    assert "Kept from earlier builds: one, two" in said
    assert (project / "build/verdicts/one.json").read_text() == verdicts
    # What would give something else is not taken, nor what was damaged since.
    fresh()
    add(project / "supermarket/theory/one.py", "x = 1\n")
    assert make(project, cache=kept)[1] == {"one"}
    fresh()
    for file in kept.glob("runs/book/two/*/two.ipynb"):
        add(file, " ")
    assert make(project, cache=kept)[1] == {"two"}
    # Both versions of `one` are there, for branches that take turns.
    fresh()
    (project / "supermarket/theory/one.py").write_text("def f():\n    return 1\n")
    assert make(project, cache=kept)[1] == set()
    # A profile has its own; whoever wants everything executed again says so.
    assert make(project, "--profile", "smoke", cache=kept)[1] == {"one", "two"}
    assert make(project, "--again", cache=kept)[1] == {"one", "two"}
    fresh()
    assert make(project, cache="off")[1] == {"one", "two"}


@pytest.mark.book
def test_without_room_to_keep_a_run_the_book_is_made_all_the_same(project, tmp_path):
    (tmp_path / "file").write_text("where the folder should be")
    status, executed, said = make(project, "--again", cache=tmp_path / "file")
    assert (status, executed) == (0, {"one", "two"}), said


def test_few_runs_are_kept_and_none_for_long(tmp_path, monkeypatch):
    monkeypatch.setenv("SUPERMARKET_CACHE", str(tmp_path / "kept"))
    run = tmp_path / "build" / "book" / "one"
    run.mkdir(parents=True)
    for number in range(kept.MOST + 3):
        (run / "record.json").write_text(str(number))
        kept.keep(run)
    found = list(kept.candidates(run))
    assert len(found) == kept.MOST
    newest = found[0]
    os.utime(newest, (0, 0))  # 1970
    (run / "record.json").write_text("one more")
    kept.keep(run)
    assert newest not in list(kept.candidates(run))


@pytest.mark.book
@pytest.mark.parametrize(
    ("changes", "reruns"),
    [
        ({"against": {"what": "another", "scale": 0.1, "why": "so"}}, {"one", "two"}),
        ({"standing": "derived"}, {"one", "two"}),
        ({"statement": "In other words", "pages": ["one", "two"]}, set()),
    ],
)
def test_an_edit_of_the_ledger_reruns_what_is_judged_by_it(project, changes, reruns):
    """What a verdict is told from is not in the notebook: an edit of it must not leave old ones."""
    write_ledger(project, **changes)
    assert stale(project) == reruns


@pytest.mark.book
def test_profiles_have_results_of_their_own(project):
    assert make(project, "--profile", "smoke")[1] == {"one", "two"}
    published = project / "build/verdicts/two.json"
    assert json.loads(published.read_text())[0]["parameters"] == {"n": 2}
    assert make(project)[1] == set()
    assert json.loads(published.read_text())[0]["parameters"] == {"n": 10}
    (project / "notebooks/profiles.yml").write_text("book: {}\nsmoke: {two: {n: 3}}\n")
    assert make(project, "--profile", "smoke")[1] == {"two"}


@pytest.mark.book
@pytest.mark.parametrize(
    ("profiles", "profile", "said"),
    [
        (
            "book: {two: {m: 3}}",
            "book",
            "yml, two: m is not a parameter of two: choose from n",
        ),
        ("book: {two: {nn: 3}}", "book", "(did you mean n?)"),
        ("book: {two: {n: 3.5}}", "book", "two: n = 3.5 is not a whole number"),
        ("book: {tow: {n: 3}}", "book", "(did you mean two?)"),
        ("book: {}", "bok", "PROFILE=bok is not in notebooks/profiles.yml (did you mean book?)"),
    ],
)
def test_a_misspelt_name_is_refused_before_anything_runs(project, profiles, profile, said):
    (project / "notebooks/profiles.yml").write_text(profiles)
    add(project / "supermarket/theory/one.py", "x = 1\n")  # so that there is something to run
    status, executed, output = make(project, "--profile", profile)
    assert (status, executed) == (1, set())
    assert said in output
    assert len(output.splitlines()) == 1


@pytest.mark.book
def test_a_failed_notebook_stops_the_book(project):
    html = project / "build/html"
    html.mkdir()
    (html / "index.html").write_text("of the last build")
    write_notebook(project / "notebooks/one.ipynb", WORK.format(name="one") + "1 / 0\n")
    add(project / "supermarket/theory/two.py", "x = 1\n")
    status, executed, said = make(project, html=True)
    assert (status, executed) == (1, {"one", "two"})
    assert "one FAILED" in said
    assert "ZeroDivisionError: division by zero" in said
    assert "\x1b" not in said
    assert not html.exists()
    assert not list(project.glob("build/runs/book/one*"))
    # The other one was finished and kept; the failed one is tried again.
    assert make(project)[:2] == (1, {"one"})


@pytest.mark.book
def test_after_a_failed_build_no_verdict_of_before_counts_and_the_notebook_is_kept(project):
    build = project / "build"
    assert check(build)["profile"] == "book"
    assert check(build)["outcomes"]["holds"] == 2
    whole = WORK.format(name="one")
    write_notebook(project / "notebooks/one.ipynb", whole + "1 / 0\n")
    assert make(project)[0] == 1
    with pytest.raises(ParameterError, match=r"build holds no verdicts .* once `make book` has"):
        check(build)
    assert not (build / "provenance").exists()
    failed = json.loads((build / "failed/one.ipynb").read_text())
    outputs = [output for cell in failed["cells"] for output in cell.get("outputs", [])]
    assert [output["ename"] for output in outputs if "ename" in output] == ["ZeroDivisionError"]
    assert "n is 10" in json.dumps(outputs)
    # Once it succeeds, all is as before.
    write_notebook(project / "notebooks/one.ipynb", whole)
    assert make(project)[:2] == (0, {"one"})
    assert not (build / "failed").exists()
    assert check(build)["profile"] == "book"
    (build / "verdicts/one.json").write_text("[]")  # as by hand, after the build
    with pytest.raises(ParameterError, match=r"one\.json is not as the book left it"):
        check(build)
    # A build that is refused before anything runs takes nothing away.
    assert make(project)[0] == 0
    assert make(project, "--profile", "bok")[0] == 1
    assert check(build)["profile"] == "book"


@pytest.mark.book
@pytest.mark.parametrize(
    ("code", "said"),
    [
        (
            "class ParameterError(ValueError): pass\nraise ParameterError('n = 0 is too small.')",
            "ParameterError: n = 0 is too small.",
        ),
        ("n", "one.ipynb left no verdicts/one.json"),
        (WORK.format(name="one").replace("claim=", "calim="), "left no verdicts/one.json"),
        (WORK.format(name="one").replace("modules=", "m="), "left no provenance/one.json"),
        (WORK.format(name="one").replace("libraries=", "m="), "and the libraries it loaded"),
    ],
)
def test_a_run_without_what_it_owes_fails_in_one_sentence(project, code, said):
    write_notebook(project / "notebooks/one.ipynb", code)
    status, executed, output = make(project)
    assert (status, executed) == (1, {"one"})
    assert said in output
    assert "Traceback" not in output
    assert not list(project.glob("build/runs/book/one*"))


@pytest.mark.book
@pytest.mark.parametrize(
    ("code", "options", "said"),
    [
        (
            "import os\nos.kill(os.getpid(), 9)",
            (),
            "Stopped: its kernel died, as when memory runs out.",
        ),
        ("while True:\n    pass", ("--limit", "0.05"), "Stopped: it took more than 0.05 minutes."),
        (
            "import time\ntime.sleep(60)",
            ("--cell-limit", "0.04"),
            "Stopped: one of its cells took more than 0.04 minutes.",
        ),
    ],
)
def test_a_kernel_that_dies_or_never_ends_gets_one_line(project, code, options, said):
    write_notebook(project / "notebooks/one.ipynb", "print('so far')", code)
    add(project / "supermarket/theory/two.py", "x = 1\n")
    status, executed, output = make(project, *options)
    assert (status, executed) == (1, {"one", "two"})
    lines = output.splitlines()
    assert lines[lines.index(said) - 1].split()[1:3] == ["one", "FAILED"]
    assert lines[lines.index(said) + 1] == "build/failed/one.ipynb shows where."
    assert "Traceback" not in output
    assert "so far" in (project / "build/failed/one.ipynb").read_text()
    assert (project / "build/runs/book/two").is_dir()


def started(project, *arguments):
    """Start a build as `make` does, in a group of its own."""
    command = [sys.executable, "-m", "tools.book", "--root", project, "--no-html", *arguments]
    environment = {name: os.environ[name] for name in os.environ if name != "PYTHONPATH"}
    return subprocess.Popen(
        list(map(str, command)), env=environment | {"SUPERMARKET_CACHE": "off"}, cwd=ROOT,
        text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip


@pytest.mark.book
def test_a_second_build_is_kept_out_and_all_that_a_killed_one_started_ends_with_it(project):
    pids = project / "pids"
    slow = f"import os, time\nopen({str(pids)!r}, 'a').write(f'{{os.getpid()}}\\n')\ntime.sleep(60)"
    write_notebook(project / "notebooks/one.ipynb", slow)
    first = started(project)
    end = time.monotonic() + 60
    while not (pids.is_file() and pids.read_text().endswith("\n")):
        assert time.monotonic() < end
        time.sleep(0.05)
    status, executed, said = make(project)
    assert (status, executed) == (1, set())
    assert said == f"Another build is at work in {project}: wait for it.\n"
    started_by_it = psutil.Process(first.pid).children(recursive=True)
    assert int(pids.read_text()) in {process.pid for process in started_by_it}
    first.kill()
    first.wait()
    first.stdout.close()
    _, alive = psutil.wait_procs(started_by_it, timeout=10)
    for process in alive:
        process.kill()
    assert not alive
    # What it was at goes on as if nothing had been.
    write_notebook(project / "notebooks/one.ipynb", WORK.format(name="one"))
    assert make(project)[:2] == (0, {"one"})
    assert not list(project.glob("build/runs/book/*.part"))


@pytest.mark.book
def test_killed_at_random_moments_a_build_loses_and_repeats_nothing(project, long):
    for name in ("one", "two"):
        add(project / f"supermarket/theory/{name}.py", "x = 1\n")
    whole = shutil.copytree(project, project.with_name("whole"))
    assert make(whole)[:2] == (0, {"one", "two"})
    moments = random.Random(2)
    kept = {}
    for moment in range(50 if long else 5):
        if moment % 5 == 0:  # all of it again
            shutil.rmtree(project / "build/runs/book")
            kept = {}
        build = started(project, "--jobs", "1")
        time.sleep(moments.uniform(0.5, 6))
        children = psutil.Process(build.pid).children(recursive=True)
        build.kill()
        build.wait()
        build.stdout.close()
        assert not psutil.wait_procs(children, timeout=10)[1]
        records = {file: file.stat().st_mtime_ns for file in project.glob("build/runs/*/*/record*")}
        assert {file: records.get(file) for file in kept} == kept
        kept = records
    status, executed, said = make(project)
    assert status == 0, said
    assert executed == {"one", "two"} - {file.parent.name for file in kept}
    for file in ("verdicts/one.json", "verdicts/two.json"):
        assert (project / "build" / file).read_bytes() == (whole / "build" / file).read_bytes()


def test_an_unknown_profile_is_refused_before_anything_is_installed(tmp_path):
    for file in ("Makefile", "requirements.txt", "pyproject.toml", "notebooks/profiles.yml"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / file, tmp_path / file)
    for target in ("book", "install", "pdf"):
        done = subprocess.run(
            ["make", target, "PROFILE=nope"], cwd=tmp_path, capture_output=True, text=True,
            check=False, env={"PATH": os.environ["PATH"]},  # not as a part of another make
        )  # fmt: skip
        assert done.stderr.startswith(
            "PROFILE=nope is not in notebooks/profiles.yml: use smoke, other, book, full.\n"
        )
        assert (done.returncode, done.stdout) == (2, "")
        assert not (tmp_path / ".venv").exists()


@pytest.mark.book
def test_a_committed_notebook_with_results_stops_the_book(project):
    shutil.copy(project / "build/runs/book/one/one.ipynb", project / "notebooks/one.ipynb")
    status, executed, said = make(project)
    assert (status, executed) == (1, set())
    assert "one.ipynb holds execution counts" in said


@pytest.mark.book
def test_the_pages(project):
    html = project / "build/html"
    status, _, said = make(project, html=True)
    assert status == 0, said
    assert f"{html}/index.html" in said
    page = (html / "notebooks/one.html").read_text()
    assert "n is 10" in page
    assert "number of servers" not in page  # the parameters cell is hidden on the page,
    download = html / "_sources/notebooks/one.ipynb"
    assert "number of servers" in download.read_text()  # and stays in the file to download,
    assert str(project) not in download.read_text()  # which tells nothing about this machine
    assert (html / "_static/mathjax/tex-chtml-full.js").is_file()
    assert "supermarket run one --out mine" in BeautifulSoup(page, "html.parser").get_text()
    taken = {file.name: file for file in html.glob("_downloads/*/*")}
    assert set(taken) == {
        f"{name}{end}"
        for name in ("one", "two")
        for end in (".ipynb", ".verdicts.json", ".provenance.json")
    }
    assert (
        taken["one.verdicts.json"].read_text() == (project / "build/verdicts/one.json").read_text()
    )

    status, executed, said = make(project, html=True)
    assert (status, executed) == (0, set())
    assert "Nothing has changed" in said

    # What Sphinx warns of, and what only our own checks see.
    for file, text, fault in [
        ("book/intro.md", "\nSee {ref}`nowhere`.\n", "undefined label: 'nowhere'"),
        ("book/intro.md", '\n<img src="missing.png">\n', "an image without alternative text"),
    ]:
        original = (project / file).read_text()
        add(project / file, text)
        status, executed, said = make(project, html=True)
        assert (status, executed) == (1, set())
        assert fault in said
        assert not html.exists()
        (project / file).write_text(original)


TABLE = '<table class="verdicts"><tbody>'
CLEAN = """\
<html><body><h1 id="top">A page</h1><a href="#top">up</a><a href="b.html#there">there</a>
<a href="https://example.org/x#y">elsewhere</a><img src="i.png" alt="A line that falls">
<span class="math">\\(\\lambda &lt; 1\\)</span><code>$$ \\lambda {glue:text}`x`</code>
Between $5 and $7.<div class="output text_html">x</div>
<table class="verdicts"><tbody><tr id="claim-c"><td>c</td></tr>
<tr><td><a href="b.html#claim-d">d</a></td></tr></tbody></table></body></html>
"""
VERDICT = {
    "claim": "c", "kind": "paper", "relation": "equal", "against": [1.0, 3.0], "predicted": 2.0,
    "measured": 2.1, "low": 1.9, "high": 2.3, "confidence": 0.99, "outcome": "holds",
}  # fmt: skip


@pytest.mark.parametrize(
    ("extra", "fault"),
    [
        ("", None),
        ('<div class="output traceback"><pre>KeyError: 3</pre></div>', "error output: KeyError: 3"),
        ('<div class="output stderr"><pre>a warning</pre></div>', "error output: a warning"),
        ('<div class="output text_plain"><pre>True</pre></div>', "a bare value: True"),
        (f"{TABLE}<tr><td>no place</td></tr></table>", "a claim without an address: no place"),
        (f'{TABLE}<tr id="x"><td>c</td></tr></table>', "a claim without an address: c"),
        ('<img src="i.png">', "image without alternative text: i.png"),
        ('<img src="i.png" alt=" ">', "image without alternative text"),
        ('<a href="c.html">c</a>', "broken link: c.html"),
        ('<img src="j.png" alt="A point">', "broken link: j.png"),
        ('<a href="b.html#gone">b</a>', "not on its page: b.html#gone"),
        ('<a href="#gone">b</a>', "not on its page: #gone"),
        ('<a href="../outside.html">b</a>', "link out of the book"),
        ('<script src="https://cdn.example.org/x.js"></script>', "fetches https://cdn.example.org"),
        ('<link rel="stylesheet" href="//cdn.example.org/x.css">', "fetches //cdn.example.org"),
        ("<p>So $$ x = 1 $$ holds</p>", "raw TeX"),
        ("<p>So $\\lambda$ holds</p>", "raw TeX"),
        ("<td>$u_k$</td>", "raw TeX"),
        ("<td>\\frac12</td>", "raw TeX"),
        ("<p>{glue:text}`x:.3f`</p>", "unreplaced MyST"),
        ("<p>{prf:ref}`x`</p>", "unreplaced MyST"),
    ],
)
def test_each_check_of_the_pages_catches_its_fault(tmp_path, extra, fault):
    (tmp_path / "a.html").write_text(CLEAN.replace("</body>", f"{extra}</body>"))
    (tmp_path / "b.html").write_text('<p id="there">There</p><p id="claim-d">d</p>')
    (tmp_path / "i.png").write_bytes(b"")
    faults = check_pages(tmp_path, ["a", "b"])
    if fault is None:
        assert faults == []
    else:
        assert len(faults) == 1
        assert faults[0].startswith("a.html: ")
        assert fault in faults[0]


def test_the_pages_must_all_be_there_and_no_style_is_fetched(tmp_path):
    (tmp_path / "s.css").write_text("p { background: url('https://example.org/x.png') }")
    assert check_pages(tmp_path, ["a"]) == [
        "a.html: listed in _toc.yml, but not built",
        "s.css: fetches https://example.org/x.png",
    ]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({}, None),
        ({"predicted": 0.723, "measured": 1e150, "low": -1e150, "high": 3e150,
          "outcome": "too blunt"},
         "measured 1e+150, more than 1000 times the predicted 0.723"),
        ({"measured": 2100.0, "low": 2000.0, "high": 2200.0, "outcome": "does not hold"},
         "more than 1000 times"),
        ({"measured": 2100.0, "low": 2000.0, "high": 2200.0, "kind": "negative control"}, None),
        ({"measured": 2100.0, "low": 2000.0, "high": 2200.0, "relation": "at least"}, None),
        # Next to nothing beside what it is told from: measured as nothing.
        ({"predicted": 1e-6, "measured": 0.01, "low": -0.02, "high": 0.04, "against": [0.2]}, None),
        ({"predicted": 1e-6, "measured": 0.3, "low": -0.02, "high": 0.62, "against": [0.2],
          "outcome": "too blunt"}, "more than 1000 times"),
        ({"low": 0.9}, "counts as holding, but the interval does not exclude 1"),
        ({"low": 0.9, "outcome": "too blunt"}, None),
        ({"high": 3.0}, "does not exclude 3"),
        ({"predicted": math.nan}, "not finite"),
        ({"high": math.inf}, "not finite"),
        ({"against": [math.nan]}, "not finite"),
        ({"low": 2.1, "high": 2.1}, "no width"),
        ({"low": 2.1, "high": 2.1, "confidence": None}, None),
        ({"low": None, "high": None, "outcome": "too short"}, None),
        ({"claim": "another"}, "no row of the page has its address, claim-another"),
    ],
)  # fmt: skip
def test_the_data_of_verdicts_is_looked_at(tmp_path, change, fault):
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "_downloads" / "abc").mkdir(parents=True)
    page = f'{TABLE}<tr id="claim-c"><td>c</td></tr></tbody></table>'
    (tmp_path / "notebooks" / "one.html").write_text(page)
    data = tmp_path / "_downloads" / "abc" / "one.verdicts.json"
    data.write_text(json.dumps([VERDICT | change]))
    faults = check_pages(tmp_path, [])
    assert len(faults) == (fault is not None)
    assert all(one.startswith("one: ") and fault in one for one in faults)


def test_every_statement_has_a_place_on_the_page_of_the_ledger(tmp_path, monkeypatch):
    (tmp_path / "book").mkdir()
    places = "".join(f'<p id="{name}"></p>' for name in [*statements()][1:])
    (tmp_path / "book" / "statements.html").write_text(places)
    assert check_pages(tmp_path, []) == [
        f"book/statements.html: no place for the statement {next(iter(statements()))}"
    ]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({}, None),
        ({"outputs": [{"output_type": "stream", "name": "stdout", "text": "x"}]}, "outputs"),
        ({"execution_count": 1}, "execution counts"),
        ({"metadata": {"papermill": {}}}, "times of execution"),
        ({"metadata": {"tags": ["injected-parameters"]}}, "injected parameters"),
    ],
)
def test_no_results_in_a_committed_notebook(tmp_path, change, fault, capsys):
    file = tmp_path / "notebooks" / "one.ipynb"
    file.parent.mkdir()
    write_notebook(file, "n")
    content = json.loads(file.read_text())
    content["cells"][-1] |= change
    file.write_text(json.dumps(content))
    assert check_notebooks.main(tmp_path) == (0 if fault is None else 1)
    assert (fault or "") in capsys.readouterr().err
