"""The public operations on Spark, by what they do: ingest, read, sql, write, change."""
