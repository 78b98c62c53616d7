"""Schemas of tables: a small tree of types, walks over it, and its Arrow form.

Owns the types that Delta and Iceberg share and their conversion to and from Arrow. Leaves the JSON of a schema to the
formats, and the names of primitive types to `types` where Variant has the same type.

A Variant is ``struct<metadata: binary, value: binary>`` in Arrow; the field that holds it carries the canonical
extension name ``arrow.parquet.variant`` in its metadata.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cache
from typing import Any, TypeAlias, TypeVar

import pyarrow as pa

from parquet_variant.arrays.capsules import EXTENSION_METADATA, is_variant_field, with_marks
from parquet_variant.errors import TableError
from parquet_variant.files.parquet.format.arrow_schema import FIELD_ID
from parquet_variant.layouts.storage_shape import is_any_list
from parquet_variant.layouts.type_grammar import Grammar, TypeParser
from parquet_variant.support.records import Record
from parquet_variant.types import TYPES, of_arrow
from parquet_variant.types.targets import VARIANT_STORAGE

# Names of the fields on the way to a column in structs.
Place: TypeAlias = "tuple[str, ...]"
DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(-?\d+)\s*\)")


class PrimitiveType(Record):
    """A type without parts, by its Delta name: ``"long"``, ``"decimal(10,2)"``, ``"variant"``.

    >>> PrimitiveType("decimal(10,2)").family, PrimitiveType("fixed[16]").numbers
    ('decimal', (16,))
    """

    name: str

    @property
    def family(self) -> str:
        """The name without parameters."""
        return _parsed_name(self.name)[0]

    @property
    def numbers(self) -> tuple[int, ...]:
        """The parameters: precision and scale of a decimal, the length of a ``fixed``."""
        return _parsed_name(self.name)[1]


@cache
def _parsed_name(name: str) -> tuple[str, tuple[int, ...]]:
    family, *parameters = re.split(r"[(\[]", name, maxsplit=1)
    return family, tuple(int(number) for number in re.findall(r"-?\d+", parameters[0] if parameters else ""))


class ArrayType(Record):
    """A list."""

    element: TableType
    contains_null: bool = True
    element_id: int | None = None  # Parquet field id of the element, where the format has one.


class MapType(Record):
    """A map."""

    key: TableType
    value: TableType
    value_contains_null: bool = True
    # Parquet field ids of keys and values, where the format has them.
    key_id: int | None = None
    value_id: int | None = None


class StructType(Record):
    """A struct, or the table itself."""

    fields: tuple[Field, ...]

    def get(self, name: str) -> Field | None:
        """Return the field with exactly this name, else the only one that differs by case alone."""
        exact = next((f for f in self.fields if f.name == name), None)
        similar = [f for f in self.fields if f.name.lower() == str(name).lower()] if exact is None else []
        return similar[0] if len(similar) == 1 else exact

    def select(self, names: Iterable[str]) -> StructType:
        """Return some fields in their order. Raises `TableError`: ``"unknown-column"``."""
        fields = []
        for name in names:
            match = self.get(name)
            if match is None:
                raise unknown_column(name, [f.name for f in self.fields])
            fields.append(match)
        return StructType(tuple(fields))


TableType: TypeAlias = PrimitiveType | ArrayType | MapType | StructType


class Field(Record):
    """A column, or a field of a struct.

    `stored_name` is the field's name in data files if it differs from `name`; `field_id` is its Parquet field id.
    `metadata` is what the table's schema says about the field apart from these.
    """

    name: str
    type: TableType
    nullable: bool = True
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)
    stored_name: str | None = None
    field_id: int | None = None

    @property
    def physical_name(self) -> str:
        """The name in data files, statistics and partition values."""
        return self.name if self.stored_name is None else self.stored_name

    @property
    def id(self) -> int:
        """The field id, which every field of an Iceberg table has."""
        assert self.field_id is not None, self.name
        return self.field_id


VARIANT = PrimitiveType("variant")
VOID = PrimitiveType("void")


def parts(kind: TableType) -> tuple[Field, ...]:
    """Return the direct parts of a type: fields of structs, the ``element`` of lists, ``key`` and ``value`` of maps."""
    if isinstance(kind, StructType):
        return kind.fields
    if isinstance(kind, ArrayType):
        return (Field("element", kind.element, kind.contains_null, field_id=kind.element_id),)
    if isinstance(kind, MapType):
        key = Field("key", kind.key, False, field_id=kind.key_id)
        return key, Field("value", kind.value, kind.value_contains_null, field_id=kind.value_id)
    return ()


_Type = TypeVar("_Type", bound=TableType)


def with_parts(kind: _Type, fields: Sequence[Field]) -> _Type:
    """Return a type with other parts, in the order of `parts`."""
    if isinstance(kind, StructType):
        return replace(kind, fields=tuple(fields))
    if isinstance(kind, ArrayType):
        (element,) = fields
        return replace(kind, element=element.type, contains_null=element.nullable, element_id=element.field_id)
    if isinstance(kind, MapType):
        key, value = fields
        ids = {"key_id": key.field_id, "value_id": value.field_id}
        return replace(kind, key=key.type, value=value.type, value_contains_null=value.nullable, **ids)
    return kind


def arrow_type(kind: TableType, *, physical: bool = False, with_ids: bool = False) -> pa.DataType:
    """Return the Arrow type of a table's type.

    `physical`: use the physical names of fields of structs.
    `with_ids`: put Parquet field ids on all fields.
    Raises `TableError`: reason ``"unsupported-type"`` for an unknown type.

    >>> arrow_type(PrimitiveType("timestamp_ntz"))
    TimestampType(timestamp[us])
    """
    if not isinstance(kind, PrimitiveType):
        fields = [arrow_field(f, physical=physical, with_ids=with_ids) for f in parts(kind)]
        if isinstance(kind, StructType):
            return pa.struct(fields)
        return pa.list_(*fields) if isinstance(kind, ArrayType) else pa.map_(*fields)
    if kind == VARIANT:
        return VARIANT_STORAGE
    if kind.family == "fixed" and len(kind.numbers) == 1:
        return pa.binary(*kind.numbers)
    if kind.family == "decimal" and len(kind.numbers) == 2:
        return pa.decimal128(*kind.numbers)
    arrow = _ARROW.get(kind.family if kind.family in ("geometry", "geography") else kind.name)
    if arrow is None:
        raise TableError(f"column type {kind.name!r} is not supported", reason="unsupported-type")
    return arrow


def arrow_field(
    f: Field, arrow: pa.DataType | None = None, *, physical: bool = False, with_ids: bool = False
) -> pa.Field:
    """Return a field as an Arrow field, with the extension name if it is a Variant; see `arrow_type`.

    `arrow`: its Arrow type, such as the storage of a shredded Variant (default: that of the field's type).
    """
    metadata: dict[bytes | str, bytes | str] = {}
    if f.type == VARIANT:
        metadata.update(EXTENSION_METADATA)
    if with_ids and f.field_id is not None:
        metadata[FIELD_ID] = str(f.field_id).encode()
    name = f.physical_name if physical else f.name
    arrow = arrow_type(f.type, physical=physical, with_ids=with_ids) if arrow is None else arrow
    return pa.field(name, arrow, f.nullable, metadata or None)


def arrow_schema(schema: StructType, *, physical: bool = False, with_ids: bool = False) -> pa.Schema:
    """Return the Arrow schema of a table; see `arrow_type`.

    >>> arrow_schema(StructType((Field("n", PrimitiveType("long")),))).names
    ['n']
    """
    return pa.schema([arrow_field(f, physical=physical, with_ids=with_ids) for f in schema.fields])


# Return the type of a table for an Arrow type without parts; None for other types.
OnPrimitive: TypeAlias = "Callable[[pa.DataType], PrimitiveType | None]"


def from_arrow_schema(schema: pa.Schema, primitive: OnPrimitive | None = None) -> StructType:
    """Return the table schema of Arrow data whose Variant fields are marked (`is_variant_field`).

    `primitive`: the types of a format, by default Delta's.
    Raises `TableError`: reason ``"unsupported-type"`` for an Arrow type without a corresponding type.

    >>> from_arrow_schema(pa.schema([("n", pa.int32())])).fields[0].type.name
    'integer'
    """
    return StructType(tuple(from_arrow_field(f, primitive) for f in schema))


def from_arrow_field(f: pa.Field, primitive: OnPrimitive | None = None, place: str = "") -> Field:
    """Return the field of an Arrow field at a place, which is for errors; see `from_arrow_schema`."""
    place = f"{place}.{f.name}" if place else f.name
    kind = VARIANT if is_variant_field(f) else _from_arrow(f.type, place, primitive or _delta_type)
    return Field(f.name, kind, f.nullable or kind == VOID)


def _from_arrow(kind: pa.DataType, place: str, primitive: OnPrimitive) -> TableType:
    """Return the type of an Arrow type that is not a Variant; see `from_arrow_schema`."""
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return _from_arrow(kind.value_type, place, primitive)
    if pa.types.is_struct(kind):
        return StructType(tuple(from_arrow_field(f, primitive, place) for f in kind))
    if is_any_list(kind):
        element = from_arrow_field(kind.value_field.with_name("element"), primitive, place)
        return ArrayType(element.type, element.nullable)
    if pa.types.is_map(kind):
        fields = (kind.key_field.with_name("key"), kind.item_field.with_name("value"))
        key, value = (from_arrow_field(f, primitive, place) for f in fields)
        return MapType(key.type, value.type, value.nullable)
    made = primitive(kind)
    if made is None:
        raise TableError(
            f"column {place!r} has the Arrow type {kind}, which table formats do not have: cast it to another type",
            reason="unsupported-type",
        )
    return made


def from_ddl(text: str) -> StructType:
    """Return the table schema of column definitions: ``"id BIGINT NOT NULL, v VARIANT"``.

    Raises `TableError`: reason ``"bad-schema"``.

    >>> [(f.name, f.type, f.nullable) for f in from_ddl("id BIGINT NOT NULL, v VARIANT").fields]
    [('id', PrimitiveType(name='long'), False), ('v', PrimitiveType(name='variant'), True)]
    """
    parser = TypeParser(text, _DDL)
    schema = parser.complete(parser.columns())
    return from_arrow_schema(pa.schema([with_marks(f, VARIANT_STORAGE.equals) for f in schema]))


_DDL = Grammar(TableError, "bad-schema", 100, "the schema is nested more than {} levels deep", keeps_not_null=True)


def check_schema(schema: StructType, partition_by: Sequence[str] = ()) -> None:
    """Raise `TableError` (reason ``"bad-schema"``) for columns that a table cannot have, at any depth."""
    for kind in all_types(schema):
        names = Counter(f.name.lower() for f in kind.fields) if isinstance(kind, StructType) else Counter()
        if duplicates := [name for name, count in names.items() if count > 1]:
            problem = f"two columns are named {duplicates[0]!r} (names are compared without case): rename one of them"
            raise TableError(problem, reason="bad-schema")
    for name in partition_by:
        column = next((f for f in schema.fields if f.name == name), None)
        if column is None:
            raise TableError(f"partition column {name!r} is not in the schema", reason="bad-schema")
        if not isinstance(column.type, PrimitiveType) or column.type == VARIANT:
            raise TableError(
                f"column {name!r} cannot be a partition column, because it is nested or a Variant", reason="bad-schema"
            )
    if len(partition_by) >= len(schema.fields):
        raise TableError(
            "all columns are partition columns: a table needs at least one other column", reason="bad-schema"
        )


def all_types(kind: TableType) -> Iterator[TableType]:
    """Yield a type and all types in it, at any depth."""
    yield kind
    for f in parts(kind):
        yield from all_types(f.type)


def walk_fields(kind: TableType, place: Place = ()) -> Iterator[tuple[Place, Field]]:
    """Yield every field in a type, parts of lists and maps among them, with its place; parents before their parts."""
    for f in parts(kind):
        yield (*place, f.name), f
        yield from walk_fields(f.type, (*place, f.name))


def all_fields(kind: TableType) -> Iterator[Field]:
    """Return the fields of all structs in a type, at any depth."""
    return (f for part in all_types(kind) if isinstance(part, StructType) for f in part.fields)


def with_fields(kind: _Type, change: Callable[[Field], Field | None]) -> _Type:
    """Return a type with changed fields at any depth, outer ones first; a field is left out if its change is None."""
    fields = [change(f) for f in parts(kind)] if isinstance(kind, StructType) else parts(kind)
    return with_parts(kind, [replace(f, type=with_fields(f.type, change)) for f in fields if f is not None])


def find_field(schema: StructType, name: str) -> tuple[Place, Field]:
    """Return the field of a dotted name, which leads through lists and maps by ``element``, ``key`` and ``value``.

    Return also its place. Raises `TableError`: reason ``"unknown-column"``.
    """
    if not isinstance(name, str):
        raise TableError(f"{name!r} is not the name of a column: give a string", reason="bad-argument")
    f = schema.get(name)
    if f is not None:
        return (f.name,), f
    place: Place = ()
    kind: TableType = schema
    for part in name.split("."):
        f = StructType(parts(kind)).get(part)
        if f is None:
            raise unknown_column(name, [column.name for column in schema.fields])
        place, kind = (*place, f.name), f.type
    assert f is not None
    return place, f


def unknown_column(name: str, names: Iterable[str], remedy: str = "") -> TableError:
    """Return the error for a column that a table does not have."""
    remedy = f", or use a path, such as $.{name.rpartition(':')[2]}" if ":" in name else remedy
    problem = f"the table has no column {name!r}: its columns are {', '.join(names)}{remedy}"
    return TableError(problem, reason="unknown-column")


def with_fields_at(
    schema: StructType, place: Place, change: Callable[[Sequence[Field]], Sequence[Field]]
) -> StructType:
    """Return a schema in which the fields of the owner of a place are changed; of lists and maps, only types.

    Raises `TableError`: reason ``"bad-schema"``.
    """

    def changed(kind: _Type, steps: Place) -> _Type:
        before = parts(kind)
        if len(steps) > 1:
            inner = [replace(f, type=changed(f.type, steps[1:])) if f.name == steps[0] else f for f in before]
            return with_parts(kind, inner)
        after = list(change(before))
        if not isinstance(kind, StructType) and [f.name for f in after] != [f.name for f in before]:
            raise TableError(
                f"{'.'.join(place)!r} is not a field of a struct: change the whole column", reason="bad-schema"
            )
        return with_parts(kind, after)

    return changed(schema, place)


def with_field_at(schema: StructType, place: Place, new: Field | None) -> StructType:
    """Return a schema with another field at a place, or without the field; see `with_fields_at`."""
    return with_fields_at(schema, place, lambda fields: replaced_field(fields, place[-1], new))


def replaced_field(fields: Sequence[Field], name: str, new: Field | None) -> list[Field]:
    """Return fields with another one in the place of that with a name, or without that one."""
    return [f for old in fields if (f := new if old.name == name else old) is not None]


def merged_type(
    old: TableType,
    new: TableType,
    place: Place,
    primitive: Callable[[TableType, TableType, Place], TableType],
    added: Callable[[Field], Field],
) -> TableType:
    """Return a type with the fields and the wider types of another one.

    `primitive`: returns the merge of two types that are not nested in the same way.
    `added`: returns the new field for one that only `new` has.
    """
    if isinstance(old, StructType) and isinstance(new, StructType):
        common = [(f, new.get(f.name)) for f in old.fields]
        fields = [
            f if f2 is None else replace(f, type=merged_type(f.type, f2.type, (*place, f.name), primitive, added))
            for f, f2 in common
        ]
        return StructType((*fields, *(added(f) for f in new.fields if old.get(f.name) is None)))
    if type(old) is type(new) and not isinstance(old, PrimitiveType):
        pairs = [(f, f2.type) for f, f2 in zip(parts(old), parts(new), strict=True)]
        merged = [(f, merged_type(f.type, kind, (*place, f.name), primitive, added)) for f, kind in pairs]
        return with_parts(old, [replace(f, type=kind) for f, kind in merged])
    return primitive(old, new, place)


def variant_paths(kind: TableType) -> Iterator[tuple[str, ...]]:
    """Return the places of Variants: field names, with ``element``, ``key`` and ``value`` for parts of lists and maps.

    >>> list(variant_paths(StructType((Field("a", ArrayType(VARIANT)),))))
    [('a', 'element')]
    """
    return (place for place, f in walk_fields(kind) if f.type == VARIANT)


def fields_at(schema: StructType, place: Sequence[str]) -> list[Field]:
    """Return the fields on the way to an existing place."""
    fields: list[Field] = []
    kind: TableType = schema
    for name in place:
        f = StructType(parts(kind)).get(name)
        assert f is not None
        fields.append(f)
        kind = f.type
    return fields


def leaves(schema: StructType) -> Iterator[tuple[Field, ...]]:
    """Yield the fields on the way to each column or field that is not a struct; lists and maps are not entered."""
    for f in schema.fields:
        if isinstance(f.type, StructType):
            yield from ((f, *fields) for fields in leaves(f.type))
        else:
            yield (f,)


def reachable_variants(schema: StructType) -> Iterator[tuple[str, ...]]:
    """Return the places of Variants with one value per row: columns and fields of structs.

    >>> list(reachable_variants(StructType((Field("a", ArrayType(VARIANT)), Field("b", VARIANT)))))
    [('b',)]
    """
    return (tuple(f.name for f in fields) for fields in leaves(schema) if fields[-1].type == VARIANT)


# Delta's type names, from the table of all types; decimals have parameters.
_ARROW: dict[str, pa.DataType] = {
    row.delta: row.arrow
    for row in TYPES.values()
    if row.delta is not None and row.arrow is not None and row.delta != "decimal"
} | {"void": pa.null()}
_DELTA = {arrow: name for name, arrow in _ARROW.items()}
# Types that Iceberg has and Delta does not.
_ARROW |= {
    row.iceberg: row.arrow for row in TYPES.values() if row.delta is None and row.iceberg is not None and row.arrow
} | {"geometry": pa.binary(), "geography": pa.binary()}


def _delta_type(kind: pa.DataType) -> PrimitiveType | None:
    t = pa.types
    if t.is_decimal(kind) and kind.precision <= 38:
        return PrimitiveType(f"decimal({kind.precision},{kind.scale})")
    if t.is_large_string(kind) or t.is_string_view(kind):
        return PrimitiveType("string")
    if t.is_large_binary(kind) or t.is_binary_view(kind) or t.is_fixed_size_binary(kind):
        return PrimitiveType("binary")
    if t.is_timestamp(kind):
        return PrimitiveType("timestamp_ntz" if kind.tz is None else "timestamp")
    if t.is_date64(kind):
        return PrimitiveType("date")
    name = of_arrow(_DELTA, kind)
    return None if name is None else PrimitiveType(name)
