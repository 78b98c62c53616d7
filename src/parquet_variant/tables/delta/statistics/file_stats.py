"""Statistics of one data file, as the log's JSON (PROTOCOL.md, "Per-file Statistics").

Owns which columns get statistics, how values are spelled and rounded, and the JSON text. Leaves collecting metrics to
`tables.file_metrics`, the text of the bounds of Variants to `variant_stats`, and using statistics to `pruning`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa

from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import TableError
from parquet_variant.inference.statistics import TEXT_LENGTH, ValueBounds, lower_text, upper_text
from parquet_variant.tables.delta import z85
from parquet_variant.tables.delta.protocol.actions import parse_json
from parquet_variant.tables.file_metrics import (
    ColumnMetrics,
    FileMetrics,
    is_footer_counted,
    leaf_columns,
    physical_place,
)
from parquet_variant.tables.path_bounds import (
    bounds_array,
    bounds_from_bytes,
    bounds_to_bytes,
    complete_bounds,
    split_rows,
)
from parquet_variant.tables.schema import VOID, Place, PrimitiveType, StructType, TableType, leaves
from parquet_variant.types.path import VariantPath


def encode_bounds(bounds: Mapping[VariantPath, Variant]) -> str:
    """Return bounds as the log holds them in JSON.

    `bounds`: a primitive Variant for each path; the root's path is ``$``.
    Returns Z85 of metadata and value, padded with zero bytes to a multiple of four.

    >>> encode_bounds({VariantPath.parse("$.key"): Variant.from_python(7)})
    '5DI>qbWhTiwQbUe0S-o30T]ql'
    """
    return z85.encode(bounds_to_bytes(bounds))


def decode_bounds(text: str) -> dict[VariantPath, Variant]:
    """Return the bounds in a Z85 text, by path.

    Raises `TableError`: reason ``"bad-z85"`` or ``"bad-stats"`` if the text does not hold an object of primitive values
    by path.

    >>> bounds = decode_bounds("0S&u501fk+ze0(tB98CpzF6vU0rJl95HpNdvjbtatpi(cu0wW^cTu")
    >>> {str(path): bound.to_python() for path, bound in bounds.items()}
    {"$['a']": 'min-string', "$['b']['c']": 1}
    """
    return bounds_from_bytes(z85.decode(text))


def decode_bounds_array(texts: pa.Array) -> pa.StructArray:
    """Return a column of Z85 texts as `tables.path_bounds.bounds_array` does; unreadable texts become null."""
    try:
        blobs = z85.decode_array(texts)
    except TableError:
        return split_rows([_decoded(text) for text in texts.to_pylist()])
    return bounds_array(blobs)


def _decoded(text: str | None) -> bytes | None:
    try:
        return None if text is None else z85.decode(text)
    except TableError:
        return None


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
    """Return the leaf columns that get statistics, by physical names.

    These are the columns that ``delta.dataSkippingStatsColumns`` names, whole structs among them; without that
    property, the first ``delta.dataSkippingNumIndexedCols`` columns (32 unless set, -1 for all).

    `schema`: the table's columns without partition columns.
    `minimum`: how many of the first columns get statistics in any case.
    """
    ways = [way for way in leaves(schema) if way[-1].type != VOID]
    places = [physical_place(way) for way in ways]
    listed = configuration.get(_STATS_COLUMNS)
    if listed is not None:
        names = _column_names(listed)
        logical = [tuple(f.name.lower() for f in way) for way in ways]
        indexed_leaves = {
            index for index, place in enumerate(logical) if any(place[: len(name)] == name for name in names)
        }
        return frozenset({places[index] for index in indexed_leaves} | {*places[:minimum]})
    try:
        count = int(configuration.get(_INDEXED_COLUMNS, _DEFAULT_INDEXED))
    except ValueError:
        count = _DEFAULT_INDEXED
    return frozenset(places if count < 0 else places[: max(count, minimum)])


def _column_names(text: str) -> list[tuple[str, ...]]:
    """Return the names of a comma-separated list, split at dots; backticks quote names that hold commas or dots."""
    return [
        tuple((quoted or bare).strip().lower() for quoted, bare in _NAME_PART.findall(name))
        for name in _COLUMN_NAME.findall(text)
        if name.strip()
    ]


def stats_tree(metrics: FileMetrics, schema: StructType) -> Stats:
    """Return the statistics of a file as the log's tree of objects.

    `schema`: the columns of the file under physical names.
    """
    nulls: Stats = {}
    lower: Stats = {}
    upper: Stats = {}
    for place, kind in leaf_columns(schema):
        column = metrics.columns.get(place)
        if column is None:
            continue
        set_at(nulls, place, column.nulls)
        if not is_footer_counted(kind):
            for tree, bounds in zip((lower, upper), complete_bounds(column.paths), strict=True):
                set_at(tree, place, encode_bounds(bounds) if bounds else None)
        elif isinstance(kind, PrimitiveType) and column.lower is not None and column.upper is not None:
            set_at(lower, place, spelled_bound(python_value(column.lower), kind, up=False))
            set_at(upper, place, spelled_bound(python_value(column.upper), kind, up=True))
    return {
        "numRecords": metrics.rows, "minValues": lower, "maxValues": upper, "nullCount": nulls, "tightBounds": True
    }  # fmt: skip


def counted_metrics(stats: Stats, schema: StructType) -> FileMetrics:
    """Return the null counts of a file's statistics, and the paths of its Variants that have bounds (not the bounds).

    `schema`: the columns of the file under physical names.
    """
    columns: dict[Place, ColumnMetrics] = {}
    for place, kind in leaf_columns(schema):
        count = value_at(stats.get("nullCount"), place)
        paths: dict[VariantPath, ValueBounds] = {}
        if not is_footer_counted(kind):
            text = value_at(stats.get("minValues"), place)
            with suppress(TableError):
                paths = {} if text is None else dict.fromkeys(decode_bounds(str(text)), ValueBounds(None, None))
        columns[place] = ColumnMetrics(count if isinstance(count, int) else None, paths=paths)
    rows = stats.get("numRecords")
    return FileMetrics(rows if isinstance(rows, int) else 0, columns)


def with_columns(before: Stats, changed: Stats, columns: Iterable[str]) -> Stats:
    """Return the statistics of a file in which some columns, by physical names, were replaced.

    `before`: the statistics of the file before.
    `changed`: the statistics of the new columns.
    """
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
    """Return a bound as JSON holds it, never tighter than the value; None if the type has no spelling.

    `up`: whether the bound is an upper one, which is rounded up.
    """
    if not isinstance(kind, PrimitiveType) or (kind.name not in _BOUNDED and not kind.name.startswith("decimal")):
        return None
    if isinstance(value, str):
        return upper_text(value, TEXT_LENGTH) if up else lower_text(value, TEXT_LENGTH)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, datetime):
        return _spelled_time(value, up=up)
    if isinstance(value, date):
        return value.isoformat()
    return value if isinstance(value, (int, Decimal)) else None


def _spelled_time(value: datetime, *, up: bool) -> str | None:
    # All readers accept milliseconds; an upper bound is rounded up so that it stays one.
    rounded = value.replace(microsecond=value.microsecond // 1000 * 1000)
    try:
        if up and rounded != value:
            rounded += _MILLISECOND
    except OverflowError:
        return None
    zone = "" if rounded.tzinfo is None else "Z"
    if rounded.tzinfo is not None:
        rounded = rounded.astimezone(UTC).replace(tzinfo=None)
    return rounded.isoformat(timespec="milliseconds") + zone


def read_stats(text: str | None) -> Stats:
    """Return the statistics of a file as a tree of objects; damaged parts are left out, which means unknown."""
    try:
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
