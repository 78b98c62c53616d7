"""Writes of the data source: tasks write the files of a directory or table, and the driver commits them once.

Tasks convert the rows that Spark sends to columns with shredded Variants; an `ingestion.destination` writes them.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.pandas.types import to_arrow_schema as plain_arrow_schema
from pyspark.sql.types import ArrayType, MapType, StructField, StructType, VariantType

from parquet_variant.arrays.capsules import is_marked_by_spark
from parquet_variant.arrays.parts import one_chunk
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import JsonError, bad_option
from parquet_variant.ingestion.destination import WriteRequest
from parquet_variant.ingestion.partition_by import PartitionBy
from parquet_variant.io.directories import partition_texts
from parquet_variant.io.staging import StagedFile
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.ops.parse_json import parse_json
from parquet_variant.ops.shred_variant import infer_shredding_schema, shred_variant
from parquet_variant.query.selection import Selected
from parquet_variant.spark import arrow_variant
from parquet_variant.spark.datasource.options import WriteOptions
from parquet_variant.spark.engine import choose_column
from parquet_variant.spark.task_errors import one_line
from parquet_variant.tables.delta.protocol.actions import parse_schema
from parquet_variant.tables.partitions import warn_of_null_partitions
from parquet_variant.tables.row_input import Batch

# Messages of tasks; None for a task that failed.
Messages: TypeAlias = "list[WriterCommitMessage | None]"


@dataclass
class WrittenFiles(WriterCommitMessage):
    """The files that a task attempt wrote, as the format describes them, and the rows of staged files."""

    files: list[Any]
    rows: int = 0


def _partition_by(arguments: Sequence[str], schema: StructType, column: str) -> PartitionBy:
    """Return the partition columns of a write: columns, paths such as ``day=$.ts:date``, or transforms of Iceberg."""
    paths = PartitionBy.of([text for text in arguments if "=" in text])
    selected = {path.name: path for path in paths.columns}
    types = {field.name: field.dataType for field in schema.fields}
    for name in (text.partition("=")[0] for text in arguments):
        problem = ""
        if name in selected and name in types:
            problem = f"the DataFrame already has a column {name!r}: choose another name for the path"
        elif name not in selected and name not in types and not name.endswith(")"):
            problem = f"unknown column {name!r}: choose from {', '.join(types)}, or write {name}=$.path:type"
        elif name == column or isinstance(types.get(name), VariantType | StructType | ArrayType | MapType):
            problem = f"column {name!r} is not a scalar: partition by a path, such as {name}=$.path:type"
        if problem:
            raise bad_option(f"option partitionBy: {problem}")
        kind = None if name not in types else plain_arrow_schema(StructType([schema[name]])).field(0).type
        selected.setdefault(name, Selected(name, None, kind))
    names = [text.partition("=")[0] for text in arguments]
    if names and set(types) <= set(names):
        raise bad_option("option partitionBy: the files would contain no column: remove a partition column")
    return PartitionBy(tuple(selected[name] for name in names), declared=frozenset(names))


# Spark sends 10,000 rows at a time. Larger batches share dictionaries and amortize the set-up of the kernels.
_BATCH_BYTES = 16 << 20
# Bytes of the rows from which the schema of a file is inferred.
_SAMPLE_BYTES = 64 << 20


def _combine_batches(batches: Iterable[pa.RecordBatch], size: int) -> Iterator[pa.Table]:
    """Combine batches to tables of at least `size` bytes."""
    pending: list[pa.RecordBatch] = []
    pending_bytes = 0
    for batch in batches:
        if not len(batch):
            continue
        pending.append(batch)
        pending_bytes += batch.nbytes
        if pending_bytes >= size:
            yield pa.Table.from_batches(pending).combine_chunks()
            pending, pending_bytes = [], 0
    if pending:
        yield pa.Table.from_batches(pending).combine_chunks()


class _Writer:
    """Writes a DataFrame, or a stream of this id, in tasks and where Spark commits, into which it is pickled."""

    def __init__(self, options: WriteOptions, schema: StructType, overwrite: bool, stream: str | None) -> None:
        self.schema, self.shredding = schema, options.schema
        self.column, _ = choose_column(schema, options.column)
        arrow_schema = arrow_variant.to_arrow_schema(schema)
        request = WriteRequest(
            dest=options.path,
            format=options.format,
            mode="overwrite" if overwrite else "append",
            column=self.column,
            columns=tuple(name for name in schema.names if name != self.column),
            partition_by=_partition_by(options.partition_by, schema, self.column),
            catalog=options.catalog,
            branch=options.branch,
            write=options.write,
        )
        destination = request.open()
        assert destination is not None  # None is returned only for the mode "ignore"
        self.destination = destination
        new_fields = [
            StructField(field.name, VariantType() if field.name == self.column else field.dataType)
            for field in schema.fields
        ]
        new_fields += [StructField(field.name, from_arrow_type(field.type)) for field in request.partition_by.fields]
        columns: Any = arrow_variant.to_arrow_schema(StructType(new_fields))
        if options.format == "delta":  # Delta and Spark represent a schema as the same JSON
            columns = parse_schema(StructType(new_fields).json())
        more = {"variants": arrow_variant.nested_variants(arrow_schema)} if options.format == "parquet" else {}
        destination.begin(options.schema, columns, stream, **more)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenFiles:
        """Write a partition; runs in a task."""
        context = TaskContext.get()
        task = context.partitionId() if context else 0
        # A restarted stream counts attempts from 0 again.
        attempt = f"{context.taskAttemptId() if context else 0}-{uuid.uuid4().hex[:8]}"
        with one_line():
            columns = self._columns(iterator, task)
            if (first := next(columns, None)) is None:
                return WrittenFiles([])
            written = self.destination.write(chain([first], columns), task, attempt)
        return WrittenFiles(list(written.files), written.rows)

    def _commit(self, messages: Messages, batch: Batch | None) -> None:
        """Make the files of all tasks visible together, unless the batch was committed before."""
        files, partition_by = _files(messages), self.destination.request.partition_by
        rows = sum(message.rows for message in messages if isinstance(message, WrittenFiles))
        if not rows:
            empty = self._converted(arrow_variant.to_arrow_schema(self.schema).empty_table(), self.shredding, 0, 0)
            files = list(self.destination.write_no_rows(empty).files)
        if files and isinstance(files[0], StagedFile):
            partitions = [partition_texts(file.name.split("/")[:-1]) for file in files]
            values = {name: [partition.get(name) for partition in partitions] for name in partition_by.names}
            partition_by.check_derived(self.destination.dest, [name for name in values if {*values[name]} == {None}])
            if batch is None:
                warn_of_null_partitions(values, rows)
        self.destination.commit(files, batch=batch)

    def abort(self, messages: Messages, batchId: int | None = None) -> None:  # noqa: N803 - the name in Spark's interface
        """Remove the files of a job or micro-batch. If all tasks had ended, the commit failed, and may contain them."""
        self.destination.abort(_files(messages), may_be_committed=None not in messages)

    def _columns(self, batches: Iterable[pa.RecordBatch], task: int) -> Iterator[dict[str, Any]]:
        """Yield the columns to write by name: VARIANTs and the JSON text as `VariantArray`, `column` shredded."""
        tables, shredding = _combine_batches(batches, _BATCH_BYTES), self.shredding
        if shredding is None:
            head: list[pa.Table] = []
            while sum(table.nbytes for table in head) < _SAMPLE_BYTES and (table := next(tables, None)) is not None:
                head.append(table)
            if not head:
                return
            sample = [self._converted(table, None, task, 0)[self.column] for table in head]
            shredding = infer_shredding_schema(VariantArray.concat(sample))
            tables = chain(head, tables)
        first_row = 0
        for table in tables:
            yield self._converted(table, shredding, task, first_row)
            first_row += len(table)

    def _converted(self, table: pa.Table, schema: ShreddingSchema | None, task: int, first_row: int) -> dict[str, Any]:
        columns: dict[str, Any] = {}
        for name, column in zip(table.schema.names, table.columns, strict=True):
            array = one_chunk(column)
            if is_marked_by_spark(array.type):
                array = arrow_variant.from_spark(array)
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


def _files(messages: Messages) -> list[Any]:
    return [file for message in messages if isinstance(message, WrittenFiles) for file in message.files]


class BatchWriter(_Writer, DataSourceArrowWriter):
    """``df.write.format("variant")``: all rows are committed together."""

    def __init__(self, options: WriteOptions, schema: StructType, overwrite: bool) -> None:
        self.transaction = options.transaction()
        super().__init__(options, schema, overwrite, None)

    @one_line()
    def commit(self, messages: Messages) -> None:
        """Make the files of all tasks visible together."""
        self._commit(messages, self.transaction)


class StreamWriter(_Writer, DataSourceStreamArrowWriter):
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
        super().__init__(options, schema, overwrite, self.stream)

    def commit(self, messages: Messages, batchId: int) -> None:  # noqa: N803 - the name in Spark's interface
        """Commit a micro-batch, unless it was committed before."""
        self._commit(messages, (self.stream, batchId))
