"""Mark values without structural fault; the fast counterpart of `encoding.validate`.

Owns the positive answer: a marked row has no fault. Leaves all other rows to the scalar fallback, which names the
fault: rows with faults, and rows whose dictionary has a duplicate name without being flagged as sorted, which is not a
fault by itself.
"""

from __future__ import annotations

from parquet_variant.kernels.machine_code.functions import helper, kernel
from parquet_variant.kernels.machine_code.signatures import Int64s, Int64Table, UInt8s
from parquet_variant.kernels.memory import KIND, load_u8, load_uint
from parquet_variant.kernels.native_vectors import Memory, new_table, new_vector, reserve, reserve_rows, sort_with
from parquet_variant.kernels.values.reading import (
    COUNT,
    END,
    MALFORMED,
    NEXT,
    OWN,
    SORTED,
    UNUSABLE,
    Container,
    EncodedValues,
    child,
    metadata_header,
    open_container,
    scalar,
    scalar_is_valid,
    value_kind,
    value_size,
)


@kernel
def mark_valid_dictionaries(base: int, offsets: Int64s, state: UInt8s, valid: UInt8s) -> None:
    """Mark the metadata without fault. ``state`` is the column of a `NameTable`."""
    for d in range(len(valid)):
        valid[d] = 0 if state[d] == UNUSABLE else 1
        if valid[d] == 0:
            continue
        at, end = base + offsets[d], base + offsets[d + 1]
        ok, _, places, width, _, size = metadata_header(at, end)
        if not ok or size != end - at or load_uint(places, width) != 0:
            valid[d] = 0
        if load_u8(at) & 0x10 and state[d] != SORTED:
            valid[d] = 0


@helper
def _children_are_apart(parts: Container, end: int, scratch: Int64s) -> tuple[bool, Int64s]:
    """Return whether the values of a container fill its bytes, in any order, without gaps; and the scratch."""
    count, offsets, width, values = parts.count, parts.offsets, parts.offset_width, parts.values
    next_start = values
    for i in range(count):
        start = values + load_uint(offsets + i * width, width)
        if start != next_start:
            break
        size = value_size(start, end)
        if size == MALFORMED:
            return False, scratch
        next_start = start + size
    else:
        return next_start == end, scratch
    # Not in order: check them sorted.
    scratch = reserve(scratch, count)
    for i in range(count):
        scratch[i] = values + load_uint(offsets + i * width, width)
    sort_with(scratch, scratch, 0, count)
    next_start = values
    for i in range(count):
        if scratch[i] != next_start:
            return False, scratch
        size = value_size(scratch[i], end)
        if size == MALFORMED:
            return False, scratch
        next_start += size
    return next_start == end, scratch


@helper(inline=True)
def _names_ascend(ids: int, id_width: int, count: int, rank: Int64s) -> bool:
    """Return whether the fields of an object have unique names in ascending order."""
    last = -1
    for i in range(count):
        field_id = load_uint(ids + i * id_width, id_width)
        if field_id >= len(rank) or rank[field_id] <= last:
            return False
        last = rank[field_id]
    return True


@helper(inline=True)
def _is_valid(
    at: int, end: int, ranks: Int64s, stack: Int64Table, scratch: Int64s, max_depth: int
) -> tuple[bool, Int64Table, Int64s]:
    """Validate a value whose metadata has names of some ranks; return ``(ok, stack, scratch)``."""
    depth = 0
    if value_size(at, end) != end - at:
        return False, stack, scratch
    while True:
        kind = value_kind(load_u8(at))
        if kind >= KIND.ARRAY:
            if depth + 1 > len(stack):
                stack = reserve_rows(stack, depth + 1)
            parts = open_container(stack, depth, at, end)
            apart, scratch = _children_are_apart(parts, stack[depth, END], scratch)
            if depth == max_depth or not apart:
                return False, stack, scratch
            if kind == KIND.OBJECT and not _names_ascend(parts.ids, parts.id_width, parts.count, ranks):
                return False, stack, scratch
            depth += 1
        elif (
            kind == KIND.STRING
            or kind == KIND.BINARY
            or kind == KIND.UUID
            or KIND.DECIMAL4 <= kind <= KIND.DECIMAL16
            or kind == KIND.TIME
        ):
            kind, a, b, scale = scalar(at, end)
            if not scalar_is_valid(kind, a, b, scale, True):
                return False, stack, scratch
        while depth > 0 and stack[depth - 1, NEXT] == stack[depth - 1, COUNT]:
            depth -= 1
        if depth == 0:
            return True, stack, scratch
        top = depth - 1
        at, end = child(stack, top, stack[top, NEXT]), stack[top, END]
        stack[top, NEXT] += 1


@kernel
def mark_valid_rows(
    memory: Memory,
    values: EncodedValues,
    starts: Int64s,
    rank: Int64s,
    dictionary_valid: UInt8s,
    valid: UInt8s,
    max_depth: int,
) -> None:
    """Mark the rows without fault, and SQL NULLs. ``starts`` and ``rank`` are columns of a `NameTable`."""
    stack, scratch = new_table(memory, 32, OWN), new_vector(memory, 64)
    for row in range(len(values.dictionary_of)):
        valid[row] = 1
        if len(values.valid) > 0 and values.valid[row] == 0:
            continue
        valid[row] = 0
        d = values.dictionary_of[row]
        if d < 0 or dictionary_valid[d] == 0:
            continue
        at, end = values.base + values.offsets[row], values.base + values.offsets[row + 1]
        ranks = rank[starts[d] : starts[d + 1]]
        ok, stack, scratch = _is_valid(at, end, ranks, stack, scratch, max_depth)
        valid[row] = 1 if ok else 0
