"""Rewriting files and manifests without changing rows.

Owns the operations. Leaves rewriting data files to `tables.changes.optimizing`.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.tables.changes.optimizing import OptimizeResult, optimize
from parquet_variant.tables.iceberg.changes.changeable import IcebergTable
from parquet_variant.tables.iceberg.reading.snapshot import Snapshot
from parquet_variant.tables.iceberg.writing.commit import commit_snapshot
from parquet_variant.tables.iceberg.writing.manifest_changes import SnapshotChange
from parquet_variant.tables.schema import variant_paths


def drop_shredding(table: IcebergTable, *, file_bytes: int | None = None, **options: Any) -> OptimizeResult:
    """Rewrite all files with unshredded Variants, in one commit that changes no row; see `Table.optimize`."""
    schema = {".".join(place): ShreddingSchema.variant() for place in variant_paths(table.schema)}
    return optimize(table, file_bytes=file_bytes, schema=schema, **options)


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
