# Generated from the table in __init__.py: change that, then run make snapshots.
from parquet_variant.arrays.chunked_array import ChunkedVariantArray as ChunkedVariantArray
from parquet_variant.files.vortex.dtype import JsonColumn as JsonColumn
from parquet_variant.files.vortex.dtype import VariantDType as VariantDType
from parquet_variant.files.vortex.dtype import compress_json as compress_json
from parquet_variant.files.vortex.dtype import decompress_json as decompress_json
from parquet_variant.files.vortex.dtype import variant_table as variant_table
from parquet_variant.files.vortex.range_statistics import RangeStatistics as RangeStatistics
from parquet_variant.files.vortex.range_statistics import collect_statistics as collect_statistics
from parquet_variant.files.vortex.range_statistics import matching_rows as matching_rows
from parquet_variant.files.vortex.reader import dtype_of as dtype_of

__all__ = [
    "ChunkedVariantArray",
    "JsonColumn",
    "RangeStatistics",
    "VariantDType",
    "collect_statistics",
    "compress_json",
    "decompress_json",
    "dtype_of",
    "matching_rows",
    "variant_table",
]

def __dir__() -> list[str]: ...
