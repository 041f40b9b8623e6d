"""Statements of the ledger as boxes in a text: what a page writes, and what stands there instead.

A notebook, or a page of prose, writes ::

    ```{statement} bl-fixed-point
    ```

and what a reader sees is made of the ledger's entry: its name, its text, and where it comes from.
"""

import re
from collections.abc import Callable, Collection

from supermarket.experiment.statements import HERE, Statement, find, statements
from supermarket.experiment.verdict_table import LEDGER

DIRECTIVE = re.compile(r"^```\{statement\} *([^\n]*)\n(?:[^\n]*\n)*?```$", re.MULTILINE)
_REFERENCE = re.compile(r"\{prf:ref\}`([^`<>]+)`")


def named(text: str) -> list[str]:
    r"""Return the ids of the statements that a text has boxes of.

    Examples
    --------
    >>> from supermarket.experiment.boxes import named
    >>> named("Text.\n\n```{statement} bl-fixed-point\n```\n")
    ['bl-fixed-point']
    """
    return [match[1].strip() for match in DIRECTIVE.finditer(text)]


def expand(text: str, shown: Callable[[Statement], str]) -> str:
    """Return a text with each box replaced by what `shown` makes of its statement.

    Raises
    ------
    ParameterError
        If a statement is not in the ledger; the sentence names the nearest.
    """
    return DIRECTIVE.sub(lambda match: shown(find(match[1].strip())), text)


def box(entry: Statement) -> str:
    """Return the box of a statement in MyST, its label the statement's id."""
    return (
        f"````{{prf:{entry.box}}} {entry.name}\n:label: {entry.id}\n\n{entry.statement.strip()}\n\n"
        f"{provenance(entry)}\n````"
    )


def pointer(entry: Statement) -> str:
    """Return the sentence that stands for a box on a page after the one that has it in full."""
    where = f" ({entry.source})" if entry.paper != HERE else ""
    return f"**{entry.name}**{where} is stated in full as {{prf:ref}}`{entry.id}`."


def provenance(entry: Statement) -> str:
    """Return where a statement comes from, and how much of it, in MyST.

    Examples
    --------
    >>> from supermarket.experiment.boxes import provenance
    >>> from supermarket.experiment.statements import find
    >>> print(provenance(find("bl-fixed-point")).split(" <a")[0])
    {cite:t}`BrightwellLuczak2012`, (1.2), in our words.
    """
    link = f'<a href="{LEDGER}#{entry.id}">In the ledger</a>.'
    if entry.paper == HERE:
        return f"Derived in this project. {link}"
    source = ", ".join(filter(None, [f"{{cite:t}}`{entry.paper}`", entry.number]))
    said = {
        "printed": f"{source}, in our words.",
        "form": f"In the form of {source}; not quoted, and what is ours is marked.",
        "derived": f"Derived in this project, from {source}.",
    }
    return f"{said[entry.standing]} {link}"


def linked(text: str, boxed: Collection[str]) -> str:
    """Return a text whose references to statements without a box lead to the ledger's page."""

    def lead(match: re.Match[str]) -> str:
        name = match[1].strip()
        if name in boxed or name not in statements():
            return match[0]
        return f'<a href="{LEDGER}#{name}">{find(name).name}</a>'

    return _REFERENCE.sub(lead, text)
