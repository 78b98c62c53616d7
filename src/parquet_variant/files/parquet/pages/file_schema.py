"""The Parquet schema of Arrow columns.

Owns groups, lists, maps, field ids and the VARIANT annotation. Leaves primitive types to `leaf_types`.
Spec: ``parquet.thrift``, ``LogicalTypes.md``.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import pyarrow as pa

from parquet_variant.files.parquet.format.thrift import BINARY, I8, I32, STRUCT, encode_struct
from parquet_variant.files.parquet.pages.leaf_types import LeafType, leaf_type_of, logical_type

_REQUIRED, _OPTIONAL, _REPEATED = range(3)
_LIST, _MAP = (3, logical_type(3)), (1, logical_type(2))
# The key of a field id in the metadata of an Arrow field.
FIELD_ID = b"PARQUET:field_id"
_VARIANT = (None, logical_type(16, encode_struct((1, I8, 1))))
_PLAIN_GROUP = (None, None)


class LeafColumn(NamedTuple):
    """A leaf column of a file: its schema path, type, and maximum levels."""

    path: tuple[str, ...]
    type: LeafType
    is_required: bool
    definition: int
    repetition: int


class FileSchema(NamedTuple):
    """The encoded ``SchemaElement`` list, root first, and the leaf columns."""

    elements: list[bytes]
    leaves: list[LeafColumn]


def is_written(kind: pa.DataType) -> bool:
    """Return whether `PageFileWriter` writes columns of this type; others are left to pyarrow."""
    if pa.types.is_struct(kind):
        return kind.num_fields > 0 and all(is_written(child.type) for child in kind)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return is_written(kind.value_type)
    if pa.types.is_map(kind):
        return is_written(kind.key_type) and is_written(kind.item_type)
    return leaf_type_of(kind) is not None


def file_schema(schema: pa.Schema, variants: Collection[tuple[str, ...]]) -> FileSchema:
    """Return the Parquet schema of an Arrow schema.

    `schema`: the Arrow schema.
    `variants`: schema paths of the groups that get the VARIANT annotation.
    Raises `TypeError` for a column that only pyarrow writes (see `is_written`).
    """
    tree = FileSchema([], [])
    tree.elements.append(encode_struct((3, I32, _REQUIRED), (4, BINARY, b"schema"), (5, I32, len(schema))))
    for field in schema:
        _add_field(tree, field, field.name, (), 0, 0, frozenset(variants))
    return tree


def _add_field(
    schema: FileSchema,
    field: pa.ThriftField,
    name: str,
    above: tuple[str, ...],
    definition: int,
    repetition: int,
    variants: frozenset[tuple[str, ...]],
) -> None:
    path, kind = (*above, name), field.type
    definition += field.nullable
    repeated = (definition + 1, repetition + 1, variants)
    if pa.types.is_struct(kind) and kind.num_fields:
        _add_group(schema, field, name, kind.num_fields, _VARIANT if path in variants else _PLAIN_GROUP)
        for child in kind:
            _add_field(schema, child, child.name, path, definition, repetition, variants)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        _add_group(schema, field, name, 1, _LIST)
        schema.elements.append(_repeated("list", 1))
        _add_field(schema, kind.value_field, "element", (*path, "list"), *repeated)
    elif pa.types.is_map(kind):
        _add_group(schema, field, name, 1, _MAP)
        schema.elements.append(_repeated("key_value", 2))
        _add_field(schema, kind.key_field, "key", (*path, "key_value"), *repeated)
        _add_field(schema, kind.item_field, "value", (*path, "key_value"), *repeated)
    else:
        leaf = leaf_type_of(kind)
        if leaf is None:
            raise TypeError(f"column {'.'.join(path)} is {kind}: only writer='pyarrow' writes this type")
        schema.leaves.append(LeafColumn(path, leaf, not field.nullable, definition, repetition))
        schema.elements.append(_leaf_element(field, name, leaf))


def _add_group(
    schema: FileSchema, field: pa.ThriftField, name: str, children: int, annotation: tuple[int | None, bytes | None]
) -> None:
    converted, logical = annotation
    schema.elements.append(
        encode_struct(
            (3, I32, int(field.nullable)),
            (4, BINARY, name.encode()),
            (5, I32, children),
            (6, I32, converted),
            (9, I32, _field_id(field)),
            (10, STRUCT, logical),
        )
    )


def _repeated(name: str, children: int) -> bytes:
    return encode_struct((3, I32, _REPEATED), (4, BINARY, name.encode()), (5, I32, children))


def _leaf_element(field: pa.ThriftField, name: str, leaf: LeafType) -> bytes:
    return encode_struct(
        (1, I32, leaf.physical),
        (2, I32, leaf.width if leaf.physical.name == "FIXED_LEN_BYTE_ARRAY" else None),
        (3, I32, _OPTIONAL if field.nullable else _REQUIRED),
        (4, BINARY, name.encode()),
        (6, I32, leaf.converted),
        (7, I32, leaf.scale),
        (8, I32, leaf.precision),
        (9, I32, _field_id(field)),
        (10, STRUCT, leaf.logical),
    )


def _field_id(field: pa.ThriftField) -> int | None:
    field_id = (field.metadata or {}).get(FIELD_ID)
    return int(field_id) if field_id is not None else None
