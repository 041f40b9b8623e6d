"""How many choices are enough: questions to the FIFO cavity equilibrium, at any depth.

A doubly exponential tail is soon below everything that float64 holds, and a power law never: these
functions find out how many levels an answer takes.
"""

import math

from supermarket.service import ServiceLaw
from supermarket.theory.cavity import CavityEquilibrium, cavity
from supermarket.validation import ParameterError, integer, real

_MOST = 2**17  # levels
_LEAST = 1e-100


def deepest(service: ServiceLaw, d: int, lam: float, levels: int) -> CavityEquilibrium:
    """Compute the FIFO cavity equilibrium as far down as float64 goes.

    Parameters
    ----------
    service : ServiceLaw
        The service law.
    d : int
        Choices, at least 1.
    lam : float
        Arrivals per server and unit of time.
    levels : int
        Last level, at least 1, if the tail at the levels before it is not too small for float64.

    Returns
    -------
    CavityEquilibrium
        With fewer levels where the next tail probability is below some 1e-100.

    Raises
    ------
    ParameterError
        If a parameter is out of range.
    """
    levels = integer("levels", levels, 1)
    # The logarithms of a mixture of exponentials go on for ever, at ever greater cost.
    mixture = isinstance(service, ServiceLaw) and service.is_mixture
    arithmetic = "linear" if mixture else "auto"
    enough = cavity(service, d, lam, 1, arithmetic=arithmetic)
    doubled = True
    while enough.levels < levels and enough.tail[-1] > _LEAST:
        # Step by step at first: a doubly exponential tail leaves float64 within a level or two.
        step = enough.levels * 2 if doubled and enough.levels >= 12 else enough.levels + 1
        try:
            enough = cavity(service, d, lam, min(step, levels), arithmetic=arithmetic)
        except ParameterError:
            if not mixture or step == enough.levels + 1:  # panels and phases take long to refuse
                break
            doubled = False
    return enough


def share_with(service: ServiceLaw, d: int, lam: float, jobs: int) -> float:
    """Return the share of queues with at least so many jobs; 0 where it is below some 1e-100.

    Parameters
    ----------
    service, d, lam
        As in `deepest`.
    jobs : int
        At least 1.

    Examples
    --------
    >>> from supermarket import Exponential
    >>> from supermarket.theory.choices import share_with
    >>> round(share_with(Exponential(), 2, 0.7, 3), 6)
    0.082354
    """
    jobs = integer("jobs", jobs, 1)
    equilibrium = deepest(service, d, lam, jobs)
    return float(equilibrium.tail[jobs]) if equilibrium.levels == jobs else 0.0


def mean_sojourn_fifo(service: ServiceLaw, d: int, lam: float) -> float:
    """Return the mean time of a job in the system; infinite where the theory says so.

    For d = 1 it is the formula of Pollaczek and Khinchine.

    Parameters
    ----------
    service, d, lam
        As in `deepest`.

    Returns
    -------
    float
        In the unit of time of `lam`; NaN if the sum over 16384 levels has not settled to 1e-4.

    Examples
    --------
    >>> from supermarket import Lomax
    >>> from supermarket.theory.choices import mean_sojourn_fifo
    >>> [round(mean_sojourn_fifo(Lomax(2.5), d, 0.9), 3) for d in (2, 3, 5)]
    [3.684, 2.57, 1.915]
    """
    if d == 1:
        load = deepest(service, d, lam, 1).tail[1]  # checked on the way
        return service.mean * float(1 + load * (1 + service.scv) / (2 * (1 - load)))
    for levels in (64, 1024, 16384):
        equilibrium = deepest(service, d, lam, levels)
        try:
            return float(equilibrium.mean_sojourn)
        except ParameterError:  # more levels are needed
            continue
    return math.nan


def cavity_down_to(service: ServiceLaw, d: int, lam: float, tail: float) -> CavityEquilibrium:
    """Compute the FIFO cavity equilibrium down to a given share of queues.

    Parameters
    ----------
    service, d, lam
        As in `deepest`.
    tail : float
        The last level has P_k below this, in (1e-100, 1).

    Returns
    -------
    CavityEquilibrium

    Raises
    ------
    ParameterError
        If a parameter is out of range, or it would take more than 2**17 levels.

    Examples
    --------
    >>> from supermarket import Exponential
    >>> from supermarket.theory.choices import cavity_down_to
    >>> cavity_down_to(Exponential(), 2, 0.9, 1e-9).levels
    12
    """
    tail = real("tail", tail, 1e-100, 1.0, open_low=True, open_high=True)
    levels = 16
    while True:
        found = deepest(service, d, lam, levels)
        if found.tail[-1] < tail or found.levels < levels:
            return found
        # As a power law would go on; every other tail falls faster.
        fallen = found.log_tail[levels // 2] - found.log_tail[-1]
        needed = levels * 2 ** ((found.log_tail[-1] - math.log(tail)) / fallen)
        if levels >= 256 and needed > _MOST:
            raise ParameterError(
                f"with {service!r}, d = {d} and lam = {lam:.6g} a share of {found.tail[-1]:.2g} of "
                f"the queues has {levels} jobs or more, and more than {_MOST} levels are needed "
                f"to come below tail = {tail:.2g}: choose a larger tail, or a law with a lighter "
                f"one."
            )
        levels *= 4
