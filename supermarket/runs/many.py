"""Many runs over the cores of this machine."""

import ctypes
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any, TypeVar

from numpy.random import SeedSequence

from supermarket.validation import ParameterError, instance, integer

__all__ = ["run_points"]

Result = TypeVar("Result")

MOST_THREADS = 1000


def run_points(
    function: Callable[..., Result],
    points: Iterable[Mapping[str, Any]],
    *,
    seed: int,
    threads: int = 1,
    done: dict[int, Result] | None = None,
) -> list[Result]:
    """Call ``function(**point, seed=...)`` for every point and return the results in order.

    Point number i gets the i-th stream spawned from `seed`, so a result depends on the seed and the
    point, never on the number of threads. The chains release the GIL while they run.

    Parameters
    ----------
    function : callable
        Such as `supermarket.simulate`. If it has an attribute `check`, that is called with every
        point before the first run, so that of many runs none is refused half-way.
    points : iterable of mappings
        Keyword arguments, one mapping a run.
    seed : int
        Root of all streams.
    threads : int
        Runs at a time. A bar shows the progress where stderr is a terminal.
    done : dict of int to result, optional
        Filled with the finished runs by their numbers, as they finish. After Ctrl-C, or an error
        in one run, it holds what was finished; handed in again, those runs are not repeated. Give
        the same points and seed then.

    Raises
    ------
    ParameterError
        If a point is refused, or `done` holds a number that no point has.
    KeyboardInterrupt
        Within a second of Ctrl-C: the runs that are under way are left.

    Examples
    --------
    >>> from supermarket import Supermarket, simulate
    >>> from supermarket.runs.many import run_points
    >>> points = [{"model": Supermarket(1000, d, 0.9), "schedule": 5} for d in (1, 2)]
    >>> runs = run_points(simulate, points, seed=1, threads=2)
    >>> [(run.model.d, run.model.n) for run in runs]
    [(1, 1000), (2, 1000)]
    """
    from tqdm import tqdm

    threads = integer("threads", threads, 1, MOST_THREADS)
    seed = integer("seed", seed, 0)
    instance("function", function, Callable, "give a function, such as simulate")
    instance("points", points, Iterable, "give a list of keyword arguments")
    points = [instance("points", one, Mapping, "give keyword arguments") for one in points]
    streams = SeedSequence(seed).spawn(len(points))
    done = {} if done is None else instance("done", done, dict, "give the one of before")
    if unknown := done.keys() - set(range(len(points))):
        raise ParameterError(
            f"done holds run {sorted(unknown)[0]} of {len(points)}: it belongs to other points."
        )

    check = getattr(function, "check", None)
    for point, stream in zip(points, streams, strict=True) if check else ():
        check(**point, seed=stream)

    running: set[int] = set()
    lock = threading.Lock()

    def one(number: int) -> None:
        with lock:
            running.add(threading.get_ident())
        try:
            done[number] = function(**points[number], seed=streams[number])
        finally:
            with lock:
                running.discard(threading.get_ident())

    left = [number for number in range(len(points)) if number not in done]
    with ThreadPoolExecutor(threads) as pool:
        try:
            runs = [pool.submit(one, number) for number in left]
            bar = tqdm(as_completed(runs), total=len(points), initial=len(done), disable=None)
            for run in bar:
                run.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            # Only the main thread hears Ctrl-C: the others are told, between two jitted calls.
            with lock:
                for worker in running:
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(
                        ctypes.c_ulong(worker), ctypes.py_object(KeyboardInterrupt)
                    )
            raise
    return [done[number] for number in range(len(points))]
