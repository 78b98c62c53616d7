"""The reading half of the data source: a scan's tasks as Spark's partitions, its answers in Spark's Arrow types.

Owns the schema of a read, the way from options and pushed filters to a scan, and the batches for Spark. Leaves which
columns and row groups are read to `parquet.scan`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_schema, to_arrow_type
from pyspark.sql.types import StructField, StructType, VariantType

from parquet_variant.array.variant_array import VariantArray
from parquet_variant.errors import VariantError
from parquet_variant.parquet.columns import find_variants
from parquet_variant.parquet.files import locate, open_file
from parquet_variant.parquet.predicate import Predicate, PredicateError, bind
from parquet_variant.parquet.scan import Scan, ScanTask, scan
from parquet_variant.parquet.selection import arrow_type
from parquet_variant.spark.arrow_variant import is_spark_variant, row_bytes, slices_by_bytes, to_spark
from parquet_variant.spark.filters import predicates_of
from parquet_variant.spark.options import ReadOptions

__all__ = ["BatchReader", "ScanPartition", "plan_scan", "read_schema"]

# What Spark gets at a time: every row of a VARIANT carries its own dictionary there, so rows say little of bytes.
_BATCH_BYTES = 16 << 20


def read_schema(options: ReadOptions) -> StructType:
    """The columns of a read for which the user gave no schema: the typed paths, or else the columns of the first file.

    Raises
    ------
    VariantError
        For a path without a type, or a column of a type that Spark does not have.
    """
    if options.paths is not None:
        return StructType([StructField(name, _type_of_path(name, kind)) for name, (_, kind) in options.paths.items()])
    with open_file(locate(options.sources)[0]) as file:
        variants = {column.path[0] for column in find_variants(file.schema) if len(column.path) == 1}
        arrow = file.reader.schema_arrow
        return StructType(
            [
                StructField(field.name, VariantType() if field.name in variants else _spark_type(field))
                for field in arrow
            ]
        )


def _type_of_path(name: str, kind: str | None) -> Any:
    if kind is None:
        raise VariantError(
            f"column {name} has no type: give one in the option paths, as [path, type], or in schema()",
            reason="bad-option",
        )
    found = arrow_type(kind)
    return VariantType() if found is None else from_arrow_type(found)


def _spark_type(field: pa.Field) -> Any:
    try:
        return from_arrow_type(field.type)
    except Exception as error:
        raise VariantError(
            f"column {field.name} is {field.type}, which Spark does not have: name the columns to read in schema()",
            reason="unsupported-type",
        ) from error


def plan_scan(options: ReadOptions, schema: StructType, predicates: Iterable[Predicate] = ()) -> list[Scan]:
    """The scan that answers a read; further ones, of equal rows, for whole Variant columns beyond the first.

    Parameters
    ----------
    options
        What to read.
    schema
        The columns of the answer: those in `options.paths`, whole Variant columns and ordinary columns.
    predicates
        What rows must satisfy; those that do not fit the columns' types are left out.
    """
    paths = options.paths or {}
    columns: dict[str, Any] = {}
    whole: list[str] = []
    types: dict[str, pa.DataType | None] = {}
    for field in schema.fields:
        variant = isinstance(field.dataType, VariantType)
        types[field.name] = None if variant else to_arrow_type(field.dataType, timezone="UTC")
        if field.name in paths:
            columns[field.name] = (paths[field.name][0], types[field.name])
        elif variant:
            whole.append(field.name)
        else:
            columns[field.name] = field.name
    column = options.column or (whole[0] if whole and not paths else None)
    first = [name for name in whole if column in (None, name)]
    columns |= dict.fromkeys(first, ("$", None))
    scans = [scan(options.sources, columns, _fitting(predicates, types) or None, column=column)] if columns else []
    others = (name for name in whole if name not in first)
    return scans + [scan(options.sources, {name: ("$", None)}, column=name) for name in others]


def _fitting(predicates: Iterable[Predicate], types: dict[str, pa.DataType | None]) -> list[Predicate]:
    found = []
    for predicate in predicates:
        try:
            bind(predicate, types)
        except PredicateError:
            continue
        found.append(predicate)
    return found


@dataclass
class ScanPartition(InputPartition):
    """What one Spark task reads."""

    task: ScanTask


class BatchReader(DataSourceReader):
    """``spark.read.format("variant")``."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self.options = options
        self.schema = schema
        self.predicates: list[Predicate] = []

    @property
    def pushFilters(self) -> _PushFilters:  # noqa: N802 - Spark's name
        """Take what a filter says about rows to skip; Spark applies every filter again."""
        return _PushFilters(self)

    def partitions(self) -> list[ScanPartition]:
        """Row groups that may match, by bytes."""
        scans = plan_scan(self.options, self.schema, self.predicates)
        return [ScanPartition(task) for task in scans[0].tasks(self.options.partition_bytes)] if scans else []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a partition; runs in a task."""
        if not isinstance(partition, ScanPartition):
            return  # Spark's stand-in for "no partitions"
        scans = plan_scan(self.options, self.schema, self.predicates)
        target = to_arrow_schema(self.schema, timezone="UTC")
        for table in _answers(scans, partition.task):
            yield from _batches(table, target)


class _PushFilters:
    """`pushFilters` of a reader.

    Spark refuses a reader that has its own `pushFilters` in sessions where filter pushdown is off, as it is by default;
    it looks at the method's ``__func__``. This one works there and is called where pushdown is on.
    """

    __func__ = staticmethod(DataSourceReader.pushFilters)

    def __init__(self, reader: BatchReader) -> None:
        self._reader = reader

    def __call__(self, filters: list[Filter]) -> Iterable[Filter]:
        self._reader.predicates = predicates_of(filters)
        return filters


def _answers(scans: list[Scan], task: ScanTask) -> Iterator[pa.Table]:
    if len(scans) == 1:
        yield from scans[0].read(task)
        return
    # Several Variant columns: whole row groups of each, side by side. Spark filters the rows.
    parts = []
    for each in scans:
        unfiltered = replace(each, predicate=None, hidden=())
        parts.append(pa.concat_tables([*unfiltered.read(task)] or [each.schema.empty_table()]))
    columns = {name: part.column(name) for part in parts for name in part.schema.names}
    yield pa.table(columns)


def _batches(table: pa.Table, target: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The table in Spark's types, in batches of bounded size."""
    columns: list[VariantArray | pa.Array] = []
    sizes = np.zeros(len(table), np.int64)
    for field in target:
        column = table.column(field.name)
        array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        if isinstance(array, pa.ChunkedArray):
            array = pa.array([], array.type)
        if is_spark_variant(field.type):
            variants = VariantArray(array)
            columns.append(variants)
            sizes += row_bytes(variants)
        else:
            columns.append(array if array.type == field.type else array.cast(field.type))
            sizes += array.nbytes // max(len(array), 1) + 1
    for start, stop in slices_by_bytes(sizes, _BATCH_BYTES):
        arrays = [
            to_spark(column[start:stop]) if isinstance(column, VariantArray) else column.slice(start, stop - start)
            for column in columns
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=target)
