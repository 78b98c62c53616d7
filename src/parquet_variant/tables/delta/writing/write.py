"""Creating a table, and adding rows to an existing one: create, append and overwrite.

Owns these operations, the plans of tasks, the plan of a new table, and the commit of files that tasks wrote
(`commit_files`, also for Spark). Also owns the values of identity columns (PROTOCOL.md, "Identity Columns"), generated
for rows that one process adds: their high water mark is part of the table's metadata, so two commits that take the same
values are in conflict, and one of them is planned again. Leaves files to `data_files` and the log to `log.commit`.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from parquet_variant.errors import DeltaError, TableError, check_choice, check_mapping, strings_of
from parquet_variant.support.options import Mode
from parquet_variant.tables.commits import CommitResult, planned_again
from parquet_variant.tables.delta.file_locations import paths_of_adds
from parquet_variant.tables.delta.log.commit import Transaction, commit, table_exists
from parquet_variant.tables.delta.log.segment import State
from parquet_variant.tables.delta.log.snapshot import Snapshot, TableLike, load_snapshot, writable_snapshot
from parquet_variant.tables.delta.protocol import features
from parquet_variant.tables.delta.protocol import schema_merging as merging
from parquet_variant.tables.delta.protocol.actions import (
    Action,
    Add,
    Metadata,
    Protocol,
    Txn,
    parse_schema,
    read_schema,
    schema_json,
)
from parquet_variant.tables.delta.reading.read import parquet_files
from parquet_variant.tables.delta.writing import data_files
from parquet_variant.tables.row_input import (
    FILES_WITH_TYPES,
    SchemaOption,
    all_rows,
    first_rows,
    schemas_by_column,
)
from parquet_variant.tables.schema import Field, StructType, check_schema, from_arrow_schema, variant_paths
from parquet_variant.tables.storage import Storage, now_millis, open_storage
from parquet_variant.tables.write_plan import DEFAULT_FILE_BYTES, refuse_files_in

_MARK, _EXPLICIT = "delta.identity.highWaterMark", "delta.identity.allowExplicitInsert"
_LIMITS = np.iinfo(np.int64)


class IdentityValues:
    """Fills in the identity columns that rows lack, and provides the table's metadata with the new marks.

    The mark of a column is its last generated value. As in delta-spark, explicit values do not move it.
    """

    def __init__(self, current: Snapshot) -> None:
        self._metadata, self._fields = current.metadata, identity_fields(current)
        self._marks = {f.name: mark for f in self._fields if (mark := _sequence(f)[2]) is not None}

    def fill(self, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """Yield the tables with their identity columns filled in, or refuse values that the table does not allow."""
        for table in tables:
            names = {name.lower() for name in table.column_names}
            for f in self._fields:
                if f.name.lower() not in names:
                    table = table.append_column(f.name, self._take(f, len(table)))
                elif str(f.metadata.get(_EXPLICIT, False)).lower() != "true":
                    raise DeltaError(
                        f"column {f.name} is an identity column, whose values are generated "
                        "(delta.identity.allowExplicitInsert is false): leave the column out",
                        reason="identity-given",
                    )
            yield table

    def _take(self, f: Field, count: int) -> pa.Array:
        """Return the next values of a column."""
        if not count:
            return pa.array([], pa.int64())
        (start, step, _), mark = _sequence(f), self._marks.get(f.name)
        after = -1 if mark is None else (mark - start) // step
        first = start + max(after + 1, 0) * step
        last = first + (count - 1) * step
        if not _LIMITS.min <= last <= _LIMITS.max:
            raise DeltaError(
                f"identity column {f.name} has no values left for {count} rows: the last value is {mark}, the step "
                f"{step}",
                reason="identity-overflow",
            )
        self._marks[f.name] = last
        return pa.array(np.arange(count, dtype=np.int64) * step + first)

    @property
    def metadata(self) -> Metadata | None:
        """The table's metadata with the new marks; None if these did not change."""
        new = _with_marks(self._metadata, self._marks)
        return None if new == self._metadata else new


def with_last_marks(metadata: Metadata, other: Metadata) -> Metadata:
    """Return metadata whose identity columns do not repeat values that another version of the table generated."""
    later, marks = parse_schema(other.schema_string), {}
    for f in parse_schema(metadata.schema_string).fields:
        last = later.get(f.name)
        if last is not None and merging.IDENTITY_START in f.metadata and last.metadata.get(_MARK) is not None:
            (_, step, former), mark = _sequence(f), int(last.metadata[_MARK])
            if former is None or (mark - former) * step > 0:
                marks[f.name] = mark
    return _with_marks(metadata, marks)


def _with_marks(metadata: Metadata, marks: Mapping[str, int]) -> Metadata:
    """Return metadata in which identity columns have other marks; the same metadata if none changes."""
    schema = parse_schema(metadata.schema_string)
    marked = {f.name: {**f.metadata, _MARK: marks[f.name]} for f in schema.fields if f.name in marks}
    new = StructType(tuple(replace(f, metadata=marked.get(f.name, f.metadata)) for f in schema.fields))
    return metadata if new == schema else replace(metadata, schema_string=schema_json(new))


def identity_fields(current: Snapshot) -> Sequence[Field]:
    """Return the columns whose values writers must generate."""
    if not features.supports(current.protocol, "identityColumns"):
        return ()
    return [f for f in parse_schema(current.metadata.schema_string).fields if merging.IDENTITY_START in f.metadata]


def _sequence(f: Field) -> tuple[int, int, int | None]:
    """Return the start, the step and the mark of an identity column."""
    metadata: Any = f.metadata
    try:
        start, step = int(metadata[merging.IDENTITY_START]), int(metadata[merging.IDENTITY_STEP])
        mark = None if metadata.get(_MARK) is None else int(metadata[_MARK])
    except (KeyError, TypeError, ValueError):
        step = 0
    if not step:
        raise DeltaError(
            f"identity column {f.name} has no integer {merging.IDENTITY_START} and non-zero {merging.IDENTITY_STEP} in "
            "its metadata",
            reason="broken-log",
        )
    return start, step, mark


def _put_rows(
    mode: Literal["append", "overwrite"],
    table: Snapshot,
    data: Any,
    *,
    batch: tuple[str, int] | None = None,
    schema: SchemaOption = None,
    schema_mode: Literal["merge"] | None = None,
    file_bytes: int = DEFAULT_FILE_BYTES,
    **options: Any,
) -> CommitResult:
    """Add rows, or replace all rows by them, in one commit; see `Table.append` and `Table.overwrite`."""
    options |= {"schema": schema, "file_bytes": file_bytes}
    current = planned = writable_snapshot(table)
    if current.has_recorded(batch):
        return CommitResult(current.version, committed=False)
    if schema_mode == "merge":
        first, data = first_rows(data)
        metadata, protocol = merging.merged_metadata(
            current.metadata, current.protocol, from_arrow_schema(first.schema)
        )
        planned = current if metadata == current.metadata else replace(current, metadata=metadata, protocol=protocol)

    def files_plan(table: Snapshot, **more: Any) -> data_files.WritePlan:
        made = plan(table, **options, **more)
        return made if mode == "overwrite" else made.keeping_types(partial(parquet_files, current, FILES_WITH_TYPES))

    if planned is not current or not identity_fields(current):
        adds = files_plan(planned).write_files(data)
        return commit_adds(current, adds, mode, batch, planned=planned, written=paths_of_adds(current.storage, adds))
    # The write is planned again if another commit took the values of identity columns.
    tables = all_rows(data)

    def put(current: Snapshot) -> CommitResult:
        identity = IdentityValues(current)
        made = replace(files_plan(current, rewriting=True), derives_partitions=True)
        adds = made.write_files(identity.fill(tables))

        def transaction() -> Transaction:
            return replace(rows_transaction(current, adds, mode, batch), metadata=identity.metadata)

        return commit(current.storage, transaction, written=paths_of_adds(current.storage, adds))

    return planned_again(put, current, lambda old: load_snapshot(old.storage), current.storage.uri)


append, overwrite = partial(_put_rows, "append"), partial(_put_rows, "overwrite")


def plan(
    table: Snapshot,
    *,
    schema: SchemaOption = None,
    policy: Any = None,
    file_bytes: int = DEFAULT_FILE_BYTES,
    rewriting: bool = False,
    **options: Any,
) -> data_files.WritePlan:
    """Return the plan that a task (a Spark executor) needs to write files: ``plan.write(batches)`` gives add actions.

    See `DeltaTable.plan`.
    """
    current = writable_snapshot(table)
    for f in identity_fields(current) if not rewriting else ():
        # Their values need one counter, also with a change of the schema.
        raise DeltaError(
            f"column {f.name} is an identity column ({merging.IDENTITY_START}), whose values cannot be generated in "
            "parallel tasks: add rows with Table.append, merge or overwrite",
            reason="unsupported-feature",
        )
    schemas = schemas_by_column(schema, current.schema)
    made = data_files.plan_write(current, shredding=schemas, file_bytes=file_bytes, options=options)
    return replace(made, policy=policy, derives_partitions=not rewriting)


def commit_files(
    table: TableLike,
    adds: Iterable[Add | Mapping[str, Any]],
    *,
    mode: Literal["append", "overwrite"] = "append",
    batch: tuple[str, int] | None = None,
    operation: str = "WRITE",
    actions: Sequence[Action] = (),
    storage_options: Mapping[str, str] | None = None,
) -> CommitResult:
    """Commit files that tasks wrote, once, on the driver; see `DeltaTable.commit_files`.

    `actions`: further actions of the same commit.
    """
    check_choice("mode", mode, ("append", "overwrite"), DeltaError)
    if not isinstance(operation, str):
        raise DeltaError(f"operation is {operation!r}: give a name", reason="bad-option")
    if not isinstance(adds, Iterable):
        raise DeltaError(f"adds is {adds!r}: give a list of added files", reason="bad-option")
    current = writable_snapshot(table, storage_options)
    files = [add if isinstance(add, Add) else data_files.with_mark(add) for add in adds]
    if current.has_recorded(batch):
        return CommitResult(current.version, committed=False)
    if not isinstance(table, Snapshot) and any(add.mark is None for add in files):
        raise DeltaError(
            "the files were not written by a plan of this table, so they cannot be checked against it: write them with "
            "plan(table).write, or pass the snapshot for which they were written as table=",
            reason="unplanned-files",
        )
    return commit_adds(current, files, mode, batch, operation, actions=actions)


def commit_adds(
    current: Snapshot,
    files: Sequence[Add],
    mode: Mode,
    batch: tuple[str, int] | None = None,
    operation: str = "WRITE",
    *,
    planned: Snapshot | None = None,
    written: Sequence[str] = (),
    actions: Sequence[Action] = (),
) -> CommitResult:
    """Commit files that were planned for a version of the table, or for a new table; `written`: see `commit`.

    A new table is created with its first files in one commit, so that no reader sees it without them. If another writer
    created the same table meanwhile, modes ``"append"`` and ``"overwrite"`` commit to that table.

    `planned`: the table with the definition that the commit gives it, if that is another one.
    """
    storage, is_new = current.storage, current.version < 0

    def transaction(newest: Snapshot) -> Transaction:
        return replace(rows_transaction(newest, files, mode, batch), operation=operation, other_actions=actions)

    def rebase(newest: Snapshot) -> Transaction:
        metadata = newest.metadata
        if is_new:
            metadata = replace(metadata, id=current.metadata.id, created_time=current.metadata.created_time)
        if is_new and metadata != current.metadata:
            raise table_exists(storage)
        if not is_new and (metadata != current.metadata or newest.protocol != current.protocol):
            problem = "another commit changed the table's schema or properties: write the files again"
            raise DeltaError(problem, reason="conflict")
        loaded = [action for action in actions if isinstance(action, Txn)] if is_new else []
        if any(newest.has_recorded((action.app_id, action.version)) for action in loaded):
            problem = f"another writer loaded the same files into {storage.uri}: run this again"
            raise DeltaError(problem, reason="conflict")
        return transaction(newest)

    if is_new:
        data_files.warn_of_nulls(current, files)
        content: dict[str, Any] = {"adds": files, "txn": Txn.of(batch), "other_actions": actions}
        creation = _creation(current, "CREATE TABLE AS SELECT", **content)
        return commit(storage, creation, rebase=rebase if mode in ("append", "overwrite") else None, written=written)
    if planned is not None and planned is not current:
        protocol = planned.protocol if planned.protocol != current.protocol else None
        merged = rows_transaction(planned, files, mode, batch)
        merged = replace(merged, metadata=planned.metadata, protocol=protocol, current=current)
        return commit(storage, merged, written=written)
    if mode == "append":
        return commit(storage, lambda: transaction(current), written=written)
    return commit(storage, lambda: rebase(load_snapshot(storage)), rebase=rebase, written=written)


def rows_transaction(current: Snapshot, adds: Sequence[Add], mode: str, batch: tuple[str, int] | None) -> Transaction:
    """Return the transaction that adds files to the table's files, or replaces these by them."""
    data_files.check_planned(current, adds)
    return Transaction(
        "WRITE",
        {"mode": mode.title(), "partitionBy": list(current.partition_columns)},
        adds=adds,
        removes=current.to_removes(current.files) if mode == "overwrite" else [],
        txn=Txn.of(batch),
        reads_table=mode == "overwrite",
        current=current,
    )


def create(
    table: str | os.PathLike[str],
    schema: pa.Schema | StructType | str,
    *,
    partition_by: str | Sequence[str] | None = None,
    properties: Mapping[str, str | bool | int] | None = None,
    shredding: bool = True,
    preview: bool = False,
    name: str | None = None,
    description: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Snapshot:
    """Create an empty table; see `pv.create`."""
    storage = open_storage(table, storage_options)
    if table_or_empty_place(storage) is not None:
        raise table_exists(storage)
    planned = planned_table(
        storage, read_schema(schema), partition_by, properties, shredding, preview, name=name, description=description
    )
    commit(storage, _creation(planned, "CREATE TABLE"))
    return load_snapshot(storage, 0)


def planned_table(
    storage: Storage,
    columns: StructType,
    partition_by: str | Sequence[str] | None = None,
    properties: Mapping[str, Any] | None = None,
    shredding: bool = True,
    preview: bool = False,
    **names: Any,
) -> Snapshot:
    """Return a table that does not exist yet, at version -1: the input of `plan` and `commit_adds`."""
    variants = any(True for _ in variant_paths(columns))
    defaults: dict[str, Any] = {features.SHREDDING_PROPERTY: True} if shredding and variants else {}
    check_mapping("properties", properties or {}, DeltaError)
    values, needed = features.resolve_properties(defaults | dict(properties or {}))
    partitions = strings_of("partition_by", () if partition_by is None else partition_by)
    check_schema(columns, partitions)
    merging.check_column_metadata(columns)
    merging.check_change_data_names(columns, values)
    metadata = Metadata(
        id=str(uuid.uuid4()),
        schema_string=schema_json(columns),
        partition_columns=partitions,
        configuration={name: value for name, value in values.items() if value is not None},
        created_time=now_millis(),
        **names,
    )
    metadata = features.with_tracking_columns(merging.with_mode(None, metadata))
    needs = (*features.schema_features(columns), *needed, *merging.metadata_features(columns))
    protocol = features.with_features(Protocol(1, 7, None, ()), needs, preview=preview) if needs else Protocol(1, 2)
    features.check_writable(protocol, storage.uri)
    return Snapshot(storage, version=-1, timestamp=0, **vars(State(protocol, metadata)))


def _creation(planned: Snapshot, operation: str, **content: Any) -> Transaction:
    metadata = planned.metadata
    parameters = {"partitionBy": list(metadata.partition_columns), "properties": dict(metadata.configuration)}
    return Transaction(operation, parameters, protocol=planned.protocol, metadata=metadata, **content)


def existing_table(storage: Storage) -> Snapshot | None:
    """Return the newest version of a table; None if there is no table, whatever else the path has."""
    try:
        return load_snapshot(storage)
    except TableError as error:
        if error.reason != "not-a-table":
            raise
    return None


def table_or_empty_place(storage: Storage) -> Snapshot | None:
    """Return the newest version of a table; None if it can be created. Raises `TableError` for files in its place."""
    current = existing_table(storage)
    if current is None:
        refuse_files_in(storage, "delta")
    return current
