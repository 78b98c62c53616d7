"""The format of a path: a Delta table, an Iceberg table, Vortex files, JSON, or else Parquet.

Owns recognising the format. Leaves reading to the packages of the formats.
"""

from __future__ import annotations

import os
import re
from typing import Any

_HEAD_BYTES = 4096
# Files with these names, perhaps compressed, are read as JSON unless they are Parquet files.
_JSON_NAMES = re.compile(r"\.(json|ndjson|jsonl)(\.\w+)?$", re.IGNORECASE)


def is_delta(path: Any) -> bool:
    """Return whether a path is a Delta table: a directory with a log.

    >>> is_delta("examples")
    False
    """
    from parquet_variant.io.filesystems import has_delta_log

    return has_delta_log(path) and _is_source(path, "delta")


def is_iceberg(path: Any) -> bool:
    """Return whether a path is an Iceberg table: a directory with ``version-hint.text``, or a metadata file.

    >>> is_iceberg("examples"), is_iceberg("t/metadata/v1.metadata.json")
    (False, True)
    """
    from parquet_variant.io.filesystems import has_iceberg_metadata

    return has_iceberg_metadata(path) and _is_source(path, "iceberg")


def _is_source(path: Any, format: str) -> bool:
    """Return whether a table is read in its format, and not in the one that it was published from."""
    from parquet_variant.io.filesystems import ICEBERG_METADATA, has_delta_log, has_iceberg_metadata

    if str(path).endswith(ICEBERG_METADATA) or not (has_delta_log(path) and has_iceberg_metadata(path)):
        return True
    from parquet_variant.tables.publishing.marks import table_format

    return table_format(path) == format


def refuse_versions(path: Any, *versions: Any) -> None:
    """Raise `VariantFileError` if a version is given, for a path that is not a table with versions."""
    if any(version is not None for version in versions):
        from parquet_variant.errors import VariantFileError

        name = os.fspath(path) if isinstance(path, os.PathLike) else str(path)
        raise VariantFileError(
            f"{name} is not a Delta or Iceberg table, so it has no versions", reason="not-a-table", file=name
        )


def is_vortex(path: Any) -> bool:
    """Return whether a path names Vortex files: a file, a glob, or a directory with such files.

    >>> is_vortex("events.vortex"), is_vortex("examples")
    (True, False)
    """
    if _is_parquet(path):
        return False
    from parquet_variant.files.vortex.files.paths import vortex_files

    return bool(vortex_files(os.fspath(path)))


def is_json(path: Any) -> bool:
    """Return whether paths name JSON files, plain or compressed, by their first bytes or their names.

    >>> is_json("examples/usgs_earthquakes.ndjson"), is_json("README.md")
    (True, False)
    """
    if not isinstance(path, (list, tuple)) and (_is_parquet(path) or _holds_parquet(path)):
        return False
    from parquet_variant.errors import VariantError
    from parquet_variant.ingestion.sources.input_files import find_input_files

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
    """Return whether a path is a local file named ``*.parquet``, which needs no further check."""
    return str(path).endswith(".parquet") and os.path.isfile(path)  # noqa: PTH113 - perhaps a URI


def _holds_parquet(path: Any) -> bool:
    """Return whether a path is a local directory with a Parquet file directly inside."""
    return os.path.isdir(path) and any(  # noqa: PTH112
        name.endswith(".parquet") and not name.startswith((".", "_"))
        for name in os.listdir(path)  # noqa: PTH208
    )
