"""Unshredded storages to shredded ones (final layout), a batch at a time.

Owns calling `kernels.shredding.shred` and putting in the rows that only the scalar fallback decides. Leaves the drafts
to `storages`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from parquet_variant.array.parts import binary_parts, metadata_parts, valid_bytes, variants_of
from parquet_variant.array.row_by_row import with_fallback_rows
from parquet_variant.kernels.shredding.columns import ColumnBuffers
from parquet_variant.kernels.shredding.schema_table import schema_table
from parquet_variant.kernels.shredding.shred import ShreddedColumns, shred_rows
from parquet_variant.kernels.values.name_tables import name_table
from parquet_variant.kernels.values.reading import EncodedValues
from parquet_variant.layouts import storages as scalar
from parquet_variant.schema.shredding_schema import ShreddingSchema


def shredded_final(storage: pa.StructArray, schema: ShreddingSchema) -> pa.StructArray:
    """Take the values of an unshredded storage apart; see `storages.shredded_storage`."""
    table = schema_table(schema)
    metadata = metadata_parts(storage.field("metadata"))
    value = binary_parts(storage.field("value"))
    names = name_table(metadata.dictionary)
    valid, rows = valid_bytes(storage), len(storage)
    values = EncodedValues(valid, value.offsets, value.address, metadata.indices)
    refused = np.zeros(rows, np.uint8)
    counts, levels = np.zeros((len(table.nodes), 4), np.int64), np.zeros(table.levels, np.int64)

    def walk(addresses: np.ndarray, *, filling: bool) -> None:
        shred_rows(values, table.named, names, refused, ShreddedColumns(counts, levels, addresses, filling))

    walk(np.empty((0, 0), np.int64), filling=False)
    buffers = ColumnBuffers(table, counts, levels)
    walk(buffers.addresses, filling=True)
    shredded = buffers.storage(metadata.column, valid if len(valid) else None)

    def by_fallback(row: int) -> pa.StructArray:
        return scalar.shredded_storage(variants_of(storage.slice(row, 1)), schema, "final")

    return with_fallback_rows(shredded, refused, by_fallback)
