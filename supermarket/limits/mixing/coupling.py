"""Coupled copies of a small system, exactly: the chance that they have not met, and its rate.

Two copies of the chain of `supermarket.limits.mixing.exact`, lengths cut at the same bound, are
driven by the same events, and the pair of them is a Markov chain that stops where they meet. Only
pairs with no queue of the first copy longer than that of the second are listed: both couplings keep
that order.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from supermarket.limits.mixing.exact import SmallChain, steps_of
from supermarket.validation import ParameterError, choice, instance

__all__ = ["small_coupling"]

MOST_PAIRS = 2 * 10**5

Pair = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class SmallCoupling:
    """Two copies of a small chain that have not met, one of them from the empty state.

    Attributes
    ----------
    chain : SmallChain
        The chain of one copy.
    by : {"queue", "rank", "nothing"}
        What the copies share.
    matrix : csr_array of float64, shape (pairs, pairs)
        Probabilities of a step from one pair of different states to another; what is left of a row
        to 1 is the chance to meet.
    empty : ndarray of int64
        The pair of the empty state and each state of the chain; -1 for the empty state itself.
    """

    chain: SmallChain
    by: str
    matrix: "scipy.sparse.csr_array"
    empty: NDArray[np.int64]

    @cached_property
    def rate(self) -> float:
        """One minus the largest eigenvalue: the rate, per step, of the chance not to have met."""
        if self.matrix.shape[0] < 20:
            return float(1 - np.linalg.eigvals(self.matrix.toarray()).real.max())
        start = np.ones(self.matrix.shape[0])
        values = scipy.sparse.linalg.eigs(
            scipy.sparse.csr_matrix(self.matrix),
            3,
            which="LR",
            v0=start,
            tol=1e-12,
            return_eigenvectors=False,
        )
        return float(1 - values.real.max())

    def apart(self, steps: ArrayLike) -> NDArray[np.float64]:
        """Return the chance that copies, from empty and from equilibrium, have not met by a step.

        Parameters
        ----------
        steps : array_like of int
            Not decreasing.
        """
        law = np.zeros(self.matrix.shape[0])
        seen = self.empty >= 0
        np.add.at(law, self.empty[seen], self.chain.equilibrium[seen])
        forward, done, found = scipy.sparse.csr_array(self.matrix.T), 0, []
        for step in steps_of(steps, self.matrix.nnz):
            for _ in range(step - done):
                law = forward @ law
            done = step
            found.append(law.sum())
        return np.array(found)


def small_coupling(chain: SmallChain, by: str) -> SmallCoupling:
    """Return the pair of two copies of a small chain.

    Parameters
    ----------
    chain : SmallChain
        Of few queues: at most 200 000 pairs are listed.
    by : {"queue", "rank", "nothing"}
        What they share: the list of queues and the server [1]_; the rank among the queues sorted by
        length; or nothing, two independent copies.

    Raises
    ------
    ParameterError
        If a name is unknown, or there are too many pairs.

    References
    ----------
    .. [1] M. J. Luczak and C. McDiarmid, "On the maximum queue length in the supermarket model",
       Annals of Probability 34 (2006) 493.

    Examples
    --------
    >>> from supermarket import Supermarket, small_chain
    >>> from supermarket.limits.mixing.coupling import small_coupling
    >>> chain = small_chain(Supermarket(2, 2, 0.5), longest=6)
    >>> pair = small_coupling(chain, "rank")
    >>> bool(abs(pair.rate / chain.gap - 1) < 1e-6)  # as fast as the chain itself forgets
    True
    """
    choice("by", by, ("queue", "rank", "nothing"))
    instance("chain", chain, SmallChain, "make one with small_chain")
    if by == "nothing":
        return _independent(chain)
    moves = _by_queue if by == "queue" else _by_rank
    starts = [tuple((0, int(y)) for y in state) for state in chain.states]
    index: dict[Pair, int] = {}
    rows, columns, chances = [], [], []
    waiting = [pair for pair in starts if any(y for _, y in pair)]
    for pair in waiting:
        index.setdefault(pair, len(index))
    for here, pair in enumerate(waiting):  # which grows on the way
        after: dict[Pair, float] = defaultdict(float)
        for moved, chance in moves(chain, pair):
            after[moved] += chance
        for moved, chance in after.items():
            if all(x == y for x, y in moved):
                continue
            if moved not in index:
                if len(index) == MOST_PAIRS:
                    raise ParameterError(
                        f"more than {MOST_PAIRS} pairs of states of n = {chain.n} queues: choose "
                        "fewer queues, or a smaller longest."
                    )
                index[moved] = len(index)
                waiting.append(moved)
            rows.append(here)
            columns.append(index[moved])
            chances.append(chance)
    size = len(index)
    matrix = scipy.sparse.csr_array((chances, (rows, columns)), shape=(size, size))
    return SmallCoupling(chain, by, matrix, np.array([index.get(pair, -1) for pair in starts]))


def _by_rank(chain: SmallChain, pair: Pair) -> Iterator[tuple[Pair, float]]:
    """Yield the pairs of sorted lengths after a step, and their chances."""
    n, arrival = chain.n, chain.lam / (1 + chain.lam)
    joined = arrival * np.diff((np.arange(n + 1) / n) ** chain.d)
    copies = tuple(zip(*pair, strict=True))
    for rank in range(n):
        grown, shrunk = [], []
        for x in copies:
            level = x[rank]
            first = x.index(level)
            last = n - 1 - x[::-1].index(level)
            grown.append(_changed(x, first, 1, chain.longest))
            shrunk.append(_changed(x, last, -1, chain.longest))
        yield tuple(zip(*grown, strict=True)), float(joined[rank])
        yield tuple(zip(*shrunk, strict=True)), (1 - arrival) / n


def _by_queue(chain: SmallChain, pair: Pair) -> Iterator[tuple[Pair, float]]:
    """Yield the pairs after a step, the queues in a standard order, and their chances."""
    n, d, arrival = chain.n, chain.d, chain.lam / (1 + chain.lam)
    x, y = zip(*pair, strict=True)
    for chosen in product(range(n), repeat=d):
        i = min(chosen, key=lambda q: x[q])  # the first shortest of the list
        j = min(chosen, key=lambda q: y[q])
        grown = _changed(x, i, 1, chain.longest), _changed(y, j, 1, chain.longest)
        yield _standard(*grown), arrival / n**d
    for q in range(n):
        shrunk = _changed(x, q, -1, chain.longest), _changed(y, q, -1, chain.longest)
        yield _standard(*shrunk), (1 - arrival) / n


def _changed(state: tuple[int, ...], q: int, by: int, longest: int) -> tuple[int, ...]:
    return (*state[:q], min(max(state[q] + by, 0), longest), *state[q + 1 :])


def _standard(x: tuple[int, ...], y: tuple[int, ...]) -> Pair:
    """Return the pair in the order of the second copy, the longest first: queues are alike."""
    return tuple(sorted(zip(x, y, strict=True), key=lambda lengths: lengths[::-1], reverse=True))


def _independent(chain: SmallChain) -> SmallCoupling:
    size = len(chain.states)
    if size**2 > MOST_PAIRS:
        raise ParameterError(
            f"{size**2} pairs of states, and {MOST_PAIRS} are allowed: choose fewer queues, or a "
            "smaller longest."
        )
    apart = (np.arange(size)[:, np.newaxis] != np.arange(size)).ravel().astype(np.float64)
    stops = scipy.sparse.diags_array(apart)
    matrix = scipy.sparse.csr_array(
        stops @ scipy.sparse.kron(chain.matrix, chain.matrix, format="csr") @ stops
    )
    empty = np.arange(size)  # row 0 is the empty state
    empty[0] = -1
    return SmallCoupling(chain, "nothing", matrix, empty)
