"""Records at addresses, inside kernels: rows of 64-bit columns; and the kinds of the values that they describe.

A column of a record is one load. An entry of a table that is passed as an array takes a multiplication by the table's
width, and the array's shape takes registers, which makes kernels that visit values a third slower.
"""

from __future__ import annotations

from parquet_variant.kernels.compiling import helper, numbered
from parquet_variant.kernels.memory import load_u64, store_u64
from parquet_variant.types import PrimitiveId

# Columns of a node of a tape, and of `values.value_nodes`.
NODE = numbered("TAG A B END")
NODE_BYTES = 8 * len(NODE)


@helper
def get(record: int, column: int) -> int:
    """Return a column of a record."""
    return load_u64(record + 8 * column)


@helper
def put(record: int, column: int, value: int) -> None:
    """Set a column of a record."""
    store_u64(record + 8 * column, value)


# Ids of scalars start at 0; ARRAY and OBJECT follow.
KIND = numbered(" ".join([*PrimitiveId.__members__, "ARRAY", "OBJECT"]))
