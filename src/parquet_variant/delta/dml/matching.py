"""The files that may hold rows that an expression is about, and the columns of a file that the expression needs.

Owns pruning by expressions and by the keys of a join, before any file is opened, and reading the needed columns of a
file by position. Leaves reasoning over statistics to `reading.pruning`, and columns of files to `reading.scan`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.array.parts import empty_table
from parquet_variant.delta.data.paths import relative_path
from parquet_variant.delta.log.snapshot import Snapshot
from parquet_variant.delta.protocol.actions import Add
from parquet_variant.delta.reading.pruning import column_bounds, prune_files
from parquet_variant.delta.reading.read import live_rows
from parquet_variant.delta.reading.scan import DeltaScan, DeltaScanTask, scan
from parquet_variant.query.predicate import And, Predicate, bind, columns_of
from parquet_variant.query.sql_expression import NeededColumn
from parquet_variant.schema.parquet_reader import open_parquet
from parquet_variant.tables.expressions import numbered
from parquet_variant.tables.pruning import keys_between

Mask = npt.NDArray[np.bool_]


def candidate_files(
    current: Snapshot, predicate: Predicate | None, columns: Mapping[str, NeededColumn], zone: str
) -> pa.Table:
    """Return the files of a snapshot that may hold a row for which a predicate is true.

    `current`: the table; its list of files may be incomplete.
    `predicate`: a predicate over `columns`; None to return all files.
    `columns`: what the names in the predicate stand for.
    """
    files = current.files
    for part in predicate.parts if isinstance(predicate, And) else (predicate,):
        if part is None:
            continue
        needed = {name: columns[name] for name in columns_of(part)}
        variants = {column.column for column in needed.values() if column.path is not None}
        if len(variants) > 1:
            continue  # A query reads the statistics of one Variant column.
        query = _query(current, needed, next(iter(variants), None), zone)
        bound = bind(part, {selected.name: selected.output for selected in query.selection}, zone)
        selection = {selected.name: selected for selected in query.selection}
        files = prune_files(replace(current, files=files), bound, selection, query.place).files
    return files


def may_hold_keys(current: Snapshot, files: pa.Table, needed: NeededColumn, name: str, keys: Any, zone: str) -> Mask:
    """Return, for each file, whether a column may hold one of some keys; True where that is unknown.

    `needed`, `name`: the column and its name in the expression.
    `keys`: an Arrow column of the same type, or of a type with the same order.
    """
    unknown = np.ones(len(files), dtype=bool)
    if needed.function is not None:
        return unknown
    query = _query(current, {name: needed}, needed.column if needed.path is not None else None, zone)
    (selected,) = query.selection
    lower, upper = column_bounds(replace(current, files=files), selected, query.place)
    if selected.output is None:
        return unknown
    return keys_between(lower, upper, keys, len(files))


def file_columns(current: Snapshot, file: Add, columns: Mapping[str, NeededColumn], zone: str) -> tuple[pa.Table, Mask]:
    """Return the needed columns of all rows of a data file, and a mask that is False for deleted rows.

    `columns`: the needed columns by name.
    The columns are a `numbered` table.
    """
    variants: list[str | None] = list(
        dict.fromkeys(needed.column for needed in columns.values() if needed.path is not None)
    ) or [None]
    with_deleted = replace(file, deletion_vector=None)
    arrays: dict[str, Any] = {}
    for index, variant in enumerate(variants):
        selected = {
            name: needed for name, needed in columns.items()
            if (needed.column == variant if needed.path is not None else index == 0)
        }  # fmt: skip
        if not selected:
            continue
        query = _query(current, selected, variant, zone)
        parts = list(query.read(DeltaScanTask((with_deleted,), file.size)))
        table = pa.concat_tables(parts) if parts else empty_table(query.schema)
        arrays |= {name: needed.computed(table[name]) for name, needed in selected.items()}
    rows = len(next(iter(arrays.values()))) if arrays else _row_count(current, file)
    live = live_rows(current, file.deletion_vector, rows)
    return numbered(arrays, rows), np.ones(rows, dtype=bool) if live is None else live


def _query(current: Snapshot, columns: Mapping[str, NeededColumn], variant: str | None, zone: str) -> DeltaScan:
    selection = {name: needed.select for name, needed in columns.items()}
    return scan(current, selection, column=variant, zone=zone)


def _row_count(current: Snapshot, file: Add) -> int:
    path = relative_path(current.storage, file.path)
    with open_parquet(current.storage.open(path)) as parquet:
        return int(parquet.metadata.num_rows)
