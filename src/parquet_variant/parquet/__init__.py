"""Parquet files with Variant columns: write, read, query by path, look into, check, rewrite.

Owns the public names of ``pv.parquet`` and loads each on first use. No module here has the name of a public function,
so none hides one. `pv.ingest`, `pv.infer` and `pv.profile` read JSON files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from parquet_variant.lazy_names import lazy_names

_OWNERS = {
    "FileInfo": "parquet.writing.writer",
    "OptimizeResult": "parquet.operations.optimize",
    "Scan": "parquet.scanning.scan",
    "VariantWriter": "parquet.writing.writer",
    "annotate": "parquet.operations.annotate",
    "extract": "parquet.scanning.scan",
    "inspect": "parquet.operations.inspect",
    "optimize": "parquet.operations.optimize",
    "parse_predicate": "query.predicate_text",
    "read": "parquet.reading.read",
    "read_table": "parquet.reading.read_table",
    "rewrite": "parquet.operations.rewrite",
    "scan": "parquet.scanning.scan",
    "validate": "parquet.validation.validate",
    "write": "parquet.writing.write",
    "write_table": "parquet.writing.write",
}
if not TYPE_CHECKING:  # or every name would be known, as Any
    __getattr__, __dir__ = lazy_names(__name__, _OWNERS)
__all__ = sorted(_OWNERS)  # noqa: PLE0605 - the table above is the truth

if TYPE_CHECKING:
    from parquet_variant.parquet.operations.annotate import annotate as annotate
    from parquet_variant.parquet.operations.inspect import inspect as inspect
    from parquet_variant.parquet.operations.optimize import OptimizeResult as OptimizeResult
    from parquet_variant.parquet.operations.optimize import optimize as optimize
    from parquet_variant.parquet.operations.rewrite import rewrite as rewrite
    from parquet_variant.parquet.reading.read import read as read
    from parquet_variant.parquet.reading.read_table import read_table as read_table
    from parquet_variant.parquet.scanning.scan import Scan as Scan
    from parquet_variant.parquet.scanning.scan import extract as extract
    from parquet_variant.parquet.scanning.scan import scan as scan
    from parquet_variant.parquet.validation.validate import validate as validate
    from parquet_variant.parquet.writing.write import write as write
    from parquet_variant.parquet.writing.write import write_table as write_table
    from parquet_variant.parquet.writing.writer import FileInfo as FileInfo
    from parquet_variant.parquet.writing.writer import VariantWriter as VariantWriter
    from parquet_variant.query.predicate_text import parse_predicate as parse_predicate
