"""Statistics of one data file, as the log's JSON (PROTOCOL.md, "Per-file Statistics").

Owns which columns get them, how ordinary values are spelled and rounded, and the tree of counts and bounds. Leaves the
bounds of variants to `shredding.statistics`, their text to `variant_stats`, and using them to `pruning`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa

from parquet_variant import arrow_compute as pc
from parquet_variant.delta.protocol.actions import parse_json
from parquet_variant.delta.protocol.schema import (
    VARIANT,
    VOID,
    ArrayType,
    DeltaType,
    Field,
    MapType,
    PrimitiveType,
    StructType,
    leaves,
)
from parquet_variant.delta.statistics.variant_stats import encode_bounds
from parquet_variant.encoding.variant import Variant
from parquet_variant.path import VariantPath
from parquet_variant.shredding.leaf_statistics import LeafStatistics
from parquet_variant.shredding.statistics import TEXT_LENGTH, Bounds, lower_text, upper_text

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


@dataclass
class FileStats:
    """Collects what the footer does not tell (nulls of variants, lists and maps) and builds the JSON."""

    schema: StructType  # The columns of the data file, without partition columns.
    places: frozenset[tuple[str, ...]]  # The leaf columns that get statistics.
    _nulls: dict[tuple[str, ...], int] = field(default_factory=dict)
    _unknown: frozenset[tuple[str, ...]] = frozenset()

    def see(self, table: pa.Table) -> None:
        """Count the nulls of variants, lists and maps in rows that are going to be written."""
        for place, kind in self._indexed():
            if kind == VARIANT or isinstance(kind, (ArrayType, MapType)):
                self._nulls[place] = self._nulls.get(place, 0) + column_at(table, place).null_count

    def count_without(self, before: Stats | None, gone: pa.Table) -> None:
        """Take the nulls of a file, less those of rows that went."""
        self.see(gone)
        counts = {place: value_at(before, place) for place in self._nulls}
        self._nulls = {place: n - self._nulls[place] for place, n in counts.items() if isinstance(n, int)}
        self._unknown = frozenset(counts) - frozenset(self._nulls)

    def build(
        self,
        rows: int,
        leaf: Callable[[tuple[str, ...]], LeafStatistics | None],
        variants: Mapping[tuple[str, ...], Mapping[VariantPath, Bounds]],
        *,
        hidden_nan: bool,
    ) -> Stats:
        """The statistics of a file.

        `leaf`: what the file says of a leaf column, by schema path.
        `variants`: the bounds of every variant column that has some.
        `hidden_nan`: whether float columns may hold NaN.
        """
        nulls: Stats = {}
        low: Stats = {}
        high: Stats = {}
        for place, kind in self._indexed():
            if kind == VARIANT or isinstance(kind, (ArrayType, MapType)):
                set_at(nulls, place, None if place in self._unknown else self._nulls.get(place, 0))
                bounds = variants.get(place, {})
                _set_variant(low, place, {p: b.lower for p, b in bounds.items()})
                _set_variant(high, place, {p: b.upper for p, b in bounds.items()})
                continue
            known = leaf(place)
            if known is None:
                continue
            if known.nulls is not None:
                set_at(nulls, place, known.nulls)
            if isinstance(kind, PrimitiveType) and known.lower is not None and known.upper is not None:
                if hidden_nan and kind.name in ("float", "double"):
                    continue
                set_at(low, place, spelled_bound(python_value(known.lower), kind, up=False))
                set_at(high, place, spelled_bound(python_value(known.upper), kind, up=True))
        return {"numRecords": rows, "minValues": low, "maxValues": high, "nullCount": nulls, "tightBounds": True}

    def _indexed(self) -> Iterator[tuple[tuple[str, ...], DeltaType]]:
        return (leaf for leaf in leaf_columns(self.schema) if leaf[0] in self.places)


def leaf_columns(schema: StructType) -> list[tuple[tuple[str, ...], DeltaType]]:
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


def _set_variant(tree: Stats, place: tuple[str, ...], bounds: Mapping[VariantPath, Variant | None]) -> None:
    known = {path: bound for path, bound in bounds.items() if bound is not None}
    if known:
        set_at(tree, place, encode_bounds(known))


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
