"""Which files may hold rows that an expression is about, and the columns of a file that it needs.

Owns pruning by expressions and by the keys of a join, before any file is opened, and reading the needed columns of a
file by position. Leaves the planning over statistics to `statistics.pruning` and columns of files to `reading.scan`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant import arrow_compute as pc
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
from parquet_variant.tables.expressions import ROW

Mask = npt.NDArray[np.bool_]


def candidate_files(
    current: Snapshot, predicate: Predicate | None, columns: Mapping[str, NeededColumn], zone: str
) -> pa.Table:
    """The files of a snapshot that may hold a row for which a predicate is true.

    `current`: the table; its files may be some of it.
    `predicate`: what is known of the rows, over `columns`; None for nothing.
    `columns`: what the predicate's names stand for.
    """
    files = current.files
    for part in predicate.parts if isinstance(predicate, And) else (predicate,):
        if part is None:
            continue
        used = {name: columns[name] for name in columns_of(part)}
        variants = {needed.column for needed in used.values() if needed.path is not None}
        if len(variants) > 1:
            continue  # Statistics are looked at for one variant column at a time.
        query = _query(current, used, next(iter(variants), None), zone)
        bound = bind(part, {each.name: each.output for each in query.selection}, zone)
        selection = {each.name: each for each in query.selection}
        files = prune_files(replace(current, files=files), bound, selection, query.place).files
    return files


def may_hold_keys(current: Snapshot, files: pa.Table, needed: NeededColumn, name: str, keys: Any, zone: str) -> Mask:
    """For each file, whether one of some keys may be among a column's values; True where that is not known.

    `current` and `files`: the table, and the files.
    `needed` and `name`: the column, and the name that it goes by.
    `keys`: the keys: an Arrow column of the column's type or one that compares alike.
    """
    unknown = np.ones(len(files), dtype=bool)
    query = _query(current, {name: needed}, needed.column if needed.path is not None else None, zone)
    (selected,) = query.selection
    lower, upper = column_bounds(replace(current, files=files), selected, query.place)
    if lower is None or upper is None or selected.output is None or pa.types.is_floating(selected.output):
        return unknown
    if pa.types.is_nested(selected.output):
        return unknown
    try:
        values = keys.cast(lower.type)
    except pa.ArrowException:
        return unknown
    values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    values = pc.drop_null(values)
    ordered = values.take(pc.sort_indices(values))
    known = np.asarray(pc.and_(lower.is_valid(), upper.is_valid()))
    may_hold = unknown.copy()
    # Both as positions in the ordered keys: a key lies between the bounds if the positions differ.
    first = _positions(ordered, lower, "left")
    last = _positions(ordered, upper, "right")
    may_hold[known] = (first < last)[known]
    return may_hold


def _positions(ordered: pa.Array, bounds: pa.Array, side: str) -> npt.NDArray[np.int64]:
    """Where bounds would stand among ordered values: ranks of the two together, so that any type will do."""
    both = pa.concat_arrays([ordered, bounds.cast(ordered.type)])
    codes = pc.rank(both, sort_keys="ascending", tiebreaker="dense").to_numpy()
    return np.searchsorted(codes[: len(ordered)], codes[len(ordered) :], side=side)  # type: ignore[call-overload]


def file_columns(current: Snapshot, file: Add, columns: Mapping[str, NeededColumn], zone: str) -> tuple[pa.Table, Mask]:
    """The needed columns of a data file, every row by its position, and which rows still count.

    `current`: the table.
    `columns`: what is needed, by name.
    Returns the columns, and `ROW`. False for rows that a deletion vector has deleted.
    """
    variants: list[str | None] = list(
        dict.fromkeys(needed.column for needed in columns.values() if needed.path is not None)
    ) or [None]
    whole = replace(file, deletion_vector=None)
    arrays: dict[str, Any] = {}
    for index, variant in enumerate(variants):
        used = {
            name: needed for name, needed in columns.items()
            if (needed.column == variant if needed.path is not None else index == 0)
        }  # fmt: skip
        if not used:
            continue
        query = _query(current, used, variant, zone)
        parts = list(query.read(DeltaScanTask((whole,), file.size)))
        table = pa.concat_tables(parts) if parts else empty_table(query.schema)
        arrays |= {name: table[name] for name in used}
    rows = len(next(iter(arrays.values()))) if arrays else _row_count(current, file)
    live = live_rows(current, file.deletion_vector, rows)
    table = pa.table({ROW: pa.array(np.arange(rows)), **arrays})
    return table, np.ones(rows, dtype=bool) if live is None else live


def chosen_rows(current: Snapshot, file: Add, columns: Mapping[str, NeededColumn], chosen: Mask, zone: str) -> pa.Table:
    """As the table of `file_columns`, of some rows, which are numbered for themselves."""
    numbers = pa.array(np.arange(np.count_nonzero(chosen)))
    if not columns:
        return pa.table({ROW: numbers})
    rows = file_columns(current, file, columns, zone)[0].filter(pa.array(chosen))
    return rows.set_column(rows.column_names.index(ROW), ROW, numbers)


def _query(current: Snapshot, columns: Mapping[str, NeededColumn], variant: str | None, zone: str) -> DeltaScan:
    selection = {name: needed.select for name, needed in columns.items()}
    return scan(current, selection, column=variant, zone=zone)


def _row_count(current: Snapshot, file: Add) -> int:
    path = relative_path(current.storage, file.path)
    with open_parquet(current.storage.open(path)) as parquet:
        return int(parquet.metadata.num_rows)
