"""The C twins make the same chain, and the benchmarks run; nothing here is timed."""

import json
from math import inf

import numpy as np
import pytest

from benchmarks import __main__ as bench
from benchmarks import others, twins
from supermarket import Schedule, Supermarket, fixed_point, simulate

pytestmark = pytest.mark.book  # what is compared with C is the compiled code


@pytest.fixture(scope="module")
def c(tmp_path_factory):
    compiler = twins.find_compiler()
    if compiler is None:
        pytest.skip("no C compiler")
    return twins.Twins(compiler, tmp_path_factory.mktemp("twins"))


@pytest.mark.parametrize("twin", ["plain", "table"])
@pytest.mark.parametrize(
    ("n", "d", "lam"), [(1, 2, 0.9), (300, 1, 0.9), (300, 2, 0.9), (10**9, 2, 0.9), (300, 70, 0.99)]
)
def test_a_twin_takes_the_very_steps_of_our_engine(c, twin, n, d, lam):
    # Both read the same uniforms in the same order; from an empty start the room has to grow.
    given = Supermarket(n, d, lam), Schedule(50_000, warmup=0, batches=8, unit="steps")
    made = c.simulate(twin, *given, seed=5, start=[1.0])
    engine = "scan" if twin == "plain" else "table"
    ours = simulate(*given, seed=5, start="empty", engine=engine)
    np.testing.assert_array_equal(made.final, ours.final)
    np.testing.assert_allclose(made.batches["profile"], ours.batches["profile"], rtol=1e-13)
    np.testing.assert_allclose(made.batches["maximum"], ours.batches["maximum"], rtol=1e-13)


@pytest.mark.parametrize(("n", "d", "lam"), [(1, 2, 0.9), (300, 1, 0.9), (300, 2, 0.9)])
def test_the_twin_of_the_replicas_takes_their_very_steps(c, n, d, lam):
    # From an empty start the levels have to grow; the replicas finish at different times.
    given = Supermarket(n, d, lam), Schedule(9000 / n, warmup=0, batches=8)
    made = c.simulate_lanes(*given, copies=66, seed=5, start="empty")
    ours = simulate(*given, copies=66, seed=5, start="empty")
    for a, b in zip(made, ours, strict=True):
        np.testing.assert_array_equal(a.final, b.final)
        np.testing.assert_array_equal(a.batches["profile"], b.batches["profile"])
        np.testing.assert_array_equal(a.batches["maximum"], b.batches["maximum"])


@pytest.mark.parametrize("twin", ["plain", "table"])
@pytest.mark.parametrize(("d", "lam"), [(1, 0.6), (2, 0.8), (50, 0.95)])
def test_a_twin_stays_near_the_fixed_point(c, twin, d, lam):
    # At n = 10**5 the fixed point is off by some 1 / n; the noise is ten times that and more.
    n, levels = 10**4, 4
    profile = fixed_point(Supermarket(inf, d, lam), 40)
    run = c.simulate(twin, Supermarket(n, d, lam), Schedule(3000), seed=6, start=profile)
    interval = run.interval("profile", 1 - 1e-5, among=levels - 1)  # false alarm: 1e-5 a run
    for i in range(1, levels):
        if profile[i] * n > 100:
            assert interval[i].low - 2 / n <= profile[i] <= interval[i].high + 2 / n


def test_without_a_compiler_the_rest_still_runs(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(bench, "find_compiler", lambda: None)
    monkeypatch.setattr(bench, "growth", lambda n, steps: 0.0)
    bench.main(["--quick", "--build", str(tmp_path)])
    assert "no C compiler" in capsys.readouterr().out
    results = json.loads((tmp_path / "benchmarks.json").read_text())
    few, many = ({*case["ns"]} for case in results["times"])
    assert few - {"lanes"} == many == {*bench.ENGINES, "labelled"}
    assert "lanes" in few


def test_quick_benchmarks(c, tmp_path, capsys):
    bench.main(["--quick", "--build", str(tmp_path)])
    shown = capsys.readouterr().out
    assert "table / C table" in shown
    assert "replicas / C replicas" in shown
    results = json.loads((tmp_path / "benchmarks.json").read_text())
    assert len(results["times"]) == len(bench.QUICK)
    for case in results["times"]:
        assert all(len(taken) == 2 and min(taken) > 0 for taken in case["ns"].values())
    # 10**12 queues: whatever held one byte for each of them would be a million MB.
    assert results["memory_growth_mb"]["1e+12"] < results["memory_growth_mb"]["1e+03"] + 8
    assert results["machine"]["compiler"] != "none"
    for name, other in results["others"].items():
        assert (other == "not installed") != others.installed(name)
        assert other == "not installed" or other["agree"] in (True, None)
        if other == "not installed":
            assert f"{name}: not installed." in shown


def test_disagreement_is_noticed(monkeypatch):
    def wrong(n, d, lam, horizon, warmup, batches, seed):
        return np.random.default_rng(seed).normal(2.5, 0.01, batches), 1.0

    monkeypatch.setitem(bench.OTHERS, "json", wrong)
    monkeypatch.setattr(bench, "OTHERS_CASE", (2, 0.7, 10))
    assert bench.against("json", 100.0)["agree"] is False
