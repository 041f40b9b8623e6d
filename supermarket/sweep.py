"""Many runs over the cores of this machine."""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from inspect import signature
from typing import Any, TypeVar

from numpy.random import SeedSequence
from tqdm import tqdm

from supermarket.validation import integer

Result = TypeVar("Result")


def run_points(
    function: Callable[..., Result],
    points: Iterable[Mapping[str, Any]],
    *,
    seed: int,
    threads: int = 1,
) -> list[Result]:
    """Call ``function(**point, seed=...)`` for every point and return the results in order.

    Point number i gets the i-th stream spawned from `seed`, so a result depends on the seed and the
    point, never on the number of threads. The chains release the GIL while they run.

    Parameters
    ----------
    function : callable
        Such as `supermarket.simulate`. If it has a parameter `dry_run`, all points are checked
        that way before the first run.
    points : iterable of mappings
        Keyword arguments, one mapping a run.
    seed : int
        Root of all streams.
    threads : int
        Runs at a time. A bar shows the progress where stderr is a terminal.
    """
    threads = integer("threads", threads, 1, 1000)
    seed = integer("seed", seed, 0)
    points = list(points)
    streams = SeedSequence(seed).spawn(len(points))

    if "dry_run" in signature(function).parameters:
        for point, stream in zip(points, streams, strict=True):
            function(**point, seed=stream, dry_run=True)

    def one(point: Mapping[str, Any], stream: SeedSequence) -> Result:
        return function(**point, seed=stream)

    with ThreadPoolExecutor(threads) as pool:
        return list(tqdm(pool.map(one, points, streams), total=len(points), disable=None))
