"""What lets a kernel be made of functions that share arrays, at no cost, and read them ahead.

Numba passes an array as seven numbers and counts the references to it with locked instructions.
In a kernel that hands its arrays on, event after event, that takes more time than the events: such
functions are `inlined`, and the kernel begins by declaring its arrays `borrowed`. Compiled code is
all that can call what is `inlined`: wrappers for Python would double the time to compile it.

In compiled code both functions here are a few instructions, put in place, and nothing to compile.
"""

from functools import partial
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import lower_builtin, type_callable
from numpy.typing import NDArray

from supermarket.kernels.compiled import kernel

inlined = partial(
    kernel, nogil=True, forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True
)


def borrowed(given: Any) -> Any:
    """Return an array, or a tuple with all its arrays; compiled, without an owner.

    The caller keeps them alive.
    """
    return given


@type_callable(borrowed)
def _type_of_borrowed(context):
    return lambda given: given if isinstance(given, types.Array | types.BaseTuple) else None


@lower_builtin(borrowed, types.Array)
@lower_builtin(borrowed, types.BaseTuple)
def _without_owner(context, builder, signature, arguments):
    return _stripped(context, builder, signature.return_type, arguments[0])


def _stripped(context, builder, kind, value):
    if isinstance(kind, types.BaseTuple):
        members = cgutils.unpack_tuple(builder, value, len(kind))
        stripped = map(partial(_stripped, context, builder), kind, members)
        return context.make_tuple(builder, kind, stripped)
    if not isinstance(kind, types.Array):
        return value
    view = context.make_array(kind)(context, builder, value=value)
    view.meminfo = cgutils.get_null_value(view.meminfo.type)
    view.parent = cgutils.get_null_value(view.parent.type)
    return view._getvalue()


def touch(array: NDArray, i: int) -> None:
    """Let the cache fetch element i of an array of one dimension; nothing waits for it.

    It need not exist: what is outside the array is not read.
    """


@type_callable(touch)
def _type_of_touch(context):
    def typer(array, i):
        if isinstance(array, types.Array) and array.ndim == 1 and isinstance(i, types.Integer):
            return types.none
        return None

    return typer


@lower_builtin(touch, types.Array, types.Integer)
def _fetch(context, builder, signature, arguments):
    kind, integer = signature.args
    array = context.make_array(kind)(context, builder, value=arguments[0])
    i = context.cast(builder, arguments[1], integer, types.intp)
    place = cgutils.get_item_pointer2(
        context, builder, array.data, cgutils.unpack_tuple(builder, array.shape, 1),
        cgutils.unpack_tuple(builder, array.strides, 1), kind.layout, [i],
    )  # fmt: skip
    byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
    fetch = cgutils.get_or_insert_function(
        builder.module,
        ir.FunctionType(ir.VoidType(), [byte, word, word, word]),
        "llvm.prefetch.p0",
    )
    # To be written, kept in all levels of the cache, data.
    builder.call(fetch, [builder.bitcast(place, byte), word(1), word(3), word(1)])
    return context.get_dummy_value()
