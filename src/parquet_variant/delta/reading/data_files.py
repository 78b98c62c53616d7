"""The data files of a snapshot as Parquet files.

Owns their locations. Leaves which rows of them are live to `read`.
"""

from __future__ import annotations

from parquet_variant.delta.data.paths import relative_path
from parquet_variant.delta.log.snapshot import Snapshot
from parquet_variant.parquet.format.files import ParquetSource


def parquet_files(current: Snapshot) -> tuple[ParquetSource, ...]:
    """Return the data files of a snapshot; none if its columns have other names in the files."""
    if current.column_mapping != "none":
        return ()
    sources = []
    for row in current.files.select(["path", "size"]).to_pylist():
        filesystem, path = current.storage.filesystem(relative_path(current.storage, row["path"]))
        sources.append(ParquetSource(path, filesystem, row["size"]))
    return tuple(sources)
