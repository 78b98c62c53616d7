"""Tables without a catalog: a directory with ``version-hint.text``, and a single metadata file for reading.

Owns finding the newest version of such a directory and committing the next one by put-if-absent (specification, "File
System Tables"). The hint may be behind: a writer that is killed after its commit has not moved it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from parquet_variant.errors import IcebergError
from parquet_variant.io.filesystems import ICEBERG_METADATA
from parquet_variant.tables.iceberg.catalogs.catalog import (
    DocumentCatalog,
    LoadedTable,
    after_commit,
    metadata_bytes,
    metadata_suffix,
    no_such_table,
)
from parquet_variant.tables.iceberg.locations import TableFiles
from parquet_variant.tables.iceberg.metadata.table_metadata import TableMetadata
from parquet_variant.tables.storage import Storage

HINT = "metadata/version-hint.text"
_VERSION = re.compile(r"metadata/v(\d+)((?:\.gz)?\.metadata\.json)")
_SUFFIXES = (".metadata.json", ".gz.metadata.json")


@dataclass(frozen=True)
class DirectoryCatalog(DocumentCatalog):
    """Tables by their location, which is the whole identifier; a metadata file can only be read."""

    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def store_options(self) -> Mapping[str, str]:
        """See `DocumentCatalog.store_options`."""
        return self.options

    def _newest(self, identifier: tuple[str, ...]) -> str:
        (location,) = identifier
        if location.endswith(ICEBERG_METADATA):
            return location
        newest = _newest_version(TableFiles(location, self.options).root, location)
        if newest is None:
            raise no_such_table(location)
        return f"{location.rstrip('/')}/metadata/v{newest[0]}{newest[1]}"

    def _new_location(self, identifier: tuple[str, ...], location: str) -> str:
        _check_writable(identifier[0])
        return identifier[0]

    def _swap(self, table: LoadedTable, metadata: TableMetadata) -> str | None:
        """Write the next version if no other writer has."""
        (location,) = table.identifier
        _check_writable(location)
        storage = TableFiles(location, self.options).root
        number = 1
        if table.metadata_location is not None:
            match = _VERSION.search(table.metadata_location)
            assert match is not None
            number = int(match[1]) + 1
        elif _newest_version(storage, location) is not None:
            return None
        path = f"metadata/v{number}{metadata_suffix(table.metadata)}"
        if not storage.put_if_absent(path, metadata_bytes(table.metadata, metadata)):
            return None
        with after_commit():  # Readers look for later versions than the hint names.
            storage.put(HINT, str(number).encode())
        return f"{location.rstrip('/')}/{path}"

    def drop(self, identifier: tuple[str, ...]) -> None:
        """Delete the metadata of a directory, the newest version last; see `Catalog.drop`."""
        (location,) = identifier
        _check_writable(location)
        storage = TableFiles(location, self.options).root
        versions = sorted(
            (int(match[1]), file.path)
            for file in storage.list("metadata")
            if (match := _VERSION.fullmatch(file.path)) is not None
        )
        if not versions:
            raise no_such_table(location)
        storage.delete(HINT)
        for _, path in versions:
            storage.delete(path)


def _check_writable(location: str) -> None:
    if location.endswith(ICEBERG_METADATA):
        raise IcebergError(
            "a metadata file names a table for reading only: give the table's name and catalog=, or its directory",
            reason="read-only",
            file=location,
        )


def _newest_version(storage: Storage, location: str) -> tuple[int, str] | None:
    """Return number and suffix of the newest metadata file; None if the directory is not a table."""
    try:
        text = storage.read(HINT).decode(errors="replace").strip()
    except FileNotFoundError:
        text = ""
    number = int(text) if text.isdecimal() else 0
    suffix = _suffix(storage, number) if text.isdecimal() else None
    if suffix is None:
        return _listed(storage, location)
    while (later := _suffix(storage, number + 1)) is not None:
        number, suffix = number + 1, later
    return number, suffix


def _suffix(storage: Storage, number: int) -> str | None:
    """Return how the name of a version's metadata file ends; None if there is no such version."""
    for suffix in _SUFFIXES:
        try:
            storage.read(f"metadata/v{number}{suffix}", 0, 1)
        except FileNotFoundError:
            continue
        return suffix
    return None


def _listed(storage: Storage, location: str) -> tuple[int, str] | None:
    versions, unnumbered = [], []
    for file in storage.list("metadata"):
        match = _VERSION.fullmatch(file.path)
        if match is not None:
            versions.append((int(match[1]), match[2]))
        elif file.path.endswith(".metadata.json"):
            unnumbered.append(file.path)
    if versions:
        return max(versions)
    if unnumbered:
        raise IcebergError(
            f"{location} has no version-hint.text: its newest version is known to a catalog only; give the table's "
            f"name and catalog=, or read one of its metadata files, such as {max(unnumbered)}",
            reason="no-version-hint",
            file=location,
        )
    return None
