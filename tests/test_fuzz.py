"""Public names called with arguments of any kind: a sane result, or one sentence of ParameterError.

A result is sane if it holds no NaN that is not documented, shares are in [0, 1], tails never
increase, laws sum to 1; a number of a NumPy type gives what Python's number gives. No warning, no
ten seconds, no 2 GB. Some hundreds of calls, always the same; `--long` draws ten thousand others
and says what came of them. Below stand those that have failed, one line each.
"""

from collections import Counter
from contextlib import closing

import fuzzing
import pytest
from fuzzing import KINDS, MADE, NO_CALLS, ODD, TYPES
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import supermarket

pytestmark = pytest.mark.book  # processes of their own: once is enough

NUMBERS = st.floats().map(lambda x: f"float('{x!r}')") | st.integers().map(str)


@pytest.fixture(scope="module")
def server():
    with closing(fuzzing.Server()) as started:
        yield started


@st.composite
def calls(draw):
    """Draw a valid call, what becomes of it, and the same call with a plain number if there is."""
    base = draw(st.sampled_from(sorted(KINDS)))
    places = fuzzing.places(base)
    if not places:
        return base, base, "", []
    place = draw(st.sampled_from(places))
    number = fuzzing.number_at(base, place)
    if number is not None and draw(st.integers(0, 4)) == 0:
        kinds = TYPES[:8] if type(number) is int else TYPES
        odd, plain = fuzzing.typed(number, draw(st.sampled_from(kinds)))
        text, called = fuzzing.replaced(base, {place: odd})
        return base, text, fuzzing.replaced(base, {place: plain})[0], called
    odd = st.sampled_from(ODD) | NUMBERS
    changes = {place: draw(odd)}
    if draw(st.integers(0, 3)) == 0:
        # Of two places one may stand inside the other, and is then gone.
        changes[draw(st.sampled_from(places))] = draw(odd)
    return base, *fuzzing.replaced(base, changes)[:1], "", []


def test_odd_calls(server, long, capsys):
    """Failures are gathered: they are all told, and none is made smaller, which takes long."""
    seen, failed = Counter(), []

    @settings(
        max_examples=10_000 if long else 200, derandomize=not long, database=None, deadline=None,
        phases=[Phase.generate], suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(calls())
    def play(call):
        kind, what = server.outcome(*call)
        seen[f"{kind}: {what.partition(':')[0]}" if kind == "pass" else kind] += 1
        if kind != "pass":
            failed.append(f"{kind}: {what}\n    {call[1][:1000]}")

    play()
    if long:
        with capsys.disabled():
            print(f"\n{dict(seen)}")
    assert not failed, "\n".join(failed)


@pytest.mark.parametrize("name", sorted(set(supermarket.homes()) - MADE - NO_CALLS))
def test_every_public_name_is_called(name):
    assert any(f"{name}(" in text or f"{name}." in text for text in KINDS)


def test_a_call_that_makes_sense_gives_a_sane_result(server):
    """Else the odd ones would pass because nothing was ever computed."""
    base = sorted(set(KINDS) - {fuzzing.UNFILLED})[::10]
    assert [server.outcome(text, text) for text in base] == [("pass", "result")] * len(base)


@pytest.mark.parametrize(
    ("text", "kind", "seen"),
    [
        ("1 / 0", "", "exception"),
        ("np.float64(1) / 0", "", "warning"),
        ("[math.nan]", "", "nonsense"),
        ("np.array([1.0, 0.5, 0.6])", "tail", "nonsense"),
        ("[0.5, 0.4]", "law", "nonsense"),
        ("[-0.1]", "shares", "nonsense"),
        ("np.ones(10**9)", "", "memory"),
        ("sum(iter(int, 1))", "", "hang"),
        ("exec('import os; os.abort()')", "", "crash"),
        ("integer('x' * 9, 'a\\nb' * 999)", "", "pass"),
        ("refuse('one\\ntwo')", "", "sentence"),
    ],
)
def test_a_failure_is_seen(server, monkeypatch, text, kind, seen):
    text = text.replace("integer(", "import_module('supermarket.validation').integer(")
    text = text.replace(
        "refuse(", "(lambda s: (_ for _ in ()).throw(ParameterError(s)).send(None))("
    )
    monkeypatch.setitem(KINDS, "1", kind)
    assert server.outcome("1", text)[0] == seen


def test_a_number_that_differs_by_its_type_is_seen(server):
    assert server.outcome("1", "(np.array([200], np.uint8) * 2).tolist()", "[400]")[0] == "differs"


FAILED = [  # each in silence, with a traceback or a warning, for ever, or of too much memory
    "refined_mean_field(Supermarket(100, np.uint8(20), 0.99), 3)",
    "profile_correction(Supermarket(100, np.uint8(20), 0.99), 3)",
    "characteristic_roots(2.5, np.uint64(3))",
    "power_law_constant(np.float16(1.5), 0.7, 2, 0.7)",
    "length_counts(Supermarket(10**6, 50, 0.999), eps=np.float16(0.1))",
    "modes_at_fixed_point(Supermarket(10**6, 20, np.float16(0.9)), 2)",
    "paths(exponential(1.0, np.longdouble('.7')), [1.0], seed=1, replicas=2)",
    "paths(ExponentialOverflow(np.longdouble('.7'), 0.0), [1.0], seed=1, replicas=2)",
    "paths(ExponentialOverflow(np.float16('.7'), 0.0), [1.0], seed=1, replicas=2)",
    "paths(ExponentialOverflow(1.0, 0.0), [1.0], seed=1, replicas=2, step=np.float16(0.1))",
    "busy_control(Supermarket(100, 2, np.longdouble('0.7')))",
    "modes_at_fixed_point(Supermarket(100, 20, np.longdouble('0.9')), 2)",
    "trajectory(Supermarket(100, 2, 1e-300), [20.0])",
    "memory_trajectory(Supermarket(100, 1, 1e-300, policy='memory'), [20.0])",
    "network_trajectory(jackson_network([1e-300], [[0.0]], 2), [20.0])",
    "trajectory(Supermarket(100, 2, .9), [1e308])",
    "memory_trajectory(Supermarket(100, 1, 0.9, policy='memory'), [1e308])",
    "network_trajectory(jackson_network([0.5], [[0.0]], 2), [1e308])",
    "trajectory(Supermarket(100, 2, .9), [1e-320])",
    "memory_trajectory(Supermarket(100, 1, 0.9, policy='memory'), [1e-320])",
    "network_trajectory(jackson_network([0.5], [[0.0]], 2), [1e-320])",
    "cavity(Supermarket(9, 2, 0.7), 9).sojourn_survival([1e308])",
    "cavity(Supermarket(9, 2, 0.7), 9).sojourn_survival([1e-320])",
    "cavity(Supermarket(9, 2, .7, service=Deterministic()), 8).sojourn_survival([0.2])",
    "cavity(Supermarket(9, 2, .7), 20).sojourn_survival([1.0, 5.0, 10.0])",
    "cavity(Supermarket(9, 2, .7), 60).sojourn_survival([20.0, 30.0])",
    "relaxation_time(Supermarket(100, 2, 1e-9))",
    "mean_queue_correction(Supermarket(100, 2, 1-1e-16))",
    "mean_queue_correction(Supermarket(100, 2, 1-1e-12))",
    "refined_mean_field(Supermarket(100, 2, 1-1e-16), 3)",
    "profile_correction(Supermarket(100, 2, 1-1e-16), 3)",
    "busy_control(Supermarket(100, 2, 1-1e-16))",
    "modes(Supermarket(math.inf, 400, 0.5), 300)",
    "modes_at_fixed_point(Supermarket(math.inf, 400, 0.5), 300)",
    "smallest_eps(Supermarket(10, 10, .9), [0])",
    "smallest_eps(Supermarket(10, 10, .9), [0, 0])",
    "smallest_eps_of_lengths(Supermarket(10, 10, .99), [0])",
    "log_rate_of_longer(Supermarket(10, 10, .99), [0])",
    "small_chain(Supermarket(3, 2, 0.5), 4).mixing([0,0,0], [5, 2])",
    "share_interval(-1, 3)",
    "simulate(Supermarket(9, 2, 0.7), 2, seed=1).max_queue_range(2)",
    "simulate(Supermarket(9, 2, 0.7), 2, seed=1).max_queue_range(-1)",
    "sorted_lengths([3.7, 1.2, 0])",
    "sorted_lengths([1, 2, 0])",
    "simulate(Supermarket(9, 2, 0.7), 5e-324, seed=1)",
    "simulate(Supermarket(9, 2, 0.7), 5e-324, seed=1, copies=2)",
    "simulate(Supermarket(9, 2, 0.7), 5e-324, seed=1, engine='jobs')",
    "leap(Supermarket(10**6, 30, 0.98), 5e-324, seed=1)",
    "simulate(PoolSystem(server_pools([1], [[2, 1]], levels=2), 10, 0.7), 5e-324, seed=1)",
    "simulate(jackson_network([0.5], [[0.0]], 2, n=5), 5e-324, seed=1)",
    "simulate(Supermarket(9, 2, 0.7), 1e-310, seed=1)",
    "couple(Supermarket(9, 2, 0.7), 5e-324, starts=('empty', [1.0, 1.0]), seed=1)",
    "cavity(Supermarket(9, 2, .7, service=Weibull(1000.0)), 6)",
    "cavity(Supermarket(9, 2, .7, service=Lognormal(1e-6)), 6)",
    "cavity(Supermarket(9, 2**40, .7, service=Deterministic()), 3)",
    "cavity(Supermarket(9, 2**40, .7), 3)",
    "cavity(Supermarket(9, 2**53, .7, service=Lomax(2.5)), 3)",
    "cavity(Supermarket(9, 2**40, .7, service=Erlang(2)), 3)",
    "cavity(Supermarket(9, 10**18, .7, service=Erlang(2)), 3)",
    "deep_tail(Supermarket(9, 2**40, .7, service=Lomax(2.5)), 1e3)",
    "simulate(Supermarket(9, 2, 0.7), Schedule(1, batches=10**6), seed=1)",
    "simulate(Supermarket(9, 2, 0.7), Schedule(1, batches=10**6, max_hours=1e-6), seed=1)",
    "simulate(Supermarket(9, 2, 0.7), Schedule(1, batches=10**6), seed=1, engine='jobs')",
    "simulate(Supermarket(9, 2, 0.7), Schedule(1), seed=1, copies=10**6)",
    "simulate(Supermarket(9, 2, 0.7), Schedule(1), seed=1, copies=10**6, engine='scan')",
    "couple(Supermarket(9, 2, 0.7), 1, starts=('empty', [1.0, 1.0]), seed=1, copies=10**6)",
    "simulate(jackson_network([0.5], [[0.0]], 2, n=5), Schedule(1, batches=10**6), seed=1)",
    "leap(Supermarket(10**6, 30, 0.98), Schedule(1, batches=10**6), seed=1)",
    "fluid_limit(0.9, [1e9])",
    "fluid_limit(1e-9, [1e9])",
    "pools_fluid_limit(server_pools([0.5, 0.5], [[4, 2], [3, 1]], levels=2), 0.75, [1e9])",
    "recursion(2.5, 2, 10**7)",
    "paths(ExponentialOverflow(1e10, 0.0), [1.0], seed=1, replicas=2)",
    "paths(ReflectedOverflow(1.0), [1.0], seed=1, replicas=2, step=1e-9)",
    "paths(ReflectedOverflow(1.0), [1e9], seed=1, replicas=2)",
    "driven(ReflectedOverflow(1.0), [0.0, 1.0], [0.0, 1.0], seed=1, step=1e-9)",
    "small_chain(Supermarket(3, 2, 0.5), 4).mixing([0,0,0], [10**9])",
    "try_every_move(10**9, (2, 2), 1, by='rank', order='tails')",
    "cavity(Supermarket(9, 2, .7), 10**9)",
    "cavity(Supermarket(9, 10**9, .7, service=Lomax(2.5)), 3)",
    "cavity(Supermarket(9, 2, .7, service=Lomax(1e12)), 3)",
    "max_queue_law_one_choice(Supermarket(2, 1, 1-1e-9))",
    "memory_trajectory(Supermarket(9, 1, .7, policy='memory'), [1.0], start=[1.0]*40000)",
    "fluid_limit(0.9, [1.0], start=[1.0]*40000)",
    "stationary_moments(ReflectedOverflow(1.0), .001)",
    "waiting_share(Supermarket(2**53, 2, 0.9))",
    "waiting_share(Supermarket(2**53, 500, 0.98))",
    "sorted_lengths([10**18, 0])",
    "cavity(Supermarket(9, 2, .7), 9).draw(np.random.default_rng(1), 10**9)",
    "Supermarket(np.timedelta64(3, 's'), 2, 0.5)",
    "Supermarket(3, Fraction(10**400, 3), 0.5)",
    "trajectory(Supermarket(9, 2, .7), [10**400])",
    "cavity(Supermarket(9, 2, 1e-9, service=Gamma(1e4)), 6, method='panels')",
    "stationary_covariance(Supermarket(9, 10, 1e-200))",
    "barrier_rate(10**4, 50, 1.0, k=200)",
    "critical_arrival_rate(10**4, 50, 1.0, k=200)",
    "slow_load(10**6, 3.0, 1000.0)",
    "few_choices(10**8, 0.5, 1e18, 0.12)",
    "power_law_constant(1.9999, .3, 2, .7)",
    "linear_covariance(1.0, 2, 1e308)",
    "linear_covariance(1.0, 2, None)",
    "paths(ReflectedOverflow(1.0), [1.0], seed=-1)",
    "batch_interval(np.sin(np.arange(64.0)), relaxations=0)",
    "simulate(Supermarket(100, 2, 0.7), 30, seed=1).interval('profile', relaxation_time=0)",
    "cavity_down_to(Supermarket(9, 2, 1-1e-12), 1e-9)",
    "simulate(Supermarket(9, 2, 5e-324), 3, seed=1, engine='jobs')",
    "simulate(Supermarket(9, 2, 5e-324), 3, seed=1)",
    "simulate(Supermarket(9, 2, 1e-300), 3, seed=1)",
]


@pytest.mark.parametrize("text", FAILED)
def test_what_failed_is_right_or_one_sentence(server, text):
    assert server.outcome("1", f"[{text}]")[0] == "pass"
