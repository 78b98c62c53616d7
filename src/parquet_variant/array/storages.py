"""Storages between layouts, a batch at a time.

Owns the choice of the way by layout, and imports no other. Leaves the final layout to `shredding` and `unshredding`,
the drafts to `legacy_layouts`.
"""

from __future__ import annotations

import pyarrow as pa

from parquet_variant.choices import Layout, OnConflict
from parquet_variant.schema.shredding_schema import ShreddingSchema

__all__ = ["shredded_storage", "unshredded_storage"]


def shredded_storage(storage: pa.StructArray, schema: ShreddingSchema, layout: Layout) -> pa.StructArray:
    """Take the values of an unshredded storage apart.

    Parameters
    ----------
    storage
        An unshredded storage struct.
    schema
        What to shred.
    layout
        Any layout; ``"unshredded"`` gives the storage itself.

    Raises
    ------
    MalformedVariantError
        With the row.
    """
    if layout == "unshredded":
        return storage
    if layout == "final":
        from parquet_variant.array.shredding import shredded_final

        return shredded_final(storage, schema)
    from parquet_variant.array.legacy_layouts import shredded_draft

    return shredded_draft(storage, schema, layout)


def unshredded_storage(storage: pa.StructArray, layout: Layout, on_conflict: OnConflict = "error") -> pa.StructArray:
    """Put the values of a storage together.

    Parameters
    ----------
    storage
        A storage struct of any layout.
    layout
        Which one.
    on_conflict
        ``"error"`` or ``"typed"``; see `layouts.conflicts`.

    Raises
    ------
    ConflictError, MalformedVariantError
        With row and path.
    """
    if layout == "unshredded":
        return storage
    if layout == "final":
        from parquet_variant.array.unshredding import unshredded_final

        return unshredded_final(storage, on_conflict)
    from parquet_variant.array.legacy_layouts import unshredded_draft

    return unshredded_draft(storage, layout, on_conflict)
