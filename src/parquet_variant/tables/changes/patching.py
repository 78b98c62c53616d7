"""Changing rows of a file: by a deletion vector, by rewriting it, or by copying columns or pages that do not change.

Owns what replaces a file, and the metrics of the new file. Leaves the bytes to `files.parquet.writing.patch`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.files.parquet.format.facts import PAGE_ERRORS
from parquet_variant.files.parquet.format.footer import SchemaNode
from parquet_variant.files.parquet.writing.conform import conform_table
from parquet_variant.files.parquet.writing.patch import FilePatch, plan_patch, plan_path_patch, plan_shrink
from parquet_variant.files.parquet.writing.writer import FileInfo
from parquet_variant.kernels.arrow_buffers import Mask
from parquet_variant.tables.changes.change_plan import ChangePlan, FileChange
from parquet_variant.tables.columns import stored_schema, to_stored
from parquet_variant.tables.expressions import Assignment
from parquet_variant.tables.file_metrics import FileMetrics, is_footer_counted, leaf_columns
from parquet_variant.tables.schema import VARIANT, StructType, arrow_schema
from parquet_variant.tables.storage import LocalStorage
from parquet_variant.tables.write_plan import File, Rules, TableWritePlan
from parquet_variant.types.path import VariantPath


@dataclass(frozen=True)
class RowChanges:
    """The rows of one file that a change deletes or updates; all masks are by position."""

    live: Mask  # Rows that were not deleted before.
    deleted: Mask
    updated: Mask
    new_rows: Callable[[pa.Table], pa.Table]  # Return the new rows for the rows to update, in the same order.
    assignments: Sequence[Assignment]
    alias: str  # Of the table in assignments.
    # Return a column of new values for each assignment to a path; None if assignments differ by row.
    new_values: Callable[[], list[VariantArray]] | None

    @property
    def in_use(self) -> set[str]:
        """The columns that are set or read."""
        values = [assignment.value for assignment in self.assignments if assignment.value is not None]
        names = {column.stored_name for value in values for column in value.columns.get(self.alias, {}).values()}
        return names | {name.split(".")[0] for name in names} | {item.column for item in self.assignments}

    @property
    def paths(self) -> list[tuple[str, VariantPath]] | None:
        """The columns and paths that are set; None if a column is set, or a path with array indexes."""
        known = [(item.column, item.path) for item in self.assignments if item.path is not None]
        keys_only = all(isinstance(segment, str) for _, path in known for segment in path.segments)
        return known if keys_only and len(known) == len(self.assignments) else None


def change_file(plan: ChangePlan[File], file: File, rows: RowChanges) -> FileChange[File]:
    """Delete and update rows of a file."""
    deleted, updated = rows.deleted, rows.updated
    if not (deleted.any() or updated.any()):
        return FileChange(file)
    is_kept = rows.live & ~deleted & ~updated
    # A file that only gets a deletion vector is read only for the rows that change.
    needed = updated | (deleted if plan.records_changes else False) | (is_kept if not plan.uses_vectors else False)
    # Variants of copied rows stay shredded.
    table = plan.read_kept_rows(file, needed) if needed.any() else None
    after = before = None
    if updated.any() and table is not None:
        before = table.filter(pa.array(updated[needed]))
        after = rows.new_rows(plan.unshredded(before))
        # Updated rows keep their ids; the hidden column after the ids has the version of the last update.
        for name in plan.write.hidden_columns[1:]:
            if (index := after.schema.get_field_index(name)) >= 0:
                after = after.set_column(index, after.field(index), pa.nulls(len(after), pa.int64()))
    write = plan.write_like(table) if table is not None else plan.write
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
    counts = int(deleted.sum()), int(updated.sum()), 0 if plan.uses_vectors else int(is_kept.sum())
    return FileChange(file, True, tuple(added), change_data, *counts)


def rewrite_file(plan: ChangePlan[File], file: File, rows: RowChanges) -> FileChange[File]:
    """Delete and update rows of a file as `change_file` does, copying unchanged columns or pages where possible.

    `rows.new_rows` gets rows with the columns in use, or all columns.
    """
    assigned = {assignment.column for assignment in rows.assignments}
    if rows.updated.any():
        assigned |= {name for name, _ in plan.write.rules.generated}
    moves_rows = any(name.lower() in plan.fixed_columns for name in assigned)
    # Options may ask for an order of rows, or for another writer.
    is_whole = plan.erases or plan.uses_vectors or moves_rows or plan.write.options or plan.write.hidden_columns
    if is_whole or not rows.live.all():
        return change_file(plan, file, rows)
    patched = None
    if not rows.updated.any():
        patched = without_rows(plan, file, rows.deleted)
    elif not rows.deleted.any():
        paths = rows.paths
        if paths is not None and rows.new_values and plan.write.shred and not _needs_all_columns(plan):
            patched = _with_new_paths(plan, file, rows.updated, paths, rows.new_values)
        patched = patched or _with_new_columns(plan, file, rows, assigned, rows.in_use | assigned)
    return change_file(plan, file, rows) if patched is None else patched


def _needs_all_columns(plan: ChangePlan[Any]) -> bool:
    return bool(plan.records_changes or plan.write.rules.checks or plan.write.rules.generated)


def _with_new_paths(
    plan: ChangePlan[File],
    file: File,
    updated: Mask,
    paths: Sequence[tuple[str, VariantPath]],
    values: Callable[[], Sequence[VariantArray]],
) -> FileChange[File] | None:
    fields = {column: f for column, _ in paths if (f := plan.schema.get(column)) is not None}
    places = [(fields[column].physical_name, *map(str, path.segments)) for column, path in paths]
    with plan.storage.open(plan.path(file)) as source:
        file_patch = plan_path_patch(source, places, values, updated)
        if file_patch is None:
            return None
        path, info = _write_patch(plan, file, file_patch, plan.write)
    columns = StructType(tuple(fields.values()))
    collector = plan.write.metrics_collector(stored_schema(columns))
    none_deleted = arrow_schema(columns, physical=True).empty_table()
    metrics = collector.metrics_without_rows(plan.known_metrics(file), none_deleted, info)
    return _as_updated(file, plan.with_replaced_columns(file, path, info, metrics, columns), updated)


def _with_new_columns(
    plan: ChangePlan[File], file: File, rows: RowChanges, assigned: Collection[str], names: Collection[str]
) -> FileChange[File] | None:
    updated = rows.updated
    needed = StructType(tuple(f for f in plan.schema.fields if _needs_all_columns(plan) or f.name in names))
    table = plan.read_rows(file, None, needed)
    before = table.filter(pa.array(updated))
    after = rows.new_rows(plan.unshredded(before, needed))
    write = plan.like_file(table)
    columns = StructType(tuple(f for f in needed.fields if f.name in assigned))
    physical = [f.physical_name for f in columns.fields]
    narrow = replace(write, schema=needed, rules=replace(write.rules, defaults=()))
    new, _ = conform_table(narrow.stored(after).select(physical), (), value_first=True)
    old, places = conform_table(to_stored(table, columns), (), value_first=True)
    with plan.storage.open(plan.path(file)) as source:
        file_patch = plan_patch(source, old, new, updated, places)
        if file_patch is None or (file_patch.file.is_shredded and not write.shred):
            return None
        collector = write.metrics_collector(stored_schema(columns))
        collector.add_rows(file_patch.rows)
        path, info = _write_patch(plan, file, file_patch, write)
    added = plan.with_replaced_columns(file, path, info, collector.metrics(info), columns)
    change_data: tuple[Any, ...] = ()
    if plan.records_changes:
        change_data = plan.write_changes(write, {"update_preimage": before, "update_postimage": after})
    return _as_updated(file, added, updated, change_data)


def _as_updated(file: File, added: File, updated: Mask, change_data: tuple[Any, ...] = ()) -> FileChange[File]:
    count = int(updated.sum())
    return FileChange(file, True, (added,), change_data, rows_updated=count, rows_copied=len(updated) - count)


def _write_patch(
    plan: ChangePlan[File], file: File, file_patch: FilePatch, write: TableWritePlan[File]
) -> tuple[str, FileInfo]:
    path = write.new_path(plan.partition(file))
    with plan.storage.create(path) as target:
        return path, file_patch.write(target, write.codec)


def without_rows(plan: ChangePlan[File], file: File, deleted: Mask) -> FileChange[File] | None:
    """Rewrite a file without some rows, copying the pages that keep all rows; None if it must be rewritten as a whole.

    The table must not use deletion vectors or row ids, and no row of the file may be deleted yet.
    """
    write = plan.write
    # In object stores, each page would be a request.
    if not deleted.any() or deleted.all() or not isinstance(plan.storage, LocalStorage):
        return None
    before, partition = plan.known_metrics(file), plan.partition(file)
    with plan.storage.open(plan.path(file)) as source:
        shrink = plan_shrink(source, ~deleted)
        if shrink is None or (shrink.file.is_shredded and not write.shred):
            return None
        if _has_bounds_of_values(before, write.data_schema, shrink.file.root):
            return None
        path = write.new_path(partition)
        try:
            with plan.storage.create(path) as target:
                info = shrink.write(target)
        except PAGE_ERRORS:  # Rewriting the file as a whole raises the error with its cause.
            plan.storage.delete(path)
            return None
    # The footer does not count the nulls of Variants, lists and maps.
    kinds = [(f, leaf_columns(StructType((f,)))) for f in plan.schema.fields]
    uncounted = (f for f, leaves in kinds if not all(is_footer_counted(kind) for _, kind in leaves))
    columns = plan.schema if plan.records_changes else StructType(tuple(uncounted))
    gone = plan.read_rows(file, deleted, columns)
    collector = write.metrics_collector(write.data_schema)
    metrics = collector.metrics_without_rows(before, to_stored(gone, columns), info)
    change_data = plan.write_changes(write, {"delete": gone}) if plan.records_changes else ()
    count = int(deleted.sum())
    added = write.describe(path, partition, info, metrics)
    return FileChange(file, True, (added,), change_data, rows_deleted=count, rows_copied=len(deleted) - count)


def _has_bounds_of_values(metrics: FileMetrics, schema: StructType, root: SchemaNode) -> bool:
    """Return whether an unshredded Variant has bounds: these came from its values, since the footer has none."""
    for place, kind in leaf_columns(schema):
        column = metrics.columns.get(place)
        if kind == VARIANT and column is not None and column.paths:
            node: SchemaNode | None = root
            for name in place:
                node = None if node is None else node.child(name)
            if node is None or node.child("typed_value") is None:
                return True
    return False
