"""Profile a tape in one pass: counts, extremes and sketches of the values at each path.

Owns counting. Every number is a sum, a minimum or a maximum, so that batches can be merged in any order. Leaves naming
paths, merging batches and conclusions to `inference.profile`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from parquet_variant.kernels.int128 import digits_of
from parquet_variant.kernels.json.string_forms import FORM, FORMS, string_form
from parquet_variant.kernels.machine_code.functions import helper, kernel
from parquet_variant.kernels.machine_code.signatures import Int64s, Int64Table, UInt8Table
from parquet_variant.kernels.memory import (
    KIND,
    MIX_A,
    MIX_B,
    hash_bytes,
    load_u8,
    load_u16,
    load_u32,
    load_u64,
    trailing_zeros,
)
from parquet_variant.kernels.native_vectors import Memory, export_table, new_table, new_vector, reserve_rows
from parquet_variant.kernels.tapes.tape import KEY, PATH, path_of

# Columns of the kinds table: one per node kind.
KINDS = KIND.OBJECT + 1
# Columns of the counts table. The byte counts of strings and binary exclude headers; LONG_STRINGS counts strings with a
# header of 5 bytes instead of 1.
(P_ROWS, P_STRING_BYTES, P_LONG_STRINGS, P_ELEMENTS, P_FIELDS) = range(5)
# One column per form of strings (`string_forms.FORM`).
P_FORMS = 5
(P_INT_MIN, P_STRING_MIN, P_ARRAY_MIN, P_INT_MAX, P_STRING_MAX, P_ARRAY_MAX,
 _LAST_ROW) = range(P_FORMS + FORMS, P_FORMS + FORMS + 7)  # fmt: skip
COUNTS = _LAST_ROW
# Columns of the digits table: decimals by digits before the point (0 to 38), then by scale (0 to 38).
DIGIT_BUCKETS = 39
# Registers of a HyperLogLog sketch of the distinct values: standard error 13 %.
REGISTERS = 64

_LOWEST, _HIGHEST = -(2**63), 2**63 - 1
# Fixed, unlike the parser's: profiles made in different processes are merged by these hashes.
_SEED = 0x1F3D5B79A2C4E687
_MIX_C = 0x1B03738712FAD5C9
_ROOT_HASH, _ELEMENT_HASH = 0x3C6EF372FE94F82B, 0x2B7E151628AED2A6


@helper
def _mixed(value: int) -> int:
    """Return a hash of a number."""
    value ^= (value >> 32) & 0xFFFFFFFF
    value *= MIX_A
    value ^= (value >> 29) & 0x7FFFFFFFF
    value *= MIX_B
    return value ^ ((value >> 32) & 0xFFFFFFFF)


@kernel
def path_identities(memory: Memory, paths: Int64Table, keys: Int64Table, hashes: Int64s, depths: Int64s) -> None:
    """Fill a 63-bit hash and the depth of each path; the same path has the same hash in every process."""
    key_hashes = new_vector(memory, len(keys))
    for k in range(len(keys)):
        key_hashes[k] = hash_bytes(keys[k, KEY.ADDRESS], keys[k, KEY.LENGTH], _SEED)
    hashes[0] = _ROOT_HASH
    depths[0] = 0
    for p in range(1, len(paths)):
        parent, key = paths[p, PATH.PARENT], paths[p, PATH.KEY]
        step = _ELEMENT_HASH if key < 0 else key_hashes[key]
        hashes[p] = _mixed(hashes[parent] * _MIX_C + step) & _HIGHEST
        depths[p] = depths[parent] + 1


def new_counts(paths: int) -> npt.NDArray[np.int64]:
    """Return a counts table without any counts."""
    counts = np.zeros((paths, COUNTS + 1), np.int64)
    counts[:, (P_INT_MIN, P_STRING_MIN, P_ARRAY_MIN)] = _HIGHEST
    counts[:, P_INT_MAX] = _LOWEST
    counts[:, (P_STRING_MAX, P_ARRAY_MAX, _LAST_ROW)] = -1
    return counts


@helper
def _sampled_hash(address: int, length: int) -> int:
    """Return a hash of a string's length and 24 of its bytes, which is enough to estimate distinct counts."""
    if length >= 8:
        first = load_u64(address)
        middle = load_u64(address + ((length - 8) >> 1))
        last = load_u64(address + length - 8)
        value = first * MIX_A + middle * _MIX_C + (last ^ ((last >> 23) & 0x1FFFFFFFFFF)) * MIX_B
    elif length >= 4:
        value = load_u32(address) * MIX_A + load_u32(address + length - 4) * MIX_B
    elif length >= 2:
        value = load_u16(address) * MIX_A + load_u16(address + length - 2) * MIX_B
    elif length == 1:
        value = load_u8(address) * MIX_A
    else:
        value = 0
    return _mixed(value + length)


@helper
def _add_to_sketch(sketches: UInt8Table, path: int, hashed: int) -> None:
    rank = trailing_zeros(hashed >> 6 | (1 << 57)) + 1
    register = hashed & (REGISTERS - 1)
    if rank > sketches[path, register]:
        sketches[path, register] = rank


@helper
def _count_value(kind: int, a: int, b: int, counts: Int64Table, sketches: UInt8Table, path: int) -> None:
    """Count what a value is but for its kind; decimals have a table of their own."""
    if kind == KIND.STRING or kind == KIND.BINARY:
        counts[path, P_STRING_BYTES] += b
        counts[path, P_LONG_STRINGS] += kind == KIND.STRING and b >= 64
        if kind == KIND.STRING:
            form, form_kind, _, _, _ = string_form(a, b)
            if form >= 0:
                counts[path, P_FORMS + form] += 1
                counts[path, P_FORMS + FORM.BIGINT] += form == FORM.NUMBER and form_kind <= KIND.INT64
        counts[path, P_STRING_MIN] = min(counts[path, P_STRING_MIN], b)
        counts[path, P_STRING_MAX] = max(counts[path, P_STRING_MAX], b)
        _add_to_sketch(sketches, path, _sampled_hash(a, b))
    elif kind == KIND.OBJECT:
        counts[path, P_FIELDS] += a
    elif kind == KIND.ARRAY:
        counts[path, P_ELEMENTS] += a
        counts[path, P_ARRAY_MIN] = min(counts[path, P_ARRAY_MIN], a)
        counts[path, P_ARRAY_MAX] = max(counts[path, P_ARRAY_MAX], a)
    elif kind == KIND.UUID:
        _add_to_sketch(sketches, path, _sampled_hash(a, 16))
    elif kind > 2:
        if KIND.INT8 <= kind <= KIND.INT64:
            counts[path, P_INT_MIN] = min(counts[path, P_INT_MIN], a)
            counts[path, P_INT_MAX] = max(counts[path, P_INT_MAX], a)
        _add_to_sketch(sketches, path, _mixed(a * _MIX_C))


@kernel
def profile_nodes(
    memory: Memory,
    nodes: Int64Table,
    row_start: Int64s,
    rows: Int64s,
    kinds: Int64Table,
    counts: Int64Table,
    sketches: UInt8Table,
    digits_of_path: Int64s,
) -> tuple[int, int, int]:
    """Count every node of some rows of the tape; return the digits table for `adopt`.

    `rows`: numbers of the rows.
    `kinds`, `counts` and `sketches`: one row per path, as named above; initially zeros, `new_counts` and zeros.
    `digits_of_path`: -1 for each path; becomes the row of the digits table for paths that have decimals.
    """
    digits = new_table(memory, 8, 2 * DIGIT_BUCKETS)
    digit_rows = 0
    for row in rows:
        for i in range(row_start[row], row_start[row + 1]):
            tag = nodes[i, 0]
            kind = tag & 0xFF
            path = path_of(tag)
            kinds[path, kind] += 1
            if counts[path, _LAST_ROW] != row:
                counts[path, _LAST_ROW] = row
                counts[path, P_ROWS] += 1
            a = nodes[i, 1]
            if KIND.DECIMAL4 <= kind <= KIND.DECIMAL16:
                digit_row = digits_of_path[path]
                if digit_row < 0:
                    digits = reserve_rows(digits, digit_rows + 1)
                    digit_row = digit_rows
                    for bucket in range(digits.shape[1]):
                        digits[digit_row, bucket] = 0
                    digits_of_path[path] = digit_row
                    digit_rows += 1
                scale = min((tag >> 8) & 0xFF, DIGIT_BUCKETS - 1)
                high = nodes[i, 2] if kind == KIND.DECIMAL16 else (-1 if a < 0 else 0)
                integer_digits = min(max(digits_of(high, a) - scale, 0), DIGIT_BUCKETS - 1)
                digits[digit_row, integer_digits] += 1
                digits[digit_row, DIGIT_BUCKETS + scale] += 1
                _add_to_sketch(sketches, path, _mixed(a * _MIX_C + scale))
            else:
                _count_value(kind, a, nodes[i, 2], counts, sketches, path)
    return export_table(digits, digit_rows)


@kernel
def row_levels(nodes: Int64Table, row_start: Int64s, path_hashes: Int64s, levels: Int64s) -> None:
    """Fill the number of trailing zero bits in a hash of each row's paths and values; -1 for a row without a value.

    The order of the fields of an object and the width of an integer do not matter.
    """
    for row in range(len(levels)):
        total = 0
        for i in range(row_start[row], row_start[row + 1]):
            tag = nodes[i, 0]
            kind = tag & 0xFF
            value = nodes[i, 1]
            if kind == KIND.STRING or kind == KIND.BINARY:
                value = _sampled_hash(value, nodes[i, 2])
            elif kind == KIND.UUID:
                value = _sampled_hash(value, 16)
            elif kind <= 2:
                value = kind
            total += _mixed(path_hashes[path_of(tag)] * _MIX_C + value)
        levels[row] = trailing_zeros(_mixed(total) | (1 << 62)) if row_start[row + 1] > row_start[row] else -1
