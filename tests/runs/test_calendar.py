"""The calendar of departures against a sorted list, and its heap by definition.

Operations are drawn from fixed seeds. Nothing here is statistical: one wrong place is a failure. A
run of the network hardly ever sees one, as few servers finish on one day and seldom is one of them
cancelled; so the days here are also so long that all servers are in the heap.
"""

from itertools import permutations

import numpy as np
import pytest
from oracles import JIT

from supermarket.kernels.compiled import kernel
from supermarket.runs.jobs.calendar import STATE, Net, cancel, first_by, idle_servers, schedule
from supermarket.runs.jobs.calendar import remove as remove_from_heap
from supermarket.runs.jobs.disciplines import unused_jobs

ENTER, LEAVE, FIRST = 0, 1, 2


def calendar(n, days_per_unit):
    """Return an empty calendar of n servers."""
    state = np.zeros(1, dtype=STATE)
    state["days_per_unit"] = days_per_unit
    days = np.full(2 ** n.bit_length(), -1, dtype=np.int32)
    return Net(idle_servers(n), unused_jobs(0, 1), days, np.zeros(n, dtype=np.int32), state)


@kernel
def operate(net, what, q, time):
    """Make one operation; return the server that finishes first by a time, which leaves; or -1."""
    if what == ENTER:
        schedule(net, q, time)
    elif what == LEAVE:
        cancel(net, q)
    else:
        first = first_by(net, time)
        if first >= 0:
            remove_from_heap(net, 0)
        return first
    return -1


@kernel
def empty(net, last):
    """Take out all servers that finish by the last time, the first one first; return the times."""
    times = []
    while True:
        q = first_by(net, last)
        if q < 0:
            return np.array(times)
        times.append(net.servers[q]["time"])
        remove_from_heap(net, 0)


def held(net):
    """Return the times of the servers in the calendar, after a check of the order of its heap."""
    size = int(net.state["in_heap"][0])
    heap = net.heap[:size]
    times = net.servers["time"][heap]
    for i in range(1, size):
        assert times[(i - 1) // 2] <= times[i]
    found = {int(q): float(time) for q, time in zip(heap, times, strict=True)}
    assert len(found) == size
    today = int(net.state["today"][0])
    for date, q in enumerate(net.days):
        while q >= 0:
            assert int(q) not in found
            found[int(q)] = float(net.servers["time"][q])
            day = int(found[int(q)] * net.state["days_per_unit"][0])
            assert day > today
            assert day % len(net.days) == date
            q = net.servers["behind"][q]
    return found


@pytest.mark.parametrize("days_per_unit", [0.01, 0.5, 4.0, 50.0])
@pytest.mark.parametrize("n", [1, 2, 7, 40])
@pytest.mark.parametrize("whole", [False, True], ids=["apart", "ties"])
def test_operations_in_any_order_leave_what_a_sorted_list_holds(n, days_per_unit, whole):
    rng = np.random.default_rng([n, int(100 * days_per_unit), whole])
    net, known, now = calendar(n, days_per_unit), {}, 0.0
    for _ in range(1500 if JIT else 300):
        free = [q for q in range(n) if q not in known]
        what = rng.choice([ENTER, LEAVE, FIRST], p=[0.5, 0.25, 0.25])
        if what == ENTER and free:
            q, time = int(rng.choice(free)), now + 10 * rng.exponential()
            known[q] = time = float(np.ceil(time)) if whole else time
            assert operate(net, ENTER, q, time) == -1
        elif what == LEAVE and known:
            q = int(rng.choice(list(known)))
            del known[q]
            assert operate(net, LEAVE, q, 0.0) == -1
        elif what == FIRST:
            until = now + 5 * rng.exponential()
            until = float(np.ceil(until)) if whole else until
            q = operate(net, FIRST, -1, until)
            first = min(known.values(), default=np.inf)
            if first > until:
                assert q == -1
                now = until
            else:
                assert known.pop(q) == first
                now = first
        assert held(net) == known
    assert empty(net, now + 1000.0).tolist() == sorted(known.values())


def test_whichever_server_leaves_the_heap_the_others_come_in_their_order():
    """Every order in which six servers may come, and each of the six that may leave."""
    for times in permutations(range(1, 7)) if JIT else [(1, 5, 2, 6, 4, 3), (1, 4, 2, 5, 6, 3)]:
        for q in range(6):
            net = calendar(6, 0.01)
            for server, time in enumerate(times):
                operate(net, ENTER, server, float(time))
            operate(net, LEAVE, q, 0.0)
            assert empty(net, 7.0).tolist() == sorted(set(times) - {times[q]})
