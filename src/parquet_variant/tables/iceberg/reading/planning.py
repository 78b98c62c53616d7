"""Choosing the data files of a query: manifests by summaries, then files by partition values, then by metrics.

Owns `plan_files` and the statistics that it needs: bounds and counts by field id, bounds of Variants by path, and the
ranges of source values that partition values stand for, which hides the partitioning from filters. A table of many
files is planned one manifest at a time; memory holds only files that may match. Leaves the reasoning to `query.prune`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import compress, islice
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.files.parquet.format.files import ParquetSource
from parquet_variant.kernels.arrow_buffers import Mask, from_bytes
from parquet_variant.query.predicate import columns_of
from parquet_variant.query.selection import Selected
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.support.records import Record
from parquet_variant.tables import pruning
from parquet_variant.tables.iceberg.locations import normal_location
from parquet_variant.tables.iceberg.metadata import partitioning
from parquet_variant.tables.iceberg.metadata import schema as schemas
from parquet_variant.tables.iceberg.metadata.manifests import DataFile, FieldSummary, ManifestFile
from parquet_variant.tables.iceberg.metadata.schema import Schema, arrow_array
from parquet_variant.tables.iceberg.reading.snapshot import DeleteIndex, Snapshot, TableFile
from parquet_variant.tables.pruning import FileStatistics, bounds_array
from parquet_variant.tables.row_input import spread
from parquet_variant.tables.schema import VARIANT, Field, PrimitiveType, StructType, arrow_type, fields_at
from parquet_variant.tables.table_scan import TableScan

_UNORDERED = {"boolean", "binary", "fixed", "uuid", "void", "geometry", "geography"}


class BucketStatistics(FileStatistics):
    """Statistics of a column whose bucket is known in each file: it holds no value of another bucket."""

    buckets: tuple[tuple[partitioning.Transform, PrimitiveType, tuple[int | None, ...]], ...] = ()

    def may_equal(self, literal: pa.Scalar) -> Any:
        """Return, for each file, whether any value may equal a literal."""
        answer = np.ones(self.files, dtype=bool)
        for transform, kind, numbers in self.buckets:
            try:
                value = literal.cast(arrow_type(kind))
                array = pa.repeat(value.value if isinstance(value, pa.ExtensionScalar) else value, 1)
                bucket = transform.apply(array, kind)[0].as_py()
            except (pa.ArrowException, ValueError, OverflowError):
                continue
            answer &= np.array([number is None or number == bucket for number in numbers], dtype=bool)
        return answer


# Return the statistics of a field in each file or manifest; None if they have no statistics.
_OnField: TypeAlias = "Callable[[Field, Selected], FileStatistics | None]"


def field_ids(query: TableScan[Any]) -> frozenset[int]:
    """Return the field ids whose metrics the filter of a query can use."""
    fields = (_field(query, selected) for selected in _filtered(query).values())
    return frozenset(f.id for f in fields if f is not None)


def _filtered(query: TableScan[Any]) -> dict[str, Selected]:
    """Return the columns that the filter of a query names."""
    names = set() if query.predicate is None else columns_of(query.predicate)
    return {column.name: column for column in query.question.columns if column.name in names}


def _field(query: TableScan[Any], selected: Selected) -> Field | None:
    """Return the field that a selected column has its values from."""
    columns: StructType = query.current.struct
    if selected.path is not None:
        return fields_at(columns, query.place_of(selected))[-1]
    return columns.get(selected.stored_name)


def _matching(query: TableScan[Any], count: int, statistics: _OnField) -> Mask:
    """Return which of some files or manifests may hold a match."""
    by_name: dict[str, FileStatistics] = {}
    for name, selected in _filtered(query).items():
        f = _field(query, selected)
        result = None if f is None else statistics(f, selected)
        if result is not None:
            by_name[name] = result
    if query.predicate is None or not by_name:
        return np.ones(count, dtype=bool)
    return pruning.may_match_files(query.predicate, by_name, count)


def _matching_files(query: TableScan[Any], spec_id: int, files: Sequence[DataFile]) -> tuple[Mask, Mask]:
    """Return which files of one spec may hold a match by their partition values, and which also by their metrics."""
    fields = enumerate(query.current.metadata.specs[spec_id].fields)
    values = [_PartitionValues.of_files(f, [file.partition[number] for file in files]) for number, f in fields]
    by_partition = _matching(query, len(files), partial(_partition_statistics, values))
    candidates = list(compress(files, by_partition))
    by_metrics = by_partition.copy()
    by_metrics[by_partition] = _matching(query, len(candidates), partial(_metrics, candidates))
    return by_partition, by_metrics


def matching_manifests(query: TableScan[Any], manifests: Sequence[ManifestFile]) -> Mask:
    """Return which manifests may list a file with a match, by the summaries of their partitions."""
    answer = np.ones(len(manifests), dtype=bool)
    for spec in query.current.metadata.specs.values():
        mine = [n for n, m in enumerate(manifests) if m.spec_id == spec.id and len(m.partitions) == len(spec.fields)]
        if mine and spec.fields:
            values = []
            for number, f in enumerate(spec.fields):
                # A bucket says nothing of the buckets between two others.
                if f.transform.name != "bucket":
                    summaries = [manifests[manifest].partitions[number] for manifest in mine]
                    values.append(_PartitionValues.of_summaries(f, summaries, query.current.schema))
            answer[mine] = _matching(query, len(mine), partial(_partition_statistics, values))
    return answer


def _metrics(files: Sequence[DataFile], f: Field, selected: Selected) -> FileStatistics:
    """Return the statistics of a column or path by its counts and bounds."""
    count = len(files)
    nulls = [file.null_value_counts.get(f.id) for file in files]
    null = np.array([number is None or number != 0 for number in nulls], dtype=bool)
    value = np.array(
        [number is None or number != file.record_count for number, file in zip(nulls, files, strict=True)], dtype=bool
    )
    sides = [[file.lower_bounds.get(f.id) for file in files], [file.upper_bounds.get(f.id) for file in files]]
    if selected.path is not None:
        if any(all(bound is None for bound in bounds) for bounds in sides):
            return FileStatistics(count, may_be_value=value)
        variants = [[VariantArray(bounds_array(from_bytes(b, pa.large_binary())))] for b in sides]
        return pruning.path_statistics(selected, variants[0], variants[1], count, value)
    if not isinstance(f.type, PrimitiveType) or f.type == VARIANT:
        return FileStatistics(count, may_be_null=null, may_be_value=value)
    lower, upper = (_arrow_bounds((schemas.from_bytes(bound, f.type) for bound in bounds), f.type) for bounds in sides)
    nan: bool | Mask = True
    if f.type.family in ("float", "double"):
        nan = np.array([file.nan_value_counts.get(f.id) != 0 for file in files], dtype=bool)
    return FileStatistics(count, lower, upper, null, value, nan)


def _arrow_bounds(values: Iterable[Any], kind: PrimitiveType) -> pa.Array | None:
    """Return bounds as an Arrow array, doubles for floats; None if all are unknown or the type has no order."""
    raws = list(values)
    if kind.family in _UNORDERED or all(raw is None for raw in raws):
        return None
    try:
        bounds = arrow_array(raws, kind)
    except (pa.ArrowException, OverflowError, ValueError, ArithmeticError):
        return None
    return pruning.double_bounds(bounds) if pa.types.is_floating(bounds.type) else bounds


class _PartitionValues(Record):
    """The smallest and the largest value of a partition field in each file or manifest, and what else may be there."""

    field: partitioning.PartitionField
    bounds: Sequence[tuple[Any, Any]]
    may_be_null: Mask
    may_be_value: Mask
    may_be_nan: Mask

    @classmethod
    def of_files(cls, f: partitioning.PartitionField, raws: Sequence[Any]) -> _PartitionValues:
        """Return the values of files, each of which has one."""
        null = np.array([raw is None for raw in raws], dtype=bool)
        nan = np.array([raw is None or raw != raw for raw in raws], dtype=bool)
        return cls(f, [(raw, raw) for raw in raws], null, ~null, nan)

    @classmethod
    def of_summaries(
        cls, f: partitioning.PartitionField, summaries: Sequence[FieldSummary], schema: Schema
    ) -> _PartitionValues:
        """Return the values of manifests."""
        kind = f.transform.result_type(partitioning.source_type(schema, f))
        bounds = [(schemas.from_bytes(s.lower_bound, kind), schemas.from_bytes(s.upper_bound, kind)) for s in summaries]
        null = np.array([s.contains_null for s in summaries], dtype=bool)
        nan = np.array([s.contains_nan is not False for s in summaries], dtype=bool)
        # Without bounds all partition values are null or NaN.
        return cls(f, bounds, null, nan | [s.lower_bound is not None for s in summaries], nan)


def _partition_statistics(columns: Sequence[_PartitionValues], f: Field, selected: Selected) -> FileStatistics | None:
    """Return what partition values say of their source column."""
    columns = [values for values in columns if values.field.source_id == f.id and values.field.transform.is_known]
    if selected.path is not None or not isinstance(f.type, PrimitiveType) or not columns:
        return None
    kind = f.type
    statistics = BucketStatistics(len(columns[0].bounds))
    for values in columns:
        transform = values.field.transform
        if transform.name == "void":
            continue
        statistics = replace(
            statistics,
            may_be_null=statistics.may_be_null & values.may_be_null,
            may_be_value=statistics.may_be_value & values.may_be_value,
            may_be_nan=statistics.may_be_nan & values.may_be_nan if kind.family in ("float", "double") else True,
        )
        if transform.name == "bucket":
            numbers = tuple(number for number, _ in values.bounds)
            statistics = replace(statistics, buckets=(*statistics.buckets, (transform, kind, numbers)))
            continue
        ranges = [
            [partitioning.SourceRange() if raw is None else transform.source_range(raw, kind) for raw in sides]
            for sides in values.bounds
        ]
        # If the largest partition value has no known range, it may stand for the smallest values, which wrapped around.
        lower = _arrow_bounds(
            (None if high.upper is None and high != low else _clipped(low.lower, kind) for low, high in ranges), kind
        )
        upper = _arrow_bounds((_clipped(high.upper, kind) for _, high in ranges), kind)
        statistics = replace(
            statistics,
            lower=_tighter(statistics.lower, lower, "max_element_wise"),
            upper=_tighter(statistics.upper, upper, "min_element_wise"),
        )
    return statistics


def _tighter(old: pa.Array | None, new: pa.Array | None, function: str) -> pa.Array | None:
    """Return the tighter one of two bounds of each file."""
    if old is None or new is None:
        return new if old is None else old
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


def plan_files(snapshot: Snapshot, query: TableScan[Any] | None = None, *, metrics: bool = False) -> pruning.Pruned:
    """Return the data files of a snapshot that may hold a match, with the delete files that apply to them.

    `query`: the scan of the snapshot with the filter; None for all files.
    `metrics`: whether all metrics of the files are kept, which changes of the table need.
    """
    planned = pruning.Pruned([])
    index = DeleteIndex.of(snapshot)
    manifests = snapshot.live_manifests(deletes=False)
    needed = np.ones(len(manifests), dtype=bool)
    columns: frozenset[int] | None = None if metrics else frozenset()
    if query is not None:
        needed = matching_manifests(query, manifests)
        if not metrics:
            columns = field_ids(query)
    for manifest, is_needed in zip(manifests, needed, strict=True):
        if not is_needed and manifest.added_files is not None and manifest.existing_files is not None:
            count = manifest.added_files + manifest.existing_files
            planned.total += count
            planned.by_partition += count
            continue
        entries = snapshot.entries(manifest, columns)
        while part := list(islice(entries, pruning.FILES_AT_ONCE)):
            planned.total += len(part)
            if query is not None:
                by_partition, keep = _matching_files(query, manifest.spec_id, [e.file for e in part])
                planned.by_partition += int(len(part) - by_partition.sum())
                planned.by_statistics += int(by_partition.sum() - keep.sum())
                part = list(compress(part, keep))
            planned.files += [TableFile(entry, index.of_file(entry)) for entry in part]
    return planned


def parts_with_metrics(
    snapshot: Snapshot, files: Sequence[TableFile], columns: frozenset[int]
) -> Iterator[list[TableFile]]:
    """Yield files with their metrics of some columns, a part at a time and in any order.

    Files of the snapshot are looked up in its manifests; other files have their metrics already.
    """
    by_path = {file.path: file for file in files}
    live = snapshot.live_entries(deletes=False, columns=columns)
    entries = (entry for _, entry in live if entry.file.path in by_path)
    while part := list(islice(entries, pruning.FILES_AT_ONCE)):
        yield [TableFile(entry, by_path.pop(entry.file.path).deletes) for entry in part]
    if by_path:
        yield list(by_path.values())


def files_among(query: TableScan[Any], files: list[TableFile]) -> list[TableFile]:
    """Return the files among `files` that may hold a match."""
    matches: list[TableFile] = []
    for spec_id in dict.fromkeys(file.file.spec_id for file in files):
        members = [file for file in files if file.file.spec_id == spec_id]
        keep = _matching_files(query, spec_id, [member.file for member in members])[1]
        matches += compress(members, keep)
    return matches


def data_files(snapshot: Snapshot) -> list[str]:
    """Return paths or URLs of the data files of a snapshot; see `Table.data_files`."""
    return [normal_location(file.path) for file in plan_files(snapshot).files]


def parquet_files(current: Snapshot, limit: int | None = None) -> tuple[ParquetSource, ...]:
    """Return the data files of a snapshot, or `limit` files of at most `limit` manifests.

    None if a column was renamed, or its name was used for another column.

    Files keep the name that a column had when they were written. Files of other formats, and encrypted files, are a
    reason for none, too.
    """
    schemas = current.metadata.schemas_newest_first
    names = {(field.id, field.name) for schema in schemas for field in schema.fields}
    is_constant = len({number for number, _ in names}) == len({name for _, name in names}) == len(names)
    has_every_schema = max(schema.id for schema in schemas) == len(schemas) - 1  # unused ones may have been removed
    if not (is_constant and has_every_schema):
        return ()
    manifests = spread(current.live_manifests(deletes=False), limit)
    files = spread([entry for part in manifests for entry in current.entries(part, frozenset())], limit)
    if any(file.file.format != "parquet" or file.file.key_metadata is not None for file in files):
        return ()
    places = [(current.table.files.find(entry.file.path), entry.file.size) for entry in files]
    return tuple(ParquetSource(*storage.filesystem(path)[::-1], size) for (storage, path), size in places)
