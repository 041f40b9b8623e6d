"""A new policy, end to end: one file, its prediction, a notebook, a line in the table of contents,
an entry of the ledger, and no other edit.

The policy: join an idle queue if one was looked at, else any of those that were looked at.
"""

import json
import os
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[2]

POLICY = '''\
"""Join an idle queue if one of the d looked at is idle, else a random one of these."""

from supermarket.kernels.borrowed import inlined
from supermarket.kernels.event_loop import event_loop
from supermarket.policies import Policy


@inlined
def join(w, s, top, rule, aux):
    """Return the length of the queue joined: beta[1] is the chance that none is idle."""
    if w >= aux.beta[1]:
        return 0
    v = w / aux.beta[1] * s[1]  # uniform among the busy queues
    i = top
    while s[i] <= v:
        i -= 1
    return i


def naive(lengths, seen, kept):
    """Join the first idle one, else any."""
    idle = [queue for queue in seen if lengths[queue] == 0]
    if idle:
        return [(1.0, idle[0], kept)]
    return [(1 / len(seen), queue, kept) for queue in seen]


POLICY = Policy(loop=event_loop(join), naive=naive)
'''

LIMIT = '''\
"""Idle queues first: the limit of many queues."""

import numpy as np
from numpy.typing import NDArray

from supermarket.models.jsq import Supermarket, numbers_of
from supermarket.validation import integer

__all__ = ["idle_first_fixed_point"]


def idle_first_fixed_point(model: Supermarket, levels: int) -> NDArray[np.float64]:
    """Return the share of queues with at least k jobs, lam**(1 + (k - 1) d), k = 0..levels.

    A busy queue is joined where all d are busy, with probability lam**d, and then its length does
    not matter: u_{k+1} = lam lam**d (u_k / lam).

    Parameters
    ----------
    model : Supermarket
        Of the policy "idle first"; its n does not matter.
    levels : int
        Last level wanted, at least 1.

    Examples
    --------
    >>> from supermarket import Supermarket, idle_first_fixed_point
    >>> idle_first_fixed_point(Supermarket(10, 2, 0.5, policy="idle first"), 3).tolist()
    [1.0, 0.5, 0.125, 0.03125]
    """
    _, d, lam = numbers_of(model, "idle first")
    k = np.arange(1.0, integer("levels", levels, 1) + 1)
    return np.append(1.0, lam ** (1 + (k - 1) * d))
'''

ENTRY = """
- id: here-idle-first
  paper: here
  name: Idle queues first
  standing: derived
  statement: |
    If jobs join an idle queue where one of the $d$ looked at is idle, and any of these otherwise,
    then as $n \\to \\infty$ a share of $\\lambda^{1 + (k - 1) d}$ of the queues has at least
    $k \\ge 1$ jobs.
  hypotheses:
    - $\\lambda < 1$ and $d$ are fixed as $n \\to \\infty$
  against:
    what: the share if a shortest queue were joined
    value: relatives:plain_share
  predicts: [supermarket.limits.mean_field.idle_first:idle_first_fixed_point]
  pages: [idle_first]
"""

CELLS = [
    ("markdown", "# Idle queues first\n\nIs an idle queue all that one has to find?", {}),
    ("code", """\
from supermarket.experiment.parameters import Load, Whole

n: Whole[10, 1e9] = 20000  # number of queues
d: Whole[2, 100] = 2  # number of choices
lam: Load = 0.8  # arrival rate per queue
seed: Whole[0] = 1  # fixes every random number""", {"tags": ["parameters"]}),
    ("code", """\
from supermarket import Schedule, Supermarket, experiment, idle_first_fixed_point, simulate
from supermarket.experiment import plotting

run = experiment.begin("idle_first", globals())
run.table""", {"tags": ["hide-input"]}),
    ("code", """\
shop = Supermarket(n, d, lam, policy="idle first")
found = simulate(shop, Schedule(1600, warmup=100), seed=seed)
predicted = idle_first_fixed_point(shop, 12)
figure, (ax,) = plotting.axes()
ax.semilogy(predicted)
ax.semilogy(found.profile[:13], "o");""", {
        "tags": ["hide-input"],
        "mystnb": {
            "image": {"alt": "A falling line and points on it."},
            "figure": {"caption": "The share of queues with at least k jobs.", "name": "idle"},
        },
    }),
    ("code", """\
for k in (2, 3):
    share = found.interval("profile", 0.99, at=k, among=2, relaxation_time=20)
    run.verdict(
        f"share of queues with {k} jobs or more", "here-idle-first", predicted[k], share,
        n=n, d=d, lam=lam, k=k,
    )
run.finish()""", {"tags": ["hide-input"]}),
]  # fmt: skip
ADDED = {
    "supermarket/policies/idle_first.py",
    "supermarket/limits/mean_field/idle_first.py",
    "notebooks/idle_first.ipynb",
}
EDITED = {"_toc.yml", "supermarket/statements.yml"}


def contents(project):
    return {
        str(file.relative_to(project)): sha256(file.read_bytes()).hexdigest()
        for file in project.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts and "build" not in file.parts
    }


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Copy what the package, the book and the contract need, and make the edits."""
    project = tmp_path_factory.mktemp("toy") / "project"
    parts = "supermarket", "notebooks", "book", "tools", "tests", "_toc.yml", "_config.yml"
    for part in (*parts, "pyproject.toml", "requirements.txt"):
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, project / part)
        else:
            shutil.copy(ROOT / part, project / part)
    before = contents(project)
    (project / "supermarket/policies/idle_first.py").write_text(POLICY)
    (project / "supermarket/limits/mean_field/idle_first.py").write_text(LIMIT)
    notebook = nbformat.v4.new_notebook(
        metadata={
            "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
            "language_info": {"name": "python"},
        }
    )
    for kind, text, metadata in CELLS:
        notebook.cells.append(getattr(nbformat.v4, f"new_{kind}_cell")(text, metadata=metadata))
    nbformat.write(notebook, project / "notebooks/idle_first.ipynb")
    with (project / "supermarket/statements.yml").open("a") as ledger:
        ledger.write(ENTRY)
    toc = (project / "_toc.yml").read_text()
    line = "      - file: notebooks/memory\n"
    assert line in toc
    (project / "_toc.yml").write_text(
        toc.replace(line, f"{line}      - file: notebooks/idle_first\n")
    )
    after = contents(project)
    assert {file for file in after if file not in before} == ADDED
    assert {file for file in before if after[file] != before[file]} == EDITED
    return project


def call(project, *arguments):
    environment = os.environ | {"PYTHONPATH": str(project), "MPLBACKEND": "agg"}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=project, env=environment, text=True, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
    return done.stdout


def test_the_policy_is_a_small_file():
    assert len(POLICY.splitlines()) <= 60


@pytest.mark.book
def test_the_command_line_and_a_sweep_know_it(project, tmp_path):
    assert "idle_first" in call(project, "-m", "supermarket", "list")
    said = call(project, "-m", "supermarket", "run", "idle_first", "n=5000", "--out", str(tmp_path))
    assert said.count("holds") >= 2
    (tmp_path / "grid.yaml").write_text("{n: [2000], lam: [0.5, 0.7], seed: 3}")
    swept = str(tmp_path / "swept")
    call(project, "-m", "supermarket", "sweep", "idle_first", str(tmp_path / "grid.yaml"),
         "--out", swept, "--workers", "1")  # fmt: skip
    read = f"from supermarket import read_sweep; print(*read_sweep({swept!r})['outcome'])"
    assert call(project, "-c", read).split().count("holds") >= 3


@pytest.mark.book
def test_the_contract_and_the_checks_of_names_find_it(project):
    said = call(project, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0",
                "tests/policies/test_contract.py", "tests/test_imports.py",
                "tests/test_doctests.py", "-k", "idle or rooms")  # fmt: skip
    assert " failed" not in said
    assert int(said.rpartition(" passed")[0].split()[-1]) > 12


@pytest.mark.book
def test_it_has_its_page_in_the_book(project):
    """With a short table of contents, for the time that it takes."""
    kept = {"statements", "references", "scoreboard"}
    pages = ["notebooks/idle_first", "book/scoreboard", "book/references"]
    chapters = "".join(f"  - file: {page}\n" for page in pages)
    toc = f"format: jb-book\nroot: book/statements\nchapters:\n{chapters}"
    (project / "_toc.yml").write_text(toc)
    for file in (project / "book").glob("*.md"):
        if file.stem not in kept:
            file.unlink()
    findings = project / "notebooks/findings.yml"
    findings.write_text("book: []\n")
    said = call(project, "-m", "tools.book", "--root", str(project), "--profile", "book")
    page = (project / "build/html/notebooks/idle_first.html").read_text()
    assert "Idle queues first" in page, said
    found = json.loads((project / "build/verdicts/idle_first.json").read_text())
    assert [verdict["outcome"] for verdict in found] == ["holds", "holds"]
