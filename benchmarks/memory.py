"""Peak memory of one process that simulates n queues: ``python -m benchmarks.memory N STEPS``."""

import resource
import subprocess
import sys


def growth(n: int, steps: int) -> float:
    """Return by how many MB the peak memory of a fresh process grows while it simulates n queues.

    The peak is read before and after the run, both times after the chain was compiled.
    """
    # A child's peak starts at that of the process that starts it: a small shell is put between.
    command = ["sh", "-c", '"$0" "$@"; exit $?', sys.executable, "-m", __name__, str(n), str(steps)]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(told.stdout)


def _main(n: int, steps: int) -> None:
    from supermarket import Schedule, Supermarket, simulate

    def run(n: int) -> float:
        shop, schedule = Supermarket(n, 2, 0.9), Schedule(steps, warmup=0, unit="steps")
        for engine in ("scan", "table"):
            simulate(shop, schedule, seed=1, engine=engine)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / (2**20 if sys.platform == "darwin" else 2**10)

    before = run(1000)
    print(run(n) - before)


if __name__ == "__main__":
    _main(int(sys.argv[1]), int(sys.argv[2]))
