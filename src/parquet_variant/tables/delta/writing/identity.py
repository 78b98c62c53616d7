"""Values of identity columns (PROTOCOL.md, "Identity Columns"), generated for rows that one process adds.

Owns the next values and the high water mark. The mark is part of the table's metadata, so two commits that take the
same values are in conflict, and one of them must be planned again. Leaves that to the operations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from parquet_variant.errors import DeltaError
from parquet_variant.tables.delta.log.snapshot import Snapshot
from parquet_variant.tables.delta.protocol.actions import Metadata
from parquet_variant.tables.delta.protocol.features import supports
from parquet_variant.tables.delta.protocol.schema import parse_schema, schema_json
from parquet_variant.tables.schema import Field, StructType
from parquet_variant.tables.write_plan import Identities

_START, _STEP = "delta.identity.start", "delta.identity.step"
_MARK, _EXPLICIT = "delta.identity.highWaterMark", "delta.identity.allowExplicitInsert"
_LIMITS = np.iinfo(np.int64)


@dataclass
class _Counter:
    """The state of one identity column; `mark` is the last generated value."""

    name: str
    start: int
    step: int
    mark: int | None
    explicit: bool

    def take(self, count: int) -> pa.Array:
        """Return the next values."""
        if not count:
            return pa.array([], pa.int64())
        after = -1 if self.mark is None else (self.mark - self.start) // self.step
        first = self.start + max(after + 1, 0) * self.step
        last = first + (count - 1) * self.step
        if not _LIMITS.min <= last <= _LIMITS.max:
            raise DeltaError(
                f"identity column {self.name} has no values left for {count} rows: the last value is {self.mark}, the "
                f"step {self.step}",
                reason="identity-overflow",
            )
        self.mark = last
        return pa.array(np.arange(count, dtype=np.int64) * self.step + first)


class IdentityValues(Identities):
    """Fills in the identity columns that rows lack, and provides the table's metadata with the new marks."""

    def __init__(self, current: Snapshot) -> None:
        self._metadata = current.metadata
        self._counters = [_counter(f) for f in identity_fields(current)]

    def fill(self, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """Yield the tables with their identity columns filled in, or refuse values that the table does not allow."""
        for table in tables:
            names = {name.lower() for name in table.column_names}
            for counter in self._counters:
                # As in delta-spark, explicit values do not move the mark, which is the last generated value.
                if counter.name.lower() not in names:
                    table = table.append_column(counter.name, counter.take(len(table)))
                elif not counter.explicit:
                    raise DeltaError(
                        f"column {counter.name} is an identity column, whose values are generated "
                        "(delta.identity.allowExplicitInsert is false): leave the column out",
                        reason="identity-given",
                    )
            yield table

    @property
    def metadata(self) -> Metadata | None:
        """The table's metadata with the new marks; None if these did not change."""
        schema = parse_schema(self._metadata.schema_string)
        marks = {counter.name: counter.mark for counter in self._counters if counter.mark is not None}
        fields = tuple(
            replace(f, metadata={**f.metadata, _MARK: marks[f.name]}) if f.name in marks else f for f in schema.fields
        )
        new = schema_json(StructType(fields))
        is_changed = any(f.metadata.get(_MARK) != marks.get(f.name, f.metadata.get(_MARK)) for f in schema.fields)
        return replace(self._metadata, schema_string=new) if is_changed else None


def with_last_marks(metadata: Metadata, other: Metadata) -> Metadata:
    """Return metadata whose identity columns do not repeat values that another version of the table generated."""
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


def refuse_identity(current: Snapshot) -> None:
    """Refuse to add rows in several tasks, or with a change of the schema: the values need one counter."""
    for f in identity_fields(current):
        raise DeltaError(
            f"column {f.name} is an identity column ({_START}), whose values cannot be generated in parallel tasks: "
            "add rows with Table.append, merge or overwrite",
            reason="unsupported-feature",
        )


def refuse_identity_set(current: Snapshot, columns: Iterable[str]) -> None:
    """Refuse to update identity columns, as delta-spark does."""
    for name in {f.name for f in identity_fields(current)} & set(columns):
        raise DeltaError(
            f"column {name} is an identity column, which cannot be updated: leave it out", reason="bad-assignment"
        )


def identity_fields(current: Snapshot) -> Sequence[Field]:
    """Return the columns whose values writers must generate."""
    if not supports(current.protocol, "identityColumns"):
        return ()
    return [f for f in parse_schema(current.metadata.schema_string).fields if _START in f.metadata]


def _counter(f: Field) -> _Counter:
    metadata: Any = f.metadata
    try:
        start, step = int(metadata[_START]), int(metadata[_STEP])
        mark = None if metadata.get(_MARK) is None else int(metadata[_MARK])
    except (KeyError, TypeError, ValueError):
        step = 0
    if not step:
        raise DeltaError(
            f"identity column {f.name} has no integer {_START} and non-zero {_STEP} in its metadata",
            reason="broken-log",
        )
    return _Counter(f.name, start, step, mark, str(metadata.get(_EXPLICIT, False)).lower() == "true")
