"""The writing half of the data source: tasks stage files, the driver commits them.

Owns which column becomes the Variant, what a task does with the batches that Spark sends, and the commit of batches
and streams. Leaves the file to `parquet.writer` and the destination to `parquet.staging`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StringType, StructType, VariantType

import parquet_variant as pv
from parquet_variant.array.variant_array import VariantArray
from parquet_variant.errors import JsonError, VariantError
from parquet_variant.parquet.staging import StagedFile, Staging, open_staging
from parquet_variant.parquet.writer import VariantWriter
from parquet_variant.schema.shredding_schema import ShreddingSchema
from parquet_variant.spark.arrow_variant import from_spark, is_spark_variant, nested_variants
from parquet_variant.spark.options import WriteOptions

__all__ = ["BatchWriter", "StreamWriter", "TaskFiles", "choose_column"]

# Spark sends 10,000 rows at a time; larger batches share dictionaries and amortise the kernels' set-up.
_BATCH_BYTES = 16 << 20
# Rows that a file's schema is inferred from where none is given.
_SAMPLE_BYTES = 64 << 20


@dataclass
class TaskFiles(WriterCommitMessage):
    """What a task attempt staged.

    Parameters
    ----------
    files
        Its files.
    rows
        Rows in them.
    """

    files: tuple[StagedFile, ...]
    rows: int


def choose_column(schema: StructType, name: str | None) -> tuple[str, bool]:
    """The column that becomes the Variant, and whether it holds JSON text.

    Raises
    ------
    VariantError
        With reason ``"bad-column"`` if there is no such column, none at all, or more than one and no name.
    """
    types = {field.name: field.dataType for field in schema.fields}
    variants = [column for column, kind in types.items() if isinstance(kind, VariantType)]
    texts = [column for column, kind in types.items() if isinstance(kind, StringType)]
    if name is not None:
        if name not in (*variants, *texts):
            listed = ", ".join(variants + texts) or "none"
            raise VariantError(
                f"column {name!r} is not a VARIANT or string column: choose from {listed}", reason="bad-column"
            )
        return name, name in texts
    found = variants or texts
    if len(found) != 1:
        listed = ", ".join(found) or "none"
        raise VariantError(
            f"the option column must name the VARIANT or JSON string column; candidates: {listed}", reason="bad-column"
        )
    return found[0], not variants


class _Tasks:
    """What batch and stream writers share: the work of a task. Pickled into every task."""

    def __init__(self, options: WriteOptions, schema: StructType, overwrite: bool) -> None:
        staging = open_staging(options.path, "overwrite" if overwrite else "append")
        assert staging is not None  # only the mode "ignore" gives none
        self.staging: Staging = staging
        self.options = options
        self.column, self.is_json = choose_column(schema, options.column)
        self.schema = schema

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskFiles:
        """Write a partition into a staged file."""
        context = TaskContext.get()
        task = context.partitionId() if context else 0
        # Spark counts attempts from 0 again when a stream is started again.
        attempt = f"{context.taskAttemptId() if context else 0}-{uuid.uuid4().hex[:8]}"
        arrow_schema = to_arrow_schema(self.schema, timezone="UTC")
        file = StagedFile(self.staging.attempt(task, attempt), self.staging.file_name(task))
        tables = _joined(iterator, _BATCH_BYTES)
        first = next(tables, None)
        if first is None:
            # One file must say what the columns are, also of no rows; the commit takes it only if there is no other.
            if task != 0:
                return TaskFiles((), 0)
            first = arrow_schema.empty_table()
        with VariantWriter(file.path, variants=nested_variants(arrow_schema), **self.options.write) as writer:
            for columns in self._shredded(chain([first], tables), task):
                writer.write_batch(columns)
        info = writer.close()
        return TaskFiles((file,), info.rows)

    def _shredded(self, tables: Iterator[pa.Table], task: int) -> Iterator[dict[str, Any]]:
        """The columns to write; where no schema is given, the first rows choose it for the file."""
        schema = self.options.schema
        if schema is None:
            head: list[pa.Table] = []
            while sum(table.nbytes for table in head) < _SAMPLE_BYTES and (table := next(tables, None)) is not None:
                head.append(table)
            sample = [self._columns(table, None, task, 0)[self.column] for table in head]
            schema = pv.infer_shredding_schema(VariantArray.concat(sample))
            tables = chain(head, tables)
        done = 0
        for table in tables:
            yield self._columns(table, schema, task, done)
            done += len(table)

    def _columns(self, table: pa.Table, schema: ShreddingSchema | None, task: int, first_row: int) -> dict[str, Any]:
        """The columns by name: VARIANTs and the JSON text as `VariantArray`, the chosen one shredded."""
        columns: dict[str, Any] = {}
        for name, column in zip(table.schema.names, table.columns, strict=True):
            array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
            if is_spark_variant(array.type):
                array = from_spark(array)
                if name == self.column and schema is not None:
                    array = pv.shred_variant(array, schema)
            elif name == self.column:
                array = self._parse(array, schema, task, first_row)
            columns[name] = array
        return columns

    def _parse(self, text: pa.Array, schema: ShreddingSchema | None, task: int, first_row: int) -> VariantArray:
        try:
            return pv.parse_json(text, schema=schema, dictionary="batch")
        except JsonError as error:
            where = f"column {self.column}, row {first_row + (error.row or 0)} of partition {task}"
            raise JsonError(f"{where}: {error.message}", reason=error.reason, offset=error.offset) from None


def _joined(batches: Iterable[pa.RecordBatch], size: int) -> Iterator[pa.Table]:
    """The batches put together to at least `size` bytes."""
    waiting: list[pa.RecordBatch] = []
    waiting_bytes = 0
    for batch in batches:
        waiting.append(batch)
        waiting_bytes += batch.nbytes
        if waiting_bytes >= size:
            yield pa.Table.from_batches(waiting).combine_chunks()
            waiting, waiting_bytes = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting).combine_chunks()


class BatchWriter(_Tasks, DataSourceArrowWriter):
    """``df.write.format("variant")``."""

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Make the files of all tasks visible together."""
        self.staging.commit(_files(messages))

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Remove what was staged."""
        self.staging.abort()


def _files(messages: Iterable[WriterCommitMessage | None]) -> list[StagedFile]:
    """The files to commit: those with rows, or one without if there are no rows at all."""
    written = [message for message in messages if isinstance(message, TaskFiles) and message.files]
    with_rows = [message for message in written if message.rows] or written[:1]
    return [file for message in with_rows for file in message.files]


class StreamWriter(_Tasks, DataSourceStreamArrowWriter):
    """``df.writeStream.format("variant")``: every micro-batch is seen once, also if it is run again."""

    def __init__(self, options: WriteOptions, schema: StructType, overwrite: bool) -> None:
        super().__init__(options, schema, overwrite)
        # The committing process makes a writer of its own: the job's name must be the same there.
        self.staging = Staging(options.path, overwrite, options.stream_id())

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Make a micro-batch visible, unless it already is."""
        self.staging.commit_once(_files(messages), self.staging.job, batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Remove what was staged."""
        self.staging.abort()
