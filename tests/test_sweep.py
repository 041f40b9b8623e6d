"""Many runs: the same results in the same order, however they are spread."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from numpy.random import SeedSequence, default_rng

from supermarket import ParameterError, Schedule, Supermarket, couple, simulate
from supermarket.runs.many import run_points

WAIT = 60  # seconds, where a test would otherwise hang


def draw(*, seed, size, shift=0):
    return shift + default_rng(seed).random(size)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_do_not_depend_on_the_threads(threads):
    points = [{"size": size} for size in (3, 1, 4, 1, 5, 9, 2, 6)]
    expected = [
        draw(seed=stream, **point)
        for point, stream in zip(points, SeedSequence(11).spawn(len(points)), strict=True)
    ]
    for result, alone in zip(
        run_points(draw, points, seed=11, threads=threads), expected, strict=True
    ):
        np.testing.assert_array_equal(result, alone)


def test_a_chain_gives_the_same_on_one_thread_and_two():
    points = [
        {"model": Supermarket(50, d, lam), "schedule": Schedule(20, times=[1.0])}
        for d in (1, 2)
        for lam in (0.5, 0.9)
    ]
    one, two = (run_points(simulate, points, seed=3, threads=threads) for threads in (1, 2))
    for point, a, b in zip(points, one, two, strict=True):
        assert a.model == b.model == point["model"]
        np.testing.assert_array_equal(a.batches["profile"], b.batches["profile"])
        np.testing.assert_array_equal(a.path, b.path)
        assert a.max_queue == b.max_queue
        assert a.seed == b.seed


def test_streams_depend_on_the_seed_and_the_place_alone():
    same = [{"size": 4}] * 5
    first = run_points(draw, same, seed=1)
    assert len({tuple(result) for result in first}) == 5
    np.testing.assert_array_equal(run_points(draw, same[:2], seed=1), first[:2])
    assert not np.array_equal(run_points(draw, same, seed=2), first)


def test_order_is_kept_when_the_first_ends_last():
    """Point 0 waits for point 1: with two threads they run side by side."""
    second_is_done = threading.Event()

    def function(*, place, seed):
        if place == 0:
            assert second_is_done.wait(WAIT)
        else:
            second_is_done.set()
        return place

    points = [{"place": place} for place in range(4)]
    assert run_points(function, points, seed=0, threads=2) == [0, 1, 2, 3]


def test_no_more_run_at_a_time_than_was_asked():
    lock, running, most = threading.Lock(), [0], [0]
    pair = threading.Barrier(2, timeout=WAIT)

    def function(*, seed):
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        pair.wait()
        with lock:
            running[0] -= 1
        pair.wait()

    run_points(function, [{}] * 8, seed=0, threads=2)
    assert most == [2]


@pytest.mark.parametrize("threads", [1, 2])
def test_an_exception_comes_through_and_the_rest_is_left(threads):
    started = []

    def function(*, place, seed):
        started.append(place)
        if place == 1:
            raise ParameterError("lam = 2 is out of range: choose 0 < lam < 1.")
        if place > 1:
            threading.Event().wait(0.005)

    points = [{"place": place} for place in range(2000)]
    with pytest.raises(ParameterError, match=r"^lam = 2 is out of range"):
        run_points(function, points, seed=0, threads=threads)
    assert len(started) < len(points)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("threads", [1, 2])
def test_after_an_interruption_it_goes_on_where_it_stopped(threads):
    """The third run is interrupted for real: by SIGINT, while it and maybe another are busy."""
    started, points, interrupt = [], [{"size": size} for size in range(1, 9)], [True]

    def function(*, size, seed):
        started.append(size)
        if size == 3 and interrupt[0]:
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(100 * WAIT):  # in short pieces, as a chain runs
                time.sleep(0.01)
        return draw(seed=seed, size=size)

    done = {}
    with pytest.raises(KeyboardInterrupt):
        run_points(function, points, seed=4, threads=threads, done=done)
    assert 2 not in done
    if threads == 1:
        assert set(done) == {0, 1}
    interrupt[0], before = False, len(done)
    started.clear()
    results = run_points(function, points, seed=4, threads=threads, done=done)
    assert len(started) == 8 - before
    for result, expected in zip(results, run_points(draw, points, seed=4), strict=True):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.usefixtures("interruptible")
def test_a_chain_under_way_is_left_at_once():
    """Both runs would take an hour; SIGINT comes when both are at work.

    Not before: Numba may lose an interruption while it loads machine code.
    """
    shop, schedule = Supermarket(10**4, 2, 0.5), Schedule(1e7, max_hours=10)
    simulate(shop, 0.1, seed=1, engine="scan")
    at_work, both = [], threading.Event()

    def function(*, seed):
        at_work.append(seed)
        if len(at_work) == 2:
            both.set()
        return simulate(shop, schedule, seed=seed, engine="scan")

    def interrupt():
        both.wait(WAIT)
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        run_points(function, [{}, {}], seed=1, threads=2)
    assert len(at_work) == 2


def test_finished_runs_of_other_points_are_refused():
    with pytest.raises(ParameterError, match=r"done holds run 7 of 2: it belongs to other"):
        run_points(draw, [{"size": 1}] * 2, seed=0, done={7: 1})


def test_points_may_come_from_a_generator_or_be_none():
    assert run_points(draw, [], seed=0) == []
    results = run_points(draw, ({"size": size} for size in (1, 2)), seed=0, threads=2)
    assert [len(result) for result in results] == [1, 2]


def test_a_point_may_be_many_copies_in_lanes():
    point = {"model": Supermarket(20, 2, 0.5), "schedule": 2, "copies": 2, "engine": "lanes"}
    assert [len(runs) for runs in run_points(simulate, [point] * 2, seed=1)] == [2, 2]
    pairs = run_points(couple, [point | {"starts": ("empty", "fixed point")}] * 2, seed=1)
    assert [len(pair) for pair in pairs] == [2, 2]
    with pytest.raises(ParameterError, match=r"say how many copies"):
        run_points(simulate, [point | {"copies": None}], seed=1)


def test_nothing_is_printed_where_no_one_watches(capsys):
    run_points(draw, [{"size": 1}] * 3, seed=0)
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


def test_a_point_that_is_not_allowed_stops_all_before_the_first_run():
    done = []

    def recorded(lam, seed):
        done.append(lam)

    recorded.check = lambda lam, seed: simulate.check(Supermarket(10, 2, lam), 1, seed=seed)

    with pytest.raises(ParameterError, match=r"lam = 1\.5"):
        run_points(recorded, [{"lam": 0.5}, {"lam": 1.5}], seed=1)
    assert done == []
