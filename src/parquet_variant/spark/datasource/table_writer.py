"""Writes of tables by the data source, in batches and streams: tasks write files, the driver commits them once.

This module implements what all table formats share. `delta_writer` and `iceberg_writer` plan tables and commit files,
and `frames` converts rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from parquet_variant.errors import TableError, VariantError
from parquet_variant.io.staging import Staging, sweep
from parquet_variant.spark.datasource.options import WriteOptions
from parquet_variant.spark.datasource.partitioning import Partitioning
from parquet_variant.spark.frames import Frame
from parquet_variant.spark.task_errors import one_line
from parquet_variant.spark.worker_end import QuietEnd
from parquet_variant.tables.commits import is_uncommitted
from parquet_variant.tables.write_plan import TableWritePlan

# Messages of tasks; None for a task that failed.
Messages: TypeAlias = "list[WriterCommitMessage | None]"
TableMode: TypeAlias = Literal["append", "overwrite"]
# The name of a stream or application, and the number of the batch.
Batch: TypeAlias = tuple[str, int]


@dataclass
class WrittenFiles(WriterCommitMessage):
    """The files that a task attempt wrote, as the table format describes them."""

    files: list[Any]


class TableTaskWriter(ABC):
    """The work of a task and the commit, which batch and stream writers share. Pickled into every task.

    `uri`: the directory of the table, below which jobs are recorded.
    """

    uri: str

    def __init__(self, options: WriteOptions, schema: StructType, overwrite: bool) -> None:
        self.options = options
        self.mode: TableMode = "overwrite" if overwrite else "append"
        self.end = QuietEnd()
        self.frame = Frame(schema, options.column, options.schema)
        transforms = options.format == "iceberg"
        self.partitioning = Partitioning(options.partition_by, schema, self.frame.column, transforms=transforms)
        schemas = None if options.schema is None else {self.frame.column: options.schema}
        self.plan: TableWritePlan[Any] = self.plan_write(schemas)

    @abstractmethod
    def plan_write(self, schemas: Any) -> TableWritePlan[Any]:
        """Load the table, or plan a new one, and return the plan of the write.

        `schemas`: the shredding schema by column, or None.
        """

    @abstractmethod
    def commit_files(self, files: Sequence[Any], batch: Batch | None) -> bool:
        """Commit the files of all tasks at once; return False if the batch was committed before.

        A new table is created by the first commit.
        """

    @abstractmethod
    def delete_files(self, files: Sequence[Any]) -> None:
        """Delete files that no version of the table will contain."""

    def written(self, iterator: Iterator[pa.RecordBatch]) -> WrittenFiles:
        """Write a partition of the DataFrame to data files that no version contains yet."""
        context = TaskContext.get()
        task = context.partitionId() if context else 0
        columns = map(self.partitioning.with_paths, self.frame.columns(iterator, task))
        return WrittenFiles(self.plan.write_files(columns))

    def commit_messages(self, messages: Messages, batch: Batch | None) -> None:
        """Commit the files of all tasks, and delete them if nothing was committed."""
        try:
            is_committed = self.commit_files(_files(messages), batch)
        except VariantError as error:
            if is_uncommitted(error):
                self.remove(messages)
            raise
        if not is_committed:
            self.remove(messages)

    def remove(self, messages: Messages) -> None:
        """Delete the files of tasks; maintenance of the table removes files that cannot be deleted here."""
        with suppress(OSError, VariantError):
            self.delete_files(_files(messages))


def _files(messages: Messages) -> list[Any]:
    return [file for message in messages if isinstance(message, WrittenFiles) for file in message.files]


class TableBatchWriter(TableTaskWriter, DataSourceArrowWriter):
    """``df.write.format("variant")`` on a table."""

    def __init__(self, options: WriteOptions, schema: StructType, overwrite: bool) -> None:
        super().__init__(options, schema, overwrite)
        self.transaction = options.transaction()
        sweep(self.uri)
        self.staging = Staging.into(self.uri).begin()
        self.plan = replace(self.plan, job=f"{self.staging.job}-")

    @one_line()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenFiles:
        """Write a partition; a task that outlives its job removes its files."""
        written = self.written(iterator)
        try:
            self.staging.check_running()
        except VariantError:
            self.remove([written])
            raise
        return written

    @one_line()
    def commit(self, messages: Messages) -> None:
        """Commit the files of all tasks as one version."""
        self.commit_messages(messages, self.transaction)
        self.staging.abort()

    def abort(self, messages: Messages) -> None:
        """Remove the files of this job, also those of tasks that Spark killed."""
        # The staging area is removed first, so that a running task notices the end of the job.
        self.staging.abort()
        # If all tasks had ended, the commit failed, and the table may contain the files.
        if None in messages:
            with suppress(OSError, TableError):
                self.plan.remove_files()
            self.staging.abort()  # removes the directory, which is empty now


class TableStreamWriter(TableTaskWriter, DataSourceStreamArrowWriter):
    """``df.writeStream.format("variant")`` on a table: every micro-batch is committed once.

    The table records the id of the stream and the number of its last batch. A repeated batch, which Spark runs if the
    query ended before it recorded the commit, changes nothing.
    """

    def __init__(self, options: WriteOptions, schema: StructType, overwrite: bool) -> None:
        super().__init__(options, schema, overwrite)
        options.check_stream()
        self.application = options.application or options.stream_id()

    @one_line()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenFiles:
        """Write a partition of a micro-batch."""
        return self.written(iterator)

    def commit(self, messages: Messages, batchId: int) -> None:  # noqa: N803 - the name in Spark's interface
        """Commit a micro-batch as one version, unless it was committed before."""
        self.commit_messages(messages, (self.application, batchId))

    def abort(self, messages: Messages, batchId: int) -> None:  # noqa: N803 - the name in Spark's interface
        """Remove the files, unless the commit failed, after which the table may contain them."""
        if None in messages:
            self.remove(messages)
