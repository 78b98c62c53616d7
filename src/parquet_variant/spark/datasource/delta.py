"""Delta tables in the data source: versions of the log, the files that each appends, and the commit of new files.

The package `tables.delta` prunes files, applies deletion vectors, writes and commits. `tables` has what all table
formats share.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from pyspark.sql.types import StructField, StructType, VariantType

from parquet_variant.errors import DeltaError, VariantError
from parquet_variant.spark.datasource.options import ReadOptions
from parquet_variant.spark.datasource.tables import (
    Batch,
    TableBatchWriter,
    TableReader,
    TableStreamReader,
    TableStreamWriter,
    TableTaskWriter,
)
from parquet_variant.tables.delta.log.file_actions import iter_adds, log_lines
from parquet_variant.tables.delta.log.segment import commit_path
from parquet_variant.tables.delta.log.snapshot import Snapshot, snapshot
from parquet_variant.tables.delta.protocol.actions import Add
from parquet_variant.tables.delta.protocol.schema import parse_schema, schema_json
from parquet_variant.tables.delta.reading.read import PLACES, DeltaScan, read_file, scan, selected_schema
from parquet_variant.tables.delta.writing.data_files import WritePlan
from parquet_variant.tables.delta.writing.write import (
    check_partitioned_by,
    commit_files,
    commit_new,
    existing_table,
    plan,
    planned_table,
)
from parquet_variant.tables.storage import open_storage


def table_schema(options: ReadOptions) -> StructType:
    """Return the columns of the table."""
    # Delta and Spark represent a schema as the same JSON.
    return StructType.fromJson(json.loads(schema_json(_snapshot(options).schema)))


class DeltaReader(TableReader[Snapshot, Add]):
    """``spark.read.format("variant")`` on a Delta table."""

    def load(self) -> Snapshot:
        """Return the version that the options name; see `TableReader.load`."""
        return _snapshot(self.options)

    def scan_paths(self, current: Snapshot) -> DeltaScan:
        """See `TableReader.scan_paths`."""
        columns, column = self._selection()
        return scan(current, columns, self.options.where, column=column, zone=self.options.zone)

    def scan_rows(self, current: Snapshot) -> DeltaScan:
        """See `TableReader.scan_rows`."""
        return DeltaScan(current, ())

    def read_rows(self, scan: DeltaScan, files: Sequence[Add]) -> Iterator[pa.Table]:
        """See `TableReader.read_rows`."""
        schema = selected_schema(scan.current, self.schema.fieldNames())
        for file in files:
            yield read_file(scan.current, schema, file)


def _snapshot(options: ReadOptions) -> Snapshot:
    return snapshot(options.sources[0], version=options.version, timestamp=options.timestamp)


class DeltaStreamReader(TableStreamReader[Snapshot, Add]):
    """``spark.readStream.format("variant")`` on a Delta table."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        super().__init__(options, DeltaReader(options, schema))

    def newest(self) -> Snapshot:
        """See `TableStreamReader.newest`."""
        return snapshot(self.options.sources[0])

    def number(self, current: Snapshot) -> int:
        """Return the version of the log."""
        return current.version

    def at(self, newest: Snapshot, number: int) -> Snapshot:
        """See `TableStreamReader.at`."""
        return newest if newest.version == number else snapshot(self.options.sources[0], version=number)

    def files_of(self, current: Snapshot) -> list[Add]:
        """See `TableStreamReader.files_of`; the order must not depend on checkpoints of the log."""
        return sorted(iter_adds(current.files.select(PLACES)), key=lambda add: add.path)

    def before(self, newest: Snapshot, starting_version: int) -> int:
        """See `TableStreamReader.before`."""
        return starting_version - 1

    def versions(self, newest: Snapshot, start: int, end: int | None = None) -> Sequence[int]:
        """See `TableStreamReader.versions`."""
        return range(start + 1, (newest.version if end is None else end) + 1)

    def appended(self, newest: Snapshot, number: int) -> list[Add]:
        """Return the files whose rows a version appends; compaction appends none.

        Raises `DeltaError` for a version that removes rows, or that the log no longer contains.
        """
        try:
            actions = log_lines(newest.storage.read(commit_path(number)))
        except FileNotFoundError:
            raise DeltaError(
                f"version {number} is no longer in the log: start the stream with a new checkpoint",
                reason="missing-version",
            ) from None
        if any("remove" in action and action["remove"].get("dataChange", True) for action in actions):
            if self.options.skip_changes:
                return []
            raise DeltaError(
                f"version {number} removes rows, and a stream contains only appended rows: set the option "
                f"skipChangeCommits to true, or start a new stream with startingVersion={number + 1}",
                reason="not-append",
            )
        adds = [Add.from_dict({"dataChange": True} | action["add"]) for action in actions if "add" in action]
        return [add for add in adds if add.data_change]


class _DeltaTable(TableTaskWriter):
    """A Delta table as the target of a write."""

    planned: Snapshot | None = None

    def plan_write(self, schemas: Any) -> WritePlan:
        """See `TableTaskWriter.plan_write`."""
        self.uri = self.options.path
        return plan(self._table(), schema=schemas, **self.options.write)

    def _table(self) -> Snapshot:
        storage, partition_by = open_storage(self.uri), self.partitioning.names
        if (current := existing_table(storage)) is not None:
            check_partitioned_by(current, partition_by)
            return current
        fields = [
            StructField(field.name, VariantType() if field.name == self.frame.column else field.dataType)
            for field in self.frame.schema.fields
        ] + self.partitioning.new_fields
        # Delta and Spark represent a schema as the same JSON.
        columns = parse_schema(StructType(fields).json())
        self.planned = planned_table(storage, columns, partition_by)
        return self.planned

    def commit_files(self, files: Sequence[Add], batch: Batch | None) -> bool:
        """See `TableTaskWriter.commit_files`."""
        if self.planned is None:
            return commit_files(self.uri, files, mode=self.mode, txn=batch).committed
        result = commit_new(self.planned, files, self.mode, batch)
        self.planned = None
        return result.committed

    def delete_files(self, files: Sequence[Add]) -> None:
        """See `TableTaskWriter.delete_files`."""
        storage = open_storage(self.uri)
        for add in files:
            with suppress(OSError, VariantError):
                storage.delete(unquote(add.path))


class DeltaBatchWriter(_DeltaTable, TableBatchWriter):
    """``df.write.format("variant").option("format", "delta")``."""


class DeltaStreamWriter(_DeltaTable, TableStreamWriter):
    """``df.writeStream.format("variant").option("format", "delta")``."""
