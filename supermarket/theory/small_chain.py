"""Exact mixing of a small system: the transition matrix on sorted queue lengths.

The chain is that of Brightwell & Luczak, arXiv:1201.5523, section 1: a step is an arrival with
probability lam / (1 + lam), at d queues chosen with replacement, or else a potential departure. The
queues are exchangeable, so sorted lengths are a chain of their own, and its law from a start is
as far from equilibrium, in total variation, as that of the lengths from a random order of the
start.
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, csr_matrix
from scipy.sparse.linalg import eigs

from supermarket.validation import EXACT_MAX, ParameterError, arrival_rate, integer

MOST_STATES = 2 * 10**6


@dataclass(frozen=True)
class SmallChain:
    """The chain of n sorted queue lengths that never exceed `longest`.

    An arrival that would make a queue longer is lost. Until the first loss this is the chain
    without a bound, so the chance of a loss so far bounds the error of a law.

    Attributes
    ----------
    n, d, lam, longest
        What was asked for.
    states : ndarray of int64, shape (size, n)
        All sorted lengths, the longest first.
    matrix : csr_array of float64, shape (size, size)
        Entry [x, y] is the probability that a step leads from state x to state y.
    losses : ndarray of float64, shape (size,)
        The probability that a step from each state loses an arrival.
    """

    n: int
    d: int
    lam: float
    longest: int
    states: NDArray[np.int64]
    matrix: csr_array
    losses: NDArray[np.float64]

    @property
    def steps_per_unit(self) -> float:
        """Steps in one mean service time, n (1 + lam)."""
        return self.n * (1 + self.lam)

    def index(self, lengths: ArrayLike) -> int:
        """Return the row of a state, given as n lengths in any order.

        Raises
        ------
        ParameterError
            If these are not n whole numbers from 0 to `longest`.
        """
        x = np.asarray(lengths)
        if (
            x.shape != (self.n,)
            or x.dtype.kind not in "iu"
            or x.min() < 0
            or x.max() > self.longest
        ):
            raise ParameterError(
                f"a state of this chain is {self.n} whole numbers from 0 to {self.longest}."
            )
        return int(_row(np.sort(x)[np.newaxis, ::-1], self.longest)[0])

    @cached_property
    def _spectrum(self) -> tuple[NDArray[np.float64], float]:
        """The law left unchanged, and the real part of the next eigenvalue."""
        size = len(self.states)
        start = np.full(size, 1 / size)  # ARPACK's own would be random
        if size < 20:
            values, vectors = np.linalg.eig(self.matrix.T.toarray())
        else:
            values, vectors = eigs(csr_matrix(self.matrix.T), 3, which="LR", v0=start, tol=1e-13)
        first, second = np.argsort(-values.real)[:2]
        law = vectors[:, first].real
        return law / law.sum(), float(values[second].real)

    @property
    def equilibrium(self) -> NDArray[np.float64]:
        """The stationary law, shape (size,)."""
        return self._spectrum[0]

    @property
    def gap(self) -> float:
        """One minus the largest real part of the other eigenvalues: the rate of decay per step."""
        return 1 - self._spectrum[1]

    @property
    def equilibrium_error(self) -> float:
        """About how far, in total variation, `equilibrium` is from that without a bound.

        An estimate, not a bound. With the same events, by queue (see [1]_), the queues of this
        chain are never longer than those without a bound, so the distance is at most the mean
        excess of customers there: the chance of a loss a step, times the mean number of steps in
        which two copies that differ by the lost customer meet (derived in this project). Here
        1 / `gap` stands for that mean. In systems where a higher bound was affordable this is
        several times the distance, and less than the excess.

        References
        ----------
        .. [1] M. J. Luczak and C. McDiarmid, "On the maximum queue length in the supermarket
           model", Annals of Probability 34 (2006) 493.
        """
        return float(self.losses @ self.equilibrium) / self.gap

    def laws(self, start: ArrayLike, steps: ArrayLike) -> Iterator[tuple[NDArray, float]]:
        """Yield the law after each of these numbers of steps, and the mean number of losses so far.

        Without a bound on the lengths the law would differ by no more than that in total variation.

        Parameters
        ----------
        start : array_like
            The n lengths, or a law over the states, shape (size,).
        steps : array_like of int
            Not decreasing.
        """
        start = np.asarray(start)
        if start.shape == self.losses.shape:
            law = start.astype(np.float64)
        else:
            law = np.zeros_like(self.losses)
            law[self.index(start)] = 1.0
        forward, done, lost = csr_array(self.matrix.T), 0, 0.0
        for step in np.asarray(steps):
            for _ in range(step - done):
                lost += float(self.losses @ law)
                law = forward @ law
            done = step
            yield law, lost

    def mixing(
        self, start: ArrayLike, steps: ArrayLike
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the total variation distance from equilibrium, and its error.

        Parameters
        ----------
        start, steps
            As in `laws`.

        Returns
        -------
        distance, error : ndarray of float64, shape (len(steps),)
            After each of the numbers of steps. The error is due to the bound on the lengths: the
            mean number of losses so far, a bound, and `equilibrium_error`, an estimate.
        """
        rows = [(self.distance(law), lost) for law, lost in self.laws(start, steps)]
        distance, lost = np.array(rows).reshape(-1, 2).T
        return distance, lost + self.equilibrium_error

    def distance(self, law: NDArray[np.float64]) -> float:
        """Return the total variation distance of a law over the states from equilibrium."""
        return float(abs(law - self.equilibrium).sum() / 2)


def small_chain(n: int, d: int, lam: float, longest: int) -> SmallChain:
    """Return the exact chain of n queues with lengths up to `longest`.

    Parameters
    ----------
    n : int
        Number of queues, at least 1.
    d : int
        Number of queues that an arrival looks at, with replacement, at least 1.
    lam : float
        Arrival rate per queue in units of the service rate, in (0, 1).
    longest : int
        Bound on the lengths, at least 1; there are C(n + longest, n) states, at most two million.

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> from supermarket.theory.small_chain import small_chain
    >>> chain = small_chain(n=3, d=2, lam=0.5, longest=8)
    >>> distance, error = chain.mixing([0, 0, 0], [0, 20, 40])
    >>> chain.matrix.shape, distance.round(3).tolist(), bool(error.max() < 1e-3)
    ((165, 165), [0.832, 0.064, 0.014], True)
    """
    n = integer("n", n, 1, 1000)
    d = integer("d", d, 1, EXACT_MAX)
    lam = arrival_rate(lam)
    longest = integer("longest", longest, 1, 10**5)
    size = math.comb(n + longest, n)
    if size > MOST_STATES:
        raise ParameterError(
            f"n = {n} queues of length at most {longest} have {size:.3g} states, and "
            f"{MOST_STATES} are allowed: choose a smaller n or longest."
        )
    sorted_ = itertools.combinations_with_replacement(range(longest, -1, -1), n)
    states = np.fromiter(itertools.chain.from_iterable(sorted_), np.int64, size * n)
    states = states.reshape(size, n)[::-1]
    arrival = lam / (1 + lam)
    here, there, chance = [], [], []
    losses = np.zeros(size)
    rows = np.arange(size)
    joined = arrival * np.diff((np.arange(n + 1) / n) ** d)  # chance of each rank, longest first
    for rank in range(n):
        level = states[:, rank, np.newaxis]
        first = (states > level).sum(axis=1)  # the first queue of this length, and the last one
        last = (states >= level).sum(axis=1) - 1
        grown, shrunk = states.copy(), states.copy()
        full = level[:, 0] == longest
        losses += joined[rank] * full
        grown[rows, first] += ~full
        shrunk[rows, last] -= level[:, 0] > 0
        for after, probability in ((grown, joined[rank]), (shrunk, (1 - arrival) / n)):
            here.append(rows)
            there.append(_row(after, longest))
            chance.append(np.full(size, probability))
    entries = (np.concatenate(chance), (np.concatenate(here), np.concatenate(there)))
    matrix = csr_array(entries, shape=(size, size))
    return SmallChain(n, d, lam, longest, states, matrix, losses)


def _row(states: NDArray[np.int64], longest: int) -> NDArray[np.int64]:
    """Return the row of each sorted state, the longest queue first.

    Row 0 is the empty state. Of the states before x, those that agree with x up to place i and have
    a shorter queue in it are C(x_i + n - i - 1, n - i): n - i lengths below x_i.
    """
    n = states.shape[1]
    before = np.array(
        [[math.comb(x + n - i - 1, n - i) for x in range(longest + 1)] for i in range(n)]
    )
    return before[np.arange(n), states].sum(axis=1)
