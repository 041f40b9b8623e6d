"""Coupled pairs of a small system, exactly: against the chain, against simulation, by hand."""

import numpy as np
import pytest

from supermarket import (
    ParameterError,
    Supermarket,
    couple,
    small_chain,
)
from supermarket.limits.mixing.coupling import small_coupling


@pytest.fixture(scope="module")
def chain():
    return small_chain(Supermarket(2, 2, 0.6), longest=9)


@pytest.mark.parametrize("by", ["queue", "rank"])
def test_the_chance_not_to_have_met_lies_between_the_distance_and_the_difference(chain, by):
    steps = np.array([0, 3, 10, 30, 100])
    apart = small_coupling(chain, by).apart(steps)
    empty = np.zeros(chain.n, dtype=int)
    distance, _ = chain.mixing(empty, steps)
    customers = chain.states.sum(axis=1)
    more = [customers @ (chain.equilibrium - law) for law, _ in chain.laws(empty, steps)]
    assert np.all(apart >= distance - 1e-12)
    assert np.all(apart <= np.array(more) + 1e-12)
    assert apart[0] == pytest.approx(1 - chain.equilibrium[0])


def test_both_couplings_forget_at_the_gap_and_independent_copies_do_not(chain):
    for by in ("queue", "rank"):
        assert small_coupling(chain, by).rate == pytest.approx(chain.gap, rel=1e-8)
    assert small_coupling(chain, "nothing").rate < 0.9 * chain.gap


@pytest.mark.parametrize("by", ["queue", "rank"])
def test_it_is_the_coupling_that_is_run(chain, by):
    """2000 pairs of the simulation, from the same starts; four standard errors: 1 in 8000."""
    law, rng = chain.equilibrium.clip(0), np.random.default_rng(1)
    drawn = rng.choice(len(law), size=2000, p=law / law.sum())
    met = []
    for seed, row in enumerate(drawn):
        state = chain.states[row]
        if by == "queue":
            starts = [0, 0], state
        else:
            starts = "empty", (state[:, np.newaxis] >= np.arange(11)).mean(axis=0)
        pair = couple(Supermarket(2, 2, 0.6), 200, starts=starts, by=by, seed=seed)
        met.append(np.inf if pair.met is None else pair.met)
    for steps in (4, 12):
        expected = small_coupling(chain, by).apart([steps])[0]
        error = np.sqrt(expected * (1 - expected) / 2000)
        assert abs(np.mean(np.array(met) > steps) - expected) < 4 * error


def test_one_queue_of_length_at_most_one_by_hand():
    """Copies (0, 1) share each event: an arrival, or a departure, makes them one."""
    pair = small_coupling(small_chain(Supermarket(1, 2, 0.5), longest=1), "queue")
    assert pair.matrix.toarray() == pytest.approx(np.zeros((1, 1)))
    assert pair.apart([0, 1]) == pytest.approx([1 / 3, 0])


def test_refuses():
    chain = small_chain(Supermarket(4, 2, 0.5), longest=12)
    with pytest.raises(ParameterError, match="choose fewer queues"):
        small_coupling(chain, "nothing")
    with pytest.raises(ParameterError, match="by = 'server' is not known"):
        small_coupling(chain, "server")
