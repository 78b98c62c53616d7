"""Variants into Parquet files."""
