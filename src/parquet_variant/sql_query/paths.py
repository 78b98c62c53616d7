"""Which format a path names: a Delta table, Vortex files, JSON, or else Parquet.

Owns telling them apart. Leaves what is there to the rooms that own the formats.
"""

from __future__ import annotations

import os
import re
from typing import Any

_HEAD_BYTES = 4096
# A file of such a name is JSON whatever is in it, if it is no Parquet file; perhaps compressed.
_JSON_NAMES = re.compile(r"\.(json|ndjson|jsonl)(\.\w+)?$", re.IGNORECASE)


def is_delta(path: Any) -> bool:
    """Whether a path is that of a Delta table: a directory with a log.

    >>> is_delta("examples")
    False
    """
    from parquet_variant.io.filesystems import has_delta_log

    return has_delta_log(path)


def refuse_versions(path: Any, *asked: Any) -> None:
    """Refuse that a version is asked for of what is no Delta table."""
    if any(each is not None for each in asked):
        from parquet_variant.errors import VariantFileError

        name = os.fspath(path) if isinstance(path, os.PathLike) else str(path)
        raise VariantFileError(f"{name} is no Delta table, so it has no versions", reason="not-a-table", file=name)


def is_vortex(path: Any) -> bool:
    """Whether a path names Vortex files: one, a glob, or a directory that holds some.

    >>> is_vortex("events.vortex"), is_vortex("examples")
    (True, False)
    """
    if _is_parquet(path):
        return False
    from parquet_variant.vortex.files.paths import vortex_files

    return bool(vortex_files(os.fspath(path)))


def is_json(path: Any) -> bool:
    """Whether paths name JSON files, plain or compressed, that were not ingested: by their first bytes, or their names.

    >>> is_json("examples/usgs_earthquakes.ndjson"), is_json("README.md")
    (True, False)
    """
    if not isinstance(path, (list, tuple)) and (_is_parquet(path) or _holds_parquet(path)):
        return False
    from parquet_variant.errors import VariantError
    from parquet_variant.ingestion.input_files import find_input_files

    try:
        files = find_input_files(path)
        if any(file.name.endswith(".parquet") for file in files):
            return False
    except VariantError:
        return False  # the reader of the path raises the error
    try:
        with files[0].open_text() as stream:
            head = bytes(stream.read(_HEAD_BYTES)).removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n\x1e")
    except VariantError:
        head = b""  # damaged compression: the name of the file decides
    return head[:1] in (b"{", b"[") or (_JSON_NAMES.search(files[0].name) is not None and not head.startswith(b"PAR1"))


def _is_parquet(path: Any) -> bool:
    """Whether a path is a file's that says so: nothing else need be loaded."""
    return str(path).endswith(".parquet") and os.path.isfile(path)  # noqa: PTH113 - a name, perhaps of a remote file


def _holds_parquet(path: Any) -> bool:
    """Whether a path is a local directory in which the first look finds a Parquet file."""
    return os.path.isdir(path) and any(  # noqa: PTH112
        name.endswith(".parquet") and not name.startswith((".", "_"))
        for name in os.listdir(path)  # noqa: PTH208
    )
