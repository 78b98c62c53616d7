"""Writes of Iceberg tables by the data source: the plan of a table, and the commit of files as one snapshot.

`table_writer` implements what all table formats share, and the package `iceberg` writes and commits files.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructField, StructType, VariantType

from parquet_variant.errors import IcebergError
from parquet_variant.spark.arrow_variant import to_arrow_schema, with_marked_variants
from parquet_variant.spark.datasource.table_writer import Batch, TableBatchWriter, TableStreamWriter, TableTaskWriter
from parquet_variant.tables.iceberg.catalogs.catalog import LoadedTable
from parquet_variant.tables.iceberg.catalogs.opening import find_table
from parquet_variant.tables.iceberg.locations import normal_location
from parquet_variant.tables.iceberg.metadata.partitioning import spec_of
from parquet_variant.tables.iceberg.metadata.table_metadata import MAIN
from parquet_variant.tables.iceberg.metadata.updates import change_of
from parquet_variant.tables.iceberg.reading.deletes import TableFile
from parquet_variant.tables.iceberg.reading.snapshot import Snapshot, newest_snapshot
from parquet_variant.tables.iceberg.writing.commit import check_writable
from parquet_variant.tables.iceberg.writing.create import TableDefinition, new_table
from parquet_variant.tables.iceberg.writing.write import commit_files, write_plan
from parquet_variant.tables.iceberg.writing.write_plan import IcebergWritePlan


class _IcebergTable(TableTaskWriter):
    """An Iceberg table as the target of a write."""

    base: Snapshot

    def plan_write(self, schemas: Any) -> IcebergWritePlan:
        """See `TableTaskWriter.plan_write`."""
        self.base = newest_snapshot(self._table(), self.options.branch or MAIN)
        self.uri = normal_location(self.base.table.metadata.location)
        return write_plan(self.base, schema=schemas, options=self.options.write)

    def _table(self) -> LoadedTable:
        """Return the table; a new table is planned, and created by the first commit."""
        catalog, identifier = find_table(self.options.path, self.options.catalog)
        try:
            table = catalog.load(identifier)
        except IcebergError as error:
            if error.reason != "no-such-table":
                raise
            return new_table(catalog, identifier, self._columns(), TableDefinition(tuple(self.partitioning.names)))
        check_writable(table.metadata)
        self._check_partitioned_by(table)
        return table

    def _columns(self) -> pa.Schema:
        """Return the columns of a new table: those of the DataFrame, and those extracted from paths."""
        fields = [
            StructField(field.name, VariantType() if field.name == self.frame.column else field.dataType)
            for field in self.frame.schema.fields
        ] + self.partitioning.new_fields
        return with_marked_variants(to_arrow_schema(StructType(fields)))

    def _check_partitioned_by(self, table: LoadedTable) -> None:
        """Refuse partition fields other than the table's; without the option ``partitionBy`` any are accepted."""
        if not self.partitioning.names:
            return
        spec = table.metadata.spec
        try:
            asked = spec_of(self.partitioning.names, table.metadata.schema).fields
        except IcebergError:
            asked = ()
        fields = [[(field.source_id, str(field.transform)) for field in either] for either in (asked, spec.fields)]
        if not asked or fields[0] != fields[1]:
            names = ", ".join(field.name for field in spec.fields) or "none"
            raise IcebergError(
                f"option partitionBy: the table's partition fields are {names}, not "
                f"{', '.join(self.partitioning.names)}: leave out partitionBy",
                reason="bad-option",
                file=table.name,
            )

    def commit_files(self, files: Sequence[TableFile], batch: Batch | None) -> bool:
        """See `TableTaskWriter.commit_files`."""
        if self.base.table.exists and not files and self.mode == "append":
            return True
        return commit_files(self.base, files, mode=self.mode, batch=batch).committed

    def delete_files(self, files: Sequence[TableFile]) -> None:
        """See `TableTaskWriter.delete_files`."""
        self.base.table.files.delete([file.path for file in files])


class IcebergBatchWriter(_IcebergTable, TableBatchWriter):
    """``df.write.format("variant").option("format", "iceberg")``."""


class IcebergStreamWriter(_IcebergTable, TableStreamWriter):
    """``df.writeStream.format("variant").option("format", "iceberg")``.

    Spark commits with another writer than the tasks have, so that a new table is created when the stream starts: the
    catalog may choose another location for every table that it stages.
    """

    def _table(self) -> LoadedTable:
        table = super()._table()
        return table if table.exists else table.commit(change_of())
