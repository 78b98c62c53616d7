"""What is told of a data file in the log: gathered from its rows while they are written, and from its footer.

Owns putting the two together in the tree of counts and bounds. Leaves the bounds of variants to `shredding.statistics`,
and the spelling of others to `statistics.file_stats`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial

import pyarrow as pa

from parquet_variant.array.variant_array import VariantArray
from parquet_variant.delta.statistics.file_stats import (
    Stats,
    column_at,
    leaf_columns,
    python_value,
    set_at,
    spelled_bound,
    value_at,
)
from parquet_variant.delta.statistics.variant_stats import decode_bounds, encode_bounds
from parquet_variant.errors import TableError
from parquet_variant.functions.shred_variant import shred_variant
from parquet_variant.parquet.writing.writer import FileInfo
from parquet_variant.path import VariantPath
from parquet_variant.schema.shredding_schema import ShreddingSchema
from parquet_variant.shredding.leaf_statistics import LeafStatistics
from parquet_variant.shredding.statistics import (
    Bounds,
    array_statistics,
    residual_objects,
    shredded_bounds,
    uniform_schema,
)
from parquet_variant.tables.schema import (
    VARIANT,
    ArrayType,
    MapType,
    PrimitiveType,
    StructType,
    TableType,
    reachable_variants,
)

Place = tuple[str, ...]
# Bounds of every path would make the log larger than small files.
_MAX_PATHS = 100


class StatsCollector:
    """Sees the rows of a file, in columns as files have them, and makes its statistics.

    `places` are the leaf columns that get some; `variant_stats` says whether Variants get bounds.
    """

    def __init__(self, schema: StructType, places: frozenset[Place], *, variant_stats: bool) -> None:
        self._leaves = [leaf for leaf in leaf_columns(schema) if leaf[0] in places]
        # What the footer does not tell: nulls of variants, lists and maps.
        self._nulls = {place: 0 for place, kind in self._leaves if not _is_plain(kind)}
        # Variants outside of lists and maps: those that have one value a row.
        self._variants = list(reachable_variants(schema)) if variant_stats else []
        self._columns: dict[Place, _VariantColumn] = {}

    def see(self, table: pa.Table) -> None:
        """Take note of rows that are going to be written."""
        self._count(table)
        for place in self._variants:
            for chunk in column_at(table, place).chunks:
                self._columns.setdefault(place, _VariantColumn()).see(VariantArray.from_storage(chunk))

    def stats(self, info: FileInfo) -> Stats:
        """The statistics of the file that was written."""
        bounds = {place: column.bounds(place, partial(_leaf, info)) for place, column in self._columns.items()}
        return self._tree(info, self._nulls, bounds)

    def stats_without(self, before: Stats, gone: pa.Table, info: FileInfo) -> Stats:
        """The statistics of a file that was written anew without some rows, from those `before`.

        `gone` has the rows that went, in the columns with Variants, lists and maps; `info` is the file as it is.
        """
        self._count(gone)
        counts = {place: value_at(before.get("nullCount"), place) for place in self._nulls}
        nulls = {place: count - self._nulls[place] for place, count in counts.items() if isinstance(count, int)}
        bounds: dict[Place, dict[VariantPath, Bounds]] = {}
        for place in self._variants:
            with suppress(TableError):
                text = value_at(before.get("minValues"), place)
                paths = {} if text is None else decode_bounds(str(text))
                known = {path: path_bounds(info, place, path) for path in paths}
                bounds[place] = {path: each for path, each in known.items() if each is not None}
        return self._tree(info, nulls, bounds)

    def _count(self, table: pa.Table) -> None:
        for place in self._nulls:
            self._nulls[place] += column_at(table, place).null_count

    def _tree(
        self, info: FileInfo, nulls: Mapping[Place, int], variants: Mapping[Place, Mapping[VariantPath, Bounds]]
    ) -> Stats:
        counts: Stats = {}
        low: Stats = {}
        high: Stats = {}
        for place, kind in self._leaves:
            if not _is_plain(kind):
                set_at(counts, place, nulls.get(place))
                bounds = variants.get(place, {})
                for tree, side in ((low, "lower"), (high, "upper")):
                    known = {path: bound for path, each in bounds.items() if (bound := getattr(each, side)) is not None}
                    set_at(tree, place, encode_bounds(known) if known else None)
            elif (leaf := _leaf(info, place)) is not None:
                set_at(counts, place, leaf.nulls)
                if isinstance(kind, PrimitiveType) and leaf.lower is not None and leaf.upper is not None:
                    set_at(low, place, spelled_bound(python_value(leaf.lower), kind, up=False))
                    set_at(high, place, spelled_bound(python_value(leaf.upper), kind, up=True))
        return {"numRecords": info.rows, "minValues": low, "maxValues": high, "nullCount": counts, "tightBounds": True}


def _is_plain(kind: TableType) -> bool:
    return kind != VARIANT and not isinstance(kind, (ArrayType, MapType))


def path_bounds(info: FileInfo, column: Place, path: VariantPath) -> Bounds | None:
    """The bounds of a path, of names only, of a shredded Variant in a file that was written, if it may have some."""
    place = _typed_place(path)
    known = info.statistics.get((*column, *place, "typed_value"))
    if known is None or known.lower is None:
        return None
    schema = ShreddingSchema.primitive(known.lower.type)
    for name in reversed(path.segments):
        schema = ShreddingSchema.object({str(name): schema})
    return shredded_bounds(schema, lambda leaf: _leaf(info, (*column, *leaf))).get(path)


def _typed_place(path: VariantPath) -> Place:
    return tuple(part for name in path.segments for part in ("typed_value", str(name)))


def _leaf(info: FileInfo, place: Place) -> LeafStatistics | None:
    """What the footer tells of a leaf column; no bounds where a NaN may be hidden."""
    statistics = info.statistics.get(place)
    if statistics is None or statistics.lower is None:
        return statistics
    if info.may_hold_nan and pa.types.is_floating(statistics.lower.type):
        return LeafStatistics(statistics.values, statistics.nulls)
    return statistics


class _VariantColumn:
    """What is known of one variant column of a file: from the footer if it is shredded, else from its values."""

    def __init__(self) -> None:
        self.schema: ShreddingSchema | None = None
        self.unsafe: frozenset[VariantPath] = frozenset()
        self.seen: dict[Place, LeafStatistics] | None = None
        self._first = True

    def see(self, array: VariantArray) -> None:
        """Take note of rows that are going to be written."""
        if array.is_shredded:
            self.schema = array.schema
            self.unsafe |= residual_objects(array)
            return
        if self._first:
            self._first = False
            self.schema = uniform_schema(array, _MAX_PATHS)
            self.seen = {}
        if self.schema is None or self.seen is None:
            return
        leaf_statistics = array_statistics(shred_variant(array, self.schema))
        for path, node in self.schema.walk():
            if node.type is None or path.has_wildcard:
                continue
            place = _typed_place(path)
            for leaf in ((*place, "typed_value"), (*place, "value")):
                new = leaf_statistics(leaf)
                if new is not None:
                    old = self.seen.get(leaf)
                    self.seen[leaf] = new if old is None else old.merge(new)

    def bounds(self, place: Place, leaf: Callable[[Place], LeafStatistics | None]) -> dict[VariantPath, Bounds]:
        """The bounds by path; `leaf` gives what the footer says of a leaf column."""
        if self.schema is None:
            return {}
        if self.seen is not None:
            return shredded_bounds(self.schema, self.seen.get, limit=_MAX_PATHS)
        return shredded_bounds(self.schema, lambda p: leaf((*place, *p)), unsafe=self.unsafe, limit=_MAX_PATHS)
