"""Delta tables as the target of the data source: tasks write data files, the driver commits one version.

Owns making the table, the commit of batches, and exactly-once streams. Leaves rows to `frames` and all that a table is
to `delta`.
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
from parquet_variant.tables.storage import open_storage


@dataclass
class TaskActions(WriterCommitMessage):
    """What a task attempt wrote: the add actions of its files."""

    adds: list[Add]


class _DeltaTasks:
    """What batch and stream writers share. Pickled into every task."""

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
        """Write a partition into files of the table that no version names yet."""
        context = TaskContext.get()
        task = context.partitionId() if context else 0
        return TaskActions(self.plan.write_files(map(self.partitioning.with_paths, self.frame.columns(iterator, task))))

    def _table(self, options: WriteOptions) -> Snapshot:
        """The table; planned, if it is not there: it is made with its first rows."""
        storage, by = open_storage(self.path), self.partitioning.names
        if (current := existing_table(storage)) is not None:
            check_partitioned_by(current, by)
            return current
        fields = [
            StructField(field.name, VariantType() if field.name == self.frame.column else field.dataType)
            for field in self.frame.schema.fields
        ] + self.partitioning.new_fields
        # Spark's and Delta's JSON forms of a schema are the same.
        columns = parse_schema(StructType(fields).json())
        self.planned = planned_table(storage, columns, by)
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
        except VariantError:  # nothing was committed
            self._remove(messages)
            raise
        if not result.committed:
            self._remove(messages)

    def _remove(self, messages: list[WriterCommitMessage | None]) -> None:
        """Remove files that no version will name; what is missed here, vacuum removes."""
        storage = open_storage(self.path)
        for add in _adds(messages):
            with suppress(OSError, VariantError):
                storage.delete(unquote(add.path))


def _adds(messages: list[WriterCommitMessage | None]) -> list[Add]:
    return [add for message in messages if isinstance(message, TaskActions) for add in message.adds]


class DeltaBatchWriter(_DeltaTasks, DataSourceArrowWriter):
    """``df.write.format("variant").option("format", "delta")``."""

    def __init__(self, options: WriteOptions, schema: StructType, overwrite: bool) -> None:
        super().__init__(options, schema, overwrite)
        sweep(self.path)
        self.staging = Staging.into(self.path).begin()
        self.plan = replace(self.plan, job=f"{self.staging.job}-")

    @one_line()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskActions:
        """Write a partition; a task that ends after its job leaves nothing."""
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
        self._commit(messages, None)
        self.staging.abort()

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Remove the files of this job: of tasks that ended well, and of those that Spark killed."""
        self.staging.abort()  # first: a task that is still at work sees that, or its file is seen here
        # After a commit that failed, what it wrote may be in the log.
        if None in messages:
            with suppress(OSError, TableError):
                self.plan.remove_files()
            self.staging.abort()  # the directory, now that it is empty


class DeltaStreamWriter(_DeltaTasks, DataSourceStreamArrowWriter):
    """``df.writeStream.format("variant").option("format", "delta")``: every micro-batch is committed once.

    The log remembers the stream's id and the number of its last batch: a batch that is run again, because the query
    died before Spark knew of the commit, changes nothing.
    """

    def __init__(self, options: WriteOptions, schema: StructType, overwrite: bool) -> None:
        super().__init__(options, schema, overwrite)
        self.application = options.application or options.stream_id()

    @one_line()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskActions:
        """Write a partition of a micro-batch."""
        return self._actions(iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Commit a micro-batch as one version, unless it already is."""
        self._commit(messages, (self.application, batchId))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Remove what was written, unless a commit of it failed: that may be in the log."""
        if None in messages:
            self._remove(messages)
