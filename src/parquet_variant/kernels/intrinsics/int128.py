"""Arithmetic in 128 bits, which `kernels.int128` declares."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_PAIR = types.UniTuple(types.int64, 2)
_I64, _I128 = ir.IntType(64), ir.IntType(128)


@intrinsic
def multiply_add(typing_context: Any, high: Any, low: Any, factor: Any, term: Any) -> Any:
    """Return ``number * factor + term`` modulo 2**128; factor and term are unsigned."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        high, low, factor, term = args
        number = builder.or_(builder.shl(builder.zext(high, _I128), ir.Constant(_I128, 64)), builder.zext(low, _I128))
        result = builder.add(builder.mul(number, builder.zext(factor, _I128)), builder.zext(term, _I128))
        upper = builder.trunc(builder.lshr(result, ir.Constant(_I128, 64)), _I64)
        return cgutils.pack_array(builder, [upper, builder.trunc(result, _I64)])

    return _PAIR(types.int64, types.int64, types.int64, types.int64), codegen
