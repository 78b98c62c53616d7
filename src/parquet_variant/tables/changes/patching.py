"""Changing rows of a file: by a deletion vector, by rewriting it, or by copying columns or pages that do not change.

Owns what replaces a file, and the metrics of the new file. Leaves the bytes to `files.parquet.writing.patch`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any, Generic

import pyarrow as pa

from parquet_variant.arrays.parts import empty_table
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.files.parquet.format.facts import PAGE_ERRORS
from parquet_variant.files.parquet.format.footer import SchemaNode
from parquet_variant.files.parquet.writing.conform import conform_table
from parquet_variant.files.parquet.writing.patch import FilePatch, plan_patch, plan_path_patch, plan_shrink
from parquet_variant.files.parquet.writing.writer import FileInfo
from parquet_variant.io.filesystems import read_errors
from parquet_variant.kernels.arrow_buffers import Mask, from_numpy
from parquet_variant.ops.value_edits import variant_normalize
from parquet_variant.support.records import Record
from parquet_variant.tables.changes.change_plan import ChangePlan, FileChange
from parquet_variant.tables.columns import align_table, by_logical_name, stored_schema, to_stored, with_other_columns
from parquet_variant.tables.expressions import Assignment
from parquet_variant.tables.file_metrics import FileMetrics, is_footer_counted, leaf_columns
from parquet_variant.tables.schema import VARIANT, StructType, arrow_schema
from parquet_variant.tables.storage import LocalStorage
from parquet_variant.tables.write_plan import File, Rules


class FileRows(Generic[File], Record):
    """The rows of one file that a change deletes or updates; all masks are by position."""

    plan: ChangePlan[File]
    file: File
    live: Mask  # Rows that were not deleted before.
    deleted: Mask
    updated: Mask
    assignments: Sequence[Assignment]
    alias: str  # Of the table in assignments.
    new_rows: Callable[[pa.Table], pa.Table]  # Return the new rows for the rows to update, in the same order.
    # Return a column of new values for each assignment to a path; None if assignments differ by row.
    new_values: Callable[[], list[VariantArray]] | None

    def replace_file(self, *, must_rewrite: bool = False) -> FileChange[File]:
        """Replace the file, copying unchanged columns or pages where possible; without changes if it must be."""
        write, deletes, updates = self.plan.write, bool(self.deleted.any()), bool(self.updated.any())
        if not (deletes or updates or must_rewrite):
            return FileChange(self.file)
        assigned = {assignment.column for assignment in self.assignments}
        if updates:
            assigned |= {name for name, _ in write.rules.generated}
        moves_rows = any(name.lower() in self.plan.fixed_columns for name in assigned)
        # Options may ask for an order of rows, or for another writer.
        is_whole = self.plan.erases or self.plan.uses_vectors or moves_rows or write.options or write.hidden_columns
        patched = None
        if not is_whole and self.live.all() and not (updates and deletes):
            with read_errors(self.plan.path(self.file)):
                if updates:
                    patched = self._with_new_paths() or self._with_new_columns(assigned)
                else:
                    patched = self._without_rows()
        return self._rewrite_file() if patched is None else patched

    def _rewrite_file(self) -> FileChange[File]:
        """Write the kept and the updated rows to a new file, or mark rows as deleted."""
        plan, deleted, updated = self.plan, self.deleted, self.updated
        is_kept = self.live & ~deleted & ~updated
        # A file that only gets a deletion vector is read only for the rows that change.
        needed = updated | (deleted if plan.records_changes else False) | (is_kept if not plan.uses_vectors else False)
        # Variants of copied rows stay shredded.
        table = plan.read_rows(self.file, needed) if needed.any() else None
        write = plan.write
        if table is not None and plan.erases:  # rows have their own keys only
            rows = align_table(
                table, plan.schema, by_logical_name, lambda _, array: variant_normalize(array.to_unshredded())
            )
            table, write = with_other_columns(rows, table), replace(write, shredding={})
        elif table is not None:
            write = plan.like_file(table)
        after = before = None
        if updated.any() and table is not None:
            before = table.filter(from_numpy(updated[needed]))
            after = self.new_rows(plan.unshredded(before))
            # Updated rows keep their ids; the hidden column after the ids has the version of the last update.
            for name in plan.write.hidden_columns[1:]:
                if (index := after.schema.get_field_index(name)) >= 0:
                    after = after.set_column(index, after.field(index), pa.nulls(len(after), pa.int64()))
        else:
            write = replace(write, rules=Rules())  # Copied rows were checked when they were written.
        added: list[File] = []
        parts = [] if after is None else [after]
        if is_kept.any() and plan.uses_vectors:
            added.append(plan.with_deleted(self.file, ~is_kept))
        elif is_kept.any() and table is not None:
            # Filtering copies the rows even if all of them are kept.
            parts.insert(0, table if is_kept[needed].all() else table.filter(from_numpy(is_kept[needed])))
        if parts:
            added += write.write_files(iter(parts))
        change_data: tuple[Any, ...] = ()
        if plan.records_changes and table is not None:
            gone = table.filter(from_numpy(deleted[needed]))
            changes = {"delete": gone, "update_preimage": before, "update_postimage": after}
            change_data = plan.write_changes(write, changes)
        counts = int(deleted.sum()), int(updated.sum()), 0 if plan.uses_vectors else int(is_kept.sum())
        return FileChange(self.file, True, tuple(added), change_data, *counts)

    @property
    def _needs_all_columns(self) -> bool:
        rules = self.plan.write.rules
        return bool(self.plan.records_changes or rules.checks or rules.generated)

    def _with_new_paths(self) -> FileChange[File] | None:
        """Copy the file with new values at paths of Variants, which are made of keys; None if that is not possible."""
        plan = self.plan
        paths = [(item.column, item.path.segments) for item in self.assignments if item.path is not None]
        is_known = len(paths) == len(self.assignments) and all(
            isinstance(key, str) for _, path in paths for key in path
        )
        if not is_known or not self.new_values or not plan.write.shred or self._needs_all_columns:
            return None
        fields = {column: f for column, _ in paths if (f := plan.schema.get(column)) is not None}
        places = [(fields[column].physical_name, *map(str, path)) for column, path in paths]
        with plan.storage.open(plan.path(self.file)) as source:
            patch = plan_path_patch(source, places, self.new_values, self.updated)
            if patch is None:
                return None
            path, info = self._write(patch)
        columns = StructType(tuple(fields.values()))
        collector = plan.write.metrics_collector(stored_schema(columns))
        none_deleted = empty_table(arrow_schema(columns, physical=True))
        metrics = collector.metrics_without_rows(plan.known_metrics(self.file), none_deleted, info)
        return self._as_updated(plan.with_replaced_columns(self.file, path, info, metrics, columns))

    def _with_new_columns(self, assigned: Collection[str]) -> FileChange[File] | None:
        """Copy the file with new columns; None if that is not possible."""
        plan = self.plan
        values = [assignment.value for assignment in self.assignments if assignment.value is not None]
        read = {column.stored_name for value in values for column in value.columns.get(self.alias, {}).values()}
        names = read | {name.split(".")[0] for name in read} | set(assigned)
        needed = StructType(tuple(f for f in plan.schema.fields if self._needs_all_columns or f.name in names))
        table = plan.read_rows(self.file, None, needed)
        before = table.filter(from_numpy(self.updated))
        after = self.new_rows(plan.unshredded(before, needed))
        write = plan.like_file(table)
        columns = StructType(tuple(f for f in needed.fields if f.name in assigned))
        physical = [f.physical_name for f in columns.fields]
        narrow = replace(write, schema=needed, rules=replace(write.rules, defaults=()))
        new, _ = conform_table(narrow.stored(after).select(physical), (), value_first=True)
        old, places = conform_table(to_stored(table, columns), (), value_first=True)
        with plan.storage.open(plan.path(self.file)) as source:
            patch = plan_patch(source, old, new, self.updated, places)
            if patch is None or (patch.file.is_shredded and not write.shred):
                return None
            collector = write.metrics_collector(stored_schema(columns))
            collector.add_rows(patch.rows)
            path, info = self._write(patch)
        added = plan.with_replaced_columns(self.file, path, info, collector.metrics(info), columns)
        changes = {"update_preimage": before, "update_postimage": after}
        return self._as_updated(added, plan.write_changes(write, changes) if plan.records_changes else ())

    def _as_updated(self, added: File, change_data: tuple[Any, ...] = ()) -> FileChange[File]:
        count = int(self.updated.sum())
        copied = len(self.updated) - count
        return FileChange(self.file, True, (added,), change_data, rows_updated=count, rows_copied=copied)

    def _write(self, patch: FilePatch) -> tuple[str, FileInfo]:
        path = self.plan.write.new_path(self.plan.partition(self.file))
        with self.plan.storage.create(path) as target:
            return path, patch.write(target, self.plan.write.codec)

    def _without_rows(self) -> FileChange[File] | None:
        """Copy the pages of the file that keep all rows; None if it must be rewritten as a whole.

        The table must not use deletion vectors or row ids, and no row of the file may be deleted yet.
        """
        plan, write, deleted = self.plan, self.plan.write, self.deleted
        # In object stores, each page would be a request.
        if deleted.all() or not isinstance(plan.storage, LocalStorage):
            return None
        before, partition = plan.known_metrics(self.file), plan.partition(self.file)
        with plan.storage.open(plan.path(self.file)) as source:
            shrink = plan_shrink(source, ~deleted)
            if shrink is None or (shrink.file.is_shredded and not write.shred):
                return None
            if _has_bounds_of_values(before, write.data_schema, shrink.file.schema):
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
        gone = plan.read_rows(self.file, deleted, columns)
        collector = write.metrics_collector(write.data_schema)
        metrics = collector.metrics_without_rows(before, to_stored(gone, columns), info)
        change_data = plan.write_changes(write, {"delete": gone}) if plan.records_changes else ()
        count = int(deleted.sum())
        added = write.describe(path, partition, info, metrics)
        return FileChange(self.file, True, (added,), change_data, rows_deleted=count, rows_copied=len(deleted) - count)


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
