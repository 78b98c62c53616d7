"""Vortex files with Variant columns, and what Vortex's RFC for a Variant type defines over arrays.

Owns the public names of ``pv.vortex`` and loads each on first use. No module here has the name of a public function,
because the module would hide the function.
"""

from __future__ import annotations

from parquet_variant.support.lazy_names import lazy_names

# Module -> the public names that it defines. `make snapshots` writes __init__.pyi from this table.
_NAMES = {
    "arrays.chunked_array": "ChunkedVariantArray",
    "files.vortex.reader": "dtype_of",
    "files.vortex.dtype": "JsonColumn VariantDType compress_json decompress_json variant_table",
    "files.vortex.range_statistics": "RangeStatistics collect_statistics matching_rows",
}
__getattr__, __dir__ = lazy_names(__name__, _NAMES)
__all__ = __dir__()  # noqa: PLE0605 - the table above lists the names
