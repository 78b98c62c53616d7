"""Delta tables as sources and as targets of a publication.

Owns the translation of a log's schema and statistics to Iceberg's form, and what of Delta other formats cannot express;
and Delta's log over the data files of another table: one commit that adds and removes what changed, with schema and
column mapping, statistics as JSON, and translated deletion vectors. They are in the directory ``_vectors``, which the
cleanup of other formats does not list.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from parquet_variant.arrays.parts import one_chunk
from parquet_variant.errors import DeltaError, TableError
from parquet_variant.support.records import cached_property
from parquet_variant.tables import schema as shared
from parquet_variant.tables.delta import statistics
from parquet_variant.tables.delta.file_locations import deleted_rows, relative_path, vector_path, write_vector
from parquet_variant.tables.delta.log.commit import Transaction, commit
from parquet_variant.tables.delta.log.file_actions import iter_adds
from parquet_variant.tables.delta.log.snapshot import Snapshot, load_snapshot
from parquet_variant.tables.delta.protocol.actions import Add, DeletionVector, Txn, was_float, with_metadata
from parquet_variant.tables.delta.protocol.features import PUBLISHED_FROM_PROPERTY, implied_features, with_features
from parquet_variant.tables.delta.protocol.schema_merging import MODE
from parquet_variant.tables.delta.reading.read import FileColumns
from parquet_variant.tables.delta.writing.data_files import URI_SAFE
from parquet_variant.tables.delta.writing.write import existing_table, planned_table, table_or_empty_place
from parquet_variant.tables.file_metrics import ColumnMetrics, FileMetrics, physical_place
from parquet_variant.tables.iceberg.locations import absolute_location, normal_location
from parquet_variant.tables.iceberg.metadata.manifests import METRICS, DataFile
from parquet_variant.tables.iceberg.metadata.schema import Schema, raw_values, to_bytes, type_name
from parquet_variant.tables.iceberg.writing.write_plan import in_type
from parquet_variant.tables.partitions import partition_array
from parquet_variant.tables.pruning import bounds_to_bytes, double_bounds, shifted_times, without_inverted
from parquet_variant.tables.publishing.source import (
    Difference,
    ListedFile,
    PublishedFile,
    PublishResult,
    Rows,
    Source,
    SourceColumns,
    TakeId,
    cannot_publish,
    column_metrics,
    difference_from,
    field_ids,
)
from parquet_variant.tables.storage import Storage, now_millis, open_storage
from parquet_variant.types import TYPE_OF_ARROW

_NAMES = {row.delta for row in TYPE_OF_ARROW.values() if row.delta and row.iceberg} | {"variant", "void"}
_NESTED_IDS = "delta.columnMapping.nested.ids"
# Type changes of Delta that Iceberg's schema evolution does not have end in these types.
_PROMOTIONS = {"short", "integer", "long", "double", "timestamp_ntz"}
_INTEGERS = {"byte", "short", "integer", "long"}
_EMPTY_BOUNDS = bounds_to_bytes({})
_APPLICATION = "parquet-variant.publish"
_VECTORS = "_vectors"
# Iceberg's types that Delta has.
_TYPES = {
    *("void", "boolean", "integer", "long", "float", "double", "decimal"),
    *("date", "timestamp", "timestamp_ntz", "string", "binary", "variant"),
}


class DeltaSource(Source):
    """A version of a Delta table."""

    format = "delta"

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.location = absolute_location(snapshot.storage.uri)
        self.version = str(snapshot.version)
        self.options = dict(snapshot.storage.options)

    def columns(self, former: Schema | None, last_id: int) -> SourceColumns:
        """See `Source.columns`: ids of column mapping are kept."""
        made = _Columns(self.snapshot, field_ids(former, last_id))
        struct = shared.StructType(tuple(made.field(f, (f.name,)) for f in self.snapshot.schema.fields))
        return SourceColumns(
            Schema(0, struct),
            made.stored_names,
            files_lack_ids=self.snapshot.column_mapping != "id",
            partition_by=tuple(f.name for f in self.snapshot.partition_fields),
        )

    def listed(self) -> Iterator[ListedFile]:
        """See `Source.listed`."""
        sizes = self.snapshot.files["size"].to_pylist()
        for (location, vector), size in zip(self._vectors.items(), sizes, strict=True):
            key = None
            if vector is not None:
                key = f"{vector['storageType']}:{vector['pathOrInlineDv']}@{vector['offset']}"
            yield ListedFile(location, size, key)

    @cached_property
    def _vectors(self) -> dict[str, dict[str, Any] | None]:
        """The deletion vectors of all files by location."""
        paths, vectors = (self.snapshot.files[name].to_pylist() for name in ("path", "deletionVector"))
        return dict(zip(map(self._located, paths), vectors, strict=True))

    def _located(self, path: str) -> str:
        return f"{self.location}/{relative_path(self.snapshot.storage, path)}"

    def described(self, columns: SourceColumns, files: Collection[ListedFile]) -> Iterator[DataFile]:
        """See `Source.described`."""
        locations, schema = {file.location for file in files}, self.snapshot.schema
        mask = pa.array([location in locations for location in self._vectors], pa.bool_())
        rows = statistics.with_json_stats(self.snapshot.files.filter(mask), schema)
        stats = statistics.read_stats(rows, schema)
        metrics = []
        for fields, (*_, f) in zip(shared.leaves(schema), shared.leaves(columns.schema.struct), strict=True):
            nulls = stats.get("nullCount", physical_place(fields)).to_pylist()
            metrics.append((f, nulls, *_bounds(stats, fields, f.type)))
        for number, add in enumerate(iter_adds(rows)):
            count = stats.num_records[number].as_py()
            if count is None:
                with FileColumns.opened(self.snapshot, add) as (opened, _):
                    count = opened.rows
            counted: dict[str, Any] = {name: {} for name in METRICS}
            for f, nulls, lower, upper in metrics:
                if nulls[number] is not None and 0 <= nulls[number] <= count:
                    counted["value_counts"][f.id], counted["null_value_counts"][f.id] = count, nulls[number]
                sides = lower[number], upper[number]
                if f.type == shared.VARIANT and None in sides:
                    # Some readers take a Variant without bounds for unshredded.
                    sides = (_EMPTY_BOUNDS, _EMPTY_BOUNDS) if self.snapshot.shredding_enabled else (None, None)
                for name, bound in zip(("lower_bounds", "upper_bounds"), sides, strict=True):
                    if bound is not None:
                        counted[name][f.id] = bound
            partition = []
            for column, f in zip(self.snapshot.partition_fields, columns.partition_fields, strict=True):
                assert isinstance(f.type, shared.PrimitiveType)
                value = partition_array(add.partition_values.get(column.physical_name), column.type, 1)
                partition += raw_values(in_type(value, f.type), f.type)
            yield DataFile(self._located(add.path), "parquet", count, add.size, 0, tuple(partition), **counted)

    def deleted_rows(self, file: ListedFile) -> Rows:
        """See `Source.deleted_rows`."""
        vector = self._vectors[file.location]
        assert vector is not None
        return deleted_rows(self.snapshot.storage, DeletionVector.from_dict(vector))


class _Columns:
    """Translates the columns of a Delta table."""

    def __init__(self, snapshot: Snapshot, take: TakeId) -> None:
        self.is_mapped = snapshot.column_mapping != "none"
        self.take = take
        self.stored_names: dict[int, str] = {}

    def field(
        self, f: shared.Field, place: shared.Place, column: shared.Field | None = None, key: str = ""
    ) -> shared.Field:
        """Return a field with its id.

        `column`: of a part of a list or map, the field of a struct that it belongs to, whose metadata has its id.
        `key`: the name of the part there.
        """
        for change in f.metadata.get("delta.typeChanges") or ():
            before, after = str(change.get("fromType")), str(change.get("toType"))
            if after.startswith("decimal"):
                scales = [name.rstrip(")").partition(",")[2] for name in (before, after)]
                if before.startswith("decimal") and scales[0] == scales[1]:
                    continue
            elif after in _PROMOTIONS and not (after == "double" and before in _INTEGERS):
                continue
            raise cannot_publish(
                f"column {'.'.join(place)} was widened from {before} to {after}, which Iceberg does not allow"
            )
        kind, comment = f.type, f.metadata.get("comment")
        if isinstance(kind, shared.PrimitiveType):
            if kind.name not in _NAMES and kind.family != "decimal":
                raise cannot_publish(f"column {'.'.join(place)} is {kind.name}, which other formats lack")
            kind = shared.PrimitiveType("integer") if kind.name in ("byte", "short") else kind
        number = f.field_id if self.is_mapped else None
        if self.is_mapped and column is not None:
            number = (column.metadata.get(_NESTED_IDS) or {}).get(key)
            if number is None:
                raise cannot_publish(
                    f"column {'.'.join(place[:-1])} is a list or map in a table with column mapping, and the table has "
                    f"no {_NESTED_IDS} for it: readers would not find its elements in the files"
                )
        # Parents have lower ids than their parts, as some readers expect.
        number = self.take(place, kind) if number is None else int(number)
        if f.physical_name != f.name:
            self.stored_names[number] = f.physical_name
        inner = []
        for part in shared.parts(kind):
            is_field = isinstance(kind, shared.StructType)
            names = () if is_field else (column or f, f"{key or f.physical_name}.{part.name}")
            inner.append(self.field(part, (*place, part.name), *names))
        doc = {"doc": comment} if isinstance(comment, str) else {}
        return shared.Field(f.name, shared.with_parts(kind, inner), f.nullable, doc, field_id=number)


def _bounds(
    stats: statistics.StatsTable, fields: tuple[shared.Field, ...], kind: shared.TableType
) -> list[list[bytes | None]]:
    """Return the lower and the upper bounds of a column in each file as Iceberg has them; None where unknown."""
    bounds = [stats.get(name, physical_place(fields)) for name in ("minValues", "maxValues")]
    is_exact = isinstance(kind, shared.PrimitiveType) and kind != shared.VOID and not was_float(fields[-1])
    if not is_exact or any(bound is None for bound in bounds):
        return [[None] * len(stats.table)] * 2
    lower, upper = map(one_chunk, bounds)
    if kind == shared.VARIANT:
        rows = (statistics.decode_bounds_array(side).to_pylist() for side in (lower, upper))
        return [[None if row is None else row["metadata"] + row["value"] for row in side] for side in rows]
    assert isinstance(kind, shared.PrimitiveType)
    if pa.types.is_floating(lower.type):
        lower, upper = double_bounds(lower), double_bounds(upper)
    elif pa.types.is_timestamp(upper.type):
        upper = shifted_times(upper)
    raws = [raw_values(in_type(side, kind), kind) for side in without_inverted(lower, upper)]
    if pa.types.is_floating(lower.type):
        raws = [
            [None if raw is None else raw or zero for raw in side] for side, zero in zip(raws, (-0.0, 0.0), strict=True)
        ]
    return [[None if raw is None else to_bytes(raw, kind) for raw in side] for side in raws]


def publish_delta(source: Source, to: str | None, options: Mapping[str, str] | None) -> PublishResult:
    """Publish a source as a Delta table, by default in the source's directory.

    Raises `DeltaError`: reason ``"exists"`` if the path has another Delta table; ``"changed-copy"``; ``"conflict"``.
    """
    uri = normal_location(source.location) if to is None else to
    storage = open_storage(uri, options or source.options, allow_outside=True)
    is_copy = absolute_location(uri) == absolute_location(source.location)
    current = existing_table(storage) if is_copy else table_or_empty_place(storage)
    if current is not None:
        _check_unchanged(current, source)
    columns = source.columns(None, 0)
    listed = list(source.listed())
    planned = _planned(storage, source, columns, has_vectors=any(file.vector_key is not None for file in listed))
    # The files of the log remain as they are described if the planned definition describes them in the same way.
    keeps_files = current is not None and (
        current.column_mapping == planned.column_mapping and current.partition_columns == planned.partition_columns
    )
    difference = _difference(storage, current, listed, everything=not keeps_files)
    writer = _Writer(source, storage, columns, planned.schema)
    changed = [writer.with_vector(replace(add, data_change=True), file) for add, file in difference.vectors_changed]
    adds = [*writer.added(difference.added), *changed]
    removed = [*difference.removed, *(former for former, _ in difference.vectors_changed)]
    transaction = _transaction(source, current, planned, adds, removed)
    if transaction is None:
        assert current is not None
        return PublishResult("delta", uri, str(current.version), committed=False)
    done = commit(storage, transaction)
    counts = (len(difference.added), len(difference.removed), writer.vectors_written)
    return PublishResult("delta", uri, str(done.version), *counts, committed=done.committed)


def _check_unchanged(current: Snapshot, source: Source) -> None:
    """Refuse to replace commits that publishing did not make."""
    uri = current.storage.uri
    if current.metadata.configuration.get(PUBLISHED_FROM_PROPERTY) != source.format:
        problem = (
            f"{uri} is a Delta table that was not published from {source.format}: choose another path with to= (--to)"
        )
        raise DeltaError(problem, reason="exists", file=uri)
    last = current.txns.get(_APPLICATION)
    if last is None or last.version >= current.version:
        return
    try:
        published = load_snapshot(current.storage, last.version)
    except TableError:
        return  # The log was cleaned up.
    if set(published.files["path"].to_pylist()) != set(current.files["path"].to_pylist()):
        problem = (
            f"commits after version {last.version} changed the published table {uri}, and publishing would undo them: "
            f"change the {source.format} table instead, and restore version {last.version}"
        )
        raise DeltaError(problem, reason="changed-copy", file=uri)


def _planned(storage: Storage, source: Source, columns: SourceColumns, *, has_vectors: bool) -> Snapshot:
    """Return the Delta table that the source needs, without files."""
    for place, f in shared.walk_fields(columns.schema.struct):
        if isinstance(f.type, shared.PrimitiveType) and f.type.family not in _TYPES:
            raise cannot_publish(f"column {'.'.join(place)} is {type_name(f.type)}, which Delta lacks")
    is_mapped = source.renames
    if is_mapped and columns.files_lack_ids:
        raise cannot_publish(
            "columns were renamed or dropped, and files may lack field ids (the table has a name mapping), so that "
            "Delta's readers would not find the columns"
        )
    schema = shared.with_fields(columns.schema.struct, lambda f: _delta_field(f, source.widened, is_mapped))
    properties = {PUBLISHED_FROM_PROPERTY: source.format}
    properties |= {MODE: "id"} if is_mapped else {}
    properties |= {"delta.feature.deletionVectors": "supported"} if has_vectors else {}
    properties |= {"delta.enableTypeWidening": "true"} if source.widened else {}
    return planned_table(storage, schema, columns.partition_by, properties)


def _delta_field(f: shared.Field, widened: Mapping[int, Sequence[str]], is_mapped: bool) -> shared.Field:
    """Return a field with the metadata of column mapping and type widening."""
    metadata: dict[str, Any] = {}
    if is_mapped:
        metadata = {"delta.columnMapping.id": f.field_id, "delta.columnMapping.physicalName": f"col-{f.field_id}"}
        nested = dict(_nested_ids(f.type, f"col-{f.field_id}"))
        metadata |= {_NESTED_IDS: nested} if nested else {}
    types = widened.get(f.field_id or 0, ())
    if types:
        metadata["delta.typeChanges"] = [{"fromType": before, "toType": after} for before, after in pairwise(types)]
    return with_metadata(replace(f, field_id=None), metadata)


def _nested_ids(kind: shared.TableType, key: str) -> Iterator[tuple[str, int]]:
    """Yield the field ids of the parts of lists and maps."""
    for f in () if isinstance(kind, shared.StructType) else shared.parts(kind):
        yield f"{key}.{f.name}", f.id
        yield from _nested_ids(f.type, f"{key}.{f.name}")


def _transaction(
    source: Source, current: Snapshot | None, planned: Snapshot, adds: Sequence[Add], removed: Sequence[Add]
) -> Transaction | None:
    """Return the commit of a publication; None if nothing changed."""
    version, now = 0 if current is None else current.version + 1, now_millis()
    transaction = Transaction(
        "PUBLISH",
        {"source": source.format, "sourceVersion": source.version},
        adds=adds,
        txn=Txn(_APPLICATION, version, now),
        reads_table=True,
        current=current,
    )
    if current is None:
        return replace(transaction, protocol=planned.protocol, metadata=planned.metadata)
    configuration = {name: value for name, value in current.metadata.configuration.items() if name != MODE}
    metadata = replace(
        planned.metadata,
        id=current.metadata.id,
        created_time=current.metadata.created_time,
        configuration={**configuration, **planned.metadata.configuration},
    )
    protocol = with_features(current.protocol, implied_features(planned.protocol))
    changes: dict[str, Any] = {"metadata": metadata} if metadata != current.metadata else {}
    changes |= {"protocol": protocol} if protocol != current.protocol else {}
    if not (adds or removed or changes):
        return None
    return replace(transaction, removes=[add.removed(now) for add in removed], **changes)


def _difference(
    storage: Storage, current: Snapshot | None, listed: Sequence[ListedFile], *, everything: bool
) -> Difference[Add]:
    """Return what changed since the last publication; `everything` adds all files again."""
    published = {}
    for add in [] if current is None else current.to_adds(current.files):
        vector = None if add.deletion_vector is None else vector_path(storage, add.deletion_vector)
        path = relative_path(storage, add.path)
        is_absolute = path.startswith("/") or "://" in path
        location = normal_location(path if is_absolute else f"{absolute_location(storage.uri)}/{path}")
        published[location] = PublishedFile(add, add.size, add.modification_time, vector)
    # An added file replaces the one with its path and vector: a commit must not remove that one, too.
    vector_of = (_VECTORS + "/deletion_vector_{0.vector_id}.bin").format
    return difference_from(published, listed, vector_of, everything=everything)


class _Writer:
    """Describes the files of a source by actions, and writes their deletion vectors."""

    def __init__(self, source: Source, storage: Storage, columns: SourceColumns, schema: shared.StructType) -> None:
        self.source, self.storage, self.columns, self.schema = source, storage, columns, schema
        self.vectors_written = 0
        self.base = normal_location(absolute_location(storage.uri)).rstrip("/") + "/"

    def added(self, files: Sequence[ListedFile]) -> Iterator[Add]:
        """Yield the actions that add files."""
        by_location = {file.location: file for file in files}
        for file in self.source.described(self.columns, files):
            location = normal_location(file.path)
            path = quote(location.removeprefix(self.base), safe=URI_SAFE)
            if not location.startswith(self.base):
                path = quote(absolute_location(location), safe=f"{URI_SAFE}:")
            strings = self.columns.partition_texts(file)
            values = {shared.fields_at(self.schema, (f.name,))[0].physical_name: text for f, text in strings}
            stats = statistics.dump_stats(self.stats(file))
            add = Add(path, values, file.size, now_millis(), data_change=True, stats=stats, rows=file.record_count)
            yield self.with_vector(add, by_location[file.path])

    def with_vector(self, add: Add, file: ListedFile) -> Add:
        """Return an action with the deleted rows of a file, written under a name that says which rows they are."""
        if file.vector_key is None:
            return replace(add, deletion_vector=None)
        rows = self.source.deleted_rows(file)
        self.vectors_written += 1
        vector = write_vector(self.storage, rows, file.vector_id, _VECTORS)
        # Bounds of a file with deleted rows need not be values of the remaining rows.
        stats = (add.stats or "").replace('"tightBounds":true', '"tightBounds":false')
        return replace(add, deletion_vector=vector, stats=stats)

    def stats(self, file: DataFile) -> dict[str, Any]:
        """Return the statistics of a file as the log's tree of objects."""
        columns: dict[tuple[str, ...], ColumnMetrics] = {}
        for fields, (*_, f) in zip(shared.leaves(self.schema), shared.leaves(self.columns.schema.struct), strict=True):
            if f in self.columns.partition_fields:
                continue
            metrics = column_metrics(file, f)
            # Readers of Delta order NaN above all numbers, and Iceberg's bounds leave NaN out.
            if (
                f.type in (shared.PrimitiveType("float"), shared.PrimitiveType("double"))
                and file.nan_value_counts.get(f.id) != 0
            ):
                metrics = ColumnMetrics(metrics.nulls)
            columns[physical_place(fields)] = metrics
        return statistics.stats_tree(FileMetrics(file.record_count, columns), self.schema)
