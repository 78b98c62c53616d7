"""Changing the partitioning and the sort order of new files; existing files are not changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from parquet_variant.errors import strings_of
from parquet_variant.tables.iceberg.catalogs.opening import CatalogOption
from parquet_variant.tables.iceberg.metadata.partitioning import SortOrder, sort_order_of, spec_of
from parquet_variant.tables.iceberg.metadata.table_metadata import TableMetadata
from parquet_variant.tables.iceberg.metadata.updates import TableChange, assert_schema, assert_spec, change_of
from parquet_variant.tables.iceberg.reading.snapshot import TableLike
from parquet_variant.tables.iceberg.writing.commit import change_metadata
from parquet_variant.tables.iceberg.writing.create import Names
from parquet_variant.tables.iceberg.writing.write import CommitResult


def set_partitioning(
    table: TableLike,
    partition_by: Names,
    *,
    catalog: CatalogOption = None,
    storage_options: Mapping[str, str] | None = None,
) -> CommitResult:
    """Change the partition spec of new files; see `IcebergTable.set_partitioning`."""
    names = strings_of("partition_by", partition_by)

    def make_change(metadata: TableMetadata) -> TableChange | None:
        spec = spec_of(
            names,
            metadata.schema,
            spec_id=max(metadata.specs) + 1,
            last_partition_id=metadata.last_partition_id,
            former=metadata.specs.values(),
        )
        existing = next((s for s in metadata.specs.values() if s.same_fields(spec)), None)
        if existing is not None and existing.id == metadata.spec.id:
            return None
        if existing is not None:
            return change_of({"action": "set-default-spec", "spec-id": existing.id}, requires=assert_spec(metadata))
        return change_of(
            {"action": "add-spec", "spec": spec.to_json()},
            {"action": "set-default-spec", "spec-id": -1},
            requires=[*assert_spec(metadata), *assert_schema(metadata)[1:2]],
        )

    after = change_metadata(table, make_change, catalog, storage_options)
    return CommitResult(after.metadata.current_snapshot_id)


def set_sort_order(
    table: TableLike,
    sort_by: Names,
    *,
    catalog: CatalogOption = None,
    storage_options: Mapping[str, str] | None = None,
) -> CommitResult:
    """Change the sort order of new files; see `IcebergTable.set_sort_order`."""
    names = strings_of("sort_by", sort_by)

    def make_change(metadata: TableMetadata) -> TableChange | None:
        order = sort_order_of(names, metadata.schema, order_id=max(metadata.sort_orders, default=0) + 1)
        if order.fields == metadata.sort_order.fields:
            return None
        requirement = {
            "type": "assert-default-sort-order-id",
            "default-sort-order-id": metadata.sort_order.id,
        }
        existing = next((o for o in metadata.sort_orders.values() if o.fields == order.fields), None)
        if existing is None:
            unsorted = not order.is_sorted
            new = replace(order, id=0 if unsorted else order.id)
            updates = (
                {"action": "add-sort-order", "sort-order": (SortOrder() if unsorted else new).to_json()},
                {"action": "set-default-sort-order", "sort-order-id": -1},
            )
            return change_of(*updates, requires=[requirement])
        return change_of({"action": "set-default-sort-order", "sort-order-id": existing.id}, requires=[requirement])

    after = change_metadata(table, make_change, catalog, storage_options)
    return CommitResult(after.metadata.current_snapshot_id)
