"""Finished runs in the user's cache folder, so that a fresh checkout need not repeat them.

They stand beside the kernels' machine code (`supermarket.kernels.compiled`), and the same
environment variable, SUPERMARKET_CACHE, moves them or switches them off. Whether a kept run is what
a notebook would give again is for `tools.runs` to tell: here they are only kept, and found.
"""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from supermarket.kernels.cache import KEPT, root
from tools import digest

MOST = 4  # of one notebook and profile: as many branches can take turns


def keep(folder: Path) -> None:
    """Copy a finished run, and drop what no build has used for long.

    A folder that cannot be written keeps nothing: the run is in the checkout all the same.
    """
    home = _home(folder)
    record = digest(folder / "record.json")
    if home is None or record is None:
        return
    with suppress(OSError):
        home.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=".", dir=home))
        try:
            shutil.copytree(folder, aside / "run")
            (aside / "run").rename(home / record[:20])  # whole, or not at all
        finally:
            shutil.rmtree(aside, ignore_errors=True)
            _clean(home)


def candidates(folder: Path) -> Iterator[Path]:
    """Yield the kept runs of the same notebook and profile, the last used first."""
    home = _home(folder)
    if home is not None and home.is_dir():
        yield from sorted(home.glob("[!.]*"), key=_used, reverse=True)


def fetch(run: Path, folder: Path) -> bool:
    """Copy a kept run to where the build looks for it, and return whether that succeeded."""
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        shutil.copytree(run, part)
        os.utime(run)
    except OSError:  # another build has just dropped it
        shutil.rmtree(part, ignore_errors=True)
        return False
    shutil.rmtree(folder, ignore_errors=True)
    part.rename(folder)
    return True


def _home(folder: Path) -> Path | None:
    """Return where runs of this notebook and profile are kept, None for nowhere."""
    above = root()
    return None if above is None else above / "runs" / folder.parent.name / folder.name


def _used(run: Path) -> float:
    try:
        return run.stat().st_mtime
    except OSError:
        return 0.0


def _clean(home: Path) -> None:
    oldest = time.time() - KEPT * 86400
    for place, run in enumerate(sorted(home.glob("[!.]*"), key=_used, reverse=True)):
        if place >= MOST or _used(run) < oldest:
            shutil.rmtree(run, ignore_errors=True)
