"""A data file of a snapshot, with all that is needed to read or change the file.

Owns `TableFile`, the unit that plans, scans, write plans and row changes pass on.
"""

from __future__ import annotations

from dataclasses import dataclass

from parquet_variant.tables.iceberg.metadata.manifests import DataFile, ManifestEntry
from parquet_variant.tables.iceberg.reading.deletes import FileDeletes

NO_DELETES = FileDeletes()


@dataclass(frozen=True)
class TableFile:
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
