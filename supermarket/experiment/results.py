"""What a sweep has finished, read back: its plan, and its rows as a frame."""

import itertools
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from supermarket.estimate.intervals import mean_interval
from supermarket.experiment import rows
from supermarket.experiment.grids import seed_of
from supermarket.experiment.plans import plan
from supermarket.validation import ParameterError, instance

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["read_sweep", "series"]


def read_sweep(out: str | Path) -> "pd.DataFrame":
    """Read what a sweep has finished, as a frame with one row for each verdict.

    Parameters
    ----------
    out : str or Path
        The folder of the sweep, which may still be at work.

    Returns
    -------
    DataFrame
        In the order of the points. The columns are experiment, point and replica; one for each
        parameter of the notebook, a list as the text of its JSON; the keys of a verdict
        (`supermarket.experiment.verdicts`), of which against and hypotheses are lists, and instead
        of its parameters a column for each name that verdicts give to their place in an experiment,
        such as at_d; error, of a point that failed and has no verdicts; and the versions of the
        package, its commit, Python and libraries.

    Raises
    ------
    ParameterError
        If it is not the folder of a sweep, is that of an older version, or a file in it is
        damaged.

    Examples
    --------
    >>> from supermarket import read_sweep
    >>> read_sweep("none")
    Traceback (most recent call last):
    supermarket.validation.ParameterError: none is not the folder of a sweep: it has no sweep.json.
    """
    import pandas as pd
    import pyarrow as pa

    out = Path(instance("out", out, (str, Path), "give a folder"))
    wanted = plan(out)
    combinations = list(itertools.product(*wanted["grid"].values()))
    tables = []
    for file in rows.files(out):
        table = rows.read(file, file.stem)
        if table is None:
            raise ParameterError(
                f"{file} is damaged: run the sweep again, which redoes that point."
            )
        if not _is_of(table.slice(0, 1).to_pylist()[0], wanted, combinations):
            raise ParameterError(f"{file} is a point of another sweep: take it away.")
        tables.append(table)
    if not tables:
        raise ParameterError(f"{out} holds no finished point yet: run the sweep again.")
    frame = pa.concat_tables(tables).to_pandas()
    frame = frame.sort_values(["point", "replica"], kind="stable", ignore_index=True)
    for name in ("against", "hypotheses"):
        frame[name] = [None if listed is None else list(listed) for listed in frame[name]]
    places = [json.loads(at) for at in frame["at"]]
    column = frame.columns.get_loc("at")
    frame = frame.drop(columns="at")
    for name in dict.fromkeys(itertools.chain(*places)):
        values = pd.Series([place.get(name) for place in places]).infer_objects()
        frame.insert(column, f"at_{name}", values)
        column += 1
    return frame


def _is_of(row: dict[str, Any], wanted: dict[str, Any], combinations: list[tuple]) -> bool:
    """Tell whether a row is of the sweep with this plan."""
    number, replica = row["point"], row["replica"]
    if not (number < len(combinations) and replica < wanted["replicas"]):
        return False
    values = dict(zip(wanted["grid"], combinations[number], strict=True))
    if "seed" in row:
        values["seed"] = seed_of(wanted["seed"], number, replica)
    return row["experiment"] == wanted["experiment"] and all(
        row[name] == (json.dumps(value) if isinstance(value, list) else value)
        for name, value in values.items()
    )


def series(frame: "pd.DataFrame", claim: str, x: str, confidence: float = 0.95) -> "pd.DataFrame":
    """Return one claim of a sweep against one parameter, the replicas of each value together.

    Parameters
    ----------
    frame : DataFrame
        From `read_sweep`.
    claim : str
        As in its column claim.
    x : str
        A parameter; what else varies in the sweep is not told apart.
    confidence : float
        In (0, 1), of all intervals together.

    Returns
    -------
    DataFrame
        One row for each value of `x`, in order: x under its name, source, predicted, and interval,
        the `Interval` of the mean over the replicas.

    Examples
    --------
    >>> import pandas as pd
    >>> from supermarket.experiment.results import series
    >>> rows = {"claim": "c", "d": [2, 2, 2], "source": "s", "predicted": 0.5}
    >>> frame = pd.DataFrame(rows | {"measured": [0.4, 0.5, 0.6]})
    >>> series(frame, "c", "d")["d"].tolist()
    [2]
    """
    import pandas as pd

    groups = frame[frame["claim"] == claim].groupby(x)
    lines = [
        {
            x: value,
            "source": group["source"].iloc[0],
            "predicted": group["predicted"].iloc[0],
            "interval": mean_interval(group["measured"], confidence, among=groups.ngroups),
        }
        for value, group in groups
    ]
    return pd.DataFrame(lines)
