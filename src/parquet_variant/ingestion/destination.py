"""`Destination`: where the tasks of an ingest write, and how the result becomes visible as a whole or not at all.

The base class is a directory whose files are staged; `FileDestination` is one file. The modules in `destinations` adapt
them to the output formats.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

import pyarrow.fs as pafs

from parquet_variant.errors import VariantFileError
from parquet_variant.files.parquet.format.files import ParquetSource
from parquet_variant.ingestion.request import IngestRequest
from parquet_variant.ingestion.sources.splits import Split
from parquet_variant.ingestion.task import TaskPlan, WrittenSplits
from parquet_variant.io.commit_journal import visible_files
from parquet_variant.io.filesystems import filesystem_of, info_of, write_errors
from parquet_variant.io.staging import BAD_RECORDS, StagedFile, Staging, staging_beside
from parquet_variant.io.temporaries import keep_mode, linked_file

# The function of a task; its arguments are the number of the task, the number of the attempt, and the splits.
Work: TypeAlias = Callable[[int, int, list[Split]], WrittenSplits]


class Destination:
    """A directory of files that tasks stage and the driver commits.

    `request`: the request of the ingest.
    `staging`: the staging area in the destination.
    `write`: the function that writes the files of a task, called as ``write(request, plan, staging, *task)``.
    """

    def __init__(self, request: IngestRequest, staging: Staging, write: Callable[..., WrittenSplits]) -> None:
        self.dest = request.dest
        self._request, self._staging, self._write = request, staging, write

    @property
    def request(self) -> IngestRequest:
        """The request, completed by what the destination determines, such as its partition columns."""
        return self._request

    @property
    def bad_records_path(self) -> str:
        """The directory of quarantined lines."""
        return f"{self.dest.rstrip('/')}/{BAD_RECORDS}"

    def data_files(self) -> Sequence[ParquetSource]:
        """Return the Parquet files that the destination holds before the job."""
        return ()

    @property
    def accepts_no_rows(self) -> bool:
        """Whether a job without rows succeeds: the destination holds data, so that its columns are known."""
        return self.request.mode == "append" and any(visible_files(*filesystem_of(self.dest)))

    def write_no_rows(self, plan: TaskPlan) -> Sequence[WrittenSplits]:
        """Write what a destination without rows needs, such as a file that has the columns."""
        return ()

    def work(self, plan: TaskPlan) -> Work:
        """Start the job and return the function that every task runs; it can be pickled."""
        self._staging = self._staging.begin()
        return partial(self._write, self._request, plan, self._staging)

    def commit(self, written: Sequence[WrittenSplits]) -> list[str]:
        """Make the files of all tasks visible, and return the paths of the data files relative to `dest`."""
        root = self.dest.rstrip("/") + "/"
        files = [file for part in written for file in part.files]
        names = self._staging.commit(files, partition_types=self.partition_types())
        return [name.removeprefix(root) for name in names if not name.startswith(f"{root}{BAD_RECORDS}/")]

    def partition_types(self) -> dict[str, str]:
        """Return the types of partition columns that the directory declares after the commit, as DDL."""
        return {}

    def abort(self) -> None:
        """Restore the state before the job. Files that other processes wrote meanwhile are kept."""
        self._staging.abort()


class FileDestination(Destination):
    """One file. The staging area is next to it."""

    @classmethod
    def open(cls, request: IngestRequest, write: Callable[..., WrittenSplits]) -> FileDestination | None:
        """Open the destination; return None if the file exists and the mode is ``"ignore"``.

        Raises `VariantFileError` if the path is a directory, or an existing file that the mode does not overwrite.
        """
        dest, mode = request.dest, request.mode
        filesystem, path = filesystem_of(dest)
        file_type = info_of(filesystem, path).type
        if file_type == pafs.FileType.Directory:
            raise VariantFileError(
                f"{dest} is a directory, not a file: choose another path", reason="exists", file=dest
            )
        if file_type == pafs.FileType.File:
            if mode == "ignore":
                return None
            if mode != "overwrite":
                advice = (
                    "rows cannot be appended to a file: append to a directory"
                    if mode == "append"
                    else "use mode=overwrite"
                )
                raise VariantFileError(
                    f"{dest} already exists: {advice}, or choose another path", reason="exists", file=dest
                )
        return cls(request, staging_beside(dest), write)

    def abort(self) -> None:
        """Remove the staging area."""
        self._staging.discard()


def move_file(file: StagedFile, target: str) -> None:
    """Move a staged file to its final path; permissions of a file there and a symbolic link to it are kept.

    Raises `VariantFileError` if the file system refuses it.
    """
    filesystem, path = filesystem_of(file.path)
    with write_errors(target):
        place = linked_file(filesystem, filesystem_of(target)[1])
        keep_mode(filesystem, path, place)
        filesystem.move(path, place)
