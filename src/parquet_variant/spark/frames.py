"""`Frame`: conversion of the rows that Spark sends to a writing task to columns with shredded Variants.

This module chooses the Variant column and the size of batches, parses JSON text, and infers a schema if none is set. It
checks the option ``partitionBy``: columns of the DataFrame, or JSON paths of the Variant column, which
`ingestion.partition_by` evaluates; the writers decide into which files the rows go.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_schema
from pyspark.sql.types import ArrayType, MapType, StringType, StructField, StructType, VariantType

from parquet_variant.arrays.parts import one_chunk
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import JsonError, VariantError, bad_option
from parquet_variant.ingestion.partition_by import (
    PartitionBy,
    check_partition_names,
    existing_partitions,
    split_columns,
)
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.ops.parse_json import parse_json
from parquet_variant.ops.shred_variant import infer_shredding_schema, shred_variant
from parquet_variant.spark.arrow_variant import from_spark, is_spark_variant
from parquet_variant.spark.engine import is_connect
from parquet_variant.spark.task_errors import from_spark_errors, to_spark_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

Result = TypeVar("Result")


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
        arrow = to_arrow_schema(StructType([field for field in schema.fields if field.name in self.names]))
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


def appended_partitions(dest: str, columns: tuple[str, ...], schema: StructType) -> tuple[str, ...]:
    """Return the option ``partitionBy`` for an append to a directory; without the option, the directory's columns.

    Raises `VariantError` with reason ``"bad-option"`` for other columns than those of the directory, and
    ``"missing-column"`` if the DataFrame lacks a column of the directory.
    """
    existing = existing_partitions(dest)
    if existing is None:
        return columns
    if columns:
        check_partition_names([text.partition("=")[0] for text in columns], list(existing), dest, "option partitionBy")
        return columns
    missing = [name for name in existing if name not in schema.names]
    if missing:
        raise VariantError(
            f"{dest} is partitioned by {', '.join(existing)}, and the DataFrame has no column {missing[0]!r}: add the "
            f"column, or set the option partitionBy to {missing[0]}=$.path:type",
            reason="missing-column",
        )
    return tuple(existing)


# Spark sends 10,000 rows at a time. Larger batches share dictionaries and amortize the set-up of the kernels.
_BATCH_BYTES = 16 << 20
# Bytes of the rows from which the schema of a file is inferred.
_SAMPLE_BYTES = 64 << 20


def choose_column(schema: StructType, name: str | None) -> tuple[str, bool]:
    """Return the name of the column that becomes the Variant, and whether it contains JSON text.

    Raises `VariantError` with reason ``"bad-column"`` if no column has the name, or if no name is set and there is not
    exactly one candidate.
    """
    types = {field.name: field.dataType for field in schema.fields}
    variants = [column for column, data_type in types.items() if isinstance(data_type, VariantType)]
    strings = [column for column, data_type in types.items() if isinstance(data_type, StringType)]
    if name is not None:
        if name not in (*variants, *strings):
            candidates = ", ".join(variants + strings) or "none"
            raise VariantError(
                f"column {name!r} is not a VARIANT or string column: choose from {candidates}", reason="bad-column"
            )
        return name, name in strings
    columns = variants or strings
    if len(columns) != 1:
        candidates = ", ".join(columns) or "none"
        raise VariantError(
            f"the option column must name the VARIANT or JSON string column; candidates: {candidates}",
            reason="bad-column",
        )
    return columns[0], not variants


def merged_batches(
    df: DataFrame,
    column: str | None,
    work: Callable[[VariantArray], Result],
    empty: Result,
    merge: Callable[[Result, Result], Result],
) -> Result:
    """Return the merged results of `work` for the batches of a VARIANT or JSON column, as one job over all rows.

    `empty`: the result of no rows.
    """
    from pyspark.sql.functions import arrow_udf

    name, is_json = choose_column(df.schema, column)

    @arrow_udf("binary")
    def batch_result(values: pa.Array) -> pa.Array:
        # The first row of a batch contains its result. An Arrow UDF does not need pandas; `mapInArrow` does.
        with to_spark_errors():
            result = pickle.dumps(work(parse_json(values) if is_json else from_spark(values)))
        return pa.array([result, *[None] * (len(values) - 1)], pa.binary())

    def with_batch(merged: Result, row: Row) -> Result:
        return merge(merged, pickle.loads(row.result))

    # Non-deterministic, because Spark would otherwise run it again on the rows that the filter returns.
    results = df.select(batch_result.asNondeterministic()(df[name]).alias("result")).where("result IS NOT NULL")
    with from_spark_errors():
        if is_connect(df.sparkSession):
            return reduce(with_batch, results.toLocalIterator(), empty)
        return results.rdd.treeAggregate(empty, with_batch, merge)


class Frame:
    """The columns of a DataFrame for writing tasks; pickled into every task.

    `column`: the VARIANT or JSON string column; by default the only one.
    `shredding`: the shredding schema; None to infer it from the first rows.
    """

    def __init__(self, schema: StructType, column: str | None, shredding: ShreddingSchema | None) -> None:
        self.schema = schema
        self.column, self.is_json = choose_column(schema, column)
        self.shredding = shredding

    def columns(self, batches: Iterable[pa.RecordBatch], task: int) -> Iterator[dict[str, Any]]:
        """Yield the columns to write by name: VARIANTs and the JSON text as `VariantArray`, `column` shredded.

        Raises `JsonError` for invalid JSON, with the number of the row in the partition.
        """
        tables = _combine_batches(batches, _BATCH_BYTES)
        shredding = self.shredding
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
                array = self._parse(array, schema, task, first_row)
            columns[name] = array
        return columns

    def _parse(self, text: pa.Array, schema: ShreddingSchema | None, task: int, first_row: int) -> VariantArray:
        try:
            return parse_json(text, schema=schema, dictionary="batch")
        except JsonError as error:
            position = f"column {self.column}, row {first_row + (error.row or 0)} of partition {task}"
            raise JsonError(f"{position}: {error.message}", reason=error.reason, offset=error.offset) from None


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
