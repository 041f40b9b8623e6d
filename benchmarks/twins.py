"""The C twins of the occupancy chain: compiled, and run by the same measuring code."""

import ctypes
import os
import shutil
import subprocess
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from supermarket.models.jsq import Supermarket
from supermarket.runs.counts import lanes as replicas
from supermarket.runs.counts.clock import given_counts, measure, with_room
from supermarket.runs.front import simulate
from supermarket.runs.run import Run
from supermarket.runs.schedule import Schedule

SOURCE = Path(__file__).with_name("occupancy.c")
FLAGS = ("-O3", "-march=native", "-fno-math-errno", "-shared", "-fPIC")


@dataclass(frozen=True)
class Compiler:
    """A C compiler: its path, and the first line of what it says of itself."""

    path: str
    version: str


def find_compiler() -> Compiler | None:
    """Return the compiler that CC names, or gcc, cc or clang; None if there is none."""
    for name in (os.environ.get("CC") or "gcc", "gcc", "cc", "clang"):
        if path := shutil.which(name):
            told = subprocess.run([path, "--version"], capture_output=True, text=True, check=True)
            return Compiler(path, told.stdout.splitlines()[0])
    return None


def compiled(source: Path, compiler: Compiler, folder: Path) -> ctypes.CDLL:
    """Compile a file of C beside this one and load it.

    Parameters
    ----------
    source : Path
    compiler : Compiler
    folder : Path
        Where the shared library is written; made if need be.

    Raises
    ------
    subprocess.CalledProcessError
        If the compiler fails; what it printed is shown.
    """
    folder.mkdir(parents=True, exist_ok=True)
    library = folder.resolve() / f"{source.stem}.so"
    subprocess.run([compiler.path, *FLAGS, "-o", library, source, "-lm"], check=True)
    return ctypes.CDLL(str(library))


class Twins:
    """The functions of occupancy.c, compiled as `compiled` says."""

    def __init__(self, compiler: Compiler, folder: Path) -> None:
        self._library = compiled(SOURCE, compiler, folder)

    def simulate(
        self, twin: str, model: Supermarket, schedule: Schedule, *, seed: int, start: ArrayLike
    ) -> Run:
        """Do what `supermarket.simulate` does, with `twin` "plain" or "table" as the engine."""
        rng = np.random.default_rng(seed)
        counts = with_room(given_counts(model.n, start))
        chain = _Chain(getattr(self._library, twin), counts, model.d, model.lam, rng)
        told = {"start": "given", "seed": (seed, ()), "engine": f"C, {twin}"}
        return measure(chain, model, schedule, rng, **told)

    def simulate_lanes(self, *arguments: Any, **options: Any) -> list[Run]:
        """Do what `supermarket.simulate` does with copies in lanes, with the steps made in C."""
        with patch.object(replicas, "_advance", self._advance_replicas):
            return simulate(*arguments, **options)

    def _advance_replicas(
        self, streams: replicas.Streams, table: replicas.Events, wanted: NDArray[np.int64],
        done: int, last: int, seen: replicas.Seen,
    ) -> int:  # fmt: skip
        function = self._library.replicas
        function.restype = ctypes.c_int64
        levels = int(np.flatnonzero(seen.counts.any(axis=1))[-1]) + 2
        while done < last and levels <= len(seen.counts):
            done = function(
                *(ctypes.c_void_p(array.ctypes.data) for array in (streams.words, *table)),
                ctypes.c_int64(len(table.cuts).bit_length() - 1),
                ctypes.c_void_p(wanted.ctypes.data),
                *(ctypes.c_int64(number) for number in (done, last, levels)),
                *(ctypes.c_void_p(array.ctypes.data) for array in seen),
            )
            levels += 1
        return done


class _Chain:
    """What `measure` needs of a chain, with the steps made in C."""

    tally = np.int64

    def __init__(
        self, function: ctypes._CFuncPtr, counts: NDArray[np.int64], d: int, lam: float,
        rng: Generator,
    ) -> None:  # fmt: skip
        self.counts = counts
        self.events_per_call = 2**18 if function.__name__ == "table" else 2**22
        function.restype = ctypes.c_int64
        self._make_steps = partial(_call, function, d, lam)
        self._rng = rng
        self._scratch = np.empty(self.events_per_call + 3, dtype=np.uint16)

    def advance(self, events: int, moved: NDArray[np.int64], at_top: NDArray[np.int64]) -> int:
        state = self._rng.bit_generator.state
        inner, mask = state["state"], 2**64 - 1
        words = np.array(
            [inner["state"] >> 64, inner["state"] & mask, inner["inc"] >> 64, inner["inc"] & mask],
            dtype=np.uint64,
        )
        done = self._make_steps(words, self.counts, events, moved, at_top, self._scratch)
        inner["state"] = int(words[0]) << 64 | int(words[1])
        self._rng.bit_generator.state = state
        return done

    def grow(self) -> None:
        self.counts = np.append(self.counts, np.zeros_like(self.counts))


def _call(
    function: ctypes._CFuncPtr, d: int, lam: float, words: NDArray[np.uint64],
    counts: NDArray[np.int64], events: int, *outputs: NDArray,
) -> int:  # fmt: skip
    return function(
        words.ctypes.data_as(ctypes.c_void_p),
        counts.ctypes.data_as(ctypes.c_void_p),
        ctypes.c_int64(len(counts)),
        ctypes.c_int64(d),
        ctypes.c_double(lam),
        ctypes.c_int64(events),
        *(output.ctypes.data_as(ctypes.c_void_p) for output in outputs),
    )
