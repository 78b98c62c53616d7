"""Arrays over memory, which `kernels.native_vectors` declares."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from numba.np import arrayobj

_WORD = ir.IntType(64)


def _array_at(dimensions: int) -> Any:
    array_type = types.Array(types.int64, dimensions, "C")

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = arrayobj.make_array(array_type)(context, builder)
        shape = args[1:]
        strides = [context.get_constant(types.intp, 8)]
        if dimensions == 2:
            strides.insert(0, builder.mul(shape[1], strides[0]))
        data = builder.inttoptr(args[0], context.get_data_type(types.int64).as_pointer())
        arrayobj.populate_array(array, data=data, shape=shape, strides=strides, itemsize=strides[-1], meminfo=None)
        return array._getvalue()

    if dimensions == 1:

        @intrinsic
        def vector_at(typing_context: Any, address: Any, size: Any) -> Any:
            return array_type(types.int64, types.int64), codegen

        return vector_at

    @intrinsic
    def table_at(typing_context: Any, address: Any, rows: Any, columns: Any) -> Any:
        return array_type(types.int64, types.int64, types.int64), codegen

    return table_at


vector_at, table_at = _array_at(1), _array_at(2)


@intrinsic
def address_in(typing_context: Any, array: Any) -> Any:
    """Return the address of an array's first byte, inside a kernel."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = arrayobj.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.ptrtoint(data, _WORD)

    return types.int64(array), codegen
