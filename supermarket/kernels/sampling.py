"""Which queues an arrival looks at: the chance that all of them lie among some."""

import math

import numpy as np
from numpy.polynomial.legendre import leggauss

from supermarket.kernels.compiled import kernel

# Gauss-Legendre nodes and weights on [0, 1].
_NODES, _WEIGHTS = ((x + 1) / 2 if i == 0 else x / 2 for i, x in enumerate(leggauss(10)))

# With replacement, for a kernel that need not compile the longer other case: the same as True.
WITH = None


def with_or_not(replacement: bool) -> bool | None:
    """Return how kernels are told of it best: `WITH`, or False."""
    return WITH if replacement else False


@kernel(nogil=True)
def all_among(s: int, n: int, d: int, replacement: bool | None) -> float:
    """Return the probability that d chosen queues all lie among s given ones of n.

    (s/n)**d with replacement; without, C(s, d) / C(n, d).

    Examples
    --------
    >>> from supermarket.kernels.sampling import all_among
    >>> all_among(5, 10, 2, True), round(float(all_among(5, 10, 2, False)), 6)
    (0.25, 0.222222)
    """
    if replacement is None:  # a branch of its own: Numba drops what a type rules out
        return _with_replacement(s, n, d)
    return _with_replacement(s, n, d) if replacement else _without_replacement(s, n, d)


@kernel(nogil=True)
def log_all_among(s: int, n: int, d: int, replacement: bool | None) -> float:
    """Return the logarithm of `all_among`, precise also where nearly all queues are among the s.

    Examples
    --------
    >>> from supermarket.kernels.sampling import log_all_among
    >>> round(float(log_all_among(10**6 - 1, 10**6, 10**4, True)), 6)
    -0.01
    """
    if replacement is None:
        return _log_with_replacement(s, n, d)
    return _log_with_replacement(s, n, d) if replacement else _log_without_replacement(s, n, d)


@kernel(nogil=True)
def _with_replacement(s: int, n: int, d: int) -> float:
    if d == 1:
        return s / n
    if d == 2:
        return (s / n) * (s / n)
    if s <= 0 or (d / n) * (n - s) > 800.0:  # exp(-800) is 0 in double precision
        return 0.0
    return math.exp(_log_with_replacement(s, n, d))


@kernel(nogil=True)
def _without_replacement(s: int, n: int, d: int) -> float:
    if s <= 0 or (d / n) * (n - s) > 800.0:
        return 0.0
    return math.exp(_log_without_replacement(s, n, d))


@kernel(nogil=True)
def _log_with_replacement(s: int, n: int, d: int) -> float:
    return d * math.log1p(-(n - s) / n) if s > 0 else -np.inf


@kernel(nogil=True)
def _log_without_replacement(s: int, n: int, d: int) -> float:
    others = n - s
    if s < max(d, 1):
        return -np.inf
    # C(s, d) / C(n, d) is symmetric in d and n - s: the product of (m - j) / (n - j), j < k.
    k = min(d, others)
    m = n - max(d, others)
    total = 0.0
    if k > 64 and m >= 2 * k:
        # Euler and Maclaurin: the sum of log((m - j) / (n - j)) over j < k is its integral from
        # -1/2 to k - 1/2, and corrections from the derivatives at both ends; what is left out is
        # below 1e-12.
        for q in range(len(_NODES)):
            total += _WEIGHTS[q] * math.log1p((m - n) / (n + 0.5 - k * _NODES[q]))
        total *= k
        for end, sign in ((0.5, 1.0), (0.5 - k, -1.0)):
            p, q = 1.0 / (m + end), 1.0 / (n + end)
            total += sign * ((q - p) / 24.0 - 7.0 * (q**3 - p**3) / 2880.0)
        return total
    for j in range(k):
        total += math.log1p((m - n) / (n - j))
        if total < -800.0:
            break
    return total
