# Generated from the table in __init__.py: change that, then run make snapshots.
from parquet_variant.spark.datasource.source import VariantDataSource as VariantDataSource
from parquet_variant.spark.functions import register_functions as register_functions
from parquet_variant.spark.java import find_java as find_java
from parquet_variant.spark.operations.catalog import refresh_view as refresh_view
from parquet_variant.spark.operations.catalog import register_table as register_table
from parquet_variant.spark.operations.change import delete as delete
from parquet_variant.spark.operations.change import merge as merge
from parquet_variant.spark.operations.change import optimize as optimize
from parquet_variant.spark.operations.change import rewrite as rewrite
from parquet_variant.spark.operations.change import update as update
from parquet_variant.spark.operations.contracts import StreamContract as StreamContract
from parquet_variant.spark.operations.contracts import check as check
from parquet_variant.spark.operations.ingest import ingest as ingest
from parquet_variant.spark.operations.read import read as read
from parquet_variant.spark.operations.sql import sql as sql
from parquet_variant.spark.operations.write import infer_schema as infer_schema
from parquet_variant.spark.operations.write import profile as profile
from parquet_variant.spark.operations.write import write as write
from parquet_variant.spark.session import local_session as local_session
from parquet_variant.spark.struct_view import plan_read as plan_read

__all__ = [
    "StreamContract",
    "VariantDataSource",
    "check",
    "delete",
    "find_java",
    "infer_schema",
    "ingest",
    "local_session",
    "merge",
    "optimize",
    "plan_read",
    "profile",
    "read",
    "refresh_view",
    "register_functions",
    "register_table",
    "rewrite",
    "sql",
    "update",
    "write",
]

def __dir__() -> list[str]: ...
