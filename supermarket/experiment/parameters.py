"""The parameters of an experiment, each declared once: name, kind, default and meaning in one line.

The first code cell of a notebook holds lines such as::

    n: Whole[10, 1e11] = 40000  # number of queues
    lam: Rate = 0.8  # arrival rate per queue, in jobs per mean service time
    d: list[Whole[1, 1000]] = [1, 2, 3, 5]  # numbers of choices to compare

`supermarket.experiment.begin` checks values by their annotations, and `declared` reads the same
lines for the command line, sweeps and the book. The kinds are:

* ``Whole[1]``, ``Whole[1, 9]``: whole numbers from the first to the second, both allowed;
* ``Real[0, 1]`` with both ends, ``Between[0, 1]`` with none, ``Above[0, 1]`` without the lower one,
  ``Below[0, 1]`` without the upper one, ``Within[1]`` from -1 to 1;
* `Positive`, `Rate` (between 0 and 1), `Load` (from 0.01 to below 1), `TailIndex` (above 1, at most
  100: beyond, a power law is hardly one), `Law`, the text of a service law, `Discipline`, an order
  of service, `Profile`, shares of queues with at least 0, 1, 2, ... jobs, `SweepFolder`, or none;
* ``list[...]``, of at least one value, each once, where a number stands for the list of it alone;
  ``Increasing[3, ...]``, a list of at least three, the smallest first; ``Pair[...]`` and
  ``Three[...]``, of one kind; ``tuple[..., ...]``, a kind for each; and plain ``int``, ``float``,
  ``str`` and ``list``, for what is checked elsewhere.

To papermill an annotation is made of letters, digits, commas and brackets. So an end of a range is
a whole number, as 1e11 is, `Tenth`, `Half` or `Hundredth`, or a ratio such as ``Ratio[3, 5]``.
"""

import ast
import json
import math
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from numbers import Real as AnyReal
from pathlib import Path
from types import GenericAlias
from typing import Any

import numpy as np

from supermarket.validation import (
    ParameterError,
    bounds,
    choice,
    integer,
    nearest,
    profile_of,
    real,
    said,
)

Check = Callable[[str, object], Any]  # (name, value) -> the value, cleaned


@dataclass(frozen=True)
class Kind:
    """What a parameter may be; called with its name and a value, it returns the value, checked.

    Attributes
    ----------
    type : {"int", "float", "str", "list"}
        How a value is written.
    check : callable
        Takes a name and a value, returns the value or raises a `ParameterError`.
    allowed : str
        What a value, or each of a list, may be, as ``0 < {} < 1``; empty if its meaning says it.

    Examples
    --------
    >>> from supermarket.experiment.parameters import Above, Rate, Tenth, Whole, kind
    >>> Whole[10, 1e6]("n", 100)
    100
    >>> kind(list[Whole[1]])("d", 2)
    [2]
    >>> kind(tuple[Rate, Rate])("lam", [0.5, 0.7])
    (0.5, 0.7)
    >>> Above[0, Tenth]("eps", 0.5)
    Traceback (most recent call last):
        ...
    supermarket.validation.ParameterError: eps = 0.5 is out of range: choose 0 < eps <= 0.1.
    """

    type: str
    check: Check
    allowed: str = ""

    def __call__(self, name: str, value: object) -> Any:
        """Return the value of a parameter of this name, checked."""
        return self.check(name, value)


class _Form:
    """A kind that takes its limits in brackets."""

    def __init__(self, make: Callable[..., Any]) -> None:
        self._make = make

    def __getitem__(self, given: Any) -> Any:
        return self._make(*given) if isinstance(given, tuple) else self._make(given)


def _whole(low: float, high: float | None = None) -> Kind:
    ends = int(low), None if high is None else int(high)
    return Kind("int", partial(integer, low=ends[0], high=ends[1]), bounds("{}", *ends))


def _range(**open_ends: bool) -> _Form:
    def make(low: float, high: float = math.inf) -> Kind:
        check = partial(real, low=low, high=high, **open_ends)
        return Kind("float", check, bounds("{}", low, high, **open_ends))

    return _Form(make)


def _increasing(fewest: int, entry: object) -> Kind:
    several = kind(list[entry])
    return Kind("list", partial(_in_order, fewest, several), several.allowed)


def _list(entry: Kind, name: str, value: object) -> list:
    if isinstance(value, AnyReal):
        return [entry(name, value)]
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ParameterError(
            f"{name} = {said(value)} is not a list: write it as [{said(value, str)}]."
        )
    entries = [entry(f"{name}[{index}]", one) for index, one in enumerate(value)]
    if not entries or len(set(map(repr, entries))) < len(entries):
        raise ParameterError(f"{name} = {said(value)} needs at least one entry, each one once.")
    return entries


def _in_order(fewest: int, several: Kind, name: str, value: object) -> list:
    entries = several(name, value)
    if len(entries) < fewest or entries != sorted(entries):
        raise ParameterError(
            f"{name} = {said(value)} needs at least {('two', 'three')[fewest - 2]} entries, "
            "the smallest first."
        )
    return entries


def _tuple(kinds: list[Kind], name: str, value: object) -> tuple:
    given = isinstance(value, Iterable) and not isinstance(value, str) and list(value)
    if not given or len(given) != len(kinds):
        form = ", ".join("abcdefgh"[: len(kinds)])
        raise ParameterError(
            f"{name} = {said(value)} must hold {len(kinds)} entries: write it as [{form}]."
        )
    return tuple(of(f"{name}[{i}]", given[i]) for i, of in enumerate(kinds))


def _text(name: str, value: object) -> str:
    if isinstance(value, str):
        return value
    raise ParameterError(f"{name} = {value!r} is not text: write it in quotes.")


def _some(name: str, value: object) -> list:
    if isinstance(value, AnyReal):
        return [value]
    if isinstance(value, list | tuple):
        return list(value)
    raise ParameterError(f"{name} = {said(value)} is not a list: write it in brackets.")


# What follows imports what it needs when it is asked: the command line lists the notebooks at once.


def _law(name: str, value: object) -> str:
    from supermarket.service.named import named_law

    named_law(name, value)
    return str(value)


def _profile(name: str, value: object) -> list[float]:
    return profile_of(name, value).tolist()


def _discipline(name: str, value: object) -> Any:
    from supermarket.models.jsq import DISCIPLINES

    return choice(name, value, DISCIPLINES)


def _tail_index(name: str, value: object) -> float:
    from supermarket.service.law import tail_index

    return tail_index(name, value, 100.0)


def _folder(name: str, value: object) -> str:
    from supermarket.experiment.plans import plan

    if _text(name, value):
        plan(Path(value))
    return value


Tenth, Half, Hundredth = 0.1, 0.5, 0.01
Ratio = _Form(lambda over, under: over / under)
Whole = _Form(_whole)
Real, Above, Below = _range(), _range(open_low=True), _range(open_high=True)
Between = _range(open_low=True, open_high=True)
Within = _Form(lambda most: Real[-most, most])
Increasing = _Form(_increasing)
Positive, Rate, Load = Above[0], Between[0, 1], Below[Hundredth, 1]
Pair = _Form(lambda entry: kind(tuple[entry, entry]))
Three = _Form(lambda entry: kind(tuple[entry, entry, entry]))
Law, Discipline, SweepFolder = Kind("str", _law), Kind("str", _discipline), Kind("str", _folder)
TailIndex = Kind("float", _tail_index, bounds("{}", 1, 100, open_low=True))
Profile = Kind("list", _profile)

_PLAIN = {int: Kind("int", integer), float: Kind("float", real)}
_PLAIN |= {str: Kind("str", _text), list: Kind("list", _some)}
_VOCABULARY = {
    name: value
    for name, value in globals().items()
    if isinstance(value, _Form | Kind | float) and not name.startswith("_")
} | {of.__name__: of for of in (int, float, str, list, tuple)}


def kind(annotation: Any) -> Kind | None:
    """Return the kind that an annotation stands for, None if it is not of a parameter.

    Examples
    --------
    >>> from supermarket.experiment.parameters import Rate, kind
    >>> kind(list[Rate]).allowed
    '0 < {} < 1'
    """
    if isinstance(annotation, Kind):
        return annotation
    if isinstance(annotation, GenericAlias):
        inner = [kind(part) for part in annotation.__args__]
        if annotation.__origin__ in (list, tuple) and None not in inner:
            if annotation.__origin__ is list:
                return Kind("list", partial(_list, *inner), inner[0].allowed)
            return Kind("list", partial(_tuple, inner))
        return None
    return _PLAIN.get(annotation) if isinstance(annotation, type) else None


@dataclass(frozen=True)
class Parameter:
    """One line ``name: kind = default  # meaning`` of a parameters cell.

    Attributes
    ----------
    name, meaning : str
        The name, and what it means with its unit.
    kind : Kind
        What a value may be.
    default : int, float, str or list
        The notebook's own value.
    """

    name: str
    kind: Kind
    default: Any
    meaning: str

    @property
    def allowed(self) -> str:
        """What it may be, such as ``0 < lam < 1``; empty if its meaning says all."""
        return self.kind.allowed.format("each" if self.kind.type == "list" else self.name)

    def check(self, value: object) -> Any:
        """Return `value`, checked, as what JSON can hold.

        Raises
        ------
        ParameterError
            If it is of another type, or out of range.
        """
        if self.kind.type == "list" and isinstance(value, str):
            raise ParameterError(
                f"{self.name} = {value!r} is not a list: write it as {json.dumps(self.default)}, "
                "in quotes on a command line."
            )
        found = plain(self.kind(self.name, value))
        if self.kind.type == "str" and not found.isprintable():  # what a notebook can hold
            raise ParameterError(
                f"{self.name} = {said(value)} holds a letter that can't be printed: leave it out."
            )
        if self.kind.type == "int":  # what a column of a sweep can hold
            integer(self.name, found, -(2**63), 2**63 - 1)
        return found

    def parse(self, text: str) -> Any:
        """Return the value that a person typed, such as ``1000``, ``[2, 10]`` or ``2,10``.

        Raises
        ------
        ParameterError
            As `check`.
        """
        if self.kind.type == "str":
            return self.check(text)
        value = typed(text)
        if self.kind.type != "list" and isinstance(value, tuple):  # a decimal comma
            value = text
        return self.check(value)


def declared(source: str) -> dict[str, Parameter]:
    """Return the parameters that a cell declares, by name and in order.

    Raises
    ------
    ParameterError
        If an annotation is no kind of parameter.
    SyntaxError
        If the cell is not Python.

    Examples
    --------
    >>> from supermarket.experiment.parameters import declared
    >>> lam = declared("lam: Rate = 0.9  # arrival rate per queue")["lam"]
    >>> lam.default, lam.meaning, lam.allowed
    (0.9, 'arrival rate per queue', '0 < lam < 1')
    """
    lines = source.splitlines()
    found = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            name, end = node.target.id, node.value.end_col_offset
            rest = lines[(node.end_lineno or 0) - 1].encode()[end:].decode()
            meaning = rest.partition("#")[2].strip()
            of = _evaluated(name, ast.get_source_segment(source, node.annotation) or "")
            found[name] = Parameter(name, of, _default(name, node.value), meaning)
    return found


def _default(name: str, value: ast.expr) -> Any:
    """Return the value that a cell gives a parameter: numbers, texts, lists of them."""
    try:
        found = plain(ast.literal_eval(value))
        json.dumps(found)
    except (ValueError, TypeError, RecursionError, MemoryError):
        raise ParameterError(
            f"{name} needs a number, a text or a list of them as its value, not "
            f"{said(ast.unparse(value), str)}."
        ) from None
    return found


def _evaluated(name: str, annotation: str) -> Kind:
    """Return the kind of an annotation, without running anything else that it may hold."""
    words = re.findall(r"\b[^\W\d]\w*", annotation)
    unknown = [word for word in words if word not in _VOCABULARY]
    found = None
    if not unknown and re.fullmatch(r"[\w\[\], ]+", annotation):
        with suppress(TypeError, ValueError, SyntaxError, KeyError):
            found = kind(eval(annotation, {"__builtins__": {}}, _VOCABULARY))
    if found is None:
        hint = nearest(unknown[0], _VOCABULARY) if unknown else ""
        raise ParameterError(
            f"{name}: {annotation} is no kind of parameter: see supermarket.experiment.parameters"
            f"{hint}."
        )
    return found


def typed(text: str) -> Any:
    """Return what a person typed: a number or a list as Python writes it, or else the text.

    Examples
    --------
    >>> from supermarket.experiment.parameters import typed
    >>> typed("1_000"), typed("[2, 10]"), typed("01000"), typed("12:30")
    (1000, [2, 10], '01000', '12:30')
    """
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def plain(value: Any) -> Any:
    """Return `value` as Python numbers, texts and lists, for JSON.

    Examples
    --------
    >>> import numpy as np
    >>> from supermarket.experiment.parameters import plain
    >>> plain((1, np.float64(0.5)))
    [1, 0.5]
    """
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray | list | tuple):
        return [plain(entry) for entry in value]
    return value
