"""The rows of a point of a sweep, and the Parquet file that holds them whole or not at all."""

import json
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from supermarket.experiment.files import write
from supermarket.experiment.plans import VERDICT

if TYPE_CHECKING:
    import pyarrow as pa

    from supermarket.experiment.catalogue import Notebook
    from supermarket.experiment.grids import Point

KEY = 24  # digits of the hash that names a point
# The types of columns, as Parquet calls them.
_NUMBER, _WHOLE, _TEXT = "double", "int64", "string"
_TYPES = {"int": _WHOLE, "float": _NUMBER, "str": _TEXT, "list": _TEXT}
_LISTS = {"against": [_NUMBER], "hypotheses": [_TEXT]}
_NUMBERS = ("predicted", "measured", "low", "high", "confidence", "effective")
_VERDICT = {
    **dict.fromkeys((*VERDICT, "error"), _TEXT),
    **dict.fromkeys(_NUMBERS, _NUMBER),
    **_LISTS,
}
_ORDER = {"experiment": _TEXT, "point": _WHOLE, "replica": _WHOLE}


def columns() -> set[str]:
    """Return the columns that every sweep has, which no parameter may be called."""
    from supermarket.experiment import points

    return {*_ORDER, *_VERDICT, *points.made()}


def table_of(notebook: "Notebook", point: "Point", outcome: Any) -> "pa.Table":
    """Return the rows of a point: one for each verdict, or a single one with its error."""
    import pyarrow as pa

    from supermarket.experiment import points
    from supermarket.experiment.schedulers import Died

    if isinstance(outcome, Died):
        outcome = {"verdicts": [], "parameters": {}, "error": str(outcome), "made": points.made()}
    given = {name: p.default for name, p in notebook.parameters.items()} | point.values
    given.pop("threads", None)  # says nothing about the result
    given = {
        name: json.dumps(value) if isinstance(value, list) else value
        for name, value in given.items()
    }
    order = {"experiment": notebook.name, "point": point.number, "replica": point.replica}
    verdicts = outcome["verdicts"] or [{"parameters": {}}]
    rows = []
    for verdict in verdicts:
        tracked = outcome["parameters"]
        at = {k: v for k, v in verdict["parameters"].items() if tracked.get(k, tracked) != v}
        rest = {"at": json.dumps(at), "error": outcome["error"], **outcome["made"]}
        rows.append({**order, **given, **verdict, **rest})
    types = {name: _TYPES[notebook.parameters[name].kind.type] for name in given}
    versions = dict.fromkeys(outcome["made"], _TEXT)
    columns = {**_ORDER, **types, **_VERDICT, **versions}
    return pa.Table.from_pylist(rows, pa.schema({name: _type(of) for name, of in columns.items()}))


def _type(named: str | list[str]) -> "pa.DataType":
    import pyarrow as pa

    return pa.list_(_type(named[0])) if isinstance(named, list) else pa.type_for_alias(named)


def files(out: Path) -> list[Path]:
    """Return the files of points in the folder of a sweep.

    Not those of other names, such as the copies that a program which syncs folders makes.
    """
    return [
        file
        for file in sorted((out / "points").glob("*.parquet"))
        if len(file.stem) == KEY and not set(file.stem) - set("0123456789abcdef")
    ]


def failed(table: "pa.Table") -> bool:
    """Tell whether a point ended with an error."""
    return table["error"].null_count < len(table)


def _digest(table: "pa.Table", key: str) -> bytes:
    text = json.dumps([key, table.schema.names, table.to_pylist()])
    return sha256(text.encode()).hexdigest().encode()


def keep(path: Path, table: "pa.Table", key: str) -> None:
    """Write the rows of the point with this key."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    buffer = pa.BufferOutputStream()
    pq.write_table(table.replace_schema_metadata({"rows": _digest(table, key)}), buffer)
    write(path, buffer.getvalue().to_pybytes())


def read(path: Path, key: str) -> "pa.Table | None":
    """Return the rows of a finished point, None if there are none or the file is damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(
            pa.BufferReader(path.read_bytes()),
            use_threads=False,  # else now and then an abort when this process ends
        )
        whole = (table.schema.metadata or {}).get(b"rows") == _digest(table, key)
    except (OSError, ValueError, TypeError, pa.ArrowException):
        return None
    return table.replace_schema_metadata() if whole else None
