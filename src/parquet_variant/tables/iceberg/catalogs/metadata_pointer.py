"""Catalogs that store only the location of a table's metadata file: SQL databases and Glue.

Owns opening PyIceberg's catalog, reading the metadata file that a row names, and the location of a new table. Leaves
rows, and swapping them, to the catalogs.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from parquet_variant.errors import IcebergError
from parquet_variant.tables.iceberg.catalogs.catalog import Catalog, LoadedTable, first_line
from parquet_variant.tables.iceberg.locations import TableFiles, absolute_location, storage_options_of
from parquet_variant.tables.iceberg.metadata.table_metadata import TableMetadata


@dataclass(frozen=True)
class MetadataPointerCatalog(Catalog):
    """A catalog whose rows name metadata files.

    `name`: the catalog's name.
    `properties`: PyIceberg's properties of the catalog.
    """

    name: str
    properties: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name, dict(self.properties))

    @abstractmethod
    def _metadata_location(self, identifier: tuple[str, ...]) -> str:
        """Return the location in a table's row. Raises `IcebergError`: reason ``"no-such-table"``."""

    @abstractmethod
    def _directory_names(self, identifier: tuple[str, ...]) -> tuple[str, ...]:
        """Return the directories below the warehouse in which a new table is placed."""

    def _open(self, catalog: Callable[..., Any]) -> Any:
        """Return PyIceberg's catalog. Raises `IcebergError`: reason ``"no-connection"``."""
        try:
            return catalog(self.name, **self.properties)
        except Exception as error:
            raise IcebergError(
                f"cannot open the catalog {self.name!r}: {first_line(error)}", reason="no-connection"
            ) from None

    @property
    def _options(self) -> dict[str, str]:
        return storage_options_of(self.properties)

    def load(self, identifier: tuple[str, ...]) -> LoadedTable:
        """See `Catalog.load`."""
        location = self._metadata_location(identifier)
        directory, _, name = location.rpartition("/")
        try:
            data = TableFiles(directory, self._options).root.read(name)
        except FileNotFoundError:
            raise IcebergError(
                f"the metadata file of {'.'.join(identifier)} is missing", reason="missing-file", file=location
            ) from None
        return LoadedTable(self, identifier, TableMetadata.load(data, location), location, self._options)

    def stage(self, identifier: tuple[str, ...], metadata: TableMetadata) -> LoadedTable:
        """See `Catalog.stage`."""
        location = str(metadata.document["location"])
        if not location:
            warehouse = self.properties.get("warehouse")
            if not warehouse:
                raise IcebergError(
                    f"the catalog {self.name!r} has no warehouse: give the table's location=", reason="bad-argument"
                )
            location = "/".join([str(warehouse).rstrip("/"), *self._directory_names(identifier)])
        placed = TableMetadata.parse({**metadata.document, "location": absolute_location(location)})
        return LoadedTable(self, identifier, placed, None, self._options)
