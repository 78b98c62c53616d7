"""Columns of slots to columns of encoded values, each number in its narrowest type.

Owns the narrowing and the writing of whole columns of scalars. Leaves nesting to `shredding.unshred`.
"""

from __future__ import annotations

from parquet_variant.kernels.compiling import kernel
from parquet_variant.kernels.int128 import digits_of
from parquet_variant.kernels.kinds import DECIMAL4, DECIMAL8, DECIMAL16, INT8, INT16, INT32, INT64, NULL
from parquet_variant.kernels.values.scalar_slots import (
    scalar_size,
    write_scalar,
)
from parquet_variant.machine_code.signatures import Int64s, UInt8s


@kernel
def narrow(kinds: UInt8s, a: Int64s, b: Int64s, scales: UInt8s) -> None:
    """Make each integer and decimal the narrowest type that holds it; a decimal's scale counts like its digits."""
    for i in range(len(kinds)):
        kind = kinds[i]
        if INT8 <= kind <= INT64:
            value = a[i]
            if -0x80 <= value <= 0x7F:
                kinds[i] = INT8
            elif -0x8000 <= value <= 0x7FFF:
                kinds[i] = INT16
            elif -0x80000000 <= value <= 0x7FFFFFFF:
                kinds[i] = INT32
            else:
                kinds[i] = INT64
        elif DECIMAL4 <= kind <= DECIMAL16:
            digits = max(digits_of(b[i], a[i]), scales[i])
            kinds[i] = DECIMAL4 if digits <= 9 else DECIMAL8 if digits <= 18 else DECIMAL16


@kernel
def measure_slots(kinds: UInt8s, b: Int64s, offsets: Int64s) -> None:
    """Fill the offsets of the encoded values; kinds beyond the primitive ones count as null."""
    offsets[0] = 0
    for i in range(len(kinds)):
        kind = kinds[i] if kinds[i] <= 20 else NULL
        offsets[i + 1] = offsets[i] + scalar_size(kind, b[i])


@kernel
def write_slots(kinds: UInt8s, a: Int64s, b: Int64s, scales: UInt8s, offsets: Int64s, target: int) -> None:
    """Write the encoded values at ``target``."""
    for i in range(len(kinds)):
        kind = kinds[i] if kinds[i] <= 20 else NULL
        write_scalar(target + offsets[i], kind, a[i], b[i], scales[i])
