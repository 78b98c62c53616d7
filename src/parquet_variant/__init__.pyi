# Generated from the table in __init__.py: change that, then run make snapshots.
from parquet_variant import spark as spark
from parquet_variant._version import __version__ as __version__
from parquet_variant.arrays.variant_array import VariantArray as VariantArray
from parquet_variant.encoding.variant import Variant as Variant
from parquet_variant.errors import CastError as CastError
from parquet_variant.errors import ConflictError as ConflictError
from parquet_variant.errors import ContractError as ContractError
from parquet_variant.errors import DeltaError as DeltaError
from parquet_variant.errors import JsonError as JsonError
from parquet_variant.errors import KernelsError as KernelsError
from parquet_variant.errors import MalformedVariantError as MalformedVariantError
from parquet_variant.errors import PathError as PathError
from parquet_variant.errors import PredicateError as PredicateError
from parquet_variant.errors import SchemaError as SchemaError
from parquet_variant.errors import TableError as TableError
from parquet_variant.errors import VariantError as VariantError
from parquet_variant.errors import VariantFileError as VariantFileError
from parquet_variant.files import vortex as vortex
from parquet_variant.files.parquet.writing.writer import VariantWriter as VariantWriter
from parquet_variant.inference.contracts.contract import Contract as Contract
from parquet_variant.inference.contracts.path_rules import PathRules as PathRules
from parquet_variant.inference.policies.auto import AutoPolicy as AutoPolicy
from parquet_variant.inference.policies.explicit import ExplicitPolicy as ExplicitPolicy
from parquet_variant.inference.policies.explicit import HintsPolicy as HintsPolicy
from parquet_variant.inference.policies.explicit import WorkloadPolicy as WorkloadPolicy
from parquet_variant.inference.policies.spark import SparkPolicy as SparkPolicy
from parquet_variant.inference.profile import Profile as Profile
from parquet_variant.ingestion.ingest import infer as infer
from parquet_variant.ingestion.ingest import ingest as ingest
from parquet_variant.ingestion.ingest import profile as profile
from parquet_variant.ingestion.ingest import read_json as read_json
from parquet_variant.ingestion.result import IngestResult as IngestResult
from parquet_variant.kernels.machine_code.building import warmup as warmup
from parquet_variant.layouts.shredding_schema import ShreddingSchema as ShreddingSchema
from parquet_variant.ops.conversions import cast_to_variant as cast_to_variant
from parquet_variant.ops.conversions import from_python as from_python
from parquet_variant.ops.conversions import to_json as to_json
from parquet_variant.ops.conversions import to_python as to_python
from parquet_variant.ops.equals import equals as equals
from parquet_variant.ops.parse_json import parse_json as parse_json
from parquet_variant.ops.shred_variant import infer_shredding_schema as infer_shredding_schema
from parquet_variant.ops.shred_variant import shred_variant as shred_variant
from parquet_variant.ops.shred_variant import unshred_variant as unshred_variant
from parquet_variant.ops.validate import validate as validate
from parquet_variant.ops.value_edits import strip_nulls as strip_nulls
from parquet_variant.ops.value_edits import variant_array_append as variant_array_append
from parquet_variant.ops.value_edits import variant_delete as variant_delete
from parquet_variant.ops.value_edits import variant_insert as variant_insert
from parquet_variant.ops.value_edits import variant_normalize as variant_normalize
from parquet_variant.ops.value_edits import variant_set as variant_set
from parquet_variant.ops.value_types import is_variant_null as is_variant_null
from parquet_variant.ops.value_types import schema_of_variant as schema_of_variant
from parquet_variant.ops.value_types import schema_of_variant_agg as schema_of_variant_agg
from parquet_variant.ops.value_types import variant_type as variant_type
from parquet_variant.ops.variant_explode import variant_explode as variant_explode
from parquet_variant.ops.variant_get import VariantScalar as VariantScalar
from parquet_variant.ops.variant_get import get_variant_element as get_variant_element
from parquet_variant.ops.variant_get import get_variant_scalar as get_variant_scalar
from parquet_variant.ops.variant_get import variant_get as variant_get
from parquet_variant.quality.diff import DataDiff as DataDiff
from parquet_variant.sql_query.sql import sql as sql
from parquet_variant.tables.creating import create as create
from parquet_variant.tables.creating import write as write
from parquet_variant.tables.iceberg.writing.write import create_namespace as create_namespace
from parquet_variant.tables.integrations import duckdb as duckdb
from parquet_variant.tables.integrations.polars import scan_polars as scan_polars
from parquet_variant.tables.opening import open as open
from parquet_variant.tables.publishing.source import PublishResult as PublishResult
from parquet_variant.tables.table.delta import DeltaTable as DeltaTable
from parquet_variant.tables.table.files import JsonTable as JsonTable
from parquet_variant.tables.table.files import MemoryTable as MemoryTable
from parquet_variant.tables.table.files import ParquetTable as ParquetTable
from parquet_variant.tables.table.files import SparkTable as SparkTable
from parquet_variant.tables.table.files import VortexTable as VortexTable
from parquet_variant.tables.table.iceberg import IcebergTable as IcebergTable
from parquet_variant.tables.table.scan import Scan as Scan
from parquet_variant.tables.table.table import Table as Table
from parquet_variant.types import VariantType as VariantType
from parquet_variant.types.path import VariantPath as VariantPath

__all__ = [
    "AutoPolicy",
    "CastError",
    "ConflictError",
    "Contract",
    "ContractError",
    "DataDiff",
    "DeltaError",
    "DeltaTable",
    "ExplicitPolicy",
    "HintsPolicy",
    "IcebergTable",
    "IngestResult",
    "JsonError",
    "JsonTable",
    "KernelsError",
    "MalformedVariantError",
    "MemoryTable",
    "ParquetTable",
    "PathError",
    "PathRules",
    "PredicateError",
    "Profile",
    "PublishResult",
    "Scan",
    "SchemaError",
    "ShreddingSchema",
    "SparkPolicy",
    "SparkTable",
    "Table",
    "TableError",
    "Variant",
    "VariantArray",
    "VariantError",
    "VariantFileError",
    "VariantPath",
    "VariantScalar",
    "VariantType",
    "VariantWriter",
    "VortexTable",
    "WorkloadPolicy",
    "cast_to_variant",
    "create",
    "create_namespace",
    "duckdb",
    "equals",
    "from_python",
    "get_variant_element",
    "get_variant_scalar",
    "infer",
    "infer_shredding_schema",
    "ingest",
    "is_variant_null",
    "open",
    "parse_json",
    "profile",
    "read_json",
    "scan_polars",
    "schema_of_variant",
    "schema_of_variant_agg",
    "shred_variant",
    "spark",
    "sql",
    "strip_nulls",
    "to_json",
    "to_python",
    "unshred_variant",
    "validate",
    "variant_array_append",
    "variant_delete",
    "variant_explode",
    "variant_get",
    "variant_insert",
    "variant_normalize",
    "variant_set",
    "variant_type",
    "vortex",
    "warmup",
    "write",
]

def __dir__() -> list[str]: ...
