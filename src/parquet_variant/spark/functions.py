"""SQL functions over VARIANT columns, in addition to Spark's own functions, registered as Arrow UDFs.

Owns how a VARIANT is read and returned. Leaves the functions to `query.engine_functions`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import VariantError
from parquet_variant.query.engine_functions import VariantColumns
from parquet_variant.spark.arrow_variant import SPARK_VARIANT, from_spark, is_spark_variant, to_spark
from parquet_variant.spark.task_errors import one_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register_functions(spark: SparkSession, prefix: str = "pv_") -> list[str]:
    """Register the functions in a session, with names that begin with a prefix.

    Parameters
    ----------
    spark
        The session. Casts use the time zone that it has now.
    prefix
        Prefix of the names, so that the functions do not replace Spark's own.

    Returns
    -------
    list of str
        The names: ``pv_parse_json(text)``, ``pv_try_parse_json(text)``, ``pv_to_json(v)``, ``pv_variant_get(v, path)``,
        ``pv_variant_set(v, path, x)``, ``pv_variant_insert``, ``pv_variant_array_append`` (x is a VARIANT; also with
        ``try_``), ``pv_variant_delete(v, path)``, ``pv_variant_strip_nulls(v)``; ``pv_canonical(v)``: bytes that are
        equal for equal values (1 and 1.0, keys in any order), for GROUP BY, DISTINCT and joins, NULL for a JSON null;
        ``pv_schema_of_variant(v)``, ``pv_is_variant_null(v)``; and for the types ``boolean``, ``int``, … functions such
        as ``pv_variant_get_double(v, path)`` and ``pv_try_variant_get_double(v, path)`` (``decimal(38, 9)``).
    """
    from pyspark.sql.functions import arrow_udf
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import VariantType

    def checked(work: Callable[..., pa.Array]) -> Callable[..., pa.Array]:
        expected = len(signature(work).parameters)

        @wraps(work)
        def call(*columns: pa.Array) -> pa.Array:
            with one_line():
                if len(columns) != expected:
                    raise VariantError(
                        f"the function takes {expected} arguments, not {len(columns)}", reason="bad-argument"
                    )
                return work(*columns)

        return call

    zone = str(spark.conf.get("spark.sql.session.timeZone"))
    functions = VariantColumns(_variants, to_spark, SPARK_VARIANT).functions(zone)
    for name, (work, kind) in functions.items():
        returns: Any = VariantType() if kind is None else from_arrow_type(kind)
        spark.udf.register(f"{prefix}{name}", arrow_udf(checked(work), returns))
    return [f"{prefix}{name}" for name in functions]


def _variants(values: pa.Array) -> VariantArray:
    """Return a VARIANT argument as an array. A NULL without a type is a VARIANT."""
    if pa.types.is_null(values.type):
        return VariantArray.from_pylist([None] * len(values))
    if not is_spark_variant(values.type):
        raise VariantError(
            f"the argument is {values.type}, not a VARIANT: convert it with parse_json(...)", reason="bad-argument"
        )
    return from_spark(values)
