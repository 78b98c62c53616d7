"""The change of a commit, the manifests of the new snapshot, and its summary.

Owns `SnapshotChange`, the check that files of the base are unchanged, the step from the manifests of one snapshot to
those of the next, the fields of the specification's Appendix F, and the record of stream batches.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias
from urllib.parse import quote

from parquet_variant.errors import IcebergError, check_batch
from parquet_variant.tables.iceberg.catalogs.catalog import LoadedTable
from parquet_variant.tables.iceberg.metadata.manifests import (
    Content,
    DataFile,
    ManifestEntry,
    ManifestFile,
    Status,
    write_manifest,
)
from parquet_variant.tables.iceberg.metadata.table_metadata import ENGINE, MAIN, TableMetadata
from parquet_variant.tables.iceberg.metadata.updates import Update, properties_updates
from parquet_variant.tables.iceberg.reading.snapshot import DeleteIndex, Snapshot, partition_key
from parquet_variant.tables.iceberg.writing.properties import WriteProperties

# Called with the data files that other commits added since the change was planned: whether one of them matters to it.
ReadsAdded: TypeAlias = "Callable[[Sequence[ManifestEntry]], bool]"


@dataclass(frozen=True)
class SnapshotChange:
    """The changes that a commit makes to the files of a table."""

    operation: str  # Of the snapshot: append, replace, overwrite or delete.
    added: tuple[DataFile, ...] = ()
    # Data files that the snapshot no longer has, as the base snapshot lists them. Their deletion vectors go, too.
    removed: tuple[ManifestEntry, ...] = ()
    vectors: tuple[DataFile, ...] = ()  # New deletion vectors; each replaces the one that its data file has.
    removed_deletes: tuple[ManifestEntry, ...] = ()
    removes_all: bool = False  # Whether every file goes that the table has when the commit succeeds.
    is_replacement: bool = False  # Whether another table takes the name: the snapshot has no parent.
    rewrites_manifests: bool = False  # Whether manifests of one kind are merged, their entries sorted by partition.
    # Data files of the base that must be unchanged, because the change removes them or gives them a vector.
    touched: tuple[ManifestEntry, ...] = ()
    # Whether files that other commits added matter to this change; None if they never do.
    reads_added: ReadsAdded | None = None
    # Name and number of a batch of a stream, which the summary records; it is not committed twice.
    batch: tuple[str, int] | None = None
    # Properties that record the source files that the commit loads. One that another commit recorded is a conflict.
    loads: Mapping[str, str] = field(default_factory=dict)
    forgets_loads: bool = False  # Whether the source files that were loaded before do not count as loaded any more.
    summary: Mapping[str, str] = field(default_factory=dict)  # Further entries of the snapshot's summary.
    # Further changes of the metadata in the same commit.
    updates: tuple[Update, ...] = ()
    requirements: tuple[Update, ...] = ()


# Before the name of a stream, in the key of its last batch: in summaries, and in properties for other branches.
_BATCH, _BRANCH = "parquet-variant.batch.", "parquet-variant.branch-batch."
# Before the path of a source file that an ingest has loaded.
LOAD_PROPERTY = "parquet-variant.load."
# Before the snapshot that overwrote the rows of a load, and its path: after a rollback to before it, the load counts.
_OVERWRITTEN = "parquet-variant.overwritten-load."
_RECORDS = (_BATCH, LOAD_PROPERTY, _OVERWRITTEN)
_TOTALS = {
    "total-data-files": ("added-data-files", "deleted-data-files"),
    "total-delete-files": ("added-delete-files", "removed-delete-files"),
    "total-records": ("added-records", "deleted-records"),
    "total-files-size": ("added-files-size", "removed-files-size"),
    "total-position-deletes": ("added-position-deletes", "removed-position-deletes"),
    "total-equality-deletes": ("added-equality-deletes", "removed-equality-deletes"),
}


def has_batch(snapshot: Snapshot, batch: tuple[str, int] | None) -> bool:
    """Return whether the branch of a snapshot has a batch of a stream, or a later batch of the same stream.

    The summaries of snapshots say so, or the table's properties after other engines have expired these snapshots.
    """
    check_batch("batch", batch)
    if batch is None:
        return False
    key = f"{_BATCH}{batch[0]}"
    ancestors = snapshot.metadata.ancestors(snapshot.snapshot_id)
    for info in ancestors:
        text = info.summary.get(key, "")
        if text.removeprefix("-").isdecimal():
            return int(text) >= batch[1]
    number, _, recorder = snapshot.metadata.properties.get(_branch_key(key, snapshot.branch), "").partition("@")
    # The snapshot of a batch exists, but is not an ancestor: the table was rolled back, and the batch with it.
    others = set(snapshot.metadata.snapshots) - {info.id for info in ancestors}
    is_undone = recorder.isdecimal() and int(recorder) in others
    return number.removeprefix("-").isdecimal() and int(number) >= batch[1] and not is_undone


def batch_updates(metadata: TableMetadata, branch: str, change: SnapshotChange, snapshot_id: int) -> list[Update]:
    """Return the updates that record what a change loads in the table's properties, with the snapshot that has it.

    Engines that rewrite files do not repeat the summaries of the snapshots that they expire.
    """
    known = {name: text for name, text in metadata.properties.items() if name.startswith(_RECORDS)}
    if change.is_replacement:
        return properties_updates({}, list(known))
    records, removed = dict(change.loads), []
    if change.forgets_loads:
        loads = {name: text for name, text in known.items() if name.startswith(LOAD_PROPERTY)}
        prefix = f"{_OVERWRITTEN}{snapshot_id}."
        records |= {f"{prefix}{name.removeprefix(LOAD_PROPERTY)}": text for name, text in loads.items()}
        listed = {str(number) for number in metadata.snapshots}
        expired = [n for n, t in known.items() if n.startswith(_OVERWRITTEN) and t.rpartition("@")[2] not in listed]
        removed = [*(name for name in loads if name not in change.loads), *expired]
    if change.batch is not None:
        application, number = change.batch
        records[_branch_key(f"{_BATCH}{application}", branch)] = str(number)
    return properties_updates({key: f"{text}@{snapshot_id}" for key, text in records.items()}, removed)


def undone_updates(metadata: TableMetadata, snapshot_id: int) -> list[Update]:
    """Return the updates of the records of batches and loads when the main branch is rolled back to a snapshot."""
    remaining = {str(info.id) for info in metadata.ancestors(snapshot_id)}
    lost = {str(info.id) for info in metadata.ancestors(metadata.current_snapshot_id)} - remaining
    restored, removed = {}, []
    for name, text in metadata.properties.items():
        former, _, recorder = text.rpartition("@")
        if name.startswith(_RECORDS) and recorder in lost:
            removed.append(name)
            if name.startswith(_OVERWRITTEN) and former.rpartition("@")[2] not in lost:
                restored[LOAD_PROPERTY + name.removeprefix(_OVERWRITTEN).partition(".")[2]] = former
    return properties_updates(restored, [name for name in removed if name not in restored])


def _branch_key(key: str, branch: str) -> str:
    if branch == MAIN:
        return key
    name = quote(branch, safe="").replace(".", "%2E")
    return f"{_BRANCH}{name}.{key.removeprefix(_BATCH)}"


def summary_of(parent: Snapshot, change: SnapshotChange, removed: Sequence[DataFile]) -> dict[str, str]:
    """Return the summary of the snapshot that a change makes on top of another.

    `removed`: the data files and delete files that it removes.
    """
    counts = _counts("added", (*change.added, *change.vectors)) | _counts("removed", removed)
    former = {} if change.is_replacement or parent.info is None else dict(parent.info.summary)
    totals = {}
    for name, (added, gone) in _TOTALS.items():
        before = former.get(name, "0" if not former else "")
        if before.isdecimal():
            totals[name] = max(int(before) + counts.get(added, 0) - counts.get(gone, 0), 0)
    batches: dict[str, str] = {}
    if not change.is_replacement:
        # Other engines do not repeat the records of batches in their summaries.
        for info in parent.metadata.ancestors(parent.snapshot_id):
            batches = {name: value for name, value in info.summary.items() if name.startswith(_BATCH)} | batches
    if change.batch is not None:
        batches[f"{_BATCH}{change.batch[0]}"] = str(change.batch[1])
    partitions = {partition_key(file) for file in (*change.added, *change.vectors, *removed)}
    return {
        "operation": change.operation,
        **{name: str(count) for name, count in counts.items() if count},
        **{name: str(count) for name, count in totals.items()},
        "changed-partition-count": str(len(partitions)),
        "engine-name": ENGINE,
        **batches,
        **change.summary,
    }


def _counts(side: str, files: Iterable[DataFile]) -> Counter[str]:
    """Return the counts of files that were added or removed, by the summary's names."""
    data_side = "deleted" if side == "removed" else side
    counts: Counter[str] = Counter()
    for file in files:
        counts[f"{side}-files-size"] += file.size if file.content_size is None else file.content_size
        if file.content == Content.DATA:
            counts += Counter({f"{data_side}-data-files": 1, f"{data_side}-records": file.record_count})
            continue
        kind = "equality" if file.content == Content.EQUALITY_DELETES else "position"
        files_of_kind = f"{side}-dvs" if file.is_vector else f"{side}-{kind}-delete-files"
        counts += Counter({f"{side}-delete-files": 1, files_of_kind: 1, f"{side}-{kind}-deletes": file.record_count})
    return counts


_MERGE = "commit.manifest-merge.enabled"
_MIN_COUNT, _DEFAULT_MIN_COUNT = "commit.manifest.min-count-to-merge", 100
_TARGET, _DEFAULT_TARGET = "commit.manifest.target-size-bytes", 8 << 20
FileKey = tuple[str, int | None]


@dataclass
class ManifestWriter:
    """A writer of the manifests of one commit; `locations` are those of all attempts."""

    table: LoadedTable
    metadata: TableMetadata  # With the schema and the specs that the commit adds.
    snapshot_id: int
    unique: str
    locations: list[str] = field(default_factory=list)
    _added: dict[tuple[int, bool], ManifestFile] = field(default_factory=dict)

    def write(self, entries: Iterable[ManifestEntry], spec_id: int, *, deletes: bool) -> ManifestFile:
        """Write a manifest of entries of one partition spec."""
        metadata = self.metadata
        data, manifest = write_manifest(entries, metadata, metadata.specs[spec_id], self.snapshot_id, deletes=deletes)
        location = f"{self.table.metadata_directory()}/{self.unique}-m{len(self.locations)}.avro"
        self.locations.append(location)
        self.table.files.write(location, data)
        return replace(manifest, path=location)

    def added(self, files: Sequence[DataFile], *, deletes: bool) -> list[ManifestFile]:
        """Write the manifests of new files, one for each partition spec, once for all attempts."""
        by_spec: dict[int, list[DataFile]] = defaultdict(list)
        for file in files:
            by_spec[file.spec_id].append(file)
        for spec_id, members in by_spec.items():
            if (spec_id, deletes) not in self._added:
                entries = [ManifestEntry(Status.ADDED, file, self.snapshot_id) for file in members]
                self._added[spec_id, deletes] = self.write(entries, spec_id, deletes=deletes)
        return [self._added[spec_id, deletes] for spec_id in by_spec]

    def unused(self, manifests: Sequence[ManifestFile]) -> list[str]:
        """Return the locations of manifests that the attempt that succeeded does not list."""
        listed = {manifest.path for manifest in manifests}
        return [location for location in self.locations if location not in listed]


def file_key(file: DataFile) -> FileKey:
    """Return the key of a file of a snapshot: one Puffin file can hold many deletion vectors."""
    return file.path, file.content_offset


def next_manifests(
    base: Snapshot, parent: Snapshot, change: SnapshotChange, writer: ManifestWriter
) -> tuple[list[ManifestFile], list[DataFile]]:
    """Return the manifests of a change on top of a snapshot, which may be newer than the base of the change.

    Return also the data files and delete files that the parent has and the new snapshot does not.
    Raises `IcebergError`: reason ``"conflict"``.
    """
    if parent.snapshot_id != base.snapshot_id and not change.removes_all:
        _check_unchanged(base, parent, change)
    added = [*writer.added(change.added, deletes=False), *writer.added(change.vectors, deletes=True)]
    if change.is_replacement:
        return added, []
    removed: list[DataFile] = []
    remaining = _remaining(parent, change, writer, removed)
    return [*_rewritten(remaining, parent, change, writer), *added], removed


def _remaining(
    parent: Snapshot, change: SnapshotChange, writer: ManifestWriter, removed: list[DataFile]
) -> list[ManifestFile]:
    """Return the manifests of a snapshot without what a change removes, which is appended to `removed`."""
    # Delete files go, too: vectors of changed files, and position deletes of only one file.
    deletes = {file_key(entry.file) for entry in change.removed_deletes}
    locations = {file.referenced_data_file or "" for file in change.vectors}
    locations |= {entry.file.path for entry in change.removed}
    if locations and not change.removes_all:
        index = DeleteIndex.of(parent)
        for location in locations:
            vectors = [index.vectors[location]] if location in index.vectors else []
            deletes |= {file_key(entry.file) for entry in (*vectors, *index.by_path.get(location, ()))}
    keys = {False: {file_key(entry.file) for entry in change.removed}, True: deletes}
    remaining = []
    for manifest in parent.manifests:
        if not manifest.may_be_live:
            continue
        missing = keys[manifest.is_deletes]
        is_read = change.removes_all or bool(missing)
        entries = [entry for entry in parent.entries(manifest) if entry.is_live] if is_read else []
        gone = {file_key(entry.file) for entry in entries if change.removes_all or file_key(entry.file) in missing}
        if gone:
            missing -= gone
            removed += [entry.file for entry in entries if file_key(entry.file) in gone]
            changed = [
                replace(entry, status=Status.DELETED, snapshot_id=writer.snapshot_id)
                if file_key(entry.file) in gone
                else replace(entry, status=Status.EXISTING)
                for entry in entries
            ]
            manifest = writer.write(changed, manifest.spec_id, deletes=manifest.is_deletes)
        remaining.append(manifest)
    missing = keys[False] | keys[True]
    if missing and not change.removes_all:
        raise IcebergError(f"another commit removed the file {min(missing, key=str)[0]}", reason="conflict")
    return remaining


def _rewritten(
    manifests: list[ManifestFile], parent: Snapshot, change: SnapshotChange, writer: ManifestWriter
) -> list[ManifestFile]:
    """Merge small manifests of one kind if there are as many as the table's properties require.

    A change that rewrites manifests merges all of them, with their entries in the order of their partitions.
    """
    properties, is_sorted = WriteProperties(parent.properties), change.rewrites_manifests
    if not is_sorted and parent.properties.get(_MERGE, "true").lower() != "true":
        return manifests
    least, target = properties.number(_MIN_COUNT, _DEFAULT_MIN_COUNT), properties.number(_TARGET, _DEFAULT_TARGET)
    groups: dict[tuple[int, bool], list[ManifestFile]] = defaultdict(list)
    for manifest in manifests:
        if is_sorted or (manifest.length < target and manifest.sequence_number is not None):
            groups[manifest.spec_id, manifest.is_deletes].append(manifest)
    result = list(manifests)
    for (spec_id, deletes), members in groups.items():
        if len(members) < least if not is_sorted else len(members) == 1 and not members[0].deleted_files:
            continue
        live = (entry for manifest in members for entry in parent.entries(manifest) if entry.is_live)
        entries = [replace(entry, status=Status.EXISTING) for entry in live]
        if is_sorted:
            entries.sort(key=lambda entry: [(value is not None, str(value)) for value in entry.file.partition])
        pieces = max(1, round(sum(manifest.length for manifest in members) / target))
        size = max(1, -(-len(entries) // pieces))
        starts = range(0, len(entries), size)
        paths = {manifest.path for manifest in members}
        result = [manifest for manifest in result if manifest.path not in paths]
        result += [writer.write(entries[at : at + size], spec_id, deletes=deletes) for at in starts]
    return result


# ---- other commits since the change was planned


def _check_unchanged(base: Snapshot, parent: Snapshot, change: SnapshotChange) -> None:
    """Raise `IcebergError`, reason ``"conflict"``, if commits since the base matter to a change."""
    touched = {entry.file.path: entry for entry in (*change.touched, *change.removed)}
    if not touched and change.reads_added is None:
        return
    line = {info.id for info in parent.metadata.ancestors(parent.snapshot_id)}
    if base.snapshot_id is not None and base.snapshot_id not in line:
        raise IcebergError("the table was rolled back while the change was made", reason="conflict")
    if touched:
        former, now = DeleteIndex.of(base), DeleteIndex.of(parent)
        changed = next((path for path, entry in touched.items() if former.of_file(entry) != now.of_file(entry)), None)
        if changed is not None:
            raise IcebergError(f"another commit deleted rows of {changed}", reason="conflict")
        missing = set(touched) - {entry.file.path for _, entry in parent.live_entries(deletes=False)}
        if missing:
            raise IcebergError(f"another commit removed the file {min(missing)}", reason="conflict")
    if change.reads_added is not None:
        listed = {manifest.path for manifest in base.manifests}
        new = [manifest for manifest in parent.manifests if not manifest.is_deletes and manifest.path not in listed]
        entries = [e for manifest in new if manifest.may_be_live for e in parent.entries(manifest) if e.is_live]
        before: set[str] = set()
        if any(entry.status == Status.EXISTING for entry in entries):
            before = {entry.file.path for _, entry in base.live_entries(deletes=False)}
        added = [e for e in entries if e.status != Status.EXISTING or e.file.path not in before]
        if added and change.reads_added(added):
            raise IcebergError("another commit added rows that the change reads", reason="conflict")
