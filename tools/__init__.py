"""How the book is made: `python -m tools.book` (or `make book`) runs everything in this folder.

`runs` executes the notebooks that need it, `pages` turns them and the prose into HTML,
`check_pages` says what is wrong with the HTML, `check_notebooks` what may not be committed, and
`book` calls them in that order.
"""

from hashlib import sha256
from pathlib import Path


class BuildError(Exception):
    """The book can't be built, for a reason that one sentence tells."""


def digest(file: Path) -> str | None:
    """Return the SHA-256 of a file's bytes, or None if there is no such file."""
    return sha256(file.read_bytes()).hexdigest() if file.is_file() else None
