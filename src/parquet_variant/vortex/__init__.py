"""Vortex's RFC for a Variant type as a working system, and real Vortex files.

Owns the public names of the layer. They are imported here, not on first use, so that a function is never hidden by the
module of the same name; the `vortex` library itself is loaded when a file is read or written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from parquet_variant.array.capsules import ChunkedVariantArray as ChunkedVariantArray
from parquet_variant.array.capsules import variant_table as variant_table
from parquet_variant.functions.get_variant_scalar import VariantScalar as VariantScalar
from parquet_variant.lazy_names import lazy_names
from parquet_variant.vortex.columnar import ColumnarVariant as ColumnarVariant
from parquet_variant.vortex.encodings import ENCODINGS as ENCODINGS
from parquet_variant.vortex.encodings import Encoding as Encoding
from parquet_variant.vortex.encodings import VariantDType as VariantDType
from parquet_variant.vortex.encodings import answers as answers
from parquet_variant.vortex.encodings import dtype_of as dtype_of
from parquet_variant.vortex.encodings import encode as encode
from parquet_variant.vortex.encodings import encoding_of as encoding_of
from parquet_variant.vortex.files import VortexFilesScan as VortexFilesScan
from parquet_variant.vortex.files import scan_files as scan_files
from parquet_variant.vortex.files import vortex_files as vortex_files
from parquet_variant.vortex.get_element import get_variant_element as get_variant_element
from parquet_variant.vortex.get_element import get_variant_scalar as get_variant_scalar
from parquet_variant.vortex.json_columns import compress_json as compress_json
from parquet_variant.vortex.json_columns import decompress_json as decompress_json
from parquet_variant.vortex.range_statistics import RangeStatistics as RangeStatistics
from parquet_variant.vortex.range_statistics import collect_statistics as collect_statistics
from parquet_variant.vortex.range_statistics import matching_rows as matching_rows
from parquet_variant.vortex.read import iter_tables as iter_tables
from parquet_variant.vortex.read import read as read
from parquet_variant.vortex.read import read_table as read_table
from parquet_variant.vortex.scan import VortexScan as VortexScan
from parquet_variant.vortex.scan import scan as scan
from parquet_variant.vortex.write import VortexFileInfo as VortexFileInfo
from parquet_variant.vortex.write import write as write

if TYPE_CHECKING:
    from parquet_variant.ingest.ingest import ingest_vortex

    ingest = ingest_vortex

# A layer above this one.
__getattr__, _ = lazy_names(__name__, {"ingest": "ingest.ingest:ingest_vortex"})

__all__ = [
    "ENCODINGS",
    "ChunkedVariantArray",
    "ColumnarVariant",
    "Encoding",
    "RangeStatistics",
    "VariantDType",
    "VariantScalar",
    "VortexFileInfo",
    "VortexFilesScan",
    "VortexScan",
    "answers",
    "collect_statistics",
    "compress_json",
    "decompress_json",
    "dtype_of",
    "encode",
    "encoding_of",
    "get_variant_element",
    "get_variant_scalar",
    "ingest",
    "iter_tables",
    "matching_rows",
    "read",
    "read_table",
    "scan",
    "scan_files",
    "variant_table",
    "vortex_files",
    "write",
]
