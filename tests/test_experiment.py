"""Parameters in, verdicts and what made them out: the contract that every notebook relies on."""

import json
import math
import os
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest

import supermarket
from supermarket import ParameterError
from supermarket.estimate.intervals import Computed, Interval
from supermarket.experiment import Experiment, begin, plotting
from supermarket.experiment.parameters import declared
from supermarket.experiment.verdicts import KEYS

VALUES = {"n": 1000, "lam": 0.9, "d": [1, 2], "service": "Erlang(4)", "seed": 7, "threads": 1}
PARAMETERS_CELL = """n: Whole[1] = 500  # queues
lam: Rate = 0.9  # arrival rate per server, in jobs per mean service time
d: list[Whole[1]] = [1, 2]  # choices for each arriving job
service: Law = "Erlang(4)"  # law of service, such as "Erlang(4)"
seed: Whole[0] = 7  # root of every random stream
threads: Whole[1, 64] = 1  # runs at a time
"""
KINDS = {name: parameter.kind for name, parameter in declared(PARAMETERS_CELL).items()}
LEDGER = """papers: {}
statements:
- {id: half, paper: here, name: A half, standing: derived, statement: x, pages: [small],
   against: {what: half of it, scale: 0.5, why: a quarter would be another claim}}
- {id: whole, paper: here, number: (2), name: A whole, standing: derived, statement: x,
   pages: [small]}
"""


def notebook(injected=None, **values):
    """Return what globals() holds in IPython after the parameter cells."""
    cells = ["", PARAMETERS_CELL]
    if injected is not None:
        cells.append("# Parameters\n" + injected)
    return {
        "__name__": "__main__",
        "__annotations__": KINDS,
        "In": [*cells, "run = begin(...)"],
    } | (VALUES | values)


@pytest.fixture
def build(tmp_path, monkeypatch):
    monkeypatch.setenv("SUPERMARKET_BUILD", str(tmp_path / "build"))
    return tmp_path / "build"


@pytest.fixture(autouse=True)
def ledger(tmp_path_factory, monkeypatch):
    """A ledger with the statements of these tests."""
    folder = tmp_path_factory.mktemp("ledger")
    (folder / "statements.yml").write_text(LEDGER)
    monkeypatch.setenv("SUPERMARKET_NOTEBOOKS", str(folder))


@pytest.fixture
def run(build):
    return begin("small", notebook())


def verdicts(build, name="small"):
    return json.loads((build / "verdicts" / f"{name}.json").read_text(encoding="utf-8"))


def provenance(build, name="small"):
    return json.loads((build / "provenance" / f"{name}.json").read_text(encoding="utf-8"))


# --- begin ---------------------------------------------------------------------------------------


def test_begin_puts_the_clean_values_back():
    namespace = notebook(n=np.int64(20), lam=np.float64(0.5), d=(3, np.int64(5)))
    run = begin("small", namespace)
    assert [namespace[name] for name in ("n", "lam", "d")] == [20, 0.5, [3, 5]]
    assert type(namespace["n"]) is int
    assert type(namespace["lam"]) is float
    assert namespace["__name__"] == "__main__"
    assert isinstance(run, Experiment)
    assert run.name == "small"
    assert run.verdicts == []
    assert run.parameters == {"n": 20, "lam": 0.5, "d": [3, 5], "service": "Erlang(4)", "seed": 7}


def test_threads_are_checked_but_left_out_of_the_parameters():
    namespace = notebook(threads=2)
    assert "threads" not in begin("small", namespace).parameters
    assert namespace["threads"] == 2
    with pytest.raises(ParameterError, match="threads = 0 is out of range: choose 1 <= threads"):
        begin("small", notebook(threads=0))


def test_the_table_gives_each_parameter_its_meaning():
    frame = begin("small", notebook()).table.frame
    assert list(frame.columns) == ["parameter", "value", "meaning"]
    assert list(frame["parameter"]) == list(KINDS)
    rows = frame.set_index("parameter")
    assert rows.meaning["n"] == "queues"
    assert rows.meaning["lam"] == "arrival rate per server, in jobs per mean service time"
    assert rows.meaning["service"] == 'law of service, such as "Erlang(4)"'
    assert rows.value["n"] == "1,000"
    assert rows.value["lam"] == "0.9"
    assert rows.value["d"] == "1, 2"
    assert rows.value["service"] == "Erlang(4)"


def test_outside_a_notebook_there_are_no_meanings():
    table = begin("small", {"__annotations__": KINDS, **VALUES}).table
    assert set(table.frame["meaning"]) == {""}


def test_injected_parameters_are_all_known():
    begin("small", notebook("n = 20\nlam = 0.5\nd = [1, 2]\nservice = 'Erlang(4)'\n"))
    with pytest.raises(ParameterError) as caught:
        begin("small", notebook("n = 20\nlamb = 0.5\n"))
    assert str(caught.value) == (
        "lamb is not a parameter of small: choose from n, lam, d, service, seed, threads "
        "(did you mean lam?)."
    )
    with pytest.raises(ParameterError) as caught:
        begin("small", notebook("quux = -1\n"))
    assert str(caught.value) == (
        "quux is not a parameter of small: choose from n, lam, d, service, seed, threads."
    )


def test_only_the_injected_cell_is_searched_for_unknown_names():
    namespace = notebook()
    namespace["In"] += ["helper = 3", "x = 1  # Parameters\ny = 2", "%matplotlib inline"]
    begin("small", namespace)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"lam": 1.2}, "lam = 1.2 is out of range: choose 0 < lam < 1."),
        ({"d": [0]}, "d[0] = 0 is out of range: choose 1 <= d[0]."),
        (
            {"n": "1e6"},
            "n = '1e6' is text, and a whole number is needed: write it with digits alone, such "
            "as n = 1000000.",
        ),
        (
            {"service": "Erlangs(4)"},
            "service = 'Erlangs(4)' names no law that is known: use one of ",
        ),
    ],
)
def test_a_wrong_value_stops_with_one_sentence_and_changes_nothing(values, sentence):
    namespace = notebook(**values)
    before = dict(namespace)
    with pytest.raises(ParameterError) as caught:
        begin("small", namespace)
    assert str(caught.value).startswith(sentence)
    assert namespace == before


def test_a_missing_value_is_named():
    namespace = notebook()
    del namespace["seed"]
    with pytest.raises(ParameterError, match=r"^small needs a value for seed: run the cell above"):
        begin("small", namespace)


# --- verdict -------------------------------------------------------------------------------------

FOUND = Interval(0.5, 0.4, 0.6, 0.95)


def test_a_verdict_is_judged_and_its_outcome_returned(run):
    """What there is to outcomes stands in `test_verdicts`."""
    assert run.verdict("c", "half", 0.5, FOUND) == "holds"
    assert run.verdict("c", "half", 0.7, FOUND) == "does not hold"
    assert run.verdict("c", "half", 0.7, FOUND, control=True) == "does not hold"
    assert run.verdict("c", "whole", 0.7, FOUND, relation="at most") == "holds"
    assert run.verdict("c", "whole", 2, Computed(2), relation="exactly") == "holds"
    kinds = [verdict["kind"] for verdict in run.verdicts]
    assert kinds == ["derived", "derived", "negative control", "derived", "derived"]


def test_what_is_refused_is_no_verdict(run):
    for bad in (math.nan, -math.inf):
        with pytest.raises(ParameterError, match=r"^predicted = .*'the claim' is not finite"):
            run.verdict("the claim", "half", bad, FOUND)
    with pytest.raises(ParameterError, match="at least"):
        run.verdict("c", "half", 0.5, FOUND, relation="atleast")
    with pytest.raises(ParameterError, match="halve is not a statement of the ledger"):
        run.verdict("c", "halve", 0.5, FOUND)
    assert run.verdicts == []


def test_the_point_joins_the_parameters_of_its_verdict_alone(run):
    before = dict(run.parameters)
    point = {"d": np.int64(2), "k": 3, "grid": np.array([1.0, 2.0]), "pair": (1, np.float64(2))}
    run.verdict("c", "half", 0.5, FOUND, **point)
    run.verdict("c", "half", 0.5, FOUND)
    first, second = (verdict["parameters"] for verdict in run.verdicts)
    assert first == before | {"d": 2, "k": 3, "grid": [1.0, 2.0], "pair": [1, 2.0]}
    assert second == run.parameters == before
    json.dumps(first)


# --- finish --------------------------------------------------------------------------------------


def fill(run):
    run.verdict("π(2) is the share", "half", 0.5, FOUND)
    run.verdict("it is 2", "whole", 3, Computed(2), relation="exactly", d=2)
    return run


def test_each_verdict_is_written_whole(run, build):
    fill(run).finish()
    written = verdicts(build)
    assert [tuple(verdict) for verdict in written] == [KEYS, KEYS]
    assert written[0] == {
        "claim": "π(2) is the share",
        "statement": "half",
        "kind": "derived",
        "relation": "equal",
        "against": [0.25, 0.75],
        "hypotheses": [],
        "predicted": 0.5,
        "measured": 0.5,
        "low": 0.4,
        "high": 0.6,
        "confidence": 0.95,
        "effective": None,
        "outcome": "holds",
        "parameters": run.parameters,
        "source": "this project",
        "refused": "",
    }
    assert (written[1]["outcome"], written[1]["source"]) == ("does not hold", "this project, (2)")
    assert written[1]["parameters"] == run.parameters | {"d": 2}
    assert {path.name for path in build.iterdir()} == {"verdicts", "provenance"}
    assert [path.name for path in build.glob("*/*")] == ["small.json", "small.json"]


@pytest.mark.parametrize("kind", [float, np.float64, np.float32, np.array, int])
def test_numbers_of_numpy_are_written_as_plain_numbers(run, build, kind):
    run.verdict("c", "half", kind(8), Interval(kind(8), kind(7), kind(9), 0.95))
    run.verdict("c", "whole", kind(2), Computed(kind(2)), relation="exactly")
    run.finish()
    first, second = verdicts(build)
    assert [first[key] for key in ("predicted", "measured", "low", "high")] == [8, 8, 7, 9]
    assert [second[key] for key in ("predicted", "measured", "low", "high")] == [2] * 4
    assert first["outcome"] == second["outcome"] == "holds"


def test_equal_input_gives_equal_bytes_on_any_number_of_threads(tmp_path, monkeypatch):
    written = []
    for threads in (1, 2):
        monkeypatch.setenv("SUPERMARKET_BUILD", str(tmp_path / str(threads)))
        fill(begin("small", notebook(threads=threads))).finish()
        written.append((tmp_path / str(threads) / "verdicts" / "small.json").read_bytes())
    assert written[0] == written[1]
    assert b"threads" not in written[0]


def test_a_second_run_replaces_the_first(build):
    fill(begin("small", notebook())).finish()
    begin("small", notebook()).finish()
    assert verdicts(build) == []


def test_build_is_in_the_working_folder_by_default(tmp_path, monkeypatch):
    monkeypatch.delenv("SUPERMARKET_BUILD", raising=False)
    monkeypatch.chdir(tmp_path)
    fill(begin("small", notebook())).finish()
    assert len(verdicts(tmp_path / "build")) == 2
    assert provenance(tmp_path / "build")["notebook"] == "small"


def test_provenance_says_what_made_it(run, build):
    fill(run).finish()
    written = provenance(build)
    assert written["notebook"] == "small"
    assert written["supermarket"] == supermarket.__version__
    assert written["parameters"] == run.parameters
    assert written["numpy"] == np.__version__
    assert written["pandas"] == pd.__version__
    assert {"numba", "scipy", "matplotlib", "python", "commit"} <= set(written)
    assert "supermarket.experiment" in written["modules"]
    assert written["modules"] == sorted(written["modules"])
    assert all(name.partition(".")[0] == "supermarket" for name in written["modules"])
    assert 0 <= written["seconds"] < 60


def test_the_table_of_verdicts_says_what_made_them(run):
    table = fill(run).finish()
    assert table.verdicts == run.verdicts
    assert table.page == "small"
    assert f"supermarket {supermarket.__version__}" in table.note
    assert "seed 7," in table.note
    assert f"numpy {np.__version__}" in table.note
    assert table.note in repr(table)
    assert table.note in table._repr_html_()


def test_a_page_with_a_broken_figure_does_not_finish(run, build, monkeypatch):
    monkeypatch.setattr(plotting, "faults", ["q: an axis goes from 0 to 1e+150"])
    with pytest.raises(RuntimeError, match="small has a broken figure: q: an axis"):
        fill(run).finish()
    assert not build.exists()
    plotting.faults.clear()
    run.finish()


# --- the commit ----------------------------------------------------------------------------------


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A copy of the package's place in a folder of its own."""
    (tmp_path / "copy" / "supermarket").mkdir(parents=True)
    module = tmp_path / "copy" / "supermarket" / "__init__.py"
    module.write_text("")
    monkeypatch.setattr(supermarket, "__file__", str(module))
    return tmp_path / "copy"


def test_no_commit_outside_a_checkout(run, build, elsewhere):
    table = run.finish()
    assert provenance(build)["commit"] is None
    assert "commit" not in table.note


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_the_commit_of_a_checkout_and_whether_it_was_edited(run, build, elsewhere, monkeypatch):
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)

    def git(*arguments):
        identity = ["-c", "user.name=A", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
        command = ["git", "-C", str(elsewhere), *identity, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "--quiet")
    run.finish()
    assert provenance(build)["commit"] is None  # nothing committed yet
    git("add", ".")
    git("commit", "--quiet", "--message", "first")
    table = run.finish()
    commit = git("rev-parse", "HEAD")[:12]
    assert provenance(build)["commit"] == commit
    assert f"(commit {commit})" in table.note
    (elsewhere / "notes.txt").write_text("not part of what computes")
    run.finish()
    assert provenance(build)["commit"] == commit
    (elsewhere / "supermarket" / "__init__.py").write_text("edited = True\n")
    run.finish()
    assert provenance(build)["commit"] == commit + "+"
    # Installed into a folder of somebody's checkout: that commit is not the package's.
    inner = elsewhere / "site-packages" / "supermarket" / "__init__.py"
    monkeypatch.setattr(supermarket, "__file__", str(inner))
    inner.parent.mkdir(parents=True)
    run.finish()
    assert provenance(build)["commit"] is None


def test_no_commit_where_there_is_no_git_to_ask(run, build, elsewhere, monkeypatch):
    (elsewhere / ".git").mkdir()
    monkeypatch.setenv("PATH", str(elsewhere))
    run.finish()
    assert provenance(build)["commit"] is None
