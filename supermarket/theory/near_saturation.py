"""Arrival rate tending to one: the power family of Brightwell & Luczak.

Equation numbers are those of arXiv:1201.5523.
"""

from typing import NamedTuple

from supermarket.theory.fixed_point import k_lambda_d
from supermarket.validation import EXACT_MAX, ParameterError, arrival_rate, integer, real


class PowerCase(NamedTuple):
    """One member of the family lam = 1 - n**-alpha, d = n**beta, rounded to a whole d.

    Attributes
    ----------
    n, d, lam
        Number of queues, choices and arrival rate.
    k : int
        k_{lam,d}, the maximum queue length of Theorem 1.2; ceil(alpha / beta) but for the rounding.
    """

    n: int
    d: int
    lam: float
    k: int

    @property
    def relaxation_time(self) -> float:
        """Order of the slowest relaxation, in mean service times.

        The longer of (lam d)**(k-1), section 2 of the paper, and 1 / (n (1-lam)**2): where that is
        above 1 the number of jobs wanders by more than the number of idle servers, as in a single
        queue in heavy traffic (derived here).
        """
        wandering = 1 / (self.n * (1 - self.lam) ** 2)
        return max((self.lam * self.d) ** (self.k - 1), wandering)

    @property
    def balanced_share(self) -> float:
        """Share of queues of length exactly k at least to be expected, 1 - 2 (1-lam) d**(k-1).

        In the family, 1 - 2 n**(-alpha + (k-1) beta), as in the abstract of G. Brightwell,
        M. Fairthorne and M. J. Luczak, J. Stat. Phys. 173 (2018) 1149.
        """
        return 1 - 2 * (1 - self.lam) * float(self.d) ** (self.k - 1)


def power_case(n: int, alpha: float, beta: float) -> PowerCase:
    """Return the member (n, alpha, beta) of the family lam = 1 - n**-alpha, d = n**beta.

    Parameters
    ----------
    n : int
        Number of queues, at least 2.
    alpha, beta : float
        In (0, 1).

    Raises
    ------
    ParameterError
        If a parameter is out of range, or n**beta rounds to d = 1.

    Examples
    --------
    >>> from supermarket.theory.near_saturation import power_case
    >>> power_case(10**4, 0.5, 0.4)
    PowerCase(n=10000, d=40, lam=0.99, k=2)
    """
    n = integer("n", n, 2, EXACT_MAX)
    alpha = real("alpha", alpha, 0.0, 1.0, open_low=True, open_high=True)
    beta = real("beta", beta, 0.0, 1.0, open_low=True, open_high=True)
    d = round(n**beta)
    if d < 2:
        raise ParameterError(f"n**beta = {n**beta:.3g} rounds to d = 1: choose a larger n or beta.")
    lam = arrival_rate(1 - n**-alpha)
    return PowerCase(n, d, lam, k_lambda_d(lam, d))
