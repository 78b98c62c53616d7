"""The writing half of the data source: tasks stage files, the driver commits them.

Owns the commit of batches and streams. Leaves rows to `frames`, files to `parquet.writer`, the destination to
`io.staging`, and Delta tables to `delta_writer`.
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
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from parquet_variant.ingestion.destinations.parquet import PartitionedFiles
from parquet_variant.io.staging import StagedFile, Staging, open_staging
from parquet_variant.spark.arrow_variant import nested_variants
from parquet_variant.spark.datasource.options import WriteOptions
from parquet_variant.spark.datasource.partitioning import Partitioning
from parquet_variant.spark.frames import Frame
from parquet_variant.spark.task_errors import one_line
from parquet_variant.spark.worker_end import QuietEnd


@dataclass
class TaskFiles(WriterCommitMessage):
    """What a task attempt staged."""

    files: tuple[StagedFile, ...]  # Its files.
    rows: int  # Rows in them.


class _Tasks:
    """What batch and stream writers share: the work of a task. Pickled into every task."""

    def __init__(self, options: WriteOptions, schema: StructType, overwrite: bool, job: str | None = None) -> None:
        staging = open_staging(options.path, "overwrite" if overwrite else "append")
        assert staging is not None  # only the mode "ignore" gives none
        self.options = options
        self.end = QuietEnd()
        self.frame = Frame(schema, options.column, options.schema)
        self.partitioning = Partitioning(options.partition_by, schema, self.frame.column)
        self.staging: Staging = (staging if job is None else replace(staging, job=job)).begin()

    @one_line()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskFiles:
        """Write Spark's partition into staged files, one for each partition of the directory."""
        context = TaskContext.get()
        task = context.partitionId() if context else 0
        # Spark counts attempts from 0 again when a stream is started again.
        attempt = f"{context.taskAttemptId() if context else 0}-{uuid.uuid4().hex[:8]}"
        arrow_schema = to_arrow_schema(self.frame.schema, timezone="UTC")
        first = next(iterator, None)
        if first is None:
            # One file must say what the columns are, also of no rows; the commit takes it only if there is no other.
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


class BatchWriter(_Tasks, DataSourceArrowWriter):
    """``df.write.format("variant")``."""

    @one_line()
    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Make the files of all tasks visible together."""
        self.staging.commit(_files(messages))

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Remove what was staged."""
        self.staging.abort()


def _files(messages: Iterable[WriterCommitMessage | None]) -> list[StagedFile]:
    """The files to commit: those with rows, or one without if there are no rows at all."""
    with_files = [message for message in messages if isinstance(message, TaskFiles) and message.files]
    with_rows = [message for message in with_files if message.rows] or with_files[:1]
    return [file for message in with_rows for file in message.files]


class StreamWriter(_Tasks, DataSourceStreamArrowWriter):
    """``df.writeStream.format("variant")``: every micro-batch is seen once, also if it is run again."""

    def __init__(self, options: WriteOptions, schema: StructType, overwrite: bool) -> None:
        # The committing process makes a writer of its own: the job's name must be the same there.
        super().__init__(options, schema, overwrite, options.stream_id())
        # Each batch's commit removes the directory: that it is gone does not mean that the stream has ended.
        self.staging = replace(self.staging, begun=False)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Make a micro-batch visible, unless it already is."""
        self.staging.commit_once(_files(messages), self.staging.job, batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Remove what was staged."""
        self.staging.abort()
