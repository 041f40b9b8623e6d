"""The loop that occupancy chains share: a policy says what joins where, and what leaves where.

State are the counts s[i] of queues of length at least i. An event is an arrival with probability
lam / (1 + lam), else the end of a service. A policy is three small functions, compiled into one
loop with `event_loop`:

* ``join(w, s, top, rule, aux)``: the length of the queue that an arrival joins, w uniform in
  [0, 1);
* ``leave(v, s, top, rule, aux)``: that of the queue that is served, v uniform in [0, n): 0 where
  no job is;
* ``refresh(i, change, s, rule, aux)``: put right what is kept of count i, after it changed by 1 or
  -1, or, with 0, from the beginning.

`top` is the greatest length there is, `aux` is what the policy keeps (`Kept`).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from supermarket.kernels.borrowed import borrowed, inlined
from supermarket.kernels.compiled import kernel
from supermarket.kernels.sampling import all_among


class Rule(NamedTuple):
    """What a policy knows of the model: queues, choices, the share of arrivals among events.

    `replacement` may be what `supermarket.kernels.sampling.with_or_not` makes of it.
    """

    n: int
    d: int
    arrival: float
    replacement: bool | None


class Tally(NamedTuple):
    """What a stretch of events adds up, as `supermarket.runs.counts.clock.Chain` says."""

    moved: NDArray[np.int64]
    at_top: NDArray[np.int64]


class Kept(NamedTuple):
    """What a policy keeps: for each count the chance that all chosen queues are among so many.

    `beta[i]` belongs to s[i]; `memory` is the policy's own, from event to event.
    """

    beta: NDArray[np.float64]
    memory: NDArray[np.int64]


def rule_of(counts: NDArray[np.int64], d: int, lam: float, replacement: bool | None = True) -> Rule:
    """Return what a policy knows of the model."""
    return Rule(int(counts[0]), d, lam / (1.0 + lam), replacement)


@inlined
def any_server(v: float, s: NDArray[np.int64], top: int, rule: Rule, aux: Kept) -> int:
    """Return the length of a queue chosen at random: the longest ones come first."""
    i = top
    while s[i] <= v:
        i -= 1
    return i


@inlined
def refresh(i: int, change: int, s: NDArray[np.int64], rule: Rule, aux: Kept) -> None:
    """Put the chance of count i right."""
    beta = aux.beta[i]
    if change == 0 or rule.replacement or beta < 1e-290:
        beta = all_among(s[i], rule.n, rule.d, rule.replacement)
    elif (
        change > 0
    ):  # C(s, d) / C(s - 1, d); each call starts afresh, so rounding stays below 1e-12
        beta *= s[i] / (s[i] - rule.d)
    else:
        beta *= (s[i] + 1 - rule.d) / (s[i] + 1)
    aux.beta[i] = beta


def event_loop(join: Callable, leave: Callable = any_server) -> Any:
    """Compile the loop for a policy.

    Parameters
    ----------
    join, leave : callable
        As above; made with `supermarket.kernels.borrowed.inlined`.

    Returns
    -------
    callable
        ``run(rng, s, rule, aux, events, tally)`` makes up to `events` steps in place and returns
        how many: fewer if the room for levels is used up.
    """

    @kernel(nogil=True)
    def run(rng: Generator, s, rule, aux, events, tally):
        s, aux = borrowed(s), borrowed(aux)
        moved, at_top = borrowed(tally)
        top = len(s) - 1
        while s[top] == 0:
            top -= 1
        for i in range(len(s)):
            refresh(i, 0, s, rule, aux)
        since, step = 0, 0
        for step in range(1, events + 1):
            uniform = rng.random()
            if uniform < rule.arrival:
                # Rescaled, the same uniform picks the level.
                i = join(uniform / rule.arrival, s, top, rule, aux) + 1
                s[i] += 1
                moved[i] += step
                refresh(i, 1, s, rule, aux)
                if i > top:
                    at_top[top] += step - since
                    since = step
                    top = i
                    if top == len(s) - 2:
                        break
            else:
                v = (uniform - rule.arrival) / (1.0 - rule.arrival) * rule.n
                i = leave(v, s, top, rule, aux)
                if i > 0:
                    s[i] -= 1
                    moved[i] -= step
                    refresh(i, -1, s, rule, aux)
                    if s[top] == 0:
                        at_top[top] += step - since
                        since = step
                        top -= 1
        at_top[top] += step - since
        return step

    return run
