"""Spark: the `variant` data source, the ingest pipeline, projected reads and SQL functions (``pv.spark``).

Owns everything that knows PySpark, with the command line. Leaves the work on values and files to the layers below:
the code that runs on executors is theirs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

# Public name -> the module that owns it, loaded on first use: `pv.spark` itself does not import PySpark.
_OWNERS = {
    "VariantDataSource": "datasource",
    "find_java": "java",
    "infer_schema": "write",
    "ingest": "ingest",
    "local_session": "session",
    "read": "read",
    "register_functions": "functions",
    "write": "write",
}

__all__ = sorted(_OWNERS)  # noqa: PLE0605 - the table above is the truth


def __getattr__(name: str) -> Any:
    if name not in _OWNERS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_OWNERS[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


if TYPE_CHECKING:
    from parquet_variant.spark.datasource import VariantDataSource as VariantDataSource
    from parquet_variant.spark.functions import register_functions as register_functions
    from parquet_variant.spark.ingest import ingest as ingest
    from parquet_variant.spark.java import find_java as find_java
    from parquet_variant.spark.read import read as read
    from parquet_variant.spark.session import local_session as local_session
    from parquet_variant.spark.write import infer_schema as infer_schema
    from parquet_variant.spark.write import write as write
