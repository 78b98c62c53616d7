"""Creating a table and putting rows into it: create, append, overwrite.

Owns the user's front door for writing, and the commit of files that others wrote (`commit_files`, for Spark). Leaves
files to `data_files` and the log to `commit`.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from parquet_variant.delta.data.paths import relative_path
from parquet_variant.delta.log.checkpoint import checkpoint_if_due
from parquet_variant.delta.log.clock import now_millis
from parquet_variant.delta.log.commit import CommitResult, Transaction, commit
from parquet_variant.delta.log.file_actions import FILE_SCHEMA
from parquet_variant.delta.log.snapshot import Snapshot, load_snapshot
from parquet_variant.delta.protocol.actions import Add, Metadata, Txn
from parquet_variant.delta.protocol.column_mapping import with_mode
from parquet_variant.delta.protocol.features import check_writable, table_protocol
from parquet_variant.delta.protocol.merging import merged_metadata
from parquet_variant.delta.protocol.row_tracking import with_tracking_columns
from parquet_variant.delta.protocol.schema import (
    StructType,
    check_schema,
    from_arrow_schema,
    parse_schema,
    variant_paths,
)
from parquet_variant.delta.protocol.table_properties import SHREDDING_PROPERTY, resolve_properties
from parquet_variant.delta.storage import Storage, open_storage
from parquet_variant.delta.writing.data_files import DEFAULT_FILE_BYTES, WritePlan, plan_write
from parquet_variant.delta.writing.file_rows import to_removes
from parquet_variant.delta.writing.rules import refuse_identity
from parquet_variant.errors import DeltaError
from parquet_variant.interop.table_of import is_rows, table_of
from parquet_variant.schema.shredding_schema import ShreddingSchema

__all__ = ["append", "commit_files", "commit_new", "create", "overwrite", "plan", "planned_table", "write"]

Mode: TypeAlias = Literal["error", "append", "overwrite", "ignore"]
Shredding: TypeAlias = "Mapping[str, ShreddingSchema | str] | ShreddingSchema | str | None"


def create(
    table: str | os.PathLike[str],
    schema: pa.Schema | StructType | str,
    *,
    partition_by: Sequence[str] = (),
    properties: Mapping[str, str | bool | int] | None = None,
    shredding: bool = True,
    preview: bool = False,
    name: str | None = None,
    description: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Snapshot:
    """Make an empty table.

    Parameters
    ----------
    table
        Path or URL.
    schema
        Columns: an Arrow schema whose variant fields carry the extension name ``arrow.parquet.variant``, or a Delta
        schema or schema string.
    partition_by
        Names of partition columns.
    properties
        Table properties, such as ``delta.appendOnly``.
    shredding
        Set ``delta.enableVariantShredding`` and the feature that it needs; a value in `properties` wins.
    preview
        Name the feature ``variantShredding-preview``, for readers that know no other.
    name, description
        Of the table.
    storage_options
        Configuration of the object store.

    Returns
    -------
    Snapshot
        Version 0.

    Raises
    ------
    DeltaError
        ``"exists"`` if a table is there; ``"bad-schema"``, ``"unsupported-type"`` for columns that cannot be.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pv.delta.create(folder, pa.schema([("n", pa.int64())])).version
    0
    """
    storage = open_storage(table, storage_options)
    bare = planned_table(
        storage, _schema(schema), partition_by, properties, shredding, preview, name=name, description=description
    )
    commit(storage, _creation(bare, "CREATE TABLE"))
    return load_snapshot(storage, 0)


def append(
    table: str | os.PathLike[str] | Snapshot,
    data: Any,
    *,
    txn: tuple[str, int] | None = None,
    shredding: Shredding = None,
    schema_mode: Literal["merge"] | None = None,
    file_bytes: int = DEFAULT_FILE_BYTES,
    storage_options: Mapping[str, str] | None = None,
    **options: Any,
) -> CommitResult:
    """Add rows, in one commit.

    Parameters
    ----------
    table
        Path or URL of a table that exists, or a snapshot of it.
    data
        A pyarrow table or record batch, columns by name (`VariantArray` or Arrow), or an iterable of such.
    txn
        Application id and version, for exactly-once: a version that the table has seen from that application is not
        written again.
    shredding
        What to shred: a schema (object or DDL) for the only variant column, or schemas by dotted column name. By
        default it is inferred from the first rows; columns that come shredded stay so. Without
        ``delta.enableVariantShredding`` nothing is shredded.
    schema_mode
        ``"merge"`` adds columns, and fields of structs, that the first rows have and the table lacks, and widens types
        where the table has ``delta.enableTypeWidening``; by default they are refused.
    file_bytes
        About how large a file may become.
    storage_options
        Configuration of the object store.
    **options
        Options of `VariantWriter`.

    Returns
    -------
    CommitResult
        ``committed`` is False if `txn` had been committed before.

    Raises
    ------
    DeltaError
        ``"unsupported-feature"``, ``"unknown-column"``, ``"type-mismatch"``, ``"conflict"``.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.delta.write(folder, {"v": pv.parse_json(['{"n": 1}'])})
    ...     pv.delta.append(folder, {"v": pv.parse_json(["2"])}, txn=("loader", 1)).committed
    ...     pv.delta.append(folder, {"v": pv.parse_json(["2"])}, txn=("loader", 1)).committed
    True
    False
    """
    current = _current(table, storage_options)
    if txn is not None and _seen(current, txn):
        return CommitResult(current.version, committed=False)
    if schema_mode not in (None, "merge"):
        raise DeltaError(f"schema_mode is {schema_mode!r}: use 'merge' or nothing", reason="bad-argument")
    if schema_mode == "merge":
        first, data = _peek(data)
        metadata, protocol = merged_metadata(current.metadata, current.protocol, from_arrow_schema(first.schema))
        if metadata != current.metadata:
            wider = replace(current, metadata=metadata, protocol=protocol)
            made = plan(wider, shredding=shredding, file_bytes=file_bytes, **options)
            return _commit_wider(current, wider, made.write_files(data), txn)
    made = plan(current, shredding=shredding, file_bytes=file_bytes, **options)
    adds = made.write_files(data)
    return commit_files(current, adds, txn=txn)


def overwrite(
    table: str | os.PathLike[str] | Snapshot,
    data: Any,
    *,
    txn: tuple[str, int] | None = None,
    shredding: Shredding = None,
    file_bytes: int = DEFAULT_FILE_BYTES,
    storage_options: Mapping[str, str] | None = None,
    **options: Any,
) -> CommitResult:
    """Replace all rows, in one commit; the schema stays. Parameters, result and errors as `append`.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.delta.write(folder, {"v": pv.parse_json(['{"n": 1}'])})
    ...     _ = pv.delta.overwrite(folder, {"v": pv.parse_json(["2"])})
    ...     pv.delta.read(folder).to_pylist()
    [2]
    """
    current = _current(table, storage_options)
    if txn is not None and _seen(current, txn):
        return CommitResult(current.version, committed=False)
    made = plan(current, shredding=shredding, file_bytes=file_bytes, **options)
    adds = made.write_files(data)
    return commit_files(current, adds, mode="overwrite", txn=txn)


def write(
    table: str | os.PathLike[str],
    data: Any,
    *,
    mode: Mode = "error",
    partition_by: Sequence[str] = (),
    properties: Mapping[str, str | bool | int] | None = None,
    preview: bool = False,
    storage_options: Mapping[str, str] | None = None,
    **options: Any,
) -> CommitResult:
    """Write rows to a table, which is made of the first rows' columns if it is not there.

    Parameters
    ----------
    table
        Path or URL.
    data
        As for `append`.
    mode
        If the table is there: ``"error"``, ``"append"``, ``"overwrite"`` or ``"ignore"``.
    partition_by, properties, preview
        As for `create`, for a new table.
    storage_options
        Configuration of the object store.
    **options
        As for `append`.

    Returns
    -------
    CommitResult

    Raises
    ------
    DeltaError
        ``"exists"`` if `mode` is ``"error"`` and the table is there; and as `append`.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.delta.write(folder, {"v": pv.parse_json(['{"n": 1}'])})
    ...     pv.delta.write(folder, {"v": pv.parse_json(["2"])}, mode="append").version
    1
    """
    if mode not in ("error", "append", "overwrite", "ignore"):
        raise DeltaError(f"mode {mode!r} is none of error, append, overwrite, ignore", reason="bad-argument")
    storage = open_storage(table, storage_options)
    current = _existing(storage)
    if current is not None and mode in ("error", "ignore"):
        if mode == "error":
            raise DeltaError(f"{storage.uri} is a Delta table already", reason="exists", file=storage.uri)
        return CommitResult(current.version, committed=False)
    if current is None:
        first, data = _peek(data)
        planned = planned_table(storage, from_arrow_schema(first.schema), partition_by, properties, True, preview)
        return _create_with_rows(planned, data, mode, options)
    run = overwrite if mode == "overwrite" else append
    return run(current, data, **options)


def plan(
    table: str | os.PathLike[str] | Snapshot,
    *,
    shredding: Shredding = None,
    file_bytes: int = DEFAULT_FILE_BYTES,
    rewriting: bool = False,
    storage_options: Mapping[str, str] | None = None,
    **options: Any,
) -> WritePlan:
    """The plan that a task (a Spark executor) needs to write files: ``plan.write(batches)`` gives add actions.

    Parameters
    ----------
    table
        Path, URL or snapshot.
    shredding, file_bytes, storage_options, **options
        As for `append`.
    rewriting
        The rows are in the table already.

    Raises
    ------
    DeltaError
        ``"unsupported-feature"`` if this writer may not write the table.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.delta.write(folder, {"v": pv.parse_json(['{"n": 1}'])})
    ...     adds = pv.delta.plan(folder).write({"v": pv.parse_json(["2", "3"])})
    ...     pv.delta.commit_files(folder, adds).version, len(pv.delta.read(folder))
    (1, 3)
    """
    current = _current(table, storage_options)
    check_writable(current.protocol, current.metadata, current.storage.uri)
    if not rewriting:
        refuse_identity(current.protocol, current.metadata)
    return plan_write(current, shredding=_schemas(shredding, current.schema), file_bytes=file_bytes, options=options)


def commit_files(
    table: str | os.PathLike[str] | Snapshot,
    adds: Iterable[Add | Mapping[str, Any]],
    *,
    mode: Literal["append", "overwrite"] = "append",
    txn: tuple[str, int] | None = None,
    operation: str = "WRITE",
    storage_options: Mapping[str, str] | None = None,
) -> CommitResult:
    """Commit files that tasks wrote, once, on the driver.

    Parameters
    ----------
    table
        Path, URL or snapshot. Give the snapshot that the plan was made of: a schema change since then is a conflict.
    adds
        What the tasks' `WritePlan.write` returned.
    mode
        ``"overwrite"`` removes all files that are in the table when the commit succeeds.
    txn
        Application id and version, for exactly-once.
    operation
        Told in the history.
    storage_options
        Configuration of the object store.

    Returns
    -------
    CommitResult
        ``committed`` is False, and nothing was done, if `txn` had been committed before.

    Raises
    ------
    DeltaError
        ``"conflict"``, ``"append-only"``, ``"too-many-retries"``.
    """
    current = _current(table, storage_options)
    files = [a if isinstance(a, Add) else Add.from_dict(a) for a in adds]
    application = None if txn is None else Txn(txn[0], txn[1], now_millis())
    parameters = {"mode": mode.title(), "partitionBy": list(current.partition_columns)}

    def transaction(snapshot: Snapshot) -> Transaction:
        gone = to_removes(snapshot, snapshot.files) if mode == "overwrite" else []
        return Transaction(
            operation,
            parameters,
            adds=files,
            removes=gone,
            txn=application,
            read_version=snapshot.version,
            reads_table=mode == "overwrite",
            current=snapshot,
        )

    check_writable(current.protocol, current.metadata, current.storage.uri)
    if mode == "append":
        return _checkpointed(current, commit(current.storage, transaction(current)))

    def rebase(newest: Snapshot) -> Transaction:
        if newest.metadata != current.metadata or newest.protocol != current.protocol:
            raise DeltaError("the table's schema or properties changed: read it again and retry", reason="conflict")
        return transaction(newest)

    newest = load_snapshot(current.storage)
    return _checkpointed(current, commit(current.storage, rebase(newest), rebase=rebase))


def _commit_wider(current: Snapshot, wider: Snapshot, adds: Sequence[Add], txn: tuple[str, int] | None) -> CommitResult:
    """Commit files together with the columns that they brought along."""
    transaction = Transaction(
        "WRITE",
        {"mode": "Append", "partitionBy": list(current.partition_columns)},
        adds=adds,
        metadata=wider.metadata,
        protocol=wider.protocol if wider.protocol != current.protocol else None,
        txn=None if txn is None else Txn(txn[0], txn[1], now_millis()),
        read_version=current.version,
        current=current,
    )
    return _checkpointed(current, commit(current.storage, transaction))


def planned_table(
    storage: Storage,
    columns: StructType,
    partition_by: Sequence[str] = (),
    properties: Mapping[str, Any] | None = None,
    shredding: bool = True,
    preview: bool = False,
    **names: Any,
) -> Snapshot:
    """A table that is not there yet, at version -1: `plan` takes it, and `commit_new` makes it."""
    variants = any(True for _ in variant_paths(columns))
    defaults: dict[str, Any] = {SHREDDING_PROPERTY: True} if shredding and variants else {}
    resolved = resolve_properties(defaults | dict(properties or {}))
    check_schema(columns, partition_by)
    metadata = Metadata(
        id=str(uuid.uuid4()),
        schema_string=columns.to_json(),
        partition_columns=tuple(partition_by),
        configuration={name: value for name, value in resolved.changes.items() if value is not None},
        created_time=now_millis(),
        **names,
    )
    metadata = with_tracking_columns(with_mode(None, metadata))
    protocol = table_protocol(columns, resolved.features, preview=preview)
    check_writable(protocol, metadata, storage.uri)
    nothing = FILE_SCHEMA.empty_table()
    return Snapshot(storage, -1, 0, protocol, metadata, {}, {}, nothing, nothing)


def _creation(planned: Snapshot, operation: str) -> Transaction:
    metadata = planned.metadata
    parameters = {"partitionBy": list(metadata.partition_columns), "properties": dict(metadata.configuration)}
    return Transaction(operation, parameters, protocol=planned.protocol, metadata=metadata)


def commit_new(
    planned: Snapshot, adds: Sequence[Add], mode: Mode = "error", txn: tuple[str, int] | None = None
) -> CommitResult:
    """Make a planned table with its first files in one commit, so that nobody ever sees it without them.

    Where somebody else made the same table meanwhile, modes ``"append"`` and ``"overwrite"`` commit to that one.

    Raises
    ------
    DeltaError
        Reason ``"exists"``; the files are then for the caller to remove.
    """
    application = None if txn is None else Txn(txn[0], txn[1], now_millis())
    transaction = replace(_creation(planned, "CREATE TABLE AS SELECT"), adds=adds, txn=application)
    try:
        return commit(planned.storage, transaction)
    except DeltaError as error:
        other = _existing(planned.storage) if error.reason == "exists" and mode in ("append", "overwrite") else None
        if other is None or not _alike(other.metadata, planned.metadata):
            raise
        return commit_files(other, adds, mode="overwrite" if mode == "overwrite" else "append", txn=txn)


def _create_with_rows(planned: Snapshot, data: Any, mode: Mode, options: dict[str, Any]) -> CommitResult:
    txn = options.pop("txn", None)
    adds = plan(planned, **options).write_files(data)
    try:
        return commit_new(planned, adds, mode, txn)
    except DeltaError:
        for add in adds:
            planned.storage.delete(relative_path(planned.storage, add.path))
        raise


def _alike(left: Metadata, right: Metadata) -> bool:
    return (left.schema_string, left.partition_columns, left.configuration) == (
        right.schema_string, right.partition_columns, right.configuration,
    )  # fmt: skip


def _checkpointed(current: Snapshot, result: CommitResult) -> CommitResult:
    if result.committed:
        checkpoint_if_due(current, result.version)
    return result


def _current(table: str | os.PathLike[str] | Snapshot, options: Mapping[str, str] | None) -> Snapshot:
    return table if isinstance(table, Snapshot) else load_snapshot(open_storage(table, options))


def _existing(storage: Storage) -> Snapshot | None:
    try:
        return load_snapshot(storage)
    except DeltaError as error:
        if error.reason == "not-a-table":
            return None
        raise


def _seen(snapshot: Snapshot, txn: tuple[str, int]) -> bool:
    found = snapshot.txns.get(txn[0])
    return found is not None and found.version >= txn[1]


def _peek(data: Any) -> tuple[pa.Table, Any]:
    if is_rows(data):
        table = table_of(data)
        return table, table
    batches = iter(data)
    first = next(batches, None)
    if first is None:
        raise DeltaError("there are no rows to make a table of: give at least one batch", reason="bad-data")
    return table_of(first), _chain(first, batches)


def _chain(first: Any, rest: Iterable[Any]) -> Iterable[Any]:
    yield first
    yield from rest


def _schema(schema: pa.Schema | StructType | str) -> StructType:
    if isinstance(schema, StructType):
        return schema
    return parse_schema(schema) if isinstance(schema, str) else from_arrow_schema(schema)


def _schemas(shredding: Shredding, schema: StructType) -> dict[str, ShreddingSchema]:
    if shredding is None:
        return {}
    places = [".".join(place) for place in variant_paths(schema)]
    if isinstance(shredding, (ShreddingSchema, str)):
        if len(places) != 1:
            raise DeltaError(
                f"the table has {len(places)} variant columns: give shredding schemas by name", reason="bad-argument"
            )
        shredding = {places[0]: shredding}
    unknown = sorted(set(shredding) - set(places))
    if unknown:
        raise DeltaError(f"{unknown[0]!r} is no variant column: {', '.join(places)}", reason="bad-argument")
    return {
        name: ShreddingSchema.from_ddl(given) if isinstance(given, str) else given for name, given in shredding.items()
    }
