"""Rows in the order of typed paths, where a writer is asked for it.

Owns the sort. Leaves the values to `functions.extraction.variant_get`.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from parquet_variant import arrow_compute as pc
from parquet_variant.array.variant_array import VariantArray
from parquet_variant.encoding.cast.forms import chunks_in_form, plain_form
from parquet_variant.errors import VariantFileError
from parquet_variant.parquet.writing.nested import is_tagged
from parquet_variant.query.selection import Selected, read_selection


def sorted_rows(table: pa.Table, sort_by: Sequence[str]) -> pa.Table:
    """The table in ascending order of some keys, nulls last; equal rows keep their order.

    `table`: rows with Variant columns, tagged as such, in any layout.
    `sort_by`: ``"$.path:type"`` into the only top-level Variant column, or the name of an ordinary column. A path
      without a type is sorted as the type that it is shredded as, or else numbers before texts.
    Raises `VariantFileError` if there is not exactly one top-level Variant column to take a path from.
    """
    selection = read_selection({f"key{number}": key for number, key in enumerate(sort_by)})
    keys = {
        f"{selected.name}.{number}": _sortable(key)
        for selected in selection
        for number, key in enumerate(_keys(table, selected))
    }
    ordered = pc.sort_indices(pa.table(keys), sort_keys=[(name, "ascending") for name in keys])
    return table.take(ordered)


def _sortable(key: pa.Array) -> pa.Array:
    """A key in a form that pyarrow sorts."""
    if isinstance(key.type, pa.BaseExtensionType):
        return pc.cast(key, key.type.storage_type)
    return pc.cast(key, pa.float32()) if pa.types.is_float16(key.type) else key


def _keys(table: pa.Table, selected: Selected) -> list[pa.Array]:
    from parquet_variant.functions.extraction.variant_get import try_variant_get

    if selected.path is None:
        if selected.column not in table.column_names:
            raise VariantFileError(f"cannot sort by {selected.column}: no such column", reason="no-such-column")
        column = table.column(selected.column)
        if pa.types.is_nested(column.type):
            raise VariantFileError(
                f"cannot sort by {selected.column}: its values are nested; name a path into a Variant, such as "
                "'$.id:bigint', or a column of plain values",
                reason="bad-option",
            )
        return [chunks_in_form(column, plain_form(column.type))]
    top = [field.name for field in table.schema if is_tagged(field)]
    if len(top) != 1:
        raise VariantFileError(
            f"cannot sort by {selected.path}: there are {len(top)} Variant columns at the top, not one",
            reason="several-variant-columns" if top else "no-variant-column",
        )
    array = VariantArray(table.column(top[0]))
    if selected.type is not None:
        return [try_variant_get(array, selected.path, selected.type)]
    shredded = None if array.schema is None else array.schema.get(selected.path)
    own = pa.float64() if shredded is None or shredded.type is None else shredded.type
    # The text orders what is not of the type.
    return [try_variant_get(array, selected.path, kind) for kind in dict.fromkeys((own, pa.string()))]
