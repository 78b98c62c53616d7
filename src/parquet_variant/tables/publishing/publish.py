"""`Table.publish`: one data set as tables of several formats.

Owns the choice of the source and of the target. Leaves reading to a module
for each source, and metadata to a module for each target.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Literal, get_args

from parquet_variant.errors import TableError, VariantError, check_choice
from parquet_variant.files.vortex.paths import vortex_files
from parquet_variant.io.filesystems import path_text
from parquet_variant.tables.delta.log.snapshot import snapshot as delta_snapshot
from parquet_variant.tables.iceberg.catalogs.opening import CatalogOption, find_table
from parquet_variant.tables.iceberg.locations import normal_location
from parquet_variant.tables.iceberg.reading.snapshot import snapshot as iceberg_snapshot
from parquet_variant.tables.opening import format_of_table, published_from
from parquet_variant.tables.publishing.delta import DeltaSource, publish_delta
from parquet_variant.tables.publishing.ducklake_target import publish_ducklake
from parquet_variant.tables.publishing.file_sources import ParquetFilesSource, VortexFilesSource
from parquet_variant.tables.publishing.iceberg import IcebergSource, publish_iceberg
from parquet_variant.tables.publishing.source import PublishResult, Source

Format = Literal["iceberg", "delta", "ducklake"]
FORMATS = get_args(Format)
_ATTEMPTS = 5


def publish(
    table: str | os.PathLike[str],
    format: Format,
    *,
    to: str | os.PathLike[str] | None = None,
    catalog: CatalogOption = None,
    storage_options: Mapping[str, str] | None = None,
) -> PublishResult:
    """Write the metadata of another table format over the data files of a table, which are not copied.

    See `Table.publish`.
    """
    if str(format) == "vortex":
        raise TableError(
            "Vortex files have no metadata that could name the files of a table: copy the rows with variant rewrite "
            "TABLE FILE.vortex",
            reason="bad-argument",
        )
    check_choice("format", format, FORMATS, TableError)
    target = None if to is None else path_text(to)
    for attempt in range(_ATTEMPTS):
        try:
            source = _source_of(path_text(table), format, target, catalog, storage_options)
            if format == "iceberg":
                place = find_table(
                    target or normal_location(source.location), catalog, storage_options or source.options
                )
                return publish_iceberg(source, *place)
            if format == "delta":
                return publish_delta(source, target, storage_options)
            return publish_ducklake(source, target)
        except VariantError as error:
            # Another publication was at work: what it left to do is found again.
            is_created = error.reason in ("exists", "table-exists") and not attempt
            if not is_created and (error.reason not in ("conflict", "too-many-retries") or attempt + 1 == _ATTEMPTS):
                raise
    raise AssertionError


def _source_of(
    table: str, format: str, to: str | None, catalog: CatalogOption, options: Mapping[str, str] | None
) -> Source:
    """Return the source that a user names, for publishing in a format that the table does not have already."""
    if catalog is not None and format != "iceberg":
        return IcebergSource(iceberg_snapshot(table, catalog=catalog, storage_options=options))
    kind = format_of_table(table, options)
    if kind is None and vortex_files(table):
        # A table of a catalog is next to the files.
        location = None if catalog is not None or format == "ducklake" else to
        return VortexFilesSource(table, location, options)
    # A repeated publication in the table's directory has the source of the first one.
    mark = published_from(table, format, options) if to is None else None
    if mark == VortexFilesSource.format:
        raise TableError(
            f"{table} was published from Vortex files: publish these files again, not the table",
            reason="bad-argument",
            file=table,
        )
    if kind == format and mark is None:
        raise TableError(f"{table} is a table of the format {format} already", reason="bad-argument", file=table)
    if (mark or kind) == "delta":
        return DeltaSource(delta_snapshot(table, storage_options=options))
    if (mark or kind) == "iceberg":
        return IcebergSource(iceberg_snapshot(table, storage_options=options))
    return ParquetFilesSource(table, options)
