# Generated from the table in __init__.py: change that, then run make snapshots.
from parquet_variant.spark.datasource.source import VariantDataSource as VariantDataSource
from parquet_variant.spark.operations.catalog import register_functions as register_functions
from parquet_variant.spark.operations.catalog import register_table as register_table
from parquet_variant.spark.operations.contracts import StreamContract as StreamContract
from parquet_variant.spark.operations.write import infer_schema as infer_schema
from parquet_variant.spark.session import local_session as local_session

__all__ = [
    "StreamContract",
    "VariantDataSource",
    "infer_schema",
    "local_session",
    "register_functions",
    "register_table",
]

def __dir__() -> list[str]: ...
