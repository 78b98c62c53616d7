"""Statistics of files in a manifest's terms, and which files and manifests may hold a match.

Owns reading them: bounds and counts by field id, bounds of Variants by path, and the ranges of source values that
partition values stand for, which hides the partitioning from filters. Leaves the reasoning to `query.prune`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.kernels.arrow_buffers import Mask
from parquet_variant.query.predicate import Predicate, columns_of
from parquet_variant.query.selection import Selected
from parquet_variant.support import arrow_compute as pc
from parquet_variant.tables.iceberg.metadata.manifests import DataFile, ManifestFile
from parquet_variant.tables.iceberg.metadata.partitioning import PartitionField, PartitionSpec
from parquet_variant.tables.iceberg.metadata.schema import Schema
from parquet_variant.tables.iceberg.metadata.table_metadata import TableMetadata
from parquet_variant.tables.iceberg.metadata.transforms import SourceRange, Transform, transform_value
from parquet_variant.tables.iceberg.metadata.values import arrow_array, from_bytes
from parquet_variant.tables.path_bounds import bounds_array
from parquet_variant.tables.pruning import FileStatistics, double_bounds, may_match_files, path_statistics
from parquet_variant.tables.schema import VARIANT, Field, PrimitiveType, arrow_type, fields_at


@dataclass(frozen=True)
class BucketStatistics(FileStatistics):
    """Statistics of a column whose bucket is known in each file: it holds no value of another bucket."""

    buckets: tuple[tuple[Transform, PrimitiveType, tuple[int | None, ...]], ...] = ()

    def may_equal(self, literal: pa.Scalar) -> Any:
        """Return, for each file, whether any value may equal a literal."""
        answer = np.ones(self.files, dtype=bool)
        for transform, kind, numbers in self.buckets:
            try:
                bucket = transform_value(transform, literal.cast(arrow_type(kind)), kind)
            except (pa.ArrowException, ValueError, OverflowError):
                continue
            answer &= np.array([number is None or number == bucket for number in numbers], dtype=bool)
        return answer


@dataclass(frozen=True)
class QueryColumns:
    """The columns that a filter names: what each selects, and where the Variant column of paths is."""

    predicate: Predicate | None
    selection: Mapping[str, Selected]
    place: tuple[str, ...] | None

    def field_ids(self, schema: Schema) -> frozenset[int]:
        """Return the field ids whose metrics the filter can use."""
        ids = set()
        for name in [] if self.predicate is None else columns_of(self.predicate):
            f = self.field(self.selection[name], schema)
            if f is not None:
                ids.add(f.id)
        return frozenset(ids)

    def field(self, selected: Selected, schema: Schema) -> Field | None:
        """Return the field that a selected column has its values from."""
        if selected.path is not None:
            return None if self.place is None else fields_at(schema.struct, self.place)[-1]
        return schema.get(selected.stored_name)


def matching_by_partition(query: QueryColumns, schema: Schema, spec: PartitionSpec, files: Sequence[DataFile]) -> Mask:
    """Return which files may hold a match by their partition values, which are all of one spec."""
    return _matching(query, schema, len(files), _partition_source(spec, files))


def matching_by_metrics(query: QueryColumns, schema: Schema, files: Sequence[DataFile]) -> Mask:
    """Return which files may hold a match by their bounds and counts."""

    def statistics(f: Field, selected: Selected) -> FileStatistics:
        if selected.path is not None:
            return _path_statistics(f, selected, files)
        return column_statistics(f, files)

    return _matching(query, schema, len(files), statistics)


def matching_manifests(
    query: QueryColumns, schema: Schema, metadata: TableMetadata, manifests: Sequence[ManifestFile]
) -> Mask:
    """Return which manifests may list a file with a match, by the summaries of their partitions."""
    answer = np.ones(len(manifests), dtype=bool)
    for spec in metadata.specs.values():
        mine = [n for n, m in enumerate(manifests) if m.spec_id == spec.id and len(m.partitions) == len(spec.fields)]
        if mine and spec.fields:
            spec_manifests = [manifests[number] for number in mine]
            source = _summary_source(spec, spec_manifests)
            answer[mine] = _matching(query, schema, len(mine), source)
    return answer


def _matching(
    query: QueryColumns,
    schema: Schema,
    count: int,
    statistics: Callable[[Field, Selected], FileStatistics | None],
) -> Mask:
    summary: dict[str, FileStatistics] = {}
    if query.predicate is None:
        return np.ones(count, dtype=bool)
    for name in columns_of(query.predicate):
        selected = query.selection[name]
        f = query.field(selected, schema)
        if f is not None:
            result = statistics(f, selected)
            if result is not None:
                summary[name] = result
    return may_match_files(query.predicate, summary, count) if summary else np.ones(count, dtype=bool)


def column_bounds(
    query: QueryColumns, name: str, schema: Schema, files: Sequence[DataFile]
) -> tuple[pa.Array | None, pa.Array | None]:
    """Return the bounds of a column or path in each file, null or None where unknown."""
    selected = query.selection[name]
    f = query.field(selected, schema)
    if f is None:
        return None, None
    summary = _path_statistics(f, selected, files) if selected.path is not None else column_statistics(f, files)
    return summary.lower, summary.upper


# ---- bounds and counts


def column_statistics(f: Field, files: Sequence[DataFile]) -> FileStatistics:
    """Return the statistics of a column by its counts and bounds."""
    count = len(files)
    null, value = _nulls(f.id, files)
    if not isinstance(f.type, PrimitiveType) or f.type == VARIANT:
        return FileStatistics(count, may_be_null=null, may_be_value=value)
    lower, upper = (
        [_bound(bounds.get(f.id), f.type) for bounds in sides]
        for sides in ((file.lower_bounds for file in files), (file.upper_bounds for file in files))
    )
    if f.type.family not in ("boolean", "binary", "fixed", "uuid", "void", "geometry", "geography"):
        low, high = _arrow_bounds(lower, f.type), _arrow_bounds(upper, f.type)
    else:
        low = high = None
    nan: bool | Mask = True
    if f.type.family in ("float", "double"):
        nan = np.array([file.nan_value_counts.get(f.id) != 0 for file in files], dtype=bool)
    return FileStatistics(count, low, high, null, value, nan)


def _nulls(number: int, files: Sequence[DataFile]) -> tuple[Mask, Mask]:
    """Return whether a row may be null, and whether one may be anything else, in each file."""
    nulls = [file.null_value_counts.get(number) for file in files]
    null = np.array([count is None or count != 0 for count in nulls], dtype=bool)
    value = np.array(
        [count is None or count != file.record_count for count, file in zip(nulls, files, strict=True)], dtype=bool
    )
    return null, value


def _bound(data: bytes | None, kind: PrimitiveType) -> Any:
    return None if data is None else from_bytes(data, kind)


def _arrow_bounds(raws: Sequence[Any], kind: PrimitiveType) -> pa.Array | None:
    """Return bounds as an Arrow array, doubles for floats; None if all are unknown."""
    if all(raw is None for raw in raws):
        return None
    try:
        bounds = arrow_array(raws, kind)
    except (pa.ArrowException, OverflowError, ValueError, ArithmeticError):
        return None
    return double_bounds(bounds) if pa.types.is_floating(bounds.type) else bounds


def _path_statistics(f: Field, selected: Selected, files: Sequence[DataFile]) -> FileStatistics:
    _, value = _nulls(f.id, files)
    sides = []
    for bounds in ([file.lower_bounds.get(f.id) for file in files], [file.upper_bounds.get(f.id) for file in files]):
        if all(bound is None for bound in bounds):
            return FileStatistics(len(files), may_be_value=value)
        sides.append([VariantArray.from_storage(bounds_array(pa.array(bounds, pa.large_binary())))])
    return path_statistics(selected, sides[0], sides[1], len(files), value)


# ---- partition values


def _partition_source(
    spec: PartitionSpec, files: Sequence[DataFile]
) -> Callable[[Field, Selected], FileStatistics | None]:
    def statistics(f: Field, selected: Selected) -> FileStatistics | None:
        if selected.path is not None:
            return None
        columns = [
            (partition_field, [file.partition[number] for file in files])
            for number, partition_field in enumerate(spec.fields)
            if partition_field.source_id == f.id
        ]
        return _of_partitions(f, columns, len(files))

    return statistics


def _of_partitions(f: Field, columns: Sequence[tuple[PartitionField, list[Any]]], count: int) -> FileStatistics | None:
    """Return what the partition values of a column's fields say of it."""
    if not columns or not isinstance(f.type, PrimitiveType):
        return None
    summary = BucketStatistics(count)
    for partition_field, raws in columns:
        transform = partition_field.transform
        if not transform.is_known or transform.name == "void":
            continue
        null = np.array([raw is None for raw in raws], dtype=bool)
        summary = replace(summary, may_be_null=summary.may_be_null & null, may_be_value=summary.may_be_value & ~null)
        if transform.name == "bucket":
            summary = replace(summary, buckets=(*summary.buckets, (transform, f.type, tuple(raws))))
            continue
        ranges = [SourceRange() if raw is None else transform.source_range(raw, f.type) for raw in raws]
        summary = _narrowed(summary, ranges, f.type, transform)
    return summary


def _narrowed(
    summary: BucketStatistics, ranges: Sequence[SourceRange], kind: PrimitiveType, transform: Transform
) -> BucketStatistics:
    if kind.family in ("boolean", "binary", "fixed", "uuid"):
        return summary
    lower = _arrow_bounds([_clipped(r.lower, kind) for r in ranges], kind)
    upper = _arrow_bounds([_clipped(r.upper, kind) for r in ranges], kind)
    if kind.family in ("float", "double") and transform.name == "identity":
        values = [r.lower for r in ranges]
        summary = replace(summary, may_be_nan=np.array([v is None or v != v for v in values], dtype=bool))
    both = [(summary.lower, lower, "max_element_wise"), (summary.upper, upper, "min_element_wise")]
    low, high = (new if old is None else old if new is None else _tighter(old, new, name) for old, new, name in both)
    return replace(summary, lower=low, upper=high)


def _tighter(old: pa.Array, new: pa.Array, function: str) -> pa.Array:
    """Return the tighter one of two bounds of each file."""
    if not pa.types.is_timestamp(old.type):
        return pc.call_function(function, [old, new])
    # There is no kernel for timestamps with a time zone.
    numbers = [bound.cast(pa.int64()) for bound in (old, new)]
    return pc.call_function(function, numbers).cast(old.type)


def _clipped(raw: Any, kind: PrimitiveType) -> Any:
    """Return a raw value, or None for one outside of the type's range, which no bound has to exclude."""
    if isinstance(raw, int) and not isinstance(raw, bool) and kind.family != "decimal":
        bits = 31 if kind.family in ("integer", "date") else 63
        return raw if -(2**bits) <= raw < 2**bits else None
    return raw


def _summary_source(
    spec: PartitionSpec, manifests: Sequence[ManifestFile]
) -> Callable[[Field, Selected], FileStatistics | None]:
    def statistics(f: Field, selected: Selected) -> FileStatistics | None:
        if selected.path is not None or not isinstance(f.type, PrimitiveType):
            return None
        summary: FileStatistics | None = None
        for number, partition_field in enumerate(spec.fields):
            if partition_field.source_id == f.id and partition_field.transform.is_known:
                summary = _of_summaries(f.type, partition_field, [m.partitions[number] for m in manifests]) or summary
        return summary

    return statistics


def _of_summaries(kind: PrimitiveType, f: PartitionField, summaries: Sequence[Any]) -> FileStatistics | None:
    """Return what the summaries of one partition field say of its source column in each manifest."""
    transform = f.transform
    if transform.name in ("void", "bucket") or kind.family in ("boolean", "binary", "fixed", "uuid"):
        return None
    result = transform.result_type(kind)
    bounds = [(_bound(s.lower_bound, result), _bound(s.upper_bound, result)) for s in summaries]
    ranges = [
        tuple(SourceRange() if raw is None else transform.source_range(raw, kind) for raw in sides) for sides in bounds
    ]
    null = np.array([s.contains_null for s in summaries], dtype=bool)
    # Without bounds all partition values are null or NaN; whether they are NaN may be unknown.
    value = np.array([s.lower_bound is not None or s.contains_nan is not False for s in summaries], dtype=bool)
    nan = np.array([s.contains_nan is not False for s in summaries], dtype=bool)
    # If the largest partition value has no known range, it may stand for the smallest values, which wrapped around.
    lower = _arrow_bounds([None if high.upper is None else _clipped(low.lower, kind) for low, high in ranges], kind)
    upper = _arrow_bounds([_clipped(high.upper, kind) for _, high in ranges], kind)
    return FileStatistics(len(summaries), lower, upper, null, value, nan)
