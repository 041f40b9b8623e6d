"""What a server does with its jobs: FIFO, processor sharing, or preemptive-resume LIFO.

The calendar knows when each server finishes its next job. Its other jobs, or all of them, are in a
list of its own, in the order in which they will leave if no job comes any more:

- FIFO: when a job will leave is known when it comes. The list is a queue of those times, and the
  job in service is not in it.
- Sharing: each of k jobs is served at rate 1 / k. By a clock that runs at that rate, a job that
  comes at v and needs s leaves at v + s. The list is sorted by that, and holds all jobs.
- LIFO: a new job is served at once, and the one that it interrupts goes on later where it stopped.
  The list is a stack of what is left to do, and holds all jobs.

A discipline is two functions: one for a job that comes to server q, where k others are, and one for
the job that server q has finished and that leaves k others there, when the calendar does not hold
q any more. Each returns the sojourn time of the job if it is known then, else -1.

The functions share a `supermarket.runs.jobs.calendar.Net`. The ``length`` of a server is the
number of its jobs, kept by the caller, and under FIFO it will have served them all by its ``end``.
Besides, there are

jobs : of JOB, shape (room,)
    ``mark`` is the time of leaving (FIFO), the same by the server's clock (sharing), or the work
    left when it was interrupted (LIFO); ``came`` is when the job came, not kept by FIFO; ``behind``
    is the next job in the same list.

A server's list begins at its ``first`` job and ends with -1; ``last`` is for FIFO alone, and means
nothing in an empty list. The unused jobs are a list from ``state["spare"]`` on.
"""

import numpy as np
from numpy.typing import NDArray

from supermarket.kernels.borrowed import inlined
from supermarket.kernels.compiled import kernel
from supermarket.runs.jobs.calendar import Net, cancel, schedule

JOB = np.dtype([("mark", "f8"), ("came", "f8"), ("behind", "i4")], align=True)


def unused_jobs(low: int, high: int) -> NDArray:
    """Return the places low, ..., high - 1 for jobs, in one list."""
    jobs = np.zeros(high - low, dtype=JOB)
    jobs["behind"] = np.append(np.arange(low + 1, high), -1)
    return jobs


@kernel(nogil=True)
def load(net: Net, residuals: NDArray[np.float64], services: NDArray[np.float64]) -> None:
    """Begin at time 0 with given lengths under FIFO: the jobs in service have residual times.

    The service times of the jobs behind them are taken from `services`.
    """
    used = 0
    for q in range(len(net.servers)):
        if net.servers[q]["length"] > 0:
            time = residuals[q]
            schedule(net, q, time)
            for _ in range(net.servers[q]["length"] - 1):
                time += services[used]
                used += 1
                _append(net, q, time)
            net.servers[q]["end"] = time


@inlined
def join_fifo(net: Net, q: int, k: int, service: float, now: float) -> float:
    """Come last; when the job will leave is known at once."""
    if k == 0:
        net.servers[q]["end"] = now + service
        schedule(net, q, now + service)
        return service
    end = net.servers[q]["end"]
    net.servers[q]["end"] = end + service
    _append(net, q, end + service)
    return end - now + service


@inlined
def leave_fifo(net: Net, q: int, k: int, now: float) -> float:
    """Begin to serve the job that has waited longest."""
    if k > 0:
        job = _take(net, q)
        schedule(net, q, net.jobs[job]["mark"])
    return -1.0


@inlined
def join_sharing(net: Net, q: int, k: int, service: float, now: float) -> float:
    """Take a share of the server from all that are there."""
    time, before, mark = now + service, -1, service
    if k > 0:
        cancel(net, q)
        job = net.servers[q]["first"]
        clock = net.jobs[job]["mark"] - (net.servers[q]["time"] - now) / k
        mark += clock
        soonest = min(mark, net.jobs[job]["mark"])
        time = now + max(soonest - clock, 0.0) * (k + 1)  # it may round to below 0
        while job >= 0 and net.jobs[job]["mark"] <= mark:
            before, job = job, net.jobs[job]["behind"]
    _insert(net, q, before, mark, now)
    schedule(net, q, time)
    return -1.0


@inlined
def leave_sharing(net: Net, q: int, k: int, now: float) -> float:
    """Leave larger shares to those that stay."""
    job = _take(net, q)
    if k > 0:
        left = net.jobs[net.servers[q]["first"]]["mark"] - net.jobs[job]["mark"]
        schedule(net, q, now + left * k)
    return now - net.jobs[job]["came"]


@inlined
def join_lifo(net: Net, q: int, k: int, service: float, now: float) -> float:
    """Be served at once; the job that this interrupts keeps what is left of its work."""
    if k > 0:
        cancel(net, q)
        net.jobs[net.servers[q]["first"]]["mark"] = net.servers[q]["time"] - now
    _insert(net, q, -1, service, now)
    schedule(net, q, now + service)
    return -1.0


@inlined
def leave_lifo(net: Net, q: int, k: int, now: float) -> float:
    """Let the job that was interrupted last go on."""
    job = _take(net, q)
    if k > 0:
        schedule(net, q, now + net.jobs[net.servers[q]["first"]]["mark"])
    return now - net.jobs[job]["came"]


DISCIPLINES = {
    "fifo": (join_fifo, leave_fifo),
    "ps": (join_sharing, leave_sharing),
    "lifo": (join_lifo, leave_lifo),
}


@inlined
def _append(net, q, mark):
    """Put a job at the end of the list of server q."""
    job = net.state[0]["spare"]
    net.state[0]["spare"] = net.jobs[job]["behind"]
    net.jobs[job]["behind"] = -1
    net.jobs[job]["mark"] = mark
    if net.servers[q]["first"] < 0:
        net.servers[q]["first"] = job
    else:
        net.jobs[net.servers[q]["last"]]["behind"] = job
    net.servers[q]["last"] = job


@inlined
def _insert(net, q, before, mark, came):
    """Put a job into the list of server q, behind the job `before`, or first if that is -1."""
    job = net.state[0]["spare"]
    net.state[0]["spare"] = net.jobs[job]["behind"]
    net.jobs[job]["mark"] = mark
    net.jobs[job]["came"] = came
    if before < 0:
        net.jobs[job]["behind"] = net.servers[q]["first"]
        net.servers[q]["first"] = job
    else:
        net.jobs[job]["behind"] = net.jobs[before]["behind"]
        net.jobs[before]["behind"] = job


@inlined
def _take(net, q):
    """Take the first job out of the list of server q and return its place, which is free now."""
    job = net.servers[q]["first"]
    net.servers[q]["first"] = net.jobs[job]["behind"]
    net.jobs[job]["behind"] = net.state[0]["spare"]
    net.state[0]["spare"] = job
    return job
