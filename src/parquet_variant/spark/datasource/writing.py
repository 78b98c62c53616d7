"""Writes of the data source: tasks write the files of a directory or table, and the driver commits them once.

Tasks convert the rows that Spark sends to columns with shredded Variants, and stage the files of a directory
(`io.staging`). The files of a table are written by a `TableWritePlan`, and belong to no version before the commit.
"""

from __future__ import annotations

import uuid
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Literal, TypeAlias
from urllib.parse import unquote

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.pandas.types import to_arrow_schema as plain_arrow_schema
from pyspark.sql.types import ArrayType, MapType, StructField, StructType, VariantType

from parquet_variant.arrays.parts import one_chunk
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import IcebergError, JsonError, TableError, VariantError, bad_option
from parquet_variant.ingestion.destinations.parquet import PartitionedFiles
from parquet_variant.ingestion.partition_by import (
    PartitionBy,
    check_partition_names,
    existing_partitions,
    split_columns,
)
from parquet_variant.io.hive import partition_texts, types_to_declare
from parquet_variant.io.staging import Staging, open_staging, sweep
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.ops.parse_json import parse_json
from parquet_variant.ops.shred_variant import infer_shredding_schema, shred_variant
from parquet_variant.spark.arrow_variant import (
    from_spark,
    is_spark_variant,
    nested_variants,
    to_arrow_schema,
    with_marked_variants,
)
from parquet_variant.spark.datasource.options import Batch, WriteOptions
from parquet_variant.spark.frames import choose_column
from parquet_variant.spark.task_errors import one_line
from parquet_variant.tables.commits import is_uncommitted
from parquet_variant.tables.delta.log import snapshot as delta
from parquet_variant.tables.delta.protocol.actions import Add, parse_schema
from parquet_variant.tables.delta.writing import write as delta_write
from parquet_variant.tables.iceberg.catalogs.catalog import LoadedTable
from parquet_variant.tables.iceberg.catalogs.opening import find_table
from parquet_variant.tables.iceberg.locations import normal_location
from parquet_variant.tables.iceberg.metadata.partitioning import spec_of
from parquet_variant.tables.iceberg.metadata.table_metadata import MAIN
from parquet_variant.tables.iceberg.metadata.updates import TableChange
from parquet_variant.tables.iceberg.reading.snapshot import TableFile, newest_snapshot
from parquet_variant.tables.iceberg.writing import write as iceberg_write
from parquet_variant.tables.iceberg.writing import write_plan as iceberg_plan
from parquet_variant.tables.iceberg.writing.commit import check_writable
from parquet_variant.tables.iceberg.writing.write import TableDefinition, new_table
from parquet_variant.tables.partitions import warn_of_null_partitions
from parquet_variant.tables.storage import open_storage
from parquet_variant.tables.write_plan import TableWritePlan

# Messages of tasks; None for a task that failed.
Messages: TypeAlias = "list[WriterCommitMessage | None]"


@dataclass
class WrittenFiles(WriterCommitMessage):
    """The files that a task attempt wrote, as the format describes them, and the rows of staged files."""

    files: list[Any]
    rows: int = 0


class Partitioning:
    """The partition columns of a write; pickled into every task.

    `columns`: names of columns, or paths such as ``day=$.ts:date``.
    `transforms`: whether `columns` may contain transforms of Iceberg, such as ``bucket(16, id)``, which the table
      checks.
    `types`: the Arrow types of the partition columns.
    Raises `VariantError` with reason ``"bad-option"`` for a column that does not exist, or whose values cannot be names
    of directories.
    """

    def __init__(self, columns: Sequence[str], schema: StructType, column: str, *, transforms: bool = False) -> None:
        self.column = column
        self.paths = PartitionBy.of([text for text in columns if "=" in text])
        self.names = tuple(text.partition("=")[0] for text in columns)
        types = {field.name: field.dataType for field in schema.fields}
        for name in self.names:
            if transforms and name.endswith(")"):
                continue
            problem = ""
            if name in self.paths.names and name in types:
                problem = f"the DataFrame already has a column {name!r}: choose another name for the path"
            elif name not in self.paths.names and name not in types:
                problem = f"unknown column {name!r}: choose from {', '.join(types)}, or write {name}=$.path:type"
            elif name == column or isinstance(types.get(name), VariantType | StructType | ArrayType | MapType):
                problem = f"column {name!r} is not a scalar: partition by a path, such as {name}=$.path:type"
            if problem:
                raise bad_option(f"option partitionBy: {problem}")
        arrow = plain_arrow_schema(StructType([field for field in schema.fields if field.name in self.names]))
        self.types = {field.name: field.type for field in [*arrow, *self.paths.fields]}
        if self.names and set(types) <= set(self.names):
            raise bad_option("option partitionBy: the files would contain no column: remove a partition column")

    @property
    def new_fields(self) -> list[StructField]:
        """The partition columns that the DataFrame does not contain."""
        return [StructField(field.name, from_arrow_type(field.type)) for field in self.paths.fields]

    def with_paths(self, columns: Mapping[str, Any]) -> dict[str, Any]:
        """Return the columns of a batch, and the partition columns extracted from paths."""
        return {**columns, **(self.paths.values(columns[self.column]) if self.paths else {})}

    def split(self, columns: Mapping[str, Any]) -> Iterator[tuple[dict[str, str | None], dict[str, Any]]]:
        """Yield the rows of a batch by partition, without the partition columns."""
        file_columns = self.with_paths(columns)
        if not self.names:
            yield {}, file_columns
            return
        keys: dict[str, pa.Array] = {name: file_columns.pop(name) for name in self.names}
        yield from split_columns(keys, file_columns)


# Spark sends 10,000 rows at a time. Larger batches share dictionaries and amortize the set-up of the kernels.
_BATCH_BYTES = 16 << 20
# Bytes of the rows from which the schema of a file is inferred.
_SAMPLE_BYTES = 64 << 20


def _combine_batches(batches: Iterable[pa.RecordBatch], size: int) -> Iterator[pa.Table]:
    """Combine batches to tables of at least `size` bytes."""
    pending: list[pa.RecordBatch] = []
    pending_bytes = 0
    for batch in batches:
        pending.append(batch)
        pending_bytes += batch.nbytes
        if pending_bytes >= size:
            yield pa.Table.from_batches(pending).combine_chunks()
            pending, pending_bytes = [], 0
    if pending:
        yield pa.Table.from_batches(pending).combine_chunks()


class _Target:
    """A directory or table that a job writes to; pickled into every task.

    `write` writes a partition of the DataFrame to files that are not visible yet, in a task. `commit` makes the files
    of all tasks visible at once, unless the batch was committed before. `abort` removes the files of this job, also
    those of tasks that Spark killed, unless a commit may contain them.

    `stream`: the id of the stream, or None for a batch.
    """

    def __init__(
        self, options: WriteOptions, schema: StructType, overwrite: bool, names: Sequence[str], stream: str | None
    ) -> None:
        self.options = options
        self.mode: Literal["append", "overwrite"] = "overwrite" if overwrite else "append"
        self.stream, self.schema = stream, schema
        self.column, _ = choose_column(schema, options.column)
        is_iceberg = options.format == "iceberg"
        self.partitioning = Partitioning(names, schema, self.column, transforms=is_iceberg)

    def columns(self, batches: Iterable[pa.RecordBatch], task: int) -> Iterator[dict[str, Any]]:
        """Yield the columns to write by name: VARIANTs and the JSON text as `VariantArray`, `column` shredded.

        Raises `JsonError` for invalid JSON, with the number of the row in the partition.
        """
        tables, shredding = _combine_batches(batches, _BATCH_BYTES), self.options.schema
        if shredding is None:
            head: list[pa.Table] = []
            while sum(table.nbytes for table in head) < _SAMPLE_BYTES and (table := next(tables, None)) is not None:
                head.append(table)
            if not head:
                return
            sample = [self._columns(table, None, task, 0)[self.column] for table in head]
            shredding = infer_shredding_schema(VariantArray.concat(sample))
            tables = chain(head, tables)
        first_row = 0
        for table in tables:
            yield self._columns(table, shredding, task, first_row)
            first_row += len(table)

    def _columns(self, table: pa.Table, schema: ShreddingSchema | None, task: int, first_row: int) -> dict[str, Any]:
        columns: dict[str, Any] = {}
        for name, column in zip(table.schema.names, table.columns, strict=True):
            array = one_chunk(column)
            if is_spark_variant(array.type):
                array = from_spark(array)
                if name == self.column and schema is not None:
                    array = shred_variant(array, schema)
            elif name == self.column:
                try:
                    array = parse_json(array, schema=schema, dictionary="batch")
                except JsonError as error:
                    position = f"column {self.column}, row {first_row + (error.row or 0)} of partition {task}"
                    message = f"{position}: {error.message}"
                    raise JsonError(message, reason=error.reason, offset=error.offset) from None
            columns[name] = array
        return columns


class _DirectoryTarget(_Target):
    """A directory of Parquet files, which are staged, one per partition of the directory and task."""

    def __init__(self, options: WriteOptions, schema: StructType, overwrite: bool, stream: str | None) -> None:
        staging = open_staging(options.path, "overwrite" if overwrite else "append")
        assert staging is not None  # None is returned only for the mode "ignore"
        names = options.partition_by
        existing = None if overwrite else existing_partitions(options.path)
        if existing is not None and names:
            by = [text.partition("=")[0] for text in names]
            check_partition_names(by, list(existing), options.path, "option partitionBy")
        elif existing is not None:
            if missing := [name for name in existing if name not in schema.names]:
                raise VariantError(
                    f"{options.path} is partitioned by {', '.join(existing)}, and the DataFrame has no column "
                    f"{missing[0]!r}: add the column, or set the option partitionBy to {missing[0]}=$.path:type",
                    reason="missing-column",
                )
            names = tuple(existing)
        super().__init__(options, schema, overwrite, names, stream)
        # The process that commits a stream creates another writer, in which the name of the job must be the same.
        self.staging: Staging = (staging if stream is None else replace(staging, job=stream)).begin()
        if stream is not None:
            # Every commit removes the staging directory, so that its absence does not mean that the job has ended.
            self.staging = replace(self.staging, begun=False)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenFiles:
        context = TaskContext.get()
        task = _task_number()
        # A restarted stream counts attempts from 0 again.
        attempt = f"{context.taskAttemptId() if context else 0}-{uuid.uuid4().hex[:8]}"
        arrow_schema = to_arrow_schema(self.schema)
        first = next(iterator, None)
        if first is None:
            # An empty DataFrame needs one file for its columns. The commit uses it only if there is no other file.
            if task != 0 or self.partitioning.names:
                return WrittenFiles([])
            first = pa.RecordBatch.from_pylist([], arrow_schema)
        directory, variants = self.staging.attempt(task, attempt), nested_variants(arrow_schema)
        with PartitionedFiles(self.staging, directory, task, variants=variants, **self.options.write) as files:
            for columns in self.columns(chain([first], iterator), task):
                for values, part in self.partitioning.split(columns):
                    files.write(values, part)
            files.close()
        return WrittenFiles(files.files, files.rows)

    def commit(self, messages: Messages, batch: Batch | None) -> None:
        with_files = [message for message in messages if isinstance(message, WrittenFiles) and message.files]
        # One empty file is committed if there are no rows.
        with_rows = [message for message in with_files if message.rows] or with_files[:1]
        files = [file for message in with_rows for file in message.files]
        types = types_to_declare(self.partitioning.types)
        if batch is not None:
            self.staging.commit_once(files, self.staging.job, batch[1], types)
            return
        partitions = [partition_texts(file.name.split("/")[:-1]) for file in files]
        values = {name: [texts.get(name) for texts in partitions] for name in self.partitioning.names}
        warn_of_null_partitions(values, sum(message.rows for message in with_files))
        self.staging.commit(files, partition_types=types)

    def abort(self, messages: Messages) -> None:
        self.staging.abort()


class _TableTarget(_Target):
    """A table. `uri`: its directory, below which jobs are recorded."""

    uri: str

    def __init__(self, options: WriteOptions, schema: StructType, overwrite: bool, stream: str | None) -> None:
        super().__init__(options, schema, overwrite, options.partition_by, stream)
        self.plan = self._plan_write(None if options.schema is None else {self.column: options.schema})
        if stream is None:
            sweep(self.uri)
            self.staging = Staging.into(self.uri).begin()
            self.plan = replace(self.plan, job=f"{self.staging.job}-")

    @abstractmethod
    def _plan_write(self, schemas: dict[str, ShreddingSchema] | None) -> TableWritePlan[Any]:
        """Load the table, or plan a new one, which the first commit creates."""

    @abstractmethod
    def _commit_files(self, files: list[Any], batch: Batch | None) -> bool:
        """Commit the files of all tasks at once; return False if the batch was committed before."""

    @abstractmethod
    def _delete_files(self, files: list[Any]) -> None:
        """Delete files that no version of the table will contain."""

    @property
    def new_columns(self) -> StructType:
        """The columns of a new table: those of the DataFrame, and those extracted from paths."""
        fields = [
            StructField(field.name, VariantType() if field.name == self.column else field.dataType)
            for field in self.schema.fields
        ]
        return StructType(fields + self.partitioning.new_fields)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenFiles:
        # A task that outlives its batch removes its files.
        columns = map(self.partitioning.with_paths, self.columns(iterator, _task_number()))
        written = WrittenFiles(self.plan.write_files(columns))
        if self.stream is None:
            try:
                self.staging.check_running()
            except VariantError:
                self._remove([written])
                raise
        return written

    def commit(self, messages: Messages, batch: Batch | None) -> None:
        try:
            is_committed = self._commit_files(_files(messages), batch)
        except VariantError as error:
            if is_uncommitted(error):
                self._remove(messages)
            raise
        if not is_committed:
            self._remove(messages)
        if self.stream is None:
            self.staging.abort()

    def abort(self, messages: Messages) -> None:
        # If all tasks had ended, the commit failed, and the table may contain the files.
        if self.stream is not None:
            if None in messages:
                self._remove(messages)
            return
        # The staging area is removed first, so that a running task notices the end of the job.
        self.staging.abort()
        if None in messages:
            with suppress(OSError, TableError):
                self.plan.remove_files()
            self.staging.abort()  # removes the directory, which is empty now

    def _remove(self, messages: Messages) -> None:
        """Delete the files of tasks; maintenance of the table removes files that cannot be deleted here."""
        with suppress(OSError, VariantError):
            self._delete_files(_files(messages))


def _files(messages: Messages) -> list[Any]:
    return [file for message in messages if isinstance(message, WrittenFiles) for file in message.files]


def _task_number() -> int:
    context = TaskContext.get()
    return context.partitionId() if context else 0


class _DeltaTarget(_TableTarget):
    """A Delta table."""

    planned: delta.Snapshot | None = None  # A new table before its first commit.

    def _plan_write(self, schemas: dict[str, ShreddingSchema] | None) -> TableWritePlan[Any]:
        self.uri = self.options.path
        return delta_write.plan(self._table(), schema=schemas, **self.options.write)

    def _table(self) -> delta.Snapshot:
        storage, partition_by = open_storage(self.uri), self.partitioning.names
        if (current := delta_write.existing_table(storage)) is not None:
            delta_write.check_partitioned_by(current, partition_by)
            return current
        # Delta and Spark represent a schema as the same JSON.
        self.planned = delta_write.planned_table(storage, parse_schema(self.new_columns.json()), partition_by)
        return self.planned

    def _commit_files(self, files: list[Add], batch: Batch | None) -> bool:
        if self.planned is None:
            return delta_write.commit_files(self.uri, files, mode=self.mode, txn=batch).committed
        result = delta_write.commit_adds(self.planned, files, self.mode, batch)
        self.planned = None
        return result.committed

    def _delete_files(self, files: list[Add]) -> None:
        storage = open_storage(self.uri)
        for add in files:
            with suppress(OSError, VariantError):
                storage.delete(unquote(add.path))


class _IcebergTarget(_TableTarget):
    """An Iceberg table."""

    def _plan_write(self, schemas: dict[str, ShreddingSchema] | None) -> TableWritePlan[Any]:
        self.base = newest_snapshot(self._table(), self.options.branch or MAIN)
        self.uri = normal_location(self.base.table.metadata.location)
        return iceberg_plan.plan_write(self.base, schema=schemas, options=self.options.write)

    def _table(self) -> LoadedTable:
        """Return the table; a new table is planned, and created by the first commit of a batch."""
        catalog, identifier = find_table(self.options.path, self.options.catalog)
        table = catalog.find(identifier)
        if table is None:
            columns = with_marked_variants(to_arrow_schema(self.new_columns))
            table = new_table(catalog, identifier, columns, TableDefinition(tuple(self.partitioning.names)))
            # Spark commits a stream with another writer than the tasks have, and the catalog may choose another
            # location for every table that it stages.
            return table if self.stream is None else table.commit(TableChange())
        check_writable(table.metadata)
        if not self.partitioning.names:  # any partition fields of the table are accepted
            return table
        spec = table.metadata.spec
        try:
            asked = spec_of(self.partitioning.names, table.metadata.schema).fields
        except IcebergError:
            asked = ()
        fields = [[(field.source_id, str(field.transform)) for field in either] for either in (asked, spec.fields)]
        if not asked or fields[0] != fields[1]:
            names = ", ".join(field.name for field in spec.fields) or "none"
            raise IcebergError(
                f"option partitionBy: the table's partition fields are {names}, not "
                f"{', '.join(self.partitioning.names)}: leave out partitionBy",
                reason="bad-option",
                file=table.name,
            )
        return table

    def _commit_files(self, files: list[TableFile], batch: Batch | None) -> bool:
        if self.base.table.exists and not files and self.mode == "append":
            return True
        return iceberg_write.commit_files(self.base, files, mode=self.mode, batch=batch).committed

    def _delete_files(self, files: list[TableFile]) -> None:
        self.base.table.files.delete([file.path for file in files])


_TARGETS: dict[str, Any] = {"parquet": _DirectoryTarget, "delta": _DeltaTarget, "iceberg": _IcebergTarget}


class BatchWriter(DataSourceArrowWriter):
    """``df.write.format("variant")``: all rows are committed together."""

    def __init__(self, options: WriteOptions, schema: StructType, overwrite: bool) -> None:
        self.transaction = options.transaction()
        self.target = _TARGETS[options.format](options, schema, overwrite, None)

    @one_line()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenFiles:
        """Write a partition; runs in a task."""
        return self.target.write(iterator)

    @one_line()
    def commit(self, messages: Messages) -> None:
        """Make the files of all tasks visible together."""
        self.target.commit(messages, self.transaction)

    def abort(self, messages: Messages) -> None:
        """Remove the files of this job."""
        self.target.abort(messages)


class StreamWriter(DataSourceStreamArrowWriter):
    """``df.writeStream.format("variant")``: every micro-batch is committed once.

    The directory or table records the id of the stream and the number of its last batch. A repeated batch, which Spark
    runs if the query ended before it recorded the commit, changes nothing.
    """

    def __init__(self, options: WriteOptions, schema: StructType, overwrite: bool) -> None:
        if options.transaction_version is not None:
            raise bad_option(
                f"option txnVersion is {options.transaction_version}: it applies to batches; streams number their "
                "batches"
            )
        application = None if options.format == "parquet" else options.application
        self.stream = application or options.stream_id()
        self.target = _TARGETS[options.format](options, schema, overwrite, self.stream)

    @one_line()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenFiles:
        """Write a partition of a micro-batch; runs in a task."""
        return self.target.write(iterator)

    def commit(self, messages: Messages, batchId: int) -> None:  # noqa: N803 - the name in Spark's interface
        """Commit a micro-batch, unless it was committed before."""
        self.target.commit(messages, (self.stream, batchId))

    def abort(self, messages: Messages, batchId: int) -> None:  # noqa: N803 - the name in Spark's interface
        """Remove the files of a micro-batch."""
        self.target.abort(messages)
