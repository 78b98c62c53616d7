"""Pages, footers and filters of Parquet files."""
