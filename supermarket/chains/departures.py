"""The calendar of departures: which of n servers is the next to finish a job.

Time is cut into days with two departures each on average. A server that finishes later than today
stands, unsorted, in the list of its day; a year is a power of two of days, and the same day of all
years has one list. The servers that finish today are in a binary heap: a few as a rule, and however
many they are, nothing gets slow. A departure so costs the same whatever n is [1]_.

What lies in large arrays is fetched into the cache some days before it is needed: who finishes then
is known by now.

The functions share five arrays. (Arrays of records: a tuple of arrays would have its references
counted at every use.)

servers : of SERVER, shape (n,)
    ``time`` is when a busy server finishes, ``behind`` the next one in the list of the same day.
days : of int32, shape (a power of two,)
    The first server in each day's list. A list ends with -1.
heap : of int32, shape (n,)
    The servers of today: the one at i finishes no later than those at 2 i + 1 and 2 i + 2.
state : of STATE, shape (1,)
    ``today``, how many servers are ``in_heap``, and the number of days in a unit of time.
jobs : see `supermarket.chains.disciplines`
    Only to be fetched ahead.

References
----------
.. [1] R. Brown, "Calendar queues: a fast O(1) priority queue implementation for the simulation
   event set problem", Communications of the ACM 31 (1988) 1220.
"""

import numpy as np
from numpy.typing import NDArray

from supermarket.chains.borrowed import inlined, touch

# All that there is of a server is in one record, and two records are in a line of the cache. What
# is not explained above is for the jobs: see `supermarket.chains.disciplines`.
SERVER = np.dtype(
    [
        ("time", "f8"), ("end", "f8"), ("length", "i4"), ("behind", "i4"), ("first", "i4"),
        ("last", "i4"),
    ]
)  # fmt: skip
STATE = np.dtype([("today", "i8"), ("in_heap", "i8"), ("days_per_unit", "f8"), ("spare", "i8")])
LINE = 64  # bytes
SOON = 16  # days ahead for which servers are fetched into the cache


def idle_servers(n: int) -> NDArray:
    """Return n servers without a job, none of them across two lines of the cache."""
    memory = np.zeros(n * SERVER.itemsize + LINE, dtype=np.uint8)
    begin = -memory.ctypes.data % LINE
    servers = memory[begin : begin + n * SERVER.itemsize].view(SERVER)
    servers["first"] = -1
    return servers


@inlined
def schedule(servers, days, heap, state, q, time) -> None:
    """Let server q, which is not in the calendar, finish at `time`."""
    servers[q]["time"] = time
    day = _day(state, time)
    if day <= state[0]["today"]:
        _push(servers, heap, state, q, time)
    else:
        _enter(servers, days, q, day)


@inlined
def cancel(servers, days, heap, state, q) -> None:
    """Take server q, which is busy, out of the calendar."""
    day = _day(state, servers[q]["time"])
    if day <= state[0]["today"]:
        i = 0
        while heap[i] != q:
            i += 1
        remove(servers, heap, state, i)
        return
    date = day & (len(days) - 1)
    other = days[date]
    if other == q:
        days[date] = servers[q]["behind"]
        return
    while servers[other]["behind"] != q:
        other = servers[other]["behind"]
    servers[other]["behind"] = servers[q]["behind"]


@inlined
def first_by(servers, jobs, days, heap, state, time) -> int:
    """Return the server that finishes first, now at place 0 of the heap; -1 if none by `time`."""
    if state[0]["in_heap"] == 0:
        last = _day(state, time)
        while state[0]["in_heap"] == 0 and state[0]["today"] < last:
            _begin_day(servers, jobs, days, heap, state)
    if state[0]["in_heap"] > 0 and servers[heap[0]]["time"] <= time:
        return heap[0]
    return -1


@inlined
def remove(servers, heap, state, i) -> None:
    """Take the server at place i out of the heap: the last one goes there, below or above."""
    size = state[0]["in_heap"] - 1
    state[0]["in_heap"] = size
    if i == size:
        return
    moved = heap[size]
    time = servers[moved]["time"]
    while 2 * i + 1 < size:
        child = 2 * i + 1
        if child + 1 < size and servers[heap[child + 1]]["time"] < servers[heap[child]]["time"]:
            child += 1
        if time <= servers[heap[child]]["time"]:
            break
        heap[i] = heap[child]
        i = child
    _rise(servers, heap, np.int64(moved), i, time)


@inlined
def _day(state, time):
    day = time * state[0]["days_per_unit"]
    return int(day if day < 2.0**62 else 2.0**62)  # more would overflow


@inlined
def _enter(servers, days, q, day):
    date = day & (len(days) - 1)
    servers[q]["behind"] = days[date]
    days[date] = q


@inlined
def _begin_day(servers, jobs, days, heap, state):
    """Move the servers that finish today to the heap; those of later years stay in the list."""
    today, last = state[0]["today"] + 1, len(days) - 1
    state[0]["today"] = today
    # The lists of the next days are in a few lines of the cache, but not the servers in them.
    touch(servers, days[(today + SOON) & last])
    soon = days[(today + SOON // 2) & last]
    if soon >= 0:
        touch(servers, servers[soon]["behind"])
    soon = days[(today + SOON // 4) & last]
    while soon >= 0:
        touch(jobs, servers[soon]["first"])
        soon = servers[soon]["behind"]
    q = np.int64(days[today & last])
    days[today & last] = -1
    while q >= 0:
        behind, time = servers[q]["behind"], servers[q]["time"]
        day = _day(state, time)
        if day == today:
            _push(servers, heap, state, q, time)
        else:
            _enter(servers, days, q, day)
        q = np.int64(behind)


@inlined
def _push(servers, heap, state, q, time):
    _rise(servers, heap, q, state[0]["in_heap"], time)
    state[0]["in_heap"] += 1


@inlined
def _rise(servers, heap, q, i, time):
    """Put server q, which finishes at `time`, into the free place i of the heap, or above."""
    while i > 0 and time < servers[heap[(i - 1) // 2]]["time"]:
        heap[i] = heap[(i - 1) // 2]
        i = (i - 1) // 2
    heap[i] = q
