"""The C library's memory, which `kernels.ownership` declares."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from parquet_variant.kernels.machine_code.checks import is_checking

_WORD = ir.IntType(64)
_BYTES = ir.IntType(8).as_pointer()
_REALLOC, _FREE = ("pv_realloc", "pv_free") if is_checking() else ("realloc", "free")


@intrinsic
def reallocated(typing_context: Any, block: Any, size: Any) -> Any:
    """Return the address of bytes that begin with those of a block, which is freed; 0 if memory ran out."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        realloc = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(_BYTES, [_BYTES, _WORD]), "pv_realloc" if is_checking() else "realloc"
        )
        return builder.ptrtoint(builder.call(realloc, [builder.inttoptr(args[0], _BYTES), args[1]]), _WORD)

    return types.int64(types.int64, types.int64), codegen


@intrinsic
def released(typing_context: Any, block: Any) -> Any:
    """Free a block."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        free = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(ir.VoidType(), [_BYTES]), "pv_free" if is_checking() else "free"
        )
        builder.call(free, [builder.inttoptr(args[0], _BYTES)])
        return context.get_dummy_value()

    return types.void(types.int64), codegen
