"""SQL catalogs: the tables of PyIceberg's ``SqlCatalog``, so that both can use one database.

Owns reading and swapping the row of a table, which names its metadata file, and the location of a new table; the engine
and the definition of the tables are PyIceberg's.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from parquet_variant.errors import IcebergError, VariantError
from parquet_variant.support.fork_safety import cached_property
from parquet_variant.support.lazy_names import optional_libraries
from parquet_variant.tables.iceberg.catalogs.catalog import (
    Catalog,
    LoadedTable,
    after_commit,
    changed_metadata,
    first_line,
    no_such_table,
    obsolete_metadata,
    write_metadata_file,
)
from parquet_variant.tables.iceberg.locations import TableFiles, absolute_location, storage_options_of
from parquet_variant.tables.iceberg.metadata.table_metadata import TableMetadata
from parquet_variant.tables.iceberg.metadata.updates import TableChange, check_requirements


@dataclass(frozen=True)
class SqlCatalog(Catalog):
    """Tables of a database that PyIceberg's ``SqlCatalog`` uses, or can use.

    `name`: the catalog's name, which is a part of the rows' keys.
    `properties`: PyIceberg's properties of SQL catalogs: ``uri`` and ``warehouse``.
    """

    name: str
    properties: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return SqlCatalog, (self.name, dict(self.properties))

    @cached_property
    def _client(self) -> Any:
        """PyIceberg's catalog: it holds the engine, and creates the tables."""
        with optional_libraries("SQL catalogs"):
            from pyiceberg.catalog.sql import SqlCatalog as PyIcebergSqlCatalog
        try:
            return PyIcebergSqlCatalog(self.name, **self.properties)
        except Exception as error:
            raise IcebergError(
                f"cannot open the catalog {self.name!r}: {first_line(error)}", reason="no-connection"
            ) from None

    def _metadata_location(self, identifier: tuple[str, ...]) -> str:
        from sqlalchemy import select

        tables = _tables()
        with self._client.engine.connect() as connection:
            row = connection.execute(select(tables.c.metadata_location).where(*self._key(identifier))).first()
        if row is None or row[0] is None:
            raise no_such_table(".".join(identifier))
        return str(row[0])

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
            location = "/".join([str(warehouse).rstrip("/"), *identifier])
        placed = TableMetadata.parse({**metadata.document, "location": absolute_location(location)})
        return LoadedTable(self, identifier, placed, None, self._options)

    def commit(self, table: LoadedTable, change: TableChange) -> LoadedTable:
        """Write a metadata file and swap the row to it; see `Catalog.commit`."""
        if table.exists:
            check_requirements(table.metadata, change.requirements)
        metadata = changed_metadata(table, change)
        location = write_metadata_file(table, metadata)
        try:
            swapped = self._swap(table, location)
        except Exception as error:
            line = first_line(error)
            raise IcebergError(
                f"the database failed, and may or may not have committed: {line}; read the table's history",
                reason="unknown-outcome",
                file=table.name,
            ) from None
        if not swapped:
            with suppress(VariantError, OSError):
                table.files.delete([location])
            if not table.exists:
                raise IcebergError(f"the table {table.name} already exists", reason="table-exists", file=table.name)
            raise IcebergError("another commit came first", reason="conflict", file=table.name)
        with after_commit():
            table.files.delete(obsolete_metadata(table.metadata, metadata))
        return LoadedTable(self, table.identifier, metadata, location, self._options)

    def _swap(self, table: LoadedTable, location: str) -> bool:
        from sqlalchemy import insert, update
        from sqlalchemy.exc import IntegrityError

        tables = _tables()
        with self._client.engine.begin() as connection:
            if table.exists:
                where = (*self._key(table.identifier), tables.c.metadata_location == table.metadata_location)
                values = {"metadata_location": location, "previous_metadata_location": table.metadata_location}
                return bool(connection.execute(update(tables).where(*where).values(values)).rowcount)
            *namespace, name = table.identifier
            values = {
                "catalog_name": self.name,
                "table_namespace": ".".join(namespace),
                "table_name": name,
                "metadata_location": location,
                "previous_metadata_location": None,
            }
            try:
                connection.execute(insert(tables).values(values))
            except IntegrityError:
                return False
        return True

    def drop(self, identifier: tuple[str, ...]) -> None:
        """See `Catalog.drop`."""
        from sqlalchemy import delete

        with self._client.engine.begin() as connection:
            if not connection.execute(delete(_tables()).where(*self._key(identifier))).rowcount:
                raise no_such_table(".".join(identifier))

    def create_namespace(self, namespace: tuple[str, ...]) -> None:
        """Create a namespace if it does not exist."""
        self._client.create_namespace_if_not_exists(namespace)

    def _key(self, identifier: tuple[str, ...]) -> tuple[Any, ...]:
        tables = _tables()
        *namespace, name = identifier
        return (
            tables.c.catalog_name == self.name,
            tables.c.table_namespace == ".".join(namespace),
            tables.c.table_name == name,
        )


def _tables() -> Any:
    from pyiceberg.catalog.sql import IcebergTables

    return IcebergTables.__table__
