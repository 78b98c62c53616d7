"""JSON files into a directory of Parquet files: tasks stage files, the driver moves them in, on any engine.

Owns the directory as the destination of an ingest. Leaves the steps to `job`, files to `PartitionedFiles` and the moves
to `io.staging`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial

import pyarrow.fs as pafs

from parquet_variant.ingest.destination import Work
from parquet_variant.ingest.partitioned_files import PartitionedFiles
from parquet_variant.ingest.request import IngestRequest
from parquet_variant.ingest.splits import Split
from parquet_variant.ingest.task import SplitArrays, WrittenSplits
from parquet_variant.ingest.task_plan import TaskPlan
from parquet_variant.io.filesystems import filesystem_of
from parquet_variant.io.staging import BAD_RECORDS, Staging, open_staging

__all__ = ["ParquetDestination", "open_parquet", "write_task"]


class ParquetDestination:
    """A directory of Parquet files, one a task and partition.

    Parameters
    ----------
    request
        What is asked for.
    staging
        The job's way into the directory.
    """

    def __init__(self, request: IngestRequest, staging: Staging) -> None:
        self.dest = request.dest
        self._request, self._staging = request, staging
        filesystem, path = filesystem_of(self.dest)
        self._made_here = filesystem.get_file_info(path).type == pafs.FileType.NotFound

    @property
    def bad_records_path(self) -> str:
        """The directory of bad lines, below the destination."""
        return f"{self.dest.rstrip('/')}/{BAD_RECORDS}"

    def work(self, plan: TaskPlan) -> Work:
        """What every task does."""
        self._staging = self._staging.begin()
        return partial(write_task, self._request, plan, self._staging)

    def commit(self, written: Sequence[WrittenSplits]) -> list[str]:
        """Make the files of all tasks visible."""
        root = self.dest.rstrip("/") + "/"
        names = self._staging.commit(file for part in written for file in part.files)
        return [name.removeprefix(root) for name in names if not name.startswith(f"{root}{BAD_RECORDS}/")]

    def abort(self) -> None:
        """Leave the directory as it was, if there was one."""
        self._staging.abort()
        if self._made_here:
            filesystem, path = filesystem_of(self.dest)
            with suppress(OSError):
                if not filesystem.get_file_info(pafs.FileSelector(path)):
                    filesystem.delete_dir(path)


def open_parquet(request: IngestRequest) -> ParquetDestination | None:
    """Look at the directory; None if it holds data and is to be left alone then.

    Raises
    ------
    VariantFileError
        As `open_staging`.
    """
    staging = open_staging(request.dest, request.mode)
    return None if staging is None else ParquetDestination(request, staging)


def write_task(
    request: IngestRequest, plan: TaskPlan, staging: Staging, task: int, attempt: int, splits: list[Split]
) -> WrittenSplits:
    """Stage the files of a task."""
    arrays = SplitArrays(splits, plan, request.text, staging, task, attempt)
    options = {**request.write, "threads": plan.threads, "encodings": plan.encodings}
    with PartitionedFiles(staging, arrays.directory, task, **options) as files:
        for rows in arrays:
            columns = rows.columns(request.column)
            for values, part in request.partition_by.split(rows.variants, columns):
                files.write(values, part)
        files.close()
    return arrays.written(tuple(files.files), files.rows, files.bytes)
