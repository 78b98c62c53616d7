"""Writes of Delta tables by the data source: the plan of a table, and the commit of files as one version.

`table_writer` implements what all table formats share, and the package `delta` writes and commits files.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import unquote

from pyspark.sql.types import StructField, StructType, VariantType

from parquet_variant.errors import VariantError
from parquet_variant.spark.datasource.table_writer import Batch, TableBatchWriter, TableStreamWriter, TableTaskWriter
from parquet_variant.tables.delta.log.snapshot import Snapshot
from parquet_variant.tables.delta.protocol.actions import Add
from parquet_variant.tables.delta.protocol.schema import parse_schema
from parquet_variant.tables.delta.writing.create import check_partitioned_by, commit_new, existing_table, planned_table
from parquet_variant.tables.delta.writing.data_files import WritePlan
from parquet_variant.tables.delta.writing.write import commit_files, plan
from parquet_variant.tables.storage import open_storage


class _DeltaTable(TableTaskWriter):
    """A Delta table as the target of a write."""

    planned: Snapshot | None = None

    def plan_write(self, schemas: Any) -> WritePlan:
        """See `TableTaskWriter.plan_write`."""
        self.uri = self.options.path
        return plan(self._table(), schema=schemas, **self.options.write)

    def _table(self) -> Snapshot:
        storage, partition_by = open_storage(self.uri), self.partitioning.names
        if (current := existing_table(storage)) is not None:
            check_partitioned_by(current, partition_by)
            return current
        fields = [
            StructField(field.name, VariantType() if field.name == self.frame.column else field.dataType)
            for field in self.frame.schema.fields
        ] + self.partitioning.new_fields
        # Delta and Spark represent a schema as the same JSON.
        columns = parse_schema(StructType(fields).json())
        self.planned = planned_table(storage, columns, partition_by)
        return self.planned

    def commit_files(self, files: Sequence[Add], batch: Batch | None) -> bool:
        """See `TableTaskWriter.commit_files`."""
        if self.planned is None:
            return commit_files(self.uri, files, mode=self.mode, txn=batch).committed
        result = commit_new(self.planned, files, self.mode, batch)
        self.planned = None
        return result.committed

    def delete_files(self, files: Sequence[Add]) -> None:
        """See `TableTaskWriter.delete_files`."""
        storage = open_storage(self.uri)
        for add in files:
            with suppress(OSError, VariantError):
                storage.delete(unquote(add.path))


class DeltaBatchWriter(_DeltaTable, TableBatchWriter):
    """``df.write.format("variant").option("format", "delta")``."""


class DeltaStreamWriter(_DeltaTable, TableStreamWriter):
    """``df.writeStream.format("variant").option("format", "delta")``."""
