"""Checks of what a person typed: one sentence says what was given, what is allowed, what to do."""

import math
import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from numbers import Integral, Real

import numpy as np

__all__ = ["ParameterError"]

# A uniform double has 53 bits: beyond, a queue picked as int(uniform * n) would miss some queues.
EXACT_MAX = 2**53
# Counts are int64; this leaves room for sums of two of them.
MOST_QUEUES = 4 * 10**18
MOST_LEVELS = 10**5


class ParameterError(ValueError):
    """A parameter outside what is allowed. In a notebook it shows as one sentence, no traceback.

    Examples
    --------
    >>> from supermarket import ParameterError, Supermarket, k_lambda_d
    >>> try:
    ...     k_lambda_d(Supermarket(1000, 2, 1.5))
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
        meant = _meant(value.replace(",", ""))
        fits = meant.is_integer() and not _outside(meant, low, high)
        hint = f", such as {name} = {int(meant)}" if fits else ""
        raise ParameterError(
            f"{name} = {said(value)} is text, and a whole number is needed: write it with digits "
            f"alone{hint}."
        )
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral):
        hint = f", such as {name} = {int(value)}" if _is_whole(value) else ""
        raise ParameterError(
            f"{name} = {said(value)} is not a whole number: write it with digits alone{hint}."
        )
    value = int(value)
    if _outside(value, low, high):
        raise ParameterError(f"{name} = {value} is out of range: choose {bounds(name, low, high)}.")
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
    ends = {"open_low": open_low, "open_high": open_high}
    allowed = bounds(name, low, high, **ends)
    if isinstance(value, str):
        meant = _meant(value)
        if _outside(meant, low, high, **ends):
            hint = f"give a decimal number{f' with {allowed}' if allowed != name else ''}"
        else:
            digits = int(meant) if meant.is_integer() else meant
            hint = f"write {name} = {digits} without quotes and with a decimal point"
        raise ParameterError(f"{name} = {said(value)} is text, and a number is needed: {hint}.")
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise ParameterError(f"{name} = {said(value)} is not a number: give a decimal number.")
    try:
        value = float(value)
    except OverflowError:
        value = math.inf if value > 0 else -math.inf
    if not math.isfinite(value):
        raise ParameterError(f"{name} = {value} is not finite: give a decimal number.")
    if _outside(value, low, high, **ends):
        raise ParameterError(f"{name} = {value:.16g} is out of range: choose {allowed}.")
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
        f"{name} = {said(value)} is not known: use {', '.join(map(repr, allowed))}"
        f"{nearest(value, allowed)}."
    )


def positive(name: str, value: object) -> float:
    """Return `value` as a finite float above 0.

    Examples
    --------
    >>> from supermarket.validation import positive
    >>> positive("horizon", 500)
    500.0
    """
    return real(name, value, 0.0, open_low=True)


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


def said(value: object, form: Callable[[object], str] = repr, longest: int = 80) -> str:
    """Return a value on one line, cut where it is long, with nothing in it that can't be printed.

    Examples
    --------
    >>> from supermarket.validation import said
    >>> said([1, 2])
    '[1, 2]'
    """
    text = " ".join(form(value).split())
    text = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)
    return text if len(text) <= longest else text[: longest - 3] + "..."


def bounds(
    name: str,
    low: float | None = None,
    high: float | None = None,
    *,
    open_low: bool = False,
    open_high: bool = False,
) -> str:
    """Return a range as it is written, each end allowed unless open.

    Examples
    --------
    >>> from supermarket.validation import bounds
    >>> bounds("eps", 0, 0.1, open_low=True)
    '0 < eps <= 0.1'
    """
    below = "" if low in (None, -math.inf) else f"{low:.16g} {'<' if open_low else '<='} "
    above = "" if high in (None, math.inf) else f" {'<' if open_high else '<='} {high:.16g}"
    return f"{below}{name}{above}"


def is_number(text: str) -> bool:
    """Return whether a text is written as a number.

    Examples
    --------
    >>> from supermarket.validation import is_number
    >>> is_number("1e-3"), is_number("1,5"), is_number("-")
    (True, False, False)
    """
    try:
        float(text)
    except ValueError:
        return False
    return True


def _meant(text: str) -> float:
    """Return the number that a text stands for, NaN if that is not certain."""
    text = text.strip()
    if text.endswith("%"):
        return _meant(text[:-1]) / 100
    if re.fullmatch(r"[+-]?\d*,\d+", text) and not re.fullmatch(r"[+-]?[1-9]\d{0,2},\d{3}", text):
        text = text.replace(",", ".")
    value = float(text) if is_number(text) else math.nan
    return value if abs(value) < EXACT_MAX else math.nan  # beyond, a float has lost digits


def _outside(
    value: float,
    low: float | None,
    high: float | None,
    *,
    open_low: bool = False,
    open_high: bool = False,
) -> bool:
    """Return whether a number is out of its range, as NaN is of any."""
    return bool(
        value != value
        or (low is not None and (value < low or (open_low and value == low)))
        or (high is not None and (value > high or (open_high and value == high)))
    )


def _is_whole(value: object) -> bool:
    return isinstance(value, Real) and math.isfinite(value) and float(value).is_integer()


def reals(name: str, given: object, low: float = -math.inf, high: float = math.inf) -> np.ndarray:
    """Return numbers in [low, high], an array of float64 of the shape of `given`; no NaN.

    Raises
    ------
    ParameterError
        If something in it is no real number, or is out of range.

    Examples
    --------
    >>> from supermarket.validation import reals
    >>> reals("s", [1, 2.5], 0)
    array([1. , 2.5])
    >>> reals("s", [1, -2], 0)
    Traceback (most recent call last):
        ...
    supermarket.validation.ParameterError: s = -2 is out of range: choose 0 <= s.
    """
    try:
        found = np.asarray(given)
        if found.dtype.kind not in "biufO":
            raise TypeError
        with np.errstate(over="ignore"):
            found = found.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(
            f"{name} = {said(given)} is not a number or an array of numbers."
        ) from None
    inside = (found >= low) & (found <= high)
    if not inside.all():
        wrong = found[~inside].item(0)
        allowed = bounds(name, low, high)
        raise ParameterError(
            f"{name} = {wrong:.16g} is "
            + ("not a number." if wrong != wrong else f"out of range: choose {allowed}.")
        )
    return found


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
