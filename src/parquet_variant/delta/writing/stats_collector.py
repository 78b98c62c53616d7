"""What is told of a data file in the log: gathered from its rows while they are written, and from its footer.

Owns putting the two together. Leaves the bounds of variants to `shredding.statistics`, and the JSON to
`statistics.file_stats`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial

import pyarrow as pa

from parquet_variant.array.variant_array import VariantArray
from parquet_variant.delta.protocol.schema import StructType, reachable_variants
from parquet_variant.delta.statistics.file_stats import FileStats, Stats, column_at, value_at
from parquet_variant.delta.statistics.variant_stats import decode_bounds
from parquet_variant.errors import DeltaError
from parquet_variant.functions.storage.shred_variant import shred_variant
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

Place = tuple[str, ...]
# Bounds of every path would make the log larger than small files.
_MAX_PATHS = 100


class StatsCollector:
    """Sees the rows of a file, in columns as files have them, and makes its statistics.

    `places` are the leaf columns that get some; `variant_stats` says whether Variants get bounds.
    """

    def __init__(self, schema: StructType, places: frozenset[Place], *, variant_stats: bool) -> None:
        self._stats = FileStats(schema, places)
        # Variants outside of lists and maps: those that have one value a row.
        self._variants = list(reachable_variants(schema)) if variant_stats else []
        self._columns: dict[Place, _VariantColumn] = {}

    def see(self, table: pa.Table) -> None:
        """Take note of rows that are going to be written."""
        self._stats.see(table)
        for place in self._variants:
            for chunk in column_at(table, place).chunks:
                self._columns.setdefault(place, _VariantColumn()).see(VariantArray.from_storage(chunk))

    def stats(self, info: FileInfo) -> Stats:
        """The statistics of the file that was written."""
        bounds = {place: column.bounds(place, partial(_leaf, info)) for place, column in self._columns.items()}
        return self._stats.build(info.rows, info.statistics.get, bounds, hidden_nan=info.may_hold_nan)

    def stats_without(self, before: Stats, gone: pa.Table, info: FileInfo) -> Stats:
        """The statistics of a file that was written anew without some rows, from those `before`.

        `gone` has the rows that went, in the columns with Variants, lists and maps; `info` is the file as it is.
        """
        self._stats.count_without(before.get("nullCount"), gone)
        bounds: dict[Place, dict[VariantPath, Bounds]] = {}
        for place in self._variants:
            with suppress(DeltaError):
                text = value_at(before.get("minValues"), place)
                paths = {} if text is None else decode_bounds(str(text))
                known = {path: path_bounds(info, place, path) for path in paths}
                bounds[place] = {path: each for path, each in known.items() if each is not None}
        return self._stats.build(info.rows, info.statistics.get, bounds, hidden_nan=info.may_hold_nan)


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
