"""The leaf columns and the Parquet schema of Arrow data, and the Variants inside it.

Owns finding Variants by extension name or schema path, rebuilding the enclosing columns around new storages, the paths
of leaves, the Arrow types that a reader recovers without an Arrow schema, and the search for NaN; and the table of
primitive types, groups, lists, maps, field ids and the VARIANT annotation (``parquet.thrift``, ``LogicalTypes.md``).
Leaves the conversion of a storage to the caller, and of values to `pages.leaf_values`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Set
from enum import IntEnum
from typing import Literal, NamedTuple, TypeAlias

import pyarrow as pa

from parquet_variant.arrays.capsules import EXTENSION_METADATA, is_variant_field
from parquet_variant.files.parquet.format.thrift import BINARY, BOOL, I8, I32, STRUCT, encode_struct
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.types import of_arrow
from parquet_variant.types.forms import has_encodings, list_elements, nested_types, with_fields

# The key of a field id in the metadata of an Arrow field.
FIELD_ID = b"PARQUET:field_id"
_RECOVERED = (
    pa.string(),
    pa.binary(),
    pa.bool_(),
    pa.date32(),
    pa.time64("us"),
    pa.uuid(),
    pa.dictionary(pa.int32(), pa.binary()),
)


# The schema path of a Variant or leaf in a file, including list and map levels.
Place = tuple[str, ...]
Convert = Callable[[pa.StructArray, Place], pa.StructArray]


def _parts(field: pa.Field, place: Place) -> list[tuple[pa.Field, Place]]:
    """Return the fields of a struct, list or map, with their places in a file; nothing for a leaf."""
    kind = field.type
    if pa.types.is_struct(kind):
        return [(child, (*place, child.name)) for child in kind]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return [(kind.value_field, (*place, "list", "element"))]
    if pa.types.is_map(kind):
        return [(kind.key_field, (*place, "key_value", "key")), (kind.item_field, (*place, "key_value", "value"))]
    return []


def has_null_type(kind: pa.DataType) -> bool:
    """Return whether a type is, or contains, the type null."""
    return has_encodings(kind, {pa.null().id})


def joined_field(field: pa.Field, other: pa.Field) -> pa.Field:
    """Return a column of files: the field of the first file, with the types of another file in place of null.

    >>> joined_field(pa.field("x", pa.struct({"a": pa.null()})), pa.field("x", pa.struct({"a": pa.int8()}))).type
    StructType(struct<a: int8>)
    """
    if field.type == pa.null():
        return other
    is_struct = pa.types.is_struct(field.type)
    if not has_null_type(field.type) or is_struct != pa.types.is_struct(other.type):
        return field
    parts = [part for part, _ in _parts(other, ())]
    by_name, in_order = {part.name: part for part in parts}, iter(parts)

    def joined(part: pa.Field) -> pa.Field:
        return joined_field(part, by_name.get(part.name, part) if is_struct else next(in_order, part))

    return field.with_type(with_fields(field.type, joined))


def leaf_paths(field: pa.Field, path: Place) -> list[Place]:
    """Return the schema paths of the leaf columns of a field."""
    parts = _parts(field, path)
    return [leaf for part in parts for leaf in leaf_paths(*part)] if parts else [path]


def is_recovered(kind: pa.DataType) -> bool:
    """Return whether the Arrow type follows from the Parquet type, so that the file needs no Arrow schema."""
    if pa.types.is_struct(kind):
        return all(is_recovered(child.type) for child in kind)
    if pa.types.is_list(kind):
        return is_recovered(kind.value_type)
    if pa.types.is_timestamp(kind):
        return kind.unit in ("us", "ns") and kind.tz in (None, "UTC")
    number = pa.types.is_integer(kind) or pa.types.is_decimal128(kind) or kind in (pa.float32(), pa.float64())
    return bool(number) or kind in _RECOVERED


def stored_field(field: pa.Field) -> pa.Field:
    """Return a field of the Arrow schema to store in a file, without dictionaries, which other readers do not expect.

    Field ids are kept, because readers of Rust take them from this schema: without them, Sail reads null.
    """
    kind = field.type
    if pa.types.is_dictionary(kind) and pa.types.is_binary(kind.value_type):
        kind = kind.value_type
    ids = {name: value for name, value in (field.metadata or {}).items() if name == FIELD_ID}
    return pa.field(field.name, with_fields(kind, stored_field), field.nullable, ids or None)


def null_rows(table: pa.Table, place: tuple[str, ...]) -> int | None:
    """Return the number of rows where the struct at a place or an ancestor is null; None inside a list or map."""
    column = table.column(place[0])
    for name in place[1:]:
        if not pa.types.is_struct(column.type):
            return None
        column = pc.struct_field(column, [name])
    return int(column.null_count)


def leaf_arrays(array: pa.Array, path: str = "") -> Iterator[tuple[str, pa.Array]]:
    """Yield the leaf columns of an array with their dotted paths."""
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        yield from leaf_arrays(array.storage, path)
    elif pa.types.is_struct(kind):
        for index in range(kind.num_fields):
            yield from leaf_arrays(array.field(index), f"{path}.{kind.field(index).name}")
    elif pa.types.is_map(kind):
        yield from leaf_arrays(array.keys, f"{path}.key_value.key")
        yield from leaf_arrays(array.items, f"{path}.key_value.value")
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield from leaf_arrays(list_elements(array), f"{path}.list.element")
    else:
        yield path, array


def only_leaf(array: pa.Array) -> pa.Array:
    """Return the only leaf that was read of a nested column; lists are flattened, and missing parents are null."""
    while pa.types.is_nested(array.type):
        if pa.types.is_struct(array.type):
            array = array.flatten()[0]
        elif pa.types.is_map(array.type):
            array = pa.StructArray.from_arrays([array.keys, array.items], ["key", "value"])
        else:
            array = list_elements(array)
    return array


def may_have_nan(kind: pa.DataType) -> bool:
    """Return whether a type is, or contains, a floating-point type."""
    return any(pa.types.is_floating(part) for part, _ in nested_types(kind))


def has_nan(array: pa.Array) -> bool:
    """Return whether a column contains, or may contain, a NaN: unusual lists and encodings are not searched."""
    for _, leaf in leaf_arrays(array):
        values = leaf.dictionary if pa.types.is_dictionary(leaf.type) else leaf
        is_float = pa.types.is_floating(values.type)
        if pc.any(pc.is_nan(values)).as_py() if is_float else may_have_nan(values.type):
            return True
    return False


def tagged(field: pa.Field, kind: pa.DataType) -> pa.Field:
    """Return the field with another type and the extension name; other metadata, such as a field id, is kept."""
    return field.with_type(kind).with_metadata({**(field.metadata or {}), **EXTENSION_METADATA})


def map_variants(table: pa.Table, convert: Convert, named: Set[Place] = frozenset()) -> pa.Table:
    """Return the table with every Variant storage converted to another one of the same length.

    `table`: any table. Variants are structs whose fields have the extension name.
    `convert`: returns the new storage for a storage and its place.
    `named`: places of structs that are Variants although their fields have no extension name.
    """
    fields, columns = [], []
    for field, column in zip(table.schema, table.columns, strict=True):
        if not _contains_variant(field, (field.name,), named):
            fields.append(field)
            columns.append(column)
            continue
        chunks = column.chunks or [pa.nulls(0, column.type)]
        converted = [_convert_variants(field, chunk, (field.name,), convert, named) for chunk in chunks]
        fields.append(converted[0][0])
        columns.append(pa.chunked_array([array for _, array in converted]))
    return pa.table(columns, schema=pa.schema(fields))


def _is_variant(field: pa.Field, place: Place, named: Set[Place]) -> bool:
    if isinstance(field.type, pa.BaseExtensionType):
        return is_variant_field(field)  # even if it is not a struct: that is an error, which pyarrow would crash on
    return bool(pa.types.is_struct(field.type)) and (is_variant_field(field) or place in named)


def _contains_variant(field: pa.Field, place: Place, named: Set[Place]) -> bool:
    """Return whether a field is or contains a Variant, so that it must be rebuilt."""
    return _is_variant(field, place, named) or any(_contains_variant(*part, named) for part in _parts(field, place))


def _convert_variants(
    field: pa.Field, array: pa.Array, place: Place, convert: Convert, named: Set[Place]
) -> tuple[pa.Field, pa.Array]:
    if _is_variant(field, place, named):
        array = convert(array.storage if isinstance(array.type, pa.BaseExtensionType) else array, place)
        return tagged(field, array.type), array
    parts = _parts(field, place)
    if not any(_contains_variant(*part, named) for part in parts):
        return field, array
    kind = array.type
    if pa.types.is_struct(kind):
        children = array.flatten()  # a value inside a null struct is null
    else:
        children = [array.keys, array.items] if pa.types.is_map(kind) else [array.values]
    converted = [
        _convert_variants(part, child, at, convert, named) for (part, at), child in zip(parts, children, strict=True)
    ]
    fields, children = [part for part, _ in converted], [child for _, child in converted]
    if pa.types.is_struct(kind):
        array = pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null() if array.null_count else None)
        return field.with_type(array.type), array
    if pa.types.is_map(kind):
        kind, child = pa.map_(*fields), pa.StructArray.from_arrays(children, fields=fields)
    else:
        kind, child = with_fields(kind, lambda _: fields[0]), children[0]
    # Keep offsets and validity, and replace the elements.
    buffers = array.buffers()[: kind.num_buffers]
    array = pa.Array.from_buffers(kind, len(array), buffers, array.null_count, array.offset, [child])
    return field.with_type(kind), array


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
    if pa.types.is_fixed_size_list(kind):
        return False
    parts = _parts(pa.field("", kind), ())
    return all(is_written(part.type) for part, _ in parts) if parts else leaf_type_of(kind) is not None


def file_schema(schema: pa.Schema, variants: Collection[tuple[str, ...]]) -> FileSchema:
    """Return the Parquet schema of an Arrow schema, with the VARIANT annotation of the groups at `variants`.

    Raises `TypeError` for a column that only pyarrow writes (see `is_written`).
    """
    tree = FileSchema([], [])
    tree.elements.append(encode_struct((3, I32, _REQUIRED), (4, BINARY, b"schema"), (5, I32, len(schema))))
    for field in schema:
        _add_field(tree, field, (field.name,), 0, 0, frozenset(variants))
    return tree


def _add_field(
    schema: FileSchema, field: pa.Field, path: Place, definition: int, repetition: int, variants: frozenset[Place]
) -> None:
    kind = field.type
    definition += field.nullable
    parts = [] if pa.types.is_fixed_size_list(kind) else _parts(field, path)
    if not parts:
        leaf = leaf_type_of(kind)
        if leaf is None:
            raise TypeError(f"column {'.'.join(path)} is {kind}: only writer='pyarrow' writes this type")
        schema.leaves.append(LeafColumn(path, leaf, not field.nullable, definition, repetition))
        schema.elements.append(_element(field, path[-1], leaf, converted=leaf.converted, logical=leaf.logical))
    elif pa.types.is_struct(kind):
        logical = _VARIANT if path in variants else None
        schema.elements.append(_element(field, path[-1], children=len(parts), logical=logical))
    else:
        level, converted, number = (b"key_value", 1, 2) if pa.types.is_map(kind) else (b"list", 3, 3)
        schema.elements.append(_element(field, path[-1], children=1, converted=converted, logical=logical_type(number)))
        schema.elements.append(encode_struct((3, I32, _REPEATED), (4, BINARY, level), (5, I32, len(parts))))
        definition, repetition = definition + 1, repetition + 1
    for part, place in parts:
        _add_field(schema, part, place, definition, repetition, variants)


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
