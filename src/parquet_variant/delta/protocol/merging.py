"""Schemas put together: columns that data brings along, and types that widen.

Owns what an append with ``schema_mode="merge"`` makes of a table's schema. Leaves the commit to its callers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from parquet_variant.delta.protocol.actions import Metadata, Protocol
from parquet_variant.delta.protocol.column_mapping import MODE, assign_mapping
from parquet_variant.delta.protocol.features import schema_features, with_features
from parquet_variant.delta.protocol.schema import (
    ArrayType,
    DeltaType,
    Field,
    MapType,
    PrimitiveType,
    StructType,
    check_schema,
    parse_schema,
)
from parquet_variant.delta.protocol.type_changes import TYPE_CHANGES, is_widening
from parquet_variant.errors import DeltaError

_VOID = PrimitiveType("void")
# Where in a field a type changed, from which, to which.
_Change: TypeAlias = "tuple[tuple[str, ...], str, str]"


def merged_metadata(metadata: Metadata, protocol: Protocol, new: StructType) -> tuple[Metadata, Protocol]:
    """Metadata and protocol of a table that also has the columns of some data.

    Raises `DeltaError`: reason ``"type-mismatch"`` for a column whose types do not go together.
    """
    old = parse_schema(metadata.schema_string)
    merged = _struct(old, new, metadata, "")
    if merged == old:
        return metadata, protocol
    check_schema(merged, metadata.partition_columns)
    changed = replace(metadata, schema_string=merged.to_json())
    if metadata.configuration.get(MODE, "none") != "none":
        changed = assign_mapping(changed)
    return changed, with_features(protocol, schema_features(merged))


def widened(f: Field, to: PrimitiveType, metadata: Metadata, inside: tuple[str, ...] = ()) -> Field:
    """A field of a wider type, with the change in its history.

    `f` and `to`: the field, and the type that it gets.
    `inside`: the way to what widens in lists and maps: ``element``, ``key``, ``value``.
    Raises `DeltaError`: reason ``"not-widening"``.
    """
    old: DeltaType = f.type
    for step in inside:
        old = part_of(old, step, f.name)
    if not isinstance(old, PrimitiveType) or not (old == _VOID or is_widening(old.name, to.name)):
        shown = old.name if isinstance(old, PrimitiveType) else "no plain column"
        raise DeltaError(f"column {f.name!r} is {shown}, which cannot widen to {to.name}", reason="not-widening")
    if old != _VOID and metadata.configuration.get("delta.enableTypeWidening") != "true":
        raise DeltaError(
            f"column {f.name!r} would widen from {old.name} to {to.name}: set delta.enableTypeWidening first",
            reason="not-widening",
        )
    return _with_history(f, with_part(f.type, inside, to), [(inside, old.name, to.name)])


def _with_history(f: Field, kind: DeltaType, changes: Sequence[_Change]) -> Field:
    """A field of a type that it came to by changes; PROTOCOL.md, "Type Change Metadata"."""
    told: list[dict[str, str]] = [
        {"fromType": old, "toType": new} | ({"fieldPath": ".".join(inside)} if inside else {})
        for inside, old, new in changes
        if old != _VOID.name
    ]
    if not told:
        return replace(f, type=kind)
    return replace(f, type=kind, metadata={**f.metadata, TYPE_CHANGES: [*(f.metadata.get(TYPE_CHANGES) or ()), *told]})


def part_of(kind: DeltaType, step: str, name: str) -> DeltaType:
    """The type of a list's ``element``, of a map's ``key`` or ``value``; the name is for the error."""
    if isinstance(kind, ArrayType) and step == "element":
        return kind.element
    if isinstance(kind, MapType) and step in ("key", "value"):
        return kind.key if step == "key" else kind.value
    raise DeltaError(f"there is no {step!r} in column {name!r}", reason="unknown-column")


def with_part(kind: DeltaType, inside: tuple[str, ...], new: DeltaType) -> DeltaType:
    """A type with another one at the end of a way through lists and maps."""
    if not inside:
        return new
    part = with_part(part_of(kind, inside[0], ""), inside[1:], new)
    if isinstance(kind, ArrayType):
        return replace(kind, element=part)
    assert isinstance(kind, MapType)
    return replace(kind, key=part) if inside[0] == "key" else replace(kind, value=part)


def _struct(old: StructType, new: StructType, metadata: Metadata, prefix: str) -> StructType:
    fields = []
    for f in old.fields:
        match = new.get(f.name)
        fields.append(f if match is None else _field(f, match.type, metadata, f"{prefix}{f.name}"))
    fields += [Field(f.name, f.type, True) for f in new.fields if old.get(f.name) is None]
    return StructType(tuple(fields))


def _field(f: Field, new: DeltaType, metadata: Metadata, place: str) -> Field:
    changes: list[_Change] = []
    return _with_history(f, _type(f.type, new, metadata, place, (), changes), changes)


def _type(
    old: DeltaType, new: DeltaType, metadata: Metadata, place: str, inside: tuple[str, ...], changes: list[_Change]
) -> DeltaType:
    """Both types as one; what widened, and where in the field, goes to the changes."""

    def part(step: str) -> DeltaType:
        parts = part_of(old, step, place), part_of(new, step, place)
        return _type(*parts, metadata, f"{place}.{step}", (*inside, step), changes)

    if isinstance(old, StructType) and isinstance(new, StructType):
        return _struct(old, new, metadata, f"{place}.")
    if isinstance(old, ArrayType) and isinstance(new, ArrayType):
        return replace(old, element=part("element"))
    if isinstance(old, MapType) and isinstance(new, MapType):
        return replace(old, key=part("key"), value=part("value"))
    if isinstance(old, PrimitiveType) and (isinstance(new, PrimitiveType) or old == _VOID):
        allowed = metadata.configuration.get("delta.enableTypeWidening") == "true"
        if old == _VOID:
            return new
        if allowed and isinstance(new, PrimitiveType) and is_widening(old.name, new.name):
            changes.append((inside, old.name, new.name))
            return new
        return old  # What does not fit is told when it is written.
    raise DeltaError(f"column {place} has another shape in the data than in the table", reason="type-mismatch")
