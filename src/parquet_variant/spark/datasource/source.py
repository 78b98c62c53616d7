"""The data source ``variant``: what Spark calls to read and write directories of Parquet files with Variant columns.

Owns the entry points and their options as users see them. Leaves reading to `batch_reader`, writing to `batch_writer`,
which are imported when they are needed: Spark imports this module where it looks for data sources, in every session.
"""

from __future__ import annotations

from contextlib import suppress

from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from parquet_variant.spark.task_errors import one_line
from parquet_variant.spark.worker_end import end_quietly


def make_active(spark: SparkSession) -> None:
    """Make the session that of this thread: in no other does Spark look for the sources that Python writes.

    A thread of the user's has none, nor has the main one after an interrupt, which costs it its thread in the JVM.
    """
    from parquet_variant.spark.engine import is_connect

    if not is_connect(spark):
        spark._jvm.SparkSession.setActiveSession(spark._jsparkSession)


class VariantDataSource(DataSource):
    """Spark finds it where the package is installed; elsewhere ``spark.dataSource.register(VariantDataSource)`` does.

    Reading (``spark.read.format("variant")``): the variant columns are VARIANT, other columns as they are. With the
    option ``paths`` (or ``columns``), a JSON object of output column to path and type, the columns are typed and only
    what they need is read; ``.schema("mag double")`` may give the types instead. The option ``where``, such as
    ``"mag > 5"``, filters the rows and skips files and row groups that hold none. Options: ``column``,
    ``partitionBytes``, ``timeZone`` (of casts; UTC by default), ``mergeSchema``, ``recursiveFileLookup``. Columns of
    Hive partitions are typed, and ``where`` opens only the partitions that it allows.

    Writing (``df.write.format("variant").mode("append")``, or ``"overwrite"``): the VARIANT or JSON string column that
    the option ``column`` names is shredded, other columns are written as they are. Options: ``schema`` (DDL or JSON of
    a `ShreddingSchema`; by default each file's is inferred from its first rows), ``layout``, ``compression``,
    ``compressionLevel``, ``rowGroupBytes``, ``sortBy``, ``bloomFilters``, ``writer``. Spark lets no Python data
    source be written with other modes; `pv.spark.write` has them. Streams (``df.writeStream.format("variant")``) need
    the option ``checkpointLocation``; a micro-batch that is run again is not written again.

    Delta tables: with the option ``format`` as ``"delta"``, or where a table is already, all of this reads and writes
    the table; one that is not there is made. The option ``partitionBy`` partitions tables and directories, by columns
    or paths: ``"country, day=$.ts:date"``. Reads take ``versionAsOf`` or ``timestampAsOf``; streams are written with
    ``txnAppId`` and read, with ``startingVersion``, version by version. A stream of a directory is of its files, each
    of which comes once, at most ``maxFilesPerTrigger`` at a time.
    """

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self.end = end_quietly()  # Spark plans reads and writes in workers of their own, which get this object

    @classmethod
    def name(cls) -> str:
        """What `format` takes. Spark asks when the source is registered: the moment to allow its option `paths`."""
        # Where Spark finds it, there is no session and nothing to allow; a managed session may forbid it: then the
        # option is called `columns`.
        with suppress(Exception):
            session = SparkSession.active()
            make_active(session)
            session.conf.set("spark.sql.legacy.pathOptionBehavior.enabled", "true")
        return "variant"

    @one_line()
    def schema(self) -> StructType:
        """The columns of a read for which the user gave no schema."""
        from parquet_variant.spark.datasource.options import ReadOptions
        from parquet_variant.spark.datasource.read_schema import read_schema

        return read_schema(ReadOptions.of(self.options))

    @one_line()
    def reader(self, schema: StructType) -> DataSourceReader:
        """Plan a read."""
        from parquet_variant.spark.datasource.options import ReadOptions

        options = ReadOptions.of(self.options, stream=False)
        if options.delta:
            from parquet_variant.spark.datasource.delta_reader import DeltaReader

            return DeltaReader(options, schema)
        from parquet_variant.spark.datasource.batch_reader import BatchReader

        return BatchReader(options, schema)

    # Not on one line: PySpark's runner then fails itself, on a reader that was never made, and only that would show.
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Begin to read a stream."""
        from parquet_variant.spark.datasource.options import ReadOptions

        options = ReadOptions.of(self.options, stream=True)
        if options.delta:
            from parquet_variant.spark.datasource.delta_reader import DeltaStreamReader

            return DeltaStreamReader(options, schema)
        from parquet_variant.spark.datasource.directory_stream import DirectoryStreamReader

        return DirectoryStreamReader(options, schema)

    @one_line()
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Begin a write."""
        from parquet_variant.spark.datasource.options import WriteOptions

        options = WriteOptions.of(self.options)
        if options.delta:
            from parquet_variant.spark.datasource.delta_writer import DeltaBatchWriter

            return DeltaBatchWriter(options, schema, overwrite)
        from parquet_variant.spark.datasource.batch_writer import BatchWriter

        return BatchWriter(options, schema, overwrite)

    @one_line()
    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 - Spark's name
        """Begin to write a stream."""
        from parquet_variant.spark.datasource.options import WriteOptions

        options = WriteOptions.of(self.options)
        if options.delta:
            from parquet_variant.spark.datasource.delta_writer import DeltaStreamWriter

            return DeltaStreamWriter(options, schema, overwrite)
        from parquet_variant.spark.datasource.batch_writer import StreamWriter

        return StreamWriter(options, schema, overwrite)
