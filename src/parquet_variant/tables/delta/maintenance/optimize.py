"""Rewriting files without changing rows: compaction, re-shredding, and dropping Variant shredding.

Owns the public operations, and the change of the protocol. Leaves rewriting to `tables.changes.optimizing`.
"""

from __future__ import annotations

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
from parquet_variant.tables.delta.log.snapshot import Snapshot, writable_snapshot
from parquet_variant.tables.delta.maintenance.evolution import with_properties, without_feature
from parquet_variant.tables.delta.protocol.features import SHREDDING, has_feature
from parquet_variant.tables.delta.protocol.table_properties import SHREDDING_PROPERTY
from parquet_variant.tables.row_input import SchemaOption
from parquet_variant.tables.rules import Rules
from parquet_variant.tables.write_plan import DEFAULT_FILE_BYTES


def optimize(
    table: Snapshot,
    *,
    file_bytes: int = DEFAULT_FILE_BYTES,
    reshred: bool = False,
    schema: SchemaOption = None,
    policy: Any = None,
    min_saving: float = 0.02,
    dry_run: bool = False,
    threads: int | None = 1,
    progress: Progress | None = None,
    engine: Engine | None = None,
    **options: Any,
) -> OptimizeResult:
    """Compact small files, re-shredding Variants where that saves space, in one commit that changes no row.

    See `Table.optimize`.
    """
    current = writable_snapshot(table)
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
    table: Snapshot,
    *,
    file_bytes: int = DEFAULT_FILE_BYTES,
    **options: Any,
) -> OptimizeResult:
    """Rewrite all files unshredded and remove the feature from the protocol, in one commit; see `Table.optimize`."""
    current = writable_snapshot(table)
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
