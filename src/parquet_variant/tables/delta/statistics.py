"""Statistics of data files: the log's JSON for one file, and typed columns with one row per file for a snapshot.

Owns which columns get statistics, how values are spelled and rounded (PROTOCOL.md, "Per-file Statistics"), parsing JSON
in bulk, fast enough for a million files, and `stats_parsed` of checkpoints, which is used where there is no JSON, and
converted to it, so that rewriting the log keeps all statistics. Statistics that cannot be parsed are null, which means
unknown. Leaves collecting metrics to `tables.file_metrics`, and conclusions to `reading.read`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.json as pj

from parquet_variant.arrays.capsules import EXTENSION_METADATA
from parquet_variant.arrays.parts import empty_table, one_chunk
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import TableError
from parquet_variant.inference.statistics import TEXT_LENGTH, ValueBounds, lower_text, part_at, upper_text
from parquet_variant.kernels.arrow_buffers import scalar
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.support.records import Record, cached_property
from parquet_variant.tables import file_metrics, pruning
from parquet_variant.tables.delta import z85
from parquet_variant.tables.delta.protocol.actions import parse_json
from parquet_variant.tables.schema import VARIANT, VOID, Place, PrimitiveType, StructType, TableType, arrow_type, leaves
from parquet_variant.types.path import VariantPath


def encode_bounds(bounds: Mapping[VariantPath, Variant]) -> str:
    """Return bounds by path as the log holds them in JSON: Z85 of metadata and value.

    >>> encode_bounds({VariantPath.parse("$.key"): Variant.from_python(7)})
    '5DI>qbWhTiwQbUe0S-o30T]ql'
    """
    return z85.encode(pruning.bounds_to_bytes(bounds))


def decode_bounds(text: str) -> dict[VariantPath, Variant]:
    """Return the bounds in a Z85 text, by path; raise `TableError`: ``"bad-z85"``, ``"bad-stats"``.

    >>> bounds = decode_bounds("0S&u501fk+ze0(tB98CpzF6vU0rJl95HpNdvjbtatpi(cu0wW^cTu")
    >>> {str(path): bound.to_python() for path, bound in bounds.items()}
    {"$['a']": 'min-string', "$['b']['c']": 1}
    """
    return pruning.bounds_from_bytes(z85.decode(text))


def decode_bounds_array(encoded: pa.Array) -> pa.StructArray:
    """Return a column of Z85 strings as `tables.pruning.bounds_array` does; unreadable strings become null."""
    return pruning.bounds_array(z85.decode_array(encoded))


# The statistics of a file, or a part of them: values, and further trees by name.
Stats: TypeAlias = "dict[str, Any]"
TREES = ("minValues", "maxValues", "nullCount")
_INDEXED_COLUMNS = "delta.dataSkippingNumIndexedCols"
_STATS_COLUMNS = "delta.dataSkippingStatsColumns"
_COLUMN_NAME = re.compile(r"(?:`[^`]*`|[^,`])+")
_NAME_PART = re.compile(r"`([^`]*)`|([^.`]+)")
_DEFAULT_INDEXED = 32
_MILLISECOND = timedelta(milliseconds=1)
# Types on whose order all readers agree.
_BOUNDED = {"byte", "short", "integer", "long", "float", "double", "date", "timestamp", "timestamp_ntz", "string"}


def indexed_places(schema: StructType, configuration: Mapping[str, str], minimum: int = 0) -> frozenset[Place]:
    """Return the leaf columns without partition columns that get statistics, by physical names.

    These are the columns that ``delta.dataSkippingStatsColumns`` names, whole structs among them; without that
    property, the first ``delta.dataSkippingNumIndexedCols`` columns (32 unless set, -1 for all). The `minimum` first
    columns get statistics in any case.
    """
    leaf_fields = [fields for fields in leaves(schema) if fields[-1].type != VOID]
    places = [file_metrics.physical_place(fields) for fields in leaf_fields]
    listed = configuration.get(_STATS_COLUMNS)
    if listed is not None:
        # Names are split at dots; backticks quote names that hold commas or dots.
        names = [
            tuple((quoted or bare).strip().lower() for quoted, bare in _NAME_PART.findall(name))
            for name in _COLUMN_NAME.findall(listed)
            if name.strip()
        ]
        logical = [tuple(f.name.lower() for f in fields) for fields in leaf_fields]
        indexed_leaves = {
            index for index, place in enumerate(logical) if any(place[: len(name)] == name for name in names)
        }
        return frozenset({places[index] for index in indexed_leaves} | {*places[:minimum]})
    try:
        count = int(configuration.get(_INDEXED_COLUMNS, _DEFAULT_INDEXED))
    except ValueError:
        count = _DEFAULT_INDEXED
    return frozenset(places if count < 0 else places[: max(count, minimum)])


def stats_tree(metrics: file_metrics.FileMetrics, schema: StructType) -> Stats:
    """Return the statistics of a file with a schema of physical names as the log's tree of objects."""
    nulls: Stats = {}
    lower: Stats = {}
    upper: Stats = {}
    for place, kind in file_metrics.leaf_columns(schema):
        column = metrics.columns.get(place)
        if column is None:
            continue
        set_at(nulls, place, column.nulls)
        if not file_metrics.is_footer_counted(kind):
            for tree, bounds in zip((lower, upper), pruning.complete_bounds(column.paths), strict=True):
                set_at(tree, place, encode_bounds(bounds) if bounds else None)
        elif isinstance(kind, PrimitiveType) and column.lower is not None and column.upper is not None:
            set_at(lower, place, spelled_bound(python_value(column.lower), kind, up=False))
            set_at(upper, place, spelled_bound(python_value(column.upper), kind, up=True))
    return {
        "numRecords": metrics.rows, "minValues": lower, "maxValues": upper, "nullCount": nulls, "tightBounds": True
    }  # fmt: skip


def counted_metrics(stats: Stats, schema: StructType) -> file_metrics.FileMetrics:
    """Return the null counts of a file's statistics, and the paths of its Variants that have bounds."""
    columns: dict[Place, file_metrics.ColumnMetrics] = {}
    for place, kind in file_metrics.leaf_columns(schema):
        count = value_at(stats.get("nullCount"), place)
        paths: dict[VariantPath, ValueBounds] = {}
        if not file_metrics.is_footer_counted(kind):
            text = value_at(stats.get("minValues"), place)
            with suppress(TableError):
                paths = {} if text is None else dict.fromkeys(decode_bounds(str(text)), ValueBounds(None, None))
        columns[place] = file_metrics.ColumnMetrics(count if isinstance(count, int) else None, paths=paths)
    rows = stats.get("numRecords")
    return file_metrics.FileMetrics(rows if isinstance(rows, int) else 0, columns)


def with_columns(before: Stats, changed: Stats, columns: Iterable[str]) -> Stats:
    """Return the statistics of a file with those of some new columns, by physical names, in place of the old ones."""
    names = set(columns)
    stats = {**changed, "tightBounds": before.get("tightBounds", True)}
    for tree in TREES:
        other_values = {name: value for name, value in before.get(tree, {}).items() if name not in names}
        stats[tree] = other_values | changed[tree]
    return stats


def set_at(tree: Stats, place: Place, value: Any) -> None:
    """Put a value into a tree of objects; None is left out."""
    if value is None:
        return
    for name in place[:-1]:
        tree = tree.setdefault(name, {})
    tree[place[-1]] = value


def value_at(tree: Any, place: Place) -> Any:
    """Return the value at a place in a tree of objects; None if it is missing."""
    for name in place:
        tree = tree.get(name) if isinstance(tree, dict) else None
    return tree


def python_value(scalar: pa.Scalar) -> Any:
    """Return the Python value of a scalar; None for a date or time that Python cannot represent."""
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        return None


def spelled_bound(value: Any, kind: TableType, *, up: bool) -> Any:
    """Return a bound as JSON holds it, never tighter than the value; None if the type has no spelling."""
    if not isinstance(kind, PrimitiveType) or (kind.name not in _BOUNDED and not kind.name.startswith("decimal")):
        return None
    if isinstance(value, str):
        return upper_text(value, TEXT_LENGTH) if up else lower_text(value, TEXT_LENGTH)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, datetime):
        # All readers accept milliseconds; an upper bound is rounded up so that it stays one.
        rounded = value.replace(microsecond=value.microsecond // 1000 * 1000)
        try:
            if up and rounded != value:
                rounded += _MILLISECOND
        except OverflowError:
            return None
        zone = "" if rounded.tzinfo is None else "Z"
        rounded = rounded if rounded.tzinfo is None else rounded.astimezone(UTC).replace(tzinfo=None)
        return rounded.isoformat(timespec="milliseconds") + zone
    if isinstance(value, date):
        return value.isoformat()
    return value if isinstance(value, (int, Decimal)) else None


def parsed_stats(text: str | None) -> Stats:
    """Return the statistics of a file as a tree of objects; damaged parts are left out, which means unknown."""
    try:
        # A decimal parsed as float would be rounded, and might not be a bound any more.
        stats = parse_json(text, parse_float=Decimal) if text else {}
    except ValueError:
        return {}
    items = stats.items() if isinstance(stats, dict) else ()
    return {name: value for name, value in items if isinstance(value, dict) or name not in TREES}


def dump_stats(value: Any) -> str:
    """Return JSON text in which decimals are exact numbers, which the `json` module cannot write."""
    if isinstance(value, dict):
        members = ",".join(f"{json.dumps(k, ensure_ascii=False)}:{dump_stats(v)}" for k, v in value.items())
        return "{" + members + "}"
    if isinstance(value, Decimal):
        return format(value, "f")
    return json.dumps(value, ensure_ascii=False)


_CHUNK_ROWS = 1 << 16
# Arrow parses blocks in parallel.
_BLOCK = 4 << 20
_OFFSET = r'\d[+-]\d\d:?\d\d"'
_OFFSET_ERROR = timedelta(minutes=1)
_SHIFTS = {"minValues": -_OFFSET_ERROR, "maxValues": _OFFSET_ERROR}


class StatsTable(Record):
    """Statistics by column, one row per file."""

    # Columns ``numRecords``, ``minValues``, ``maxValues`` and ``nullCount``; the last three are structs of physical
    # names. Bounds of Variants are Z85 text.
    table: pa.Table
    json: pa.Array
    parsed: pa.ChunkedArray | None = None  # The `stats_parsed` column, for files without JSON.

    @cached_property
    def num_records(self) -> pa.ChunkedArray:
        """The rows of each file, deleted ones included; null if unknown, or negative in the log."""
        counts = self.get("numRecords", ())
        zero, unknown = scalar(0, counts.type), scalar(None, counts.type)
        return pc.if_else(pc.less(counts, zero), unknown, counts)

    @cached_property
    def _has_offsets(self) -> pa.Array:
        """Whether each file has times with an offset: it is in whole minutes, but offsets before 1972 have seconds."""
        return pc.fill_null(pc.match_substring_regex(self.json, _OFFSET), False)

    def get(self, kind: str, place: Place) -> pa.ChunkedArray:
        """Return one statistic of one column: ``minValues``, ``maxValues``, ``nullCount`` or ``numRecords``."""
        column: Any = part_at(self.table[kind], place)
        is_zoned = column is not None and pa.types.is_timestamp(column.type) and column.type.tz is not None
        shift = _SHIFTS.get(kind) if is_zoned else None
        if shift is not None:
            column = pc.if_else(self._has_offsets, pruning.shifted_times(column, shift), column)
        if self.parsed is None:
            return column
        other: Any = part_at(self.parsed, (kind, *place))
        if other is None or pa.types.is_struct(other.type):
            return column  # The bounds of a Variant in Parquet form: see `parsed_variant`.
        other = other.cast(column.type, safe=False)
        if shift is not None:
            other = pruning.shifted_times(other, shift)
        return pc.if_else(column.is_null(), other, column)

    def parsed_variant(self, kind: str, place: Place) -> pa.Array | None:
        """Return the bounds of a Variant in Parquet form, as a storage struct; None if no file has such bounds."""
        other: Any = None if self.parsed is None else part_at(self.parsed, (kind, *place))
        if other is None or not pa.types.is_struct(other.type) or other.type.get_field_index("metadata") < 0:
            return None
        return other.combine_chunks() if isinstance(other, pa.ChunkedArray) else other


def read_stats(files: pa.Table, schema: StructType, places: Sequence[Place] | None = None) -> StatsTable:
    """Parse the statistics of files; `places`: physical names of the needed columns (default: all)."""
    kind = stats_type(schema, None if places is None else set(places))
    stats = one_chunk(files["stats"])
    parts = [_parse_stats(stats.slice(start, _CHUNK_ROWS), kind) for start in range(0, len(stats), _CHUNK_ROWS)]
    table = pa.concat_tables(parts) if parts else empty_table(pa.schema(list(kind)))
    parsed = files["stats_parsed"] if "stats_parsed" in files.column_names else None
    return StatsTable(table, stats, parsed)


def stats_type(
    schema: StructType, places: set[Place] | None = None, *, variants: pa.DataType | None = None
) -> pa.StructType:
    """Return the Arrow struct of a file's statistics; `variants`: the type of bounds of Variants (default: text)."""
    bounds: Stats = {}
    nulls: Stats = {}
    for place, kind in file_metrics.leaf_columns(schema):
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
    parts = ((name, _struct_of(part) if isinstance(part, dict) else part) for name, part in tree.items())
    return pa.struct([part.with_name(name) if isinstance(part, pa.Field) else (name, part) for name, part in parts])


def _parse_stats(stats: pa.Array, kind: pa.StructType) -> pa.Table:
    filled = pc.fill_null(stats, scalar("{}", pa.large_string()))
    empty, newline = scalar("", pa.large_string()), scalar("\n", pa.large_string())
    lines = pc.binary_join_element_wise(filled, empty, newline)
    offsets = np.frombuffer(lines.buffers()[1], dtype=np.int64)[lines.offset : lines.offset + len(lines) + 1]
    text = lines.buffers()[2].slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
    as_read = pa.schema([_read_field(f) for f in kind])
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
        return table.cast(pa.schema(list(kind)))
    except pa.ArrowException:
        if len(stats) == 1:
            values = parsed_stats(filled[0].as_py())
            row = {f.name: _value_of(values.get(f.name), f.type) for f in kind}
            return pa.Table.from_pylist([row], schema=pa.schema(list(kind)))
        # Halve until each row that Arrow's parser refuses is alone.
        middle = len(stats) // 2
        return pa.concat_tables([_parse_stats(stats.slice(0, middle), kind), _parse_stats(stats.slice(middle), kind)])


def _read_field(f: pa.Field) -> pa.Field:
    """Return the type as which a statistic is read: pyarrow's JSON reader has no dates."""
    if pa.types.is_struct(f.type):
        return pa.field(f.name, pa.struct([_read_field(child) for child in f.type]))
    return pa.field(f.name, pa.string()) if pa.types.is_date(f.type) else f


def _value_of(data: Any, kind: pa.DataType) -> Any:
    """Return the parts of parsed JSON that fit a type; None for other parts."""
    if pa.types.is_struct(kind):
        return {f.name: _value_of(data.get(f.name), f.type) for f in kind} if isinstance(data, dict) else None
    if data is None or (isinstance(data, bool) and not pa.types.is_boolean(kind)):
        return None
    try:
        if pa.types.is_temporal(kind):
            return pa.scalar(data, pa.string()).cast(kind).as_py() if isinstance(data, str) else None
        if pa.types.is_floating(kind) and isinstance(data, (int, Decimal)):
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
    json_rows = iter(_json_texts(parsed, schema))
    pairs = zip(rows.to_pylist(), stats.to_pylist(), strict=True)
    merged = [next(json_rows) if is_parsed else text for is_parsed, text in pairs]
    index = without_parsed.column_names.index("stats")
    return without_parsed.set_column(index, "stats", pa.array(merged, pa.large_string()))


def _json_texts(parsed: pa.StructArray, schema: StructType) -> list[str]:
    rows: list[Stats] = [{} for _ in range(len(parsed))]
    for name in ("numRecords", "tightBounds"):
        _put(rows, (name,), _python_values(part_at(parsed, (name,))))
    for place, kind in file_metrics.leaf_columns(schema):
        _put(rows, ("nullCount", *place), _python_values(part_at(parsed, ("nullCount", *place))))
        for name in ("minValues", "maxValues"):
            column = part_at(parsed, (name, *place))
            if column is None:
                continue
            if kind == VARIANT and pa.types.is_struct(column.type):
                bounds = pruning.parsed_bounds(column).to_pylist()
                encoded = [None if row is None else z85.encode(row["metadata"] + row["value"]) for row in bounds]
                _put(rows, (name, *place), encoded)
            elif kind == VARIANT:
                _put(rows, (name, *place), [text if isinstance(text, str) else None for text in column.to_pylist()])
            elif isinstance(kind, PrimitiveType):
                bounds = [spelled_bound(value, kind, up=name == "maxValues") for value in _python_values(column)]
                _put(rows, (name, *place), bounds)
    return [dump_stats(row) for row in rows]


def _python_values(column: pa.Array | None) -> list[Any]:
    return [] if column is None else [python_value(value) for value in column]


def _put(rows: list[Stats], place: Place, values: Sequence[object]) -> None:
    for row, value in zip(rows, values, strict=False):
        set_at(row, place, value)
