"""The entry point of Spark's discovery: Spark imports every module named ``pyspark_…`` and uses its `DefaultSource`.

The format ``variant`` is therefore available without being registered.
"""

from parquet_variant.spark.datasource.source import VariantDataSource as DefaultSource
from parquet_variant.spark.worker_end import end_quietly

__all__ = ["DefaultSource"]

# No other code of this package runs in the worker that looks for data sources.
end_quietly()
