"""Metadata of columns that writers act on: identity, generation, default and invariant.

Owns the table features that this metadata needs when a table is created, and the refusal of metadata that Delta does
not allow. Without its feature, such metadata has no effect on a table.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from parquet_variant.errors import DeltaError
from parquet_variant.tables.delta.protocol.actions import Metadata
from parquet_variant.tables.delta.protocol.schema import PHYSICAL_NAME, parse_schema, schema_json, with_metadata
from parquet_variant.tables.schema import VARIANT, Field, PrimitiveType, StructType, all_fields, with_fields

MODE = "delta.columnMapping.mode"
_MAX_ID = "delta.columnMapping.maxColumnId"
_ID = "delta.columnMapping.id"


def with_mode(old: Metadata | None, new: Metadata) -> Metadata:
    """Return metadata whose columns have the ids and physical names that its mode needs.

    `old`: the metadata before; None for a new table, whose columns get generated physical names.
    `new`: the metadata with the requested mode.
    Raises `DeltaError`: reason ``"bad-property"`` for a change of mode after which columns are not found in files.
    """
    mode = new.configuration.get(MODE, "none")
    before = "none" if old is None else old.configuration.get(MODE, "none")
    if old is not None and before != mode and (before, mode) != ("none", "name"):
        raise DeltaError(
            f"{MODE} cannot change from {before} to {mode}: only a change from none to name is possible",
            reason="bad-property",
        )
    if mode == "none":
        return new
    if old is not None and before == "none":
        # Ids and names of an earlier mapping do not apply to the files, which have the columns' logical names.
        new = replace(new, schema_string=schema_json(parse_schema(new.schema_string, mapped=False)))
    return assign_mapping(new, named=old is not None and before == "none")


def assign_mapping(metadata: Metadata, *, named: bool = False) -> Metadata:
    """Return metadata with an id and a physical name for every column that has none.

    `named`: use the columns' names as physical names, because existing files have these.
    """
    schema = parse_schema(metadata.schema_string)
    last = max([_max_id(metadata), *(f.field_id or 0 for f in all_fields(schema))])

    def assigned(f: Field) -> Field:
        nonlocal last
        mapped_metadata = dict(f.metadata)
        if _ID not in mapped_metadata:
            last += 1
            mapped_metadata[_ID] = last
        mapped_metadata.setdefault(PHYSICAL_NAME, f.name if named else f"col-{uuid.uuid4()}")
        return with_metadata(f, mapped_metadata)

    mapped = with_fields(schema, assigned)
    return replace(
        metadata, schema_string=schema_json(mapped), configuration={**metadata.configuration, _MAX_ID: str(last)}
    )


def with_last_id(metadata: Metadata, other: Metadata) -> Metadata:
    """Return metadata that will not assign an id again that another version of the table has assigned."""
    if _max_id(metadata) >= _max_id(other):
        return metadata
    return replace(metadata, configuration={**metadata.configuration, _MAX_ID: str(_max_id(other))})


def _max_id(metadata: Metadata) -> int:
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


def metadata_features(schema: StructType) -> tuple[str, ...]:
    """Return the table features that the metadata of columns needs.

    >>> field = Field("id", PrimitiveType("long"), metadata={IDENTITY_START: 1, IDENTITY_STEP: 1})
    >>> metadata_features(StructType((field,)))
    ('identityColumns',)
    """
    return tuple(dict.fromkeys(feature for field in all_fields(schema) for feature, _ in _kinds(field)))


def check_column_metadata(schema: StructType) -> None:
    """Refuse metadata of columns that Delta does not allow in a new table.

    Raises `DeltaError`: reason ``"bad-schema"``.
    """
    top = {id(field) for field in schema.fields}
    for field in all_fields(schema):
        kinds = [kind for feature, kind in _kinds(field) if feature != "invariants"]
        if kinds and id(field) not in top:
            raise _bad_field(field, f"{kinds[0]}, which only top-level columns can have")
        if len(kinds) > 1:
            raise _bad_field(field, f"{kinds[0]} and {kinds[1]}: keep one of them")
        if "an identity" in kinds:
            _check_identity(field)
        if "a generation expression" in kinds:
            _check_generation(field)
        if "a default" in kinds and field.type == VARIANT and _text(field, DEFAULT).lower() not in _NO_DEFAULT:
            raise _bad_field(
                field, f"the default {field.metadata[DEFAULT]!r}: a Variant column can only default to null"
            )


def refuse_added_metadata(columns: StructType) -> None:
    """Refuse columns with an identity, a generation expression or a default where columns are added to a table.

    Raises `DeltaError`: reason ``"bad-schema"``.
    """
    for field in all_fields(columns):
        for _, kind in _kinds(field):
            raise _bad_field(field, f"{kind}, which only the columns of a new table can have: add it without")


def check_change_data_names(columns: StructType, configuration: Mapping[str, str | None]) -> None:
    """Refuse columns with the names of the columns that change data adds, in a table that records changes.

    Raises `DeltaError`: reason ``"bad-schema"``.
    """
    if str(configuration.get(CHANGE_DATA_PROPERTY) or "false").lower() != "true":
        return
    for field in columns.fields:
        if field.name.lower() in CHANGE_COLUMNS:
            raise _bad_field(
                field, f"a name that change data uses: rename the column, or do not set {CHANGE_DATA_PROPERTY}"
            )


def _kinds(field: Field) -> Iterator[tuple[str, str]]:
    """Yield the features that a column's metadata needs, each with its description."""
    if any(key.startswith(_IDENTITY) for key in field.metadata):
        yield "identityColumns", "an identity"
    if GENERATION in field.metadata:
        yield "generatedColumns", "a generation expression"
    if DEFAULT in field.metadata:
        yield "allowColumnDefaults", "a default"
    if INVARIANT in field.metadata:
        yield "invariants", "an invariant"


def _check_identity(field: Field) -> None:
    if field.type != PrimitiveType("long"):
        kind = field.type.name if isinstance(field.type, PrimitiveType) else "nested"
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


def _check_generation(field: Field) -> None:
    if field.type == VARIANT:
        raise _bad_field(field, "a generation expression, but a Variant column cannot be generated")
    if not _text(field, GENERATION):
        raise _bad_field(field, f"the generation expression {field.metadata[GENERATION]!r}: give SQL as a string")


def _text(field: Field, key: str) -> str:
    value = field.metadata[key]
    return value.strip() if isinstance(value, str) else "" if value is None else str(value)


def _bad_field(field: Field, problem: str) -> DeltaError:
    return DeltaError(f"column {field.name!r} has {problem}", reason="bad-schema")
