r"""Server pools of several classes: what the theory and the chains share, as with service laws.

A pool serves all its tasks in parallel. A pool of class i with x tasks has the utility u_i(x), u_i
concave; one task more adds the marginal utility Delta(i, x) = u_i(x + 1) - u_i(x). What matters is
the order of the pairs (i, j), j >= 1, by decreasing Delta(i, j - 1): pair (i, j) stands for "the
j-th task of a pool of class i".
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from supermarket.validation import (
    ParameterError,
    affordable,
    called,
    choice,
    instance,
    integer,
    listed,
    numbers,
    real,
    said,
)

__all__ = ["PoolSystem", "ServerPools", "server_pools"]


@dataclass(frozen=True, eq=False)
class ServerPools:
    """Classes of server pools. Made by `server_pools`, which checks them.

    Attributes
    ----------
    alpha : ndarray of float64, shape (m,)
        Fractions of the pools that are of each class; their sum is 1.
    marginals : ndarray of float64, shape (m, levels)
        ``marginals[i, j]`` is Delta(i, j), not increasing in j.
    empty : ndarray of float64, shape (m,)
        u_i(0).

    Examples
    --------
    >>> from supermarket import server_pools
    >>> pools = server_pools([0.5, 0.5], [[4, 2], [3, 1]], levels=2)
    >>> pools.assignment(10, 12).tolist()
    [[5, 2], [5, 0]]
    >>> float(pools.utility([[0.5, 0.2], [0.5, 0.0]]))
    3.9
    """

    alpha: NDArray[np.float64]
    marginals: NDArray[np.float64]
    empty: NDArray[np.float64]

    @property
    def levels(self) -> int:
        """The number of tasks a pool can hold in a computation."""
        return self.marginals.shape[1]

    @property
    def order(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The classes i and levels j of all pairs in order, the pair of the largest gain first.

        Of pairs with the same marginal utility that of the earlier class comes first, and in one
        class that of the lower level.
        """
        classes, tasks = (x.ravel() for x in np.indices(self.marginals.shape))
        ranked = np.lexsort((tasks, classes, -self.marginals.ravel()))
        return classes[ranked], tasks[ranked] + 1

    def utility(self, q: ArrayLike) -> NDArray[np.float64]:
        """Return the aggregate utility a pool of shares q.

        Parameters
        ----------
        q : array_like of float, shape (..., m, levels)
            ``q[..., i, j - 1]`` is the fraction of pools that are of class i with at least j tasks.

        Returns
        -------
        ndarray of float64, shape (...)
            The sum of alpha(i) u_i(0) and of Delta(i, j - 1) q(i, j).
        """
        q, shape = numbers("q", q), self.marginals.shape
        if q.shape[-2:] != shape:
            raise ParameterError(
                f"q of shape {q.shape} must hold shares of shape {shape}, for one state or many."
            )
        return self.alpha @ self.empty + np.einsum("...ij,ij->...", q, self.marginals)

    def sizes(self, n: int) -> NDArray[np.int64]:
        """Return the number of pools of each class among n.

        Raises
        ------
        ParameterError
            If these are not whole numbers.
        """
        n = integer("n", n, 1, 10**12)
        sizes = np.rint(self.alpha * n)
        if np.any(np.abs(sizes - self.alpha * n) > 1e-9 * n):
            raise ParameterError(
                f"n = {n} pools have no whole number in each class of fractions "
                f"{said(self.alpha.tolist())}: choose another n."
            )
        return sizes.astype(np.int64)

    def assignment(self, n: int, tasks: int) -> NDArray[np.int64]:
        """Return the best way to place this many tasks in n pools: pairs are filled in their order.

        Returns
        -------
        ndarray of int64, shape (m, levels)
            ``counts[i, j - 1]`` is the number of pools of class i with at least j tasks.

        Raises
        ------
        ParameterError
            If a class has no whole number of pools, or the tasks do not fit.
        """
        classes, tasks_in = self.order
        room = self.sizes(n)[classes]
        tasks = integer("tasks", tasks, 0, int(n) * self.levels)
        counts = np.zeros(self.marginals.shape, dtype=np.int64)
        counts[classes, tasks_in - 1] = np.clip(tasks - np.cumsum(room) + room, 0, room)
        return counts


POLICIES = ("jlmu", "threshold", "jsq", "random")


@dataclass(frozen=True, repr=False)
class PoolSystem:
    """A system of n server pools that tasks are assigned to by a policy.

    Attributes
    ----------
    pools : ServerPools
        Classes and utilities (see `server_pools`).
    n : int
        Number of pools, such that every class has a whole number of them.
    rho : float
        Arrivals per pool in a mean service time, so also the mean number of tasks per pool.
    policy : {"jlmu", "threshold", "jsq", "random"}
        As described at the head of `supermarket.runs.pools`.
    tolerance : float
        Fraction of green pools at which the threshold falls, in (0, 1).
    threshold : int
        The threshold to begin with, from 0.

    Examples
    --------
    >>> from supermarket import PoolSystem, server_pools
    >>> pools = server_pools([1.0], [lambda x: -x * x], levels=40)
    >>> PoolSystem(pools, 100, 3.5)
    PoolSystem(1 class, n=100, rho=3.5, policy='jlmu')
    """

    pools: ServerPools
    n: int
    rho: float
    policy: str = "jlmu"
    tolerance: float = 0.1
    threshold: int = 0

    def __post_init__(self) -> None:
        pools, within = pools_of(self.pools), {"open_low": True, "open_high": True}
        pools.sizes(self.n)
        choice("policy", self.policy, POLICIES)
        checked = {
            "n": int(self.n),
            "rho": real("rho", self.rho, 0.0, float(pools.levels), **within),
            "tolerance": real("tolerance", self.tolerance, 0.0, 1.0, **within),
            "threshold": integer("threshold", self.threshold, 0, pools.marginals.size - 1),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        """Return the number of classes, n, rho and the policy."""
        m = len(self.pools.alpha)
        classes = "1 class" if m == 1 else f"{m} classes"
        return f"PoolSystem({classes}, n={self.n}, rho={self.rho:g}, policy={self.policy!r})"


def pools_of(given: object) -> ServerPools:
    """Return the pools, or refuse what are none."""
    return instance("pools", given, ServerPools, "make them with server_pools")


def server_pools(
    alpha: ArrayLike,
    utilities: Sequence[Callable[[int], float] | ArrayLike],
    *,
    levels: int = 64,
) -> ServerPools:
    """Return classes of server pools, checked.

    Parameters
    ----------
    alpha : array_like of float, shape (m,)
        Fraction of the pools that are of each class, each above 0, with sum 1.
    utilities : sequence of m callables or arrays
        Either u_i, called with the whole numbers 0, 1, ..., levels; or the marginal utilities
        Delta(i, 0), Delta(i, 1), ..., and then u_i(0) = 0.
    levels : int
        Number of tasks up to which utilities are known. Arrays must be as long.

    Returns
    -------
    ServerPools

    Raises
    ------
    ParameterError
        If the fractions are not such, or a utility is not concave, not finite, or of another
        length.

    Examples
    --------
    >>> from supermarket.models.pools import server_pools
    >>> pools = server_pools([0.5, 0.5], [lambda x: -x * x, lambda x: -x * x / 2], levels=3)
    >>> [list(map(int, x)) for x in pools.order]
    [[1, 0, 1, 1, 0, 0], [1, 1, 2, 3, 2, 3]]
    """
    alpha = numbers("alpha", alpha).copy()
    levels = integer("levels", levels, 1, 10**4)
    if alpha.ndim != 1 or not np.all(alpha > 0) or abs(alpha.sum() - 1) > 1e-12:
        raise ParameterError(
            "alpha must be a list of fractions above 0 with sum 1, one for each class."
        )
    utilities = listed("utilities", utilities)
    if len(utilities) != len(alpha):
        raise ParameterError(
            f"{len(utilities)} utilities do not belong to {len(alpha)} fractions alpha: give one "
            "for each class."
        )
    affordable(f"levels = {levels}", float(levels * len(alpha)), "choose fewer levels", 10**7)
    marginals, empty = np.zeros((len(alpha), levels)), np.zeros(len(alpha))
    for i, utility in enumerate(utilities):
        if callable(utility):
            name = f"utility {i}"
            values = [real(name, called(name, utility, x)) for x in range(levels + 1)]
            empty[i], gains = values[0], np.diff(values)
            # Differences of rounded values of a straight line may seem to rise.
            slack = 8 * np.finfo(np.float64).eps * np.max(np.abs(values))
        else:
            gains, slack = numbers(f"marginal utilities {i}", utility), 0.0
        if gains.shape != (levels,):
            raise ParameterError(
                f"marginal utilities {i} must be levels = {levels} finite numbers."
            )
        rises = np.flatnonzero(np.diff(gains) > slack)
        if len(rises):
            j = int(rises[0])
            raise ParameterError(
                f"utility {i} is not concave: task {j + 2} adds {gains[j + 1]:.6g}, more than the "
                f"{gains[j]:.6g} of task {j + 1}; give marginal utilities that never increase."
            )
        marginals[i] = np.minimum.accumulate(gains)
    return ServerPools(alpha, marginals, empty)
