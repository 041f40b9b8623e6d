"""A service law from a text, as a notebook's parameter or a command line gives it."""

import ast

from supermarket import service
from supermarket.service import tables
from supermarket.service.given import Empirical
from supermarket.service.law import ServiceLaw
from supermarket.validation import ParameterError, nearest

__all__ = ["named_law"]

_NAMES = (
    "Exponential", "Deterministic", "Erlang", "Gamma", "Hyperexponential",
    "Hyperexponential.from_scv", "Uniform", "Weibull", "Lognormal", "Lomax", "Pareto",
    "BoundedPareto", "PhaseType",
)  # fmt: skip


def named_law(name: str, value: object) -> ServiceLaw:
    """Return the law that a text such as ``"Lomax(1.5)"`` or ``"sizes.csv:seconds"`` names.

    Parameters
    ----------
    name : str
        Of the parameter, for the sentence of an error.
    value : str
        A law of `supermarket.service` as it is written in Python, with numbers or lists of numbers
        for arguments; or a CSV file, a colon and the name of its column of service times, which
        gives their empirical law. Alone, a file stands for its only column. What separates the
        cells may also be semicolons, tabs, bars or blanks; the file may be packed.

    Raises
    ------
    ParameterError
        If there is no such law, file or column, or an argument is not allowed.

    Examples
    --------
    >>> from supermarket.service.named import named_law
    >>> named_law("service", "Hyperexponential.from_scv(4)").scv
    4.0
    """
    if not isinstance(value, str):
        raise ParameterError(
            f'{name} = {value!r} is not a text: write a law such as "Lomax(1.5)" or "sizes.csv".'
        )
    word = value.split("(")[0].strip()
    if word not in _NAMES and (file := tables.place(value)):
        return Empirical(tables.column(name, value, *file))
    try:
        call = ast.parse(value.strip(), mode="eval").body
        arguments = [ast.literal_eval(argument) for argument in call.args]
        named = {word.arg: ast.literal_eval(word.value) for word in call.keywords}
        asked = ast.unparse(call.func)
    except (SyntaxError, ValueError, AttributeError, TypeError):
        hint = f' (did you mean "{word}()"?)' if word in _NAMES else nearest(word, _NAMES)
        raise ParameterError(
            f'{name} = {value!r} does not name a law: write one such as "Lomax(1.5)", '
            f'"Deterministic()" or "sizes.csv"{hint}.'
        ) from None
    if asked not in _NAMES:
        raise ParameterError(
            f"{name} = {value!r} names no law that is known: use one of {', '.join(_NAMES)}"
            f"{nearest(asked, _NAMES)}."
        )
    law: object = service
    for part in asked.split("."):
        law = getattr(law, part)
    try:
        return law(*arguments, **named)
    except TypeError:
        raise ParameterError(
            f"{name} = {value!r} has too few or too many numbers: see help({asked})."
        ) from None


def law_text(name: str, value: object) -> str:
    """Check that a text names a law and return the text; for the parameters of a notebook."""
    named_law(name, value)
    return str(value)
