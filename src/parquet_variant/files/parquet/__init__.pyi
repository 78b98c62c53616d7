# Generated from the table in __init__.py: change that, then run make snapshots.
from parquet_variant.files.parquet.operations.annotate import annotate as annotate
from parquet_variant.files.parquet.operations.inspect import inspect as inspect
from parquet_variant.files.parquet.operations.optimize import OptimizeResult as OptimizeResult
from parquet_variant.files.parquet.operations.optimize import optimize as optimize
from parquet_variant.files.parquet.operations.rewrite import rewrite as rewrite
from parquet_variant.files.parquet.reading.read import read as read
from parquet_variant.files.parquet.reading.read_table import read_table as read_table
from parquet_variant.files.parquet.scanning.scan import Scan as Scan
from parquet_variant.files.parquet.scanning.scan import extract as extract
from parquet_variant.files.parquet.scanning.scan import scan as scan
from parquet_variant.files.parquet.validation.validate import validate as validate
from parquet_variant.files.parquet.writing.write import write as write
from parquet_variant.files.parquet.writing.write import write_table as write_table
from parquet_variant.files.parquet.writing.writer import FileInfo as FileInfo
from parquet_variant.files.parquet.writing.writer import VariantWriter as VariantWriter
from parquet_variant.query.predicate_text import parse_predicate as parse_predicate

__all__ = [
    "FileInfo",
    "OptimizeResult",
    "Scan",
    "VariantWriter",
    "annotate",
    "extract",
    "inspect",
    "optimize",
    "parse_predicate",
    "read",
    "read_table",
    "rewrite",
    "scan",
    "validate",
    "write",
    "write_table",
]

def __dir__() -> list[str]: ...
