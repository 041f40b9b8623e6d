"""The command line: `python -m supermarket --help`, or `supermarket --help` where it is installed.

Exit status: 0 done; 1 something failed, or (`check`) a verdict is not as expected; 2 a parameter
was refused; 130 stopped by Ctrl-C.
"""

import sys

if __name__ == "__main__" and not sys.flags.safe_path:
    sys.path.append(sys.path.pop(0))  # the working folder: a file there is to hide no library

import functools
import json
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from supermarket.experiment.files import PATH, OutsideError
from supermarket.validation import ParameterError, printable, said

LONGEST = 500  # letters of a sentence
UsageError = typer.BadParameter.__mro__[1]  # that of Click, which Typer brings along

app = typer.Typer(
    help="Run the experiments of the supermarket model, one by one or in sweeps.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Name = Annotated[str, typer.Argument(help="An experiment: see `list`.", metavar="NAME")]
Out = Annotated[Path, typer.Option("--out", help="Folder of the results.", metavar="DIR")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


def _one_sentence(stopped: str = "Stopped.") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """End a command with one sentence on stderr, whatever a person gave or did."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def wrapped(*arguments: Any, **options: Any) -> None:
            try:
                command(*arguments, **options)
            except ParameterError as error:
                sentence, status = str(error), 2
            except OutsideError as error:
                sentence, status = str(error), 1
            except BrokenPipeError:  # whoever reads has seen enough
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                raise typer.Exit(1) from None
            except OSError as error:
                sentence, status = _of_the_system(error), 1
            except KeyboardInterrupt:
                sentence, status = stopped, 130
            else:
                return
            typer.echo(said(sentence, str, LONGEST), err=True)
            raise typer.Exit(status)

        return wrapped

    return decorate


def _of_the_system(error: OSError) -> str:
    what = said(error.filename, str, PATH) if error.filename is not None else "A file"
    return f"{what}: {error.strerror or str(error) or type(error).__name__}."


def _print(data: Any, lines: list[str], as_json: bool) -> None:
    typer.echo(json.dumps(data, indent=1) if as_json else "\n".join(map(printable, lines)))


@app.command("list")
@_one_sentence()
def list_experiments(as_json: Json = False) -> None:
    """List the experiments."""
    from supermarket.experiment import catalogue

    found, bad = [], []
    for name in catalogue.names():
        try:
            found.append(catalogue.find_notebook(name))
        except ParameterError as error:
            bad.append(error)
    width = max((len(notebook.name) for notebook in found), default=0)
    lines = [f"{notebook.name:{width}}  {notebook.title}" for notebook in found]
    _print([{"name": nb.name, "title": nb.title} for nb in found], lines, as_json)
    if bad:
        raise bad[0]


@app.command()
@_one_sentence()
def describe(name: Name, as_json: Json = False) -> None:
    """Say what an experiment asks, and list its parameters."""
    from supermarket.experiment import catalogue

    notebook = catalogue.find_notebook(name)
    parameters = [
        {"name": p.name, "type": p.kind.type, "default": p.default, "meaning": p.meaning,
         "allowed": p.allowed}
        for p in notebook.parameters.values()
    ]  # fmt: skip
    lines = [notebook.title, "", notebook.question, "", "Parameters, with the values they have:"]
    for p in parameters:
        ranges = f" ({p['allowed']})" if p["allowed"] else ""
        lines.append(f"  {p['name']}={_typed(p['default'])}  # {p['meaning']}{ranges}")
    about = {"name": name, "title": notebook.title, "question": notebook.question}
    _print(about | {"parameters": parameters}, lines, as_json)


@app.command()
@_one_sentence("Stopped: nothing is kept of this run.")
def run(
    name: Name,
    out: Out,
    values: Annotated[
        list[str] | None,
        typer.Argument(
            help="Parameters to change: n=1000000 'd=[2, 10]'.", metavar="[NAME=VALUE]..."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Run one experiment: executed notebook, HTML page, figures, verdicts and their origin.

    The status is 0 when the run is done, whatever its verdicts: see `check`.
    """
    from supermarket.experiment import catalogue
    from supermarket.experiment import notebooks as runs

    given = catalogue.find_notebook(name).parse(values or [])
    result = runs.run(name, given, out, progress=True)
    lines = [_line(verdict) for verdict in result["verdicts"]]
    _print(result, [*lines, f"The page: {result['page']}"], as_json)


@app.command()
@_one_sentence("Stopped: a sweep keeps what was finished and goes on with the same command.")
def sweep(
    name: Name,
    grid: Annotated[Path, typer.Argument(help="YAML: parameters with lists of values.")],
    out: Out,
    workers: Annotated[
        int | None, typer.Option(help="Processes on this machine; one a core if not given.")
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(help="Address of a Dask scheduler.", metavar="tcp://HOST:PORT")
    ] = None,
    replicas: Annotated[int | None, typer.Option(help="Repetitions, with other seeds.")] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Repeat points that failed.")] = False,
    as_json: Json = False,
) -> None:
    """Run an experiment for every combination of a grid; the same command goes on after a stop."""
    from supermarket.experiment import grids, sweeps

    done = sweeps.sweep(
        name,
        grids.read_grid(grid, replicas),
        out,
        workers=workers,
        scheduler=scheduler,
        retry=retry,
    )
    line = (
        f"{done['points']} points in {out}, {done['before']} of them finished before, "
        f"{done['failed']} failed: {done['rows']} rows."
    )
    lines = [line]
    if done["failed"]:
        lines.append(f"`check {out}` shows the errors, and --retry computes these points again.")
    _print(done | {"out": str(out)}, lines, as_json)
    if done["failed"]:
        raise typer.Exit(1)


@app.command()
@_one_sentence()
def check(
    out: Annotated[
        Path, typer.Argument(help="Folder of runs or of a sweep, or build.", metavar="DIR")
    ],
    failed: Annotated[
        bool, typer.Option("--failed", help="Print only what is not as expected.")
    ] = False,
    summary: Annotated[
        bool, typer.Option("--summary", help="Print only counts, by kind and outcome.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show the verdicts of earlier runs; the status is 1 if one is a surprise or a point missing.

    In the built book, a surprise is what findings.yml, beside the notebooks, does not list for its
    profile, or lists and is gone. Elsewhere it is a claim that does not hold, or a negative control
    that does; one that is too blunt, or for which the run was too short, is neither.
    """
    from supermarket.experiment import checks
    from supermarket.experiment.verdicts import as_expected

    result = checks.check(out)
    if failed:
        result["verdicts"] = [v for v in result["verdicts"] if not as_expected(v)]
    if summary:
        del result["verdicts"]
    lines = [_line(verdict) for verdict in result.get("verdicts", [])]
    if summary:
        lines = _counts(result["kinds"])
    lines += [f"{error['count']} points failed: {error['error']}" for error in result["errors"]]
    if result["profile"]:
        lines += result["surprises"]
    found = [f"{count} {outcome}" for outcome, count in result["outcomes"].items()]
    controls = [f"{count} controls {what}" for what, count in result["controls"].items() if count]
    points = [f"{result[key]} points {key}" for key in ("failed", "missing") if result[key]]
    lines.append(", ".join(found + controls + points))
    _print(result, lines, as_json)
    if not result["passed"]:
        raise typer.Exit(1)


def _counts(kinds: dict[str, dict[str, int]]) -> list[str]:
    """Return a table of how many verdicts of each kind have each outcome."""
    outcomes = list(next(iter(kinds.values())))
    width = max(map(len, kinds))
    lines = ["  ".join([" " * width, *outcomes])]
    for kind, counts in kinds.items():
        cells = [f"{counts[outcome]:>{len(outcome)}}" for outcome in outcomes]
        lines.append("  ".join([f"{kind:{width}}", *cells]))
    return lines


def _typed(value: Any) -> str:
    """Return a value as it is typed on a command line."""
    text = value if isinstance(value, str) else json.dumps(value)
    return f"'{text}'" if set(text) & set(' "()[]') else text


_SIGNS = {"equal": "=", "at most": "≤", "at least": "≥", "exactly": "exactly"}


def _line(verdict: dict[str, Any]) -> str:
    """Return a verdict as a line: outcome, claim, numbers, and what a reader has to know."""
    from supermarket.experiment.digits import Digits
    from supermarket.experiment.verdicts import CONTROL, FAILS

    kind, outcome, shown = verdict["kind"], verdict["outcome"], Digits(verdict)
    word = "refused" if (kind, outcome) == (CONTROL, FAILS) else outcome
    how = "computed" if verdict["confidence"] is None else "measured"
    found = f"predicted {_SIGNS[verdict['relation']]} {shown.predicted}, {how} {shown.both}"
    if verdict["against"]:
        found += f", against {' and '.join(map(shown.at, verdict['against']))}"
    if verdict["refused"]:
        found += f": {verdict['refused']}"
    notes = [] if kind in ("paper", "derived") else [kind]
    notes += [f"outside its hypotheses: {failing}" for failing in verdict["hypotheses"]]
    if "why" in verdict:
        notes.append(f"known: {verdict['why']}")
    if "point" in verdict:
        at = ", ".join(f"{name}={value}" for name, value in verdict["values"].items())
        notes.append(f"point {verdict['point']}, replica {verdict['replica']}: {at}")
    return f"{word:13}  {verdict['claim']}: {found}" + "".join(f" [{note}]" for note in notes)


def main() -> None:
    """Run the command line as a program, and end it with its status."""
    from supermarket.experiment.jupyter import is_passed

    # What a machine has set up for other purposes is not ours: workers of a sweep get this too.
    for name in [name for name in os.environ if not is_passed(name)]:
        del os.environ[name]
    warnings.simplefilter("ignore")
    sys.warnoptions.clear()
    for stream in filter(None, (sys.stdout, sys.stderr)):  # None if it was closed
        stream.reconfigure(errors="backslashreplace")  # letters that a terminal does not have
    try:
        sys.exit(app(sys.argv[1:] or ["--help"], standalone_mode=False))
    except UsageError as error:
        where = f": see `{error.ctx.command_path} --help`." if error.ctx else "."
        why = said(error.format_message().rstrip("."), str, LONGEST - len(where))
        typer.echo(why + where, err=True)
        sys.exit(2)
    except typer.Abort:  # Ctrl-C, before a command had begun
        typer.echo("Stopped.", err=True)
        sys.exit(130)


if __name__ == "__main__":
    main()
