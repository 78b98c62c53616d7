"""Rows of storage structs to Arrow and back, without losing a bit on the way.

Owns the detour around what pyarrow does with Python objects: times become integers (`datetime` has no nanoseconds and
ends in the year 9999), uuids their bytes. Leaves the meaning of the rows to the layouts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from parquet_variant.encoding.cast.forms import with_fields, without_encoding
from parquet_variant.errors import MalformedVariantError


def array_of_rows(rows: Sequence[Any], storage: pa.DataType) -> pa.Array:
    """Make an Arrow array of rows whose slots are those of `typed_values`.

    >>> array_of_rows([1, None], pa.timestamp("ns")).type
    TimestampType(timestamp[ns])
    """
    return pa.array(rows, _plain(storage)).cast(storage)


def rows_of_array(array: pa.Array) -> list[Any]:
    """Give the rows of an Arrow array as Python objects, slots as in `typed_values`.

    Raises `MalformedVariantError` if a string is not UTF-8 (``bad-utf8``).

    >>> rows_of_array(pa.array([None, 1], pa.timestamp("us", "UTC")))
    [None, 1]
    """
    if isinstance(array, pa.ChunkedArray):
        return [row for chunk in array.chunks for row in rows_of_array(chunk)]
    if "list_view" in str(array.type):
        array = array.take(pa.array(range(len(array))))  # pyarrow 26 casts sliced list views wrongly
    if pa.types.is_struct(array.type) and any(pa.types.is_run_end_encoded(field.type) for field in array.type):
        array = _run_ends_decoded(array)
    try:
        return array.cast(_plain(array.type)).to_pylist()
    except UnicodeDecodeError as error:
        raise MalformedVariantError(
            f"a shredded string is not UTF-8: {error.object[:20]!r}", reason="bad-utf8"
        ) from None


def _run_ends_decoded(array: pa.StructArray) -> pa.StructArray:
    columns = [
        without_encoding(column) if pa.types.is_run_end_encoded(column.type) else column for column in array.flatten()
    ]
    fields = [field.with_type(column.type) for field, column in zip(array.type, columns, strict=True)]
    return pa.StructArray.from_arrays(columns, fields=fields, mask=array.is_null())


def _plain(arrow: pa.DataType) -> pa.DataType:
    if isinstance(arrow, pa.BaseExtensionType):
        return _plain(arrow.storage_type)
    if pa.types.is_date32(arrow):
        return pa.int32()
    if pa.types.is_timestamp(arrow) or pa.types.is_time64(arrow):
        return pa.int64()
    return with_fields(arrow, lambda field: field.with_type(_plain(field.type)))
