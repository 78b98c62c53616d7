"""The statistics of a snapshot's files as typed columns, fast enough for a million files.

Owns parsing the JSON of the log in bulk, using `stats_parsed` of checkpoints where there is no JSON, and converting
these to JSON, so that rewriting the log keeps all statistics. Statistics that cannot be parsed are null, which means
unknown. Leaves conclusions to `pruning`, and the bounds of Variants to `variant_stats`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json as pj

from parquet_variant.arrays.capsules import EXTENSION_METADATA
from parquet_variant.arrays.parts import empty_table, one_chunk
from parquet_variant.inference.statistics import part_at
from parquet_variant.kernels.arrow_buffers import scalar
from parquet_variant.support import arrow_compute as pc
from parquet_variant.tables.delta import z85
from parquet_variant.tables.delta.protocol.actions import parse_json
from parquet_variant.tables.delta.statistics.file_stats import (
    TREES,
    Stats,
    dump_stats,
    python_value,
    set_at,
    spelled_bound,
)
from parquet_variant.tables.file_metrics import leaf_columns
from parquet_variant.tables.path_bounds import parsed_bounds
from parquet_variant.tables.schema import VARIANT, Place, PrimitiveType, StructType, arrow_type

_CHUNK_ROWS = 1 << 16
# Arrow parses blocks in parallel.
_BLOCK = 4 << 20
# Spark writes times with the zone's offset in whole minutes, although offsets before 1972 may have seconds.
_OFFSET = r'\d[+-]\d\d:?\d\d"'
_OFFSET_ERROR = timedelta(minutes=1)
_SHIFTS = {"minValues": -_OFFSET_ERROR, "maxValues": _OFFSET_ERROR}


@dataclass(frozen=True)
class StatsTable:
    """Statistics by column, one row per file."""

    # Columns ``numRecords``, ``minValues``, ``maxValues`` and ``nullCount``; the last three are structs of physical
    # names. Bounds of Variants are Z85 text.
    table: pa.Table
    parsed: pa.ChunkedArray | None = None  # The `stats_parsed` column, for files without JSON.

    @property
    def num_records(self) -> pa.ChunkedArray:
        """The rows of each file, deleted ones included; null if unknown."""
        return self.get("numRecords", ())

    def get(self, kind: str, place: Place) -> pa.ChunkedArray:
        """Return one statistic of one column: ``minValues``, ``maxValues``, ``nullCount`` or ``numRecords``."""
        column: Any = part_at(self.table[kind], place)
        if self.parsed is None:
            return column
        other: Any = part_at(self.parsed, (kind, *place))
        if other is None or pa.types.is_struct(other.type):
            return column  # The bounds of a Variant in Parquet form: see `parsed_variant`.
        other = other.cast(column.type, safe=False)
        if kind in _SHIFTS and pa.types.is_timestamp(column.type) and column.type.tz is not None:
            other = _shift_times(other, _SHIFTS[kind])
        return pc.if_else(column.is_null(), other, column)

    def parsed_variant(self, kind: str, place: Place) -> pa.Array | None:
        """Return the bounds of a Variant in Parquet form, as a storage struct; None if no file has such bounds."""
        other: Any = None if self.parsed is None else part_at(self.parsed, (kind, *place))
        if other is None or not pa.types.is_struct(other.type) or other.type.get_field_index("metadata") < 0:
            return None
        return other.combine_chunks() if isinstance(other, pa.ChunkedArray) else other


def read_stats(files: pa.Table, schema: StructType, places: Sequence[Place] | None = None) -> StatsTable:
    """Parse the statistics of files.

    `files`: rows of `Snapshot.files`.
    `places`: physical names of the needed columns; None for all columns that have statistics.
    """
    kind = stats_type(schema, None if places is None else set(places))
    stats = one_chunk(files["stats"])
    parts = [_parse_stats(stats.slice(start, _CHUNK_ROWS), kind) for start in range(0, len(stats), _CHUNK_ROWS)]
    table = pa.concat_tables(parts) if parts else empty_table(pa.schema(list(kind)))
    parsed = files["stats_parsed"] if "stats_parsed" in files.column_names else None
    return StatsTable(table, parsed)


def stats_type(
    schema: StructType, places: set[Place] | None = None, *, variants: pa.DataType | None = None
) -> pa.StructType:
    """Return the Arrow struct of a file's statistics.

    `places`: physical places to keep; None for all.
    `variants`: the type of the bounds of a Variant (default: string, for Z85 text).
    """
    bounds: Stats = {}
    nulls: Stats = {}
    for place, kind in leaf_columns(schema):
        if places is not None and place not in places:
            continue
        set_at(nulls, place, pa.field("", pa.int64()))
        if kind == VARIANT:
            mark = EXTENSION_METADATA if variants is not None else None
            set_at(bounds, place, pa.field("", variants or pa.string(), metadata=mark))
        elif isinstance(kind, PrimitiveType) and kind.name not in ("binary", "boolean", "void"):
            set_at(bounds, place, pa.field("", arrow_type(kind)))
    fields = [pa.field("numRecords", pa.int64()), pa.field("tightBounds", pa.bool_())]
    trees = zip(TREES, (bounds, bounds, nulls), strict=True)
    return pa.struct([*fields, *(pa.field(name, _struct_of(tree)) for name, tree in trees)])


def _struct_of(tree: Stats) -> pa.StructType:
    return pa.struct(
        [
            pa.field(name, _struct_of(part)) if isinstance(part, dict) else part.with_name(name)
            for name, part in tree.items()
        ]
    )


def _parse_stats(stats: pa.Array, kind: pa.StructType) -> pa.Table:
    filled = pc.fill_null(stats, scalar("{}", pa.large_string()))
    empty, newline = scalar("", pa.large_string()), scalar("\n", pa.large_string())
    lines = pc.binary_join_element_wise(filled, empty, newline)
    offsets = np.frombuffer(lines.buffers()[1], dtype=np.int64)[lines.offset : lines.offset + len(lines) + 1]
    text = lines.buffers()[2].slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
    # Times with an offset are read as strings, because their bounds must be widened.
    has_offsets = _has_times(kind) and pc.any(pc.match_substring_regex(filled, _OFFSET)).as_py()
    as_read = pa.schema([_read_field(f, has_offsets) for f in kind])
    try:
        if not pc.all(pc.starts_with(filled, "{")).as_py():
            # Two objects in one row and none in the next would be read as one object per row.
            raise pa.ArrowInvalid("statistics that are not an object")
        table = pj.read_json(
            pa.BufferReader(text),
            read_options=pj.ReadOptions(block_size=_BLOCK),
            parse_options=pj.ParseOptions(explicit_schema=as_read, unexpected_field_behavior="ignore"),
        )
        if len(table) != len(stats):
            raise pa.ArrowInvalid("a line break inside statistics")
        if has_offsets:
            columns = [_widen_bounds(table[f.name], f.type, _SHIFTS.get(f.name)) for f in kind]
            return pa.table(columns, schema=pa.schema(list(kind)))
        return table.cast(pa.schema(list(kind)))
    except pa.ArrowException:
        if len(stats) == 1:
            return _parsed_one(filled[0], kind)
        # Halve until each row that Arrow's parser refuses is alone.
        middle = len(stats) // 2
        return pa.concat_tables([_parse_stats(stats.slice(0, middle), kind), _parse_stats(stats.slice(middle), kind)])


def _has_times(kind: pa.DataType) -> bool:
    """Return whether a struct of statistics has bounds of times with a time zone."""
    if pa.types.is_struct(kind):
        return any(_has_times(f.type) for f in kind)
    return bool(pa.types.is_timestamp(kind) and kind.tz is not None)


def _read_field(f: pa.Field, times_as_strings: bool) -> pa.Field:
    """Return the type as which a statistic is read: pyarrow's JSON reader has no dates."""
    if pa.types.is_struct(f.type):
        return pa.field(f.name, pa.struct([_read_field(child, times_as_strings) for child in f.type]))
    is_string = pa.types.is_date(f.type) or (times_as_strings and _has_times(f.type))
    return pa.field(f.name, pa.string()) if is_string else f


def _widen_bounds(column: pa.ChunkedArray, kind: pa.DataType, shift: timedelta | None) -> pa.ChunkedArray:
    """Return statistics in their type, with the bounds of times widened whose text has an offset instead of ``Z``."""
    chunks = [_widened_array(chunk, kind, shift) for chunk in column.chunks]
    return pa.chunked_array(chunks, kind)


def _widened_array(array: pa.Array, kind: pa.DataType, shift: timedelta | None) -> pa.Array:
    if pa.types.is_struct(kind):
        children = [_widened_array(pc.struct_field(array, [f.name]), f.type, shift) for f in kind]
        mask = array.is_null() if array.null_count else None
        if not children:
            return array.cast(kind)
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=mask)
    values = array.cast(kind)
    if shift is None or not _has_times(kind) or not pa.types.is_string(array.type):
        return values
    return pc.if_else(pc.ends_with(array, "Z"), values, _shift_times(values, shift))


def _shift_times(times: Any, shift: timedelta) -> Any:
    """Return times shifted by an interval; all are unknown if one of them leaves the range of the type."""
    try:
        return pc.add_checked(times, pa.scalar(shift, pa.duration("us")).cast(pa.duration(times.type.unit)))
    except pa.ArrowInvalid:
        return pa.nulls(len(times), times.type)


def _parsed_one(stats: pa.Scalar, kind: pa.StructType) -> pa.Table:
    try:
        # A decimal parsed as float would be rounded, and might not be a bound any more.
        data = parse_json(stats.as_py(), parse_float=Decimal)
    except ValueError:
        data = {}
    row = {}
    for f in kind:
        row[f.name] = _value_of(data.get(f.name) if isinstance(data, dict) else None, f.type, _SHIFTS.get(f.name))
    return pa.Table.from_pylist([row], schema=pa.schema(list(kind)))


def _value_of(data: Any, kind: pa.DataType, shift: timedelta | None) -> Any:
    """Return the parts of parsed JSON that fit a type; None for other parts."""
    if pa.types.is_struct(kind):
        return {f.name: _value_of(data.get(f.name), f.type, shift) for f in kind} if isinstance(data, dict) else None
    if data is None:
        return None
    try:
        if pa.types.is_temporal(kind):
            if not isinstance(data, str):
                return None
            value = pa.scalar(data, pa.string()).cast(kind).as_py()
            is_inexact = shift is not None and _has_times(kind) and not data.endswith("Z")
            return value + shift if is_inexact and shift is not None else value
        if pa.types.is_floating(kind) and isinstance(data, (int, Decimal)) and not isinstance(data, bool):
            return float(data)
        if pa.types.is_decimal(kind):
            return pa.scalar(Decimal(data), kind).as_py() if isinstance(data, (int, Decimal)) else None
        return pa.scalar(data, kind).as_py()
    except (pa.ArrowException, ArithmeticError, OverflowError, ValueError, TypeError):
        return None


def with_json_stats(files: pa.Table, schema: StructType) -> pa.Table:
    """Return rows of `Snapshot.files` with all statistics as JSON, and without the column of parsed statistics."""
    if "stats_parsed" not in files.column_names:
        return files
    stats, without_parsed = files["stats"], files.drop_columns("stats_parsed")
    rows = pc.and_(stats.is_null(), files["stats_parsed"].is_valid())
    if not pc.any(rows).as_py():
        return without_parsed
    parsed = files["stats_parsed"].filter(rows).combine_chunks()
    texts = iter(_json_texts(parsed, schema))
    merged = [
        next(texts) if is_parsed else text for is_parsed, text in zip(rows.to_pylist(), stats.to_pylist(), strict=True)
    ]
    index = without_parsed.column_names.index("stats")
    return without_parsed.set_column(index, "stats", pa.array(merged, pa.large_string()))


def _json_texts(parsed: pa.StructArray, schema: StructType) -> list[str]:
    rows: list[Stats] = [{} for _ in range(len(parsed))]
    for name in ("numRecords", "tightBounds"):
        _put(rows, (name,), _python_values(part_at(parsed, (name,))))
    for place, kind in leaf_columns(schema):
        _put(rows, ("nullCount", *place), _python_values(part_at(parsed, ("nullCount", *place))))
        for name in ("minValues", "maxValues"):
            column = part_at(parsed, (name, *place))
            if column is None:
                continue
            if kind == VARIANT:
                _put(rows, (name, *place), _variant_texts(column))
            elif isinstance(kind, PrimitiveType):
                bounds = [spelled_bound(value, kind, up=name == "maxValues") for value in _python_values(column)]
                _put(rows, (name, *place), bounds)
    return [dump_stats(row) for row in rows]


def _python_values(column: pa.Array | None) -> list[Any]:
    return [] if column is None else [python_value(value) for value in column]


def _variant_texts(column: pa.Array) -> list[str | None]:
    if not pa.types.is_struct(column.type):
        return [value if isinstance(value, str) else None for value in column.to_pylist()]
    rows = parsed_bounds(column).to_pylist()
    return [None if row is None else z85.encode(row["metadata"] + row["value"]) for row in rows]


def _put(rows: list[Stats], place: Place, values: Sequence[object]) -> None:
    for row, value in zip(rows, values, strict=False):
        set_at(row, place, value)
