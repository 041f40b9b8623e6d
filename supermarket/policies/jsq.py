"""Join a shortest of the d queues looked at, the first of them in the list."""

import numpy as np
from numpy.typing import NDArray

from supermarket.kernels.borrowed import inlined
from supermarket.kernels.event_loop import event_loop
from supermarket.kernels.sampling import all_among, with_or_not
from supermarket.policies import Policy
from supermarket.validation import MOST_LEVELS, ParameterError

FAST = 20_000  # queues: with more, ranks miss the caches


@inlined
def join(w, s, top, rule, aux):
    """Return i with beta[i] > w >= beta[i+1]: the shortest of the d chosen queues is that long."""
    i = top
    while aux.beta[i] <= w and i > 0:
        i -= 1
    return i


def fixed_point_counts(n: int, d: int, lam: float, replacement: bool) -> NDArray[np.int64]:
    """Return the counts nearest to the fixed point: s[i+1] = lam n beta(s[i]), rounded."""
    counts = [n]
    while counts[-1] > 0:
        if len(counts) > MOST_LEVELS:
            raise ParameterError(
                f"lam = {lam:.16g} with d = {d} has a fixed point of more than {MOST_LEVELS} "
                "levels: choose a smaller lam or a larger d."
            )
        nearest = round(lam * n * all_among(counts[-1], n, d, with_or_not(replacement)))
        counts.append(min(nearest, counts[-1] - 1))  # rounded, 1 * lam would stay 1 for ever
    return np.array(counts, dtype=np.int64)


def naive(lengths, seen, kept):
    """Join the first shortest queue of the list."""
    return [(1.0, min(seen, key=lambda queue: lengths[queue]), kept)]


def pick(n: int, d: int) -> str:
    """Return the fastest engine: with one choice there are many levels."""
    if n <= FAST:
        return "ranks"
    return "table" if n < (10**7 if d > 1 else 10**8) else "bursts"


POLICY = Policy(
    loop=event_loop(join),
    naive=naive,
    fixed_point=fixed_point_counts,
    engines={
        "table": "runs.counts.engines:Guided",
        "ranks": "runs.counts.ranks:Ranks",
        "bursts": "runs.counts.engines:Bursts",
    },
    pick=pick,
)
