"""Special functions of the laws, accurate relatively far out in the tail and also in logarithms."""

import math
from collections.abc import Callable

import numpy as np
import scipy
from numpy.typing import ArrayLike

from supermarket.validation import ParameterError

# The double exponential rule for a half-line: u = exp(y - exp(-y)), trapezoidal in y.
_Y = np.arange(-40, 45) / 10
_NODE = np.exp(_Y - np.exp(-_Y))
_WEIGHT = 0.1 * _NODE * (1 + np.exp(-_Y))

_CHUNK = 20_000  # integrals at a time: some 14 MB an array

_GAUSS_NODE, _GAUSS_WEIGHT = np.polynomial.legendre.leggauss(24)

# (v - log(1 + v)) / v**2 as a polynomial, highest power first
_LOG1P_MINUS = np.array([(-1) ** i / (i + 2) for i in reversed(range(9))])

# Stirling's series, in powers of 1 / a**2
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)


def exp(x: ArrayLike) -> np.ndarray:
    """Return ``exp(x)``, infinite where it is above 1e308."""
    with np.errstate(over="ignore", under="ignore"):
        return np.exp(np.asarray(x, dtype=np.float64))


def log(x: ArrayLike) -> np.ndarray:
    """Return ``log(x)``, minus infinity at 0."""
    with np.errstate(divide="ignore"):
        return np.log(np.asarray(x, dtype=np.float64))


def power_or_infinity(x: float, exponent: float) -> float:
    """Return ``x**exponent``, infinite where it is above 1e308."""
    with np.errstate(over="ignore", under="ignore"):
        return float(np.float64(x) ** exponent)


def half_line(
    integrand: Callable[..., np.ndarray], scale: np.ndarray, *parameters: np.ndarray
) -> np.ndarray:
    """Return the integrals over t > 0 of smooth functions, each decaying within some `scale` s.

    The error is near 1e-15 relatively for the positive integrands here.

    Parameters
    ----------
    integrand : callable
        ``integrand(t, *parameters)``, on arrays of shapes (n, m) and (n, 1).
    scale : ndarray of float64
        Lengths, one for each integral.
    *parameters : ndarray of float64
        What the integrand depends on, each of the shape of `scale`.
    """
    columns = [x.reshape(-1, 1) for x in (scale, *parameters)]
    result = np.empty(scale.size)
    with np.errstate(under="ignore"):
        for start in range(0, scale.size, _CHUNK):
            stop = start + _CHUNK
            width, *rest = (column[start:stop] for column in columns)
            result[start:stop] = width[:, 0] * (integrand(width * _NODE, *rest) @ _WEIGHT)
    return result.reshape(scale.shape)


def log_gamma_tail(a: float, x: ArrayLike) -> np.ndarray:
    """Return ``log Q(a, x)``, the regularised upper incomplete Gamma function."""
    return _split(a, x, lambda near: scipy.special.gammaincc(a, near), 0)


def log_gamma_excess(a: float, x: ArrayLike) -> np.ndarray:
    """Return ``log(Q(a + 1, x) - x Q(a, x) / a)``, the mean of ``max(X - x, 0) / a``.

    Here X has the Gamma law of shape a. No difference of nearly equal numbers is taken.
    """

    def near(x: np.ndarray) -> np.ndarray:
        return scipy.special.gammaincc(a, x) * (1 - x / a) + np.exp(_log_density(a, x)) / a

    return _split(a, x, near, 1)


def _split(a: float, x: ArrayLike, near: Callable[[np.ndarray], np.ndarray], k: int) -> np.ndarray:
    """Return the logarithm of `near` up to a + 1; beyond, of the integral of (t - x)^k / a^k."""
    x = np.asarray(x, dtype=np.float64)
    far = x > a + 1
    result = np.empty(x.shape)
    result[~far] = np.log(near(x[~far]))
    y = np.minimum(x[far], 1e300)
    # With t = y + u, the logarithm of t**(a-1) exp(-t) falls by drift * u, and its second
    # derivative at u = 0 is -(a-1) / y**2.
    drift = (y - a + 1) / y
    integral = half_line(
        lambda u, y, drift: u**k * np.exp((a - 1) * _log1p_minus(u / y) - drift * u),
        1 / np.maximum(drift, math.sqrt(abs(a - 1)) / y),
        y,
        drift,
    )
    result[far] = _log_density(a, y) - np.log(y) - k * math.log(a) + np.log(integral)
    result[x == np.inf] = -np.inf
    return result


def _log_density(a: float, x: np.ndarray) -> np.ndarray:
    """Return ``log(x**a exp(-x) / Gamma(a))``; for a large a, no large terms are left to cancel."""
    if a < 10:
        return a * log(x) - x - float(scipy.special.gammaln(a))
    return a * _log1p_minus((x - a) / a) + log_density_at_mean(a)


def log_density_at_mean(a: float) -> float:
    """Return ``log(a**a exp(-a) / Gamma(a))`` by Stirling's series, for a of 10 or more."""
    rest = sum(c * a ** -(2 * i + 1) for i, c in enumerate(_STIRLING))
    return 0.5 * math.log(a / (2 * math.pi)) - rest


def _log1p_minus(v: np.ndarray) -> np.ndarray:
    """Return ``log(1 + v) - v``, without cancellation near 0."""
    with np.errstate(divide="ignore"):
        direct = np.log1p(v) - v
    near = np.clip(v, -0.02, 0.02)
    return np.where(v == near, -near * near * np.polyval(_LOG1P_MINUS, near), direct)


def log_lognormal_excess(sigma: float, log_s: ArrayLike) -> np.ndarray:
    r"""Return the logarithm of the mean of ``max(S - s, 0)``, S lognormal of mean 1.

    With :math:`z = \log(s) / \sigma + \sigma / 2 > 0` and the normal density
    :math:`\varphi`, it is

    .. math:: s \, \varphi(z) \int_0^\infty e^{-z t - t^2/2} (e^{\sigma t} - 1) \, dt;

    for z <= 0 it is ``1 - s`` plus the mean of ``max(s - S, 0)``, which is the same with -z and
    -sigma. Where the integrand has its peak far from 0, the two terms of Black and Scholes differ.
    """
    log_s = np.asarray(log_s, dtype=np.float64)
    beyond = log_s > 1e150 * sigma
    z = np.clip(log_s / sigma + sigma / 2, -40, 1e150)
    slope = np.abs(z) - np.where(z > 0, sigma, 0.0)
    integral = half_line(
        lambda t, slope: np.exp(-slope * t - t * t / 2) * -np.expm1(-sigma * t),
        1 / np.maximum(slope, 1.0),
        slope,
    )
    result = log_s - z * z / 2 - 0.5 * math.log(2 * math.pi) + np.log(integral)
    result = np.where(z > 0, result, log(exp(result) - np.expm1(np.minimum(log_s, 0.0))))
    early = (z > 0) & (slope < -3)
    black_scholes = scipy.special.ndtr(-slope) - exp(
        np.where(early, log_s + scipy.special.log_ndtr(-z), -1.0)
    )
    result = np.where(early, np.log(np.where(early, black_scholes, 1.0)), result)
    return np.where(beyond, -np.inf, result)


def smallest_above(survival: Callable[[np.ndarray], np.ndarray], p: ArrayLike) -> np.ndarray:
    """Return the smallest float64 s >= 0 with ``survival(s) <= p``, by bisection.

    Nonnegative floats are ordered like the integers that their bits spell, so 64 halvings reach
    the last bit wherever s is.
    """
    p = np.asarray(p, dtype=np.float64)
    low = np.full(p.shape, -1, dtype=np.int64)  # survival(s) > p here: no s is negative
    top = 1.0
    with np.errstate(over="ignore", under="ignore"):
        while top < np.inf and np.any(survival(np.array(top)) > p):
            top *= 2.0**20
        high = np.full(p.shape, np.float64(top).view(np.int64))
        for _ in range(64):
            middle = np.maximum(low + (high - low) // 2, 0)
            reached = survival(middle.view(np.float64)) <= p
            high, low = np.where(reached, middle, high), np.where(reached, low, middle)
    return high.view(np.float64)


def laplace(
    survival: Callable[[np.ndarray], np.ndarray], theta: ArrayLike, edges: ArrayLike
) -> np.ndarray:
    """Return ``1 - theta * (integral of exp(-theta s) survival(s))`` for each theta, by quadrature.

    `edges` are increasing points; `survival` is smooth between them and 0 after the last.
    """
    theta = np.asarray(theta)
    if np.iscomplexobj(theta):
        raise ParameterError(
            "theta is complex, and this law has no closed form of its transform: give real numbers."
        )
    values = [_laplace(survival, float(x), np.asarray(edges)) for x in theta.ravel()]
    return np.array(values, dtype=np.float64).reshape(theta.shape)


def _laplace(
    survival: Callable[[np.ndarray], np.ndarray], theta: float, edges: np.ndarray
) -> float:
    if theta == 0:
        return 1.0
    # exp(-v) survival(v / theta) over 0 < v < 745, cut at the edges and at the scales of both
    end = min(745.0, theta * edges[-1])
    scales = np.concatenate([theta * np.logspace(-3, 3, 13), np.logspace(-12, 2.5, 30)])
    cuts = np.concatenate([[0.0, end], scales, theta * edges])
    cuts = np.unique(cuts[cuts <= end])
    low, width = cuts[:-1, None], np.diff(cuts)[:, None]
    v = low + width * (_GAUSS_NODE + 1) / 2
    lost = np.sum(width / 2 * _GAUSS_WEIGHT * np.exp(-v) * survival(v / theta))
    return max(float(1 - lost), 0.0)
