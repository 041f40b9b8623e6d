"""Checks of what a person typed: one sentence says what was given, what is allowed, what to do."""

import math
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from numbers import Integral, Real

import numpy as np

# A uniform double has 53 bits: beyond, a queue picked as int(uniform * n) would miss some queues.
EXACT_MAX = 2**53
# Counts are int64; this leaves room for sums of two of them.
MOST_QUEUES = 4 * 10**18
MOST_LEVELS = 10**5

Check = Callable[[str, object], object]  # (name, value) -> the value, cleaned


class ParameterError(ValueError):
    """A parameter outside what is allowed. In a notebook it shows as one sentence, no traceback.

    Examples
    --------
    >>> from supermarket import ParameterError, k_lambda_d
    >>> try:
    ...     k_lambda_d(1.5, 2)
    ... except ParameterError as error:
    ...     print(error)
    lam = 1.5 is out of range: choose 0 < lam < 1.
    """

    def _render_traceback_(self) -> list[str]:
        return [f"{type(self).__name__}: {self}"]


def integer(name: str, value: object, low: int | None = None, high: int | None = None) -> int:
    """Return `value` as an int in [low, high].

    Raises
    ------
    ParameterError
        If it is not a whole number (strings, booleans and 1e6-like floats are refused), or is out
        of range.

    Examples
    --------
    >>> from supermarket.validation import integer
    >>> integer("n", 10, 1)
    10
    >>> integer("n", 0, 1)
    Traceback (most recent call last):
        ...
    supermarket.validation.ParameterError: n = 0 is out of range: choose 1 <= n.
    """
    if isinstance(value, str):
        raise ParameterError(
            f"{name} = {_said(value)} is text, and a whole number is needed: "
            f"write it with digits alone, such as {name} = {_as_digits(value)}."
        )
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral):
        hint = f", such as {name} = {int(value)}" if _is_whole(value) else ""
        raise ParameterError(
            f"{name} = {_said(value)} is not a whole number: write it with digits alone{hint}."
        )
    value = int(value)
    if (low is not None and value < low) or (high is not None and value > high):
        raise ParameterError(f"{name} = {value} is out of range: {_allowed(name, low, high)}.")
    return value


def real(
    name: str,
    value: object,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    open_low: bool = False,
    open_high: bool = False,
) -> float:
    """Return `value` as a finite float between `low` and `high`, each end allowed unless open.

    Raises
    ------
    ParameterError
        If it is not a finite number, or is out of range.

    Examples
    --------
    >>> from supermarket.validation import real
    >>> real("horizon", 500, 0.0, open_low=True)
    500.0
    >>> real("horizon", 0, 0.0, open_low=True)
    Traceback (most recent call last):
        ...
    supermarket.validation.ParameterError: horizon = 0 is out of range: choose 0 < horizon.
    """
    if isinstance(value, str):
        raise ParameterError(
            f"{name} = {_said(value)} is text, and a number is needed: "
            f"write {name} = {_as_digits(value)} without quotes and with a decimal point."
        )
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise ParameterError(f"{name} = {_said(value)} is not a number: give a decimal number.")
    try:
        value = float(value)
    except OverflowError:
        value = math.inf if value > 0 else -math.inf
    if not math.isfinite(value):
        raise ParameterError(f"{name} = {value} is not finite: give a decimal number.")
    if value < low or value > high or (open_low and value == low) or (open_high and value == high):
        allowed = _allowed(name, low, high, open_low, open_high)
        raise ParameterError(f"{name} = {value:.16g} is out of range: {allowed}.")
    return value


def arrival_rate(lam: object, name: str = "lam") -> float:
    """Return the arrival rate per server, a float in (0, 1): a queue is stable only below 1.

    Examples
    --------
    >>> from supermarket.validation import arrival_rate
    >>> arrival_rate(0.9)
    0.9
    """
    return real(name, lam, 0.0, 1.0, open_low=True, open_high=True)


def choice(name: str, value: object, allowed: Iterable[object]) -> object:
    """Return `value` if it is one of `allowed`.

    Raises
    ------
    ParameterError
        If it is not; the sentence lists what is allowed and, for a misspelt word, the nearest.

    Examples
    --------
    >>> from supermarket.validation import choice
    >>> choice("unit", "steps", ("service", "steps"))
    'steps'
    """
    allowed = list(allowed)
    if any(type(value) is type(option) and value == option for option in allowed):
        return value
    raise ParameterError(
        f"{name} = {_said(value)} is not known: use {', '.join(map(repr, allowed))}"
        f"{nearest(value, allowed)}."
    )


def whole(low: int | None = None, high: int | None = None) -> Check:
    """Return the check of a whole number in [low, high].

    Examples
    --------
    >>> from supermarket.validation import whole
    >>> whole(1)("n", 10)
    10
    >>> whole(1)("n", 0)
    Traceback (most recent call last):
        ...
    supermarket.validation.ParameterError: n = 0 is out of range: choose 1 <= n.
    """
    return lambda name, value: integer(name, value, low, high)


def number(low: float, high: float, *, open_low: bool = False, open_high: bool = False) -> Check:
    """Return the check of a finite number between `low` and `high`.

    Examples
    --------
    >>> from supermarket.validation import number
    >>> number(0, 1)("share", 0.25)
    0.25
    """
    return lambda name, value: real(name, value, low, high, open_low=open_low, open_high=open_high)


def positive(name: str, value: object) -> float:
    """Return `value` as a finite float above 0.

    Examples
    --------
    >>> from supermarket.validation import positive
    >>> positive("horizon", 500)
    500.0
    """
    return real(name, value, 0.0, open_low=True)


def rate(name: str, value: object) -> float:
    """Return `value` as an arrival rate per server, in (0, 1).

    Examples
    --------
    >>> from supermarket.validation import rate
    >>> rate("lam", 0.9)
    0.9
    """
    return arrival_rate(value, name)


def one_of(*allowed: object) -> Check:
    """Return the check that a value is one of `allowed`.

    Examples
    --------
    >>> from supermarket.validation import one_of
    >>> one_of("jlmu", "threshold")("policy", "jlmu")
    'jlmu'
    """
    return lambda name, value: choice(name, value, allowed)


def list_of(check: Check) -> Check:
    """Return the check of a non-empty list without repetitions, each entry passed to `check`.

    A single number stands for the list of it alone.

    Examples
    --------
    >>> from supermarket.validation import list_of, whole
    >>> list_of(whole(1))("d", [1, 2, 5])
    [1, 2, 5]
    >>> list_of(whole(1))("d", 2)
    [2]
    """

    def checked(name: str, value: object) -> list:
        if isinstance(value, Real):
            return [check(name, value)]
        if isinstance(value, str) or not isinstance(value, Iterable):
            raise ParameterError(
                f"{name} = {_said(value)} is not a list: write it as [{_said(value, str)}]."
            )
        entries = [check(f"{name}[{index}]", entry) for index, entry in enumerate(value)]
        if not entries or len(set(entries)) < len(entries):
            raise ParameterError(
                f"{name} = {_said(value)} needs at least one entry, each one once."
            )
        return entries

    return checked


def pair_of(check: Check) -> Check:
    """Return the check of two entries, each passed to `check`.

    Examples
    --------
    >>> from supermarket.validation import pair_of, rate
    >>> pair_of(rate)("lam", [0.5, 0.7])
    (0.5, 0.7)
    """

    def checked(name: str, value: object) -> tuple:
        if isinstance(value, str) or not isinstance(value, Iterable) or len(list(value)) != 2:
            raise ParameterError(f"{name} = {_said(value)} is not a pair: write it as [0.5, 0.25].")
        return tuple(check(f"{name}[{index}]", entry) for index, entry in enumerate(value))

    return checked


def nearest(value: object, allowed: Iterable[object]) -> str:
    """Return ' (did you mean X?)' for a misspelt word, or nothing.

    Examples
    --------
    >>> from supermarket.validation import nearest
    >>> nearest("hozizon", ["horizon", "seed"])
    ' (did you mean horizon?)'
    """
    close = get_close_matches(str(value), [str(option) for option in allowed], n=1)
    return f" (did you mean {close[0]}?)" if close else ""


def _said(value: object, form: Callable[[object], str] = repr) -> str:
    """Return a value on one line, cut where it is long."""
    text = " ".join(form(value).split())
    return text if len(text) <= 80 else text[:77] + "..."


def _allowed(
    name: str,
    low: float | None,
    high: float | None,
    open_low: bool = False,
    open_high: bool = False,
) -> str:
    below = "" if low in (None, -math.inf) else f"{low:.16g} {'<' if open_low else '<='} "
    above = "" if high in (None, math.inf) else f" {'<' if open_high else '<='} {high:.16g}"
    return f"choose {below}{name}{above}"


def _as_digits(text: str) -> str:
    try:
        number = float(text)
    except ValueError:
        return "10"
    if not math.isfinite(number):
        return "10"
    return str(int(number)) if number.is_integer() else repr(number)


def _is_whole(value: object) -> bool:
    return isinstance(value, Real) and math.isfinite(value) and float(value).is_integer()


def increasing_times(times: object) -> np.ndarray:
    """Return times as an array of float64 that increases, from 0 on or later.

    Raises
    ------
    ParameterError
        If they are not such.
    """
    try:
        times = np.atleast_1d(np.asarray(times, dtype=np.float64))
    except (TypeError, ValueError):
        raise ParameterError("times must be a list of numbers.") from None
    if times.ndim != 1 or not np.all(np.isfinite(times)) or np.any(np.diff(times) <= 0):
        raise ParameterError("times must be an increasing list of finite numbers.")
    if len(times) == 0 or times[0] < 0:
        raise ParameterError("times must hold at least one time, none below 0.")
    return times


def profile_of(name: str, given: object) -> np.ndarray:
    """Return shares u[0] = 1 >= u[1] >= ... >= 0 as an array of float64.

    Raises
    ------
    ParameterError
        If they are not such, or are too many.
    """
    try:
        u = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(f"{name} must be a profile: a list of numbers, 1 first.") from None
    if u.size > MOST_LEVELS:
        raise ParameterError(f"{name} has {u.size} levels: at most {MOST_LEVELS} are allowed.")
    if u.ndim != 1 or len(u) == 0 or u[0] != 1 or not np.all(np.diff(u) <= 0) or u[-1] < 0:
        raise ParameterError(
            f"{name} must be a profile: 1 first, no share above the one before it, none below 0."
        )
    return u
