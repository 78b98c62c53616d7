"""JSON files into one Parquet file: one task writes it aside, the driver renames it.

Owns the file as the destination of an ingest. Leaves writing it to `destinations.parquet`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pyarrow.fs as pafs

from parquet_variant.errors import VariantFileError
from parquet_variant.ingest.destination import Work
from parquet_variant.ingest.destinations.parquet import write_task
from parquet_variant.ingest.request import IngestRequest
from parquet_variant.ingest.task import WrittenSplits
from parquet_variant.ingest.task_plan import TaskPlan
from parquet_variant.io.filesystems import filesystem_of
from parquet_variant.io.staging import BAD_RECORDS, Staging, staging_beside

__all__ = ["ParquetFileDestination", "open_parquet_file"]


class ParquetFileDestination:
    """One Parquet file, and beside it one of bad lines if there are any.

    Parameters
    ----------
    request
        What is asked for.
    staging
        The job's way to a directory beside the file.
    """

    def __init__(self, request: IngestRequest, staging: Staging) -> None:
        self.dest = request.dest
        self._request, self._staging = request, staging

    @property
    def bad_records_path(self) -> str:
        """The file of bad lines."""
        return f"{self.dest}.bad_records.ndjson"

    def work(self, plan: TaskPlan) -> Work:
        """What the task does."""
        self._staging = self._staging.begin()
        return partial(write_task, self._request, plan, self._staging)

    def commit(self, written: Sequence[WrittenSplits]) -> list[str]:
        """Move the file to its place."""
        staged = [file for part in written for file in part.files]
        bad = [file for file in staged if file.name.startswith(f"{BAD_RECORDS}/")]
        data = [file for file in staged if file not in bad]
        if not data:
            raise VariantFileError(f"no line is JSON: there is nothing to write into {self.dest}", reason="no-rows")
        for file, target in (*((each, self.bad_records_path) for each in bad), (data[0], self.dest)):
            filesystem, path = filesystem_of(file.path, None)
            filesystem.move(path, filesystem_of(target, None)[1])
        self._staging.discard()
        return [self.dest.rpartition("/")[2]]

    def abort(self) -> None:
        """Leave nothing beside the file."""
        self._staging.discard()


def open_parquet_file(request: IngestRequest) -> ParquetFileDestination | None:
    """Look at the place; None if there is a file that is to be left alone.

    Raises
    ------
    VariantFileError
        If there is a directory, or a file and the mode is not to overwrite it.
    """
    filesystem, path = filesystem_of(request.dest)
    kind = filesystem.get_file_info(path).type
    if kind == pafs.FileType.Directory:
        raise VariantFileError(f"{request.dest} is a directory, not a file", reason="exists", file=request.dest)
    if kind == pafs.FileType.File:
        if request.mode == "ignore":
            return None
        if request.mode != "overwrite":
            cure = (
                "a file takes no more rows: append to a directory" if request.mode == "append" else "use mode=overwrite"
            )
            raise VariantFileError(
                f"{request.dest} exists: {cure}, or choose another place", reason="exists", file=request.dest
            )
    return ParquetFileDestination(request, staging_beside(request.dest))
