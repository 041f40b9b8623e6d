r"""The FIFO cavity for a phase-type law: one vector a level, with exact linear algebra.

With starting phases :math:`\alpha` and generator T, :math:`\bar F(a) = \alpha e^{Ta} 1` and
:math:`R(a) = \alpha e^{Ta} (-T)^{-1} 1`. The row vector
:math:`\varphi_k = \int_0^\infty g_k(a) \, \alpha e^{Ta} \, da`, the stationary mass of "k jobs, the
one in service in each phase", obeys

.. math:: \varphi_k (\lambda_k I - T) = g_k(0) \, \alpha + \lambda_{k-1} \varphi_{k-1},

and the inverse of :math:`\lambda_k I - T` has no negative entry. Derived in this project.
"""

import numpy as np

from supermarket.kernels.compiled import kernel
from supermarket.limits.fifo.level_equation import climber, first_levels
from supermarket.service import ServiceLaw
from supermarket.validation import ParameterError


def by_phases(
    service: ServiceLaw, d: int, lam: float, levels: int
) -> tuple[np.ndarray, np.ndarray, int]:
    """Return ``log_tail``, ``log_rates`` and the number of phases for a law of mean 1.

    Parameters
    ----------
    service, d, lam, levels
        As in `cavity`, checked; the law has mean 1 and phases.

    Raises
    ------
    ParameterError
        If the last level's logarithm is out of range.
    """
    start, generator = service.phases()
    log_tail, log_rates = first_levels(d, lam, levels)
    phases = start.size
    state = (
        np.zeros(phases),
        np.full(1, -np.inf),
        np.zeros(phases),
        np.full(1, -np.inf),
        np.asarray(start, dtype=np.float64),
        -np.asarray(generator, dtype=np.float64),
        np.linalg.solve(-generator, np.ones(phases)),
        np.empty((phases, phases)),
    )
    k = _climb(log_tail, log_rates, 1, d, np.log(lam), state, -np.inf, -np.inf)
    if k < levels:
        raise ParameterError(
            f"log P_{k} = {log_tail[k]:.4g}, and the next is beyond float64: choose levels <= {k}."
        )
    return log_tail, log_rates, phases


@kernel
def _serve(state: tuple, log_rate: float, log_start: float) -> float:
    """Solve for the mass in each phase; return the logarithm of the work that is left in it."""
    flow, log_flow, trial, log_trial, start, decay, work, matrix = state
    top = max(log_start, log_flow[0])
    own, inherited, rate = np.exp(log_start - top), np.exp(log_flow[0] - top), np.exp(log_rate)
    phases = start.size
    for i in range(phases):
        trial[i] = own * start[i] + inherited * flow[i]
        for j in range(phases):
            matrix[i, j] = decay[j, i]
        matrix[i, i] += rate
    # Elimination adds numbers of one sign off the diagonal, and needs no pivots: each column's
    # diagonal outweighs the rest of it.
    for i in range(phases):
        for below in range(i + 1, phases):
            factor = matrix[below, i] / matrix[i, i]
            trial[below] -= factor * trial[i]
            for j in range(i + 1, phases):
                matrix[below, j] -= factor * matrix[i, j]
    served = 0.0
    for i in range(phases - 1, -1, -1):
        for j in range(i + 1, phases):
            trial[i] -= matrix[i, j] * trial[j]
        trial[i] /= matrix[i, i]
        served += trial[i] * work[i]
    log_trial[0] = top
    return top + np.log(served)


@kernel
def _accept(state: tuple, log_rate: float) -> bool:
    """Make the last trial the inflow of the next level."""
    flow, log_flow, trial, log_trial = state[:4]
    largest = max(trial)
    for i in range(flow.size):
        flow[i] = trial[i] / largest
    log_flow[0] = log_trial[0] + np.log(largest) + log_rate
    return True


_climb = climber(_serve, _accept)
