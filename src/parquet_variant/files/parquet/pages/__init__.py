"""Parquet files written page by page, by kernels, from Arrow columns."""
