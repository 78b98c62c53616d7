"""Statistics of one data file, as the log's JSON (PROTOCOL.md, "Per-file Statistics").

Owns which columns get them, how ordinary values are spelled and rounded, and the text. Leaves gathering them to
`writing.stats_collector`, the text of variants' bounds to `variant_stats`, and using them to `pruning`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa

from parquet_variant import arrow_compute as pc
from parquet_variant.delta.protocol.actions import parse_json
from parquet_variant.shredding.statistics import TEXT_LENGTH, lower_text, upper_text
from parquet_variant.tables.schema import VOID, Field, PrimitiveType, StructType, TableType, leaves

# A file's statistics, or a part of them: values and such trees by name.
Stats: TypeAlias = "dict[str, Any]"
TREES = ("minValues", "maxValues", "nullCount")
_INDEXED_COLUMNS = "delta.dataSkippingNumIndexedCols"
_STATS_COLUMNS = "delta.dataSkippingStatsColumns"
_COLUMN_NAME = re.compile(r"(?:`[^`]*`|[^,`])+")
_NAME_PART = re.compile(r"`([^`]*)`|([^.`]+)")
_DEFAULT_INDEXED = 32
_MILLISECOND = timedelta(milliseconds=1)
# Types whose order every reader agrees on.
_BOUNDED = {"byte", "short", "integer", "long", "float", "double", "date", "timestamp", "timestamp_ntz", "string"}


def indexed_places(schema: StructType, configuration: Mapping[str, str], least: int = 0) -> frozenset[tuple[str, ...]]:
    """Which leaf columns get statistics, by physical names.

    Those that ``delta.dataSkippingStatsColumns`` names, whole structs among them; else the first
    ``delta.dataSkippingNumIndexedCols``, 32 unless set, -1 for all.

    `schema`: the table's columns, without partition columns.
    `least`: how many of the first get them in any case.
    """
    ways = [way for way in leaves(schema) if way[-1].type != VOID]
    places = [_physical(way) for way in ways]
    named = configuration.get(_STATS_COLUMNS)
    if named is not None:
        names = _column_names(named)
        logical = [tuple(f.name.lower() for f in way) for way in ways]
        chosen = {at for at, way in enumerate(logical) if any(way[: len(each)] == each for each in names)}
        return frozenset({places[at] for at in chosen} | {*places[:least]})
    try:
        first = int(configuration.get(_INDEXED_COLUMNS, _DEFAULT_INDEXED))
    except ValueError:
        first = _DEFAULT_INDEXED
    return frozenset(places if first < 0 else places[: max(first, least)])


def _physical(way: tuple[Field, ...]) -> tuple[str, ...]:
    return tuple(f.physical_name for f in way)


def _column_names(text: str) -> list[tuple[str, ...]]:
    """Names with commas between them, dots inside, and backticks around what holds either."""
    return [
        tuple((quoted or bare).strip().lower() for quoted, bare in _NAME_PART.findall(each))
        for each in _COLUMN_NAME.findall(text)
        if each.strip()
    ]


def leaf_columns(schema: StructType) -> list[tuple[tuple[str, ...], TableType]]:
    """The columns that may have statistics by physical names, in order: leaves of structs; lists and maps whole."""
    return [(_physical(way), way[-1].type) for way in leaves(schema)]


def column_at(table: pa.Table, place: tuple[str, ...]) -> pa.ChunkedArray:
    """The column at a place in structs, null where one of these is."""
    column = table[place[0]]
    for name in place[1:]:
        column = pc.struct_field(column, name)
    return column


def set_at(tree: Stats, place: tuple[str, ...], value: Any) -> None:
    """Put a value into a tree of objects; None is left out."""
    if value is None:
        return
    for name in place[:-1]:
        tree = tree.setdefault(name, {})
    tree[place[-1]] = value


def value_at(tree: Any, place: tuple[str, ...]) -> Any:
    """What is in a tree of objects; None if there is nothing."""
    for name in place:
        tree = tree.get(name) if isinstance(tree, dict) else None
    return tree


def python_value(scalar: pa.Scalar) -> Any:
    """The Python value; None for a date or time that Python has none for."""
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        return None


def spelled_bound(value: Any, kind: PrimitiveType, *, up: bool) -> Any:
    """A bound as JSON holds it, never tighter than the value; None if there is no such spelling."""
    if kind.name not in _BOUNDED and not kind.name.startswith("decimal"):
        return None
    if isinstance(value, str):
        return upper_text(value, TEXT_LENGTH) if up else lower_text(value, TEXT_LENGTH)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, datetime):
        return _instant(value, up=up)
    if isinstance(value, date):
        return value.isoformat()
    return value if isinstance(value, (int, Decimal)) else None


def _instant(value: datetime, *, up: bool) -> str | None:
    # Milliseconds are what every reader takes; the maximum is rounded up so that it stays one.
    whole = value.replace(microsecond=value.microsecond // 1000 * 1000)
    try:
        if up and whole != value:
            whole += _MILLISECOND
    except OverflowError:
        return None
    zone = "" if whole.tzinfo is None else "Z"
    if whole.tzinfo is not None:
        whole = whole.astimezone(UTC).replace(tzinfo=None)
    return whole.isoformat(timespec="milliseconds") + zone


def read_stats(text: str | None) -> Stats:
    """The statistics of a file as a tree of objects; what is damaged is left out, since it tells nothing."""
    try:
        stats = parse_json(text, parse_float=Decimal) if text else {}
    except ValueError:
        return {}
    known = stats.items() if isinstance(stats, dict) else ()
    return {name: each for name, each in known if isinstance(each, dict) or name not in TREES}


def dump_stats(value: Any) -> str:
    """JSON text; decimals as exact numbers, which the standard module cannot write."""
    if isinstance(value, dict):
        inner = ",".join(f"{json.dumps(k, ensure_ascii=False)}:{dump_stats(v)}" for k, v in value.items())
        return "{" + inner + "}"
    if isinstance(value, Decimal):
        return format(value, "f")
    return json.dumps(value, ensure_ascii=False)
