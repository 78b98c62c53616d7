"""Manifests and manifest lists: which data and delete files a snapshot has, with their partition values and metrics.

Owns the records of both files in memory, reading them with inheritance, and writing them, with the assignment of
sequence numbers and row ids (specification, "Manifests", "Manifest Lists" and "First Row ID Assignment"). The Avro
schemas are in `avro`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import IntEnum
from typing import Any

from parquet_variant.errors import IcebergError
from parquet_variant.support.records import Record
from parquet_variant.tables.iceberg.metadata import avro
from parquet_variant.tables.iceberg.metadata.partitioning import PartitionSpec, result_types
from parquet_variant.tables.iceberg.metadata.schema import to_bytes
from parquet_variant.tables.iceberg.metadata.table_metadata import NEWEST_VERSION, TableMetadata
from parquet_variant.tables.schema import PrimitiveType

METRICS = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")
_TUPLES = ("split_offsets", "equality_ids")
# Fields that are stored as they are.
_OPTIONAL = (
    "key_metadata", "sort_order_id", "first_row_id", "referenced_data_file", "content_offset", "content_size_in_bytes",
)  # fmt: skip
_FORMATS = {"parquet", "avro", "orc", "puffin"}
_COUNTS = ("added_files", "existing_files", "deleted_files", "added_rows", "existing_rows", "deleted_rows")


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
    content_size_in_bytes: int | None = None

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


@dataclass(frozen=True, slots=True)
class FieldSummary:
    """The summary of one partition field over the files of a manifest; bounds are in their binary form."""

    contains_null: bool
    contains_nan: bool | None = None
    lower_bound: bytes | None = None
    upper_bound: bytes | None = None


class ManifestFile(Record):
    """A manifest, as a manifest list describes it; counts are None where a list of version 1 lacks them."""

    path: str
    length: int
    spec_id: int
    added_snapshot_id: int
    is_deletes: bool = False
    sequence_number: int | None = 0  # None until the snapshot is committed.
    min_sequence_number: int | None = 0
    added_files: int | None = None
    existing_files: int | None = None
    deleted_files: int | None = None
    added_rows: int | None = None
    existing_rows: int | None = None
    deleted_rows: int | None = None
    partitions: tuple[FieldSummary, ...] = ()
    key_metadata: bytes | None = None
    first_row_id: int | None = None

    @property
    def may_be_live(self) -> bool:
        """Whether the manifest may list files that are in the snapshot."""
        return self.added_files != 0 or self.existing_files != 0


def read_manifest_list(data: bytes, location: str) -> list[ManifestFile]:
    """Return the manifests of the bytes of a manifest list. Raises `IcebergError`: reason ``"bad-metadata"``."""
    manifests = []
    for record in avro.read_avro(data, location):
        try:
            summaries = (
                FieldSummary(**{name: summary.get(name) for name in FieldSummary.__slots__})
                for summary in record.get("partitions") or ()
            )
            manifest = ManifestFile(
                path=str(record["manifest_path"]),
                length=int(record["manifest_length"]),
                spec_id=int(record["partition_spec_id"]),
                added_snapshot_id=int(record.get("added_snapshot_id") or 0),
                is_deletes=bool(record.get("content") or 0),
                sequence_number=int(record.get("sequence_number") or 0),
                min_sequence_number=int(record.get("min_sequence_number") or 0),
                partitions=tuple(summaries),
                key_metadata=record.get("key_metadata"),
                first_row_id=record.get("first_row_id"),
                **{name: record.get(f"{name}_count") for name in _COUNTS},
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            problem = f"the manifest list is damaged: {error!r}"
            raise IcebergError(problem, reason="bad-metadata", file=location) from None
        manifests.append(manifest)
    return manifests


def read_manifest(
    data: bytes, manifest: ManifestFile, metadata: TableMetadata, *, columns: Collection[int] | None = None
) -> Iterator[ManifestEntry]:
    """Yield the entries of the bytes of a manifest.

    `columns`: the field ids whose metrics are kept; None for all.
    Raises `IcebergError`: reason ``"bad-metadata"``.
    """
    spec = metadata.specs.get(manifest.spec_id)
    if spec is None:
        problem = f"a manifest is of partition spec {manifest.spec_id}, which the table metadata lacks"
        raise IcebergError(problem, reason="bad-metadata", file=manifest.path)
    types = result_types(spec, metadata.schemas_newest_first)
    partition = {avro.partition_name(f.field_id): kind for f, kind in zip(spec.fields, types, strict=True)}
    reader = _Reader(manifest, partition, None if columns is None else frozenset(columns))
    next_row_id = manifest.first_row_id
    for record in avro.read_avro(data, manifest.path):
        entry = reader.entry(record)
        if next_row_id is not None and entry.is_live and entry.file.first_row_id is None:
            # The file was made just now; copying it would take a quarter of the time of planning.
            object.__setattr__(entry.file, "first_row_id", next_row_id)
            next_row_id += entry.file.record_count
        yield entry


class _Reader:
    """Makes entries of the records of one manifest."""

    def __init__(
        self, manifest: ManifestFile, partition: Mapping[str, PrimitiveType], columns: frozenset[int] | None
    ) -> None:
        self.manifest, self.partition, self.columns = manifest, partition, columns
        # The metrics that are read: all, or those that can prune files.
        self.maps = METRICS if columns is None else METRICS[1:]

    def entry(self, record: Mapping[str, Any]) -> ManifestEntry:
        manifest = self.manifest
        try:
            status = Status(record["status"])
            sequence, file_sequence = record.get("sequence_number"), record.get("file_sequence_number")
            if status == Status.ADDED or manifest.sequence_number == 0:
                sequence = manifest.sequence_number if sequence is None else sequence
                file_sequence = manifest.sequence_number if file_sequence is None else file_sequence
            snapshot_id = record.get("snapshot_id")
            file = self.file(record["data_file"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise self.damaged(repr(error)) from None
        if sequence is None:
            raise self.damaged(f"the entry of {file.path} lacks a sequence number")
        return ManifestEntry(
            status, file, manifest.added_snapshot_id if snapshot_id is None else snapshot_id, sequence, file_sequence
        )

    def file(self, record: Mapping[str, Any]) -> DataFile:
        attributes: dict[str, Any] = {name: self.by_id(record.get(name)) for name in self.maps}
        attributes |= {name: None if (values := record.get(name)) is None else tuple(values) for name in _TUPLES}
        attributes |= {name: record.get(name) for name in _OPTIONAL}
        path, kind = str(record["file_path"]), str(record.get("file_format")).lower()
        if kind not in _FORMATS:
            raise self.damaged(f"unknown file format {kind!r}")
        count, size = int(record["record_count"]), int(record["file_size_in_bytes"])
        if count < 0 or size < 0:
            raise self.damaged(f"{path} has {count} records in {size} bytes")
        values = record.get("partition") or {}
        if len(values) == len(self.partition) and not values.keys() & self.partition.keys():
            # Manifests of version 1 may lack the ids of partition fields.
            values = dict(zip(self.partition, values.values(), strict=True))
        partition = tuple(_raw_value(values.get(name), kind) for name, kind in self.partition.items())
        content = Content(record.get("content") or 0)
        return DataFile(path, kind, count, size, self.manifest.spec_id, partition, content, **attributes)

    def by_id(self, entries: Any) -> dict[int, Any]:
        columns = self.columns
        if not entries or (columns is not None and not columns):
            return {}
        if isinstance(entries, dict):  # an Avro map, whose keys are strings
            entries = [{"key": int(key), "value": value} for key, value in entries.items()]
        return {entry["key"]: entry["value"] for entry in entries if columns is None or entry["key"] in columns}

    def damaged(self, problem: str) -> IcebergError:
        return IcebergError(f"the manifest is damaged: {problem}", reason="bad-metadata", file=self.manifest.path)


def _raw_value(value: Any, kind: PrimitiveType) -> Any:
    if value is not None and kind.family == "decimal":
        return int.from_bytes(value, "big", signed=True)
    return value


def write_manifest(
    entries: Iterable[ManifestEntry],
    metadata: TableMetadata,
    spec: PartitionSpec,
    snapshot_id: int,
    *,
    deletes: bool = False,
) -> tuple[bytes, ManifestFile]:
    """Return the bytes of a manifest of entries of one partition spec, and its row of a manifest list without the path.

    `deletes`: whether the entries are delete files and deletion vectors.
    """
    schema, entries = metadata.schema, list(entries)
    types = result_types(spec, metadata.schemas_newest_first)
    names = [avro.safe_name(f.name) for f in spec.fields]
    data = avro.write_avro(
        avro.entry_schema(spec, types),
        [_record(entry, names, types) for entry in entries],
        {
            "schema": json.dumps(schema.to_json()),
            "schema-id": str(schema.id),
            "partition-spec": json.dumps([f.to_json() for f in spec.fields]),
            "partition-spec-id": str(spec.id),
            "format-version": str(NEWEST_VERSION),
            "content": "deletes" if deletes else "data",
        },
    )
    counts: dict[str, Any] = {}
    for status in Status:
        files = [entry.file for entry in entries if entry.status == status]
        counts[f"{status.name.lower()}_files"] = len(files)
        counts[f"{status.name.lower()}_rows"] = sum(file.record_count for file in files)
    # Live files that inherit the number of the snapshot do not count.
    numbers = [e.sequence_number for e in entries if e.is_live and e.sequence_number is not None]
    summaries = [_summary([e.file.partition[at] for e in entries], kind) for at, kind in enumerate(types)]
    return data, ManifestFile(
        path="",
        length=len(data),
        spec_id=spec.id,
        is_deletes=deletes,
        sequence_number=None,
        min_sequence_number=min(numbers, default=None),
        added_snapshot_id=snapshot_id,
        partitions=tuple(summaries),
        **counts,
    )


def _summary(values: Sequence[Any], kind: PrimitiveType) -> FieldSummary:
    """Return the summary of the values of one partition field."""

    def order(value: Any) -> Any:
        # -0.0 is before 0.0, as in bounds.
        return (value, str(value)[0] != "-") if isinstance(value, float) else value

    present = [value for value in values if value is not None]
    numbers = [value for value in present if value == value]
    bounds = [to_bytes(bound(numbers, key=order), kind) for bound in (min, max)] if numbers else [None, None]
    return FieldSummary(len(present) < len(values), len(numbers) < len(present), *bounds)


def _record(entry: ManifestEntry, names: Sequence[str], types: Sequence[PrimitiveType]) -> dict[str, Any]:
    file = entry.file
    partition = {}
    for name, value, kind in zip(names, file.partition, types, strict=True):
        if value is not None and kind.family == "decimal":
            value = int(value).to_bytes(avro.decimal_bytes(kind.numbers[0]), "big", signed=True)
        partition[name] = value
    maps = {
        name: [{"key": key, "value": by_id[key]} for key in sorted(by_id)] or None
        for name in METRICS
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
        },
    }


def write_manifest_list(
    manifests: Sequence[ManifestFile], snapshot_id: int, parent_id: int | None, sequence_number: int, first_row_id: int
) -> tuple[bytes, int]:
    """Return the bytes of a manifest list of version 3, and how many row ids its manifests take.

    New manifests get the snapshot's sequence number and row ids; `first_row_id` is the first one that no row has.
    """
    next_row_id = first_row_id
    records = []
    for manifest in manifests:
        if manifest.sequence_number is None:
            minimum = sequence_number if manifest.min_sequence_number is None else manifest.min_sequence_number
            manifest = replace(
                manifest, sequence_number=sequence_number, min_sequence_number=min(minimum, sequence_number)
            )
        if manifest.first_row_id is None and not manifest.is_deletes:
            rows = (manifest.added_rows, manifest.existing_rows)
            if None in rows:
                problem = (
                    "cannot assign row ids: the manifest list of version 1 has no row counts; rewrite the manifests"
                )
                raise IcebergError(problem, reason="bad-metadata", file=manifest.path)
            manifest = replace(manifest, first_row_id=next_row_id)
            next_row_id += sum(count or 0 for count in rows)
        members = asdict(manifest)
        records.append(
            {
                **members,
                "manifest_path": manifest.path,
                "manifest_length": manifest.length,
                "partition_spec_id": manifest.spec_id,
                "content": int(manifest.is_deletes),
                "partitions": list(members["partitions"]),
                **{f"{name}_count": members[name] or 0 for name in _COUNTS},
            }
        )
    metadata = {
        "snapshot-id": str(snapshot_id),
        "parent-snapshot-id": "null" if parent_id is None else str(parent_id),
        "sequence-number": str(sequence_number),
        "first-row-id": str(first_row_id),
        "format-version": str(NEWEST_VERSION),
    }
    return avro.write_avro(avro.MANIFEST_LIST, records, metadata), next_row_id - first_row_id
