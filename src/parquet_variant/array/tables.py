"""Tables of Arrow as one needs them: without rows, a column as one array, what is inside of structs.

Owns these, where pyarrow refuses or copies. Leaves storages to `parts`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from parquet_variant import arrow_compute as pc
from parquet_variant.errors import VariantFileError


def empty_table(schema: pa.Schema) -> pa.Table:
    """What `pyarrow.Schema.empty_table` gives, also for lists and structs of extension types, which that refuses.

    >>> empty_table(pa.schema({"ids": pa.list_(pa.uuid())})).num_rows
    0
    """
    return pa.table([pa.nulls(0, field.type) for field in schema], schema=schema)


def one_chunk(column: Any) -> pa.Array:
    """A column, which may be one array already, as one array: joining chunks copies them, even if there is only one."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)


def nested_array(table: pa.Table, path: Sequence[str]) -> pa.Array:
    """The array at a path of struct fields, null wherever one of the structs is.

    Raises `VariantFileError` if the column is too large for one Arrow array.
    """
    try:
        array = one_chunk(table.column(path[0]))
    except pa.ArrowInvalid as error:
        raise VariantFileError(
            f"column {path[0]} has more than 2 GiB in a row group ({error}): rewrite it with smaller row groups",
            reason="too-large",
        ) from None
    for name in path[1:]:
        array = pc.struct_field(array, [name])
    return array
