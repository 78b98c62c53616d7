"""Writing a directory of files atomically: tasks stage files, and the driver moves them in.

Owns the modes of a destination, the staging directory, the commit, and cleaning up after dead jobs; all engines use it.
`commit_journal` decides which files are visible during a commit, the writers write the files, and `delta` handles
tables with a log.
"""

from __future__ import annotations

import os
import posixpath
import uuid
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import field, replace
from pathlib import Path
from typing import get_args

import pyarrow.fs as pafs

from parquet_variant.errors import VariantError, VariantFileError, check_choice
from parquet_variant.io import commit_journal, directories
from parquet_variant.io.commit_journal import COMMITTED, OWNER, PREPARED, SUCCESS, TEMPORARY, Journal, journal_of
from parquet_variant.io.filesystems import filesystem_of, info_of, path_text, read_errors, write_errors
from parquet_variant.io.temporaries import (
    JobOwner,
    is_dead,
    keep_mode,
    linked_file,
    sweep_temporaries,
    sync,
    temporary_beside,
)
from parquet_variant.support.options import FileMode, Mode
from parquet_variant.support.records import Record

# Spark, pyarrow and our own scan ignore names that begin with an underscore.
BAD_RECORDS = "_bad_records"
# The records of the source files that were loaded.
LOADS = "_loads"
# Prefix of files that contain rows of other files.
COMPACTED = "compacted"
_DISK = pafs.LocalFileSystem()


class StagedFile(Record):
    """A finished file that waits for the commit."""

    attempt: str  # The directory of the task attempt that wrote it.
    name: str  # Its path below that directory, and below the destination after the commit.

    @property
    def path(self) -> str:
        """The current path of the file."""
        return f"{self.attempt}/{self.name}"


class Staging(Record):
    """The staging area of one job in a directory; the same on the driver and, pickled, in every task.

    A task attempt writes to its own directory (`attempt`). `commit` moves only the files that it is given, so files of
    failed, repeated or speculative attempts never become visible. After an interruption at any point, every reader of
    this package sees either the old files or all new ones; the next job completes the commit or undoes it.
    """

    dest: str  # The directory, as a path or URI.
    overwrite: bool = False  # Whether the commit removes the existing data files.
    job: str = field(default_factory=lambda: uuid.uuid4().hex[:12])  # A unique name, which is part of all file names.
    begun: bool = False  # Whether the driver recorded the owner (`begin`): tasks then write only while the job runs.
    made: bool = False  # Whether the job created the directory: it is removed if it stays empty.

    @property
    def directory(self) -> str:
        """The staging directory of the job."""
        return f"{self.dest.rstrip('/')}/{TEMPORARY}/{self.job}"

    def _places(self) -> tuple[pafs.FileSystem, str, str]:
        """Return the filesystem, and the paths on it of the destination and of the staging directory."""
        filesystem, root = filesystem_of(self.dest)
        root = root.rstrip("/")
        return filesystem, root, f"{root}/{TEMPORARY}/{self.job}"

    def begin(self) -> Staging:
        """Record the owner of the job. The driver calls it before the first task."""
        filesystem, _, path = self._places()
        with write_errors(self.dest):
            filesystem.create_dir(path, recursive=True)
            with filesystem.open_output_stream(f"{path}/{OWNER}") as stream:
                stream.write(JobOwner.current().to_token().encode())
        return replace(self, begun=True)

    def check_running(self) -> None:
        """Raise the error ``"job-over"`` if the job was begun and has ended."""
        filesystem, _, path = self._places()
        if self.begun and filesystem.get_file_info(f"{path}/{OWNER}").type != pafs.FileType.File:
            raise VariantFileError(
                f"the job that writes {self.dest} has ended, and its staged files were removed", reason="job-over"
            )

    def attempt(self, task: int, attempt: int | str = 0) -> str:
        """Create the directory of a task attempt; two runs of a task must not have the same `attempt`.

        Raises `VariantFileError` with reason ``"job-over"`` if the job has ended, so that nothing may be written.
        """
        self.check_running()
        filesystem, _, path = self._places()
        name = f"{task:05d}-{attempt}"
        with write_errors(self.dest):
            filesystem.create_dir(f"{path}/{name}", recursive=True)
        return f"{self.directory}/{name}"

    def file_name(self, task: int, index: int = 0, extension: str = "parquet", prefix: str = "part") -> str:
        """Return the name of a file of a task: unique, and sorted in the order of the input."""
        return f"{prefix}-{task:05d}-{index:04d}-{self.job}.{extension}"

    def commit(
        self,
        files: Iterable[StagedFile],
        *,
        marker: bool = True,
        replaced: Iterable[str] | None = None,
        partition_types: Mapping[str, str] | None = None,
        loads: Collection[str] | None = None,
        batch: tuple[str, int] | None = None,
    ) -> list[str]:
        """Make the files visible and the old ones invisible in one step, and write ``_SUCCESS`` if `marker` is set.

        `files`: the staged files.
        `marker`: whether to write ``_SUCCESS``.
        `replaced`: paths below `dest` of the files to replace; by default those of the mode.
        `partition_types`: types of partition columns that the directory declares from now on, as DDL; the types that it
          declares already are kept unless its files are replaced.
        `loads`: names of the files in ``_loads`` that the job knows, if others there are a conflict.
        `batch`: name of a stream and number of its batch, which may be repeated after a failure. The names of the files
          contain both, files of an attempt that did not end are removed, and a batch is committed once.
        Returns the files in the destination, in the given order. Raises `VariantFileError` with reason
        ``"commit-failed"`` if a file cannot be moved, and ``"conflict"`` if another job replaces files in the
        directory, or records loads: the destination is unchanged then. Raises it with reason ``"unknown-outcome"`` if
        it cannot be read whether the switch happened; nothing is removed then. After the switch, failures such as old
        files that cannot be removed are warnings, because the rows are committed; the next job repeats the steps.
        """
        filesystem, root, _ = self._places()
        moves: dict[str, StagedFile] = {file.name: file for file in files}
        markers: tuple[str, ...] = (SUCCESS,) if marker else ()
        if batch is not None:
            stream, number = batch
            once = f"_streams/{stream}/{number}"
            with write_errors(self.dest):
                self._settle()
            if filesystem.get_file_info(f"{root}/{once}").type == pafs.FileType.File:
                self.abort()
                return []
            markers = (*markers, once)
            # Another job may repeat a batch, so the name contains the batch instead of the job.
            moves = {f"{name.rsplit('-', 1)[0]}-{stream}-{number}.parquet": file for name, file in moves.items()}
        types = dict(partition_types or {})
        if types and not self.overwrite:
            types |= directories.declared_partitions(filesystem, root)[0]
        journal = Journal(tuple(moves), (), markers, types)
        self._switch(moves, journal, None if replaced is None else tuple(replaced), loads)
        return [f"{self.dest.rstrip('/')}/{name}" for name in moves]

    def abort(self) -> None:
        """Remove all staged files, and undo an uncommitted switch."""
        with suppress(OSError):
            if self._settle():
                return
            self._clear()
            if self.made:  # Remove the destination and its subdirectories, the innermost first, if they have no files.
                filesystem, root, _ = self._places()
                infos = filesystem.get_file_info(pafs.FileSelector(root, recursive=True, allow_not_found=True))
                folders = [info.path for info in infos if info.type == pafs.FileType.Directory]
                for folder in (*sorted(folders, key=len, reverse=True), root):
                    if TEMPORARY not in folder[len(root) :].split("/"):
                        _remove_empty(filesystem, folder)

    def _switch(
        self,
        moves: Mapping[str, StagedFile],
        journal: Journal,
        replaced: tuple[str, ...] | None,
        loads: Collection[str] | None,
    ) -> None:
        filesystem, root, directory = self._places()
        is_switching = False
        try:
            filesystem.create_dir(directory, recursive=True)
            for name in moves:
                if _is_outside(filesystem, root, name):
                    problem = (
                        f"nothing was written to {self.dest}: a symbolic link leads {name} out of the directory; "
                        "write to the target of the link, or remove the link"
                    )
                    raise VariantFileError(problem, reason="outside", file=self.dest)
            self._prepare(journal, replaced, loads)
            for name, file in moves.items():
                target = f"{root}/{name}"
                filesystem.create_dir(posixpath.dirname(target), recursive=True)
                filesystem.move(filesystem_of(file.path)[1], target)
            is_switching = True
            filesystem.move(f"{directory}/{PREPARED}", f"{directory}/{COMMITTED}")
        except VariantFileError:
            self.abort()
            raise
        except OSError as error:
            state = None
            with suppress(OSError):
                state = journal_of(filesystem, directory) if is_switching else (journal, False)
            if state is None:
                problem = (
                    f"it is unknown whether the new files are committed to {self.dest} ({error}): read the directory "
                    "before you write the rows again"
                )
                raise VariantFileError(problem, reason="unknown-outcome", file=self.dest) from error
            if not state[1]:
                self.abort()
                raise VariantFileError(
                    f"cannot write {self.dest} ({error}); the directory is unchanged", reason="commit-failed"
                ) from error
        try:
            self._settle()
        except OSError as error:
            warnings.warn(
                f"the new files are committed to {self.dest}, but the commit could not be tidied up ({error}): until "
                "the next job that writes there does so, other engines may also read the old files",
                UserWarning,
                stacklevel=2,
            )

    def _prepare(self, journal: Journal, replaced: tuple[str, ...] | None, loads: Collection[str] | None) -> None:
        """Write the plan, and check that no other job has a conflicting plan."""
        filesystem, root, directory = self._places()
        while True:
            old_files = _replaceable(filesystem, root) if self.overwrite and replaced is None else replaced or ()
            replace(journal, remove=tuple(old_files)).publish(filesystem, directory)
            if not old_files and loads is None:
                return
            # Two jobs both publish their plan before they check, so at least one of them sees the other.
            other_journals = commit_journal.journals_in(filesystem, root)
            other_journals.pop(directory, None)
            other_job = next((job for job, plan in other_journals.items() if old_files and plan.remove), None)
            visible = {info.path for info in commit_journal.visible_files(filesystem, root)}
            folder, conflict = f"{root}/{LOADS}/", ""
            recorded = {path.removeprefix(folder) for path in visible if path.startswith(folder)}
            if other_job is not None:
                conflict = f"({other_job}) replaces files there, too"
            elif loads is not None and (
                recorded - set(loads)
                or any(name.startswith(f"{LOADS}/") for plan in other_journals.values() for name in plan.add)
            ):
                conflict = "loaded files there meanwhile"
            elif replaced is not None and not {f"{root}/{name}" for name in old_files} <= visible:
                conflict = "replaced files there meanwhile"
            if conflict:
                raise VariantFileError(
                    f"nothing was written to {self.dest}: another job {conflict}; run this one again", reason="conflict"
                )
            if replaced is not None or not self.overwrite or set(_replaceable(filesystem, root)) == set(old_files):
                return

    def _settle(self) -> bool:
        """Complete what this job committed, or undo what it did not; return whether it had committed."""
        filesystem, root, directory = self._places()
        journal_state = journal_of(filesystem, directory)
        if journal_state is None:
            return False
        journal, committed = journal_state
        if committed:
            journal.complete(filesystem, root)
            self._clear()
        else:
            journal.undo(filesystem, root)
            with suppress(FileNotFoundError):
                filesystem.delete_file(f"{directory}/{PREPARED}")
        return committed

    def _clear(self) -> None:
        """Remove the directory of the job, the journal first, and the directory above unless it has other jobs."""
        filesystem, _, path = self._places()
        for name in (COMMITTED, PREPARED, OWNER):  # without the owner file, tasks start nothing more
            if filesystem.get_file_info(f"{path}/{name}").type == pafs.FileType.File:
                filesystem.delete_file(f"{path}/{name}")
        for is_last in (False, False, True):
            try:
                if filesystem.get_file_info(path).type == pafs.FileType.Directory:
                    filesystem.delete_dir(path)
                break
            except OSError:  # a task that is being stopped wrote a file after the directory was listed
                if is_last:
                    raise
        _remove_empty(filesystem, posixpath.dirname(path))


def sweep(dest: str, *, only_journals: bool = False) -> list[str]:
    """Clean up after dead jobs in a directory: complete their commits, or undo them. Return the jobs.

    A job is dead if its process is gone, or, if that is unknown, if nothing of it changed for 24 hours. Committed plans
    are completed in any case. With `only_journals`, jobs that had not begun to commit are kept.
    """
    filesystem, root = filesystem_of(dest)
    temporary = f"{root.rstrip('/')}/{TEMPORARY}"
    swept = []
    with write_errors(dest):
        for info in filesystem.get_file_info(pafs.FileSelector(temporary, allow_not_found=True)):
            if info.type != pafs.FileType.Directory:
                continue
            journal = journal_of(filesystem, info.path)
            if journal is None and only_journals:
                continue
            if journal is None or not journal[1]:
                entries = filesystem.get_file_info(pafs.FileSelector(info.path, recursive=True, allow_not_found=True))
                changed = [file.mtime.timestamp() for file in (*entries, info) if file.mtime is not None]
                if not is_dead(commit_journal.job_owner(filesystem, info.path), changed):
                    continue
            Staging(dest, job=info.base_name).abort()
            swept.append(info.base_name)
        _remove_empty(filesystem, temporary)
    return swept


def recover(paths: Iterable[str | os.PathLike[str]], filesystem: pafs.FileSystem | None = None) -> None:
    """Complete or undo interrupted commits to the directories above some files, and remove temporaries of dead writers.

    Operations that write single files call it first: a commit that is completed later would remove the files that it
    replaces by name. On an object store only the directories of a URI and of its partitions are checked.
    """
    names = [path_text(path) for path in paths]
    if filesystem is None and any("://" in name and not name.startswith("file:") for name in names):
        # Without the query of a URI, its directory would be on another endpoint.
        folders = {commit_journal.committed_directory(posixpath.dirname(name)) for name in names if "?" not in name}
    elif filesystem is None or isinstance(filesystem, pafs.LocalFileSystem):
        disk = pafs.LocalFileSystem()
        places = [linked_file(disk, filesystem_of(name, filesystem)[1]) for name in names]
        above = {parent for place in places for parent in Path(place).absolute().parents}
        folders = {str(parent) for parent in above if os.path.isdir(parent / TEMPORARY)}  # noqa: PTH112
        sweep_temporaries(disk, places)
    else:
        folders = set()
    for directory in folders:
        with suppress(VariantFileError, OSError):
            sweep(directory, only_journals=True)


@contextmanager
def atomic_file(target: str | os.PathLike[str], filesystem: pafs.FileSystem = _DISK) -> Iterator[Path]:
    """Yield a temporary path next to a file, which it replaces if the block succeeds, and is removed if not.

    Permissions of the file and a symbolic link to it are kept. Interrupted commits are completed first (`recover`).
    Errors of the file system inside the block are raised as `VariantFileError`. A device or pipe, such as
    ``/dev/stdout``, is written to and not replaced: the block gets its own path.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_file(f"{folder}/a.txt") as staged:
    ...         _ = staged.write_text("complete")
    ...     Path(f"{folder}/a.txt").read_text(), len(os.listdir(folder))
    ('complete', 1)
    """
    path, is_local = linked_file(filesystem, os.fspath(target)), isinstance(filesystem, pafs.LocalFileSystem)
    recover([path], filesystem)
    staged = temporary_beside(path)
    with write_errors(path):
        if is_local and info_of(filesystem, os.fspath(target)).type == pafs.FileType.Unknown:
            yield Path(target)
            return
        try:
            yield Path(staged)
            if is_local:
                sync(Path(staged))
            keep_mode(filesystem, staged, path)
            filesystem.move(staged, path)
        finally:
            with suppress(OSError):  # it was moved
                filesystem.delete_file(staged)


def _remove_empty(filesystem: pafs.FileSystem, directory: str) -> None:
    with suppress(OSError):
        if isinstance(filesystem, pafs.LocalFileSystem):
            Path(directory).rmdir()  # in one step, because another job may be about to write there
        elif not filesystem.get_file_info(pafs.FileSelector(directory)):
            filesystem.delete_dir(directory)


def replaces(mode: FileMode) -> bool:
    """Return whether a mode replaces a file. Raises `VariantFileError` (``bad-mode``) for an unknown mode."""
    if not isinstance(mode, str) or mode not in get_args(FileMode):
        problem = (
            f"mode is {mode!r}: for a single file use 'error' or 'overwrite', for a directory pv.open(path).append"
        )
        raise VariantFileError(problem, reason="bad-mode")
    return mode == "overwrite"


def check_target(filesystem: pafs.FileSystem, path: str, mode: FileMode) -> None:
    """Check that a file may be written at a path.

    Raises `VariantFileError` as `replaces`; with reason ``"bad-path"`` if the path has no file name, or is a directory
    or device; with ``"exists"`` if a file exists that may not be replaced.
    """
    is_replaced, kind = replaces(mode), pafs.FileType.NotFound
    if not is_replaced or isinstance(filesystem, pafs.LocalFileSystem):  # on object stores each check is a request
        kind = info_of(filesystem, path).type
    if not posixpath.basename(path) or kind in (pafs.FileType.Directory, pafs.FileType.Unknown):
        raise VariantFileError(
            f"{path!r} is a directory or not a file name: pass the path of a file, or open the directory as a table",
            reason="bad-path",
        )
    if kind == pafs.FileType.File and not is_replaced:
        raise VariantFileError(
            f"{path} already exists: choose another name, or use mode='overwrite'", reason="exists", file=path
        )
    if kind == pafs.FileType.File:
        directories.refuse_inside_table(path)


def check_mode(mode: str) -> None:
    """Raise `VariantFileError` with reason ``"bad-mode"`` for an unknown mode."""
    check_choice("mode", mode, get_args(Mode), VariantFileError, "bad-mode")


def is_kept(what: str, mode: str, dest: str, error: type[VariantError] = VariantFileError) -> bool:
    """Return whether a mode keeps a destination that exists and holds data; raise ``"exists"`` for mode ``"error"``."""
    if mode == "error":
        problem = f"{what} already exists: use mode='append' or mode='overwrite', or choose another destination"
        raise error(problem, reason="exists", file=dest)
    return mode == "ignore"


def open_staging(dest: str, mode: Mode = "error") -> Staging | None:
    """Check a destination, clean up after dead jobs in it, and return a staging area for it.

    `dest`: a directory, as a path or URI; it need not exist.
    `mode`: the handling of existing data: ``"error"``, ``"append"``, ``"overwrite"`` (at the commit), or ``"ignore"``,
      which writes nothing.
    Returns None if the mode is ``"ignore"`` and data exists. Raises `VariantFileError` with reason ``"exists"`` if the
    destination is a file or a Delta table, or has data and the mode is ``"error"``.
    """
    check_mode(mode)
    filesystem, path = filesystem_of(dest)
    kind = info_of(filesystem, path).type
    if kind == pafs.FileType.File:
        raise VariantFileError(f"{dest} is a file: pass a directory", reason="exists", file=dest)
    if kind == pafs.FileType.Directory:
        if (format := directories.format_of_directory(dest)) is not None:
            problem = f"{dest} is {directories.A_TABLE[format]}: use format={format!r}"
            raise VariantFileError(problem, reason="exists", file=dest)
        sweep(dest)
        with read_errors(path):
            names = [info.base_name for info in filesystem.get_file_info(pafs.FileSelector(path, allow_not_found=True))]
        if any(name != TEMPORARY for name in names) and is_kept(dest, mode, dest):
            return None
    return Staging(dest, overwrite=mode == "overwrite", made=kind == pafs.FileType.NotFound)


@contextmanager
def staged_job(dest: str, mode: Mode) -> Iterator[Staging]:
    """Provide the staging area of a job that has begun; if the block fails, what it staged is removed."""
    opened = open_staging(dest, mode)
    assert opened is not None
    try:
        yield opened.begin()
    except BaseException:
        opened.abort()
        raise


def staging_beside(file: str) -> Staging:
    """Return the staging area for a single file: a directory next to it, so that the last step is a rename.

    `Staging.abort` removes it. Files of dead jobs are removed, and interrupted commits completed, first.
    """
    recover([file])
    folder, slash, name = file.rpartition("/")
    directory = f"{folder}{slash}.{name}.parts"
    sweep(directory)
    return Staging(directory, made=True)


def _replaceable(filesystem: pafs.FileSystem, root: str) -> tuple[str, ...]:
    """Return the data files of a directory and their companions; other files, and tables below it, are kept."""
    names = [info.path[len(root) :].strip("/") for info in commit_journal.visible_files(filesystem, root)]
    data = directories.data_file_names(names)
    # The checksums that Hadoop writes next to a file.
    sums = {posixpath.join(folder, f".{name}.crc") for folder, name in map(posixpath.split, data)}
    companions = (name for name in names if name in sums or name.startswith((f"{BAD_RECORDS}/", f"{LOADS}/")))
    replaced = [*data, *companions, *({directories.PARTITION_TYPES} & set(names))]
    return tuple(name for name in replaced if not _is_outside(filesystem, root, name))


def _is_outside(filesystem: pafs.FileSystem, root: str, name: str) -> bool:
    """Return whether a symbolic link leads the directory of a file out of the root; the file may be a link."""
    if not isinstance(filesystem, pafs.LocalFileSystem):
        return False
    folder = Path(os.path.realpath(Path(root, name).parent))
    return not folder.is_relative_to(os.path.realpath(root))
