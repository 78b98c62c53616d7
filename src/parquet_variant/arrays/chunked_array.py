"""Chunked Variant columns, for libraries that read streams.

Owns `ChunkedVariantArray` and `variant_table`. Leaves the capsules to `capsules`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from parquet_variant.arrays import capsules
from parquet_variant.arrays.variant_array import VariantArray, checked_arrays
from parquet_variant.errors import SchemaError, check_column_name


class ChunkedVariantArray:
    """A Variant column in chunks, for libraries that read a stream.

    Parameters
    ----------
    chunks
        The arrays, all with the same storage type.

    Raises
    ------
    SchemaError
        If their storage types differ (``different-storage``), or there is not at least one array.

    Examples
    --------
    >>> parts = [VariantArray.from_pylist([1, None]), VariantArray.from_pylist(["x"])]
    >>> chunked = ChunkedVariantArray(parts)
    >>> len(chunked), chunked.null_count, VariantArray.from_arrow(chunked).to_pylist()
    (3, 1, [1, None, 'x'])
    """

    __slots__ = ("chunks",)

    chunks: tuple[VariantArray, ...]
    """The chunks."""

    def __init__(self, chunks: Iterable[VariantArray]) -> None:
        self.chunks = checked_arrays(chunks)

    @classmethod
    def from_arrow(cls, obj: Any, column: str | None = None) -> ChunkedVariantArray:
        """Return the chunks of a stream without copying them together; see `VariantArray.from_arrow`."""
        return cls(VariantArray(storage) for storage in capsules.import_variant(obj, column))

    def __len__(self) -> int:
        return sum(map(len, self.chunks))

    def __iter__(self) -> Iterator[Any]:
        for chunk in self.chunks:
            yield from chunk

    @property
    def null_count(self) -> int:
        """The number of SQL NULL rows."""
        return sum(chunk.null_count for chunk in self.chunks)

    def map(self, operation: Callable[[VariantArray], VariantArray]) -> ChunkedVariantArray:
        """Return the results of an operation on each chunk."""
        return ChunkedVariantArray(map(operation, self.chunks))

    def combine(self) -> VariantArray:
        """Return all rows as one array."""
        return VariantArray.concat(self.chunks)

    def to_arrow(self) -> pa.ChunkedArray:
        """Return the storages of the chunks as a pyarrow array, without copying; `from_arrow` converts it back."""
        return pa.chunked_array([chunk.storage for chunk in self.chunks])

    def to_pandas(self, name: str | None = None) -> Any:
        """Return all rows as a pandas series of dtype ``variant``."""
        return self.combine().to_pandas(name)

    def to_polars(self, name: str = "") -> Any:
        """Return all rows as a polars series with a ``.variant`` namespace."""
        return self.combine().to_polars(name)

    def to_pylist(self) -> list[Any]:
        """Return all rows as Python objects; None for SQL NULL and for Variant null."""
        return [value for chunk in self.chunks for value in chunk.to_pylist()]

    def __arrow_c_schema__(self) -> Any:
        return self.chunks[0].__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        storages = [chunk.storage for chunk in self.chunks]
        return capsules.stream_capsule(storages, storages[0].type, requested_schema)


def variant_table(columns: Mapping[str, Any], *, plain: bool = False) -> pa.Table:
    """Return a pyarrow table whose Variant columns are marked with the extension's name, as DuckDB, daft and Vortex
    read it.

    Parameters
    ----------
    columns
        Columns by name: `VariantArray`, `ChunkedVariantArray`, or anything that pyarrow accepts as a column.
    plain
        Store metadata as plain binary instead of dictionary-encoded, for libraries that do not support dictionaries of
        binary (daft).

    Raises
    ------
    SchemaError
        If the storage types of the chunks of a column differ (``different-storage``).

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
                storages = [capsules.plain_metadata(storage) for storage in storages]
            arrays.append(pa.chunked_array(storages))
            fields.append(capsules.variant_field(storages[0].type).with_name(name))
        else:
            if not isinstance(column, (pa.Array, pa.ChunkedArray)):
                is_capsule = capsules.is_arrow(column) and not hasattr(column, "iloc")  # pandas has Python values
                try:
                    column = capsules.imported(column) if is_capsule else array_of(column)
                except (pa.ArrowException, OverflowError, TypeError) as error:
                    raise SchemaError(
                        f"cannot convert column {name!r} to Arrow data: {error}; for values of several types make "
                        f"Variants with from_python(values) or pv.write(…, variant_columns=[{name!r}])",
                        reason="bad-data",
                    ) from None
            arrays.append(column)
            fields.append(pa.field(name, column.type))
    return pa.table(arrays, schema=pa.schema(fields))


def array_of(values: Any) -> pa.Array:
    """Return Python values as an Arrow array. Of objects, pyarrow would drop the nanoseconds of pandas' times."""
    array, objects = pa.array(values), values if str(getattr(values, "dtype", "object")) == "object" else ()
    if getattr(array.type, "unit", "") != "us" or not any(getattr(value, "nanosecond", 0) for value in objects):
        return array
    return pa.array(values, pa.timestamp("ns", array.type.tz))
