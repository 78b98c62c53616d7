"""Changing a table's columns: adding, renaming and dropping columns, and widening their types.

Owns the public operations on a schema, each in one commit. Leaves the allowed type changes to
`protocol.schema_merging`, ids and physical names to `protocol.column_mapping`, and appends with new columns to
`writing.write`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import pyarrow as pa

from parquet_variant.errors import DeltaError
from parquet_variant.tables.delta.log.commit import CommitResult, Transaction, commit
from parquet_variant.tables.delta.log.snapshot import Snapshot, TableLike, snapshot
from parquet_variant.tables.delta.protocol.actions import Metadata, Protocol
from parquet_variant.tables.delta.protocol.column_metadata import check_change_data_names, refuse_added_metadata
from parquet_variant.tables.delta.protocol.features import check_writable, schema_features, with_features
from parquet_variant.tables.delta.protocol.schema import named_type, parse_schema, read_schema, schema_json
from parquet_variant.tables.delta.protocol.schema_merging import merged_metadata, part_of, widened, with_part
from parquet_variant.tables.schema import Field, StructType, TableType, check_schema

# Return the replacement of a field, from the field and the steps to a part of it in lists and maps.
_OnField: TypeAlias = "Callable[[Field, tuple[str, ...]], tuple[Field, ...]]"


def add_columns(
    table: TableLike,
    columns: pa.Schema | StructType | str,
    *,
    storage_options: Mapping[str, str] | None = None,
) -> CommitResult:
    """Add columns, which are null in existing rows; see `Table.add_columns`."""
    current = snapshot(table, storage_options=storage_options)
    new = read_schema(columns)
    for f in new.fields:
        if current.schema.get(f.name) is not None:
            raise DeltaError(f"the table already has a column {f.name!r}: choose another name", reason="bad-schema")
        if not f.nullable:
            raise DeltaError(
                f"column {f.name!r} must be nullable, because existing rows have no value for it", reason="bad-schema"
            )
    refuse_added_metadata(new)
    metadata, protocol = merged_metadata(current.metadata, current.protocol, new)
    parameters = {"columns": [f.name for f in new.fields]}
    return _commit(current, "ADD COLUMNS", parameters, parse_schema(metadata.schema_string), metadata, protocol)


def rename_column(
    table: TableLike,
    old: str,
    new: str,
    *,
    storage_options: Mapping[str, str] | None = None,
) -> CommitResult:
    """Rename a column. No file is rewritten, so the table must have column mapping; see `Table.rename_column`."""
    current = snapshot(table, storage_options=storage_options)
    _check_mapping(current, "renamed")
    _check_unused(current, old.split(".")[0])
    schema = _replace_field(
        current.schema, old, lambda f, inside: (replace(_checked_column(f, inside, old), name=new),)
    )
    names = tuple(new if name.lower() == old.lower() else name for name in current.partition_columns)
    parameters = {"oldColumnPath": old, "newColumnPath": new}
    return _commit(current, "RENAME COLUMN", parameters, schema, replace(current.metadata, partition_columns=names))


def drop_column(table: TableLike, name: str, *, storage_options: Mapping[str, str] | None = None) -> CommitResult:
    """Drop a column. No file is rewritten, so the table must have column mapping; see `Table.drop_column`."""
    current = snapshot(table, storage_options=storage_options)
    _check_mapping(current, "dropped")
    _check_unused(current, name.split(".")[0])
    if name.lower() in {column.lower() for column in current.partition_columns}:
        raise DeltaError(f"column {name!r} is a partition column, which cannot be dropped", reason="bad-schema")

    def dropped(f: Field, inside: tuple[str, ...]) -> tuple[Field, ...]:
        _checked_column(f, inside, name)
        return ()

    schema = _replace_field(current.schema, name, dropped)
    return _commit(current, "DROP COLUMNS", {"columns": [name]}, schema)


def widen_column(
    table: TableLike,
    name: str,
    to: str,
    *,
    storage_options: Mapping[str, str] | None = None,
) -> CommitResult:
    """Widen the type of a column. No file is rewritten; the table must have ``delta.enableTypeWidening``.

    See `Table.widen_column`.
    """
    current = snapshot(table, storage_options=storage_options)
    wide, metadata = named_type(to), current.metadata
    schema = _replace_field(current.schema, name, lambda f, inside: (widened(f, wide, metadata, inside),))
    return _commit(current, "CHANGE COLUMN", {"column": name, "type": to}, schema)


def _commit(
    current: Snapshot,
    operation: str,
    parameters: Mapping[str, Any],
    schema: StructType,
    metadata: Metadata | None = None,
    protocol: Protocol | None = None,
) -> CommitResult:
    """Commit a new schema as one version."""
    metadata = replace(metadata or current.metadata, schema_string=schema_json(schema))
    check_schema(schema, metadata.partition_columns)
    check_change_data_names(schema, metadata.configuration)
    protocol = with_features(protocol or current.protocol, schema_features(schema))
    check_writable(protocol, current.storage.uri)
    change = Transaction(
        operation,
        parameters,
        metadata=metadata,
        protocol=protocol if protocol != current.protocol else None,
        current=current,
    )
    return commit(current.storage, change)


def _replace_field(schema: StructType, path: str, change: _OnField) -> StructType:
    """Return the schema with a field replaced; paths lead through lists and maps by ``element``, ``key``, ``value``."""
    steps = (path,) if schema.get(path) is not None else tuple(path.split("."))
    return _changed_struct(schema, steps, path, change)


def _changed_struct(schema: StructType, steps: tuple[str, ...], path: str, change: _OnField) -> StructType:
    field = schema.get(steps[0])
    if field is None:
        names = ", ".join(f.name for f in schema.fields)
        raise DeltaError(f"the table has no column {path!r}: choose from {names}", reason="unknown-column")
    new = _changed_field(field, field.type, steps[1:], path, change)
    fields = tuple(result for f in schema.fields for result in (new if f is field else (f,)))
    if not fields:
        raise DeltaError(f"column {path!r} is the last one, which cannot be dropped", reason="bad-schema")
    return StructType(fields)


def _changed_field(f: Field, kind: TableType, steps: tuple[str, ...], path: str, change: _OnField) -> tuple[Field, ...]:
    """Return the replacement of a field in which the part at the end of the steps is changed."""
    inside: list[str] = []
    for index, step in enumerate(steps):
        if isinstance(kind, StructType):
            new = _changed_struct(kind, steps[index:], path, change)
            return (replace(f, type=with_part(f.type, tuple(inside), new)),)
        kind = part_of(kind, step, path)
        inside.append(step)
    return change(f, tuple(inside))


def _checked_column(f: Field, inside: tuple[str, ...], path: str) -> Field:
    """Return the field; raise `DeltaError` for a part of a list or map, which has no name."""
    if inside:
        raise DeltaError(f"{path!r} is a part of a list or map, not a column: name the column", reason="bad-schema")
    return f


def _check_mapping(current: Snapshot, participle: str) -> None:
    if current.column_mapping == "none":
        raise DeltaError(
            f"columns can only be {participle} in tables with column mapping, because files are not rewritten: set "
            "delta.columnMapping.mode to name first",
            reason="no-column-mapping",
            file=current.storage.uri,
        )


def _check_unused(current: Snapshot, name: str) -> None:
    configuration = current.metadata.configuration
    texts = {key: text for key, text in configuration.items() if key.startswith("delta.constraints.")}
    for f in current.schema.fields:
        for key in ("delta.generationExpression", "delta.invariants"):
            if key in f.metadata:
                texts[f"column {f.name}"] = str(f.metadata[key])
    for owner, text in texts.items():
        if re.search(rf"(?i)(?<!\w){re.escape(name)}(?!\w)", text):
            raise DeltaError(f"column {name!r} is used by {owner} ({text}): remove that first", reason="column-in-use")
