"""JSON files into Vortex files: tasks write and verify parts, the driver commits, on any engine.

Owns Vortex files as the destination of an ingest. Leaves the steps to `parquet.ingest_job` and a file to `write`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import get_args

from parquet_variant.array.variant_array import VariantArray
from parquet_variant.errors import VariantFileError
from parquet_variant.ingest.job import Work
from parquet_variant.ingest.sources import Split
from parquet_variant.ingest.task import IngestOptions, SplitArrays, WrittenSplits
from parquet_variant.io.filesystems import filesystem_of
from parquet_variant.io.staging import BAD_RECORDS, Mode, StagedFile, Staging, open_staging, sweep
from parquet_variant.parquet.writing.conform import conform
from parquet_variant.schema.shredding_schema import ShreddingSchema
from parquet_variant.vortex.library import vortex
from parquet_variant.vortex.read import read
from parquet_variant.vortex.write import write

__all__ = ["VortexDestination", "vortex_destination"]

_SUFFIX = ".vortex"


class VortexDestination:
    """A directory of Vortex files, a part a task; or one file, if the name ends in ``.vortex``.

    Parameters
    ----------
    dest
        The directory or file.
    staging
        The job's way there.
    overwrite
        Whether the commit replaces what is there.
    """

    def __init__(self, dest: str, staging: Staging, overwrite: bool) -> None:
        self.dest = dest
        self._staging = staging
        self._overwrite = overwrite
        self._options = IngestOptions()
        self._schema: ShreddingSchema | None = None
        self._made_here = not Path(staging.dest).exists()

    @property
    def _one_file(self) -> bool:
        return self._staging.dest != self.dest

    def work(self, schema: ShreddingSchema, options: IngestOptions) -> Work:
        """What every task does."""
        if self._one_file and options.on_error != "fail":
            raise VariantFileError(
                f"bad lines go into the destination, which must be a directory then: give a name without {_SUFFIX}",
                reason="bad-option",
                file=self.dest,
            )
        self._options, self._schema = options, schema
        self._staging = self._staging.begin()
        return partial(_write, schema, options, self._staging)

    def commit(self, written: Sequence[WrittenSplits]) -> list[str]:
        """Make the parts visible, or one file of them."""
        if self._one_file:
            self._join([file.path for part in written for file in part.files])
            shutil.rmtree(self._staging.dest)
            return [Path(self.dest).name]
        root = self.dest.rstrip("/") + "/"
        names = self._staging.commit(file for part in written for file in part.files)
        return [name.removeprefix(root) for name in names if not name.startswith(f"{root}{BAD_RECORDS}/")]

    def abort(self) -> None:
        """Leave everything as it was."""
        self._staging.abort()
        if self._made_here:
            with suppress(OSError):
                Path(self._staging.dest).rmdir()

    def _join(self, parts: list[str]) -> None:
        if len(parts) == 1:
            Path(parts[0]).replace(self.dest)
            return
        column = self._options.column
        # Parts differ in which columns hold nothing, so that they are not there: one shape for all.
        chunks = [conform(read(part, column).to_unshredded().storage, "unshredded") for part in parts]
        rows = VariantArray.concat(map(VariantArray, chunks))
        write(self.dest, {column: rows}, schema=self._schema, overwrite=self._overwrite, **self._options.write)


def vortex_destination(dest: str | os.PathLike[str], mode: Mode = "error") -> Callable[[], VortexDestination | None]:
    """What opens Vortex files for `run_ingest`.

    Parameters
    ----------
    dest
        A local directory; or a file, if its name ends in ``.vortex`` and no directory has that name.
    mode
        If it holds data: ``"error"``, ``"append"`` (for directories), ``"overwrite"`` or ``"ignore"``.

    Raises
    ------
    VariantFileError
        When opened, if the mode says so, or if the destination cannot be.
    VariantError
        If vortex-data is not installed.
    """
    if mode not in get_args(Mode):
        raise VariantFileError(f"mode is {mode!r}: use error, append, overwrite or ignore", reason="bad-mode")
    return partial(_open, os.fspath(dest), mode)


def _open(dest: str, mode: Mode) -> VortexDestination | None:
    vortex()
    dest = dest.removeprefix("file://")
    if "://" in dest:
        raise VariantFileError(f"Vortex files are written to local disk, not to {dest}", reason="bad-option", file=dest)
    target = Path(dest)
    if not dest.endswith(_SUFFIX) or target.is_dir():
        staging = open_staging(dest, mode)
        return None if staging is None else VortexDestination(dest, staging, mode == "overwrite")
    if target.exists():
        if mode == "ignore":
            return None
        if mode != "overwrite":
            hint = "a file takes no more rows: append to a directory" if mode == "append" else "use mode overwrite"
            raise VariantFileError(f"{dest} exists: {hint}, or choose another place", reason="exists", file=dest)
    # Beside the file, so that the last step is a rename.
    aside = target.parent / f".{target.name}.parts"
    target.parent.mkdir(parents=True, exist_ok=True)
    sweep(str(aside))
    return VortexDestination(dest, Staging(str(aside)), mode == "overwrite")


def _write(
    schema: ShreddingSchema,
    options: IngestOptions,
    staging: Staging,
    task: int,
    attempt: int,
    splits: list[Split],
) -> WrittenSplits:
    arrays = SplitArrays(splits, schema, options, staging, task, attempt)
    chunks = list(arrays)
    if not chunks:
        return WrittenSplits(arrays.bad_files, 0, arrays.bad, arrays.text_bytes, 0)
    data = StagedFile(arrays.directory, staging.file_name(task, extension=_SUFFIX[1:]))
    _, path = filesystem_of(data.path, None)
    info = write(path, {options.column: VariantArray.concat(chunks)}, **options.write)
    return WrittenSplits((data, *arrays.bad_files), info.rows, arrays.bad, arrays.text_bytes, info.bytes)
