"""Parquet files against the specification and against engines."""
