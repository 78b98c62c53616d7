"""From Variant bytes to typed columns (final layout), guided by the schema.

Values that are not shredded are not walked.

Owns the walk. Leaves slots to `scalar_slots` and buffers to `columns`. Malformed rows are marked for the scalar
fallback. The same walk runs twice, first to count (see `measure` in `shred_tape`), then to write.
"""

from __future__ import annotations

from typing import NamedTuple

from parquet_variant.encoding.scalars import MICROS_PER_DAY
from parquet_variant.kernels.compiling import helper, kernel
from parquet_variant.kernels.json.scan import is_utf8
from parquet_variant.kernels.kinds import KIND
from parquet_variant.kernels.memory import copy, load_u8, load_uint, store_u8, store_u32, store_uint
from parquet_variant.kernels.native_vectors import address_in, filled_vector, new_table, new_vector, reserve_rows
from parquet_variant.kernels.ownership import Memory
from parquet_variant.kernels.shredding.schema_table import ARRAY_NODE, OBJECT_NODE, PRIMITIVE_NODE, NamedNodes, S
from parquet_variant.kernels.shredding.shred_tape import BUFFERS, COUNTS
from parquet_variant.kernels.values.containers import begin_object, object_size
from parquet_variant.kernels.values.name_tables import UNUSABLE, NameTable, resolve_names
from parquet_variant.kernels.values.reading import (
    MALFORMED,
    Container,
    EncodedValues,
    container,
    scalar_of_size,
    value_size,
)
from parquet_variant.kernels.values.scalar_slots import exact_slot, store_slot
from parquet_variant.machine_code.signatures import Int64s, Int64Table, UInt8s

# Columns of the work stack: a container to shred (LEFT is -1), or elements, of which LEFT remain.
_SCHEMA, _AT, _BEGIN, _END, _LEFT, _OFFSETS, _WIDTH, _ROOM = range(8)


@helper
def _copy_counts(to_counts: Int64Table, to_entry: Int64s, counts: Int64Table, entry: Int64s) -> None:
    """Copy counts and entries."""
    copy(address_in(to_counts), address_in(counts), counts.size * 8)
    copy(address_in(to_entry), address_in(entry), entry.size * 8)


@helper
def _sort_fields(fields: Int64Table, count: int) -> None:
    """Sort fields by rank; they are nearly always sorted."""
    for i in range(1, count):
        j = i
        while j > 0 and fields[j - 1, 0] > fields[j, 0]:
            for k in range(4):
                fields[j - 1, k], fields[j, k] = fields[j, k], fields[j - 1, k]
            j -= 1


@helper
def _put_value(addresses: Int64Table, s: int, at: int, begin: int, size: int) -> None:
    """Write a value to the ``value`` column of a schema node."""
    store_u32(addresses[s, BUFFERS.VALUE_LENGTHS] + at * 4, size)
    store_u8(addresses[s, BUFFERS.VALUE_VALID] + at, 1)
    copy(addresses[s, BUFFERS.VALUE_DATA], begin, size)
    addresses[s, BUFFERS.VALUE_DATA] += size


@helper
def _put_object(addresses: Int64Table, s: int, at: int, residual: _Residual) -> None:
    """Write the residual of an object."""
    fields, count = residual.fields, residual.count
    size = object_size(count, residual.largest_id, residual.bytes)
    store_u32(addresses[s, BUFFERS.VALUE_LENGTHS] + at * 4, size)
    store_u8(addresses[s, BUFFERS.VALUE_VALID] + at, 1)
    ids, id_width, offsets, offset_width, values = begin_object(
        addresses[s, BUFFERS.VALUE_DATA], count, residual.largest_id, residual.bytes
    )
    written = 0
    for j in range(count):
        store_uint(ids, fields[j, 1], id_width)
        ids += id_width
        store_uint(offsets, written, offset_width)
        offsets += offset_width
        copy(values + written, fields[j, 2], fields[j, 3])
        written += fields[j, 3]
    store_uint(offsets, written, offset_width)
    addresses[s, BUFFERS.VALUE_DATA] += size


class ShreddedColumns(NamedTuple):
    """The counts to update (see `measure` in `shred_tape`), or the buffers to write if ``filling``."""

    counts: Int64Table
    levels: Int64s
    addresses: Int64Table
    filling: bool


class _Fields(NamedTuple):
    """The fields of the schema by their ids in the dictionary of a row.

    ``first_of_id`` and ``next_of_node`` chain the schema nodes of one name. ``seen`` is the number of the object in
    which each schema node was last seen, to detect duplicate names. Its last entry counts the objects.
    """

    ids: Int64s
    first_of_id: Int64s
    next_of_node: Int64s
    seen: Int64s


class _Residual(NamedTuple):
    """Fields of an object that are not shredded: rank, id, address and size of each."""

    fields: Int64Table
    count: int  # type: ignore[assignment]
    bytes: int
    largest_id: int
    is_sorted: bool


@helper(inline=True)
def _fitting_slot(nodes: Int64Table, s: int, begin: int, size: int) -> tuple[bool, bool, int, int, int, int]:
    """Return ``(fits, sound, a, b, low, high)`` of a scalar in a primitive column.

    A string has ``b`` bytes at ``a``.
    """
    code, header = nodes[s, S.CODE], load_u8(begin)
    if code == KIND.STRING:  # most columns are strings, so `scalar_of_size` is avoided
        a = begin + (1 if header & 3 == 1 else 5)
        return header & 3 == 1 or header == KIND.STRING << 2, True, a, begin + size - a, 0, 0
    kind, a, b, scale = scalar_of_size(begin, size)
    if kind == KIND.TIME and code == KIND.TIME and not 0 <= a < MICROS_PER_DAY:
        return False, False, 0, 0, 0, 0
    fits, low, high = exact_slot(kind, a, b, scale, code, nodes[s, S.PRECISION], nodes[s, S.SCALE])
    return fits, True, a, b, low, high


@helper(inline=True)
def _put_slot(
    nodes: Int64Table, s: int, at: int, a: int, b: int, low: int, high: int, columns: ShreddedColumns
) -> bool:
    """Count or write a typed value; return False if it is a malformed string."""
    code, counts, addresses = nodes[s, S.CODE], columns.counts, columns.addresses
    if not columns.filling:
        if code == KIND.STRING and not is_utf8(a, a + b):
            return False
        counts[s, COUNTS.TYPED_COUNT] += 1
        if code == KIND.STRING or code == KIND.BINARY:
            counts[s, COUNTS.TYPED_BYTES] += b
        return True
    if addresses[s, BUFFERS.TYPED_VALID] != 0:
        store_u8(addresses[s, BUFFERS.TYPED_VALID] + at, 1)
    if code == KIND.STRING or code == KIND.BINARY:
        store_u32(addresses[s, BUFFERS.LENGTHS] + at * 4, b)
        copy(addresses[s, BUFFERS.TYPED_DATA], a, b)
        addresses[s, BUFFERS.TYPED_DATA] += b
    elif code == KIND.UUID:
        copy(addresses[s, BUFFERS.CELLS] + at * 16, a, 16)
    else:
        store_slot(addresses[s, BUFFERS.CELLS] + at * nodes[s, S.WIDTH], nodes[s, S.WIDTH], low, high)
    return True


@helper(inline=True)
def _put_leaf(nodes: Int64Table, s: int, at: int, begin: int, size: int, columns: ShreddedColumns) -> bool:
    """Count or write a value that is not walked, in its typed column or as bytes; return False if it is malformed."""
    if nodes[s, S.KIND] == PRIMITIVE_NODE and load_u8(begin) & 2 == 0:
        fits, sound, a, b, low, high = _fitting_slot(nodes, s, begin, size)
        if not sound:
            return False
        if fits:
            return _put_slot(nodes, s, at, a, b, low, high, columns)
    if columns.filling:
        _put_value(columns.addresses, s, at, begin, size)
    else:
        columns.counts[s, COUNTS.VALUE_COUNT] += 1
        columns.counts[s, COUNTS.VALUE_BYTES] += size
    return True


@helper(inline=True)
def _is_taken_apart(nodes: Int64Table, s: int, begin: int) -> bool:
    """Return whether the value is a container that the schema shreds."""
    shape = nodes[s, S.KIND]
    basic = load_u8(begin) & 3
    return (shape == OBJECT_NODE and basic == 2) or (shape == ARRAY_NODE and basic == 3)


@helper(inline=True)
def _push(stack: Int64Table, depth: int, s: int, at: int, begin: int, end: int) -> None:
    """Push a container that is stored in an entry of schema node ``s``."""
    stack[depth, _SCHEMA] = s
    stack[depth, _AT] = at
    stack[depth, _BEGIN] = begin
    stack[depth, _END] = end
    stack[depth, _LEFT] = -1


@helper(inline=True)
def _push_elements(
    stack: Int64Table, depth: int, s: int, at: int, begin: int, end: int, count: int, offsets: int, width: int
) -> None:
    """Push elements that are stored in entries of schema node ``s`` from ``at`` on.

    They are between the addresses ``begin`` and ``end``.
    """
    _push(stack, depth, s, at, begin, end)
    stack[depth, _LEFT] = count
    stack[depth, _OFFSETS] = offsets
    stack[depth, _WIDTH] = width
    stack[depth, _ROOM] = end - begin


@helper(inline=True)
def _put_elements(stack: Int64Table, top: int, nodes: Int64Table, columns: ShreddedColumns) -> tuple[bool, int]:
    """Store the elements at the top up to the next container that the schema shreds; return ``(ok, depth)``."""
    s, at, begin, end = stack[top, _SCHEMA], stack[top, _AT], stack[top, _BEGIN], stack[top, _END]
    remaining, offsets, width, room = stack[top, _LEFT], stack[top, _OFFSETS], stack[top, _WIDTH], stack[top, _ROOM]
    while remaining > 0:
        element = begin + load_uint(offsets, width)
        size = value_size(element, end)
        # Elements that share bytes could represent any number of values.
        if size == MALFORMED or size > room:
            return False, top
        offsets += width
        room -= size
        remaining -= 1
        if _is_taken_apart(nodes, s, element):
            stack[top, _LEFT] = remaining
            stack[top, _AT] = at + 1
            stack[top, _OFFSETS] = offsets
            stack[top, _ROOM] = room
            _push(stack, top + 1, s, at, element, end)
            return True, top + 2
        if not _put_leaf(nodes, s, at, element, size, columns):
            return False, top
        at += 1
    return True, top


@helper
def _chain_children(fields: _Fields) -> None:
    """Chain the schema nodes of the same name, by its field id; `_child_of` follows the chain."""
    for s in range(len(fields.ids)):
        if fields.ids[s] >= 0:
            fields.next_of_node[s] = fields.first_of_id[fields.ids[s]]
            fields.first_of_id[fields.ids[s]] = s


@helper
def _unchain_children(fields: _Fields) -> None:
    """Undo `_chain_children`."""
    for s in range(len(fields.ids)):
        if fields.ids[s] >= 0:
            fields.first_of_id[fields.ids[s]] = -1


@helper(inline=True)
def _child_of(nodes: Int64Table, s: int, field_id: int, fields: _Fields) -> int:
    """Return the schema node of a field of schema node ``s``; -1 if the field is not shredded."""
    child = fields.first_of_id[field_id]
    while child >= 0 and nodes[child, S.PARENT] != s:
        child = fields.next_of_node[child]
    return child


@helper(inline=True)
def _keep_field(residual: _Residual, rank: int, field_id: int, begin: int, size: int) -> _Residual:
    """Return the residual with one more field."""
    fields, count = residual.fields, residual.count
    if count + 1 > len(fields):
        fields = reserve_rows(fields, count + 1)
    fields[count, 0] = rank
    fields[count, 1] = field_id
    fields[count, 2] = begin
    fields[count, 3] = size
    is_sorted = residual.is_sorted and (count == 0 or fields[count - 1, 0] < rank)
    return _Residual(fields, count + 1, residual.bytes + size, max(residual.largest_id, field_id), is_sorted)


@helper(inline=True)
def _put_fields(
    stack: Int64Table,
    depth: int,
    s: int,
    at: int,
    parts: Container,
    ranks: Int64s,
    fields: _Fields,
    nodes: Int64Table,
    columns: ShreddedColumns,
    residual: _Residual,
) -> tuple[bool, Int64Table, int, _Residual]:
    """Store the fields of an object, and push the containers that the schema shreds.

    Returns ``(ok, stack, depth, residual)``.
    """
    field_ids, id_width, offsets, width = parts.ids, parts.id_width, parts.offsets, parts.offset_width
    values, room = parts.values, parts.size
    end = values + room
    fields.seen[len(nodes)] += 1
    serial = fields.seen[len(nodes)]
    for j in range(parts.count):
        field_id = load_uint(field_ids + j * id_width, id_width)
        begin = values + load_uint(offsets + j * width, width)
        size = value_size(begin, end)
        if field_id >= len(ranks) or size == MALFORMED or size > room:
            return False, stack, depth, residual
        room -= size
        child = _child_of(nodes, s, field_id, fields)
        if child < 0:
            residual = _keep_field(residual, ranks[field_id], field_id, begin, size)
            continue
        if fields.seen[child] == serial:
            return False, stack, depth, residual
        fields.seen[child] = serial
        if _is_taken_apart(nodes, child, begin):
            if depth + 1 > len(stack):
                stack = reserve_rows(stack, depth + 1)
            _push(stack, depth, child, at, begin, end)
            depth += 1
        elif not _put_leaf(nodes, child, at, begin, size, columns):
            return False, stack, depth, residual
    return True, stack, depth, residual


@helper(inline=True)
def _put_residual(residual: _Residual, s: int, at: int, columns: ShreddedColumns) -> bool:
    """Count or write the residual of an object; return False if a field is duplicated."""
    if not residual.is_sorted:
        _sort_fields(residual.fields, residual.count)
        for j in range(1, residual.count):
            if residual.fields[j, 0] == residual.fields[j - 1, 0]:
                return False
    if residual.count > 0:
        if columns.filling:
            _put_object(columns.addresses, s, at, residual)
        else:
            columns.counts[s, COUNTS.VALUE_COUNT] += 1
            columns.counts[s, COUNTS.VALUE_BYTES] += object_size(residual.count, residual.largest_id, residual.bytes)
    return True


@helper(inline=True)
def _shred_row(
    stack: Int64Table,
    nodes: Int64Table,
    ranks: Int64s,
    fields: _Fields,
    columns: ShreddedColumns,
    entry: Int64s,
    scratch: Int64Table,
) -> tuple[bool, Int64Table, Int64Table]:
    """Shred the row on the stack; return ``(ok, stack, scratch)``, room for the fields of residuals."""
    depth = 1
    while depth > 0:
        if depth + 2 > len(stack):
            stack = reserve_rows(stack, depth + 2)
        top = depth - 1
        if stack[top, _LEFT] >= 0:
            ok, depth = _put_elements(stack, top, nodes, columns)
            if not ok:
                return False, stack, scratch
            continue
        s, at = stack[top, _SCHEMA], stack[top, _AT]
        depth -= 1
        parts = container(stack[top, _BEGIN], stack[top, _END])
        if not columns.filling:
            columns.counts[s, COUNTS.TYPED_COUNT] += 1
        elif columns.addresses[s, BUFFERS.TYPED_VALID] != 0:
            store_u8(columns.addresses[s, BUFFERS.TYPED_VALID] + at, 1)
        if nodes[s, S.KIND] == ARRAY_NODE:
            count, values = parts.count, parts.values
            level = nodes[s + 1, S.LEVEL]
            if columns.filling:
                store_u32(columns.addresses[s, BUFFERS.LENGTHS] + at * 4, count)
            _push_elements(
                stack, top, s + 1, entry[level], values, values + parts.size, count, parts.offsets, parts.offset_width
            )
            entry[level] += count
            depth += 1
            continue
        residual = _Residual(scratch, 0, 0, 0, True)
        ok, stack, depth, residual = _put_fields(stack, depth, s, at, parts, ranks, fields, nodes, columns, residual)
        scratch = residual.fields
        if not ok or not _put_residual(residual, s, at, columns):
            return False, stack, scratch
    return True, stack, scratch


@helper
def _widest(names: NameTable) -> int:
    """Return the number of names of the largest dictionary."""
    widest = 1
    for d in range(len(names.state)):
        widest = max(widest, names.starts[d + 1] - names.starts[d])
    return widest


@kernel
def shred_rows(
    memory: Memory,
    values: EncodedValues,
    schema: NamedNodes,
    names: NameTable,
    refused: UInt8s,
    columns: ShreddedColumns,
) -> None:
    """Count every row, or write it if ``filling``.

    Counting marks malformed rows in ``refused``; filling skips them.
    """
    nodes, counts, levels = schema.nodes, columns.counts, columns.levels
    ids, field_ranks = filled_vector(memory, len(nodes), -1), new_vector(memory, len(nodes))
    first_of_id, next_of_node = filled_vector(memory, _widest(names), -1), new_vector(memory, len(nodes))
    seen = filled_vector(memory, len(nodes) + 1, 0)
    fields = _Fields(ids, first_of_id, next_of_node, seen)
    scratch, stack = new_table(memory, 64, 4), new_table(memory, 64, 8)
    entry, saved_entry = filled_vector(memory, len(levels), 0), new_vector(memory, len(levels))
    saved_counts = new_table(memory, counts.shape[0], counts.shape[1])
    _copy_counts(saved_counts, saved_entry, counts, entry)
    zero = filled_vector(memory, 1, 0)
    current = -1
    rows = len(values.dictionary_of)
    for row in range(rows):
        if (len(values.valid) > 0 and values.valid[row] == 0) or refused[row] != 0:
            continue
        d = values.dictionary_of[row]
        if d < 0 or names.state[d] == UNUSABLE:
            refused[row] = 1
            continue
        if d != current:
            current = d
            _unchain_children(fields)
            resolve_names(schema, names, d, ids, field_ranks)
            _chain_children(fields)
        if not columns.filling:
            _copy_counts(saved_counts, saved_entry, counts, entry)
        begin, end = values.base + values.offsets[row], values.base + values.offsets[row + 1]
        # A row is shredded like a list of one element.
        _push_elements(stack, 0, 0, row, begin, end, 1, address_in(zero), 1)
        ranks = names.rank[names.starts[d] : names.starts[d + 1]]
        ok, stack, scratch = _shred_row(stack, nodes, ranks, fields, columns, entry, scratch)
        if not ok:
            refused[row] = 1
            _copy_counts(counts, entry, saved_counts, saved_entry)
    if not columns.filling:
        for level in range(1, len(levels)):
            levels[level] = entry[level]
        levels[0] = rows
