"""Statistics that a checkpoint held only as columns, as the JSON that actions hold.

Owns that one direction, so that no rewrite of the log loses statistics, nor `numRecords`, which deletion vectors need.
Leaves the other direction to `stats_table`.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from parquet_variant import arrow_compute as pc
from parquet_variant.delta import z85
from parquet_variant.delta.protocol.schema import VARIANT, PrimitiveType, StructType
from parquet_variant.delta.statistics.file_stats import dump_stats, leaf_columns, python_value, set_at, spelled_bound
from parquet_variant.delta.statistics.variant_stats import parsed_bounds
from parquet_variant.shredding.statistics import part_at

Place = tuple[str, ...]


def with_json_stats(files: pa.Table, schema: StructType) -> pa.Table:
    """Rows of `Snapshot.files` with all statistics as JSON, and no column of parsed ones.

    `files`: rows of `Snapshot.files`.
    """
    if "stats_parsed" not in files.column_names:
        return files
    stats, bare = files["stats"], files.drop_columns("stats_parsed")
    rows = pc.and_(stats.is_null(), files["stats_parsed"].is_valid())
    if not pc.any(rows).as_py():
        return bare
    parsed = files["stats_parsed"].filter(rows).combine_chunks()
    texts = iter(_texts(parsed, schema))
    told = [next(texts) if new else old for new, old in zip(rows.to_pylist(), stats.to_pylist(), strict=True)]
    return bare.set_column(bare.column_names.index("stats"), "stats", pa.array(told, pa.large_string()))


def _texts(parsed: pa.StructArray, schema: StructType) -> list[str]:
    rows: list[dict[str, Any]] = [{} for _ in range(len(parsed))]
    for name in ("numRecords", "tightBounds"):
        _put(rows, (name,), _values(part_at(parsed, (name,))))
    for place, kind in leaf_columns(schema):
        _put(rows, ("nullCount", *place), _values(part_at(parsed, ("nullCount", *place))))
        for name in ("minValues", "maxValues"):
            column = part_at(parsed, (name, *place))
            if column is None:
                continue
            if kind == VARIANT:
                _put(rows, (name, *place), _bounds(column))
            elif isinstance(kind, PrimitiveType):
                texts = [spelled_bound(value, kind, up=name == "maxValues") for value in _values(column)]
                _put(rows, (name, *place), texts)
    return [dump_stats(row) for row in rows]


def _values(column: pa.Array | None) -> list[Any]:
    return [] if column is None else [python_value(each) for each in column]


def _bounds(column: pa.Array) -> list[str | None]:
    if not pa.types.is_struct(column.type):
        return [each if isinstance(each, str) else None for each in column.to_pylist()]
    rows = parsed_bounds(column).to_pylist()
    return [None if row is None else z85.encode(row["metadata"] + row["value"]) for row in rows]


def _put(rows: list[dict[str, Any]], place: Place, values: list[Any]) -> None:
    for row, value in zip(rows, values, strict=False):
        set_at(row, place, value)
