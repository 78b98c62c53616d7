"""Vortex's RFC for a Variant type as a working system, and real Vortex files.

Owns the public names of ``pv.vortex`` and loads each on first use. No module here has the name of a public
function, so none hides one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from parquet_variant.lazy_names import lazy_names

_OWNERS = {
    "ChunkedVariantArray": "array.chunked_array",
    "ColumnarVariant": "vortex.columnar.columnar_variant",
    "ENCODINGS": "vortex.logical.encodings",
    "Encoding": "vortex.logical.encodings",
    "RangeStatistics": "vortex.logical.range_statistics",
    "JsonColumn": "vortex.logical.json_columns",
    "VariantDType": "vortex.logical.encodings",
    "VariantScalar": "functions.get_variant_element",
    "VortexFileInfo": "vortex.files.writer",
    "VortexFilesScan": "vortex.scanning.scanner",
    "VortexScan": "vortex.scanning.scanner",
    "answers": "vortex.logical.encodings",
    "collect_statistics": "vortex.logical.range_statistics",
    "compress_json": "vortex.logical.json_columns",
    "decompress_json": "vortex.logical.json_columns",
    "dtype_of": "vortex.logical.encodings",
    "encode": "vortex.logical.encodings",
    "encoding_of": "vortex.logical.encodings",
    "get_variant_element": "vortex.logical.get_element",
    "get_variant_scalar": "vortex.logical.get_element",
    "inspect": "vortex.files.inspecting",
    "iter_tables": "vortex.files.reader",
    "matching_rows": "vortex.logical.get_element",
    "read": "vortex.files.reader",
    "read_json": "vortex.files.reader",
    "read_table": "vortex.files.reader",
    "scan": "vortex.scanning.scanner",
    "scan_files": "vortex.scanning.scanner",
    "variant_table": "array.chunked_array",
    "vortex_files": "vortex.files.paths",
    "write": "vortex.files.writer",
}
if not TYPE_CHECKING:  # or every name would be known, as Any
    __getattr__, __dir__ = lazy_names(__name__, _OWNERS)
__all__ = sorted(_OWNERS)  # noqa: PLE0605 - the table above is the truth

if TYPE_CHECKING:
    from parquet_variant.array.chunked_array import ChunkedVariantArray as ChunkedVariantArray
    from parquet_variant.array.chunked_array import variant_table as variant_table
    from parquet_variant.functions.get_variant_element import VariantScalar as VariantScalar
    from parquet_variant.vortex.columnar.columnar_variant import ColumnarVariant as ColumnarVariant
    from parquet_variant.vortex.files.inspecting import inspect as inspect
    from parquet_variant.vortex.files.paths import vortex_files as vortex_files
    from parquet_variant.vortex.files.reader import iter_tables as iter_tables
    from parquet_variant.vortex.files.reader import read as read
    from parquet_variant.vortex.files.reader import read_json as read_json
    from parquet_variant.vortex.files.reader import read_table as read_table
    from parquet_variant.vortex.files.writer import VortexFileInfo as VortexFileInfo
    from parquet_variant.vortex.files.writer import write as write
    from parquet_variant.vortex.logical.encodings import ENCODINGS as ENCODINGS
    from parquet_variant.vortex.logical.encodings import Encoding as Encoding
    from parquet_variant.vortex.logical.encodings import VariantDType as VariantDType
    from parquet_variant.vortex.logical.encodings import answers as answers
    from parquet_variant.vortex.logical.encodings import dtype_of as dtype_of
    from parquet_variant.vortex.logical.encodings import encode as encode
    from parquet_variant.vortex.logical.encodings import encoding_of as encoding_of
    from parquet_variant.vortex.logical.get_element import get_variant_element as get_variant_element
    from parquet_variant.vortex.logical.get_element import get_variant_scalar as get_variant_scalar
    from parquet_variant.vortex.logical.get_element import matching_rows as matching_rows
    from parquet_variant.vortex.logical.json_columns import JsonColumn as JsonColumn
    from parquet_variant.vortex.logical.json_columns import compress_json as compress_json
    from parquet_variant.vortex.logical.json_columns import decompress_json as decompress_json
    from parquet_variant.vortex.logical.range_statistics import RangeStatistics as RangeStatistics
    from parquet_variant.vortex.logical.range_statistics import collect_statistics as collect_statistics
    from parquet_variant.vortex.scanning.scanner import VortexFilesScan as VortexFilesScan
    from parquet_variant.vortex.scanning.scanner import VortexScan as VortexScan
    from parquet_variant.vortex.scanning.scanner import scan as scan
    from parquet_variant.vortex.scanning.scanner import scan_files as scan_files
