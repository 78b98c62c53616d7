"""Conversions of whole storage arrays between layouts, value by value.

Owns conversions of rows to and from Arrow, the loop over rows, and the row number in errors. Columns are converted by
`array`, with the kernels; this module is the reference.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import MalformedVariantError, VariantError
from parquet_variant.layouts.layout import detect_layout
from parquet_variant.layouts.reference.rows import RowLayout, draft_object, draft_paths, final
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.layouts.storages import storage_type
from parquet_variant.support.choices import Layout, OnConflict
from parquet_variant.types.forms import in_form, number_form, plain_form


def array_of_rows(rows: Sequence[Any], storage: pa.DataType) -> pa.Array:
    """Return an Arrow array of rows whose slots have the Python form of `typed_values`."""
    return pa.array(rows, number_form(storage)).cast(storage)


def rows_of_array(array: pa.Array) -> list[Any]:
    """Return the rows of an Arrow array as Python objects; slots have the Python form of `typed_values`.

    Raises `MalformedVariantError` if a string is not UTF-8 (``bad-utf8``).
    """
    if isinstance(array, pa.ChunkedArray):
        return [row for chunk in array.chunks for row in rows_of_array(chunk)]
    array = in_form(array, plain_form(array.type))
    try:
        return array.cast(number_form(array.type)).to_pylist()
    except UnicodeDecodeError as error:
        raise MalformedVariantError(
            f"a shredded string is not UTF-8: {error.object[:20]!r}", reason="bad-utf8"
        ) from None


_ROWS: dict[Layout, RowLayout] = {
    "unshredded": final, "final": final, "draft-paths": draft_paths, "draft-object": draft_object
}  # fmt: skip


def variants_of_storage(storage: pa.StructArray, on_conflict: OnConflict = "error") -> list[Variant | None]:
    """Return the values of a storage array of any layout; None is SQL NULL.

    Raises the errors of the layout's ``reconstruct``, with the row.
    """
    layout = _ROWS[detect_layout(storage.type)]
    values = []
    for number, row in enumerate(rows_of_array(storage)):
        try:
            values.append(layout.reconstruct(row, storage.type, on_conflict))
        except VariantError as error:
            error.at(row=number)
            raise
    return values


def shredded_storage(
    variants: Iterable[Variant | None], schema: ShreddingSchema | pa.StructType, layout: Layout
) -> pa.StructArray:
    """Return the storage of values (None is SQL NULL) in a layout; ``"unshredded"`` ignores the schema.

    Raises the errors of the layout's ``shred_value``, with the row.
    """
    storage = storage_type(schema.type_tree(), layout) if isinstance(schema, ShreddingSchema) else schema
    rows = []
    for number, variant in enumerate(variants):
        try:
            rows.append(_ROWS[layout].shred_value(variant, storage))
        except VariantError as error:
            error.at(row=number)
            raise
    return array_of_rows(rows, storage)
