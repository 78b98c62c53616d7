"""Iceberg tables as `tables.changes` sees them: planning, files, and the commit of row changes.

Owns the parts of a change that are specific to Iceberg: deletion vectors in Puffin files, row lineage, and the modes
and isolation levels of the table's properties. Leaves the changes themselves to `tables.changes`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from parquet_variant.errors import IcebergError, VariantError
from parquet_variant.files.parquet.operations.rewrite import OptimizeResult
from parquet_variant.io.parallel import Engine
from parquet_variant.kernels.arrow_buffers import Mask
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.support.records import Record, cached_property
from parquet_variant.tables.changes.change_plan import ChangeableTable, ChangePlan, FileLayout, TableChange
from parquet_variant.tables.changes.optimizing import optimize
from parquet_variant.tables.iceberg.metadata.manifests import ManifestEntry, Status
from parquet_variant.tables.iceberg.reading import planning
from parquet_variant.tables.iceberg.reading import snapshot as snapshots
from parquet_variant.tables.iceberg.reading.scan import IcebergScan
from parquet_variant.tables.iceberg.writing.commit import SnapshotChange, check_writable, commit_snapshot
from parquet_variant.tables.iceberg.writing.write_plan import LINEAGE, IcebergWritePlan, WriteProperties, plan_write
from parquet_variant.tables.schema import variant_paths
from parquet_variant.tables.table_scan import TableScan

# The metrics of this many files are kept in memory; those of more files are read from the manifests when needed.
METRICS_IN_MEMORY = 20_000


class IcebergChangePlan(ChangePlan[snapshots.TableFile]):
    """The plan of a change to an Iceberg table, for every task; can be pickled."""

    current: snapshots.Snapshot
    write: IcebergWritePlan
    scan = IcebergScan

    def partition(self, file: snapshots.TableFile) -> tuple[Any, ...]:
        """See `ChangePlan.partition`; files of former specs are not in a directory of their partition."""
        return file.file.partition if file.file.spec_id == self.write.spec.id else ()

    def copied(self, file: snapshots.TableFile, path: str, size: int) -> tuple[snapshots.TableFile, ...]:
        """See `ChangePlan.copied`: deletes by path need a new vector; equality deletes and row ids stay valid."""
        entry = ManifestEntry(
            Status.ADDED,
            replace(file.file, path=f"{self.write.location}/{path}", size=size),
            sequence_number=file.entry.sequence_number,
        )
        copy = snapshots.TableFile(entry)
        deleted = ~self.live_rows(file, file.file.record_count)
        return (copy, self.with_deleted(copy, deleted)) if deleted.any() else (copy,)

    def with_every_row(self, file: snapshots.TableFile) -> snapshots.TableFile:
        """See `ChangePlan.with_every_row`."""
        return snapshots.TableFile(file.entry)

    def with_deleted(self, file: snapshots.TableFile, deleted: Mask) -> snapshots.TableFile:
        """Write a deletion vector to a Puffin file of its own; see `ChangePlan.with_deleted`."""
        positions = np.flatnonzero(deleted).astype(np.uint64)
        location = f"{self.write.location}/{self.write.new_name()}-deletes.puffin"
        return replace(
            file, new_vector=snapshots.write_vector(self.current.table.files, location, file.file, positions)
        )


class IcebergTable(ChangeableTable[snapshots.TableFile]):
    """An Iceberg table at a snapshot, for one operation: delete, update or merge; its sets of files are lists."""

    keeps_schema = True
    scan = IcebergScan

    def __init__(self, current: snapshots.Snapshot, operation: str, batch: tuple[str, int] | None = None) -> None:
        check_writable(current.metadata)
        self.current, self.operation, self.batch = current, operation, batch
        self.schema, self.version, self.uri = current.schema.struct, current.snapshot_id or 0, current.table.name

    @cached_property
    def files(self) -> list[snapshots.TableFile]:
        """All data files; those of a large table are without metrics, which `prune` reads again."""
        return planning.plan_files(self.current, metrics=self._is_small or self.operation == "annotate").files

    @cached_property
    def _is_small(self) -> bool:
        """Whether the metrics of all files may be in memory at the same time."""
        manifests = self.current.live_manifests(deletes=False)
        return sum((m.added_files or 0) + (m.existing_files or 0) for m in manifests) <= METRICS_IN_MEMORY

    def plan(self, options: Mapping[str, Any]) -> IcebergChangePlan:
        """See `ChangeableTable.plan`."""
        # Rows that were in the table before keep their row ids.
        lineage = tuple(f.name for f in LINEAGE)
        write = replace(plan_write(self.current, **options), hidden_columns=lineage, job=self.job)
        uses_vectors = WriteProperties(self.current.properties).is_default(f"write.{self.operation}.mode")
        return IcebergChangePlan(self.current.for_tasks(), write, uses_vectors)

    def prune(self, files: list[snapshots.TableFile], query: TableScan[Any]) -> list[snapshots.TableFile]:
        """See `ChangeableTable.prune`."""
        parts: Iterable[list[snapshots.TableFile]] = [files]
        if not self._is_small:
            parts = planning.parts_with_metrics(self.current, files, planning.field_ids(query))
        matching = {file.path for part in parts for file in planning.files_among(query, part)}
        return [file for file in files if file.path in matching]

    def file_layouts(self) -> list[FileLayout]:
        """See `ChangeableTable.file_layouts`."""
        metadata = self.current.metadata
        times = {number: info.timestamp_ms for number, info in metadata.snapshots.items()}
        layouts = []
        for file in self.files:
            # Files of former specs are divided again, so that one pack holds files of several partitions.
            is_former = file.file.spec_id != metadata.spec.id
            key = None if is_former else snapshots.partition_key(file.file)
            must_rewrite = is_former or bool(file.deletes)
            layouts.append(FileLayout(key, file.size, must_rewrite, times.get(file.entry.snapshot_id or 0)))
        return layouts

    def commit(self, operation: str, change: TableChange[snapshots.TableFile]) -> int:
        """See `ChangeableTable.commit`."""
        files = [*change.added, *(file for changed in change.changed for file in changed.added)]
        # A file that got a deletion vector was not written, only the vector.
        written = [file.path if file.new_vector is None else file.new_vector.path for file in files]
        try:
            self.current = commit_snapshot(self.current, self._snapshot_change(change), written)
        except IcebergError as error:
            if error.reason != "batch-committed":
                raise
            raise IcebergError(error.message, reason="conflict", file=error.file) from None
        self.version = self.current.snapshot_id or 0
        return self.version

    def _snapshot_change(self, change: TableChange[snapshots.TableFile]) -> SnapshotChange:
        vectors, removed, touched = [], [], []
        added = [file.file for file in change.added]
        for changed in change.changed:
            marked = [file.new_vector for file in changed.added if file.new_vector is not None]
            vectors += marked
            touched.append(changed.file.entry)
            if all(file.path != changed.file.path for file in changed.added):
                removed.append(changed.file.entry)
            added += [file.file for file in changed.added if file.new_vector is None]
        reads, level = change.reads, f"write.{self.operation}.isolation-level"
        is_checked = reads is not None and WriteProperties(self.current.properties).is_default(level)

        def reads_added(entries: Sequence[ManifestEntry]) -> bool:
            assert reads is not None
            return reads([snapshots.TableFile(entry) for entry in entries])

        operation = "overwrite" if added else "delete"
        if not touched:
            operation = "append"
        if not change.changes_rows:
            operation = "replace"
        return SnapshotChange(
            operation,
            added=tuple(file for file in added if file.record_count),
            sequences={
                copy.path: copy.entry.sequence_number
                for file in change.changed
                for copy in file.added
                if copy.new_vector is None and copy.entry.sequence_number is not None
            },
            removed=tuple(removed),
            vectors=tuple(vectors),
            touched=tuple(touched),
            reads_added=reads_added if is_checked else None,
            batch=self.batch,
        )

    def reload(self) -> IcebergTable:
        """See `ChangeableTable.reload`."""
        return IcebergTable(
            snapshots.newest_snapshot(self.current.table.refreshed(), self.current.branch), self.operation, self.batch
        )


def drop_shredding(table: IcebergTable, *, engine: Engine | None = None, **options: Any) -> OptimizeResult:
    """Rewrite all files with unshredded Variants, in one commit that changes no row; see `Table.optimize`."""
    schema = {".".join(place): ShreddingSchema.variant() for place in variant_paths(table.schema)}
    return optimize(table, schema=schema, engine=engine, **options)


class RewriteManifestsResult(Record):
    """The result of rewriting manifests.

    Parameters
    ----------
    snapshot_id
        The snapshot afterwards.
    before, after
        Numbers of manifests.
    """

    snapshot_id: int | None
    before: int
    after: int


def rewrite_manifests(table: snapshots.Snapshot) -> RewriteManifestsResult:
    """Merge the manifests of a table, with entries in the order of their partitions, in one commit.

    See `IcebergTable.rewrite_manifests`.
    """
    before, after = len(table.manifests), len({(item.spec_id, item.is_deletes) for item in table.manifests})
    if after == before:
        return RewriteManifestsResult(table.snapshot_id, before, after)
    done = commit_snapshot(table, SnapshotChange("replace", rewrites_manifests=True))
    with suppress(VariantError):  # the manifests are rewritten, also if their list cannot be read
        after = len(done.manifests)
    return RewriteManifestsResult(done.snapshot_id, before, after)
