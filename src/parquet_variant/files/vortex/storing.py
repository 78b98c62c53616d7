"""Variant columns in the form that a Vortex file stores, and the check that the file preserves them.

Owns the conversion of columns into a layout and back, and the comparison with the values that are read back. `dtype`
owns the choice of layouts; `write` and `read` own the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from parquet_variant.arrays.capsules import EXTENSION_METADATA, import_variant, plain_metadata
from parquet_variant.arrays.chunked_array import ChunkedVariantArray
from parquet_variant.arrays.chunked_array import variant_table as table_of_columns
from parquet_variant.arrays.parts import stored_columns, with_columns
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.files.parquet.writing.conform import null_where_missing
from parquet_variant.files.vortex.dtype import StoredLayout, within_dtype
from parquet_variant.layouts.storage_shape import is_list
from parquet_variant.ops.equals import equals
from parquet_variant.support import arrow_compute as pc
from parquet_variant.types.forms import without_encoding

# The library closes a block at 8,192 rows if its buffers have a megabyte; it counts whole buffers.
_BLOCK_BYTES = 1 << 20


def variant_table(columns: Mapping[str, Any], *, plain: bool = True) -> pa.Table:
    """Return a pyarrow table whose Variant columns have the extension name, in a form that vortex-data reads.

    Parameters
    ----------
    columns
        Columns by name: `VariantArray`, `ChunkedVariantArray`, or anything that pyarrow accepts as a column.
    plain
        If true, metadata is plain binary, and fields that Vortex's Variant type cannot type (lists, objects, fields
        with values of other types) are not shredded, because vortex-data refuses or loses them. If false, metadata is
        dictionary-encoded and every column keeps its schema, for pyarrow, polars, DuckDB and arro3.

    Raises
    ------
    SchemaError
        If the storage types of the chunks of a column differ (``different-storage``).

    Examples
    --------
    >>> import parquet_variant as pv
    >>> array = pv.shred_variant(pv.parse_json(['{"a": 1, "b": [1]}']), "a bigint, b array<bigint>")
    >>> table = variant_table({"v": array})
    >>> table.schema.field("v").type.field("metadata").type, pv.VariantArray.from_arrow(table).schema.to_ddl()
    (DataType(binary), 'a bigint')
    """
    if plain:
        columns = {name: _within_dtype(column) for name, column in columns.items()}
    return table_of_columns(columns, plain=plain)


def _within_dtype(column: Any) -> Any:
    if isinstance(column, ChunkedVariantArray):
        column = column.combine()
    return within_dtype(column)[0] if isinstance(column, VariantArray) and column.layout == "final" else column


def stored_column(
    array: VariantArray, layout: StoredLayout, *, nullable: bool = True
) -> tuple[pa.Field, pa.StructArray]:
    """Return the field (without a name) and the array that store a column in a layout; ``nullable`` if rows may be
    absent.

    >>> field, _ = stored_column(VariantArray.from_pylist([{"a": 1}]), "variant")
    >>> field.metadata[b"ARROW:extension:name"]
    b'arrow.parquet.variant'
    """
    if layout == "struct":
        storage = _without_empty_values(array.storage, rows=array.storage)
        return pa.field("", storage.type, nullable=nullable), storage
    # Vortex's Variant type does not allow dictionary-encoded metadata; Vortex compresses the column itself.
    storage = _in_blocks(_without_empty_values(plain_metadata(array.storage), rows=array.storage, keeps_top=True))
    return pa.field("", storage.type, nullable=nullable, metadata=EXTENSION_METADATA), storage


def unstored_rows(column: Any) -> VariantArray:
    """Return the Variant column for the array or chunked array read from a file."""
    return VariantArray.concat(VariantArray(storage) for storage in import_variant(column))


def _in_blocks(storage: pa.StructArray) -> pa.StructArray:
    """Return the storage in a form for which the library closes a block every 8,192 rows, however short the rows are.

    The library joins blocks of less than a megabyte, and cannot convert rows of joined blocks. A buffer that no view
    refers to counts, and is not written.
    """
    columns = stored_columns(storage)
    name = "value" if "value" in columns else "metadata"
    views = columns[name].cast(pa.binary_view())
    buffers = [*views.buffers(), pa.py_buffer(bytes(_BLOCK_BYTES))]
    columns[name] = pa.Array.from_buffers(views.type, len(views), buffers, views.null_count, views.offset)
    return with_columns(storage, columns)


def _without_empty_values(group: pa.Array, rows: pa.Array | None = None, *, keeps_top: bool = False) -> pa.Array:
    """Return the storage without empty ``value`` columns, so that they are not read.

    `rows`: marks the rows of a group that must have values: the top level, and elements of lists.
    `keeps_top`: whether the ``value`` column of the group itself is kept.
    """
    if is_list(group.type):
        values = group.values
        if pa.types.is_struct(values.type):
            values = pa.StructArray.from_arrays(values.flatten(), fields=list(values.type))
        elements = _without_empty_values(values, rows=values)
        kind = (pa.large_list if pa.types.is_large_list(group.type) else pa.list_)(
            group.type.value_field.with_type(elements.type)
        )
        return pa.Array.from_buffers(
            kind, len(group), group.buffers()[:2], group.null_count, group.offset, children=[elements]
        )
    if not pa.types.is_struct(group.type):
        return group
    columns = stored_columns(group)
    if rows is not None and "typed_value" in columns:
        typed = columns["typed_value"]
        value = null_where_missing(columns.get("value", pa.nulls(len(typed), pa.binary())), typed, rows)
        if value.null_count < len(value):
            columns["value"] = value
    if not keeps_top and "typed_value" in columns and "value" in columns and columns["value"].null_count == len(group):
        del columns["value"]
    return with_columns(group, {name: _without_empty_values(column) for name, column in columns.items()})


# -- verification


def first_difference(written: Any, stored: pa.Array) -> int | None:
    """Return the first row that was read back with another value; None if all rows are equal.

    `written`: a `VariantArray`, whose values are compared by their bytes and, if these differ, by meaning; or an Arrow
      array.
    `stored`: the array that was read.
    """
    if len(written) != len(stored):
        return min(len(written), len(stored))
    if not isinstance(written, VariantArray):
        return _first_false(_equal_values(written, stored))
    left, right = (column.to_unshredded() for column in (written, unstored_rows(stored) if len(stored) else written))
    nulls = [column.storage.is_null() for column in (left, right)]
    same = equals(left, right).fill_null(False)
    return _first_false(pc.or_(same, pc.and_(*nulls)).to_numpy(zero_copy_only=False))


def _first_false(flags: np.ndarray) -> int | None:
    return None if flags.all() else int(np.argmin(flags))


def _equal_values(written: pa.Array, stored: pa.Array) -> np.ndarray:
    if isinstance(written, pa.ChunkedArray):
        written = written.combine_chunks()
    written = without_encoding(written)
    if written.equals(stored):
        return np.ones(len(written), np.bool_)
    if pa.types.is_nested(written.type) or isinstance(written.type, pa.BaseExtensionType):
        pairs = zip(written.to_pylist(), stored.to_pylist(), strict=True)
        return np.array([repr(left) == repr(right) for left, right in pairs], np.bool_)
    if pa.types.is_float16(written.type):  # pyarrow cannot compare float16
        written = written.cast(pa.float32())
    stored = stored.cast(written.type)
    same = pc.equal(written, stored).fill_null(False)
    if pa.types.is_floating(written.type):
        same = pc.or_(same, pc.and_(pc.is_nan(written), pc.is_nan(stored)).fill_null(False))
    return pc.or_(same, pc.and_(written.is_null(), stored.is_null())).to_numpy(zero_copy_only=False)
