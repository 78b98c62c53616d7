"""Delta tables as `tables.changes` sees them, and writing rows to a table that may not exist yet.

Owns the parts of a change that are specific to Delta (deletion vectors, change data, row tracking, identity columns,
statistics as JSON, the transaction), and the choice by the `mode` of a write. Leaves the changes to `tables.changes`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, get_args
from urllib.parse import quote

import numpy as np
import pyarrow as pa

from parquet_variant.errors import DeltaError, TableError, check_choice
from parquet_variant.files.parquet.writing.writer import FileInfo
from parquet_variant.io.parallel import ThreadEngine
from parquet_variant.io.staging import is_kept
from parquet_variant.kernels.arrow_buffers import Mask, from_numpy
from parquet_variant.support.options import Mode
from parquet_variant.support.records import cached_property
from parquet_variant.tables.changes.change_plan import ChangeableTable, ChangePlan, FileLayout, TableChange
from parquet_variant.tables.columns import stored_schema
from parquet_variant.tables.commits import CommitResult
from parquet_variant.tables.delta import file_locations as locations
from parquet_variant.tables.delta import statistics
from parquet_variant.tables.delta.log.commit import Transaction, commit
from parquet_variant.tables.delta.log.file_actions import iter_adds
from parquet_variant.tables.delta.log.snapshot import Snapshot, load_snapshot
from parquet_variant.tables.delta.protocol.actions import Add, Cdc, Txn
from parquet_variant.tables.delta.protocol.features import check_writable, enabled, has_feature
from parquet_variant.tables.delta.protocol.schema_merging import CHANGE_DATA_PROPERTY, check_change_data_names
from parquet_variant.tables.delta.reading.read import PLACES, DeltaScan
from parquet_variant.tables.delta.writing import write as writing
from parquet_variant.tables.delta.writing.data_files import URI_SAFE, WritePlan, plan_write
from parquet_variant.tables.delta.writing.write import plan
from parquet_variant.tables.file_metrics import FileMetrics
from parquet_variant.tables.row_input import ChangeOptions, all_rows, first_rows, rows_by_column
from parquet_variant.tables.schema import StructType, arrow_schema, from_arrow_schema
from parquet_variant.tables.storage import Storage, now_millis, open_storage
from parquet_variant.tables.table_scan import TableScan
from parquet_variant.tables.write_plan import TableWritePlan

if TYPE_CHECKING:
    from parquet_variant.tables.changes.operations import ChangeResult


class DeltaChangePlan(ChangePlan[Add]):
    """The plan of a change to a Delta table, for every task; can be pickled."""

    current: Snapshot
    write: WritePlan
    scan = DeltaScan

    @property
    def storage(self) -> Storage:
        """The table's files."""
        return self.current.storage

    def partition(self, file: Add) -> Mapping[str, str | None]:
        """See `ChangePlan.partition`."""
        return file.partition_values

    def copied(self, file: Add, path: str, size: int) -> tuple[Add, ...]:
        """See `ChangePlan.copied`: positions are the same, so that the deletion vector and row ids stay valid."""
        path = quote(path, safe=URI_SAFE)
        return (replace(file, path=path, size=size, modification_time=now_millis(), data_change=False),)

    def with_every_row(self, file: Add) -> Add:
        """See `ChangePlan.with_every_row`."""
        return replace(file, deletion_vector=None)

    def with_deleted(self, file: Add, deleted: Mask) -> Add:
        """Return the file with a deletion vector; its bounds stay valid, but may be wider than its rows."""
        rows = np.flatnonzero(deleted).astype(np.uint64)
        vector = locations.write_vector(self.storage, rows, self.write.new_vector_id())
        stats = statistics.parsed_stats(file.stats) | {"numRecords": len(deleted), "tightBounds": False}
        return replace(file, deletion_vector=vector, stats=statistics.dump_stats(stats))

    def write_changes(self, write: TableWritePlan[Add], changes: Mapping[str, pa.Table | None]) -> tuple[Any, ...]:
        """See `ChangePlan.write_changes`."""
        assert isinstance(write, WritePlan)
        return tuple(write.write_changes(changes))

    def with_replaced_columns(
        self, file: Add, path: str, info: FileInfo, metrics: FileMetrics, columns: StructType
    ) -> Add:
        """See `ChangePlan.with_replaced_columns`."""
        changed = statistics.stats_tree(metrics, stored_schema(columns))
        stats = statistics.with_columns(
            statistics.parsed_stats(file.stats), changed, [f.physical_name for f in columns.fields]
        )
        return self.write.add(path, file.partition_values, info, statistics.dump_stats(stats))

    def known_metrics(self, file: Add) -> FileMetrics:
        """See `ChangePlan.known_metrics`."""
        return statistics.counted_metrics(statistics.parsed_stats(file.stats), self.write.data_schema)


class DeltaTable(ChangeableTable[Add]):
    """A Delta table at one version; its sets of files are rows of `Snapshot.files`."""

    scan = DeltaScan

    def __init__(self, current: Snapshot, batch: tuple[str, int] | None = None) -> None:
        self.current, self.batch = current, batch
        self.schema, self.version, self.uri = current.schema, current.version, current.storage.uri
        self.files = current.files

    def plan(self, options: Mapping[str, Any]) -> DeltaChangePlan:
        """See `ChangeableTable.plan`."""
        protocol, metadata = self.current.protocol, self.current.metadata
        check_writable(protocol, self.uri)
        check_change_data_names(self.current.schema, metadata.configuration)
        uses_vectors = metadata.configuration.get("delta.enableDeletionVectors") == "true"
        return DeltaChangePlan(
            self.current.for_tasks(),
            replace(plan_write(self.current, options=options), job=self.job),
            uses_vectors and has_feature(protocol.writer_features, "deletionVectors"),
            enabled(protocol, metadata, "changeDataFeed", CHANGE_DATA_PROPERTY),
            fixed_columns=frozenset(name.lower() for name in self.current.partition_columns),
        )

    def prune(self, files: pa.Table, query: TableScan[Any]) -> pa.Table:
        """See `ChangeableTable.prune`."""
        return replace(query, current=replace(self.current, files=files)).pruned.files

    def file_layouts(self) -> list[FileLayout]:
        """See `ChangeableTable.file_layouts`."""
        keys, files = locations.partition_keys(self.files, self.current.partition_fields), self.to_files(self.files)
        return [
            FileLayout(key, add.size, add.deletion_vector is not None, add.modification_time)
            for key, add in zip(keys, files, strict=True)
        ]

    def filtered(self, files: pa.Table, mask: Mask) -> pa.Table:
        """See `ChangeableTable.filtered`."""
        return files.filter(from_numpy(mask))

    def to_files(self, files: pa.Table) -> list[Add]:
        """See `ChangeableTable.to_files`."""
        return self.current.to_adds(files)

    @cached_property
    def _identities(self) -> writing.IdentityValues:
        return writing.IdentityValues(self.current)

    def numbered(self, rows: Iterable[pa.Table]) -> Iterable[pa.Table]:
        """See `ChangeableTable.numbered`."""
        return self._identities.fill(rows)

    def refuse_assignment(self, columns: Iterable[str]) -> None:
        """Refuse to update identity columns, as delta-spark does."""
        for name in {f.name for f in writing.identity_fields(self.current)} & set(columns):
            problem = f"column {name} is an identity column, which cannot be updated: leave it out"
            raise DeltaError(problem, reason="bad-assignment")

    def commit(self, operation: str, change: TableChange[Add]) -> int:
        """See `ChangeableTable.commit`."""
        transaction, storage = self.transaction(operation, change), self.current.storage
        # The files of a change; of files that only got a deletion vector, the vector.
        old = {remove.path for remove in transaction.removes}
        new = [add.path for add in transaction.adds if add.path not in old]
        new += [action.path for action in transaction.other_actions if isinstance(action, Cdc)]
        written = [locations.relative_path(storage, path) for path in new]
        for add in transaction.adds:
            if add.path in old and add.deletion_vector is not None:
                vector = locations.vector_path(storage, add.deletion_vector)
                written += [] if vector is None else [vector]
        done = commit(storage, transaction, written=written)
        if not done.committed:
            problem = f"another writer has committed the transaction {self.batch} first"
            raise TableError(problem, reason="conflict", file=self.uri)
        return done.version

    def reload(self) -> DeltaTable:
        """See `ChangeableTable.reload`."""
        return DeltaTable(load_snapshot(self.current.storage), self.batch)

    def transaction(self, operation: str, change: TableChange[Add]) -> Transaction:
        """Return the content of the commit of a change."""
        changed = change.changed
        keys = {(file.file.path, file.file.deletion_vector) for file in changed}
        mask = [(add.path, add.deletion_vector) in keys for add in iter_adds(change.opened.select(PLACES))]
        removed = change.opened.filter(from_numpy(np.array(mask, np.bool_)))
        return Transaction(
            operation,
            change.parameters,
            adds=[add for file in changed for add in file.added] + list(change.added),
            removes=self.current.to_removes(removed, data_change=change.changes_rows),
            other_actions=[cdc for file in changed for cdc in file.change_data] + list(change.change_data),
            metadata=self._identities.metadata if change.rows_inserted else None,
            reads=change.reads,
            read_paths=frozenset(change.opened["path"].to_pylist()),
            txn=Txn.of(self.batch),
            current=self.current,
            rows=change.rows,
        )


def write(
    table: str | os.PathLike[str],
    data: Any,
    *,
    mode: Mode = "error",
    where: str | None = None,
    partition_by: str | Sequence[str] | None = None,
    properties: Mapping[str, str | bool | int] | None = None,
    preview: bool = False,
    storage_options: Mapping[str, str] | None = None,
    **options: Any,
) -> CommitResult:
    """Write rows to a table, which is created with the columns of the first rows if it does not exist.

    See `pv.write`.
    """
    check_choice("mode", mode, get_args(Mode), DeltaError, "bad-argument")
    if where is not None and mode != "overwrite":
        raise DeltaError(f"where= needs mode 'overwrite', but mode is {mode!r}", reason="bad-argument")
    storage = open_storage(table, storage_options)
    current = writing.table_or_empty_place(storage)
    if current is not None and is_kept(f"the Delta table {storage.uri}", mode, storage.uri, DeltaError):
        return CommitResult(current.version, committed=False)
    if current is None:
        first, data = first_rows(data)
        planned = writing.planned_table(
            storage, from_arrow_schema(first.schema), partition_by, properties, True, preview
        )
        batch = options.pop("batch", None)
        options.pop("schema_mode", None)
        adds = plan(planned, **options).write_files(data)
        return writing.commit_adds(planned, adds, mode, batch, written=locations.paths_of_adds(planned.storage, adds))
    data = rows_by_column(data, partial(arrow_schema, current.schema))
    if where is not None:
        if unsupported := sorted({"batch", "schema", "schema_mode", "file_bytes"} & set(options)):
            problem = f"{unsupported[0]}= cannot be combined with where=: leave it out"
            raise DeltaError(problem, reason="bad-argument")
        from parquet_variant.tables.changes.operations import replace_where

        changes = ChangeOptions.of(ThreadEngine(options.pop("threads", 1)), **options)
        result = replace_where(DeltaTable(current), changes, data, where)
        return CommitResult(result.version, committed=result.version > current.version)
    run = writing.overwrite if mode == "overwrite" else writing.append
    return run(current, data, **options)


def replace_partitions(table: DeltaTable, options: ChangeOptions, data: Any) -> ChangeResult:
    """Replace all rows of the partitions that new rows belong to, in one commit; other partitions are kept.

    See `Table.overwrite`.
    """
    from parquet_variant.tables.changes.operations import run_change, with_inserts
    from parquet_variant.tables.changes.row_changes import Clause, RowChange

    rows = all_rows(data)
    if not table.current.partition_columns:
        problem = "the table has no partition columns, so no partitions can be replaced: overwrite with where="
        raise DeltaError(problem, reason="not-partitioned")

    def plan(current: ChangeableTable[Add]) -> TableChange[Add]:
        assert isinstance(current, DeltaTable)
        all_rows_of_files = RowChange.of(current, options, [Clause("not_matched_by_source", "delete")])
        changes = all_rows_of_files.plan
        new = [changes.write.with_generated_columns(part) for part in current.numbered(rows)]
        inserts = with_inserts(TableChange((), (), None), changes, new)
        fields = current.current.partition_fields
        written = {tuple(add.partition_values[field.physical_name] for field in fields) for add in inserts.added}

        def in_written_partitions(files: pa.Table) -> pa.Table:
            return files.filter(
                pa.array([key in written for key in locations.partition_keys(files, fields)], pa.bool_())
            )

        deletes = all_rows_of_files.run(current, options.engine, "replace", in_written_partitions(current.files))
        return replace(
            inserts,
            opened=deletes.opened,
            files=deletes.files,
            reads=lambda files: len(in_written_partitions(files)) > 0,
            parameters={"mode": "Overwrite"},
        )

    return run_change(table, "WRITE", plan, options.batch)
