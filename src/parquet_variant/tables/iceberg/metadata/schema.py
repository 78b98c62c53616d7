"""Schemas of Iceberg tables: fields by name and by id, schemas of Arrow data, and the name mapping of old files.

Owns `Schema` and `NameMapping` (specification, "Column Projection"). Types are in `types`; columns of data files are
matched with fields in `reading.columns`.
"""

from __future__ import annotations

import json as json_module
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import pyarrow as pa

from parquet_variant.errors import IcebergError
from parquet_variant.support.fork_safety import cached_property
from parquet_variant.tables import schema as shared
from parquet_variant.tables.iceberg.metadata.types import (
    VARIANT,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    arrow_field,
    children,
    field_of_arrow,
    field_to_json,
    parse_field,
    walk_fields,
)

NAME_MAPPING = "schema.name-mapping.default"
ROW_ID = NestedField(2147483540, "_row_id", parse_field({"id": 0, "name": "", "type": "long", "required": False}).type)
LAST_UPDATED = replace(ROW_ID, id=2147483539, name="_last_updated_sequence_number")
FILE_PATH = NestedField(
    2147483646, "_file", parse_field({"id": 0, "name": "", "type": "string", "required": False}).type
)
POSITION = replace(ROW_ID, id=2147483645, name="_pos")
# Columns that every table has besides its own, selected by name.
METADATA_COLUMNS = {f.name: f for f in (ROW_ID, LAST_UPDATED, FILE_PATH, POSITION)}
MAX_FIELD_ID = 2147483447
_SCHEMA_KEYS = {"type", "schema-id", "identifier-field-ids", "fields"}


@dataclass(frozen=True)
class Schema:
    """A schema of a table; ``extra`` keeps JSON members that this package does not know."""

    id: int
    struct: StructType
    identifier_ids: tuple[int, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def parse(cls, json: Any) -> Schema:
        """Parse the JSON form of a schema.

        Raises `IcebergError`: reason ``"bad-schema"``.
        """
        try:
            fields = tuple(parse_field(f) for f in json["fields"])
            identifiers = tuple(int(number) for number in json.get("identifier-field-ids") or ())
            number = int(json.get("schema-id", 0))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise IcebergError(f"invalid schema in the metadata ({error!r})", reason="bad-schema") from None
        schema = cls(
            number,
            StructType(fields),
            identifiers,
            {key: value for key, value in json.items() if key not in _SCHEMA_KEYS},
        )
        if len(schema.by_id) != sum(1 for _ in walk_fields(schema.struct)):
            raise IcebergError("two fields of the schema have one field id", reason="bad-schema")
        return schema

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form of the schema."""
        json: dict[str, Any] = {"type": "struct", "schema-id": self.id}
        json["fields"] = [field_to_json(f) for f in self.struct.fields]
        if self.identifier_ids:
            json["identifier-field-ids"] = list(self.identifier_ids)
        return json | dict(self.extra)

    @property
    def fields(self) -> tuple[NestedField, ...]:
        """The top-level fields."""
        return self.struct.fields

    @property
    def names(self) -> list[str]:
        """The names of the top-level fields."""
        return [f.name for f in self.fields]

    @cached_property
    def by_id(self) -> Mapping[int, tuple[tuple[str, ...], NestedField]]:
        """Every field at any depth, with its names from the outside in, by field id."""
        return {f.id: (place, f) for place, f in walk_fields(self.struct)}

    @cached_property
    def highest_id(self) -> int:
        """The highest field id in the schema."""
        return max(self.by_id, default=0)

    def get(self, name: str) -> NestedField | None:
        """Return the top-level field of a name, in any letter case where that is unambiguous."""
        return self.struct.get(name)

    def find(self, name: str) -> tuple[tuple[str, ...], NestedField]:
        """Return the field of a dotted name, and its names from the outside in.

        Raises `IcebergError`: reason ``"unknown-column"``.
        """
        top = self.get(name)
        if top is not None:
            return (top.name,), top
        place, kind, member = [], self.struct, None
        for part in name.split("."):
            member = next((f for f in children(kind) if f.name == part), None)
            if member is None and isinstance(kind, StructType):
                member = kind.get(part)
            if member is None:
                raise unknown_column(name, self.names)
            place.append(member.name)
            kind = member.type  # type: ignore[assignment]
        assert member is not None
        return tuple(place), member

    def select(self, names: Iterable[str]) -> Schema:
        """Return the schema of some columns, metadata columns such as ``_row_id`` among them, in their order.

        Raises `IcebergError`: reason ``"unknown-column"``.
        """
        fields = []
        for name in names:
            match = self.get(name) or METADATA_COLUMNS.get(name)
            if match is None:
                raise unknown_column(name, self.names)
            fields.append(match)
        return replace(self, struct=StructType(tuple(fields)))

    def arrow_schema(self, *, with_ids: bool = False) -> pa.Schema:
        """Return the Arrow schema; ``with_ids`` puts Parquet field ids on all fields."""
        return pa.schema([arrow_field(f, with_ids=with_ids) for f in self.fields])

    def variant_places(self) -> list[tuple[str, ...]]:
        """Return the names, from the outside in, of each Variant that is not inside of a list or map."""
        return list(_reachable_places(self.struct, ()))

    def fields_at(self, place: tuple[str, ...]) -> tuple[NestedField, ...]:
        """Return the fields on the way to a place in structs."""
        kind: IcebergType = self.struct
        fields = []
        for name in place:
            member = kind.get(name) if isinstance(kind, StructType) else None
            if member is None:
                raise unknown_column(".".join(place), self.names)
            fields.append(member)
            kind = member.type
        return tuple(fields)


def unknown_column(name: str, names: Iterable[str]) -> IcebergError:
    """Return the error for a column that a table does not have."""
    return IcebergError(f"unknown column {name!r}: the table's columns are {', '.join(names)}", reason="unknown-column")


def schema_of_arrow(arrow: pa.Schema) -> Schema:
    """Return a schema for Arrow data, with field ids counted from 1, top-level columns first.

    Raises `IcebergError`: reason ``"unsupported-type"``.

    >>> schema = schema_of_arrow(pa.schema([("id", pa.int64()), ("tags", pa.list_(pa.string()))]))
    >>> [(f.id, f.name, str(f.type)) for f in schema.fields]
    [(1, 'id', 'long'), (2, 'tags', 'list<string>')]
    """
    ids = count(1)
    numbers = [next(ids) for _ in arrow]
    fields = tuple(field_of_arrow(f, number, ids) for f, number in zip(arrow, numbers, strict=True))
    return Schema(0, StructType(fields))


def _reachable_places(kind: StructType, place: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for f in kind.fields:
        if f.type == VARIANT:
            yield (*place, f.name)
        elif isinstance(f.type, StructType):
            yield from _reachable_places(f.type, (*place, f.name))


@dataclass(frozen=True)
class NameMapping:
    """Field ids by the names that columns have in files without field ids, at one level; ``parts`` by name below it.

    >>> mapping = NameMapping.parse('[{"field-id": 1, "names": ["id", "record_id"]}]')
    >>> mapping.ids
    {'id': 1, 'record_id': 1}
    """

    ids: Mapping[str, int]
    parts: Mapping[str, NameMapping]

    @classmethod
    def parse(cls, text: str) -> NameMapping:
        """Parse the table property ``schema.name-mapping.default``.

        Raises `IcebergError`: reason ``"bad-property"``.
        """
        try:
            return cls._from_mappings(json_module.loads(text))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise IcebergError(
                f"the table property {NAME_MAPPING} is not a name mapping ({error!r})", reason="bad-property"
            ) from None

    @classmethod
    def _from_mappings(cls, mappings: Iterable[Mapping[str, Any]]) -> NameMapping:
        ids, parts = {}, {}
        for mapping in mappings:
            for name in mapping["names"]:
                if mapping.get("field-id") is not None:
                    ids[str(name)] = int(mapping["field-id"])
                parts[str(name)] = cls._from_mappings(mapping.get("fields") or ())
        return cls(ids, parts)


def with_new_ids(kind: IcebergType, ids: Iterator[int]) -> IcebergType:
    """Return a type whose parts have new field ids."""
    if isinstance(kind, StructType):
        numbers = [next(ids) for _ in kind.fields]
        return StructType(
            tuple(
                replace(f, id=number, type=with_new_ids(f.type, ids))
                for f, number in zip(kind.fields, numbers, strict=True)
            )
        )
    if isinstance(kind, ListType):
        return replace(kind, element_id=next(ids), element=with_new_ids(kind.element, ids))
    if isinstance(kind, MapType):
        key_id, value_id = next(ids), next(ids)
        key, value = with_new_ids(kind.key, ids), with_new_ids(kind.value, ids)
        return replace(kind, key_id=key_id, key=key, value_id=value_id, value=value)
    return kind


# Names of types that `tables.schema` spells another way.
_NAMES = {
    "int": "integer",
    "timestamp": "timestamp_ntz",
    "timestamptz": "timestamp",
    "unknown": "void",
    "geometry": "binary",
    "geography": "binary",
}


def shared_schema(schema: Schema) -> shared.StructType:
    """Return a schema in the form that table formats share.

    >>> from parquet_variant.tables.iceberg.metadata.schema import schema_of_arrow
    >>> import pyarrow as pa
    >>> shared_schema(schema_of_arrow(pa.schema([("n", pa.int32())]))).fields[0].type
    PrimitiveType(name='integer')
    """
    return shared_struct(schema.struct)


def shared_struct(struct: StructType) -> shared.StructType:
    """Return the fields of a struct in the form that table formats share."""
    return shared.StructType(tuple(shared_field(f) for f in struct.fields))


def shared_field(f: NestedField) -> shared.Field:
    """Return a field in the form that table formats share."""
    return shared.Field(f.name, _type(f.type), not f.required, field_id=f.id)


def _type(kind: IcebergType) -> shared.TableType:
    if isinstance(kind, StructType):
        return shared_struct(kind)
    if isinstance(kind, ListType):
        return shared.ArrayType(_type(kind.element), not kind.element_required, kind.element_id)
    if isinstance(kind, MapType):
        return shared.MapType(_type(kind.key), _type(kind.value), not kind.value_required, kind.key_id, kind.value_id)
    return shared.PrimitiveType(_NAMES.get(kind.family, kind.name))
