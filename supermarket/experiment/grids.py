"""The grid of a sweep: what a person wrote, checked, and the points that it makes."""

import itertools
import json
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from supermarket.experiment.catalogue import Notebook, depth
from supermarket.experiment.parameters import Parameter, plain, typed
from supermarket.experiment.rows import KEY
from supermarket.validation import ParameterError, integer

__all__ = ["Grid"]

MOST_POINTS = 10**6


@dataclass(frozen=True)
class Grid:
    """Values to combine, and how often each combination is repeated.

    Attributes
    ----------
    values : dict of str to list
        For each parameter, the values that it takes.
    replicas : int
        Repetitions of each combination, with seeds of their own.
    seed : int
        Root of these seeds.

    Examples
    --------
    >>> from supermarket.experiment.catalogue import find_notebook
    >>> from supermarket.experiment.grids import Grid, points_of
    >>> grid = Grid({"n": [100, 1000], "lam": [0.5]}, replicas=3, seed=1)
    >>> len(points_of(find_notebook("fixed_point"), grid))
    6
    """

    values: dict[str, list]
    replicas: int = 1
    seed: int = 1


class _Loader(yaml.BaseLoader):
    """YAML whose numbers are those of the command line: 01000 is no 512, and 12:30 no 750."""

    def number_or_text(self, node: yaml.ScalarNode) -> Any:
        """Return a number as it is written; a text, such as one in quotes, as it is."""
        value = typed(node.value) if node.style is None else node.value
        return value if type(value) in (int, float) else node.value


_Loader.add_constructor("tag:yaml.org,2002:str", _Loader.number_or_text)


def read_grid(path: Path, replicas: int | None = None) -> Grid:
    """Read a grid from YAML: parameters with lists of values, and ``replicas`` and ``seed``.

    Parameters
    ----------
    path : Path
        The file. ``replicas`` and ``seed`` are the sweep's own where they are single numbers; a
        list under ``replicas`` holds values for the notebook's parameter of that name.
    replicas : int, optional
        In place of those in the file, which then may not name any.

    Raises
    ------
    ParameterError
        If it can't be read, or names something twice.
    """
    try:
        text = path.read_text(encoding="utf-8")
        tree, values = yaml.compose(text, _Loader), yaml.load(text, _Loader)
    except OSError as error:
        raise ParameterError(f"{path} can't be read: {error.strerror}.") from None
    except RecursionError:
        raise ParameterError(f"{path} is nested too deeply: a list of values is enough.") from None
    except (yaml.YAMLError, ValueError) as error:
        raise ParameterError(f"{path} is not YAML: {' '.join(str(error).split())}.") from None
    if not isinstance(values, dict):
        raise ParameterError(f"{path} must map parameters to lists of values, such as lam: [0.5].")
    written = [key.value for key, _ in tree.value]
    if twice := [key for key in written if written.count(key) > 1]:
        raise ParameterError(f"{twice[0]} stands twice in {path}: write it once.")
    values = {str(key): value for key, value in values.items()}
    if "replicas" in values and not isinstance(values["replicas"], list):
        if replicas is not None:
            raise ParameterError(f"replicas stands in {path} and on the command line: give one.")
        replicas = values.pop("replicas")
    seed = values.pop("seed", 1)
    return Grid(values, 1 if replicas is None else replicas, seed)


@dataclass(frozen=True)
class Point:
    """One run of the notebook.

    Attributes
    ----------
    number, replica : int
        Of its combination of values, and of its repetition, from 0.
    values : dict
        What the notebook is given.
    """

    number: int
    replica: int
    values: dict[str, Any]

    @property
    def key(self) -> str:
        """Return the hash that names its file."""
        text = json.dumps([self.number, self.replica, self.values], sort_keys=True)
        return sha256(text.encode()).hexdigest()[:KEY]

    def file(self, out: Path) -> Path:
        """Return the file of its rows in the folder of a sweep."""
        return out / "points" / f"{self.key}.parquet"


def check_grid(notebook: Notebook, grid: Grid) -> Grid:
    """Return a grid with every value as its parameter has it.

    Raises
    ------
    ParameterError
        If something in it is unknown, refused by its parameter, ambiguous or too much.
    """
    own = notebook.parameters
    if "threads" in grid.values:
        raise ParameterError(
            "threads is 1 in a sweep, whose points run side by side: leave it out."
        )
    if isinstance(grid.seed, list):
        raise ParameterError(
            "seed is one number: every point gets a seed of its own, made from it."
        )
    replicas = integer("replicas", grid.replicas, 1, MOST_POINTS)
    seed = integer("seed", grid.seed, 0)
    if replicas > 1 and "seed" not in own:
        raise ParameterError(f"{notebook.name} has no seed, so its replicas would be equal: use 1.")
    values = {name: _values(notebook.parameter(name), given) for name, given in grid.values.items()}
    count = replicas * int(np.prod([len(entries) for entries in values.values()], dtype=object))
    if count > MOST_POINTS:
        raise ParameterError(f"The grid has {count} points: at most {MOST_POINTS} are allowed.")
    return Grid(values, replicas, seed)


def seed_of(seed: int, number: int, replica: int) -> int:
    """Return the seed of a point, that of no other: stream `replica` of stream `number`."""
    # As SeedSequence(seed).spawn(...)[number].spawn(...)[replica], in 63 bits.
    stream = np.random.SeedSequence(seed, spawn_key=(number, replica))
    return int(stream.generate_state(1, np.uint64)[0] >> np.uint64(1))


def points_of(notebook: Notebook, grid: Grid) -> list[Point]:
    """Return the points of a checked grid, each with a seed that depends on its place alone."""
    found = []
    for number, values in enumerate(itertools.product(*grid.values.values())):
        for replica in range(grid.replicas):
            given = dict(zip(grid.values, values, strict=True))
            if "threads" in notebook.parameters:
                given["threads"] = 1
            if "seed" in notebook.parameters:
                given["seed"] = seed_of(grid.seed, number, replica)
            found.append(Point(number, replica, given))
    return found


def _values(parameter: Parameter, given: object) -> list:
    """Return the values of one parameter, each as its kind has it."""
    name, form, given = parameter.name, depth(parameter.default), plain(given)
    example = json.dumps([parameter.default])
    if not isinstance(given, list) or not given:
        raise ParameterError(
            f"{name} = {given!r} is not a list of values: write {name}: "
            f"{json.dumps([given]) if type(given) is type(parameter.default) else example}."
        )
    _check_plain({name: given})
    if parameter.kind.type == "list":
        # [2, 3] could mean one run with both or two runs with one each.
        for value in given:
            if depth(value) != form:
                raise ParameterError(
                    f"{name} is itself a list, so its values in a grid are lists, and {value!r} is "
                    f"not one of that form: write {name}: {example} for one run with all of these."
                )
    values = [parameter.check(value) for value in given]
    if len({json.dumps(value) for value in values}) < len(values):
        raise ParameterError(f"{name} repeats a value: write each once, and use replicas.")
    return values


def _check_plain(values: dict[str, list]) -> None:
    """Refuse what YAML can write and a row can't hold: dates, bytes, a list within itself."""
    for name, given in values.items():
        try:
            json.dumps(given, allow_nan=False, ensure_ascii=False).encode()
        except (TypeError, ValueError, RecursionError):
            raise ParameterError(
                f"{name} holds something that is no finite number, plain text or list of these."
            ) from None
