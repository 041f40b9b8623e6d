"""What lets a kernel be made of functions that share arrays, at no cost.

Numba passes an array as seven numbers and counts the references to it with locked instructions.
In a kernel that hands its arrays on, event after event, that takes more time than the events: such
functions are `inlined`, and the kernel begins by declaring its arrays `borrowed`.
"""

from functools import partial

from numba.core import cgutils
from numba.extending import intrinsic, overload
from numpy.typing import NDArray

from supermarket.compiled import kernel

inlined = partial(kernel, nogil=True, forceinline=True)


def borrowed(array: NDArray) -> NDArray:
    """Return the array itself; in compiled code, without an owner: the caller keeps it alive."""
    return array


@overload(borrowed)
def _borrowed(array):
    return lambda array: _without_owner(array)  # noqa: PLW0108  (numba compiles it)


@intrinsic
def _without_owner(typing_context, array):
    def generate(context, builder, signature, arguments):
        view = context.make_array(array)(context, builder, value=arguments[0])
        view.meminfo = cgutils.get_null_value(view.meminfo.type)
        view.parent = cgutils.get_null_value(view.parent.type)
        return view._getvalue()

    return array(array), generate
