"""Marks of published tables, and which of the tables in one directory the others were published from.

Owns the names of the marks in properties and summaries, and the choice of the source among formats that share a
directory.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from parquet_variant.errors import TableError
from parquet_variant.io.filesystems import ICEBERG_METADATA, has_delta_log, has_iceberg_metadata
from parquet_variant.tables.delta.log.snapshot import load_snapshot
from parquet_variant.tables.delta.protocol.features import PUBLISHED_FROM_PROPERTY
from parquet_variant.tables.iceberg.catalogs.opening import load_table
from parquet_variant.tables.storage import open_storage

# The property of published Iceberg tables, with the format of the source as the value.
PUBLISHED_FROM = "parquet-variant.published-from"
# In the summary of an Iceberg snapshot: the version of the source.
PUBLISHED_VERSION = "parquet-variant.published-version"


def table_format(path: str | os.PathLike[str], options: Mapping[str, str] | None = None) -> str | None:
    """Return the format of the table at a path, ``"delta"`` or ``"iceberg"``; None if there is no table.

    In a directory with both, it is the format that the other one was published from.

    >>> table_format("examples") is None
    True
    """
    is_delta, is_iceberg = (_has_table(path, name, options) for name in ("delta", "iceberg"))
    if is_delta and is_iceberg:
        return "iceberg" if published_from(path, "delta", options) == "iceberg" else "delta"
    return "delta" if is_delta else "iceberg" if is_iceberg else None


def published_from(path: str | os.PathLike[str], format: str, options: Mapping[str, str] | None = None) -> str | None:
    """Return the format that the table of a format at a path was published from; None if it was not published."""
    if not _has_table(path, format, options):
        return None
    if format == "delta":
        try:
            current = load_snapshot(open_storage(path, options), files=False)
        except TableError:
            return None
        return current.metadata.configuration.get(PUBLISHED_FROM_PROPERTY)
    try:
        return load_table(path, None, options).metadata.properties.get(PUBLISHED_FROM)
    except TableError:
        return None


def _has_table(path: str | os.PathLike[str], format: str, options: Mapping[str, str] | None) -> bool:
    """Return whether a path is a table of a format; `options` configure its object store."""
    if not options:
        return format != "ducklake" and (has_delta_log if format == "delta" else has_iceberg_metadata)(path)
    storage = open_storage(path, options)
    if format == "delta":
        return any(True for _ in storage.list("_delta_log"))
    if format == "iceberg":
        return str(path).endswith(ICEBERG_METADATA) or any(
            file.path == "metadata/version-hint.text" for file in storage.list("metadata")
        )
    return False
