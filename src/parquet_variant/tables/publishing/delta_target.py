"""Delta's log over the data files of another table: one commit that adds and removes what changed.

Owns the Delta table of a publication: schema and column mapping, statistics as JSON, and translated deletion
vectors. They are in the directory ``_vectors``, which the cleanup of other formats does not list.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, cast
from urllib.parse import quote

from parquet_variant.errors import DeltaError, TableError
from parquet_variant.inference.statistics import ValueBounds
from parquet_variant.tables.delta.file_locations import relative_path, vector_path, write_vector
from parquet_variant.tables.delta.log.commit import Transaction, commit
from parquet_variant.tables.delta.log.snapshot import Snapshot, load_snapshot
from parquet_variant.tables.delta.protocol.actions import Add, Remove, Txn, with_metadata
from parquet_variant.tables.delta.protocol.features import PUBLISHED_FROM_PROPERTY, implied_features, with_features
from parquet_variant.tables.delta.protocol.schema_merging import MODE
from parquet_variant.tables.delta.statistics import dump_stats, stats_tree
from parquet_variant.tables.delta.writing.data_files import URI_SAFE
from parquet_variant.tables.delta.writing.write import existing_table, planned_table
from parquet_variant.tables.file_metrics import ColumnMetrics, FileMetrics
from parquet_variant.tables.iceberg.locations import absolute_location, normal_location
from parquet_variant.tables.iceberg.metadata.manifests import DataFile
from parquet_variant.tables.iceberg.metadata.schema import arrow_array, type_name
from parquet_variant.tables.iceberg.writing.write_plan import metric_leaves
from parquet_variant.tables.partitions import partition_texts
from parquet_variant.tables.publishing.source import (
    Difference,
    ListedFile,
    PublishedFile,
    PublishResult,
    Source,
    SourceColumns,
    cannot_publish,
    difference_from,
    published_bounds,
    raw_bounds,
)
from parquet_variant.tables.schema import (
    VARIANT,
    Field,
    PrimitiveType,
    StructType,
    TableType,
    fields_at,
    leaves,
    parts,
    walk_fields,
    with_fields,
)
from parquet_variant.tables.storage import Storage, now_millis, open_storage

_APPLICATION = "parquet-variant.publish"
_VECTORS = "_vectors"
# Iceberg's types that Delta has.
_TYPES = {
    *("void", "boolean", "integer", "long", "float", "double", "decimal"),
    *("date", "timestamp", "timestamp_ntz", "string", "binary", "variant"),
}


def publish_delta(source: Source, to: str | None, options: Mapping[str, str] | None) -> PublishResult:
    """Publish a source as a Delta table, by default in the source's directory.

    Raises `DeltaError`: reason ``"exists"`` if the path has another Delta table; ``"changed-copy"``; ``"conflict"``.
    """
    uri = normal_location(source.location) if to is None else to
    storage = open_storage(uri, options or source.options, allow_outside=True)
    current = existing_table(storage)
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
        raise DeltaError(
            f"{uri} is a Delta table that was not published from {source.format}: choose another path with to= (--to)",
            reason="exists",
            file=uri,
        )
    last = current.txns.get(_APPLICATION)
    if last is None or last.version >= current.version:
        return
    try:
        published = load_snapshot(current.storage, last.version)
    except TableError:
        return  # The log was cleaned up.
    if set(published.files["path"].to_pylist()) != set(current.files["path"].to_pylist()):
        raise DeltaError(
            f"commits after version {last.version} changed the published table {uri}, and publishing would undo them: "
            f"change the {source.format} table instead, and restore version {last.version}",
            reason="changed-copy",
            file=uri,
        )


# ---- the definition of the table


def _planned(storage: Storage, source: Source, columns: SourceColumns, *, has_vectors: bool) -> Snapshot:
    """Return the Delta table that the source needs, without files."""
    for place, f in walk_fields(columns.schema.struct):
        if isinstance(f.type, PrimitiveType) and f.type.family not in _TYPES:
            raise cannot_publish(f"column {'.'.join(place)} is {type_name(f.type)}, which Delta lacks", source.location)
    is_mapped = source.renames
    if is_mapped and columns.files_lack_ids:
        raise cannot_publish(
            "columns were renamed or dropped, and files may lack field ids (the table has a name mapping), so that "
            "Delta's readers would not find the columns",
            source.location,
        )
    schema = with_fields(columns.schema.struct, lambda f: _delta_field(f, source.widened, is_mapped))
    properties = {PUBLISHED_FROM_PROPERTY: source.format}
    properties |= {MODE: "id"} if is_mapped else {}
    properties |= {"delta.feature.deletionVectors": "supported"} if has_vectors else {}
    properties |= {"delta.enableTypeWidening": "true"} if source.widened else {}
    return planned_table(storage, schema, columns.partition_by, properties)


def _delta_field(f: Field, widened: Mapping[int, Sequence[str]], is_mapped: bool) -> Field:
    """Return a field with the metadata of column mapping and type widening."""
    metadata: dict[str, Any] = {}
    if is_mapped:
        metadata = {"delta.columnMapping.id": f.field_id, "delta.columnMapping.physicalName": f"col-{f.field_id}"}
        nested = dict(_nested_ids(f.type, f"col-{f.field_id}"))
        metadata |= {"delta.columnMapping.nested.ids": nested} if nested else {}
    types = widened.get(f.field_id or 0, ())
    if types:
        metadata["delta.typeChanges"] = [{"fromType": before, "toType": after} for before, after in pairwise(types)]
    return with_metadata(replace(f, field_id=None), metadata)


def _nested_ids(kind: TableType, key: str) -> Iterator[tuple[str, int]]:
    """Yield the field ids of the parts of lists and maps."""
    for f in () if isinstance(kind, StructType) else parts(kind):
        yield f"{key}.{f.name}", f.id
        yield from _nested_ids(f.type, f"{key}.{f.name}")


def _transaction(
    source: Source, current: Snapshot | None, planned: Snapshot, adds: Sequence[Add], removed: Sequence[Add]
) -> Transaction | None:
    """Return the commit of a publication; None if nothing changed."""
    version = 0 if current is None else current.version + 1
    transaction = Transaction(
        "PUBLISH",
        {"source": source.format, "sourceVersion": source.version},
        adds=adds,
        txn=Txn(_APPLICATION, version, now_millis()),
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
    now = now_millis()
    removes = [
        Remove(add.path, True, now, True, add.partition_values, add.size, add.deletion_vector) for add in removed
    ]
    return replace(transaction, removes=removes, **changes)


# ---- the files of the table


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
    return difference_from(published, listed, _vector_path, everything=everything)


def _vector_path(file: ListedFile) -> str:
    return f"{_VECTORS}/deletion_vector_{file.vector_id}.bin"


class _Writer:
    """Describes the files of a source by actions, and writes their deletion vectors."""

    def __init__(self, source: Source, storage: Storage, columns: SourceColumns, schema: StructType) -> None:
        self.source, self.storage, self.columns, self.schema = source, storage, columns, schema
        self.vectors_written = 0
        self.leaves = [
            (tuple(part.physical_name for part in way), f)
            for way, (_, f) in zip(leaves(schema), metric_leaves(columns.schema.struct), strict=True)
            if f not in columns.partition_fields
        ]
        self.partitions = [
            (fields_at(schema, (f.name,))[0], f.type)
            for f in columns.partition_fields
            if isinstance(f.type, PrimitiveType)
        ]
        self.base = normal_location(absolute_location(storage.uri)).rstrip("/") + "/"

    def added(self, files: Sequence[ListedFile]) -> list[Add]:
        """Return the actions that add files."""
        by_location = {file.location: file for file in files}
        return [
            self.with_vector(self.add(described), by_location[described.path])
            for described in self.source.described(self.columns, files)
        ]

    def with_vector(self, add: Add, file: ListedFile) -> Add:
        """Return an action with the deleted rows of a file, written under a name that says which rows they are."""
        if file.vector_key is None:
            return replace(add, deletion_vector=None)
        rows = self.source.deleted_rows(file)
        self.vectors_written += 1
        vector = write_vector(self.storage, rows, name=file.vector_id, directory=_VECTORS)
        # Bounds of a file with deleted rows need not be values of the remaining rows.
        stats = (add.stats or "").replace('"tightBounds":true', '"tightBounds":false')
        return replace(add, deletion_vector=vector, stats=stats)

    def add(self, file: DataFile) -> Add:
        """Return the action that adds a file."""
        location = normal_location(file.path)
        path = quote(location.removeprefix(self.base), safe=URI_SAFE)
        if not location.startswith(self.base):
            path = quote(absolute_location(location), safe=f"{URI_SAFE}:")
        values = zip(self.partitions, file.partition, strict=True)
        return Add(
            path,
            {f.physical_name: partition_texts(arrow_array([raw], kind))[0] for (f, kind), raw in values},
            file.size,
            now_millis(),
            True,
            dump_stats(self.stats(file)),
            rows=file.record_count,
        )

    def stats(self, file: DataFile) -> dict[str, Any]:
        """Return the statistics of a file as the log's tree of objects."""
        columns: dict[tuple[str, ...], ColumnMetrics] = {}
        for place, f in self.leaves:
            nulls = file.null_value_counts.get(f.id)
            if f.type == VARIANT:
                low, high = published_bounds(file, f)
                paths = {path: ValueBounds(low[path], high[path]) for path in low if path in high}
                columns[place] = ColumnMetrics(nulls, paths=paths)
                continue
            # Readers of Delta order NaN above all numbers, and Iceberg's bounds leave NaN out.
            hides_nan = (
                f.type in (PrimitiveType("float"), PrimitiveType("double")) and file.nan_value_counts.get(f.id) != 0
            )
            lower, upper = (
                None if raw is None or hides_nan else arrow_array([raw], cast(PrimitiveType, f.type))[0]
                for raw in raw_bounds(file, f)
            )
            columns[place] = ColumnMetrics(nulls, lower, upper)
        return stats_tree(FileMetrics(file.record_count, columns), self.schema)
