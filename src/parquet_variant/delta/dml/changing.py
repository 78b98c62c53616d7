"""One file of a table and the rows of it that go or change: marked by a deletion vector, or written anew.

Owns what becomes of a file, its change data, and the stable row ids of what is copied. Leaves which rows to the
operations and the commit to `committing`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.delta.data.deletion_vector import write_vector
from parquet_variant.delta.log.snapshot import Snapshot
from parquet_variant.delta.protocol.actions import Add, Cdc
from parquet_variant.delta.protocol.features import enabled, has_feature
from parquet_variant.delta.reading.read import shredded_in
from parquet_variant.delta.reading.row_ids import tracked_rows, unshredded_rows
from parquet_variant.delta.statistics.file_stats import dump_stats, read_stats
from parquet_variant.delta.writing.data_files import WritePlan, plan_write
from parquet_variant.tables.rules import Rules

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class ChangePlan:
    """What every task of a change needs; can be pickled."""

    current: Snapshot  # The table, without its list of files.
    write: WritePlan  # How new files are written.
    vectors: bool  # Whether deletion vectors mark the rows that go.
    change_data: bool  # Whether the rows that change are written as change data, too.


@dataclass(frozen=True)
class ChangedRows:
    """The rows of one file that go or change."""

    live: Mask  # Which rows count before, by position.
    # Which of them go, and which change.
    deleted: Mask
    updated: Mask
    new_rows: Callable[[pa.Table], pa.Table]  # Gives the changed rows for those that are to change, in their order.


@dataclass(frozen=True)
class FileChange:
    """What became of one file."""

    file: Add  # As it was.
    changed: bool = False
    # What takes its place.
    adds: tuple[Add, ...] = ()
    change_data: tuple[Cdc, ...] = ()
    # Rows.
    deleted: int = 0
    updated: int = 0
    copied: int = 0
    # For a merge: the rows of the source that met a row of the file.
    matched: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))


def plan_change(current: Snapshot, options: Mapping[str, Any]) -> ChangePlan:
    """The plan of a change to a table as it is."""
    configuration = current.metadata.configuration
    vectors = configuration.get("delta.enableDeletionVectors") == "true"
    vectors = vectors and has_feature(current.protocol.writer_features, "deletionVectors")
    return ChangePlan(
        current.without_files(),
        plan_write(current, options=options),
        vectors,
        enabled(current.protocol, current.metadata, "changeDataFeed", "delta.enableChangeDataFeed"),
    )


def change_file(plan: ChangePlan, file: Add, changed: ChangedRows) -> FileChange:
    """Let rows of a file go, and others change."""
    deleted, updated = changed.deleted, changed.updated
    if not (deleted.any() or updated.any()):
        return FileChange(file)
    kept = changed.live & ~deleted & ~updated
    # Variants of rows that are copied stay shredded; of a file that is only marked, few rows are needed.
    read = updated | (deleted if plan.change_data else False) | (kept if not plan.vectors else False)
    rows = tracked_rows(plan.current, file, read, shredded=True) if read.any() else None
    new = before = None
    if updated.any() and rows is not None:
        before = rows.filter(pa.array(updated[read]))
        new = _as_changed(plan.current, changed.new_rows(unshredded_rows(plan.current, before)))
    write = as_shredded(plan, rows) if rows is not None else plan.write
    if new is None:
        write = replace(write, rules=Rules())  # Rows that are copied have met them.
    adds: list[Add] = []
    parts = [] if new is None else [new]
    if kept.any() and plan.vectors:
        adds.append(_marked(plan.current, file, ~kept))
    elif kept.any() and rows is not None:
        # A filter copies, also where every row stays.
        parts.insert(0, rows if kept[read].all() else rows.filter(pa.array(kept[read])))
    if parts:
        adds += write.write_files(iter(parts))
    told: tuple[Cdc, ...] = ()
    if plan.change_data and rows is not None:
        gone = rows.filter(pa.array(deleted[read]))
        told = tuple(write.write_changes({"delete": gone, "update_preimage": before, "update_postimage": new}))
    copied = 0 if plan.vectors else int(kept.sum())
    return FileChange(file, True, tuple(adds), told, int(deleted.sum()), int(updated.sum()), copied)


def _as_changed(current: Snapshot, rows: pa.Table) -> pa.Table:
    """Changed rows keep their ids, but are of the version that changes them."""
    names = current.row_tracking_columns
    if names is None or names[1] not in rows.column_names:
        return rows
    return rows.set_column(rows.column_names.index(names[1]), names[1], pa.nulls(len(rows), pa.int64()))


def as_shredded(plan: ChangePlan, rows: pa.Table) -> WritePlan:
    """The plan that shreds as the file of some rows does: a schema is not to be inferred from those that are left."""
    if not plan.write.shred:
        return plan.write
    return replace(plan.write, shredding=shredded_in(rows, plan.current.schema))


def _marked(current: Snapshot, file: Add, gone: Mask) -> Add:
    """The same file with a deletion vector; its bounds still bound, but may be wider than the rows."""
    vector = write_vector(current.storage, np.flatnonzero(gone).astype(np.uint64))
    stats = read_stats(file.stats) | {"numRecords": len(gone), "tightBounds": False}
    return replace(file, deletion_vector=vector, stats=dump_stats(stats))
