"""Paths in a table's log: decoded, and inside the table unless the caller allows others.

Owns the conversion of a path in the log to a path in the storage. A log must not give access to files elsewhere, so
`..`, absolute paths and URLs outside of the table are refused. Leaves links on a disk to `tables.storage`.
"""

from __future__ import annotations

import os
import posixpath
import uuid
from collections.abc import Iterable
from urllib.parse import unquote, urlparse

from parquet_variant.errors import DeltaError, TableError
from parquet_variant.tables.delta import z85
from parquet_variant.tables.delta.protocol.actions import Add, DeletionVector
from parquet_variant.tables.storage import LocalStorage, Storage, outside

_UUID_CHARACTERS = 20
# Different names of the same object store.
_SAME_SCHEME = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfs": "abfss"}


def relative_path(storage: Storage, path: str) -> str:
    """Return the path in the storage of a path in the log, which is percent-encoded and may be absolute.

    Raises `TableError`: reason ``"outside-table"`` if the path is outside of the table and the storage does not allow
    that.
    """
    try:
        scheme = urlparse(path).scheme
    except ValueError:  # an invalid host in brackets
        raise outside(storage, path) from None
    if len(scheme) > 1 and scheme != "file":
        base, url = _canonical_url(storage.uri).rstrip("/") + "/", _canonical_url(unquote(path))
        if not url.startswith(base):
            if not storage.allow_outside:
                raise outside(storage, path)
            return path
        decoded = url[len(base) :]
    else:
        decoded = unquote(urlparse(path).path if scheme == "file" else path)
    if isinstance(storage, LocalStorage):
        return _local(storage, decoded, path)
    if decoded.startswith("/") or ".." in decoded.split("/"):
        raise outside(storage, path)
    return decoded


def _local(storage: LocalStorage, decoded: str, path: str) -> str:
    if "\x00" in decoded:
        raise outside(storage, path)
    if not decoded.startswith("/") and not {".", "..", ""} & set(decoded.split("/")):
        return decoded
    # Vacuum compares paths, so all spellings of a path must become the same one.
    full = os.path.normpath(storage.root / decoded)
    for root in (str(storage.root), storage.real_root):
        if full.startswith(f"{root.rstrip('/')}/"):
            return full[len(root.rstrip("/")) + 1 :]
    if not storage.allow_outside:
        raise outside(storage, path)
    return full


def paths_of_adds(storage: Storage, adds: Iterable[Add]) -> list[str]:
    """Return the paths in the storage of new files; see `relative_path`."""
    return [relative_path(storage, add.path) for add in adds]


def vector_path(storage: Storage, vector: DeletionVector) -> str | None:
    """Return the path in the storage of a deletion vector's file; None for an inline vector.

    Raises `TableError`: as `relative_path`; ``"bad-deletion-vector"`` for an invalid name.
    """
    if vector.storage_type == "u":
        text = vector.path_or_inline_dv
        prefix, name = text[:-_UUID_CHARACTERS], text[-_UUID_CHARACTERS:]
        try:
            file = f"deletion_vector_{uuid.UUID(bytes=z85.decode(name))}.bin"
        except (TableError, ValueError):
            raise DeltaError(f"{text!r} is not the name of a deletion vector", reason="bad-deletion-vector") from None
        joined = posixpath.join(prefix, file)
        if joined.startswith("/") or ".." in joined.split("/") or "\x00" in joined:
            raise outside(storage, joined)
        return joined
    return relative_path(storage, vector.path_or_inline_dv) if vector.storage_type == "p" else None


def _canonical_url(url: str) -> str:
    scheme, separator, location = url.partition("://")
    return _SAME_SCHEME.get(scheme, scheme) + separator + location
