"""Schemas put together: columns that data brings along, and types that widen.

Owns what an append with ``schema_mode="merge"`` makes of a table's schema, which types may become which, and the
history of that in a schema (PROTOCOL.md, "Type Widening"). Leaves the commit to its callers, and the conversion of what
older files hold to `data.columns`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from parquet_variant.delta.protocol.actions import Metadata, Protocol
from parquet_variant.delta.protocol.column_mapping import MODE, assign_mapping
from parquet_variant.delta.protocol.features import schema_features, with_features
from parquet_variant.delta.protocol.schema import parse_schema, schema_json
from parquet_variant.errors import DeltaError
from parquet_variant.tables.schema import (
    DECIMAL,
    VOID,
    ArrayType,
    Field,
    MapType,
    PrimitiveType,
    StructType,
    TableType,
    all_fields,
    check_schema,
)

TYPE_CHANGES = "delta.typeChanges"
_WHOLE = ("byte", "short", "integer", "long")
# Digits before the point of the decimals that a whole number may become; the preview asked for those that hold it.
_DIGITS = {"byte": 10, "short": 10, "integer": 10, "long": 20}
_DIGITS_IN_PREVIEW = {"byte": 3, "short": 5, "integer": 10, "long": 20}
_PREVIEW = "typeWidening-preview"
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
    changed = replace(metadata, schema_string=schema_json(merged))
    if metadata.configuration.get(MODE, "none") != "none":
        changed = assign_mapping(changed)
    return changed, with_features(protocol, schema_features(merged))


def widened(f: Field, to: PrimitiveType, metadata: Metadata, inside: tuple[str, ...] = ()) -> Field:
    """A field of a wider type, with the change in its history.

    `f` and `to`: the field, and the type that it gets.
    `inside`: the way to what widens in lists and maps: ``element``, ``key``, ``value``.
    Raises `DeltaError`: reason ``"not-widening"``.
    """
    old: TableType = f.type
    for step in inside:
        old = part_of(old, step, f.name)
    if not isinstance(old, PrimitiveType) or not (old == VOID or is_widening(old.name, to.name)):
        shown = old.name if isinstance(old, PrimitiveType) else "no plain column"
        raise DeltaError(f"column {f.name!r} is {shown}, which cannot widen to {to.name}", reason="not-widening")
    if old != VOID and metadata.configuration.get("delta.enableTypeWidening") != "true":
        raise DeltaError(
            f"column {f.name!r} would widen from {old.name} to {to.name}: set delta.enableTypeWidening first",
            reason="not-widening",
        )
    return _with_history(f, with_part(f.type, inside, to), [(inside, old.name, to.name)])


def _with_history(f: Field, kind: TableType, changes: Sequence[_Change]) -> Field:
    """A field of a type that it came to by changes; PROTOCOL.md, "Type Change Metadata"."""
    told: list[dict[str, str]] = [
        {"fromType": old, "toType": new} | ({"fieldPath": ".".join(inside)} if inside else {})
        for inside, old, new in changes
        if old != VOID.name
    ]
    if not told:
        return replace(f, type=kind)
    return replace(f, type=kind, metadata={**f.metadata, TYPE_CHANGES: [*(f.metadata.get(TYPE_CHANGES) or ()), *told]})


def part_of(kind: TableType, step: str, name: str) -> TableType:
    """The type of a list's ``element``, of a map's ``key`` or ``value``; the name is for the error."""
    if isinstance(kind, ArrayType) and step == "element":
        return kind.element
    if isinstance(kind, MapType) and step in ("key", "value"):
        return kind.key if step == "key" else kind.value
    raise DeltaError(f"there is no {step!r} in column {name!r}", reason="unknown-column")


def with_part(kind: TableType, inside: tuple[str, ...], new: TableType) -> TableType:
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


def _field(f: Field, new: TableType, metadata: Metadata, place: str) -> Field:
    changes: list[_Change] = []
    return _with_history(f, _type(f.type, new, metadata, place, (), changes), changes)


def _type(
    old: TableType, new: TableType, metadata: Metadata, place: str, inside: tuple[str, ...], changes: list[_Change]
) -> TableType:
    """Both types as one; what widened, and where in the field, goes to the changes."""

    def part(step: str) -> TableType:
        parts = part_of(old, step, place), part_of(new, step, place)
        return _type(*parts, metadata, f"{place}.{step}", (*inside, step), changes)

    if isinstance(old, StructType) and isinstance(new, StructType):
        return _struct(old, new, metadata, f"{place}.")
    if isinstance(old, ArrayType) and isinstance(new, ArrayType):
        return replace(old, element=part("element"))
    if isinstance(old, MapType) and isinstance(new, MapType):
        return replace(old, key=part("key"), value=part("value"))
    if isinstance(old, PrimitiveType) and (isinstance(new, PrimitiveType) or old == VOID):
        allowed = metadata.configuration.get("delta.enableTypeWidening") == "true"
        if old == VOID:
            return new
        if allowed and isinstance(new, PrimitiveType) and is_widening(old.name, new.name):
            changes.append((inside, old.name, new.name))
            return new
        return old  # What does not fit is told when it is written.
    raise DeltaError(f"column {place} has another shape in the data than in the table", reason="type-mismatch")


def is_widening(old: str, new: str, *, preview: bool = False) -> bool:
    """Whether a primitive type may become another one, by Delta's names; in tables of the feature's preview, did.

    >>> is_widening("integer", "long"), is_widening("long", "double"), is_widening("decimal(6,2)", "decimal(10,4)")
    (True, False, True)
    """
    if old in _WHOLE and new in _WHOLE:
        return _WHOLE.index(old) < _WHOLE.index(new)
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
        digits = (_DIGITS_IN_PREVIEW if preview else _DIGITS).get(old)
        return digits is not None and precision - digits >= scale >= 0
    more = scale - int(narrow[2])
    return old != new and precision - int(narrow[1]) >= more >= 0


def check_type_changes(schema: StructType, features: Collection[str] | None, uri: str) -> None:
    """Refuse a schema whose columns changed their type in a way that is not known; the features are those of readers.

    Raises `DeltaError`: reason ``"unsupported-feature"``; the column and the change are named.
    """
    preview = _PREVIEW in (features or ())
    for f in all_fields(schema):
        for change in f.metadata.get(TYPE_CHANGES) or ():
            if not _known(change, preview):
                raise DeltaError(
                    f"column {f.name} of {uri} changed its type in a way that is not supported: {change}",
                    reason="unsupported-feature",
                    file=uri,
                )


def _known(change: Any, preview: bool) -> bool:
    if not isinstance(change, dict):
        return False
    return is_widening(str(change.get("fromType")), str(change.get("toType")), preview=preview)
