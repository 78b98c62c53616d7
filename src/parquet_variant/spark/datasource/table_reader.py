"""Batch reads of tables by the data source: the files of one version, pruned by the metadata of the table.

This module implements what all table formats share. `delta_reader` and `iceberg_reader` load tables and read files, and
`batch_reader` converts rows to Spark's types.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from parquet_variant.spark.arrow_variant import to_arrow_schema
from parquet_variant.spark.datasource.batch_reader import BatchReader, spark_batches
from parquet_variant.spark.task_errors import one_line
from parquet_variant.tables.table_scan import File, TableScan, TableScanTask

Version = TypeVar("Version")


@dataclass
class TablePartition(InputPartition):
    """The input of one Spark task: some files of the version that the query started with.

    Parameters
    ----------
    scan
        The query over the table, which can be pickled.
    task
        The files, as a task of the query.
    """

    scan: TableScan[Any]
    task: TableScanTask[Any]


class TableReader(BatchReader, Generic[Version, File]):
    """``spark.read.format("variant")`` on a table."""

    @abstractmethod
    def load(self) -> Version:
        """Return the version of the table that the options name."""

    @abstractmethod
    def scan_paths(self, current: Version) -> TableScan[File]:
        """Return the query over typed paths."""

    @abstractmethod
    def scan_rows(self, current: Version) -> TableScan[File]:
        """Return a query that only lists all files; `read_rows` reads their rows."""

    @abstractmethod
    def read_rows(self, scan: Any, files: Sequence[File]) -> Iterator[pa.Table]:
        """Yield the rows of files with the columns of the read schema."""

    @one_line()
    def partitions(self) -> list[InputPartition]:
        """Return the files that may match the filter."""
        return self.partitions_of(self.load())

    def partitions_of(self, current: Version, files: Sequence[File] | None = None) -> list[InputPartition]:
        """Return the files of a version that may match the filter, or the given files."""
        query = self.scan_rows(current) if self.options.paths is None else self.scan_paths(current)
        if files is None:
            tasks = query.tasks(self.options.partition_bytes)
        else:
            tasks = [TableScanTask((file,), file.size) for file in files]
        return [TablePartition(query, task) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition; runs in a task."""
        if not isinstance(partition, TablePartition):
            return  # Spark passes a placeholder if there are no partitions
        target = to_arrow_schema(self.schema)
        with one_line():
            for table in self._tables(partition):
                yield from spark_batches(table, target)

    def _tables(self, partition: TablePartition) -> Iterator[pa.Table]:
        if self.options.paths is not None:
            yield from partition.scan.read(partition.task)
        else:
            yield from self.read_rows(partition.scan, partition.task.files)
