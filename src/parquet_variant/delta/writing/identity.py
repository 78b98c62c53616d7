"""Values of identity columns (PROTOCOL.md, "Identity Columns"): made here, for rows that one process adds.

Owns which values come next, and the mark up to which they are taken. The mark is in the table's metadata, so that two
commits that take the same values are in conflict: one of them is planned anew. Leaves that to the operations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from parquet_variant.delta.log.snapshot import Snapshot
from parquet_variant.delta.protocol.actions import Metadata
from parquet_variant.delta.protocol.features import supports
from parquet_variant.delta.protocol.schema import parse_schema, schema_json
from parquet_variant.errors import DeltaError
from parquet_variant.tables.schema import Field, StructType

_START, _STEP = "delta.identity.start", "delta.identity.step"
_MARK, _EXPLICIT = "delta.identity.highWaterMark", "delta.identity.allowExplicitInsert"
_LIMITS = np.iinfo(np.int64)


@dataclass
class _Counter:
    """One identity column."""

    name: str
    start: int
    step: int
    mark: int | None
    explicit: bool

    def take(self, count: int) -> pa.Array:
        """The next values."""
        if not count:
            return pa.array([], pa.int64())
        after = -1 if self.mark is None else (self.mark - self.start) // self.step
        first = self.start + max(after + 1, 0) * self.step
        last = first + (count - 1) * self.step
        if not _LIMITS.min <= last <= _LIMITS.max:
            raise DeltaError(
                f"identity column {self.name} has no values for {count} rows more, after {self.mark} by {self.step}",
                reason="identity-overflow",
            )
        self.mark = last
        return pa.array(np.arange(count, dtype=np.int64) * self.step + first)


class IdentityValues:
    """Gives rows the values of a table's identity columns that they lack, and knows the table's metadata after it."""

    def __init__(self, current: Snapshot) -> None:
        self._metadata = current.metadata
        self._counters = [_counter(f) for f in _identity_fields(current)]

    def of(self, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """The tables with these columns.

        Raises `DeltaError`: reason ``"identity-given"`` for values that are given and may not be;
        ``"identity-overflow"``.
        """
        for table in tables:
            for counter in self._counters:
                table = self._with(table, counter)
            yield table

    def _with(self, table: pa.Table, counter: _Counter) -> pa.Table:
        names = [name for name in table.column_names if name.lower() == counter.name.lower()]
        if not names:
            return table.append_column(counter.name, counter.take(len(table)))
        if not counter.explicit:
            raise DeltaError(
                f"column {counter.name} is an identity column, whose values are made here "
                "(delta.identity.allowExplicitInsert is false): leave it out",
                reason="identity-given",
            )
        # Delta's Spark does not move the mark for them, either: it is the last of the values that were made.
        return table

    @property
    def metadata(self) -> Metadata | None:
        """The table's metadata with the new marks; None if they did not move."""
        schema = parse_schema(self._metadata.schema_string)
        marks = {each.name: each.mark for each in self._counters if each.mark is not None}
        fields = tuple(
            replace(f, metadata={**f.metadata, _MARK: marks[f.name]}) if f.name in marks else f for f in schema.fields
        )
        new = schema_json(StructType(fields))
        is_moved = any(f.metadata.get(_MARK) != marks.get(f.name, f.metadata.get(_MARK)) for f in schema.fields)
        return replace(self._metadata, schema_string=new) if is_moved else None


def with_last_marks(metadata: Metadata, other: Metadata) -> Metadata:
    """Metadata whose identity columns never give a value that another version of the table has given."""
    schema, marks = parse_schema(metadata.schema_string), parse_schema(other.schema_string)
    fields = tuple(_with_last_mark(f, marks.get(f.name)) for f in schema.fields)
    return metadata if fields == schema.fields else replace(metadata, schema_string=schema_json(StructType(fields)))


def _with_last_mark(f: Field, other: Field | None) -> Field:
    if other is None or _START not in f.metadata or other.metadata.get(_MARK) is None:
        return f
    counter, mark = _counter(f), int(other.metadata[_MARK])
    if counter.mark is not None and (mark - counter.mark) * counter.step <= 0:
        return f
    return replace(f, metadata={**f.metadata, _MARK: mark})


def has_identity(current: Snapshot) -> bool:
    """Whether writers must make values of identity columns."""
    return bool(_identity_fields(current))


def refuse_identity(current: Snapshot) -> None:
    """Refuse to add rows where many tasks write, or the schema changes, since the values need one counter.

    Raises `DeltaError`: reason ``"unsupported-feature"``; the column is named.
    """
    for f in _identity_fields(current):
        raise DeltaError(
            f"column {f.name} is an identity column ({_START}), whose values are not made where tasks write files: add "
            "rows with append, merge or replace_where of pv.delta",
            reason="unsupported-feature",
        )


def refuse_identity_set(current: Snapshot, columns: Iterable[str]) -> None:
    """Refuse to change values of identity columns, as Spark does. Raises `DeltaError`: reason ``"bad-assignment"``."""
    names = {f.name for f in _identity_fields(current)}
    for name in columns:
        if name in names:
            raise DeltaError(f"column {name} is an identity column: its values cannot be set", reason="bad-assignment")


def _identity_fields(current: Snapshot) -> Sequence[Field]:
    if not supports(current.protocol, "identityColumns"):
        return ()
    return [f for f in parse_schema(current.metadata.schema_string).fields if _START in f.metadata]


def _counter(f: Field) -> _Counter:
    told: Any = f.metadata
    try:
        start, step = int(told[_START]), int(told[_STEP])
        mark = None if told.get(_MARK) is None else int(told[_MARK])
    except (KeyError, TypeError, ValueError):
        step = 0
    if not step:
        raise DeltaError(f"identity column {f.name} has no start and step that are numbers", reason="broken-log")
    return _Counter(f.name, start, step, mark, str(told.get(_EXPLICIT, False)).lower() == "true")
