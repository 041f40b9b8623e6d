"""The mean field's 1/n correction: the refined mean field of Gast and Van Houdt [1]_.

In equilibrium E u_i = pi(i) + V_i / n + O(1/n**2). Let f be the drift of the mean-field ODE, A its
Jacobian and B its second derivatives at the fixed point pi, and Q the covariance that the jumps of
the chain build up in unit time, times n. The fluctuations have covariance W / n, where

    A W + W A^T + Q = 0,      and      V = -A^{-1} (B:W / 2 + C),

with B:W the vector of sum_{jk} B_ijk W_jk. C / n is what the drift of n queues has beyond f. With
replacement there is none: d queues all lie among a share x with probability beta(x) = x**d, at any
n. For distinct queues

    beta_n(x) = prod_{j<d} (n x - j) / (n - j) = x**d - d (d-1) / 2 x**(d-1) (1-x) / n + O(1/n**2).

Two simplifications. Levels i, i + 1, ... together gain what joins at i - 1 and lose what leaves at
i, so E u_i = lam E beta_n(u_{i-1}) exactly, and the equation for V is solved from the top:

    V_i = lam (beta'(pi) V + beta''(pi) W_ll / 2 + beta_1(pi)) at l = i - 1,

where beta_1 is the term in 1/n above. With D the diagonal matrix of sqrt(pi), the equation for
D^{-1} W D^{-1} has coefficients between 0 and about d in the ratios pi(i+1) / pi(i) alone: so W
keeps its digits in the tail, and a level whose ratio is below rounding ends the matrices.

References
----------
.. [1] N. Gast and B. Van Houdt, "A refined mean field approximation", Proceedings of the ACM on
   Measurement and Analysis of Computing Systems 1 (2017), article 33.
"""

import math

import numpy as np
import scipy
from numpy.typing import NDArray

from supermarket.limits.mean_field.fixed_point import fixed_point
from supermarket.limits.saturation.drifts import stationary_covariance
from supermarket.models.jsq import Supermarket, numbers_of
from supermarket.validation import real

__all__ = ["busy_control", "mean_queue_correction", "profile_correction", "refined_mean_field"]

_NEGLIGIBLE = 2.0**-60
_NEAR = 1e-3  # from here to 1 a general solver loses digits, and singular values keep them
_SINGULAR = 1e-9  # of 1 - lam: nearer to 1 the system of `busy_control` is singular


def profile_correction(model: Supermarket, levels: int) -> NDArray[np.float64]:
    """Return V, the profile's correction: E u_i = pi(i) + V_i / n + O(1/n**2) in equilibrium.

    Parameters
    ----------
    model : Supermarket
        Of exponential service; its n does not matter.
    levels : int
        Last level wanted, at least 0.

    Returns
    -------
    ndarray of float64, shape (levels + 1,)
        V_0 = V_1 = 0 (queues are busy for a share lam of the time at any n), V_2, ..., V_levels.

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> from supermarket import Supermarket
    >>> from supermarket.limits.mean_field.correction import profile_correction
    >>> profile_correction(Supermarket(1000, 2, 0.7), 4).round(4).tolist()
    [0.0, 0.0, 0.2192, 0.4494, 0.1746]
    """
    _, d, lam = numbers_of(model)
    pi = fixed_point(model, levels)
    correction = np.zeros(len(pi))
    if d == 1:  # the drift is linear and the mean field exact
        return correction
    variance = pi.copy()  # n times that of u_i: below the matrices a level is Poisson's
    variance[0] = 0.0
    if 1 - lam < _NEAR:
        exact = np.diag(stationary_covariance(Supermarket(math.inf, d, lam)))[: len(pi)]
        variance[: len(exact)] = exact
    else:
        scaled = np.diag(_Scaled(lam, d).covariance())[: len(pi) - 1]
        variance[1 : len(scaled) + 1] *= scaled
    if not model.replacement:
        variance -= pi * (1 - pi)  # beta_1 and beta'' are in proportion
    pairs = d * (d - 1) / 2
    for below in range(len(pi) - 1):
        x = pi[below]
        if x == 0:  # and so is all that follows
            break
        correction[below + 1] = lam * (
            d * x ** (d - 1) * correction[below] + pairs * x ** (d - 2) * variance[below]
        )
    return correction


def mean_queue_correction(model: Supermarket) -> float:
    """Return the correction of the mean queue length, n (mean - mean field) as n grows.

    Parameters
    ----------
    model : Supermarket
        Of exponential service; its n does not matter.

    Returns
    -------
    float
        The sum of V_i, in jobs a queue.

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> from supermarket import Supermarket, mean_queue
    >>> from supermarket.limits.mean_field.correction import mean_queue_correction
    >>> shop = Supermarket(10, 2, 0.9)
    >>> round(mean_queue(shop) + mean_queue_correction(shop) / shop.n, 4)
    2.7513
    """
    _, d, lam = numbers_of(model)
    levels = 0 if d == 1 else _depth(lam, d) + 2
    return float(profile_correction(model, levels).sum())


def refined_mean_field(model: Supermarket, levels: int) -> NDArray[np.float64]:
    """Return pi(i) + V_i / n, the refined mean field of n queues (see `profile_correction`).

    Parameters
    ----------
    model : Supermarket
        Of exponential service.
    levels
        As in `profile_correction`.

    Returns
    -------
    ndarray of float64, shape (levels + 1,)
        An expansion, not a law: for few queues at a high rate it may increase from one level to
        the next.

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> from supermarket import Supermarket, refined_mean_field
    >>> refined_mean_field(Supermarket(10, 2, 0.7), 3).round(4).tolist()
    [1.0, 0.7, 0.3649, 0.1273]
    """
    n, _, _ = numbers_of(model, finite=True)
    return fixed_point(model, levels) + profile_correction(model, levels) / n


def busy_control(model: Supermarket) -> tuple[float, float]:
    """Return how a run's busy share tells of the error of its mean queue length.

    Over a run the busy share u_1 averages to lam in expectation, at any n and without error, and
    where it comes out too high, so does the mean queue length. Hence

        (mean queue length) - coefficient * (busy share - lam)

    has the same expectation for any coefficient. The one that leaves the least variance is found
    here from the linear noise: averages over a long time T have covariance
    A^{-1} Q A^{-T} / (n T).

    Parameters
    ----------
    model : Supermarket
        Of exponential service; its n does not matter.

    Returns
    -------
    coefficient : float
        Jobs per busy server.
    variance : float
        n T times the variance that is left, to leading order in 1 / n.

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> from supermarket import Supermarket, busy_control
    >>> [round(x, 2) for x in busy_control(Supermarket(1000, 2, 0.9))]
    [11.99, 12.7]

    References
    ----------
    .. [1] S. Asmussen and P. W. Glynn, *Stochastic Simulation*, Springer, 2007, section V.2, for
       control variates.
    """
    _, d, lam = numbers_of(model, fewest=2)
    real("1 - lam", 1 - lam, _SINGULAR)
    system = _Scaled(lam, d)
    weights = np.column_stack([system.roots, np.zeros_like(system.roots)])
    weights[0, 1] = system.roots[0]  # first column: the sum of all levels; second: u_1 alone
    response = np.linalg.solve(system.jacobian.T, weights)
    queue, busy = response.T
    coefficient = (queue * system.noise) @ busy / ((busy * system.noise) @ busy)
    left = queue - coefficient * busy
    return float(coefficient), float((left * system.noise) @ left)


class _Scaled:
    """The linear noise at the fixed point, with level i in units of the root of pi(i).

    Attributes
    ----------
    roots : ndarray, shape (m,)
        Square roots of pi(1), ..., pi(m).
    jacobian : ndarray, shape (m, m)
        D^{-1} A D.
    noise : ndarray, shape (m,)
        Diagonal of D^{-1} Q D^{-1}; the jumps touch one level each, so there is nothing else.
    """

    def __init__(self, lam: float, d: int) -> None:
        levels = _depth(lam, d)
        pi = fixed_point(Supermarket(math.inf, d, lam), levels)
        ratios = lam * pi ** (d - 1.0)  # pi(i + 1) / pi(i)
        inner = np.sqrt(ratios[1:-1])
        self.roots = np.sqrt(pi[1:])
        self.noise = 2 * (1 - ratios[1:])
        self.jacobian = np.diag(-1 - d * ratios[1:]) + np.diag(inner, 1) + np.diag(d * inner, -1)

    def covariance(self) -> NDArray[np.float64]:
        """Return D^{-1} W D^{-1}."""
        return scipy.linalg.solve_continuous_lyapunov(self.jacobian, -np.diag(self.noise))


def _depth(lam: float, d: int) -> int:
    """Return the first level to which the next is coupled below rounding."""
    log_lam, exponent, level = math.log(lam), 1.0, 1  # pi(level) = lam ** exponent
    while math.log(d) + (1 + (d - 1) * exponent) * log_lam > math.log(_NEGLIGIBLE):
        exponent = 1 + d * exponent
        level += 1
    return level
