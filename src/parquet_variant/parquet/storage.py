"""A column out of a table read from a file, through the structs that enclose it.

Owns only that. Leaves reading to `files`.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["nested_array"]


def nested_array(table: pa.Table, path: Sequence[str]) -> pa.Array:
    """The array at a path of struct fields, null wherever one of the structs is."""
    column = table.column(path[0])
    if column.num_chunks == 1:  # Joining chunks copies them, even if there is only one.
        array = column.chunk(0)
    else:
        array = pa.nulls(0, column.type) if not column.num_chunks else column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):  # More than 2 GiB of text do not fit into one array.
        raise NotImplementedError(f"column {path[0]} is too large for one array: read fewer row groups at a time")
    for name in path[1:]:
        array = pc.struct_field(array, [name])
    return array
