"""Rewriting manifests: few large ones, by partition, so that scans read less metadata."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from parquet_variant.tables.iceberg.catalogs.opening import CatalogOption
from parquet_variant.tables.iceberg.metadata.table_metadata import MAIN
from parquet_variant.tables.iceberg.reading.snapshot import TableLike, snapshot
from parquet_variant.tables.iceberg.writing.commit import commit_snapshot
from parquet_variant.tables.iceberg.writing.manifest_changes import SnapshotChange


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


def rewrite_manifests(
    table: TableLike,
    *,
    branch: str = MAIN,
    catalog: CatalogOption = None,
    storage_options: Mapping[str, str] | None = None,
) -> RewriteManifestsResult:
    """Merge the manifests of a table, with entries in the order of their partitions, in one commit.

    See `IcebergTable.rewrite_manifests`.
    """
    base = snapshot(table, catalog=catalog, branch=None if branch == MAIN else branch, storage_options=storage_options)
    kinds: dict[tuple[int, bool], int] = defaultdict(int)
    for manifest in base.manifests:
        kinds[manifest.spec_id, manifest.is_deletes] += 1
    if all(count == 1 for count in kinds.values()):
        return RewriteManifestsResult(base.snapshot_id, len(base.manifests), len(base.manifests))
    done = commit_snapshot(base, SnapshotChange("replace", rewrites_manifests=True))
    return RewriteManifestsResult(done.snapshot_id, len(base.manifests), len(done.manifests))
