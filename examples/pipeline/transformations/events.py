"""Append log files of JSON lines to a shredded Delta table, as a sink: Spark's catalog has no Python data sources."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

import parquet_variant as pv

spark = SparkSession.active()
spark.dataSource.register(pv.spark.VariantDataSource)

dp.create_sink("events", "variant", {"format": "delta", "path": spark.conf.get("events.table")})


@dp.append_flow(target="events")
def lines() -> DataFrame:
    """Return every line once, as a Variant; invalid JSON ends the pipeline."""
    return spark.readStream.text(spark.conf.get("events.logs")).selectExpr("parse_json(value) AS event")
