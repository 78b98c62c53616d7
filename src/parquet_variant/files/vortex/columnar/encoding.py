"""Conversion from Variants to the columnar encoding, path by path, and back, through nodes in document order.

Owns gathering the nodes of each path into dense children, and placing the values of all paths among the nodes of their
rows. `kernels.tapes.decode` and `kernels.values.value_nodes` convert bytes, and `compute` makes typed arrays of
scalars.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from parquet_variant.arrays.parts import metadata_of_all, storage_of
from parquet_variant.arrays.tapes import array_tapes
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.encoding.cast.targets import target_of
from parquet_variant.errors import MalformedVariantError
from parquet_variant.files.vortex.columnar.column import BOOLEAN, Child, Int64s, ObjectField, PathColumn, code_of
from parquet_variant.kernels.arrow_buffers import offsets_of
from parquet_variant.kernels.kinds import KIND
from parquet_variant.kernels.tapes.tape import PATH, Tape, path_ids
from parquet_variant.kernels.values.value_nodes import value_array
from parquet_variant.ops.columns.column_slots import slots_of_column
from parquet_variant.ops.columns.slot_casts import CastOptions, array_of_slots
from parquet_variant.ops.columns.value_positions import ScalarSlots
from parquet_variant.types import TYPE_OF_ID, TYPES, PrimitiveId

_P = PrimitiveId
_MAX_SCALE = 38
_ROWS = 1 << 16
# No value is cast: each slot already has the requested type.
_OPTIONS = CastOptions(dt.UTC, safe=False, path="$", lossless=True)
_LARGE = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}


def encode_columnar(array: VariantArray) -> Iterator[tuple[int, PathColumn, Int64s | None]]:
    """Encode an array of any layout in batches of rows.

    Yields the number of rows, the values of the rows that are not SQL NULL, and the numbers of these rows (None for
    all).
    """
    for start in range(0, len(array), _ROWS):
        first_row = start
        for tape in array_tapes(array[start : start + _ROWS], start):
            yield _encode_tape(tape, first_row)
            first_row += tape.rows


def _encode_tape(tape: Tape, first_row: int) -> tuple[int, PathColumn, Int64s | None]:
    tags = tape.nodes[:, 0]
    path_of = path_ids(tags)
    order = np.argsort(path_of, kind="stable")
    bounds = np.searchsorted(path_of[order], np.arange(len(tape.paths) + 1))
    nodes_at = [order[bounds[path] : bounds[path + 1]] for path in range(len(tape.paths))]
    child_paths: list[list[int]] = [[] for _ in nodes_at]
    for path in range(1, len(tape.paths)):
        child_paths[tape.paths[path, PATH.PARENT]].append(path)
    columns: list[PathColumn] = [PathColumn(0)] * len(nodes_at)
    for path in range(len(nodes_at) - 1, -1, -1):  # each path comes after its parent
        columns[path] = _column(tape, nodes_at[path], child_paths[path], nodes_at, columns, first_row)
    present = np.flatnonzero(tape.row_start[1:] > tape.row_start[:-1])
    return tape.rows, columns[0], None if len(present) == tape.rows else present


def _column(
    tape: Tape, nodes: Int64s, child_paths: list[int], nodes_at: list[Int64s], columns: list[PathColumn], first_row: int
) -> PathColumn:
    tags = tape.nodes[nodes, 0]
    kinds = tags & 0xFF
    kinds[kinds == _P.FALSE] = BOOLEAN
    scales = np.where((kinds >= _P.DECIMAL4) & (kinds <= _P.DECIMAL16), (tags >> 8) & 0xFF, 0)
    codes, types = np.unique(code_of(kinds, scales), return_inverse=True)
    children = []
    for index, code in enumerate(codes.tolist()):
        of_code = nodes if len(codes) == 1 else nodes[types == index]
        if code == KIND.OBJECT:
            fields = {}
            for path in child_paths:
                key = int(tape.paths[path, PATH.KEY])
                if key >= 0 and len(nodes_at[path]):
                    # The object of a field is the last one at the path that begins before it.
                    objects = np.searchsorted(of_code, nodes_at[path], "right") - 1
                    positions = None if len(objects) == len(of_code) else objects
                    fields[tape.key_list[key]] = ObjectField(positions, columns[path])
            by_name = {_decode_key(name): fields[name] for name in sorted(fields)}
            children.append(Child(code, len(of_code), fields=by_name))
        elif code == KIND.ARRAY:
            offsets = offsets_of(tape.nodes[of_code, 1])
            elements = next((columns[path] for path in child_paths if tape.paths[path, PATH.KEY] < 0), PathColumn(0))
            children.append(Child(code, len(of_code), offsets=offsets, elements=elements))
        elif code == _P.NULL:
            children.append(Child(code, len(of_code)))
        else:
            children.append(Child(code, len(of_code), _values(tape, of_code, code, first_row)))
    return PathColumn(len(nodes), tuple(children), types.astype(np.uint8) if len(codes) > 1 else None)


def _decode_key(key: bytes) -> str:
    try:
        return key.decode()
    except UnicodeDecodeError as error:
        raise MalformedVariantError(f"the key {key[:40]!r} is not UTF-8: {error.reason}", reason="bad-utf8") from None


def scalar_type(code: int) -> pa.DataType:
    """Return the Arrow type of a scalar child."""
    kind, scale = PrimitiveId(code & 0xFF), code >> 8
    if _P.DECIMAL4 <= kind <= _P.DECIMAL16:
        return pa.decimal128(38, scale)
    arrow = TYPES[TYPE_OF_ID[kind].type].arrow
    return _LARGE.get(arrow, arrow)


def _values(tape: Tape, node_numbers: Int64s, code: int, first_row: int) -> pa.Array:
    nodes = tape.nodes[node_numbers]
    kinds, scales = (nodes[:, 0] & 0xFF).astype(np.uint8), ((nodes[:, 0] >> 8) & 0xFF).astype(np.uint8)
    rows = np.searchsorted(tape.row_start, node_numbers, "right") - 1 + first_row
    if code >> 8 > _MAX_SCALE:
        raise MalformedVariantError(
            f"a decimal has the scale {code >> 8}, but the largest valid scale is {_MAX_SCALE}",
            reason="bad-decimal",
            row=int(rows[0]),
        )
    slots = ScalarSlots(kinds, nodes[:, 1].copy(), nodes[:, 2].copy(), scales, rows=rows, owner=tape)
    values = array_of_slots(slots, target_of(scalar_type(code)), _OPTIONS)
    if values.null_count:
        row = int(rows[int(np.argmax(values.is_null().to_numpy(zero_copy_only=False)))])
        kind = TYPE_OF_ID[PrimitiveId(code & 0xFF)].type
        raise MalformedVariantError(
            f"a value of type {kind} is outside the range of its type", reason="malformed", row=row
        )
    return values


def decode_columnar(size: int, root: PathColumn, present: Int64s, names: Sequence[str] | None = None) -> VariantArray:
    """Decode a column of `size` rows to an unshredded array, whose rows share one dictionary.

    The dictionary holds the sorted ``names``, to which encoded values among the children (`RAW`) refer; by default the
    names of all fields.
    """
    columns = _columns(root)
    if names is None:
        names = sorted({name for column in columns for child in column.children for name in child.fields})
    ids = {name: number for number, name in enumerate(names)}
    sizes = _sizes(columns)
    lengths = np.zeros(size, np.int64)
    lengths[present] = sizes[id(root)]
    row_start = offsets_of(lengths)
    nodes = np.zeros((int(row_start[-1]), 4), np.int64)
    starts = {id(root): row_start[:-1][present]}
    keys = {id(root): 0}
    owners = []  # keep the bytes alive to which nodes point
    for column in columns:
        positions = starts.pop(id(column))
        owners.append(_place(column, positions, keys.pop(id(column)), sizes, starts, keys, ids, nodes))
    mask = None if len(present) == size else pa.array(lengths == 0)
    return VariantArray(storage_of(metadata_of_all(names, size), value_array(nodes, row_start), mask))


def _columns(root: PathColumn) -> list[PathColumn]:
    """Return all columns, parents first."""
    columns = [root]
    for column in columns:  # the list grows while it is processed
        for child in column.children:
            if child.elements is not None:
                columns.append(child.elements)
            columns.extend(field.column for field in child.fields.values())
    return columns


def _sizes(columns: list[PathColumn]) -> dict[int, Int64s]:
    """Return the number of nodes of each value, by column (by identity)."""
    sizes: dict[int, Int64s] = {}
    for column in reversed(columns):
        size = np.ones(column.size, np.int64)
        for index, child in enumerate(column.children):
            if child.elements is not None and child.offsets is not None:
                ends = offsets_of(sizes[id(child.elements)])
                size[column.positions(index)] += np.diff(ends[child.offsets])
            elif child.kind == KIND.OBJECT:
                object_sizes = np.zeros(child.size, np.int64)
                for field in child.fields.values():
                    object_sizes[field.object_positions(child.size)] += sizes[id(field.column)]
                size[column.positions(index)] += object_sizes
        sizes[id(column)] = size
    return sizes


def _place(
    column: PathColumn,
    positions: Int64s,
    key: int,
    sizes: dict[int, Int64s],
    starts: dict[int, Int64s],
    keys: dict[int, int],
    ids: dict[str, int],
    nodes: Int64s,
) -> list[pa.Array]:
    """Write the nodes of a column, and set the positions of the nodes of its child columns."""
    owners = []
    nodes[positions, 3] = positions + sizes[id(column)]
    for index, child in enumerate(column.children):
        of_child = positions[column.positions(index)]
        nodes[of_child, 0] = child.kind | child.code >> 8 << 8 | key << 16
        if child.values is not None:
            slots = slots_of_column(child.values)
            owners.append(slots.owner)
            nodes[of_child, 1], nodes[of_child, 2] = slots.a, slots.b
            if child.code == BOOLEAN:
                nodes[of_child, 0] = slots.kinds.astype(np.int64) | key << 16
        elif child.elements is not None and child.offsets is not None:
            lengths = np.diff(child.offsets)
            nodes[of_child, 1] = lengths
            ends = offsets_of(sizes[id(child.elements)])
            starts[id(child.elements)] = ends[:-1] + np.repeat(of_child + 1 - ends[child.offsets[:-1]], lengths)
            keys[id(child.elements)] = 0
        elif child.kind == KIND.OBJECT:
            cursor = of_child + 1
            for name, field in child.fields.items():
                objects = field.object_positions(child.size)
                nodes[of_child[objects], 1] += 1
                starts[id(field.column)] = cursor[objects]
                cursor[objects] += sizes[id(field.column)]
                keys[id(field.column)] = ids[name]
        else:
            assert child.kind == PrimitiveId.NULL
    return owners
