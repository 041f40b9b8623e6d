"""What a server does with its jobs: FIFO, processor sharing, or preemptive-resume LIFO.

The calendar knows when each server finishes its next job. Its other jobs, or all of them, are in a
list of its own, in the order in which they will leave if no job comes any more:

- FIFO: when a job will leave is known when it comes. The list is a queue of those times, and the
  job in service is not in it.
- Sharing: each of k jobs is served at rate 1 / k. By a clock that runs at that rate, a job that
  comes at v and needs s leaves at v + s. The list is sorted by that, and holds all jobs.
- LIFO: a new job is served at once, and the one that it interrupts goes on later where it stopped.
  The list is a stack of what is left to do, and holds all jobs.

The functions share the arrays of `supermarket.chains.departures` and

length : of int32, shape (n,)
    Number of jobs at each server.
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

FIFO, SHARING, LIFO = 0, 1, 2
DISCIPLINES = {"fifo": FIFO, "ps": SHARING, "lifo": LIFO}
JOB = np.dtype([("mark", "f8"), ("came", "f8"), ("behind", "i4")], align=True)


def unused_jobs(low: int, high: int) -> NDArray:
    """Return the places low, ..., high - 1 for jobs, in one list."""
    jobs = np.zeros(high - low, dtype=JOB)
    jobs["behind"] = np.append(np.arange(low + 1, high), -1)
    return jobs


@inlined
def load(length, servers, jobs, days, heap, state, residuals, services) -> None:
    """Begin at time 0 with given lengths under FIFO: the jobs in service have residual times.

    The service times of the jobs behind them are taken from `services`.
    """
    used = 0
    for q in range(len(length)):
        if length[q] > 0:
            time = residuals[q]
            schedule(servers, days, heap, state, q, time)
            for _ in range(length[q] - 1):
                time += services[used]
                used += 1
                _append(servers, jobs, state, q, time)


@inlined
def join(discipline, length, servers, jobs, days, heap, state, q, service, now) -> float:
    """Let a job come to server q; return its sojourn time if that is known by now, else -1."""
    k = length[q]
    length[q] = k + 1
    time, sojourn = now + service, -1.0
    if discipline == FIFO:
        if k > 0:
            end = servers[q]["time"] if k == 1 else jobs[servers[q]["last"]]["mark"]
            _append(servers, jobs, state, q, end + service)
            return end - now + service
        sojourn = service
    else:
        first, before, mark = servers[q]["first"], -1, service
        if k > 0:
            cancel(servers, days, heap, state, q)
            left = servers[q]["time"] - now
            if discipline == LIFO:
                jobs[first]["mark"] = left
            else:
                clock = jobs[first]["mark"] - left / k
                mark += clock
                soonest = min(mark, jobs[first]["mark"])
                time = now + max(soonest - clock, 0.0) * (k + 1)  # it may round to below 0
                job = first
                while job >= 0 and jobs[job]["mark"] <= mark:
                    before, job = job, jobs[job]["behind"]
        _insert(servers, jobs, state, q, before, mark, now)
    schedule(servers, days, heap, state, q, time)
    return sojourn


@inlined
def leave(discipline, length, servers, jobs, days, heap, state, q, now) -> float:
    """Let the job leave that server q has finished; the calendar does not hold q any more.

    Return its sojourn time, or -1 if `join` has done so.
    """
    length[q] -= 1
    k = length[q]
    if discipline == FIFO and k == 0:
        return -1.0
    job = _take(servers, jobs, state, q)
    time = jobs[job]["mark"]
    if discipline != FIFO and k > 0:
        left = jobs[servers[q]["first"]]["mark"]
        time = now + (left if discipline == LIFO else (left - time) * k)
    if k > 0:
        schedule(servers, days, heap, state, q, time)
    return -1.0 if discipline == FIFO else now - jobs[job]["came"]


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
