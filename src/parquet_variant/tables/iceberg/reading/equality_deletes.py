"""Equality deletes: which rows of a data file equal a row of a delete file.

Owns the comparison (specification, "Equality Delete Files"): null equals null, and a column that was dropped since then
still counts. Which delete files apply is decided in `deletes`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from parquet_variant.arrays.parts import one_chunk
from parquet_variant.errors import IcebergError
from parquet_variant.kernels.arrow_buffers import Mask
from parquet_variant.support import arrow_compute as pc
from parquet_variant.tables.iceberg.metadata.manifests import ManifestEntry
from parquet_variant.tables.iceberg.metadata.types import NestedField, PrimitiveType, arrow_type
from parquet_variant.tables.iceberg.reading.deletes import read_delete_file
from parquet_variant.tables.iceberg.reading.snapshot import Snapshot
from parquet_variant.tables.iceberg.reading.table_files import TableFile

# Reads a column of the data file, all rows, by the fields on the way to it.
ColumnReader = Callable[[tuple[NestedField, ...]], pa.Array]


def matches_deletes(snapshot: Snapshot, file: TableFile, read: ColumnReader, rows: int) -> Mask:
    """Return which rows of a data file the equality deletes that apply to it delete.

    Raises `IcebergError`: reason ``"bad-delete-file"``.
    """
    deleted = np.zeros(rows, dtype=bool)
    by_columns: dict[tuple[int, ...], list[ManifestEntry]] = defaultdict(list)
    for entry in file.deletes.equalities:
        if not entry.file.equality_ids:
            raise IcebergError(
                "the equality delete file names no columns", reason="bad-delete-file", file=entry.file.path
            )
        by_columns[tuple(entry.file.equality_ids)].append(entry)
    for ids, entries in by_columns.items():
        ways = [_way(snapshot, number, entries[0]) for number in ids]
        names = [str(number) for number in ids]
        parts = [read_delete_file(snapshot.table.files, entry.file, ids, names) for entry in entries]
        keys = pa.concat_tables(parts, promote_options="permissive")
        deleted |= _equal_rows([read(way) for way in ways], [one_chunk(column) for column in keys.columns], ways)
    return deleted


def _way(snapshot: Snapshot, number: int, entry: ManifestEntry) -> tuple[NestedField, ...]:
    """Return the fields on the way to a field id, which may be of an older schema."""
    for schema in snapshot.metadata.schemas_newest_first:
        if number in schema.by_id:
            return schema.fields_at(schema.by_id[number][0])
    raise IcebergError(
        f"the equality delete file names field id {number}, which no schema of the table has",
        reason="bad-delete-file",
        file=entry.file.path,
    )


def _equal_rows(columns: list[pa.Array], keys: list[pa.Array], ways: list[tuple[NestedField, ...]]) -> Mask:
    """Return which rows of some columns equal a row of some keys; null equals null."""
    rows = len(columns[0])
    codes = np.zeros(rows + len(keys[0]), dtype=np.int64)
    for column, key, way in zip(columns, keys, ways, strict=True):
        kind = way[-1].type
        if not isinstance(kind, PrimitiveType):
            raise IcebergError(f"equality deletes of column {way[-1].name!r}, a {kind}", reason="bad-delete-file")
        target = arrow_type(kind)
        both = [_comparable_array(part if part.type == target else part.cast(target)) for part in (column, key)]
        encoded = pa.concat_arrays(both).dictionary_encode()
        indices = pc.fill_null(encoded.indices.cast(pa.int64()), -1).to_numpy() + 1
        _, codes = np.unique(codes * (len(encoded.dictionary) + 1) + indices, return_inverse=True)
    return np.isin(codes[:rows], codes[rows:])


def _comparable_array(array: pa.Array) -> pa.Array:
    if isinstance(array, pa.ExtensionArray):
        return array.storage
    if pa.types.is_floating(array.type):
        # Equal floats have equal bits here: -0.0 counts as 0.0, and NaN as NaN.
        array = pc.add(array, pa.scalar(0.0, array.type))
        return pc.if_else(pc.is_nan(array), pa.scalar(float("nan"), array.type), array)
    return array
