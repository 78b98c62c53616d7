"""The changes that a commit makes to the files of a table.

Owns `SnapshotChange`, which operations make and `commit` carries out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from parquet_variant.tables.iceberg.metadata.manifests import DataFile, ManifestEntry
from parquet_variant.tables.iceberg.metadata.updates import Update

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
