"""Manifest lists: the manifests of a snapshot, with counts and partition summaries.

Owns reading and writing them, and the assignment of sequence numbers and row ids on writing (specification, "Manifest
Lists" and "First Row ID Assignment").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from parquet_variant.errors import IcebergError
from parquet_variant.tables.iceberg.metadata.manifest_schemas import (
    MANIFEST_LIST,
    canonical_names,
    read_avro,
    write_avro,
)
from parquet_variant.tables.iceberg.metadata.table_metadata import NEWEST_VERSION

_COUNTS = ("added_files", "existing_files", "deleted_files", "added_rows", "existing_rows", "deleted_rows")


@dataclass(frozen=True, slots=True)
class FieldSummary:
    """The summary of one partition field over the files of a manifest; bounds are in their binary form."""

    contains_null: bool
    contains_nan: bool | None = None
    lower: bytes | None = None
    upper: bytes | None = None


@dataclass(frozen=True, slots=True)
class ManifestFile:
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
    """Return the manifests of the bytes of a manifest list.

    Raises `IcebergError`: reason ``"bad-metadata"``.
    """
    avro = read_avro(data, location)
    names = canonical_names(avro.schema)
    manifests = []
    for record in avro.records:
        named = {**record, **{name: record.get(actual) for name, actual in names.items()}}
        try:
            manifests.append(_manifest(named))
        except (KeyError, TypeError, ValueError) as error:
            raise IcebergError(
                f"the manifest list is damaged: {error!r}", reason="bad-metadata", file=location
            ) from None
    return manifests


def _manifest(record: dict[str, Any]) -> ManifestFile:
    summaries = tuple(
        FieldSummary(bool(s["contains_null"]), s.get("contains_nan"), s.get("lower_bound"), s.get("upper_bound"))
        for s in record.get("partitions") or ()
    )
    return ManifestFile(
        path=str(record["manifest_path"]),
        length=int(record["manifest_length"]),
        spec_id=int(record["partition_spec_id"]),
        added_snapshot_id=int(record.get("added_snapshot_id") or 0),
        is_deletes=bool(record.get("content") or 0),
        sequence_number=int(record.get("sequence_number") or 0),
        min_sequence_number=int(record.get("min_sequence_number") or 0),
        partitions=summaries,
        key_metadata=record.get("key_metadata"),
        first_row_id=record.get("first_row_id"),
        **{name: record.get(f"{name}_count") for name in _COUNTS},
    )


@dataclass(frozen=True)
class WrittenManifestList:
    """The bytes of a manifest list, and how many row ids its manifests take."""

    data: bytes
    assigned_rows: int


def write_manifest_list(
    manifests: Sequence[ManifestFile],
    snapshot_id: int,
    parent_id: int | None,
    sequence_number: int,
    first_row_id: int,
) -> WrittenManifestList:
    """Return a manifest list of version 3; new manifests get the snapshot's sequence number and row ids.

    `first_row_id`: the first row id that no row of the table has.
    """
    next_row_id = first_row_id
    numbered = []
    for manifest in manifests:
        if manifest.sequence_number is None:
            minimum = sequence_number if manifest.min_sequence_number is None else manifest.min_sequence_number
            manifest = replace(
                manifest, sequence_number=sequence_number, min_sequence_number=min(minimum, sequence_number)
            )
        if manifest.first_row_id is None and not manifest.is_deletes:
            if manifest.added_rows is None or manifest.existing_rows is None:
                raise IcebergError(
                    "cannot assign row ids: the manifest list of version 1 has no row counts; rewrite the manifests",
                    reason="bad-metadata",
                    file=manifest.path,
                )
            manifest = replace(manifest, first_row_id=next_row_id)
            next_row_id += (manifest.added_rows or 0) + (manifest.existing_rows or 0)
        numbered.append(manifest)
    metadata = {
        "snapshot-id": str(snapshot_id),
        "parent-snapshot-id": "null" if parent_id is None else str(parent_id),
        "sequence-number": str(sequence_number),
        "first-row-id": str(first_row_id),
        "format-version": str(NEWEST_VERSION),
    }
    data = write_avro(MANIFEST_LIST, [_record(manifest) for manifest in numbered], metadata)
    return WrittenManifestList(data, next_row_id - first_row_id)


def _record(manifest: ManifestFile) -> dict[str, Any]:
    summaries = [
        {
            "contains_null": s.contains_null,
            "contains_nan": s.contains_nan,
            "lower_bound": s.lower,
            "upper_bound": s.upper,
        }
        for s in manifest.partitions
    ]
    return {
        "manifest_path": manifest.path,
        "manifest_length": manifest.length,
        "partition_spec_id": manifest.spec_id,
        "content": int(manifest.is_deletes),
        "sequence_number": manifest.sequence_number,
        "min_sequence_number": manifest.min_sequence_number,
        "added_snapshot_id": manifest.added_snapshot_id,
        **{f"{name}_count": getattr(manifest, name) or 0 for name in _COUNTS},
        "partitions": summaries,
        "key_metadata": manifest.key_metadata,
        "first_row_id": manifest.first_row_id,
    }
