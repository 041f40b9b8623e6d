"""The verdicts that earlier runs left in a folder."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from supermarket.validation import ParameterError


def check(out: Path) -> dict[str, Any]:
    """Return the verdicts in a folder of runs, of a sweep, or of the built book, and count them.

    Returns
    -------
    dict
        "verdicts", a list with experiment, claim, source, predicted, measured, low, high, holds,
        and of a sweep point, replica and values, those of its grid;
        "holds", "fails" and "undecided", how many of them do; of a sweep, "failed" and "missing"
        points, and "errors", each with its count.

    Raises
    ------
    ParameterError
        If there are no verdicts, or a file is damaged.
    """
    errors: Counter[str] = Counter()
    missing = 0
    if (out / "sweep.json").is_file():
        verdicts, errors, missing = _of_sweep(out)
    else:
        verdicts = _of_runs(out)
    found = Counter(verdict["holds"] for verdict in verdicts)
    return {
        "holds": found[True],
        "fails": found[False],
        "undecided": found[None],
        "failed": errors.total(),
        "missing": missing,
        "errors": [{"error": error, "count": count} for error, count in errors.most_common()],
        "verdicts": verdicts,
    }


def _of_runs(out: Path) -> list[dict[str, Any]]:
    verdicts = []
    for file in sorted((out / "verdicts").glob("*.json")):
        try:
            listed = json.loads(file.read_text(encoding="utf-8"))
            verdicts += [{"experiment": file.stem} | dict(verdict) for verdict in listed]
        except (OSError, ValueError, TypeError):
            raise ParameterError(f"{file} is damaged: run the experiment again.") from None
    if not verdicts:
        raise ParameterError(f"{out} holds no verdicts of a run or sweep: name its --out folder.")
    return verdicts


def _of_sweep(out: Path) -> tuple[list[dict[str, Any]], Counter[str], int]:
    from supermarket.lab import sweeps  # pyarrow takes a while to import

    frame = sweeps.read_sweep(out)
    points = frame.drop_duplicates(["point", "replica"])
    errors = Counter(points["error"].dropna())
    missing = sweeps.plan(out)["points"] - len(points)
    keys = ["experiment", "point", "replica", "claim", "source", "predicted", "measured"]
    keys += ["low", "high", "holds"]
    rows = frame.loc[frame["claim"].notna(), keys].astype(object)
    verdicts = rows.where(rows.notna(), None).to_dict("records")
    swept = frame.loc[rows.index, list(sweeps.plan(out)["grid"])].to_dict("records")
    verdicts = [
        verdict | {"values": values} for verdict, values in zip(verdicts, swept, strict=True)
    ]
    return verdicts, errors, missing
