"""Storages of any layout to unshredded ones, a batch at a time.

Owns calling `kernels.unshred` and putting in the rows that only the reference decides. Leaves the drafts to
`drafts`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from parquet_variant.array.parts import MetadataParts, metadata_parts, valid_bytes
from parquet_variant.array.reference_rows import with_reference_rows
from parquet_variant.array.typed_inputs import TypedInputs
from parquet_variant.kernels.columns import bitmap
from parquet_variant.kernels.name_tables import name_table
from parquet_variant.kernels.schema_table import SchemaTable, schema_table
from parquet_variant.kernels.unshred import assemble, measure_nodes, write_nodes
from parquet_variant.layouts import storages as reference
from parquet_variant.layouts.conflicts import OnConflict
from parquet_variant.schema.layout import Layout, schema_of_layout

__all__ = ["assembled", "unshredded_storage"]


def unshredded_storage(storage: pa.StructArray, layout: Layout, on_conflict: OnConflict = "error") -> pa.StructArray:
    """Put the values of a shredded storage together.

    Parameters
    ----------
    storage
        A storage struct of any layout.
    layout
        Which one.
    on_conflict
        ``"error"`` or ``"typed"``; see `layouts.conflicts`.

    Raises
    ------
    ConflictError, MalformedVariantError
        With row and path.
    """
    if layout == "unshredded":
        return storage
    if layout != "final":
        from parquet_variant.array.drafts import unshredded_draft

        return unshredded_draft(storage, layout, on_conflict)
    table = schema_table(schema_of_layout(storage.type))
    metadata = metadata_parts(storage.field("metadata"))
    plain, refused = assembled(storage, table, metadata)
    return with_reference_rows(
        plain, refused, lambda row: reference.unshredded_storage(storage.slice(row, 1), on_conflict)
    )


def assembled(
    storage: pa.StructArray, table: SchemaTable, metadata: MetadataParts
) -> tuple[pa.StructArray, np.ndarray]:
    """The rows that the kernel decides, and a flag for each of the others (null here)."""
    rows = len(storage)
    inputs = TypedInputs(storage, table)
    names = name_table(metadata.dictionary)
    valid = valid_bytes(storage)
    row_start, refused = np.empty(rows + 1, np.int64), np.zeros(rows, np.uint8)
    nodes = np.empty((max(64, 2 * rows), 4), np.int64)
    nodes, count = assemble(
        rows, valid, table.nodes, inputs.addresses, inputs.names, inputs.name_lengths, metadata.indices, names.starts,
        names.address, names.length, names.rank, names.order, names.state, nodes, row_start, refused,
        table.schema.depth,
    )  # fmt: skip
    sizes, row_sizes = np.empty(count, np.int64), np.empty(rows, np.int64)
    total = measure_nodes(nodes, row_start, sizes, row_sizes)
    data = np.empty(max(total, 1), np.uint8)
    write_nodes(nodes, row_start, sizes, np.empty(count, np.int64), data.ctypes.data)
    wide = total > np.iinfo(np.int32).max
    offsets = np.zeros(rows + 1, np.int64 if wide else np.int32)
    np.cumsum(row_sizes, out=offsets[1:])
    value = pa.Array.from_buffers(
        pa.large_binary() if wide else pa.binary(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(data[:total])]
    )
    return _struct(metadata, value, valid if len(valid) else None), refused


def _struct(metadata: MetadataParts, value: pa.Array, valid: np.ndarray | None) -> pa.StructArray:
    column = metadata.column
    fields = [pa.field("metadata", column.type, nullable=False), pa.field("value", value.type, nullable=False)]
    return pa.Array.from_buffers(pa.struct(fields), len(value), [bitmap(valid)], children=[column, value])
