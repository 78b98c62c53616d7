"""Batch reads of Iceberg tables by the data source: the files of one snapshot, pruned by manifests.

The package `iceberg` prunes files and applies deletes. `table_reader` implements what all table formats share, and
`iceberg_stream` reads streams.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from parquet_variant.spark.datasource.options import ReadOptions
from parquet_variant.spark.datasource.table_reader import TableReader
from parquet_variant.tables.iceberg.metadata.schema import METADATA_COLUMNS
from parquet_variant.tables.iceberg.metadata.types import arrow_field
from parquet_variant.tables.iceberg.reading.data_files import read_file
from parquet_variant.tables.iceberg.reading.deletes import TableFile
from parquet_variant.tables.iceberg.reading.scan import IcebergScan, scan
from parquet_variant.tables.iceberg.reading.snapshot import Snapshot, snapshot


def table_columns(options: ReadOptions) -> pa.Schema:
    """Return the columns of the table, and the metadata columns if the options name columns."""
    current = load_snapshot(options)
    fields = list(current.schema.fields)
    if options.paths is not None:
        fields += [field for name, field in METADATA_COLUMNS.items() if current.schema.get(name) is None]
    return pa.schema([arrow_field(field) for field in fields])


class IcebergReader(TableReader[Snapshot, TableFile]):
    """``spark.read.format("variant")`` on an Iceberg table."""

    def load(self) -> Snapshot:
        """Return the snapshot that the options name; see `TableReader.load`."""
        return load_snapshot(self.options)

    def scan_paths(self, current: Snapshot) -> IcebergScan:
        """See `TableReader.scan_paths`."""
        columns, column = self._selection()
        return scan(current, columns, self.options.where, column=column, zone=self.options.zone)

    def scan_rows(self, current: Snapshot) -> IcebergScan:
        """See `TableReader.scan_rows`."""
        return IcebergScan(current, ())

    def read_rows(self, scan: IcebergScan, files: Sequence[TableFile]) -> Iterator[pa.Table]:
        """See `TableReader.read_rows`."""
        fields = scan.current.schema.select(self.schema.fieldNames()).struct
        for file in files:
            yield read_file(scan.current, file, fields)


def load_snapshot(options: ReadOptions) -> Snapshot:
    """Return the snapshot that the options of a batch name."""
    timestamp = options.timestamp
    return snapshot(
        options.sources[0],
        catalog=options.catalog,
        snapshot_id=options.version,
        timestamp=int(timestamp) if timestamp is not None and timestamp.isdecimal() else timestamp,
        branch=options.branch,
        tag=options.tag,
    )
