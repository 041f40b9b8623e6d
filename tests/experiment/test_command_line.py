"""`python -m supermarket`: what it prints, what it leaves, and how it ends."""

import json
import os
import re
import subprocess
import sys
import tomllib
from hashlib import sha256
from pathlib import Path

import pytest
from typer.testing import CliRunner

import supermarket
from supermarket.__main__ import app
from supermarket.experiment import plans
from supermarket.experiment.grids import Grid
from supermarket.experiment.sweeps import sweep

pytestmark = pytest.mark.book  # kernels and processes of their own: once is enough


def called(*words):
    """Run the command line in this process."""
    return CliRunner().invoke(app, list(map(str, words)), catch_exceptions=False)


def test_list_and_describe_say_what_there_is(notebooks):
    assert called("list").stdout == "tiny  A tiny experiment\n"
    assert json.loads(called("list", "--json").stdout) == [
        {"name": "tiny", "title": "A tiny experiment"}
    ]
    text = called("describe", "tiny").stdout
    assert text.startswith("A tiny experiment\n\nHow large is $a_1 b_1$")
    assert "  lam=0.5  # mean of each, # in jobs\n" in text
    assert "  d='[1, 2]'  # factors to compare (1 <= each <= 10)\n" in text
    about = json.loads(called("describe", "tiny", "--json").stdout)
    assert about["parameters"][2] == {
        "name": "d", "type": "list", "default": [1, 2], "meaning": "factors to compare",
        "allowed": "1 <= each <= 10",
    }  # fmt: skip


@pytest.mark.parametrize("end", [">&-", "2>&-", "| head -0", "> /dev/full"])
def test_where_nobody_can_read_there_is_no_traceback(notebooks, end):
    line = f'"{sys.executable}" -m supermarket list {end}'
    done = subprocess.run(line, shell=True, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1)
    assert done.stderr in ("", "A file: No space left on device.\n")


def test_beside_a_notebook_that_is_none_the_others_are_listed(notebooks):
    (notebooks / "odd.ipynb").write_text("{}")
    done = called("list")
    assert (done.exit_code, done.stdout) == (2, "tiny  A tiny experiment\n")
    assert (
        done.stderr
        == f"{notebooks / 'odd.ipynb'} is no Jupyter notebook of version 4: mend or remove it.\n"
    )
    assert called("describe", "tiny").exit_code == 0


@pytest.mark.parametrize(
    "words",
    [("sweep", "tiny", "y" * 3000, "--out", "o"), ("run", "a\nb" * 999, "--out", "o"),
     ("run", "tiny", "c\nd" * 999, "--out", "o"), ("run", "tiny", "e=\n" * 999, "--out", "o"),
     ("check", "f\ng" * 999)],
)  # fmt: skip
def test_a_sentence_stays_one_of_readable_length(notebooks, words):
    done = called(*words)
    assert done.exit_code in (1, 2)
    assert done.stderr.count("\n") == 1
    assert len(done.stderr) <= 501


@pytest.mark.parametrize(
    "change",
    [{"predicted": "a"}, {"low": 10**400}, {"outcome": "yes"}, {"against": None}, {"low": None},
     {"kind": ["paper"]}, {"claim": 1}, {"low": 2.0}, {"parameters": []}, {"hypotheses": [1]}],
)  # fmt: skip
def test_a_verdict_that_is_none_is_damaged(notebooks, tmp_path, change):
    done = called("check", written(tmp_path / "out", {}, change))
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.endswith("some.json is damaged: run the experiment again.\n")


def test_the_installed_command_is_that_of_the_module(notebooks, tmp_path):
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    module, _, function = project["scripts"]["supermarket"].partition(":")
    # As pip writes it. A file of the user's hides nothing from it, whatever its name.
    (tmp_path / "re.py").write_text("raise SystemExit('a file of the user')")
    script = tmp_path / "bin" / "supermarket"
    script.parent.mkdir()
    script.write_text(f"import sys\nfrom {module} import {function}\nsys.exit({function}())\n")
    home = str(Path(supermarket.__file__).parents[1])
    for words, status in ((["list"], 0), (["--help"], 0), (["run"], 2), ([], 0)):
        done = [
            subprocess.run(
                [sys.executable, *start, *words], cwd=folder, env=os.environ | {"PYTHONPATH": home},
                capture_output=True, text=True, check=False,
            )
            for start, folder in (([str(script)], tmp_path), (["-m", "supermarket"], notebooks))
        ]  # fmt: skip
        assert [one.returncode for one in done] == [status, status]
        said = [one.stdout + one.stderr for one in done]
        assert said[0] == said[1].replace("python -m supermarket", "supermarket")


def test_run_leaves_notebook_page_figures_verdicts_and_their_origin(notebooks, tmp_path):
    out = tmp_path / "out"
    done = called("run", "tiny", "n=50", "d=2", "--out", out, "--json")
    assert done.exit_code == 0
    result = json.loads(done.stdout)
    assert [verdict["claim"] for verdict in result["verdicts"]] == ["mean times 2"]
    assert result["verdicts"] == json.loads((out / "verdicts" / "tiny.json").read_text())
    assert json.loads((out / "provenance" / "tiny.json").read_text())["parameters"]["n"] == 50
    assert (out / "figures" / "draws.png").read_bytes().startswith(b"\x89PNG")
    executed = json.loads((out / "tiny.ipynb").read_text())
    assert "n = 50" in "".join("".join(cell["source"]) for cell in executed["cells"])
    assert {file.name for file in out.iterdir()} - {"mathjax.js"} == {
        "tiny.ipynb", "tiny.html", "figures", "verdicts", "provenance",
    }  # fmt: skip
    page = (out / "tiny.html").read_text()
    assert '<figure><img alt="Draws, in order." src="data:image/png;base64,' in page
    assert "<figcaption>A &lt; B.</figcaption>" in page
    assert r"\(a_1 b_1\)</span> &amp; <" in page
    assert r"\(x &lt; y\)</span>" in page
    assert r"\[a_1 \to b_1.\]" in page
    assert '<div class="theorem"><p><strong>Theorem: Of means</strong>' in page
    assert "[A paper]" in page
    assert "{prf" not in page
    assert not re.search(r'(src|href)="(https?:)?//', page)
    # The claims are looked at again later, and a second run does not take their place.
    assert called("check", out).exit_code == (result["verdicts"][0]["outcome"] == "does not hold")
    again = called("run", "tiny", "--out", out)
    assert again.exit_code == 2
    assert "holds the results of an earlier run: choose another folder." in again.stderr


@pytest.mark.parametrize(
    ("words", "status", "sentence"),
    [
        (["lam=1.5"], 2, "lam = 1.5 is out of range: choose 0 < lam < 1.\n"),
        (["mood=raise"], 1, "tiny failed (ZeroDivisionError: nothing to divide by): "),
    ],
)
def test_what_the_notebook_refuses_is_one_sentence(notebooks, tmp_path, words, status, sentence):
    done = called("run", "tiny", *words, "--out", tmp_path / "out")
    assert (done.exit_code, done.stdout) == (status, "")
    assert done.stderr.startswith(sentence)
    assert done.stderr.count("\n") == 1
    left = [file.name for file in (tmp_path / "out").glob("*")]
    assert left == ([] if status == 2 else ["tiny.failed.ipynb"])


def test_what_the_command_line_refuses_starts_no_kernel(notebooks, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "papermill", None)
    out = tmp_path / "out"
    (tmp_path / "bad.yaml").write_text("lamb: [0.5]\n")
    for words, sentence in (
        (("describe", "tny"), "tny is not an experiment: choose from tiny (did you mean tiny?)."),
        (("run", "tiny", "nn=1", "--out", out), "nn is not a parameter of tiny: choose from n,"),
        (("run", "tiny", "n=1e6", "--out", out), "n = 1000000.0 is not a whole number"),
        (("sweep", "tiny", tmp_path / "bad.yaml", "--out", out), "lamb is not a parameter of"),
        (
            ("sweep", "tiny", tmp_path / "no.yaml", "--out", out),
            f"{tmp_path}/no.yaml can't be read",
        ),
        (("check", tmp_path), f"{tmp_path} holds no verdicts of a run or sweep"),
    ):
        done = called(*words)
        assert (done.exit_code, done.stdout) == (2, "")
        assert done.stderr.startswith(sentence)
        assert done.stderr.count("\n") == 1
    assert not out.exists()


def test_sweep_and_check_in_a_process_as_a_person_starts_it(command, tmp_path):
    (tmp_path / "grid.yaml").write_text("lam: [0.5, 2.0]\nn: [200]\nseed: 1\n")
    done = command("sweep", "tiny", "grid.yaml", "--out", "s", "--workers", 1, "--replicas", 2)
    assert done.returncode == 1  # lam = 2 fails
    first, second = done.stdout.splitlines()
    assert first == "4 points in s, 0 of them finished before, 2 failed: 6 rows."
    assert second == "`check s` shows the errors, and --retry computes these points again."
    assert done.stderr == ""  # not a terminal: no bar
    done = command("sweep", "tiny", "grid.yaml", "--out", "s", "--replicas", 2, "--json")
    assert json.loads(done.stdout) == {
        "points": 4, "before": 4, "failed": 2, "rows": 6, "out": "s",
    }  # fmt: skip
    done = command("check", "s")
    assert done.returncode == 1
    *_, errors, counts = done.stdout.splitlines()
    assert errors == "2 points failed: ParameterError: lam = 2 is out of range: choose 0 < lam < 1."
    assert counts == f"4 holds, {NONE}, 2 points failed"


NONE = "0 does not hold, 0 too blunt, 0 too short, 0 unsettled"
GOOD = {
    "claim": "c", "statement": "tiny-mean", "kind": "paper", "relation": "equal", "against": [1.5],
    "hypotheses": [], "predicted": 1.0, "measured": 1.01, "low": 0.9, "high": 1.1,
    "confidence": 0.99, "effective": 10.0, "outcome": "holds", "parameters": {}, "source": "s",
    "refused": "",
}  # fmt: skip
BAD, BLUNT, SHORT, CONTROL = (
    {"outcome": "does not hold", "low": 1.001},
    {"outcome": "too blunt", "high": 1.6},
    {"outcome": "too short", "low": None, "high": None, "effective": None, "refused": "why"},
    {"kind": "negative control", "against": []},
)


def written(out, *changes, page="some"):
    """Leave verdicts in a folder, as a run does."""
    (out / "verdicts").mkdir(parents=True, exist_ok=True)
    verdicts = json.dumps([GOOD | change for change in changes])
    (out / "verdicts" / f"{page}.json").write_text(verdicts)
    return out


@pytest.mark.parametrize(
    ("change", "status", "counts"),
    [
        ({}, 0, f"2 holds, {NONE}"),
        (BAD, 1, "1 holds, 1 does not hold, 0 too blunt, 0 too short, 0 unsettled"),
        (BLUNT, 0, "1 holds, 0 does not hold, 1 too blunt, 0 too short, 0 unsettled"),
        (SHORT, 0, "1 holds, 0 does not hold, 0 too blunt, 1 too short, 0 unsettled"),
        (CONTROL | BAD, 0, f"1 holds, {NONE}, 1 controls refused"),
        (CONTROL, 1, f"1 holds, {NONE}, 1 controls not refused"),
        (CONTROL | SHORT, 0, f"1 holds, {NONE}, 1 controls not refused"),
    ],
)
def test_check_fails_for_a_claim_that_does_not_hold_or_a_control_that_does(
    notebooks, tmp_path, change, status, counts
):
    done = called("check", written(tmp_path / "out", {}, change))
    assert (done.exit_code, done.stdout.splitlines()[-1]) == (status, counts)


def test_check_says_what_is_missing_of_a_sweep(notebooks, tmp_path):
    out = tmp_path / "sweep"
    sweep("tiny", Grid({"n": [200]}, replicas=2), out, workers=1)
    complete = called("check", out, "--json")
    assert complete.exit_code == 0
    result = json.loads(complete.stdout)
    assert [v["outcome"] for v in result["verdicts"]] == ["holds"] * 4
    assert result["verdicts"][0]["against"] == [0.25, 0.75]
    assert result["verdicts"][0]["hypotheses"] == []
    next(out.glob("points/*")).unlink()
    partial = called("check", out)
    assert partial.exit_code == 1
    assert partial.stdout.endswith(f"2 holds, {NONE}, 1 points missing\n")
    assert plans.plan(out)["points"] == 2


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (
            {"low": 0.91, "high": 1.11},
            "holds          c: predicted = 1, measured 1.01 ± 0.10, against 1.50",
        ),
        (
            {"relation": "at most", "against": [], "hypotheses": ["n is large"]}
            | {"low": 0.91, "high": 1.11},
            "holds          c: predicted ≤ 1, measured 1.01 ± 0.10 "
            "[outside its hypotheses: n is large]",
        ),
        (SHORT, "too short      c: predicted = 1, measured 1.01, no interval, against 1.5: why"),
        (
            CONTROL | BAD,
            "refused        c: predicted = 1, measured 1.0100 (1.0010 to 1.1000) "
            "[negative control]",
        ),
        (
            {"relation": "exactly", "confidence": None, "low": 1.01, "high": 1.01, "against": []}
            | {"kind": "self-check"},
            "holds          c: predicted exactly 1, computed 1.01 [self-check]",
        ),
    ],
)
def test_a_line_says_relation_against_hypotheses_and_kind(notebooks, tmp_path, change, line):
    first, _ = called("check", written(tmp_path / "out", change)).stdout.splitlines()
    assert first == line


def test_what_a_file_says_can_not_talk_to_the_terminal(notebooks, tmp_path):
    out = written(tmp_path / "out", {"claim": "a\x1b[2J\nholds b", "refused": "\x07"})
    assert called("check", out).stdout.startswith("holds          a\\x1b[2J\\nholds b: ")
    file = notebooks / "tiny.ipynb"
    file.write_text(file.read_text().replace("A tiny", "\\u001b]0;A tiny"))
    assert called("list").stdout == "tiny  \\x1b]0;A tiny experiment\n"


def test_failed_and_summary_print_what_a_person_wants(notebooks, tmp_path):
    out = written(tmp_path / "out", {}, BAD, BLUNT, CONTROL | BAD)
    lines = called("check", out, "--failed").stdout.splitlines()
    assert [line[:13].strip() for line in lines[:-1]] == ["does not hold", "too blunt"]
    lines = called("check", out, "--summary").stdout.splitlines()
    assert [line.split() for line in lines[1:3]] == [
        ["paper", "1", "1", "1", "0", "0"],
        ["negative", "control", "0", "1", "0", "0", "0"],
    ]
    result = json.loads(called("check", out, "--summary", "--json").stdout)
    assert result["kinds"]["paper"]["too blunt"] == 1
    assert "verdicts" not in result


def test_damaged_or_older_verdicts_get_one_sentence(notebooks, tmp_path):
    out = tmp_path / "out"
    file = written(out, {}) / "verdicts" / "some.json"
    for text, sentence in (
        ("[", "some.json is damaged: run the experiment again."),
        ("[1]", "some.json is damaged: run the experiment again."),
        (json.dumps([{"claim": "c", "holds": True}]), "some.json is of another version"),
    ):
        file.write_text(text)
        done = called("check", out)
        assert (done.exit_code, done.stdout) == (2, "")
        assert sentence in done.stderr
        assert done.stderr.count("\n") == 1


# --- the book ------------------------------------------------------------------------------------


def book(out, profile="book"):
    """Make a folder of runs a built book, as `make book` does."""
    files = (out / "verdicts").glob("*.json")
    hashes = {file.name: sha256(file.read_bytes()).hexdigest() for file in files}
    (out / "profile.json").write_text(json.dumps({"profile": profile, "verdicts": hashes}))
    return out


def known(notebooks, *entries, profile="book"):
    (notebooks / "findings.yml").write_text(json.dumps({profile: entries}))  # JSON is YAML


ENTRY = {"page": "some", "claim": "c", "outcome": "does not hold", "why": "It is small."}


@pytest.mark.parametrize(
    ("changes", "entries", "surprise"),
    [
        ([{}, CONTROL | BAD | {"claim": "control"}], [], None),
        ([BAD], [ENTRY], None),
        ([BAD, BAD], [ENTRY, ENTRY], None),
        ([BAD], [], "some: c: does not hold, and findings.yml does not list it: mend the cause"),
        ([BLUNT], [], "some: c: too blunt, and findings.yml does not list it"),
        ([SHORT], [], "some: c: too short, and findings.yml does not list it"),
        ([BAD, BAD], [ENTRY], "some: c: does not hold, and findings.yml does not list it"),
        ([CONTROL], [], "some: c: holds, and findings.yml does not list it"),
        ([CONTROL | BLUNT], [], "some: c: too blunt, and findings.yml does not list it"),
        ([BLUNT], [ENTRY], "some: c: too blunt, and findings.yml says does not hold: mend"),
        ([{}], [ENTRY], "some: c: listed in findings.yml as does not hold, which it no longer is"),
        (
            [{"claim": "other"}],
            [ENTRY],
            "some: c: listed in findings.yml as does not hold, and no longer on that page: take",
        ),
        ([BAD], [ENTRY | {"page": "elsewhere"}, ENTRY], "elsewhere: c: listed in findings.yml as"),
    ],
)
def test_a_book_is_held_to_its_findings(notebooks, tmp_path, changes, entries, surprise):
    known(notebooks, *entries)
    out = book(written(tmp_path / "build", *changes))
    done = called("check", out, "--failed")
    assert done.exit_code == (1 if surprise else 0), done.stdout
    surprises = json.loads(called("check", out, "--json").stdout)["surprises"]
    assert len(surprises) == (1 if surprise else 0)
    if surprise:
        assert surprises[0].startswith(surprise)
        assert surprises[0] in done.stdout
    elif entries:
        assert "[known: It is small.]" in done.stdout


def test_the_default_book_is_held_to_its_findings_even_if_none_are_listed(notebooks, tmp_path):
    """Else it would be enough to lose the file, for a claim to turn blunt unseen."""
    out = book(written(tmp_path / "build", {}, BLUNT | {"claim": "wide"}))
    done = called("check", out, "--failed")
    assert done.exit_code == 1
    assert "some: wide: too blunt, and findings.yml does not list it" in done.stdout


def test_a_profile_without_findings_is_checked_as_any_folder(notebooks, tmp_path):
    known(notebooks, ENTRY)
    assert called("check", book(written(tmp_path / "a", BLUNT), "smoke")).exit_code == 0
    assert called("check", book(written(tmp_path / "b", BAD), "smoke")).exit_code == 1
    assert called("check", written(tmp_path / "c", BLUNT)).exit_code == 0  # a folder of runs


def test_verdicts_that_are_not_the_books_are_refused(notebooks, tmp_path):
    known(notebooks, ENTRY)
    out = book(written(tmp_path / "build", BAD))
    assert called("check", out).exit_code == 0
    written(out, {}, page="mine")  # a notebook executed by hand
    done = called("check", out)
    assert done.exit_code == 2
    assert "mine.json is not as the book left it: `make book` puts it right." in done.stderr
    (out / "verdicts" / "mine.json").unlink()
    (out / "verdicts" / "some.json").unlink()
    assert called("check", out).exit_code == 2
    written(out, BAD, BAD)
    assert "some.json is not as the book left it" in called("check", out).stderr
    (out / "profile.json").write_text("{}")
    assert "profile.json is damaged" in called("check", out).stderr


@pytest.mark.parametrize("lacks", ["page", "claim", "outcome", "why"])
def test_a_faulty_finding_gets_one_sentence(notebooks, tmp_path, lacks):
    out = book(written(tmp_path / "build", BAD))
    known(notebooks, {key: value for key, value in ENTRY.items() if key != lacks})
    done = called("check", out)
    assert done.exit_code == 2
    assert f"has no {lacks}, which is a text." in done.stderr
    known(notebooks, ENTRY | {"outcome": "fails"})
    assert "fails is no outcome: choose from holds, " in called("check", out).stderr


def test_code_that_shows_nothing_is_folded_with_what_follows_it():
    from supermarket.experiment.page import joined

    def cell(source, outputs=(), tags=("hide-input",), kind="code"):
        return {
            "cell_type": kind, "source": [source], "outputs": list(outputs),
            "metadata": {"tags": list(tags)},
        }  # fmt: skip

    table, figure = {"data": {"text/html": "<table>"}}, {"data": {"image/png": "iVBO"}}
    said = {"data": {"text/markdown": "Seen."}, "metadata": {"supermarket-caption": True}}
    cells = [
        cell("a: int = 1", tags=("parameters",)), cell("a"), cell("b"), cell("c", [table]),
        cell("d", [said, figure]), cell("text", kind="markdown"), cell("e"), cell("run.finish()"),
        cell("text", kind="markdown"), cell("experiment.begin()", [table]),
    ]  # fmt: skip
    found = joined(cells)
    sources = ["".join(one["source"]) for one in found]
    assert sources[:4] == ["a: int = 1", "a\n\n\nb\n\n\nc", "d", "text"]
    assert sources[4:] == ["e\n\n\nrun.finish()", "text", "experiment.begin()"]
    names = [one["metadata"].get("mystnb", {}).get("code_prompt_show") for one in found]
    assert names[1:3] == ["Code: this table", "Code: this figure"]
    assert names[3:] == [None, "Code: the verdicts", None, None]
    assert found[2]["outputs"] == [figure]
    assert found[2]["metadata"]["mystnb"]["figure"] == {"caption": "Seen."}
    assert "remove-input" in found[-1]["metadata"]["tags"]
