"""Rewriting files and manifests without changing rows.

Owns the operations. Leaves rewriting data files to `tables.changes.optimizing`.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from parquet_variant.io.engine import Engine, Progress, engine_or_threads
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.tables.changes.optimizing import OptimizeRequest, OptimizeResult, run_optimize
from parquet_variant.tables.iceberg.changes.changeable import IcebergTable
from parquet_variant.tables.iceberg.reading.snapshot import Snapshot
from parquet_variant.tables.iceberg.writing.commit import commit_snapshot
from parquet_variant.tables.iceberg.writing.manifest_changes import SnapshotChange
from parquet_variant.tables.row_input import SchemaOption


def optimize(
    table: Snapshot,
    *,
    file_bytes: int | None = None,
    reshred: bool = False,
    schema: SchemaOption = None,
    policy: Any = None,
    min_saving: float = 0.02,
    dry_run: bool = False,
    rewrite_all: bool = False,
    threads: int | None = 1,
    progress: Progress | None = None,
    engine: Engine | None = None,
    **options: Any,
) -> OptimizeResult:
    """Compact small files and files with deleted rows, in one commit that changes no row; see `Table.optimize`."""
    request = OptimizeRequest(
        file_bytes=file_bytes,
        reshred=reshred or policy is not None,
        measures=(reshred or dry_run or policy is not None) and schema is None,
        rewrites_all=reshred or schema is not None or policy is not None or rewrite_all,
        schema=schema,
        policy=policy,
        min_saving=min_saving,
        dry_run=dry_run,
        options=options,
    )
    return run_optimize(IcebergTable(table, "optimize"), request, engine_or_threads(engine, threads, progress))


def drop_shredding(
    table: Snapshot,
    *,
    file_bytes: int | None = None,
    threads: int | None = 1,
    progress: Progress | None = None,
    **options: Any,
) -> OptimizeResult:
    """Rewrite all files with unshredded Variants, in one commit that changes no row; see `Table.optimize`."""
    schema = {".".join(place): ShreddingSchema.variant() for place in table.schema.variant_places()}
    return optimize(table, file_bytes=file_bytes, schema=schema, threads=threads, progress=progress, **options)


@dataclass(frozen=True)
class RewriteManifestsResult:
    """The result of rewriting manifests.

    Parameters
    ----------
    snapshot_id
        The snapshot afterwards.
    before, after
        Numbers of manifests.
    """

    snapshot_id: int | None
    before: int
    after: int


def rewrite_manifests(table: Snapshot) -> RewriteManifestsResult:
    """Merge the manifests of a table, with entries in the order of their partitions, in one commit.

    See `IcebergTable.rewrite_manifests`.
    """
    kinds: dict[tuple[int, bool], int] = defaultdict(int)
    for manifest in table.manifests:
        kinds[manifest.spec_id, manifest.is_deletes] += 1
    if all(count == 1 for count in kinds.values()):
        return RewriteManifestsResult(table.snapshot_id, len(table.manifests), len(table.manifests))
    done = commit_snapshot(table, SnapshotChange("replace", rewrites_manifests=True))
    return RewriteManifestsResult(done.snapshot_id, len(table.manifests), len(done.manifests))
