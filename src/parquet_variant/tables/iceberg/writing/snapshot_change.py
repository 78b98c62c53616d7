"""The changes that a commit makes to the files of a table.

Owns `SnapshotChange`, which operations make and `commit` carries out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias
from urllib.parse import quote

from parquet_variant.errors import check_batch
from parquet_variant.tables.iceberg.metadata.manifests import Content, DataFile, ManifestEntry
from parquet_variant.tables.iceberg.metadata.table_metadata import MAIN, TableMetadata
from parquet_variant.tables.iceberg.metadata.updates import Update, set_properties
from parquet_variant.tables.iceberg.reading.deletes import partition_key
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
