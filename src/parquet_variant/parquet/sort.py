"""Rows in the order of typed paths, where a writer is asked for it.

Owns the sort. Leaves the values to `functions.variant_get`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from parquet_variant.array.variant_array import VariantArray
from parquet_variant.errors import VariantFileError
from parquet_variant.parquet.incoming import incoming_columns
from parquet_variant.parquet.selection import Selected, read_selection

__all__ = ["sorted_columns", "sorted_rows"]


def sorted_columns(columns: Any, sort_by: Sequence[str], variants: Collection[str]) -> pa.Table:
    """The columns that a writer is given, as a table that is sorted."""
    table, found = incoming_columns(columns, variants)
    return sorted_rows(table, found, sort_by)


def sorted_rows(table: pa.Table, variants: Sequence[tuple[str, ...]], sort_by: Sequence[str]) -> pa.Table:
    """The table in ascending order of some keys, nulls last; equal rows keep their order.

    Parameters
    ----------
    table
        Rows with Variant columns.
    variants
        Where the Variant columns are.
    sort_by
        ``"$.path:type"`` into the only top-level Variant column (a path without a type sorts as text), or the name of
        an ordinary column.

    Raises
    ------
    VariantFileError
        If there is not exactly one top-level Variant column to take a path from.
    """
    keys = {}
    for number, selected in enumerate(read_selection({f"key{n}": key for n, key in enumerate(sort_by)})):
        keys[f"key{number}"] = _key(table, variants, selected)
    ordered = pc.sort_indices(pa.table(keys), sort_keys=[(name, "ascending") for name in keys])
    return table.take(ordered)


def _key(table: pa.Table, variants: Sequence[tuple[str, ...]], selected: Selected) -> pa.Array:
    from parquet_variant.functions.try_variant_get import try_variant_get

    if selected.path is None:
        if selected.column not in table.column_names:
            raise VariantFileError(f"cannot sort by {selected.column}: no such column", reason="no-such-column")
        return table.column(selected.column)
    top = [path[0] for path in variants if len(path) == 1]
    if len(top) != 1:
        raise VariantFileError(
            f"cannot sort by {selected.path}: there are {len(top)} Variant columns at the top, not one",
            reason="several-variant-columns" if top else "no-variant-column",
        )
    return try_variant_get(VariantArray(table.column(top[0])), selected.path, selected.type or pa.string())
