"""Writes of Parquet directories by the data source, in batches and streams: tasks stage files, the driver commits them.

`frames` converts rows, `VariantWriter` writes files, `io.staging` commits them, and `delta_writer` writes Delta tables.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from parquet_variant.ingestion.destinations.parquet import PartitionedFiles
from parquet_variant.io.hive import partition_texts
from parquet_variant.io.staging import StagedFile, Staging, open_staging
from parquet_variant.spark.arrow_variant import nested_variants, to_arrow_schema
from parquet_variant.spark.datasource.options import WriteOptions
from parquet_variant.spark.datasource.partitioning import Partitioning, appended_partitions
from parquet_variant.spark.frames import Frame
from parquet_variant.spark.task_errors import one_line
from parquet_variant.spark.worker_end import QuietEnd
from parquet_variant.tables.partitions import warn_of_null_partitions


@dataclass
class TaskFiles(WriterCommitMessage):
    """The files that a task attempt staged, and the number of their rows."""

    files: tuple[StagedFile, ...]
    rows: int


class _TaskWriter:
    """The work of a task, which batch and stream writers share. Pickled into every task."""

    def __init__(self, options: WriteOptions, schema: StructType, overwrite: bool, job: str | None = None) -> None:
        staging = open_staging(options.path, "overwrite" if overwrite else "append")
        assert staging is not None  # None is returned only for the mode "ignore"
        self.options = options
        self.end = QuietEnd()
        self.frame = Frame(schema, options.column, options.schema)
        names = options.partition_by
        if not overwrite:
            names = appended_partitions(options.path, names, schema)
        self.partitioning = Partitioning(names, schema, self.frame.column)
        self.staging: Staging = (staging if job is None else replace(staging, job=job)).begin()

    @one_line()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskFiles:
        """Write a partition of the DataFrame to staged files, one per partition of the directory."""
        context = TaskContext.get()
        task = context.partitionId() if context else 0
        # A restarted stream counts attempts from 0 again.
        attempt = f"{context.taskAttemptId() if context else 0}-{uuid.uuid4().hex[:8]}"
        arrow_schema = to_arrow_schema(self.frame.schema)
        first = next(iterator, None)
        if first is None:
            # An empty DataFrame needs one file for its columns. The commit uses it only if there is no other file.
            if task != 0 or self.partitioning.names:
                return TaskFiles((), 0)
            first = pa.RecordBatch.from_pylist([], arrow_schema)
        directory, variants = self.staging.attempt(task, attempt), nested_variants(arrow_schema)
        with PartitionedFiles(self.staging, directory, task, variants=variants, **self.options.write) as files:
            for columns in self.frame.columns(chain([first], iterator), task):
                for values, part in self.partitioning.split(columns):
                    files.write(values, part)
            files.close()
        return TaskFiles(tuple(files.files), files.rows)


class BatchWriter(_TaskWriter, DataSourceArrowWriter):
    """``df.write.format("variant")``."""

    def __init__(self, options: WriteOptions, schema: StructType, overwrite: bool) -> None:
        options.transaction()  # raises, because only Delta tables record transactions
        super().__init__(options, schema, overwrite)

    @one_line()
    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Make the files of all tasks visible together."""
        files = _files(messages)
        partitions = [partition_texts(file.name.split("/")[:-1]) for file in files]
        rows = sum(message.rows for message in messages if isinstance(message, TaskFiles))
        values = {name: [texts.get(name) for texts in partitions] for name in self.partitioning.names}
        warn_of_null_partitions(values, rows)
        self.staging.commit(files)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Remove the staged files."""
        self.staging.abort()


def _files(messages: Iterable[WriterCommitMessage | None]) -> list[StagedFile]:
    """Return the files to commit: those with rows, or one empty file if there are no rows."""
    with_files = [message for message in messages if isinstance(message, TaskFiles) and message.files]
    with_rows = [message for message in with_files if message.rows] or with_files[:1]
    return [file for message in with_rows for file in message.files]


class StreamWriter(_TaskWriter, DataSourceStreamArrowWriter):
    """``df.writeStream.format("variant")``: every micro-batch is committed once, even if it is repeated."""

    def __init__(self, options: WriteOptions, schema: StructType, overwrite: bool) -> None:
        # The process that commits creates another writer, in which the name of the job must be the same.
        super().__init__(options, schema, overwrite, options.stream_id())
        # Every commit removes the staging directory, so that its absence does not mean that the job has ended.
        self.staging = replace(self.staging, begun=False)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - the name in Spark's interface
        """Make a micro-batch visible, unless it was committed before."""
        self.staging.commit_once(_files(messages), self.staging.job, batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - the name in Spark's interface
        """Remove the staged files."""
        self.staging.abort()
