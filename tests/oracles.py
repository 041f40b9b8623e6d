"""What the tests compare with: written to be obviously right, from the definitions alone."""

import itertools
import re
from dataclasses import fields, replace
from functools import cache
from types import CellType, FunctionType

import numba
import numpy as np
from numba.core.dispatcher import Dispatcher

from supermarket import PoolSystem, Schedule, Supermarket, simulate
from supermarket.kernels.event_loop import Kept, Tally, rule_of

JIT = not numba.config.DISABLE_JIT


def shown(value):
    """Return the text of a test's parameter: no addresses, which differ from worker to worker."""
    return re.sub(r" at 0x\w+", "", str(value))


def asked(call=simulate, **given):
    """Do a call, of `simulate` unless another is named, with all it is asked for in one list.

    The model is a supermarket, unless a `network` or `pools` are given; or two, where a number of
    it is a pair.
    """

    def taken(kind):
        return {one.name: given.pop(one.name) for one in fields(kind) if one.name in given}

    if "network" in given:
        network = given.pop("network")
        model = replace(network, **taken(type(network)))
    else:
        kind = PoolSystem if "pools" in given else Supermarket
        numbers = taken(kind)
        pairs = {name: pair for name, pair in numbers.items() if isinstance(pair, tuple)}
        each = [dict(zip(pairs, one, strict=True)) for one in zip(*pairs.values(), strict=True)]
        model = [kind(**numbers | one) for one in each] if pairs else kind(**numbers)
    return call(model, Schedule(**taken(Schedule)), **given)


@cache
def exact(n, d, lam, replacement, longest):
    """Return the sorted states with lengths <= longest, their transition matrix, their law.

    Every ordered list of d queues is tried, so nothing is assumed about the occupancy chain. An
    arrival that would exceed `longest` is lost; choose it so that this hardly ever happens.
    """
    states = list(itertools.combinations_with_replacement(range(longest, -1, -1), n))
    index = {state: row for row, state in enumerate(states)}
    lists = (
        list(itertools.product(range(n), repeat=d))
        if replacement
        else list(itertools.permutations(range(n), d))
    )
    matrix = np.zeros((len(states), len(states)))
    for state, row in index.items():
        for chosen in lists:
            shortest = min(state[q] for q in chosen)
            joined = next(q for q in chosen if state[q] == shortest)
            after = list(state)
            after[joined] = min(after[joined] + 1, longest)
            matrix[row, index[_sorted(after)]] += lam / (1 + lam) / len(lists)
        for q in range(n):
            after = list(state)
            after[q] = max(after[q] - 1, 0)
            matrix[row, index[_sorted(after)]] += 1 / (1 + lam) / n
    system = matrix.T - np.eye(len(states))
    system[0] = 1.0  # one balance equation follows from the others: the sum of the law instead
    law = np.linalg.solve(system, np.eye(len(states))[0])
    return states, matrix, law


def counts_of(state, longest):
    """Return the number of queues with length at least 0, 1, ..., longest + 1."""
    return np.array([sum(x >= i for x in state) for i in range(longest + 2)])


def exact_profile(n, d, lam, replacement, longest):
    """Return the stationary mean share of queues with length at least i, and the law of the max."""
    states, _, law = exact(n, d, lam, replacement, longest)
    shares = np.array([counts_of(state, longest) for state in states]) / n
    tops = np.zeros(longest + 1)
    for state, probability in zip(states, law, strict=True):
        tops[max(state)] += probability
    return law @ shares, tops


def _sorted(lengths):
    return tuple(sorted(lengths, reverse=True))


class Uniforms:
    """A stand-in for a Generator that hands out given uniforms."""

    def __init__(self, values):
        self._values = iter(values)

    def random(self):
        return next(self._values)


def plain(kernel):
    """Return a kernel as Python runs it, and so all that it calls and Python could not call."""
    return _plain(kernel, {}) if isinstance(kernel, Dispatcher) else kernel


def _plain(kernel, known):
    if id(kernel) not in known:
        source = kernel.py_func
        cells = tuple(CellType() for _ in source.__closure__ or ())
        names = dict(source.__globals__)
        function = FunctionType(source.__code__, names, source.__name__, None, cells or None)
        known[id(kernel)] = function
        for cell, original in zip(cells, source.__closure__ or (), strict=True):
            cell.cell_contents = _called(original.cell_contents, known)
        names.update((name, _called(value, known)) for name, value in source.__globals__.items())
    return known[id(kernel)]


def _called(value, known):
    inlined = isinstance(value, Dispatcher) and value.targetoptions.get("no_cpython_wrapper")
    return _plain(value, known) if inlined else value


def make_steps(kernel, rng, s, d, lam, replacement, events, moved, at_top, memory=()):
    """Let an event loop make steps, as a chain does."""
    kept = Kept(np.empty(len(s)), np.asarray(memory, dtype=np.int64))
    law = rule_of(s, d, lam, replacement)
    return kernel(rng, s, law, kept, events, Tally(moved, at_top))
