"""The change of a commit, the manifests of the new snapshot, and its summary.

Owns `SnapshotChange`, the check that files of the base are unchanged, the step from the manifests of one snapshot to
those of the next, the fields of the specification's Appendix F, and the record of stream batches.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias
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
from parquet_variant.tables.iceberg.metadata.table_metadata import MAIN, TableMetadata
from parquet_variant.tables.iceberg.metadata.updates import Update, set_properties
from parquet_variant.tables.iceberg.reading.deletes import DeleteIndex, partition_key
from parquet_variant.tables.iceberg.reading.snapshot import Snapshot

# Called with the data files that other commits added since the change was planned: whether one of them matters to it.
ReadsAdded: TypeAlias = "Callable[[Sequence[ManifestEntry]], bool]"


@dataclass(frozen=True)
class SnapshotChange:
    """The changes that a commit makes to the files of a table.

    Parameters
    ----------
    operation
        The operation of the snapshot: append, replace, overwrite or delete.
    added
        New data files.
    removed
        Data files that the snapshot no longer has, as the base snapshot lists them. Their deletion vectors go, too.
    vectors
        New deletion vectors; each replaces the one that its data file has.
    removed_deletes
        Delete files that the snapshot no longer has.
    removes_all
        Whether the commit removes every file that the table has when it succeeds.
    is_replacement
        Whether the table is replaced by another one of its name: the snapshot has no parent.
    rewrites_manifests
        Whether all manifests of one kind are merged, their entries sorted by partition.
    touched
        Data files of the base that must be unchanged, because the change removes them or gives them a vector.
    reads_added
        Whether files that other commits added matter to this change; None if they never do.
    batch
        Name and number of a batch of a stream, which the summary records; it is not committed twice.
    summary
        Further entries of the snapshot's summary.
    updates, requirements
        Further changes of the metadata in the same commit.
    """

    operation: str
    added: tuple[DataFile, ...] = ()
    removed: tuple[ManifestEntry, ...] = ()
    vectors: tuple[DataFile, ...] = ()
    removed_deletes: tuple[ManifestEntry, ...] = ()
    removes_all: bool = False
    is_replacement: bool = False
    rewrites_manifests: bool = False
    touched: tuple[ManifestEntry, ...] = ()
    reads_added: ReadsAdded | None = None
    batch: tuple[str, int] | None = None
    summary: Mapping[str, str] = field(default_factory=dict)
    updates: tuple[Update, ...] = ()
    requirements: tuple[Update, ...] = ()


ENGINE = "parquet-variant"
_BATCH, _BRANCH = "parquet-variant.batch.", "parquet-variant.branch-batch."
_TOTALS = {
    "total-data-files": ("added-data-files", "deleted-data-files"),
    "total-delete-files": ("added-delete-files", "removed-delete-files"),
    "total-records": ("added-records", "deleted-records"),
    "total-files-size": ("added-files-size", "removed-files-size"),
    "total-position-deletes": ("added-position-deletes", "removed-position-deletes"),
    "total-equality-deletes": ("added-equality-deletes", "removed-equality-deletes"),
}


def batch_key(application: str) -> str:
    """Return the summary's key for the last batch of a stream."""
    return f"{_BATCH}{application}"


def has_batch(snapshot: Snapshot, batch: tuple[str, int] | None) -> bool:
    """Return whether the branch of a snapshot has a batch of a stream, or a later batch of the same stream.

    The summaries of snapshots say so, or the table's properties after other engines have expired these snapshots.
    """
    check_batch("batch", batch)
    if batch is None:
        return False
    key = batch_key(batch[0])
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


def batch_updates(base: Snapshot, change: SnapshotChange, snapshot_id: int) -> list[Update]:
    """Return the updates that record the batch of a change in the table's properties, with the snapshot that has it.

    Engines that rewrite files do not repeat the summaries of the snapshots that they expire.
    """
    if change.is_replacement:
        former = [name for name in base.metadata.properties if name.startswith(_BATCH)]
        return [{"action": "remove-properties", "removals": former}] if former else []
    if change.batch is None:
        return []
    application, number = change.batch
    key = _branch_key(batch_key(application), base.branch)
    return [set_properties({key: f"{number}@{snapshot_id}"})]


def undone_batches(metadata: TableMetadata, snapshot_id: int) -> list[str]:
    """Return the properties of batches that the main branch loses when it is rolled back to a snapshot."""
    remaining = {info.id for info in metadata.ancestors(snapshot_id)}
    lost = {info.id for info in metadata.ancestors(metadata.current_snapshot_id)} - remaining
    recorders = {f"@{number}" for number in lost}
    return [
        name
        for name, text in metadata.properties.items()
        if name.startswith(_BATCH) and "".join(text.rpartition("@")[1:]) in recorders
    ]


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
        batches[batch_key(change.batch[0])] = str(change.batch[1])
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


def _counts(side: str, files: Iterable[DataFile]) -> dict[str, int]:
    """Return the counts of files that were added or removed, by the summary's names."""
    data_side = "deleted" if side == "removed" else side
    counts: dict[str, int] = {}

    def add(name: str, count: int = 1) -> None:
        counts[name] = counts.get(name, 0) + count

    for file in files:
        size = file.size if file.content_size is None else file.content_size
        add(f"{side}-files-size", size)
        if file.content == Content.DATA:
            add(f"{data_side}-data-files")
            add(f"{data_side}-records", file.record_count)
            continue
        add(f"{side}-delete-files")
        if file.content == Content.EQUALITY_DELETES:
            add(f"{side}-equality-delete-files")
            add(f"{side}-equality-deletes", file.record_count)
        else:
            add(f"{side}-dvs" if file.is_vector else f"{side}-position-delete-files")
            add(f"{side}-position-deletes", file.record_count)
    return counts


_MERGE = "commit.manifest-merge.enabled"
_MIN_COUNT, _DEFAULT_MIN_COUNT = "commit.manifest.min-count-to-merge", 100
_TARGET, _DEFAULT_TARGET = "commit.manifest.target-size-bytes", 8 << 20
FileKey = tuple[str, int | None]


@dataclass
class NextManifests:
    """The manifests of a new snapshot, and the files that its parent has and the snapshot does not."""

    files: list[ManifestFile] = field(default_factory=list)
    removed: list[DataFile] = field(default_factory=list)  # Data files and delete files.


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


def next_manifests(base: Snapshot, parent: Snapshot, change: SnapshotChange, writer: ManifestWriter) -> NextManifests:
    """Return the manifests of a change on top of a snapshot, which may be newer than the base of the change.

    Raises `IcebergError`: reason ``"conflict"``.
    """
    result = NextManifests()
    if parent.snapshot_id != base.snapshot_id and not change.removes_all:
        _check_unchanged(base, parent, change)
    added = [*writer.added(change.added, deletes=False), *writer.added(change.vectors, deletes=True)]
    if change.is_replacement:
        result.files = added
        return result
    rewriting = _Rewriting(parent, writer, result, removes_all=change.removes_all)
    rewriting.remove(change.removed, deletes=False)
    vectors = {file.referenced_data_file for file in change.vectors}
    gone = {entry.file.path for entry in change.removed}
    rewriting.remove([*change.removed_deletes, *_vectors_of(parent, vectors | gone, change)], deletes=True)
    remaining = rewriting.apply()
    result.files = (
        _sorted_manifests(remaining, parent, writer)
        if change.rewrites_manifests
        else _merged(remaining, parent, writer)
    )
    result.files += added
    return result


def _vectors_of(parent: Snapshot, locations: set[str | None], change: SnapshotChange) -> list[ManifestEntry]:
    """Return the deletion vectors of data files in a snapshot, and position deletes of only one of these files."""
    if not locations or change.removes_all:
        return []
    listed = {file_key(entry.file) for entry in change.removed_deletes}
    index = DeleteIndex.of(parent)
    superseded = [index.vectors[location] for location in locations if location in index.vectors]
    superseded += [entry for location in locations for entry in index.by_path.get(location or "", ())]
    return [entry for entry in superseded if file_key(entry.file) not in listed]


class _Rewriting:
    """Removes files from the manifests of a snapshot."""

    def __init__(self, parent: Snapshot, writer: ManifestWriter, result: NextManifests, *, removes_all: bool) -> None:
        self.parent, self.writer, self.result, self.removes_all = parent, writer, result, removes_all
        self.keys: dict[bool, set[FileKey]] = {True: set(), False: set()}

    def remove(self, entries: Iterable[ManifestEntry], *, deletes: bool) -> None:
        self.keys[deletes] |= {file_key(entry.file) for entry in entries}

    def apply(self) -> list[ManifestFile]:
        remaining = []
        for manifest in self.parent.manifests:
            if not manifest.may_be_live:
                continue
            missing = self.keys[manifest.is_deletes]
            if not missing and not self.removes_all:
                remaining.append(manifest)
                continue
            rewritten = self._without_removed(manifest, missing)
            if rewritten is not None:
                remaining.append(rewritten)
        for keys in self.keys.values():
            if keys and not self.removes_all:
                raise IcebergError(f"another commit removed the file {min(keys, key=str)[0]}", reason="conflict")
        return remaining

    def _without_removed(self, manifest: ManifestFile, missing: set[FileKey]) -> ManifestFile | None:
        entries = [entry for entry in self.parent.entries(manifest) if entry.is_live]
        removed = {file_key(entry.file) for entry in entries if self.removes_all or file_key(entry.file) in missing}
        if not removed:
            return manifest
        missing -= removed
        changed = []
        for entry in entries:
            if file_key(entry.file) in removed:
                self.result.removed.append(entry.file)
                changed.append(replace(entry, status=Status.DELETED, snapshot_id=self.writer.snapshot_id))
            else:
                changed.append(replace(entry, status=Status.EXISTING))
        return self.writer.write(changed, manifest.spec_id, deletes=manifest.is_deletes)


def _merged(manifests: list[ManifestFile], parent: Snapshot, writer: ManifestWriter) -> list[ManifestFile]:
    """Merge small manifests of one kind if there are as many as the table's properties require."""
    properties = parent.properties
    if properties.get(_MERGE, "true").lower() != "true":
        return manifests
    least = number_property(properties, _MIN_COUNT, _DEFAULT_MIN_COUNT)
    target = number_property(properties, _TARGET, _DEFAULT_TARGET)
    groups: dict[tuple[int, bool], list[ManifestFile]] = defaultdict(list)
    for manifest in manifests:
        if manifest.length < target and manifest.sequence_number is not None:
            groups[manifest.spec_id, manifest.is_deletes].append(manifest)
    replaced: dict[str, ManifestFile | None] = {}
    for (spec_id, deletes), members in groups.items():
        if len(members) < max(least, 2):
            continue
        for bin_ in _bins(members, target):
            if len(bin_) > 1:
                entries = [
                    replace(entry, status=Status.EXISTING)
                    for manifest in bin_
                    for entry in parent.entries(manifest)
                    if entry.is_live
                ]
                replaced |= {manifest.path: None for manifest in bin_}
                replaced[bin_[0].path] = writer.write(entries, spec_id, deletes=deletes)
    merged = [replaced.get(manifest.path, manifest) for manifest in manifests]
    return [manifest for manifest in merged if manifest is not None]


def _sorted_manifests(manifests: list[ManifestFile], parent: Snapshot, writer: ManifestWriter) -> list[ManifestFile]:
    """Return manifests of about the target size, with the entries of one kind in the order of their partitions."""
    target = number_property(parent.properties, _TARGET, _DEFAULT_TARGET)
    groups: dict[tuple[int, bool], list[ManifestFile]] = defaultdict(list)
    for manifest in manifests:
        groups[manifest.spec_id, manifest.is_deletes].append(manifest)
    result = []
    for (spec_id, deletes), members in groups.items():
        if len(members) == 1 and not members[0].deleted_files:
            result += members
            continue
        entries = [
            replace(entry, status=Status.EXISTING)
            for manifest in members
            for entry in parent.entries(manifest)
            if entry.is_live
        ]
        entries.sort(key=lambda entry: [(value is not None, str(value)) for value in entry.file.partition])
        pieces = max(1, round(sum(manifest.length for manifest in members) / target))
        size = max(1, -(-len(entries) // pieces))
        result += [
            writer.write(entries[start : start + size], spec_id, deletes=deletes)
            for start in range(0, len(entries), size)
        ]
    return result


def _bins(manifests: Sequence[ManifestFile], target: int) -> list[list[ManifestFile]]:
    bins: list[list[ManifestFile]] = [[]]
    size = 0
    for manifest in manifests:
        if bins[-1] and size + manifest.length > target:
            bins.append([])
            size = 0
        bins[-1].append(manifest)
        size += manifest.length
    return bins


def number_property(properties: Mapping[str, Any], name: str, default: int) -> int:
    """Return a property that is a number. Raises `IcebergError`: reason ``"bad-property"``."""
    text = properties.get(name)
    if text is None:
        return default
    if not str(text).isdecimal():
        raise IcebergError(f"the table property {name} is {text!r}: give a number", reason="bad-property")
    return int(text)


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
        _check_touched(base, parent, touched)
    if change.reads_added is not None:
        added = added_since(base, parent)
        if added and change.reads_added(added):
            raise IcebergError("another commit added rows that the change reads", reason="conflict")


def _check_touched(base: Snapshot, parent: Snapshot, touched: Mapping[str, ManifestEntry]) -> None:
    before, now = DeleteIndex.of(base), DeleteIndex.of(parent)
    for path, entry in touched.items():
        if before.of_file(entry) != now.of_file(entry):
            raise IcebergError(f"another commit deleted rows of {path}", reason="conflict")
    live = {entry.file.path for _, entry in parent.live_entries(deletes=False)}
    missing = sorted(set(touched) - live)
    if missing:
        raise IcebergError(f"another commit removed the file {missing[0]}", reason="conflict")


def added_since(base: Snapshot, newest: Snapshot) -> list[ManifestEntry]:
    """Return the data files that a newer snapshot has and the base does not."""
    listed = {manifest.path for manifest in base.manifests}
    new = [m for m in newest.manifests if not m.is_deletes and m.may_be_live and m.path not in listed]
    if not new:
        return []
    before: set[str] | None = None
    added = []
    for manifest in new:
        for entry in newest.entries(manifest):
            if not entry.is_live:
                continue
            if entry.status == Status.EXISTING:
                if before is None:
                    before = {known_entry.file.path for _, known_entry in base.live_entries(deletes=False)}
                if entry.file.path in before:
                    continue
            added.append(entry)
    return added
