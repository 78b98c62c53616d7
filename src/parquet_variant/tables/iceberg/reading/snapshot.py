"""A snapshot of a table: its choice, its schema, its manifests, and its delete files.

Owns `Snapshot`, time travel by snapshot id, time, branch and tag, the scope rules of deletion vectors, position deletes
and equality deletes (specification, "Scan Planning"), and the files of the first two. Equality deletes are matched with
rows in `scan`; which files a query needs is decided in `planning`.
"""

from __future__ import annotations

import json
import os
import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from datetime import UTC, datetime
from typing import Any, TypeAlias
from urllib.parse import quote

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from parquet_variant.errors import IcebergError, TableError, check_batch, check_count
from parquet_variant.files.parquet.format.arrow_schema import FIELD_ID
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.support.records import Record, cached_property
from parquet_variant.tables.file_rows import file_errors
from parquet_variant.tables.iceberg.catalogs.catalog import LoadedTable
from parquet_variant.tables.iceberg.catalogs.opening import CatalogOption, load_table
from parquet_variant.tables.iceberg.locations import TableFiles
from parquet_variant.tables.iceberg.metadata.manifests import (
    Content,
    DataFile,
    ManifestEntry,
    ManifestFile,
    read_manifest,
    read_manifest_list,
)
from parquet_variant.tables.iceberg.metadata.schema import METADATA_COLUMNS, Schema
from parquet_variant.tables.iceberg.metadata.table_metadata import ENGINE, MAIN, SnapshotInfo, TableMetadata
from parquet_variant.tables.row_sets import check_rows, framed, read_bitmap, unframed, write_bitmap
from parquet_variant.tables.schema import StructType
from parquet_variant.tables.storage import Storage, to_millis

# Before the name of a stream, in the key of its last batch: in summaries, and in properties for other branches.
BATCH, _BRANCH = "parquet-variant.batch.", "parquet-variant.branch-batch."


def batch_key(application: str, branch: str) -> str:
    """Return the property that records the last batch of a stream on a branch."""
    name = quote(branch, safe="").replace(".", "%2E")
    return f"{BATCH}{application}" if branch == MAIN else f"{_BRANCH}{name}.{application}"


class Snapshot(Record):
    """A table at one of its snapshots.

    `table`: the table as its catalog had it.
    `info`: the snapshot; None for a table without any.
    `schema`: the current columns, or those of the snapshot where an older one was asked for.
    `branch`: the branch to which changes of this snapshot are committed.
    """

    table: LoadedTable
    info: SnapshotInfo | None
    schema: Schema
    branch: str = MAIN

    def __repr__(self) -> str:
        number = "no snapshot" if self.info is None else f"snapshot {self.info.id}"
        return f"<Snapshot {self.table.name}: {number}, columns {', '.join(f.name for f in self.struct.fields)}>"

    @property
    def metadata(self) -> TableMetadata:
        """The table's metadata."""
        return self.table.metadata

    @property
    def snapshot_id(self) -> int | None:
        """The id of the snapshot; None for a table without any."""
        return None if self.info is None else self.info.id

    version = snapshot_id

    @property
    def properties(self) -> Mapping[str, str]:
        """The table's properties."""
        return self.metadata.properties

    @cached_property
    def columns(self) -> StructType:
        """The columns that queries may name: those of the table, then the metadata columns."""
        names = {f.name for f in self.struct.fields}
        return StructType((*self.struct.fields, *(f for n, f in METADATA_COLUMNS.items() if n not in names)))

    @property
    def struct(self) -> StructType:
        """The columns of the table."""
        return self.schema.struct

    @property
    def storage(self) -> Storage:
        """The table's directory."""
        return self.table.files.root

    def place(self, file: TableFile) -> tuple[Storage, str, str]:
        """Return the storage of a data file, its path there, and its name for errors; refuse what cannot be read."""
        return *_readable_place(self.table.files, file.file, "data file"), file.path

    @cached_property
    def manifests(self) -> tuple[ManifestFile, ...]:
        """The manifests of the snapshot."""
        if self.info is None:
            return ()
        if self.info.manifest_list is not None:
            data = self.table.files.read(self.info.manifest_list)
            return tuple(read_manifest_list(data, self.info.manifest_list))
        # Tables of version 1 may list manifests in the metadata; everything else is in the files themselves.
        return tuple(ManifestFile(path, 0, self.metadata.spec.id, self.info.id) for path in self.info.manifests)

    def for_tasks(self) -> Snapshot:
        """Return the snapshot as tasks of other processes need it: small, without the history of the table."""
        return replace(self, table=replace(self.table, metadata=self.metadata.without_history()))

    def has_recorded(self, batch: tuple[str, int] | None) -> bool:
        """Return whether the branch has a batch of a stream, or a later batch of the same stream.

        The summaries of snapshots say so, or the table's properties after other engines have expired these snapshots.
        """
        check_batch(batch)
        if batch is None:
            return False
        ancestors = self.metadata.ancestors(self.snapshot_id)
        for info in ancestors:
            text = info.summary.get(f"{BATCH}{batch[0]}", "")
            if text.removeprefix("-").isdecimal():
                return int(text) >= batch[1]
        number, _, recorder = self.properties.get(batch_key(batch[0], self.branch), "").partition("@")
        recorded = self.metadata.snapshots.get(int(recorder)) if recorder.isdecimal() else None
        # The branch does not have the snapshot of the batch: the table was rolled back, and the batch with it. Between
        # a tag and the branch, snapshots may have expired.
        is_undone = recorded is not None and recorded not in ancestors
        if recorded is not None and ancestors and ancestors[-1].parent_id is not None:
            is_undone = is_undone and ancestors[-1].sequence_number < recorded.sequence_number
        return number.removeprefix("-").isdecimal() and int(number) >= batch[1] and not is_undone

    def entries(self, manifest: ManifestFile, columns: frozenset[int] | None = None) -> Iterator[ManifestEntry]:
        """Yield the entries of files in the snapshot, with the metrics of some columns (None for all)."""
        entries = read_manifest(self.table.files.read(manifest.path), manifest, self.metadata, columns=columns)
        return (entry for entry in entries if entry.is_live)

    def live_manifests(self, *, deletes: bool) -> list[ManifestFile]:
        """Return the manifests of data files, or of delete files, that may list files in the snapshot."""
        return [manifest for manifest in self.manifests if manifest.is_deletes == deletes and manifest.may_be_live]

    def live_entries(
        self, *, deletes: bool, columns: frozenset[int] | None = None
    ) -> Iterator[tuple[ManifestFile, ManifestEntry]]:
        """Yield the entries of data files, or of delete files, that are in the snapshot, with their manifests."""
        for manifest in self.live_manifests(deletes=deletes):
            for entry in self.entries(manifest, columns):
                yield manifest, entry


# A table as operations take it: a path, a URL, a name in a catalog, or a snapshot of it.
TableLike: TypeAlias = str | os.PathLike[str] | Snapshot


def snapshot(
    table: TableLike | LoadedTable,
    *,
    catalog: CatalogOption = None,
    snapshot_id: int | None = None,
    timestamp: int | str | datetime | None = None,
    branch: str | None = None,
    tag: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    allow_outside: bool = False,
) -> Snapshot:
    """Load a table at its newest snapshot, or at another one; see `pv.open`."""
    if isinstance(table, Snapshot):
        return table
    loaded = load_table(table, catalog, storage_options, allow_outside=allow_outside)
    named = {"snapshot_id": snapshot_id, "timestamp": timestamp, "branch": branch, "tag": tag}
    options = [name for name, value in named.items() if value is not None]
    if len(options) > 1:
        raise IcebergError(f"{' and '.join(options)} name a snapshot each: give one of them", reason="bad-argument")
    metadata = loaded.metadata
    if tag is not None:
        snapshot_id = reference_id(metadata, tag, "tag")
    elif timestamp is not None:
        snapshot_id = id_at(metadata, timestamp, loaded.name)
    elif snapshot_id is not None:
        check_count("snapshot_id", snapshot_id)
    else:
        return newest_snapshot(loaded, MAIN if branch is None else branch)
    info, schema = metadata.snapshot(snapshot_id), metadata.schema
    if info.schema_id is not None:  # An older snapshot has the columns that it was written with.
        schema = metadata.schemas.get(info.schema_id, schema)
    return Snapshot(loaded, info, schema)


def newest_snapshot(table: LoadedTable, branch: str = MAIN) -> Snapshot:
    """Return the newest snapshot of a branch, under the table's current schema."""
    metadata = table.metadata
    is_main = branch == MAIN
    info = metadata.current_snapshot if is_main else metadata.snapshot(reference_id(metadata, branch, "branch"))
    return Snapshot(table, info, metadata.schema, branch)


def reference_id(metadata: TableMetadata, name: str, kind: str) -> int:
    """Return the snapshot id of a branch or tag. Raises `IcebergError`: reason ``"unknown-snapshot"``."""
    reference = metadata.references.get(name) if isinstance(name, str) else None
    if reference is None or reference.type != kind:
        names = ", ".join(n for n, r in metadata.references.items() if r.type == kind) or "none"
        problem = f"unknown {kind} {name!r}: the table has {names}"
        raise IcebergError(problem, reason="unknown-snapshot", file=metadata.location)
    return reference.snapshot_id


def id_at(metadata: TableMetadata, timestamp: int | str | datetime, name: str) -> int:
    """Return the id of the snapshot that was current at a time, by the snapshot log."""
    moment = to_millis(timestamp, IcebergError)
    snapshot_ids = [snapshot_id for when, snapshot_id in metadata.snapshot_log if when <= moment]
    if not snapshot_ids:
        problem = (
            f"the table's snapshot log has no snapshot at {timestamp}: it begins later, or its snapshots have expired"
        )
        raise IcebergError(problem, reason="unknown-snapshot", file=name)
    return snapshot_ids[-1]


def history(current: Snapshot, *, limit: int | None = None) -> list[dict[str, Any]]:
    """Return the snapshots of a table, newest first; see `Table.history`."""
    if limit is not None:
        check_count("limit", limit)
    metadata = current.metadata
    line = {info.id for info in metadata.ancestors(current.snapshot_id)}
    references: dict[int, list[str]] = {}
    for name, reference in metadata.references.items():
        references.setdefault(reference.snapshot_id, []).append(name)
    newest_first = sorted(metadata.snapshots.values(), key=lambda info: (info.sequence_number, info.timestamp_ms))[::-1]
    return [
        {
            "version": info.id,
            "snapshot_id": info.id,
            "parent_id": info.parent_id,
            "sequence_number": info.sequence_number,
            "timestamp": datetime.fromtimestamp(info.timestamp_ms / 1000, UTC),
            "operation": info.operation,
            "summary": dict(info.summary),
            "schema_id": info.schema_id,
            "references": sorted(references.get(info.id, ())),
            "is_current": info.id in line,
        }
        for info in newest_first[:limit]
    ]


_MAGIC = b"PFA1"
_FOOTER_TAIL = 12
Rows = npt.NDArray[np.uint64]


def write_vector(files: TableFiles, location: str, file: DataFile, rows: Rows) -> DataFile:
    """Write a Puffin file with the ascending positions of a data file's deleted rows, and return its description."""
    blob = framed(write_bitmap(rows))
    described = {
        "type": "deletion-vector-v1",
        "fields": [],
        "snapshot-id": -1,
        "sequence-number": -1,
        "offset": len(_MAGIC),
        "length": len(blob),
        "properties": {"referenced-data-file": file.path, "cardinality": str(len(rows))},
    }
    payload = json.dumps({"blobs": [described], "properties": {"created-by": ENGINE}}, separators=(",", ":")).encode()
    footer = (_MAGIC, payload, len(payload).to_bytes(4, "little"), bytes(4), _MAGIC)
    data = b"".join((_MAGIC, blob, *footer))
    files.write(location, data)
    return DataFile(
        path=location,
        format="puffin",
        record_count=len(rows),
        size=len(data),
        spec_id=file.spec_id,
        partition=file.partition,
        content=Content.POSITION_DELETES,
        referenced_data_file=file.path,
        content_offset=len(_MAGIC),
        content_size_in_bytes=len(blob),
    )


def damaged(problem: str, location: str) -> IcebergError:
    """Return the error for a deletion vector that cannot be used."""
    return IcebergError(f"the deletion vector is damaged: {problem}", reason="bad-deletion-vector", file=location)


PATH_ID, POSITION_ID = 2147483546, 2147483545
Partition = tuple[int, tuple[Any, ...]]


class FileDeletes(Record):
    """The delete files that apply to one data file, by kind."""

    vector: ManifestEntry | None = None
    positions: tuple[ManifestEntry, ...] = ()
    equalities: tuple[ManifestEntry, ...] = ()

    def entries(self) -> tuple[ManifestEntry, ...]:
        """Return all of them."""
        return (*(() if self.vector is None else (self.vector,)), *self.positions, *self.equalities)

    def __bool__(self) -> bool:
        return bool(self.entries())


class DeleteIndex(Record, frozen=False):
    """The delete files of a snapshot, found by data file."""

    vectors: dict[str, ManifestEntry] = field(default_factory=dict)
    by_path: dict[str, list[ManifestEntry]] = field(default_factory=lambda: defaultdict(list))
    by_partition: dict[Partition, list[ManifestEntry]] = field(default_factory=lambda: defaultdict(list))
    equalities: dict[Partition, list[ManifestEntry]] = field(default_factory=lambda: defaultdict(list))
    everywhere: list[ManifestEntry] = field(default_factory=list)  # Equality deletes without a partition.

    @classmethod
    def of(cls, snapshot: Snapshot) -> DeleteIndex:
        """Return the index of a snapshot.

        Raises `IcebergError`: reason ``"bad-metadata"`` if two deletion vectors are of one data file.
        """
        index = cls()
        unpartitioned = {
            spec.id for spec in snapshot.metadata.specs.values() if all(f.transform.name == "void" for f in spec.fields)
        }
        for _, entry in snapshot.live_entries(deletes=True):
            file = entry.file
            if file.content == Content.EQUALITY_DELETES:
                is_everywhere = file.spec_id in unpartitioned
                (index.everywhere if is_everywhere else index.equalities[partition_key(file)]).append(entry)
            elif file.is_vector:
                marked = file.referenced_data_file
                if marked is None or file.content_offset is None or file.content_size_in_bytes is None:
                    raise damaged("its manifest entry lacks the data file or the place", file.path)
                if marked in index.vectors:
                    raise damaged(f"two vectors apply to {marked}", file.path)
                index.vectors[marked] = entry
            elif file.referenced_data_file is not None:
                index.by_path[file.referenced_data_file].append(entry)
            else:
                index.by_partition[partition_key(file)].append(entry)
        return index

    def of_file(self, entry: ManifestEntry) -> FileDeletes:
        """Return the delete files that apply to a data file."""
        file, sequence = entry.file, entry.sequence_number or 0
        key = partition_key(file)
        vector = self.vectors.get(file.path)
        if vector is not None and sequence > (vector.sequence_number or 0):
            vector = None
        positions: list[ManifestEntry] = []
        if vector is None:
            name = file.path.encode()
            for entry in (*self.by_path.get(file.path, ()), *self.by_partition.get(key, ())):
                # Bounds of the column `file_path` say which data files a delete file may name.
                lower, upper = (side.get(PATH_ID) for side in (entry.file.lower_bounds, entry.file.upper_bounds))
                may_name = (lower is None or lower <= name) and (upper is None or upper >= name)
                if sequence <= (entry.sequence_number or 0) and may_name:
                    positions.append(entry)
        equalities = [*self.equalities.get(key, ()), *self.everywhere]
        later = [d for d in equalities if sequence < (d.sequence_number or 0)]
        return FileDeletes(vector, tuple(positions), tuple(later))


def partition_key(file: DataFile) -> Partition:
    """Return the spec and the partition values of a file, comparable: floats by their bits, every NaN alike."""
    values = tuple(
        struct.pack(">d", float("nan") if value != value else value) if isinstance(value, float) else value
        for value in file.partition
    )
    return file.spec_id, values


def deleted_positions(files: TableFiles, file: DataFile, deletes: FileDeletes) -> Rows:
    """Return the ascending positions that a deletion vector or position deletes mark in a data file.

    Raises `IcebergError`: reason ``"bad-deletion-vector"``, ``"bad-delete-file"`` or ``"missing-file"``.
    """
    if deletes.vector is not None:
        vector = deletes.vector.file
        assert vector.content_offset is not None and vector.content_size_in_bytes is not None
        blob = files.read(vector.path, vector.content_offset, vector.content_size_in_bytes)
        try:
            if len(blob) < _FOOTER_TAIL:
                raise damaged(f"its blob has {len(blob)} bytes", vector.path)
            bitmap = read_bitmap(unframed(blob, vector.path), min(vector.record_count, file.record_count))
            rows = check_rows(bitmap, vector.record_count)
        except TableError as error:
            raise IcebergError(error.message, reason="bad-deletion-vector", file=vector.path) from None
        if len(rows) and int(rows[-1]) >= file.record_count:
            raise damaged(f"it marks row {int(rows[-1])}, the data file has {file.record_count} rows", vector.path)
        return rows
    parts = [_positions(files, entry.file, file) for entry in deletes.positions]
    return np.unique(np.concatenate(parts)) if parts else np.empty(0, dtype=np.uint64)


def _positions(files: TableFiles, delete_file: DataFile, file: DataFile) -> Rows:
    """Return the positions that a position delete file has for a data file."""
    table = read_delete_file(files, delete_file, (PATH_ID, POSITION_ID), ("file_path", "pos"))
    paths, positions = table.columns
    mine = positions.filter(pc.equal(paths.cast(pa.string()), file.path))
    rows = mine.to_numpy().astype(np.int64)
    if len(rows) and (rows.min() < 0 or rows.max() >= file.record_count):
        problem = f"the delete file names row {int(rows.max())} of {file.path}, which has {file.record_count} rows"
        raise IcebergError(problem, reason="bad-delete-file", file=delete_file.path)
    return rows.astype(np.uint64)


def read_delete_file(
    files: TableFiles, delete_file: DataFile, field_ids: Iterable[int], names: Iterable[str]
) -> pa.Table:
    """Return columns of a delete file by field id, under other names.

    Raises `IcebergError`: reason ``"bad-delete-file"``, ``"missing-file"`` or ``"cannot-read"``.
    """
    storage, path = _readable_place(files, delete_file, "delete file")
    try:
        with file_errors(delete_file.path, IcebergError, "delete file"), pq.ParquetFile(storage.open(path)) as parquet:
            by_id = {int((f.metadata or {}).get(FIELD_ID, b"-1")): f.name for f in parquet.schema_arrow}
            columns = [by_id[number] for number in field_ids]
            table = parquet.read(columns=columns).select(columns)
    except KeyError as missing:
        problem = f"the delete file has no column with field id {missing}"
        raise IcebergError(problem, reason="bad-delete-file", file=delete_file.path) from None
    return table.rename_columns(list(names))


def _readable_place(files: TableFiles, file: DataFile, kind: str) -> tuple[Storage, str]:
    """Return the storage of a file with rows and its path there; refuse other formats and encrypted files."""
    problem = None
    if file.format != "parquet":
        problem = f"{kind}s in the format {file.format} cannot be read: rewrite the table with Parquet"
    elif file.key_metadata is not None:
        problem = f"the {kind} is encrypted, which parquet-variant does not read"
    if problem is not None:
        raise IcebergError(problem, reason="unsupported-feature", file=file.path)
    return files.find(file.path)


NO_DELETES = FileDeletes()


class TableFile(Record):
    """A data file of a snapshot, or one that was just written; can be pickled.

    `entry`: its manifest entry, whose status is ADDED and without numbers if no snapshot has it yet.
    `deletes`: the delete files that apply to it.
    `new_vector`: a deletion vector that was written and that no snapshot has yet.
    """

    entry: ManifestEntry
    deletes: FileDeletes = NO_DELETES
    new_vector: DataFile | None = None

    @property
    def file(self) -> DataFile:
        """The file as its manifest describes it."""
        return self.entry.file

    @property
    def path(self) -> str:
        """The location of the file."""
        return self.entry.file.path

    @property
    def size(self) -> int:
        """The size of the file in bytes."""
        return self.entry.file.size

    @property
    def has_deletes(self) -> bool:
        """Whether rows of the file are deleted."""
        return bool(self.deletes)
