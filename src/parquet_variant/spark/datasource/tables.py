"""Tables in the data source: batch reads, streams and writes; what all table formats share.

Tasks read the files of one version, pruned by the metadata of the table, or write files, which the driver commits once.
A stream has the rows of the version at the start, then the rows that every later version appends. An offset is a
position between files: ``{"version": v}`` after all files of version `v`, and with ``"files": n`` after the first `n`
files of the next version. While the version at the start is read, ``"snapshot"`` names it and `n` counts its files.
`delta` and `iceberg` find versions, plan tables, read files and commit them; `parquet` and `frames` convert rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from parquet_variant.errors import TableError, VariantError
from parquet_variant.io.staging import Staging, sweep
from parquet_variant.spark.arrow_variant import to_arrow_schema
from parquet_variant.spark.datasource.options import LimitedStreamReader, ReadOptions, WriteOptions
from parquet_variant.spark.datasource.parquet import BatchReader, spark_batches
from parquet_variant.spark.frames import Frame, Partitioning
from parquet_variant.spark.task_errors import one_line
from parquet_variant.spark.worker_end import QuietEnd
from parquet_variant.tables.commits import is_uncommitted
from parquet_variant.tables.table_scan import File, TableScan, TableScanTask
from parquet_variant.tables.write_plan import TableWritePlan

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadLimit


Version = TypeVar("Version")


@dataclass
class TablePartition(InputPartition):
    """The input of one Spark task: some files of the version that the query started with."""

    scan: TableScan[Any]  # The query over the table, which can be pickled.
    task: TableScanTask[Any]  # The files, as a task of the query.


class TableReader(BatchReader, Generic[Version, File]):
    """``spark.read.format("variant")`` on a table."""

    @abstractmethod
    def load(self) -> Version:
        """Return the version of the table that the options name."""

    @abstractmethod
    def scan_paths(self, current: Version) -> TableScan[File]:
        """Return the query over typed paths."""

    @abstractmethod
    def scan_rows(self, current: Version) -> TableScan[File]:
        """Return a query that only lists all files; `read_rows` reads their rows."""

    @abstractmethod
    def read_rows(self, scan: Any, files: Sequence[File]) -> Iterator[pa.Table]:
        """Yield the rows of files with the columns of the read schema."""

    @one_line()
    def partitions(self) -> list[InputPartition]:
        """Return the files that may match the filter."""
        return self.partitions_of(self.load())

    def partitions_of(self, current: Version, files: Sequence[File] | None = None) -> list[InputPartition]:
        """Return the files of a version that may match the filter, or the given files."""
        query = self.scan_rows(current) if self.options.paths is None else self.scan_paths(current)
        if files is None:
            tasks = query.tasks(self.options.partition_bytes)
        else:
            tasks = [TableScanTask((file,), file.size) for file in files]
        return [TablePartition(query, task) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition; runs in a task."""
        if not isinstance(partition, TablePartition):
            return  # Spark passes a placeholder if there are no partitions
        target = to_arrow_schema(self.schema)
        with one_line():
            for table in self._tables(partition):
                yield from spark_batches(table, target)

    def _tables(self, partition: TablePartition) -> Iterator[pa.Table]:
        if self.options.paths is not None:
            yield from partition.scan.read(partition.task)
        else:
            yield from self.read_rows(partition.scan, partition.task.files)


Offset: TypeAlias = dict[str, int]
# The version of an offset before the version at the start, whose files are read as a whole.
_BEFORE_SNAPSHOT = -1


class TableStreamReader(LimitedStreamReader, Generic[Version, File]):
    """``spark.readStream.format("variant")`` on a table.

    The stream starts with all rows of the table, or at ``startingVersion``. Then it delivers every appended row once.
    ``maxFilesPerTrigger`` and ``maxBytesPerTrigger`` limit a micro-batch, which has at least one file. A version that
    removes rows ends the query with an error, unless ``skipChangeCommits`` skips it. With the trigger ``availableNow``
    the query ends with the version that was the newest when it started.

    Versions have numbers, which increase from commit to commit.
    """

    def __init__(self, options: ReadOptions, reader: TableReader[Version, File]) -> None:
        super().__init__(options)
        self.reader = reader
        self.last_version: int | None = None

    @abstractmethod
    def newest(self) -> Version:
        """Load the newest version of the table."""

    @abstractmethod
    def number(self, current: Version) -> int:
        """Return the number of a version."""

    @abstractmethod
    def at(self, newest: Version, number: int) -> Version:
        """Return the version of a number."""

    @abstractmethod
    def files_of(self, current: Version) -> list[File]:
        """Return all files of a version, always in the same order."""

    @abstractmethod
    def before(self, newest: Version, starting_version: int) -> int:
        """Return the number of the version before the one that ``startingVersion`` names."""

    @abstractmethod
    def versions(self, newest: Version, start: int, end: int | None = None) -> Sequence[int]:
        """Return the numbers of the versions after `start` and up to `end`, in order."""

    @abstractmethod
    def appended(self, newest: Version, number: int) -> list[File]:
        """Return the files whose rows a version appends.

        Raises `TableError` for a version that removes rows, unless such versions are skipped.
        """

    def initialOffset(self) -> Offset:  # noqa: N802 - the name in Spark's interface
        """Return the offset before all files, or before ``startingVersion``."""
        first = self.options.starting_version
        return {"version": _BEFORE_SNAPSHOT if first is None else self.before(self.newest(), first)}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - the name in Spark's interface
        """Record the newest version, with which the query ends."""
        self.last_version = self.number(self.newest())

    def latestOffset(  # noqa: N802 - the name in Spark's interface
        self, start: Offset | None = None, limit: ReadLimit | None = None
    ) -> Offset:
        """Return the offset at the end of the next micro-batch, or after the newest version in Spark 4.1."""
        newest = self.newest()
        last = self.number(newest) if self.last_version is None else self.last_version
        batch_limit = self.batch_limit(limit)
        if start is not None and last <= start["version"]:
            return start
        if start is None:
            # A stream may start at a version that does not exist yet.
            return {"version": max(last, self.initialOffset()["version"])}
        if batch_limit.is_unlimited:
            return {"version": last}
        offset, files, size = start, 0, 0
        for next_offset, file in self._files(newest, start, {"version": last}):
            files, size = files + 1, size + file.size
            if not batch_limit.admits(files, size):
                return offset
            offset = next_offset
        return {"version": last}

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        """Return the files of a micro-batch, which are the same for every call with the same offsets."""
        if start == end:
            return []
        newest = self.newest()
        if start == {"version": _BEFORE_SNAPSHOT} and end.keys() == {"version"}:
            # Only files that may match the filter.
            return self.reader.partitions_of(self.at(newest, end["version"]))
        files = [file for _, file in self._files(newest, start, end)]
        return self.reader.partitions_of(self.at(newest, self._last_read_version(newest, end)), files)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition; runs in a task."""
        return self.reader.read(partition)

    def _files(self, newest: Version, start: Offset, end: Offset) -> Iterator[tuple[Offset, File]]:
        """Yield the files between two offsets, with the offset after each file."""
        version, skip = start["version"], start.get("files", 0)
        if version == _BEFORE_SNAPSHOT:
            first = start.get("snapshot", end.get("snapshot", end["version"]))
            files = self.files_of(self.at(newest, first))
            stop = end.get("files", 0) if end["version"] == _BEFORE_SNAPSHOT else len(files)
            for number in range(skip, stop):
                is_last = number + 1 == len(files)
                after = (
                    {"version": first}
                    if is_last
                    else {"version": _BEFORE_SNAPSHOT, "snapshot": first, "files": number + 1}
                )
                yield after, files[number]
            version, skip = first, 0
            if end["version"] == _BEFORE_SNAPSHOT:
                return
        for number in self.versions(newest, version, self._last_read_version(newest, end)):
            appended = self.appended(newest, number)
            stop = end["files"] if number > end["version"] else len(appended)
            for position in range(skip, stop):
                is_last = position + 1 == len(appended)
                after = {"version": number} if is_last else {"version": version, "files": position + 1}
                yield after, appended[position]
            version, skip = number, 0

    def _last_read_version(self, newest: Version, end: Offset) -> int:
        """Return the newest version from which a micro-batch reads files."""
        if end["version"] == _BEFORE_SNAPSHOT:
            return end["snapshot"]
        return self.versions(newest, end["version"])[0] if "files" in end else end["version"]


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
