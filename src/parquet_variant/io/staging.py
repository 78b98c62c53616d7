"""Writing a directory of files so that readers see all of a job's files or none: staged by tasks, moved by the driver.

Owns the destination's modes, the staging directory and the commit; both engines (`parquet.ingest` and `spark`) use it.
Leaves what is in the files to the writers, and tables with a log to `delta`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

import pyarrow.fs as pafs

from parquet_variant.errors import VariantFileError
from parquet_variant.io.filesystems import filesystem_of

__all__ = ["BAD_RECORDS", "Mode", "StagedFile", "Staging", "open_staging"]

Mode: TypeAlias = Literal["error", "append", "overwrite", "ignore"]

# Names that begin with an underscore are no data to Spark, pyarrow and our own scan.
BAD_RECORDS = "_bad_records"
_TEMPORARY = "_temporary"
_STREAMS = "_streams"
_SUCCESS = "_SUCCESS"


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A finished file that waits for the commit.

    Parameters
    ----------
    attempt
        The directory of the task attempt that wrote it.
    name
        Its path below that directory, and below the destination once committed.
    """

    attempt: str
    name: str

    @property
    def path(self) -> str:
        """Where it is now."""
        return f"{self.attempt}/{self.name}"


@dataclass(frozen=True, slots=True)
class Staging:
    """One job's way into a directory; the same on the driver and, pickled, in every task.

    A task attempt writes into its own directory (`attempt`). `commit` moves only the files it is told of, so that what
    failed, repeated or speculative attempts wrote is never seen.

    Parameters
    ----------
    dest
        The directory, as a path or URI.
    overwrite
        Whether the commit removes the Parquet files that were there before.
    job
        A unique name, part of every file's name.
    """

    dest: str
    overwrite: bool = False
    job: str = field(default_factory=lambda: uuid.uuid4().hex[:12])

    @property
    def directory(self) -> str:
        """The job's staging directory."""
        return f"{self.dest.rstrip('/')}/{_TEMPORARY}/{self.job}"

    def attempt(self, task: int, attempt: int | str = 0) -> str:
        """Make the directory of a task attempt; no two runs of a task may have the same `attempt`."""
        directory = f"{self.directory}/{task:05d}-{attempt}"
        filesystem, path = filesystem_of(directory, None)
        filesystem.create_dir(path, recursive=True)
        return directory

    def file_name(self, task: int, index: int = 0, extension: str = "parquet") -> str:
        """The name of a task's file: unique over jobs, tasks and a task's files; it sorts in the order of the input."""
        return f"part-{task:05d}-{index:04d}-{self.job}.{extension}"

    def commit(self, files: Iterable[StagedFile], *, marker: bool = True) -> list[str]:
        """Make the files visible, remove the old ones if so asked, and write ``_SUCCESS`` if `marker` says so.

        Returns
        -------
        list of str
            The files in the destination, in the order given.

        Raises
        ------
        VariantFileError
            With reason ``"commit-failed"`` if a file cannot be moved: those already moved are removed again and the
            destination is as it was; with ``"overwrite-failed"`` if an old file cannot be removed after that.
        """
        filesystem, root = filesystem_of(self.dest, None)
        old = _replaceable(filesystem, root) if self.overwrite else []
        moved: list[str] = []
        try:
            for file in files:
                target = f"{root}/{file.name}"
                filesystem.create_dir(target.rpartition("/")[0], recursive=True)
                filesystem.move(filesystem_of(file.path, None)[1], target)
                moved.append(file.name)
        except OSError as error:
            for name in moved:
                with suppress(OSError):
                    filesystem.delete_file(f"{root}/{name}")
            raise VariantFileError(
                f"{self.dest} could not be written ({error}); it is as it was before", reason="commit-failed"
            ) from error
        try:
            for path in old:
                filesystem.delete_file(path)
        except OSError as error:
            raise VariantFileError(
                f"the new files are in {self.dest}, but {path} could not be removed ({error}): remove it by hand",
                reason="overwrite-failed",
            ) from error
        self.abort()
        if marker:
            with filesystem.open_output_stream(f"{root}/{_SUCCESS}"):
                pass
        return [f"{self.dest.rstrip('/')}/{name}" for name in moved]

    def commit_once(self, files: Iterable[StagedFile], stream: str, batch: int) -> None:
        """Commit a batch of a stream, whose batches come in order and may come again after a failure.

        The names of the files say which batch they are of, and a marker says that it is whole: what an attempt that
        died left without a marker is removed first, and a batch with a marker is not committed again.

        Parameters
        ----------
        files
            The batch's files.
        stream
            A name for the stream that is part of file names and does not change when the stream starts again.
        batch
            Number of the batch.
        """
        filesystem, root = filesystem_of(self.dest, None)
        marker = f"{root}/{_STREAMS}/{stream}/{batch}"
        if filesystem.get_file_info(marker).type == pafs.FileType.File:
            self.abort()
            return
        suffix = f"-{stream}-{batch}.parquet"
        for info in filesystem.get_file_info(pafs.FileSelector(root, allow_not_found=True)):
            if info.path.endswith(suffix):
                filesystem.delete_file(info.path)
        old = _replaceable(filesystem, root) if self.overwrite else []
        # A repeated batch may come through another job: the batch, not the job, names the file.
        moves = {f"{file.name.rsplit('-', 1)[0]}{suffix}": file for file in files}
        filesystem.create_dir(marker.rpartition("/")[0], recursive=True)
        for name, file in moves.items():
            filesystem.move(filesystem_of(file.path, None)[1], f"{root}/{name}")
        for path in old:
            filesystem.delete_file(path)
        with filesystem.open_output_stream(marker):
            pass
        self.abort()

    def abort(self) -> None:
        """Remove everything that was staged; nothing was visible."""
        filesystem, path = filesystem_of(self.directory, None)
        with suppress(OSError):
            filesystem.delete_dir(path)
        # The parent may hold other jobs' files: it goes only when empty.
        parent = path.rpartition("/")[0]
        with suppress(OSError):
            if not filesystem.get_file_info(pafs.FileSelector(parent, allow_not_found=True)):
                filesystem.delete_dir(parent)


def open_staging(dest: str, mode: Mode = "error") -> Staging | None:
    """Look at a destination and begin to write into it.

    Parameters
    ----------
    dest
        A directory, as a path or URI; it need not exist.
    mode
        What to do if data is there: ``"error"``, ``"append"``, ``"overwrite"`` (when the job commits), or
        ``"ignore"``: write nothing.

    Returns
    -------
    Staging or None
        None if the mode is ``"ignore"`` and data is there.

    Raises
    ------
    VariantFileError
        With reason ``"exists"``: the destination is a file, a Delta table, or holds data and the mode is ``"error"``.
    """
    if mode not in get_args(Mode):
        raise VariantFileError(f"mode is {mode!r}: use error, append, overwrite or ignore", reason="bad-mode")
    filesystem, path = filesystem_of(dest, None)
    kind = filesystem.get_file_info(path).type
    if kind == pafs.FileType.File:
        raise VariantFileError(f"{dest} is a file: name a directory", reason="exists", file=dest)
    if kind == pafs.FileType.Directory:
        if filesystem.get_file_info(f"{path}/_delta_log").type == pafs.FileType.Directory:
            raise VariantFileError(
                f"{dest} is a Delta table: write to it with format='delta'", reason="exists", file=dest
            )
        names = [info.base_name for info in filesystem.get_file_info(pafs.FileSelector(path))]
        if any(name != _TEMPORARY for name in names):
            if mode == "error":
                raise VariantFileError(
                    f"{dest} already exists: choose another destination, or mode append or overwrite",
                    reason="exists",
                    file=dest,
                )
            if mode == "ignore":
                return None
    return Staging(dest, overwrite=mode == "overwrite")


def _replaceable(filesystem: pafs.FileSystem, root: str) -> list[str]:
    """The data files of a directory, and what belongs to them; anything else a user put there stays."""
    selector = pafs.FileSelector(root, recursive=True, allow_not_found=True)
    found = []
    for info in filesystem.get_file_info(selector):
        below = info.path[len(root) :].strip("/")
        if info.type != pafs.FileType.File or below.startswith(f"{_TEMPORARY}/"):
            continue
        if below.endswith((".parquet", ".parquet.crc")) or below == _SUCCESS or below.startswith(f"{BAD_RECORDS}/"):
            found.append(info.path)
    return found
