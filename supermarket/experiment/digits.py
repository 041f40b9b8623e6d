"""Numbers as a reader sees them: no more digits than the interval supports, powers of ten set."""

import math
import re
from collections.abc import Mapping
from typing import Any

__all__ = ["Digits", "numeral"]

_POWERS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_RAISED = re.compile("10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)")
_MOST = 8  # significant digits, unless it takes more to see on which side of an end a number lies
_PLAIN = range(-3, 7)  # powers of ten of a number's first digit that are written out


def numeral(value: float, digits: int = 6) -> str:
    """Return a number with at most so many significant digits.

    Examples
    --------
    >>> from supermarket.experiment.digits import numeral
    >>> numeral(10000), numeral(0.25), numeral(1.5e-7), numeral(1e20), numeral(-2.0)
    ('10,000', '0.25', '1.5 × 10⁻⁷', '10²⁰', '−2')
    """
    value = float(value)
    if not math.isfinite(value):
        return {math.inf: "∞", -math.inf: "−∞"}.get(value, "—")
    if value == 0:
        return "0"
    mantissa, _, power = f"{value:.{digits - 1}e}".partition("e")
    if int(power) in _PLAIN:
        decimals = max(0, digits - 1 - int(power))
        return _short(_fixed(value, -decimals))
    mantissa = _short(mantissa.replace("-", "−"))
    return _scaled(mantissa, int(power)).replace("−1 × 10", "−10").removeprefix("1 × ")


def with_powers(text: str) -> str:
    """Return HTML with the powers of ten raised.

    Examples
    --------
    >>> from supermarket.experiment.digits import with_powers
    >>> with_powers("1.5 × 10⁻⁷")
    '1.5 × 10<sup>−7</sup>'
    """
    plain = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "−0123456789")
    return _RAISED.sub(lambda power: f"10<sup>{power[1].translate(plain)}</sup>", text)


class Digits:
    """The numbers of one verdict, to the last place that its interval supports.

    That is two digits of the half-width; more where it takes more to see on which side of an end
    the prediction lies.

    Attributes
    ----------
    predicted, measured, interval : str
        The interval is "± " and the half-width, or "low to high" where its two sides differ; empty
        for a number that was computed without an error, and "no interval" if none is known.

    Examples
    --------
    >>> from supermarket.experiment.digits import Digits
    >>> shown = Digits({"predicted": 0.9, "measured": 0.90012345, "low": 0.8995, "high": 0.90074})
    >>> shown.predicted, shown.measured, shown.interval
    ('0.90000', '0.90012', '± 0.00062')
    >>> shown.both
    '0.90012 ± 0.00062'
    """

    def __init__(self, verdict: Mapping[str, Any]) -> None:
        self._predicted, self._estimate = float(verdict["predicted"]), float(verdict["measured"])
        self._low, self._high = verdict["low"], verdict["high"]
        self._known = self._low is not None
        if not self._known:
            self.predicted, self.measured = numeral(self._predicted, 4), numeral(self._estimate, 4)
            self.interval, self._place, self._power = "no interval", None, 0
            return
        largest = max(map(abs, (self._estimate, self._low, self._high)))
        if self._low == self._high:
            largest = max(largest, abs(self._predicted))
        self._largest = _first(largest)
        self._power = 0 if self._largest in _PLAIN else self._largest
        below, above = self._estimate - self._low, self._high - self._estimate
        inside = self._low <= self._predicted <= self._high
        alike = min(below, above) > 0.8 * max(below, above)
        for self._one_width in (True, False) if alike else (False,):
            self._place = self._first_place()
            for self._more in range(9):
                self._write()
                if self._seen() == inside:
                    return
                self._place -= 1

    def _write(self) -> None:
        self.predicted = self.at(self._predicted)
        exact = self._low == self._high
        scaled = _scaled(self._mantissa(self._estimate), self._power)
        self.measured = self.at(self._estimate) if exact else scaled
        self.interval = self._ends()

    @property
    def both(self) -> str:
        """The estimate and its interval."""
        if not self._known or not self.interval:
            return ", ".join(filter(None, [self.measured, self.interval]))
        pattern = "{} ({})" if " to " in self.interval else "{} {}"
        if not self._power or "×" not in self.interval:
            return pattern.format(self.measured, self.interval)
        inner = self.interval.removesuffix(_scaled("", self._power))
        joined = pattern.format(self._mantissa(self._estimate), inner)
        return _scaled(joined if " to " in inner else f"({joined})", self._power)

    def at(self, value: float) -> str:
        """Return another number of this verdict to the same place."""
        value = float(value)
        if self._place is None or value == 0 or not math.isfinite(value):
            return numeral(value, 4)
        if self._low == self._high:  # computed
            return numeral(value, min(max(self._largest - self._place + 1, 6), 17))
        if value.is_integer() and abs(value) < 1e7 and not self._power:
            return _fixed(value, 0)
        first = _first(value)
        if first < self._place + 1 or first - self._place >= _MOST + 4:
            return numeral(value, 2 if first < self._place + 1 else 6)
        if self._power and first != self._power:
            return numeral(value, min(first - self._place + 1, _MOST))
        return _scaled(self._mantissa(value), self._power)

    def other(self, value: float) -> str:
        """Return an alternative to the prediction, with two digits of how far it is away."""
        away = abs(value - self._predicted)
        return numeral(value, min(max(_first(value) - _first(away) + 2, 2), 17))

    def _first_place(self) -> int:
        """Return the place of the last digit, as a power of ten."""
        widths = [x for x in (self._estimate - self._low, self._high - self._estimate) if x > 0]
        largest = max(map(abs, (self._estimate, self._low, self._high)))
        if not widths:
            values = [abs(x) for x in (self._estimate, self._predicted) if x]
            exact = all(x.is_integer() for x in values) and max(values, default=0) < 1e7
            return 0 if exact or not values else _first(max(values)) - 5
        half = float(f"{min(widths):.1e}")
        return max(_first(half) - 1, _first(largest) + 1 - _MOST)

    def _mantissa(self, value: float) -> str:
        return _fixed(value / 10.0**self._power, self._place - self._power) if value else "0"

    def _ends(self) -> str:
        if self._low == self._high:
            return ""
        if not self._one_width:
            ends = (self._mantissa(end) for end in (self._low, self._high))
            return _scaled(" to ".join(ends), self._power)
        half = (self._high - self._low) / 2
        if _first(half) < self._place or _first(half) < self._power - 4:
            return f"± {numeral(half, 2 + self._more)}"
        return _scaled(f"± {self._mantissa(half)}", self._power)

    def _seen(self) -> bool:
        """Tell whether, as printed, the prediction lies between the ends."""
        estimate, predicted = _read(self.measured), _read(self.predicted)
        if self.interval.startswith("± "):
            low, high = (estimate + sign * _read(self.interval[2:]) for sign in (-1, 1))
        elif self.interval:
            low, high = (_read(_scaled(self._mantissa(x), self._power))
                         for x in (self._low, self._high))  # fmt: skip
        else:
            low = high = estimate
        slack = 1e-9 * (high - low)
        return low - slack <= predicted <= high + slack


def in_digits(verdict: Mapping[str, Any]) -> dict[str, str]:
    """Return a verdict's numbers with the digits that its interval supports.

    Examples
    --------
    >>> from supermarket.experiment.digits import in_digits
    >>> in_digits({"predicted": 0.9, "measured": 0.90012345, "low": 0.8995, "high": 0.90074})
    {'predicted': '0.90000', 'measured': '0.90012', 'interval': '± 0.00062'}
    """
    shown = Digits(verdict)
    return {
        "predicted": shown.predicted,
        "measured": shown.measured,
        "interval": shown.interval or "computed",
    }


def _first(value: float) -> int:
    """Return the power of ten of a number's first digit."""
    return int(f"{abs(value):.15e}".partition("e")[2]) if value else 0


def _fixed(value: float, place: int) -> str:
    """Return a number rounded to a place, with commas between thousands and a true minus."""
    rounded = round(value, -place) + 0.0
    text = f"{rounded:,.{max(0, -place)}f}"
    return text.replace("-", "−") if rounded else text.lstrip("-")


def _short(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def _read(text: str) -> float:
    """Return the number that was printed."""
    plain = text.replace(",", "").translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹−", "-0123456789-"))
    if " × 10" in text:
        mantissa, _, power = plain.partition(" × 10")
    elif _RAISED.search(text):
        mantissa, _, power = plain.partition("10")
        mantissa += "1"
    else:
        mantissa, power = plain, "0"
    return float(f"{mantissa}e{power}")


def _scaled(text: str, power: int) -> str:
    return f"{text} × 10{str(power).translate(_POWERS)}" if power else text
