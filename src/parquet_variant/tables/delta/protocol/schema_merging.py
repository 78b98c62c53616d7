"""Merging the schema of data into a table's schema: new columns, and types that widen.

Owns the result of an append with ``schema_mode="merge"``, the allowed type changes, and their history in a schema
(PROTOCOL.md, "Type Widening"). Leaves the commit to its callers, and converting the values of older files to
`tables.columns`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TypeAlias

from parquet_variant.errors import DeltaError
from parquet_variant.tables.delta.protocol.actions import Metadata, Protocol
from parquet_variant.tables.delta.protocol.column_metadata import MODE, assign_mapping, check_change_data_names
from parquet_variant.tables.delta.protocol.features import schema_features, with_features
from parquet_variant.tables.delta.protocol.schema import parse_schema, schema_json
from parquet_variant.tables.schema import (
    DECIMAL,
    VOID,
    ArrayType,
    Field,
    MapType,
    Place,
    PrimitiveType,
    StructType,
    TableType,
    all_fields,
    check_schema,
)

TYPE_CHANGES = "delta.typeChanges"
_WIDENING = "delta.enableTypeWidening"
_INTEGERS = ("byte", "short", "integer", "long")
# Digits before the point that a decimal needs for an integer type; the preview of the feature required fewer.
_DIGITS = {"byte": 10, "short": 10, "integer": 10, "long": 20}
_PREVIEW_DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 20}
_PREVIEW = "typeWidening-preview"
# The place inside a field where a type changed, the old type and the new type.
_Change: TypeAlias = "tuple[Place, str, str]"


def merged_metadata(metadata: Metadata, protocol: Protocol, new: StructType) -> tuple[Metadata, Protocol]:
    """Return metadata and protocol of a table with the columns of some data added.

    Raises `DeltaError`: reason ``"type-mismatch"`` for a column whose types cannot be merged.
    """
    old = parse_schema(metadata.schema_string)
    merged = _merged_struct(old, new, metadata, "")
    if merged == old:
        return metadata, protocol
    check_schema(merged, metadata.partition_columns)
    check_change_data_names(merged, metadata.configuration)
    changed = replace(metadata, schema_string=schema_json(merged))
    if metadata.configuration.get(MODE, "none") != "none":
        changed = assign_mapping(changed)
    return changed, with_features(protocol, schema_features(merged))


def widened(f: Field, to: PrimitiveType, metadata: Metadata, inside: Place = ()) -> Field:
    """Return a field with a wider type, and the change in its history.

    `to`: the new type.
    `inside`: the steps to the part that widens in lists and maps: ``element``, ``key``, ``value``.
    Raises `DeltaError`: reason ``"not-widening"``.
    """
    old: TableType = f.type
    for step in inside:
        old = part_of(old, step, f.name)
    if not isinstance(old, PrimitiveType) or not (old == VOID or is_widening(old.name, to.name)):
        name = old.name if isinstance(old, PrimitiveType) else "nested"
        raise DeltaError(f"column {f.name!r} is {name} and cannot widen to {to.name}", reason="not-widening")
    if old != VOID and metadata.configuration.get(_WIDENING) != "true":
        raise DeltaError(
            f"column {f.name!r} cannot widen from {old.name} to {to.name}: set the table property {_WIDENING} first",
            reason="not-widening",
        )
    return _with_history(f, with_part(f.type, inside, to), [(inside, old.name, to.name)])


def _with_history(f: Field, kind: TableType, changes: Sequence[_Change]) -> Field:
    """Return a field with a type that resulted from changes (PROTOCOL.md, "Type Change Metadata")."""
    recorded: list[dict[str, str]] = [
        {"fromType": old, "toType": new} | ({"fieldPath": ".".join(inside)} if inside else {})
        for inside, old, new in changes
        if old != VOID.name
    ]
    if not recorded:
        return replace(f, type=kind)
    history = [*(f.metadata.get(TYPE_CHANGES) or ()), *recorded]
    return replace(f, type=kind, metadata={**f.metadata, TYPE_CHANGES: history})


def part_of(kind: TableType, step: str, name: str) -> TableType:
    """Return the type of a list's ``element``, or of a map's ``key`` or ``value``; the column's name is for errors."""
    if isinstance(kind, ArrayType) and step == "element":
        return kind.element
    if isinstance(kind, MapType) and step in ("key", "value"):
        return kind.key if step == "key" else kind.value
    raise DeltaError(f"column {name!r} has no part named {step!r}", reason="unknown-column")


def with_part(kind: TableType, inside: Place, new: TableType) -> TableType:
    """Return a type with the part at the end of steps through lists and maps replaced."""
    if not inside:
        return new
    part = with_part(part_of(kind, inside[0], ""), inside[1:], new)
    if isinstance(kind, ArrayType):
        return replace(kind, element=part)
    assert isinstance(kind, MapType)
    return replace(kind, key=part) if inside[0] == "key" else replace(kind, value=part)


def _merged_struct(old: StructType, new: StructType, metadata: Metadata, prefix: str) -> StructType:
    fields = []
    for f in old.fields:
        match = new.get(f.name)
        fields.append(f if match is None else _merged_field(f, match.type, metadata, f"{prefix}{f.name}"))
    fields += [Field(f.name, f.type, True) for f in new.fields if old.get(f.name) is None]
    return StructType(tuple(fields))


def _merged_field(f: Field, new: TableType, metadata: Metadata, place: str) -> Field:
    changes: list[_Change] = []
    return _with_history(f, _merged_type(f.type, new, metadata, place, (), changes), changes)


def _merged_type(
    old: TableType, new: TableType, metadata: Metadata, place: str, inside: Place, changes: list[_Change]
) -> TableType:
    """Return the merge of two types, and append the types that widened to `changes`."""

    def merged_part(step: str) -> TableType:
        parts = part_of(old, step, place), part_of(new, step, place)
        return _merged_type(*parts, metadata, f"{place}.{step}", (*inside, step), changes)

    if isinstance(old, StructType) and isinstance(new, StructType):
        return _merged_struct(old, new, metadata, f"{place}.")
    if isinstance(old, ArrayType) and isinstance(new, ArrayType):
        return replace(old, element=merged_part("element"))
    if isinstance(old, MapType) and isinstance(new, MapType):
        return replace(old, key=merged_part("key"), value=merged_part("value"))
    if isinstance(old, PrimitiveType) and (isinstance(new, PrimitiveType) or old == VOID):
        if old == VOID:
            return new
        is_allowed = metadata.configuration.get(_WIDENING) == "true"
        if is_allowed and isinstance(new, PrimitiveType) and is_widening(old.name, new.name):
            changes.append((inside, old.name, new.name))
            return new
        return old  # Values that do not fit the type are refused when they are written.
    raise DeltaError(
        f"column {place} is nested differently in the data and in the table: convert the data to the table's type",
        reason="type-mismatch",
    )


def is_widening(old: str, new: str, *, preview: bool = False) -> bool:
    """Return whether a primitive type may change to another one; both are Delta's names.

    `preview`: apply the rules of the feature's preview.

    >>> is_widening("integer", "long"), is_widening("long", "double"), is_widening("decimal(6,2)", "decimal(10,4)")
    (True, False, True)
    """
    if old in _INTEGERS and new in _INTEGERS:
        return _INTEGERS.index(old) < _INTEGERS.index(new)
    if new == "double":
        return old in ("float", "byte", "short", "integer")
    if (old, new) == ("date", "timestamp_ntz"):
        return True
    wide = DECIMAL.fullmatch(new)
    if wide is None:
        return False
    precision, scale = int(wide[1]), int(wide[2])
    narrow = DECIMAL.fullmatch(old)
    if narrow is None:
        digits = (_PREVIEW_DIGITS if preview else _DIGITS).get(old)
        return digits is not None and precision - digits >= scale >= 0
    added_scale = scale - int(narrow[2])
    return old != new and precision - int(narrow[1]) >= added_scale >= 0


def check_type_changes(schema: StructType, features: Collection[str] | None, uri: str) -> None:
    """Refuse a schema with a type change in its history that this library does not support.

    `features`: the reader features of the table.
    Raises `DeltaError`: reason ``"unsupported-feature"``; the message names the column and the change.
    """
    preview = _PREVIEW in (features or ())
    for f in all_fields(schema):
        for change in f.metadata.get(TYPE_CHANGES) or ():
            types = change if isinstance(change, dict) else {}
            if not is_widening(str(types.get("fromType")), str(types.get("toType")), preview=preview):
                raise DeltaError(
                    f"column {f.name!r} of {uri} has a type change that is not supported: {change}",
                    reason="unsupported-feature",
                    file=uri,
                )
