"""Delta tables as the source of the data source: files of one version, pruned by the log.

Owns the partitions and rows of a table's read. Leaves pruning and deletion vectors to `delta`, and Spark's types to
`batch_reader`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from parquet_variant.delta.log.snapshot import Snapshot, snapshot
from parquet_variant.delta.reading.read import read_file, selected_schema
from parquet_variant.delta.reading.scan import DeltaScan, DeltaScanTask, scan
from parquet_variant.spark.datasource.batch_reader import BatchReader, spark_batches
from parquet_variant.spark.datasource.options import ReadOptions
from parquet_variant.spark.task_errors import one_line


@dataclass
class DeltaPartition(InputPartition):
    """What one Spark task reads: some files of the version that the query began with."""

    scan: DeltaScan
    task: DeltaScanTask


def table_schema(options: ReadOptions) -> StructType:
    """The table's columns."""
    # Delta's and Spark's JSON forms of a schema are the same.
    return StructType.fromJson(json.loads(_snapshot(options).schema.to_json()))


class DeltaReader(BatchReader):
    """``spark.read.format("variant")`` on a Delta table."""

    @one_line()
    def partitions(self) -> list[InputPartition]:
        """Files that may match."""
        return self.partitions_of(_snapshot(self.options))

    def partitions_of(
        self, current: Snapshot, files: Sequence[Mapping[str, Any]] | None = None
    ) -> list[InputPartition]:
        """Files of a version: those that may match, or the given ones."""
        types = self._types()
        columns: dict[str, Any]
        if self.options.paths is not None:
            columns, column = self._selection()
        else:
            # Whole rows are read file by file; the scan only lists them.
            plain = [name for name, kind in types.items() if kind is not None and not pa.types.is_nested(kind)]
            columns, column = {name: name for name in plain}, None
            if not columns:
                columns, column = {"v": ("$", None)}, next(iter(types))
        query = scan(current, columns, self.options.where, column=column, zone=self.options.zone)
        size = self.options.partition_bytes
        if files is None:
            return [DeltaPartition(query, task) for task in query.tasks(size)]
        return [DeltaPartition(query, DeltaScanTask((file,), file["size"])) for file in files]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a partition; runs in a task."""
        if not isinstance(partition, DeltaPartition):
            return  # Spark's stand-in for "no partitions"
        target = to_arrow_schema(self.schema, timezone="UTC")
        with one_line():
            for table in self._rows(partition):
                yield from spark_batches(table, target)

    def _rows(self, partition: DeltaPartition) -> Iterator[pa.Table]:
        if self.options.paths is not None:
            yield from partition.scan.read(partition.task)
            return
        current = partition.scan.current
        schema = selected_schema(current, self.schema.fieldNames())
        for file in partition.task.files:
            yield read_file(current, schema, file)


def _snapshot(options: ReadOptions) -> Snapshot:
    return snapshot(options.sources[0], version=options.version, timestamp=options.timestamp)
