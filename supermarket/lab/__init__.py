"""Experiments from the command line: `python -m supermarket` runs everything in this folder.

`catalogue` knows the notebooks and their parameters; `runs` executes one of them, in a Jupyter
kernel of its own (`kernels`), with its figures on a `page`; `sweeps` computes the points of a grid
(`grids`) for their verdicts (`rows`): `points` does one of them, `schedulers` spread them over the
cores of this machine or over a Dask cluster; `checks` compares the verdicts of earlier runs with
what is expected.
"""


class LabError(Exception):
    """Something outside the parameters went wrong, such as a full disk; one sentence tells what."""
