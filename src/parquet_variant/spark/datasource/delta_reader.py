"""Batch reads of Delta tables by the data source: the files of one version, pruned by the log.

The package `delta` prunes files and applies deletion vectors. `table_reader` implements what all table formats share,
and `delta_stream` reads streams.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.types import StructType

from parquet_variant.spark.datasource.options import ReadOptions
from parquet_variant.spark.datasource.table_reader import TableReader
from parquet_variant.tables.delta.log.snapshot import Snapshot, snapshot
from parquet_variant.tables.delta.protocol.actions import Add
from parquet_variant.tables.delta.protocol.schema import schema_json
from parquet_variant.tables.delta.reading.read import DeltaScan, read_file, scan, selected_schema


def table_schema(options: ReadOptions) -> StructType:
    """Return the columns of the table."""
    # Delta and Spark represent a schema as the same JSON.
    return StructType.fromJson(json.loads(schema_json(_snapshot(options).schema)))


class DeltaReader(TableReader[Snapshot, Add]):
    """``spark.read.format("variant")`` on a Delta table."""

    def load(self) -> Snapshot:
        """Return the version that the options name; see `TableReader.load`."""
        return _snapshot(self.options)

    def scan_paths(self, current: Snapshot) -> DeltaScan:
        """See `TableReader.scan_paths`."""
        columns, column = self._selection()
        return scan(current, columns, self.options.where, column=column, zone=self.options.zone)

    def scan_rows(self, current: Snapshot) -> DeltaScan:
        """See `TableReader.scan_rows`."""
        return DeltaScan(current, ())

    def read_rows(self, scan: DeltaScan, files: Sequence[Add]) -> Iterator[pa.Table]:
        """See `TableReader.read_rows`."""
        schema = selected_schema(scan.current, self.schema.fieldNames())
        for file in files:
            yield read_file(scan.current, schema, file)


def _snapshot(options: ReadOptions) -> Snapshot:
    return snapshot(options.sources[0], version=options.version, timestamp=options.timestamp)
