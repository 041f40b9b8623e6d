"""Tasks over the cores of this machine, or over a Dask cluster; the results as they finish.

Both take a function and its arguments by number, yield (number, result), and survive a worker that
dies: its task is tried again, at most `ATTEMPTS` times in all (with Dask, as often as the scheduler
allows), and then yields a `Died`.
"""

import contextlib
import logging
import os
import re
import signal
import sys
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from queue import Empty, SimpleQueue
from typing import Any

from supermarket.experiment.files import OutsideError
from supermarket.validation import ParameterError

ATTEMPTS = 3
# By the server of `local`: libraries, which are the same wherever it finds them first.
IMPORTED = ["matplotlib.pyplot", "numba", "pandas", "scipy.stats", "tqdm"]
SECONDS = 10  # how long a Dask scheduler may take to answer, or to have a worker

Tasks = Mapping[int, tuple]


@dataclass(frozen=True)
class Died:
    """Stands for the result of a task whose worker died each time."""

    def __str__(self) -> str:
        return "the process that computed it died each time: out of memory?"


def local(function: Callable[..., Any], tasks: Tasks, workers: int) -> Iterator[tuple[int, Any]]:
    """Yield (number, function(*tasks[number])) as they finish, from processes that stay alive.

    A task goes to a process when that is free. So it is known whose task a process died of, which
    a shared queue would hide, and a process notices when this one is killed, and ends.
    """
    context = _context()
    waiting, deaths = deque(tasks), Counter()
    running: dict[Connection, tuple[BaseProcess, int]] = {}

    def start() -> None:
        here, there = context.Pipe()
        process = context.Process(target=_serve, args=(there, function, dict(os.environ)))
        process.start()
        there.close()
        give(here, process)

    def give(pipe: Connection, process: BaseProcess) -> None:
        number = waiting.popleft()
        running[pipe] = process, number
        with contextlib.suppress(OSError):  # it has just died: seen below
            pipe.send(tasks[number])

    try:
        for _ in range(min(workers, len(tasks))):
            start()
        while running:
            for pipe in wait(list(running)):
                process, number = running.pop(pipe)
                try:
                    result = pipe.recv()
                except (EOFError, OSError):
                    pipe.close()
                    process.join()
                    deaths[number] += 1
                    if deaths[number] < ATTEMPTS:
                        waiting.appendleft(number)
                    else:
                        yield number, Died()
                    if waiting:
                        start()
                    continue
                if waiting:
                    give(pipe, process)
                else:
                    pipe.close()  # the process reads the end of its tasks
                    process.join()
                yield number, result
    finally:
        for process, _ in running.values():
            process.kill()
            process.join()


def _context() -> BaseContext:
    """Return how to start processes: forking this one, which may have threads, is not safe.

    A server that has none of its own imports what most tasks need, once, and forks for each
    process. Elsewhere than on Linux, libraries of the system do not survive that.
    """
    if sys.platform != "linux":
        return get_context("spawn")
    context = get_context("forkserver")
    context.set_forkserver_preload(IMPORTED)
    return context


def _serve(pipe: Connection, function: Callable[..., Any], environment: dict[str, str]) -> None:
    """Compute what comes through a pipe until it is closed."""
    os.environ.clear()  # the server that forked this process has that of its own start
    os.environ.update(environment)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that gave the tasks
    end_with_parent()
    # Its own lock is between processes, and Python complains of it when this one is killed.
    from tqdm import tqdm

    tqdm.set_lock(threading.RLock())
    with contextlib.suppress(EOFError, OSError):
        while True:
            pipe.send(function(*pipe.recv()))


def end_with_parent() -> None:
    """End this process, and all that it started, as soon as its parent has ended, however."""
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_end_after, args=(parent,), daemon=True).start()


def _end_after(parent: BaseProcess) -> None:
    import psutil

    parent.join()
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    os._exit(1)


def dask(function: Callable[..., Any], tasks: Tasks, address: str) -> Iterator[tuple[int, Any]]:
    """Yield (number, function(*tasks[number])) as they finish, from the workers of a Dask cluster.

    Raises
    ------
    ParameterError
        If it is no address.
    OutsideError
        If distributed is not installed, or the scheduler does not answer, has no worker, or goes.
    """
    if not re.fullmatch(r"(tcp|tls)://[^/]+:\d+", address):
        raise ParameterError(
            f"scheduler = {address} is no address: write it as tcp://127.0.0.1:8786, with its port."
        )
    try:
        import distributed
    except ImportError:
        raise OutsideError(
            "--scheduler needs Dask, which is not installed: pip install 'supermarket[cluster]'."
        ) from None
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] in (
            "distributed",
            "asyncio",
        ):  # what goes wrong is said here, in a sentence
            logging.getLogger(name).setLevel(logging.CRITICAL)
    client = _answer(
        lambda: distributed.Client(address, timeout=SECONDS, set_as_default=False), SECONDS + 1
    )
    if client is None:
        raise OutsideError(
            f"No Dask scheduler answers at {address} within {SECONDS} seconds: "
            "start one with `dask scheduler` and give the address that it prints."
        )
    try:
        try:
            client.wait_for_workers(1, timeout=SECONDS)
        except TimeoutError:
            raise OutsideError(
                f"The Dask scheduler at {address} has no worker after {SECONDS} seconds: "
                f"start some with `dask worker {address} --nthreads 1`."
            ) from None
        with client.as_current():  # for `distributed.wait`
            yield from _over(client, function, tasks, address)
    finally:
        with contextlib.suppress(OSError):
            client.close(timeout=SECONDS)


def _over(
    client: Any, function: Callable[..., Any], tasks: Tasks, address: str
) -> Iterator[tuple[int, Any]]:
    import distributed

    def submit(number: int) -> Any:
        future = client.submit(function, *tasks[number], pure=False)
        numbers[future] = number
        return future

    numbers: dict[Any, int] = {}
    left = iter(tasks)
    # Enough that no worker waits, few enough that the scheduler need not hold all.
    ahead = 4 * max(1, sum(client.nthreads().values()))
    for number in islice(left, ahead):
        submit(number)
    while numbers:
        try:
            wait = distributed.wait(list(numbers), timeout=SECONDS, return_when="FIRST_COMPLETED")
            future = next(iter(wait.done))
            result = future.result(timeout=SECONDS)
        except distributed.KilledWorker:
            result = Died()
        except TimeoutError:  # a long task, a result that went with its worker, or no worker left
            if not _answer(client.nthreads, SECONDS):
                raise _gave_up(address, "it has no worker any more") from None
            continue
        except (Exception, distributed.CancelledError) as failure:
            raise _gave_up(address, type(failure).__name__) from None
        for following in islice(left, 1):
            submit(following)
        yield numbers.pop(future), result


def _gave_up(address: str, why: str) -> OutsideError:
    return OutsideError(
        f"The Dask cluster at {address} gave up ({why}): the same command goes on once it is there "
        "again."
    )


def _answer(ask: Callable[[], Any], seconds: float) -> Any:
    """Return what a call gives, None if it fails for a reason of the network, or takes longer.

    It then waits on, in a thread that ends with this process: Dask sets no limit to what a port
    that is open may be silent.
    """
    answers: SimpleQueue[Any] = SimpleQueue()

    def asking() -> None:
        try:
            answers.put(ask())
        except (OSError, ValueError):
            answers.put(None)

    threading.Thread(target=asking, daemon=True).start()
    try:
        return answers.get(timeout=seconds)
    except Empty:
        return None
