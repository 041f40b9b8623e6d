"""Files that are there whole or not at all, and what goes wrong outside the parameters."""

import os
from pathlib import Path


class OutsideError(Exception):
    """Something outside the parameters went wrong, such as a full disk; one sentence tells what."""


def write(path: Path, content: bytes) -> None:
    """Write a file so that it is there whole, even after a power cut, or not at all.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from supermarket.experiment.files import write
    >>> with TemporaryDirectory() as folder:
    ...     write(Path(folder, "new", "file"), b"whole")
    ...     Path(folder, "new", "file").read_bytes()
    b'whole'
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(f"{path.name}.part")
    try:
        with half.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        half.replace(path)
    finally:
        half.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
