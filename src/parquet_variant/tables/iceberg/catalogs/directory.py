"""Tables without a catalog: a directory with ``version-hint.text``, and a single metadata file for reading.

Owns finding the newest version of such a directory and committing the next one by put-if-absent (specification, "File
System Tables"). The hint may be behind: a writer that is killed after its commit has not moved it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from parquet_variant.errors import IcebergError
from parquet_variant.tables.iceberg.catalogs.catalog import (
    Catalog,
    LoadedTable,
    after_commit,
    changed_metadata,
    metadata_bytes,
    metadata_suffix,
    no_such_table,
    obsolete_metadata,
)
from parquet_variant.tables.iceberg.locations import TableFiles, absolute_location, normal_location
from parquet_variant.tables.iceberg.metadata.table_metadata import TableMetadata
from parquet_variant.tables.iceberg.metadata.updates import TableChange, check_requirements
from parquet_variant.tables.storage import Storage

HINT = "metadata/version-hint.text"
_VERSION = re.compile(r"metadata/v(\d+)((?:\.gz)?\.metadata\.json)")
_SUFFIXES = (".metadata.json", ".gz.metadata.json")


@dataclass(frozen=True)
class DirectoryCatalog(Catalog):
    """Tables by their location; the identifier is the location alone."""

    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def load(self, identifier: tuple[str, ...]) -> LoadedTable:
        """Load the newest version of a directory; see `Catalog.load`."""
        (location,) = identifier
        storage = TableFiles(location, self.options).root
        newest = _newest_version(storage, location)
        if newest is None:
            raise no_such_table(location)
        path = f"metadata/v{newest[0]}{newest[1]}"
        where = f"{location.rstrip('/')}/{path}"
        try:
            metadata = TableMetadata.load(storage.read(path), where)
        except FileNotFoundError:
            raise no_such_table(location) from None
        return LoadedTable(self, identifier, metadata, where, self.options)

    def stage(self, identifier: tuple[str, ...], metadata: TableMetadata) -> LoadedTable:
        """See `Catalog.stage`."""
        location = absolute_location(identifier[0])
        placed = TableMetadata.parse({**metadata.document, "location": location})
        return LoadedTable(self, identifier, placed, None, self.options)

    def commit(self, table: LoadedTable, change: TableChange) -> LoadedTable:
        """Write the next version if no other writer has; see `Catalog.commit`."""
        (location,) = table.identifier
        storage = TableFiles(location, self.options).root
        number = 1
        if table.metadata_location is not None:
            check_requirements(table.metadata, change.requirements)
            match = _VERSION.search(table.metadata_location)
            assert match is not None
            number = int(match[1]) + 1
        elif _newest_version(storage, location) is not None:
            raise IcebergError(f"the table {location} already exists", reason="table-exists", file=location)
        metadata = changed_metadata(table, change)
        suffix = metadata_suffix(table.metadata)
        path = f"metadata/v{number}{suffix}"
        if not storage.put_if_absent(path, metadata_bytes(table.metadata, metadata)):
            raise IcebergError(
                f"another commit came first: version {number} of the table exists", reason="conflict", file=location
            )
        with after_commit():  # Readers look for later versions than the hint names.
            storage.put(HINT, str(number).encode())
        with after_commit():
            table.files.delete(obsolete_metadata(table.metadata, metadata))
        return LoadedTable(self, table.identifier, metadata, f"{location.rstrip('/')}/{path}", self.options)

    def drop(self, identifier: tuple[str, ...]) -> None:
        """Delete the metadata of a directory, the newest version last; see `Catalog.drop`."""
        (location,) = identifier
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


@dataclass(frozen=True)
class MetadataFileCatalog(Catalog):
    """One metadata file; the table can only be read."""

    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def load(self, identifier: tuple[str, ...]) -> LoadedTable:
        """Load the metadata file that the identifier names; see `Catalog.load`."""
        (location,) = identifier
        directory, name = posixpath.split(normal_location(location))
        try:
            data = TableFiles(directory, self.options).root.read(name)
        except FileNotFoundError:
            raise no_such_table(location) from None
        return LoadedTable(self, identifier, TableMetadata.load(data, location), location, self.options)

    def stage(self, identifier: tuple[str, ...], metadata: TableMetadata) -> LoadedTable:
        """Refuse to create a table; see `Catalog.stage`."""
        raise _read_only(identifier[0])

    def commit(self, table: LoadedTable, change: TableChange) -> LoadedTable:
        """Refuse to commit; see `Catalog.commit`."""
        raise _read_only(table.identifier[0])

    def drop(self, identifier: tuple[str, ...]) -> None:
        """Refuse to drop the table; see `Catalog.drop`."""
        raise _read_only(identifier[0])


def _read_only(location: str) -> IcebergError:
    return IcebergError(
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
    if not text.isdecimal():
        return _listed(storage, location)
    number = int(text)
    suffix = _suffix(storage, number)
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
