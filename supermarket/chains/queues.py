"""The labelled chain: n queue lengths, exactly as Brightwell & Luczak define it.

An arrival draws an ordered list of d queues and joins the first shortest one in it; a potential
departure picks a queue and takes a customer if there is one. Slower than the occupancy chain, and
the reference that one is tested against; also for questions about named queues.
"""

import numpy as np
from numpy.random import Generator, SeedSequence
from numpy.typing import ArrayLike, NDArray

from supermarket.chains.event_loop import Tally, rule_of
from supermarket.chains.measure import Simulation, measure, plan, with_room
from supermarket.compiled import kernel
from supermarket.validation import MOST_LEVELS, ParameterError, integer


def simulate_queues(
    n: int,
    d: int,
    lam: float,
    *,
    horizon: float,
    seed: int | SeedSequence,
    lengths: ArrayLike | None = None,
    warmup: float | None = None,
    times: ArrayLike = (),
    batches: int = 64,
    replacement: bool = True,
    time_unit: str = "service",
    max_hours: float = 1.0,
) -> tuple[Simulation, NDArray[np.int64]]:
    """Simulate the n queue lengths of the supermarket model.

    Parameters
    ----------
    n, d, lam, horizon, seed, warmup, times, batches, replacement, time_unit, max_hours
        As in `supermarket.simulate`; n is at most 10**9, as every queue is held in memory.
    lengths : array_like of int, shape (n,), optional
        Queue lengths before the warm-up; all empty by default.

    Returns
    -------
    simulation : Simulation
    lengths : ndarray of int64, shape (n,)
        The queue lengths at the end.

    Raises
    ------
    ParameterError
        If a parameter is not allowed.

    References
    ----------
    .. [1] G. Brightwell and M. Luczak, "The supermarket model with arrival rate tending to one",
       arXiv:1201.5523, section 1.

    Examples
    --------
    >>> from supermarket import simulate_queues
    >>> run, lengths = simulate_queues(n=100, d=2, lam=0.7, horizon=50, seed=1)
    >>> bool(run.final[1] == (lengths >= 1).sum())
    True
    """
    integer("n", n, 1, 10**9)
    todo = plan(
        n, d, lam, horizon, seed, warmup, times, batches, replacement, time_unit, max_hours,
        nanoseconds=lambda n: 20.0 * d if n < 10**6 else 100.0 * d,
    )  # fmt: skip
    rng = np.random.default_rng(todo.seed)
    if lengths is None:
        queues, named = np.zeros(todo.n, dtype=np.int64), "empty"
    else:
        queues, named = checked_lengths(lengths, todo.n), "given"
    chain = _Queues(queues, todo.d, todo.lam, todo.replacement, rng)
    return measure(chain, "queues", named, todo, rng), queues


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


def checked_lengths(lengths: ArrayLike, n: int) -> NDArray[np.int64]:
    """Return `lengths` as n queue lengths, or raise a `ParameterError`."""
    queues = np.asarray(lengths)
    if queues.shape != (n,) or not np.issubdtype(queues.dtype, np.integer) or queues.min() < 0:
        raise ParameterError(
            f"lengths must be n = {n} whole numbers, none below 0; "
            f"given: shape {queues.shape}, type {queues.dtype}."
        )
    if queues.max() > MOST_LEVELS:
        raise ParameterError(
            f"lengths must not exceed {MOST_LEVELS}: the longest is {queues.max()}."
        )
    return queues.astype(np.int64)


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
