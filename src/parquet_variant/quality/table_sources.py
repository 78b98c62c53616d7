"""The data files of Delta and Iceberg tables: their places, partitions and deleted rows.

Owns the common form of both, and reading the live rows of one file. Leaves the meaning of logs and manifests to `delta`
and `iceberg`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from typing import Any

import pyarrow as pa

from parquet_variant.arrays.parts import nested_array
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import VariantFileError
from parquet_variant.files.parquet.format.files import ParquetSource

_EPOCH = date(1970, 1, 1)


@dataclass(frozen=True)
class TableFileRows:
    """A data file of a table: its place and partition, whether it has deleted rows, and the description in the log."""

    source: ParquetSource
    has_deletes: bool
    described: Any


@dataclass(frozen=True)
class TableRows:
    """The rows of a table at a version.

    `name`, `version`: the table and its version, for messages.
    `stored_column`: the Variant column, as the files name it.
    `files`: the data files.
    `read`: returns the live rows of a file.
    `reads_files`: whether the Variant column of the files is that of the table, so that footers describe the table.
    """

    name: str
    version: str
    stored_column: str
    files: Sequence[TableFileRows]
    read: Callable[[TableFileRows], VariantArray]
    reads_files: bool = True


# ---- Delta


def delta_rows(table: Any, column: str | None, version: int | None, timestamp: Any) -> TableRows:
    """Return the rows of a Delta table. Raises `DeltaError` and `TableError` as `pv.open` does."""
    from parquet_variant.tables.delta.file_locations import partition_column, relative_path
    from parquet_variant.tables.delta.log.file_actions import iter_adds
    from parquet_variant.tables.delta.log.snapshot import Snapshot, snapshot
    from parquet_variant.tables.delta.reading.read import PLACES
    from parquet_variant.tables.table_scan import variant_place

    current = table if isinstance(table, Snapshot) else snapshot(table, version=version, timestamp=timestamp)
    place = variant_place(current.schema, column)
    fields = [field for field in current.schema.fields if field.name in current.partition_columns]
    values = [partition_column(current.files, field) for field in fields]
    files = []
    for number, add in enumerate(iter_adds(current.files.select(PLACES))):
        filesystem, path = current.storage.filesystem(relative_path(current.storage, add.path))
        partition = tuple((field.name, column[number]) for field, column in zip(fields, values, strict=True))
        source = ParquetSource(path, filesystem, add.size, partition)
        files.append(TableFileRows(source, add.deletion_vector is not None, add))
    top = current.schema.get(place[0])
    stored = ".".join(place)
    if top is not None and current.column_mapping != "none":
        stored = top.physical_name
    read = partial(_read_delta, current, place)
    reads_files = current.column_mapping == "none" or len(place) == 1
    return TableRows(
        _name_of(table, current.storage.uri), f"version {current.version}", stored, files, read, reads_files
    )


def _read_delta(current: Any, place: Sequence[str], file: TableFileRows) -> VariantArray:
    from parquet_variant.tables.delta.reading.read import read_file, selected_schema

    rows = read_file(current, selected_schema(current, [place[0]]), file.described)
    return _variants_of(rows, place)


def _variants_of(rows: pa.Table, place: Sequence[str]) -> VariantArray:
    return VariantArray.from_storage(nested_array(rows.combine_chunks(), place))


def _name_of(table: Any, location: str) -> str:
    return os.fspath(table) if isinstance(table, str | os.PathLike) else location


# ---- Iceberg


def iceberg_rows(table: Any, column: str | None, version: int | None, timestamp: Any, catalog: Any) -> TableRows:
    """Return the rows of an Iceberg table. Raises `IcebergError` as `pv.open` does."""
    from parquet_variant.tables.iceberg.metadata.partitioning import result_types
    from parquet_variant.tables.iceberg.metadata.schema import shared_schema
    from parquet_variant.tables.iceberg.reading.planning import plan_files
    from parquet_variant.tables.iceberg.reading.snapshot import snapshot
    from parquet_variant.tables.table_scan import variant_place

    current = snapshot(table, catalog=catalog, snapshot_id=version, timestamp=timestamp)
    place = variant_place(shared_schema(current.schema), column)
    files = []
    for file in plan_files(current).files:
        filesystem, path = current.table.files.filesystem(file.path)
        spec = current.metadata.specs[file.file.spec_id]
        types = result_types(spec, current.metadata.schemas_newest_first)
        # The partition has the names of the partition fields and of identity sources.
        values: dict[str, pa.Scalar] = {}
        for field, kind, raw in zip(spec.fields, types, file.file.partition, strict=True):
            text = None if raw is None else _partition_text(str(field.transform), kind.family, raw)
            values[field.name] = pa.scalar(text, pa.string())
        source = ParquetSource(path, filesystem, file.size, tuple(values.items()))
        files.append(TableFileRows(source, bool(file.deletes), file))
    if not files:
        raise VariantFileError(f"the Iceberg table {current.table.name} has no rows", reason="no-rows")
    read = partial(_read_iceberg, current, place)
    # Files keep the name that a column had when they were written.
    reads_files = len(place) == 1 and len(_names_of(current, place[0])) == 1
    version_name = f"snapshot {current.snapshot_id}"
    return TableRows(_name_of(table, current.table.name), version_name, ".".join(place), files, read, reads_files)


def _names_of(current: Any, name: str) -> set[str]:
    """Return the names that a top-level column has had."""
    field_id = next(field.id for field in current.schema.fields if field.name == name)
    schemas = current.metadata.schemas_newest_first
    return {field.name for schema in schemas for field in schema.fields if field.id == field_id}


def _read_iceberg(current: Any, place: Sequence[str], file: TableFileRows) -> VariantArray:
    from parquet_variant.tables.iceberg.reading.data_files import read_file

    rows = read_file(current, file.described, current.schema.select([place[0]]).struct)
    return _variants_of(rows, place)


def _partition_text(transform: str, family: str, raw: Any) -> str:
    """Return a partition value as Iceberg's directory names have it: ``2026-01-31``, ``2026-01``, ``2026``."""
    if transform == "year":
        return str(_EPOCH.year + raw)
    if transform == "month":
        return f"{_EPOCH.year + raw // 12:04}-{raw % 12 + 1:02}"
    if transform == "hour":
        return f"{_EPOCH + timedelta(days=raw // 24)}-{raw % 24:02}"
    if family == "date":
        return str(_EPOCH + timedelta(days=raw))
    return str(raw).lower() if isinstance(raw, bool) else str(raw)
