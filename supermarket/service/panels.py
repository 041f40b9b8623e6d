"""Integrals of a survival function that is known by its values alone."""

import math
from collections.abc import Callable

import numpy as np

from supermarket.validation import ParameterError

_NODE, _WEIGHT = np.polynomial.legendre.leggauss(24)
_TINY = 1e-290  # below, float64 has fewer digits
_MOST_PANELS = 20_000


class Panels:
    """A survival function f, with panels that resolve it from 0 to the end of float64's range.

    The panels double in length from the first point where f is below 1, and are halved until 24
    Gauss nodes agree with 48. So the integral from any point on is accurate relatively, as far as f
    is. Beyond the last panel, f is a power or 0.

    Parameters
    ----------
    function : callable
        Maps an array of nonnegative float64 to the values of f.
    breaks : tuple of float
        Points where f or a derivative jumps.
    end : float
        Right end of the support.
    tail_index : float or None
        beta of a tail of order ``s**-beta``, or infinite; None to read it off the values.

    Attributes
    ----------
    tail_index : float
        The given one, or the one found.
    mean : float
        The integral of f.
    edges : ndarray of float64, shape (m,)
        Increasing ends of the panels, from 0 on.
    last, log_last : float
        A point far out in the tail, and the logarithm of f there.

    Raises
    ------
    ParameterError
        If f is not a survival function with f(0) = 1 and a finite mean.
    """

    def __init__(
        self,
        function: Callable[[np.ndarray], np.ndarray],
        breaks: tuple[float, ...],
        end: float,
        tail_index: float | None,
    ) -> None:
        self._function, self._end, self._gone = function, end, math.inf
        start = float(self._values(np.zeros(1))[0])
        if not abs(start - 1) <= 1e-9:
            raise ParameterError(
                f"survival(0) = {start:.12g}, and it has to be 1: a service takes a positive time."
            )
        edges = 2.0 ** np.arange(-1000, 1001)
        gone = edges[self._values(edges) < 1e-250]
        self._gone = gone[0] if gone.size else math.inf
        values = self._checked(edges)
        first = int(np.argmax(values < 1)) if np.any(values < 1) else edges.size - 1
        positive = np.flatnonzero(values > _TINY)
        self.last = float(edges[positive[-1]]) if positive.size else float(edges[0])
        self.log_last = math.log(values[positive[-1]]) if positive.size else 0.0
        self.tail_index = self._power(edges, values, positive, tail_index)
        if self.tail_index < math.inf:
            edges = edges[: positive[-1] + 1]
        elif np.any(values == 0):
            edges = edges[: int(np.argmax(values == 0)) + 1]
        edges = edges[max(first - 1, 0) :]
        cuts = np.array([0.0, *breaks, *([end] if end < math.inf else [])])
        edges = np.union1d(edges, cuts[cuts < edges[-1]])
        self._resolve(edges[edges <= end])

    def survival(self, s: np.ndarray) -> np.ndarray:
        """Return f(s), 0 from the end on, of the shape of `s`."""
        return np.where(s < self._end, np.clip(self._values(s), 0.0, 1.0), 0.0)

    def integral(self, s: np.ndarray) -> np.ndarray:
        """Return the integral of f from `s` to infinity."""
        i = np.clip(np.searchsorted(self.edges, s, side="right"), 1, self.edges.size - 1)
        right = self.edges[i]
        width = np.maximum(right - s, 0.0)
        inside = self._gauss(np.minimum(s, right), width)
        result = inside + self._suffix[i]
        if self.tail_index < math.inf:
            far = np.minimum(s, np.finfo(np.float64).max)
            far = far * self.survival(far) / (self.tail_index - 1)
            result = np.where(s > self.edges[-1], np.where(s < np.inf, far, 0.0), result)
        return result

    def moment(self, k: int) -> float:
        """Return the integral of ``k s**(k-1) f(s)``, infinite for k >= tail_index; 1 for k = 0."""
        if k == 0 or k >= self.tail_index:
            return 1.0 if k == 0 else math.inf
        low, width = self.edges[:-1, None], np.diff(self.edges)[:, None]
        s = low + width * (_NODE + 1) / 2
        with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
            if k <= 20:
                terms = width / 2 * _WEIGHT * self._nodes * s ** (k - 1)
            else:  # where powers and values leave float64, their products need not
                terms = width / 2 * _WEIGHT * np.exp(np.log(self._nodes) + (k - 1) * np.log(s))
            sums = np.sum(np.where(self._nodes > 0, terms, 0), axis=1)
        total = k * (math.fsum(sums) if k <= 20 else float(np.sum(sums)))
        if self.tail_index < math.inf:
            beyond = self.log_last + k * math.log(self.last)
            total += k * math.exp(beyond) / (self.tail_index - k)
        return total

    def _power(
        self, edges: np.ndarray, values: np.ndarray, positive: np.ndarray, given: float | None
    ) -> float:
        """Return the tail index: the tail is a power if two far spans have nearly one slope."""
        if given is not None or self._end < math.inf:
            return math.inf if given is None else given
        # 60 doublings after f has begun to fall, and f has not come to 0
        if np.count_nonzero(values[positive] < 1) < 60 and values[-1] == 0:
            return math.inf
        at = positive[-1] - np.array([40, 20, 0])
        before, beta = np.log2(values[at[:-1]] / values[at[1:]]) / 20
        if not abs(before - beta) < 1e-3 * max(beta, 1e-3):
            return math.inf
        if beta < 1.01:
            raise ParameterError(
                f"survival(s) falls like s**-{beta:.4g} near s = {edges[at[-1]]:.1g}, which gives "
                f"an infinite mean: choose one that falls faster, or give its tail_index > 1."
            )
        return float(f"{beta:.10g}")

    def _resolve(self, edges: np.ndarray) -> None:
        """Halve panels until their integrals settle; keep the integrals from each edge on."""
        done_edges, budget = [edges[-1:]], _MOST_PANELS
        low, width = edges[:-1], np.diff(edges)
        whole = self._gauss(low, width)
        while low.size:
            left = self._gauss(low, width / 2)
            right = self._gauss(low + width / 2, width / 2)
            budget -= low.size
            # f = exp(-x) comes with a relative error of x roundings
            digits = 2e-14 - 1e-15 * np.log(np.maximum(whole / width, 1e-300))
            settled = np.abs(left + right - whole) <= digits * whole
            settled |= (width < 1e-15 * low) | (budget < 0) | (whole < 1e-300)
            done_edges.append(low[settled])
            more = ~settled
            low = np.concatenate([low[more], low[more] + width[more] / 2])
            whole = np.concatenate([left[more], right[more]])
            width = np.tile(width[more] / 2, 2)
        self.edges = np.unique(np.concatenate(done_edges))
        low, width = self.edges[:-1], np.diff(self.edges)
        s = low[:, None] + width[:, None] * (_NODE + 1) / 2
        self._nodes = self._checked(s.ravel()).reshape(s.shape)
        work = width / 2 * (self._nodes @ _WEIGHT)
        beyond = 0.0
        if self.tail_index < math.inf:
            beyond = math.exp(self.log_last + math.log(self.last)) / (self.tail_index - 1)
        self._suffix = np.cumsum(np.append(work, beyond)[::-1])[::-1]
        self.mean = float(self._suffix[0])

    def _gauss(self, low: np.ndarray, width: np.ndarray) -> np.ndarray:
        s = low[..., None] + width[..., None] * (_NODE + 1) / 2
        return width / 2 * (self.survival(s) @ _WEIGHT)

    def _values(self, s: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            values = np.asarray(self._function(s), dtype=np.float64)
        # far out in a light tail, a formula may end in inf / inf or inf * 0
        return np.where(np.isnan(values) & (s > self._gone), 0.0, values)

    def _checked(self, s: np.ndarray) -> np.ndarray:
        """Return f at increasing points, after checking that it is a survival function there."""
        values = np.where(s < self._end, self._values(s), 0.0)
        wrong = np.flatnonzero(~((values >= -1e-12) & (values <= 1 + 1e-9)))
        if wrong.size:
            raise ParameterError(
                f"survival({s[wrong[0]]:.6g}) = {values[wrong[0]]:.12g}, and a probability lies in "
                f"[0, 1]: correct the function."
            )
        rise = np.diff(values) - 1e-10 * values[:-1]
        if np.any(rise > 1e-12):
            at = int(np.argmax(rise))
            raise ParameterError(
                f"survival rises from {values[at]:.6g} at s = {s[at]:.6g} to {values[at + 1]:.6g} "
                f"at s = {s[at + 1]:.6g}, and it must not increase: correct the function."
            )
        return np.clip(values, 0.0, 1.0)
