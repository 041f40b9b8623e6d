"""The C twin of the network makes the same path, and its benchmark runs; nothing here is timed."""

import json
from unittest.mock import patch

import numpy as np
import pytest

from benchmarks import network as bench
from benchmarks.twins import find_compiler
from supermarket import Schedule, Supermarket, simulate
from supermarket.runs.jobs import network as fifo
from supermarket.service import Deterministic, Exponential, Lomax

pytestmark = pytest.mark.book  # what is compared with C is the compiled code


@pytest.fixture(scope="module")
def twin(tmp_path_factory):
    compiler = find_compiler()
    if compiler is None:
        pytest.skip("no C compiler")
    return bench.Twin(compiler, tmp_path_factory.mktemp("twin"))


@pytest.mark.parametrize(
    ("n", "d", "lam", "replacement", "service"),
    [
        (1, 1, 0.9, False, Exponential()),
        (300, 1, 0.9, False, Lomax(1.5)),
        (300, 3, 0.95, False, Lomax(2.5)),
        (300, 40, 0.95, False, Deterministic()),
        (300, 2, 0.9, True, Exponential()),
        (300, 40, 0.95, True, Exponential()),
    ],
)
def test_the_twin_makes_the_very_path(twin, n, d, lam, replacement, service):
    """Both read the same uniforms; blocks, levels and the lists of jobs run out on the way."""
    start = (np.full(n, 40), np.ones(n)) if n < 300 else "empty"
    model = Supermarket(n, d, lam, replacement=replacement, service=service)
    rule = {"seed": 5, "start": start, "engine": "jobs"}
    schedule = Schedule(30.0, warmup=0, batches=8)
    with patch.object(fifo, "BLOCK", 500), patch.object(fifo, "ROOM", 20):
        ours = simulate(model, schedule, **rule)
        with patch.dict(fifo.ADVANCE, fifo=twin):
            made = simulate(model, schedule, **rule)
    for name in ("profile", "squares", "maximum", "sojourn sums"):
        np.testing.assert_allclose(made.batches[name], ours.batches[name], rtol=1e-12)
    np.testing.assert_array_equal(made.batches["sojourns"], ours.batches["sojourns"])
    np.testing.assert_array_equal(made.ends, ours.ends)
    assert made.events == ours.events


def test_quick_benchmarks(twin, tmp_path, capsys):
    bench.main(["--quick", "--build", str(tmp_path)])
    results = json.loads((tmp_path / "network.json").read_text())
    assert [set(case["ns"]) for case in results["times"]] == [{"ours", "C"}, {"ours"}]
    assert all(case["same_path"] for case in results["times"])
    assert "ours / C" in capsys.readouterr().out


def test_the_time_of_a_million_servers_against_a_hundred(capsys):
    case = {"discipline": "fifo", "service": "Exponential()", "d": 2, "same_path": True}
    times = [case | {"n": n, "ns": {"ours": [ns]}} for n, ns in ((100, 50.0), (10**6, 80.0))]
    bench.report({"times": times, "others": {}, "machine": {}})
    assert "A million servers take 1.60 times as long as a hundred." in capsys.readouterr().out


def test_without_a_compiler_the_rest_still_runs(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(bench, "find_compiler", lambda: None)
    bench.main(["--quick", "--build", str(tmp_path)])
    assert "no C compiler" in capsys.readouterr().out


@pytest.mark.parametrize("factor", [1.0, 1.3])
def test_another_program_that_says_something_else_is_noticed(monkeypatch, factor):
    monkeypatch.setattr(bench, "installed", lambda name: True)

    def other(n, d, lam, horizon, warmup, batches, seed):
        run = simulate(
            Supermarket(n, d, lam), Schedule(4 * horizon, batches=batches), engine="jobs", seed=seed
        )
        return factor * run.batches["profile"][:, 1:].sum(axis=1), 1.0

    monkeypatch.setattr(bench, "LAM", 0.5)  # forgets sooner
    monkeypatch.setitem(bench.OTHERS, "simpy", other)
    assert bench.against("simpy", 200.0)["agree"] is (factor == 1.0)
