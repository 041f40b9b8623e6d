"""`python -m supermarket`: what it prints, what it leaves, and how it ends."""

import json
import re

import pytest
from typer.testing import CliRunner

from supermarket.__main__ import app
from supermarket.lab import sweeps
from supermarket.lab.grids import Grid
from supermarket.lab.sweeps import sweep

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
    assert "  d='[1, 2]'  # factors to compare\n" in text
    about = json.loads(called("describe", "tiny", "--json").stdout)
    assert about["parameters"][2] == {
        "name": "d", "type": "list", "default": [1, 2], "meaning": "factors to compare",
    }  # fmt: skip


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
    assert "[Someone2000]" in page
    assert "{prf" not in page
    assert not re.search(r'(src|href)="(https?:)?//', page)
    # The claims are looked at again later, and a second run does not take their place.
    assert called("check", out).exit_code == (0 if result["verdicts"][0]["holds"] else 1)
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
    assert counts == "4 holds, 0 fails, 0 undecided, 2 failed, 0 missing"


def test_check_says_what_does_not_hold_or_is_missing(notebooks, tmp_path):
    def written(name, *holds):
        out = tmp_path / name
        (out / "verdicts").mkdir(parents=True)
        numbers = {"claim": "c", "source": "s", "predicted": 1.0, "measured": 1.0}
        verdicts = [numbers | {"low": 0.0, "high": 2.0, "holds": value} for value in holds]
        (out / "verdicts" / "some.json").write_text(json.dumps(verdicts))
        return out

    assert called("check", written("good", True, True)).exit_code == 0
    assert called("check", written("short", True, None)).exit_code == 0
    bad = called("check", written("bad", True, False, None), "--json")
    assert bad.exit_code == 1
    result = json.loads(bad.stdout)
    assert [result[key] for key in ("holds", "fails", "undecided")] == [1, 1, 1]
    (written("damaged") / "verdicts" / "some.json").write_text("[")
    assert "some.json is damaged" in called("check", tmp_path / "damaged").stderr
    out = tmp_path / "sweep"
    sweep("tiny", Grid({"n": [200]}, replicas=2), out, workers=1)
    complete = called("check", out, "--json")
    assert complete.exit_code == 0
    assert [v["holds"] for v in json.loads(complete.stdout)["verdicts"]] == [True] * 4
    next(out.glob("points/*")).unlink()
    partial = called("check", out)
    assert partial.exit_code == 1
    assert partial.stdout.endswith("2 holds, 0 fails, 0 undecided, 0 failed, 1 missing\n")
    assert sweeps.plan(out)["points"] == 2
