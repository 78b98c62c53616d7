"""Reading whole rows of a table.

Owns `read_table` and `read`. One file is read in `data_files`, typed paths with skipping in `scan`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Unpack

import pyarrow as pa

from parquet_variant.arrays.parts import one_chunk
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import IcebergError, strings_of
from parquet_variant.io.parallel import in_order, thread_count
from parquet_variant.support.keywords import with_keywords
from parquet_variant.tables.iceberg.metadata.schema import shared_schema
from parquet_variant.tables.iceberg.metadata.types import StructType
from parquet_variant.tables.iceberg.reading.data_files import empty_rows, read_file, with_unshredded
from parquet_variant.tables.iceberg.reading.deletes import TableFile
from parquet_variant.tables.iceberg.reading.planning import plan_files
from parquet_variant.tables.iceberg.reading.snapshot import Snapshot, SnapshotKeywords, TableLike, snapshot
from parquet_variant.tables.table_scan import named_variant


@with_keywords(SnapshotKeywords, snapshot)
def read_table(
    table: TableLike,
    columns: Sequence[str] | None = None,
    *,
    threads: int | None = None,
    **at: Unpack[SnapshotKeywords],
) -> pa.Table:
    """Read all rows of a table; see `Table.to_arrow`."""
    current = snapshot(table, **at)
    fields = current.schema.struct if columns is None else current.schema.select(strings_of("columns", columns)).struct
    parts = list(rows_of_files(current, fields, plan_files(current).files, threads=thread_count(threads)))
    if not parts:
        return with_unshredded(empty_rows(fields.fields), fields)
    return pa.concat_tables(parts, promote_options="permissive")


@with_keywords(SnapshotKeywords, snapshot)
def read(
    table: TableLike,
    column: str | None = None,
    *,
    threads: int | None = None,
    **at: Unpack[SnapshotKeywords],
) -> VariantArray:
    """Read a Variant column of all rows; see `Table.read`."""
    current = snapshot(table, **at)
    column = named_variant(shared_schema(current.schema), column, IcebergError)
    return VariantArray.from_storage(one_chunk(read_table(current, [column], threads=threads)[column]))


def rows_of_files(
    current: Snapshot, fields: StructType, files: Sequence[TableFile], *, threads: int = 1
) -> Iterator[pa.Table]:
    """Yield the rows of each file, in order.

    Memory holds the files that the threads read, and one more.
    """

    def rows_of(file: TableFile) -> pa.Table:
        return read_file(current, file, fields)

    yield from in_order(rows_of, files, threads)
