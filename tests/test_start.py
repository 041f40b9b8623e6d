"""What a first call costs, as far as it can be told without a clock."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.book  # once is enough

HEAVY = ("scipy.special", "scipy.linalg", "scipy.sparse", "pandas", "pyarrow", "matplotlib", "tqdm")
STARTS = {
    "from supermarket import *": set(),
    # Numba asks SciPy for its linear algebra when it compiles anything.
    "from supermarket import fixed_point, simulate; "
    "simulate(1000, 2, 0.9, horizon=1, seed=1).profile; fixed_point(0.9, 2, 3)": {"scipy.linalg"},
}


@pytest.mark.parametrize(("start", "allowed"), STARTS.items())
def test_libraries_are_loaded_where_they_are_used(start, allowed):
    code = f"{start}; import sys; print(*set(sys.modules) & set({HEAVY}))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(found.stdout.split()) <= allowed
