"""Writing a directory of files so that readers see all of a job's files or none: staged by tasks, moved by the driver.

Owns the destination's modes, the staging directory, the commit, and sweeping up after jobs that died; all engines use
it. Leaves which files count in the middle of a commit to `commit_journal`, what is in the files to the writers, and
tables with a log to `delta`.
"""

from __future__ import annotations

import posixpath
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import get_args

import pyarrow.fs as pafs

from parquet_variant.choices import FileMode, Mode
from parquet_variant.errors import VariantFileError, check_choice
from parquet_variant.io.commit_journal import (
    COMMITTED,
    PREPARED,
    TEMPORARY,
    Journal,
    files_that_count,
    journal_of,
    others,
    publish,
)
from parquet_variant.io.filesystems import filesystem_of, has_delta_log, write_errors
from parquet_variant.io.temporaries import JobOwner, is_dead

# Names that begin with an underscore are no data to Spark, pyarrow and our own scan.
BAD_RECORDS = "_bad_records"
# What the names of files begin with that hold rows of other files.
COMPACTED = "compacted"
_STREAMS = "_streams"
_SUCCESS = "_SUCCESS"
_OWNER = "owner.json"
_DATA = (".parquet", ".parquet.crc", ".vortex")


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A finished file that waits for the commit."""

    attempt: str  # The directory of the task attempt that wrote it.
    name: str  # Its path below that directory, and below the destination once committed.

    @property
    def path(self) -> str:
        """Where it is now."""
        return f"{self.attempt}/{self.name}"


@dataclass(frozen=True, slots=True)
class Staging:
    """One job's way into a directory; the same on the driver and, pickled, in every task.

    A task attempt writes into its own directory (`attempt`). `commit` moves only the files it is told of, so that what
    failed, repeated or speculative attempts wrote is never seen. A commit that is cut off at any point leaves what was
    there before, or all that is new, to every reader of this package; the next job carries it through or takes it back.
    """

    dest: str  # The directory, as a path or URI.
    overwrite: bool = False  # Whether the commit removes the Parquet files that were there before.
    job: str = field(default_factory=lambda: uuid.uuid4().hex[:12])  # A unique name, part of every file's name.
    # Whether the driver said that the job runs (`begin`): tasks then write only as long as it does.
    begun: bool = False
    # Whether the directory was not there before the job: if nothing comes into it, it goes again.
    made: bool = False

    @classmethod
    def into(cls, dest: str) -> Staging:
        """A job's way into a directory, which need not be there: that is looked at now, before anything is made."""
        filesystem, path = filesystem_of(dest)
        return cls(dest, made=filesystem.get_file_info(path).type == pafs.FileType.NotFound)

    @property
    def directory(self) -> str:
        """The job's staging directory."""
        return f"{self.dest.rstrip('/')}/{TEMPORARY}/{self.job}"

    def _place(self) -> tuple[pafs.FileSystem, str]:
        filesystem, root = filesystem_of(self.dest)
        return filesystem, root.rstrip("/")

    def begin(self) -> Staging:
        """Say who runs the job; on the driver, before the first task."""
        filesystem, path = filesystem_of(self.directory)
        with write_errors(self.dest):
            filesystem.create_dir(path, recursive=True)
            with filesystem.open_output_stream(f"{path}/{_OWNER}") as stream:
                stream.write(JobOwner.current().to_token().encode())
        return replace(self, begun=True)

    def check_running(self) -> None:
        """Raise the error ``"job-over"`` if the job was begun and has ended."""
        filesystem, path = filesystem_of(self.directory)
        if self.begun and filesystem.get_file_info(f"{path}/{_OWNER}").type != pafs.FileType.File:
            raise VariantFileError(
                f"the job that writes {self.dest} has ended, and what it staged is gone", reason="job-over"
            )

    def attempt(self, task: int, attempt: int | str = 0) -> str:
        """Make the directory of a task attempt; no two runs of a task may have the same `attempt`.

        Raises `VariantFileError` with reason ``"job-over"`` if the job was ended meanwhile: nothing is to be written
        any more.
        """
        self.check_running()
        filesystem, path = filesystem_of(self.directory)
        name = f"{task:05d}-{attempt}"
        with write_errors(self.dest):
            filesystem.create_dir(f"{path}/{name}", recursive=True)
        return f"{self.directory}/{name}"

    def file_name(self, task: int, index: int = 0, extension: str = "parquet", prefix: str = "part") -> str:
        """The name of a task's file: unique over jobs, tasks and a task's files; it sorts in the order of the input."""
        return f"{prefix}-{task:05d}-{index:04d}-{self.job}.{extension}"

    def commit(
        self, files: Iterable[StagedFile], *, marker: bool = True, replaced: Iterable[str] | None = None
    ) -> list[str]:
        """Make the files visible and the old ones invisible in one step, and write ``_SUCCESS`` if `marker` says so.

        `files`: what to make visible.
        `marker`: whether to write ``_SUCCESS``.
        `replaced`: paths below `dest` of the files that these stand for; by default those of the mode.
        Returns the files in the destination, in the order given. Raises `VariantFileError` with reason
        ``"commit-failed"`` if a file cannot be moved: the destination is as it was; ``"conflict"`` if another job
        replaces files there, too: the same; with ``"overwrite-failed"`` if an old file cannot be removed after that,
        which then counts no more.
        """
        moves = {file.name: file for file in files}
        self._switch(moves, (_SUCCESS,) if marker else (), None if replaced is None else tuple(replaced))
        return [f"{self.dest.rstrip('/')}/{name}" for name in moves]

    def commit_once(self, files: Iterable[StagedFile], stream: str, batch: int) -> None:
        """Commit a batch of a stream, whose batches come in order and may come again after a failure.

        The names of the files say which batch they are of, and a marker says that it is whole: what an attempt that
        died left without a marker is removed first, and a batch with a marker is not committed again.

        `stream`: a name for the stream that is part of file names and does not change when the stream starts again.
        """
        filesystem, root = self._place()
        marker = f"{_STREAMS}/{stream}/{batch}"
        self._settle()
        if filesystem.get_file_info(f"{root}/{marker}").type == pafs.FileType.File:
            self.abort()
            return
        # A repeated batch may come through another job: the batch, not the job, names the file.
        suffix = f"-{stream}-{batch}.parquet"
        self._switch({f"{file.name.rsplit('-', 1)[0]}{suffix}": file for file in files}, (_SUCCESS, marker), None)

    def abort(self) -> None:
        """Remove everything that was staged; what is not committed is taken back."""
        with suppress(OSError):
            if not self._settle():
                self._clear()
                if self.made:
                    _remove_folders(*self._place())

    def discard(self) -> None:
        """Remove everything that was staged, and the destination, unless it holds another's files."""
        self.abort()
        filesystem, root = self._place()
        with suppress(OSError):
            if not any(info.is_file for info in filesystem.get_file_info(pafs.FileSelector(root, recursive=True))):
                filesystem.delete_dir(root)

    def _switch(
        self, moves: Mapping[str, StagedFile], markers: tuple[str, ...], replaced: tuple[str, ...] | None
    ) -> None:
        filesystem, root = self._place()
        directory = f"{root}/{TEMPORARY}/{self.job}"
        try:
            filesystem.create_dir(directory, recursive=True)
            for name in moves:
                if _is_outside(filesystem, root, name):
                    raise VariantFileError(
                        f"nothing was written to {self.dest}: a symbolic link leads {name} out of it; write to where "
                        "it leads, or remove it",
                        reason="outside",
                        file=self.dest,
                    )
            self._prepare(Journal(tuple(moves), (), markers), replaced)
            for name, file in moves.items():
                target = f"{root}/{name}"
                filesystem.create_dir(posixpath.dirname(target), recursive=True)
                filesystem.move(filesystem_of(file.path)[1], target)
            filesystem.move(f"{directory}/{PREPARED}", f"{directory}/{COMMITTED}")
        except VariantFileError:
            self.abort()
            raise
        except OSError as error:
            self.abort()
            raise VariantFileError(
                f"{self.dest} could not be written ({error}); it is as it was before", reason="commit-failed"
            ) from error
        try:
            self._settle()
        except OSError as error:
            raise VariantFileError(
                f"the new files are in {self.dest} and count; an old one could not be removed ({error}): the next job "
                "that writes there tries again",
                reason="overwrite-failed",
            ) from error

    def _prepare(self, journal: Journal, replaced: tuple[str, ...] | None) -> None:
        """Say what is to be done, and make sure that nobody else is about to do something that does not go with it."""
        filesystem, root = self._place()
        directory = f"{root}/{TEMPORARY}/{self.job}"
        while True:
            old = _replaceable(filesystem, root) if self.overwrite and replaced is None else replaced or ()
            publish(filesystem, directory, replace(journal, remove=tuple(old)))
            if not old:
                return
            # Both of two jobs say what they do before they look: at least one of them sees the other.
            other = next((job for job, theirs in others(filesystem, root, directory) if theirs.remove), None)
            there = {info.path for info in files_that_count(filesystem, root)}
            if other is not None or (replaced is not None and not {f"{root}/{name}" for name in old} <= there):
                what = "replaced files there meanwhile" if other is None else f"({other}) replaces files there, too"
                raise VariantFileError(
                    f"nothing was written to {self.dest}: another job {what}; run this one again", reason="conflict"
                )
            if replaced is not None or set(_replaceable(filesystem, root)) == set(old):
                return

    def _settle(self) -> bool:
        """Carry through what this job committed, or take back what it did not; whether anything was committed."""
        filesystem, root = self._place()
        directory = f"{root}/{TEMPORARY}/{self.job}"
        own_journal = journal_of(filesystem, directory)
        if own_journal is None:
            return False
        journal, committed = own_journal
        if committed:
            journal.carry_through(filesystem, root)
            self._clear()
        else:
            journal.take_back(filesystem, root)
            with suppress(FileNotFoundError):
                filesystem.delete_file(f"{directory}/{PREPARED}")
        return committed

    def _clear(self) -> None:
        """Remove the job's directory, the journal first; and the one above it, unless it holds other jobs."""
        filesystem, path = filesystem_of(self.directory)
        for name in (COMMITTED, PREPARED, _OWNER):  # without the last, tasks begin nothing more
            if filesystem.get_file_info(f"{path}/{name}").type == pafs.FileType.File:
                filesystem.delete_file(f"{path}/{name}")
        for last in (False, False, True):
            try:
                if filesystem.get_file_info(path).type == pafs.FileType.Directory:
                    filesystem.delete_dir(path)
                break
            except OSError:  # a task that is being stopped has put its file into a directory that was listed before
                if last:
                    raise
        _remove_empty(filesystem, posixpath.dirname(path))


def sweep(dest: str) -> list[str]:
    """Put in order what jobs that died left in a directory: carry through their commits, or take them back.

    A job is dead if its process is gone; if that cannot be told, after 24 hours in which nothing of it changed. What
    was committed is carried through in any case. Returns the jobs.
    """
    filesystem, root = filesystem_of(dest)
    temporary = f"{root.rstrip('/')}/{TEMPORARY}"
    swept = []
    for info in filesystem.get_file_info(pafs.FileSelector(temporary, allow_not_found=True)):
        if info.type != pafs.FileType.Directory:
            continue
        journal = journal_of(filesystem, info.path)
        if (journal is not None and journal[1]) or _is_dead(filesystem, info.path):
            Staging(dest, job=info.base_name).abort()
            swept.append(info.base_name)
    _remove_empty(filesystem, temporary)
    return swept


def _remove_empty(filesystem: pafs.FileSystem, directory: str) -> None:
    with suppress(OSError):
        if isinstance(filesystem, pafs.LocalFileSystem):
            Path(directory).rmdir()  # in one step: another job may be about to write there
        elif not filesystem.get_file_info(pafs.FileSelector(directory)):
            filesystem.delete_dir(directory)


def _remove_folders(filesystem: pafs.FileSystem, root: str) -> None:
    """Remove a directory and those below it, the innermost first, where there is no file; jobs keep theirs."""
    infos = filesystem.get_file_info(pafs.FileSelector(root, recursive=True, allow_not_found=True))
    folders = [info.path for info in infos if info.type == pafs.FileType.Directory]
    for folder in (*sorted(folders, key=len, reverse=True), root):
        if TEMPORARY not in folder[len(root) :].split("/"):
            _remove_empty(filesystem, folder)


def _is_dead(filesystem: pafs.FileSystem, directory: str) -> bool:
    owner = None
    with suppress(OSError, ValueError, TypeError), filesystem.open_input_stream(f"{directory}/{_OWNER}") as stream:
        owner = JobOwner.from_token(stream.read().decode())
    return is_dead(owner, _changed(filesystem, directory))


def _changed(filesystem: pafs.FileSystem, directory: str) -> Iterator[float]:
    yield from (
        info.mtime.timestamp()
        for info in (
            *filesystem.get_file_info(pafs.FileSelector(directory, recursive=True, allow_not_found=True)),
            filesystem.get_file_info(directory),
        )
        if info.mtime is not None
    )


def replaces(mode: FileMode) -> bool:
    """Whether a file that is there is replaced, by the mode of who writes it.

    Raises `VariantFileError` with reason ``"bad-mode"`` for any other mode.

    >>> replaces("overwrite"), replaces("error")
    (True, False)
    """
    if mode not in get_args(FileMode):
        raise VariantFileError(f"mode is {mode!r}: one file is written with error or overwrite", reason="bad-mode")
    return mode == "overwrite"


def check_target(filesystem: pafs.FileSystem, path: str, mode: FileMode) -> None:
    """Check that one file may be written at a path.

    Raises `VariantFileError` as `replaces`; with reason ``"bad-path"`` if the path ends with no name, or a directory or
    device is there; with ``"exists"`` if a file is there that may not be replaced.
    """
    is_replaced, kind = replaces(mode), pafs.FileType.NotFound
    if not is_replaced or isinstance(filesystem, pafs.LocalFileSystem):  # elsewhere each look is a request
        kind = filesystem.get_file_info(path).type
    if not posixpath.basename(path) or kind in (pafs.FileType.Directory, pafs.FileType.Unknown):
        raise VariantFileError(f"{path!r} is no file's name, or another thing has it: name a file", reason="bad-path")
    if kind == pafs.FileType.File and not is_replaced:
        raise VariantFileError(
            f"{path} exists already: choose another name, or replace it: mode='overwrite'", reason="exists", file=path
        )


def check_mode(mode: str) -> None:
    """Check that there is such a mode; with reason ``"bad-mode"`` if there is not."""
    check_choice("mode", mode, get_args(Mode), VariantFileError, "bad-mode")


def open_staging(dest: str, mode: Mode = "error") -> Staging | None:
    """Look at a destination that is to be written into; what jobs that died left there is put in order first.

    `dest`: a directory, as a path or URI; it need not exist.
    `mode`: what to do if data is there: ``"error"``, ``"append"``, ``"overwrite"`` (when the job commits), or
      ``"ignore"``: write nothing.
    Returns none if the mode is ``"ignore"`` and data is there. Raises `VariantFileError` with reason ``"exists"``: the
    destination is a file, a Delta table, or holds data and the mode is ``"error"``.
    """
    check_mode(mode)
    filesystem, path = filesystem_of(dest)
    kind = filesystem.get_file_info(path).type
    if kind == pafs.FileType.File:
        raise VariantFileError(f"{dest} is a file: name a directory", reason="exists", file=dest)
    if kind == pafs.FileType.Directory:
        if has_delta_log(dest):
            raise VariantFileError(
                f"{dest} is a Delta table: write to it with format='delta'", reason="exists", file=dest
            )
        sweep(dest)
        names = [info.base_name for info in filesystem.get_file_info(pafs.FileSelector(path, allow_not_found=True))]
        if any(name != TEMPORARY for name in names):
            if mode == "error":
                raise VariantFileError(
                    f"{dest} already exists: choose another destination, or mode='append' or mode='overwrite'",
                    reason="exists",
                    file=dest,
                )
            if mode == "ignore":
                return None
    return Staging(dest, overwrite=mode == "overwrite", made=kind == pafs.FileType.NotFound)


def staging_beside(file: str) -> Staging:
    """One job's way to one file: a directory beside it, so that the last step is a rename; `Staging.discard` ends it.

    What jobs that died left there is removed first.
    """
    folder, _, name = file.rpartition("/")
    aside = f"{folder}/.{name}.parts" if folder or file.startswith("/") else f".{name}.parts"
    sweep(aside)
    return Staging(aside)


def _replaceable(filesystem: pafs.FileSystem, root: str) -> tuple[str, ...]:
    """The data files of a directory, and what belongs to them; anything else a user put there stays."""
    files = []
    for info in files_that_count(filesystem, root):
        below = info.path[len(root) :].strip("/")
        if not below.startswith(f"{TEMPORARY}/") and (below.endswith(_DATA) or below.startswith(f"{BAD_RECORDS}/")):
            files.append(below)
    return tuple(each for each in files if not _is_outside(filesystem, root, each))


def _is_outside(filesystem: pafs.FileSystem, root: str, name: str) -> bool:
    """Whether a symbolic link leads a file of a directory out of it; the file itself may be a link."""
    if not isinstance(filesystem, pafs.LocalFileSystem):
        return False
    return not Path(root, name).parent.resolve().is_relative_to(Path(root).resolve())
