"""Delta tables as sources: schemas and statistics of the log in Iceberg's form.

Owns the translation of types and statistics, and what of Delta other formats cannot express.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa

from parquet_variant.arrays.parts import one_chunk
from parquet_variant.errors import TableError
from parquet_variant.layouts.parquet_reader import open_parquet
from parquet_variant.support.fork_safety import cached_property
from parquet_variant.tables.delta.file_locations import deleted_rows, relative_path
from parquet_variant.tables.delta.log.file_actions import iter_adds
from parquet_variant.tables.delta.log.snapshot import Snapshot
from parquet_variant.tables.delta.protocol.actions import Add, DeletionVector, was_float
from parquet_variant.tables.delta.statistics import StatsTable, decode_bounds_array, read_stats, with_json_stats
from parquet_variant.tables.file_metrics import physical_place
from parquet_variant.tables.iceberg.locations import absolute_location
from parquet_variant.tables.iceberg.metadata.manifests import METRICS, DataFile
from parquet_variant.tables.iceberg.metadata.schema import Schema, raw_values, to_bytes
from parquet_variant.tables.iceberg.writing.write_plan import in_type, metric_leaves
from parquet_variant.tables.partitions import partition_array
from parquet_variant.tables.pruning import bounds_to_bytes, double_bounds, later_maxima, without_inverted
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
        locations, schema = {file.location for file in files}, self.snapshot.schema
        rows = self.snapshot.files
        mask = pa.array([self._located(path) in locations for path in rows["path"].to_pylist()], pa.bool_())
        rows = with_json_stats(rows.filter(mask), schema)
        stats = read_stats(rows, schema)
        metrics = []
        for way, (_, f) in zip(leaves(schema), metric_leaves(columns.schema.struct), strict=True):
            nulls = stats.get("nullCount", physical_place(way)).to_pylist()
            metrics.append((f, nulls, *_bounds(stats, way, f.type)))
        for number, add in enumerate(iter_adds(rows)):
            count = stats.num_records[number].as_py()
            count = self._footer_rows(add) if count is None else count
            counted: dict[str, Any] = {name: {} for name in METRICS}
            for f, nulls, lower, upper in metrics:
                if nulls[number] is not None and 0 <= nulls[number] <= count:
                    counted["value_counts"][f.id], counted["null_value_counts"][f.id] = count, nulls[number]
                sides = lower[number], upper[number]
                if f.type == VARIANT and None in sides:
                    # Some readers take a Variant without bounds for unshredded.
                    sides = (_EMPTY_BOUNDS, _EMPTY_BOUNDS) if self.snapshot.shredding_enabled else (None, None)
                for name, bound in zip(("lower_bounds", "upper_bounds"), sides, strict=True):
                    if bound is not None:
                        counted[name][f.id] = bound
            partition = []
            for column, f in zip(self.snapshot.partition_fields, columns.partition_fields, strict=True):
                assert isinstance(f.type, PrimitiveType)
                value = partition_array(add.partition_values.get(column.physical_name), column.type, 1)
                partition += raw_values(in_type(value, f.type), f.type)
            yield DataFile(self._located(add.path), "parquet", count, add.size, 0, tuple(partition), **counted)

    def _footer_rows(self, add: Add) -> int:
        """Return the number of rows of a file whose statistics do not state it."""
        storage = self.snapshot.storage
        filesystem, path = storage.filesystem(relative_path(storage, add.path))
        try:
            with open_parquet(path, filesystem=filesystem) as opened:
                return int(opened.metadata.num_rows)
        except (OSError, pa.ArrowException) as error:
            raise TableError(
                f"the data file cannot be read, and the log does not state its number of rows: {error}",
                reason="bad-data-file",
                file=add.path,
            ) from None

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


def _bounds(stats: StatsTable, way: tuple[Field, ...], kind: TableType) -> list[list[bytes | None]]:
    """Return the lower and the upper bounds of a column in each file as Iceberg has them; None where unknown."""
    bounds = [stats.get(name, physical_place(way)) for name in ("minValues", "maxValues")]
    is_exact = isinstance(kind, PrimitiveType) and kind != VOID and not was_float(way[-1])
    if not is_exact or any(bound is None for bound in bounds):
        return [[None] * len(stats.table)] * 2
    lower, upper = map(one_chunk, bounds)
    if kind == VARIANT:
        rows = (decode_bounds_array(side).to_pylist() for side in (lower, upper))
        return [[None if row is None else row["metadata"] + row["value"] for row in side] for side in rows]
    assert isinstance(kind, PrimitiveType)
    if pa.types.is_floating(lower.type):
        lower, upper = double_bounds(lower), double_bounds(upper)
    elif pa.types.is_timestamp(upper.type):
        upper = later_maxima(upper)
    raws = [raw_values(in_type(side, kind), kind) for side in without_inverted(lower, upper)]
    if pa.types.is_floating(lower.type):
        raws = [
            [None if raw is None else raw or zero for raw in side] for side, zero in zip(raws, (-0.0, 0.0), strict=True)
        ]
    return [[None if raw is None else to_bytes(raw, kind) for raw in side] for side in raws]
