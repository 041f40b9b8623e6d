"""Checks of what a person typed: one sentence says what was given, what is allowed, what to do."""

import math
import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

__all__ = ["ParameterError"]

# A uniform double has 53 bits: beyond, a queue picked as int(uniform * n) would miss some queues.
EXACT_MAX = 2**53
# Counts are int64; this leaves room for sums of two of them.
MOST_QUEUES = 4 * 10**18
MOST_LEVELS = 10**5
MOST_NUMBERS = 10**8  # of eight bytes each, at one time: 800 MB
MOST_EXACT = 10**18  # beyond, a hint would not be the number that was meant

Kind = TypeVar("Kind")


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
    if not _is_number(value, Integral):
        hint = f", such as {name} = {int(value)}" if _is_whole(value) else ""
        raise ParameterError(
            f"{name} = {said(value)} is not a whole number: write it with digits alone{hint}."
        )
    value = int(value)
    if _outside(value, low, high):
        allowed = bounds(name, low, high)
        raise ParameterError(f"{name} = {said(value)} is out of range: choose {allowed}.")
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
    if not _is_number(value, Real):
        raise ParameterError(f"{name} = {said(value)} is not a number: give a decimal number.")
    value = _float(value)
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


def whole_numbers(
    name: str, values: object, low: int | None = None, high: int = MOST_QUEUES
) -> NDArray[np.int64]:
    """Return whole numbers, a list of them at any depth, as an array of int64.

    An array of floats that are all whole is taken too.

    Raises
    ------
    ParameterError
        If an entry is none, or is out of range, as `integer` says it.

    Examples
    --------
    >>> from supermarket.validation import whole_numbers
    >>> whole_numbers("counts", [4, 3, 0]).tolist()
    [4, 3, 0]
    """
    given = _array(name, values, "whole numbers")
    floats = isinstance(values, np.ndarray) and given.dtype == np.float64  # as shares times n
    if floats and np.all((given == np.rint(given)) & (np.abs(given) < MOST_EXACT)):
        given = given.astype(np.int64)
    if given.dtype.kind not in "iu":  # perhaps of several kinds: each by itself
        each = np.asarray(values, dtype=object)
        given = np.array([integer(name, value) for value in each.flat], dtype=object)
        given = given.reshape(each.shape)
    for end in (given.min(), given.max()) if given.size else ():
        integer(name, int(end), low, high)
    return given.astype(np.int64)


def queue_lengths(name: str, values: object, n: int, most: int) -> NDArray[np.int64]:
    """Return the lengths of n queues, each from 0 to `most`.

    Raises
    ------
    ParameterError
        If they are not such.

    Examples
    --------
    >>> from supermarket.validation import queue_lengths
    >>> queue_lengths("lengths", [0, 2], 2, 10).tolist()
    [0, 2]
    """
    must = f"{name} must be n = {n} whole numbers from 0 to {most}"
    try:
        lengths = whole_numbers(name, values, 0, most)
    except ParameterError as error:
        raise ParameterError(f"{must}: {error}") from None
    if lengths.shape != (n,):
        raise ParameterError(f"{must}, and these are of shape {lengths.shape}.")
    return lengths


def numbers(
    name: str, values: object, *, finite: bool = True, nan: bool = False
) -> NDArray[np.float64]:
    """Return a number, or a list of numbers at any depth, as an array of float64.

    Parameters
    ----------
    name : str
    values : array_like
    finite : bool
        Whether all must be finite, or some may be infinite.
    nan : bool
        Whether some may be NaN.

    Raises
    ------
    ParameterError
        If something in it is no number, or lists in it differ in length.

    Examples
    --------
    >>> from supermarket.validation import numbers
    >>> numbers("times", [1, 2.5]).tolist()
    [1.0, 2.5]
    """
    given = _floats(name, values)
    if (np.any(np.isnan(given)) and not nan) or (finite and np.any(np.isinf(given))):
        raise ParameterError(f"{name} must be a list of finite numbers, not {said(values)}.")
    return given


def listed(name: str, values: object, length: int | None = None) -> list[Any]:
    """Return the entries of a list of anything.

    Raises
    ------
    ParameterError
        If it is no list, or not of this length.

    Examples
    --------
    >>> from supermarket.validation import listed
    >>> listed("starts", ("empty", [1.0]), 2)
    ['empty', [1.0]]
    """
    try:
        many = isinstance(values, str | bytes | dict | set) or len(values) > MOST_NUMBERS
        entries = None if many else list(values)
    except (TypeError, OverflowError):
        entries = None
    if entries is None or length not in (None, len(entries)):
        wanted = "" if length is None else f" of {length}"
        raise ParameterError(f"{name} = {said(values)} is not a list{wanted}: give one.")
    return entries


def instance(name: str, value: object, kind: type[Kind] | tuple[type[Kind], ...], how: str) -> Kind:
    """Return `value` if it is an object of this kind; `how` says how to get one.

    Raises
    ------
    ParameterError
        If it is another.

    Examples
    --------
    >>> from supermarket.validation import instance
    >>> instance("rng", 3, float, "give a float")
    Traceback (most recent call last):
        ...
    supermarket.validation.ParameterError: rng = 3 is no float: give a float.
    """
    if not isinstance(value, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        names = " or ".join(one.__name__ for one in kinds)
        raise ParameterError(f"{name} = {said(value)} is no {names}: {how}.")
    return value


def counts_of(given: object, *, whole: bool = True) -> NDArray[Any]:
    """Return numbers of queues with length at least 0, 1, ..., of one state or a row for each.

    Unless they must be `whole`, shares will do.

    Raises
    ------
    ParameterError
        If they are not such: none below 0 or above the one before, the first above 0.

    Examples
    --------
    >>> from supermarket.validation import counts_of
    >>> counts_of([4, 3, 0]).tolist()
    [4, 3, 0]
    """
    shares = not whole and _array("counts", given, "numbers").dtype.kind not in "iu"
    counts = numbers("counts", given) if shares else whole_numbers("counts", given, 0)
    if counts.ndim not in (1, 2) or not counts.size:
        raise ParameterError(
            f"counts of shape {counts.shape} are no states: give one row of numbers for each."
        )
    if np.any(np.diff(counts) > 0) or np.any(counts[..., 0] <= 0):
        raise ParameterError(
            "counts must not increase from level to level, and the first, the number of queues, "
            "must be above 0."
        )
    return counts


def seed_of(given: int | SeedSequence) -> SeedSequence:
    """Return the seed sequence of a seed.

    Examples
    --------
    >>> from supermarket.validation import seed_of
    >>> seed_of(1).entropy
    1
    """
    return given if isinstance(given, SeedSequence) else SeedSequence(integer("seed", given, 0))


def called(name: str, function: object, *arguments: object) -> object:
    """Return what a function that was given returns, or refuse one that fails.

    Examples
    --------
    >>> from supermarket.validation import called
    >>> called("phi", lambda n: 1 / n, 4)
    0.25
    """
    instance(name, function, Callable, "give a function")
    try:
        return function(*arguments)
    except Exception as error:
        given = said(arguments[0] if len(arguments) == 1 else arguments)
        why = f"{type(error).__name__}: {said(error, str)}"
        raise ParameterError(f"{name} fails at {given}: {why.rstrip('.')}.") from error


def affordable(
    what: str, size: float, how: str, most: float = MOST_NUMBERS, unit: str = "numbers"
) -> None:
    """Refuse what takes too much memory or time, by its size, before any work.

    Examples
    --------
    >>> from supermarket.validation import affordable
    >>> affordable("levels = 1000000000", 1e9, "choose fewer levels")
    Traceback (most recent call last):
        ...
    supermarket.validation.ParameterError: levels = 1000000000 takes some 1e+09 numbers, and 1e+08 \
are allowed: choose fewer levels.
    """
    if not size <= most:
        raise ParameterError(
            f"{what} takes some {size:.2g} {unit}, and {most:.2g} are allowed: {how}."
        )


def nearest(value: object, allowed: Iterable[object]) -> str:
    """Return ' (did you mean X?)' for a misspelt word, or nothing.

    Examples
    --------
    >>> from supermarket.validation import nearest
    >>> nearest("hozizon", ["horizon", "seed"])
    ' (did you mean horizon?)'
    """
    close = get_close_matches(said(value, str), [str(option) for option in allowed], n=1)
    return f" (did you mean {close[0]}?)" if close else ""


def said(value: object, form: Callable[[object], str] = repr, longest: int = 80) -> str:
    """Return a value on one line, cut where it is long, with nothing in it that can't be printed.

    Examples
    --------
    >>> from supermarket.validation import said
    >>> said([1, 2])
    '[1, 2]'
    """
    try:
        text = " ".join(form(value).split())
    except Exception:  # of an object's own, or a number of more digits than Python writes
        text = f"<{type(value).__name__}>"
    text = printable(text[: longest + 1])
    return text if len(text) <= longest else text[: longest - 3] + "..."


def printable(text: str) -> str:
    """Return a text in which no letter moves the cursor, changes a colour or is none.

    Examples
    --------
    >>> from supermarket.validation import printable
    >>> len(printable(chr(27))), printable("red")
    (4, 'red')
    """
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


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
    if not isinstance(value, float | np.floating):
        return False
    return abs(float(value)) < MOST_EXACT and float(value).is_integer()


def _is_number(value: object, kind: type) -> bool:
    """Tell numbers from what Python or NumPy count among them: truth values, lengths of time."""
    return isinstance(value, kind) and not isinstance(value, bool | np.bool_ | np.timedelta64)


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _array(name: str, values: object, of: str) -> NDArray[Any]:
    """Return what NumPy makes of a list, or refuse it in one sentence."""
    masked = isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values)
    try:  # under a mask is what nobody means
        return np.asarray(None if masked else values)
    except (TypeError, ValueError, OverflowError, MemoryError):
        raise ParameterError(f"{name} must be a list of {of}, not {said(values)}.") from None


def _floats(name: str, values: object) -> NDArray[np.float64]:
    given = _array(name, values, "numbers")
    if given.dtype.kind == "O" and all(_is_number(value, Real) for value in given.flat):
        given = np.array([_float(value) for value in given.flat]).reshape(given.shape)
    if given.dtype.kind not in "biuf":
        raise ParameterError(f"{name} must be a list of numbers, not {said(values)}.")
    with np.errstate(over="ignore"):  # beyond the doubles
        return given.astype(np.float64, copy=False)


def reals(
    name: str, given: object, low: float = -math.inf, high: float = math.inf
) -> NDArray[np.float64]:
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
    found = _floats(name, given)
    inside = (found >= low) & (found <= high)
    if not inside.all():
        wrong = found[~inside].item(0)
        allowed = bounds(name, low, high)
        raise ParameterError(
            f"{name} = {wrong:.16g} is "
            + ("not a number." if wrong != wrong else f"out of range: choose {allowed}.")
        )
    return found


def increasing_times(times: object, *, least: int = 1, low: float = 0.0) -> NDArray[np.float64]:
    """Return times as an array of float64 that increases, from `low` on or later.

    Raises
    ------
    ParameterError
        If they are not such, or fewer than `least`.
    """
    times = np.atleast_1d(numbers("times", times))
    if times.ndim != 1 or len(times) < least or np.any(np.diff(times) <= 0):
        few = {1: "one", 2: "two"}[least]
        raise ParameterError(f"times must be an increasing list of numbers, {few} at least.")
    if times[0] < low:
        raise ParameterError(f"times must be numbers, none below {low:g}.")
    return times


def profile_of(name: str, given: object) -> NDArray[np.float64]:
    """Return shares u[0] = 1 >= u[1] >= ... >= 0 as an array of float64.

    Raises
    ------
    ParameterError
        If they are not such, or are too many.
    """
    u = numbers(name, given)
    if u.size > MOST_LEVELS:
        raise ParameterError(f"{name} has {u.size} levels: at most {MOST_LEVELS} are allowed.")
    if u.ndim != 1 or len(u) == 0 or u[0] != 1 or not np.all(np.diff(u) <= 0) or u[-1] < 0:
        raise ParameterError(
            f"{name} must be a profile: 1 first, no share above the one before it, none below 0."
        )
    return u
