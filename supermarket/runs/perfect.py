"""Draws from equilibrium with no warm-up: dominated coupling from the past.

Rank the queues by length, the longest first. An arrival brings d ranks and joins the queue at the
last of them, a shortest one; a departure is offered to one uniform rank, and an empty queue ignores
it. Write X <= Y if S_j(X) <= S_j(Y) for every j, where S_j = sum of (length - j + 1)+ counts the
customers in position j or beyond. For s_j = S_j - S_{j+1}, the number of queues of length at least
j:

(1) *The same event in both states keeps X <= Y.* If an arrival at rank R (from 0) made S_j(X) more
than S_j(Y), the two were equal before, and x_R >= j - 1 > y_R. So s_{j-1}(X) > R >= s_{j-1}(Y), and
S_{j-1}(X) was more than S_{j-1}(Y) already. If a departure did, x_R < j <= y_R; so s_j(X) < s_j(Y),
and S_{j+1}(X) was more than S_{j+1}(Y) already.

(2) *With the first of the d ranks as its only choice, the d = 1 process stays above.* The queue at
a rank further down is no longer than that at the first one, so an arrival there leads to a smaller
state; the rest is (1).

The d = 1 process in equilibrium, n independent M/M/1 queues, is reversible: it can be drawn at time
0 and run backwards. Each of its steps, read forwards, says whether an arrival or a departure came,
and at which length. All ranks that hold this length are equally likely to have been the rank, and
the other d - 1 ranks are free. So the past events can be drawn as far back as they are needed, and
a copy from empty and one from the dominating state at -T hold all others between them.
"""

import math

import numpy as np
from numpy.random import Generator, SeedSequence
from numpy.typing import NDArray

from supermarket.kernels.compiled import kernel
from supermarket.kernels.sampling import all_among, with_or_not
from supermarket.models.jsq import Supermarket, numbers_of
from supermarket.runs.counts.clock import with_room
from supermarket.validation import ParameterError, integer, real, seed_of

__all__ = ["equilibrium_draws"]

MOST = 10**5  # every queue is held in memory
MOST_EVENTS = 2e8  # four bytes each, and up to some six times that while the past is doubled


def equilibrium_draws(
    model: Supermarket,
    *,
    draws: int,
    seed: int | SeedSequence,
    max_hours: float = 1.0,
) -> NDArray[np.int64]:
    """Draw states of the supermarket model from its equilibrium, exactly and independently.

    Events are drawn into the past until what happened before them no longer matters (dominated
    coupling from the past [1]_, as for M/G/c queues in [2]_): copies of the model from the lowest
    and the highest state possible have met by time 0. The highest one comes from the model with
    d = 1, coupled by rank [3]_, [4]_. A draw looks back some 10 n / (1 - lam)**1.6 events,
    ten times as many with d = 1.

    Parameters
    ----------
    model : Supermarket
        Of exponential service.
    draws : int
        Number of independent draws, from 1 to 10**8.
    seed : int or SeedSequence
        Fixes the result together with the other parameters; fewer draws are the first of more.
    max_hours : float
        What would take longer than about this is refused before it starts.

    Returns
    -------
    ndarray of int64, shape (draws, levels)
        Entry [j, i] is the number of queues with length at least i in draw j; column 0 is n, and
        the last one is 0.

    Raises
    ------
    ParameterError
        If a parameter is not allowed, or the draws would take longer than `max_hours` or too much
        memory.

    References
    ----------
    .. [1] W. S. Kendall and J. Møller, "Perfect simulation using dominating processes on ordered
       spaces, with application to locally stable point processes", Advances in Applied Probability
       32 (2000) 844.
    .. [2] S. B. Connor and W. S. Kendall, "Perfect simulation of M/G/c queues", Advances in Applied
       Probability 47 (2015) 1039, arXiv:1402.7248.
    .. [3] S. R. E. Turner, "The effect of increasing routing choice on resource pooling",
       Probability in the Engineering and Informational Sciences 12 (1998) 109.
    .. [4] C. Graham, "Chaoticity on path space for a queueing network with selection of the
       shortest queue among several", Journal of Applied Probability 37 (2000) 198.

    Examples
    --------
    >>> from supermarket import Supermarket
    >>> from supermarket.runs.perfect import equilibrium_draws
    >>> counts = equilibrium_draws(Supermarket(100, 2, 0.7), draws=50, seed=1)
    >>> bool(abs(counts[:, 1].mean() / 100 - 0.7) < 0.05)
    True
    """
    n, d, lam = numbers_of(model, finite=True)
    n = integer("n", n, 1, MOST)
    draws = integer("draws", draws, 1, 10**8)
    max_hours = real("max_hours", max_hours, 0.0, open_low=True)
    seed = seed_of(seed)
    events = _expected_events(n, d, lam)
    if events > MOST_EVENTS:
        raise ParameterError(
            f"a draw for n = {n}, d = {d}, lam = {lam:.16g} needs the last {events:.2g} events or "
            f"so in memory, and {MOST_EVENTS:.0e} are allowed: choose a smaller n or lam."
        )
    hours = draws * (20e-6 + events * 150e-9) / 3600
    if hours > max_hours:
        raise ParameterError(
            f"draws = {draws} of about {events:.2g} events each take some {hours:.2g} hours: "
            f"choose fewer, or pass max_hours={hours * 1.1:.2g} to go ahead."
        )
    rng = np.random.default_rng(seed)
    others = _others(n, d, model.replacement)
    first = max(1, int(events / 8))
    drawn = [_draw(rng, n, lam, others, first) for _ in range(draws)]
    counts = np.zeros((draws, max(map(len, drawn)) + 1), dtype=np.int64)
    for row, seen in zip(counts, drawn, strict=True):
        row[: len(seen)] = seen
    return counts


def _expected_events(n: int, d: int, lam: float) -> float:
    """Return roughly how many events a draw looks back, from runs; too many rather than too few."""
    gap = ((1 - lam) / (1 + math.sqrt(lam))) ** 2  # the relaxation rate of one M/M/1 queue
    time = (1 + math.log(n)) / gap if d == 1 else max(8 / (1 - lam) ** 1.6, 1 / (n * gap))
    return n * (1 + lam) * time


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
    kind = with_or_not(replacement)
    return np.array([all_among(r + 1, among, d - 1, kind) for r in range(among)])


def _draw(
    rng: Generator, n: int, lam: float, others: NDArray[np.float64], first: int
) -> NDArray[np.int64]:
    """Return the counts of one draw, without the levels that are empty.

    The last `first` events of the past are tried, then twice as many, and so on.
    """
    lengths = _dominating(rng, n, lam)
    counts = with_room(np.concatenate([[n], n - np.cumsum(np.bincount(lengths))]))
    past, known = np.empty(first, dtype=np.int32), 0
    while True:
        counts = _look_back(rng, lengths, counts, lam, others, past[known:])
        met, now = _replay(past, lengths.copy(), counts.copy())
        if met:
            return now[: np.count_nonzero(now)]
        known = len(past)
        past = np.append(past, np.empty_like(past))  # the same events, and as many before them


@kernel(nogil=True)
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


@kernel(nogil=True)
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


@kernel(nogil=True)
def _move(lengths, s, event):
    """Make one event; return the level whose count changed, 0 if none."""
    if event >= 0:
        return _arrive(lengths, s, event)
    return _depart(lengths, s, -1 - event)


@kernel(nogil=True)
def _arrive(lengths, s, rank):
    """Let a customer join the first queue as long as the one at `rank`; return its new length."""
    level = lengths[rank] + 1
    lengths[s[level]] = level
    s[level] += 1
    return level


@kernel(nogil=True)
def _depart(lengths, s, rank):
    """Let one leave the last queue as long as the one at `rank`; return what its length was."""
    level = lengths[rank]
    if level > 0:
        s[level] -= 1
        lengths[s[level]] = level - 1
    return level
