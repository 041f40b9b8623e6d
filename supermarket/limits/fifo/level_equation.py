r"""The scalar equation of one level of the FIFO cavity, in logarithms, whatever the service law.

With :math:`R(a)` the integral of the service law's survival function beyond a, and a trial value
of :math:`P_{k+1}`, which fixes :math:`\lambda_k` and :math:`g_k(0)` (see `cavity`),

.. math:: P_{k+1} = \lambda P_{k+1}^d + \lambda_k \int_0^\infty g_k(a) R(a) \, da.

A form of the service law (exponentials, phases, panels) is a pair of compiled functions with the
arrays they share: ``serve(state, log_rate, log_start)`` returns the logarithm of the integral for
:math:`\lambda_k = e^{log\_rate}` and :math:`g_k(0) = e^{log\_start}`; and
``accept(state, log_rate)`` makes the last trial the level from which the next one starts, and
tells whether the arrays are still fine enough for it.
"""

from collections.abc import Callable

import numpy as np

from supermarket.kernels.compiled import kernel

_ROUNDING = 2.0**-52


def first_levels(d: int, lam: float, levels: int) -> tuple[np.ndarray, np.ndarray]:
    """Return ``log_tail`` and ``log_rates`` with what every law has: P_0 = 1 and P_1 = lam."""
    log_tail, log_rates = np.zeros(levels + 1), np.zeros(levels)
    log_tail[1], log_rates[0] = np.log(lam), np.log(lam * (1 - lam**d) / (1 - lam))
    return log_tail, log_rates


def climber(serve: Callable, accept: Callable) -> Callable:
    """Return the kernel ``climb`` for a form of the service law: a pair of compiled functions.

    It is made when the module of the form is imported, so that its machine code can be kept: code
    that takes a function as an argument cannot.
    """

    @kernel
    def log_image(after: float, args: tuple) -> float:
        """Return the logarithm of the right-hand side of the equation for P_{k+1}."""
        here, fresh, log_lam, d, state = args
        rate = log_lam + (d - 1) * here + np.log(geometric(np.exp(after - here), d))
        # The difference that the equation is solved with: any other value of p_k, even a more
        # accurate one, would no longer balance it, and the imbalance would grow with the level.
        start = np.logaddexp(rate + log_difference(here, after), fresh)
        return np.logaddexp(log_lam + d * after, rate + serve(state, rate, start))

    solve = solver(log_image)

    @kernel
    def climb(
        log_tail: np.ndarray,
        log_rates: np.ndarray,
        k: int,
        d: int,
        log_lam: float,
        state: tuple,
        least_rate: float,
        least_tail: float,
    ) -> int:
        """Fill `log_tail` and `log_rates` from level k on; return the level reached.

        It stops early where the arrival rate may fall below `least_rate` or the tail is below
        `least_tail` (both logarithms), or where `accept` says that the arrays are too coarse.
        """
        while k < log_tail.size - 1:
            here = log_tail[k]
            least = log_lam + (d - 1) * here
            if least < least_rate or here < least_tail or too_deep(here, d):
                break
            fresh = log_rates[0] + log_difference(0.0, log_tail[1]) if k == 1 else -np.inf
            ratio = here - log_tail[k - 1]
            if ratio > -0.7:  # the ratios settle: go on along their line
                change = ratio - log_tail[k - 1] + log_tail[k - 2] if k > 2 else 0.0
                start, bottom = here + min(ratio + change, 0.5 * ratio), -np.inf
            else:
                start = bottom = least + serve(state, least, fresh)
            after = solve(start, bottom, here, 1.0, (here, fresh, log_lam, d, state))
            log_rates[k] = least + np.log(geometric(np.exp(after - here), d))
            k += 1
            log_tail[k] = after
            if not accept(state, log_rates[k - 1]):
                break
        return k

    return climb


def solver(image: Callable) -> Callable:
    """Return a kernel ``solve(x, low, high, scale, args)`` for the equation image(x, args) = x.

    It returns the root between `low` and `high`, to a few roundings: first a step to the image,
    then secants, and a bisection where a secant leaves the bracket or is slow. The tolerance is
    relative to ``max(|x|, scale)``. The last call of `image` is at the root returned.
    """

    @kernel
    def solve(x: float, low: float, high: float, scale: float, args: tuple) -> float:
        before, gap_before = x, 0.0
        for turn in range(200):
            value = image(x, args)
            gap = value - x
            if abs(gap) <= 4 * _ROUNDING * max(abs(x), scale):
                break
            if gap > 0:
                low = x
            else:
                high = x
            new = value
            if turn > 0:
                new = low if gap == gap_before else x - gap * (x - before) / (gap - gap_before)
            if turn % 16 == 15 or not low < new < high:
                new = 0.5 * (low + high) if low > -np.inf else x - 2 * (high - x) - scale
            if abs(new - x) <= _ROUNDING * max(abs(x), scale):
                break
            before, gap_before, x = x, gap, new
        return x

    return solve


@kernel
def too_deep(log_tail: float, d: int) -> bool:
    """Tell whether the next logarithm, near ``d * log_tail``, may leave float64's range."""
    return d * log_tail < -1e307


@kernel
def geometric(ratio: float, d: int) -> float:
    """Return ``1 + ratio + ... + ratio**(d-1)``."""
    if d > 1000:
        if ratio < 0.5:
            return 1.0 / (1.0 - ratio)  # what is left out is below 1e-300 of it
        below = ratio - 1.0
        return np.expm1(d * np.log1p(below)) / below if below != 0.0 else float(d)
    total = 1.0
    for _ in range(d - 1):
        total = total * ratio + 1.0
    return total


@kernel
def log_difference(above: float, below: float) -> float:
    """Return the logarithm of ``exp(above) - exp(below)``."""
    return above + np.log(-np.expm1(min(below - above, -_ROUNDING)))
