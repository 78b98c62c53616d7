"""Vortex files as the destination of an ingest: tasks write the files, and the driver commits them.

`files.vortex.writer` writes a file.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import bad_option
from parquet_variant.files.parquet.format.files import locate_any
from parquet_variant.files.vortex.dtype import JsonColumn
from parquet_variant.files.vortex.library import vortex
from parquet_variant.files.vortex.paths import local_name, vortex_files
from parquet_variant.files.vortex.reader import read_schema
from parquet_variant.files.vortex.writer import write
from parquet_variant.ingestion import destination
from parquet_variant.io.directories import VORTEX_SUFFIX
from parquet_variant.io.filesystems import filesystem_of
from parquet_variant.io.staging import StagedFile, open_staging
from parquet_variant.ops.columns.arguments import as_arrow


class VortexDirectory(destination.Destination):
    """A directory of Vortex files, one per task."""

    def columns(self) -> pa.Schema:
        """Return the columns of the files."""
        return read_schema(self.dest) if self.holds_data and vortex_files(self.dest) else pa.schema([])

    def write(self, batches: Iterable[destination.Columns], task: int, attempt: int | str) -> destination.Written:
        """Stage the file of a task."""
        request, chunks = self.request, list(map(destination.arrays_of, batches))
        if not chunks:
            return destination.Written()
        columns: dict[str, Any] = {}
        for name, column in chunks[0].items():
            parts = [chunk[name] for chunk in chunks]
            if isinstance(column, VariantArray):
                columns[name] = VariantArray.concat(parts)
                continue
            rows = pa.concat_tables(pa.table({name: part}) for part in parts).column(name)
            if name == destination.JSON_TEXT:
                name, variants = request.column, columns[request.column]
                rows = JsonColumn.of(variants, as_arrow(rows)) if request.write.get("exact") else JsonColumn(variants)
            columns[name] = rows
        data = StagedFile(self.staging.attempt(task, attempt), self.staging.file_name(task, extension="vortex"))
        info = write(filesystem_of(data.path)[1], columns, **request.write)
        return destination.Written((data,), info.rows, info.bytes)


class VortexFile(destination.FileDestination, VortexDirectory):
    """One Vortex file."""


def open_vortex(request: destination.WriteRequest) -> destination.Destination | None:
    """Open the directory, or the file if the name ends in ``.vortex``; return None if the mode is ``"ignore"``."""
    vortex()
    dest = local_name(request.dest)
    request = replace(request, dest=dest)
    if dest.endswith(VORTEX_SUFFIX) and not Path(dest).is_dir():
        return VortexFile.open(request)
    staging = open_staging(dest, request.mode)
    if request.mode == "append" and locate_any(dest):
        raise bad_option(f"{dest} has Parquet files, which Vortex files would hide: use format='parquet'")
    return None if staging is None else VortexDirectory(request, staging)
