"""What Spark looks for: it imports every module that is called ``pyspark_…``, once, and takes its `DefaultSource`.

So the format ``variant`` is there without being registered. Leaves everything else to `parquet_variant.spark`.
"""

from parquet_variant.spark.datasource.source import VariantDataSource as DefaultSource
from parquet_variant.spark.worker_end import end_quietly

__all__ = ["DefaultSource"]

# The worker that looks has no other moment at which code of ours runs in it.
end_quietly()
