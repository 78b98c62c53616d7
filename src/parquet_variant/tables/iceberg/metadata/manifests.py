"""Manifests: which data and delete files a table has, with their partition values and metrics.

Owns the records of manifest files in memory, reading them with inheritance, and writing them (specification,
"Manifests"). Lists of manifests are in `manifest_lists`, the Avro schemas in `manifest_schemas`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from parquet_variant.errors import IcebergError
from parquet_variant.support.fork_safety import cached_property
from parquet_variant.tables.iceberg.metadata.manifest_lists import FieldSummary, ManifestFile
from parquet_variant.tables.iceberg.metadata.manifest_schemas import (
    canonical_names,
    decimal_bytes,
    entry_schema,
    partition_field_names,
    read_avro,
    sub_schema,
    write_avro,
)
from parquet_variant.tables.iceberg.metadata.partitioning import PartitionSpec, result_types
from parquet_variant.tables.iceberg.metadata.table_metadata import NEWEST_VERSION, TableMetadata
from parquet_variant.tables.iceberg.metadata.types import PrimitiveType
from parquet_variant.tables.iceberg.metadata.values import to_bytes

_MAPS = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")
_TUPLES = ("split_offsets", "equality_ids")
_OPTIONAL = ("key_metadata", "sort_order_id", "first_row_id", "referenced_data_file", "content_offset")
_FORMATS = {"parquet", "avro", "orc", "puffin"}


class Content(IntEnum):
    """The content of a file."""

    DATA = 0
    POSITION_DELETES = 1
    EQUALITY_DELETES = 2


class Status(IntEnum):
    """The status of a file in a manifest entry."""

    EXISTING = 0
    ADDED = 1
    DELETED = 2


@dataclass(frozen=True, slots=True)
class DataFile:
    """A data file, a delete file or a deletion vector, as a manifest describes it."""

    path: str
    format: str
    record_count: int
    size: int
    spec_id: int = 0
    partition: tuple[Any, ...] = ()  # Raw values, one for each field of the spec.
    content: Content = Content.DATA
    # Metrics by field id; the bounds are in their binary form.
    column_sizes: Mapping[int, int] = field(default_factory=dict)
    value_counts: Mapping[int, int] = field(default_factory=dict)
    null_value_counts: Mapping[int, int] = field(default_factory=dict)
    nan_value_counts: Mapping[int, int] = field(default_factory=dict)
    lower_bounds: Mapping[int, bytes] = field(default_factory=dict)
    upper_bounds: Mapping[int, bytes] = field(default_factory=dict)
    key_metadata: bytes | None = None
    split_offsets: tuple[int, ...] | None = None
    equality_ids: tuple[int, ...] | None = None
    sort_order_id: int | None = None
    first_row_id: int | None = None
    referenced_data_file: str | None = None
    content_offset: int | None = None
    content_size: int | None = None

    @property
    def is_vector(self) -> bool:
        """Whether the file is a deletion vector in a Puffin file."""
        return self.content == Content.POSITION_DELETES and self.format == "puffin"


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """An entry of a manifest, with everything that it inherits filled in when read."""

    status: Status
    file: DataFile
    snapshot_id: int | None = None
    sequence_number: int | None = None
    file_sequence_number: int | None = None

    @property
    def is_live(self) -> bool:
        """Whether the file is in the snapshot."""
        return self.status != Status.DELETED


def read_manifest(
    data: bytes, manifest: ManifestFile, metadata: TableMetadata, *, columns: Collection[int] | None = None
) -> Iterator[ManifestEntry]:
    """Yield the entries of a manifest file.

    `data`: the bytes of the file.
    `columns`: the field ids whose metrics are kept; None for all.
    Raises `IcebergError`: reason ``"bad-metadata"``.
    """
    avro = read_avro(data, manifest.path)
    spec = metadata.specs.get(manifest.spec_id)
    if spec is None:
        raise IcebergError(
            f"a manifest is of partition spec {manifest.spec_id}, which the table metadata lacks",
            reason="bad-metadata",
            file=manifest.path,
        )
    types = result_types(spec, metadata.schemas_newest_first)
    names = partition_field_names(avro.schema, spec)
    entry_names = canonical_names(avro.schema)
    file_names = canonical_names(sub_schema(avro.schema, entry_names.get("data_file", "data_file")))
    reader = _Reader(manifest, names, types, entry_names, file_names, None if columns is None else frozenset(columns))
    next_row_id = manifest.first_row_id
    for record in avro.records:
        entry = reader.entry(record)
        if next_row_id is not None and entry.is_live and entry.file.first_row_id is None:
            # The file was made just now; copying it would take a quarter of the time of planning.
            object.__setattr__(entry.file, "first_row_id", next_row_id)
            next_row_id += entry.file.record_count
        yield entry


@dataclass(frozen=True)
class _Reader:
    """Makes entries of the records of one manifest file."""

    manifest: ManifestFile
    partition_names: Sequence[str | None]
    types: Sequence[PrimitiveType]
    entry_names: Mapping[str, str]
    file_names: Mapping[str, str]
    columns: frozenset[int] | None

    @cached_property
    def map_names(self) -> tuple[str, ...]:
        """The metrics that are read: all, or those that can prune files."""
        return _MAPS if self.columns is None else tuple(name for name in _MAPS if name != "column_sizes")

    def entry(self, record: Mapping[str, Any]) -> ManifestEntry:
        manifest = self.manifest
        try:
            get = _getter(record, self.entry_names)
            status = Status(get("status"))
            sequence, file_sequence = get("sequence_number"), get("file_sequence_number")
            if status == Status.ADDED or manifest.sequence_number == 0:
                sequence = manifest.sequence_number if sequence is None else sequence
                file_sequence = manifest.sequence_number if file_sequence is None else file_sequence
            snapshot_id = get("snapshot_id")
            file = self.file(record[self.entry_names.get("data_file", "data_file")])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise self.damaged(repr(error)) from None
        if sequence is None:
            raise self.damaged(f"the entry of {file.path} lacks a sequence number")
        return ManifestEntry(
            status, file, manifest.added_snapshot_id if snapshot_id is None else snapshot_id, sequence, file_sequence
        )

    def file(self, record: Mapping[str, Any]) -> DataFile:
        get = _getter(record, self.file_names)
        others: dict[str, Any] = {name: self.by_id(get(name)) for name in self.map_names}
        others |= {name: None if (values := get(name)) is None else tuple(values) for name in _TUPLES}
        others |= {name: get(name) for name in _OPTIONAL}
        partition = record.get(self.file_names.get("partition", "partition")) or {}
        partition_values = tuple(
            None if name is None else _raw_value(partition[name], kind)
            for name, kind in zip(self.partition_names, self.types, strict=True)
        )
        kind = str(get("file_format")).lower()
        if kind not in _FORMATS:
            raise self.damaged(f"unknown file format {kind!r}")
        count, size = int(get("record_count")), int(get("file_size_in_bytes"))
        if count < 0 or size < 0:
            raise self.damaged(f"{get('file_path')} has {count} records in {size} bytes")
        return DataFile(
            path=str(get("file_path")),
            format=kind,
            record_count=count,
            size=size,
            spec_id=self.manifest.spec_id,
            partition=partition_values,
            content=Content(get("content") or 0),
            content_size=get("content_size_in_bytes"),
            **others,
        )

    def by_id(self, entries: Any) -> dict[int, Any]:
        if not entries:
            return {}
        if isinstance(entries, dict):  # an Avro map, whose keys are strings
            entries = [{"key": int(key), "value": value} for key, value in entries.items()]
        columns = self.columns
        if columns is None:
            return {entry["key"]: entry["value"] for entry in entries}
        return {entry["key"]: entry["value"] for entry in entries if entry["key"] in columns} if columns else {}

    def damaged(self, problem: str) -> IcebergError:
        return IcebergError(f"the manifest is damaged: {problem}", reason="bad-metadata", file=self.manifest.path)


def _getter(record: Mapping[str, Any], names: Mapping[str, str]) -> Any:
    if not names:
        return record.get
    return lambda name: record.get(names.get(name, name))


def _raw_value(value: Any, kind: PrimitiveType) -> Any:
    if value is not None and kind.family == "decimal":
        return int.from_bytes(value, "big", signed=True)
    return value


# ---- writing


@dataclass(frozen=True)
class WrittenManifest:
    """The bytes of a new manifest, and its row of a manifest list without the path."""

    data: bytes
    file: ManifestFile


def write_manifest(
    entries: Iterable[ManifestEntry],
    metadata: TableMetadata,
    spec: PartitionSpec,
    snapshot_id: int,
    *,
    deletes: bool = False,
) -> WrittenManifest:
    """Return a manifest of entries of one partition spec; it records the current schema.

    `deletes`: whether the entries are delete files and deletion vectors.
    """
    schema = metadata.schema
    types = result_types(spec, (schema, *metadata.schemas_newest_first))
    avro_schema = entry_schema(spec, types)
    counts = _Counts()
    summaries = [_Summary(kind) for kind in types]
    names = [f["name"] for f in sub_schema(sub_schema(avro_schema, "data_file"), "partition")["fields"]]

    def records() -> Iterator[dict[str, Any]]:
        for entry in entries:
            counts.see(entry)
            for summary, value in zip(summaries, entry.file.partition, strict=True):
                summary.see(value)
            yield _record(entry, names, types)

    data = write_avro(
        avro_schema,
        list(records()),
        {
            "schema": json.dumps(schema.to_json()),
            "schema-id": str(schema.id),
            "partition-spec": json.dumps([f.to_json() for f in spec.fields]),
            "partition-spec-id": str(spec.id),
            "format-version": str(NEWEST_VERSION),
            "content": "deletes" if deletes else "data",
        },
    )
    numbers: dict[str, Any] = {f"{status.name.lower()}_files": count for status, count in counts.files.items()}
    numbers |= {f"{status.name.lower()}_rows": count for status, count in counts.rows.items()}
    file = ManifestFile(
        path="",
        length=len(data),
        spec_id=spec.id,
        is_deletes=deletes,
        sequence_number=None,
        min_sequence_number=counts.min_sequence,
        added_snapshot_id=snapshot_id,
        partitions=tuple(summary.make_change() for summary in summaries),
        **numbers,
    )
    return WrittenManifest(data, file)


class _Counts:
    """The counts of a manifest list's row, while entries are written."""

    def __init__(self) -> None:
        self.files = dict.fromkeys(Status, 0)
        self.rows = dict.fromkeys(Status, 0)
        # The lowest number of a live file; files that inherit the number of the snapshot do not count.
        self.min_sequence: int | None = None

    def see(self, entry: ManifestEntry) -> None:
        self.files[entry.status] += 1
        self.rows[entry.status] += entry.file.record_count
        number = entry.sequence_number if entry.is_live else None
        if number is not None and (self.min_sequence is None or number < self.min_sequence):
            self.min_sequence = number


class _Summary:
    """The bounds of one partition field, while entries are written."""

    def __init__(self, kind: PrimitiveType) -> None:
        self.kind = kind
        self.has_null = self.has_nan = False
        self.lower: Any = None
        self.upper: Any = None

    def see(self, value: Any) -> None:
        if value is None:
            self.has_null = True
        elif value != value:
            self.has_nan = True
        else:
            self.lower = value if self.lower is None or _key(value) < _key(self.lower) else self.lower
            self.upper = value if self.upper is None or _key(value) > _key(self.upper) else self.upper

    def make_change(self) -> FieldSummary:
        bounds = [None if raw is None else to_bytes(raw, self.kind) for raw in (self.lower, self.upper)]
        return FieldSummary(self.has_null, self.has_nan, bounds[0], bounds[1])


def _key(value: Any) -> Any:
    """Order -0.0 before 0.0, as bounds must."""
    return (value, str(value)[0] != "-") if isinstance(value, float) else value


def _record(entry: ManifestEntry, names: Sequence[str], types: Sequence[PrimitiveType]) -> dict[str, Any]:
    file = entry.file
    partition = {
        name: _stored_value(value, kind) for name, value, kind in zip(names, file.partition, types, strict=True)
    }
    maps = {
        name: [{"key": key, "value": by_id[key]} for key in sorted(by_id)] or None
        for name in _MAPS
        if (by_id := getattr(file, name)) is not None
    }
    return {
        "status": int(entry.status),
        "snapshot_id": entry.snapshot_id,
        "sequence_number": entry.sequence_number,
        "file_sequence_number": entry.file_sequence_number,
        "data_file": {
            "content": int(file.content),
            "file_path": file.path,
            "file_format": file.format.upper(),
            "partition": partition,
            "record_count": file.record_count,
            "file_size_in_bytes": file.size,
            **maps,
            **{name: None if (values := getattr(file, name)) is None else list(values) for name in _TUPLES},
            **{name: getattr(file, name) for name in _OPTIONAL},
            "content_size_in_bytes": file.content_size,
        },
    }


def _stored_value(value: Any, kind: PrimitiveType) -> Any:
    if value is not None and kind.family == "decimal":
        return int(value).to_bytes(decimal_bytes(kind.precision), "big", signed=True)
    return value
