"""The statistics of a snapshot's files as typed columns, fast enough for a million files.

Owns parsing the JSON of the log in bulk, taking `stats_parsed` of checkpoints where there is no JSON, and giving that
as JSON, so that no rewrite of the log loses statistics. What cannot be parsed is null, since it is then unknown. Leaves
conclusions to `pruning` and the variants in it to `variant_stats`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json as pj

from parquet_variant import arrow_compute as pc
from parquet_variant.array.capsules import EXTENSION_METADATA
from parquet_variant.array.parts import empty_table, one_chunk
from parquet_variant.delta import z85
from parquet_variant.delta.protocol.actions import parse_json
from parquet_variant.delta.statistics.file_stats import (
    TREES,
    Stats,
    dump_stats,
    python_value,
    set_at,
    spelled_bound,
)
from parquet_variant.kernels.arrow_buffers import scalar
from parquet_variant.shredding.statistics import part_at
from parquet_variant.tables.file_metrics import leaf_columns
from parquet_variant.tables.path_bounds import parsed_bounds
from parquet_variant.tables.schema import VARIANT, PrimitiveType, StructType, arrow_type

Place = tuple[str, ...]
_CHUNK_ROWS = 1 << 16
# Arrow reads blocks side by side.
_BLOCK = 4 << 20


@dataclass(frozen=True)
class StatsTable:
    """Statistics by column, one row a file."""

    # Columns ``numRecords``, ``minValues``, ``maxValues`` and ``nullCount``, the last three as structs of physical
    # names; bounds of variants are Z85 text.
    table: pa.Table
    parsed: pa.ChunkedArray | None = None  # The `stats_parsed` column of the files that had no JSON, or None.

    @property
    def num_records(self) -> pa.ChunkedArray:
        """Rows of each file, deleted ones included; null if unknown."""
        return self.get("numRecords", ())

    def get(self, kind: str, place: Place) -> pa.ChunkedArray:
        """One statistic of one column: ``minValues``, ``maxValues``, ``nullCount`` or ``numRecords``."""
        column: Any = part_at(self.table[kind], place)
        if self.parsed is None:
            return column
        other: Any = part_at(self.parsed, (kind, *place))
        if other is None or pa.types.is_struct(other.type):
            return column  # A variant in Parquet form: see `parsed_variant`.
        return pc.if_else(column.is_null(), other.cast(column.type, safe=False), column)

    def parsed_variant(self, kind: str, place: Place) -> pa.Array | None:
        """The bounds of a variant in Parquet form, as a storage struct; None if no file has them so."""
        other: Any = None if self.parsed is None else part_at(self.parsed, (kind, *place))
        if other is None or not pa.types.is_struct(other.type) or other.type.get_field_index("metadata") < 0:
            return None
        return other.combine_chunks() if isinstance(other, pa.ChunkedArray) else other


def read_stats(files: pa.Table, schema: StructType, places: Sequence[Place] | None = None) -> StatsTable:
    """Parse the statistics of files.

    `files`: rows of `Snapshot.files`.
    `places`: physical names of the columns that are wanted; by default all that have statistics.
    """
    kind = stats_type(schema, None if places is None else set(places))
    stats = one_chunk(files["stats"])
    parts = [_parse(stats.slice(start, _CHUNK_ROWS), kind) for start in range(0, len(stats), _CHUNK_ROWS)]
    table = pa.concat_tables(parts) if parts else empty_table(pa.schema(list(kind)))
    parsed = files["stats_parsed"] if "stats_parsed" in files.column_names else None
    return StatsTable(table, parsed)


def stats_type(
    schema: StructType, places: set[Place] | None = None, *, variants: pa.DataType | None = None
) -> pa.StructType:
    """The Arrow struct of a file's statistics.

    `places`: physical places to keep; by default all.
    `variants`: the type of a variant's bounds; by default Z85 text.
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


def _parse(stats: pa.Array, kind: pa.StructType) -> pa.Table:
    filled = pc.fill_null(stats, scalar("{}", pa.large_string()))
    empty, newline = scalar("", pa.large_string()), scalar("\n", pa.large_string())
    lines = pc.binary_join_element_wise(filled, empty, newline)
    offsets = np.frombuffer(lines.buffers()[1], dtype=np.int64)[lines.offset : lines.offset + len(lines) + 1]
    text = lines.buffers()[2].slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
    # Dates come as text: pyarrow's JSON reader knows timestamps and decimals, but no dates.
    as_read = pa.schema([_without_dates(f) for f in kind])
    try:
        if not pc.all(pc.starts_with(filled, "{")).as_py():
            # Else two objects in one row and none in the next would look like one in each.
            raise pa.ArrowInvalid("statistics that are no object")
        table = pj.read_json(
            pa.BufferReader(text),
            read_options=pj.ReadOptions(block_size=_BLOCK),
            parse_options=pj.ParseOptions(explicit_schema=as_read, unexpected_field_behavior="ignore"),
        )
        if len(table) != len(stats):
            raise pa.ArrowInvalid("a line break inside of statistics")
        return table.cast(pa.schema(list(kind)))
    except pa.ArrowException:
        if len(stats) == 1:
            return _one(filled[0], kind)
        # Halve until the rows that Arrow does not take are alone.
        middle = len(stats) // 2
        return pa.concat_tables([_parse(stats.slice(0, middle), kind), _parse(stats.slice(middle), kind)])


def _one(stats: pa.Scalar, kind: pa.StructType) -> pa.Table:
    try:
        # A decimal through a float would be rounded, and a bound tighter than its values.
        data = parse_json(stats.as_py(), parse_float=Decimal)
    except ValueError:
        data = {}
    row = _tolerant(data, kind) or {}
    return pa.Table.from_pylist([row], schema=pa.schema(list(kind)))


def _tolerant(data: Any, kind: pa.DataType) -> Any:
    """What fits the type of parsed JSON; None for the rest."""
    if pa.types.is_struct(kind):
        if not isinstance(data, dict):
            return None
        return {f.name: _tolerant(data.get(f.name), f.type) for f in kind}
    if data is None:
        return None
    try:
        if pa.types.is_temporal(kind):
            return pa.scalar(data, pa.string()).cast(kind).as_py() if isinstance(data, str) else None
        if pa.types.is_floating(kind) and isinstance(data, (int, Decimal)) and not isinstance(data, bool):
            return float(data)
        if pa.types.is_decimal(kind):
            return pa.scalar(Decimal(data), kind).as_py() if isinstance(data, (int, Decimal)) else None
        return pa.scalar(data, kind).as_py()
    except (pa.ArrowException, ArithmeticError, OverflowError, ValueError, TypeError):
        return None


def _without_dates(f: pa.Field) -> pa.Field:
    if pa.types.is_struct(f.type):
        return pa.field(f.name, pa.struct([_without_dates(child) for child in f.type]))
    return pa.field(f.name, pa.string()) if pa.types.is_date(f.type) else f


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
    rows: list[Stats] = [{} for _ in range(len(parsed))]
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


def _put(rows: list[Stats], place: Place, values: Sequence[object]) -> None:
    for row, value in zip(rows, values, strict=False):
        set_at(row, place, value)
