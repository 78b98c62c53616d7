"""Vortex files as the destination of an ingest: tasks write the files, and the driver commits them.

`files.vortex.writer` writes a file.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import VariantFileError
from parquet_variant.files.vortex.dtype import JsonColumn
from parquet_variant.files.vortex.library import vortex
from parquet_variant.files.vortex.paths import SUFFIX
from parquet_variant.files.vortex.writer import write
from parquet_variant.ingestion.destination import Destination, FileDestination
from parquet_variant.ingestion.request import IngestRequest
from parquet_variant.ingestion.task import SplitRows, TaskRows, WrittenSplits
from parquet_variant.io.filesystems import filesystem_of
from parquet_variant.io.staging import StagedFile, open_staging
from parquet_variant.ops.columns.arguments import as_arrow


def open_vortex(request: IngestRequest) -> Destination | None:
    """Open the directory, or the file if the name ends in ``.vortex``; return None if the mode is ``"ignore"``.

    Raises `VariantFileError` if it holds data and the mode is ``"error"``, or cannot be written; `VariantError` if
    vortex-data is not installed.
    """
    vortex()
    request = replace(request, dest=request.dest.removeprefix("file://"))
    dest = request.dest
    if "://" in dest:
        raise VariantFileError(
            f"{dest} is not on a local disk: write Vortex files to a local directory and copy them",
            reason="bad-option",
            file=dest,
        )
    if not dest.endswith(SUFFIX) or Path(dest).is_dir():
        staging = open_staging(dest, request.mode)
        return None if staging is None else Destination(request, staging, _write)
    destination = FileDestination.open(request, _write)
    if destination is not None and request.text.on_error == "quarantine":
        raise VariantFileError(
            f"quarantined lines require a directory as the destination, not the file {dest}: "
            f"choose a path that does not end in {SUFFIX}",
            reason="bad-option",
            file=dest,
        )
    return destination


def _write(split_rows: SplitRows) -> WrittenSplits:
    """Stage the file of a task."""
    request, chunks = split_rows.request, list(split_rows)
    if not chunks:
        return split_rows.written()
    data = StagedFile(split_rows.directory, split_rows.staging.file_name(split_rows.task, extension=SUFFIX[1:]))
    variants = VariantArray.concat([chunk.variants for chunk in chunks])
    columns: dict[str, Any] = {request.column: variants}
    if tables := [chunk.table for chunk in chunks if chunk.table is not None]:
        table, name = pa.concat_tables(tables), str(request.text.json_column)
        columns = TaskRows(variants, table, name).columns(request.column)
        texts = as_arrow(table.column(name))
        columns[request.column] = JsonColumn.of(variants, texts) if request.write.get("exact") else JsonColumn(variants)
    info = write(filesystem_of(data.path)[1], columns, **request.write)
    return split_rows.written([data], rows=info.rows, file_bytes=info.bytes)
