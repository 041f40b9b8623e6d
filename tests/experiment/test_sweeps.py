"""Sweeps: the same rows however they are computed, whatever happens on the way."""

import errno
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from supermarket import ParameterError
from supermarket.experiment import catalogue, checks, points, rows
from supermarket.experiment import notebooks as runs
from supermarket.experiment.files import OutsideError
from supermarket.experiment.grids import Grid, check_grid, read_grid
from supermarket.experiment.results import read_sweep
from supermarket.experiment.sweeps import sweep
from supermarket.experiment.verdicts import KEYS

pytestmark = pytest.mark.book  # processes of their own: once is enough

SMALL = Grid({"n": [5, 20], "lam": [0.25, 0.5], "d": [[1, 2]]}, replicas=2, seed=3)


def stamps(out):
    """What would change if a file were written again."""
    return {file.name: file.stat().st_mtime_ns for file in out.glob("points/*.parquet")}


@pytest.fixture(scope="module")
def computed(tmp_path_factory):
    return tmp_path_factory.mktemp("sweep") / "small"


@pytest.fixture
def small(notebooks, tmp_path, computed):
    """A finished sweep, computed once and copied for each test."""
    if not computed.exists():
        done = sweep("tiny", SMALL, computed, workers=1)
        assert done == {"points": 8, "before": 0, "failed": 0, "rows": 16}
    return shutil.copytree(computed, tmp_path / "small")


# --- rows ----------------------------------------------------------------------------------------


def test_a_row_says_all_about_a_verdict(small):
    frame = read_sweep(small)
    assert list(frame["point"]) == sorted([0, 1, 2, 3] * 4)
    assert list(frame["replica"])[:4] == [0, 0, 1, 1]
    row = frame.iloc[5]
    assert row["experiment"] == "tiny"
    assert (row["n"], row["lam"], row["d"], row["mood"]) == (5, 0.5, "[1, 2]", "well")
    assert (row["claim"], row["source"], row["at_d"]) == ("mean times 2", "A paper, (1)", 2)
    draws = np.random.default_rng(row["seed"]).exponential(0.5, 5)
    assert row["measured"] == pytest.approx(2 * draws.mean(), rel=1e-14)
    assert row["low"] < row["measured"] < row["high"]
    assert (row["statement"], row["kind"], row["relation"]) == ("tiny-mean", "paper", "equal")
    assert (row["against"], row["hypotheses"], row["refused"]) == ([0.5, 1.5], [], "")
    assert row["confidence"] == 0.99
    holds = row["low"] <= row["predicted"] <= row["high"]
    blunt = row["low"] <= 0.5 or row["high"] >= 1.5
    assert row["outcome"] == ("does not hold" if not holds else "too blunt" if blunt else "holds")
    names = list(frame.columns)
    assert [key for key in names if key in KEYS] == [key for key in KEYS if key != "parameters"]
    assert row["error"] is None or pd.isna(row["error"])
    for name, value in points.made().items():
        assert row[name] == value or (value is None and pd.isna(row[name])), name  # without git
    assert "threads" not in frame


def test_every_replica_has_a_seed_of_its_own_that_is_spawned_from_the_sweeps(small):
    seeds = read_sweep(small).drop_duplicates(["point", "replica"])["seed"]
    children = [c for p in np.random.SeedSequence(3).spawn(4) for c in p.spawn(2)]
    assert list(seeds) == [int(c.generate_state(1, np.uint64)[0]) >> 1 for c in children]
    assert len(set(seeds)) == 8


def test_workers_do_not_matter(small, tmp_path):
    sweep("tiny", SMALL, tmp_path / "two", workers=2)
    assert_frame_equal(read_sweep(small), read_sweep(tmp_path / "two"))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("tiny", {"n": 7, "seed": 5}),
        ("fifo_recursions", {"beta": [2.5, 3.0], "depth": 300.0}),
    ],
)
def test_a_point_gives_the_verdicts_of_papermill(name, values, notebooks, tmp_path, monkeypatch):
    if name != "tiny":
        monkeypatch.delenv("SUPERMARKET_NOTEBOOKS")
    by_papermill = runs.run(name, values, tmp_path / "run")["verdicts"]
    outcome = points.compute(catalogue.find_notebook(name), values)
    assert outcome["error"] is None
    assert outcome["verdicts"] == by_papermill
    assert "SUPERMARKET_BUILD" not in os.environ


# --- what goes wrong on the way ------------------------------------------------------------------


def test_a_point_that_fails_is_recorded_and_the_others_go_on(notebooks, tmp_path):
    out = tmp_path / "out"
    once = f"once {tmp_path / 'mark'}"
    moods = ["well", "raise", "exit", "die", once, "sleep 0"]
    grid = Grid({"mood": moods, "lam": [0.5, 2.0]})
    done = sweep("tiny", grid, out, workers=2)
    assert done["failed"] == 6 + 3
    frame = read_sweep(out)
    errors = frame.drop_duplicates("point").set_index(["mood", "lam"])["error"]
    for mood in ("well", once, "sleep 0"):
        assert pd.isna(errors[mood, 0.5])
    assert errors["raise", 0.5] == "ZeroDivisionError: nothing to divide by"
    assert errors["exit", 0.5] == "SystemExit: 3"
    assert errors["die", 0.5] == "the process that computed it died each time: out of memory?"
    assert errors["well", 2.0] == "ParameterError: lam = 2 is out of range: choose 0 < lam < 1."
    failed = frame[frame["error"].notna()]
    assert failed[["claim", "outcome", "against", "hypotheses"]].isna().all(axis=None)
    assert (failed["supermarket"] == points.made()["supermarket"]).all()
    # Failed points are not computed again, unless asked for.
    before = stamps(out)
    assert sweep("tiny", grid, out, workers=1)["before"] == 12
    assert stamps(out) == before
    text = (notebooks / "tiny.ipynb").read_text()
    assert sweep("tiny", grid, out, workers=2, retry=True)["before"] == 3
    assert {name for name, at in stamps(out).items() if at == before[name]} == {
        file.name
        for file in out.glob("points/*")
        if rows.read(file, file.stem)["claim"][0].is_valid
    }
    # The same folder, another text of the notebook: refused, for the rows would be of both.
    (notebooks / "tiny.ipynb").write_text(text.replace("exponential(lam", "uniform(lam"))
    with pytest.raises(ParameterError, match="of another notebook: choose a new folder"):
        sweep("tiny", grid, out)


def test_a_damaged_file_is_found_and_redone(small, tmp_path):
    files = sorted(small.glob("points/*.parquet"))
    whole = [file.read_bytes() for file in files]
    frame = read_sweep(small)
    damaged = {
        files[0]: b"",
        files[1]: whole[1][: len(whole[1]) // 2],
        files[2]: whole[2][:-3],
        files[3]: whole[4],  # of another point
    }
    for file, content in damaged.items():
        file.write_bytes(content)
        with pytest.raises(ParameterError, match="is damaged: run the sweep again"):
            read_sweep(small)
        file.write_bytes(whole[files.index(file)])
    # A wrong byte anywhere either changes no row or is found.
    table = rows.read(files[5], files[5].stem)
    found = 0
    for place in range(0, len(whole[5]), 37):
        wrong = bytearray(whole[5])
        wrong[place] ^= 0x41
        files[5].write_bytes(wrong)
        read = rows.read(files[5], files[5].stem)
        found += read is None
        assert read is None or read.equals(table)
    assert found > 20
    files[5].write_bytes(whole[5])
    before = stamps(small)
    for file, content in damaged.items():
        file.write_bytes(content)
    (small / "points" / "half.parquet.part").write_bytes(whole[0][:100])
    assert sweep("tiny", SMALL, small, workers=1)["before"] == 4
    assert_frame_equal(read_sweep(small), frame)
    after = stamps(small)
    assert {file.name for file in files if after[file.name] == before[file.name]} == {
        file.name for file in files[4:]
    }
    assert not list(small.glob("points/*.part"))


def test_files_of_others_are_neither_read_nor_a_hindrance(small, notebooks, tmp_path):
    frame = read_sweep(small)
    files = sorted(small.glob("points/*.parquet"))
    copy = small / "points" / f"{files[0].stem} (conflicted copy).parquet"
    copy.write_bytes(b"of a program that syncs folders")
    assert_frame_equal(read_sweep(small), frame)
    assert sweep("tiny", SMALL, small, workers=1)["before"] == 8
    for number, grid in enumerate((
        Grid(SMALL.values | {"lam": [0.25, 0.75]}, 2, 3),  # another value
        Grid(SMALL.values, 2, 4),  # another seed
        Grid(SMALL.values, 3, 3),  # another replica
    )):  # fmt: skip
        out = tmp_path / f"other-{number}"
        sweep("tiny", grid, out, workers=1)
        foreign = min(set(stamps(out)) - set(stamps(small)))
        shutil.copy(out / "points" / foreign, small / "points" / foreign)
        with pytest.raises(ParameterError, match="is a point of another sweep: take it away"):
            read_sweep(small)
        with pytest.raises(ParameterError, match="is no point of this sweep: take it away"):
            sweep("tiny", SMALL, small, workers=1)
        (small / "points" / foreign).unlink()
    assert_frame_equal(read_sweep(small), frame)


def test_no_link_in_its_folder_leads_a_sweep_out_of_it(small, notebooks, tmp_path):
    files = sorted(small.glob("points/*.parquet"))
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "file").write_text("mine")
    files[0].unlink()
    files[0].symlink_to(mine / "file")
    files[1].unlink()
    files[1].with_name(f"{files[1].name}.part").symlink_to(mine / "file")
    assert sweep("tiny", SMALL, small, workers=1)["before"] == 6
    assert not files[0].is_symlink()
    (small / "lock").unlink()
    (small / "lock").symlink_to(mine / "file")
    with pytest.raises(OutsideError, match=r"lock can't be written"):
        sweep("tiny", SMALL, small, workers=1)
    (small / "lock").unlink()
    shutil.move(small / "points", mine / "points")
    (small / "points").symlink_to(mine / "points")
    with pytest.raises(ParameterError, match="points is a link out of that folder: take it away"):
        sweep("tiny", SMALL, small, workers=1)
    assert (mine / "file").read_text() == "mine"


def test_a_full_disk_gets_one_sentence_and_keeps_what_is_finished(small, tmp_path, monkeypatch):
    out = tmp_path / "out"
    sync, calls = os.fsync, []

    def full(file):
        calls.append(file)
        if len(calls) > 8:  # two a file, and sweep.json is the first
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(file)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(
        OutsideError, match=r"^The disk is full: .* goes on from there once there is"
    ):
        sweep("tiny", SMALL, out, workers=1)
    assert len(stamps(out)) == 3
    assert not list(out.rglob("*.part"))
    monkeypatch.undo()
    monkeypatch.setenv("SUPERMARKET_NOTEBOOKS", str(tmp_path / "notebooks"))
    assert sweep("tiny", SMALL, out, workers=1)["before"] == 3
    assert_frame_equal(read_sweep(small), read_sweep(out))


def start(tmp_path, out, *options, program=("-m", "supermarket")):
    """Start a sweep that a person could kill, in a process group of its own."""
    words = [sys.executable, *program, "sweep", "tiny", tmp_path / "grid.yaml"]
    return subprocess.Popen(
        list(map(str, [*words, "--out", out, *options])),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        restore_signals=True,
    )


def wait_for(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_killed_at_random_moments_it_gives_the_same_rows(notebooks, tmp_path, long):
    (tmp_path / "grid.yaml").write_text("lam: [0.1, 0.2, 0.3, 0.4]\nmood: [sleep 0.05]\n"
                                        f"replicas: {50 if long else 10}\nseed: 5\n")  # fmt: skip
    moments = random.Random(1)
    out = tmp_path / "killed"
    for moment in range(50 if long else 10):
        before = stamps(out)
        process = start(tmp_path, out, "--workers", "1")
        if moment % 3:  # at work; else while it starts
            more = len(before) + moments.randrange(1, 4)
            wait_for(lambda more=more: len(stamps(out)) >= more)
        time.sleep(moments.random() * (0.1 if moment % 3 else 1.0))
        process.kill()
        process.communicate(timeout=120)  # until all that it started have ended: they hold stderr
        after = stamps(out)
        assert {name: after[name] for name in before} == before  # nothing lost, nothing repeated
    before = stamps(out)
    assert 6 <= len(before) < (200 if long else 40)
    done = sweep("tiny", read_grid(tmp_path / "grid.yaml"), out, workers=1)
    points = 200 if long else 40
    assert done == {"points": points, "before": len(before), "failed": 0, "rows": 2 * points}
    after = stamps(out)
    assert {name: after[name] for name in before} == before
    sweep("tiny", read_grid(tmp_path / "grid.yaml"), tmp_path / "whole", workers=2)
    assert_frame_equal(read_sweep(out), read_sweep(tmp_path / "whole"))


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_gets_one_sentence_and_keeps_what_is_finished(notebooks, tmp_path):
    (tmp_path / "grid.yaml").write_text("mood: [sleep 0.3]\nreplicas: 100\n")
    out = tmp_path / "out"
    process = start(tmp_path, out, "--workers", "2")
    wait_for(lambda: len(stamps(out)) >= 2)
    # Another sweep in the same folder is kept out meanwhile.
    with pytest.raises(OutsideError, match="Another sweep is at work"):
        sweep("tiny", read_grid(tmp_path / "grid.yaml"), out)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    output, said = process.communicate(timeout=120)
    assert (process.returncode, output) == (130, "")
    assert said == "Stopped: a sweep keeps what was finished and goes on with the same command.\n"
    assert 2 <= len(read_sweep(out)) < 200


# --- Dask ----------------------------------------------------------------------------------------


@pytest.fixture
def cluster(notebooks, tmp_path):
    """A scheduler, and what starts a worker, each a process, on loopback."""
    processes = []

    def dask(*words):
        folder = tmp_path / f"dask-{len(processes)}"
        folder.mkdir()
        command = [Path(sys.executable).with_name("dask"), *words, "--no-dashboard"]
        with (folder / "said").open("w") as said:
            processes.append(
                subprocess.Popen(list(map(str, command)), cwd=folder, stdout=said, stderr=said)
            )
        return processes[-1]

    file = tmp_path / "scheduler.json"
    dask("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", file)
    try:
        wait_for(lambda: file.exists() and file.read_text().endswith("}"))
        address = json.loads(file.read_text())["address"]

        def worker(address):
            folder = tmp_path / f"worker-{len(processes)}"
            return dask("worker", address, "--nthreads", "1", "--no-nanny", "--host", "127.0.0.1",
                        "--local-directory", folder)  # fmt: skip

        yield address, processes[0], worker
    finally:
        for process in processes:
            process.kill()
            process.wait()


def test_dask_gives_the_same_rows_and_survives_a_death(small, cluster, tmp_path):
    address, scheduler, worker = cluster
    workers = [worker(address), worker(address)]
    lines = "n: [5, 20]\nlam: [0.25, 0.5]\nd: [[1, 2]]\nreplicas: 2\nseed: 3\n"
    (tmp_path / "grid.yaml").write_text(lines)
    process = start(tmp_path, tmp_path / "dask", "--scheduler", address, "--json")
    output, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert json.loads(output)["points"] == 8
    assert_frame_equal(read_sweep(tmp_path / "dask"), read_sweep(small))
    # A worker dies at work.
    (tmp_path / "grid.yaml").write_text("mood: [sleep 0.2]\nreplicas: 16\n")
    process = start(tmp_path, tmp_path / "dies", "--scheduler", address)
    wait_for(lambda: len(stamps(tmp_path / "dies")) >= 3)
    workers[0].kill()
    output, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert output.startswith("16 points")
    # So do all.
    impatient = "from supermarket.experiment import schedulers; schedulers.SECONDS = 2; "
    impatient += "from supermarket.__main__ import app; app()"
    workers.append(worker(address))
    process = start(tmp_path, tmp_path / "all", "--scheduler", address, program=("-c", impatient))
    wait_for(lambda: len(stamps(tmp_path / "all")) >= 1)
    for one in workers:
        one.kill()
    output, said = process.communicate(timeout=60)
    assert (process.returncode, output) == (1, "")
    assert said == (
        f"The Dask cluster at {address} gave up (it has no worker any more): "
        "the same command goes on once it is there again.\n"
    )
    worker(address)
    # So does the scheduler, which ends the sweep: what is finished stays.
    process = start(tmp_path, tmp_path / "gone", "--scheduler", address)
    wait_for(lambda: len(stamps(tmp_path / "gone")) >= 1)
    scheduler.kill()
    output, said = process.communicate(timeout=120)
    assert (process.returncode, output) == (1, "")
    assert said.startswith(f"The Dask cluster at {address} gave up (")
    assert said.endswith("): the same command goes on once it is there again.\n")
    assert said.count("\n") == 1
    assert len(read_sweep(tmp_path / "gone")) < 32


def test_a_cluster_that_is_not_there_gets_one_sentence(notebooks, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(
        OutsideError, match=r"not installed: pip install 'supermarket\[cluster\]'\.$"
    ):
        sweep("tiny", SMALL, tmp_path / "out", scheduler="tcp://127.0.0.1:1")
    monkeypatch.undo()
    monkeypatch.setenv("SUPERMARKET_NOTEBOOKS", str(notebooks))
    with pytest.raises(ParameterError, match="scheduler = here is no address: write it as tcp://"):
        sweep("tiny", SMALL, tmp_path / "out", scheduler="here")
    (tmp_path / "grid.yaml").write_text("lam: [0.5]\n")
    impatient = "from supermarket.experiment import schedulers; schedulers.SECONDS = 1; "
    impatient += "from supermarket.__main__ import app; app()"
    with socket.create_server(("127.0.0.1", 0)) as silent:  # it accepts, and says nothing
        for port in (1, silent.getsockname()[1]):
            out, nobody = tmp_path / f"out-{port}", f"tcp://127.0.0.1:{port}"
            process = start(tmp_path, out, "--scheduler", nobody, program=("-c", impatient))
            _, said = process.communicate(timeout=30)
            assert process.returncode == 1
            assert said.startswith(f"No Dask scheduler answers at {nobody} within 1 seconds: ")
            assert said.count("\n") == 1


# --- grids ---------------------------------------------------------------------------------------

REFUSED = [
    ("lamb: [0.5]", "lamb is not a parameter of tiny: choose from n, lam, d, mood, seed, threads"),
    ("lam: 0.5", "lam = 0.5 is not a list of values: write lam: [0.5]."),
    ("lam: []", "lam = [] is not a list of values"),
    ("lam: [half]", "lam = 'half' is text, and a number is needed"),
    ("n: [1e3]", "n = 1000.0 is not a whole number: write it with digits alone, such as n = 1000"),
    ("n: [5.0]", "n = 5.0 is not a whole number"),
    (
        "n: [01000]",
        "n = '01000' is text, and a whole number is needed: write it with digits alone, "
        "such as n = 1000.",
    ),
    ("n: ['1000']", "n = '1000' is text"),
    ("n: [!!int '01000']", "n = '01000' is text"),
    ("n: [12:30:00]", "n = '12:30:00' is text, and a whole number is needed"),
    ("n: [2026-12-01]", "n = '2026-12-01' is text"),
    ("n: [yes]", "n = 'yes' is text"),
    ("n: [true]", "n = 'true' is text"),
    ("n: [null]", "n = 'null' is text"),
    ("n: [~]", "n = '~' is text"),
    ("lam: ['0,7']", "lam = '0,7' is text, and a number is needed: write lam = 0.7 without quotes"),
    ("lam: [.5e-1_]", "lam = '.5e-1_' is text"),
    ("lam: [.inf]", "lam = '.inf' is text"),
    ("lam: [1e999]", "lam holds something that is no finite number"),
    ("replicas: 02", "replicas = '02' is text, and a whole number is needed"),
    ("seed: 1:30", "seed = '1:30' is text"),
    ("mood: [1]", "mood = 1 is not text"),
    ("d: [1, 2]", "d is itself a list, so its values in a grid are lists, and 1 is not one"),
    ("d: [[[1]]]", "and [[1]] is not one of that form: write d: [[1, 2]] for one run with all"),
    ("lam: [0.5, 0.5]", "lam repeats a value: write each once, and use replicas."),
    ("lam: [0.5]\nlam: [0.6]", "lam stands twice in"),
    ("seed: [1, 2]", "seed is one number: every point gets a seed of its own"),
    ("seed: x", "seed = 'x' is text"),
    ("replicas: 0", "replicas = 0 is out of range"),
    ("replicas: [4]", "replicas is not a parameter of tiny"),
    ("threads: [1]", "threads is 1 in a sweep"),
    ("replicas: 1000000\nlam: [0.5, 0.6]", "The grid has 2000000 points: at most 1000000"),
    ("lam: [", "is not YAML"),
    ("- lam", "must map parameters to lists of values"),
    ("", "must map parameters to lists of values"),
]


@pytest.mark.parametrize(("text", "sentence"), REFUSED)
def test_a_bad_grid_is_refused_before_anything_starts(notebooks, tmp_path, text, sentence):
    (tmp_path / "grid.yaml").write_text(text)
    with pytest.raises(ParameterError) as refused:
        sweep("tiny", read_grid(tmp_path / "grid.yaml"), tmp_path / "out")
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "out").exists()


def test_a_folder_of_something_else_is_refused(small, tmp_path):
    for grid, what in (
        (Grid(SMALL.values, 2, 4), "seed"),
        (Grid(SMALL.values, 3, 3), "replicas"),
        (Grid({"n": [5]}, 2, 3), "grid"),
    ):
        with pytest.raises(
            ParameterError, match=f"holds the sweep of another {what}: choose a new"
        ):
            sweep("tiny", grid, small)
    other = tmp_path / "other"
    other.mkdir()
    (other / "letter.txt").write_text("Dear")
    with pytest.raises(ParameterError, match="holds something else: choose a new folder"):
        sweep("tiny", SMALL, other)
    with pytest.raises(ParameterError, match="is not the folder of a sweep"):
        read_sweep(other)
    shutil.rmtree(small / "points")
    with pytest.raises(ParameterError, match="holds no finished point yet"):
        read_sweep(small)


def test_a_sweep_of_an_older_version_is_refused(small):
    """Its rows say whether a claim holds, and not against what: they would be read as these."""
    text = json.loads((small / "sweep.json").read_text())
    del text["verdict"]
    (small / "sweep.json").write_text(json.dumps(text))
    for again in (
        lambda: read_sweep(small),
        lambda: sweep("tiny", SMALL, small),
        lambda: checks.check(small),
    ):
        with pytest.raises(ParameterError, match="of another version of this package") as refused:
            again()
        assert "\n" not in str(refused.value)


def test_replicas_of_the_sweep_and_of_a_notebook_are_told_apart(tmp_path):
    (tmp_path / "grid.yaml").write_text("replicas: [4, 8]\nlam: [0.5]\n")
    assert read_grid(tmp_path / "grid.yaml", 3) == Grid({"replicas": [4, 8], "lam": [0.5]}, 3, 1)
    (tmp_path / "grid.yaml").write_text("replicas: 4\n")
    with pytest.raises(ParameterError, match="on the command line: give one"):
        read_grid(tmp_path / "grid.yaml", 3)
    with pytest.raises(ParameterError, match="can't be read: No such file"):
        read_grid(tmp_path / "nothing.yaml")
    with pytest.raises(ParameterError, match="has no seed, so its replicas would be equal"):
        sweep("fifo_recursions", Grid({"lam": [0.5]}, replicas=2), tmp_path / "out")


def test_numbers_of_a_grid_are_those_of_the_command_line(notebooks, tmp_path):
    written = {"n": ["1_000", "0x20", "+40", "0o20"], "lam": ["1e-1", ".5", "1_0e-2"]}
    parameters = catalogue.find_notebook("tiny").parameters
    values = {name: [parameters[name].parse(x) for x in texts] for name, texts in written.items()}
    assert values == {"n": [1000, 32, 40, 16], "lam": [0.1, 0.5, 0.1]}
    for name, texts in written.items():
        for text, value in zip(texts, values[name], strict=True):
            (tmp_path / "grid.yaml").write_text(
                f"{name}: [{text}]\nmood: [no, off, 12:30]\nseed: 5"
            )
            grid = check_grid(catalogue.find_notebook("tiny"), read_grid(tmp_path / "grid.yaml"))
            assert grid == Grid({name: [value], "mood": ["no", "off", "12:30"]}, 1, 5)
            assert type(grid.values[name][0]) is type(value)


def test_numbers_of_numpy_are_numbers(notebooks):
    tiny = catalogue.find_notebook("tiny")
    given = {"n": [np.int64(50), np.uint8(60)], "lam": np.array([0.25, 0.5], np.float32),
             "d": [np.array([1, 2])], "mood": [np.str_("calm")]}  # fmt: skip
    values = check_grid(tiny, Grid(given)).values
    assert values == {"n": [50, 60], "lam": [0.25, 0.5], "d": [[1, 2]], "mood": ["calm"]}
    assert [type(value) for value in values["n"] + values["lam"]] == [int, int, float, float]
    assert tiny.check({"d": [np.int64(3), np.int32(4)]}) == {"d": [3, 4]}
    assert type(tiny.check({"d": [np.int64(3)]})["d"][0]) is int


@pytest.mark.parametrize(
    "text",
    ["lam: [2020-01-01]\n", "n: &a [*a]\n", "lam: [.nan]\n", "lam: [.inf]\n", "[" * 3000],
    ids=["date", "itself", "nan", "infinite", "deep"],
)
def test_what_yaml_can_write_and_a_row_cannot_hold(notebooks, tmp_path, text):
    (tmp_path / "grid.yaml").write_text(text)
    with pytest.raises(ParameterError) as refused:
        sweep("tiny", read_grid(tmp_path / "grid.yaml"), tmp_path / "s")
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "s").exists()
