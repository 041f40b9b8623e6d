"""Run a chain over a stretch of time and measure it: what all chains here share.

Time is continuous: events come as a Poisson process of rate n (1 + lam) per mean service time, and
every event is one step of the discrete chain of Brightwell & Luczak. Given the number N of events
in an interval, its N + 1 holding times have the same law, so each state is weighted by 1 / (N + 1):
the mean over the holding times given the path, with the same expectation and less noise.
"""

import math
from typing import Protocol

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from supermarket.models.jsq import Supermarket
from supermarket.runs.run import Run
from supermarket.runs.schedule import Schedule, stack
from supermarket.validation import EXACT_MAX, ParameterError, nearest, profile_of, said


class Chain(Protocol):
    """What `measure` needs of a chain."""

    counts: NDArray[np.int64]  # counts[i] = queues of length at least i; the last entry is 0
    tally: type  # int64, or float64 where single steps are not seen
    events_per_call: int  # as many as take a few tenths of a second, so that Ctrl-C is heard

    def advance(self, events: int, moved: NDArray[np.int64], at_top: NDArray[np.int64]) -> int:
        """Make up to `events` steps and return how many; fewer if the next level needs room.

        With the steps numbered from 1, add to ``moved[i]`` (change of counts[i]) * (step) for
        every change, and to ``at_top[m]`` the number of states left whose top level was m.
        """

    def grow(self) -> None:
        """Double the number of levels there is room for."""


def given_counts(n: int, start: ArrayLike) -> NDArray[np.int64]:
    """Return the counts of a start profile given as shares u[0] = 1 >= u[1] >= ... >= 0.

    Raises
    ------
    ParameterError
        If the profile is not such a sequence.
    """
    if isinstance(start, str):
        names = ("empty", "fixed point")
        raise ParameterError(
            f"start = {said(start)} is not known: use 'empty', 'fixed point', or a profile of "
            f"shares{nearest(start, names)}."
        )
    u = profile_of("start", start)
    counts = np.rint(u * n).astype(np.int64)
    return np.append(counts[counts > 0], 0)


def with_room(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the counts followed by zeros: at least two levels above the top, 32 in all."""
    top = int(np.flatnonzero(counts)[-1])
    roomy = np.zeros(max(32, top + 3), dtype=np.int64)
    roomy[: top + 1] = counts[: top + 1]
    return roomy


def measure(
    chain: Chain,
    model: Supermarket,
    schedule: Schedule,
    rng: Generator,
    **told: object,
) -> Run:
    """Run `chain` through a schedule and return what was seen.

    `told` are the start, the seed, the engine and what else the run is to hold, see `Run`.
    """
    clock = Clock(chain, model, schedule, rng)
    tallies, path = schedule.follow(clock)
    profiles, tops, ends = zip(*tallies, strict=True)
    final = chain.counts.copy()
    lengths = np.diff(schedule.edges)[:, np.newaxis]
    return Run(
        model=model,
        schedule=schedule,
        events=clock.events,
        path=stack(path, final),
        final=final,
        batches={
            "profile": stack(profiles, final) / lengths,
            "maximum": stack(tops, final) / lengths,
        },
        ends=stack(ends, final),
        **told,
    )


class Clock:
    """Turns stretches of time into events, and adds up over them."""

    def __init__(
        self, chain: Chain, model: Supermarket, schedule: Schedule, rng: Generator
    ) -> None:
        self.chain, self.rng = chain, rng
        self.n, self.lam, self.in_steps = model.n, model.lam, schedule.unit == "steps"
        self.events = 0
        self.profile = self.at_top = np.zeros(0)

    def look(self) -> NDArray[np.int64]:
        """Return the counts."""
        return self.chain.counts.copy()

    def settle(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
        """Return the integrals of profile and law of the maximum, and the counts; begin anew."""
        seen = self.profile, self.at_top, self.look()
        self.profile = self.at_top = np.zeros(0)
        return seen

    def go(self, length: float, until: float) -> None:
        """Go on for `length` units of time."""
        chain = self.chain
        events = int(length) if self.in_steps else self._arrivals_and_departures(length)
        summed, at_top = np.zeros((2, len(chain.counts)))
        left = events
        while left > 0:
            moved = np.zeros(len(chain.counts), dtype=chain.tally)
            stayed = np.zeros_like(moved)
            done = chain.advance(min(left, chain.events_per_call), moved, stayed)
            # The sum of a count over the states left by steps 1..done, from its changes alone.
            summed = _add(summed, chain.counts * float(done) - moved)
            at_top = _add(at_top, stayed)
            left -= done
            if chain.counts[-2] > 0:
                chain.grow()
        self.events += events
        states = events
        if not self.in_steps:  # the state after the last event is held too
            summed = _add(summed, chain.counts)
            at_top[int(np.flatnonzero(chain.counts)[-1])] += 1.0
            states += 1
        self.profile = _add(self.profile, summed / (self.n * states) * length)
        self.at_top = _add(self.at_top, at_top / states * length)

    def _arrivals_and_departures(self, length: float) -> int:
        """Draw the number of events in `length` units of time, in parts that a double counts."""
        mean = length * self.n * (1 + self.lam)
        parts = math.ceil(mean / EXACT_MAX)
        return sum(int(self.rng.poisson(mean / parts)) for _ in range(parts))


def _add(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Add two arrays, the shorter one continued by zeros."""
    if len(a) == len(b):
        return a + b
    total = np.zeros(max(len(a), len(b)))
    total[: len(a)] += a
    total[: len(b)] += b
    return total
