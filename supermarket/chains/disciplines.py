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

The functions share the arrays of `supermarket.chains.departures`. The ``length`` of a server is the
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

from supermarket.chains.borrowed import inlined
from supermarket.chains.departures import cancel, schedule
from supermarket.compiled import kernel

JOB = np.dtype([("mark", "f8"), ("came", "f8"), ("behind", "i4")], align=True)


def unused_jobs(low: int, high: int) -> NDArray:
    """Return the places low, ..., high - 1 for jobs, in one list."""
    jobs = np.zeros(high - low, dtype=JOB)
    jobs["behind"] = np.append(np.arange(low + 1, high), -1)
    return jobs


@kernel(nogil=True)
def load(servers, jobs, days, heap, state, residuals, services) -> None:
    """Begin at time 0 with given lengths under FIFO: the jobs in service have residual times.

    The service times of the jobs behind them are taken from `services`.
    """
    used = 0
    for q in range(len(servers)):
        if servers[q]["length"] > 0:
            time = residuals[q]
            schedule(servers, days, heap, state, q, time)
            for _ in range(servers[q]["length"] - 1):
                time += services[used]
                used += 1
                _append(servers, jobs, state, q, time)
            servers[q]["end"] = time


@inlined
def join_fifo(servers, jobs, days, heap, state, q, k, service, now) -> float:
    """Come last; when the job will leave is known at once."""
    if k == 0:
        servers[q]["end"] = now + service
        schedule(servers, days, heap, state, q, now + service)
        return service
    end = servers[q]["end"]
    servers[q]["end"] = end + service
    _append(servers, jobs, state, q, end + service)
    return end - now + service


@inlined
def leave_fifo(servers, jobs, days, heap, state, q, k, now) -> float:
    """Begin to serve the job that has waited longest."""
    if k > 0:
        job = _take(servers, jobs, state, q)
        schedule(servers, days, heap, state, q, jobs[job]["mark"])
    return -1.0


@inlined
def join_sharing(servers, jobs, days, heap, state, q, k, service, now) -> float:
    """Take a share of the server from all that are there."""
    time, before, mark = now + service, -1, service
    if k > 0:
        cancel(servers, days, heap, state, q)
        job = servers[q]["first"]
        clock = jobs[job]["mark"] - (servers[q]["time"] - now) / k
        mark += clock
        soonest = min(mark, jobs[job]["mark"])
        time = now + max(soonest - clock, 0.0) * (k + 1)  # it may round to below 0
        while job >= 0 and jobs[job]["mark"] <= mark:
            before, job = job, jobs[job]["behind"]
    _insert(servers, jobs, state, q, before, mark, now)
    schedule(servers, days, heap, state, q, time)
    return -1.0


@inlined
def leave_sharing(servers, jobs, days, heap, state, q, k, now) -> float:
    """Leave larger shares to those that stay."""
    job = _take(servers, jobs, state, q)
    if k > 0:
        left = jobs[servers[q]["first"]]["mark"] - jobs[job]["mark"]
        schedule(servers, days, heap, state, q, now + left * k)
    return now - jobs[job]["came"]


@inlined
def join_lifo(servers, jobs, days, heap, state, q, k, service, now) -> float:
    """Be served at once; the job that this interrupts keeps what is left of its work."""
    if k > 0:
        cancel(servers, days, heap, state, q)
        jobs[servers[q]["first"]]["mark"] = servers[q]["time"] - now
    _insert(servers, jobs, state, q, -1, service, now)
    schedule(servers, days, heap, state, q, now + service)
    return -1.0


@inlined
def leave_lifo(servers, jobs, days, heap, state, q, k, now) -> float:
    """Let the job that was interrupted last go on."""
    job = _take(servers, jobs, state, q)
    if k > 0:
        schedule(servers, days, heap, state, q, now + jobs[servers[q]["first"]]["mark"])
    return now - jobs[job]["came"]


DISCIPLINES = {
    "fifo": (join_fifo, leave_fifo),
    "ps": (join_sharing, leave_sharing),
    "lifo": (join_lifo, leave_lifo),
}


@inlined
def _append(servers, jobs, state, q, mark):
    """Put a job at the end of the list of server q."""
    job = state[0]["spare"]
    state[0]["spare"] = jobs[job]["behind"]
    jobs[job]["behind"] = -1
    jobs[job]["mark"] = mark
    if servers[q]["first"] < 0:
        servers[q]["first"] = job
    else:
        jobs[servers[q]["last"]]["behind"] = job
    servers[q]["last"] = job


@inlined
def _insert(servers, jobs, state, q, before, mark, came):
    """Put a job into the list of server q, behind the job `before`, or first if that is -1."""
    job = state[0]["spare"]
    state[0]["spare"] = jobs[job]["behind"]
    jobs[job]["mark"] = mark
    jobs[job]["came"] = came
    if before < 0:
        jobs[job]["behind"] = servers[q]["first"]
        servers[q]["first"] = job
    else:
        jobs[job]["behind"] = jobs[before]["behind"]
        jobs[before]["behind"] = job


@inlined
def _take(servers, jobs, state, q):
    """Take the first job out of the list of server q and return its place, which is free now."""
    job = servers[q]["first"]
    servers[q]["first"] = jobs[job]["behind"]
    jobs[job]["behind"] = state[0]["spare"]
    state[0]["spare"] = job
    return job
