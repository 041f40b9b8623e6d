"""Random variables for kernels, drawn by the compiled code of NumPy itself.

Numba has its own copy of NumPy's draws, from the same stream, which it compiles anew, layer by
layer: a second and a half for a binomial variable. In compiled code a function of this module is a
call of the C function behind `numpy.random.Generator`, and nothing to compile; elsewhere it is the
method of the generator. Uniform and normal variables are few instructions, and faster from Numba.
"""

import ctypes
import inspect
from collections.abc import Callable
from typing import Any

from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.core.typing import signature
from numba.extending import lower_builtin, register_jitable, type_callable
from numpy.random import Generator, _generator

_WORD = ir.IntType(64)
_KEPT = 64  # words for what NumPy keeps of the parameters of a binomial variable; it takes 17
_BITS = types.NumPyRandomBitGeneratorType("bit_generator")


def poisson(rng: Generator, mean: float) -> int:
    """Draw a Poisson variable; compiled, nothing checks that its mean is not negative."""
    return rng.poisson(mean)


def binomial(rng: Generator, n: int, p: float) -> int:
    """Draw how many of n trials succeed; compiled, nothing checks n >= 0 and 0 <= p <= 1."""
    return rng.binomial(n, p)


# The arguments after the generator, and what comes out.
_DRAWN = {
    poisson: ((types.float64,), types.int64),
    binomial: ((types.int64, types.float64), types.int64),
}


def _symbol(function: Callable) -> str:
    return f"supermarket_numpy_random_{function.__name__}"


def _named() -> bool:
    """Give NumPy's C functions names that machine code can call; tell whether they can be seen.

    They are part of its interface in C, but a build for another system might hide them.
    """
    library = ctypes.CDLL(_generator.__file__)
    try:
        found = {function: library[f"random_{function.__name__}"] for function in _DRAWN}
    except AttributeError:
        return False
    for function, compiled in found.items():
        address = ctypes.cast(compiled, ctypes.c_void_p).value
        binding.add_symbol(_symbol(function), address)
    return True


def _call_numpy(function: Callable) -> None:
    """Let compiled code call NumPy's C function where it finds this one."""
    arguments, result = _DRAWN[function]

    @type_callable(function)
    def type_of(context):
        def typer(rng, *given: Any):
            known = isinstance(rng, types.NumPyRandomGeneratorType)
            return signature(result, rng, *arguments) if known else None

        typer.__signature__ = inspect.signature(function)
        return typer

    @lower_builtin(function, types.NumPyRandomGeneratorType, *arguments)
    def call(context, builder, kinds, given):
        generator = cgutils.create_struct_proxy(kinds.args[0])(context, builder, given[0])
        bits = cgutils.create_struct_proxy(_BITS)(context, builder, generator.bit_generator)
        # NumPy's bitgen_t. Its last member, raw bits, is asked for by no draw.
        members = (
            bits.state, bits.fnptr_next_uint64, bits.fnptr_next_uint32, bits.fnptr_next_double,
            bits.fnptr_next_uint64,
        )  # fmt: skip
        bitgen = cgutils.alloca_once(builder, _WORD, size=len(members))
        for i, member in enumerate(members):
            builder.store(member, builder.gep(bitgen, [ir.IntType(32)(i)]))
        passed = [bitgen, *given[1:]]
        if function is binomial:
            n, p = given[1:]
            kept = cgutils.alloca_once(builder, _WORD, size=_KEPT)
            builder.store(_WORD(0), kept)  # nothing is kept
            passed = [bitgen, p, n, kept]
        kind = ir.FunctionType(context.get_value_type(result), [one.type for one in passed])
        callee = cgutils.get_or_insert_function(builder.module, kind, _symbol(function))
        return builder.call(callee, passed)


_SEEN = _named()
for _function in _DRAWN:
    (_call_numpy if _SEEN else register_jitable)(_function)
