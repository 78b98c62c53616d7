"""Stable row ids and commit versions of a file's rows (PROTOCOL.md, "Row Tracking").

Owns where they come from: the columns that files keep them in, else the file's base id and the row's position. Leaves
assigning new ones to `log.commit`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from parquet_variant import arrow_compute as pc
from parquet_variant.delta.data.paths import relative_path
from parquet_variant.delta.log.snapshot import Snapshot
from parquet_variant.delta.protocol.actions import Add
from parquet_variant.delta.reading.read import Mask, live_rows, read_file, unshredded_table
from parquet_variant.schema.parquet_reader import open_parquet


def row_ids(current: Snapshot, file: Add, path: str, live: Mask) -> dict[str, pa.ChunkedArray]:
    """The columns of ids and commit versions of a file's live rows; none if the table does not track rows.

    `current`: the table.
    `path`: the file in the storage.
    `live`: which rows count, by position.
    """
    names = current.row_tracking_columns
    if names is None:
        return {}
    with open_parquet(current.storage.open(path)) as parquet:
        there = [name for name in names if name in parquet.schema_arrow.names]
        kept = parquet.read(columns=there) if there else None
    base, version = file.base_row_id, file.default_row_commit_version
    fresh = (
        pa.nulls(len(live), pa.int64()) if base is None else pa.array(np.arange(len(live), dtype=np.int64) + base),
        pa.repeat(pa.scalar(version, pa.int64()), len(live)),
    )
    mask, columns = pa.array(live), {}
    for name, default in zip(names, fresh, strict=True):
        column = default if kept is None or name not in kept.column_names else pc.coalesce(kept[name], default)
        columns[name] = pa.chunked_array([column] if isinstance(column, pa.Array) else column.chunks).filter(mask)
    return columns


def tracked_rows(
    current: Snapshot,
    file: Add,
    live: Mask | None = None,
    *,
    shredded: bool = False,
) -> pa.Table:
    """Rows of a file whole, with the columns that keep their ids where the table tracks rows.

    `current`: the table.
    `live`: which rows are wanted, by position; by default those that no deletion vector deletes.
    `shredded`: leave variants as the file has them.
    """
    rows = read_file(current, current.schema, file, chosen=live, shredded=shredded)
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
    """Rows that `tracked_rows` left shredded, unshredded."""
    table = unshredded_table(rows, current.schema)
    for name in rows.column_names:
        if name not in table.column_names:
            table = table.append_column(name, rows[name])
    return table
