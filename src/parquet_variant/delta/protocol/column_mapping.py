"""Column mapping: ids and physical names for columns (PROTOCOL.md, "Column Mapping").

Owns assigning them. Leaves what a mode means for files to `data.stored` and `data.columns`.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from parquet_variant.delta.protocol.actions import Metadata
from parquet_variant.delta.protocol.schema import ArrayType, DeltaType, Field, MapType, StructType, parse_schema
from parquet_variant.errors import DeltaError

MODE = "delta.columnMapping.mode"
_MAX_ID = "delta.columnMapping.maxColumnId"
_ID = "delta.columnMapping.id"
_PHYSICAL = "delta.columnMapping.physicalName"


def with_mode(old: Metadata | None, new: Metadata) -> Metadata:
    """The metadata whose columns have the ids and names that its mode needs.

    `old`: the metadata before; None for a new table, whose columns get names of their own.
    `new`: the metadata with the mode that is wanted.
    Raises `DeltaError`: reason ``"bad-property"`` for a change of mode that would leave files without their columns.
    """
    mode = new.configuration.get(MODE, "none")
    before = "none" if old is None else old.configuration.get(MODE, "none")
    if old is not None and before != mode and (before, mode) != ("none", "name"):
        raise DeltaError(f"{MODE} cannot change from {before} to {mode} in a table with files", reason="bad-property")
    if mode == "none":
        return new
    if old is not None and before == "none":
        # What the columns say of a mapping is not that of the files, which have the columns' own names.
        new = replace(new, schema_string=parse_schema(new.schema_string, mapped=False).to_json())
    return assign_mapping(new, named=old is not None and before == "none")


def assign_mapping(metadata: Metadata, *, named: bool = False) -> Metadata:
    """The metadata with an id and a physical name for every column that has none.

    `named`: physical names are the columns' own, since files have them already.
    """
    schema = parse_schema(metadata.schema_string)
    assigning = _Assigning(max([_max_id(metadata), *_ids(schema)]), named)
    mapped = assigning.struct(schema)
    return replace(
        metadata,
        schema_string=mapped.to_json(),
        configuration={**metadata.configuration, _MAX_ID: str(assigning.last)},
    )


def with_last_id(metadata: Metadata, other: Metadata) -> Metadata:
    """Metadata that gives no column an id that another version of the table has given."""
    if _max_id(metadata) >= _max_id(other):
        return metadata
    return replace(metadata, configuration={**metadata.configuration, _MAX_ID: str(_max_id(other))})


def _max_id(metadata: Metadata) -> int:
    text = metadata.configuration.get(_MAX_ID, "")
    return int(text) if text.isdecimal() else 0


def _ids(kind: DeltaType) -> list[int]:
    if isinstance(kind, StructType):
        own = [f.field_id for f in kind.fields if f.field_id is not None]
        return own + [each for f in kind.fields for each in _ids(f.type)]
    if isinstance(kind, ArrayType):
        return _ids(kind.element)
    return [*_ids(kind.key), *_ids(kind.value)] if isinstance(kind, MapType) else []


class _Assigning:
    def __init__(self, last: int, named: bool) -> None:
        self.last, self.named = last, named

    def struct(self, kind: StructType) -> StructType:
        return StructType(tuple(self.field(f) for f in kind.fields))

    def field(self, f: Field) -> Field:
        metadata: Mapping[str, Any] = dict(f.metadata)
        if _ID not in metadata:
            self.last += 1
            metadata = {**metadata, _ID: self.last}
        if _PHYSICAL not in metadata:
            metadata = {**metadata, _PHYSICAL: f.name if self.named else f"col-{uuid.uuid4()}"}
        return Field(f.name, self.type(f.type), f.nullable, metadata)

    def type(self, kind: DeltaType) -> DeltaType:
        if isinstance(kind, StructType):
            return self.struct(kind)
        if isinstance(kind, ArrayType):
            return ArrayType(self.type(kind.element), kind.contains_null)
        if isinstance(kind, MapType):
            return MapType(self.type(kind.key), self.type(kind.value), kind.value_contains_null)
        return kind
