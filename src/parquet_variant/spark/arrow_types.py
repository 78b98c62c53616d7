"""Spark's types as Arrow types, in all versions of Spark: timestamps are UTC, whatever the time zone of the session."""

from __future__ import annotations

from inspect import signature
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas import types
from pyspark.sql.types import DataType, StructType

# Spark 4.1 marks timestamps as UTC by default and has no parameter for the time zone.
_UTC: dict[str, Any] = {"timezone": "UTC"} if "timezone" in signature(types.to_arrow_type).parameters else {}


def to_arrow_type(data_type: DataType) -> pa.DataType:
    """Return the Arrow type in which Spark exchanges values of a type with Python."""
    return types.to_arrow_type(data_type, **_UTC)


def to_arrow_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow schema in which Spark exchanges rows with Python."""
    return types.to_arrow_schema(schema, **_UTC)
