"""The manifests of a new snapshot: kept, rewritten without removed files, merged, and added.

Owns the check that files of the base are unchanged, and the step from the manifests of one snapshot to the manifests of
the next snapshot.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from parquet_variant.errors import IcebergError
from parquet_variant.tables.iceberg.catalogs.catalog import LoadedTable
from parquet_variant.tables.iceberg.metadata.manifest_lists import ManifestFile
from parquet_variant.tables.iceberg.metadata.manifests import DataFile, ManifestEntry, Status, write_manifest
from parquet_variant.tables.iceberg.metadata.table_metadata import TableMetadata
from parquet_variant.tables.iceberg.reading.deletes import DeleteIndex
from parquet_variant.tables.iceberg.reading.snapshot import Snapshot
from parquet_variant.tables.iceberg.writing.snapshot_change import SnapshotChange

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
        written = write_manifest(entries, metadata, metadata.specs[spec_id], self.snapshot_id, deletes=deletes)
        location = f"{self.table.metadata_directory()}/{self.unique}-m{len(self.locations)}.avro"
        self.locations.append(location)
        self.table.files.write(location, written.data)
        return replace(written.file, path=location)

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
