"""Draws from equilibrium with no warm-up: dominated coupling from the past.

Rank the queues by length, the longest first. An arrival brings d ranks and joins the queue at the
last of them, a shortest one; a departure is offered to one uniform rank, and an empty queue ignores
it. Write X <= Y if S_j(X) <= S_j(Y) for every j, where S_j = sum of (length - j + 1)+ counts the
customers in position j or beyond. For s_j = S_j - S_{j+1}, the number of queues of length at least
j:

(1) *The same event in both states keeps X <= Y.* Say an arrival at rank R makes S_j(X) > S_j(Y).
Then S_j(X) = S_j(Y) before, and x_R >= j - 1 > y_R; so s_{j-1}(X) > R >= s_{j-1}(Y) with ranks from
0, and S_{j-1}(X) > S_{j-1}(Y): a contradiction. After a departure, S_j(X) = S_j(Y) and x_R < j <=
y_R give s_j(X) < s_j(Y) and S_{j+1}(X) > S_{j+1}(Y).

(2) *With the first of the d ranks as its only choice, the d = 1 process stays above.* At a rank
further down, an arrival makes X smaller than at the first one, which (1) compares with Y.

The d = 1 process in equilibrium, n independent M/M/1 queues, is reversible: it can be drawn at time
0 and run backwards. Each of its steps, read forwards, says whether an arrival or a departure came,
and at which length. All ranks that hold this length are equally likely to have been the rank, and
the other d - 1 ranks are free. So the past events can be drawn as far back as they are needed, and
a copy from empty and one from the dominating state at -T hold all others between them.
"""

import numpy as np
from numba import njit
from numpy.random import Generator, SeedSequence
from numpy.typing import NDArray

from supermarket.chains.measure import with_room
from supermarket.chains.sampling import all_among
from supermarket.validation import ParameterError, arrival_rate, choice, integer


def _dominating(rng: Generator, n: int, lam: float) -> NDArray[np.int64]:
    """Return the lengths of n M/M/1 queues in equilibrium, the longest first."""
    return np.sort(rng.geometric(1.0 - lam, n) - 1)[::-1].copy()


def _others(n: int, d: int, replacement: bool) -> NDArray[np.float64]:
    """Return the law of the last of the d - 1 free ranks: the chance that it is 0, ..., at most r.

    Distinct ranks are numbered with the first one left out.
    """
    if d == 1:
        return np.empty(0)
    among = n if replacement else n - 1
    return np.array([all_among(r + 1, among, d - 1, replacement) for r in range(among)])


def _draw(
    rng: Generator, n: int, lam: float, others: NDArray[np.float64], first: int
) -> tuple[NDArray[np.int64], int]:
    """Return the counts of one draw, and how many events of the past it took."""
    lengths = _dominating(rng, n, lam)
    counts = with_room(np.concatenate([[n], n - np.cumsum(np.bincount(lengths))]))
    past, known = np.empty(first, dtype=np.int32), 0
    while True:
        counts = _look_back(rng, lengths, counts, lam, others, past[known:])
        met, now = _replay(past, lengths.copy(), counts.copy())
        if met:
            return now, len(past)
        known = len(past)
        past = np.append(past, np.empty_like(past))  # the same events, and as many before them


@njit(nogil=True)
def _look_back(rng, lengths, s, lam, others, past):
    """Draw the events before those known, the latest first; return s, longer if need be.

    The dominating process, lengths and counts, is moved back in place. An event is written as the
    rank that an arrival joins, or as -1 - the rank that a departure is offered to.
    """
    n = len(lengths)
    arrival = lam / (1.0 + lam)
    for m in range(len(past)):
        backwards_arrival = rng.random() < arrival
        rank = int(rng.random() * n)
        if backwards_arrival:
            level = _arrive(lengths, s, rank)
            rank = s[level + 1] + int(rng.random() * (s[level] - s[level + 1]))
            past[m] = -1 - rank
            if s[len(s) - 3] > 0:
                s = np.append(s, np.zeros_like(s))
        else:
            level = _depart(lengths, s, rank)
            if level == 0:
                past[m] = -1 - rank
                continue
            rank = s[level] + int(rng.random() * (s[level - 1] - s[level]))
            if len(others) > 0:
                other = np.searchsorted(others, rng.random(), side="right")
                if len(others) < n and other >= rank:
                    other += 1
                rank = max(rank, other)
            past[m] = rank
    return s


@njit(nogil=True)
def _replay(past, upper, s):
    """Run the copies from empty and from above to time 0; return if they met, and the counts."""
    lower, t = np.zeros_like(upper), np.zeros_like(s)
    t[0] = s[0]
    apart = s[1:].sum()  # over all levels, how far the counts differ
    m = len(past)
    while m > 0 and apart > 0:
        m -= 1
        change = 1 if past[m] >= 0 else -1
        i, j = _move(upper, s, past[m]), _move(lower, t, past[m])
        if i != j:
            if i > 0:
                apart += abs(s[i] - t[i]) - abs(s[i] - change - t[i])
            if j > 0:
                apart += abs(s[j] - t[j]) - abs(s[j] - t[j] + change)
    for k in range(m - 1, -1, -1):
        _move(upper, s, past[k])
    return apart == 0, s


@njit(nogil=True)
def _move(lengths, s, event):
    """Make one event; return the level whose count changed, 0 if none."""
    if event >= 0:
        return _arrive(lengths, s, event)
    return _depart(lengths, s, -1 - event)


@njit(nogil=True)
def _arrive(lengths, s, rank):
    """Let a customer join the first queue as long as the one at `rank`; return its new length."""
    level = lengths[rank] + 1
    lengths[s[level]] = level
    s[level] += 1
    return level


@njit(nogil=True)
def _depart(lengths, s, rank):
    """Let one leave the last queue as long as the one at `rank`; return what its length was."""
    level = lengths[rank]
    if level > 0:
        s[level] -= 1
        lengths[s[level]] = level - 1
    return level
