"""Command lines, each in a process that is there at once: what `test_odd_lines` plays with.

A process that has imported what they need forks for each: a second of imports is paid once. Orders
are lines of JSON: words, working folder, environment, and whether a kernel may be started; without
one what it would leave is there at once. A command that takes too long is ended, with all that it
started.
"""

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path

CPU_SECONDS, WALL_SECONDS = 10, 100


class Lines:
    """The process that forks, as a test sees it."""

    def __init__(self):
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, words, folder, environment, *, kernels=False):
        """Run a command line; return its status, or "hang", its stdout and its stderr."""
        self._process.stdin.write(json.dumps([words, str(folder), environment, kernels]) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self):
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


def execute(notebook, target, parameters, build, **_):
    """Leave what a kernel would, without one."""
    from supermarket.experiment.catalogue import read
    from supermarket.experiment.files import write

    read(notebook)
    target.write_bytes(notebook.read_bytes())
    for what in ("verdicts", "provenance"):
        write(build / what / f"{notebook.stem}.json", b"[]")


def child(words, folder, environment, kernels, said):
    """Be the command."""
    os.setsid()
    os.chdir(folder)
    os.environ.update(environment)
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 1))
    resource.setrlimit(resource.RLIMIT_FSIZE, (10**8, 10**8))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, file in zip((1, 2), said, strict=True):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    sys.stdout, sys.stderr = (os.fdopen(n, "w", encoding="utf-8") for n in (1, 2))
    from supermarket import __main__
    from supermarket.experiment import jupyter

    if not kernels:
        jupyter.execute = execute
    sys.argv = ["supermarket", *words]
    try:
        __main__.main()
        status = 0
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
        status = 1
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status)


def waited(process):
    """Return the status of a command, or "hang"."""
    end = time.monotonic() + WALL_SECONDS
    while time.monotonic() < end:
        found, status = os.waitpid(process, os.WNOHANG)
        if found:
            code = os.waitstatus_to_exitcode(status)
            return "hang" if code in (-signal.SIGXCPU, -signal.SIGKILL) else code
        time.sleep(0.005)
    os.killpg(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return "hang"


def serve():
    from supermarket import __main__  # noqa: F401
    from supermarket.experiment import catalogue, checks, grids, notebooks, sweeps  # noqa: F401

    for line in sys.stdin:
        words, folder, environment, kernels = json.loads(line)
        said = [f"{folder}/../../out", f"{folder}/../../err"]
        process = os.fork()
        if process == 0:
            child(words, folder, environment, kernels, said)
        status = waited(process)
        texts = [Path(file).read_text(encoding="utf-8", errors="replace") for file in said]
        print(json.dumps([status, *texts]), flush=True)


if __name__ == "__main__":
    serve()
