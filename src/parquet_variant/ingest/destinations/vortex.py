"""JSON files into Vortex files: tasks write and verify parts, the driver commits, on any engine.

Owns Vortex files as the destination of an ingest. Leaves the steps to `job` and a file to `write`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from parquet_variant.array.variant_array import VariantArray
from parquet_variant.choices import FileMode
from parquet_variant.errors import VariantFileError
from parquet_variant.functions.inputs.arrow_input import as_arrow
from parquet_variant.ingest.destination import Work
from parquet_variant.ingest.request import IngestRequest
from parquet_variant.ingest.splits import Split
from parquet_variant.ingest.task import Rows, SplitArrays, WrittenSplits
from parquet_variant.ingest.task_plan import TaskPlan
from parquet_variant.io.filesystems import filesystem_of
from parquet_variant.io.staging import BAD_RECORDS, StagedFile, Staging, open_staging, staging_beside
from parquet_variant.parquet.writing.conform import conform
from parquet_variant.schema.shredding_schema import ShreddingSchema
from parquet_variant.vortex.files.library import vortex
from parquet_variant.vortex.files.reader import read
from parquet_variant.vortex.files.writer import write
from parquet_variant.vortex.logical.json_columns import JsonColumn

__all__ = ["VortexDestination", "open_vortex"]

_SUFFIX = ".vortex"


class VortexDestination:
    """A directory of Vortex files, a part a task; or one file, if the name ends in ``.vortex``.

    Parameters
    ----------
    request
        What is asked for.
    staging
        The job's way there; beside the file, if it is one.
    """

    def __init__(self, request: IngestRequest, staging: Staging) -> None:
        self.dest = request.dest
        self._request, self._staging = request, staging
        self._schema: ShreddingSchema | None = None
        self._made_here = not Path(staging.dest).exists()

    @property
    def _one_file(self) -> bool:
        return self._staging.dest != self.dest

    @property
    def bad_records_path(self) -> str:
        """The directory of bad lines, below the destination."""
        return f"{self.dest.rstrip('/')}/{BAD_RECORDS}"

    def work(self, plan: TaskPlan) -> Work:
        """What every task does."""
        self._schema = plan.schema
        self._staging = self._staging.begin()
        return partial(_write, self._request, plan, self._staging)

    def commit(self, written: Sequence[WrittenSplits]) -> list[str]:
        """Make the parts visible, or one file of them."""
        if self._one_file:
            self._join([file.path for part in written for file in part.files])
            self._staging.discard()
            return [Path(self.dest).name]
        root = self.dest.rstrip("/") + "/"
        names = self._staging.commit(file for part in written for file in part.files)
        return [name.removeprefix(root) for name in names if not name.startswith(f"{root}{BAD_RECORDS}/")]

    def abort(self) -> None:
        """Leave everything as it was."""
        if self._one_file:
            self._staging.discard()
            return
        self._staging.abort()
        if self._made_here:
            with suppress(OSError):
                Path(self.dest).rmdir()

    def _join(self, parts: list[str]) -> None:
        if len(parts) == 1:
            Path(parts[0]).replace(self.dest)
            return
        column = self._request.column
        mode: FileMode = "overwrite" if self._request.mode == "overwrite" else "error"
        # Parts differ in which columns hold nothing, so that they are not there: one shape for all.
        chunks = [conform(read(part, column).to_unshredded().storage, "unshredded") for part in parts]
        rows = VariantArray.concat(map(VariantArray, chunks))
        schema = None if self._request.write.get("layout") == "columnar" else self._schema
        write(self.dest, {column: rows}, schema=schema, mode=mode, **self._request.write)


def open_vortex(request: IngestRequest) -> VortexDestination | None:
    """Look at the directory, or the file if the name ends in ``.vortex``; None if it is to be left alone.

    Raises
    ------
    VariantFileError
        If the mode says so, or if the destination cannot be.
    VariantError
        If vortex-data is not installed.
    """
    vortex()
    request = replace(request, dest=request.dest.removeprefix("file://"))
    dest, mode = request.dest, request.mode
    if "://" in dest:
        raise VariantFileError(f"Vortex files are written to local disk, not to {dest}", reason="bad-option", file=dest)
    target = Path(dest)
    if not dest.endswith(_SUFFIX) or target.is_dir():
        staging = open_staging(dest, mode)
        return None if staging is None else VortexDestination(request, staging)
    if target.exists():
        if mode == "ignore":
            return None
        if mode != "overwrite":
            hint = "a file takes no more rows: append to a directory" if mode == "append" else "use mode overwrite"
            raise VariantFileError(f"{dest} exists: {hint}, or choose another place", reason="exists", file=dest)
    if request.text.on_error == "quarantine":
        raise VariantFileError(
            f"bad lines go into the destination, which must be a directory then: give a name without {_SUFFIX}",
            reason="bad-option",
            file=dest,
        )
    return VortexDestination(request, staging_beside(dest))


def _write(
    request: IngestRequest, plan: TaskPlan, staging: Staging, task: int, attempt: int, splits: list[Split]
) -> WrittenSplits:
    arrays = SplitArrays(splits, plan, request.text, staging, task, attempt)
    chunks = list(arrays)
    if not chunks:
        return arrays.written((), 0, 0)
    data = StagedFile(arrays.directory, staging.file_name(task, extension=_SUFFIX[1:]))
    _, path = filesystem_of(data.path, None)
    rows = VariantArray.concat([chunk.variants for chunk in chunks])
    columns: dict[str, Any] = {request.column: rows}
    if beside := [chunk.beside for chunk in chunks if chunk.beside is not None]:
        table, name = pa.concat_tables(beside), str(request.text.json_column)
        columns = Rows(rows, table, name).columns(request.column)
        texts = as_arrow(table.column(name))
        columns[request.column] = JsonColumn.of(rows, texts) if request.write.get("exact") else JsonColumn(rows)
    info = write(path, columns, **request.write)
    return arrays.written((data,), info.rows, info.bytes)
