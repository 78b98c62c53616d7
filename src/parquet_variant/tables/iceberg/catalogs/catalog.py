"""The interface of catalogs, and a table that one of them has loaded.

Owns `Catalog`, `LoadedTable`, and storing metadata files for the catalogs that do it themselves. Which catalog a user
means is decided in `opening`.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace

from parquet_variant.errors import IcebergError, VariantError, without_secrets
from parquet_variant.support.fork_safety import cached_property
from parquet_variant.tables.iceberg.locations import TableFiles, absolute_location, normal_location
from parquet_variant.tables.iceberg.metadata.table_metadata import TableMetadata, zipped
from parquet_variant.tables.iceberg.metadata.updates import (
    TableChange,
    Update,
    apply_change,
    check_requirements,
    schema_updates,
)

DATA_PATH, METADATA_PATH = "write.data.path", "write.metadata.path"
CODEC = "write.metadata.compression-codec"
_DELETE_OLD = "write.metadata.delete-after-commit.enabled"
_NUMBER = re.compile(r"(?:v)?(\d+)[-.]")


@dataclass(frozen=True)
class LoadedTable:
    """A table as its catalog has it now; can be pickled.

    `identifier`: namespace and name, or the location of a table without a catalog.
    `metadata_location`: where the metadata is stored; None for a table that does not exist yet.
    `options`: configuration of the object store, vended credentials among it.
    """

    catalog: Catalog
    identifier: tuple[str, ...]
    metadata: TableMetadata
    metadata_location: str | None
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    allow_outside: bool = False

    @cached_property
    def files(self) -> TableFiles:
        """The table's files."""
        properties = self.metadata.properties
        roots = tuple(properties[name] for name in (DATA_PATH, METADATA_PATH) if name in properties)
        return TableFiles(self.metadata.location, self.options, roots, self.allow_outside)

    @property
    def name(self) -> str:
        """The table as errors name it."""
        return ".".join(self.identifier)

    @property
    def exists(self) -> bool:
        """Whether the table already exists."""
        return self.metadata_location is not None

    def data_location(self) -> str:
        """Return the directory of new data files."""
        return self.metadata.properties.get(DATA_PATH, f"{self.metadata.location}/data").rstrip("/")

    def metadata_directory(self) -> str:
        """Return the directory of new metadata files."""
        return self.metadata.properties.get(METADATA_PATH, f"{self.metadata.location}/metadata").rstrip("/")

    def refreshed(self) -> LoadedTable:
        """Return the table as it is now.

        Raises `IcebergError`: reason ``"conflict"`` if another table has its name by now.
        """
        newest = replace(self.catalog.load(self.identifier), allow_outside=self.allow_outside)
        if newest.metadata.uuid != self.metadata.uuid:
            raise IcebergError(
                f"the table {self.name} was replaced by another one", reason="conflict", file=self.metadata.location
            )
        return newest

    def commit(self, change: TableChange) -> LoadedTable:
        """Commit a change of the metadata, and return the table after it.

        Raises `IcebergError`: reason ``"conflict"`` if another commit came first; ``"unknown-outcome"``.
        """
        return replace(self.catalog.commit(self, change), allow_outside=self.allow_outside)


class Catalog(ABC):
    """Finds tables by identifier, and replaces their metadata atomically."""

    @abstractmethod
    def load(self, identifier: tuple[str, ...]) -> LoadedTable:
        """Load a table. Raises `IcebergError`: reason ``"no-such-table"``."""

    @abstractmethod
    def stage(self, identifier: tuple[str, ...], metadata: TableMetadata) -> LoadedTable:
        """Return a table that does not exist yet; its first commit creates it.

        `metadata`: what the table shall be; the catalog chooses the location if it is empty.
        """

    @abstractmethod
    def commit(self, table: LoadedTable, change: TableChange) -> LoadedTable:
        """Commit a change; see `LoadedTable.commit`.

        An error other than ``"unknown-outcome"`` means that the commit has not happened. Later steps run inside
        `after_commit`.
        """

    @abstractmethod
    def drop(self, identifier: tuple[str, ...]) -> None:
        """Remove a table from the catalog; its files are kept. Raises `IcebergError`: reason ``"no-such-table"``."""


def after_commit() -> AbstractContextManager[None]:
    """Suppress the errors of a step after a commit.

    The commit stands: an error would make callers remove the files that the committed metadata names.
    """
    return suppress(VariantError, OSError)


def no_such_table(name: str) -> IcebergError:
    """Return the error for a table that a catalog does not have."""
    return IcebergError(f"the table {name} does not exist", reason="no-such-table", file=name)


def first_line(error: Exception) -> str:
    """Return the first line of another library's error, without credentials."""
    return without_secrets((str(error).splitlines() or [type(error).__name__])[0])


def creation_updates(metadata: TableMetadata) -> list[Update]:
    """Return the updates that make the metadata of a new table out of nothing."""
    updates: list[Update] = [
        {"action": "assign-uuid", "uuid": metadata.uuid},
        {"action": "upgrade-format-version", "format-version": metadata.version},
        *schema_updates(metadata, metadata.schema),
        {"action": "add-spec", "spec": metadata.spec.to_json()},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": metadata.sort_order.to_json()},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": metadata.location},
    ]
    if metadata.properties:
        updates.append({"action": "set-properties", "updates": dict(metadata.properties)})
    return updates


@dataclass(frozen=True)
class DocumentCatalog(Catalog):
    """A catalog whose tables are documents: it knows where the newest one is, and swaps it for the next."""

    @property
    @abstractmethod
    def store_options(self) -> Mapping[str, str]:
        """Configuration of the object store."""

    @abstractmethod
    def _newest(self, identifier: tuple[str, ...]) -> str:
        """Return the location of a table's metadata. Raises `IcebergError`: reason ``"no-such-table"``."""

    @abstractmethod
    def _new_location(self, identifier: tuple[str, ...], location: str) -> str:
        """Return the location of a new table; `location`: what the user asked for, which may be empty."""

    @abstractmethod
    def _swap(self, table: LoadedTable, metadata: TableMetadata) -> str | None:
        """Store the next metadata and return its location; None if another commit came first."""

    def load(self, identifier: tuple[str, ...]) -> LoadedTable:
        """See `Catalog.load`."""
        location = self._newest(identifier)
        directory, _, name = normal_location(location).rpartition("/")
        try:
            data = TableFiles(directory, self.store_options).root.read(name)
        except FileNotFoundError:
            raise IcebergError(
                f"the metadata file of {'.'.join(identifier)} is missing", reason="missing-file", file=location
            ) from None
        return LoadedTable(self, identifier, TableMetadata.load(data, location), location, self.store_options)

    def stage(self, identifier: tuple[str, ...], metadata: TableMetadata) -> LoadedTable:
        """See `Catalog.stage`."""
        location = absolute_location(self._new_location(identifier, str(metadata.document["location"])))
        placed = TableMetadata.parse({**metadata.document, "location": location})
        return LoadedTable(self, identifier, placed, None, self.store_options)

    def commit(self, table: LoadedTable, change: TableChange) -> LoadedTable:
        """See `Catalog.commit`."""
        if table.exists:
            check_requirements(table.metadata, change.requirements)
        metadata = apply_change(table.metadata, change, table.metadata_location)
        location = self._swap(table, metadata)
        if location is None and table.exists:
            raise IcebergError("another commit came first", reason="conflict", file=table.name)
        if location is None:
            raise IcebergError(f"the table {table.name} already exists", reason="table-exists", file=table.name)
        with after_commit():
            table.files.delete(obsolete_metadata(table.metadata, metadata))
        return LoadedTable(self, table.identifier, metadata, location, self.store_options)


def metadata_suffix(metadata: TableMetadata) -> str:
    """Return how names of metadata files end, by the table's codec.

    Raises `IcebergError`: reason ``"bad-property"``.
    """
    codec = metadata.properties.get(CODEC, "none").lower()
    if codec not in ("none", "gzip"):
        raise IcebergError(f"the table property {CODEC} is {codec!r}: use none or gzip", reason="bad-property")
    return ".gz.metadata.json" if codec == "gzip" else ".metadata.json"


def metadata_bytes(base: TableMetadata, metadata: TableMetadata) -> bytes:
    """Return the bytes of a metadata file, compressed if the metadata that it replaces asks for it."""
    data = metadata.to_bytes()
    return zipped(data) if metadata_suffix(base).startswith(".gz") else data


def version_number(location: str) -> int:
    """Return the version in the name of a metadata file; 0 if it has none.

    >>> version_number("s3://b/t/metadata/00012-1f.metadata.json"), version_number("/t/metadata/v3.metadata.json")
    (12, 3)
    """
    match = _NUMBER.match(location.rpartition("/")[2])
    return int(match[1]) if match else 0


def obsolete_metadata(before: TableMetadata, after: TableMetadata) -> list[str]:
    """Return the metadata files that a commit dropped from the log, where the table asks to delete them."""
    if after.properties.get(_DELETE_OLD, "false").lower() != "true":
        return []
    logged = {entry["metadata-file"] for entry in after.document.get("metadata-log") or []}
    former = [entry["metadata-file"] for entry in before.document.get("metadata-log") or []]
    return [location for location in former if location not in logged]
