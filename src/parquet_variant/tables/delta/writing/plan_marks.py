"""Marks of files that tasks wrote: for which table their plan was made, and which partition columns were extracted.

Owns the mark that `WritePlan` puts on add actions, and the check when they are committed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any

from parquet_variant.errors import DeltaError, TableError
from parquet_variant.tables.delta.log.snapshot import Snapshot, load_snapshot
from parquet_variant.tables.delta.protocol.actions import Add, Metadata, PlanMark, Protocol
from parquet_variant.tables.partitions import warn_of_null_partitions

# The key of the mark in the JSON form of an add action, outside of the log.
_KEY = "parquetVariantPlan"


def table_key(protocol: Protocol, metadata: Metadata) -> str:
    """Return a digest of all that files are checked against: protocol, schema, partition columns and properties."""
    parts = (
        protocol.to_dict(),
        metadata.schema_string,
        list(metadata.partition_columns),
        dict(sorted(metadata.configuration.items())),
    )
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def to_marked_dict(add: Add) -> dict[str, Any]:
    """Return an add action as JSON holds it, with its mark."""
    action = add.to_dict()
    return action if add.mark is None else action | {_KEY: asdict(add.mark)}


def with_mark(action: Mapping[str, Any]) -> Add:
    """Return the add action of `to_marked_dict`; the mark is None if the JSON has none.

    Raises `DeltaError`: reason ``"broken-log"`` if the JSON is not an add action.
    """
    add, mark = Add.from_dict(action), action.get(_KEY)
    if not isinstance(mark, Mapping):
        return add
    try:
        return replace(add, mark=PlanMark(int(mark["version"]), str(mark["key"]), tuple(mark["derived"])))
    except (KeyError, TypeError, ValueError):
        raise DeltaError(
            f"the add action of {add.path} has an invalid {_KEY}: pass what plan.write returned", reason="broken-log"
        ) from None


def check_planned(current: Snapshot, adds: Sequence[Add]) -> None:
    """Refuse files whose plan was made for another schema, protocol or other properties, or misses a partition.

    Raises `DeltaError`: reason ``"conflict"``; ``"missing-column"`` for a partition column that was extracted from the
    Variant column if no row had a value.
    """
    marks = {add.mark for add in adds if add.mark is not None}
    key = table_key(current.protocol, current.metadata)
    for mark in sorted(marks, key=lambda mark: mark.version):
        if mark.key != key:
            raise DeltaError(
                f"the files were planned for version {mark.version} of the table, whose {_changed_part(current, mark)} "
                "changed since: write them again",
                reason="conflict",
                file=current.storage.uri,
            )
    for name in sorted({name for mark in marks for name in mark.derived}):
        field = current.schema.get(name)
        physical = name if field is None else field.physical_name
        if all(add.partition_values.get(physical) is None for add in adds):
            raise DeltaError(
                f"the data has no partition column {name!r}, and no row has a value at $.{name}: add the column, or "
                f"name its path with partition_by",
                reason="missing-column",
            )
    warn_of_nulls(current, adds)


def warn_of_nulls(current: Snapshot, adds: Sequence[Add]) -> None:
    """Warn of partition columns of the table that are null in every row of the files."""
    fields = current.partition_fields
    values = {field.name: [add.partition_values.get(field.physical_name) for add in adds] for field in fields}
    warn_of_null_partitions(values, sum(add.num_records or 0 for add in adds))


def _changed_part(current: Snapshot, mark: PlanMark) -> str:
    """Return what has changed since the version of a mark, as far as the log still has that version."""
    before: Snapshot | None = None
    with suppress(TableError, OSError):
        before = load_snapshot(current.storage, mark.version, files=False)
    if before is None:
        return "schema or properties"
    if before.protocol != current.protocol:
        return "protocol"
    if before.metadata.schema_string != current.metadata.schema_string:
        return "schema"
    if before.metadata.partition_columns != current.metadata.partition_columns:
        return "partition columns"
    old, new = before.metadata.configuration, current.metadata.configuration
    names = sorted(name for name in {*old, *new} if old.get(name) != new.get(name))
    return f"property {names[0]}" if names else "definition"
