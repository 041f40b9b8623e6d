"""Draws of compiled code are those of NumPy's generator, from the same stream."""

import os
import subprocess
import sys

import numba
import numpy as np
import pytest

from supermarket.kernels import draws
from supermarket.kernels.compiled import kernel

TRIALS = (0, 1, 7, 60, 10**6, 10**15, 2**60)
CHANCES = (0.0, 1e-12, 1e-3, 0.3, 0.5, 0.8, 1.0)  # either way NumPy draws, mirrored or not
MEANS = (0.0, 1e-9, 0.5, 9.0, 11.0, 1e6, 1e15)


@kernel
def _binomials(rng, n, p, found):
    for i in range(len(found)):
        found[i] = draws.binomial(rng, n, p)


@kernel
def _poissons(rng, mean, found):
    for i in range(len(found)):
        found[i] = draws.poisson(rng, mean)


@pytest.mark.parametrize("n", TRIALS)
def test_binomial_variables_are_those_of_the_generator(n):
    for p in CHANCES:
        found, rng, twin = np.zeros(50, dtype=np.int64), *map(np.random.default_rng, (3, 3))
        _binomials(rng, n, p, found)
        assert found.tolist() == twin.binomial(n, p, 50).tolist(), p
        assert rng.random() == twin.random()


@pytest.mark.parametrize("mean", MEANS)
def test_poisson_variables_are_those_of_the_generator(mean):
    found, rng, twin = np.zeros(50, dtype=np.int64), *map(np.random.default_rng, (3, 3))
    _poissons(rng, mean, found)
    assert found.tolist() == twin.poisson(mean, 50).tolist()
    assert rng.random() == twin.random()


HIDDEN = """
import ctypes, numba, numpy as np
class Hidden:
    def __init__(self, path): pass
    def __getitem__(self, name): raise AttributeError(name)
ctypes.CDLL = Hidden
from supermarket.kernels.draws import poisson
draw = numba.njit(lambda rng: poisson(rng, 50.0))
print(draw(np.random.default_rng(3)) == np.random.default_rng(3).poisson(50.0))
"""


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled without the JIT")
def test_where_numpy_hides_its_functions_numba_draws_the_same():
    environment = dict(os.environ) | {"SUPERMARKET_CACHE": "off"}
    command = [sys.executable, "-c", HIDDEN]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "True\n", done.stderr
