"""The Parquet schema of an Arrow schema, and the Parquet types of its leaves.

Owns the table of primitive types, groups, lists, maps, field ids and the VARIANT annotation. Leaves the conversion of
values to `leaf_values`. Spec: ``parquet.thrift``, ``LogicalTypes.md``.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import IntEnum
from typing import Literal, NamedTuple, TypeAlias

import pyarrow as pa

from parquet_variant.files.parquet.format.nested import FIELD_ID
from parquet_variant.files.parquet.format.thrift import BINARY, BOOL, I8, I32, STRUCT, encode_struct
from parquet_variant.types import of_arrow

Order: TypeAlias = Literal["boolean", "signed", "unsigned", "float", "bytes", "decimal"]


class Physical(IntEnum):
    """``Type`` of ``parquet.thrift``."""

    BOOLEAN = 0
    INT32 = 1
    INT64 = 2
    FLOAT = 4
    DOUBLE = 5
    BYTE_ARRAY = 6
    FIXED_LEN_BYTE_ARRAY = 7


class LeafType(NamedTuple):
    """The Parquet type of a leaf column."""

    physical: Physical  # The physical type.
    width: int  # Bytes per value; 1 for unpacked booleans, 0 for byte arrays.
    order: Order  # The order of values.
    # The annotations: ``ConvertedType`` and the encoded ``LogicalType``.
    converted: int | None = None
    logical: bytes | None = None
    # Precision and scale of a decimal.
    precision: int | None = None
    scale: int | None = None


def logical_type(number: int, content: bytes = b"\x00") -> bytes:
    """Return an encoded ``LogicalType``: a union with one field set."""
    return encode_struct((number, STRUCT, content))


def _integer(bits: int, signed: bool) -> bytes:
    return logical_type(10, encode_struct((1, I8, bits), (2, BOOL, signed)))


def _time(number: int, unit: str, utc: bool) -> bytes:
    units = encode_struct((("ms", "us", "ns").index(unit) + 1, STRUCT, b"\x00"))
    return logical_type(number, encode_struct((1, BOOL, utc), (2, STRUCT, units)))


_STRING = LeafType(Physical.BYTE_ARRAY, 0, "bytes", 0, logical_type(1))
_BYTES = LeafType(Physical.BYTE_ARRAY, 0, "bytes")
_TYPES: dict[pa.DataType, LeafType] = {
    pa.bool_(): LeafType(Physical.BOOLEAN, 1, "boolean"),
    pa.int8(): LeafType(Physical.INT32, 4, "signed", 15, _integer(8, True)),
    pa.int16(): LeafType(Physical.INT32, 4, "signed", 16, _integer(16, True)),
    pa.int32(): LeafType(Physical.INT32, 4, "signed"),
    pa.int64(): LeafType(Physical.INT64, 8, "signed"),
    pa.uint8(): LeafType(Physical.INT32, 4, "unsigned", 11, _integer(8, False)),
    pa.uint16(): LeafType(Physical.INT32, 4, "unsigned", 12, _integer(16, False)),
    pa.uint32(): LeafType(Physical.INT32, 4, "unsigned", 13, _integer(32, False)),
    pa.uint64(): LeafType(Physical.INT64, 8, "unsigned", 14, _integer(64, False)),
    pa.float32(): LeafType(Physical.FLOAT, 4, "float"),
    pa.float64(): LeafType(Physical.DOUBLE, 8, "float"),
    pa.date32(): LeafType(Physical.INT32, 4, "signed", 6, logical_type(6)),
    pa.time32("ms"): LeafType(Physical.INT32, 4, "signed", None, _time(7, "ms", False)),
    pa.time64("us"): LeafType(Physical.INT64, 8, "signed", None, _time(7, "us", False)),
    pa.time64("ns"): LeafType(Physical.INT64, 8, "signed", None, _time(7, "ns", False)),
    pa.string(): _STRING,
    pa.large_string(): _STRING,
    pa.string_view(): _STRING,
    pa.binary(): _BYTES,
    pa.large_binary(): _BYTES,
    pa.binary_view(): _BYTES,
    pa.uuid(): LeafType(Physical.FIXED_LEN_BYTE_ARRAY, 16, "bytes", None, logical_type(14)),
}
_CONVERTED_TIMESTAMPS = {"ms": 9, "us": 10, "ns": None}


def leaf_type_of(kind: pa.DataType) -> LeafType | None:
    """Return the Parquet type that pyarrow writes an Arrow type as; None for types that only pyarrow writes.

    >>> leaf_type_of(pa.decimal128(12, 2))[:4]
    (<Physical.INT64: 2>, 8, 'signed', 5)
    """
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if (fixed := of_arrow(_TYPES, kind)) is not None:
        return fixed
    if pa.types.is_timestamp(kind) and kind.unit != "s":
        logical = _time(8, kind.unit, kind.tz is not None)
        return LeafType(Physical.INT64, 8, "signed", _CONVERTED_TIMESTAMPS[kind.unit], logical)
    if pa.types.is_decimal128(kind) and 0 <= kind.scale <= kind.precision:
        return _decimal(kind.precision, kind.scale)
    if pa.types.is_fixed_size_binary(kind) and kind.byte_width > 0:
        return LeafType(Physical.FIXED_LEN_BYTE_ARRAY, kind.byte_width, "bytes")
    return None


def _decimal(precision: int, scale: int) -> LeafType:
    logical = logical_type(5, encode_struct((1, I32, scale), (2, I32, precision)))
    if precision <= 18:
        physical, width = (Physical.INT32, 4) if precision <= 9 else (Physical.INT64, 8)
        return LeafType(physical, width, "signed", 5, logical, precision, scale)
    width = ((10**precision - 1).bit_length() + 8) // 8
    return LeafType(Physical.FIXED_LEN_BYTE_ARRAY, width, "decimal", 5, logical, precision, scale)


_REQUIRED, _OPTIONAL, _REPEATED = range(3)
_VARIANT = logical_type(16, encode_struct((1, I8, 1)))


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
    """Return the Parquet schema of an Arrow schema, with the VARIANT annotation of the groups at `variants`.

    Raises `TypeError` for a column that only pyarrow writes (see `is_written`).
    """
    tree = FileSchema([], [])
    tree.elements.append(encode_struct((3, I32, _REQUIRED), (4, BINARY, b"schema"), (5, I32, len(schema))))
    for field in schema:
        _add_field(tree, field, field.name, (), 0, 0, frozenset(variants))
    return tree


def _add_field(
    schema: FileSchema,
    field: pa.Field,
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
        logical = _VARIANT if path in variants else None
        schema.elements.append(_element(field, name, children=kind.num_fields, logical=logical))
        for child in kind:
            _add_field(schema, child, child.name, path, definition, repetition, variants)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        schema.elements.append(_element(field, name, children=1, converted=3, logical=logical_type(3)))
        schema.elements.append(_repeated("list", 1))
        _add_field(schema, kind.value_field, "element", (*path, "list"), *repeated)
    elif pa.types.is_map(kind):
        schema.elements.append(_element(field, name, children=1, converted=1, logical=logical_type(2)))
        schema.elements.append(_repeated("key_value", 2))
        _add_field(schema, kind.key_field, "key", (*path, "key_value"), *repeated)
        _add_field(schema, kind.item_field, "value", (*path, "key_value"), *repeated)
    else:
        leaf = leaf_type_of(kind)
        if leaf is None:
            raise TypeError(f"column {'.'.join(path)} is {kind}: only writer='pyarrow' writes this type")
        schema.leaves.append(LeafColumn(path, leaf, not field.nullable, definition, repetition))
        schema.elements.append(_element(field, name, leaf, converted=leaf.converted, logical=leaf.logical))


def _element(
    field: pa.Field,
    name: str,
    leaf: LeafType | None = None,
    *,
    children: int | None = None,
    converted: int | None = None,
    logical: bytes | None = None,
) -> bytes:
    """Return the encoded ``SchemaElement`` of a leaf, or of a group with children."""
    field_id = (field.metadata or {}).get(FIELD_ID)
    is_fixed = leaf is not None and leaf.physical is Physical.FIXED_LEN_BYTE_ARRAY
    return encode_struct(
        (1, I32, None if leaf is None else leaf.physical),
        (2, I32, leaf.width if leaf is not None and is_fixed else None),
        (3, I32, _OPTIONAL if field.nullable else _REQUIRED),
        (4, BINARY, name.encode()),
        (5, I32, children),
        (6, I32, converted),
        (7, I32, None if leaf is None else leaf.scale),
        (8, I32, None if leaf is None else leaf.precision),
        (9, I32, None if field_id is None else int(field_id)),
        (10, STRUCT, logical),
    )


def _repeated(name: str, children: int) -> bytes:
    return encode_struct((3, I32, _REPEATED), (4, BINARY, name.encode()), (5, I32, children))
