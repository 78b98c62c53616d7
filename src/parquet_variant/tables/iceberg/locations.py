"""Files of a table by the absolute locations that Iceberg's metadata has for them.

Owns which locations belong to a table, their way into a `Storage`, and the object store's options by Iceberg's property
names. A location outside of the table is refused unless its owner allows it: metadata from elsewhere must not make this
process read any file that it can reach.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any
from urllib.parse import urlparse

from parquet_variant.errors import IcebergError
from parquet_variant.io.filesystems import with_known_scheme
from parquet_variant.support.records import Record, cached_property
from parquet_variant.tables.storage import Storage, open_storage

# Iceberg's names of properties -> obstore's names of options.
_OPTIONS = {
    "s3.endpoint": "endpoint",
    "s3.access-key-id": "access_key_id",
    "s3.secret-access-key": "secret_access_key",
    "s3.session-token": "session_token",
    "s3.region": "region",
    "client.region": "region",
    "gcs.oauth2.token": "bearer_token",
    "adls.account-name": "account_name",
    "adls.account-key": "account_key",
    "adls.tenant-id": "tenant_id",
    "adls.client-id": "client_id",
    "adls.client-secret": "client_secret",
}


def storage_options_of(properties: Mapping[str, Any]) -> dict[str, str]:
    """Return the options of an object store in the properties of a catalog or in vended credentials.

    >>> storage_options_of({"s3.endpoint": "http://127.0.0.1:9000", "uri": "…"})
    {'endpoint': 'http://127.0.0.1:9000'}
    """
    options = {_OPTIONS[name]: str(value) for name, value in properties.items() if name in _OPTIONS}
    for name, value in properties.items():
        if name.startswith("adls.sas-token"):
            options["sas_key"] = str(value)
    return options


def normal_location(location: str) -> str:
    """Return a location in one spelling: no scheme for local files, Hadoop's schemes by their common names.

    >>> normal_location("file:///tmp/t"), normal_location("s3a://b/t")
    ('/tmp/t', 's3://b/t')
    """
    if location.startswith("file:"):
        path = location[len("file:") :]
        return "/" + path.lstrip("/") if path.startswith("/") else path
    if "://" in location:
        return with_known_scheme(location)
    return os.path.abspath(location)  # noqa: PTH100 - as a string, without resolving links


def absolute_location(location: str) -> str:
    """Return a location as metadata has it: with a scheme, also for local files.

    >>> absolute_location("/tmp/t/"), absolute_location("s3a://b/t")
    ('file:///tmp/t', 's3a://b/t')
    """
    location = location.rstrip("/")
    return location if "://" in location else f"file://{normal_location(location)}"


class TableFiles(Record):
    """The files of one table.

    `location`: the table's base location.
    `options`: configuration of the object store.
    `other_roots`: locations besides the base where the table's properties put files.
    `allow_outside`: whether files elsewhere may be read. They are never written or deleted.
    """

    location: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    other_roots: tuple[str, ...] = ()
    allow_outside: bool = False

    @cached_property
    def _roots(self) -> list[tuple[str, Storage]]:
        return [
            (normal_location(root).rstrip("/") + "/", self._open(root)) for root in (self.location, *self.other_roots)
        ]

    def _open(self, root: str) -> Storage:
        uri = with_known_scheme(root) if "://" in root and not root.startswith("file:") else normal_location(root)
        return open_storage(uri, self.options)

    @property
    def root(self) -> Storage:
        """The storage of the table's base location."""
        return self._roots[0][1]

    def find(self, location: str, *, write: bool = False) -> tuple[Storage, str]:
        """Return the storage of a location, and the path in it. Raises `IcebergError`: reason ``"outside-table"``."""
        normal = normal_location(location)
        inside = ".." not in normal.split("/")
        for root, storage in self._roots:
            if inside and normal.startswith(root):
                return storage, normal[len(root) :]
        if write or not self.allow_outside:
            problem = (
                f"the metadata names {location}, which lies outside of the table: pass allow_outside=True to read such "
                "files; they are never written or deleted"
            )
            raise IcebergError(problem, reason="outside-table", file=self.location)
        directory, name = posixpath.split(normal)
        return self._open(directory), name

    def read(self, location: str, offset: int = 0, length: int | None = None) -> bytes:
        """Return the bytes of a file, or of a range. Raises `IcebergError`: ``"missing-file"``, ``"outside-table"``."""
        storage, path = self.find(location)
        try:
            return storage.read(path, offset, length)
        except FileNotFoundError:
            raise IcebergError.of_missing_file("the file", location) from None

    def write(self, location: str, data: bytes) -> None:
        """Write a new file."""
        storage, path = self.find(location, write=True)
        storage.put(path, data)

    def delete(self, locations: Iterable[str]) -> None:
        """Delete files inside of the table; missing ones and those elsewhere are left alone."""
        for location in locations:
            try:
                storage, path = self.find(location, write=True)
            except IcebergError:
                continue
            storage.delete(path)

    def remove_empty_directories(self) -> None:
        """Remove the empty directories of the table."""
        for _, storage in self._roots:
            storage.remove_empty_directories()


def is_remote(location: str) -> bool:
    """Return whether a location is in an object store."""
    scheme = urlparse(location).scheme if "://" in location else ""
    return scheme not in ("", "file")
