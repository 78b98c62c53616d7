"""The interface of catalogs, and a table that one of them has loaded.

Owns `Catalog` and `LoadedTable`. Which catalog a user means is decided in `opening`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace

from parquet_variant.errors import IcebergError, VariantError, without_secrets
from parquet_variant.support.fork_safety import cached_property
from parquet_variant.tables.iceberg.locations import TableFiles
from parquet_variant.tables.iceberg.metadata.table_metadata import TableMetadata
from parquet_variant.tables.iceberg.metadata.updates import TableChange

DATA_PATH, METADATA_PATH = "write.data.path", "write.metadata.path"


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
