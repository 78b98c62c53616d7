"""The entry point of Spark's discovery: Spark imports every module named ``pyspark_…`` and uses its `DefaultSource`.

The format ``variant`` is therefore available without being registered.
"""

from parquet_variant.spark.datasource.source import VariantDataSource as DefaultSource

__all__ = ["DefaultSource"]
