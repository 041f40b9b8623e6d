"""Every notebook: it runs anywhere, says what it takes, refuses nonsense, and repeats itself."""

import ast
import json
import os
import re
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import nbformat
import pytest
import yaml
from forks import Forks

from supermarket import ParameterError
from supermarket.experiment.catalogue import read
from supermarket.experiment.grids import Grid
from supermarket.experiment.jupyter import execute
from supermarket.experiment.statements import find
from supermarket.experiment.sweeps import sweep
from supermarket.experiment.verdicts import KEYS, SHORT, UNSETTLED

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
PROFILES = yaml.safe_load((ROOT / "notebooks" / "profiles.yml").read_text())
SMOKE = PROFILES["smoke"]
NAMES = [notebook.stem for notebook in NOTEBOOKS]

pytestmark = pytest.mark.book  # kernels of their own: once is enough


@pytest.fixture(scope="module")
def forks():
    with closing(Forks()) as forks:
        yield forks


def notebook(name):
    return ROOT / "notebooks" / f"{name}.ipynb"


def verdicts(folder, name):
    return (folder / "build" / "verdicts" / f"{name}.json").read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_runs_in_another_folder_and_the_threads_do_not_matter(name, forks, tmp_path):
    given, results = SMOKE.get(name, {}), []
    for threads in (1, 2) if "threads" in parameters_of(name) else (None, None):
        folder = tmp_path / f"{len(results)}"
        folder.mkdir()
        done = forks.run(notebook(name), folder, given | ({"threads": threads} if threads else {}))
        assert (done["errors"], done["printed"]) == ([], "")
        assert any("image/png" in kinds for kinds in done["kinds"])
        results.append(verdicts(folder, name))
    assert results[0] == results[1]
    for verdict in json.loads(results[0]):
        assert tuple(verdict) == KEYS
        if verdict["outcome"] in (SHORT, UNSETTLED):  # the run was too short, as short runs are
            assert verdict["low"] is verdict["high"] is None
            assert verdict["refused"]
        else:
            assert verdict["low"] <= verdict["measured"] <= verdict["high"]
        assert name in find(verdict["statement"]).pages
    cells = json.loads(notebook(name).read_text(encoding="utf-8"))["cells"]
    headlines = sum("headline" in cell["metadata"].get("tags", []) for cell in cells)
    # What a cell ends with is shown: an outcome, say.
    assert done["kinds"].count(["text/plain"]) == headlines


TIMES = [1 + i % 17 for i in range(940)]


@pytest.mark.parametrize(
    ("times", "service", "most", "enough", "refused"),
    [
        ([*TIMES, *[30_000] * 60], "a.csv", 7, "d = 6 is enough", "never seen"),
        ([*TIMES, 1e12], "a.csv", 2, "d = 11, n = 100", ""),
        ([1], "Lomax(1.0000001)", 2, "d = 2 is not enough", "service has a tail too heavy"),
    ],
    ids=["cap", "outlier", "power"],
)
def test_which_d_has_an_answer_for_times_as_they_are_measured(
    times, service, most, enough, refused, forks, tmp_path
):
    """A cap, one absurd value, and laws whose queues can't be drawn: no aside ends the page."""
    (tmp_path / "a.csv").write_text("\n".join(map(str, ["seconds", *times])))
    given = {"service": service, "servers": 100, "replicas": 2, "most": most}
    done = forks.run(notebook("which_d"), tmp_path, given)
    assert (done["errors"], done["printed"]) == ([], "")
    found = json.loads(verdicts(tmp_path, "which_d"))
    assert enough in "; ".join(verdict["claim"] for verdict in found)
    assert refused in "; ".join(verdict["refused"] for verdict in found)


@pytest.mark.parametrize("name", NAMES)
def test_runs_with_another_value_of_every_parameter(name, forks, tmp_path):
    given = PROFILES["other"][name]
    if name == "plot_sweep":  # a folder is no value for a file of profiles
        values = {"n": [1000], "horizon": [50.0], "lam": [0.5, 0.6], "d": [[2]], "replicas": [2]}
        sweep("fixed_point", Grid(values, 2), tmp_path / "swept", workers=1)
        given = given | {"folder": str(tmp_path / "swept")}
    assert given.keys() == parameters_of(name).keys()
    for parameter in parameters_of(name).values():
        value = parameter.check(given[parameter.name])
        assert value != parameter.default, parameter.name
        assert value != SMOKE.get(name, {}).get(parameter.name), parameter.name
    done = forks.run(notebook(name), tmp_path, given)
    assert (done["errors"], done["printed"]) == ([], "")
    assert json.loads(verdicts(tmp_path, name))


@pytest.mark.parametrize("name", ["log_log", "fifo_exponents"])
def test_a_kernel_and_kept_machine_code_change_no_byte(name, forks, tmp_path, monkeypatch):
    """As the book is made, in Jupyter, and compiled afresh; as the others here, from the cache."""
    kept, afresh = tmp_path / "kept", tmp_path / "afresh"
    kept.mkdir()
    assert forks.run(notebook(name), kept, SMOKE[name])["errors"] == []
    afresh.mkdir()
    monkeypatch.setenv("SUPERMARKET_CACHE", "off")
    out = afresh / "out.ipynb"
    execute(notebook(name), out, SMOKE[name], afresh / "build", cwd=afresh)
    assert verdicts(kept, name) == verdicts(afresh, name)
    outputs = [o for cell in nbformat.read(out, 4).cells for o in cell.get("outputs", [])]
    assert not [o for o in outputs if o.output_type in ("error", "stream")]
    assert any("image/png" in o.get("data", {}) for o in outputs)


def test_a_person_can_run_one_with_papermill_alone(tmp_path):
    words = ["-m", "papermill", "--no-progress-bar", notebook("introduction"), "out.ipynb", "-y"]
    done = subprocess.run(
        [sys.executable, *map(str, words), yaml.safe_dump(SMOKE["introduction"])],
        cwd=tmp_path,
        env={key: os.environ[key] for key in os.environ if key != "SUPERMARKET_BUILD"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert verdicts(tmp_path, "introduction")


TRIES = yaml.safe_load((ROOT / "notebooks" / "tries.yml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("number", range(len(TRIES)))
def test_what_a_page_suggests_to_try_next_runs(number, forks, tmp_path):
    given = TRIES[number]
    name = given["page"]
    done = forks.run(notebook(name), tmp_path, SMOKE.get(name, {}) | given["parameters"])
    if sentence := given.get("refused"):
        ((_, said, _),) = done["errors"]
        assert sentence in said
    else:
        assert done["errors"] == [], given
        assert json.loads(verdicts(tmp_path, name))


@pytest.mark.parametrize("name", NAMES)
def test_a_page_suggests_only_parameters_that_it_has(name):
    cells = json.loads(notebook(name).read_text(encoding="utf-8"))["cells"]
    text = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    _, _, tries = text.partition("## What to try next")
    named = set(re.findall(r"`(\w+)`(?: = |=)", tries))
    assert named <= set(parameters_of(name)), named
    assert any(given["page"] == name for given in TRIES) or not named


def parameters_of(name):
    return read(notebook(name)).parameters


@pytest.mark.parametrize("name", NAMES)
def test_is_committed_clean_and_named_after_its_file(name):
    notebook = nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", 4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.execution_count is None and not cell.outputs for cell in code)
    begins = [cell.source for cell in code if "experiment.begin(" in cell.source]
    assert len(begins) == 1
    assert f'"{name}"' in begins[0]
    for cell in code:
        if "plotting.axes(" in cell.source:
            assert len(cell.metadata["mystnb"]["image"]["alt"]) > 60


def lines(cell):
    imports = [x for x in ast.parse(cell).body if isinstance(x, ast.Import | ast.ImportFrom)]
    return cell.count("\n") + 1 - sum(x.end_lineno - x.lineno + 1 for x in imports)


def test_cells_are_short_enough_to_be_shown():
    """Parameters and imports apart, seven in eight have at most 15 lines."""
    cells = [cell for name in NAMES for cell in read(notebook(name)).cells]
    lengths = [lines(cell) for cell in cells if "supermarket.experiment.parameters" not in cell]
    assert max(lengths) <= 40
    assert sum(length > 15 for length in lengths) <= len(lengths) / 8


BAD = [
    ("fixed_point", {"lam": 1.2}, "lam = 1.2 is out of range: choose 0 < lam < 1."),
    ("fixed_point", {"d": [0]}, "d[0] = 0 is out of range: choose 1 <= d[0] <= 1000."),
    ("fixed_point", {"n": "1e6"}, "n = '1e6' is text, and a whole number is needed"),
    ("fixed_point", {"horzion": 3}, "horzion is not a parameter of fixed_point"),
    ("maximum_queue", {"alpha": float("nan")}, "alpha = nan is not finite"),
    ("service_tails", {"beta": [0.9]}, "beta[0] = 0.9"),
    ("log_log", {"decades": 40}, "decades = 40 is out of range: choose 2 <= decades <= 15."),
    ("mean_field_correction", {"d": [1]}, "d[0] = 1 is out of range"),
    ("exact_and_fast", {"replicas": 1}, "replicas = 1 is out of range: choose 20 <= replicas"),
    ("mixing_exact", {"n": 20}, "n = 20 is out of range: choose 2 <= n <= 8."),
    ("mixing_good_starts", {"c": 1.5}, "c = 1.5 is out of range"),
    ("mixing_bad_starts", {"customers": [20, 10, 5]}, "needs at least three entries"),
    ("fifo_recursions", {"beta": [1.5]}, "beta = 1.5 with d = 2 has no doubly exponential tail"),
    ("fifo_network", {"heavy": "Lomax(0.9)"}, "beta = 0.9 gives a service time without a mean"),
    ("which_d", {"service": "Lomacs(2)"}, "names no law that is known"),
    ("which_d", {"lam": 1.0}, "lam = 1 is out of range"),
    ("families", {"across": [0.7]}, "across[0] = 0.7 is out of range: choose -0.5 <= across[0]"),
    ("couplings", {"n_small": [9]}, "n_small[0] = 9 is out of range"),
    ("slow_mode", {"starts": [[0.1, 0.2]]}, "must hold k = 3 shares"),
    ("growing_fluid", {"lam": [0.0]}, "lam[0] = 0 is out of range"),
    ("growing_barrier", {"ratios": [0.1]}, "ratios[0] = 0.1 is out of range"),
    ("growing_enough", {"lam": 1.0}, "lam = 1 is out of range"),
    ("utility", {"rho_kink": 10.1}, "rho_kink must be at a kink of the best utility"),
    ("jackson", {"service": [0.8, 0.7, 0.39]}, "workshop is unstable"),
    ("memory", {"decades": 40}, "decades = 40 is out of range: choose 2 <= decades <= 10."),
    ("plot_sweep", {"folder": "nowhere"}, "nowhere is not the folder of a sweep"),
    ("introduction", {"d": "2"}, "d = '2' is not a list: write it as [2]."),
]


@pytest.mark.parametrize(("name", "parameters", "sentence"), BAD)
def test_nonsense_gets_one_sentence_and_nothing_is_computed(
    name, parameters, sentence, forks, tmp_path
):
    ((kind, said, shown),) = forks.run(notebook(name), tmp_path, parameters)["errors"]
    assert kind == "ParameterError"
    assert sentence in said
    assert not (tmp_path / "build").exists()
    is_one_sentence(shown)


def test_nonsense_gets_one_sentence_in_jupyter_too(tmp_path):
    name, parameters, sentence = BAD[0]
    with pytest.raises(ParameterError) as refused:
        execute(notebook(name), tmp_path / "out.ipynb", parameters, tmp_path / "build")
    assert sentence in str(refused.value)
    assert not (tmp_path / "build").exists()
    cells = nbformat.read(tmp_path / "out.ipynb", 4).cells
    (error,) = [
        output
        for cell in cells
        for output in cell.get("outputs", [])
        if output.output_type == "error"
    ]
    assert error.ename == "ParameterError"
    is_one_sentence(error.traceback)


def is_one_sentence(traceback):
    """What IPython shows of a refusal is the sentence alone."""
    assert len(traceback) == 1
    assert "\n" not in traceback[0]
