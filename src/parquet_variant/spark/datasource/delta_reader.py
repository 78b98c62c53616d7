"""Batch reads of Delta tables by the data source: the files of one version, pruned by the log.

The package `delta` prunes files and applies deletion vectors. `batch_reader` converts rows to Spark's types, and
`delta_stream` reads streams.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from parquet_variant.delta.log.snapshot import Snapshot, snapshot
from parquet_variant.delta.protocol.actions import Add
from parquet_variant.delta.protocol.schema import schema_json
from parquet_variant.delta.reading.read import read_file, selected_schema
from parquet_variant.delta.reading.scan import DeltaScan, DeltaScanTask, scan
from parquet_variant.spark.datasource.batch_reader import BatchReader, spark_batches
from parquet_variant.spark.datasource.options import ReadOptions
from parquet_variant.spark.task_errors import one_line


@dataclass
class DeltaPartition(InputPartition):
    """The input of one Spark task: some files of the version that the query started with."""

    scan: DeltaScan
    task: DeltaScanTask


def table_schema(options: ReadOptions) -> StructType:
    """Return the columns of the table."""
    # Delta and Spark represent a schema as the same JSON.
    return StructType.fromJson(json.loads(schema_json(_snapshot(options).schema)))


class DeltaReader(BatchReader):
    """``spark.read.format("variant")`` on a Delta table."""

    @one_line()
    def partitions(self) -> list[InputPartition]:
        """Return the files that may match the filter."""
        return self.partitions_of(_snapshot(self.options))

    def partitions_of(self, current: Snapshot, files: Sequence[Add] | None = None) -> list[InputPartition]:
        """Return the files of a version that may match the filter, or the given files."""
        types = self._types()
        columns: dict[str, Any]
        if self.options.paths is not None:
            columns, column = self._selection()
        else:
            # The scan only lists files; their rows are read with all columns.
            scalars = [
                name for name, data_type in types.items() if data_type is not None and not pa.types.is_nested(data_type)
            ]
            columns, column = {name: name for name in scalars}, None
            if not columns:
                columns, column = {"v": ("$", None)}, next(iter(types))
        query = scan(current, columns, self.options.where, column=column, zone=self.options.zone)
        size = self.options.partition_bytes
        if files is None:
            return [DeltaPartition(query, task) for task in query.tasks(size)]
        return [DeltaPartition(query, DeltaScanTask((file,), file.size)) for file in files]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition; runs in a task."""
        if not isinstance(partition, DeltaPartition):
            return  # Spark passes a placeholder if there are no partitions
        target = to_arrow_schema(self.schema, timezone="UTC")
        with one_line():
            for table in self._tables(partition):
                yield from spark_batches(table, target)

    def _tables(self, partition: DeltaPartition) -> Iterator[pa.Table]:
        if self.options.paths is not None:
            yield from partition.scan.read(partition.task)
            return
        current = partition.scan.current
        schema = selected_schema(current, self.schema.fieldNames())
        for file in partition.task.files:
            yield read_file(current, schema, file)


def _snapshot(options: ReadOptions) -> Snapshot:
    return snapshot(options.sources[0], version=options.version, timestamp=options.timestamp)
