r"""The occupancy chain in leaps, for sizes that no exact chain reaches: an approximation.

Let x_i = n - s[i] be the number of queues shorter than i. Over a time h a leap adds

    (I - h/2 J)^{-1} (h f(x) + noise),

f the drift of the counts, J its Jacobian at x, both tridiagonal, and the noise the centred numbers
of arrivals and departures of each level at their rates at x: Poisson, or normal from a mean of
1000. This is the trapezoidal rule, linearised. Near saturation one combination of the levels
relaxes in about d**(k-1) mean service times, k the length of most queues, and all others in 1 / d:
h is long against these and short against that one. For a linear drift the stationary covariance is
that of the linear noise at any h: if J W + W J^T + N = 0, then

    (I - h/2 J) W (I - h/2 J)^T = (I + h/2 J) W (I + h/2 J)^T + h N.

What is left is the drift's curvature within a leap. Its mean is measured along the run, and
``extra["bias"]`` says by how much it shifts each level of the profile: 4e-6 of u_2 at n = 10**7
with 30 choices, 1e-3 at n = 10**4 with 20. Against the exact chain it accounts for the error to a
tenth.

Few queues are as long as the longest. A level with few queues, and few joining it per mean service
time, fewer than 1000 and than sqrt(n), is an infinite-server queue: each of its queues loses a job
at rate 1, and new ones come as a Poisson process, at the mean of the rates at both ends of the
leap. This has an exact solution over any h; the level below feels its mean over the leap.

A leap is halved, before any of its noise is drawn, until two things hold. The trapezoid and the
implicit Euler rule agree on the mean step to within 2 % of each count and 8 of its roots: far from
equilibrium the fast levels are then followed. And the variance of the noise bends the numbers that
join a level, n lam exp(-d x / n), by less than a quarter of the root of its count.

Nothing is ever clipped to keep the counts in order. Where they would leave it the run stops. This
takes some 10 standard deviations if 100 servers are idle on average and the counts are near the
fixed point; a start with hardly any idle server may not be followed.
"""

import math
from itertools import takewhile
from typing import NamedTuple

import numpy as np
from numpy.random import Generator, SeedSequence
from numpy.typing import ArrayLike, NDArray

from supermarket.kernels.compiled import kernel
from supermarket.kernels.draws import poisson
from supermarket.kernels.sampling import WITH, all_among
from supermarket.models.jsq import Supermarket, numbers_of, supermarket_of
from supermarket.policies.jsq import fixed_point_counts
from supermarket.runs.counts.engines import start_counts
from supermarket.runs.run import Run, name_of_seed
from supermarket.runs.schedule import Schedule, schedule_of, stack
from supermarket.validation import ParameterError, arrival_rate, integer, real, seed_of

__all__ = ["leap"]

_FEW = 1000.0
_ROOM = 64  # levels above the start's: pi(i) < 1e-19 within 64 levels, at any lam and d >= 2
_LEAST_IDLE = 100
_NANOSECONDS = 1e3


def leap(
    model: Supermarket,
    schedule: float | Schedule,
    *,
    seed: int | SeedSequence,
    step: float | None = None,
    start: str | ArrayLike = "fixed point",
) -> Run:
    """Simulate the supermarket model in leaps: approximately, at a cost that n does not change.

    Parameters
    ----------
    model : Supermarket
        n may be up to 4e18; n (1 - lam), the mean number of idle servers, has to be at least 100;
        d at least 2, with replacement; service exponential. What counts of lam is the difference of
        this double from 1, whose own rounding is 1e-16: at lam = 1 - 6e-11 it is 6e-11 to 6 digits.
    schedule : Schedule or float
        See `supermarket.Schedule`. A time is met exactly by a shorter leap.
    seed, start
        As in `supermarket.simulate`.
    step : float, optional
        Longest leap in mean service times; by default 1/50 of the relaxation time at the fixed
        point. Halve it to see what it changes. Levels that relax faster have the right law at each
        time and means, but no course in time that could be followed within a leap.

    Returns
    -------
    Run
        Averages over time are those of the states between leaps. ``extra["step"]`` is the longest
        leap, and ``extra["bias"]``, shape (levels,), the estimated error of the profile from the
        curvature of the drift within leaps.

    Raises
    ------
    ParameterError
        If a parameter is not allowed, the run would take longer than the schedule allows, or the
        counts would get out of order.

    Examples
    --------
    >>> from supermarket import Supermarket, leap
    >>> run = leap(Supermarket(10**17, 8_000_000, 1 - 6e-11), 8e8, seed=1)
    >>> run.max_queue
    {2: 1.0}
    """
    schedule, seed = schedule_of(schedule), seed_of(seed)
    model = supermarket_of(model)
    n, d, lam = integer("n", model.n, 1), integer("d", model.d, 2), arrival_rate(model.lam)
    if not (model.replacement and model.policy == "jsq" and model.is_exponential):
        raise ParameterError(
            f"{model} cannot be simulated in leaps, which know choices with replacement, the "
            "policy 'jsq' and exponential service: use supermarket.simulate."
        )
    if schedule.unit != "service":
        raise ParameterError("leaps know no steps: use unit='service'.")
    if n * (1 - lam) < _LEAST_IDLE:
        raise ParameterError(
            f"n (1 - lam) = {n * (1 - lam):.3g} idle servers are too few for a leap, "
            f"which needs {_LEAST_IDLE}: use supermarket.simulate, which is exact."
        )
    steep = _steepness(fixed_point_counts(n, d, lam, True), d, lam)
    step = _relaxation_time(steep) / 50 if step is None else real("step", step, 0.0, open_low=True)
    schedule.allow((schedule.horizon + schedule.lead) / step, _NANOSECONDS, "leaps")
    counts, named = start_counts(model, start)
    counts = np.append(counts[counts > 0], np.zeros(_ROOM + 1, dtype=np.int64))
    leaps = _Leaps(model, counts, step, np.random.default_rng(seed))
    tallies, path = schedule.follow(leaps)
    profiles, tops, ends = map(np.array, zip(*tallies, strict=True))
    lengths = np.diff(schedule.edges)[:, np.newaxis]
    profiles = profiles / (lengths * n) + leaps.about / n
    profiles[profiles < 1e-9 / n] = 0.0  # never there, but for rounding
    return Run(
        model=model,
        schedule=schedule,
        start=named,
        seed=name_of_seed(seed),
        engine="leaps",
        events=leaps.made,
        path=stack(path, leaps.counts),
        final=leaps.counts,
        batches={"profile": profiles, "maximum": tops / tops.sum(axis=1, keepdims=True)},
        ends=ends,
        extra={"step": step, "bias": _bias(leaps.curved / (schedule.horizon * n), steep)},
    )


class _Leaps:
    """The counts, and what is added up over leaps."""

    def __init__(
        self, model: Supermarket, counts: NDArray[np.int64], step: float, rng: Generator
    ) -> None:
        self.model, self.counts, self.step, self.rng = model, counts, step, rng
        # Of counts near n a sum over many leaps would lose what they lack: summed is what they are
        # off by, from what they are at the end of the warm-up.
        self.about, self.warming = counts.copy(), True
        self.curved, self.summed, self.at_top = np.zeros((3, len(counts)))
        self.made = 0

    def look(self) -> NDArray[np.int64]:
        """Return the counts."""
        return self.counts.copy()

    def settle(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
        """Return the integrals of profile and law of the maximum, and the counts; begin anew."""
        seen = self.summed, self.at_top, self.look()
        self.summed, self.at_top = np.zeros((2, len(self.counts)))
        if self.warming:
            self.about, self.warming = self.look(), False
            self.curved[:] = 0.0
        return seen

    def go(self, length: float, until: float) -> None:
        """Go on for this time."""
        room = Room(*np.zeros((9, len(self.counts))), np.zeros_like(self.counts))
        model = Model(*numbers_of(self.model))
        sums = Sums(self.about, self.summed, self.curved, self.at_top)
        done = _advance(self.rng, self.counts, model, length, self.step, sums, room)
        if done < 0:
            raise ParameterError(
                f"level {-done} got out of order in a leap of up to {self.step:.3g}: its counts "
                "are too few for leaps at these n, d, lam; use supermarket.simulate, or a smaller "
                "step."
            )
        self.made += done


def _steepness(counts: NDArray[np.int64], d: int, lam: float) -> NDArray[np.float64]:
    """Return lam d u_i**(d-1) for i = 1, 2, ..., where it is not negligible."""
    below = (lam * d * all_among(s, counts[0], d - 1, WITH) for s in counts[1:])
    return np.array(list(takewhile(lambda a: a > 2.0**-60, below)))


def _relaxation_time(steep: NDArray[np.float64]) -> float:
    """Return the inverse of the smallest eigenvalue of -J, a squared singular value.

    In units in which it is symmetric, -J = B B^T with B = I - (superdiagonal of the sqrt(steep));
    the inverse of B has positive entries only, so nothing cancels.
    """
    logs = np.append(0.0, np.cumsum(np.log(steep) / 2))
    inverse = np.triu(np.exp(np.minimum(logs - logs[:, np.newaxis], 300.0)))
    return float(np.linalg.norm(inverse, 2) ** 2)


def _bias(curved: NDArray[np.float64], steep: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the shift of the profile that balances the mean curvature q_i of lam (1 - u_i**d).

    The leaps hold lam (1 - u_i**d) + u_{i+1} - (1 - lam) - q_i / 2 at 0 on average, not without q.
    """
    shift = np.zeros(len(curved))
    for i, a in enumerate(steep, start=1):
        shift[i + 1] = a * shift[i] + curved[i] / 2
    return shift


class Model(NamedTuple):
    """The numbers of queues and choices, and the arrival rate."""

    n: int
    d: int
    lam: float


class Sums(NamedTuple):
    """What leaps add up.

    In `summed` the counts less `about` times the time, in `at_top` the time with each maximum, and
    in `curved` the curvature q_i (see `_bias`) in queues times the time.
    """

    about: NDArray[np.int64]
    summed: NDArray[np.float64]
    curved: NDArray[np.float64]
    at_top: NDArray[np.float64]


class Room(NamedTuple):
    """What a leap works with, level by level: zeros to begin with."""

    logs: NDArray[np.float64]
    grow: NDArray[np.float64]
    steep: NDArray[np.float64]
    rise: NDArray[np.float64]
    fall: NDArray[np.float64]
    free: NDArray[np.float64]
    mean: NDArray[np.float64]
    other: NDArray[np.float64]
    noisy: NDArray[np.float64]
    before: NDArray[np.int64]


@kernel(nogil=True)
def _advance(rng, s, model, length, step, sums, room):
    """Leap for `length` units of time, in place; return how often, or -level if it failed."""
    n, d, lam = model
    size = len(s)
    few = min(_FEW, math.sqrt(n))
    about, summed, curved, at_top = sums
    logs, grow, steep, rise, fall, free, mean, other, noisy, before = room
    now, leaps = 0.0, 0
    while now < length:
        # Levels 1..top leap; the few queues of the levels above are infinite-server queues.
        top = 0
        while top == 0 or (top < size - 3 and max(s[top + 1], lam * n * grow[top]) >= few):
            top += 1
            logs[top] = _log_share(s[top], n) * d
            grow[top] = math.exp(logs[top])
            steep[top] = lam * d * math.exp(logs[top] * ((d - 1) / d))
        for i in range(size):
            before[i] = s[i]
        h = min(step, length - now)
        _rates(s, top, model, room)
        joining = lam * n * grow[top]
        surplus = 0.0
        while True:
            stay = -math.expm1(-h) / h
            free[top] += surplus
            surplus = (joining - s[top + 1]) * (1.0 - stay)  # mean of the level above, less s
            free[top] -= surplus
            for i in range(1, top + 1):
                mean[i] = other[i] = h * free[i]
            _solve(mean, steep, top, h / 2.0, stay, noisy)
            _solve(other, steep, top, h, stay, noisy)
            if _short_enough(s, top, h, model, room):
                break
            h /= 2.0
        fall[top] = max(fall[top] - surplus, 0.0)
        for i in range(1, top + 1):
            noisy[i] = h * free[i] + _centred(rng, h * fall[i]) - _centred(rng, h * rise[i])
        _solve(noisy, steep, top, h / 2.0, stay, other)
        for i in range(1, top + 1):
            s[i] -= math.floor(noisy[i] + rng.random())
            moved = float(before[i] - s[i])
            bent = lam * n * _drop(grow[i], d * _log_ratio(s[i], before[i], n))
            curved[i] += h * (bent - steep[i] * moved) * (stay if i == top else 1.0)
        rate = (joining + lam * n * math.exp(d * _log_share(max(s[top], 1), n))) / 2.0
        _few(rng, s, before, top, h, stay, rate, model)
        now += h
        leaps += 1
        highest = 0
        for i in range(1, size):
            if s[i] > s[i - 1] or s[i] < 0:
                return -i
            summed[i] += h * (((before[i] - about[i]) + (s[i] - about[i])) / 2.0)
            if s[i] > 0:
                highest = i
        at_top[highest] += h
    return leaps


@kernel(nogil=True)
def _log_share(s, n):
    """Return log(s / n), precise near both ends."""
    if s > n / 2:
        return math.log1p(-(n - s) / n)
    return math.log(s / n) if s > 0 else -1e290


@kernel(nogil=True)
def _log_ratio(s, before, n):
    """Return log(s / before)."""
    if before <= 0 or s <= 0:
        return _log_share(s, n) - _log_share(before, n)
    return math.log1p((s - before) / before)


@kernel(nogil=True)
def _drop(value, log_factor):
    """Return value - value * exp(log_factor), precise for small factors, finite for large ones."""
    if abs(log_factor) < 1.0 or value == 0.0:
        return value * -math.expm1(min(log_factor, 1.0))
    return value - math.exp(min(math.log(value) + log_factor, 0.0))


@kernel(nogil=True)
def _rates(s, top, model, room):
    """Compute the rates at which counts 1..top rise and fall, and `free`, falls less rises.

    Rises and falls nearly balance. Where both nearly are n, they are compared by what they lack.
    """
    n, lam = model.n, model.lam
    logs, rise, fall, free = room.logs, room.rise, room.fall, room.free
    for i in range(1, top + 1):
        above = math.exp(logs[i - 1])
        rise[i] = lam * n * above * -math.expm1(logs[i] - logs[i - 1])
        fall[i] = float(s[i] - s[i + 1])
        if s[i] > n / 2 and s[i + 1] < n / 2:
            lack = (n - s[i]) + s[i + 1]  # of the falls
            free[i] = n * (1.0 - lam) - lack
            free[i] += lam * n * (math.exp(logs[i]) - math.expm1(logs[i - 1]))
        else:
            free[i] = fall[i] - rise[i]


@kernel(nogil=True)
def _short_enough(s, top, h, model, room):
    """Tell whether a leap of length h does justice to the drift and its curvature."""
    n, d, lam = model
    steep, mean, other = room.steep, room.mean, room.other
    for i in range(1, top + 1):
        count = float(min(s[i], n - s[i]))
        if abs(mean[i] - other[i]) > 0.02 * count + 8.0 * math.sqrt(count + 1.0):
            return False
        # The noise of this level, up to when the drift stops it, bends what joins the next.
        lasting = h if steep[i] < 1.0 else min(h, 1.0 / steep[i])
        bend = min((d / n) ** 2 * (room.rise[i] + room.fall[i]) * lasting / 2.0, 300.0)
        joining = lam * n * room.grow[i] * min(h, 1.0 / (1.0 + steep[i]))
        if joining * math.expm1(bend) > 0.25 * math.sqrt(s[i + 1] + 1.0):
            return False
    return True


@kernel(nogil=True)
def _solve(x, steep, top, h, stay, work):
    """Solve (I - h J) y = x in place, for the numbers of shorter queues; J is tridiagonal."""
    pivot = 1.0
    for i in range(1, top + 1):
        pivot_i = 1.0 + h * (1.0 + steep[i] * (stay if i == top else 1.0))
        if i > 1:
            factor = h * steep[i - 1] / pivot
            pivot_i -= h * factor
            x[i] += factor * x[i - 1]
        work[i] = pivot = pivot_i
    for i in range(top, 0, -1):
        if i < top:
            x[i] += h * x[i + 1]
        x[i] /= work[i]


@kernel(nogil=True)
def _centred(rng, mean):
    """Draw a Poisson variable less its mean, as a normal one where the mean is large."""
    if mean > 1000.0:
        return math.sqrt(mean) * rng.standard_normal()
    return poisson(rng, mean) - mean if mean > 0.0 else 0.0


@kernel(nogil=True)
def _few(rng, s, before, top, h, stay, rate, model):
    """Renew the levels above `top`: each of their queues loses Poisson(h) jobs, new ones join.

    The levels end up as sums of numbers of queues of each length, so they stay in order.
    """
    highest = top
    while highest < len(s) - 2 and before[highest + 1] > 0:
        highest += 1
    for i in range(top + 1, highest + 1):
        s[i] = 0
    for length in range(highest, top, -1):
        for _ in range(before[length] - before[length + 1]):
            # The number of jobs lost, by inversion.
            uniform, lost, chance = rng.random(), 0, math.exp(-h)
            while uniform > chance and lost < length - top:
                uniform -= chance
                lost += 1
                chance *= h / lost
            for i in range(top + 1, length - lost + 1):
                s[i] += 1
    new = poisson(rng, rate * h * stay) if rate > 0.0 else 0
    s[top + 1] += new
    mean = rate + (before[top + 1] - rate) * stay
    n, d, lam = model
    second = lam * n * (mean / n) ** d
    if second > 0.0:
        s[top + 2] = min(s[top + 2] + poisson(rng, second * h * stay), s[top + 1])
