"""The labelled chain: n queue lengths, exactly as Brightwell & Luczak define it.

An arrival draws an ordered list of d queues and joins the first shortest one in it; a potential
departure picks a queue and takes a customer if there is one. Slower than the occupancy chain, and
the reference that one is tested against; also for questions about named queues.
"""

from collections.abc import Callable

import numpy as np
from numpy.random import Generator, SeedSequence
from numpy.typing import NDArray

from supermarket.kernels.compiled import kernel
from supermarket.kernels.event_loop import Tally, rule_of
from supermarket.models.jsq import Supermarket
from supermarket.runs.counts.clock import measure, with_room
from supermarket.runs.counts.engines import events_of
from supermarket.runs.run import Run, name_of_seed
from supermarket.runs.schedule import Schedule
from supermarket.validation import MOST_LEVELS, choice, integer, queue_lengths


def prepare(
    model: Supermarket, schedule: Schedule, seed: SeedSequence, start: object
) -> Callable[[], Run]:
    """Check what `supermarket.simulate` was asked for and return what makes the run."""
    n = integer("n", model.n, 1, 10**9)
    if start is None or isinstance(start, str):
        named = str(choice("start", "empty" if start is None else start, ("empty",)))
        queues = np.zeros(n, dtype=np.int64)
    else:
        queues, named = queue_lengths("lengths", start, n, MOST_LEVELS), "given"
    schedule.allow(events_of(model, schedule), (20.0 if n < 10**6 else 100.0) * model.d)

    def run() -> Run:
        rng, lengths = np.random.default_rng(seed), queues.copy()
        chain = _Queues(lengths, model.d, model.lam, model.replacement, rng)
        told = {"start": named, "seed": name_of_seed(seed), "engine": "labelled"}
        return measure(chain, model, schedule, rng, **told, extra={"lengths": lengths})

    return run


class _Queues:
    events_per_call = 2**21
    tally = np.int64

    def __init__(
        self, lengths: NDArray[np.int64], d: int, lam: float, replacement: bool, rng: Generator
    ) -> None:
        at_least = len(lengths) - np.cumsum(np.bincount(lengths))
        self.counts = with_room(np.concatenate([[len(lengths)], at_least]))
        self._lengths = lengths
        # Drawing distinct queues shuffles the front of this list; any order is as good a start.
        self._order = np.arange(0 if replacement else len(lengths))
        self._rule = rule_of(self.counts, d, lam, replacement)
        self._rng = rng

    def advance(self, events: int, moved: NDArray[np.int64], at_top: NDArray[np.int64]) -> int:
        state = self._lengths, self._order, self.counts
        return _advance(self._rng, *state, self._rule, events, Tally(moved, at_top))

    def grow(self) -> None:
        self.counts = np.append(self.counts, np.zeros_like(self.counts))


@kernel(nogil=True)
def _advance(rng, x, order, s, rule, events, tally):
    """Make up to `events` steps in place and return how many: fewer if the room is used up."""
    n, d, arrival, _ = rule
    moved, at_top = tally
    distinct = len(order) > 0
    top = len(s) - 1
    while s[top] == 0:
        top -= 1
    since = 0
    for step in range(1, events + 1):
        if rng.random() < arrival:
            joined = -1
            for j in range(d):
                if distinct:  # the j-th step of a Fisher-Yates shuffle
                    other = j + int(rng.random() * (n - j))
                    candidate = order[other]
                    order[other] = order[j]
                    order[j] = candidate
                else:
                    candidate = int(rng.random() * n)
                if joined < 0 or x[candidate] < x[joined]:  # strictly: ties go to the first
                    joined = candidate
            x[joined] += 1
            i = x[joined]
            s[i] += 1
            moved[i] += step
            if i > top:
                at_top[top] += step - since
                since = step
                top = i
                if top == len(s) - 2:
                    return step
        else:
            left = int(rng.random() * n)
            i = x[left]
            if i > 0:
                x[left] -= 1
                s[i] -= 1
                moved[i] -= step
                if s[top] == 0:
                    at_top[top] += step - since
                    since = step
                    top -= 1
    at_top[top] += events - since
    return events
