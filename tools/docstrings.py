"""A Sphinx extension for the API reference: references of docstrings that are their own.

numpydoc numbers the references of every docstring from 1, which makes footnotes of one name where
many docstrings share a page. Here they become plain text: the number, and a list at the end.
"""

import re
from typing import Any

REFERENCE = re.compile(r"\.\. (\[\d+\]) ")
MARK = re.compile(r"(\[\d+\])_\b")


def plain_references(*event: Any) -> None:
    """Rewrite a docstring's lines in place."""
    lines = event[-1]
    # A bullet as wide as what it replaces, so that the lines below keep their place.
    lines[:] = [MARK.sub(r"\1", REFERENCE.sub(r"*  \1 ", line)) for line in lines]


def setup(app: Any) -> dict[str, bool]:
    """Rewrite every docstring, before napoleon gives it its form."""
    app.connect("autodoc-process-docstring", plain_references, priority=100)
    return {"parallel_read_safe": True}
