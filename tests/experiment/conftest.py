"""A tiny experiment, so that a sweep of it takes seconds and can be made to fail as wished."""

import json
import os
import subprocess
import sys

import pytest

PARAMETERS = """from supermarket.experiment.parameters import Whole

n: Whole[1, 1000] = 10  # numbers that are drawn
lam: float = 0.5  # mean of each, # in jobs
d: list[Whole[1, 10]] = [1, 2]  # factors to compare
mood: str = "well"  # what happens on the way
seed: Whole[0] = 1  # fixes every random number
threads: Whole[1, 9] = 2  # runs side by side; the results do not depend on it"""
BEGIN = """import os
import pathlib
import time

import matplotlib.pyplot as plt
import numpy as np
from tqdm import tqdm

from supermarket import experiment
from supermarket.estimate.intervals import mean_interval
from supermarket.validation import arrival_rate

run = experiment.begin("tiny", globals())
arrival_rate(lam)  # so late that a sweep of others goes on
run.table"""
COMPUTE = """what, _, detail = mood.partition(" ")
if what == "sleep":
    time.sleep(float(detail))
if what == "raise":
    raise ZeroDivisionError("nothing to divide\\nby")
if what == "exit":
    raise SystemExit(3)
if what == "die" or (what == "once" and not pathlib.Path(detail).exists()):
    pathlib.Path(detail or os.devnull).touch()
    os.kill(os.getpid(), 9)
for _ in tqdm(range(3), disable=None):
    pass
draws = np.random.default_rng(seed).exponential(lam, n)"""
FIGURE = """figure, ax = plt.subplots(figsize=(2, 2))
ax.plot(draws);"""
VERDICT = """for factor in d:
    run.verdict(f"mean times {factor}", "tiny-mean", lam * factor,
                mean_interval(factor * draws, 0.99), d=factor)
run.finish()"""
LEDGER = """papers: {Someone2000: A paper}
statements:
- id: tiny-mean
  paper: Someone2000
  number: (1)
  name: Means
  standing: printed
  statement: The mean of draws of mean $\\lambda$, times a factor, tends to that of both.
  against: {what: a mean half as large again, scale: 0.5, why: a factor is at least 2}
  pages: [tiny]
"""


def cells():
    code = [(PARAMETERS, {"tags": ["parameters"]}), (BEGIN, {}), (COMPUTE, {})]
    shown = {"figure": {"name": "draws", "caption": "A < B."}, "image": {"alt": "Draws, in order."}}
    code += [(FIGURE, {"mystnb": shown}), (VERDICT, {})]
    text = "# A tiny experiment\n\nHow large is $a_1 b_1$ & $x < y$?\n\n"
    text += "```{prf:theorem} Of means\n:label: t\n\nBy {cite}`Someone2000`, $$a_1 \\to b_1.$$\n```"
    yield {"cell_type": "markdown", "id": "text", "metadata": {}, "source": text}
    for number, (source, metadata) in enumerate(code):
        rest = {"execution_count": None, "outputs": [], "source": source}
        yield {"cell_type": "code", "id": f"code-{number}", "metadata": metadata, **rest}


@pytest.fixture
def notebooks(tmp_path, monkeypatch):
    """A folder with the tiny experiment alone."""
    folder = tmp_path / "notebooks"
    folder.mkdir()
    metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    content = {"cells": list(cells()), "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    (folder / "tiny.ipynb").write_text(json.dumps(content))
    (folder / "statements.yml").write_text(LEDGER)
    monkeypatch.setenv("SUPERMARKET_NOTEBOOKS", str(folder))
    monkeypatch.delenv("SUPERMARKET_BUILD", raising=False)
    return folder


@pytest.fixture
def command(notebooks, tmp_path):
    """Run the command line as a person would."""

    def run(*words, **options):
        return subprocess.run(
            [sys.executable, "-m", "supermarket", *map(str, words)],
            cwd=tmp_path,
            env=dict(os.environ),
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
            **options,
        )

    return run
