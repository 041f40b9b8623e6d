"""What joins where and what leaves where: one small file a policy, found by being in this folder.

A policy is a module with an object `POLICY`. Its name, with blanks for underscores, is what a
`supermarket.Supermarket` is asked for. The event loop, the command line, sweeps and the contract
tests find it by that.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Policy:
    """A rule of choice, compiled and in plain words.

    Attributes
    ----------
    loop : callable
        The compiled loop, made with `supermarket.kernels.event_loop.event_loop`.
    naive : callable
        The rule as one would say it, for the tests: ``naive(lengths, seen, kept)`` gets the lengths
        of all queues, the d queues that the arrival looks at, in order, and the queue that is
        remembered, and returns a list of (probability, queue joined, queue then remembered).
    fixed_point : callable, optional
        ``fixed_point(n, d, lam, replacement)`` returns the counts nearest to the fixed point of the
        limit, down to 0. Without it runs start empty.
    memory : callable
        ``memory(counts)`` returns what is remembered at the start, an array of int64; nothing
        unless given.
    engines : dict of str to str
        Names of further engines and where they are, as "module:class".
    pick : callable
        ``pick(n, d)`` returns the name of the fastest engine.
    distinct : bool
        Whether the policy is known for distinct choices too.
    """

    loop: Callable[..., int]
    naive: Callable[[Sequence[int], Sequence[int], int], list[tuple[float, int, int]]]
    fixed_point: Callable[[int, int, float, bool], NDArray[np.int64]] | None = None
    memory: Callable[[NDArray[np.int64]], NDArray[np.int64]] = lambda counts: counts[:0]
    engines: Mapping[str, str] = field(default_factory=dict)
    pick: Callable[[int, int], str] = lambda n, d: "scan"
    distinct: bool = True

    def engine(self, name: str) -> Any:
        """Return the class of an engine of this policy."""
        module, _, name = self.engines.get(name, _SCAN).partition(":")
        return getattr(import_module(f"supermarket.{module}"), name)


_SCAN = "runs.counts.engines:Scan"


@cache
def names() -> tuple[str, ...]:
    """Return the names of all policies, "jsq" first."""
    found = (module.name.replace("_", " ") for module in iter_modules(__path__))
    return tuple(sorted(found, key=lambda name: (name != "jsq", name)))


def named(name: str) -> Policy:
    """Return the policy of this name."""
    return import_module(f"{__name__}.{name.replace(' ', '_')}").POLICY
