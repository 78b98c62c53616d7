"""The public operations on Spark, one a module: ingest, read, write, rewrite, optimize, profile."""
