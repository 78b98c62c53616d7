"""AWS Glue: tables by the parameters that PyIceberg's ``GlueCatalog`` and Iceberg's Java library give them.

Owns reading and swapping a table's metadata location, which Glue checks by the version of its table. The client, with
its session, region and endpoint, is PyIceberg's.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from parquet_variant.errors import IcebergError, TableError
from parquet_variant.support.fork_safety import cached_property
from parquet_variant.support.lazy_names import optional_libraries
from parquet_variant.tables.iceberg.catalogs.catalog import (
    LoadedTable,
    changed_metadata,
    first_line,
    no_such_table,
    obsolete_metadata,
    write_metadata_file,
)
from parquet_variant.tables.iceberg.catalogs.metadata_pointer import MetadataPointerCatalog
from parquet_variant.tables.iceberg.metadata.table_metadata import TableMetadata
from parquet_variant.tables.iceberg.metadata.types import IcebergType, ListType, MapType, PrimitiveType, StructType
from parquet_variant.tables.iceberg.metadata.updates import TableChange, check_requirements

_LOCATION, _PREVIOUS, _TYPE = "metadata_location", "previous_metadata_location", "table_type"
# Hive's names of types, where they differ from Iceberg's.
_HIVE_NAMES = {"long": "bigint", "timestamptz": "timestamp", "time": "string", "uuid": "string", "fixed": "binary"}


@dataclass(frozen=True)
class GlueCatalog(MetadataPointerCatalog):
    """Tables of a Glue catalog.

    `name`: the catalog's name.
    `properties`: PyIceberg's properties of Glue catalogs: ``glue.region``, ``glue.endpoint``, ``warehouse``.
    """

    @cached_property
    def _catalog(self) -> Any:
        """PyIceberg's catalog: it holds the client of boto3."""
        with optional_libraries("Glue catalogs"):
            from pyiceberg.catalog.glue import GlueCatalog as PyIcebergGlueCatalog
        return self._open(PyIcebergGlueCatalog)

    def _metadata_location(self, identifier: tuple[str, ...]) -> str:
        return str(self._row(identifier)["Parameters"][_LOCATION])

    def _directory_names(self, identifier: tuple[str, ...]) -> tuple[str, ...]:
        database, name = _names(identifier)
        return f"{database}.db", name

    def commit(self, table: LoadedTable, change: TableChange) -> LoadedTable:
        """Write a metadata file and swap the table's parameter to it; see `Catalog.commit`."""
        row = None
        if table.exists:
            check_requirements(table.metadata, change.requirements)
            row = self._row(table.identifier)
            if row["Parameters"][_LOCATION] != table.metadata_location:
                raise IcebergError("another commit came first", reason="conflict", file=table.name)
        metadata = changed_metadata(table, change)
        location = write_metadata_file(table, metadata)
        try:
            self._swap(table, metadata, location, row)
        except IcebergError as error:
            if error.reason != "unknown-outcome":
                with suppress(TableError):
                    table.files.delete([location])
            raise
        with suppress(TableError):
            table.files.delete(obsolete_metadata(table.metadata, metadata))
        return LoadedTable(self, table.identifier, metadata, location, self._options)

    def _swap(self, table: LoadedTable, metadata: TableMetadata, location: str, row: Mapping[str, Any] | None) -> None:
        """Create the table, or change it if it still has the version that was read."""
        client, (database, name) = self._catalog.glue, _names(table.identifier)
        values = _table_input(name, metadata, location, table.metadata_location, row)
        try:
            if row is None:
                client.create_table(DatabaseName=database, TableInput=values)
            else:
                version = {"VersionId": row["VersionId"]} if "VersionId" in row else {}
                client.update_table(DatabaseName=database, TableInput=values, SkipArchive=True, **version)
        except client.exceptions.AlreadyExistsException:
            raise IcebergError(
                f"the table {table.name} exists already", reason="table-exists", file=table.name
            ) from None
        except client.exceptions.ConcurrentModificationException:
            raise IcebergError("another commit came first", reason="conflict", file=table.name) from None
        except client.exceptions.EntityNotFoundException:
            raise IcebergError(
                f"Glue has no database {database!r}, or the table was dropped: create it with "
                "pv.iceberg.create_namespace",
                reason="no-such-table",
                file=table.name,
            ) from None
        except Exception as error:
            raise IcebergError(
                f"Glue failed, and may or may not have committed: {first_line(error)}; read the table's history",
                reason="unknown-outcome",
                file=table.name,
            ) from None

    def drop(self, identifier: tuple[str, ...]) -> None:
        """See `Catalog.drop`."""
        client, (database, name) = self._catalog.glue, _names(identifier)
        try:
            client.delete_table(DatabaseName=database, Name=name)
        except client.exceptions.EntityNotFoundException:
            raise no_such_table(".".join(identifier)) from None

    def create_namespace(self, namespace: tuple[str, ...]) -> None:
        """Create a database if it does not exist."""
        self._catalog.create_namespace_if_not_exists(namespace)

    def _row(self, identifier: tuple[str, ...]) -> dict[str, Any]:
        """Return a table as Glue has it. Raises `IcebergError`: reason ``"no-such-table"`` or ``"no-connection"``."""
        client, (database, name) = self._catalog.glue, _names(identifier)
        try:
            row: dict[str, Any] = client.get_table(DatabaseName=database, Name=name)["Table"]
        except client.exceptions.EntityNotFoundException:
            raise no_such_table(".".join(identifier)) from None
        except Exception as error:
            raise IcebergError(
                f"cannot read {'.'.join(identifier)} from Glue: {first_line(error)}", reason="no-connection"
            ) from None
        parameters = row.get("Parameters") or {}
        if parameters.get(_TYPE, "").lower() != "iceberg" or _LOCATION not in parameters:
            raise IcebergError(f"the Glue table {'.'.join(identifier)} is not an Iceberg table", reason="no-such-table")
        return row


def _names(identifier: tuple[str, ...]) -> tuple[str, str]:
    if len(identifier) != 2:
        raise IcebergError(
            f"Glue has no namespaces with dots: write database.table, not {'.'.join(identifier)}",
            reason="bad-argument",
        )
    return identifier[0], identifier[1]


def _table_input(
    name: str, metadata: TableMetadata, location: str, previous: str | None, row: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return a table as Glue takes it, with the parameters that others gave it."""
    parameters = dict((row or {}).get("Parameters") or {})
    parameters |= {**metadata.properties, _TYPE: "ICEBERG", _LOCATION: location}
    if previous is not None:
        parameters[_PREVIOUS] = previous
    columns = [
        {
            "Name": f.name,
            "Type": _hive_type(f.type),
            "Parameters": {
                "iceberg.field.id": str(f.id),
                "iceberg.field.optional": str(not f.required).lower(),
                "iceberg.field.current": "true",
            },
        }
        for f in metadata.schema.fields
    ]
    return {
        "Name": name,
        "TableType": "EXTERNAL_TABLE",
        "Parameters": parameters,
        "StorageDescriptor": {"Columns": columns, "Location": metadata.location},
    }


def _hive_type(kind: IcebergType) -> str:
    if isinstance(kind, StructType):
        return f"struct<{','.join(f'{f.name}:{_hive_type(f.type)}' for f in kind.fields)}>"
    if isinstance(kind, ListType):
        return f"array<{_hive_type(kind.element)}>"
    if isinstance(kind, MapType):
        return f"map<{_hive_type(kind.key)},{_hive_type(kind.value)}>"
    assert isinstance(kind, PrimitiveType)
    return _HIVE_NAMES.get(kind.family, kind.name)
