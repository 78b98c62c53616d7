"""`VariantDataSource`: the entry points of the data source ``variant``, and the documentation of its options.

The readers and writers are imported on first use, because Spark imports this module in every session when it looks for
data sources.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress

from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructField, StructType

from parquet_variant.errors import bad_option
from parquet_variant.spark.task_errors import one_line

# The key of an internal entry, which Spark passes to reads, and removes from the columns of other tables that a query
# writes (`INTERNAL_METADATA_KEYS`). Those tables would otherwise read the files of this table.
_METADATA = "__file_source_generated_metadata_col"
_OPTION = "option."


def read_options(schema: StructType, options: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a read: without a path, those of the catalog table, overridden by those of the query."""
    if options.get("path") or options.get("paths"):
        return dict(options)
    stored = [field.metadata[_METADATA] for field in schema.fields if _METADATA in (field.metadata or {})]
    return {**json.loads(stored[0]), **options} if stored else dict(options)


def make_active(spark: SparkSession) -> None:
    """Make the session active in this thread, because Spark looks for Python data sources in the active session.

    Threads that the user starts have no active session, nor has the main thread after an interrupt.
    """
    from parquet_variant.spark.engine import is_connect

    if not is_connect(spark):
        spark._jvm.SparkSession.setActiveSession(spark._jsparkSession)


class VariantDataSource(DataSource):
    """The data source ``variant`` for ``spark.read``, ``df.write``, ``spark.readStream`` and ``df.writeStream``.

    Spark finds the data source if the package is installed. Otherwise register it with
    ``spark.dataSource.register(VariantDataSource)``.

    **Reading** (``spark.read.format("variant")``): Variant columns are VARIANT, other columns keep their types. With
    the option ``columns`` (or ``paths``), a JSON object of output column to path and type, the columns are typed and
    only the required data is read; ``.schema("mag double")`` may set the types instead. The option ``where``, such as
    ``"mag > 5"``, filters the rows and skips files, row groups and partitions without matching rows. Further options:
    ``column``, ``partitionBytes``, ``timeZone`` (of casts; default: UTC), ``mergeSchema``, ``recursiveFileLookup``.

    **Writing** (``df.write.format("variant").mode("append")``, or ``"overwrite"``): the VARIANT or JSON string column
    that the option ``column`` names is shredded. Further options: ``schema`` (DDL or JSON of a `ShreddingSchema`; by
    default inferred from the first rows of each file), ``layout``, ``compression``, ``compressionLevel``,
    ``rowGroupBytes``, ``sortBy``, ``bloomFilters``, ``writer``. The option ``partitionBy`` names columns or paths:
    ``"country, day=$.ts:date"``. Spark does not allow other modes for Python data sources; use `pv.write`.

    **Streams**: ``df.writeStream.format("variant")`` requires the option ``checkpointLocation``; a repeated micro-batch
    is not written again. A stream of a directory reads every file once. ``maxFilesPerTrigger`` and
    ``maxBytesPerTrigger`` limit a micro-batch (Spark 4.2 or newer).

    **Tables**: the option ``format="delta"`` or ``format="iceberg"``, or a path that is a table, selects the table; a
    write creates a new one. An Iceberg table is named by a path, or by ``namespace.table`` with the option ``catalog``
    (a catalog in PyIceberg's configuration), or with its properties as options (``catalog.type``, ``catalog.uri``, …).
    Batch reads accept ``versionAsOf`` or ``timestampAsOf``, and of Iceberg tables ``snapshotId``, ``branch`` and
    ``tag``. Streams accept ``startingVersion`` (of Iceberg tables, the id of a snapshot) and ``skipChangeCommits``,
    which skips versions that remove rows. Writes with ``txnAppId`` and ``txnVersion`` are committed once, also inside
    ``foreachBatch``.

    **Catalog tables**: ``CREATE TABLE events USING variant LOCATION '…'`` (without columns) names files or a table in
    the catalog for reads; ``OPTIONS`` are options of the reads. Spark does not pass the location to writes.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name of the format, and allow the option `paths`, because Spark calls this when it registers."""
        # Without a session there is nothing to allow. A managed session may forbid the setting; then only the option
        # `columns` works.
        with suppress(Exception):
            session = SparkSession.active()
            make_active(session)
            session.conf.set("spark.sql.legacy.pathOptionBehavior.enabled", "true")
        return "variant"

    @one_line()
    def schema(self) -> StructType:
        """Return the columns of a read without a schema.

        Raises `VariantError`, ``"bad-option"``, for a new catalog table without a location, or in an Iceberg catalog.
        """
        from parquet_variant.spark.datasource import options, reading

        of_read, is_creating = self.options, "provider" in self.options
        if is_creating:  # a table of Spark's catalog
            of_table = {n.removeprefix(_OPTION): text for n, text in of_read.items() if n.startswith(_OPTION)}
            if any(name == "catalog" or name.startswith("catalog.") for name in of_table):
                raise bad_option(
                    "CREATE TABLE … USING variant does not support the option catalog: use pv.spark.register_table"
                )
            if not of_read.get("path"):
                raise bad_option(
                    "a catalog table USING variant requires a LOCATION with files or a table: use CREATE TABLE name "
                    "USING variant LOCATION '...'"
                )
            of_read = {**of_table, "path": of_read["path"]}
        schema = reading.read_schema(options.ReadOptions.of(of_read))
        if not is_creating:
            return schema
        first, *remaining = schema.fields
        metadata = {**(first.metadata or {}), _METADATA: json.dumps(of_read)}  # the first column keeps the options
        return StructType([StructField(first.name, first.dataType, first.nullable, metadata), *remaining])

    @one_line()
    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch."""
        from parquet_variant.spark.datasource import options, reading

        return reading.BatchReader(options.ReadOptions.of(read_options(schema, self.options), stream=False), schema)

    # Without `one_line`, with which PySpark would only report that the reader is missing.
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - the name in Spark's interface
        """Return the reader of a stream."""
        from parquet_variant.spark.datasource import options, streams

        of_stream = options.ReadOptions.of(read_options(schema, self.options), stream=True)
        return streams.STREAM_READERS[of_stream.format](of_stream, schema)

    @one_line()
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the writer of a batch."""
        from parquet_variant.spark.datasource import options, writing

        return writing.BatchWriter(options.WriteOptions.of(self.options), schema, overwrite)

    @one_line()
    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 - the name in Spark's interface
        """Return the writer of a stream."""
        from parquet_variant.spark.datasource import options, writing

        return writing.StreamWriter(options.WriteOptions.of(self.options), schema, overwrite)
