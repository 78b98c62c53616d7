"""Rows of a file that go, where the others need not be written again: a new file with the old one's pages.

Owns when that will do, and the new file's statistics. Leaves the file to `parquet.operations.shrink`, and all other
deletes to `changing`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from parquet_variant.delta.data.paths import relative_path
from parquet_variant.delta.data.stored import to_stored
from parquet_variant.delta.dml.changing import ChangePlan, FileChange
from parquet_variant.delta.protocol.schema import VARIANT, ArrayType, Field, MapType, StructType
from parquet_variant.delta.reading.read import read_file
from parquet_variant.delta.statistics.file_stats import leaf_columns, read_stats, value_at
from parquet_variant.delta.storage import LocalStorage
from parquet_variant.parquet.format.footer import SchemaNode
from parquet_variant.parquet.operations.shrink import plan_shrink
from parquet_variant.parquet.reading.chunk_pages import PAGE_ERRORS


def without_rows(plan: ChangePlan, file: Mapping[str, Any], deleted: npt.NDArray[np.bool_]) -> FileChange | None:
    """What becomes of a file of which some rows go, by position; None if it is to be written as a whole.

    The table has no deletion vectors and tracks no rows, and all rows of the file count.
    """
    current, write = plan.current, plan.write
    # Elsewhere each page would be a request.
    if not deleted.any() or deleted.all() or not isinstance(current.storage, LocalStorage):
        return None
    before, values = read_stats(file["stats"]), dict(file["partitionValues"] or ())
    with current.storage.open(relative_path(current.storage, file["path"])) as source:
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
    stats = write.stats_collector(write.data_schema).stats_without(before, counted, info)
    told = write.write_changes({"delete": gone}) if plan.change_data else []
    count = int(deleted.sum())
    add = write.add(path, values, info, stats)
    return FileChange(
        file["path"], file["deletionVector"], True, (add,), tuple(told), deleted=count, copied=len(deleted) - count
    )


def _is_counted(field: Field) -> bool:
    """Whether the footer does not tell all counts of nulls of a column."""
    leaves = leaf_columns(StructType((field,)))
    return any(isinstance(kind, (ArrayType, MapType)) or kind == VARIANT for _, kind in leaves)


def _has_seen_bounds(stats: Mapping[str, Any], schema: StructType, root: SchemaNode) -> bool:
    """Whether a Variant has bounds that came from values, which the footer does not tell."""
    for place, kind in leaf_columns(schema):
        if kind == VARIANT and value_at(stats.get("minValues"), place) is not None:
            node: SchemaNode | None = root
            for name in place:
                node = None if node is None else node.child(name)
            if node is None or node.child("typed_value") is None:
                return True
    return False
