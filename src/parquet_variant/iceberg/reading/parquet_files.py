"""The data files of a snapshot as Parquet files.

Owns their locations, and whether columns have the same name in every file. Leaves which rows are live to `read`.
"""

from __future__ import annotations

from parquet_variant.iceberg.reading.planning import plan_files
from parquet_variant.iceberg.reading.snapshot import Snapshot
from parquet_variant.parquet.format.files import ParquetSource


def parquet_files(current: Snapshot) -> tuple[ParquetSource, ...]:
    """Return the data files of a snapshot; none if a column was renamed, or its name was used for another column.

    Files keep the name that a column had when they were written. Files of other formats, and encrypted files, are a
    reason for none, too.
    """
    schemas = current.metadata.schemas_newest_first
    names = {(field.id, field.name) for schema in schemas for field in schema.fields}
    is_constant = len({number for number, _ in names}) == len({name for _, name in names}) == len(names)
    has_every_schema = max(schema.id for schema in schemas) == len(schemas) - 1  # unused ones may have been removed
    if not (is_constant and has_every_schema):
        return ()
    files = plan_files(current).files
    if any(file.file.format != "parquet" or file.file.key_metadata is not None for file in files):
        return ()
    places = [(*current.table.files.filesystem(file.path), file.size) for file in files]
    return tuple(ParquetSource(path, filesystem, size) for filesystem, path, size in places)
