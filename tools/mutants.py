"""Plant known bugs, one at a time, and tell which test sees each: `make mutants`.

The list is `tools/mutants.yml`. A bug is planted in a copy of the project, and the tests that the
list names for it are run there. Before that they are run as they are: what is red without a bug
says nothing. What was seen is kept in build/mutants, for as long as the bug, its file and its
tests stay as they are, so that an interrupted run goes on where it stopped.

mutmut and cosmic-ray change every operator in turn: thousands of bugs, each of which compiles its
kernels anew, and many of which change nothing. These are few, each a mistake that one could make.
"""

import argparse
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import yaml

from supermarket.experiment.files import write
from tools import BuildError, digest

ROOT = Path(__file__).resolve().parents[1]
LIST = Path("tools", "mutants.yml")
KEPT = Path("build", "mutants", "found.json")
CACHE = Path("build", "mutants", "cache")  # of machine code
LIMIT = 900.0  # seconds for the tests of one bug
RED, GREEN, LONG, BROKEN = "red", "GREEN", "TOO LONG", "BROKEN"
# Its machine code must not come near that of the others, as it may be kept under a wrong name.
_KEEPS_CODE = "supermarket/kernels/compiled.py"


@dataclass(frozen=True)
class Mutant:
    """One bug: `text`, which stands once in `file`, becomes `bug`.

    Attributes
    ----------
    name : str
        Lower case and hyphens.
    file : str
        From the project's folder.
    text, bug : str
        What stands there, and what takes its place.
    why : str
        What is wrong then.
    tests : tuple of str
        Files of tests, or single ones as pytest names them, below tests/: those that see it first.
    """

    name: str
    file: str
    text: str
    bug: str
    why: str
    tests: tuple[str, ...]

    def planted(self, source: str) -> str:
        """Return the content of the file with the bug."""
        return source.replace(self.text, self.bug)


class Seen(NamedTuple):
    """Red if a test failed, which one, and the seconds it took."""

    result: str
    by: str
    seconds: float


def listed(root: Path, names: Iterable[str] = ()) -> list[Mutant]:
    """Return the bugs of the list, or those of these names.

    Raises
    ------
    BuildError
        If the list does not fit the project, or has no such name.
    """
    entries = yaml.safe_load((root / LIST).read_text(encoding="utf-8"))
    mutants = [Mutant(**entry | {"tests": tuple(entry["tests"].split())}) for entry in entries]
    if faults := [fault for mutant in mutants for fault in _faults(root, mutant, mutants)]:
        raise BuildError("\n".join(faults))
    if unknown := set(names) - {mutant.name for mutant in mutants}:
        raise BuildError(f"{LIST} has no {', '.join(sorted(unknown))}: --list shows what it has.")
    return [mutant for mutant in mutants if not names or mutant.name in names]


def _faults(root: Path, mutant: Mutant, mutants: list[Mutant]) -> Iterator[str]:
    """Yield why a bug cannot be planted and tried."""
    if sum(other.name == mutant.name for other in mutants) > 1:
        yield f"{LIST}: {mutant.name} stands twice."
    file = root / mutant.file
    source = file.read_text(encoding="utf-8") if file.is_file() else ""
    if (times := source.count(mutant.text)) != 1:
        yield (
            f"{LIST}: the text of {mutant.name} stands {times} times in {mutant.file}, and must "
            "once: write it as it is today."
        )
    elif file.suffix == ".py":
        try:
            compile(mutant.planted(source), mutant.file, "exec")
        except SyntaxError as error:
            yield f"{LIST}: {mutant.name} is no Python: {error}."
    for test in mutant.tests:
        if not (root / "tests" / test.partition("::")[0]).is_file():
            yield f"{LIST}: there is no {test}, which {mutant.name} names."


def run(
    root: Path,
    mutants: list[Mutant],
    *,
    jobs: int = 1,
    again: bool = False,
    limit: float = LIMIT,
) -> dict[str, Seen]:
    """Try the bugs, and print a line for each.

    Raises
    ------
    BuildError
        If the tests do not pass without any bug.
    """
    kept: dict[str, Any] = {}
    if (root / KEPT).is_file() and not again:
        kept = json.loads((root / KEPT).read_text(encoding="utf-8"))
    stamps = {mutant: _stamp(root, mutant) for mutant in mutants}
    found = {
        mutant.name: Seen(*kept[stamps[mutant]]) for mutant in mutants if stamps[mutant] in kept
    }
    left = [mutant for mutant in mutants if mutant.name not in found]
    for name, seen in found.items():
        _tell(name, seen, "kept")
    if not left:
        return found
    with _copies(root, jobs) as copies:
        with _one_of(copies) as copy:
            whole = _stamp_of_all(copy)
            sound = Mutant("no bug", str(LIST), "", "", "", _tests_of(left, kept.get(whole, [])))
            if sound.tests:
                seen = _tried(copy, sound, limit * len(left), root / CACHE)
                if seen.result != GREEN:
                    raise BuildError(f"Without any bug the tests are {seen.result}: {seen.by}")
                kept[whole] = [*kept.get(whole, []), *sound.tests]
                _keep(root, kept)
        print(f"Without any bug {len(_tests_of(left))} of tests are green.", flush=True)

        def one(mutant: Mutant) -> Seen:
            with _one_of(copies) as copy:
                return tried(copy, mutant, limit, root / CACHE)

        with ThreadPoolExecutor(jobs) as pool:
            tasks = {pool.submit(one, mutant): mutant for mutant in left}
            try:
                for task in as_completed(tasks):
                    mutant = tasks[task]
                    found[mutant.name] = task.result()
                    _tell(mutant.name, task.result())
                    if task.result().result != RED:
                        continue
                    kept[stamps[mutant]] = task.result()
                    _keep(root, kept)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                _stop(_running)
                raise
    return found


def tried(copy: Path, mutant: Mutant, limit: float, cache: Path) -> Seen:
    """Plant a bug in a copy of the project, run its tests, and take it out again."""
    file = copy / mutant.file
    source = file.read_text(encoding="utf-8")
    file.write_text(mutant.planted(source), encoding="utf-8")
    try:
        return _tried(copy, mutant, limit, cache)
    finally:
        file.write_text(source, encoding="utf-8")


_running: set[subprocess.Popen] = set()


def _tried(copy: Path, mutant: Mutant, limit: float, cache: Path) -> Seen:
    """Run the tests until one fails."""
    shutil.rmtree(copy / "build", ignore_errors=True)
    if mutant.file == _KEEPS_CODE:
        cache = copy / "build" / "cache"
    here = {
        "PYTHONPATH": str(copy), "SUPERMARKET_CACHE": str(cache), "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--tb=line"]
    command += [f"tests/{test}" for test in mutant.tests]
    begun = time.monotonic()
    with subprocess.Popen(
        command, cwd=copy, env=os.environ | here, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, start_new_session=True,
    ) as child:  # fmt: skip
        _running.add(child)
        try:
            said, _ = child.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            _stop({child})
            return Seen(LONG, f"more than {limit:.0f} s", limit)
        finally:
            _running.discard(child)
    seconds = round(time.monotonic() - begun, 1)
    # What could not even be collected was not seen by a test.
    result = {0: GREEN, 1: RED}.get(child.returncode, BROKEN)
    failed = re.findall(r"^(?:FAILED|ERROR) tests/(.+?)(?: - .*)?$", said, re.MULTILINE)
    why = {GREEN: "", RED: next(iter(failed), ""), BROKEN: " ".join(said.split())[-300:]}
    return Seen(result, why[result], seconds)


def _stop(children: Iterable[subprocess.Popen]) -> None:
    for child in list(children):
        os.killpg(child.pid, signal.SIGKILL)


@contextmanager
def _copies(root: Path, jobs: int) -> Iterator["queue.Queue[Path]"]:
    """Yield so many copies of the checkout, each a repository, or of a folder that is none."""
    listing = _git(root, "ls-files", "-z", "-co", "--exclude-standard")
    if listing is None:
        files = [file.relative_to(root) for file in root.rglob("*") if file.is_file()]
        files = [file for file in files if file.parts[0] not in (".venv", "build")]
    else:
        files = [Path(name) for name in listing.split("\0") if name and (root / name).is_file()]
    with TemporaryDirectory(prefix="supermarket-mutants-") as folder:
        copies: queue.Queue[Path] = queue.Queue()
        for number in range(jobs):
            copy = Path(folder, str(number))
            for file in files:
                (copy / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / file, copy / file)
            if listing is not None:
                _git(copy, "init", "-q")
                _git(copy, "add", "-A")
                _git(copy, "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "A copy")
            copies.put(copy)
        yield copies


def _git(folder: Path, *arguments: str) -> str | None:
    command = ["git", "-C", str(folder), *arguments]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):  # no git, or no checkout
        return None


@contextmanager
def _one_of(copies: "queue.Queue[Path]") -> Iterator[Path]:
    copy = copies.get()
    try:
        yield copy
    finally:
        copies.put(copy)


def _tests_of(mutants: list[Mutant], known: Iterable[str] = ()) -> tuple[str, ...]:
    """Return all tests that these name, once each, but for those known and parts of a file."""
    named = dict.fromkeys(test for mutant in mutants for test in mutant.tests)
    whole = {test for test in (*named, *known) if "::" not in test}
    left = (test for test in named if test not in known)
    return tuple(test for test in left if "::" not in test or test.partition("::")[0] not in whole)


def _stamp(root: Path, mutant: Mutant) -> str:
    """Return a hash of a bug, its file and its tests."""
    files = [mutant.file, *(f"tests/{test.partition('::')[0]}" for test in mutant.tests)]
    parts = [*astuple(mutant), *(digest(root / file) for file in files)]
    return sha256(json.dumps(parts).encode()).hexdigest()[:24]


def _stamp_of_all(copy: Path) -> str:
    """Return a hash of all that the tests may look at, but for the list of bugs."""
    files = [file.relative_to(copy) for file in sorted(copy.rglob("*")) if file.is_file()]
    parts = [(str(f), digest(copy / f)) for f in files if f != LIST and f.parts[0] != ".git"]
    return sha256(json.dumps(parts).encode()).hexdigest()[:24]


def _keep(root: Path, kept: dict[str, Any]) -> None:
    write(root / KEPT, json.dumps(kept, indent=1).encode())


_printing = threading.Lock()


def _tell(name: str, seen: Seen, how: str = "") -> None:
    with _printing:
        print(
            f"{seen.result:8} {seen.seconds:6.1f} s  {name:32} {seen.by} {how}".rstrip(), flush=True
        )


def main() -> int:
    """Read the command line, try the bugs, and return 1 if one was not seen."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="bugs of the list; all of them unless given")
    parser.add_argument("--jobs", type=int, default=1, help="how many at a time")
    parser.add_argument("--again", action="store_true", help="also those found before")
    parser.add_argument("--list", action="store_true", help="say what there is, and try nothing")
    parser.add_argument("--root", type=Path, default=ROOT, help="the project")
    given = parser.parse_args()
    if given.jobs < 1:
        parser.error(f"--jobs {given.jobs}: at least 1 is needed")
    root = given.root.resolve()
    for number in (signal.SIGINT, signal.SIGTERM):  # also in the background, where one is ignored
        signal.signal(number, signal.default_int_handler)
    try:
        mutants = listed(root, given.names)
        if given.list:
            for mutant in mutants:
                print(f"{mutant.name:32} {mutant.file}: {mutant.why}")
            return 0
        found = run(root, mutants, jobs=given.jobs, again=given.again)
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Interrupted: the same command goes on from here.", file=sys.stderr)
        return 130
    red = sum(seen.result == RED for seen in found.values())
    print(f"{len(found)} bugs, {red} seen by a test, {len(found) - red} not.")
    return 0 if red == len(found) else 1


if __name__ == "__main__":
    sys.exit(main())
