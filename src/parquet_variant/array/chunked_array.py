"""Chunks of Variant columns, alone and in tables, for libraries that take streams.

Owns `ChunkedVariantArray` and `variant_table`. Leaves the capsules to `capsules`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from parquet_variant.array.capsules import import_variant, plain_metadata, stream_capsule, variant_field
from parquet_variant.array.variant_array import VariantArray, alike
from parquet_variant.errors import check_column_name


class ChunkedVariantArray:
    """Chunks of one Variant column, for libraries that take a stream.

    Parameters
    ----------
    chunks
        The arrays, all with the same storage type.

    Raises
    ------
    SchemaError
        If their storage types differ (``different-storage``), or there are none.

    Examples
    --------
    >>> parts = [VariantArray.from_pylist([1, None]), VariantArray.from_pylist(["x"])]
    >>> chunked = ChunkedVariantArray(parts)
    >>> len(chunked), chunked.null_count, VariantArray.from_arrow(chunked).to_pylist()
    (3, 1, [1, None, 'x'])
    """

    __slots__ = ("chunks",)

    chunks: tuple[VariantArray, ...]
    """The arrays."""

    def __init__(self, chunks: Iterable[VariantArray]) -> None:
        self.chunks = alike(chunks)

    @classmethod
    def from_arrow(cls, obj: Any, column: str | None = None) -> ChunkedVariantArray:
        """The chunks of a stream, without copying them together; see `VariantArray.from_arrow`."""
        return cls(VariantArray(storage) for storage in import_variant(obj, column))

    def __len__(self) -> int:
        return sum(map(len, self.chunks))

    def __iter__(self) -> Iterator[Any]:
        for chunk in self.chunks:
            yield from chunk

    @property
    def null_count(self) -> int:
        """Number of SQL NULL rows."""
        return sum(chunk.null_count for chunk in self.chunks)

    def map(self, operation: Callable[[VariantArray], VariantArray]) -> ChunkedVariantArray:
        """The chunks after an operation on each."""
        return ChunkedVariantArray(map(operation, self.chunks))

    def combine(self) -> VariantArray:
        """One array of all rows."""
        return VariantArray.concat(self.chunks)

    def __arrow_c_schema__(self) -> Any:
        return self.chunks[0].__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        storages = [chunk.storage for chunk in self.chunks]
        return stream_capsule(storages, storages[0].type, requested_schema)


def variant_table(columns: Mapping[str, Any], *, plain: bool = False) -> pa.Table:
    """A pyarrow table whose Variant columns carry the extension's name: what DuckDB, daft and Vortex take.

    Parameters
    ----------
    columns
        Columns by name: `VariantArray`, `ChunkedVariantArray`, or anything that pyarrow's tables take.
    plain
        Whether metadata is plain binary instead of dictionary-encoded, for libraries that have no dictionaries of
        binary (daft).

    Raises
    ------
    SchemaError
        As `ChunkedVariantArray`.

    Examples
    --------
    >>> table = variant_table({"id": [1], "v": VariantArray.from_pylist([{"a": 1}])})
    >>> table.schema.field("v").metadata[b"ARROW:extension:name"]
    b'arrow.parquet.variant'
    """
    arrays, fields = [], []
    for name, column in columns.items():
        check_column_name(name)
        if isinstance(column, VariantArray):
            column = ChunkedVariantArray([column])
        if isinstance(column, ChunkedVariantArray):
            storages = [chunk.storage for chunk in column.chunks]
            if plain:
                storages = [plain_metadata(storage) for storage in storages]
            arrays.append(pa.chunked_array(storages))
            fields.append(variant_field(storages[0].type).with_name(name))
        else:
            array = column if isinstance(column, (pa.Array, pa.ChunkedArray)) else pa.array(column)
            arrays.append(array)
            fields.append(pa.field(name, array.type))
    return pa.table(arrays, schema=pa.schema(fields))
