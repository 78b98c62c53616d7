"""Vortex's RFC for a Variant type as a working system, and real Vortex files.

Owns the public names of ``pv.vortex`` and loads each on first use. `ingest` lives a layer above. No module here has the
name of a public function, so none hides one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from parquet_variant.lazy_names import lazy_names

_OWNERS = {
    "ChunkedVariantArray": "array.chunked_array",
    "ColumnarVariant": "vortex.columnar",
    "ENCODINGS": "vortex.encodings",
    "Encoding": "vortex.encodings",
    "RangeStatistics": "vortex.range_statistics",
    "JsonColumn": "vortex.json_columns",
    "VariantDType": "vortex.encodings",
    "VariantScalar": "functions.get_variant_scalar",
    "VortexFileInfo": "vortex.writer",
    "VortexFilesScan": "vortex.files",
    "VortexScan": "vortex.scanner",
    "answers": "vortex.encodings",
    "collect_statistics": "vortex.range_statistics",
    "compress_json": "vortex.json_columns",
    "decompress_json": "vortex.json_columns",
    "dtype_of": "vortex.encodings",
    "encode": "vortex.encodings",
    "encoding_of": "vortex.encodings",
    "get_variant_element": "vortex.get_element",
    "get_variant_scalar": "vortex.get_element",
    "ingest": "ingest.ingest:ingest_vortex",
    "inspect": "vortex.inspecting",
    "iter_tables": "vortex.reader",
    "matching_rows": "vortex.matching",
    "read": "vortex.reader",
    "read_json": "vortex.reader",
    "read_table": "vortex.reader",
    "scan": "vortex.scanner",
    "scan_files": "vortex.files",
    "variant_table": "array.chunked_array",
    "vortex_files": "vortex.paths",
    "write": "vortex.writer",
}
if not TYPE_CHECKING:  # or every name would be known, as Any
    __getattr__, __dir__ = lazy_names(__name__, _OWNERS)
__all__ = sorted(_OWNERS)  # noqa: PLE0605 - the table above is the truth

if TYPE_CHECKING:
    from parquet_variant.array.chunked_array import ChunkedVariantArray as ChunkedVariantArray
    from parquet_variant.array.chunked_array import variant_table as variant_table
    from parquet_variant.functions.get_variant_scalar import VariantScalar as VariantScalar
    from parquet_variant.ingest.ingest import ingest_vortex
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
    from parquet_variant.vortex.get_element import get_variant_element as get_variant_element
    from parquet_variant.vortex.get_element import get_variant_scalar as get_variant_scalar
    from parquet_variant.vortex.inspecting import inspect as inspect
    from parquet_variant.vortex.json_columns import JsonColumn as JsonColumn
    from parquet_variant.vortex.json_columns import compress_json as compress_json
    from parquet_variant.vortex.json_columns import decompress_json as decompress_json
    from parquet_variant.vortex.matching import matching_rows as matching_rows
    from parquet_variant.vortex.paths import vortex_files as vortex_files
    from parquet_variant.vortex.range_statistics import RangeStatistics as RangeStatistics
    from parquet_variant.vortex.range_statistics import collect_statistics as collect_statistics
    from parquet_variant.vortex.reader import iter_tables as iter_tables
    from parquet_variant.vortex.reader import read as read
    from parquet_variant.vortex.reader import read_json as read_json
    from parquet_variant.vortex.reader import read_table as read_table
    from parquet_variant.vortex.scanner import VortexScan as VortexScan
    from parquet_variant.vortex.scanner import scan as scan
    from parquet_variant.vortex.writer import VortexFileInfo as VortexFileInfo
    from parquet_variant.vortex.writer import write as write

    ingest = ingest_vortex
