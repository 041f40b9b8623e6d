"""The front door: one `simulate` for every model, with the engine that fits or is asked for."""

from collections.abc import Callable
from importlib import import_module

from numpy.random import SeedSequence

from supermarket import policies
from supermarket.models.jsq import Supermarket
from supermarket.runs.many import MOST_THREADS, run_points
from supermarket.runs.run import Run
from supermarket.runs.schedule import MOST_COPIES, Schedule, schedule_of, spawned
from supermarket.validation import ParameterError, choice, integer, said, seed_of

__all__ = ["simulate"]

_JOBS, _LABELLED, _LANES = "jobs", "labelled", "lanes"


def simulate(
    model: object,
    schedule: float | Schedule,
    *,
    seed: int | SeedSequence,
    start: object = None,
    engine: str = "auto",
    copies: int | None = None,
    threads: int = 1,
) -> Run | list[Run]:
    """Simulate a model exactly.

    Parameters
    ----------
    model : Supermarket, JacksonNetwork or PoolSystem
        What is simulated, with a finite n.
    schedule : Schedule or float
        When it is measured; a number is the horizon of a `supermarket.Schedule` that leaves
        everything else as usual.
    seed : int or SeedSequence
        Fixes the result together with the other parameters.
    start : str or array_like, optional
        State before the warm-up. With exponential service:

        - "fixed point", as usual: that of the limit of many queues, u[i+1] = lam * beta(u[i]), with
          replacement equation (1.2) of [1]_, rounded to whole queues; of memory, a shortest queue
          is remembered; of a network each station at the fixed point of its load;
        - "empty", or a profile of shares u[0] = 1, u[1], ..., not increasing; for a network one for
          each station. From there lam may be 1 or more: then the queues grow, and only `path` and
          `final` say much.

        With the engine "labelled": "empty", as usual, or the n lengths. Of single jobs:

        - "empty", as usual. **If the service time has an infinite variance, such a run is biased
          low for very long**: the rare huge jobs have not come yet;
        - "equilibrium", FIFO and with a load below 1: every server is drawn from the equilibrium of
          the cavity process, see `supermarket.cavity`;
        - int and float arrays (lengths, residuals) of shape (n,), FIFO: the number of jobs at each
          server and the time left of the job in service (ignored where there is none); the jobs
          behind it get fresh service times.

        Of pools: "optimum", as usual, with n rho tasks placed as well as can be, "empty", or shares
        of shape (classes, levels), rounded to whole pools.
    engine : str
        How events are found; all have the same law and different streams. "auto" takes what is
        fastest at this n. With exponential service:

        - "scan" compares the uniform with level after level, "table" finds most events by one look
          into a guide table, both up to n = 2**53;
        - "ranks" finds every event by one look into an alias table, up to n = 10**6 (see
          `supermarket.runs.counts.ranks`);
        - "bursts" makes many events at a time, some sqrt(n), up to n = 4e18 (see
          `supermarket.runs.counts.bursts`);
        - "lanes" makes 64 copies at a time, up to n = 32767 (see `supermarket.runs.counts.lanes`).
          The time of an event grows with the number of levels: for d = 1 and lam near 1 the others
          are faster;
        - "labelled" holds every queue, up to n = 10**9; its lengths at the end are
          ``extra["lengths"]``.

        "jobs" goes job by job, with any law of the service time, up to n = 10**8. It gives sojourn
        times too. Time is kept in float64: at time t, it is resolved to some 1e-16 t.
    copies : int, optional
        Return so many independent copies. Number k has the k-th stream spawned from `seed`: its
        result depends on `seed`, k and the other parameters, not on how many copies there are.
    threads : int
        How many of these, or groups of 64, run at a time.

    Returns
    -------
    Run, or list of Run if there are `copies`

    Raises
    ------
    ParameterError
        If a parameter is not allowed, the run would take longer than the schedule allows, a queue
        grows to 100000 jobs, or a pool comes to hold as many tasks as its utility is known for.

    References
    ----------
    .. [1] G. Brightwell and M. Luczak, "The supermarket model with arrival rate tending to one",
       arXiv:1201.5523, section 1.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from supermarket import Lomax, Supermarket, fixed_point, simulate
    >>> shop = Supermarket(n=1000, d=2, lam=0.7)
    >>> run = simulate(shop, 200, seed=1)
    >>> bool(abs(run.profile[2] - fixed_point(Supermarket(1000, 2, 0.7), 2)[2]) < 0.01)
    True
    >>> remembering = simulate(replace(shop, d=1, policy="memory"), 200, seed=1)
    >>> bool(abs(remembering.profile[2] - 0.49) < 0.01)
    True
    >>> heavy = replace(shop, service=Lomax(2.5), replacement=False)
    >>> bool(simulate(heavy, 200, seed=1).mean_sojourn > 1.5)
    True
    >>> len(simulate(replace(shop, n=20), 20, seed=1, copies=40))
    40
    """
    asked = {"seed": seed, "start": start, "engine": engine, "copies": copies, "threads": threads}
    return _prepare(model, schedule, **asked)()


def _prepare(
    model: object,
    schedule: float | Schedule,
    *,
    seed: int | SeedSequence,
    start: object = None,
    engine: str = "auto",
    copies: int | None = None,
    threads: int = 1,
) -> Callable[[], Run | list[Run]]:
    """Check what `simulate` was asked for and return what makes the run, or the copies."""
    schedule = schedule_of(schedule)
    integer("threads", threads, 1, MOST_THREADS)
    room = _room(model, engine)
    module = import_module(f"supermarket.runs.{room}")
    more = (engine,) if room == "counts.engines" else ()
    counted = room == "counts.engines" and model.policy == "jsq"
    if copies is None:
        if counted and engine == _LANES:
            raise ParameterError(
                "engine = 'lanes' makes many copies at a time: say how many copies."
            )
        return module.prepare(model, schedule, seed_of(seed), start, *more)
    schedule.allow(0.0, 0.0, copies=integer("copies", copies, 1, MOST_COPIES))
    seeds = spawned(seed, copies)
    if counted and (engine == _LANES or (engine == "auto" and model.n < 2**15)):
        from supermarket.runs.counts import lanes as replicas

        return replicas.prepare(model, schedule, seeds, start, threads)
    module.prepare(model, schedule, seeds[0], start, *more)

    def run(one: SeedSequence, seed: SeedSequence) -> Run:
        return module.prepare(model, schedule, one, start, *more)()

    return lambda: run_points(run, [{"one": one} for one in seeds], seed=0, threads=threads)


simulate.check = _prepare


def _room(model: object, engine: str) -> str:
    """Return the module that simulates the model."""
    kind = type(model).__name__
    if kind in ("JacksonNetwork", "PoolSystem"):
        choice("engine", engine, ("auto",))
        return {"JacksonNetwork": "stations", "PoolSystem": "pools"}[kind]
    if not isinstance(model, Supermarket):
        raise ParameterError(
            f"model = {said(model)} is no model: give a Supermarket(n, d, lam), a network of "
            "jackson_network, or a PoolSystem."
        )
    if not model.is_exponential or model.discipline != "fifo":
        choice("engine", engine, ("auto", _JOBS))
        return "jobs.network"
    plain = model.policy == "jsq"
    alone = {_JOBS: "jobs.network", _LABELLED: "labelled"} if plain else {}
    more = [_LANES, *alone] if plain else []
    engines = policies.named(model.policy).engines
    choice("engine", engine, ("auto", "scan", *engines, *more))
    return alone.get(engine, "counts.engines")
