"""Files that are there whole or not at all, and what goes wrong outside the parameters."""

import errno
import os
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from supermarket.validation import ParameterError, said

PATH = 200  # letters of a path that a sentence shows


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


def remove(path: Path) -> None:
    """Remove a file, a folder with all in it, or a link, if it is there.

    Examples
    --------
    >>> from pathlib import Path
    >>> from supermarket.experiment.files import remove
    >>> remove(Path("nowhere"))
    """
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def make_folder(path: Path) -> bool:
    """Make the folder of somebody's results, if it is not there; return whether it was made.

    Raises
    ------
    ParameterError
        If there can be none: the sentence says why.

    Examples
    --------
    >>> from pathlib import Path
    >>> from supermarket.experiment.files import make_folder
    >>> make_folder(Path("/"))
    Traceback (most recent call last):
        ...
    supermarket.validation.ParameterError: / is the root of all folders: choose one below it.
    """
    if os.path.realpath(path) == os.path.realpath(path.anchor or "/"):
        raise ParameterError(f"{path} is the root of all folders: choose one below it.")
    new = not os.path.isdir(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
        if not os.access(path, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except (FileExistsError, NotADirectoryError):
        raise ParameterError(
            f"{said(path, str, PATH)} is a file, or lies in one: choose another folder."
        ) from None
    except (OSError, RecursionError) as error:
        number = getattr(error, "errno", errno.ENAMETOOLONG)  # too many folders, one in another
        raise ParameterError(
            f"{said(path, str, PATH)} can't hold results ({os.strerror(number)}): choose another "
            "folder."
        ) from None
    return new


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
