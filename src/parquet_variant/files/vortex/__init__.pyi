# Generated from the table in __init__.py: change that, then run make snapshots.
from parquet_variant.arrays.chunked_array import ChunkedVariantArray as ChunkedVariantArray
from parquet_variant.files.vortex.columnar.columnar_variant import ColumnarVariant as ColumnarVariant
from parquet_variant.files.vortex.files.compressing import compress as compress
from parquet_variant.files.vortex.files.inspecting import dtype_of as dtype_of
from parquet_variant.files.vortex.files.inspecting import inspect as inspect
from parquet_variant.files.vortex.files.optimizing import optimize as optimize
from parquet_variant.files.vortex.files.paths import vortex_files as vortex_files
from parquet_variant.files.vortex.files.reader import iter_tables as iter_tables
from parquet_variant.files.vortex.files.reader import read as read
from parquet_variant.files.vortex.files.reader import read_json as read_json
from parquet_variant.files.vortex.files.reader import read_table as read_table
from parquet_variant.files.vortex.files.rewriting import rewrite as rewrite
from parquet_variant.files.vortex.files.storing import variant_table as variant_table
from parquet_variant.files.vortex.files.writer import VortexFileInfo as VortexFileInfo
from parquet_variant.files.vortex.files.writer import write as write
from parquet_variant.files.vortex.logical.encodings import ENCODINGS as ENCODINGS
from parquet_variant.files.vortex.logical.encodings import VariantDType as VariantDType
from parquet_variant.files.vortex.logical.encodings import VariantEncoding as VariantEncoding
from parquet_variant.files.vortex.logical.encodings import answers as answers
from parquet_variant.files.vortex.logical.encodings import encode as encode
from parquet_variant.files.vortex.logical.encodings import encoding_of as encoding_of
from parquet_variant.files.vortex.logical.get_element import get_variant_element as get_variant_element
from parquet_variant.files.vortex.logical.get_element import get_variant_scalar as get_variant_scalar
from parquet_variant.files.vortex.logical.get_element import matching_rows as matching_rows
from parquet_variant.files.vortex.logical.json_columns import JsonColumn as JsonColumn
from parquet_variant.files.vortex.logical.json_columns import compress_json as compress_json
from parquet_variant.files.vortex.logical.json_columns import decompress_json as decompress_json
from parquet_variant.files.vortex.logical.range_statistics import RangeStatistics as RangeStatistics
from parquet_variant.files.vortex.logical.range_statistics import collect_statistics as collect_statistics
from parquet_variant.files.vortex.scanning.file_scans import VortexFilesScan as VortexFilesScan
from parquet_variant.files.vortex.scanning.file_scans import scan_files as scan_files
from parquet_variant.files.vortex.scanning.scanner import VortexScan as VortexScan
from parquet_variant.files.vortex.scanning.scanner import scan as scan
from parquet_variant.ops.get_variant_element import VariantScalar as VariantScalar

__all__ = [
    "ENCODINGS",
    "ChunkedVariantArray",
    "ColumnarVariant",
    "JsonColumn",
    "RangeStatistics",
    "VariantDType",
    "VariantEncoding",
    "VariantScalar",
    "VortexFileInfo",
    "VortexFilesScan",
    "VortexScan",
    "answers",
    "collect_statistics",
    "compress",
    "compress_json",
    "decompress_json",
    "dtype_of",
    "encode",
    "encoding_of",
    "get_variant_element",
    "get_variant_scalar",
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
