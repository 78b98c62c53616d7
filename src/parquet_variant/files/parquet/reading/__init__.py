"""Whole Variants and rows out of Parquet files."""
