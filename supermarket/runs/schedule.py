"""When a run is measured: how long, after which warm-up, in how many batches, looked at when."""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import ArrayLike, NDArray

from supermarket.validation import (
    ParameterError,
    affordable,
    choice,
    integer,
    numbers,
    positive,
    real,
    seed_of,
)

__all__ = ["Schedule"]

MOST_COPIES = 10**6
SHORTEST = 1e-290  # a horizon whose batches a double still divides by
LOOK = 3e4  # nanoseconds that a batch, or a look at the state, costs beside its events


@dataclass(frozen=True)
class Schedule:
    """The stretches of time of a run: a warm-up, then batches of equal length.

    It is checked when it is made. Wherever one is asked for, a number will do for its horizon.

    Attributes
    ----------
    horizon : float
        Length of the measured run, in `unit`.
    warmup : float, optional
        Time that passes before anything is measured; a tenth of the horizon by default.
    batches : int
        Number of stretches of equal length for batch means.
    times : array_like of float
        Times since the end of the warm-up at which the state is recorded, not decreasing.
    unit : {"service", "steps"}
        The unit of time of the model, which is the mean service time unless a law of another mean
        is given; or steps of the chain of Brightwell & Luczak, of which there are n (1 + lam) per
        mean service time.
    max_hours : float
        A run that would take longer than about this is refused before it starts.

    Examples
    --------
    >>> from supermarket import Schedule
    >>> Schedule(200, batches=4).edges.tolist()
    [0.0, 50.0, 100.0, 150.0, 200.0]
    >>> Schedule(200).lead
    20.0
    """

    horizon: float
    warmup: float | None = None
    batches: int = 64
    times: ArrayLike = ()
    unit: str = "service"
    max_hours: float = 1.0

    def __post_init__(self) -> None:
        horizon = real("horizon", self.horizon, SHORTEST)
        warmup = None if self.warmup is None else real("warmup", self.warmup, 0.0)
        batches = integer("batches", self.batches, 2, 10**6)
        choice("unit", self.unit, ("service", "steps"))
        moments = np.atleast_1d(numbers("times", self.times))
        if self.unit == "steps":
            if not (horizon.is_integer() and horizon >= batches):
                raise ParameterError(
                    f"horizon = {horizon:g} steps is not a whole number, at least batches = "
                    f"{batches}."
                )
            if np.any(moments % 1):
                raise ParameterError("times in steps must be whole numbers.")
        if moments.ndim != 1 or not np.all((moments >= 0) & (moments <= horizon)):
            raise ParameterError(f"times must be numbers between 0 and the horizon {horizon:g}.")
        if np.any(np.diff(moments) < 0):
            raise ParameterError("times must not decrease: sort them.")
        values = horizon, warmup, batches, tuple(moments.tolist())
        for name, value in zip(("horizon", "warmup", "batches", "times"), values, strict=True):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "max_hours", positive("max_hours", self.max_hours))

    @property
    def lead(self) -> float:
        """The time that passes before anything is measured."""
        lead = self.horizon / 10 if self.warmup is None else self.warmup
        return float(int(lead)) if self.unit == "steps" else lead

    @property
    def edges(self) -> NDArray[np.float64]:
        """Where batches begin and end, shape (batches + 1,), since the end of the warm-up."""
        edges = np.linspace(0.0, self.horizon, self.batches + 1)
        return np.rint(edges) if self.unit == "steps" else edges

    @property
    def weights(self) -> NDArray[np.float64]:
        """The share of each batch in the horizon, shape (batches,)."""
        return np.diff(self.edges) / self.horizon

    def allow(
        self,
        events: float,
        nanoseconds: float,
        what: str = "events",
        *,
        copies: int = 1,
        width: int = 100,
    ) -> None:
        """Refuse what takes too long, or more memory than there may be.

        Raises
        ------
        ParameterError
            If so many events, of so many nanoseconds each, and the batches and looks of all
            copies, each of so many numbers, take longer than `max_hours`, or too much memory.
        """
        looks = copies * (self.batches + len(self.times) + 30)
        asked = f"{copies} x {self.batches} batches, each with {len(self.times)} times,"
        affordable(asked, float(looks) * width, "choose fewer copies, batches or times", 5e8)
        hours = (events * nanoseconds + looks * LOOK) * 1e-9 / 3600
        if hours > self.max_hours:
            ahead = f", or pass max_hours={hours * 1.1:.2g} to go ahead" if hours < 1e7 else ""
            raise ParameterError(
                f"about {events:.2g} {what} are asked for, which takes some {hours:.2g} hours: "
                f"shorten the horizon ({self.horizon:g}){ahead}."
            )

    def follow(self, chain: "Measured") -> tuple[list[Any], list[Any]]:
        """Lead a chain through the warm-up and the batches.

        Returns
        -------
        tallies : list
            What `chain.settle` gave at the end of each batch.
        path : list
            What `chain.look` gave at each of the `times`.
        """
        if self.lead > 0:
            chain.go(self.lead, self.lead)
        chain.settle()
        tallies, path, edges = [], [], self.edges.tolist()
        times = iter((*self.times, math.inf))
        moment = next(times)
        for now, end in pairwise(edges):
            while moment < end or moment <= end == edges[-1]:
                if moment > now:
                    chain.go(moment - now, self.lead + moment)
                    now = moment
                path.append(chain.look())
                moment = next(times)
            if end > now:
                chain.go(end - now, self.lead + end)
            tallies.append(chain.settle())
        return tallies, path


class Measured(Protocol):
    """What a schedule needs of a chain."""

    def go(self, length: float, until: float) -> None:
        """Go on for `length` units of time, which end `until` since the start of the run."""

    def look(self) -> Any:
        """Return what is recorded of the state."""

    def settle(self) -> Any:
        """Return what has been added up since this was last called, and begin anew."""


def schedule_of(given: object) -> Schedule:
    """Return a schedule, of which a number is the horizon."""
    return given if isinstance(given, Schedule) else Schedule(given)


def spawned(seed: int | SeedSequence, copies: int) -> list[SeedSequence]:
    """Return the streams of so many copies: number k depends on the seed and on k alone."""
    root, copies = seed_of(seed), integer("copies", copies, 1, MOST_COPIES)
    return [SeedSequence(root.entropy, spawn_key=(*root.spawn_key, k)) for k in range(copies)]


def stack(rows: list[NDArray], like: NDArray) -> NDArray:
    """Return rows of different lengths as one array, each continued by zeros to that of `like`."""
    stacked = np.zeros((len(rows), *like.shape), dtype=rows[0].dtype if rows else like.dtype)
    for row, values in zip(stacked, rows, strict=True):
        row[..., : values.shape[-1]] = values
    return stacked
