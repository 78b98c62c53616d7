"""Changed rows of a file whose other rows stay where they are: a new file with the old one's columns, but for some.

Owns when that will do, and the new file's statistics. Leaves the file to `parquet.writing.patch`, and all other changes
to `changing`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.delta.data.expressions import Assignment
from parquet_variant.delta.data.paths import relative_path
from parquet_variant.delta.data.stored import stored_schema, to_stored
from parquet_variant.delta.dml.changing import ChangedRows, ChangePlan, FileChange, as_shredded, change_file
from parquet_variant.delta.protocol.actions import Add
from parquet_variant.delta.protocol.schema import StructType
from parquet_variant.delta.reading.read import read_file, unshredded_table
from parquet_variant.delta.reading.row_ids import row_tracking_columns
from parquet_variant.delta.statistics.file_stats import dump_stats
from parquet_variant.delta.storage import Storage
from parquet_variant.delta.writing.data_files import WritePlan
from parquet_variant.parquet.writing.conform_table import conform_table
from parquet_variant.parquet.writing.patch import plan_patch

__all__ = ["ColumnsInUse", "columns_in_use", "update_file"]

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class ColumnsInUse:
    """What assignments have to do with: the columns that they set, and those that they read besides."""

    set: frozenset[str]
    read: frozenset[str]


def columns_in_use(assignments: Iterable[Assignment], alias: str) -> ColumnsInUse:
    """The columns of the table of that name which assignments set and read."""
    assignments = list(assignments)
    read: set[str] = set()
    for each in assignments:
        needed = {} if each.value is None else each.value.columns.get(alias, {})
        read |= {name for column in needed.values() for name in (column.column, column.column.split(".")[0])}
    return ColumnsInUse(frozenset(each.column for each in assignments), frozenset(read))


def update_file(plan: ChangePlan, file: Mapping[str, Any], changed: ChangedRows, used: ColumnsInUse) -> FileChange:
    """As `change_file`, but columns that do not change are copied as they are, where that can be done.

    Parameters
    ----------
    plan, file, changed
        As for `change_file`; `new_rows` is given rows with the columns in use, or with all.
    used
        The columns that `new_rows` sets and reads.
    """
    stays = changed.live.all() and not changed.deleted.any() and changed.updated.any()
    patched = _patched(plan, file, changed, used) if stays and _may_patch(plan, used) else None
    return change_file(plan, file, changed) if patched is None else patched


def _may_patch(plan: ChangePlan, used: ColumnsInUse) -> bool:
    partitions = {name.lower() for name in plan.current.partition_columns}
    moves = any(name.lower() in partitions for name in used.set)
    # Options may ask for an order of rows, or for another writer.
    return not (plan.vectors or moves or plan.write.options or row_tracking_columns(plan.current))


def _patched(plan: ChangePlan, file: Mapping[str, Any], changed: ChangedRows, used: ColumnsInUse) -> FileChange | None:
    current, rules, updated = plan.current, plan.write.rules, changed.updated
    all_columns = plan.change_data or rules.checks or rules.generated
    names = used.set | used.read
    needed = StructType(tuple(f for f in current.schema.fields if all_columns or f.name in names))
    rows = read_file(current, needed, file, shredded=True)
    before = rows.filter(pa.array(updated))
    after = changed.new_rows(unshredded_table(before, needed))
    write = as_shredded(plan, rows)
    columns = StructType(tuple(f for f in needed.fields if f.name in used.set))
    add = _patched_file(_Patch(file, needed, columns, rows, after, updated), write, current.storage)
    if add is None:
        return None
    told = write.write_changes({"update_preimage": before, "update_postimage": after}) if plan.change_data else ()
    count = int(updated.sum())
    return FileChange(
        file["path"], file["deletionVector"], True, (add,), tuple(told), updated=count, copied=len(updated) - count
    )


@dataclass(frozen=True, slots=True)
class _Patch:
    """A file with its rows before and the changed ones after, in the columns needed; some of these columns are new."""

    file: Mapping[str, Any]
    needed: StructType
    columns: StructType
    before: pa.Table
    after: pa.Table
    updated: Mask


def _patched_file(patch: _Patch, write: WritePlan, storage: Storage) -> Add | None:
    columns = patch.columns
    physical = [f.physical_name for f in columns.fields]
    there = tuple(f.name for f in patch.needed.fields if f.name in write.partition_columns)
    rules = replace(write.rules, defaults=())
    narrow = replace(write, schema_string=patch.needed.to_json(), partition_columns=there, rules=rules)
    new, _ = conform_table(narrow.stored(patch.after).select(physical), (), value_first=True)
    whole = to_stored(patch.before.select([f.name for f in columns.fields]), columns)
    old, places = conform_table(whole, (), value_first=True)
    with storage.open(relative_path(storage, patch.file["path"])) as source:
        file_patch = plan_patch(source, old, new, patch.updated, places)
        if file_patch is None or (file_patch.is_shredded and not write.shred):
            return None
        values = dict(patch.file["partitionValues"] or ())
        path = write.new_path(values)
        collector = write.stats_collector(stored_schema(columns))
        collector.see(file_patch.rows)
        with storage.create(path) as target:
            info = file_patch.write(target, write.codec)
    return write.add(path, values, info, _merged_stats(patch.file["stats"], collector.stats(info), physical))


def _merged_stats(before: str | None, changed: str, columns: list[str]) -> str:
    """The statistics of a file as it was, with those of some columns as they are now."""
    old = json.loads(before, parse_float=Decimal) if before else {}
    new = json.loads(changed, parse_float=Decimal)
    old = old if isinstance(old, dict) else {}
    new["tightBounds"] = old.get("tightBounds", True)
    for kind in ("minValues", "maxValues", "nullCount"):
        kept = {name: each for name, each in (old.get(kind) or {}).items() if name not in columns}
        new[kind] = kept | new[kind]
    return dump_stats(new)
