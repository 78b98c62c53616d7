"""Deleting and updating rows of one data file: by a deletion vector, or by rewriting the file.

Owns which rows are read and what replaces the file. Leaves the choice of rows to the operations, files in which most
columns or pages are kept to `patching`, and the commit to `retries`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from parquet_variant.kernels.arrow_buffers import Mask
from parquet_variant.tables.changes.change_plan import ChangePlan, FileChange
from parquet_variant.tables.rules import Rules
from parquet_variant.tables.write_plan import File


@dataclass(frozen=True)
class RowChanges:
    """The rows of one file that a change deletes or updates; all masks are by position."""

    live: Mask  # Rows that were not deleted before.
    deleted: Mask
    updated: Mask
    new_rows: Callable[[pa.Table], pa.Table]  # Return the new rows for the rows to update, in the same order.


def change_file(plan: ChangePlan[File], file: File, rows: RowChanges) -> FileChange[File]:
    """Delete and update rows of a file."""
    deleted, updated = rows.deleted, rows.updated
    if not (deleted.any() or updated.any()):
        return FileChange(file)
    is_kept = rows.live & ~deleted & ~updated
    # A file that only gets a deletion vector is read only for the rows that change.
    needed = updated | (deleted if plan.records_changes else False) | (is_kept if not plan.uses_vectors else False)
    # Variants of copied rows stay shredded.
    table = plan.read_rows(file, needed) if needed.any() else None
    after = before = None
    if updated.any() and table is not None:
        before = table.filter(pa.array(updated[needed]))
        after = plan.as_updated(rows.new_rows(plan.unshredded(before)))
    write = plan.like_file(table) if table is not None else plan.write
    if after is None:
        write = replace(write, rules=Rules())  # Copied rows were checked when they were written.
    added: list[File] = []
    parts = [] if after is None else [after]
    if is_kept.any() and plan.uses_vectors:
        added.append(plan.with_deleted(file, ~is_kept))
    elif is_kept.any() and table is not None:
        # Filtering copies the rows even if all of them are kept.
        parts.insert(0, table if is_kept[needed].all() else table.filter(pa.array(is_kept[needed])))
    if parts:
        added += write.write_files(iter(parts))
    change_data: tuple[Any, ...] = ()
    if plan.records_changes and table is not None:
        gone = table.filter(pa.array(deleted[needed]))
        changes = {"delete": gone, "update_preimage": before, "update_postimage": after}
        change_data = plan.write_changes(write, changes)
    copied = 0 if plan.uses_vectors else int(is_kept.sum())
    return FileChange(file, True, tuple(added), change_data, int(deleted.sum()), int(updated.sum()), copied)
