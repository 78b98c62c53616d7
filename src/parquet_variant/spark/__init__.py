"""Spark: the `variant` data source, the ingest pipeline, projected reads and SQL functions (``pv.spark``).

Owns everything that knows PySpark, with the command line; its public names are loaded on first use. Leaves the work on
values and files to the layers below: the code that runs on executors is theirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from parquet_variant.lazy_names import lazy_names

_OWNERS = {
    "VariantDataSource": "spark.datasource.source",
    "delete": "spark.operations.change",
    "find_java": "spark.java",
    "infer_schema": "spark.operations.write",
    "ingest": "spark.operations.ingest",
    "local_session": "spark.session",
    "merge": "spark.operations.change",
    "optimize": "spark.operations.change",
    "plan_read": "spark.struct_view",
    "profile": "spark.operations.write",
    "read": "spark.operations.read",
    "register_functions": "spark.functions",
    "rewrite": "spark.operations.change",
    "sql": "spark.operations.sql",
    "update": "spark.operations.change",
    "write": "spark.operations.write",
}
if not TYPE_CHECKING:  # or every name would be known, as Any
    __getattr__, __dir__ = lazy_names(__name__, _OWNERS)
__all__ = sorted(_OWNERS)  # noqa: PLE0605 - the table above is the truth

if TYPE_CHECKING:
    from parquet_variant.spark.datasource.source import VariantDataSource as VariantDataSource
    from parquet_variant.spark.functions import register_functions as register_functions
    from parquet_variant.spark.java import find_java as find_java
    from parquet_variant.spark.operations.change import delete as delete
    from parquet_variant.spark.operations.change import merge as merge
    from parquet_variant.spark.operations.change import optimize as optimize
    from parquet_variant.spark.operations.change import rewrite as rewrite
    from parquet_variant.spark.operations.change import update as update
    from parquet_variant.spark.operations.ingest import ingest as ingest
    from parquet_variant.spark.operations.read import read as read
    from parquet_variant.spark.operations.sql import sql as sql
    from parquet_variant.spark.operations.write import infer_schema as infer_schema
    from parquet_variant.spark.operations.write import profile as profile
    from parquet_variant.spark.operations.write import write as write
    from parquet_variant.spark.session import local_session as local_session
    from parquet_variant.spark.struct_view import plan_read as plan_read
