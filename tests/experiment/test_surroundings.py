"""A run on any machine: what is set up there for other purposes, and where it may be."""

import base64
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import matplotlib as mpl
import pytest

import supermarket
from supermarket import ParameterError, experiment
from supermarket.experiment import jupyter, plotting
from supermarket.experiment.files import OutsideError, alone, make_folder, write
from supermarket.experiment.notebooks import run

pytestmark = pytest.mark.book  # kernels of their own: once is enough

DARK = "figure.facecolor: black\ntext.color: white\nfont.size: 30\ntext.usetex: True\n"
SVG = "c.InlineBackend.figure_formats = {'svg'}\n"
STOP = "raise SystemExit('a file of the user')\n"


@pytest.fixture
def hostile(tmp_path):
    """An environment, and a working folder, that are set up for everything else."""
    here, home, other = tmp_path / "here", tmp_path / "home", tmp_path / "other"
    for folder, name, text in (
        (here, "matplotlibrc", DARK),
        (here, "queue.py", STOP),
        (here, "random.py", STOP),
        (here, "numpy.py", STOP),
        (home / ".config" / "matplotlib", "matplotlibrc", DARK),
        (home / ".ipython" / "profile_default", "ipython_config.py", SVG),
        (home / ".ipython" / "profile_default", "ipython_kernel_config.py", SVG),
        (home / ".ipython" / "profile_default" / "startup", "stop.py", STOP),
        (home / ".jupyter", "jupyter_config.json", "{"),
        (other, "matplotlib.py", STOP),
        (other, "start.py", STOP),
    ):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    subprocess.run(["git", "init", "-q", str(other)], check=True)
    return here, {
        "HOME": str(home),
        "MPLBACKEND": "nonsense",
        "MATPLOTLIBRC": str(home / ".config" / "matplotlib"),
        "GIT_DIR": str(other / ".git"),
        "GIT_WORK_TREE": str(other),
        "GIT_INDEX_FILE": str(other / "index"),
        "NUMBA_DISABLE_JIT": "1",
        "PYTHONPATH": os.pathsep.join([str(Path(supermarket.__file__).parents[1]), str(other)]),
        "PYTHONSTARTUP": str(other / "start.py"),
        "PYTHONWARNINGS": "error",
        "PYTHONOPTIMIZE": "2",
        "PYTHONHASHSEED": "7",
        "LC_ALL": "C",
        "PYTHONCOERCECLOCALE": "0",
        "PYTHONUTF8": "0",
        "TMPDIR": str(other / "nowhere"),
    }


def left(out, name="tiny"):
    """Return what a run left: verdicts, figure, commit."""
    made = json.loads((out / "provenance" / f"{name}.json").read_text())
    verdicts = (out / "verdicts" / f"{name}.json").read_bytes()
    return verdicts, (out / "figures" / "draws.png").read_bytes(), made["commit"]


def test_a_run_is_the_same_whatever_a_machine_has_set_up(notebooks, hostile, tmp_path):
    here, environment = hostile
    found = []
    for folder, values in ((tmp_path, {}), (here, environment)):
        out = tmp_path / f"out-{len(found)}"
        done = subprocess.run(
            [sys.executable, "-m", "supermarket", "run", "tiny", "--out", str(out)],
            cwd=folder, env=os.environ | values, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
        found.append(left(out))
    assert found[0] == found[1]


def test_the_commit_is_that_of_the_code_that_runs(hostile, monkeypatch):
    commit = experiment._commit()
    assert commit or not experiment._checkout()
    _, environment = hostile
    for name in environment:
        if name.startswith("GIT_"):
            monkeypatch.setenv(name, environment[name])
    assert experiment._commit() == commit
    monkeypatch.setenv("PATH", "")
    assert experiment._commit() is None
    monkeypatch.setattr(experiment, "_checkout", lambda: Path("here"))
    assert experiment._at_commit(None) == " (its commit is unknown: git could not tell)"


def test_the_style_is_that_of_the_book_whatever_was_set(tmp_path):
    (tmp_path / "matplotlibrc").write_text(DARK)
    with mpl.rc_context():
        plotting.use_style()
        style = dict(mpl.rcParams)
        mpl.rc_file(tmp_path / "matplotlibrc")
        assert mpl.rcParams["text.usetex"]
        plotting.use_style()
        assert dict(mpl.rcParams) == style


def test_a_kernel_gets_only_what_is_listed(monkeypatch, tmp_path):
    for name in ("NUMBA_OPT", "GIT_DIR", "PYTHONPATH", "IPYTHONDIR", "FOO"):
        monkeypatch.setenv(name, "foreign")
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    found = jupyter.clean(str(tmp_path))
    assert not {"NUMBA_OPT", "GIT_DIR", "PYTHONPATH", "FOO"} & found.keys()
    assert found["OPENBLAS_CORETYPE"] == "Haswell"
    assert found["IPYTHONDIR"] == str(tmp_path)


def test_a_kernel_reads_no_settings_of_the_machine(tmp_path):
    (tmp_path / "ipython_config.py").write_text(SVG)
    code = """
import sys
from ipykernel.kernelapp import IPKernelApp
from supermarket.experiment.kernel import Kernel
for kind in (IPKernelApp, Kernel):
    app = kind(config_file_paths=sys.argv[1:], config_files=["ipython_config.py"])
    app.load_config_file()
    print("InlineBackend" in app.config)
"""
    start = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(start, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False"]  # the first shows that there are some


@pytest.mark.parametrize("home", ["~", "/nonexistent"])
def test_who_has_no_home_gets_one(home, monkeypatch, tmp_path):
    """As a user whom the machine does not know, or one whose home was never made."""
    monkeypatch.setattr(os.path, "expanduser", lambda path: home)
    assert jupyter.clean(str(tmp_path))["HOME"] == str(tmp_path)


def test_a_figure_that_does_not_come_is_a_failure(notebooks, tmp_path):
    file = notebooks / "tiny.ipynb"
    text = file.read_text().replace("figure, ax", "plt.switch_backend('agg'); figure, ax")
    file.write_text(text)
    with pytest.raises(OutsideError, match="cell of the figure draws shows none as PNG") as failed:
        run("tiny", {}, tmp_path / "out")
    assert f"{tmp_path / 'out' / 'tiny.failed.ipynb'} shows where" in str(failed.value)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["mood=die"], "tiny failed (its kernel died, as when memory runs out): "),
        (["mood=exit"], "tiny failed (SystemExit: 3): "),
    ],
)
def test_a_kernel_that_ends_before_the_notebook_is_one_sentence(command, tmp_path, words, sentence):
    done = command("run", "tiny", *words, "--out", "out")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"{sentence}out/tiny.failed.ipynb shows where.\n"


# --- where a run may be --------------------------------------------------------------------------

ODD = "r {draft} {connection_file} [1] a:b; 50% #x 'é'\n\"ü\" $HOME\\"


def test_a_copy_under_another_name_runs_in_folders_of_any_name(notebooks, tmp_path, monkeypatch):
    """Its `begin` still says the old name."""
    folder = tmp_path / ODD
    shutil.copytree(notebooks, folder / "notebooks")
    shutil.copy(notebooks / "tiny.ipynb", folder / "notebooks" / "my copy.ipynb")
    monkeypatch.setenv("SUPERMARKET_NOTEBOOKS", str(folder / "notebooks"))
    monkeypatch.chdir(folder)
    (folder / "mine.py").write_text("value = 'of my own'")  # which may be imported
    file = folder / "notebooks" / "my copy.ipynb"
    file.write_text(file.read_text().replace("import os", "import os, mine; print(mine.value)", 1))
    out = folder / "out {x}"
    run("my copy", {"n": 50}, out)
    assert json.loads((out / "provenance" / "my copy.json").read_text())["notebook"] == "my copy"
    assert len(json.loads((out / "verdicts" / "my copy.json").read_text())) == 2
    assert "of my own" in (out / "my copy.html").read_text()
    assert not (folder / "build").exists()


@pytest.fixture
def executed(monkeypatch):
    """Runs whose kernel is left out: what it would leave is there at once."""
    image = base64.b64encode(b"\x89PNG").decode()

    def execute(notebook, target, parameters, build, **_):
        content = json.loads(notebook.read_text())
        for cell in content["cells"]:
            if "figure" in cell["metadata"].get("mystnb", {}):
                cell["outputs"] = [
                    {"output_type": "display_data", "data": {"image/png": image}, "metadata": {}}
                ]
        target.write_text(json.dumps(content))
        for what in ("verdicts", "provenance"):
            write(build / what / f"{notebook.stem}.json", b"[]")

    monkeypatch.setattr(jupyter, "execute", execute)
    return execute


def files(folder):
    return {str(f.relative_to(folder)) for f in folder.rglob("*") if not f.is_dir()}


def refused(sentence, out, kind=ParameterError):
    with pytest.raises(kind) as error:
        run("tiny", {}, out)
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 500


def test_folders_that_can_hold_no_results_are_refused(notebooks, executed, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "circle").symlink_to("circle")
    for out, sentence in (
        (Path("/"), "/ is the root of all folders: choose one below it."),
        (tmp_path / "file", "is a file, or lies in one: choose another folder."),
        (tmp_path / "file" / "below", "is a file, or lies in one: choose another folder."),
        (tmp_path / ("x" * 300), "can't hold results (File name too long): choose another"),
        (
            tmp_path / "/".join("a" * 3000),
            "can't hold results (File name too long): choose another",
        ),
        (tmp_path / "circle" / "x", "can't hold results (Too many levels of symbolic links)"),
    ):
        refused(sentence, out)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    refused("can't hold results (Permission denied): choose another folder.", tmp_path / "locked")
    assert files(tmp_path) - {f"notebooks/{f}" for f in files(notebooks)} == {"file", "circle"}


def test_links_in_the_folder_lead_nothing_out_of_it(notebooks, executed, tmp_path):
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    (elsewhere / "kept").mkdir(parents=True)
    (elsewhere / "kept" / "file").write_text("mine")
    out.mkdir()
    for name in ("verdicts", "provenance", "figures"):
        (out / name).symlink_to(elsewhere)
        refused(f"{name} is a link to another folder: remove it, or choose another", out)
        (out / name).unlink()
    (out / ".tiny.part").symlink_to(elsewhere / "kept")
    (out / "tiny.html").symlink_to(elsewhere / "kept" / "file")
    (out / "tiny.html.part").symlink_to(elsewhere / "kept" / "file")
    run("tiny", {}, out)
    assert files(elsewhere) == {"kept/file"}
    assert (elsewhere / "kept" / "file").read_text() == "mine"
    assert not (out / "tiny.html").is_symlink()


def test_several_experiments_share_a_folder_and_no_figure_is_lost(notebooks, executed, tmp_path):
    shutil.copy(notebooks / "tiny.ipynb", notebooks / "mine.ipynb")
    out = tmp_path / "out"
    first, second = run("tiny", {}, out), run("mine", {}, out)
    assert first["figures"] == [str(out / "figures" / "draws.png")]
    assert second["figures"] == [str(out / "figures" / "mine-draws.png")]
    assert files(out) - {"mathjax.js"} == {
        *("tiny.ipynb", "tiny.html", "figures/draws.png", "verdicts/tiny.json"),
        *("mine.ipynb", "mine.html", "figures/mine-draws.png", "verdicts/mine.json"),
        *("provenance/tiny.json", "provenance/mine.json"),
    }
    refused("holds the results of an earlier run: choose another folder.", out)


def test_what_a_killed_run_left_hinders_no_other(notebooks, executed, tmp_path):
    whole, out = tmp_path / "whole", tmp_path / "out"
    run("tiny", {}, whole)
    for name in sorted(files(whole) - {"tiny.ipynb"}):  # killed while it put these in their place
        for file in (f".tiny.part/{name}", name):
            (out / file).parent.mkdir(parents=True, exist_ok=True)
            (out / file).write_text("half")
    (out / ".tiny.lock").touch()
    (out / "tiny.html.part").touch()
    run("tiny", {}, out)
    assert files(out) == files(whole)
    assert (out / "figures" / "draws.png").read_bytes() == b"\x89PNG"


def test_a_folder_that_a_person_made_stays(notebooks, monkeypatch, tmp_path):
    def fail(*_, **__):
        raise ParameterError("refused.")

    monkeypatch.setattr(jupyter, "execute", fail)
    (tmp_path / "mine").mkdir()
    for out in ("mine", "new"):
        with pytest.raises(ParameterError, match="refused"):
            run("tiny", {}, tmp_path / out)
    assert (tmp_path / "mine").is_dir()
    assert not (tmp_path / "new").exists()


def test_of_runs_into_one_folder_at_the_same_time_one_runs(notebooks, tmp_path):
    start = [sys.executable, "-m", "supermarket", "run", "tiny", "--out", "new", "mood=sleep 2"]
    processes = [
        subprocess.Popen(
            [*start, f"n={n}"],
            cwd=tmp_path,
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for n in (5, 6, 7)
    ]
    said = [process.communicate()[1] for process in processes]
    codes = [process.returncode for process in processes]
    assert sorted(codes) == [0, 1, 1]
    busy = "Another run of tiny is at work in new: wait for it, or stop it.\n"
    assert sorted(said) == ["", busy, busy]
    n = 5 + codes.index(0)
    out = tmp_path / "new"
    assert json.loads((out / "provenance" / "tiny.json").read_text())["parameters"]["n"] == n
    assert {
        v["parameters"]["n"] for v in json.loads((out / "verdicts" / "tiny.json").read_text())
    } == {n}
    assert f"n = {n}\\n" in (out / "tiny.ipynb").read_text()
    assert not list(out.glob(".*"))


def test_ctrl_c_leaves_nothing_of_a_run(notebooks, interruptible, tmp_path):
    """And says nothing of sweeps."""
    started = tmp_path / "started"
    words = ["run", "tiny", f"mood=once {started}", "--out", "new"]
    file = notebooks / "tiny.ipynb"
    file.write_text(file.read_text().replace("os.kill(os.getpid(), 9)", "time.sleep(100)"))
    process = subprocess.Popen(
        [sys.executable, "-m", "supermarket", *words], cwd=tmp_path, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    while not started.exists():
        assert process.poll() is None
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    assert process.communicate(timeout=120) == ("", "Stopped: nothing is kept of this run.\n")
    assert process.returncode == 130
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("name", ["", "a/b", "../evil", "/etc/evil"])
def test_a_notebook_can_not_write_outside_its_folder_by_its_name(name, monkeypatch):
    monkeypatch.delenv("SUPERMARKET_NAME", raising=False)
    with pytest.raises(ParameterError, match="must name the notebook, without a folder"):
        experiment.begin(name, {})


def test_a_run_and_a_sweep_keep_out_of_one_folder(notebooks, executed, tmp_path):
    out = tmp_path / "swept"
    write(out / "sweep.json", b"{}")
    refused("holds the results of an earlier run", out)
    with alone(tmp_path / "new" / ".tiny.lock", "busy") if make_folder(tmp_path / "new") else None:
        refused("Another run of tiny is at work in", tmp_path / "new", OutsideError)
