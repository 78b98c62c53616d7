"""Parquet files with Variant columns: write, read, query by path, look into, check, rewrite.

Owns the public names of the layer. They are imported here, not on first use, so that a function is never hidden by the
module of the same name.
"""

from __future__ import annotations

from parquet_variant.parquet.annotate import annotate as annotate
from parquet_variant.parquet.extract import extract as extract
from parquet_variant.parquet.infer import infer as infer
from parquet_variant.parquet.ingest import ingest as ingest
from parquet_variant.parquet.ingest_result import IngestResult as IngestResult
from parquet_variant.parquet.inspect import inspect as inspect
from parquet_variant.parquet.optimize import OptimizeResult as OptimizeResult
from parquet_variant.parquet.optimize import optimize as optimize
from parquet_variant.parquet.predicate_text import parse_predicate as parse_predicate
from parquet_variant.parquet.profile import profile as profile
from parquet_variant.parquet.read import read as read
from parquet_variant.parquet.read_table import read_table as read_table
from parquet_variant.parquet.rewrite import rewrite as rewrite
from parquet_variant.parquet.scan import Scan as Scan
from parquet_variant.parquet.scan import scan as scan
from parquet_variant.parquet.validate import validate as validate
from parquet_variant.parquet.write import write as write
from parquet_variant.parquet.writer import FileInfo as FileInfo
from parquet_variant.parquet.writer import VariantWriter as VariantWriter

__all__ = [
    "FileInfo",
    "IngestResult",
    "OptimizeResult",
    "Scan",
    "VariantWriter",
    "annotate",
    "extract",
    "infer",
    "ingest",
    "inspect",
    "optimize",
    "parse_predicate",
    "profile",
    "read",
    "read_table",
    "rewrite",
    "scan",
    "validate",
    "write",
]
