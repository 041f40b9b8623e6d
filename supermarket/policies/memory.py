"""Remember one queue, and join a shortest of it and of the d queues looked at.

An arrival looks at d fresh queues, chosen with replacement, and at the remembered one; it joins a
shortest of them, and a shortest of them after joining is remembered [1]_. The state is the counts
s[i] = number of queues with length at least i, and the length m of the remembered queue. That is
enough to go on: queues of one length differ in nothing else, so the length i of the shortest fresh
queue has the law of `supermarket.policies.jsq`, and

* if i > m, or if i = m and no fresh queue of length m is another than the remembered one, then the
  remembered queue is joined and its length is m + 1;
* if i = m otherwise, two queues of length m are seen: one is joined, one of length m remembered;
* if i < m, a fresh one is joined, and the length remembered is i where another queue of length i is
  among the fresh ones, i + 1 where not.

Ties decide which queue is remembered, and never its length. The remembered queue is served like the
others, so m falls with probability 1 / n in a departure.

References
----------
.. [1] M. J. Luczak and J. R. Norris, "Averaging over fast variables in the fluid limit for Markov
   chains: application to the supermarket model with memory", Annals of Applied Probability 23
   (2013) 957.
"""

import math

import numpy as np
from numpy.typing import NDArray

from supermarket.kernels.borrowed import inlined
from supermarket.kernels.compiled import kernel
from supermarket.kernels.event_loop import event_loop
from supermarket.kernels.sampling import WITH, all_among
from supermarket.policies import Policy
from supermarket.validation import MOST_LEVELS, ParameterError


@kernel(nogil=True)
def one_or_none(a, b, n, d):
    """Return the chance that of a ranked queues all d are, at most one of them beyond the first b.

    It is (b/n)**d + (a - b) (((b + 1)/n)**d - (b/n)**d), precise where a - b is large.
    """
    beta = all_among(b, n, d, WITH)
    if d == 2:
        return beta + (a - b) / n * ((2.0 * b + 1.0) / n)
    if b == 0:
        return (a / n) * (1.0 / n) ** (d - 1)
    return beta + (a - b) * beta * math.expm1(d * math.log1p(1.0 / b))


@inlined
def arrival_of(w, m, s, beta, n, d):
    """Return the length of the queue that is joined, and the length that is then remembered."""
    if w < beta[m]:  # no fresh queue is shorter: is one of them another of length m?
        alone = w < beta[m + 1] or w < all_among(s[m + 1] + 1, n, d, WITH)
        return m, (m + 1 if alone else m)
    i = m - 1
    while beta[i] <= w and i > 0:
        i -= 1
    two = d > 1 and s[i] - s[i + 1] > 1 and w >= one_or_none(s[i], s[i + 1], n, d)
    return i, (i if two else i + 1)


@inlined
def departure_of(v, m, s, top):
    """Return the length of the queue that is served, and the length that is then remembered."""
    i = top
    while s[i] <= v:
        i -= 1
    # Of the queues of its length, the remembered one is the first.
    return i, (m - 1 if i == m and m > 0 and v < s[m + 1] + 1 else m)


@inlined
def _join(w, s, top, rule, aux):
    i, aux.memory[0] = arrival_of(w, aux.memory[0], s, aux.beta, rule.n, rule.d)
    return i


@inlined
def _leave(v, s, top, rule, aux):
    i, aux.memory[0] = departure_of(v, aux.memory[0], s, top)
    return i


def fixed_point_counts(n: int, d: int, lam: float, replacement: bool) -> NDArray[np.int64]:
    """Return the counts nearest to the fixed point of the averaged limit."""
    counts, share, longer = [n], 1.0, 1.0  # longer: chance that the remembered queue is that long
    while counts[-1] > 0:
        if len(counts) > MOST_LEVELS:
            raise ParameterError(
                f"lam = {lam:.16g} with d = {d} has a fixed point of more than {MOST_LEVELS} "
                "levels: choose a smaller lam or a larger d."
            )
        below, share = share, lam * longer * share**d
        alone = (1 - below) + share if d == 1 else 1 - d * (below - share) * share ** (d - 1)
        longer *= share**d / alone
        counts.append(min(round(n * share), counts[-1] - 1))
    return np.array(counts, dtype=np.int64)


def naive(lengths, seen, kept):
    """Join a shortest of the queues seen and the remembered one, remember a shortest of them."""
    best = min((*seen, kept), key=lambda queue: lengths[queue])
    after = [length + (queue == best) for queue, length in enumerate(lengths)]
    return [(1.0, best, min((*seen, kept), key=lambda queue: after[queue]))]


POLICY = Policy(
    loop=event_loop(_join, _leave),
    naive=naive,
    fixed_point=fixed_point_counts,
    memory=lambda counts: np.flatnonzero(np.diff(counts))[:1],
    engines={"table": "runs.counts.memory:MemoryTable"},
    pick=lambda n, d: "scan" if n < 1000 else "table",
    distinct=False,
)
