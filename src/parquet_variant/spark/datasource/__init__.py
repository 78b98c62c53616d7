"""The Spark data source ``variant``: batch and stream reads and writes of Parquet directories and Delta tables."""
