"""Compare the values of two columns; the fast counterpart of `Variant.__eq__`.

Owns comparing two tables of nodes that `canonical_nodes` made with the same ranks. Leaves rows that `canonical_nodes`
refused to the scalar fallback.
"""

from __future__ import annotations

from parquet_variant.kernels.compiling import helper, kernel
from parquet_variant.kernels.int128 import divide_by_power
from parquet_variant.kernels.kinds import KIND
from parquet_variant.kernels.machine_code.signatures import Int64s, Int64Table, UInt8s
from parquet_variant.kernels.memory import equal, load_f32, load_f64
from parquet_variant.kernels.values.reading import scalar
from parquet_variant.kernels.values.value_nodes import RAW


@helper
def _same_number(high: int, low: int, scale: int, other_high: int, other_low: int, other_scale: int) -> bool:
    """Return whether two decimals are equal: the one of larger scale, divided exactly, is the other one."""
    if scale < other_scale:
        high, low, scale, other_high, other_low, other_scale = other_high, other_low, other_scale, high, low, scale
    exact, high, low = divide_by_power(high, low, scale - other_scale)
    return exact and high == other_high and low == other_low


@helper
def _same_scalar(at: int, size: int, other_at: int, other_size: int) -> bool:
    """Return whether two encoded scalars have the same meaning."""
    kind, a, b, scale = scalar(at, at + size)
    other, other_a, other_b, other_scale = scalar(other_at, other_at + other_size)
    if KIND.INT8 <= kind <= KIND.INT64:
        kind, b = KIND.DECIMAL16, (-1 if a < 0 else 0)
    if KIND.INT8 <= other <= KIND.INT64:
        other, other_b = KIND.DECIMAL16, (-1 if other_a < 0 else 0)
    if KIND.DECIMAL4 <= kind <= KIND.DECIMAL16:
        return KIND.DECIMAL4 <= other <= KIND.DECIMAL16 and _same_number(b, a, scale, other_b, other_a, other_scale)
    if kind != other:
        # The same moment in microseconds and in nanoseconds.
        if (kind == KIND.TIMESTAMP and other == KIND.TIMESTAMP_NANOS) or (
            kind == KIND.TIMESTAMP_NTZ and other == KIND.TIMESTAMP_NTZ_NANOS
        ):
            return other_a % 1000 == 0 and other_a // 1000 == a
        if (other == KIND.TIMESTAMP and kind == KIND.TIMESTAMP_NANOS) or (
            other == KIND.TIMESTAMP_NTZ and kind == KIND.TIMESTAMP_NTZ_NANOS
        ):
            return a % 1000 == 0 and a // 1000 == other_a
        return False
    if kind == KIND.DOUBLE:
        left, right = load_f64(at + 1), load_f64(other_at + 1)
        return left == right or (left != left and right != right)
    if kind == KIND.FLOAT:
        left, right = load_f32(at + 1), load_f32(other_at + 1)
        return left == right or (left != left and right != right)
    if kind == KIND.BINARY:
        return b == other_b and equal(a, other_a, b)
    if kind == KIND.UUID:
        return equal(a, other_a, 16)
    return a == other_a


@kernel
def compare_rows(
    nodes: Int64Table, row_start: Int64s, other_nodes: Int64Table, other_row_start: Int64s, same: UInt8s
) -> None:
    """Mark the rows whose nodes have the same meaning."""
    for row in range(len(same)):
        same[row] = 0
        count = row_start[row + 1] - row_start[row]
        if count != other_row_start[row + 1] - other_row_start[row]:
            continue
        i, j = row_start[row], other_row_start[row]
        alike = True
        for _ in range(count):
            # Bits 0 to 15 are kind and scale, the bits above are the rank of the field.
            if nodes[i, 0] >> 16 != other_nodes[j, 0] >> 16:
                alike = False
                break
            kind, other = nodes[i, 0] & 0xFF, other_nodes[j, 0] & 0xFF
            if kind == RAW and other == RAW:
                alike = _same_scalar(nodes[i, 1], nodes[i, 2], other_nodes[j, 1], other_nodes[j, 2])
            elif kind != other:
                alike = False
            elif kind == KIND.STRING:
                alike = nodes[i, 2] == other_nodes[j, 2] and equal(nodes[i, 1], other_nodes[j, 1], nodes[i, 2])
            elif kind >= KIND.ARRAY:
                alike = nodes[i, 1] == other_nodes[j, 1]
            if not alike:
                break
            i += 1
            j += 1
        same[row] = 1 if alike else 0
