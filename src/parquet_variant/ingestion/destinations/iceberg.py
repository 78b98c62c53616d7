"""An Iceberg table as the destination of an ingest: tasks write data files, and the driver commits them once.

`IcebergWritePlan` writes the data files, and the package `iceberg` commits them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa

from parquet_variant.array.capsules import EXTENSION_METADATA
from parquet_variant.choices import Mode
from parquet_variant.encoding.cast.targets import VARIANT_STORAGE
from parquet_variant.errors import IcebergError, TableError, VariantError
from parquet_variant.iceberg.catalogs.catalog import LoadedTable
from parquet_variant.iceberg.catalogs.opening import CatalogOption, catalog_properties, find_table
from parquet_variant.iceberg.locations import normal_location
from parquet_variant.iceberg.reading.snapshot import newest_snapshot
from parquet_variant.iceberg.reading.table_files import TableFile
from parquet_variant.iceberg.writing.commit import check_writable, commit_snapshot
from parquet_variant.iceberg.writing.create import TableDefinition, new_table
from parquet_variant.iceberg.writing.snapshot_change import SnapshotChange
from parquet_variant.iceberg.writing.write import write_plan
from parquet_variant.iceberg.writing.write_plan import IcebergWritePlan
from parquet_variant.ingestion.destination import Destination, Work
from parquet_variant.ingestion.request import IngestRequest
from parquet_variant.ingestion.splits import Split
from parquet_variant.ingestion.task import SplitRows, TaskPlan, WrittenSplits
from parquet_variant.io.filesystems import absolute
from parquet_variant.io.staging import Staging, check_mode
from parquet_variant.schema.shredding_schema import ShreddingSchema
from parquet_variant.tables.storage import is_uncommitted


class IcebergDestination(Destination):
    """An Iceberg table that an ingest appends to or overwrites. A new table is planned when the tasks start.

    Data files are written to their final place, because no reader sees them before the commit. Only quarantined lines
    are staged, below the table's location.
    """

    def __init__(self, request: IngestRequest, table: LoadedTable | None) -> None:
        location = request.dest if table is None else normal_location(table.metadata.location)
        super().__init__(request, Staging.into(location), _write)
        self._table, self._location = table, location
        self._plan: IcebergWritePlan | None = None
        self._is_uncommitted = True  # False if a snapshot may list the files of this job.

    @property
    def bad_records_path(self) -> str:
        """The directory of quarantined lines."""
        return super().bad_records_path.replace(self.dest.rstrip("/"), self._location.rstrip("/"), 1)

    def work(self, plan: TaskPlan) -> Work:
        """Plan the table, and return the function that every task runs."""
        if self._table is None:
            variant = pa.field(self._request.column, VARIANT_STORAGE, metadata=EXTENSION_METADATA)
            by = self._request.partition_by
            fields = [variant if field.name == variant.name else field for field in plan.fields] or [variant]
            catalog, identifier = find_table(self._request.dest, self._request.catalog)
            asked = TableDefinition(partition_by=tuple(by.names))
            self._table = new_table(catalog, identifier, pa.schema([*fields, *by.fields]), asked)
            self._location = normal_location(self._table.metadata.location)
            self._staging = Staging.into(self._location)
        self._staging = self._staging.begin()
        options = {"threads": plan.threads, "encodings": plan.encodings}
        write_plan = _plan(self._table, self._request, plan.schema, **options)
        self._plan = replace(write_plan, job=f"{self._staging.job}-")
        return partial(_write, self._plan, self._request, plan, self._staging)

    def commit(self, written: Sequence[WrittenSplits]) -> list[str]:
        """Commit the files of all tasks as one snapshot."""
        assert self._table is not None and self._plan is not None
        added: list[TableFile] = [file for part in written for file in part.adds]
        bad = [file for part in written for file in part.files]
        overwrites = self._table.exists and self._request.mode == "overwrite"
        change = SnapshotChange(
            "overwrite" if overwrites else "append",
            added=tuple(file.file for file in added if file.file.record_count),
            removes_all=overwrites,
        )
        try:
            if change.added or overwrites or not self._table.exists:
                commit_snapshot(newest_snapshot(self._table), change)
        except BaseException as error:
            self._is_uncommitted = isinstance(error, VariantError) and is_uncommitted(error)
            raise
        root = f"{self._table.metadata.location.rstrip('/')}/"
        self._plan = None
        if bad:
            self._staging.commit(bad, marker=False)
        else:
            self._staging.abort()
        return [file.path.removeprefix(root) for file in added if file.file.record_count]

    def abort(self) -> None:
        """Remove the files that this job wrote, unless a snapshot may list them; they become orphan files then."""
        with suppress(OSError, TableError):
            if self._plan is not None and self._is_uncommitted:
                self._plan.remove_files()
        super().abort()


def open_iceberg(request: IngestRequest) -> IcebergDestination | None:
    """Open the table; return None if it exists and the mode is ``"ignore"``.

    Raises `IcebergError` if the mode is ``"error"`` and the table exists, or if the table has no such Variant column.
    """
    must_write, table = open_table(request.dest, request.mode, request.catalog)
    if not must_write:
        return None
    if table is not None:
        check_writable(table.metadata)
        _check_partitioned_by(table, request)
        _plan(table, request, request.schema or ShreddingSchema.variant())
    return IcebergDestination(request, table)


def open_table(dest: str, mode: Mode, catalog: CatalogOption) -> tuple[bool, LoadedTable | None]:
    """Return whether to write to a table, and the table if it exists. Raises `IcebergError` as `open_iceberg` does."""
    check_mode(mode)
    opened, identifier = find_table(dest, catalog)
    try:
        table = opened.load(identifier)
    except IcebergError as error:
        if error.reason != "no-such-table":
            raise
        return True, None
    if mode == "error":
        raise IcebergError(
            f"the Iceberg table {dest} already exists: use mode='append' or mode='overwrite', or choose another table",
            reason="exists",
            file=dest,
        )
    return mode != "ignore", table


def table_location(dest: str, catalog: CatalogOption) -> str:
    """Return the directory of a table in a catalog; of a table that does not exist, one below the warehouse.

    The catalog may choose another directory when the table is created.
    """
    _, table = open_table(dest, "append", catalog)
    if table is not None:
        return normal_location(table.metadata.location)
    warehouse = catalog_properties(catalog).get("warehouse", "")
    return f"{normal_location(warehouse).rstrip('/')}/{dest}" if "/" in warehouse else absolute(dest)


def _check_partitioned_by(table: LoadedTable, request: IngestRequest) -> None:
    """Refuse other partition columns than those by whose values a table is partitioned."""
    if request.text.json_column is not None:
        return  # The sources may have the columns.
    metadata = table.metadata
    names = [
        ".".join(metadata.schema.by_id[f.source_id][0])
        for f in metadata.spec.fields
        if f.transform.name == "identity" and f.source_id in metadata.schema.by_id
    ]
    if sorted(names) != sorted(request.partition_by.names):
        raise IcebergError(
            f"the table {request.dest} is partitioned by {', '.join(names) or 'no column'}: give partition_by= for the "
            "same columns",
            reason="bad-option",
            file=request.dest,
        )


def _plan(table: LoadedTable, request: IngestRequest, schema: ShreddingSchema, **options: Any) -> IcebergWritePlan:
    write = dict(request.write)
    file_bytes = write.pop("file_bytes", None)
    return write_plan(
        newest_snapshot(table), schema={request.column: schema}, file_bytes=file_bytes, options={**options, **write}
    )


def _write(
    write_plan: IcebergWritePlan,
    request: IngestRequest,
    task_plan: TaskPlan,
    staging: Staging,
    task: int,
    attempt: int,
    splits: list[Split],
) -> WrittenSplits:
    """Write the data files of a task."""
    split_rows = SplitRows(splits, task_plan, request.text, staging, task, attempt)
    row_count = 0

    def columns() -> Iterator[dict[str, Any]]:
        nonlocal row_count
        for rows in split_rows:
            row_count += len(rows)
            yield {**rows.columns(request.column), **request.partition_by.values(rows.variants)}

    files = write_plan.write_files(columns())
    return split_rows.written((), row_count, sum(file.size for file in files), tuple(files))
