"""Spark (``pv.spark``): the `variant` data source, ingestion, reads of typed paths, and SQL functions.

Only this package and the command line import PySpark. Executors run the code of the layers below. Public names are
loaded on first use.
"""

from __future__ import annotations

from parquet_variant.support.lazy_names import lazy_names

# Module -> the public names that it defines. `make snapshots` writes __init__.pyi from this table.
_NAMES = {
    "spark.datasource.source": "VariantDataSource",
    "spark.operations.catalog": "register_functions register_table",
    "spark.operations.contracts": "StreamContract",
    "spark.operations.write": "infer_schema",
    "spark.session": "local_session",
}
__getattr__, __dir__ = lazy_names(__name__, _NAMES)
__all__ = __dir__()  # noqa: PLE0605 - the table above lists the names
