"""Catalogs: their interface, and those that keep metadata documents themselves, in directories and SQL databases.

Owns `Catalog`, `LoadedTable`, and storing documents, finding the newest one and committing the next: in a directory by
put-if-absent (specification, "File System Tables"), in the tables of PyIceberg's ``SqlCatalog`` by swapping a row. The
hint of a directory may be behind: a writer that is killed after its commit has not moved it.
"""

from __future__ import annotations

import gzip
import re
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import field, replace
from typing import Any

from parquet_variant.errors import IcebergError, VariantError, first_line
from parquet_variant.io.directories import ICEBERG_METADATA
from parquet_variant.support.lazy_names import optional_libraries
from parquet_variant.support.records import Record, cached_property
from parquet_variant.tables.commits import is_uncommitted
from parquet_variant.tables.iceberg.locations import TableFiles, absolute_location, normal_location, storage_options_of
from parquet_variant.tables.iceberg.metadata.table_metadata import TableMetadata
from parquet_variant.tables.iceberg.metadata.updates import TableChange, apply_change, check_requirements
from parquet_variant.tables.storage import Storage

DATA_PATH, METADATA_PATH = "write.data.path", "write.metadata.path"


class LoadedTable(Record):
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
            problem = f"the table {self.name} was replaced by another one"
            raise IcebergError(problem, reason="conflict", file=self.metadata.location)
        return newest

    def commit(self, change: TableChange) -> LoadedTable:
        """Commit a change of the metadata, and return the table after it.

        Raises `IcebergError`: reason ``"conflict"`` if another commit came first; ``"unknown-outcome"``.
        """
        return replace(self.catalog.commit(self, change), allow_outside=self.allow_outside)


class Catalog(ABC):
    """Finds tables by identifier, and replaces their metadata atomically."""

    store_options: Mapping[str, str]  # Configuration of the object store.

    @abstractmethod
    def load(self, identifier: tuple[str, ...]) -> LoadedTable:
        """Load a table. Raises `IcebergError`: reason ``"no-such-table"``."""

    def find(self, identifier: tuple[str, ...]) -> LoadedTable | None:
        """Load a table; return None if it does not exist."""
        try:
            return self.load(identifier)
        except IcebergError as error:
            if error.reason != "no-such-table":
                raise
            return None

    @abstractmethod
    def stage(self, identifier: tuple[str, ...], metadata: TableMetadata) -> LoadedTable:
        """Return a table that does not exist yet; its first commit creates it.

        `metadata`: what the table shall be; the catalog chooses the location if it is empty.
        """

    @abstractmethod
    def commit(self, table: LoadedTable, change: TableChange) -> LoadedTable:
        """Commit a change; see `LoadedTable.commit`.

        An error other than ``"unknown-outcome"`` means that the commit has not happened. Later steps run inside
        `suppress(*_AFTER_COMMIT)`.
        """

    @abstractmethod
    def drop(self, identifier: tuple[str, ...]) -> None:
        """Remove a table from the catalog; its files are kept. Raises `IcebergError`: reason ``"no-such-table"``."""


class NamedCatalog(Catalog, Record):
    """A catalog of names, over PyIceberg's catalog of its kind.

    `properties`: PyIceberg's properties of such catalogs, such as ``uri``, ``token`` and ``credential``.
    """

    name: str
    properties: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name, dict(self.properties))

    @staticmethod
    @abstractmethod
    def _client_type() -> Any:
        """Return the class of PyIceberg's catalog."""

    @cached_property
    def _client(self) -> Any:
        """PyIceberg's catalog: it holds the connection, creates tables of databases and knows addresses of servers."""
        with optional_libraries("Iceberg catalogs"):
            kind = self._client_type()
        try:
            return kind(self.name, **self.properties)
        except Exception as error:
            raise IcebergError(
                f"cannot open the catalog {self.name!r} at {self.properties.get('uri')}: {first_line(error)}",
                reason="no-connection",
            ) from None

    @property
    def store_options(self) -> Mapping[str, str]:  # type: ignore[override]
        """Configuration of the object store."""
        return storage_options_of(self.properties)

    def create_namespace(self, namespace: tuple[str, ...]) -> None:
        """Create a namespace if it does not exist."""
        with self._reported() as client:
            client.create_namespace_if_not_exists(namespace)

    @contextmanager
    def _reported(self) -> Iterator[Any]:
        """Give PyIceberg's catalog, whose errors, and those of its database, are ours."""
        try:
            yield self._client
        except VariantError:
            raise
        except Exception as error:
            problem = f"the catalog {self.name!r} failed: {first_line(error)}"
            raise IcebergError(problem, reason="no-connection") from None


# Errors of a step after a commit are suppressed, because the commit stands: an error would make callers remove the
# files that the committed metadata names.
_AFTER_COMMIT = (VariantError, OSError)


def no_such_table(name: str) -> IcebergError:
    """Return the error for a table that a catalog does not have."""
    return IcebergError(f"the table {name} does not exist", reason="no-such-table", file=name)


_CODEC = "write.metadata.compression-codec"
_DELETE_OLD = "write.metadata.delete-after-commit.enabled"
_NUMBER = re.compile(r"(?:v)?(\d+)[-.]")


class DocumentCatalog(Catalog):
    """A catalog whose tables are documents: it knows where the newest one is, and swaps it for the next."""

    @abstractmethod
    def _newest(self, identifier: tuple[str, ...]) -> str:
        """Return the location of a table's metadata. Raises `IcebergError`: reason ``"no-such-table"``."""

    @abstractmethod
    def _new_location(self, identifier: tuple[str, ...], location: str) -> str:
        """Return the location of a new table; `location`: what the user asked for, which may be empty."""

    @abstractmethod
    def _swap(self, table: LoadedTable, suffix: str, data: bytes) -> str | None:
        """Store the next metadata (`suffix` ends its name); return its place, None if another commit came first."""

    def load(self, identifier: tuple[str, ...]) -> LoadedTable:
        """See `Catalog.load`."""
        location = self._newest(identifier)
        directory, _, name = normal_location(location).rpartition("/")
        try:
            data = TableFiles(directory, self.store_options).root.read(name)
        except FileNotFoundError:
            raise IcebergError.of_missing_file(f"the metadata file of {'.'.join(identifier)}", location) from None
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
        codec, suffix, data = table.metadata.properties.get(_CODEC, "none").lower(), _SUFFIXES[0], metadata.to_bytes()
        if codec not in ("none", "gzip"):
            raise IcebergError(f"the table property {_CODEC} is {codec!r}: use none or gzip", reason="bad-property")
        if codec == "gzip":
            suffix, data = _SUFFIXES[1], gzip.compress(data, mtime=0)
        location = self._swap(table, suffix, data)
        if location is None and table.exists:
            raise IcebergError("another commit came first", reason="conflict", file=table.name)
        if location is None:
            raise IcebergError(f"the table {table.name} already exists", reason="table-exists", file=table.name)
        with suppress(*_AFTER_COMMIT):
            if metadata.properties.get(_DELETE_OLD, "false").lower() == "true":
                logged = {entry["metadata-file"] for entry in metadata.document.get("metadata-log") or []}
                former = [entry["metadata-file"] for entry in table.metadata.document.get("metadata-log") or []]
                table.files.delete([location for location in former if location not in logged])
        return LoadedTable(self, table.identifier, metadata, location, self.store_options)


HINT = "metadata/version-hint.text"
_VERSION = re.compile(r"metadata/v(\d+)((?:\.gz)?\.metadata\.json)")
_SUFFIXES = (".metadata.json", ".gz.metadata.json")


class DirectoryCatalog(DocumentCatalog, Record):
    """Tables by their location, which is the whole identifier; a metadata file can only be read."""

    store_options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def _newest(self, identifier: tuple[str, ...]) -> str:
        (location,) = identifier
        if location.endswith(ICEBERG_METADATA):
            return location
        newest = _newest_version(TableFiles(location, self.store_options).root, location)
        if newest is None:
            raise no_such_table(location)
        return f"{location.rstrip('/')}/metadata/v{newest[0]}{newest[1]}"

    def _new_location(self, identifier: tuple[str, ...], location: str) -> str:
        _check_writable(identifier[0])
        return identifier[0]

    def _swap(self, table: LoadedTable, suffix: str, data: bytes) -> str | None:
        """Write the next version if no other writer has."""
        (location,) = table.identifier
        _check_writable(location)
        storage = TableFiles(location, self.store_options).root
        number = 1
        if table.metadata_location is not None:
            match = _VERSION.search(table.metadata_location)
            assert match is not None
            number = int(match[1]) + 1
        elif _newest_version(storage, location) is not None:
            return None
        path = f"metadata/v{number}{suffix}"
        if not storage.put_if_absent(path, data):
            return None
        with suppress(*_AFTER_COMMIT):  # Readers look for later versions than the hint names.
            storage.put(HINT, str(number).encode())
        return f"{location.rstrip('/')}/{path}"

    def drop(self, identifier: tuple[str, ...]) -> None:
        """Delete the metadata of a directory, the newest version last; see `Catalog.drop`."""
        (location,) = identifier
        _check_writable(location)
        storage = TableFiles(location, self.store_options).root
        versions = _versions([file.path for file in storage.list("metadata")])
        if not versions:
            raise no_such_table(location)
        storage.delete(HINT)
        for number, suffix in versions:
            storage.delete(f"metadata/v{number}{suffix}")


def _check_writable(location: str) -> None:
    if location.endswith(ICEBERG_METADATA):
        problem = "a metadata file names a table for reading only: give the table's name and catalog=, or its directory"
        raise IcebergError(problem, reason="read-only", file=location)


def _newest_version(storage: Storage, location: str) -> tuple[int, str] | None:
    """Return number and suffix of the newest metadata file; None if the directory is not a table."""
    try:
        text = storage.read(HINT).decode(errors="replace").strip()
    except FileNotFoundError:
        text = ""
    number = int(text) if text.isdecimal() else 0
    suffix = _suffix(storage, number) if text.isdecimal() else None
    if suffix is not None:
        while (later := _suffix(storage, number + 1)) is not None:
            number, suffix = number + 1, later
        return number, suffix
    paths = [file.path for file in storage.list("metadata")]
    versions, unnumbered = _versions(paths), [path for path in paths if path.endswith(_SUFFIXES[0])]
    if unnumbered and not versions:
        problem = (
            f"{location} has no version-hint.text: its newest version is known to a catalog only; give the table's "
            f"name and catalog=, or read one of its metadata files, such as {max(unnumbered)}"
        )
        raise IcebergError(problem, reason="no-version-hint", file=location)
    return max(versions, default=None)


def _versions(paths: Iterable[str]) -> list[tuple[int, str]]:
    """Return number and suffix of metadata files, the oldest first."""
    return sorted((int(match[1]), match[2]) for path in paths if (match := _VERSION.fullmatch(path)) is not None)


def _suffix(storage: Storage, number: int) -> str | None:
    """Return how the name of a version's metadata file ends; None if there is no such version."""
    for suffix in _SUFFIXES:
        with suppress(FileNotFoundError):
            storage.read(f"metadata/v{number}{suffix}", 0, 1)
            return suffix
    return None


class SqlCatalog(NamedCatalog, DocumentCatalog):
    """Tables of a database that PyIceberg's ``SqlCatalog`` uses, or can use; it has ``uri`` and ``warehouse``."""

    @staticmethod
    def _client_type() -> Any:
        from pyiceberg.catalog.sql import SqlCatalog as PyIcebergSqlCatalog

        return PyIcebergSqlCatalog

    def _newest(self, identifier: tuple[str, ...]) -> str:
        from sqlalchemy import select

        query = select(_tables().c.metadata_location).where(*self._is_row_of(identifier))
        with self._reported() as client, client.engine.connect() as connection:
            row = connection.execute(query).first()
        if row is None or row[0] is None:
            raise no_such_table(".".join(identifier))
        return str(row[0])

    def _new_location(self, identifier: tuple[str, ...], location: str) -> str:
        warehouse = self.properties.get("warehouse")
        if not location and not warehouse:
            problem = f"the catalog {self.name!r} has no warehouse: give the table's location="
            raise IcebergError(problem, reason="bad-argument")
        return location or "/".join([str(warehouse).rstrip("/"), *identifier])

    def _swap(self, table: LoadedTable, suffix: str, data: bytes) -> str | None:
        """Write a metadata file with a unique name, and make the row of the table name it."""
        from sqlalchemy import insert, update

        # The version in the name of the former file, such as 00012-1f.metadata.json and v12.metadata.json.
        former = _NUMBER.match((table.metadata_location or "").rpartition("/")[2])
        number = int(former[1]) + 1 if former else int(table.exists)
        location = f"{table.metadata_directory()}/{number:05}-{uuid.uuid4()}{suffix}"
        tables, is_kept = _tables(), True  # After an interrupt as well: it may be committed.
        locations = {"metadata_location": location, "previous_metadata_location": table.metadata_location}
        step = insert(tables).values({**self._key(table.identifier), **locations})
        if table.exists:
            is_former = tables.c.metadata_location == table.metadata_location
            step = update(tables).where(*self._is_row_of(table.identifier), is_former).values(locations)
        try:
            table.files.write(location, data)
            is_kept = self._execute(step, table)
        except Exception as error:
            is_kept = not is_uncommitted(error)
            raise
        finally:
            if not is_kept:
                with suppress(*_AFTER_COMMIT):
                    table.files.delete([location])
        return location if is_kept else None

    def _execute(self, step: Any, table: LoadedTable) -> bool:
        """Make the row of a table name a new metadata file; return False if another commit came first."""
        from sqlalchemy.exc import IntegrityError

        engine, is_sent = self._client.engine, False
        try:
            with engine.begin() as connection:
                is_swapped = bool(connection.execute(step).rowcount) or not table.exists
                is_sent = True
        except Exception as error:
            if isinstance(error, IntegrityError) and not table.exists:
                return False
            if is_sent and not (engine.dialect.name == "sqlite" and self._is_newest(table)):
                problem = (
                    f"the database failed, and may or may not have committed: {first_line(error)}; read the table's "
                    "history"
                )
                raise IcebergError(problem, reason="unknown-outcome", file=table.name) from None
            problem = f"the database failed, and nothing is committed: {first_line(error)}"
            raise IcebergError(problem, reason="commit-failed", file=table.name) from None
        return is_swapped

    def _is_newest(self, table: LoadedTable) -> bool:
        """Return whether a table certainly has not changed: what SQLite rolled back, as others see it, stays so."""
        with suppress(IcebergError):
            return self._newest(table.identifier) == table.metadata_location
        return False

    def drop(self, identifier: tuple[str, ...]) -> None:
        """See `Catalog.drop`."""
        from sqlalchemy import delete

        with self._reported() as client, client.engine.begin() as connection:
            if not connection.execute(delete(_tables()).where(*self._is_row_of(identifier))).rowcount:
                raise no_such_table(".".join(identifier))

    def _key(self, identifier: tuple[str, ...]) -> dict[str, str]:
        *namespace, name = identifier
        return {"catalog_name": self.name, "table_namespace": ".".join(namespace), "table_name": name}

    def _is_row_of(self, identifier: tuple[str, ...]) -> tuple[Any, ...]:
        columns = _tables().c
        return tuple(columns[name] == value for name, value in self._key(identifier).items())


def _tables() -> Any:
    from pyiceberg.catalog.sql import IcebergTables

    return IcebergTables.__table__
