"""Putting rows into tables: write (create or replace), append, overwrite, and committing files that tasks wrote.

Owns these operations. Files are written by `write_plan`, the definition of new tables is in `create`, commits are in
`commit`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, TypedDict, Unpack, get_args

import pyarrow as pa

from parquet_variant.arrays.parts import one_chunk
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import IcebergError, check_choice
from parquet_variant.ops.shred_variant import infer_shredding_schema
from parquet_variant.support.keywords import with_keywords
from parquet_variant.tables.file_metrics import column_at
from parquet_variant.tables.iceberg.catalogs.catalog import LoadedTable
from parquet_variant.tables.iceberg.catalogs.opening import CatalogOption, find_table, open_catalog
from parquet_variant.tables.iceberg.catalogs.rest import RestCatalog
from parquet_variant.tables.iceberg.catalogs.sql import SqlCatalog
from parquet_variant.tables.iceberg.metadata.partitioning import PartitionSpec
from parquet_variant.tables.iceberg.metadata.updates import assert_schema
from parquet_variant.tables.iceberg.reading.deletes import TableFile
from parquet_variant.tables.iceberg.reading.snapshot import Snapshot, newest_snapshot
from parquet_variant.tables.iceberg.writing.commit import check_writable, commit_snapshot
from parquet_variant.tables.iceberg.writing.create import Names, TableDefinition, merged_schema, new_table, replacement
from parquet_variant.tables.iceberg.writing.manifest_changes import SnapshotChange, has_batch
from parquet_variant.tables.iceberg.writing.write_plan import IcebergWritePlan, plan_write
from parquet_variant.tables.partitions import warn_of_null_partitions
from parquet_variant.tables.row_input import SchemaOption, first_rows, schemas_by_column
from parquet_variant.tables.schema import arrow_schema, from_ddl

# What to do if the table exists; ``"replace"`` gives it a new definition and keeps its history.
IcebergMode: TypeAlias = Literal["error", "append", "overwrite", "ignore", "replace"]


@dataclass(frozen=True, slots=True)
class CommitResult:
    """The result of a write.

    Parameters
    ----------
    snapshot_id
        The snapshot of the table after the write; None if it still has none.
    committed
        False if the batch of a stream had been written before, and nothing was done.
    """

    snapshot_id: int | None
    committed: bool = True


def write(
    table: str | os.PathLike[str],
    data: Any,
    *,
    mode: IcebergMode = "error",
    catalog: CatalogOption = None,
    schema: SchemaOption = None,
    policy: Any = None,
    batch: tuple[str, int] | None = None,
    partition_by: Names = (),
    sort_by: Names = (),
    properties: Mapping[str, str] | None = None,
    location: str | None = None,
    file_bytes: int | None = None,
    storage_options: Mapping[str, str] | None = None,
    **options: Any,
) -> CommitResult:
    """Write rows to a table, which is created in format version 3 if it does not exist; see `pv.write`.

    Raises `IcebergError`: ``"table-exists"``, ``"bad-partitioning"``, ``"bad-property"``, ``"unsupported-type"``,
    ``"unsupported-feature"``, ``"conflict"``.
    """
    check_choice("mode", mode, get_args(IcebergMode), IcebergError)
    asked = TableDefinition.of(partition_by, sort_by, properties, location)
    opened, identifier = find_table(table, catalog, storage_options)
    first, data = first_rows(data)
    try:
        former: LoadedTable | None = opened.load(identifier)
    except IcebergError as error:
        if error.reason != "no-such-table":
            raise
        former = None
    if former is not None and mode == "error":
        raise IcebergError(f"the table {former.name} already exists", reason="table-exists", file=former.name)
    if former is not None and mode == "ignore":
        return CommitResult(newest_snapshot(former).snapshot_id, committed=False)
    if former is not None and mode != "replace":
        run = append if mode == "append" else overwrite
        base = newest_snapshot(former)
        return run(base, data, schema=schema, policy=policy, batch=batch, file_bytes=file_bytes, **options)
    change = SnapshotChange("append", batch=batch)
    if former is None:
        base = newest_snapshot(new_table(opened, identifier, first.schema, asked))
    else:
        check_writable(former.metadata)
        replaced = replacement(former.metadata, first.schema, asked)
        change = replace(
            change,
            operation="overwrite",
            is_replacement=True,
            updates=replaced.updates,
            requirements=tuple(assert_schema(former.metadata)),
        )
        base = newest_snapshot(replace(former, metadata=replaced.metadata))
    plan = write_plan(base, schema=schema, policy=policy, first=first, file_bytes=file_bytes, options=options)
    if former is not None:
        base = newest_snapshot(former)
    return _write_and_commit(base, plan, data, change)


def append(
    table: Snapshot,
    data: Any,
    *,
    batch: tuple[str, int] | None = None,
    schema: SchemaOption = None,
    policy: Any = None,
    schema_mode: Literal["merge"] | None = None,
    file_bytes: int | None = None,
    **options: Any,
) -> CommitResult:
    """Add rows, in one commit; see `Table.append`."""
    base = _base_snapshot(table)
    if has_batch(base, batch):
        return CommitResult(base.snapshot_id, committed=False)
    change = SnapshotChange("append", batch=batch)
    columns = None
    if schema_mode is not None:
        if schema_mode != "merge":
            raise IcebergError(f"schema_mode is {schema_mode!r}: use 'merge' or None", reason="bad-option")
        first, data = first_rows(data)
        columns = merged_schema(base.metadata, first.schema)
        if columns is not None:
            updates = (
                {"action": "add-schema", "schema": columns.to_json(), "last-column-id": columns.highest_id},
                {"action": "set-current-schema", "schema-id": -1},
            )
            change = replace(change, updates=updates, requirements=tuple(assert_schema(base.metadata)))
    first, data = first_rows(data) if policy is not None else (None, data)
    files_plan = write_plan(
        base, schema=schema, policy=policy, first=first, file_bytes=file_bytes, options=options, columns=columns
    )
    return _write_and_commit(base, files_plan, data, change)


def overwrite(
    table: Snapshot,
    data: Any,
    *,
    batch: tuple[str, int] | None = None,
    schema: SchemaOption = None,
    policy: Any = None,
    file_bytes: int | None = None,
    **options: Any,
) -> CommitResult:
    """Replace all rows, in one commit; schema, partitioning and properties are kept; see `Table.overwrite`."""
    base = _base_snapshot(table)
    if has_batch(base, batch):
        return CommitResult(base.snapshot_id, committed=False)
    first, data = first_rows(data) if policy is not None else (None, data)
    files_plan = write_plan(base, schema=schema, policy=policy, first=first, file_bytes=file_bytes, options=options)
    return _write_and_commit(base, files_plan, data, SnapshotChange("overwrite", removes_all=True, batch=batch))


def commit_files(
    table: Snapshot,
    files: Iterable[TableFile],
    *,
    mode: Literal["append", "overwrite"] = "append",
    batch: tuple[str, int] | None = None,
) -> CommitResult:
    """Commit files that tasks wrote with a plan (`plan`), once, on the driver; see `IcebergTable.commit_files`."""
    check_choice("mode", mode, ("append", "overwrite"), IcebergError)
    base = _base_snapshot(table)
    if has_batch(base, batch):
        return CommitResult(base.snapshot_id, committed=False)
    added = tuple(file.file for file in files if file.file.record_count)
    change = SnapshotChange(mode, added=added, removes_all=mode == "overwrite", batch=batch)
    return _committed(base, change, base.metadata.spec)


def plan(
    table: Snapshot,
    *,
    schema: SchemaOption = None,
    file_bytes: int | None = None,
    job: str = "",
    **options: Any,
) -> IcebergWritePlan:
    """Return the plan by which tasks of other processes write files for a table; see `commit_files`.

    See `IcebergTable.plan`.
    """
    base = _base_snapshot(table)
    files_plan = write_plan(base, schema=schema, file_bytes=file_bytes, options=options)
    return replace(files_plan, job=job)


def write_plan(
    base: Snapshot,
    *,
    schema: SchemaOption = None,
    policy: Any = None,
    first: pa.Table | None = None,
    file_bytes: int | None = None,
    options: Mapping[str, Any] | None = None,
    columns: Any = None,
) -> IcebergWritePlan:
    """Return the plan of a write.

    `policy`, `first`: how columns without a schema are inferred, and from which rows.
    """
    files_plan = plan_write(base, file_bytes=file_bytes, options=options, columns=columns)
    schemas = schemas_by_column(schema, files_plan.schema)
    if policy is not None and first is not None:
        schemas = _inferred_schemas(files_plan, first, policy) | schemas
    return replace(files_plan, shredding=schemas)


def _inferred_schemas(files_plan: IcebergWritePlan, first: pa.Table, policy: Any) -> dict[str, Any]:
    schemas = {}
    for place in files_plan.columns.variant_places():
        if place[0] in first.column_names:
            array = VariantArray.from_storage(one_chunk(column_at(first, place)))
            schemas[".".join(place)] = infer_shredding_schema(array.to_unshredded(), policy)
    return schemas


def _base_snapshot(table: Snapshot) -> Snapshot:
    base = newest_snapshot(table.table, table.branch)
    check_writable(base.metadata)
    return base


def _write_and_commit(base: Snapshot, files_plan: IcebergWritePlan, data: Any, change: SnapshotChange) -> CommitResult:
    files = [file for file in files_plan.write_files(data) if file.file.record_count]
    added = tuple(file.file for file in files)
    return _committed(base, replace(change, added=added), files_plan.spec, [file.path for file in files])


def _committed(
    base: Snapshot, change: SnapshotChange, spec: PartitionSpec, written: Sequence[str] = ()
) -> CommitResult:
    """Commit a change, unless another writer commits the same batch meanwhile; `written`: see `commit_snapshot`."""
    fields = enumerate(spec.fields)
    values = {f.name: [file.partition[n] for file in change.added] for n, f in fields if f.transform.name != "void"}
    warn_of_null_partitions(values, sum(file.record_count for file in change.added))
    try:
        return CommitResult(commit_snapshot(base, change, written).snapshot_id)
    except IcebergError as error:
        if error.reason != "batch-committed":
            raise
        return CommitResult(newest_snapshot(base.table.refreshed(), base.branch).snapshot_id, committed=False)


class CreateKeywords(TypedDict, total=False):
    """The keywords of `write` for a new table."""

    partition_by: Names
    sort_by: Names
    properties: Mapping[str, str] | None
    location: str | None
    catalog: CatalogOption
    storage_options: Mapping[str, str] | None


def create_namespace(namespace: str, *, catalog: CatalogOption) -> None:
    """Create a namespace in a catalog, unless it exists.

    Parameters
    ----------
    namespace
        Its name, with dots between its parts.
    catalog
        The catalog; see `snapshot`.

    Raises
    ------
    IcebergError
        ``"bad-catalog"``, ``"no-connection"``.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     catalog = {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": folder}
    ...     pv.create_namespace("db", catalog=catalog)
    ...     _ = pv.write("db.events", {"n": [1]}, catalog=catalog)
    ...     pv.open("db.events", catalog=catalog).to_arrow().to_pydict()
    {'n': [1]}
    """
    opened = open_catalog(catalog)
    if not isinstance(opened, RestCatalog | SqlCatalog):
        raise IcebergError("a directory has no namespaces: give catalog=", reason="bad-catalog")
    opened.create_namespace(tuple(namespace.split(".")))


def drop_table(
    table: str | os.PathLike[str],
    *,
    catalog: CatalogOption = None,
    storage_options: Mapping[str, str] | None = None,
) -> None:
    """Remove a table from its catalog; its data files are kept; see `IcebergTable.drop`."""
    opened, identifier = find_table(table, catalog, storage_options)
    opened.drop(identifier)


@with_keywords(CreateKeywords, write)
def create_table(table: str | os.PathLike[str], schema: pa.Schema | str, **options: Unpack[CreateKeywords]) -> None:
    """Create an empty table; see `pv.create`."""
    if isinstance(schema, str):
        schema = arrow_schema(from_ddl(schema))
    if not isinstance(schema, pa.Schema):
        raise IcebergError(f"schema is a {type(schema).__name__}: give a pyarrow schema or DDL", reason="bad-schema")
    write(table, schema.empty_table(), mode="error", **options)
