"""Delta tables as sources: schemas and statistics of the log in Iceberg's form.

Owns the translation of types and statistics, and what of Delta other formats cannot express.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

import pyarrow as pa

from parquet_variant.errors import IcebergError, TableError, VariantError
from parquet_variant.layouts.parquet_reader import open_parquet
from parquet_variant.support.fork_safety import cached_property
from parquet_variant.tables.delta import z85
from parquet_variant.tables.delta.file_locations import deleted_rows, relative_path
from parquet_variant.tables.delta.log.file_actions import iter_adds
from parquet_variant.tables.delta.log.snapshot import Snapshot
from parquet_variant.tables.delta.protocol.actions import Add, DeletionVector, was_float
from parquet_variant.tables.delta.statistics import parsed_stats, value_at, with_json_stats
from parquet_variant.tables.iceberg.locations import absolute_location
from parquet_variant.tables.iceberg.metadata.manifests import DataFile
from parquet_variant.tables.iceberg.metadata.schema import Schema, type_name
from parquet_variant.tables.iceberg.metadata.values import from_json, raw_values, to_bytes
from parquet_variant.tables.iceberg.writing.write_plan import in_type, metric_leaves
from parquet_variant.tables.partitions import partition_array
from parquet_variant.tables.path_bounds import bounds_to_bytes, split_bounds
from parquet_variant.tables.publishing.source import (
    FieldIds,
    ListedFile,
    Rows,
    Source,
    SourceColumns,
    cannot_publish,
)
from parquet_variant.tables.schema import (
    VARIANT,
    VOID,
    Field,
    Place,
    PrimitiveType,
    StructType,
    TableType,
    leaves,
    parts,
    with_parts,
)
from parquet_variant.types import TYPE_OF_ARROW

_NAMES = {row.delta for row in TYPE_OF_ARROW.values() if row.delta and row.iceberg} | {"variant", "void"}
_NESTED_IDS = "delta.columnMapping.nested.ids"
# Type changes of Delta that Iceberg's schema evolution does not have end in these types.
_PROMOTIONS = {"short", "integer", "long", "double", "timestamp_ntz"}
_INTEGERS = {"byte", "short", "integer", "long"}
# Delta's writers cut the bounds of timestamps to milliseconds.
_CUT_MICROSECONDS = 999
_EMPTY_BOUNDS = bounds_to_bytes({})


class DeltaSource(Source):
    """A version of a Delta table."""

    format = "delta"

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.location = absolute_location(snapshot.storage.uri)
        self.version = str(snapshot.version)
        self.options = dict(snapshot.storage.options)

    def columns(self, former: Schema | None, last_id: int) -> SourceColumns:
        """See `Source.columns`: ids of column mapping are kept."""
        made = _Columns(self.snapshot, FieldIds(former, last_id), self.location)
        struct = made.struct(self.snapshot.schema, ())
        return SourceColumns(
            Schema(0, struct),
            made.stored_names,
            files_lack_ids=self.snapshot.column_mapping != "id",
            partition_by=tuple(f.name for f in self.snapshot.partition_fields),
        )

    def listed(self) -> Iterator[ListedFile]:
        """See `Source.listed`."""
        files = self.snapshot.files
        columns = (files[name].to_pylist() for name in ("path", "size", "deletionVector"))
        for path, size, vector in zip(*columns, strict=True):
            key = None
            if vector is not None:
                key = f"{vector['storageType']}:{vector['pathOrInlineDv']}@{vector['offset']}"
            yield ListedFile(self._located(path), size, key)

    def _located(self, path: str) -> str:
        return f"{self.location}/{relative_path(self.snapshot.storage, path)}"

    def described(self, columns: SourceColumns, files: Collection[ListedFile]) -> Iterator[DataFile]:
        """See `Source.described`."""
        locations = {file.location for file in files}
        rows = self.snapshot.files
        mask = pa.array([self._located(path) in locations for path in rows["path"].to_pylist()], pa.bool_())
        described = _Statistics(self.snapshot, columns)
        for add in iter_adds(with_json_stats(rows.filter(mask), self.snapshot.schema)):
            yield described.file(add, self._located(add.path))

    def deleted_rows(self, file: ListedFile) -> Rows:
        """See `Source.deleted_rows`."""
        return deleted_rows(self.snapshot.storage, DeletionVector.from_dict(self._vectors[file.location]))

    @cached_property
    def _vectors(self) -> dict[str, dict[str, Any]]:
        files = self.snapshot.files
        vectors = zip(files["path"].to_pylist(), files["deletionVector"].to_pylist(), strict=True)
        return {self._located(path): vector for path, vector in vectors if vector is not None}


class _Columns:
    """Translates the columns of a Delta table."""

    def __init__(self, snapshot: Snapshot, ids: FieldIds, location: str) -> None:
        self.is_mapped = snapshot.column_mapping != "none"
        self.ids, self.location = ids, location
        self.stored_names: dict[int, str] = {}

    def struct(self, kind: StructType, place: Place) -> StructType:
        return StructType(tuple(self.field(f, (*place, f.name)) for f in kind.fields))

    def field(self, f: Field, place: Place) -> Field:
        for change in f.metadata.get("delta.typeChanges") or ():
            before, after = str(change.get("fromType")), str(change.get("toType"))
            if after.startswith("decimal"):
                scales = [name.rstrip(")").partition(",")[2] for name in (before, after)]
                if before.startswith("decimal") and scales[0] == scales[1]:
                    continue
            elif after in _PROMOTIONS and not (after == "double" and before in _INTEGERS):
                continue
            raise cannot_publish(
                f"column {'.'.join(place)} was widened from {before} to {after}, which Iceberg does not allow",
                self.location,
            )
        kind, comment = self.checked(f.type, place), f.metadata.get("comment")
        number = f.field_id if self.is_mapped else None
        # Parents have lower ids than their parts, as some readers expect.
        number = self.ids.take(place, kind) if number is None else number
        if f.physical_name != f.name:
            self.stored_names[number] = f.physical_name
        doc = {"doc": comment} if isinstance(comment, str) else {}
        return Field(f.name, self.with_ids(kind, place, f, f.physical_name), f.nullable, doc, field_id=number)

    def checked(self, kind: TableType, place: Place) -> TableType:
        """Return a type with the integers that Iceberg has."""
        if not isinstance(kind, PrimitiveType):
            return kind
        if kind.name not in _NAMES and kind.family != "decimal":
            raise cannot_publish(f"column {'.'.join(place)} is {kind.name}, which other formats lack", self.location)
        return PrimitiveType("integer") if kind.name in ("byte", "short") else kind

    def with_ids(self, kind: TableType, place: Place, column: Field, key: str) -> TableType:
        if isinstance(kind, StructType):
            return self.struct(kind, place)
        return with_parts(kind, [self.part(f, (*place, f.name), column, f"{key}.{f.name}") for f in parts(kind)])

    def part(self, f: Field, place: Place, column: Field, key: str) -> Field:
        """Return a part of a list or map with its field id."""
        kind = self.checked(f.type, place)
        if self.is_mapped:
            number = (column.metadata.get(_NESTED_IDS) or {}).get(key)
            if number is None:
                raise cannot_publish(
                    f"column {'.'.join(place[:-1])} is a list or map in a table with column mapping, and the table has "
                    f"no {_NESTED_IDS} for it: readers would not find its elements in the files",
                    self.location,
                )
        else:
            number = self.ids.take(place, kind)
        return replace(f, field_id=int(number), type=self.with_ids(kind, place, column, key))


class _Statistics:
    """Translates the statistics and partition values of a log's files."""

    def __init__(self, snapshot: Snapshot, columns: SourceColumns) -> None:
        self.snapshot, self.columns = snapshot, columns
        self.partitions = snapshot.partition_fields
        self.kinds = [f.type for f in columns.partition_fields]
        # The places of leaves under the names in data files, and whether bounds of the log are exact.
        self.leaves = [
            (tuple(part.physical_name for part in way), f, not was_float(way[-1]))
            for way, (_, f) in zip(leaves(snapshot.schema), metric_leaves(columns.schema.struct), strict=True)
        ]

    def file(self, add: Add, location: str) -> DataFile:
        stats = parsed_stats(add.stats)
        rows = stats.get("numRecords")
        if not isinstance(rows, int):
            rows = _footer_rows(self.snapshot, add)
        lower: dict[int, bytes] = {}
        upper: dict[int, bytes] = {}
        values: dict[int, int] = {}
        nulls: dict[int, int] = {}
        for place, f, is_exact in self.leaves:
            count = value_at(stats.get("nullCount"), place)
            if isinstance(count, int) and not isinstance(count, bool) and 0 <= count <= rows:
                values[f.id], nulls[f.id] = rows, count
            low, high = (
                _bound(value_at(stats.get(name), place), f, up=name == "maxValues") if is_exact else None
                for name in ("minValues", "maxValues")
            )
            if low is not None and high is not None and f.type != VARIANT and low > high:  # damaged
                low = high = None
            for bounds, bound in ((lower, low), (upper, high)):
                if bound is not None and isinstance(f.type, PrimitiveType):
                    bounds[f.id] = bound if f.type == VARIANT else to_bytes(bound, f.type)
            if f.type == VARIANT and not (f.id in lower and f.id in upper):
                lower.pop(f.id, None)
                upper.pop(f.id, None)
                if self.snapshot.shredding_enabled:
                    # Some readers take a Variant without bounds for unshredded.
                    lower[f.id] = upper[f.id] = _EMPTY_BOUNDS
        return DataFile(
            location, "parquet", rows, add.size, 0, self.partition(add), value_counts=values,
            null_value_counts=nulls, lower_bounds=lower, upper_bounds=upper,
        )  # fmt: skip

    def partition(self, add: Add) -> tuple[Any, ...]:
        values = []
        for f, kind in zip(self.partitions, self.kinds, strict=True):
            assert isinstance(kind, PrimitiveType)
            array = partition_array(add.partition_values.get(f.physical_name), f.type, 1)
            values.append(raw_values(in_type(array, kind), kind)[0])
        return tuple(values)


def _bound(value: Any, f: Field, *, up: bool) -> Any:
    """Return a bound of the log, never tighter: raw, or as bytes for a Variant; None if it is unknown."""
    if value is None or not isinstance(f.type, PrimitiveType) or f.type == VOID:
        return None
    with suppress(VariantError, ValueError, TypeError, ArithmeticError, OverflowError):
        if f.type == VARIANT:
            return b"".join(split_bounds(z85.decode(str(value))))
        raw = _raw_bound(value, f.type, up=up)
        to_bytes(raw, f.type)  # raises an error for a value that is out of range
        return raw
    return None


def _raw_bound(value: Any, kind: PrimitiveType, *, up: bool) -> Any:
    family = kind.family
    if family in ("integer", "long") and isinstance(value, int) and not isinstance(value, bool):
        return value
    if family in ("float", "double") and isinstance(value, (int, Decimal)):
        number = float(value)
        return number if number else (0.0 if up else -0.0)
    if family == "decimal" and isinstance(value, (int, Decimal)):
        scaled = Decimal(value).scaleb(kind.numbers[1])
        return int(scaled.to_integral_value(ROUND_CEILING if up else ROUND_FLOOR))
    if family == "string" and isinstance(value, str):
        return value
    if family == "date" and isinstance(value, str):
        return from_json(value[:10], kind)
    if family in ("timestamp", "timestamp_ntz") and isinstance(value, str):
        return from_json(value, kind) + (_CUT_MICROSECONDS if up else 0)
    raise IcebergError(f"a bound of type {type_name(kind)} is {value!r}", reason="bad-stats")


def _footer_rows(snapshot: Snapshot, add: Add) -> int:
    """Return the number of rows of a file whose statistics do not state it."""
    filesystem, path = snapshot.storage.filesystem(relative_path(snapshot.storage, add.path))
    try:
        with open_parquet(path, filesystem=filesystem) as opened:
            return int(opened.metadata.num_rows)
    except (OSError, pa.ArrowException) as error:
        raise TableError(
            f"the data file cannot be read, and the log does not state its number of rows: {error}",
            reason="bad-data-file",
            file=add.path,
        ) from None
