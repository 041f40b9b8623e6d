"""Files that are there whole or not at all, and what goes wrong outside the parameters."""

import errno
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
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
    half.unlink(missing_ok=True)  # a link there would lead out of this folder
    try:
        with half.open("xb") as file:
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


@contextmanager
def alone(lock: Path, busy: str) -> Iterator[None]:
    """Keep others out, until this is done or the process has ended, however it ends.

    On a disk without locks the file itself, with the number of the process in it, is the lock.

    Parameters
    ----------
    lock : Path
        A file that is made if need be and stays, in a folder that is there.
    busy : str
        What to say where another is at work.

    Raises
    ------
    OutsideError
        If another is at work.
    """
    from filelock import FileLock, SoftFileLock, Timeout

    held = FileLock(lock, timeout=0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a disk without locks, of which it knows
            held.acquire()
    except Timeout:
        raise OutsideError(busy) from None
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.EOPNOTSUPP):
            raise
        held = SoftFileLock(lock.with_name(f"{lock.name}.held"), timeout=0)
        try:
            held.acquire()
        except Timeout:
            raise OutsideError(busy) from None
    try:
        yield
    finally:
        held.release()
