"""Putting rows into a table that is there: append, overwrite.

Owns these, the commit of files that others wrote (`commit_files`, for Spark), and the forms of the option ``schema=``
of writes. Leaves making a table to `create`, files to `data_files` and the log to `commit`.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from parquet_variant.delta.log.checkpoint import checkpoint_if_due
from parquet_variant.delta.log.commit import CommitResult, Transaction, commit, removed_unless_committed
from parquet_variant.delta.log.snapshot import Snapshot, load_snapshot, snapshot
from parquet_variant.delta.protocol.actions import Add, Txn, now_millis
from parquet_variant.delta.protocol.features import check_writable
from parquet_variant.delta.protocol.merging import merged_metadata
from parquet_variant.delta.writing.data_files import WritePlan, plan_write
from parquet_variant.delta.writing.identity import IdentityValues, has_identity, refuse_identity
from parquet_variant.errors import DeltaError, TableError
from parquet_variant.tables.row_input import SchemaOption, all_rows, first_rows, schemas_by_column
from parquet_variant.tables.schema import from_arrow_schema
from parquet_variant.tables.write_plan import DEFAULT_FILE_BYTES

_IDENTITY_RETRIES = 20


def append(
    table: str | os.PathLike[str] | Snapshot,
    data: Any,
    *,
    txn: tuple[str, int] | None = None,
    schema: SchemaOption = None,
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
    schema
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
    current = snapshot(table, storage_options=storage_options)
    if txn is not None and _seen(current, txn):
        return CommitResult(current.version, committed=False)
    if schema_mode not in (None, "merge"):
        raise DeltaError(f"schema_mode is {schema_mode!r}: use 'merge' or nothing", reason="bad-argument")
    if schema_mode == "merge":
        first, data = first_rows(data)
        metadata, protocol = merged_metadata(current.metadata, current.protocol, from_arrow_schema(first.schema))
        if metadata != current.metadata:
            made = plan(
                replace(current, metadata=metadata, protocol=protocol), schema=schema, file_bytes=file_bytes, **options
            )
            adds = made.write_files(data)
            with removed_unless_committed(current.storage, adds):
                transaction = replace(_put(current, adds, "append", txn), metadata=metadata)
                if protocol != current.protocol:
                    transaction = replace(transaction, protocol=protocol)
                return _checkpointed(current, commit(current.storage, transaction))
    if has_identity(current):
        return _put_with_identity(current, data, "append", txn, {"schema": schema, "file_bytes": file_bytes, **options})
    made = plan(current, schema=schema, file_bytes=file_bytes, **options)
    adds = made.write_files(data)
    with removed_unless_committed(current.storage, adds):
        return commit_files(current, adds, txn=txn)


def overwrite(
    table: str | os.PathLike[str] | Snapshot,
    data: Any,
    *,
    txn: tuple[str, int] | None = None,
    schema: SchemaOption = None,
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
    current = snapshot(table, storage_options=storage_options)
    if txn is not None and _seen(current, txn):
        return CommitResult(current.version, committed=False)
    if has_identity(current):
        write = {"schema": schema, "file_bytes": file_bytes, **options}
        return _put_with_identity(current, data, "overwrite", txn, write)
    made = plan(current, schema=schema, file_bytes=file_bytes, **options)
    adds = made.write_files(data)
    with removed_unless_committed(current.storage, adds):
        return commit_files(current, adds, mode="overwrite", txn=txn)


def plan(
    table: str | os.PathLike[str] | Snapshot,
    *,
    schema: SchemaOption = None,
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
    schema, file_bytes, storage_options, **options
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
    current = snapshot(table, storage_options=storage_options)
    check_writable(current.protocol, current.storage.uri)
    if not rewriting:
        refuse_identity(current)
    schemas = schemas_by_column(schema_option(schema, options), current.schema)
    return plan_write(current, shredding=schemas, file_bytes=file_bytes, options=options)


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
    current = snapshot(table, storage_options=storage_options)
    files = [a if isinstance(a, Add) else Add.from_dict(a) for a in adds]

    def transaction(newest: Snapshot) -> Transaction:
        return replace(_put(newest, files, mode, txn), operation=operation)

    check_writable(current.protocol, current.storage.uri)
    if mode == "append":
        return _checkpointed(current, commit(current.storage, transaction(current)))

    def rebase(newest: Snapshot) -> Transaction:
        if newest.metadata != current.metadata or newest.protocol != current.protocol:
            raise DeltaError("the table's schema or properties changed: read it again and retry", reason="conflict")
        return transaction(newest)

    newest = load_snapshot(current.storage)
    return _checkpointed(current, commit(current.storage, rebase(newest), rebase=rebase))


def _put(current: Snapshot, adds: Sequence[Add], mode: str, txn: tuple[str, int] | None) -> Transaction:
    """The transaction that adds files, to others or in their place."""
    return Transaction(
        "WRITE",
        {"mode": mode.title(), "partitionBy": list(current.partition_columns)},
        adds=adds,
        removes=current.to_removes(current.files) if mode == "overwrite" else [],
        txn=None if txn is None else Txn(txn[0], txn[1], now_millis()),
        reads_table=mode == "overwrite",
        current=current,
    )


def _put_with_identity(
    current: Snapshot, data: Any, mode: str, txn: tuple[str, int] | None, options: Mapping[str, Any]
) -> CommitResult:
    """Add rows, or put them in the place of all, with values of identity columns that no other commit takes."""
    tables = all_rows(data)
    problem = ""
    for _ in range(_IDENTITY_RETRIES):
        identity = IdentityValues(current)
        adds = plan(current, rewriting=True, **options).write_files(identity.of(tables))
        try:
            with removed_unless_committed(current.storage, adds):
                transaction = replace(_put(current, adds, mode, txn), metadata=identity.metadata)
                done = commit(current.storage, transaction)
        except TableError as error:
            if error.reason != "conflict":
                raise
            problem, current = error.message, load_snapshot(current.storage)
            continue
        return _checkpointed(current, done)
    raise DeltaError(
        f"{_IDENTITY_RETRIES} other commits took the values of identity columns first: try again when fewer writers "
        f"are at work (the last: {problem})",
        reason="too-many-retries",
        file=current.storage.uri,
    )


def _checkpointed(current: Snapshot, result: CommitResult) -> CommitResult:
    if result.committed:
        checkpoint_if_due(current, result.version)
    return result


def _seen(current: Snapshot, txn: tuple[str, int]) -> bool:
    known = current.txns.get(txn[0])
    return known is not None and known.version >= txn[1]


def schema_option(schema: SchemaOption, options: dict[str, Any]) -> SchemaOption:
    """The schema that was given, also under the former name ``shredding``, which is taken out of the options."""
    if "shredding" not in options:
        return schema
    warnings.warn("shredding= is now called schema=", DeprecationWarning, stacklevel=3)
    former: SchemaOption = options.pop("shredding")
    if schema is not None and former is not None:
        raise DeltaError("schema= and its former name shredding= are both given", reason="bad-argument")
    return former if schema is None else schema
