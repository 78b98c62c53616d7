"""A table without rows, of any schema."""

from __future__ import annotations

import pyarrow as pa


def empty_table(schema: pa.Schema) -> pa.Table:
    """What `pyarrow.Schema.empty_table` gives, also for lists and structs of extension types, which that refuses.

    >>> empty_table(pa.schema({"ids": pa.list_(pa.uuid())})).num_rows
    0
    """
    return pa.table([pa.nulls(0, field.type) for field in schema], schema=schema)
