"""Which format a path names: a Delta table, Vortex files, JSON, or else Parquet.

Owns telling them apart. Leaves what is there to the rooms that own the formats.
"""

from __future__ import annotations

import os
from typing import Any

__all__ = ["is_delta", "is_json", "is_vortex"]

_HEAD_BYTES = 4096


def is_delta(path: Any) -> bool:
    """Whether a path is that of a Delta table: a directory with a log.

    Examples
    --------
    >>> is_delta("examples")
    False
    """
    import pyarrow.fs as pafs

    from parquet_variant.io.filesystems import filesystem_of

    filesystem, root = filesystem_of(os.fspath(path), None)
    return bool(filesystem.get_file_info(f"{root.rstrip('/')}/_delta_log").type == pafs.FileType.Directory)


def is_vortex(path: Any) -> bool:
    """Whether a path names Vortex files: one, a glob, or a directory that holds some.

    Examples
    --------
    >>> is_vortex("events.vortex"), is_vortex("examples")
    (True, False)
    """
    if _is_parquet(path):
        return False
    from parquet_variant.vortex.files.paths import vortex_files

    return bool(vortex_files(os.fspath(path)))


def is_json(path: Any) -> bool:
    """Whether paths name JSON files, plain or compressed, that were not ingested: by their first bytes.

    Examples
    --------
    >>> is_json("examples/usgs_earthquakes.ndjson"), is_json("README.md")
    (True, False)
    """
    if not isinstance(path, (list, tuple)) and (_is_parquet(path) or _holds_parquet(path)):
        return False
    from parquet_variant.errors import VariantError
    from parquet_variant.ingest.sources import codec_of, expand_sources
    from parquet_variant.io.filesystems import filesystem_of

    try:
        files = expand_sources(path)
        if any(file.endswith(".parquet") for file in files):
            return False
        codec = codec_of(files[0])
        filesystem, name = filesystem_of(files[0], None)
        with filesystem.open_input_stream(name, compression=codec) as stream:
            return bool(stream.read(_HEAD_BYTES).removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"["))
    except (VariantError, OSError):
        return False  # who reads it says what is wrong


def _is_parquet(path: Any) -> bool:
    """Whether a path is a file's that says so: nothing else need be loaded."""
    return str(path).endswith(".parquet") and os.path.isfile(path)  # noqa: PTH113 - a name, perhaps of a remote file


def _holds_parquet(path: Any) -> bool:
    """Whether a path is a local directory in which the first look finds a Parquet file."""
    return os.path.isdir(path) and any(  # noqa: PTH112
        name.endswith(".parquet") and not name.startswith((".", "_"))
        for name in os.listdir(path)  # noqa: PTH208
    )
