"""Metrics of a data file: counts of nulls and bounds of its columns, and bounds of the paths of its Variants.

Owns collecting them from the rows while they are written and from the footer of the finished file. Leaves the bounds of
Variants to `inference.statistics`, and the spelling of metrics in a log or manifest to the formats.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import field
from functools import partial

import pyarrow as pa

from parquet_variant.arrays.parts import column_at
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.files.parquet.writing.writer import FileInfo
from parquet_variant.inference.statistics import (
    LeafStatistics,
    ValueBounds,
    array_statistics,
    residual_objects,
    shredded_bounds,
    typed_place,
    uniform_schema,
)
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.ops.shred_variant import shred_variant
from parquet_variant.support.records import Record
from parquet_variant.tables import schema as shared
from parquet_variant.types.path import VariantPath


class ColumnMetrics(Record):
    """The metrics of one leaf column: a column or field of structs that is not a struct itself.

    `nulls`, `lower` and `upper` are None if unknown. `paths` holds the bounds of a Variant by path.
    """

    nulls: int | None = None
    lower: pa.Scalar | None = None
    upper: pa.Scalar | None = None
    paths: Mapping[VariantPath, ValueBounds] = field(default_factory=dict)


class FileMetrics(Record):
    """The metrics of one data file: its number of rows, and its leaf columns by physical names, in order."""

    rows: int
    columns: Mapping[shared.Place, ColumnMetrics]


class MetricsCollector:
    """Collects the metrics of one file: first from its rows, then from its footer.

    `schema`: the columns of the file under physical names; `places`: the leaf columns that get metrics.
    """

    def __init__(self, schema: shared.StructType, places: Collection[shared.Place], *, variant_bounds: bool) -> None:
        self._leaves = [(place, kind) for place, kind in leaf_columns(schema) if place in places]
        # The footer does not count the nulls of Variants, lists and maps.
        self._nulls = {place: 0 for place, kind in self._leaves if not is_footer_counted(kind)}
        self._variants = list(shared.reachable_variants(schema)) if variant_bounds else []
        self._columns: dict[shared.Place, _VariantColumn] = {}

    def add_rows(self, table: pa.Table) -> None:
        """Count rows that are about to be written, in the columns of the file."""
        self._count_nulls(table)
        for place in self._variants:
            for chunk in column_at(table, place).chunks:
                self._columns.setdefault(place, _VariantColumn()).add_rows(VariantArray(chunk))

    def metrics(self, info: FileInfo) -> FileMetrics:
        """Return the metrics of the written file."""
        bounds = {place: column.bounds(place, partial(footer_leaf, info)) for place, column in self._columns.items()}
        return footer_metrics(info, self._leaves, self._nulls, bounds)

    def metrics_without_rows(self, before: FileMetrics, deleted: pa.Table, info: FileInfo) -> FileMetrics:
        """Return the metrics of a file that was rewritten without some rows.

        `before`: the metrics with these rows; of Variants, the paths that have bounds are enough.
        `deleted`: the deleted rows, in the columns that hold Variants, lists and maps.
        """
        self._count_nulls(deleted)
        previous = {place: before.columns.get(place, ColumnMetrics()) for place in {*self._nulls, *self._variants}}
        counts = {place: (previous[place].nulls, count) for place, count in self._nulls.items()}
        nulls = {place: old - count for place, (old, count) in counts.items() if old is not None}
        bounds: dict[shared.Place, dict[VariantPath, ValueBounds]] = {}
        for place in self._variants:
            new_bounds = {path: path_bounds(info, place, path) for path in previous[place].paths}
            bounds[place] = {path: bound for path, bound in new_bounds.items() if bound is not None}
        return footer_metrics(info, self._leaves, nulls, bounds)

    def _count_nulls(self, table: pa.Table) -> None:
        for place in self._nulls:
            self._nulls[place] += column_at(table, place).null_count


def footer_metrics(
    info: FileInfo,
    columns: Iterable[tuple[shared.Place, shared.TableType]],
    nulls: Mapping[shared.Place, int],
    variants: Mapping[shared.Place, Mapping[VariantPath, ValueBounds]],
) -> FileMetrics:
    """Return the metrics of leaf columns that the footer of a file states, completed by counts and bounds by path."""
    metrics: dict[shared.Place, ColumnMetrics] = {}
    for place, kind in columns:
        if not is_footer_counted(kind):
            metrics[place] = ColumnMetrics(nulls.get(place), paths=variants.get(place, {}))
        elif (leaf := footer_leaf(info, place)) is not None:
            is_bounded = leaf.lower is not None and leaf.upper is not None
            lower, upper = (leaf.lower, leaf.upper) if is_bounded else (None, None)
            metrics[place] = ColumnMetrics(leaf.nulls, lower, upper)
    return FileMetrics(info.rows, metrics)


def leaf_columns(schema: shared.StructType) -> list[tuple[shared.Place, shared.TableType]]:
    """Return the columns that may have metrics by physical names, in order: leaves of structs, whole lists and maps."""
    return [(physical_place(fields), fields[-1].type) for fields in shared.leaves(schema)]


def physical_place(fields: tuple[shared.Field, ...]) -> shared.Place:
    """Return the physical names of the fields on the way to a leaf column."""
    return tuple(field.physical_name for field in fields)


def is_footer_counted(kind: shared.TableType) -> bool:
    """Return whether a file's footer states how many values of a leaf column are null."""
    return kind != shared.VARIANT and not isinstance(kind, (shared.ArrayType, shared.MapType))


def path_bounds(info: FileInfo, column: shared.Place, path: VariantPath) -> ValueBounds | None:
    """Return the bounds of a path of object keys in a shredded Variant of a written file; None if they are unknown."""
    leaf_statistics = info.statistics.get((*column, *typed_place(path), "typed_value"))
    if leaf_statistics is None or leaf_statistics.lower is None:
        return None
    schema = ShreddingSchema.primitive(leaf_statistics.lower.type)
    for name in reversed(path.segments):
        schema = ShreddingSchema.object({str(name): schema})
    return shredded_bounds(schema, lambda leaf: footer_leaf(info, (*column, *leaf))).get(path)


def footer_leaf(info: FileInfo, place: shared.Place) -> LeafStatistics | None:
    """Return the footer's statistics of a leaf column, without bounds where these may not cover a NaN."""
    statistics = info.statistics.get(place)
    if statistics is None or statistics.lower is None:
        return statistics
    if info.may_hold_nan and pa.types.is_floating(statistics.lower.type):
        return LeafStatistics(statistics.values, statistics.nulls)
    return statistics


class _VariantColumn:
    """The statistics of one Variant column of a file: from the footer if it is shredded, else from its values."""

    def __init__(self) -> None:
        self.schema: ShreddingSchema | None = None
        self.residual_paths: frozenset[VariantPath] = frozenset()
        self.value_statistics: dict[shared.Place, LeafStatistics] | None = None

    def add_rows(self, array: VariantArray) -> None:
        """Add the values of rows that are about to be written."""
        if array.is_shredded:
            self.schema = array.schema
            self.residual_paths |= residual_objects(array)
            return
        if self.value_statistics is None:
            self.schema, self.value_statistics = uniform_schema(array), {}
        if self.schema is None:
            return
        leaf_statistics = array_statistics(shred_variant(array, self.schema))
        for path, node in self.schema.walk():
            if node.type is None or path.has_wildcard:
                continue
            place = typed_place(path)
            for leaf in ((*place, "typed_value"), (*place, "value")):
                new = leaf_statistics(leaf)
                if new is not None:
                    old = self.value_statistics.get(leaf)
                    self.value_statistics[leaf] = new if old is None else old.merge(new)

    def bounds(
        self, place: shared.Place, leaf: Callable[[shared.Place], LeafStatistics | None]
    ) -> dict[VariantPath, ValueBounds]:
        """Return the bounds by path; `leaf` returns the footer's statistics of a leaf column."""
        if self.schema is None:
            return {}
        if self.value_statistics is not None:
            return shredded_bounds(self.schema, self.value_statistics.get)
        return shredded_bounds(self.schema, lambda column: leaf((*place, *column)), unsafe=self.residual_paths)
