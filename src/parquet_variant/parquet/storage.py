"""A Variant column's storage out of a table read from a file, also if only some of its leaves were read.

Owns the way through enclosing structs, and the stand-in for a dictionary that nobody needs. Leaves reading to `files`.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["column_storage", "constant_metadata", "nested_array"]


def constant_metadata(rows: int) -> pa.Array:
    """The empty dictionary for every row: what stands for a metadata column that was not read."""
    indices = pa.array(memoryview(bytes(4 * rows)).cast("i"), pa.int32()) if rows else pa.array([], pa.int32())
    return pa.DictionaryArray.from_arrays(indices, pa.array([b"\x01\x00\x00"], pa.binary()))


def nested_array(table: pa.Table, path: Sequence[str]) -> pa.Array:
    """The array at a path of struct fields, null wherever one of the structs is."""
    column = table.column(path[0])
    array = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if isinstance(array, pa.ChunkedArray):  # combine_chunks of nothing
        array = pa.array([], type=column.type)
    for name in path[1:]:
        array = pc.struct_field(array, [name])
    return array


def column_storage(table: pa.Table, path: Sequence[str], *, draft_object: bool = False) -> pa.StructArray:
    """The storage of the Variant column at a path; without a metadata column it gets one of empty dictionaries."""
    storage = nested_array(table, path)
    names = [field.name for field in storage.type]
    if "metadata" in names or draft_object:
        return storage
    children = [storage.field(index) for index in range(len(names))]
    fields = [pa.field("metadata", pa.dictionary(pa.int32(), pa.binary()), nullable=False), *storage.type]
    mask = storage.is_null() if storage.null_count else None
    return pa.StructArray.from_arrays([constant_metadata(len(storage)), *children], fields=fields, mask=mask)
