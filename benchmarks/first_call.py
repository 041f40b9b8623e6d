"""CPU seconds of a first call, cold and warm: ``python -m benchmarks.first_call``.

Each in a fresh process. Cold: no machine code is kept yet, and the call compiles. Warm: an earlier
process has kept it. Each is what the call adds to the import of the package, whose own cost over
that of NumPy and Numba is the first line. The last one is README's first example, with its imports.
Python's bytecode is kept throughout, as it is where Python is not told otherwise.
"""

import os
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd

FIRST = "from math import inf; from supermarket import *; "
CALLS = {
    "simulate, n = 1e3": "simulate(Supermarket(1000, 2, 0.9), 10, seed=1)",
    "simulate, n = 1e6": "simulate(Supermarket(10**6, 2, 0.9), 0.5, seed=1)",
    "simulate, n = 1e9": "simulate(Supermarket(10**9, 2, 0.9), Schedule(0.01, warmup=0), seed=1)",
    "simulate, jobs": "simulate(Supermarket(1000, 2, 0.7), 10, engine='jobs', seed=1)",
    "simulate, memory, n = 1e3": (
        "simulate(Supermarket(1000, 1, 0.7, policy='memory'), 10, seed=1)"
    ),
    "simulate, memory, n = 1e6": (
        "simulate(Supermarket(10**6, 1, 0.7, policy='memory'), 0.5, seed=1)"
    ),
    "simulate, copies": "simulate(Supermarket(100, 2, 0.7), 10, copies=8, seed=1)",
    "leap": "leap(Supermarket(10**17, 8_000_000, 1 - 6e-11), Schedule(8e6, warmup=0), seed=1)",
    "couple": "couple(Supermarket(1000, 2, 0.7), 50, starts=('empty', [1.0, 1.0]), seed=1)",
    "couple, batches": (
        "couple(Supermarket(10**8, 2, 0.7), 0.1, starts=('empty', [1.0, 1.0]), seed=1)"
    ),
    "equilibrium_draws": (
        "from supermarket.runs.perfect import equilibrium_draws; "
        "equilibrium_draws(Supermarket(50, 2, 0.5), draws=2, seed=1)"
    ),
    "simulate, stations": (
        "network = jackson_network([0.3, 0.0], [[0.0, 1.0], [0.5, 0.0]], 2, n=1000); "
        "simulate(network, 10, seed=1)"
    ),
    "simulate, pools": (
        "pools = server_pools([1.0], [lambda x: -x * x], levels=40); "
        "simulate(PoolSystem(pools, 100, 3.5), 20, seed=1)"
    ),
    "cavity, Lomax": "cavity(Supermarket(inf, 2, 0.9, service=Lomax(1.7)), 50)",
    "cavity, constant": "cavity(Supermarket(inf, 2, 0.9, service=Deterministic()), 8)",
    "cavity, Erlang": "cavity(Supermarket(inf, 2, 0.9, service=Erlang(4)), 8)",
}


def seconds(code: str, cache: str) -> float:
    """Return the CPU seconds, user and system, of a fresh process that runs this."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = dict(os.environ) | {"SUPERMARKET_CACHE": cache}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-c", code]
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def least(code: str, cache: str, times: int = 3) -> float:
    """Return the least of several: whatever else a machine does only adds to it."""
    return min(seconds(code, cache) for _ in range(times))


def first_example() -> str:
    """Return the code of README's first example in Python."""
    text = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    return re.search(r"```python\n(.*?)```", text, re.DOTALL)[1]


def measured(names: list[str], times: int = 3) -> pd.DataFrame:
    """Return a row for each call: CPU seconds beyond the import of the package, cold and warm."""
    rows = []
    with tempfile.TemporaryDirectory() as root:
        imported = least(FIRST, "off", times)
        for number, name in enumerate(names):
            code, cache = FIRST + CALLS[name], os.path.join(root, str(number))
            cold = seconds(code, cache) - imported
            rows.append({"call": name, "cold": cold, "warm": least(code, cache, times) - imported})
    return pd.DataFrame(rows)


def main() -> None:
    """Print the table."""
    libraries = least("import numpy, numba", "off")
    package = least(FIRST, "off") - libraries
    print(
        f"import of numpy and numba: {libraries:.2f} s; of all of supermarket: {package:.2f} more"
    )
    print(measured(list(CALLS)).to_string(index=False, float_format="{:.2f}".format))
    with tempfile.TemporaryDirectory() as cache:
        cold = seconds(first_example(), cache)
        warm = least(first_example(), cache)
    print(f"README's first example, with all imports: {cold:.2f} s cold, {warm:.2f} warm")


if __name__ == "__main__":
    main()
