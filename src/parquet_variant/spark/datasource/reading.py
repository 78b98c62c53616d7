"""Reads of the data source: the schema, and the rows of files and tables as tasks of a scan.

`Table.scan` plans and reads typed paths and whole rows, in the same way for all formats. Tasks of the scan are Spark's
partitions.

The reader does not implement `pushFilters`, because Spark 4.3 applies the filters that one query pushed down to the
next query on the same DataFrame, and to the other branch of a union, which then miss rows. The option ``where`` of a
DataFrame skips files and row groups.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import DataType, StructField, StructType, VariantType

from parquet_variant.arrays.capsules import is_variant_field
from parquet_variant.arrays.parts import one_chunk
from parquet_variant.errors import VariantError, VariantFileError, bad_option
from parquet_variant.files.parquet.format.files import ParquetSource, locate, open_file
from parquet_variant.files.parquet.reading.read import read_rows
from parquet_variant.files.parquet.scanning.scan import Scan, types_in_files
from parquet_variant.io.parallel import grouped
from parquet_variant.query.selection import Question, Selected, holds_variants, read_selection
from parquet_variant.spark import arrow_variant
from parquet_variant.spark.datasource.options import ReadOptions, is_ordinary
from parquet_variant.spark.task_errors import one_line
from parquet_variant.tables.delta.protocol.actions import schema_json
from parquet_variant.tables.opening import open
from parquet_variant.tables.table.table import Table
from parquet_variant.types.forms import with_fields

# The size of a batch for Spark, in bytes, because every row of a VARIANT has its own dictionary there.
_BATCH_BYTES = 16 << 20
# The cost of opening a file, in bytes, as in Spark's own sources.
_OPEN_BYTES = 4 << 20
# The number of tasks from which small files share a task.
_MIN_TASKS = 32


def open_table(options: ReadOptions) -> Table:
    """Open the files or the table, at the version that the options of a batch name."""
    source: Any = options.sources[0] if len(options.sources) == 1 else list(options.sources)
    at: Any = options.timestamp
    if options.format == "iceberg" and at is not None and at.isdecimal():
        at = int(at)
    named = {"version": options.version, "at": at, "branch": options.branch, "tag": options.tag}
    return open(source, format=options.format, catalog=options.catalog, column=options.column, **named)  # type: ignore[arg-type]


def read_schema(options: ReadOptions) -> StructType:
    """Return the typed paths of a read, or the columns of the first file (of all files with ``mergeSchema``)."""
    if options.paths is not None:
        names = [path for path, type_name in options.paths.values() if is_ordinary((path, type_name))]
        ordinary = {name: Selected(name, None, column=name) for name in names}
        stored = open_table(options).scan(ordinary).schema if ordinary else pa.schema([])
        return StructType(
            [
                StructField(name, _spark_type(stored.field(path[0])) if is_ordinary(path) else _path_type(name, *path))
                for name, path in options.paths.items()
            ]
        )
    if options.format == "delta":  # Delta and Spark represent a schema as the same JSON
        schema = StructType.fromJson(json.loads(schema_json(open_table(options).snapshot.schema)))
    elif options.format != "parquet":
        schema = StructType([StructField(field.name, _spark_type(field)) for field in open_table(options).schema])
    else:
        files = locate(options.sources)
        fields: dict[str, StructField] = {}
        for source in files if options.merge_schema else files[:1]:
            with open_file(replace(source, partition=()) if options.recursive else source) as file:
                for field in read_rows(file, [], partition=file.source.partition).schema:
                    column = StructField(field.name, _spark_type(field))
                    if fields.setdefault(field.name, column) != column:
                        raise VariantError(
                            f"column {field.name} is {column.dataType.simpleString()} in {source.path}, and "
                            f"{fields[field.name].dataType.simpleString()} in other files: name the columns in "
                            "schema()",
                            reason="files-differ",
                        )
        schema = StructType(list(fields.values()))
    variants = [field.name for field in arrow_variant.to_arrow_schema(schema) if holds_variants(field.type)]
    if options.column is not None and not {options.column, options.column.partition(".")[0]} & set(variants):
        problem = f"{options.column} is not a VARIANT column: choose from {', '.join(variants) or 'none'}"
        raise VariantError(problem, reason="no-such-column")
    return schema


def _path_type(name: str, path: str, type_name: str | None) -> DataType:
    if type_name is None:
        raise bad_option(f"column {name} has no type: set one in the option columns, as [path, type], or in schema()")
    arrow = read_selection({name: (path, type_name)})[0].output
    if arrow is not None and holds_variants(arrow):
        raise VariantError(
            f"Spark cannot cast {path} to {type_name}, a type that contains VARIANTs: use a type without variant, cast "
            "to variant and use variant_explode, or use the engine duckdb",
            reason="unsupported-type",
        )
    return VariantType() if arrow is None else from_arrow_type(arrow)


def _spark_type(field: pa.Field) -> DataType:
    try:
        return from_arrow_type(_in_spark(field).type)
    except Exception as error:
        raise VariantError(
            f"column {field.name} is {field.type}, which Spark does not support: name the other columns in schema()",
            reason="unsupported-type",
        ) from error


def _in_spark(field: pa.Field) -> pa.Field:
    """Return a field with Variants, at any depth, in Spark's representation, and without metadata."""
    kind = arrow_variant.SPARK_VARIANT if is_variant_field(field) else with_fields(field.type, _in_spark)
    return pa.field(field.name, kind, field.nullable)


@dataclass
class ScanPartition(InputPartition):
    """The input of one Spark task: tasks of scans, which can be pickled."""

    work: list[tuple[Any, Any]]


class BatchReader(DataSourceReader):
    """``spark.read.format("variant")``: typed paths, or whole rows."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self.options = options
        self.schema = schema
        # Whole rows of Parquet files are read by the columns and types of each file.
        self._reads_whole_rows = options.format == "parquet" and options.paths is None and options.where is None

    @one_line()
    def partitions(self) -> list[InputPartition]:
        """Return the files and row groups that may match the filter."""
        if self._reads_whole_rows:
            return self.partitions_of_files(locate(self.options.sources))
        scan = self.scan(open_table(self.options))
        return self.partitions_of(scan, scan.tasks(self.options.partition_bytes))

    def partitions_of_files(self, files: Sequence[ParquetSource]) -> list[InputPartition]:
        """Return the row groups of some Parquet files of the source that may match the filter."""
        size = self.options.partition_bytes
        if self._reads_whole_rows:
            scans = map(self._scan_of_file, files)
            return _packed([(scan.of(()), task) for scan in scans for task in scan.tasks(size)], size)
        scan = self.scan(open_table(self.options)).of(files)
        return self.partitions_of(scan, scan.tasks(size))

    def partitions_of(self, scan: Any, tasks: Iterable[Any]) -> list[InputPartition]:
        """Return the tasks of a scan as partitions."""
        # A task names its files, so that the list of all files need not be pickled with each of them.
        sent = scan.of(()) if isinstance(scan, Scan) else scan
        return _packed([(sent, task) for task in tasks], self.options.partition_bytes)

    def scan(self, table: Table) -> Any:
        """Return the scan of a table: of typed paths, whole Variants and ordinary columns."""
        paths, column = self.options.paths or {}, self.options.column
        columns: dict[str, Any] = {}
        for field in self.schema.fields:
            name, is_variant = field.name, isinstance(field.dataType, VariantType)
            path = paths.get(name)
            if path is not None and not is_ordinary(path):
                columns[name] = (path[0], None if is_variant else arrow_variant.to_arrow_type(field.dataType))
                continue
            if paths and path is None and is_variant:
                column = column or name
            columns[name] = Selected(name, None, column=name if path is None else path[0])
        threads = 1 if self.options.paths is None else None
        return table.scan(columns, self.options.where, column=column, zone=self.options.zone, threads=threads).plan

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition; runs in a task."""
        if not isinstance(partition, ScanPartition):
            return  # Spark passes a placeholder if there are no partitions
        target = arrow_variant.to_arrow_schema(self.schema)
        with one_line():
            for scan, task in partition.work:
                for table in scan.read(task):
                    yield from spark_batches(table, target)

    def _scan_of_file(self, source: ParquetSource) -> Scan:
        """Return the scan of the columns of the schema in a file; with mergeSchema, it may lack some."""
        with open_file(source) as file:
            stored, names = file.column_names, self.schema.fieldNames()
            missing = set(names) - set(stored)
            if missing and not self.options.merge_schema:
                problem = (
                    f"the file has no column {min(missing)}: choose from {', '.join(sorted(stored))}, or set "
                    "mergeSchema to true to read null for missing columns"
                )
                raise VariantFileError(problem, reason="no-such-column", file=source.path)
            fields = arrow_variant.to_arrow_schema(self.schema)
            types = dict(zip(names, fields.types, strict=True))
            types |= types_in_files((source,), [name for name in names if name in stored])
        columns = tuple(Selected(name, None, types[name], column=name) for name in names)
        return Scan((source,), Question(columns), threads=1)


def _packed(work: list[tuple[Any, Any]], size: int) -> list[InputPartition]:
    """Return one partition per task; many small files share one, because a Spark task costs as much as reading 100."""

    def cost(item: tuple[Any, Any]) -> int:
        return int(item[1].bytes) + _OPEN_BYTES

    max_cost = min(size, max(_OPEN_BYTES, sum(map(cost, work)) // _MIN_TASKS))
    return [ScanPartition(group) for group in grouped(work, cost, max_cost)]


def spark_batches(table: pa.Table, target: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield a table in Spark's types, in batches of bounded size."""
    arrays = [one_chunk(table.column(field.name)) for field in target]
    sizes = np.zeros(len(table))
    for array, field in zip(arrays, target, strict=True):
        sizes += arrow_variant.row_bytes(array, field.type)
    for start, stop in arrow_variant.slices_by_bytes(sizes, _BATCH_BYTES):
        parts = []
        for array, field in zip(arrays, target, strict=True):
            try:
                parts.append(arrow_variant.as_spark(array.slice(start, stop - start), field.type))
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                raise VariantError(
                    f"column {field.name} cannot be converted to {field.type} ({error}): remove it from the schema, or "
                    "set a path and a type in the option columns",
                    reason="type-mismatch",
                ) from None
        yield pa.RecordBatch.from_arrays(parts, schema=target)
