r"""The law of the time that a job spends in a FIFO queue of the cavity equilibrium.

An arrival that meets :math:`k \ge 1` jobs waits for what is left of the first, for k - 1 whole
services, and for its own. Arrivals at a queue with k jobs come at a constant rate, so what is left
of the first has the law that it has at any time, given k jobs. With :math:`q_k` the law of what is
met, :math:`\hat f(\theta)` the transform of a service time, and
:math:`U(a) = \int_0^\infty e^{-\theta r} \bar F(a + r) \, dr`, the transform of the sojourn time is

.. math::
    \sum_k q_k \hat r_k(\theta) \hat f(\theta)^{k \vee 1}, \qquad \hat r_0 = 1, \qquad
    q_k (1 - \hat r_k(\theta)) = \frac{\lambda_k \theta}{\lambda} \int_0^\infty g_k(a) U(a) \, da.

Derived in this project; it is inverted numerically as in [1]_.

References
----------
.. [1] J. Abate, W. Whitt, Numerical inversion of Laplace transforms of probability distributions,
   ORSA J. Comput. 7 (1995) 36-43.
"""

import numpy as np
import scipy
from numpy.polynomial import legendre

from supermarket.kernels.compiled import kernel
from supermarket.limits.fifo.by_age import LONGEST, SIZE, Replay, by_panels, decay, log_width
from supermarket.service import ServiceLaw
from supermarket.validation import ParameterError, real

_A = 23.0  # the inversion's own error is exp(-23) = 1e-10
_TERMS = 40  # terms summed before the averaging
_AVERAGED = 20
_LEFT_OUT = 1e-12
_UNSEEN = 1e-13  # share of services that end so soon that it is not felt
_DEEPEST = -2000.0
LATEST = 1e100


def sojourn_survival(
    service: ServiceLaw,
    log_edges: np.ndarray | None,
    log_tail: np.ndarray,
    log_rates: np.ndarray,
    lam: float,
    d: int,
    times: np.ndarray,
) -> np.ndarray:
    """Return P(sojourn time > t) at each of `times`.

    Parameters
    ----------
    service : ServiceLaw
        Of mean 1.
    log_edges : ndarray of float64, shape (panels + 1,), or None
        From `by_panels`; None to ask it.
    log_tail, log_rates : ndarray of float64, shapes (levels + 1,) and (levels,)
        The equilibrium, in mean service times.
    lam, d
        As in `cavity`.
    times : ndarray of float64
        In mean service times, not negative.

    Returns
    -------
    ndarray of float64, of the shape of `times`
        With an absolute error near 1e-10 where the law has a density, and up to 1e-3 near the
        kinks that atoms of the service law make (1e-4 or better between them).

    Raises
    ------
    ParameterError
        If a time is negative, or a job that meets more than the last level may be served by then.
    """
    for time in times.flat:
        real("time", time, 0.0, LATEST)
    # What lies deeper is 0 in every double, and would take ever finer panels.
    deep = int(np.argmax(np.append(d * log_tail, -np.inf) < _DEEPEST))
    log_tail, log_rates = log_tail[: deep + 1], log_rates[:deep]
    if log_edges is None:
        log_edges = by_panels(service, d, lam, log_rates.size)[2]
    met = np.exp(d * log_tail[:-1]) - np.exp(d * log_tail[1:])
    least = np.asarray(service.survival(times))  # a job stays at least for its own service
    result = np.ones(times.shape)
    for place, time in np.ndenumerate(times):
        if least[place] < 1 - _UNSEEN:
            others = _others(service, log_edges, log_tail, log_rates, lam, d, met, time)
            result[place] = min(max(met[0] * least[place] + others, least[place]), 1.0)
    return result


def _others(
    service: ServiceLaw,
    log_edges: np.ndarray,
    log_tail: np.ndarray,
    log_rates: np.ndarray,
    lam: float,
    d: int,
    met: np.ndarray,
    time: float,
) -> float:
    """Return P(an arrival meets a job, and its sojourn time is above `time`)."""
    theta = (_A + 2j * np.pi * np.arange(_TERMS + _AVERAGED + 1)) / (2 * time)
    edges = _refined(log_edges, time)
    work, first = _transforms(service, edges, theta)
    served = 1 - theta * first  # of a service time
    # Chernoff's bound of P(an arrival meets k jobs or more, and k - 1 services take less)
    k = np.arange(log_tail.size)
    log_served = np.log(max(served[0].real, 1e-300))  # rounding may leave it below 0
    bound = d * log_tail + np.minimum(0, _A / 2 + (k - 1) * log_served)
    if bound[-1] > np.log(_LEFT_OUT):
        raise ParameterError(
            f"levels = {log_tail.size - 1} is too few for a sojourn time of {time:.6g} mean "
            f"service times: choose more levels."
        )
    levels = int(np.argmax(bound <= np.log(_LEFT_OUT)))
    replay = Replay(edges, log_tail, log_rates)
    densities = np.array([_ravelled(*replay.level(k)) for k in range(1, levels)])
    left = theta[:, None] * (work @ densities.reshape(levels - 1, -1).T) / lam  # q_k (1 - r_k)
    powers = served[:, None] ** np.arange(1, levels)
    total = np.sum(met[1:levels] * (1 - powers) + left * powers, axis=1) / theta
    terms = np.exp(_A / 2) / time * (-1.0) ** np.arange(theta.size) * total.real
    terms[0] /= 2
    sums = np.cumsum(terms)[_TERMS:]
    average = scipy.special.binom(_AVERAGED, np.arange(_AVERAGED + 1)) / 2.0**_AVERAGED
    return float(average @ sums + np.exp(d * log_tail[levels]))


def _ravelled(flow: np.ndarray, log_flow: np.ndarray) -> np.ndarray:
    return (flow * np.exp(log_flow)[:, None]).ravel()


def _refined(log_edges: np.ndarray, time: float) -> np.ndarray:
    """Return the panels, cut so that the oscillations of the transform are resolved in each."""
    longest = 4 * time
    extra = np.log(np.linspace(0, longest, _TERMS + _AVERAGED + 1)[1:])
    return np.union1d(log_edges[log_edges < LONGEST], extra[extra < log_edges[-1]])


def _transforms(
    service: ServiceLaw, log_edges: np.ndarray, theta: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights that integrate ``g U`` from g's coefficients, and U(0), for each theta."""
    points, weights = legendre.leggauss(SIZE)
    left, width = np.exp(log_edges[:-1]), np.exp(log_width(log_edges))
    survival = service.survival(left[:, None] + width[:, None] * (1 + points) / 2)
    values = legendre.legvander(points, SIZE - 1)
    coefficients = (survival * weights) @ values * (np.arange(SIZE) + 0.5)
    work = np.empty((theta.size, left.size, SIZE), dtype=complex)
    # from the last panel to the first: the last age is far beyond the time
    first = _sweep(coefficients * (-1.0) ** np.arange(SIZE), width, theta, work)
    work *= (-1.0) ** np.arange(SIZE) / (2 * np.arange(SIZE) + 1) * width[:, None]
    return work.reshape(theta.size, -1), first


@kernel
def _sweep(
    survival: np.ndarray, width: np.ndarray, theta: np.ndarray, out: np.ndarray
) -> np.ndarray:
    """Solve ``U' = theta U - survival`` backwards for every theta; return U(0)."""
    size = survival.shape[1]
    inverse, scratch = 1 / (2 * np.arange(size) + 1), np.zeros((2, size), dtype=np.complex128)
    first = np.zeros_like(theta)
    for i in range(theta.size):
        value = 0j
        for p in range(width.size - 1, -1, -1):
            half = 0.5 * width[p] * theta[i]
            value = decay(survival[p], 0.5 * width[p], half, value, inverse, scratch, out[i, p])
        first[i] = value
    return first
