"""Parquet files with Variant columns: formats, reading, writing, scanning, validation and operations."""
