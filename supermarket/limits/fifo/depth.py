"""How many choices are enough: questions to the FIFO cavity equilibrium, at any depth.

A doubly exponential tail is soon below everything that float64 holds, and a power law never: these
functions find out how many levels an answer takes.
"""

import math

from supermarket.limits.fifo.cavity import CavityEquilibrium, cavity
from supermarket.models.jsq import Supermarket, supermarket_of
from supermarket.validation import ParameterError, integer, real

__all__ = ["cavity_down_to", "deepest", "mean_sojourn_fifo", "share_with"]

_MOST = 2**17  # levels
_LEAST = 1e-100


def deepest(model: Supermarket, levels: int) -> CavityEquilibrium:
    """Compute the FIFO cavity equilibrium as far down as float64 goes.

    Parameters
    ----------
    model : Supermarket
        Its n does not matter.
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

    Examples
    --------
    >>> from supermarket import Lomax, Supermarket, deepest
    >>> shop = Supermarket(1000, 2, 0.7, service=Lomax(2.5))
    >>> float(deepest(shop, 8).tail[8].round(7))
    6.26e-05
    """
    levels = integer("levels", levels, 1, 10**6)
    # The logarithms of a mixture of exponentials go on for ever, at ever greater cost.
    mixture = supermarket_of(model).service.is_mixture
    arithmetic = "linear" if mixture else "auto"
    enough = cavity(model, 1, arithmetic=arithmetic)
    doubled = True
    while enough.levels < levels and enough.tail[-1] > _LEAST:
        # Step by step at first: a doubly exponential tail leaves float64 within a level or two.
        step = enough.levels * 2 if doubled and enough.levels >= 12 else enough.levels + 1
        try:
            enough = cavity(model, min(step, levels), arithmetic=arithmetic)
        except ParameterError:
            if not mixture or step == enough.levels + 1:  # panels and phases take long to refuse
                break
            doubled = False
    return enough


def share_with(model: Supermarket, jobs: int) -> float:
    """Return the share of queues with at least so many jobs; 0 where it is below some 1e-100.

    Parameters
    ----------
    model : Supermarket
        Its n does not matter.
    jobs : int
        At least 1.

    Examples
    --------
    >>> from supermarket import Exponential, Supermarket
    >>> from supermarket.limits.fifo.depth import share_with
    >>> round(share_with(Supermarket(1000, 2, 0.7), 3), 6)
    0.082354
    """
    jobs = integer("jobs", jobs, 1, 10**6)
    equilibrium = deepest(model, jobs)
    return float(equilibrium.tail[jobs]) if equilibrium.levels == jobs else 0.0


def mean_sojourn_fifo(model: Supermarket) -> float:
    """Return the mean time of a job in the system; infinite where the theory says so.

    For d = 1, first in first out, it is the formula of Pollaczek and Khinchine.

    Parameters
    ----------
    model : Supermarket
        Its n does not matter.

    Returns
    -------
    float
        In the unit of time of `lam`; NaN if the sum over 16384 levels has not settled to 1e-4.

    Examples
    --------
    >>> from supermarket import Lomax, Supermarket
    >>> from supermarket.limits.fifo.depth import mean_sojourn_fifo
    >>> shops = [Supermarket(1000, d, 0.9, service=Lomax(2.5)) for d in (2, 3, 5)]
    >>> [round(mean_sojourn_fifo(shop), 3) for shop in shops]
    [3.684, 2.57, 1.915]
    """
    d, service = supermarket_of(model).d, model.service
    if d == 1:
        load = deepest(model, 1).tail[1]  # checked on the way
        scv = service.scv if model.discipline == "fifo" else 1.0  # the others are insensitive
        return service.mean * float(1 + load * (1 + scv) / (2 * (1 - load)))
    for levels in (64, 1024, 16384):
        equilibrium = deepest(model, levels)
        try:
            return float(equilibrium.mean_sojourn)
        except ParameterError:  # more levels are needed
            continue
    return math.nan


def cavity_down_to(model: Supermarket, tail: float) -> CavityEquilibrium:
    """Compute the FIFO cavity equilibrium down to a given share of queues.

    Parameters
    ----------
    model : Supermarket
        Its n does not matter.
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
    >>> from supermarket import Exponential, Supermarket
    >>> from supermarket.limits.fifo.depth import cavity_down_to
    >>> cavity_down_to(Supermarket(1000, 2, 0.9), 1e-9).levels
    12
    """
    d, lam, service = supermarket_of(model).d, model.lam, model.service
    tail = real("tail", tail, 1e-100, 1.0, open_low=True, open_high=True)
    levels = 16
    while True:
        found = deepest(model, levels)
        if found.tail[-1] < tail or found.levels < levels:
            return found
        # As a power law would go on; every other tail falls faster.
        fallen = found.log_tail[levels // 2] - found.log_tail[-1]
        doublings = (found.log_tail[-1] - math.log(tail)) / max(fallen, 1e-300)
        if levels >= 256 and doublings > math.log2(_MOST / levels):
            raise ParameterError(
                f"with {service!r}, d = {d} and lam = {lam:.6g} a share of {found.tail[-1]:.2g} of "
                f"the queues has {levels} jobs or more, and more than {_MOST} levels are needed "
                f"to come below tail = {tail:.2g}: choose a larger tail, or a law with a lighter "
                f"one."
            )
        levels *= 4
