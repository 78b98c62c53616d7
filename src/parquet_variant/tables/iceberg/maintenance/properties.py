"""Properties and format version of a table."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from parquet_variant.errors import strings_of
from parquet_variant.tables.iceberg.catalogs.opening import CatalogOption
from parquet_variant.tables.iceberg.metadata.table_metadata import NEWEST_VERSION, TableMetadata
from parquet_variant.tables.iceberg.metadata.updates import TableChange, assert_uuid, change_of
from parquet_variant.tables.iceberg.metadata.updates import set_properties as properties_update
from parquet_variant.tables.iceberg.reading.snapshot import TableLike
from parquet_variant.tables.iceberg.writing.commit import change_metadata
from parquet_variant.tables.iceberg.writing.create import checked_properties
from parquet_variant.tables.iceberg.writing.properties import WriteProperties


def set_properties(
    table: TableLike,
    properties: Mapping[str, str],
    *,
    catalog: CatalogOption = None,
    storage_options: Mapping[str, str] | None = None,
) -> None:
    """Set properties of a table; see `Table.set_properties`."""
    checked = checked_properties(properties)

    def make_change(metadata: TableMetadata) -> TableChange | None:
        WriteProperties({**metadata.properties, **checked}).check()
        return change_of(properties_update(checked), requires=assert_uuid(metadata)) if checked else None

    change_metadata(table, make_change, catalog, storage_options)


def remove_properties(
    table: TableLike,
    names: Iterable[str] | str,
    *,
    catalog: CatalogOption = None,
    storage_options: Mapping[str, str] | None = None,
) -> None:
    """Remove properties of a table; names that it does not have are left out; see `Table.set_properties`."""
    removed = list(strings_of("names", names))

    def make_change(metadata: TableMetadata) -> TableChange | None:
        present = [name for name in removed if name in metadata.properties]
        if not present:
            return None
        return change_of({"action": "remove-properties", "removals": present}, requires=assert_uuid(metadata))

    change_metadata(table, make_change, catalog, storage_options)


def upgrade(
    table: TableLike,
    *,
    catalog: CatalogOption = None,
    storage_options: Mapping[str, str] | None = None,
) -> None:
    """Upgrade a table of format version 1 or 2 to version 3, which this package writes; see `IcebergTable.upgrade`."""

    def make_change(metadata: TableMetadata) -> TableChange | None:
        if metadata.version == NEWEST_VERSION:
            return None
        updates: list[dict[str, Any]] = []
        if metadata.uuid is None:
            updates.append({"action": "assign-uuid", "uuid": str(uuid.uuid4())})
        updates.append({"action": "upgrade-format-version", "format-version": NEWEST_VERSION})
        return change_of(*updates, requires=assert_uuid(metadata))

    change_metadata(table, make_change, catalog, storage_options, any_version=True)
