"""Vortex's RFC for a Variant type, implemented over arrays and over Vortex files.

Owns the public names of ``pv.vortex`` and loads each on first use. No module here has the name of a public function,
because the module would hide the function.
"""

from __future__ import annotations

from parquet_variant.lazy_names import lazy_names

# Module -> the public names that it defines. `make snapshots` writes __init__.pyi from this table.
_NAMES = {
    "array.chunked_array": "ChunkedVariantArray",
    "functions.get_variant_element": "VariantScalar",
    "vortex.columnar.columnar_variant": "ColumnarVariant",
    "vortex.files.compressing": "compress",
    "vortex.files.inspecting": "dtype_of inspect",
    "vortex.files.optimizing": "optimize",
    "vortex.files.paths": "vortex_files",
    "vortex.files.reader": "iter_tables read read_json read_table",
    "vortex.files.rewriting": "rewrite",
    "vortex.files.storing": "variant_table",
    "vortex.files.writer": "VortexFileInfo write",
    "vortex.logical.encodings": "ENCODINGS VariantDType VariantEncoding answers encode encoding_of",
    "vortex.logical.get_element": "get_variant_element get_variant_scalar matching_rows",
    "vortex.logical.json_columns": "JsonColumn compress_json decompress_json",
    "vortex.logical.range_statistics": "RangeStatistics collect_statistics",
    "vortex.scanning.file_scans": "VortexFilesScan scan_files",
    "vortex.scanning.scanner": "VortexScan scan",
}
__getattr__, __dir__ = lazy_names(__name__, _NAMES)
__all__ = __dir__()  # noqa: PLE0605 - the table above lists the names
