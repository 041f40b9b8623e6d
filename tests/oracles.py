"""What the tests compare with: written to be obviously right, from the definitions alone."""

import itertools
import re
from functools import cache

import numba
import numpy as np

JIT = not numba.config.DISABLE_JIT


def shown(value):
    """Return the text of a test's parameter: no addresses, which differ from worker to worker."""
    return re.sub(r" at 0x\w+", "", str(value))


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
