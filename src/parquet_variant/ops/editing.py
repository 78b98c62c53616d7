"""The common implementation of the functions that change values.

Owns calling `kernels.operations.edit`, replacing the rows that only the scalar fallback can change, and keeping the
bytes of rows that do not change. `encoding.edits` defines what an edit does.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.arrays.capsules import is_arrow
from parquet_variant.arrays.parts import MetadataParts, joined_storages, metadata_parts, storage_of
from parquet_variant.arrays.row_by_row import with_fallback_rows
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.encoding.edits import Edit, EditKind, apply_edit
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import SchemaError, VariantError
from parquet_variant.kernels.arrow_buffers import Int64s, Mask, from_numpy, to_numpy
from parquet_variant.kernels.buffer_pool import adopt
from parquet_variant.kernels.operations.edit import CHANGED, LEFT, UNCHANGED, Change, edit_rows, strip_rows
from parquet_variant.kernels.operations.remap import least_metadata
from parquet_variant.kernels.values.value_nodes import value_array
from parquet_variant.ops.columns.arrow_input import as_variant_array
from parquet_variant.ops.columns.node_tables import NameNumbers, ValueBatch, canonical_nodes, present_rows, value_chunks
from parquet_variant.ops.columns.null_on_error import check_errors, or_none
from parquet_variant.support import arrow_compute as pc
from parquet_variant.support.choices import Errors

NO_VALUE = object()


def apply_edits(source: Any, edits: Sequence[Edit], value: Any = NO_VALUE, errors: Errors = "raise") -> Any:
    """Apply edits one after the other, to a value or to every value of a column.

    `edits`: the edits; more than one only without a value.
    `value`: the operand: a Variant, a column with one value per row, or any other Python object, which is one value.
    `errors`: with ``"null"``, rows that would raise become SQL NULL.
    Returns None for a single value that becomes SQL NULL.
    """
    null_on_error = check_errors(errors)
    if isinstance(source, Variant):
        operand = None if value is NO_VALUE else _operand(value, None)
        if isinstance(operand, VariantArray) or (value is not NO_VALUE and operand is None):
            return None
        change = partial(_by_fallback, source, edits, operand)
        return or_none(change) if null_on_error else change()
    storage = as_variant_array(source).to_unshredded().storage
    if not edits:
        return VariantArray(storage)
    operand = None if value is NO_VALUE else _operand(value, len(storage))
    if value is not NO_VALUE and operand is None:
        return VariantArray.from_variants([None] * len(storage))
    pieces = []
    for start, stop in value_chunks(storage):
        rows = operand[start:stop] if isinstance(operand, VariantArray) else operand
        try:
            pieces.append(_edit_chunk(storage.slice(start, stop - start), edits, rows, null_on_error))
        except VariantError as error:
            error.row = None if error.row is None else error.row + start
            raise
    return VariantArray(joined_storages(pieces))


def _operand(value: Any, rows: int | None) -> Variant | VariantArray | None:
    """Return the operand: one value, or a column with one value per row; None for SQL NULL."""
    if isinstance(value, pa.Scalar):
        if not value.is_valid:
            return None
        value = pa.array([value.as_py()], value.type)
        return _column(value)[0]
    if isinstance(value, pa.ChunkedArray) or is_arrow(value):
        if rows is None:
            raise SchemaError(
                "the operand is a column, but the first argument is a single Variant: pass a single value",
                reason="length",
            )
        column = _column(value)
        if len(column) != rows:
            raise SchemaError(
                f"the operand has {len(column):,} values for {rows:,} rows: pass one value, or one per row",
                reason="length",
            )
        return column.to_unshredded()
    return value if isinstance(value, Variant) else Variant.from_python(value)


def _column(value: Any) -> VariantArray:
    from parquet_variant.ops.cast_to_variant import cast_to_variant

    return cast_to_variant(value)


def _by_fallback(variant: Variant, edits: Sequence[Edit], value: Variant | None) -> Variant:
    return reduce(lambda changed, edit: apply_edit(changed, edit, value), edits, variant)


def _edit_chunk(
    storage: pa.StructArray, edits: Sequence[Edit], operand: Variant | VariantArray | None, null_on_error: bool
) -> pa.StructArray:
    """Return the changed rows of a chunk."""
    present = present_rows(storage)
    if isinstance(operand, VariantArray):
        present &= present_rows(operand.storage)
    changed, state = _by_kernel(ValueBatch.of(storage, present), edits, operand)

    def by_fallback(row: int) -> pa.StructArray:
        variant = _variant(storage, row)
        value = _variant(operand.storage, row) if isinstance(operand, VariantArray) else operand
        return VariantArray.from_variants([_by_fallback(variant, edits, value)]).storage

    if np.any(present & (state != CHANGED) & (state != LEFT)):
        changed = _with_unchanged(changed, storage, state != CHANGED, present)
    return with_fallback_rows(changed, present & (state == LEFT), by_fallback, null_on_error=null_on_error)


def _variant(storage: pa.StructArray, row: int) -> Variant:
    metadata, value = storage.field("metadata")[row].as_py(), storage.field("value")[row].as_py()
    return Variant(metadata or b"", value or b"")


def _by_kernel(
    batch: ValueBatch, edits: Sequence[Edit], operand: Variant | VariantArray | None
) -> tuple[pa.StructArray, npt.NDArray[np.uint8]]:
    """Return the rows that the kernel changes (null elsewhere), and the state of each row."""
    keys = sorted({key for edit in edits for key in edit.segments if isinstance(key, str)})
    batches = [batch]
    if operand is not None:
        column = operand if isinstance(operand, VariantArray) else VariantArray.from_variants([operand])
        batches.append(ValueBatch.of(column.storage, present_rows(column.storage)))
    table = NameNumbers(batches, keys)
    nodes, row_start, refused = canonical_nodes(batch, table.maps[0])
    state = np.where(refused, LEFT, UNCHANGED).astype(np.uint8)
    values, value_start = np.empty((0, 4), np.int64), np.zeros(2, np.int64)
    if operand is not None:
        values, value_start, value_refused = canonical_nodes(batches[1], table.maps[1])
        if isinstance(operand, VariantArray):
            state[value_refused != 0] = LEFT
        elif value_refused[0]:
            state[:] = LEFT
    for number, edit in enumerate(edits):
        nodes, row_start = _apply_edit(
            nodes, row_start, edit, table, values, value_start, state,
            one_value=not isinstance(operand, VariantArray), keep=number < len(edits) - 1,
        )  # fmt: skip
    changed = _encoded_values(nodes, row_start, table, edits[0], state)
    state[batch.starts < 0] = CHANGED  # SQL NULL rows have no bytes to keep
    return changed, state


def _apply_edit(
    nodes: Int64s,
    row_start: Int64s,
    edit: Edit,
    table: NameNumbers,
    values: Int64s,
    value_start: Int64s,
    state: npt.NDArray[np.uint8],
    *,
    one_value: bool,
    keep: bool,
) -> tuple[Int64s, Int64s]:
    if edit.kind == EditKind.NORMALIZE:
        state[state != LEFT] = CHANGED
        return nodes, row_start
    out_start = np.empty_like(row_start)
    if edit.kind in (EditKind.STRIP_NULLS, EditKind.STRIP_FIELDS):
        out = np.empty_like(nodes)
        count = strip_rows(nodes, row_start, edit.kind == EditKind.STRIP_NULLS, out, out_start, state)
        return out[:count], out_start
    segments = np.array([table.rank[key] if isinstance(key, str) else -1 - key for key in edit.segments], np.int64)
    change = Change(int(edit.kind), segments, values, value_start, one_value, edit.max_size)
    exported = edit_rows(nodes, row_start, change, keep, out_start, state)
    return adopt(*exported), out_start


def _encoded_values(
    nodes: Int64s, row_start: Int64s, names: NameNumbers, edit: Edit, state: npt.NDArray[np.uint8]
) -> pa.StructArray:
    """Return the values of a node table, each with metadata of only its own names."""
    metadata = least_metadata(nodes, row_start, np.zeros(len(state), np.int64), names.table)
    value = value_array(nodes, row_start)
    sizes, name_sizes = (
        to_numpy(pc.binary_length(column_of_bytes)).astype(np.int64) for column_of_bytes in (value, metadata)
    )
    if edit.kind != EditKind.NORMALIZE:
        state[(state == CHANGED) & (sizes + name_sizes > edit.max_size)] = LEFT
    dictionary = metadata.dictionary_encode()
    column = MetadataParts(to_numpy(dictionary.indices), dictionary.dictionary.cast(pa.binary())).column
    return storage_of(column, value, from_numpy((state != CHANGED) | (sizes == 0)))


def _with_unchanged(changed: pa.StructArray, storage: pa.StructArray, keep: Mask, present: Mask) -> pa.StructArray:
    """Return the changed rows and, at the rows to keep, the original bytes; null where no value is present."""
    value = storage.field("value")
    if not (pa.types.is_binary(value.type) or pa.types.is_large_binary(value.type)):
        value = value.cast(pa.large_binary())
    column = metadata_parts(storage.field("metadata")).column
    fields = [changed.type.field("metadata"), pa.field("value", value.type, nullable=False)]
    original = pa.StructArray.from_arrays([column, value], fields=fields, mask=from_numpy(~present))
    positions = np.arange(len(changed)) + np.where(keep, len(changed), 0)
    return joined_storages([changed, original]).take(from_numpy(positions))
