"""Log files of JSON lines into a shredded Delta table: a sink, since Spark keeps no Python source in its catalog."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

import parquet_variant as pv

spark = SparkSession.active()
spark.dataSource.register(pv.spark.VariantDataSource)

dp.create_sink("events", "variant", {"format": "delta", "path": spark.conf.get("events.table")})


@dp.append_flow(target="events")
def lines() -> DataFrame:
    """Every line once, as a Variant; what is no JSON ends the pipeline."""
    return spark.readStream.text(spark.conf.get("events.logs")).selectExpr("parse_json(value) AS event")
