"""The command line: `python -m supermarket --help`.

Exit status: 0 done; 1 something failed, or (`check`) a claim does not hold; 2 a parameter was
refused; 130 stopped by Ctrl-C.
"""

import functools
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from supermarket.lab import LabError
from supermarket.validation import ParameterError

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


def _one_sentence(command: Callable[..., Any]) -> Callable[..., Any]:
    """End a command with one sentence on stderr, whatever a person gave or did."""

    @functools.wraps(command)
    def wrapped(*arguments: Any, **options: Any) -> None:
        try:
            command(*arguments, **options)
        except ParameterError as error:
            sentence, status = str(error), 2
        except LabError as error:
            sentence, status = str(error), 1
        except OSError as error:
            sentence, status = f"{error.filename or 'A file'}: {error.strerror}.", 1
        except KeyboardInterrupt:
            sentence, status = (
                "Stopped: a sweep keeps what was finished and goes on with the same command.",
                130,
            )
        else:
            return
        typer.echo(sentence, err=True)
        raise typer.Exit(status)

    return wrapped


def _print(data: Any, lines: list[str], as_json: bool) -> None:
    typer.echo(json.dumps(data, indent=1) if as_json else "\n".join(lines))


@app.command("list")
@_one_sentence
def list_experiments(as_json: Json = False) -> None:
    """List the experiments."""
    from supermarket.lab import catalogue

    found = [catalogue.find(name) for name in catalogue.names()]
    width = max(len(notebook.name) for notebook in found)
    lines = [f"{notebook.name:{width}}  {notebook.title}" for notebook in found]
    _print([{"name": nb.name, "title": nb.title} for nb in found], lines, as_json)


@app.command()
@_one_sentence
def describe(name: Name, as_json: Json = False) -> None:
    """Say what an experiment asks, and list its parameters."""
    from supermarket.lab import catalogue

    notebook = catalogue.find(name)
    parameters = [
        {"name": p.name, "type": p.type, "default": p.default, "meaning": p.meaning}
        for p in notebook.parameters.values()
    ]
    lines = [notebook.title, "", notebook.question, "", "Parameters, with the values they have:"]
    lines += [f"  {p['name']}={_typed(p['default'])}  # {p['meaning']}" for p in parameters]
    about = {"name": name, "title": notebook.title, "question": notebook.question}
    _print(about | {"parameters": parameters}, lines, as_json)


@app.command()
@_one_sentence
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
    from supermarket.lab import catalogue, runs

    given = catalogue.find(name).parse(values or [])
    result = runs.run(name, given, out, progress=True)
    lines = [_line(verdict) for verdict in result["verdicts"]]
    _print(result, [*lines, f"The page: {result['page']}"], as_json)


@app.command()
@_one_sentence
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
    from supermarket.lab import grids, sweeps

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
@_one_sentence
def check(
    out: Annotated[Path, typer.Argument(help="Folder of runs or of a sweep.", metavar="DIR")],
    as_json: Json = False,
) -> None:
    """Show the verdicts of earlier runs; the status is 1 if a claim fails or a point is missing.

    A claim for which the run was too short stays undecided, and does not count as failed.
    """
    from supermarket.lab import checks

    result = checks.check(out)
    lines = [_line(verdict) for verdict in result["verdicts"]]
    lines += [f"{error['count']} points failed: {error['error']}" for error in result["errors"]]
    counts = {key: result[key] for key in ("holds", "fails", "undecided", "failed", "missing")}
    lines.append(", ".join(f"{count} {what}" for what, count in counts.items()))
    _print(result, lines, as_json)
    if result["fails"] or result["failed"] or result["missing"]:
        raise typer.Exit(1)


def _typed(value: Any) -> str:
    """Return a value as it is typed on a command line."""
    text = value if isinstance(value, str) else json.dumps(value)
    return f"'{text}'" if set(text) & set(' "()[]') else text


def _line(verdict: dict[str, Any]) -> str:
    word = {True: "holds", False: "FAILS", None: "undecided"}[verdict["holds"]]
    low, high = verdict["low"], verdict["high"]
    interval = "no interval" if low is None else f"{low:.6g} to {high:.6g}"
    found = f"predicted {verdict['predicted']:.6g}, measured {verdict['measured']:.6g}, {interval}"
    place = ""
    if "point" in verdict:
        at = ", ".join(f"{name}={value}" for name, value in verdict["values"].items())
        place = f" [point {verdict['point']}, replica {verdict['replica']}: {at}]"
    return f"{word:9}  {verdict['claim']}: {found}{place}"


if __name__ == "__main__":
    sys.exit(app())
