# Generated from the table in __init__.py: change that, then run make snapshots.
from parquet_variant.arrays.chunked_array import ChunkedVariantArray as ChunkedVariantArray
from parquet_variant.files.vortex.dtype import VariantDType as VariantDType
from parquet_variant.files.vortex.inspecting import dtype_of as dtype_of
from parquet_variant.files.vortex.inspecting import inspect as inspect
from parquet_variant.files.vortex.json_columns import JsonColumn as JsonColumn
from parquet_variant.files.vortex.json_columns import compress_json as compress_json
from parquet_variant.files.vortex.json_columns import decompress_json as decompress_json
from parquet_variant.files.vortex.optimizing import optimize as optimize
from parquet_variant.files.vortex.paths import vortex_files as vortex_files
from parquet_variant.files.vortex.range_statistics import RangeStatistics as RangeStatistics
from parquet_variant.files.vortex.range_statistics import collect_statistics as collect_statistics
from parquet_variant.files.vortex.range_statistics import matching_rows as matching_rows
from parquet_variant.files.vortex.reader import iter_tables as iter_tables
from parquet_variant.files.vortex.reader import read as read
from parquet_variant.files.vortex.reader import read_json as read_json
from parquet_variant.files.vortex.reader import read_table as read_table
from parquet_variant.files.vortex.rewriting import rewrite as rewrite
from parquet_variant.files.vortex.scanner import VortexScan as VortexScan
from parquet_variant.files.vortex.scanner import scan as scan
from parquet_variant.files.vortex.scanner import scan_files as scan_files
from parquet_variant.files.vortex.storing import variant_table as variant_table
from parquet_variant.files.vortex.writer import VortexFileInfo as VortexFileInfo
from parquet_variant.files.vortex.writer import write as write

__all__ = [
    "ChunkedVariantArray",
    "JsonColumn",
    "RangeStatistics",
    "VariantDType",
    "VortexFileInfo",
    "VortexScan",
    "collect_statistics",
    "compress_json",
    "decompress_json",
    "dtype_of",
    "inspect",
    "iter_tables",
    "matching_rows",
    "optimize",
    "read",
    "read_json",
    "read_table",
    "rewrite",
    "scan",
    "scan_files",
    "variant_table",
    "vortex_files",
    "write",
]

def __dir__() -> list[str]: ...
