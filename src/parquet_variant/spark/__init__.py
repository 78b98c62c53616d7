"""Spark: the `variant` data source, the ingest pipeline, projected reads and SQL functions (``pv.spark``).

Owns everything that knows PySpark, with the command line. Leaves the work on values and files to the layers below:
the code that runs on executors is theirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from parquet_variant.spark.functions import register_functions as register_functions
from parquet_variant.spark.ingest import ingest as ingest
from parquet_variant.spark.java import find_java as find_java
from parquet_variant.spark.optimize import optimize as optimize
from parquet_variant.spark.profile import profile as profile
from parquet_variant.spark.read import read as read
from parquet_variant.spark.rewrite import rewrite as rewrite
from parquet_variant.spark.session import local_session as local_session
from parquet_variant.spark.struct_view import plan_read as plan_read
from parquet_variant.spark.write import infer_schema as infer_schema
from parquet_variant.spark.write import write as write

if TYPE_CHECKING:
    from parquet_variant.spark.datasource import VariantDataSource as VariantDataSource

__all__ = [
    "VariantDataSource",
    "find_java",
    "infer_schema",
    "ingest",
    "local_session",
    "optimize",
    "plan_read",
    "profile",
    "read",
    "register_functions",
    "rewrite",
    "write",
]


def __getattr__(name: str) -> Any:
    if name != "VariantDataSource":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # The one name that needs PySpark to be imported.
    from parquet_variant.spark.datasource import VariantDataSource

    return VariantDataSource
