"""JSON files into Vortex files: tasks write and verify parts, the driver commits, on any engine.

Owns Vortex files as the destination of an ingest. Leaves the steps to `job` and a file to `write`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from parquet_variant.array.variant_array import VariantArray
from parquet_variant.choices import FileMode
from parquet_variant.compute.arrow_input import as_arrow
from parquet_variant.errors import VariantFileError
from parquet_variant.ingestion.request import IngestRequest
from parquet_variant.ingestion.splits import Split
from parquet_variant.ingestion.task import (
    Destination,
    FileDestination,
    Rows,
    SplitArrays,
    TaskPlan,
    Work,
    WrittenSplits,
)
from parquet_variant.io.filesystems import filesystem_of
from parquet_variant.io.staging import StagedFile, Staging, open_staging
from parquet_variant.parquet.writing.conform import conform
from parquet_variant.vortex.files.library import vortex
from parquet_variant.vortex.files.reader import read
from parquet_variant.vortex.files.writer import write
from parquet_variant.vortex.logical.json_columns import JsonColumn

_SUFFIX = ".vortex"


class VortexFileDestination(FileDestination):
    """One Vortex file, which is put together of the parts that tasks write."""

    def work(self, plan: TaskPlan) -> Work:
        """What every task does."""
        self._schema = None if self._request.write.get("layout") == "columnar" else plan.schema
        return super().work(plan)

    def commit(self, written: Sequence[WrittenSplits]) -> list[str]:
        """Make one file of the parts."""
        self._join([file.path for part in written for file in part.files])
        self._staging.discard()
        return [Path(self.dest).name]

    def _join(self, parts: list[str]) -> None:
        if len(parts) == 1:
            Path(parts[0]).replace(self.dest)
            return
        column = self._request.column
        mode: FileMode = "overwrite" if self._request.mode == "overwrite" else "error"
        # Parts differ in which columns hold nothing, so that they are not there: one shape for all.
        chunks = [conform(read(part, column).to_unshredded().storage, "unshredded") for part in parts]
        rows = VariantArray.concat(map(VariantArray, chunks))
        write(self.dest, {column: rows}, schema=self._schema, mode=mode, **self._request.write)


def open_vortex(request: IngestRequest) -> Destination | None:
    """Look at the directory, or the file if the name ends in ``.vortex``; None if it is to be left alone.

    Raises `VariantFileError` if the mode says so, or if the destination cannot be; `VariantError` if vortex-data is not
    installed.
    """
    vortex()
    request = replace(request, dest=request.dest.removeprefix("file://"))
    dest = request.dest
    if "://" in dest:
        raise VariantFileError(f"Vortex files are written to local disk, not to {dest}", reason="bad-option", file=dest)
    if not dest.endswith(_SUFFIX) or Path(dest).is_dir():
        staging = open_staging(dest, request.mode)
        return None if staging is None else Destination(request, staging, _write)
    destination = VortexFileDestination.open(request, _write)
    if destination is not None and request.text.on_error == "quarantine":
        raise VariantFileError(
            f"bad lines go into the destination, which must be a directory then: give a name without {_SUFFIX}",
            reason="bad-option",
            file=dest,
        )
    return destination


def _write(
    request: IngestRequest, plan: TaskPlan, staging: Staging, task: int, attempt: int, splits: list[Split]
) -> WrittenSplits:
    arrays = SplitArrays(splits, plan, request.text, staging, task, attempt)
    chunks = list(arrays)
    if not chunks:
        return arrays.written((), 0, 0)
    data = StagedFile(arrays.directory, staging.file_name(task, extension=_SUFFIX[1:]))
    _, path = filesystem_of(data.path)
    rows = VariantArray.concat([chunk.variants for chunk in chunks])
    columns: dict[str, Any] = {request.column: rows}
    if beside := [chunk.beside for chunk in chunks if chunk.beside is not None]:
        table, name = pa.concat_tables(beside), str(request.text.json_column)
        columns = Rows(rows, table, name).columns(request.column)
        texts = as_arrow(table.column(name))
        columns[request.column] = JsonColumn.of(rows, texts) if request.write.get("exact") else JsonColumn(rows)
    info = write(path, columns, **request.write)
    return arrays.written((data,), info.rows, info.bytes)
