"""The labelled chain: the definition, tie rule included, against a plain twin."""

import numpy as np
import pytest
from oracles import Uniforms

from supermarket import ParameterError, Supermarket, simulate
from supermarket.kernels.event_loop import Tally
from supermarket.runs import labelled as queues


def plain_step(x, uniforms, d, lam, distinct):
    """One step as Brightwell and Luczak define it, on a list of lengths."""
    x = list(x)
    n = len(x)
    if uniforms.random() < lam / (1 + lam):
        if distinct:
            left, chosen = list(range(n)), []
            for j in range(d):
                k = j + int(uniforms.random() * (n - j))
                left[j], left[k] = left[k], left[j]
                chosen.append(left[j])
        else:
            chosen = [int(uniforms.random() * n) for _ in range(d)]
        shortest = min(x[q] for q in chosen)
        first = next(q for q in chosen if x[q] == shortest)
        x[first] += 1
    else:
        q = int(uniforms.random() * n)
        x[q] = max(x[q] - 1, 0)
    return x


@pytest.mark.parametrize("distinct", [False, True])
@pytest.mark.parametrize("d", [1, 2, 5])
def test_same_queue_is_joined_as_in_the_definition(d, distinct):
    """The same uniforms lead to the same queue, ties to the first in the list."""
    rng = np.random.default_rng(d)
    kernel = getattr(queues._advance, "py_func", queues._advance)
    for _ in range(400):
        x = rng.integers(0, 3, size=6)
        stream = rng.random(d + 1)
        expected = plain_step(x, Uniforms(stream), d, 0.9, distinct)
        chain = queues._Queues(x.copy(), d, 0.9, not distinct, None)
        state = chain._lengths, chain._order, chain.counts
        tally = Tally(chain.counts * 0, chain.counts * 0)
        kernel(Uniforms(stream), *state, chain._rule, 1, tally)
        assert chain._lengths.tolist() == expected
        at_least = [(np.array(expected) >= i).sum() for i in range(len(chain.counts))]
        assert chain.counts.tolist() == at_least


def test_counts_follow_the_lengths():
    for replacement in (True, False):
        run = simulate(
            Supermarket(30, 3, 0.9, replacement=replacement),
            40,
            engine="labelled",
            start=[7] * 30,
            seed=2,
        )
        lengths = run.extra["lengths"]
        assert run.final.tolist() == [(lengths >= i).sum() for i in range(len(run.final))]
        assert run.start == "given"


@pytest.mark.parametrize("lengths", [[1, 2], [0.5] * 5, [-1] * 5, [[1] * 5], [[1], [2, 3]]])
def test_bad_lengths_get_one_sentence(lengths):
    with pytest.raises(ParameterError, match="lengths must be n = 5 whole numbers"):
        simulate(Supermarket(5, 2, 0.5), 1, engine="labelled", start=lengths, seed=1)


def test_a_queue_too_long_to_count():
    with pytest.raises(
        ParameterError, match="lengths must be n = 2 whole numbers from 0 to 100000"
    ):
        simulate(Supermarket(2, 2, 0.5), 1, engine="labelled", start=[10**9, 2], seed=1)
