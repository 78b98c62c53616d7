"""A column out of a table read from a file, through the structs that enclose it.

Owns only that. Leaves reading to `files`.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from parquet_variant import arrow_compute as pc
from parquet_variant.errors import VariantFileError


def nested_array(table: pa.Table, path: Sequence[str]) -> pa.Array:
    """The array at a path of struct fields, null wherever one of the structs is.

    Raises `VariantFileError` if the column is too large for one Arrow array.
    """
    column = table.column(path[0])
    if column.num_chunks == 1:  # Joining chunks copies them, even if there is only one.
        array = column.chunk(0)
    else:
        try:
            array = pa.nulls(0, column.type) if not column.num_chunks else pa.concat_arrays(column.chunks)
        except pa.ArrowInvalid as error:
            raise VariantFileError(
                f"column {path[0]} has more than 2 GiB in a row group ({error}): rewrite it with smaller row groups",
                reason="too-large",
            ) from None
    for name in path[1:]:
        array = pc.struct_field(array, [name])
    return array
