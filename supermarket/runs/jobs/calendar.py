"""The calendar of departures: which of n servers is the next to finish a job.

Time is cut into days with two departures each on average. A server that finishes later than today
stands, unsorted, in the list of its day; a year is a power of two of days, and the same day of all
years has one list. The servers that finish today are in a binary heap: a few as a rule, and however
many they are, nothing gets slow. A departure so costs the same whatever n is [1]_.

What lies in large arrays is fetched into the cache some days before it is needed: who finishes then
is known by now.

References
----------
.. [1] R. Brown, "Calendar queues: a fast O(1) priority queue implementation for the simulation
   event set problem", Communications of the ACM 31 (1988) 1220.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from supermarket.kernels.borrowed import inlined, touch

# All that there is of a server is in one record, and two records are in a line of the cache. What
# is not explained above is for the jobs: see `supermarket.runs.jobs.disciplines`.
SERVER = np.dtype(
    [
        ("time", "f8"), ("end", "f8"), ("length", "i4"), ("behind", "i4"), ("first", "i4"),
        ("last", "i4"),
    ]
)  # fmt: skip
STATE = np.dtype([("today", "i8"), ("in_heap", "i8"), ("days_per_unit", "f8"), ("spare", "i8")])
LINE = 64  # bytes
SOON = 16  # days ahead for which servers are fetched into the cache


class Net(NamedTuple):
    """What the servers of a network are about.

    Attributes
    ----------
    servers : ndarray of SERVER, shape (n,)
        ``time`` is when a busy server finishes, ``behind`` the next one in the list of the same
        day.
    jobs : ndarray
        See `supermarket.runs.jobs.disciplines`; here only to be fetched ahead.
    days : ndarray of int32, shape (a power of two,)
        The first server in each day's list. A list ends with -1.
    heap : ndarray of int32, shape (n,)
        The servers of today: the one at i finishes no later than those at 2 i + 1 and 2 i + 2.
    state : ndarray of STATE, shape (1,)
        ``today``, how many servers are ``in_heap``, and the number of days in a unit of time.
    """

    servers: NDArray
    jobs: NDArray
    days: NDArray[np.int32]
    heap: NDArray[np.int32]
    state: NDArray


def idle_servers(n: int) -> NDArray:
    """Return n servers without a job, none of them across two lines of the cache."""
    memory = np.zeros(n * SERVER.itemsize + LINE, dtype=np.uint8)
    begin = -memory.ctypes.data % LINE
    servers = memory[begin : begin + n * SERVER.itemsize].view(SERVER)
    servers["first"] = -1
    return servers


@inlined
def schedule(net: Net, q: int, time: float) -> None:
    """Let server q, which is not in the calendar, finish at `time`."""
    net.servers[q]["time"] = time
    day = _day(net, time)
    if day <= net.state[0]["today"]:
        _push(net, q, time)
    else:
        _enter(net, q, day)


@inlined
def cancel(net: Net, q: int) -> None:
    """Take server q, which is busy, out of the calendar."""
    day = _day(net, net.servers[q]["time"])
    if day <= net.state[0]["today"]:
        i = 0
        while net.heap[i] != q:
            i += 1
        remove(net, i)
        return
    date = day & (len(net.days) - 1)
    other = net.days[date]
    if other == q:
        net.days[date] = net.servers[q]["behind"]
        return
    while net.servers[other]["behind"] != q:
        other = net.servers[other]["behind"]
    net.servers[other]["behind"] = net.servers[q]["behind"]


@inlined
def first_by(net: Net, time: float) -> int:
    """Return the server that finishes first, now at place 0 of the heap; -1 if none by `time`."""
    if net.state[0]["in_heap"] == 0:
        last = _day(net, time)
        while net.state[0]["in_heap"] == 0 and net.state[0]["today"] < last:
            _begin_day(net)
    if net.state[0]["in_heap"] > 0 and net.servers[net.heap[0]]["time"] <= time:
        return net.heap[0]
    return -1


@inlined
def remove(net: Net, i: int) -> None:
    """Take the server at place i out of the heap: the last one goes there, below or above."""
    size = net.state[0]["in_heap"] - 1
    net.state[0]["in_heap"] = size
    if i == size:
        return
    moved = net.heap[size]
    time = net.servers[moved]["time"]
    while 2 * i + 1 < size:
        child = 2 * i + 1
        if (
            child + 1 < size
            and net.servers[net.heap[child + 1]]["time"] < net.servers[net.heap[child]]["time"]
        ):
            child += 1
        if time <= net.servers[net.heap[child]]["time"]:
            break
        net.heap[i] = net.heap[child]
        i = child
    _rise(net, np.int64(moved), i, time)


@inlined
def _day(net, time):
    day = time * net.state[0]["days_per_unit"]
    return int(day if day < 2.0**62 else 2.0**62)  # more would overflow


@inlined
def _enter(net, q, day):
    date = day & (len(net.days) - 1)
    net.servers[q]["behind"] = net.days[date]
    net.days[date] = q


@inlined
def _begin_day(net):
    """Move the servers that finish today to the heap; those of later years stay in the list."""
    today, last = net.state[0]["today"] + 1, len(net.days) - 1
    net.state[0]["today"] = today
    # The lists of the next days are in a few lines of the cache, but not the servers in them.
    touch(net.servers, net.days[(today + SOON) & last])
    soon = net.days[(today + SOON // 2) & last]
    if soon >= 0:
        touch(net.servers, net.servers[soon]["behind"])
    soon = net.days[(today + SOON // 4) & last]
    while soon >= 0:
        touch(net.jobs, net.servers[soon]["first"])
        soon = net.servers[soon]["behind"]
    q = np.int64(net.days[today & last])
    net.days[today & last] = -1
    while q >= 0:
        behind, time = net.servers[q]["behind"], net.servers[q]["time"]
        day = _day(net, time)
        if day == today:
            _push(net, q, time)
        else:
            _enter(net, q, day)
        q = np.int64(behind)


@inlined
def _push(net, q, time):
    _rise(net, q, net.state[0]["in_heap"], time)
    net.state[0]["in_heap"] += 1


@inlined
def _rise(net, q, i, time):
    """Put server q, which finishes at `time`, into the free place i of the heap, or above."""
    while i > 0 and time < net.servers[net.heap[(i - 1) // 2]]["time"]:
        net.heap[i] = net.heap[(i - 1) // 2]
        i = (i - 1) // 2
    net.heap[i] = q
