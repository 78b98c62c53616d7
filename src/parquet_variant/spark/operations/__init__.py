"""The public operations on Spark: ingest, read, sql, write and change."""
