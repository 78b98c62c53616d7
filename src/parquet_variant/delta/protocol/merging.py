"""Schemas put together: columns that data brings along, and types that widen.

Owns what an append with ``schema_mode="merge"`` makes of a table's schema. Leaves the commit to its callers.
"""

from __future__ import annotations

from dataclasses import replace

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

__all__ = ["merged_metadata", "widened"]

_VOID = PrimitiveType("void")


def merged_metadata(metadata: Metadata, protocol: Protocol, new: StructType) -> tuple[Metadata, Protocol]:
    """Metadata and protocol of a table that also has the columns of some data.

    Parameters
    ----------
    metadata, protocol
        Of the table.
    new
        The data's columns.

    Raises
    ------
    DeltaError
        Reason ``"type-mismatch"`` for a column whose types do not go together.
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


def widened(f: Field, to: PrimitiveType, metadata: Metadata) -> Field:
    """A field of a wider type, with the change in its history.

    Raises
    ------
    DeltaError
        Reason ``"not-widening"``.
    """
    old = f.type
    if old == _VOID:
        return replace(f, type=to)
    if not isinstance(old, PrimitiveType) or not is_widening(old.name, to.name):
        shown = old.name if isinstance(old, PrimitiveType) else "no plain column"
        raise DeltaError(f"column {f.name!r} is {shown}, which cannot widen to {to.name}", reason="not-widening")
    if metadata.configuration.get("delta.enableTypeWidening") != "true":
        raise DeltaError(
            f"column {f.name!r} would widen from {old.name} to {to.name}: set delta.enableTypeWidening first",
            reason="not-widening",
        )
    history = [*(f.metadata.get(TYPE_CHANGES) or ()), {"fromType": old.name, "toType": to.name}]
    return replace(f, type=to, metadata={**f.metadata, TYPE_CHANGES: history})


def _struct(old: StructType, new: StructType, metadata: Metadata, prefix: str) -> StructType:
    fields = []
    for f in old.fields:
        match = new.get(f.name)
        fields.append(f if match is None else _field(f, match.type, metadata, f"{prefix}{f.name}"))
    fields += [Field(f.name, f.type, True) for f in new.fields if old.get(f.name) is None]
    return StructType(tuple(fields))


def _field(f: Field, new: DeltaType, metadata: Metadata, place: str) -> Field:
    if isinstance(f.type, PrimitiveType) and isinstance(new, PrimitiveType):
        allowed = metadata.configuration.get("delta.enableTypeWidening") == "true"
        if f.type == _VOID or (allowed and is_widening(f.type.name, new.name)):
            return widened(f, new, metadata)
        return f  # What does not fit is told when it is written.
    return replace(f, type=_type(f.type, new, metadata, place))


def _type(old: DeltaType, new: DeltaType, metadata: Metadata, place: str) -> DeltaType:
    if isinstance(old, StructType) and isinstance(new, StructType):
        return _struct(old, new, metadata, f"{place}.")
    if isinstance(old, ArrayType) and isinstance(new, ArrayType):
        return ArrayType(_type(old.element, new.element, metadata, f"{place}.element"), old.contains_null)
    if isinstance(old, MapType) and isinstance(new, MapType):
        return MapType(old.key, _type(old.value, new.value, metadata, f"{place}.value"), old.value_contains_null)
    if isinstance(old, PrimitiveType) and (isinstance(new, PrimitiveType) or old == _VOID):
        return new if old == _VOID else old
    raise DeltaError(f"column {place} has another shape in the data than in the table", reason="type-mismatch")
