"""What a first call costs, as far as it can be told without a clock."""

import os
import subprocess
import sys

import numba
import pytest

from benchmarks.first_call import CALLS, FIRST

pytestmark = pytest.mark.book  # once is enough

HEAVY = ("scipy.special", "scipy.linalg", "scipy.sparse", "pandas", "pyarrow", "matplotlib", "tqdm")
STARTS = (
    "from supermarket import *",
    "from supermarket import Supermarket, fixed_point, simulate; "
    "shop = Supermarket(1000, 2, 0.9); simulate(shop, 1, seed=1).profile; fixed_point(shop, 3)",
)


@pytest.mark.parametrize("start", STARTS)
def test_libraries_are_loaded_where_they_are_used(start):
    code = f"{start}; import sys; print(*set(sys.modules) & set({HEAVY}))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == []


def test_a_kernel_with_linear_algebra_finds_it(tmp_path):
    """SciPy, which holds it for Numba, is not loaded before such a kernel is compiled."""
    code = """
import sys
import numpy as np
from supermarket.kernels.compiled import kernel
@kernel
def solved(a):
    return np.linalg.solve(a, np.dot(a, a))
assert "scipy.linalg" not in sys.modules
print(solved(2 * np.eye(2))[0, 0])
"""
    (tmp_path / "solved.py").write_text(code)
    command = [sys.executable, "solved.py"]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert found.stdout == "2.0\n"


def test_every_call_that_is_measured_runs():
    code = "\n".join([FIRST, *CALLS.values()])
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("call", ["simulate, n = 1e3", "simulate, memory, n = 1e6"])
@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled without the JIT")
def test_a_first_call_compiles_each_kernel_once_and_little_of_numba(call):
    """A number in the source, an array assigned to another: each once cost as much as a kernel."""
    code = f"""
import collections, numba.core.event as event
from supermarket import *
seen = collections.Counter()
class Listener(event.Listener):
    def on_start(self, what):
        seen[what.data["dispatcher"].py_func] += 1
    def on_end(self, what):
        pass
event.register("numba:compile", Listener())
{CALLS[call]}
ours = [seen[f] for f in seen if f.__module__.startswith("supermarket")]
texts = [f for f in seen if f.__module__.endswith("unicode")]
print(max(ours), len(ours), len(texts))
"""
    environment = dict(os.environ) | {"SUPERMARKET_CACHE": "off"}
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    most, kernels, texts = map(int, found.stdout.split())
    assert most == 1
    assert kernels > 3
    assert texts == 0  # an error message with shapes in it compiles some forty functions
