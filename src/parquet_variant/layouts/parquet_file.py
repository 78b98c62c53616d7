"""The shredding schema of a Variant column of a Parquet file.

Owns finding the column by its shape in the file's Arrow schema. Leaves annotations, directories and validation to
`parquet`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from parquet_variant.errors import SchemaError, VariantFileError
from parquet_variant.layouts.layout import find_layout, is_lone_typed_value, tree_of_layout
from parquet_variant.layouts.parquet_reader import MAX_SCHEMA_DEPTH, open_parquet, too_deep
from parquet_variant.layouts.path_steps import ArrowGroup
from parquet_variant.layouts.storage_shape import TypeTree


def tree_of_parquet(file: Any, column: str | None = None, filesystem: Any = None) -> TypeTree:
    """Return the shredding schema of a Variant column, as a plain tree.

    Raises `VariantFileError` if the file cannot be read; `SchemaError` if the column does not exist, if no column is
    named and there is not exactly one Variant column (``no-such-column``), or if the layout does not allow its struct.

    >>> import pyarrow.parquet as pq
    >>> from parquet_variant.layouts.shredding_schema import ShreddingSchema
    >>> sink = pa.BufferOutputStream()
    >>> storage = ShreddingSchema.from_ddl("a bigint").storage_type()
    >>> pq.write_table(pa.table({"id": pa.array([], pa.int64()), "v": pa.array([], storage)}), sink)
    >>> tree_of_parquet(pa.BufferReader(sink.getvalue()))
    {'a': DataType(int64)}
    """
    try:
        with open_parquet(file, filesystem=filesystem) as opened:
            schema = opened.schema_arrow
    except VariantFileError:
        raise
    except (pa.ArrowException, OSError, TypeError, UnicodeError) as error:
        name = file if isinstance(file, str) else None
        raise VariantFileError(f"cannot read the footer: {error}", reason="bad-footer", file=name) from None
    if column is not None:
        groups = dict(_groups(schema, only_variants=False))
        if column not in groups:
            raise SchemaError(f"{column!r} is not a group column of the file", reason="no-such-column")
        return tree_of_layout(groups[column])
    groups = dict(_groups(schema, only_variants=True))
    if not groups:
        groups = {field.name: field.type for field in schema if is_lone_typed_value(ArrowGroup(field.type))}
    if len(groups) != 1:
        names = ", ".join(groups) or "none"
        raise SchemaError(
            f"the file has {len(groups)} Variant columns ({names}): name one with column=", reason="no-such-column"
        )
    return tree_of_layout(next(iter(groups.values())))


def _groups(schema: pa.Schema, *, only_variants: bool) -> Iterator[tuple[str, pa.StructType]]:
    """Yield the dotted names and types of groups, each before the groups inside it.

    `only_variants`: yield only Variant columns, and nothing inside of them.
    """
    remaining = [(field.name, field.type, 1) for field in reversed(list(schema))]
    while remaining:
        name, kind, depth = remaining.pop()
        if depth > MAX_SCHEMA_DEPTH:
            raise too_deep(None)
        if pa.types.is_struct(kind):
            is_variant = find_layout(ArrowGroup(kind)) is not None
            if is_variant or not only_variants:
                yield name, kind
            if not (is_variant and only_variants):
                remaining += [(f"{name}.{field.name}", field.type, depth + 1) for field in reversed(list(kind))]
