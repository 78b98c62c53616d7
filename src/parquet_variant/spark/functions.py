"""SQL functions over VARIANT columns, in addition to Spark's own functions.

They are the operations of the package `functions`, registered as Arrow UDFs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import VariantError
from parquet_variant.layouts.storage_shape import DDL_NAMES
from parquet_variant.ops.columns.sort_keys import sort_keys
from parquet_variant.ops.conversions import to_json
from parquet_variant.ops.parse_json import parse_json
from parquet_variant.ops.value_edits import (
    strip_nulls,
    variant_array_append,
    variant_delete,
    variant_insert,
    variant_set,
)
from parquet_variant.ops.variant_get import variant_get
from parquet_variant.spark.arrow_variant import SPARK_VARIANT, from_spark, is_spark_variant, to_spark
from parquet_variant.spark.task_errors import one_line
from parquet_variant.support.choices import Errors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Suffix of the name of a getter -> its return type. A Spark function has one return type for all arguments.
FUNCTION_TYPES: dict[str, pa.DataType] = {
    name: DDL_NAMES.get(name, pa.decimal128(38, 9))
    for name in (
        "boolean", "int", "bigint", "float", "double", "decimal", "string", "binary", "date", "timestamp",
        "timestamp_ntz",
    )
}  # fmt: skip


_EDITS: dict[str, Callable[..., Any]] = {
    "variant_set": variant_set, "variant_insert": variant_insert, "variant_array_append": variant_array_append,
}  # fmt: skip


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
        and for every type in `FUNCTION_TYPES` functions such as ``pv_variant_get_double(v, path)`` and
        ``pv_try_variant_get_double(v, path)`` (decimals are ``decimal(38, 9)``).
    """
    from pyspark.sql.functions import arrow_udf
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import BinaryType, DataType, StringType, VariantType

    def udf(work: Callable[..., pa.Array], returns: DataType) -> Any:
        expected = len(signature(work).parameters)

        @wraps(work)
        def checked(*columns: pa.Array) -> pa.Array:
            with one_line():
                if len(columns) != expected:
                    raise VariantError(
                        f"the function takes {expected} arguments, not {len(columns)}", reason="bad-argument"
                    )
                return work(*columns)

        return arrow_udf(checked, returns)

    parse: Callable[..., Any] = parse_json
    delete: Callable[..., Any] = variant_delete
    zone = str(spark.conf.get("spark.sql.session.timeZone"))
    functions: dict[str, Any] = {
        "parse_json": udf(lambda text: to_spark(parse(text)), VariantType()),
        "try_parse_json": udf(lambda text: to_spark(parse(text, errors="null")), VariantType()),
        "to_json": udf(lambda values: to_json(_variants(values)), StringType()),
        "variant_get": udf(_getter(None, zone, "raise"), VariantType()),
        "canonical": udf(lambda values: sort_keys(_variants(values)), BinaryType()),
        "variant_delete": udf(
            lambda values, paths: _by_path(
                paths, SPARK_VARIANT, lambda path, rows: to_spark(delete(rows, path)), values
            ),
            VariantType(),
        ),
        "variant_strip_nulls": udf(lambda values: to_spark(strip_nulls(_variants(values))), VariantType()),
    }
    for name, edit in _EDITS.items():
        functions[name] = udf(_edit(edit, "raise"), VariantType())
        functions[f"try_{name}"] = udf(_edit(edit, "null"), VariantType())
    for suffix, arrow_type in FUNCTION_TYPES.items():
        returns = from_arrow_type(arrow_type)
        functions[f"variant_get_{suffix}"] = udf(_getter(arrow_type, zone, "raise"), returns)
        functions[f"try_variant_get_{suffix}"] = udf(_getter(arrow_type, zone, "null"), returns)
    for name, function in functions.items():
        spark.udf.register(f"{prefix}{name}", function)
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


def _getter(arrow_type: pa.DataType | None, zone: str, errors: Errors) -> Callable[[pa.Array, pa.Array], pa.Array]:
    """Return a function ``(variants, paths) -> values``."""

    def of_path(path: str, rows: VariantArray) -> pa.Array:
        found = variant_get(rows, path, arrow_type or "variant", zone=zone, errors=errors)
        return to_spark(found) if arrow_type is None else found

    return lambda values, paths: _by_path(paths, arrow_type or SPARK_VARIANT, of_path, values)


def _edit(edit: Callable[..., Any], errors: Errors) -> Callable[[pa.Array, pa.Array, pa.Array], pa.Array]:
    """Return a function ``(variants, paths, new values) -> changed variants``; all values are VARIANTs."""

    def of_path(path: str, rows: VariantArray, new: VariantArray) -> pa.Array:
        return to_spark(edit(rows, path, new, errors=errors))

    return lambda values, paths, new: _by_path(paths, SPARK_VARIANT, of_path, values, new)


def _by_path(paths: pa.Array, kind: pa.DataType, work: Callable[..., pa.Array], *columns: pa.Array) -> pa.Array:
    """Return the results for the rows of each path, in the order of the rows; NULL where the path is NULL.

    `work`: called with a path and the VARIANTs of its rows, one array per column.
    """
    distinct, variants = paths.unique(), list(map(_variants, columns))
    if len(distinct) == 1 and distinct[0].is_valid:
        return work(distinct[0].as_py(), *variants)
    order = [np.flatnonzero(paths.is_null().to_numpy(zero_copy_only=False))]
    parts = [pa.nulls(len(order[0]), kind)]
    for path in distinct.drop_null().to_pylist():
        rows = np.flatnonzero(pa.compute.equal(paths, path).fill_null(False).to_numpy(zero_copy_only=False))
        order.append(rows)
        parts.append(work(path, *(column.take(rows) for column in variants)))
    return pa.concat_arrays(parts).take(pa.array(np.argsort(np.concatenate(order))))
