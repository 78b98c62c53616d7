"""Putting rows into tables: write (create or replace), append, overwrite, and committing files that tasks wrote.

Owns these operations, and the definition of new tables and of those that replace others of their name. Files are
written by `write_plan`, commits are in `commit`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from itertools import count
from typing import Any, Literal, TypedDict, Unpack, get_args

import pyarrow as pa

from parquet_variant.errors import IcebergError, check_choice, check_mapping, strings_of
from parquet_variant.io.filesystems import path_text
from parquet_variant.support.options import TableMode, with_keywords
from parquet_variant.support.records import Record
from parquet_variant.tables import schema as shared
from parquet_variant.tables.commits import CommitResult
from parquet_variant.tables.iceberg.catalogs.catalog import Catalog, LoadedTable, NamedCatalog
from parquet_variant.tables.iceberg.catalogs.opening import CatalogOption, find_table, open_catalog
from parquet_variant.tables.iceberg.locations import absolute_location
from parquet_variant.tables.iceberg.metadata import schema as schemas
from parquet_variant.tables.iceberg.metadata import updates
from parquet_variant.tables.iceberg.metadata.partitioning import PartitionSpec, sort_order_of, spec_of
from parquet_variant.tables.iceberg.metadata.table_metadata import TableMetadata, new_metadata
from parquet_variant.tables.iceberg.reading.planning import parquet_files
from parquet_variant.tables.iceberg.reading.snapshot import Snapshot, TableFile, newest_snapshot
from parquet_variant.tables.iceberg.writing.commit import SnapshotChange, check_writable, commit_snapshot
from parquet_variant.tables.iceberg.writing.write_plan import IcebergWritePlan, WriteProperties, plan_write
from parquet_variant.tables.partitions import warn_of_null_partitions
from parquet_variant.tables.row_input import FILES_WITH_TYPES, SchemaOption, first_rows, rows_by_column
from parquet_variant.tables.write_plan import refuse_files_in

_PROMOTIONS = {"integer": {"long"}, "float": {"double"}, "date": {"timestamp_ntz", "timestamp_ns"}}


def can_promote(old: shared.TableType, new: shared.TableType) -> bool:
    """Return whether a column of one type may become one of another without rewriting files.

    >>> can_promote(shared.PrimitiveType("decimal(9,2)"), shared.PrimitiveType("decimal(12,2)"))
    True
    """
    if old == shared.VOID:
        return True
    if not isinstance(old, shared.PrimitiveType) or not isinstance(new, shared.PrimitiveType):
        return False
    if old.family == new.family == "decimal":
        return old.numbers[1] == new.numbers[1] and new.numbers[0] > old.numbers[0]
    return new.name in _PROMOTIONS.get(old.name, ())


def _merged_types(
    old: shared.TableType, new: shared.TableType, ids: Iterator[int], place: shared.Place
) -> shared.TableType:
    """Return the type of a column for values of two types that are not nested in the same way."""
    if old == shared.VOID:
        return schemas.with_new_ids(new, ids)
    if can_promote(old, new):
        return new
    is_same_family = (
        isinstance(old, shared.PrimitiveType) and isinstance(new, shared.PrimitiveType) and old.family == new.family
    )
    if is_same_family or new == shared.VOID or can_promote(new, old):
        return old
    raise IcebergError(
        f"column {'.'.join(place)!r} is {schemas.type_name(old)}, but the data has {schemas.type_name(new)}: cast the "
        "data",
        reason="type-mismatch",
    )


Names = Sequence[str] | str
_VECTORIZATION = "read.parquet.vectorization.enabled"


class TableDefinition(Record):
    """The definition of a new table, apart from its columns."""

    partition_by: tuple[str, ...] = ()
    sort_by: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    location: str = ""

    @classmethod
    def of(
        cls, partition_by: Names, sort_by: Names, properties: Mapping[str, str] | None, location: str | None
    ) -> TableDefinition:
        """Read the arguments of `write`. Raises `IcebergError`: reason ``"bad-option"`` or ``"bad-property"``."""
        names = (strings_of("partition_by", partition_by), strings_of("sort_by", sort_by))
        made = cls(
            *names,
            checked_properties({} if properties is None else properties),
            path_text(location) if location else "",
        )
        WriteProperties(made.properties).check()
        return made


def checked_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return properties whose names and values are strings. Raises `IcebergError`: reason ``"bad-property"``."""
    check_mapping("properties", properties, IcebergError)
    for name, value in properties.items():
        if not isinstance(name, str) or not isinstance(value, str):
            problem = f"the property {name!r} is {value!r}: names and values of properties are strings"
            raise IcebergError(problem, reason="bad-property")
    return dict(properties)


def new_table(catalog: Catalog, identifier: tuple[str, ...], arrow: pa.Schema, options: TableDefinition) -> LoadedTable:
    """Return a table for some columns that does not exist yet; its first commit creates it."""
    schema = checked_schema(schemas.schema_of_arrow(arrow))
    spec = spec_of(options.partition_by, schema)
    order = sort_order_of(options.sort_by, schema)
    # A catalog of names chooses the location unless the user did.
    location = absolute_location(options.location) if options.location else ""
    properties = {**reader_properties(schema, options.properties), **options.properties}
    table = catalog.stage(identifier, new_metadata(location, schema, spec, order, properties))
    refuse_files_in(table.files.root, "iceberg")
    return table


def reader_properties(schema: schemas.Schema, properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties that readers of a table with Variants need and that are not set.

    The vectorized reader of Iceberg 1.12 for Spark fails on files with shredded Variants, also in queries of other
    columns.
    """
    is_needed = _VECTORIZATION not in properties and any(True for _ in shared.reachable_variants(schema.struct))
    return {_VECTORIZATION: "false"} if is_needed else {}


def checked_schema(schema: schemas.Schema) -> schemas.Schema:
    """Return a schema that tables may have. Raises `TableError`: reason ``"bad-schema"``."""
    if schema.highest_id > schemas.MAX_FIELD_ID:
        raise IcebergError(f"the schema has more than {schemas.MAX_FIELD_ID} fields", reason="bad-schema")
    shared.check_schema(schema.struct)
    if not all(f.name for f in shared.all_fields(schema.struct)):
        raise IcebergError("a column has no name: rename it", reason="bad-schema")
    for f in schema.fields:
        if f.name in schemas.METADATA_COLUMNS:
            raise IcebergError(f"column {f.name!r} has the name of a metadata column: rename it", reason="bad-schema")
    return schema


def replacement(former: TableMetadata, arrow: pa.Schema, definition: TableDefinition) -> tuple[updates.Update, ...]:
    """Return the updates that give a table another definition; unchanged columns keep their field ids."""
    ids = count(former.last_column_id + 1)
    fields = []
    for f in schemas.schema_of_arrow(arrow).fields:
        old = former.schema.struct.get(f.name)
        if old is not None and old.name == f.name and schemas.type_name(old.type) == schemas.type_name(f.type):
            fields.append(replace(old, nullable=f.nullable))
        else:
            fields.append(replace(f, field_id=next(ids), type=schemas.with_new_ids(f.type, ids)))
    schema = checked_schema(schemas.Schema(max(former.schemas) + 1, shared.StructType(tuple(fields))))
    order = sort_order_of(definition.sort_by, schema, order_id=max(former.sort_orders, default=0) + 1)
    spec = updates.next_spec(former, definition.partition_by, schema)
    properties = {**reader_properties(schema, former.properties), **definition.properties}
    return updates.definition_updates(former, schema, spec, order, properties)


def write(
    table: str | os.PathLike[str],
    data: Any,
    *,
    mode: TableMode = "error",
    catalog: CatalogOption = None,
    partition_by: Names = (),
    sort_by: Names = (),
    properties: Mapping[str, str] | None = None,
    location: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    **options: Any,
) -> CommitResult:
    """Write rows to a table, which is created in format version 3 if it does not exist; see `pv.write`.

    Raises `IcebergError`: ``"table-exists"``, ``"bad-partitioning"``, ``"bad-property"``, ``"unsupported-type"``,
    ``"unsupported-feature"``, ``"conflict"``.
    """
    check_choice("mode", mode, get_args(TableMode), IcebergError)
    definition = TableDefinition.of(partition_by, sort_by, properties, location)
    opened, identifier = find_table(table, catalog, storage_options)
    former = opened.find(identifier)
    if former is None:
        first, data = first_rows(data)
        base = newest_snapshot(new_table(opened, identifier, first.schema, definition))
        options.pop("schema_mode", None)
        return _write_rows(base, data, SnapshotChange("append"), **options)
    if mode == "error":
        raise IcebergError(f"the table {former.name} already exists", reason="table-exists", file=former.name)
    base = newest_snapshot(former)
    if mode == "ignore":
        return CommitResult(base.snapshot_id, committed=False)
    if mode != "replace":
        data = rows_by_column(data, partial(shared.arrow_schema, base.struct))
        return _put_rows(mode, base, data, **options)
    check_writable(former.metadata)
    first, data = first_rows(data)
    change = SnapshotChange(
        "overwrite",
        is_replacement=True,
        updates=replacement(former.metadata, first.schema, definition),
        requirements=tuple(updates.requires(former.metadata, *updates.SCHEMA_IDS)),
    )
    return _write_rows(base, data, change, **options)


def _put_rows(
    mode: Literal["append", "overwrite"],
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
    """Add rows, or replace all rows by them, in one commit; see `Table.append` and `Table.overwrite`."""
    base, change = _base_snapshot(table), SnapshotChange(mode, removes_all=mode == "overwrite")
    if schema_mode == "merge":
        first, data = first_rows(data)
        metadata = base.metadata
        ids = count(metadata.last_column_id + 1)
        merged = shared.merged_type(
            metadata.schema.struct,
            schemas.schema_of_arrow(first.schema).struct,
            (),
            lambda old, new, place: _merged_types(old, new, ids, place),
            lambda f: replace(f, field_id=next(ids), type=schemas.with_new_ids(f.type, ids), nullable=True),
        )
        if merged != metadata.schema.struct:
            assert isinstance(merged, shared.StructType)
            columns = replace(metadata.schema, id=max(metadata.schemas) + 1, struct=merged)
            requirements = tuple(updates.requires(metadata, *updates.SCHEMA_IDS))
            change = replace(change, updates=updates.definition_updates(metadata, columns), requirements=requirements)
    return _write_rows(base, data, change, batch=batch, schema=schema, policy=policy, file_bytes=file_bytes, **options)


append, overwrite = partial(_put_rows, "append"), partial(_put_rows, "overwrite")


def _write_rows(
    base: Snapshot,
    data: Any,
    change: SnapshotChange,
    *,
    batch: tuple[str, int] | None = None,
    **options: Any,
) -> CommitResult:
    """Write rows under the definition that a change gives the table, and commit it; `options`: see `plan_write`."""
    if base.has_recorded(batch):
        return CommitResult(base.snapshot_id, committed=False)
    planned_on = base
    if change.updates:
        metadata = updates.apply_change(base.metadata, updates.TableChange(change.updates), None)
        planned_on = replace(base, table=replace(base.table, metadata=metadata))
    files_plan = plan_write(planned_on, **options)
    if change.operation == "append":
        files_plan = files_plan.keeping_types(partial(parquet_files, base, FILES_WITH_TYPES))
    files = [file for file in files_plan.write_files(data) if file.file.record_count]
    change = replace(change, added=tuple(file.file for file in files), batch=batch)
    return _committed(base, change, files_plan.spec, [file.path for file in files])


def commit_files(
    table: Snapshot,
    files: Iterable[TableFile],
    *,
    mode: Literal["append", "overwrite"] = "append",
    batch: tuple[str, int] | None = None,
    loads: Mapping[str, str] | None = None,
) -> CommitResult:
    """Commit files that tasks wrote with a plan (`plan`), once, on the driver; see `IcebergTable.commit_files`.

    `loads`: properties that record the source files of the rows; an overwrite then removes those of before.
    """
    check_choice("mode", mode, ("append", "overwrite"), IcebergError)
    base = _base_snapshot(table)
    files = tuple(files) if isinstance(files, Iterable) else (files,)
    if not all(isinstance(file, TableFile) for file in files):
        raise IcebergError(
            f"files is a {type(files).__name__}: give the files that a writer returned", reason="bad-option"
        )
    added = tuple(file.file for file in files if file.file.record_count)
    change = SnapshotChange(mode, added=added, removes_all=mode == "overwrite", batch=batch)
    if loads is not None:
        change = replace(change, loads=loads, forgets_loads=change.removes_all)
    return _committed(base, change, base.metadata.spec)


def plan(
    table: Snapshot, *, schema: SchemaOption = None, policy: Any = None, file_bytes: int | None = None, **options: Any
) -> IcebergWritePlan:
    """Return the plan by which tasks of other processes write files for a table; see `commit_files`.

    See `IcebergTable.plan`.
    """
    return plan_write(_base_snapshot(table), schema=schema, policy=policy, file_bytes=file_bytes, **options)


def _base_snapshot(table: Snapshot) -> Snapshot:
    base = newest_snapshot(table.table, table.branch)
    check_writable(base.metadata)
    return base


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
    if not isinstance(opened, NamedCatalog):
        raise IcebergError("a directory has no namespaces: give catalog=", reason="bad-catalog")
    opened.create_namespace(tuple(namespace.split(".")))


def drop_table(
    table: str | os.PathLike[str], *, catalog: CatalogOption = None, storage_options: Mapping[str, str] | None = None
) -> None:
    """Remove a table from its catalog; its data files are kept; see `IcebergTable.drop`."""
    opened, identifier = find_table(table, catalog, storage_options)
    opened.drop(identifier)


@with_keywords(CreateKeywords, write)
def create_table(table: str | os.PathLike[str], schema: pa.Schema | str, **options: Unpack[CreateKeywords]) -> None:
    """Create an empty table; see `pv.create`."""
    if isinstance(schema, str):
        schema = shared.arrow_schema(shared.from_ddl(schema))
    if not isinstance(schema, pa.Schema):
        raise IcebergError(f"schema is a {type(schema).__name__}: give a pyarrow schema or DDL", reason="bad-schema")
    write(table, schema.empty_table(), mode="error", **options)
