"""Rows of a file that change or go while the others stay where they are: a new file with old columns, or old pages.

Owns when that will do, and the new file's statistics. Leaves the file to `parquet.writing.patch` and
`parquet.operations.shrink`, and all other changes to `changing`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.array.variant_array import VariantArray
from parquet_variant.delta.data.paths import relative_path
from parquet_variant.delta.dml.assigning import needed_columns, path_values
from parquet_variant.delta.dml.changing import ChangedRows, ChangePlan, FileChange, as_shredded, change_file
from parquet_variant.delta.protocol.actions import Add, Cdc
from parquet_variant.delta.reading.read import read_file, unshredded_table
from parquet_variant.delta.statistics.file_stats import (
    Stats,
    counted_metrics,
    dump_stats,
    read_stats,
    stats_tree,
    value_at,
    with_columns,
)
from parquet_variant.delta.statistics.variant_stats import decode_bounds, encode_bounds
from parquet_variant.delta.writing.data_files import WritePlan
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import TableError
from parquet_variant.parquet.format.footer import SchemaNode
from parquet_variant.parquet.operations.shrink import plan_shrink
from parquet_variant.parquet.reading.chunk_pages import PAGE_ERRORS
from parquet_variant.parquet.writing.conform import conform_table
from parquet_variant.parquet.writing.patch import FilePatch, plan_patch, plan_path_patch
from parquet_variant.parquet.writing.writer import FileInfo
from parquet_variant.path import VariantPath
from parquet_variant.query.sql_expression import NeededColumn
from parquet_variant.shredding.statistics import Bounds
from parquet_variant.tables.columns import stored_schema, to_stored
from parquet_variant.tables.expressions import Assignment
from parquet_variant.tables.file_metrics import leaf_columns, path_bounds
from parquet_variant.tables.schema import VARIANT, ArrayType, Field, MapType, StructType
from parquet_variant.tables.storage import LocalStorage, Storage

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class ColumnsInUse:
    """What assignments have to do with: the columns that they set, and those that they read besides."""

    set: frozenset[str]
    read: frozenset[str]


NO_COLUMNS = ColumnsInUse(frozenset(), frozenset())


@dataclass(frozen=True)
class PathValues:
    """What is set in all rows that change, if that is nothing but paths inside of Variants."""

    paths: tuple[tuple[str, VariantPath], ...]  # Columns, and paths in them.
    values: Callable[[], Sequence[VariantArray]]  # Gives a column of values for each.


def paths_set(
    assignments: Sequence[Assignment],
    pulled: Callable[[Mapping[str, Mapping[str, NeededColumn]]], Mapping[str, pa.Table]],
    rows: int,
    zone: str,
) -> PathValues | None:
    """What assignments set, if all of them set paths of names.

    `pulled` gives the rows that change, in the columns that the expressions need of each table, with `ROW`.
    """
    paths = tuple((each.column, each.path) for each in assignments if each.path is not None)
    if len(paths) < len(assignments) or not all(isinstance(s, str) for _, path in paths for s in path.segments):
        return None
    return PathValues(paths, lambda: path_values(assignments, pulled(needed_columns(assignments)), rows, zone))


def columns_in_use(assignments: Iterable[Assignment], alias: str) -> ColumnsInUse:
    """The columns of the table of that name which assignments set and read."""
    assignments = list(assignments)
    read: set[str] = set()
    for each in assignments:
        needed = {} if each.value is None else each.value.columns.get(alias, {})
        read |= {name for column in needed.values() for name in (column.column, column.column.split(".")[0])}
    return ColumnsInUse(frozenset(each.column for each in assignments), frozenset(read))


def rewrite_file(
    plan: ChangePlan, file: Add, changed: ChangedRows, used: ColumnsInUse, paths: PathValues | None = None
) -> FileChange:
    """As `change_file`, but what does not change is copied as it is, where that can be done.

    `new_rows` is given rows with the columns in use, or with all; `paths` is what it does, if it sets paths only.
    """
    patched = None
    if changed.updated.any():
        used = replace(used, set=used.set | {name for name, _ in plan.write.rules.generated})
    if not changed.live.all() or not _may_patch(plan, used):
        return change_file(plan, file, changed)
    if not changed.updated.any():
        patched = without_rows(plan, file, changed.deleted)
    elif not changed.deleted.any():
        if paths is not None and plan.write.shred and not _needs_all_columns(plan):
            patched = _with_paths(plan, file, changed.updated, paths)
        patched = patched or _patched(plan, file, changed, used)
    return change_file(plan, file, changed) if patched is None else patched


def _needs_all_columns(plan: ChangePlan) -> bool:
    return bool(plan.change_data or plan.write.rules.checks or plan.write.rules.generated)


def _with_paths(plan: ChangePlan, file: Add, updated: Mask, paths: PathValues) -> FileChange | None:
    current, write = plan.current, plan.write
    columns = [current.schema.get(column) for column, _ in paths.paths]
    places = [
        (f.physical_name, *map(str, path.segments))
        for f, (_, path) in zip(columns, paths.paths, strict=True)
        if f is not None
    ]
    with current.storage.open(relative_path(current.storage, file.path)) as source:
        file_patch = plan_path_patch(source, places, paths.values, updated)
        if file_patch is None:
            return None
        path, info = _written(file_patch, file, write, current.storage)
    stats = _stats_with_paths(file.stats, info, [(name, VariantPath(tuple(names))) for name, *names in places])
    return _as_updated(file, write.add(path, file.partition_values, info, dump_stats(stats)), updated)


def _as_updated(file: Add, add: Add, updated: Mask, told: Iterable[Cdc] = ()) -> FileChange:
    count = int(updated.sum())
    return FileChange(file, True, (add,), tuple(told), updated=count, copied=len(updated) - count)


def _may_patch(plan: ChangePlan, used: ColumnsInUse) -> bool:
    partitions = {name.lower() for name in plan.current.partition_columns}
    moves = any(name.lower() in partitions for name in used.set)
    # Options may ask for an order of rows, or for another writer.
    return not (plan.vectors or moves or plan.write.options or plan.current.row_tracking_columns)


def _patched(plan: ChangePlan, file: Add, changed: ChangedRows, used: ColumnsInUse) -> FileChange | None:
    current, updated = plan.current, changed.updated
    names = used.set | used.read
    needed = StructType(tuple(f for f in current.schema.fields if _needs_all_columns(plan) or f.name in names))
    rows = read_file(current, needed, file, shredded=True)
    before = rows.filter(pa.array(updated))
    after = changed.new_rows(unshredded_table(before, needed))
    write = as_shredded(plan, rows)
    columns = StructType(tuple(f for f in needed.fields if f.name in used.set))
    physical = [f.physical_name for f in columns.fields]
    partitions = tuple(f.name for f in needed.fields if f.name in write.partition_columns)
    rules = replace(write.rules, defaults=())
    narrow = replace(write, schema=needed, partition_columns=partitions, rules=rules)
    new, _ = conform_table(narrow.stored(after).select(physical), (), value_first=True)
    old, places = conform_table(to_stored(rows, columns), (), value_first=True)
    with current.storage.open(relative_path(current.storage, file.path)) as source:
        file_patch = plan_patch(source, old, new, updated, places)
        if file_patch is None or (file_patch.is_shredded and not write.shred):
            return None
        collector = write.metrics_collector(stored_schema(columns))
        collector.add_rows(file_patch.rows)
        path, info = _written(file_patch, file, write, current.storage)
    changed_stats = stats_tree(collector.metrics(info), stored_schema(columns))
    stats = with_columns(read_stats(file.stats), changed_stats, physical)
    told = write.write_changes({"update_preimage": before, "update_postimage": after}) if plan.change_data else ()
    return _as_updated(file, write.add(path, file.partition_values, info, dump_stats(stats)), updated, told)


def _written(file_patch: FilePatch, file: Add, write: WritePlan, storage: Storage) -> tuple[str, FileInfo]:
    path = write.new_path(file.partition_values)
    with storage.create(path) as target:
        return path, file_patch.write(target, write.codec)


def _stats_with_paths(before: str | None, info: FileInfo, paths: Iterable[tuple[str, VariantPath]]) -> Stats:
    """The statistics of a file as it was, with the bounds of some paths as they are now, where they had some."""
    stats = read_stats(before) | {"numRecords": info.rows}
    for column, path in paths:
        known = path_bounds(info, (column,), path) or Bounds(None, None)
        for kind, bound in (("minValues", known.lower), ("maxValues", known.upper)):
            if column in stats.get(kind, {}):
                _put_bound(stats[kind], column, path, bound)
    return stats


def _put_bound(bounds: Stats, column: str, path: VariantPath, bound: Variant | None) -> None:
    """Put the bound of a path into a Variant's bounds, if they had one; what is damaged goes, and tells nothing."""
    text = bounds.pop(column)
    with suppress(TableError):
        by_path = decode_bounds(str(text))
        if by_path.pop(path, None) is not None and bound is not None:
            by_path[path] = bound
        if by_path:
            bounds[column] = encode_bounds(by_path)


def without_rows(plan: ChangePlan, file: Add, deleted: npt.NDArray[np.bool_]) -> FileChange | None:
    """What becomes of a file of which some rows go, by position; None if it is to be written as a whole.

    The table has no deletion vectors and tracks no rows, and all rows of the file count.
    """
    current, write = plan.current, plan.write
    # Elsewhere each page would be a request.
    if not deleted.any() or deleted.all() or not isinstance(current.storage, LocalStorage):
        return None
    before, values = read_stats(file.stats), file.partition_values
    with current.storage.open(relative_path(current.storage, file.path)) as source:
        shrink = plan_shrink(source, ~deleted)
        if shrink is None or (shrink.is_shredded and not write.shred):
            return None
        if _has_seen_bounds(before, write.data_schema, shrink.root):
            return None
        path = write.new_path(values)
        try:
            with current.storage.create(path) as target:
                info = shrink.write(target)
        except PAGE_ERRORS:  # Whoever writes the file as a whole says what is wrong.
            current.storage.delete(path)
            return None
    fields = tuple(f for f in current.schema.fields if plan.change_data or _is_counted(f))
    gone = read_file(current, StructType(fields), file, chosen=deleted, shredded=True)
    counted = to_stored(gone, StructType(tuple(f for f in fields if f.name not in write.partition_columns)))
    collector = write.metrics_collector(write.data_schema)
    metrics = collector.metrics_without_rows(counted_metrics(before, write.data_schema), counted, info)
    told = write.write_changes({"delete": gone}) if plan.change_data else []
    count = int(deleted.sum())
    add = write.describe(path, values, info, metrics)
    return FileChange(file, True, (add,), tuple(told), deleted=count, copied=len(deleted) - count)


def _is_counted(field: Field) -> bool:
    """Whether the footer does not tell all counts of nulls of a column."""
    leaves = leaf_columns(StructType((field,)))
    return any(isinstance(kind, (ArrayType, MapType)) or kind == VARIANT for _, kind in leaves)


def _has_seen_bounds(stats: Stats, schema: StructType, root: SchemaNode) -> bool:
    """Whether a Variant has bounds that came from values, which the footer does not tell."""
    for place, kind in leaf_columns(schema):
        if kind == VARIANT and value_at(stats.get("minValues"), place) is not None:
            node: SchemaNode | None = root
            for name in place:
                node = None if node is None else node.child(name)
            if node is None or node.child("typed_value") is None:
                return True
    return False
