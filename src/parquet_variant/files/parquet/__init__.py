"""Parquet files with Variant columns: write, read, query by path, inspect, validate and rewrite them.

Owns the public names of ``pv.parquet`` and loads modules on first use. No module here has the name of a public
function, which it would hide. `pv.ingest`, `pv.infer` and `pv.profile` read JSON files.
"""

from __future__ import annotations

from parquet_variant.support.lazy_names import lazy_names

# Module -> the public names that it defines. `make snapshots` writes __init__.pyi from this table.
_NAMES = {
    "files.parquet.operations.annotate": "annotate",
    "files.parquet.operations.inspect": "inspect",
    "files.parquet.operations.optimize": "OptimizeResult optimize",
    "files.parquet.operations.rewrite": "rewrite",
    "files.parquet.reading.read": "read",
    "files.parquet.reading.read_table": "read_table",
    "files.parquet.scanning.scan": "Scan extract scan",
    "files.parquet.validation.validate": "validate",
    "files.parquet.writing.write": "write write_table",
    "files.parquet.writing.writer": "FileInfo VariantWriter",
    "query.predicate_text": "parse_predicate",
}
__getattr__, __dir__ = lazy_names(__name__, _NAMES)
__all__ = __dir__()  # noqa: PLE0605 - the table above lists the names
