"""Which filesystem a path or URI is on, by pyarrow's names of filesystems and by Hadoop's.

Owns telling them apart, the error for what is none, and errors of writing in our words. Leaves which files a path names
to those who read them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

import pyarrow as pa
from pyarrow import fs

from parquet_variant.errors import VariantFileError, bad_option

# What Hadoop, and with it Spark, calls a filesystem -> what pyarrow and obstore call it.
_SCHEMES = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfs": "abfss"}
# Bytes of a path on a disk, and of a name in it.
_LONGEST_PATH, _LONGEST_NAME = 4096, 255
_QUERY = re.compile(r"\?\w+=[^/]*")
# The Blob endpoint of an Azure account has the same containers as the one that pyarrow and obstore speak to.
_BLOB = {"wasb": "abfss", "wasbs": "abfss"}


def filesystem_of(path: str | os.PathLike[str], filesystem: fs.FileSystem | None = None) -> tuple[fs.FileSystem, str]:
    """The filesystem of a path and the path on it; a URI such as ``s3://bucket/key`` names its own."""
    text = os.fspath(path) if isinstance(path, os.PathLike) else path
    refuse_no_path(text)
    if filesystem is not None:
        if not isinstance(filesystem, fs.FileSystem):
            raise bad_option(
                f"filesystem is a {type(filesystem).__name__}: give one of pyarrow.fs; one of fsspec becomes one as "
                "PyFileSystem(FSSpecHandler(filesystem))",
                VariantFileError,
            )
        try:
            return filesystem, filesystem.normalize_path(text) if "://" in text else text
        except pa.ArrowInvalid:
            raise VariantFileError(
                f"{text} is a URI, which names its own filesystem: leave out filesystem, or give the path on it",
                reason="bad-path",
            ) from None
    if "://" in text:
        try:
            named = fs.FileSystem.from_uri(_quoted(with_known_scheme(text)))
        except (pa.ArrowException, OSError, ValueError) as error:
            raise VariantFileError(f"cannot use {text}: {error}", reason="bad-uri") from None
        return named[0], named[1]
    text = os.path.expanduser(text)  # noqa: PTH111 - as it stands if there is no such user
    # pyarrow takes what begins so for a URI.
    return fs.LocalFileSystem(), f"./{text}" if ":" in text.partition("/")[0] else text


def refuse_no_path(text: object) -> None:
    """Raise `VariantFileError` for what no filesystem has, before one says so in its own way."""
    why = ""
    if not isinstance(text, str):
        raise VariantFileError(f"{text!r} is no path: give text or a pathlib.Path", reason="bad-path")
    encoded = text.encode(errors="replace")
    if encoded.count(b"?") != text.count("?"):
        why = "it is not Unicode"
    elif "\0" in text:
        why = "it holds a NUL"
    elif text.endswith("://"):
        why = "it names nothing behind its scheme"
    elif "://" not in text and (len(encoded) > _LONGEST_PATH or max(map(len, encoded.split(b"/"))) > _LONGEST_NAME):
        why = "it is too long"
    if why:
        raise VariantFileError(f"{text!r} is no path: {why}", reason="bad-path")


def has_delta_log(path: str | os.PathLike[str]) -> bool:
    """Whether a path is that of a Delta table: a directory with a log."""
    filesystem, root = filesystem_of(path)
    return bool(filesystem.get_file_info(f"{root.rstrip('/')}/_delta_log").type == fs.FileType.Directory)


def _quoted(uri: str) -> str:
    """A URI of which pyarrow gives back the path as it stands here: keys may hold anything, as in Hadoop's paths.

    Only ``file://`` is taken to be quoted already. What was put behind a URI with a query belongs to its path.
    """
    scheme, separator, rest = uri.partition("://")
    if scheme == "file":
        return uri
    query = _QUERY.search(rest)
    if query is not None:
        rest = rest[: query.start()] + rest[query.end() :]
    authority, slash, path = rest.partition("/")
    return f"{scheme}{separator}{authority}{slash}{quote(path)}{query[0] if query else ''}"


def with_known_scheme(uri: str) -> str:
    """A URI as pyarrow and obstore know it, where Hadoop has another name for the same place.

    >>> with_known_scheme("s3a://lake/events"), with_known_scheme("wasbs://c@a.blob.core.windows.net/x")
    ('s3://lake/events', 'abfss://c@a.dfs.core.windows.net/x')
    """
    scheme, separator, rest = uri.partition("://")
    if scheme.lower() in _BLOB:
        return f"{_BLOB[scheme.lower()]}://{rest.replace('.blob.core.', '.dfs.core.', 1)}"
    return f"{_SCHEMES.get(scheme.lower(), scheme)}{separator}{rest}"


def absolute(path: str | os.PathLike[str]) -> str:
    """A path that means the same in every process; Spark's ``file:/x`` becomes plain.

    >>> absolute("file:/lake/a.parquet"), absolute("s3://lake/*.ndjson"), absolute("/a/b/../*.json")
    ('/lake/a.parquet', 's3://lake/*.ndjson', '/a/*.json')
    """
    text = os.fspath(path)
    if text.startswith("file:"):
        text = "/" + text.removeprefix("file:").lstrip("/")
    return text if "://" in text else os.path.abspath(text)  # noqa: PTH100 - globs and missing files stay as they are


def cannot_write(place: str | os.PathLike[str], why: object) -> VariantFileError:
    """The error of a place that cannot be written: the disk is full, or it is not allowed."""
    return VariantFileError(
        f"{os.fspath(place)} cannot be written: {why}; free space, or permit writing there, and run it again",
        reason="cannot-write",
        file=os.fspath(place),
    )


@contextmanager
def write_errors(place: str | os.PathLike[str]) -> Iterator[None]:
    """Turn an error of the system into one of ours; those of connections are not about the place."""
    try:
        yield
    except ConnectionError:
        raise
    except OSError as error:
        raise cannot_write(place, error) from error
