"""Q_1, ..., Q_k once more, about the fixed point: the steepness of the drift as it is there.

The matrix A_k of `supermarket.limits.saturation.drifts` takes u_i**d as 1 - d (1 - u_i), with slope
d. At the fixed point the slope is d pi(i)**(d-1), less by about the factor exp(-(1-lam) d**i): in
the limit of Brightwell & Luczak, arXiv:1201.5523, this is 1 for i < k, at sizes within reach it is
not. Derived in this project.
"""

import numpy as np

from supermarket.limits.mean_field.fixed_point import log_fixed_point
from supermarket.limits.saturation.drifts import Modes, modes_of
from supermarket.models.jsq import Supermarket, numbers_of
from supermarket.validation import ParameterError, integer

__all__ = ["modes_at_fixed_point"]


def modes_at_fixed_point(model: Supermarket, k: int) -> Modes:
    r"""Return Q_1, ..., Q_k for the drift linearised at the fixed point, level k + 1 kept as it is.

    .. math::
        \frac{d}{dt} (w_i - \bar w_i) = a_{i-1} (w_{i-1} - \bar w_{i-1})
        - (1 + a_i) (w_i - \bar w_i) + (w_{i+1} - \bar w_{i+1}),

    .. math::
        a_i = \lambda d\, \pi(i)^{d-1} \ (i < k), \qquad a_k = 0 .

    Their product is the determinant, which is 1 whatever the a_i are: so only one rate is small.

    Parameters
    ----------
    model : Supermarket
        Of exponential service; its n does not matter.
    k : int
        Number of levels, at least 1.

    Returns
    -------
    Modes
        About the fixed point: drift of Q_j = Q_{j+1} - rates[j-1] Q_j for j < k, and
        -rates[k-1] Q_k for the last, each Q less its value there.

    Raises
    ------
    ParameterError
        If a parameter is out of range, or the rates lie too far apart for a double.

    Examples
    --------
    >>> from supermarket import Supermarket
    >>> from supermarket.limits.saturation.slow_mode import modes_at_fixed_point
    >>> modes_at_fixed_point(Supermarket(1000, 20, 0.99), 2).rates.round(4).tolist()
    [18.3035, 0.0546]
    """
    _, d, lam = numbers_of(model, fewest=2)
    k = integer("k", k, 1, 1000)
    found = modes_of(lam * d * np.exp((d - 1) * log_fixed_point(model, k)[1:k]))
    rates = found.rates
    if rates[-1] < 1e-9 * rates[0]:
        raise ParameterError(
            f"rates from {rates[-1]:.2g} to {rates[0]:.2g} lie too far apart for coefficients: "
            "choose a smaller d or k."
        )
    return found
