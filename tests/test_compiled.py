"""Machine code that is kept: never old, not made again for nothing, and never in the way.

Each test works in a copy of the package with two small modules added, a kernel and its callee, and
starts processes of its own, as a person does who edits a file between two runs.
"""

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numba
import pytest
from numba.core.compiler import Flags

import supermarket

pytestmark = [
    pytest.mark.book,  # once is enough
    pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled without the JIT"),
]

CALLEE = '''"""A callee."""
from supermarket.kernels.compiled import kernel
WEIGHT = 2.0
@kernel
def inner(x):
    """Return a multiple."""
    return WEIGHT * x
'''
CALLER = '''"""A kernel."""
import numpy as np
from supermarket.apart import told
from supermarket.callee import inner
from supermarket.kernels.compiled import kernel
SHIFTS = np.array([0.5, 0.25])
@kernel
def outer(x):
    return inner(x) + SHIFTS[0] + _later(x)
@kernel
def _later(x):
    return 0.0 * x * told(1.0)
'''
# A module of its own: its whole text is part of the hash.
APART = """
from numba.extending import overload
def told(x):
    return x
@overload(told)
def _told(x):
    return lambda x: x * 1.0
"""
SHOW = """from supermarket.caller import outer
print(outer(1.0), sum(outer.stats.cache_hits.values()))"""


@pytest.fixture
def package(tmp_path):
    """Return a copy of the package that may be edited."""
    home = Path(supermarket.__file__).parent
    copy = tmp_path / "copy" / "supermarket"
    shutil.copytree(home, copy, ignore=shutil.ignore_patterns("__pycache__", "notebooks"))
    (copy / "apart.py").write_text(APART)
    (copy / "callee.py").write_text(CALLEE)
    (copy / "caller.py").write_text(CALLER)
    return copy


@pytest.fixture
def run(package, tmp_path):
    """Return what a fresh process prints: the number, and 1 if it was not compiled."""

    def start(code=SHOW, **changes):
        environment = dict(os.environ) | {"SUPERMARKET_CACHE": str(tmp_path / "cache")}
        environment |= {"PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"}
        environment |= changes
        environment = {name: value for name, value in environment.items() if value is not None}
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, cwd=tmp_path, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        number, hits = done.stdout.split()
        return float(number), int(hits)

    return start


def edit(file, before, after):
    text = file.read_text()
    assert before in text
    file.write_text(text.replace(before, after))


def test_the_second_process_compiles_nothing(run):
    assert run() == (2.5, 0)
    assert run() == (2.5, 1)


SEEN = [
    ("callee", "WEIGHT * x", "WEIGHT * x * x + 1", 3.5),
    ("callee", "WEIGHT = 2.0", "WEIGHT = 3.0", 3.5),
    ("caller", "0.5, 0.25", "0.75, 0.25", 2.75),
    ("caller", "0.0 * x", "4.0 * x", 6.5),  # below its caller, in the same module
    ("apart", "return lambda x: x * 1.0", "return lambda x: x + 0.0", 2.5),
    ("caller", "inner(x) +", "inner(x) -", 1.5),
    ("caller", "@kernel\ndef outer", "@kernel(nogil=True)\ndef outer", 2.5),
    ("callee", "@kernel\ndef inner", "@kernel(fastmath=True)\ndef inner", 2.5),
]
UNSEEN = [
    ("callee", "Return a multiple.", "Return so many times the number.\n    And no more.\n"),
    ("callee", '"""A callee."""', '"""A callee."""\n# With a comment.\nUNUSED = 1\n'),
    ("callee", "@kernel", "def unused():\n    return 1\n@kernel"),
    (
        "experiment/plotting",
        "import matplotlib as mpl",
        "import matplotlib as mpl\n\nEDITED = True",
    ),
    ("__init__", "import", "import sys  # edited\nimport"),
]


def test_an_edit_of_what_a_kernel_is_made_of_is_seen(run, package):
    assert run() == (2.5, 0)
    for module, before, after, number in SEEN:
        edit(package / f"{module}.py", before, after)
        assert run() == (number, 0), after
        edit(package / f"{module}.py", after, before)
    assert run() == (2.5, 1)  # the version of before is kept too


def test_the_order_of_the_names_in_a_tuple_is_seen(run, package):
    """A kernel asks for a name, its code for a place; it need not know the class of the tuple."""
    edit(package / "callee.py", "WEIGHT * x", "WEIGHT * x[0].second")
    pair = package / "pair.py"
    pair.write_text("from collections import namedtuple\nPair = namedtuple('Pair', 'first second')")
    code = "from supermarket.callee import inner\nfrom supermarket.pair import Pair\n"
    code += "print(inner((Pair(first=1.0, second=2.0),)), sum(inner.stats.cache_hits.values()))"
    assert run(code) == (4.0, 0)
    assert run(code) == (4.0, 1)
    edit(pair, "first second", "second first")
    assert run(code) == (4.0, 0)


def test_an_edit_that_no_kernel_can_see_compiles_nothing(run, package):
    assert run() == (2.5, 0)
    for module, before, after in UNSEEN:
        file = package / f"{module}.py"
        file.write_text(file.read_text().replace(before, after, 1))
        assert after in file.read_text()
    assert run() == (2.5, 1)


def test_a_hash_of_the_kernel_alone_would_run_old_code(run, package):
    """What the tests above are there to catch: a planted fault, the kernel's own bytecode only."""
    fault = "from supermarket.kernels import compiled\n"
    fault += "compiled.made_of = lambda f: f.py_func.__code__.co_code.hex()\n"
    assert run(fault + SHOW) == (2.5, 0)
    edit(package / "callee.py", "WEIGHT = 2.0", "WEIGHT = 3.0")
    assert run(fault + SHOW) == (2.5, 1)  # it is 3.5


def test_many_processes_at_once(run):
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: run(), range(4)))
    assert {number for number, _ in results} == {2.5}
    assert run() == (2.5, 1)


def test_a_folder_that_cannot_be_written_is_done_without(run, tmp_path):
    (tmp_path / "file").write_text("in the way")
    for folder in (tmp_path / "file", tmp_path / "file" / "below", "/proc/nowhere", "off"):
        assert run(SUPERMARKET_CACHE=str(folder)) == (2.5, 0)
    assert list(tmp_path.glob("cache*")) == []


def test_without_a_home_and_on_a_full_disk_it_still_runs(run, tmp_path):
    assert run(SUPERMARKET_CACHE=None, HOME=str(tmp_path / "no" / "home"))[0] == 2.5
    assert run(SUPERMARKET_CACHE=None, HOME=None, XDG_CACHE_HOME=None, PATH="")[0] == 2.5
    # No file may grow beyond a few bytes: what a full disk says, at another place.
    full = "import resource, signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    full += "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
    assert run(full + SHOW) == (2.5, 0)
    assert run() == (2.5, 0)
    assert run() == (2.5, 1)


def test_a_damaged_file_is_made_again(run, tmp_path):
    run()
    for file in (tmp_path / "cache").rglob("*.nb?"):
        file.write_bytes(b"not what it was")
    assert run() == (2.5, 0)
    assert run() == (2.5, 1)


def test_what_nobody_used_for_long_is_removed(run, tmp_path, package):
    run()
    old = sorted((tmp_path / "cache").rglob("*outer*"))
    assert len(old) == 2
    for file in (tmp_path / "cache").rglob("*.nb?"):
        os.utime(file, (1, 1))
    edit(package / "caller.py", "0.5, 0.25", "0.75, 0.25")
    assert run() == (2.75, 0)
    assert not [file for file in old if file.exists()]
    assert run() == (2.75, 1)


def test_every_kernel_of_the_package_can_be_kept():
    """Each can be told by what it is made of, and none takes a function as an argument."""
    import importlib
    import pkgutil

    from numba.core.dispatcher import Dispatcher

    from supermarket.kernels.compiled import made_of

    found = {}
    for module in pkgutil.walk_packages(supermarket.__path__, "supermarket."):
        if module.name.endswith("__main__"):
            continue
        for thing in vars(importlib.import_module(module.name)).values():
            if isinstance(thing, Dispatcher) and thing.py_func.__module__ == module.name:
                found[module.name, thing.py_func.__qualname__] = made_of(thing)
    assert len(found) > 80
    assert len(set(found.values())) == len(found)


def test_options_of_the_compiler_compare_as_numba_would_have_them():
    plain, set_, other = Flags(), Flags(), Flags()
    set_.release_gil = Flags.options["release_gil"].default  # said, and the same as if it were not
    other.release_gil = not set_.release_gil
    assert plain == set_ == Flags(set_)
    assert hash(plain) == hash(set_)
    assert plain != other
    assert plain != "plain"
    assert {plain: 1, other: 2}[set_] == 1
