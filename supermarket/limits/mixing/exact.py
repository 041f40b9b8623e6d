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
import scipy
from numpy.typing import ArrayLike, NDArray

from supermarket.limits.mean_field.fixed_point import relaxation_time
from supermarket.limits.saturation.drifts import stationary_covariance
from supermarket.limits.saturation.theorem import fixed_point_shorter
from supermarket.models.jsq import Supermarket, numbers_of
from supermarket.validation import (
    ParameterError,
    affordable,
    integer,
    numbers,
    queue_lengths,
    real,
    whole_numbers,
)

__all__ = ["SmallChain", "small_chain", "two_level_rates"]

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
    matrix: "scipy.sparse.csr_array"
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
        x = queue_lengths("lengths", lengths, self.n, self.longest)
        return int(_row(np.sort(x)[np.newaxis, ::-1], self.longest)[0])

    @cached_property
    def _spectrum(self) -> tuple[NDArray[np.float64], float]:
        """The law left unchanged, and the real part of the next eigenvalue."""
        size = len(self.states)
        start = np.full(size, 1 / size)  # ARPACK's own would be random
        if size < 20:
            values, vectors = np.linalg.eig(self.matrix.T.toarray())
        else:
            values, vectors = scipy.sparse.linalg.eigs(
                scipy.sparse.csr_matrix(self.matrix.T), 3, which="LR", v0=start, tol=1e-13
            )
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
        if np.shape(numbers("start", start)) == self.losses.shape:
            law = self._law("start", start)
        else:
            law = np.zeros_like(self.losses)
            law[self.index(start)] = 1.0
        forward, done, lost = scipy.sparse.csr_array(self.matrix.T), 0, 0.0
        for step in steps_of(steps, self.matrix.nnz):
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

    def distance(self, law: ArrayLike) -> float:
        """Return the total variation distance of a law over the states from equilibrium."""
        return float(abs(self._law("law", law) - self.equilibrium).sum() / 2)

    def _law(self, name: str, given: ArrayLike) -> NDArray[np.float64]:
        """Return a law over the states, checked."""
        law = numbers(name, given)
        if law.shape != self.losses.shape or np.any(law < 0) or abs(law.sum() - 1) > 1e-6:
            raise ParameterError(
                f"{name} must be a law over the {self.losses.size} states: none below 0, sum 1."
            )
        return law


MOST_WORK = 10**10  # entries of the matrix times steps: some ten seconds


def steps_of(given: ArrayLike, entries: int) -> NDArray[np.int64]:
    """Return numbers of steps of a chain with a matrix of so many entries, not decreasing.

    Raises
    ------
    ParameterError
        If they are not such, or would take too long.
    """
    steps = whole_numbers("steps", given, 0)
    if steps.ndim != 1 or np.any(np.diff(steps) < 0):
        raise ParameterError("steps must be a list of whole numbers that does not decrease.")
    if steps.size:
        work = float(steps[-1]) * (entries + 500)
        affordable(f"steps = {steps[-1]}", work, "stop sooner", MOST_WORK, "steps")
    return steps


def small_chain(model: Supermarket, longest: int) -> SmallChain:
    """Return the exact chain of n queues with lengths up to `longest`.

    Parameters
    ----------
    model : Supermarket
        Of exponential service.
    longest : int
        Bound on the lengths, at least 1; there are C(n + longest, n) states, at most two million.

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> from supermarket import Supermarket
    >>> from supermarket.limits.mixing.exact import small_chain
    >>> chain = small_chain(Supermarket(3, 2, 0.5), longest=8)
    >>> distance, error = chain.mixing([0, 0, 0], [0, 20, 40])
    >>> chain.matrix.shape, distance.round(3).tolist(), bool(error.max() < 1e-3)
    ((165, 165), [0.832, 0.064, 0.014], True)
    """
    n, d, lam = numbers_of(model, finite=True, distinct=False)
    n = integer("n", n, 1, 1000)
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
    matrix = scipy.sparse.csr_array(entries, shape=(size, size))
    return SmallChain(n, d, lam, longest, states, matrix, losses)


def two_level_rates(model: Supermarket, spread: float = 8.0) -> NDArray[np.float64]:
    """Return the gap and the next rate of decay, of n queues with lengths up to 2.

    Where k_{lam,d} = 2 and (1 - lam) d**2 is large, queues of length 3 hardly ever arise, and the
    numbers of queues shorter than 1 and than 2 are a Markov chain of their own. Its generator is
    sparse, for thousands of queues; states further from the fixed point than some standard
    deviations of the linear noise are left out.

    Parameters
    ----------
    model : Supermarket
        Of exponential service.
    spread : float
        Standard deviations to either side of the fixed point that are kept.

    Returns
    -------
    ndarray of float64, shape (2,)
        Per mean service time; divide by n (1 + lam) for those per step.

    Raises
    ------
    ParameterError
        If a parameter is out of range, or there are more than half a million states.

    Examples
    --------
    >>> from supermarket import Supermarket, relaxation_time
    >>> from supermarket.limits.mixing.exact import two_level_rates
    >>> shop = Supermarket(500, 20, 0.97)
    >>> (two_level_rates(shop) * relaxation_time(shop)).round(2).tolist()
    [1.19, 2.77]
    """
    n, d, lam = numbers_of(model, fewest=2, finite=True, distinct=False)
    n = integer("n", n, 1, 10**6)
    spread = real("spread", spread, 1.0)
    centre = n * fixed_point_shorter(model, 2)[1:]
    width = spread * np.sqrt(n * np.diag(stationary_covariance(model))[1:3])
    low = np.maximum(np.floor(centre - width), 0).astype(int)
    high = np.minimum(np.ceil(centre + width), n).astype(int)
    sizes = high - low + 1
    if np.prod(sizes.astype(float)) > 5e5:
        raise ParameterError(
            f"n = {n} queues have {np.prod(sizes.astype(float)):.2g} states within {spread:g} "
            "standard deviations, and half a million are allowed: choose a smaller n or d."
        )
    grid = np.meshgrid(*(np.arange(a, b + 1) for a, b in zip(low, high, strict=True)))
    one, two = (values.T.ravel(order="F") for values in grid)  # idle ones change fastest
    one, two = one[one <= two], two[one <= two]
    index = np.full(sizes + 2, -1)  # with a border: states that are left out
    place = one - low[0] + 1, two - low[1] + 1
    index[place] = np.arange(len(one))
    with np.errstate(divide="ignore"):
        busy, full = (np.exp(d * np.log1p(-shorter / n)) for shorter in (one, two))
    moves = (
        (lam * n * (1 - busy), -1, 0),  # an arrival finds an idle queue
        (lam * n * (busy - full), 0, -1),  # or one of length 1
        (1.0 * (two - one), 1, 0),  # a queue of length 1 is served
        (1.0 * (n - two), 0, 1),  # or one of length 2
    )
    rows, columns, rates = [], [], []
    for rate, more_one, more_two in moves:
        there = index[place[0] + more_one, place[1] + more_two]
        seen = np.flatnonzero((there >= 0) & (rate > 0))
        rows.append(seen)
        columns.append(there[seen])
        rates.append(rate[seen])
    entries = np.concatenate(rates), (np.concatenate(rows), np.concatenate(columns))
    generator = scipy.sparse.csc_matrix(entries, shape=(len(one),) * 2)
    generator = scipy.sparse.csc_matrix(
        generator - scipy.sparse.diags(np.asarray(generator.sum(axis=1)).ravel())
    )
    shift = 1e-3 / relaxation_time(model)  # just above the spectrum
    try:
        solver = scipy.sparse.linalg.splu(
            scipy.sparse.csc_matrix(generator - shift * scipy.sparse.identity(len(one))),
            permc_spec="MMD_AT_PLUS_A",  # fills in a quarter of what a band does
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )
    except RuntimeError:
        raise ParameterError(
            f"{model} forgets so slowly that a double does not tell its rates: choose a smaller "
            "lam."
        ) from None
    inverse = scipy.sparse.linalg.LinearOperator(generator.shape, solver.solve, dtype=np.float64)
    start = np.linspace(-1, 2, len(one))
    values = scipy.sparse.linalg.eigs(
        generator, 3, sigma=shift, OPinv=inverse, v0=start, tol=1e-10, return_eigenvectors=False
    )
    return np.sort(-values.real)[1:]


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
