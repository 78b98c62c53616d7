"""Column mapping: ids and physical names for columns (PROTOCOL.md, "Column Mapping").

Owns assigning ids and names. Leaves matching the columns of files to `tables.columns`.
"""

from __future__ import annotations

import uuid
from dataclasses import replace

from parquet_variant.errors import DeltaError
from parquet_variant.tables.delta.protocol.actions import Metadata
from parquet_variant.tables.delta.protocol.schema import PHYSICAL_NAME, parse_schema, schema_json, with_metadata
from parquet_variant.tables.schema import Field, all_fields, with_fields

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
