"""Commits: new and rewritten manifests, a manifest list, a snapshot, and the catalog's swap, retried on conflicts.

Owns `commit_snapshot` (specification, "Commit Conflict Resolution and Retry"), `SnapshotChange`, the check that files
of the base are unchanged, the step from the manifests of one snapshot to those of the next, the summary (specification,
Appendix F), and the record of stream batches. Data files and deletion vectors are written before.
"""

from __future__ import annotations

import random
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import TypeAlias

from parquet_variant.errors import IcebergError, VariantError
from parquet_variant.support.records import Record
from parquet_variant.tables.commits import CommitSteps, best_effort, commit_steps
from parquet_variant.tables.iceberg.catalogs.catalog import LoadedTable
from parquet_variant.tables.iceberg.metadata import updates
from parquet_variant.tables.iceberg.metadata.manifests import (
    Content,
    DataFile,
    ManifestEntry,
    ManifestFile,
    Status,
    write_manifest,
    write_manifest_list,
)
from parquet_variant.tables.iceberg.metadata.table_metadata import (
    ENGINE,
    NEWEST_VERSION,
    Reference,
    TableMetadata,
)
from parquet_variant.tables.iceberg.metadata.updates import Update, properties_updates
from parquet_variant.tables.iceberg.reading.snapshot import (
    BATCH,
    DeleteIndex,
    Snapshot,
    batch_key,
    newest_snapshot,
    partition_key,
)
from parquet_variant.tables.iceberg.writing.write_plan import WriteProperties
from parquet_variant.tables.storage import now_millis

# Called with the data files that other commits added since the change was planned: whether one of them matters to it.
ReadsAdded: TypeAlias = "Callable[[Sequence[ManifestEntry]], bool]"


class SnapshotChange(Record):
    """The changes that a commit makes to the files of a table."""

    operation: str  # Of the snapshot: append, replace, overwrite or delete.
    added: tuple[DataFile, ...] = ()
    # The sequence numbers of the rows of files in `added` that only copy a file, by path.
    sequences: Mapping[str, int] = field(default_factory=dict)
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


# Before the path of a source file that an ingest has loaded.
LOAD_PROPERTY = "parquet-variant.load."
# Before the snapshot that overwrote the rows of a load, and its path: after a rollback to before it, the load counts.
_OVERWRITTEN = "parquet-variant.overwritten-load."
_RECORDS = (BATCH, LOAD_PROPERTY, _OVERWRITTEN)
_TOTALS = {
    "total-data-files": ("added-data-files", "deleted-data-files"),
    "total-delete-files": ("added-delete-files", "removed-delete-files"),
    "total-records": ("added-records", "deleted-records"),
    "total-files-size": ("added-files-size", "removed-files-size"),
    "total-position-deletes": ("added-position-deletes", "removed-position-deletes"),
    "total-equality-deletes": ("added-equality-deletes", "removed-equality-deletes"),
}


def batch_updates(metadata: TableMetadata, branch: str, change: SnapshotChange, snapshot_id: int) -> list[Update]:
    """Return the updates that record what a change loads in the table's properties, with the snapshot that has it.

    Engines that rewrite files do not repeat the summaries of the snapshots that they expire.
    """
    recorded = {name: text for name, text in metadata.properties.items() if name.startswith(_RECORDS)}
    if change.is_replacement:
        return properties_updates({}, list(recorded))
    records, removed = dict(change.loads), []
    if change.forgets_loads:
        loads = {name: text for name, text in recorded.items() if name.startswith(LOAD_PROPERTY)}
        prefix = f"{_OVERWRITTEN}{snapshot_id}."
        records |= {f"{prefix}{name.removeprefix(LOAD_PROPERTY)}": text for name, text in loads.items()}
        listed = {str(number) for number in metadata.snapshots}
        expired = [n for n, t in recorded.items() if n.startswith(_OVERWRITTEN) and t.rpartition("@")[2] not in listed]
        removed = [*(name for name in loads if name not in change.loads), *expired]
    if change.batch is not None:
        records[batch_key(change.batch[0], branch)] = str(change.batch[1])
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
    # Other engines do not repeat the records of batches in their summaries.
    for info in parent.metadata.ancestors(parent.snapshot_id) if not change.is_replacement else ():
        batches = {name: value for name, value in info.summary.items() if name.startswith(BATCH)} | batches
    if change.batch is not None:
        batches[f"{BATCH}{change.batch[0]}"] = str(change.batch[1])
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
        counts[f"{side}-files-size"] += file.size if file.content_size_in_bytes is None else file.content_size_in_bytes
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


def file_key(file: DataFile) -> tuple[str, int | None]:
    """Return the key of a file of a snapshot: one Puffin file can hold many deletion vectors."""
    return file.path, file.content_offset


def _check_unchanged(base: Snapshot, parent: Snapshot, change: SnapshotChange) -> None:
    """Raise `IcebergError`, reason ``"conflict"``, if commits since the base matter to a change."""
    touched = {entry.file.path: entry for entry in (*change.touched, *change.removed)}
    if not touched and change.reads_added is None:
        return
    line = {info.id for info in parent.metadata.ancestors(parent.snapshot_id)}
    if base.snapshot_id is not None and base.snapshot_id not in line:
        raise IcebergError("the table was rolled back while the change was made", reason="conflict")
    # A manifest never changes, so files of manifests that both snapshots have are the same.
    pairs = ((base, parent), (parent, base))
    if touched and any(_manifests_of_one(*pair, deletes=True) for pair in pairs):
        former, now = DeleteIndex.of(base), DeleteIndex.of(parent)
        if changed := [path for path, entry in touched.items() if former.of_file(entry) != now.of_file(entry)]:
            raise IcebergError(f"another commit deleted rows of {changed[0]}", reason="conflict")
    gone, new = (_manifests_of_one(*pair, deletes=False) for pair in pairs)
    before = {entry.file.path for manifest in gone for entry in base.entries(manifest, frozenset())}
    entries = [entry for manifest in new for entry in parent.entries(manifest)]
    if missing := (before & set(touched)) - {entry.file.path for entry in entries}:
        raise IcebergError(f"another commit removed the file {min(missing)}", reason="conflict")
    if change.reads_added is not None:
        added = [e for e in entries if e.status != Status.EXISTING or e.file.path not in before]
        if added and change.reads_added(added):
            raise IcebergError("another commit added rows that the change reads", reason="conflict")


def _manifests_of_one(snapshot: Snapshot, other: Snapshot, *, deletes: bool) -> list[ManifestFile]:
    """Return the manifests of data files, or of delete files, that the other snapshot does not have."""
    listed = {manifest.path for manifest in other.manifests}
    return [manifest for manifest in snapshot.live_manifests(deletes=deletes) if manifest.path not in listed]


# More and shorter waits than the defaults of Iceberg's library, in which a change starves next to busy writers.
_RETRIES, _LONGEST_WAIT = 100, 1000


def check_writable(metadata: TableMetadata) -> None:
    """Refuse to write to tables of older versions. Raises `IcebergError`: reason ``"unsupported-version"``."""
    if metadata.version < NEWEST_VERSION:
        problem = (
            f"the table has format version {metadata.version}: upgrade it first with IcebergTable.upgrade; other "
            "writers of the table must then know version 3"
        )
        raise IcebergError(problem, reason="unsupported-version", file=metadata.location)
    if metadata.document.get("encryption-keys"):
        problem = "the table is encrypted, and encrypted tables cannot be written"
        raise IcebergError(problem, reason="unsupported-feature")


def commit_snapshot(base: Snapshot, change: SnapshotChange, written: Sequence[str] = ()) -> Snapshot:
    """Commit a change that was planned on a snapshot, and return the new snapshot.

    Other commits in between are allowed where they do not matter to the change.

    `written`: locations of files that only this change names; they are removed if it was certainly not committed.
    Raises `IcebergError`: reason ``"conflict"``, ``"batch-committed"``, ``"too-many-retries"``,
    ``"unknown-outcome"`` or ``"unsupported-version"``.
    """
    check_writable(base.metadata)
    attempts = _Attempts(base, change)

    def discard() -> None:
        base.table.files.delete([*written, *attempts.written])

    with commit_steps(base.table.name, discard) as steps:
        done = _retried(base.table, attempts.prepare, steps, attempts.landed)
    # The manifests and lists of attempts that did not succeed.
    unused = [location for location in attempts.written if location not in attempts.needed]
    best_effort(partial(base.table.files.delete, unused))
    return newest_snapshot(done, base.branch)


def _retried(
    base: LoadedTable,
    prepare: Callable[[LoadedTable, int], updates.TableChange | None],
    steps: CommitSteps,
    landed: Callable[[], LoadedTable | None] | None = None,
) -> LoadedTable:
    """Commit to the newest metadata until no other commit comes first, and return the table.

    `prepare`: returns the change of an attempt, by its number; None if there is nothing to change.
    """
    properties, table = WriteProperties(base.metadata.properties), base
    deadline = time.monotonic() + properties.number("commit.retry.total-timeout-ms", 1_800_000) / 1000
    retries = properties.number("commit.retry.num-retries", _RETRIES)
    shortest = properties.number("commit.retry.min-wait-ms", 100)
    longest = properties.number("commit.retry.max-wait-ms", _LONGEST_WAIT)
    for attempt in range(retries + 1):
        change = prepare(table, attempt)
        if change is None:
            return table
        try:
            return steps.swap(partial(table.commit, change), landed)
        except VariantError as error:
            if error.reason != "conflict" or not base.exists:
                raise
            last = error
        if attempt == retries or time.monotonic() > deadline:
            break
        if attempt:  # Longer after each attempt, so that writers that lost the same race do not meet again.
            time.sleep(random.uniform(0, min(shortest * 2.0 ** (attempt - 1), longest) / 1000))
        table = base.refreshed()
    problem = (
        f"{attempt + 1} attempts to commit found other commits first: try again when fewer writers are active (the "
        f"last: {last.message})"
    )
    raise IcebergError(problem, reason="too-many-retries", file=base.name)


class _Attempts:
    """The attempts of one commit: the snapshot id and the manifests of added files are the same in all of them."""

    def __init__(self, base: Snapshot, change: SnapshotChange) -> None:
        self.base, self.change = base, change
        self.snapshot_id = 0
        while not self.snapshot_id or self.snapshot_id in base.metadata.snapshots:
            number = uuid.uuid4().int
            self.snapshot_id = ((number >> 64) ^ number) & (2**63 - 1)
        self.unique = str(uuid.uuid4())
        # With the schema and the specs that the commit adds.
        self.metadata = base.metadata
        if change.updates:
            self.metadata = updates.apply_change(base.metadata, updates.TableChange(change.updates), None)
        self.written: list[str] = []  # The locations of all manifests and manifest lists.
        self.needed: set[str] = set()  # Those of the last attempt.
        self._added: dict[tuple[int, bool], ManifestFile] = {}

    def prepare(self, table: LoadedTable, attempt: int) -> updates.TableChange:
        """Write the manifests and the manifest list of an attempt on top of the newest metadata.

        Raises `IcebergError`: reason ``"conflict"`` if other commits matter to the change.
        """
        base, change, metadata, branch = self.base, self.change, table.metadata, self.base.branch
        is_new = base.snapshot_id is None and branch not in metadata.references
        parent = Snapshot(table, None, metadata.schema, branch) if is_new else newest_snapshot(table, branch)
        if parent.has_recorded(change.batch):
            raise IcebergError("the batch was committed before", reason="batch-committed", file=table.name)
        records = base.metadata.properties
        if again := [name for name in change.loads if metadata.properties.get(name) != records.get(name)]:
            problem = f"another writer loaded the same files ({again[0].removeprefix(LOAD_PROPERTY)}): run this again"
            raise IcebergError(problem, reason="conflict", file=table.name)
        if parent.snapshot_id != base.snapshot_id and not change.removes_all:
            _check_unchanged(base, parent, change)
        self.base = parent  # The next attempt checks only later commits.
        manifests = self._new_manifests(change.added, deletes=False) + self._new_manifests(change.vectors, deletes=True)
        removed: list[DataFile] = []  # The data files and delete files that the new snapshot does not have.
        if not change.is_replacement:
            manifests = [*self._rewritten(self._remaining(parent, removed), parent), *manifests]
        sequence, first_row_id = metadata.integer("last-sequence-number") + 1, metadata.integer("next-row-id")
        parent_id = None if change.is_replacement else parent.snapshot_id
        data, rows = write_manifest_list(manifests, self.snapshot_id, parent_id, sequence, first_row_id)
        location = self._put(f"snap-{self.snapshot_id}-{attempt}-{self.unique}", data)
        self.needed = {location, *(manifest.path for manifest in manifests)}
        added_schemas = [u["schema"]["schema-id"] for u in change.updates if u["action"] == "add-schema"]
        snapshot = {
            "snapshot-id": self.snapshot_id,
            **({} if parent_id is None else {"parent-snapshot-id": parent_id}),
            "sequence-number": sequence,
            "timestamp-ms": max(now_millis(), metadata.document["last-updated-ms"]),
            "manifest-list": location,
            "summary": summary_of(parent, change, removed),
            "first-row-id": first_row_id,
            "added-rows": rows,
            "schema-id": added_schemas[-1] if added_schemas else metadata.schema.id,
        }
        former = metadata.references.get(branch, Reference(self.snapshot_id, "branch"))
        steps = (
            *change.updates,
            *batch_updates(metadata, branch, change, self.snapshot_id),
            {"action": "add-snapshot", "snapshot": snapshot},
            updates.set_reference(branch, replace(former, snapshot_id=self.snapshot_id)),
        )
        return updates.TableChange(steps, (*change.requirements, *updates.requires(metadata, refs=[branch])))

    def landed(self) -> LoadedTable | None:
        """Return the table if one of the attempts was committed although its answer got lost or a later step failed."""
        table = self.base.table
        newest = table.catalog.find(table.identifier)
        if newest is None or self.snapshot_id not in newest.metadata.snapshots:
            return None
        return replace(newest, allow_outside=table.allow_outside)

    def _put(self, name: str, data: bytes) -> str:
        location = f"{self.base.table.metadata_directory()}/{name}.avro"
        self.written.append(location)
        self.base.table.files.write(location, data)
        return location

    def _write(self, entries: Iterable[ManifestEntry], spec_id: int, *, deletes: bool) -> ManifestFile:
        """Write a manifest of entries of one partition spec."""
        spec = self.metadata.specs[spec_id]
        data, manifest = write_manifest(entries, self.metadata, spec, self.snapshot_id, deletes=deletes)
        return replace(manifest, path=self._put(f"{self.unique}-m{len(self.written)}", data))

    def _new_manifests(self, files: Sequence[DataFile], *, deletes: bool) -> list[ManifestFile]:
        """Write the manifests of new files, one for each partition spec, once for all attempts."""
        specs = dict.fromkeys(file.spec_id for file in files)
        for spec_id in specs:
            if (spec_id, deletes) not in self._added:
                members = [file for file in files if file.spec_id == spec_id]
                sequences = self.change.sequences
                entries = [ManifestEntry(Status.ADDED, f, self.snapshot_id, sequences.get(f.path)) for f in members]
                self._added[spec_id, deletes] = self._write(entries, spec_id, deletes=deletes)
        return [self._added[spec_id, deletes] for spec_id in specs]

    def _remaining(self, parent: Snapshot, removed: list[DataFile]) -> list[ManifestFile]:
        """Return the manifests of a snapshot without what the change removes, which is appended to `removed`."""
        change = self.change
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
            entries = list(parent.entries(manifest)) if is_read else []
            gone = {file_key(entry.file) for entry in entries if change.removes_all or file_key(entry.file) in missing}
            if gone:
                missing -= gone
                removed += [entry.file for entry in entries if file_key(entry.file) in gone]
                changed = [
                    replace(entry, status=Status.DELETED, snapshot_id=self.snapshot_id)
                    if file_key(entry.file) in gone
                    else replace(entry, status=Status.EXISTING)
                    for entry in entries
                ]
                manifest = self._write(changed, manifest.spec_id, deletes=manifest.is_deletes)
            remaining.append(manifest)
        missing = keys[False] | keys[True]
        if missing and not change.removes_all:
            raise IcebergError(f"another commit removed the file {min(missing, key=str)[0]}", reason="conflict")
        return remaining

    def _rewritten(self, manifests: list[ManifestFile], parent: Snapshot) -> list[ManifestFile]:
        """Merge small manifests of one kind if there are as many as the table's properties require.

        A change that rewrites manifests merges all of them, with their entries in the order of their partitions.
        """
        properties, is_sorted = WriteProperties(parent.properties), self.change.rewrites_manifests
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
            live = (entry for manifest in members for entry in parent.entries(manifest))
            entries = [replace(entry, status=Status.EXISTING) for entry in live]
            if is_sorted:
                entries.sort(key=lambda entry: [(value is not None, str(value)) for value in entry.file.partition])
            pieces = max(1, round(sum(manifest.length for manifest in members) / target))
            size = max(1, -(-len(entries) // pieces))
            paths = {manifest.path for manifest in members}
            result = [manifest for manifest in result if manifest.path not in paths]
            for start in range(0, len(entries), size):
                result.append(self._write(entries[start : start + size], spec_id, deletes=deletes))
        return result


def change_metadata(
    table: LoadedTable, make: Callable[[TableMetadata], updates.TableChange | None], *, any_version: bool = False
) -> LoadedTable:
    """Commit a change of a table's metadata and return the table after it.

    `make`: returns the change for the newest metadata; None if there is nothing to change.
    `any_version`: also change tables that `check_writable` refuses.
    Raises `IcebergError`: reason ``"too-many-retries"``, and as `check_writable` and `make`.
    """

    def prepare(newest: LoadedTable, _: int) -> updates.TableChange | None:
        if not any_version:
            check_writable(newest.metadata)
        return make(newest.metadata)

    return _retried(table, prepare, CommitSteps(table.name))
