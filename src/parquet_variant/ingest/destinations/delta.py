"""JSON files into a Delta table: tasks write data files, the driver commits once, on any engine.

Owns the table as the destination of an ingest. Leaves the steps to `parquet.ingest_job`, files to `data_files` and the
commit to `write`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.fs as pafs

from parquet_variant.array.variant_array import EXTENSION_METADATA
from parquet_variant.delta.log.snapshot import Snapshot, load_snapshot
from parquet_variant.delta.storage import open_storage
from parquet_variant.delta.writing.data_files import WritePlan
from parquet_variant.delta.writing.write import commit_files, create, plan
from parquet_variant.encoding.cast.targets import VARIANT_STORAGE
from parquet_variant.errors import DeltaError
from parquet_variant.ingest.job import Work
from parquet_variant.ingest.sources import Split
from parquet_variant.ingest.task import IngestOptions, SplitArrays, WrittenSplits
from parquet_variant.io.filesystems import filesystem_of
from parquet_variant.io.staging import Mode, Staging, sweep
from parquet_variant.schema.shredding_schema import ShreddingSchema

__all__ = ["DeltaDestination", "delta_destination"]


class DeltaDestination:
    """A Delta table that an ingest adds to; it is made when the ingest begins to write, if it is not there.

    Parameters
    ----------
    dest
        Path of the table.
    current
        The table as it is; None if it is to be made.
    overwrite
        Whether the commit removes all rows that are there.
    preview
        Whether a table that is made names its feature ``variantShredding-preview``.
    """

    def __init__(self, dest: str, current: Snapshot | None, overwrite: bool, preview: bool = False) -> None:
        self.dest = dest
        self._preview = preview
        self._current = current
        self._made_here = current is None
        self._overwrite = overwrite
        # Bad lines only: data files lie in the table from the start, and no reader sees them before the commit.
        self._staging = Staging(dest)

    def work(self, schema: ShreddingSchema, options: IngestOptions) -> Work:
        """What every task does."""
        if self._current is None:
            variant = pa.field(options.column, VARIANT_STORAGE, metadata=EXTENSION_METADATA)
            self._current = create(self.dest, pa.schema([variant]), preview=self._preview)
        self._staging = self._staging.begin()
        made = plan(self._current, shredding={options.column: schema}, **options.write)
        return partial(_write, made, schema, options, self._staging)

    def commit(self, written: Sequence[WrittenSplits]) -> list[str]:
        """Commit the files of all tasks as one version."""
        assert self._current is not None
        adds = [action for part in written for action in part.actions]
        bad = [file for part in written for file in part.files]
        if bad:
            self._staging.commit(bad, marker=False)
        else:
            self._staging.abort()
        if adds or self._overwrite:
            commit_files(self._current, adds, mode="overwrite" if self._overwrite else "append")
        return [unquote(action["path"]) for action in adds]

    def abort(self) -> None:
        """Leave the table as it was; files that no commit names are removed by vacuum."""
        self._staging.abort()
        if self._made_here and self._current is not None:
            filesystem, path = filesystem_of(self.dest, None)
            with suppress(OSError, DeltaError):
                if load_snapshot(self._current.storage).version == 0:
                    filesystem.delete_dir(path)


def delta_destination(
    dest: str | os.PathLike[str], mode: Mode = "error", *, preview: bool = False
) -> Callable[[], DeltaDestination | None]:
    """What opens a table for `run_ingest`.

    Parameters
    ----------
    dest
        Path of the table; it need not exist.
    mode
        If it exists: ``"error"``, ``"append"``, ``"overwrite"`` or ``"ignore"``.
    preview
        For a new table: name the feature ``variantShredding-preview``, for readers that know no other.

    Raises
    ------
    DeltaError
        When opened, with reason ``"exists"`` if the table is there and the mode is ``"error"``, or if other files are.
    """
    if mode not in ("error", "append", "overwrite", "ignore"):
        raise DeltaError(f"mode is {mode!r}: use error, append, overwrite or ignore", reason="bad-mode")
    return partial(_open, os.fspath(dest), mode, preview)


def _open(dest: str, mode: Mode, preview: bool) -> DeltaDestination | None:
    current = _existing(dest)
    if current is None:
        filesystem, path = filesystem_of(dest, None)
        info = filesystem.get_file_info(path)
        there = info.type == pafs.FileType.File or filesystem.get_file_info(
            pafs.FileSelector(path, allow_not_found=True)
        )
        if there:
            raise DeltaError(
                f"{dest} holds other files and is no Delta table: choose another place", reason="exists", file=dest
            )
    elif mode == "error":
        raise DeltaError(
            f"{dest} is a Delta table already: use mode append or overwrite, or choose another place",
            reason="exists",
            file=dest,
        )
    elif mode == "ignore":
        return None
    else:
        sweep(dest)
    return DeltaDestination(dest, current, mode == "overwrite", preview)


def _existing(dest: str) -> Snapshot | None:
    try:
        return load_snapshot(open_storage(dest))
    except DeltaError as error:
        if error.reason == "not-a-table":
            return None
        raise


def _write(
    made: WritePlan,
    schema: ShreddingSchema,
    options: IngestOptions,
    staging: Staging,
    task: int,
    attempt: int,
    splits: list[Split],
) -> WrittenSplits:
    arrays = SplitArrays(splits, schema, options, staging, task, attempt)
    rows = 0

    def columns() -> Any:
        nonlocal rows
        for array in arrays:
            rows += len(array)
            yield {options.column: array}

    adds: Sequence[Mapping[str, Any]] = made.write(columns())
    size = sum(int(add["size"]) for add in adds)
    return WrittenSplits(arrays.bad_files, rows, arrays.bad, arrays.text_bytes, size, tuple(adds))
