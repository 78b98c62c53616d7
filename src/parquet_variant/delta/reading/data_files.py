"""The data files of a version, for those who read them as files: `inspect`, `validate`, views.

Owns their places. Leaves rows, deletion vectors and partition values to `read` and `scan`.
"""

from __future__ import annotations

import os

from parquet_variant.delta.data.paths import relative_path
from parquet_variant.delta.log.snapshot import Snapshot, snapshot


def data_files(table: str | os.PathLike[str], *, allow_outside: bool = False) -> list[str]:
    """Paths or URLs of the Parquet files that the newest version of a table holds; arguments as for `snapshot`.

    Raises `DeltaError` as `snapshot`, and ``"outside-table"`` if a file lies outside of the table, itself or through a
    link.

    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.delta.write(folder, {"v": pv.parse_json(["1"])})
    ...     [file.removeprefix(folder)[:5] for file in data_files(folder)]
    ['/part']
    """
    newest = snapshot(table, allow_outside=allow_outside)
    return [_place(newest, os.fspath(table), path) for path in newest.files["path"].to_pylist()]


def _place(table: Snapshot, root: str, path: str) -> str:
    relative = relative_path(table.storage, path)
    table.storage.filesystem(relative)  # refuses links that lead out of the table
    return relative if "://" in relative or relative.startswith("/") else f"{root.rstrip('/')}/{relative}"
