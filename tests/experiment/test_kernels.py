"""Kernels started side by side, with a planted clash of what they ask for."""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from supermarket.experiment import jupyter as kernels

pytestmark = pytest.mark.book  # kernels of their own: once is enough

# A cell that keeps its kernel until those of all notebooks are at work, or one of them has failed.
TOGETHER = """import os, pathlib, time
here = pathlib.Path(os.environ["SUPERMARKET_BUILD"])
here.touch()
while len(list(here.parent.glob("at-work-*"))) < 3 and not (here.parent / "failed").exists():
    time.sleep(0.05)"""
# A process in which jupyter_client picks the ports that it is told.
EXECUTE = """import sys
from pathlib import Path
from jupyter_client.manager import KernelManager
from jupyter_client.provisioning import local_provisioner
from supermarket.experiment import jupyter as kernels
notebook, target, build, transport, *ports = sys.argv[1:]
picked = iter(map(int, ports))
local_provisioner.LocalPortCache.find_available_port = lambda self, ip: next(picked)
if transport == "tcp":
    kernels._short_folder = lambda: None
kernels.execute(Path(notebook), Path(target), {}, Path(build))
"""


def write(file, source):
    cell = {"cell_type": "code", "id": "a", "metadata": {}, "source": source}
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    content = {"cells": [cell | {"outputs": [], "execution_count": None}], "nbformat": 4}
    content |= {"metadata": {"kernelspec": kernel}, "nbformat_minor": 5}
    file.write_text(json.dumps(content))
    return file


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [str(listening.getsockname()[1]) for listening in sockets]
    for listening in sockets:
        listening.close()
    return ports


def start_three(folder, transport):
    """Execute a notebook three times at once, all told to use the same ports; return the errors."""
    notebook = write(folder / "together.ipynb", TOGETHER)
    ports = free_ports(5)
    processes = []
    for number in range(3):
        words = [notebook, folder / f"out-{number}.ipynb", folder / f"at-work-{number}", transport]
        processes.append(
            subprocess.Popen(
                [sys.executable, "-c", EXECUTE, *map(str, words), *ports],
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    while any(process.poll() is None for process in processes):
        if any(process.poll() for process in processes):
            (folder / "failed").touch()  # so that those at work need not wait for it
        time.sleep(0.05)
    said = [process.communicate()[1] for process in processes]
    return [text for text, process in zip(said, processes, strict=True) if process.returncode]


def test_kernels_that_would_get_the_same_ports_all_run(tmp_path):
    assert start_three(tmp_path, "own") == []
    assert all((tmp_path / f"out-{number}.ipynb").is_file() for number in range(3))


def test_over_tcp_the_same_ports_are_the_end_of_all_but_one(tmp_path):
    """The clash is real: without the sockets it is seen."""
    errors = start_three(tmp_path, "tcp")
    assert len(errors) == 2
    for error in errors:
        assert "its kernel could not be started (" in error
        assert "Address already in use" in error


def test_nothing_is_left_and_what_was_set_is_put_back(tmp_path, monkeypatch):
    monkeypatch.setattr(kernels, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setenv("SUPERMARKET_BUILD", "before")
    monkeypatch.delenv("JUPYTER_PREFER_ENV_PATH", raising=False)
    work = tmp_path / "work"
    work.mkdir()
    code = "import os, sys; [sys.argv[2], os.environ['SUPERMARKET_BUILD']]"
    notebook = write(work / "a.ipynb", code)
    kernels.execute(notebook, work / "out.ipynb", {}, work / "build")
    (output,) = json.loads((work / "out.ipynb").read_text())["cells"][-1]["outputs"]
    file, build = eval("".join(output["data"]["text/plain"]))
    assert build == str(work / "build")
    assert Path(file).parent.parent == tmp_path
    assert list(tmp_path.iterdir()) == [work]
    assert os.environ["SUPERMARKET_BUILD"] == "before"
    assert "JUPYTER_PREFER_ENV_PATH" not in os.environ


@pytest.mark.parametrize("wanted", [None, "2"])
def test_matrices_take_one_thread_unless_told_otherwise(wanted, tmp_path, monkeypatch):
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    if wanted:
        monkeypatch.setenv("OPENBLAS_NUM_THREADS", wanted)
    notebook = write(tmp_path / "a.ipynb", "import os; os.environ['OPENBLAS_NUM_THREADS']")
    kernels.execute(notebook, tmp_path / "out.ipynb", {}, tmp_path / "build")
    (output,) = json.loads((tmp_path / "out.ipynb").read_text())["cells"][-1]["outputs"]
    assert output["data"]["text/plain"] == [f"'{wanted or 1}'"]
    assert os.environ.get("OPENBLAS_NUM_THREADS") == wanted


def test_a_long_path_of_temporary_files_is_not_used_for_sockets(tmp_path, monkeypatch):
    """A socket whose path is too long could not be made."""
    deep = tmp_path / ("d" * 90)
    deep.mkdir()
    monkeypatch.setattr(kernels, "gettempdir", lambda: str(deep))
    assert kernels._short_folder() == "/tmp"
    with kernels._own_folder() as (name, config):
        folder = Path(name)
        assert Path(config.KernelManager.connection_file).parent == folder
        assert folder.stat().st_mode & 0o77 == 0
        with socket.socket(socket.AF_UNIX) as fits:
            fits.bind(f"{config.KernelManager.ip}-5")
    assert not folder.exists()
    monkeypatch.setattr(os, "access", lambda folder, mode: False)
    with kernels._own_folder() as (_, config):
        assert "transport" not in config.KernelManager  # TCP
