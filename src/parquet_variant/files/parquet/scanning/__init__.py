"""Typed columns out of Parquet files: what is read, what is skipped."""
