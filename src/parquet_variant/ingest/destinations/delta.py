"""JSON files into a Delta table: tasks write data files, the driver commits once, on any engine.

Owns the table as the destination of an ingest. Leaves the steps to `job`, files to `WritePlan` and the commit to
`delta`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Literal
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.fs as pafs

from parquet_variant.array.capsules import EXTENSION_METADATA
from parquet_variant.array.variant_array import VariantArray
from parquet_variant.delta.log.snapshot import Snapshot, load_snapshot
from parquet_variant.delta.storage import open_storage
from parquet_variant.delta.writing.data_files import WritePlan
from parquet_variant.delta.writing.write import commit_files, create, plan
from parquet_variant.encoding.cast.targets import VARIANT_STORAGE
from parquet_variant.errors import DeltaError
from parquet_variant.ingest.destination import Work
from parquet_variant.ingest.request import IngestRequest
from parquet_variant.ingest.sources import Split
from parquet_variant.ingest.task import SplitArrays, WrittenSplits
from parquet_variant.io.filesystems import filesystem_of
from parquet_variant.io.staging import Mode, Staging, check_mode, sweep
from parquet_variant.schema.shredding_schema import ShreddingSchema

__all__ = ["DeltaDestination", "open_delta", "open_table"]


class DeltaDestination:
    """A Delta table that an ingest adds to; it is made when the ingest begins to write, if it is not there.

    Parameters
    ----------
    request
        What is asked for.
    current
        The table as it is; None if it is to be made.
    """

    def __init__(self, request: IngestRequest, current: Snapshot | None) -> None:
        self.dest = request.dest
        self._request, self._current = request, current
        self._made_here = current is None
        # Bad lines only: data files lie in the table from the start, and no reader sees them before the commit.
        self._staging = Staging(request.dest)

    def work(self, schema: ShreddingSchema) -> Work:
        """What every task does."""
        if self._current is None:
            variant = pa.field(self._request.column, VARIANT_STORAGE, metadata=EXTENSION_METADATA)
            self._current = create(self.dest, pa.schema([variant]), preview=self._request.preview)
        self._staging = self._staging.begin()
        write_plan = _plan(self._current, self._request, schema)
        return partial(_write, write_plan, self._request, schema, self._staging)

    def commit(self, written: Sequence[WrittenSplits]) -> list[str]:
        """Commit the files of all tasks as one version."""
        assert self._current is not None
        adds = [add for part in written for add in part.adds]
        bad = [file for part in written for file in part.files]
        if bad:
            self._staging.commit(bad, marker=False)
        else:
            self._staging.abort()
        mode: Literal["append", "overwrite"] = "overwrite" if self._request.mode == "overwrite" else "append"
        if adds or mode == "overwrite":
            commit_files(self._current, adds, mode=mode)
        return [unquote(add.path) for add in adds]

    def abort(self) -> None:
        """Leave the table as it was; files that no commit names are removed by vacuum."""
        self._staging.abort()
        if self._made_here and self._current is not None:
            filesystem, path = filesystem_of(self.dest, None)
            with suppress(OSError, DeltaError):
                if load_snapshot(self._current.storage).version == 0:
                    filesystem.delete_dir(path)


def open_delta(request: IngestRequest) -> DeltaDestination | None:
    """Look at the table; None if it is there and is to be left alone then.

    Raises
    ------
    DeltaError
        With reason ``"exists"`` if the table is there and the mode is ``"error"``, or if other files are; or if the
        table cannot take the column.
    """
    to_write, current = open_table(request.dest, request.mode)
    if not to_write:
        return None
    if current is not None:
        _plan(current, request, request.schema or ShreddingSchema.variant())
    return DeltaDestination(request, current)


def _plan(current: Snapshot, request: IngestRequest, schema: ShreddingSchema) -> WritePlan:
    return plan(current, shredding={request.column: schema}, **request.write)


def open_table(dest: str, mode: Mode) -> tuple[bool, Snapshot | None]:
    """Look at a table: whether to write to it, and as it is if it is there.

    Raises
    ------
    DeltaError
        As `open_delta`.
    """
    check_mode(mode)
    try:
        current = load_snapshot(open_storage(dest))
    except DeltaError as error:
        if error.reason != "not-a-table":
            raise
    else:
        if mode == "error":
            raise DeltaError(
                f"{dest} is a Delta table already: use mode append or overwrite, or choose another place",
                reason="exists",
                file=dest,
            )
        if mode != "ignore":
            sweep(dest)
        return mode != "ignore", current
    filesystem, path = filesystem_of(dest, None)
    info = filesystem.get_file_info(path)
    if info.type == pafs.FileType.File or filesystem.get_file_info(pafs.FileSelector(path, allow_not_found=True)):
        raise DeltaError(
            f"{dest} holds other files and is no Delta table: choose another place", reason="exists", file=dest
        )
    return True, None


def _write(
    write_plan: WritePlan,
    request: IngestRequest,
    schema: ShreddingSchema,
    staging: Staging,
    task: int,
    attempt: int,
    splits: list[Split],
) -> WrittenSplits:
    arrays = SplitArrays(splits, schema, request.text, staging, task, attempt)
    rows = 0

    def columns() -> Iterator[dict[str, VariantArray]]:
        nonlocal rows
        for array in arrays:
            rows += len(array)
            yield {request.column: array}

    adds = write_plan.write_files(columns())
    return arrays.written((), rows, sum(add.size for add in adds), tuple(adds))
