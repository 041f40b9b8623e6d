"""`kernel`: a `numba.njit` whose machine code is kept, so that the next process starts with it.

Numba's own cache looks at the file of a function, not at what the function calls: after an edit in
another module it runs the old code. Here the code is kept under a hash of all that it is made of:
the bytecode of the kernel and of every kernel that it can call, the constants they read, and the
options, versions and processor they are compiled for. So no edit runs old code, and an edit that no
kernel can see, of a docstring or a plot, compiles nothing.

The environment variable SUPERMARKET_CACHE names the folder, or is ``off`` for none; else it is the
user's cache folder. Where that cannot be read or written, kernels are compiled in memory, as
without it. What no process has used for `KEPT` days is removed.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from hashlib import sha256
from importlib import import_module
from inspect import getsource, ismodule
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import numba
import numpy as np
from numba import njit, types
from numba.core import config
from numba.core.caching import Cache, CompileResultCacheImpl, IndexDataCacheFile
from numba.core.dispatcher import Dispatcher
from numba.core.targetconfig import TargetConfig
from numba.np import linalg

from supermarket.kernels.cache import KEPT
from supermarket.kernels.cache import root as cache_root

__all__ = ["kernel"]

_PACKAGE = __name__.partition(".")[0]
# How an object is told apart from others of its kind, whatever the process.
_PLAIN = (int, float, complex, bool, str, bytes, type(None), np.generic)


def _load_numba_without_scipy() -> None:
    """Load what Numba loads at the first kernel, but for SciPy's matrices: a quarter of a second.

    It imports them only to know that they are there, and again where a kernel needs them.
    """
    if "numba.np.arraymath" in sys.modules or not hasattr(linalg, "ensure_blas"):
        return
    check, linalg.ensure_blas = linalg.ensure_blas, lambda: None
    try:
        import_module("numba.np.arraymath")
    finally:
        linalg.ensure_blas = check


_load_numba_without_scipy()


def _compare_options_fast() -> None:
    """Take a tenth off the time to compile a kernel: let Numba look up faster what it has typed.

    It looks by the options of the compiler, which have all the same hash, made anew from the names
    of all options every time, and are compared one by one, with what they are by default.
    """
    if not hasattr(TargetConfig(), "_values"):  # another version of Numba
        return
    compare = TargetConfig.__eq__

    def equal(options: TargetConfig, other: object) -> bool:
        same = type(options) is type(other) and options._values == other._values
        return same or compare(options, other)

    TargetConfig.__eq__ = equal
    TargetConfig.__hash__ = lambda options: hash(TargetConfig)


_compare_options_fast()


def kernel(function: Callable | None = None, **options: Any) -> Any:
    """Compile a function with `numba.njit`, or take what an earlier process compiled of it.

    Parameters
    ----------
    function : callable
        To be compiled when it is first called.
    **options
        Of `numba.njit`.

    Examples
    --------
    >>> from supermarket.kernels.compiled import kernel
    >>> @kernel
    ... def double(x):
    ...     return 2 * x
    >>> double(3.5)
    7.0
    """
    if function is None:
        return partial(kernel, **options)
    compiled = njit(**{"no_cfunc_wrapper": True} | options)(function)
    if isinstance(compiled, Dispatcher):  # not with the JIT switched off
        compiled._cache = _Cache(compiled)
        _make_callable(compiled)
    return compiled


def _make_callable(compiled: Dispatcher) -> None:
    """Let other kernels call what is compiled for them alone, without a way in from Python.

    That way, the checks and conversions of all arguments, takes longer to compile than many a
    kernel that only others call. What was called from Python before is not compiled again.
    """

    @cache
    def inside() -> Dispatcher:
        options = compiled.targetoptions | {"no_cpython_wrapper": True}
        found = type(compiled)(compiled.py_func, targetoptions=options)
        found._cache = _Cache(found)
        compiled.inside = found
        return found

    def get_call_template(args: Any, kws: Any) -> tuple:
        _, folded = compiled._compiler.fold_argument_types(args, kws)
        # A number in the source is not a kind of argument of its own.
        folded = tuple(map(types.unliteral, folded))
        found = compiled if folded in compiled.overloads else inside()
        return Dispatcher.get_call_template(found, folded, {})

    def get_overload(signature: Any) -> Any:
        known = tuple(_kinds(signature)) in compiled.overloads
        return Dispatcher.get_overload(compiled if known else inside(), signature)

    compiled.inside = None
    compiled.get_call_template, compiled.get_overload = get_call_template, get_overload


def folder() -> Path | None:
    """Return where machine code is kept, None for nowhere.

    It differs by the versions of Python, Numba and NumPy, whose code is part of the machine code.
    """
    above = cache_root()
    if above is None:
        return None
    python = ".".join(map(str, sys.version_info[:2]))
    return above / f"kernels-python{python}-numba{numba.__version__}-numpy{np.__version__}"


class _Impl(CompileResultCacheImpl):
    """What of a compiled function is kept: as Numba's own, without a file that it stands in."""

    def __init__(self, py_func: FunctionType) -> None:
        self._py_func, self._lineno = py_func, py_func.__code__.co_firstlineno
        self._locator = self
        self._py_file = py_func.__code__.co_filename  # for a warning


class _Cache(Cache):
    """Machine code by all that it is made of, rather than by the date of a file."""

    def __init__(self, compiled: Dispatcher) -> None:
        self._compiled, self._py_func = compiled, compiled.py_func
        self._name = repr(self._py_func)
        self._impl = _Impl(self._py_func)
        self._cache_path = None
        self._file: IndexDataCacheFile | None = None
        self.enable()

    @property
    def _cache_file(self) -> IndexDataCacheFile:
        # Not before the first call: until then a callee of the same module may not be there.
        if self._file is None:
            stamp = made_of(self._compiled)
            name = f"{self._py_func.__module__}.{self._py_func.__qualname__}"
            name = f"{name.replace('<locals>', '_')}-{stamp[:20]}"
            self._file = IndexDataCacheFile(str(self._cache_path), name, stamp)
        return self._file

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        if not self._usable(sig):
            return None
        try:
            found = super()._load_overload(sig, target_context)
            if found is not None:
                os.utime(self._cache_file._index_path)
        except OSError:
            return None
        except Exception:  # damaged: compiled and written anew, as if it were not there
            with suppress(OSError):
                Path(self._cache_file._index_path).unlink()
            return None
        return found

    def _save_overload(self, sig: Any, data: Any) -> None:
        if not self._usable(sig) or not self._impl.check_cachable(data):
            return
        try:
            Path(self._cache_path).mkdir(parents=True, exist_ok=True)
            key = self._index_key(sig, data.codegen)
            self._cache_file.save(key, self._impl.reduce(data))
            _clean(Path(self._cache_path))
        except OSError:  # read-only, or full
            self.disable()

    def _usable(self, sig: Any) -> bool:
        """Tell whether this signature may be kept: a function among its arguments has no name."""
        if not self._enabled or any(_has_function(kind) for kind in _kinds(sig)):
            return False
        self._cache_path = self._cache_path or folder()
        return self._cache_path is not None

    def _index_key(self, sig: Any, codegen: Any) -> tuple:
        options = config.OPT, config.BOUNDSCHECK, config.DEBUGINFO_DEFAULT
        fields = [_fields(kind) for kind in _kinds(sig)]
        return sig, str(fields), codegen.magic_tuple(), str(options), made_of(self._compiled)


def _kinds(sig: Any) -> tuple:
    return tuple(getattr(sig, "args", sig))


def _has_function(kind: Any) -> bool:
    if isinstance(kind, types.BaseTuple):
        return any(_has_function(one) for one in kind)
    return isinstance(kind, types.Dispatcher | types.FunctionType | types.Callable)


def _fields(kind: Any) -> tuple:
    """Return the names of what a tuple holds: compiled code keeps their places alone."""
    if not isinstance(kind, types.BaseTuple):
        return ()
    names = getattr(getattr(kind, "instance_class", None), "_fields", ())
    return names, *map(_fields, kind)


def made_of(compiled: Dispatcher) -> str:
    """Return a hash of all that the machine code of a kernel is made of.

    Raises
    ------
    TypeError
        If it reads something whose content cannot be told.
    """
    found = sha256()
    for part in _parts(compiled, set()):
        found.update(f"{len(part)}:".encode() + part)
    return found.hexdigest()


def _parts(thing: Any, seen: set[int]) -> Iterator[bytes]:
    """Yield what tells one object from another, and the objects that it can reach."""
    if isinstance(thing, Dispatcher):
        yield from _kernel(thing, seen)
    elif isinstance(thing, _PLAIN):
        yield f"{type(thing).__name__} {thing!r}".encode()
    elif isinstance(thing, tuple | list | frozenset):
        yield f"{type(thing).__name__} {len(thing)}".encode()
        for one in sorted(thing, key=repr) if isinstance(thing, frozenset) else thing:
            yield from _parts(one, seen)
    elif isinstance(thing, np.ndarray):
        yield f"{thing.dtype} {thing.shape}".encode() + np.ascontiguousarray(thing).tobytes()
    elif ismodule(thing) and thing.__name__.partition(".")[0] != _PACKAGE:
        yield thing.__name__.encode()
    elif ismodule(thing):
        yield getsource(thing).encode()
    elif isinstance(thing, type) and issubclass(thing, tuple) and hasattr(thing, "_fields"):
        yield f"{thing.__qualname__} {thing._fields} {thing._field_defaults}".encode()
    elif getattr(thing, "__module__", "").partition(".")[0] == _PACKAGE:
        # A class, or a function that Numba is told how to compile elsewhere in its module.
        yield getsource(sys.modules[thing.__module__]).encode()
    elif hasattr(thing, "__qualname__") and hasattr(thing, "__module__"):
        yield f"{thing.__module__}.{thing.__qualname__}".encode()  # of a library: its version tells
    else:
        raise TypeError(f"{thing!r} is nothing that a kernel can be told by.")


def _kernel(compiled: Dispatcher, seen: set[int]) -> Iterator[bytes]:
    function = compiled.py_func
    yield f"kernel {function.__qualname__}".encode()
    if id(compiled) in seen:
        return
    seen.add(id(compiled))
    yield repr(sorted(compiled.targetoptions.items(), key=str)).encode()
    yield from _code(function.__code__)
    yield from _parts(function.__defaults__ or (), seen)
    for cell in function.__closure__ or ():
        yield from _parts(cell.cell_contents, seen)
    for name in sorted(_names(function.__code__)):
        if name in function.__globals__:
            yield name.encode()
            yield from _parts(function.__globals__[name], seen)


def _code(code: CodeType) -> Iterator[bytes]:
    """Yield what is executed: no line numbers, file names, comments or docstrings."""
    yield code.co_code
    yield repr((code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)).encode()
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code(constant)
        elif not isinstance(constant, str):  # a docstring: compiled code has no text to work on
            yield f"{type(constant).__name__} {constant!r}".encode()


def _names(code: CodeType) -> set[str]:
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return set(code.co_names).union(*map(_names, inner))


@cache
def _clean(path: Path) -> None:
    """Remove what no process has used for long, of other versions too; once in a process."""
    oldest = time.time() - KEPT * 86400
    for index in path.parent.glob("kernels-*/*.nbi"):
        with suppress(FileNotFoundError):  # another process was faster
            if index.stat().st_mtime < oldest:
                for file in index.parent.glob(f"{index.stem}.*"):
                    file.unlink(missing_ok=True)
