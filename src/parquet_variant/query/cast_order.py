"""Which casts keep the order of values, so that bounds of what is stored are bounds of what is asked for.

Owns that one question. Leaves the casts themselves to `functions`, and bounds to whoever has statistics.
"""

from __future__ import annotations

import pyarrow as pa


def cast_keeps_order(stored: pa.DataType, target: pa.DataType) -> bool:
    """Whether a cast never puts a smaller value above a larger one, and rounds nothing that is compared exactly.

    >>> cast_keeps_order(pa.int64(), pa.decimal128(38, 2)), cast_keeps_order(pa.decimal128(9, 2), pa.int64())
    (True, False)
    >>> cast_keeps_order(pa.float32(), pa.float64()), cast_keeps_order(pa.int64(), pa.string())
    (True, False)
    """
    if stored == target or (_is_text(stored) and _is_text(target)):
        return True
    if is_exact(stored) and is_exact(target):
        return _scale(stored) <= _scale(target)
    if pa.types.is_float32(target) or pa.types.is_float64(target):
        return is_exact(stored) or (pa.types.is_floating(stored) and stored.bit_width <= target.bit_width)
    return False


def is_exact(kind: pa.DataType) -> bool:
    """Whether a type holds exact numbers: integers, decimals."""
    return bool(pa.types.is_signed_integer(kind) or pa.types.is_decimal(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _scale(kind: pa.DataType) -> int:
    return int(kind.scale) if pa.types.is_decimal(kind) else 0
