"""Vortex's RFC for a Variant type, implemented over arrays and over Vortex files.

Owns the public names of ``pv.vortex`` and loads each on first use. No module here has the name of a public function,
because the module would hide the function.
"""

from __future__ import annotations

from parquet_variant.support.lazy_names import lazy_names

# Module -> the public names that it defines. `make snapshots` writes __init__.pyi from this table.
_NAMES = {
    "arrays.chunked_array": "ChunkedVariantArray",
    "ops.get_variant_element": "VariantScalar",
    "files.vortex.columnar.columnar_variant": "ColumnarVariant",
    "files.vortex.files.compressing": "compress",
    "files.vortex.files.inspecting": "dtype_of inspect",
    "files.vortex.files.optimizing": "optimize",
    "files.vortex.files.paths": "vortex_files",
    "files.vortex.files.reader": "iter_tables read read_json read_table",
    "files.vortex.files.rewriting": "rewrite",
    "files.vortex.files.storing": "variant_table",
    "files.vortex.files.writer": "VortexFileInfo write",
    "files.vortex.logical.encodings": "ENCODINGS VariantDType VariantEncoding answers encode encoding_of",
    "files.vortex.logical.get_element": "get_variant_element get_variant_scalar matching_rows",
    "files.vortex.logical.json_columns": "JsonColumn compress_json decompress_json",
    "files.vortex.logical.range_statistics": "RangeStatistics collect_statistics",
    "files.vortex.scanning.file_scans": "VortexFilesScan scan_files",
    "files.vortex.scanning.scanner": "VortexScan scan",
}
__getattr__, __dir__ = lazy_names(__name__, _NAMES)
__all__ = __dir__()  # noqa: PLE0605 - the table above lists the names
