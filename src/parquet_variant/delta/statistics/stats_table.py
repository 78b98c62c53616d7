"""The statistics of a snapshot's files as typed columns, fast enough for a million files.

Owns parsing the JSON of the log in bulk, and taking `stats_parsed` of checkpoints where there is no JSON. What cannot
be parsed is null, since it is then unknown. Leaves conclusions to `pruning` and the variants in it to `variant_stats`.
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
from parquet_variant.array.parts import empty_table, one_chunk
from parquet_variant.delta.protocol.actions import parse_json
from parquet_variant.delta.protocol.schema import (
    VARIANT,
    ArrayType,
    DeltaType,
    MapType,
    PrimitiveType,
    StructType,
    arrow_type,
)
from parquet_variant.delta.statistics.file_stats import TREES
from parquet_variant.kernels.arrow_buffers import scalar
from parquet_variant.shredding.statistics import part_at

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


def stats_type(schema: StructType, places: set[Place] | None = None, *, variants: pa.DataType | None = None) -> Any:
    """The Arrow struct of a file's statistics.

    `places`: physical places to keep; by default all.
    `variants`: the type of a variant's bounds; by default Z85 text.
    """
    bounds = _tree(schema, (), places, variants or pa.string())
    nulls = _null_tree(schema, (), places)
    fields = [pa.field("numRecords", pa.int64()), pa.field("tightBounds", pa.bool_())]
    for name in TREES:
        kind = nulls if name == "nullCount" else bounds
        fields.append(pa.field(name, pa.struct(kind)))
    return pa.struct(fields)


def _tree(schema: StructType, place: Place, places: set[Place] | None, variants: pa.DataType) -> list[pa.Field]:
    arrays = []
    for f in schema.fields:
        here = (*place, f.physical_name)
        if isinstance(f.type, StructType):
            below = _tree(f.type, here, places, variants)
            if below:
                arrays.append(pa.field(f.physical_name, pa.struct(below)))
        elif _has_bounds(f.type) and (places is None or here in places):
            if f.type == VARIANT:
                mark = {b"ARROW:extension:name": b"arrow.parquet.variant"} if pa.types.is_struct(variants) else None
                arrays.append(pa.field(f.physical_name, variants, metadata=mark))
            else:
                arrays.append(pa.field(f.physical_name, arrow_type(f.type)))
    return arrays


def _null_tree(schema: StructType, place: Place, places: set[Place] | None) -> list[pa.Field]:
    arrays = []
    for f in schema.fields:
        here = (*place, f.physical_name)
        if isinstance(f.type, StructType):
            below = _null_tree(f.type, here, places)
            if below:
                arrays.append(pa.field(f.physical_name, pa.struct(below)))
        elif places is None or here in places:
            arrays.append(pa.field(f.physical_name, pa.int64()))
    return arrays


def _has_bounds(kind: DeltaType) -> bool:
    if isinstance(kind, (ArrayType, MapType)):
        return False
    return isinstance(kind, PrimitiveType) and kind.name not in ("binary", "boolean", "void")


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
        return _dated(table, kind)
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


def _dated(table: pa.Table, kind: pa.StructType) -> pa.Table:
    columns = [_date_column(table[f.name], f.type) for f in kind]
    return pa.table(columns, schema=pa.schema(list(kind)))


def _date_column(column: Any, kind: pa.DataType) -> Any:
    if column.type == kind:
        return column
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([_date_column(chunk, kind) for chunk in column.chunks], kind)
    if pa.types.is_struct(kind):
        children = [_date_column(column.field(i), kind.field(i).type) for i in range(kind.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=column.is_null())
    return column.cast(kind)
