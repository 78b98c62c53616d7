"""SQL catalogs: the tables of PyIceberg's ``SqlCatalog``, so that both can use one database.

Owns reading and swapping the row of a table, which names its metadata file, and the location of a new table; the engine
and the definition of the tables are PyIceberg's.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from parquet_variant.errors import IcebergError
from parquet_variant.support.fork_safety import cached_property
from parquet_variant.support.lazy_names import optional_libraries
from parquet_variant.tables.iceberg.catalogs.catalog import (
    DocumentCatalog,
    LoadedTable,
    after_commit,
    first_line,
    metadata_bytes,
    metadata_suffix,
    no_such_table,
    version_number,
)
from parquet_variant.tables.iceberg.locations import storage_options_of
from parquet_variant.tables.iceberg.metadata.table_metadata import TableMetadata


@dataclass(frozen=True)
class SqlCatalog(DocumentCatalog):
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

    @property
    def store_options(self) -> Mapping[str, str]:
        """See `DocumentCatalog.store_options`."""
        return storage_options_of(self.properties)

    def _newest(self, identifier: tuple[str, ...]) -> str:
        from sqlalchemy import select

        tables = _tables()
        with self._client.engine.connect() as connection:
            row = connection.execute(select(tables.c.metadata_location).where(*self._is_row_of(identifier))).first()
        if row is None or row[0] is None:
            raise no_such_table(".".join(identifier))
        return str(row[0])

    def _new_location(self, identifier: tuple[str, ...], location: str) -> str:
        warehouse = self.properties.get("warehouse")
        if not location and not warehouse:
            raise IcebergError(
                f"the catalog {self.name!r} has no warehouse: give the table's location=", reason="bad-argument"
            )
        return location or "/".join([str(warehouse).rstrip("/"), *identifier])

    def _swap(self, table: LoadedTable, metadata: TableMetadata) -> str | None:
        """Write a metadata file with a unique name, and make the row of the table name it."""
        number = version_number(table.metadata_location) + 1 if table.metadata_location is not None else 0
        suffix = metadata_suffix(table.metadata)
        location = f"{table.metadata_directory()}/{number:05}-{uuid.uuid4()}{suffix}"
        table.files.write(location, metadata_bytes(table.metadata, metadata))
        try:
            if self._swap_row(table, location):
                return location
        except Exception as error:
            line = first_line(error)
            raise IcebergError(
                f"the database failed, and may or may not have committed: {line}; read the table's history",
                reason="unknown-outcome",
                file=table.name,
            ) from None
        with after_commit():
            table.files.delete([location])
        return None

    def _swap_row(self, table: LoadedTable, location: str) -> bool:
        from sqlalchemy import insert, update
        from sqlalchemy.exc import IntegrityError

        tables = _tables()
        locations = {"metadata_location": location, "previous_metadata_location": table.metadata_location}
        with self._client.engine.begin() as connection:
            if table.exists:
                where = (*self._is_row_of(table.identifier), tables.c.metadata_location == table.metadata_location)
                return bool(connection.execute(update(tables).where(*where).values(locations)).rowcount)
            try:
                connection.execute(insert(tables).values({**self._key(table.identifier), **locations}))
            except IntegrityError:
                return False
        return True

    def drop(self, identifier: tuple[str, ...]) -> None:
        """See `Catalog.drop`."""
        from sqlalchemy import delete

        with self._client.engine.begin() as connection:
            if not connection.execute(delete(_tables()).where(*self._is_row_of(identifier))).rowcount:
                raise no_such_table(".".join(identifier))

    def create_namespace(self, namespace: tuple[str, ...]) -> None:
        """Create a namespace if it does not exist."""
        self._client.create_namespace_if_not_exists(namespace)

    def _key(self, identifier: tuple[str, ...]) -> dict[str, str]:
        *namespace, name = identifier
        return {"catalog_name": self.name, "table_namespace": ".".join(namespace), "table_name": name}

    def _is_row_of(self, identifier: tuple[str, ...]) -> tuple[Any, ...]:
        columns = _tables().c
        return tuple(columns[name] == value for name, value in self._key(identifier).items())


def _tables() -> Any:
    from pyiceberg.catalog.sql import IcebergTables

    return IcebergTables.__table__
