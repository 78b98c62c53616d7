"""Rewriting files without changing rows: compaction, re-shredding, and dropping Variant shredding.

Owns the public operations, and the change of the protocol. Leaves rewriting to `tables.changes.optimizing`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from parquet_variant.io.engine import Engine, Progress, ThreadEngine, engine_or_threads
from parquet_variant.tables.changes.optimizing import (
    OptimizeRequest,
    OptimizeResult,
    file_packs,
    rewrite_pack,
    run_optimize,
)
from parquet_variant.tables.delta.dml.changeable import DeltaTable
from parquet_variant.tables.delta.file_locations import paths_of_adds
from parquet_variant.tables.delta.log.commit import Transaction, commit
from parquet_variant.tables.delta.log.snapshot import TableLike, writable_snapshot
from parquet_variant.tables.delta.maintenance.properties import with_properties, without_feature
from parquet_variant.tables.delta.protocol.features import SHREDDING, has_feature
from parquet_variant.tables.delta.protocol.table_properties import SHREDDING_PROPERTY
from parquet_variant.tables.rules import Rules
from parquet_variant.tables.write_plan import DEFAULT_FILE_BYTES, SchemaOption


def optimize(
    table: TableLike,
    *,
    file_bytes: int = DEFAULT_FILE_BYTES,
    reshred: bool = False,
    schema: SchemaOption = None,
    policy: Any = None,
    min_saving: float = 0.02,
    dry_run: bool = False,
    storage_options: Mapping[str, str] | None = None,
    threads: int | None = 1,
    progress: Progress | None = None,
    engine: Engine | None = None,
    **options: Any,
) -> OptimizeResult:
    """Compact small files, re-shredding Variants where that saves space, in one commit that changes no row.

    Parameters
    ----------
    table, storage_options
        The table; see `snapshot`.
    file_bytes
        Approximate maximum size of a file. Files of at least three quarters of it, without deleted rows, are kept.
    reshred
        Rewrite all files, not only small ones, with the schema that `policy` chooses; implied by `schema`.
    schema
        Shredding schema, as for `append` (default: the schema of most rows, with the changes that `find_drift` suggests
        if these save enough; then all files are rewritten). All rows are read to decide this.
    policy
        Policy that chooses the schema; see `infer_shredding_schema`.
    min_saving
        Minimum share of the encoded bytes that re-shredding must remove from the residual.
    dry_run
        Only report the drift; commit nothing.
    threads
        Number of files to write at the same time, each of them in memory; None for one per CPU core.
    progress
        Called with the step, the number of finished tasks and the number of tasks.
    engine
        Engine that runs the tasks (default: threads of this process).
    **options
        Options of `VariantWriter`.

    Returns
    -------
    OptimizeResult

    Raises
    ------
    TableError
        ``"conflict"`` if another commit removed one of the files meanwhile (appends do not conflict);
        ``"unsupported-feature"``.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.delta.write(folder, {"v": pv.parse_json(['{"n": 1}'])})
    ...     _ = pv.delta.append(folder, {"v": pv.parse_json(["2"])})
    ...     result = pv.delta.optimize(folder)
    ...     result.files_removed, result.files_added
    (2, 1)
    """
    current = writable_snapshot(table, storage_options)
    request = OptimizeRequest(
        file_bytes=file_bytes,
        reshred=reshred,
        measures=schema is None and current.shredding_enabled,
        rewrites_all=reshred or schema is not None,
        schema=schema,
        policy=policy,
        min_saving=min_saving,
        dry_run=dry_run,
        options=options,
    )
    return run_optimize(DeltaTable(current), request, engine_or_threads(engine, threads, progress))


def drop_shredding(
    table: TableLike,
    *,
    file_bytes: int = DEFAULT_FILE_BYTES,
    storage_options: Mapping[str, str] | None = None,
    **options: Any,
) -> OptimizeResult:
    """Rewrite all files unshredded and remove the feature from the protocol, in one commit.

    Older versions of the table still need the feature.

    Parameters
    ----------
    table, file_bytes, storage_options, **options
        As for `optimize`.

    Returns
    -------
    OptimizeResult

    Raises
    ------
    TableError
        ``"conflict"`` if another commit changed files meanwhile; ``"unsupported-feature"``.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.delta.write(folder, {"v": pv.parse_json(['{"n": 1}'])})
    ...     _ = pv.delta.drop_shredding(folder)
    ...     pv.delta.snapshot(folder).protocol.reader_features
    ('variantType',)
    """
    current = writable_snapshot(table, storage_options)
    if not has_feature(current.protocol.reader_features, SHREDDING):
        return OptimizeResult(current.version)
    metadata = with_properties(current.metadata, {SHREDDING_PROPERTY: None})
    protocol = without_feature(current.protocol, SHREDDING)
    unshredded = DeltaTable(replace(current, metadata=metadata, protocol=protocol))
    change = unshredded.plan(options)
    write = replace(change.write, file_bytes=file_bytes, rules=Rules())
    work = partial(rewrite_pack, change.with_write(write))
    packs = file_packs(unshredded.file_layouts(), file_bytes, rewrites_all=True)
    files = current.to_adds(current.files)
    parts = ThreadEngine(1, None).run("optimize", work, [[files[number] for number in pack] for pack in packs])
    adds = [add for part in parts for add in part]
    removes = current.to_removes(current.files, data_change=False)
    transaction = Transaction(
        "DROP FEATURE",
        {"featureName": SHREDDING},
        adds=adds,
        removes=removes,
        protocol=protocol,
        metadata=metadata,
        reads_table=True,
        current=current,
    )
    done = commit(current.storage, transaction, written=paths_of_adds(current.storage, adds))
    return OptimizeResult(
        done.version,
        files_removed=len(removes),
        files_added=len(adds),
        bytes_removed=sum(file.size for file in files),
        bytes_added=sum(file.size for file in adds),
    )
