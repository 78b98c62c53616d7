"""Parquet files in the data source: batch reads, streams of a directory, and writes.

Row groups are Spark's partitions. `Table.scan` reads typed paths, and `Table.to_arrow` reads whole rows. An offset of a
stream is the set of the files that were read; the commit journal decides which files are visible during a commit. In
writes, tasks stage files (`frames` converts rows, `VariantWriter` writes), and the driver commits them (`io.staging`).

The reader does not implement `pushFilters`, because Spark 4.3 applies the filters that one query pushed down to the
next query on the same DataFrame, and to the other branch of a union, which then miss rows. The option ``where`` of a
DataFrame skips files and row groups.
"""

from __future__ import annotations

import base64
import posixpath
import uuid
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType, VariantType

from parquet_variant.arrays.parts import one_chunk
from parquet_variant.errors import VariantError, VariantFileError
from parquet_variant.files.parquet.format.files import ParquetSource, locate, open_file
from parquet_variant.files.parquet.reading.read import partitioned_table
from parquet_variant.files.parquet.scanning.scan import Scan, scan
from parquet_variant.files.parquet.scanning.scan_plan import ScanTask, tasks_of_groups
from parquet_variant.ingestion.destinations.parquet import PartitionedFiles
from parquet_variant.io.hive import partition_texts
from parquet_variant.io.staging import COMPACTED, StagedFile, Staging, open_staging
from parquet_variant.spark.arrow_variant import (
    as_spark,
    nested_variants,
    row_bytes,
    slices_by_bytes,
    to_arrow_schema,
    to_arrow_type,
)
from parquet_variant.spark.datasource.options import (
    BatchLimit,
    LimitedStreamReader,
    ReadOptions,
    WriteOptions,
    is_ordinary,
)
from parquet_variant.spark.frames import Frame, Partitioning, appended_partitions
from parquet_variant.spark.task_errors import one_line
from parquet_variant.spark.worker_end import QuietEnd
from parquet_variant.tables.partitions import warn_of_null_partitions

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadLimit


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
        files = _committed_files(messages)
        partitions = [partition_texts(file.name.split("/")[:-1]) for file in files]
        rows = sum(message.rows for message in messages if isinstance(message, TaskFiles))
        values = {name: [texts.get(name) for texts in partitions] for name in self.partitioning.names}
        warn_of_null_partitions(values, rows)
        self.staging.commit(files)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Remove the staged files."""
        self.staging.abort()


def _committed_files(messages: Iterable[WriterCommitMessage | None]) -> list[StagedFile]:
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
        self.staging.commit_once(_committed_files(messages), self.staging.job, batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - the name in Spark's interface
        """Remove the staged files."""
        self.staging.abort()


# The size of a batch for Spark, in bytes, because every row of a VARIANT has its own dictionary there.
_BATCH_BYTES = 16 << 20
# The cost of opening a file, in bytes, as in Spark's own sources.
_OPEN_BYTES = 4 << 20
# The number of tasks from which small files share a task.
_MIN_TASKS = 32


@dataclass
class ScanPartition(InputPartition):
    """The input of one Spark task."""

    tasks: tuple[ScanTask, ...]


def _with_paths(options: ReadOptions, schema: StructType) -> ReadOptions:
    """Return the options of a filtered read of whole rows as those of a scan, which evaluates the filter."""
    if options.where is None or options.paths is not None:
        return options
    names = schema.fieldNames()
    if path_like := [name for name in names if name.startswith("$")]:
        raise VariantError(
            f"the name of the column {path_like[0]} looks like a path: set the option columns, too", reason="bad-option"
        )
    return replace(options, paths={name: (name, None) for name in names})


class BatchReader(DataSourceReader):
    """``spark.read.format("variant")``: typed paths through a scan, or whole rows."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self.options = _with_paths(options, schema)
        self.schema = schema
        self.end = QuietEnd()

    @one_line()
    def partitions(self) -> list[InputPartition]:
        """Return the row groups that may match the filter."""
        return self.partitions_of_files(None)

    def partitions_of_files(self, files: Sequence[ParquetSource] | None) -> list[InputPartition]:
        """Return the row groups of some files, or of all files of the source, that may match the filter."""
        size = self.options.partition_bytes
        if self.options.paths is None:
            return _pack_tasks(self._row_tasks(locate(self.options.sources) if files is None else files, size), size)
        query = self._scan()
        return _pack_tasks((query if files is None else query.of(files)).tasks(size), size)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition; runs in a task."""
        if not isinstance(partition, ScanPartition):
            return  # Spark passes a placeholder if there are no partitions
        target = to_arrow_schema(self.schema)
        with one_line():
            read = self._row_tables if self.options.paths is None else self._scan().read
            for task in partition.tasks:
                for table in read(task):
                    yield from spark_batches(table, target)

    # -- typed paths

    def _scan(self) -> Scan:
        columns, column = self._selection()
        return scan(self.options.sources, columns, self.options.where, column=column, zone=self.options.zone)

    def _selection(self) -> tuple[dict[str, Any], str | None]:
        """Return the output columns of the scan (paths, Variants, ordinary columns), and the Variant column."""
        paths = self.options.paths or {}
        columns: dict[str, Any] = {}
        column = self.options.column
        for name, data_type in self._types().items():
            if name in paths and is_ordinary(paths[name]):
                columns[name] = paths[name][0]
            elif name in paths:
                columns[name] = (paths[name][0], data_type)
            elif data_type is None:
                columns[name], column = ("$", None), column or name
            else:
                columns[name] = name
        return columns, column

    def _types(self) -> dict[str, pa.DataType | None]:
        """Return the Arrow types of the columns; None for a Variant."""
        return {
            field.name: None if isinstance(field.dataType, VariantType) else to_arrow_type(field.dataType)
            for field in self.schema.fields
        }

    # -- whole rows

    def _row_tasks(self, files: Sequence[ParquetSource], size: int) -> Iterator[ScanTask]:
        names = self.schema.fieldNames()
        for source in files:
            with open_file(source) as file:
                leaves = [leaf for node in file.schema.children if node.name in names for leaf in node.leaves()]
                sizes = {group: file.facts.size(leaves, [group]) for group in file.facts.groups}
                yield from tasks_of_groups(file, sizes, size)

    def _row_tables(self, task: ScanTask) -> Iterator[pa.Table]:
        with open_file(task.source) as file:
            for number in task.row_groups:
                file_columns = {node.name for node in file.schema.children} | set(dict(file.source.partition))
                names = [name for name in self.schema.fieldNames() if name in file_columns]
                if not self.options.merge_schema and (missing := set(self.schema.fieldNames()) - file_columns):
                    raise VariantFileError(
                        f"the file has no column {min(missing)}: choose from {', '.join(sorted(file_columns))}, or set "
                        "mergeSchema to true to read null for missing columns",
                        reason="no-such-column",
                        file=file.name,
                    )
                yield partitioned_table(file, [number], names)


def _pack_tasks(tasks: Iterable[ScanTask], size: int) -> list[InputPartition]:
    """Return one partition per task; many small files share one, because a Spark task costs as much as reading 100."""
    task_list = list(tasks)
    costs = [task.bytes + _OPEN_BYTES for task in task_list]
    max_cost = min(size, max(_OPEN_BYTES, sum(costs) // _MIN_TASKS))
    packed: list[list[ScanTask]] = []
    packed_cost = max_cost
    for task, cost in zip(task_list, costs, strict=True):
        if packed_cost + cost > max_cost or not packed:
            packed.append([])
            packed_cost = 0
        packed[-1].append(task)
        packed_cost += cost
    return [ScanPartition(tuple(group)) for group in packed]


def spark_batches(table: pa.Table, target: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield a table in Spark's types, in batches of bounded size. Missing columns (mergeSchema) are null."""
    table_columns = set(table.column_names)
    arrays = [
        one_chunk(table.column(field.name)) if field.name in table_columns else pa.nulls(len(table), field.type)
        for field in target
    ]
    sizes = sum(
        (row_bytes(array, field.type) for array, field in zip(arrays, target, strict=True)), np.zeros(len(table))
    )
    for start, stop in slices_by_bytes(sizes, _BATCH_BYTES):
        parts = [
            _as_field(array.slice(start, stop - start), field) for array, field in zip(arrays, target, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(parts, schema=target)


def _as_field(array: pa.Array, field: pa.Field) -> pa.Array:
    """Return a column in the type of the read schema."""
    try:
        return as_spark(array, field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise VariantError(
            f"column {field.name} cannot be converted to {field.type} ({error}): remove it from the schema, or set a "
            "path and a type in the option columns",
            reason="type-mismatch",
        ) from None


class DirectoryStreamReader(LimitedStreamReader):
    """``spark.readStream.format("variant")`` on a directory or glob.

    The first micro-batch contains all existing files. Then every committed file with a new name is read once.
    ``maxFilesPerTrigger`` and ``maxBytesPerTrigger`` limit a micro-batch to the oldest files, at least one. An offset
    lists the files that were read and still exist.
    """

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        super().__init__(options)
        self.reader = BatchReader(options, schema)
        self.last_files: frozenset[str] | None = None

    def initialOffset(self) -> dict[str, str]:  # noqa: N802 - the name in Spark's interface
        """Return the offset before all files."""
        return _offset(frozenset())

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - the name in Spark's interface
        """Record the existing files, with which the query ends."""
        self.last_files = frozenset(self._existing_files())

    def latestOffset(  # noqa: N802 - the name in Spark's interface
        self, start: dict[str, Any] | None = None, limit: ReadLimit | None = None
    ) -> dict[str, Any]:
        """Return the files that were read before and the new files, the oldest first; all files in Spark 4.1.

        Raises `VariantFileError` with reason ``"not-append"`` if files that were read have been compacted into new
        files.
        """
        existing = self._existing_files()
        if start is None:
            return _offset(frozenset(existing))
        read = _files(start)
        new = [path for path in existing if path not in read and (self.last_files is None or path in self.last_files)]
        self._refuse_compacted(read - existing.keys(), new)
        if not new:
            return start
        batch_limit = self.batch_limit(limit)
        if not batch_limit.is_unlimited:
            new = _oldest(existing, new, batch_limit)
        return _offset((read & existing.keys()) | frozenset(new))

    def _refuse_compacted(self, removed: frozenset[str], new: Iterable[str]) -> None:
        """Raise `VariantFileError` if a new file contains rows of removed files, which the stream has read."""
        if removed and (file := next((path for path in new if posixpath.basename(path).startswith(COMPACTED)), None)):
            raise VariantFileError(
                f"optimize has compacted files that this stream has read into {file}: start the stream with a new "
                "checkpoint (compaction of Delta tables does not affect streams)",
                reason="not-append",
                file=file,
            )

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Return the files of a micro-batch, which are the same for every call with the same offsets."""
        read, existing = _files(start), self._existing_files()
        new = _files(end) - read
        self._refuse_compacted(read - existing.keys(), new)
        if missing := sorted(new - existing.keys()):
            raise VariantFileError(
                f"{missing[0]} was removed before this stream read it: start the stream with a new checkpoint",
                reason="no-such-file",
                file=missing[0],
            )
        return self.reader.partitions_of_files([existing[path] for path in sorted(new)])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition; runs in a task."""
        return self.reader.read(partition)

    def _existing_files(self) -> dict[str, ParquetSource]:
        try:
            return {source.path: source for source in locate(self.options.sources)}
        except VariantFileError as error:
            if error.reason != "no-files":
                raise
            return {}


def _oldest(files: dict[str, ParquetSource], paths: list[str], limit: BatchLimit) -> list[str]:
    """Return the paths of the files that were modified first, within a limit."""
    infos = {info.path: info for info in files[paths[0]].filesystem.get_file_info(paths)}
    times = {path: info.mtime_ns or 0 for path, info in infos.items() if info.type == pafs.FileType.File}
    oldest: list[str] = []
    size = 0
    for path in sorted(paths, key=lambda path: (times.get(path, 0), path)):
        size += infos[path].size or 0 if path in times else 0
        if not limit.admits(len(oldest) + 1, size):
            break
        oldest.append(path)
    return oldest


def _offset(files: frozenset[str]) -> dict[str, Any]:
    """Return the offset as Spark stores it. The names are compressed, because they are long and similar."""
    text = "\n".join(sorted(files)).encode()
    return {"count": len(files), "files": base64.b64encode(zlib.compress(text, 9)).decode() if files else ""}


def _files(offset: dict[str, Any]) -> frozenset[str]:
    text = zlib.decompress(base64.b64decode(offset["files"])).decode() if offset["files"] else ""
    return frozenset(text.split("\n")) - {""}
