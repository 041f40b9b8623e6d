r"""The stationary laws of the three diffusions of growing choices, k = 1, from a lattice.

The process (Z_1, Z_2) of `supermarket.limits.growing.diffusions` is replaced by a Markov chain on a
lattice of spacing h: Z_1 goes up or down by h at rates h**-2 -+ Z_1 / (2 h), and the net overflow
moves (-h, +h) along a diagonal. The sparse balance equations are solved. At a reflecting barrier a
step up becomes a step of Z_2. So the sum Z_1 + Z_2 moves as in the diffusion, and two identities
hold on the lattice as they do there, whatever the overflow (derived in this project):

.. math:: \mathbb E Z_1 = 0, \qquad \operatorname{Var} Z_1 + \operatorname{Cov}(Z_1, Z_2) = 1.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from supermarket.limits.growing.centre import near_equilibrium, soft_barrier
from supermarket.limits.growing.diffusions import (
    ExponentialOverflow,
    LinearOverflow,
    Overflow,
    ReflectedOverflow,
    effective_barrier,
    overflow_of,
)
from supermarket.models.jsq import Supermarket, numbers_of
from supermarket.validation import ParameterError, affordable, real

__all__ = ["chain_moments", "stationary_law", "stationary_moments", "waiting_share"]

_HARD = 32.0  # from this c on a soft barrier counts as hard
_SMOOTH = 0.65  # spacing times c up to which the error of second order is all there is, to 2e-4
_ROUGH = 3.2  # the same, to 5 per cent of the mean of Z_2
_TAIL = 20.0  # the lattice ends where a density is some exp(-20) of its maximum


class Moments(NamedTuple):
    """Means and covariances of (Z_1, Z_2)."""

    mean_1: float
    mean_2: float
    variance_1: float
    covariance: float
    variance_2: float


class Law(NamedTuple):
    """A law on a lattice: ``mass[i, j]`` is that of ``(x[i], y[j])``."""

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    mass: NDArray[np.float64]

    @property
    def moments(self) -> Moments:
        """Means and covariances."""
        first, second = self.mass.sum(axis=1), self.mass.sum(axis=0)
        x, y = self.x - first @ self.x, self.y - second @ self.y
        return Moments(
            float(first @ self.x),
            float(second @ self.y),
            float(first @ x**2),
            float(x @ self.mass @ y),
            float(second @ y**2),
        )


def stationary_moments(overflow: Overflow, spacing: float = 0.1) -> Moments:
    """Return the stationary means and covariances, k = 1, extrapolated to spacing 0.

    Linear: 0 and the closed form. Exponential: from spacings h and h/2, whose errors are of second
    order; h is cut to 1.6 / c, and beyond c = 32 the soft barrier counts as a reflecting one, see
    `effective_barrier`, whose error is then below 5e-3 and falls. Reflected: from 2h, h and h/2,
    errors of first and second order. With h = 0.1 the errors are otherwise below 1e-3, but for
    moments of Z_2 where little overflows, exp(-c barrier) < c / 10: there one per cent of the mean.

    Parameters
    ----------
    overflow : LinearOverflow, ExponentialOverflow or ReflectedOverflow
    spacing : float
        h, in (0, 0.2].

    Raises
    ------
    ParameterError
        If a parameter is out of range, or the barrier leaves Z_2 without a bound.

    Examples
    --------
    >>> from supermarket.limits.growing.diffusions import LinearOverflow
    >>> from supermarket.limits.growing.stationary import stationary_moments
    >>> stationary_moments(LinearOverflow(2.0))
    Moments(mean_1=0.0, mean_2=0.0, variance_1=0.5, covariance=0.5, variance_2=1.0)
    """
    overflow, spacing = overflow_of(overflow), real("spacing", spacing, 0.0, 0.2, open_low=True)
    if isinstance(overflow, LinearOverflow):
        total = 2 + overflow.alpha
        alpha = total - 2
        return Moments(0.0, 0.0, 2 / total, alpha / total, alpha**2 / total)
    if isinstance(overflow, ExponentialOverflow) and overflow.c > _HARD:
        overflow = ReflectedOverflow(effective_barrier(overflow))
    if isinstance(overflow, ExponentialOverflow):
        return _extrapolated(overflow, min(spacing, 1.6 / overflow.c))
    coarse, middle, fine = (
        np.array(stationary_law(overflow, h).moments) for h in (2 * spacing, spacing, spacing / 2)
    )
    first = 2 * middle - coarse, 2 * fine - middle
    return Moments(*((4 * first[1] - first[0]) / 3).tolist())


def _extrapolated(soft: ExponentialOverflow, spacing: float) -> Moments:
    """Return the moments with a soft barrier from two lattices, less the error of second order."""
    middle, fine = (np.array(stationary_law(soft, h).moments) for h in (spacing, spacing / 2))
    return Moments(*((4 * fine - middle) / 3).tolist())


def stationary_law(overflow: ExponentialOverflow | ReflectedOverflow, spacing: float = 0.1) -> Law:
    """Return the stationary law of (Z_1, Z_2) on a lattice, k = 1.

    Parameters
    ----------
    overflow : ExponentialOverflow or ReflectedOverflow
    spacing : float
        From 0.001 to 0.4. Where it is coarse against 1 / c, a soft barrier leaves a signed law,
        some entries of which are below 0 by little; its moments are as precise as
        `stationary_moments` says.

    Raises
    ------
    ParameterError
        If a parameter is out of range, or the barrier leaves Z_2 without a bound: it has a tail
        exp(-barrier z) where the barrier reflects.

    Examples
    --------
    >>> from supermarket import exponential, stationary_law
    >>> law = stationary_law(exponential(1.0, 2.0), 0.1)
    >>> round(float(law.mass.sum(axis=0) @ law.y), 2)  # the mean of Z_2
    0.67
    """
    from scipy.sparse import coo_matrix, diags
    from scipy.sparse.linalg import spsolve

    overflow = overflow_of(overflow)
    if isinstance(overflow, LinearOverflow):
        raise ParameterError("the law of linear overflow is normal: see `linear_covariance`.")
    h = real("spacing", spacing, 1e-3, 0.4)
    x, y = _ends(overflow, h)
    told = f"spacing = {h:g}, a lattice of {len(x)} x {len(y)},"
    affordable(told, float(len(x) * len(y)), "choose a wider spacing", 3e5)
    first, second = np.meshgrid(x, y, indexing="ij")
    number = np.arange(first.size).reshape(first.shape)
    rows, columns, rates = [], [], []

    def jump(i: int, j: int, rate: NDArray[np.float64]) -> None:
        """Add jumps by (i, j) steps, but none that leave the lattice."""
        here = number[max(-i, 0) : len(x) - max(i, 0), max(-j, 0) : len(y) - max(j, 0)]
        rows.append(here.ravel())
        columns.append((here + i * len(y) + j).ravel())
        rates.append(rate.ravel()[here.ravel()])

    jump(1, 0, h**-2 - first / (2 * h))
    jump(-1, 0, h**-2 + first / (2 * h))
    if isinstance(overflow, ReflectedOverflow):
        at_barrier = (first == x[-1]) * (h**-2 - first / (2 * h))
        jump(0, 1, at_barrier)  # up and pushed
        jump(1, -1, second / h)  # at the barrier pushed back: no change
    else:
        c, barrier = overflow
        net = (np.exp(c * (first - barrier)) - math.exp(-c * barrier)) / c - second
        # Central differences: a rate may be negative, a signed law. At the lowest level nothing can
        # come down, so all goes up: else half the overflow were lost where hardly any is.
        jump(-1, 1, net / (2 * h) * np.where(second == y[0], 2.0, 1.0))
        jump(1, -1, -net / (2 * h))
    rows, columns, rates = (np.concatenate(parts) for parts in (rows, columns, rates))
    size = first.size
    out = np.bincount(rows, rates, size)
    balance = (coo_matrix((rates, (columns, rows)), shape=(size, size)) - diags(out)).tocsc()
    # One balance equation follows from the others: fix the mass of one likely state instead.
    fixed = int(np.argmin(np.abs(first) + np.abs(second - 0.5)))
    others = np.delete(np.arange(size), fixed)
    mass = np.ones(size)
    right = -balance[others][:, [fixed]].toarray().ravel()
    mass[others] = spsolve(balance[others][:, others], right)
    mass /= mass.sum()
    return Law(x, y, mass.reshape(first.shape))


def chain_moments(model: Supermarket) -> Moments:
    r"""Return the stationary means and covariances of (Z_1, Z_2) in a finite system, k = 1.

    What the diffusion with the soft barrier gives, with two corrections that vanish as n grows
    (derived in this project). Jobs join and leave level 1 at the rate lam - E G_2 each, so its
    noise is a little less than at saturation. And level 2 has a noise of its own, of variance
    2 E G_2 a unit of time; its effect is that on the linear system whose overflow has the mean
    slope 2 Cov(Z_1, Z_2) / Var(Z_1).

    Parameters
    ----------
    model : Supermarket
        Of exponential service.

    Returns
    -------
    Moments
        Of sqrt(n) (G_i - mu_i). The mean of Z_1 is 0 exactly.

    Raises
    ------
    ParameterError
        If a parameter is out of range, or the barrier is so low that most queues have two jobs.

    Examples
    --------
    >>> from supermarket import Supermarket
    >>> from supermarket.limits.growing.centre import critical_arrival_rate
    >>> from supermarket.limits.growing.stationary import chain_moments
    >>> found = chain_moments(Supermarket(10**7, 200, critical_arrival_rate(10**7, 200, 1.0)))
    >>> round(found.mean_2, 3), round(found.variance_1, 3)  # in the limit 0 and 2/3
    (0.021, 0.647)
    """
    n, _, lam = numbers_of(model, finite=True)
    from scipy.linalg import solve_continuous_lyapunov

    soft = soft_barrier(model)
    two = centre = near_equilibrium(model, 2)[2]
    # The first round is for the noise alone, which E Z_2 / sqrt(n) changes by little.
    for first in (True, False):
        scale = math.sqrt(lam - two)
        law = ExponentialOverflow(soft.c * scale, soft.barrier / scale)
        spacing = min((_ROUGH if first else _SMOOTH) / law.c, 0.2)
        smooth = spacing >= 0.1 and math.exp(-law.c * law.barrier) > 0.1 * law.c
        if law.c <= _HARD and (first or smooth):
            moments = _extrapolated(law, spacing)
        else:
            moments = stationary_moments(law, 0.2 if first else 0.1)
        two = centre + scale * moments.mean_2 / math.sqrt(n)
    covariances = np.array(moments[2:]) * scale**2
    slope = 2 * moments.covariance / moments.variance_1
    drift = np.array([[-1.0 - slope, 1.0], [slope, -1.0]])
    own = solve_continuous_lyapunov(drift, -np.diag([0.0, 2.0 * two]))
    covariances += own[np.triu_indices(2)]
    return Moments(0.0, scale * moments.mean_2, *covariances.tolist())


def waiting_share(model: Supermarket) -> float:
    r"""Return the share of jobs that have to wait, in a finite system near saturation, k = 1.

    They are those whose d queues are all busy, and in equilibrium lam times their share is the
    mean of G_2, the share of queues with two jobs or more (derived in this project):

    .. math:: \mathbb E\,\beta_n(G_1) = \mathbb E\,G_2 / \lambda
        \approx (\mu_2 + \mathbb E Z_2 / \sqrt n) / \lambda,

    with the soft barrier, and with the noise that level 1 has below saturation.

    Parameters
    ----------
    model : Supermarket
        Of exponential service.

    Raises
    ------
    ParameterError
        If a parameter is out of range, or the barrier is so low that most queues have two jobs.

    Examples
    --------
    >>> from supermarket import Supermarket
    >>> from supermarket.limits.growing.stationary import waiting_share
    >>> round(waiting_share(Supermarket(10**4, 500, 0.98)), 3)
    0.004
    """
    n, _, lam = numbers_of(model, finite=True)
    mean = chain_moments(model).mean_2
    two = near_equilibrium(model, 2)[2] + mean / math.sqrt(n)
    return float(two / lam)


def _ends(overflow: Overflow, h: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the lattice's coordinates, out to where there is hardly any mass."""
    if isinstance(overflow, ReflectedOverflow):
        barrier = overflow.barrier
        lowest, highest = 0.0, _far(lambda z: barrier)
        top = barrier
    else:
        c, barrier = overflow
        alpha = math.exp(-c * barrier)
        lowest = -min(alpha / c, 5 * alpha / math.sqrt(2 + alpha))
        highest = _far(lambda z: barrier + math.log(c * z + alpha) / c)
        top = min(
            5.0,
            max(effective_barrier(overflow), barrier + math.log(c * highest + alpha) / c) + 4 / c,
        )
    if top > 50:
        raise ParameterError(
            f"barrier = {barrier:g} is so high that nothing overflows: choose one below 50."
        )
    x = top - h * np.arange(math.ceil((top + 5.0) / h) + 1)[::-1]
    return x, lowest + h * np.arange(math.ceil((highest - lowest) / h) + 1)


def _far(held: Callable[[float], float]) -> float:
    """Return a Z_2 that is hardly exceeded.

    While Z_2 = z is large, Z_1 stays at ``held(z)``, so Z_1 + Z_2 falls at that rate with noise of
    variance 2: a density exp(-(the integral of held)).
    """
    far, exponent = 2.0, 0.0
    while exponent < _TAIL:
        if far > 60.0:
            raise ParameterError(
                "the barrier is so low that Z_2 reaches beyond 60: choose one of at least 0.4."
            )
        exponent += 0.25 * max(held(far), 0.0)
        far += 0.25
    return far
