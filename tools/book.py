"""Make the book: `python -m tools.book --profile book`, or `make book`."""

import argparse
import json
import os
import platform
import re
import shutil
import sys
import tempfile
import time
from hashlib import sha256
from pathlib import Path

from supermarket.experiment.files import OutsideError, alone
from supermarket.experiment.jupyter import Limits
from tools import BuildError, check_notebooks, digest, pages, runs

ROOT = Path(__file__).resolve().parents[1]
TOOLS = Path(__file__).parent
ANSI = re.compile(r"\x1b\[[0-9;]*m")


def build(
    root: Path,
    profile: str,
    jobs: int,
    *,
    html: bool = True,
    again: bool = False,
    limits: Limits | None = None,
) -> None:
    """Bring the executed notebooks of a profile, then the pages, up to date.

    Once a notebook has to run or a page to be built, the pages of before are removed, and
    `build/html` is there again only if all went well. So are, once a notebook has to run, the
    verdicts of before. What is refused before that (an unknown profile, a notebook with results)
    leaves them as they are.

    Parameters
    ----------
    root : Path
        The project.
    profile : str
        A name in `notebooks/profiles.yml`.
    jobs : int
        How many notebooks to execute at a time.
    html : bool
        Whether to build the pages too.
    again : bool
        Whether to execute every notebook, whatever is there or kept.
    limits : Limits, optional
        How long each notebook may take.

    Raises
    ------
    BuildError
        If a notebook fails, a page has a fault, or the project's files contradict one another.
    OutsideError
        If another build of the same project is at work.
    """
    (root / "build").mkdir(exist_ok=True)
    with alone(root / "build" / "lock", f"Another build is at work in {root}: wait for it."):
        _build(root, profile, jobs, html=html, again=again, limits=limits)


def _build(
    root: Path, profile: str, jobs: int, *, html: bool, again: bool, limits: Limits | None
) -> None:
    if check_notebooks.main(root):
        raise BuildError("The committed notebooks must hold no results.")
    listed = pages.listed(root)
    plan = runs.plan(root, profile, [page for page in listed if page.suffix == ".ipynb"])
    stale = plan if again else [run for run in plan if not runs.is_current(run, root)]
    if not again and (fetched := [run for run in stale if runs.fetch(run, root)]):
        stale = [run for run in stale if run not in fetched]
        _say(f"Kept from earlier builds: {', '.join(run.name for run in fetched)}")
    target, stamp = root / "build" / "html", root / "build" / "html.sha256"
    if stale or not (target / "index.html").is_file() or _read(stamp) != _state(root, plan):
        shutil.rmtree(target, ignore_errors=True)
    if stale:
        runs.withdraw(root)
    for run in stale:
        runs.check_parameters(run)
    if stale and (failed := runs.execute(stale, root, jobs, _say, limits)):
        names = ", ".join(run.name for run in failed)
        raise BuildError(
            f"No book: {names} failed, as shown above; build/failed keeps what was executed."
        )
    runs.publish(plan, root, profile)
    if not html:
        return
    if target.exists():
        _say("Nothing has changed since the book was built")
    else:
        state = _state(root, plan)
        _build_pages(root, plan, listed, target)
        stamp.write_text(state, encoding="utf-8")
    index = target / "index.html"
    _say(f"The book, profile {profile}: {index}\n{index.as_uri()}")


def _build_pages(root: Path, plan: list[runs.Run], listed: list[Path], target: Path) -> None:
    """Build the pages aside, and move them to `target` once nothing is wrong with them."""
    from tools.check_pages import check_pages  # the parser is not needed when nothing changed

    start = time.monotonic()
    _say("Building the pages")
    for left in (root / "build").glob("pages-*"):  # of a build that was killed
        shutil.rmtree(left, ignore_errors=True)
    # A name of its own: the Sphinx of a build that was killed goes on for a while.
    aside = Path(tempfile.mkdtemp(prefix="pages-", dir=root / "build"))
    try:
        built = pages.build_html(pages.stage(root, plan), aside)
        names = [page.relative_to(root).with_suffix("").as_posix() for page in listed]
        if faults := check_pages(built, names):
            raise BuildError("No book, because of these pages:\n" + "\n".join(faults))
        built.rename(target)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    _say(f"Built in {time.monotonic() - start:.0f} s")


def _state(root: Path, plan: list[runs.Run]) -> str:
    """Return one hash of everything that the pages are made from."""
    files = [root / "_config.yml", root / "_toc.yml", root / "requirements.txt"]
    files += sorted(file for file in (root / "book").rglob("*") if file.is_file())
    files += sorted(TOOLS.glob("*.py"))
    files += sorted((root / "supermarket").rglob("*.py"))  # the API reference
    files += sorted((root / "supermarket").rglob("*.yml"))  # the boxes and the page of the ledger
    files += sorted((root / "supermarket").rglob("*.css"))
    files += [root / "notebooks" / "findings.yml"]
    files += [run.notebook for run in plan]  # their prose
    files += [file for run in plan for file in run.results().values()]
    state = [platform.python_version(), *((str(file), digest(file)) for file in files)]
    return sha256(json.dumps(state).encode()).hexdigest()


def _read(file: Path) -> str | None:
    return file.read_text(encoding="utf-8") if file.is_file() else None


def _say(text: str) -> None:
    """Print progress at once, without colours where they would be noise."""
    colours = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    print(text if colours else ANSI.sub("", text), flush=True)


def main() -> int:
    """Read the command line, build, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.book", description=__doc__)
    parser.add_argument("--profile", default="book", help="parameters, from notebooks/profiles.yml")
    parser.add_argument("--jobs", type=int, default=2, help="notebooks to execute at a time")
    parser.add_argument("--no-html", action="store_true", help="execute the notebooks, no pages")
    parser.add_argument("--again", action="store_true", help="execute every notebook anew")
    parser.add_argument("--root", type=Path, default=ROOT, help="the project (default: this one)")
    parser.add_argument(
        "--cell-limit", type=float, default=30, help="minutes that a cell may take", metavar="MIN"
    )
    parser.add_argument(
        "--limit", type=float, default=60, help="minutes that a notebook may take", metavar="MIN"
    )
    given = parser.parse_args()
    for name, least in (("jobs", 1), ("limit", 1e-3), ("cell_limit", 1e-3)):
        if not getattr(given, name) >= least:
            option = f"--{name.replace('_', '-')}"
            parser.error(f"{option} {getattr(given, name)}: at least {least:g} is needed")
    try:
        build(
            given.root.resolve(),
            given.profile,
            given.jobs,
            html=not given.no_html,
            again=given.again,
            limits=Limits(given.cell_limit, given.limit),
        )
    except (BuildError, OutsideError) as error:
        print(ANSI.sub("", str(error)), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Interrupted: finished notebooks are kept.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
