"""One solver for the mean-field equations of all models."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from supermarket.validation import ParameterError, affordable

LATEST = 1e15  # of time: by then every flow is where it ends
TINY = 1e-100  # of time or of a rate: the solver would take the root of its square


def solved(
    slope: Callable[[float, NDArray[np.float64]], NDArray[np.float64]],
    times: NDArray[np.float64],
    begin: NDArray[np.float64],
    **how: Any,
) -> NDArray[np.float64]:
    """Return the solution of ``dv/dt = slope(t, v)``, v(0) = begin, at checked times.

    The tolerances are 1e-9 relatively and 1e-12 absolutely. `how` goes to the solver: without a
    band the Jacobian is a full matrix.

    Raises
    ------
    ParameterError
        If the times are too late, or the levels too many.
    """
    from scipy.integrate import solve_ivp

    if times[-1] > LATEST:
        raise ParameterError(f"times = {times[-1]:g} is out of range: choose times <= {LATEST:g}.")
    if "lband" not in how:
        told = f"{begin.size} levels"
        affordable(told, float(begin.size) ** 2, "choose a start of fewer levels", 4e6)
    drift = slope(0.0, begin)
    if times[-1] < TINY or np.max(np.abs(drift), initial=0.0) < TINY:
        return begin + times[:, np.newaxis] * drift  # exact to far less than the tolerances
    solution = solve_ivp(
        slope, (0.0, times[-1]), begin, method="LSODA", t_eval=times, rtol=1e-9, atol=1e-12, **how
    )
    if not solution.success:
        raise ParameterError(f"the ODE solver stopped: {solution.message}.")
    return solution.y.T
