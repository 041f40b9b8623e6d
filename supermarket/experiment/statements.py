"""The ledger: every statement that the book is about, what it says, and what would be so instead.

The file ``statements.yml`` beside this module has an entry for each theorem, lemma, formula and
remark of the papers, and for what this project adds. A verdict names the entry that it shows; its
source, its kind, whether the hypotheses hold there and what it is to be told from come from the
entry, so that no page can choose them.
"""

import inspect
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from supermarket.validation import ParameterError, nearest, said

__all__ = ["Against", "Statement", "find", "statements"]

HERE = "here"  # the paper of what this project adds
STANDINGS = {
    "printed": "as in the paper",
    "form": "in form: its display or constants are not quoted",
    "derived": "derived in this project",
}
KINDS = ("paper", "derived", "self-check", "input")
BOXES = ("theorem", "proposition", "lemma", "corollary", "definition", "remark")
_FOLDER = Path(__file__).parents[1]
_ALTERNATIVES = "supermarket.limits.alternatives"


@dataclass(frozen=True)
class Against:
    """What an equality is to be told from: what would be so if it were not.

    Attributes
    ----------
    what : str
        In words.
    value : str
        A function ``module:name`` below `supermarket.limits.alternatives`, which takes `predicted`
        and parameters by name; empty where a scale is given instead.
    scale : float
        How far from the prediction the claim would be wrong, where there is no nearest value.
    of : {"prediction", "one"}
        The unit of the scale.
    why : str
        The reason for it.

    Examples
    --------
    >>> from supermarket.experiment.statements import Against
    >>> tenth = Against("a tenth off", scale=0.1, why="less could not be seen")
    >>> tenth.values(2.0, {})
    [1.8, 2.2]
    """

    what: str
    value: str = ""
    scale: float = 0.0
    of: str = "prediction"
    why: str = ""

    def values(self, predicted: float, parameters: Mapping[str, Any]) -> list[float]:
        """Return the alternatives to a prediction at a point, as a list of numbers."""
        if self.value:
            given = {"predicted": predicted} | dict(parameters)
            found = np.ravel(_call(resolve(f"{_ALTERNATIVES}.{self.value}"), given))
            return [float(value) for value in found if np.isfinite(value)]
        off = self.scale * (abs(predicted) if self.of == "prediction" else 1.0)
        return [predicted - off, predicted + off]


@dataclass(frozen=True)
class Statement:
    """One entry of the ledger.

    Attributes
    ----------
    id : str
        Its address.
    paper : str
        A key of ``book/references.bib``, or `HERE`.
    number, name : str
        In the paper, if it has one; and a short title.
    standing : {"printed", "form", "derived"}
        Whether the paper says it so (`STANDINGS`).
    statement : str
        In this project's words, Markdown with formulas, all quantifiers and hypotheses.
    kind : {"paper", "derived", "self-check", "input"}
        What a verdict on it is.
    hypotheses : tuple of str
        One by one.
    against : Against or None
        None where only bounds are judged, or nothing is.
    predicts, pages : tuple of str
        Functions that compute it, ``module:name``, and the pages that have a verdict on it.
    unshown : str
        Why no page has one.
    box : str
        How its box is headed.
    authors : str
        Of the paper, as a verdict names them.

    Examples
    --------
    >>> from supermarket.experiment.statements import find
    >>> entry = find("bl-fixed-point")
    >>> entry.standing, entry.against.what
    ('printed', 'the fixed point with one choice less (for one choice, with two)')
    """

    id: str
    paper: str
    number: str
    name: str
    standing: str
    statement: str
    kind: str
    hypotheses: tuple[str, ...] = ()
    fails: str = ""
    against: Against | None = None
    predicts: tuple[str, ...] = ()
    pages: tuple[str, ...] = ()
    unshown: str = ""
    box: str = "proposition"
    authors: str = ""

    @property
    def source(self) -> str:
        """The paper and the number in it, as a verdict names them."""
        return ", ".join(filter(None, [self.authors, self.number]))

    def failing(self, parameters: Mapping[str, Any]) -> list[str]:
        """Return the hypotheses that do not hold at a point, as far as they can be checked."""
        if not self.fails:
            return []
        return list(_call(resolve(f"{_ALTERNATIVES}.{self.fails}"), parameters))


def find(name: str) -> Statement:
    """Return the statement with this id.

    Raises
    ------
    ParameterError
        If there is none; the sentence names the nearest.

    Examples
    --------
    >>> from supermarket.experiment.statements import find
    >>> find("bl-fixed-point").source
    'Brightwell & Luczak, (1.2)'
    """
    known = statements()
    if name not in known:
        raise ParameterError(
            f"{name} is not a statement of the ledger{nearest(name, known)}: statements.yml lists "
            "them."
        )
    return known[name]


def statements() -> dict[str, Statement]:
    """Return all statements by their ids, in the order of the ledger.

    Where SUPERMARKET_NOTEBOOKS names a folder of one's own notebooks, a ``statements.yml`` in it
    adds theirs: same form, with `papers` for those that the ledger does not list.

    Raises
    ------
    ParameterError
        If an entry lacks something, or an id stands twice.

    Examples
    --------
    >>> from supermarket.experiment.statements import statements
    >>> "bl-theorem-1-2" in statements()
    True
    """
    return _statements(os.environ.get("SUPERMARKET_NOTEBOOKS"))


@cache
def _statements(own: str | None) -> dict[str, Statement]:
    ledger = _read(_FOLDER / "statements.yml")
    papers, entries = ledger["papers"], [*ledger["statements"]]
    if own and (more := Path(own) / "statements.yml").is_file():
        try:
            added = dict(_read(more) or {})
            papers = papers | dict(added.get("papers") or {})
            entries += list(added.get("statements") or [])
        except (OSError, ValueError, TypeError, RecursionError, yaml.YAMLError):
            raise ParameterError(
                f"{more} must be a ledger in YAML: papers by their keys, and a list of statements."
            ) from None
    found: dict[str, Statement] = {}
    for entry in entries:
        try:
            statement = _checked(dict(entry), papers)
        except ParameterError:
            raise
        except (ValueError, TypeError, AttributeError):
            raise ParameterError(
                f"{said(entry)} in the ledger is no entry: write it as those that are there."
            ) from None
        if statement.id in found:
            raise ParameterError(f"{statement.id} stands twice in the ledger.")
        found[statement.id] = statement
    return found


def _read(file: Path) -> Any:
    return yaml.load(file.read_text(encoding="utf-8"), Loader=_LOADER)


# The C loader, where PyYAML has it, takes a tenth of the time.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def resolve(name: str) -> Callable[..., Any]:
    """Return the function ``module:name``.

    Raises
    ------
    ParameterError
        If there is none.
    """
    module, _, function = name.partition(":")
    try:
        return getattr(import_module(module), function)
    except (ImportError, AttributeError):
        raise ParameterError(f"{name}, named in the ledger, is not there.") from None


def _checked(entry: dict[str, Any], papers: Mapping[str, str]) -> Statement:
    here = entry.get("id", "an entry without an id")

    def need(fine: object, what: str) -> None:
        if not fine:
            raise ParameterError(f"{here} in the ledger {what}.")

    for key in ("id", "paper", "name", "standing", "statement"):
        need(isinstance(entry.get(key), str) and entry[key].strip(), f"has no {key}")
    need(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", here), "is no id: lower case and hyphens")
    need(entry["standing"] in STANDINGS, f"has a standing that is none of {[*STANDINGS]}")
    kind = "derived" if entry["standing"] == "derived" else "paper"
    entry.setdefault("kind", kind)
    need(entry["kind"] in KINDS, f"has a kind that is none of {KINDS}")
    need(entry.get("box", "theorem") in BOXES, f"has a box that is none of {BOXES}")
    need(bool(entry.get("pages")) != bool(entry.get("unshown")), "needs pages, or why it has none")
    if against := entry.get("against"):
        entry["against"] = Against(**against)
        need(bool(against.get("value")) != bool(against.get("scale")), "needs a value or a scale")
        need(against.get("value") or against.get("why"), "has a scale without a reason")
        need(entry["against"].of in ("prediction", "one"), "has a scale of neither kind")
    for key in ("hypotheses", "predicts", "pages"):
        entry[key] = tuple(entry.get(key) or ())
        need(all(isinstance(one, str) for one in entry[key]), f"has {key} that are no text")
    entry["number"] = str(entry.get("number") or "")
    need(entry["paper"] in papers, "is of a paper that the ledger does not list")
    entry["authors"] = papers[entry["paper"]]
    return Statement(**entry)


def _call(function: Callable[..., Any], given: Mapping[str, Any]) -> Any:
    """Call a function with those of the given values that it has parameters for."""
    wanted = inspect.signature(function).parameters
    for name, parameter in wanted.items():
        if name not in given and parameter.default is parameter.empty:
            raise ParameterError(
                f"{function.__module__}.{function.__name__} needs {name}: pass it to the verdict, "
                f"which gives {', '.join(given)}."
            )
    return function(**{name: given[name] for name in wanted if name in given})
