"""Object stores, which obstore reads and writes: the store of a URL, and its files as pyarrow opens them.

Owns the options of stores, and which errors are theirs.
"""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlparse

import pyarrow as pa
import pyarrow.fs as pafs

from parquet_variant.errors import TableError, first_line
from parquet_variant.io.filesystems import with_known_scheme
from parquet_variant.support.lazy_names import optional_libraries

# Options of the connection, which obstore takes apart from those of the store.
_CLIENT_OPTIONS = frozenset({
    "allow_http", "allow_invalid_certificates", "connect_timeout", "default_content_type", "default_headers",
    "http1_only", "http2_keep_alive_interval", "http2_keep_alive_timeout", "http2_keep_alive_while_idle", "http2_only",
    "pool_idle_timeout", "pool_max_idle_per_host", "proxy_ca_certificate", "proxy_excludes", "proxy_url",
    "root_certificate", "timeout", "user_agent",
})  # fmt: skip
_ENDPOINTS = ("endpoint", "aws_endpoint", "endpoint_url", "aws_endpoint_url")


def open_store(uri: str, options: Mapping[str, Any]) -> Any:
    """Return the store of a URL; Hadoop's scheme names and an endpoint in the query, as in pyarrow, are accepted."""
    parts = urlparse(with_known_scheme(uri))
    query = dict(parse_qsl(parts.query))
    configuration = _configuration(options)
    client = {name: configuration.pop(name) for name in list(configuration) if name in _CLIENT_OPTIONS}
    if client:
        configuration["client_options"] = client | dict(configuration.get("client_options") or {})
    if "endpoint_override" in query:
        host = query["endpoint_override"]
        configuration.setdefault("endpoint", host if "://" in host else f"{query.get('scheme', 'https')}://{host}")
    if "region" in query:
        configuration.setdefault("region", query["region"])
    names = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
    from_environment = next((os.environ[name] for name in names if os.environ.get(name)), "")
    if parts.scheme == "s3":
        endpoint = str(configuration.get("endpoint") or from_environment)
        if endpoint:
            configuration["endpoint"] = endpoint
        if endpoint.startswith("http://"):
            # An explicit http endpoint implies the permission to use it.
            configuration["client_options"] = {"allow_http": True} | dict(configuration.get("client_options") or {})
    library = obstore_library()
    try:
        return library.store.from_url(parts._replace(query="").geturl(), **configuration)
    except BaseException as error:
        if not isinstance(error, Exception) and not is_panic(error):
            raise
        raise TableError(
            f"cannot open {uri}: {first_line(error)}; tables can be on local disks and in s3, gs, az and abfss stores",
            reason="bad-uri",
            file=uri,
        ) from None


def _configuration(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options by lower-case names, as obstore knows them, with one name for the endpoint."""
    configuration: dict[str, Any] = {}
    for option, value in options.items():
        name = str(option).lower()
        short = name.removeprefix("aws_").removeprefix("azure_").removeprefix("google_")
        is_line = "certificate" in name or "service_account" in name or not re.search(r"[\0-\x1f\x7f]", str(value))
        if value is None or not is_line:
            problem = "None" if value is None else "text with control characters, such as the end of a line"
            raise TableError(f"storage_options has {problem} for {option}: give a value", reason="bad-argument")
        if isinstance(value, int | float) and not isinstance(value, bool):
            value = str(value)
        configuration["endpoint" if name in _ENDPOINTS else short if short in _CLIENT_OPTIONS else name] = value
    return configuration


def obstore_library() -> Any:
    """Return the module obstore. Raises `VariantError`: reason ``"missing-extra"`` if it is not installed."""
    with optional_libraries("a table in an object store"):
        import obstore
        import obstore.store
    return obstore


def filesystem_of_store(store: Any) -> pafs.FileSystem:
    """Return a pyarrow filesystem that opens the files of a store."""
    return pafs.PyFileSystem(_Handler(store))


class _Ranges(io.RawIOBase):
    """A file of an object store with the interface of Python's io; every read is a range request."""

    def __init__(self, store: Any, path: str) -> None:
        self.store, self.path, self.at = store, path, 0
        self.size: int = obstore_library().head(store, path)["size"]

    def readable(self) -> bool:
        return True

    seekable = readable

    def tell(self) -> int:
        return self.at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self.at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self.at, os.SEEK_END: self.size}[whence]
        return self.at

    def read(self, size: int = -1) -> bytes:
        remaining = max(self.size - self.at, 0)
        length = remaining if size < 0 else min(size, remaining)
        if not length:
            return b""
        try:
            data = bytes(obstore_library().get_range(self.store, self.path, start=self.at, length=length))
        except failures() as error:
            raise OSError(first_line(error)) from None
        self.at += len(data)
        return data


class _Handler(pafs.FileSystemHandler):
    """A pyarrow filesystem that only opens files of an object store; `tables.storage` does everything else."""

    def __init__(self, store: Any) -> None:
        self.store = store

    def get_type_name(self) -> str:
        return "obstore"

    def open_input_file(self, path: str) -> pa.NativeFile:
        return pa.PythonFile(_Ranges(self.store, path), mode="r")

    open_input_stream = open_input_file

    def get_file_info(self, paths: list[str]) -> list[pafs.FileInfo]:
        return [pafs.FileInfo(p, pafs.FileType.File, size=obstore_library().head(self.store, p)["size"]) for p in paths]

    def normalize_path(self, path: str) -> str:
        return path

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError("files of a table are written by the table's storage")

    create_dir = delete_dir = delete_dir_contents = delete_root_dir_contents = delete_file = _refuse
    get_file_info_selector = move = copy_file = open_output_stream = open_append_stream = _refuse


def failures() -> tuple[type[Exception], ...]:
    """Return the errors that the operating system and object stores raise."""
    stores = sys.modules.get("obstore.exceptions")
    return (OSError,) if stores is None else (OSError, stores.BaseError)


def is_panic(error: BaseException) -> bool:
    """Return whether an error is a panic in Rust, whose class Python code cannot import."""
    return type(error).__module__ == "pyo3_runtime"
