"""Changes of a table's columns: merging the schema of data, types that widen, ids and names, and metadata of columns.

Owns the result of an append with ``schema_mode="merge"``, the allowed type changes and their history (PROTOCOL.md,
"Type Widening"), column mapping, and the features that identities, generation, defaults and invariants need. Leaves
the commit to its callers, and converting the values of older files to `tables.columns`.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from parquet_variant.errors import DeltaError
from parquet_variant.tables import schema as shared
from parquet_variant.tables.delta.protocol import actions
from parquet_variant.tables.delta.protocol.features import schema_features, with_features

_Type = TypeVar("_Type", bound=shared.TableType)
MODE = "delta.columnMapping.mode"
_MAX_ID = "delta.columnMapping.maxColumnId"


def with_mode(old: actions.Metadata | None, new: actions.Metadata) -> actions.Metadata:
    """Return metadata whose columns have the ids and physical names that its mode needs.

    `old`: the metadata before; None for a new table, whose columns get generated physical names.
    """
    mode = new.configuration.get(MODE, "none")
    before = "none" if old is None else old.configuration.get(MODE, "none")
    if old is not None and before != mode and (before, mode) != ("none", "name"):
        problem = f"{MODE} cannot change from {before} to {mode}: only a change from none to name is possible"
        raise DeltaError(problem, reason="bad-property")
    if mode == "none":
        return new
    if old is not None and before == "none":
        # Ids and names of an earlier mapping do not apply to the files, which have the columns' logical names.
        new = replace(new, schema_string=actions.schema_json(actions.parse_schema(new.schema_string, mapped=False)))
    return assign_mapping(new, named=old is not None and before == "none")


def assign_mapping(metadata: actions.Metadata, *, named: bool = False) -> actions.Metadata:
    """Return metadata with an id and a physical name for every column; `named`: files use the columns' names."""
    schema = actions.parse_schema(metadata.schema_string)
    last = max([_max_id(metadata), *(f.field_id or 0 for f in shared.all_fields(schema))])

    def assigned(f: shared.Field) -> shared.Field:
        nonlocal last
        mapped_metadata = dict(f.metadata)
        if actions.FIELD_ID not in mapped_metadata:
            last += 1
            mapped_metadata[actions.FIELD_ID] = last
        mapped_metadata.setdefault(actions.PHYSICAL_NAME, f.name if named else f"col-{uuid.uuid4()}")
        return actions.with_metadata(f, mapped_metadata)

    mapped = shared.with_fields(schema, assigned)
    return replace(
        metadata,
        schema_string=actions.schema_json(mapped),
        configuration={**metadata.configuration, _MAX_ID: str(last)},
    )


def with_last_id(metadata: actions.Metadata, other: actions.Metadata) -> actions.Metadata:
    """Return metadata that will not assign an id again that another version of the table has assigned."""
    if _max_id(metadata) >= _max_id(other):
        return metadata
    return replace(metadata, configuration={**metadata.configuration, _MAX_ID: str(_max_id(other))})


def _max_id(metadata: actions.Metadata) -> int:
    text = metadata.configuration.get(_MAX_ID, "")
    return int(text) if text.isdecimal() else 0


IDENTITY_START, IDENTITY_STEP = "delta.identity.start", "delta.identity.step"
GENERATION = "delta.generationExpression"
DEFAULT = "CURRENT_DEFAULT"
INVARIANT = "delta.invariants"
CHANGE_DATA_PROPERTY = "delta.enableChangeDataFeed"
# The columns that readers of change data get in addition to the table's.
CHANGE_COLUMNS = ("_change_type", "_commit_version", "_commit_timestamp")
_IDENTITY = "delta.identity."
_NO_DEFAULT = ("null", "")


def metadata_features(schema: shared.StructType) -> tuple[str, ...]:
    """Return the table features that the metadata of columns needs."""
    return tuple(dict.fromkeys(feature for field in shared.all_fields(schema) for feature, _ in _kinds(field)))


def check_column_metadata(schema: shared.StructType) -> None:
    """Refuse metadata of columns that Delta does not allow in a new table."""
    top = {id(field) for field in schema.fields}
    for field in shared.all_fields(schema):
        kinds = [kind for feature, kind in _kinds(field) if feature != "invariants"]
        if kinds and id(field) not in top:
            raise _bad_field(field, f"{kinds[0]}, which only top-level columns can have")
        if len(kinds) > 1:
            raise _bad_field(field, f"{kinds[0]} and {kinds[1]}: keep one of them")
        if "an identity" in kinds:
            _check_identity(field)
        if "a generation expression" in kinds:
            if field.type == shared.VARIANT:
                raise _bad_field(field, "a generation expression, but a Variant column cannot be generated")
            if not _text(field, GENERATION):
                shown = field.metadata[GENERATION]
                raise _bad_field(field, f"the generation expression {shown!r}: give SQL as a string")
        if "a default" in kinds and field.type == shared.VARIANT and _text(field, DEFAULT).lower() not in _NO_DEFAULT:
            raise _bad_field(
                field, f"the default {field.metadata[DEFAULT]!r}: a Variant column can only default to null"
            )


def refuse_added_metadata(columns: shared.StructType) -> None:
    """Refuse columns with an identity, a generation expression or a default where columns are added to a table."""
    for field in shared.all_fields(columns):
        for _, kind in _kinds(field):
            raise _bad_field(field, f"{kind}, which only the columns of a new table can have: add it without")


def check_change_data_names(columns: shared.StructType, configuration: Mapping[str, str | None]) -> None:
    """Refuse columns with the names of the columns that change data adds, in a table that records changes."""
    if str(configuration.get(CHANGE_DATA_PROPERTY) or "false").lower() != "true":
        return
    for field in columns.fields:
        if field.name.lower() in CHANGE_COLUMNS:
            raise _bad_field(
                field, f"a name that change data uses: rename the column, or do not set {CHANGE_DATA_PROPERTY}"
            )


def _kinds(field: shared.Field) -> Iterator[tuple[str, str]]:
    """Yield the features that a column's metadata needs, each with its description."""
    if any(key.startswith(_IDENTITY) for key in field.metadata):
        yield "identityColumns", "an identity"
    if GENERATION in field.metadata:
        yield "generatedColumns", "a generation expression"
    if DEFAULT in field.metadata:
        yield "allowColumnDefaults", "a default"
    if INVARIANT in field.metadata:
        yield "invariants", "an invariant"


def _check_identity(field: shared.Field) -> None:
    if field.type != shared.PrimitiveType("long"):
        kind = field.type.name if isinstance(field.type, shared.PrimitiveType) else "nested"
        raise _bad_field(field, f"an identity, but is of type {kind}: an identity column must be of type long")
    for key in (IDENTITY_START, IDENTITY_STEP):
        value: Any = field.metadata.get(key)
        if not isinstance(value, int) or isinstance(value, bool) or not -(2**63) <= value < 2**63:
            raise _bad_field(field, f"an identity whose {key} is {value!r}: give an integer")
    if field.metadata[IDENTITY_STEP] == 0:
        raise _bad_field(field, f"an identity whose {IDENTITY_STEP} is 0: give another step")
    explicit = field.metadata.get("delta.identity.allowExplicitInsert", False)
    if not isinstance(explicit, bool):
        raise _bad_field(
            field, f"an identity whose delta.identity.allowExplicitInsert is {explicit!r}: give true or false"
        )


def _text(field: shared.Field, key: str) -> str:
    value = field.metadata[key]
    return value.strip() if isinstance(value, str) else "" if value is None else str(value)


def _bad_field(field: shared.Field, problem: str) -> DeltaError:
    return DeltaError(f"column {field.name!r} has {problem}", reason="bad-schema")


TYPE_CHANGES = "delta.typeChanges"
_WIDENING = "delta.enableTypeWidening"
_INTEGERS = ("byte", "short", "integer", "long")
# Digits before the point that a decimal needs for an integer type; the preview of the feature required fewer.
_DIGITS = {"byte": 10, "short": 10, "integer": 10, "long": 20}
_PREVIEW_DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 20}
_PREVIEW = "typeWidening-preview"


def merged_metadata(
    metadata: actions.Metadata, protocol: actions.Protocol, new: shared.StructType
) -> tuple[actions.Metadata, actions.Protocol]:
    """Return metadata and protocol with the columns of some data added; raise `DeltaError`: ``"type-mismatch"``."""
    old = actions.parse_schema(metadata.schema_string)
    is_widening_allowed = metadata.configuration.get(_WIDENING) == "true"

    def primitive(old: shared.TableType, new: shared.TableType, place: shared.Place) -> shared.TableType:
        if old == shared.VOID:
            return new
        if not isinstance(old, shared.PrimitiveType) or not isinstance(new, shared.PrimitiveType):
            raise DeltaError(
                f"column {'.'.join(place)} is nested differently in the data and in the table: convert the data to the "
                "table's type",
                reason="type-mismatch",
            )
        # Values that do not fit the type are refused when they are written.
        return new if is_widening_allowed and is_widening(old.name, new.name) else old

    merged = shared.merged_type(old, new, (), primitive, lambda f: shared.Field(f.name, f.type, True))
    assert isinstance(merged, shared.StructType)
    merged = with_history(old, merged)
    if merged == old:
        return metadata, protocol
    shared.check_schema(merged, metadata.partition_columns)
    check_change_data_names(merged, metadata.configuration)
    changed = replace(metadata, schema_string=actions.schema_json(merged))
    if metadata.configuration.get(MODE, "none") != "none":
        changed = assign_mapping(changed)
    return changed, with_features(protocol, schema_features(merged))


def check_widening(name: str, old: shared.TableType, to: shared.PrimitiveType, metadata: actions.Metadata) -> None:
    """Refuse a type to which a column of the table cannot widen. Raises `DeltaError`: reason ``"not-widening"``."""
    if not isinstance(old, shared.PrimitiveType) or not (old == shared.VOID or is_widening(old.name, to.name)):
        old_name = old.name if isinstance(old, shared.PrimitiveType) else "nested"
        raise DeltaError(f"column {name!r} is {old_name} and cannot widen to {to.name}", reason="not-widening")
    if old != shared.VOID and metadata.configuration.get(_WIDENING) != "true":
        problem = f"column {name!r} cannot widen from {old.name} to {to.name}: set the table property {_WIDENING} first"
        raise DeltaError(problem, reason="not-widening")


def with_history(old: shared.TableType, new: _Type) -> _Type:
    """Return a type whose fields of structs record how their types changed (PROTOCOL.md, "Type Change Metadata")."""
    before = {f.name: f.type for f in shared.parts(old)}
    fields = []
    for f in shared.parts(new):
        former = before.get(f.name, f.type)
        if former != f.type:
            changes = list(_changes(former, f.type)) if isinstance(new, shared.StructType) else []
            history = [*(f.metadata.get(TYPE_CHANGES) or ()), *changes]
            metadata = {**f.metadata, TYPE_CHANGES: history} if changes else f.metadata
            f = replace(f, type=with_history(former, f.type), metadata=metadata)
        fields.append(f)
    return shared.with_parts(new, fields)


def _changes(old: shared.TableType, new: shared.TableType, inside: shared.Place = ()) -> Iterator[dict[str, str]]:
    """Yield the changes of primitive types, also inside of lists and maps but not of structs."""
    if (
        isinstance(old, shared.PrimitiveType)
        and isinstance(new, shared.PrimitiveType)
        and old not in (new, shared.VOID)
    ):
        yield {"fromType": old.name, "toType": new.name} | ({"fieldPath": ".".join(inside)} if inside else {})
    if isinstance(old, shared.ArrayType | shared.MapType):
        for former, f in zip(shared.parts(old), shared.parts(new), strict=True):
            yield from _changes(former.type, f.type, (*inside, f.name))


def is_widening(old: str, new: str, *, preview: bool = False) -> bool:
    """Return whether a primitive type, by Delta's names, may change to another one; `preview`: by the preview's rules.

    >>> is_widening("integer", "long"), is_widening("long", "double"), is_widening("decimal(6,2)", "decimal(10,4)")
    (True, False, True)
    """
    if old in _INTEGERS and new in _INTEGERS:
        return _INTEGERS.index(old) < _INTEGERS.index(new)
    if new == "double":
        return old in ("float", "byte", "short", "integer")
    if (old, new) == ("date", "timestamp_ntz"):
        return True
    wide = shared.DECIMAL.fullmatch(new)
    if wide is None:
        return False
    precision, scale = int(wide[1]), int(wide[2])
    narrow = shared.DECIMAL.fullmatch(old)
    if narrow is None:
        digits = (_PREVIEW_DIGITS if preview else _DIGITS).get(old)
        return digits is not None and precision - digits >= scale >= 0
    added_scale = scale - int(narrow[2])
    return old != new and precision - int(narrow[1]) >= added_scale >= 0


def check_type_changes(schema: shared.StructType, features: Collection[str] | None, uri: str) -> None:
    """Refuse a type change in the history of a column that this library does not support."""
    preview = _PREVIEW in (features or ())
    for f in shared.all_fields(schema):
        for change in f.metadata.get(TYPE_CHANGES) or ():
            types = change if isinstance(change, dict) else {}
            if not is_widening(str(types.get("fromType")), str(types.get("toType")), preview=preview):
                problem = f"column {f.name!r} of {uri} has a type change that is not supported: {change}"
                raise DeltaError(problem, reason="unsupported-feature", file=uri)
