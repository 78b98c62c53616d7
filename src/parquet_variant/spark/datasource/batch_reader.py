"""Batch reads of Parquet files by the data source: row groups as Spark's partitions, rows in Spark's Arrow types.

`Table.scan` reads typed paths, and `Table.to_arrow` reads whole rows.

The reader does not implement `pushFilters`, because Spark 4.3 applies the filters that one query pushed down to the
next query on the same DataFrame, and to the other branch of a union, which then miss rows. The option ``where`` of a
DataFrame skips files and row groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType, VariantType

from parquet_variant.arrays.parts import one_chunk
from parquet_variant.errors import VariantError, VariantFileError
from parquet_variant.files.parquet.format.files import ParquetSource, locate, open_file
from parquet_variant.files.parquet.reading.read import partitioned_table
from parquet_variant.files.parquet.scanning.scan import Scan, scan
from parquet_variant.files.parquet.scanning.scan_plan import ScanTask, tasks_of_groups
from parquet_variant.spark.arrow_variant import as_spark, row_bytes, slices_by_bytes, to_arrow_schema, to_arrow_type
from parquet_variant.spark.datasource.options import ReadOptions, is_ordinary
from parquet_variant.spark.task_errors import one_line
from parquet_variant.spark.worker_end import QuietEnd

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
                leaves = {leaf.leaf for node in file.schema.children if node.name in names for leaf in node.leaves()}
                groups = map(file.metadata.row_group, range(file.metadata.num_row_groups))
                sizes = (sum(group.column(leaf).total_compressed_size for leaf in leaves) for group in groups)
                yield from tasks_of_groups(file, dict(enumerate(sizes)), size)

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
