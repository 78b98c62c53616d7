"""The bytes of a Parquet file around the values: Thrift, footer, statistics, Bloom filters, columns."""
