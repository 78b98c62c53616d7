"""Stable row ids and commit versions of a file's rows (PROTOCOL.md, "Row Tracking").

Owns their sources: the columns in which files keep them, else the file's base id and the row's position. Leaves
assigning new ids to `log.watermarks`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from parquet_variant.kernels.arrow_buffers import Mask
from parquet_variant.layouts.parquet_reader import open_parquet
from parquet_variant.support import arrow_compute as pc
from parquet_variant.tables.delta.data.paths import relative_path
from parquet_variant.tables.delta.log.snapshot import Snapshot
from parquet_variant.tables.delta.protocol.actions import Add
from parquet_variant.tables.delta.reading.read import live_rows, read_file, unshredded_table


def row_ids(current: Snapshot, file: Add, path: str, live: Mask) -> dict[str, pa.ChunkedArray]:
    """Return the columns of ids and commit versions of some rows of a file; none if the table does not track rows.

    `path`: the path of the file in the storage.
    `live`: the rows, by position.
    """
    names = current.row_tracking_columns
    if names is None:
        return {}
    with open_parquet(current.storage.open(path)) as parquet:
        stored_names = [name for name in names if name in parquet.schema_arrow.names]
        stored = parquet.read(columns=stored_names) if stored_names else None
    base, version = file.base_row_id, file.default_row_commit_version
    defaults = (
        pa.nulls(len(live), pa.int64()) if base is None else pa.array(np.arange(len(live), dtype=np.int64) + base),
        pa.repeat(pa.scalar(version, pa.int64()), len(live)),
    )
    mask, columns = pa.array(live), {}
    for name, default in zip(names, defaults, strict=True):
        column = default if stored is None or name not in stored.column_names else pc.coalesce(stored[name], default)
        columns[name] = pa.chunked_array([column] if isinstance(column, pa.Array) else column.chunks).filter(mask)
    return columns


def tracked_rows(
    current: Snapshot,
    file: Add,
    live: Mask | None = None,
    *,
    shredded: bool = False,
) -> pa.Table:
    """Return rows of a file with all columns, and with their ids and commit versions if the table tracks rows.

    `live`: the rows to read, by position (default: the rows that are not deleted).
    `shredded`: return Variants as the file stores them.
    """
    rows = read_file(current, current.schema, file, row_mask=live, shredded=shredded)
    if current.row_tracking_columns is None:
        return rows
    path = relative_path(current.storage, file.path)
    if live is None:
        with open_parquet(current.storage.open(path)) as parquet:
            count = parquet.metadata.num_rows
        marks = live_rows(current, file.deletion_vector, count)
        live = np.ones(count, dtype=bool) if marks is None else marks
    for name, column in row_ids(current, file, path, live).items():
        rows = rows.append_column(name, column)
    return rows


def unshredded_rows(current: Snapshot, rows: pa.Table) -> pa.Table:
    """Return rows that `tracked_rows` read shredded with unshredded Variants."""
    table = unshredded_table(rows, current.schema)
    for name in rows.column_names:
        if name not in table.column_names:
            table = table.append_column(name, rows[name])
    return table
