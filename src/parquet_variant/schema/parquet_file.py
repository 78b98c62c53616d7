"""The shredding schema of a Parquet file's Variant column.

Owns finding the column by its shape in the file's Arrow schema. Leaves annotations, directories and validation to the
`parquet` layer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from parquet_variant.errors import SchemaError, VariantFileError
from parquet_variant.schema.layout import tree_of_layout
from parquet_variant.schema.parquet_reader import MAX_SCHEMA_DEPTH, open_parquet, too_deep
from parquet_variant.schema.storage_shape import TypeTree


def tree_of_parquet(file: Any, column: str | None = None, filesystem: Any = None) -> TypeTree:
    """Read the schema of a Variant column.

    Raises `VariantFileError` if the file cannot be read. Raises `SchemaError` if there is no such column, or none or
    several to choose from (``no-such-column``); for a named column also what its layout does not allow.

    >>> import pyarrow.parquet as pq
    >>> from parquet_variant.schema.shredding_schema import ShreddingSchema
    >>> sink = pa.BufferOutputStream()
    >>> storage = ShreddingSchema.from_ddl("a bigint").storage_type()
    >>> pq.write_table(pa.table({"id": pa.array([], pa.int64()), "v": pa.array([], storage)}), sink)
    >>> tree_of_parquet(pa.BufferReader(sink.getvalue()))
    {'a': DataType(int64)}
    """
    try:
        with open_parquet(file, filesystem=filesystem) as opened:
            groups = dict(_groups(opened.schema_arrow))
    except VariantFileError:
        raise
    except (pa.ArrowException, OSError, TypeError, UnicodeError) as error:
        name = file if isinstance(file, str) else None
        raise VariantFileError(f"the footer cannot be read: {error}", reason="bad-footer", file=name) from None
    if column is not None:
        if column not in groups:
            raise SchemaError(f"there is no group column {column!r}", reason="no-such-column")
        return tree_of_layout(groups[column])
    trees: dict[str, TypeTree] = {}
    for name, group in groups.items():
        if not any(name.startswith(f"{outer}.") for outer in trees):
            try:
                trees[name] = tree_of_layout(group)
            except SchemaError:
                continue
    if len(trees) != 1:
        names = ", ".join(trees) or "none"
        raise SchemaError(f"the file has {len(trees)} Variant columns ({names}); name one", reason="no-such-column")
    return next(iter(trees.values()))


def _groups(schema: pa.Schema) -> Iterator[tuple[str, pa.StructType]]:
    """Yield the dotted names and types of all groups, each before the groups inside it."""
    remaining = [(field.name, field.type, 1) for field in reversed(list(schema))]
    while remaining:
        name, kind, depth = remaining.pop()
        if depth > MAX_SCHEMA_DEPTH:
            raise too_deep(None)
        if pa.types.is_struct(kind):
            yield name, kind
            remaining += [(f"{name}.{field.name}", field.type, depth + 1) for field in reversed(list(kind))]
