"""Which filesystem a path or URI is on.

Owns telling them apart and the error for what is none. Leaves which files a path names to those who read them.
"""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
from pyarrow import fs

from parquet_variant.errors import VariantFileError

__all__ = ["absolute", "filesystem_of"]


def filesystem_of(path: str | os.PathLike[str], filesystem: fs.FileSystem | None = None) -> tuple[fs.FileSystem, str]:
    """The filesystem of a path and the path on it; a URI such as ``s3://bucket/key`` names its own."""
    text = os.fspath(path)
    if filesystem is not None:
        return filesystem, text
    if "://" in text:
        try:
            found = fs.FileSystem.from_uri(text)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise VariantFileError(f"cannot use {text}: {error}", reason="bad-uri") from None
        return found[0], found[1]
    return fs.LocalFileSystem(), str(Path(text).expanduser()) if text.startswith("~") else text


def absolute(path: str | os.PathLike[str]) -> str:
    """A path that means the same in every process; Spark's ``file:/x`` becomes plain.

    Examples
    --------
    >>> absolute("file:/lake/a.parquet"), absolute("s3://lake/*.ndjson"), absolute("/a/b/../*.json")
    ('/lake/a.parquet', 's3://lake/*.ndjson', '/a/*.json')
    """
    text = os.fspath(path)
    if text.startswith("file:"):
        text = "/" + text.removeprefix("file:").lstrip("/")
    return text if "://" in text else os.path.abspath(text)  # noqa: PTH100 - globs and missing files stay as they are
