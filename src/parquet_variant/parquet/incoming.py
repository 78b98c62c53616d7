"""What a writer is given: columns by name, some of them Variants, at the top or inside structs, lists and maps.

Owns finding the Variants in Arrow data, giving each the shape that a file needs, and naming their schema paths. Leaves
the shape itself to `conform` and the file to `writer`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pyarrow as pa

from parquet_variant.array.variant_array import EXTENSION_METADATA, EXTENSION_NAME, VariantArray
from parquet_variant.errors import VariantFileError
from parquet_variant.parquet.conform import conform

__all__ = ["incoming_columns", "is_tagged"]

Paths = tuple[tuple[str, ...], ...]


def is_tagged(field: pa.Field) -> bool:
    """Whether an Arrow field says that it is a Variant."""
    name: bytes = (field.metadata or {}).get(b"ARROW:extension:name", b"")
    return name.decode() == EXTENSION_NAME


def incoming_columns(columns: Any, variants: Collection[str]) -> tuple[pa.Table, Paths]:
    """A table to write, and the schema paths of the Variants in it that may carry the annotation.

    Parameters
    ----------
    columns
        A mapping from name to Arrow array or `VariantArray`; or a pyarrow table or record batch.
    variants
        Dotted schema paths of structs that are Variants though nothing in the data says so.

    Raises
    ------
    VariantFileError
        If there are no columns, they differ in length, or a name in `variants` is not there.
    """
    pairs = _pairs(columns)
    if not pairs:
        raise VariantFileError("there are no columns to write", reason="no-columns")
    lengths = {len(array) for _, array in pairs}
    if len(lengths) > 1:
        sizes = ", ".join(f"{field.name} {len(array)}" for field, array in pairs)
        raise VariantFileError(f"columns must have one length, these differ: {sizes}", reason="lengths-differ")
    found: list[tuple[str, ...]] = []
    named = {tuple(name.split(".")) for name in variants}
    seen: set[tuple[str, ...]] = set()
    fields, arrays = [], []
    for field, column in pairs:
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        chunks = chunks or [pa.array([], type=column.type)]
        paths: list[tuple[str, ...]] = []
        done = []
        for chunk in chunks:
            paths = []
            done.append(_conformed(field, chunk, (field.name,), named, paths, seen))
        found += paths
        fields.append(pa.field(field.name, done[0].type, field.nullable))
        arrays.append(pa.chunked_array(done))
    for missing in sorted(named - seen):
        raise VariantFileError(
            f"{'.'.join(missing)} is not a struct column of the data, so it cannot be written as a Variant",
            reason="no-such-column",
        )
    return pa.table(arrays, schema=pa.schema(fields)), tuple(found)


def _pairs(columns: Any) -> list[tuple[pa.Field, Any]]:
    if isinstance(columns, (pa.Table, pa.RecordBatch)):
        return list(zip(columns.schema, columns.columns, strict=True))
    if isinstance(columns, Mapping):
        pairs = []
        for name, column in columns.items():
            if isinstance(column, VariantArray):
                pairs.append((pa.field(name, column.storage.type, metadata=EXTENSION_METADATA), column.storage))
            elif isinstance(column, (pa.Array, pa.ChunkedArray)):
                pairs.append((pa.field(name, column.type), column))
            else:
                raise TypeError(f"column {name} is a {type(column).__name__}: give a VariantArray or an Arrow array")
        return pairs
    raise TypeError(f"cannot write a {type(columns).__name__}: give columns by name, or a pyarrow table")


def _conformed(
    field: pa.Field,
    array: pa.Array,
    path: tuple[str, ...],
    named: set[tuple[str, ...]],
    found: list[tuple[str, ...]],
    seen: set[tuple[str, ...]],
) -> pa.Array:
    """The array with every Variant in it in the shape of a file."""
    kind = array.type
    if pa.types.is_struct(kind) and (is_tagged(field) or path in named):
        seen.add(path)
        variant = VariantArray(array)
        if variant.layout in ("unshredded", "final"):
            found.append(path)
            _ = variant.schema  # Refuses a shape that no file may have.
        return conform(array, variant.layout)
    if not _may_hold(field, path, named):
        return array
    if pa.types.is_struct(kind):
        children = [
            _conformed(child, array.field(index), (*path, child.name), named, found, seen)
            for index, child in enumerate(kind)
        ]
        fields = [pa.field(child.name, done.type, child.nullable) for child, done in zip(kind, children, strict=True)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null() if array.null_count else None)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        below = kind.value_field
        done = _conformed(below, array.values, (*path, "list", "element"), named, found, seen)
        make = pa.list_ if pa.types.is_list(kind) else pa.large_list
        wanted = make(pa.field(below.name, done.type, below.nullable))
        return pa.Array.from_buffers(wanted, len(array), array.buffers()[:2], array.null_count, array.offset, [done])
    items = _conformed(kind.item_field, array.items, (*path, "key_value", "value"), named, found, seen)
    entry = pa.field(kind.item_field.name, items.type, kind.item_field.nullable)
    entries = pa.StructArray.from_arrays([array.keys, items], fields=[kind.key_field, entry])
    wanted = pa.map_(kind.key_field, entry)
    return pa.Array.from_buffers(wanted, len(array), array.buffers()[:2], array.null_count, array.offset, [entries])


def _may_hold(field: pa.Field, path: tuple[str, ...], named: set[tuple[str, ...]]) -> bool:
    """Whether a Variant may lie below: then, and only then, is the column rebuilt."""
    kind = field.type
    if pa.types.is_struct(kind):
        below = [(child, (*path, child.name)) for child in kind]
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        below = [(kind.value_field, (*path, "list", "element"))]
    elif pa.types.is_map(kind):
        below = [(kind.item_field, (*path, "key_value", "value"))]
    else:
        return False
    return any(is_tagged(child) or place in named or _may_hold(child, place, named) for child, place in below)
