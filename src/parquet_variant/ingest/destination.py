"""What an ingest needs of a destination: what every task does, and what makes the whole visible, or leaves nothing.

Owns what destinations share: a directory whose files are staged, and one file that is written aside. Leaves what tasks
write to the modules in `destinations`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TypeAlias

import pyarrow.fs as pafs

from parquet_variant.errors import VariantFileError
from parquet_variant.ingest.request import IngestRequest
from parquet_variant.ingest.splits import Split
from parquet_variant.ingest.task import TaskPlan, WrittenSplits
from parquet_variant.io.filesystems import filesystem_of
from parquet_variant.io.staging import BAD_RECORDS, Staging, staging_beside

# What a task does: number of the task, of the attempt, and its splits.
Work: TypeAlias = Callable[[int, int, list[Split]], WrittenSplits]


class Destination(ABC):
    """What the tasks write into, and what makes it visible: a directory of files, unless a class says otherwise."""

    def __init__(self, request: IngestRequest, staging: Staging) -> None:
        self.dest = request.dest
        self._request, self._staging = request, staging

    @property
    def bad_records_path(self) -> str:
        """Where bad lines go that are put aside: a directory below the destination."""
        return f"{self.dest.rstrip('/')}/{BAD_RECORDS}"

    @abstractmethod
    def work(self, plan: TaskPlan) -> Work:
        """What every task does; can be pickled."""

    def commit(self, written: Sequence[WrittenSplits]) -> list[str]:
        """Make what the tasks wrote visible; the data files' paths below `dest`."""
        root = self.dest.rstrip("/") + "/"
        names = self._staging.commit(file for part in written for file in part.files)
        return [name.removeprefix(root) for name in names if not name.startswith(f"{root}{BAD_RECORDS}/")]

    def abort(self) -> None:
        """Leave the directory as it was, if there was one; what others put there meanwhile stays."""
        self._staging.abort()


class FileDestination(Destination):
    """One file; the job's directory is beside it."""

    @classmethod
    def open(cls, request: IngestRequest) -> FileDestination | None:
        """Look at the place; None if there is a file that is to be left alone.

        Raises `VariantFileError` if there is a directory, or a file and the mode is not to overwrite it.
        """
        dest, mode = request.dest, request.mode
        filesystem, path = filesystem_of(dest)
        kind = filesystem.get_file_info(path).type
        if kind == pafs.FileType.Directory:
            raise VariantFileError(f"{dest} is a directory, not a file", reason="exists", file=dest)
        if kind == pafs.FileType.File:
            if mode == "ignore":
                return None
            if mode != "overwrite":
                cure = "a file takes no more rows: append to a directory" if mode == "append" else "use mode=overwrite"
                raise VariantFileError(f"{dest} exists: {cure}, or choose another place", reason="exists", file=dest)
        return cls(request, staging_beside(dest))

    def abort(self) -> None:
        """Leave nothing beside the file."""
        self._staging.discard()
