"""Filesystems of paths and URIs, in the notations of pyarrow and Hadoop.

Owns recognizing them, errors for invalid paths, and errors of writing. Readers list the files of a path.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from urllib.parse import quote

import pyarrow as pa
from pyarrow import fs

from parquet_variant.errors import VariantFileError, bad_option

# Scheme of Hadoop and Spark -> scheme of pyarrow and obstore.
KNOWN_SCHEMES = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfs": "abfss"}
# Maximum bytes of a path on a disk, and of a name in it.
_LONGEST_PATH, _LONGEST_NAME = 4096, 255
_QUERY = re.compile(r"\?\w+=[^/]*")
# The Blob endpoint of an Azure account has the same containers as the endpoint that pyarrow and obstore use.
_BLOB = {"wasb": "abfss", "wasbs": "abfss"}


def filesystem_of(path: str | os.PathLike[str], filesystem: fs.FileSystem | None = None) -> tuple[fs.FileSystem, str]:
    """Return the filesystem of a path and the path on it; a URI such as ``s3://bucket/key`` contains both."""
    text = path_text(path)
    if filesystem is not None:
        if not isinstance(filesystem, fs.FileSystem):
            raise bad_option(
                f"filesystem is a {type(filesystem).__name__}: pass a pyarrow.fs.FileSystem; for fsspec use "
                "PyFileSystem(FSSpecHandler(filesystem))",
                VariantFileError,
            )
        try:
            return filesystem, filesystem.normalize_path(text) if "://" in text else text
        except pa.ArrowInvalid:
            problem = f"{text} is a URI, which has its own filesystem: omit filesystem, or pass the path on it"
            raise VariantFileError(problem, reason="bad-path") from None
    if "://" in text:
        try:
            # Quoted, so that pyarrow returns the path unchanged: keys may contain any character, as in Hadoop's paths.
            uri = with_known_scheme(text)
            scheme, separator, location = uri.partition("://")
            if scheme != "file":  # which is quoted already; text after the query of a URI belongs to its path
                query = _QUERY.search(location)
                if query is not None:
                    location = location[: query.start()] + location[query.end() :]
                authority, slash, path_on_it = location.partition("/")
                uri = f"{scheme}{separator}{authority}{slash}{quote(path_on_it)}{query[0] if query else ''}"
            system, name = fs.FileSystem.from_uri(uri)
        except (pa.ArrowException, OSError, ValueError) as error:
            remedy = "; check the address, the network and the credentials"
            if "Unrecognized filesystem" in str(error):
                remedy = "; use a local path, s3://, gs://, abfss:// or hdfs://, or pass filesystem="
            raise VariantFileError(f"cannot use {text}: {error}{remedy}", reason="bad-uri") from None
        return system, name
    text = os.path.expanduser(text)  # noqa: PTH111 - unchanged for an unknown user
    # pyarrow would read such a path as a URI.
    return fs.LocalFileSystem(), f"./{text}" if ":" in text.partition("/")[0] else text


def path_text(path: object) -> str:
    """Return a path as a string. Raises `VariantFileError` (``bad-path``) for a path that no filesystem accepts."""
    text, problem = os.fspath(path) if isinstance(path, os.PathLike) else path, ""
    if not isinstance(text, str):
        shown = repr(text) if isinstance(text, int | float | bytes | None) else f"a {type(text).__name__}"
        problem = f"{shown} is not a path: pass a string or a pathlib.Path, and rows after it or as a list of dicts"
        raise VariantFileError(problem, reason="bad-path")
    encoded = text.encode(errors="replace")
    if encoded.count(b"?") != text.count("?"):
        problem = "it is not Unicode"
    elif "\0" in text:
        problem = "it contains a NUL character"
    elif text.endswith("://"):
        problem = "it has no path after the scheme"
    elif "://" not in text and (len(encoded) > _LONGEST_PATH or max(map(len, encoded.split(b"/"))) > _LONGEST_NAME):
        problem = "it is too long"
    if problem:
        raise VariantFileError(f"invalid path {text!r}: {problem}", reason="bad-path")
    return text


def path_texts(paths: object) -> list[str]:
    """Return one or several paths as text. Raises `VariantFileError` for anything that is not a path."""
    are_several = isinstance(paths, Iterable) and not isinstance(paths, str | bytes | os.PathLike)
    return [path_text(path) for path in (paths if are_several else [paths])]  # type: ignore[attr-defined]


def with_known_scheme(uri: str) -> str:
    """Return a URI with the scheme of pyarrow and obstore instead of Hadoop's.

    >>> with_known_scheme("s3a://lake/events"), with_known_scheme("wasbs://c@a.blob.core.windows.net/x")
    ('s3://lake/events', 'abfss://c@a.dfs.core.windows.net/x')
    """
    scheme, separator, location = uri.partition("://")
    if scheme.lower() in _BLOB:
        return f"{_BLOB[scheme.lower()]}://{location.replace('.blob.core.', '.dfs.core.', 1)}"
    return f"{KNOWN_SCHEMES.get(scheme.lower(), scheme)}{separator}{location}"


def absolute(path: str | os.PathLike[str]) -> str:
    """Return a path that means the same in every process; Spark's ``file:/x`` becomes a plain path.

    >>> absolute("file:/lake/a.parquet"), absolute("s3://lake/*.ndjson"), absolute("/a/b/../*.json")
    ('/lake/a.parquet', 's3://lake/*.ndjson', '/a/*.json')
    """
    text = os.fspath(path)
    if text.startswith("file:"):
        text = "/" + text.removeprefix("file:").lstrip("/")
    return text if "://" in text else os.path.abspath(text)  # noqa: PTH100 - globs and missing files are kept


def cannot_write(place: str | os.PathLike[str], why: object) -> VariantFileError:
    """Make the error for a place that cannot be written, because the disk is full or access is denied."""
    problem = f"{why}; free some space or allow writing there"
    if isinstance(why, FileNotFoundError):  # whose text has the name of a temporary file
        problem = f"{os.path.dirname(place)!r} does not exist; create the directory"  # noqa: PTH120 - or a URI
    elif isinstance(why, NotADirectoryError):
        problem = f"{os.path.dirname(place)!r} is a file or inside a file; choose another path"  # noqa: PTH120
    message = f"cannot write {os.fspath(place)}: {problem}, and run it again"
    return VariantFileError(message, reason="cannot-write", file=os.fspath(place))


def info_of(filesystem: fs.FileSystem, path: str) -> fs.FileInfo:
    """Return what is at a path. Raises `VariantFileError` (``cannot-read``) if the filesystem cannot be asked."""
    with read_errors(path):
        return filesystem.get_file_info(path)


@contextmanager
def read_errors(path: str) -> Iterator[None]:
    """Convert the errors of a filesystem to a `VariantFileError` (``cannot-read``) for a path."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        problem = f"{path} cannot be read: {error}; check the path, the connection and the permissions"
        raise VariantFileError(problem, reason="cannot-read", file=path) from None


def is_disk_error(error: Exception) -> bool:
    """Return whether an error has a number of the operating system: the file need not be damaged."""
    return getattr(error, "errno", None) is not None


def refuse_disk_error(path: str, error: Exception) -> None:
    """Raise an error of the disk as in `read_errors`."""
    with read_errors(path):
        if is_disk_error(error):
            raise error


@contextmanager
def write_errors(place: str | os.PathLike[str]) -> Iterator[None]:
    """Convert an `OSError` to a `VariantFileError` for a place; connection errors are not converted."""
    try:
        yield
    except ConnectionError:
        raise
    except OSError as error:
        raise cannot_write(place, error) from error
