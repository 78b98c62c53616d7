"""Writes of Delta tables by the data source, in batches and streams: tasks write files, the driver commits a version.

Streams, and batches with ``txnAppId`` and ``txnVersion``, are committed exactly once. `frames` converts rows, and the
package `delta` writes and commits files.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal
from urllib.parse import unquote

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructField, StructType, VariantType

from parquet_variant.delta.log.snapshot import Snapshot
from parquet_variant.delta.protocol.actions import Add
from parquet_variant.delta.protocol.schema import parse_schema
from parquet_variant.delta.writing.create import check_partitioned_by, commit_new, existing_table, planned_table
from parquet_variant.delta.writing.write import commit_files, plan
from parquet_variant.errors import TableError, VariantError
from parquet_variant.io.staging import Staging, sweep
from parquet_variant.spark.datasource.options import WriteOptions
from parquet_variant.spark.datasource.partitioning import Partitioning
from parquet_variant.spark.frames import Frame
from parquet_variant.spark.task_errors import one_line
from parquet_variant.spark.worker_end import QuietEnd
from parquet_variant.tables.storage import is_uncommitted, open_storage


@dataclass
class TaskActions(WriterCommitMessage):
    """The add actions of the files that a task attempt wrote."""

    adds: list[Add]


class _DeltaTaskWriter:
    """The work of a task and the commit, which batch and stream writers share. Pickled into every task."""

    def __init__(self, options: WriteOptions, schema: StructType, overwrite: bool) -> None:
        self.path = options.path
        self.overwrite = overwrite
        self.end = QuietEnd()
        self.planned: Snapshot | None = None
        self.frame = Frame(schema, options.column, options.schema)
        self.partitioning = Partitioning(options.partition_by, schema, self.frame.column)
        current = self._table(options)
        schemas = None if options.schema is None else {self.frame.column: options.schema}
        self.plan = plan(current, schema=schemas, **options.write)

    def _actions(self, iterator: Iterator[pa.RecordBatch]) -> TaskActions:
        """Write a partition to data files that no version contains yet."""
        context = TaskContext.get()
        task = context.partitionId() if context else 0
        return TaskActions(self.plan.write_files(map(self.partitioning.with_paths, self.frame.columns(iterator, task))))

    def _table(self, options: WriteOptions) -> Snapshot:
        """Return the table; a new table is planned, and created by the first commit."""
        storage, partition_by = open_storage(self.path), self.partitioning.names
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

    def _commit(self, messages: list[WriterCommitMessage | None], txn: tuple[str, int] | None) -> None:
        adds = _adds(messages)
        mode: Literal["append", "overwrite"] = "overwrite" if self.overwrite else "append"
        try:
            if self.planned is not None:
                result = commit_new(self.planned, adds, mode, txn)
                self.planned = None
            else:
                result = commit_files(self.path, adds, mode=mode, txn=txn)
        except VariantError as error:
            if is_uncommitted(error):
                self._remove(messages)
            raise
        if not result.committed:
            self._remove(messages)

    def _remove(self, messages: list[WriterCommitMessage | None]) -> None:
        """Remove files that no version will contain; `vacuum` removes those that cannot be removed here."""
        storage = open_storage(self.path)
        for add in _adds(messages):
            with suppress(OSError, VariantError):
                storage.delete(unquote(add.path))


def _adds(messages: list[WriterCommitMessage | None]) -> list[Add]:
    return [add for message in messages if isinstance(message, TaskActions) for add in message.adds]


class DeltaBatchWriter(_DeltaTaskWriter, DataSourceArrowWriter):
    """``df.write.format("variant").option("format", "delta")``."""

    def __init__(self, options: WriteOptions, schema: StructType, overwrite: bool) -> None:
        super().__init__(options, schema, overwrite)
        self.transaction = options.transaction()
        sweep(self.path)
        self.staging = Staging.into(self.path).begin()
        self.plan = replace(self.plan, job=f"{self.staging.job}-")

    @one_line()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskActions:
        """Write a partition; a task that outlives its job removes its files."""
        actions = self._actions(iterator)
        try:
            self.staging.check_running()
        except VariantError:
            self._remove([actions])
            raise
        return actions

    @one_line()
    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Commit the files of all tasks as one version."""
        self._commit(messages, self.transaction)
        self.staging.abort()

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Remove the files of this job, also those of tasks that Spark killed."""
        # The staging area is removed first, so that a running task notices the end of the job.
        self.staging.abort()
        # If all tasks had ended, the commit failed, and the log may contain the files.
        if None in messages:
            with suppress(OSError, TableError):
                self.plan.remove_files()
            self.staging.abort()  # removes the directory, which is empty now


class DeltaStreamWriter(_DeltaTaskWriter, DataSourceStreamArrowWriter):
    """``df.writeStream.format("variant").option("format", "delta")``: every micro-batch is committed once.

    The log records the id of the stream and the number of its last batch. A repeated batch, which Spark runs if the
    query ended before it recorded the commit, changes nothing.
    """

    def __init__(self, options: WriteOptions, schema: StructType, overwrite: bool) -> None:
        super().__init__(options, schema, overwrite)
        options.check_stream()
        self.application = options.application or options.stream_id()

    @one_line()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskActions:
        """Write a partition of a micro-batch."""
        return self._actions(iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - the name in Spark's interface
        """Commit a micro-batch as one version, unless it was committed before."""
        self._commit(messages, (self.application, batchId))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - the name in Spark's interface
        """Remove the files, unless the commit failed, after which the log may contain them."""
        if None in messages:
            self._remove(messages)
