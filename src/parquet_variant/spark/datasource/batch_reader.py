"""The reading half of the data source: row groups as Spark's partitions, their rows in Spark's Arrow types.

Owns the schema of a read, the way from options to what is read, and the batches for Spark. Leaves typed paths to
`parquet.scan` and whole rows to `parquet.read_table`.

There is no `pushFilters` here: Spark 4.3 keeps what one query pushed down for the next query on the same DataFrame, and
for the other branch of a union, which then miss rows. A filter that is to skip files and row groups is the option
``where``, which belongs to one DataFrame for good.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema, to_arrow_type
from pyspark.sql.types import StructType, VariantType

from parquet_variant.array.parts import one_chunk
from parquet_variant.errors import VariantError, VariantFileError
from parquet_variant.parquet.format.files import ParquetSource, locate, open_file
from parquet_variant.parquet.reading.read_table import partitioned_table
from parquet_variant.parquet.scanning.scan import Scan, ScanTask, scan, tasks_of_groups
from parquet_variant.spark.arrow_variant import as_spark, row_bytes, slices_by_bytes
from parquet_variant.spark.datasource.options import ReadOptions, is_ordinary
from parquet_variant.spark.task_errors import one_line
from parquet_variant.spark.worker_end import QuietEnd

# What Spark gets at a time: every row of a VARIANT carries its own dictionary there, so rows say little of bytes.
_BATCH_BYTES = 16 << 20
# What a file counts beside its bytes, as in Spark's own sources; so many tasks there are before small files share one.
_OPEN_BYTES = 4 << 20
_TASKS = 32


@dataclass
class ScanPartition(InputPartition):
    """What one Spark task reads."""

    tasks: tuple[ScanTask, ...]


class BatchReader(DataSourceReader):
    """``spark.read.format("variant")``: typed paths through a scan, or whole rows."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self.options = options
        self.schema = schema
        self.end = QuietEnd()
        if options.where is not None and options.paths is None:
            raise VariantError("the option where needs the option columns, whose names it uses", reason="bad-option")

    @one_line()
    def partitions(self) -> list[InputPartition]:
        """Row groups that may match, by bytes."""
        return self.partitions_of_files(None)

    def partitions_of_files(self, files: Sequence[ParquetSource] | None) -> list[InputPartition]:
        """Row groups of the given files, or of all."""
        size = self.options.partition_bytes
        if self.options.paths is None:
            return _packed(self._whole_tasks(locate(self.options.sources) if files is None else files, size), size)
        asked = self._scan()
        return _packed((asked if files is None else asked.of(files)).tasks(size), size)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a partition; runs in a task."""
        if not isinstance(partition, ScanPartition):
            return  # Spark's stand-in for "no partitions"
        target = to_arrow_schema(self.schema, timezone="UTC")
        with one_line():
            read = self._whole if self.options.paths is None else self._scan().read
            for task in partition.tasks:
                for table in read(task):
                    yield from spark_batches(table, target)

    # -- typed paths

    def _scan(self) -> Scan:
        columns, column = self._selection()
        return scan(self.options.sources, columns, self.options.where, column=column, zone=self.options.zone)

    def _selection(self) -> tuple[dict[str, Any], str | None]:
        """What a scan is to select: paths, whole Variants, ordinary columns; and the Variant column."""
        paths = self.options.paths or {}
        columns: dict[str, Any] = {}
        column = self.options.column
        for name, kind in self._types().items():
            if name in paths and is_ordinary(paths[name]):
                columns[name] = paths[name][0]
            elif name in paths:
                columns[name] = (paths[name][0], kind)
            elif kind is None:
                columns[name], column = ("$", None), column or name
            else:
                columns[name] = name
        return columns, column

    def _types(self) -> dict[str, pa.DataType | None]:
        """The columns' Arrow types; None for a Variant."""
        return {
            field.name: None
            if isinstance(field.dataType, VariantType)
            else to_arrow_type(field.dataType, timezone="UTC")
            for field in self.schema.fields
        }

    # -- whole rows

    def _whole_tasks(self, files: Sequence[ParquetSource], size: int) -> Iterator[ScanTask]:
        names = self.schema.fieldNames()
        for source in files:
            with open_file(source) as file:
                leaves = {leaf.leaf for node in file.schema.children if node.name in names for leaf in node.leaves()}
                groups = map(file.metadata.row_group, range(file.metadata.num_row_groups))
                sizes = (sum(group.column(leaf).total_compressed_size for leaf in leaves) for group in groups)
                yield from tasks_of_groups(file, dict(enumerate(sizes)), size)

    def _whole(self, task: ScanTask) -> Iterator[pa.Table]:
        with open_file(task.source) as file:
            for number in task.row_groups:
                there = {node.name for node in file.schema.children} | set(dict(file.source.partition))
                names = [name for name in self.schema.fieldNames() if name in there]
                if not self.options.merge_schema and (missing := set(self.schema.fieldNames()) - there):
                    raise VariantFileError(
                        f"no column {min(missing)}: choose from {', '.join(sorted(there))}, or set the option "
                        "mergeSchema to true, for nulls where a file lacks a column",
                        reason="no-such-column", file=file.name,
                    )  # fmt: skip
                yield partitioned_table(file, [number], names)


def _packed(tasks: Iterable[ScanTask], size: int) -> list[InputPartition]:
    """A partition a task, or for many small files: a task of Spark's costs as much as reading a hundred of them."""
    every = list(tasks)
    costs = [task.bytes + _OPEN_BYTES for task in every]
    room = min(size, max(_OPEN_BYTES, sum(costs) // _TASKS))
    packed: list[list[ScanTask]] = []
    filled = room
    for task, cost in zip(every, costs, strict=True):
        if filled + cost > room or not packed:
            packed.append([])
            filled = 0
        packed[-1].append(task)
        filled += cost
    return [ScanPartition(tuple(each)) for each in packed]


def spark_batches(table: pa.Table, target: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The table in Spark's types, in batches of bounded size."""
    there = set(table.column_names)  # with mergeSchema, others are of another file
    arrays = [
        one_chunk(table.column(field.name)) if field.name in there else pa.nulls(len(table), field.type)
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
    """A column as the read's schema has it."""
    try:
        return as_spark(array, field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise VariantError(
            f"column {field.name} cannot be given as {field.type} ({error}): leave it out of the schema, or name "
            "a path and its type in the option columns",
            reason="type-mismatch",
        ) from None
