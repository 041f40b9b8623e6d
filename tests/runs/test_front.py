"""What every run keeps to, whatever its model and engine: one contract for all of them."""

import math
from dataclasses import fields, replace

import numpy as np
import pytest
import scipy.stats
from numpy.random import SeedSequence
from oracles import asked

from supermarket import (
    Lomax,
    ParameterError,
    PhaseType,
    PoolSystem,
    Run,
    Schedule,
    Supermarket,
    couple,
    jackson_network,
    leap,
    relaxation_time,
    server_pools,
    simulate,
)
from supermarket.runs.schedule import spawned
from supermarket.service import Empirical, GivenScipy

SHOP = Supermarket(12, 2, 0.7)
MEMORY = replace(SHOP, policy="memory")
NETWORK = jackson_network([0.3, 0.1], [[0.0, 0.5], [0.2, 0.0]], 2, names=["a", "b"])
STATIONS = replace(NETWORK, n=12)
POOLS = PoolSystem(server_pools([0.5, 0.5], [lambda x: -x * x] * 2, levels=30), 12, 2.5)
# Each kind of run: its model, and the engine if there is a choice.
KINDS = {
    "scan": (SHOP, "scan"),
    "table": (SHOP, "table"),
    "ranks": (SHOP, "ranks"),
    "bursts": (SHOP, "bursts"),
    "lanes": (SHOP, "lanes"),
    "labelled": (SHOP, "labelled"),
    "distinct, labelled": (replace(SHOP, replacement=False), "labelled"),
    "jobs": (SHOP, "jobs"),
    "heavy": (replace(SHOP, service=Lomax(2.5)), "auto"),
    "sharing": (replace(SHOP, discipline="ps"), "auto"),
    "interrupted": (replace(SHOP, discipline="lifo", replacement=False), "auto"),
    "memory, scan": (MEMORY, "scan"),
    "memory, table": (MEMORY, "table"),
    "stations": (STATIONS, "auto"),
    "pools": (POOLS, "auto"),
    "threshold": (replace(POOLS, policy="threshold"), "auto"),
    "leaps": (Supermarket(10**6, 5, 0.9), "leaps"),
}
# Lanes take a minute without the JIT, where tests of their own run them.
PARAMS = {kind: pytest.param(kind, marks=[pytest.mark.book] * (kind == "lanes")) for kind in KINDS}
every_kind = pytest.mark.parametrize("kind", PARAMS.values())
of_simulate = pytest.mark.parametrize("kind", [PARAMS[kind] for kind in KINDS if kind != "leaps"])


def run_of(kind, schedule=10, seed=1, **more):
    """Run a kind; of lanes, which go many at a time, the first one."""
    model, engine = KINDS[kind]
    if engine == "leaps":
        return leap(model, schedule, seed=seed, **more)
    if engine == "lanes":
        return simulate(model, schedule, seed=seed, engine=engine, copies=1, **more)[0]
    return simulate(model, schedule, seed=seed, engine=engine, **more)


def copies_of(kind, copies, **more):
    model, engine = KINDS[kind]
    return simulate(model, Schedule(8, times=[3]), seed=5, engine=engine, copies=copies, **more)


def same(a, b):
    for field in fields(a):
        if field.name != "stations":
            np.testing.assert_equal(getattr(a, field.name), getattr(b, field.name), field.name)
    assert a.stations.keys() == b.stations.keys()
    for name, station in a.stations.items():
        same(station, b.stations[name])


@every_kind
def test_a_run_says_what_made_it(kind):
    model, engine = KINDS[kind]
    schedule = Schedule(10, batches=16, times=[0, 2.5, 10])
    run = run_of(kind, schedule, SeedSequence(3, spawn_key=() if engine == "lanes" else (4,)))
    assert (run.model, run.schedule) == (model, schedule)
    assert run.seed == (3, (0,) if engine == "lanes" else (4,))
    assert run.engine == engine or engine == "auto"
    assert run.start in ("fixed point", "empty", "optimum")
    assert run.times.tolist() == [0, 2.5, 10]
    assert run.events > 0
    assert repr(run).startswith(f"<Run of {model!r}: horizon 10, {run.events} events")
    assert "\n" not in repr(run)
    with pytest.raises(AttributeError):
        run.start = "empty"


@every_kind
@pytest.mark.parametrize("warmup", [None, 0, 3.5])
def test_a_run_keeps_to_its_schedule(kind, warmup):
    """Times in batches, between them and twice the same; the end of the path is the final state."""
    times = [0, 0.1, 1.7, 1.7, 2.5, 9.99, 10]
    run = run_of(kind, Schedule(10, warmup=warmup, batches=8, times=times))
    for part in (run, *run.stations.values()):
        assert len(part.path) == len(times)
        np.testing.assert_array_equal(part.path[-1], part.final)
        np.testing.assert_array_equal(part.path[2], part.path[3])
        for name, batches in part.batches.items():
            assert len(batches) == 8
            np.testing.assert_allclose(part[name], batches.mean(axis=0), rtol=1e-9, atol=1e-12)
        if len(part.ends):
            np.testing.assert_array_equal(part.ends[-1], part.final)
        if "maximum" in part.batches:
            np.testing.assert_allclose(part.batches["maximum"].sum(axis=1), 1, rtol=1e-9)
            np.testing.assert_allclose(part.batches["profile"][:, 0], 1, rtol=1e-12)
            assert np.all(np.diff(part.profile) <= 1e-12)
            assert part.mean_queue == pytest.approx(part.profile[1:].sum())
    if warmup == 0:  # from an empty start everything is empty at time 0
        begun = run_of(kind, Schedule(1, warmup=0, times=[0]), start="empty")
        above = begun.path[0] if "utility" in begun.batches else begun.path[0][..., 1:]
        assert not above.any()


@every_kind
def test_seed_and_parameters_fix_the_result(kind):
    first, again = run_of(kind, seed=3), run_of(kind, seed=SeedSequence(3))
    same(first, again)
    other = run_of(kind, seed=4)
    assert first.events != other.events or not np.array_equal(first.final, other.final)


@of_simulate
def test_a_copy_does_not_depend_on_how_many_there_are_nor_on_threads(kind):
    three = copies_of(kind, 3)
    assert [run.seed for run in three] == [(5, (k,)) for k in range(3)]
    for a, b in zip(three, copies_of(kind, 2, threads=2), strict=False):
        same(a, b)
    if kind != "lanes":
        model, engine = KINDS[kind]
        alone = SeedSequence(5, spawn_key=(2,))
        same(three[2], simulate(model, Schedule(8, times=[3]), seed=alone, engine=engine))
    assert len({str(run.final) for run in three} | {run.events for run in three}) > 2


def test_copies_of_a_spawned_seed_have_the_streams_that_it_would_spawn():
    """As often as they are asked for: `SeedSequence.spawn` would go on counting."""
    seed = SeedSequence(5).spawn(4)[3]
    twice = [[one.generate_state(2).tolist() for one in spawned(seed, 3)] for _ in range(2)]
    expected = [one.generate_state(2).tolist() for one in SeedSequence(5).spawn(4)[3].spawn(3)]
    assert twice == [expected, expected]
    runs = simulate(Supermarket(20, 2, 0.5), 5, seed=seed, copies=3, engine="scan")
    assert [run.seed for run in runs] == [(5, (3, k)) for k in range(3)]


@every_kind
def test_steps_are_counted_where_there_are_any(kind):
    schedule = Schedule(700, batches=7, times=[0, 3, 700], unit="steps")
    model, engine = KINDS[kind]
    if engine in ("jobs", "leaps", "auto"):
        with pytest.raises(ParameterError, match=r"know.? no steps: use unit='service'\."):
            run_of(kind, schedule)
        return
    run = run_of(kind, schedule)
    assert run.events == 700 + 70
    assert run.path[0, 0] == model.n
    if model.policy == "jsq":
        per_unit = model.n * (1 + model.lam)
        assert run.relaxation_time == pytest.approx(
            relaxation_time(Supermarket(math.inf, 2, 0.7)) * per_unit
        )


@every_kind
def test_short_runs_have_no_intervals_where_theory_knows_how_long_is_enough(kind):
    """Theory knows none of memory, stations (with services of their own) and pools."""
    run = run_of(kind, 10)
    if kind.startswith("memory") or kind in ("stations", "pools", "threshold"):
        assert run.relaxation_time is None
        assert all(station.relaxation_time is None for station in run.stations.values())
        return
    assert run.relaxation_time == relaxation_time(replace(SHOP, d=run.model.d, lam=run.model.lam))
    short = run.interval("mean queue", 0.99)
    assert math.isnan(short.low)
    why = "it takes 4 moments" if kind == "heavy" else "relaxation times and needs 20"
    assert why in short.refused


@of_simulate
def test_a_check_makes_no_event(kind, monkeypatch):
    def followed(*_):
        raise AssertionError("an event was made")

    model, engine = KINDS[kind]
    monkeypatch.setattr(Schedule, "follow", followed)
    copies = 2 if engine == "lanes" else None
    assert callable(simulate.check(model, 10, seed=1, engine=engine, copies=copies))
    with pytest.raises(AssertionError, match="an event was made"):
        simulate(model, 10, seed=1, engine=engine, copies=copies)


@of_simulate
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"schedule": 1e13}, "shorten the horizon .* or pass max_hours="),
        ({"schedule": "10"}, "horizon = '10' is text"),
        ({"schedule": None}, "horizon = None is not a number"),
        ({"schedule": {"horizon": 10}}, "horizon = .* is not a number"),
        ({"seed": -1}, "seed = -1 is out of range"),
        ({"seed": True}, "seed = True is not a whole number"),
        ({"seed": "1"}, "seed = '1' is text"),
        ({"seed": None}, "seed = None is not a whole number"),
        ({"start": "emtpy"}, "start = 'emtpy' is not known.*did you mean empty"),
        ({"start": {"a": 1}}, "start|lengths"),
        ({"engine": "lane"}, "engine = 'lane' is not known: use 'auto'"),
        ({"engine": None}, "engine = None is not known: use 'auto'"),
        ({"copies": 0}, "copies = 0 is out of range"),
        ({"copies": 1.0}, "copies = 1.0 is not a whole number"),
        ({"copies": True}, "copies = True is not a whole number"),
        ({"copies": 10**7}, "copies = 10000000 is out of range"),
        ({"threads": 0}, "threads = 0 is out of range"),
        ({"threads": "2"}, "threads = '2' is text"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence_before_any_event(
    kind, change, sentence, monkeypatch
):
    monkeypatch.setattr(Schedule, "follow", None)
    model, engine = KINDS[kind]
    copies = 2 if engine == "lanes" else None
    given = {"model": model, "schedule": 10, "seed": 1, "engine": engine, "copies": copies} | change
    for call in (simulate, simulate.check):
        with pytest.raises(ParameterError, match=sentence) as caught:
            call(**given)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("engine", ["auto", "scan", "lanes", "labelled", "jobs", "bursts"])
@pytest.mark.parametrize("model", [None, [], "shop", 12, Supermarket, Schedule(1), NETWORK.routing])
def test_another_model_is_refused(model, engine):
    for call in (simulate, simulate.check):
        with pytest.raises(ParameterError, match="is no model: give a Supermarket"):
            call(model, 1, seed=1, engine=engine, copies=2)
    with pytest.raises(ParameterError, match="is no Supermarket"):
        leap(model, 1, seed=1)
    with pytest.raises(ParameterError, match="is neither a Supermarket"):
        couple(model, 1, starts=("empty", "empty"), seed=1)


@pytest.mark.parametrize(
    ("kind", "model"),
    [(kind, replace(model, n=math.inf)) for kind, (model, _) in KINDS.items() if model.n == 12
     and not isinstance(model, PoolSystem) and kind not in ("distinct, labelled", "interrupted")]
    + [("leaps", Supermarket(math.inf, 5, 0.9))],
)  # fmt: skip
def test_a_limit_cannot_be_simulated(kind, model, monkeypatch):
    monkeypatch.setitem(KINDS, kind, (model, KINDS[kind][1]))
    with pytest.raises(ParameterError, match="n = inf is not a whole number"):
        run_of(kind)


@pytest.mark.parametrize("engine", ["labelled", "lanes", "jobs", "ranks", "bursts"])
def test_memory_is_not_forgotten(engine):
    """By an engine that has none: it would simulate another model."""
    with pytest.raises(ParameterError, match="is not known: use 'auto', 'scan', 'table'"):
        simulate(MEMORY, 1, seed=1, engine=engine, copies=2)
    with pytest.raises(ParameterError, match="choices with replacement only"):
        simulate(replace(MEMORY, replacement=False), 1, seed=1)
    for other in ({"discipline": "ps"}, {"service": Lomax(2.5)}):
        with pytest.raises(ParameterError, match="policy = 'memory' is not known for single jobs"):
            simulate(replace(MEMORY, **other), 1, seed=1)


@pytest.mark.parametrize("engine", ["labelled", "lanes", "scan", "table", "ranks", "bursts"])
@pytest.mark.parametrize("other", [{"discipline": "lifo"}, {"service": Lomax(2.5)}])
def test_service_is_not_taken_for_exponential(engine, other):
    with pytest.raises(ParameterError, match="is not known: use 'auto', 'jobs'"):
        simulate(replace(SHOP, **other), 1, seed=1, engine=engine, copies=2)


GIVEN = {"n": 10, "d": 2, "lam": 0.5, "horizon": 10, "seed": 1}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"lam": 1.2}, "lam = 1.2 is out of range: choose 0 < lam < 1"),
        ({"lam": 1}, "lam = 1 is out of range"),
        ({"lam": 0}, "lam = 0 is out of range"),
        ({"lam": True}, "lam = True is not a number"),
        ({"lam": math.nan}, "lam = nan is not finite"),
        ({"lam": "95e-2"}, "lam = '95e-2' is text.*lam = 0.95"),
        ({"d": 0}, "d = 0 is out of range"),
        ({"d": 2.5}, "d = 2.5 is not a whole number"),
        ({"d": True}, "d = True is not a whole number"),
        ({"d": 11, "replacement": False}, "choose d <= n"),
        ({"n": 0}, "n = 0 is out of range"),
        ({"n": "1e6"}, "n = '1e6' is text.*n = 1000000"),
        ({"n": 1e6}, "n = 1000000.0 is not a whole number.*n = 1000000"),
        ({"n": math.nan}, "n = nan is not a whole number"),
        ({"n": 2**63}, "n = 9223372036854775808 is out of range"),
        ({"n": 2**60, "engine": "scan"}, "n = 1152921504606846976 is out of range"),
        ({"n": 10**10, "engine": "labelled"}, "choose 1 <= n <= 1000000000"),
        ({"n": 2**15, "engine": "lanes", "copies": 2}, "n = 32768 is out of range"),
        ({"engine": "lanes"}, "many copies at a time: say how many copies"),
        ({"replacement": "yes"}, "replacement = 'yes' is not known"),
        ({"replacement": 1}, "replacement = 1 is not known"),
        ({"policy": "memroy"}, "did you mean memory"),
        ({"policy": "memory", "n": 2**60}, "n = 1152921504606846976 is out of range"),
        ({"discipline": "sharing"}, "discipline = 'sharing' is not known: use 'fifo', 'ps', 'lif"),
        ({"service": "exponential"}, "service = 'exponential' is no ServiceLaw"),
        ({"service": Lomax}, "is no ServiceLaw"),
        ({"horizon": 0}, "horizon = 0 is out of range"),
        ({"horizon": math.inf}, "horizon = inf is not finite"),
        ({"horizon": True}, "horizon = True is not a number"),
        ({"horizon": 1e12}, "about 1.6e.13 events .* hours.*max_hours="),
        ({"warmup": -1}, "warmup = -1 is out of range"),
        ({"warmup": True}, "warmup = True is not a number"),
        ({"batches": 1}, "batches = 1 is out of range"),
        ({"batches": 8.0}, "batches = 8.0 is not a whole number.*batches = 8"),
        ({"times": [3, 2]}, "times must not decrease"),
        ({"times": [11]}, "times must be numbers between 0 and the horizon"),
        ({"times": [math.nan]}, "times must be a list of finite numbers"),
        ({"times": [[1, 2]]}, "times must be numbers"),
        ({"times": "abc"}, "times must be a list of numbers"),
        ({"unit": "seconds"}, "unit = 'seconds' is not known"),
        ({"unit": "steps", "horizon": 100.5}, "steps is not a whole number"),
        ({"unit": "steps", "horizon": 10}, "at least batches = 64"),
        ({"unit": "steps", "horizon": 100, "times": [0.5]}, "times in steps must be whole"),
        ({"max_hours": math.nan}, "max_hours = nan is not finite"),
        ({"max_hours": 0}, "max_hours = 0 is out of range"),
        ({"start": [1, 0.2, 0.3]}, "start must be a profile"),
        ({"start": [0.9, 0.2]}, "start must be a profile"),
        ({"start": [1, math.nan]}, "start must be a list of finite numbers"),
        ({"start": [[1, 0.5]]}, "start must be a profile"),
        ({"start": ["a"]}, "start must be a list of numbers"),
        ({"start": "equilibrium"}, "start = 'equilibrium' is not known"),
        ({"start": "fixed point", "engine": "labelled"}, "start = 'fixed point' is not known"),
        ({"start": "fixed point", "engine": "jobs"}, "'empty', 'equilibrium', or a pair"),
        ({"n": 10**9, "d": 1, "lam": 1 - 1e-7, "horizon": 1e-6}, "more than 100000 levels"),
    ],
)
def test_wrong_models_and_schedules_get_one_sentence(change, words):
    with pytest.raises(ParameterError, match=words) as caught:
        asked(simulate.check, **GIVEN | change)
    assert "\n" not in str(caught.value)


def test_numbers_of_numpy_are_numbers():
    mine = Supermarket(np.int64(12), np.int32(2), np.float64(0.7), np.True_)
    assert (mine, hash(mine), repr(mine)) == (SHOP, hash(SHOP), repr(SHOP))
    assert repr(replace(SHOP, n=np.float64("inf"))) == "Supermarket(n=inf, d=2, lam=0.7)"
    assert type(replace(NETWORK, n=np.int64(12)).n) is int
    schedule = Schedule(np.int64(10), batches=np.int8(8), times=np.array([1, 2]))
    assert schedule == Schedule(10.0, batches=8, times=(1.0, 2.0))
    assert {schedule: 1}[Schedule(10, batches=8, times=[1, 2])] == 1


@every_kind
def test_a_model_can_be_a_key(kind):
    model, _ = KINDS[kind]
    assert {model: kind}[model if kind == "stations" else replace(model)] == kind
    assert replace(model, n=24) != model
    assert "\n" not in repr(model)


@pytest.mark.parametrize(
    "law",
    [
        lambda: Lomax(2.5),
        lambda: Lomax(2.5).scaled(0.5),
        lambda: PhaseType([0.5, 0.5], np.array([[-1.0, 0.5], [0.0, -2.0]])),
        lambda: Empirical(np.array([1.0, 2.0, 4.0])),
        lambda: GivenScipy(scipy.stats.gamma(2)),
    ],
)
def test_a_model_with_any_law_can_be_a_key(law):
    first, second = (Supermarket(10, 2, 0.1, service=law()) for _ in range(2))
    assert {first: 1}[second] == 1
    assert "\n" not in repr(first)


UNSEEN = "is not known: use|its stations have"


@every_kind
def test_a_run_refuses_what_it_has_not_seen(kind):
    run = run_of(kind)
    assert isinstance(run, Run)
    for wrong in (lambda: run["profil"], lambda: run.interval("profil"), lambda: run.interval(3)):
        with pytest.raises(ParameterError, match=UNSEEN):
            wrong()
    for name in {"utility", "sojourns", "squares", "maximum"} - set(run.batches):
        with pytest.raises(ParameterError, match=UNSEEN):
            run[name]
    if "sojourns" not in run.batches:
        for wrong in (lambda: run.mean_sojourn, lambda: run.sojourn_survival,
                      run.covariance_batches):  # fmt: skip
            with pytest.raises(ParameterError, match=UNSEEN):
                wrong()
    if "maximum" in run.batches:
        for at in (None, -1, 1.5, "1", True):
            with pytest.raises(ParameterError, match="at = "):
                run.interval("length", at=at)
        with pytest.raises(ParameterError, match="at = 2 is for 'profile'"):
            run.interval("mean queue", at=2)
        with pytest.raises(ParameterError, match="at = 999 is out of range"):
            run.interval("profile", at=999)
        with pytest.raises(ParameterError, match="relaxation_time = 0 is out of range"):
            run.interval("profile", relaxation_time=0)
    if "utility" in run.batches:
        assert run.mean_queue == pytest.approx(run.profile.sum())
        for at in (None, 1, (0, 0), (2, 1), (0, 31), (0, 1, 2)):
            with pytest.raises(ParameterError, match=r"at = |class = 2|tasks = "):
                run.interval("profile", at=at)
