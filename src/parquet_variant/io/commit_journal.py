"""The visible files of a directory: the journal of a commit, which decides while the commit is in progress.

A commit has several steps (move the new files in, remove the old ones), and a process may end between any two of them.
It first writes its plan to ``_temporary/<job>/prepared.json``; when all new files are in place, it renames the plan to
``committed.json`` in one step. Before that the new files are invisible, after that the old ones are. Later jobs
complete committed plans and undo others.

Owns the journal, and listing a directory with it. `staging` stages files, handles modes, and decides whose job is dead.
"""

from __future__ import annotations

import fnmatch
import json
import os
import posixpath
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, field
from typing import TypeVar

import pyarrow.fs as pafs

from parquet_variant.errors import TableError, VariantFileError
from parquet_variant.io.directories import PARTITION_TYPES, is_hidden
from parquet_variant.io.filesystems import path_text, read_errors
from parquet_variant.io.temporaries import JobOwner
from parquet_variant.support.records import Record

TEMPORARY = "_temporary"
PREPARED = "prepared.json"
COMMITTED = "committed.json"
SUCCESS = "_SUCCESS"
OWNER = "owner.json"
# Maximum numbers of listings of a directory that changes while it is listed, and of reading its files.
_LISTINGS, _READS = 20, 6
_Result = TypeVar("_Result")


class Journal(Record):
    """The changes of a commit to a directory; all paths are relative to its root."""

    add: tuple[str, ...] = ()  # Files to move in.
    remove: tuple[str, ...] = ()  # Files to remove.
    markers: tuple[str, ...] = ()  # Empty files that mark the end of the commit.
    partition_types: Mapping[str, str] = field(default_factory=dict)  # Types that the directory declares, as DDL.

    @classmethod
    def from_json(cls, text: str) -> Journal:
        """Parse a journal, and check that its paths are below its directory.

        Raises `VariantFileError` with reason ``"bad-journal"``.

        >>> Journal.from_json('{"add": ["new.parquet"]}').add
        ('new.parquet',)
        """
        why = ""
        try:
            parts = json.loads(text)
            types = {str(name): str(kind) for name, kind in parts.pop("partition_types", {}).items()}
            journal = cls(**{name: tuple(paths) for name, paths in parts.items()}, partition_types=types)
            for path in (*journal.add, *journal.remove, *journal.markers):
                if not isinstance(path, str) or not path or path.startswith("/") or ".." in path.split("/"):
                    why = f"the path {path!r} is outside of its directory"
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            why = f"it is not valid JSON ({error})"
        if why:
            raise VariantFileError(
                f"invalid commit journal in {TEMPORARY}/: {why}; remove that directory", reason="bad-journal"
            )
        return journal

    def publish(self, filesystem: pafs.FileSystem, directory: str) -> None:
        """Write ``prepared.json`` to the directory of a job in one step."""
        with filesystem.open_output_stream(f"{directory}/draft.json") as stream:
            stream.write(json.dumps(asdict(self)).encode())
        filesystem.move(f"{directory}/draft.json", f"{directory}/{PREPARED}")

    def complete(self, filesystem: pafs.FileSystem, root: str) -> None:
        """Perform the steps after the switch. Repeating them has no effect.

        A step that fails does not prevent the others; its `OSError` is raised at the end.
        """
        failure: OSError | None = None
        for name in self.remove:
            try:
                filesystem.delete_file(f"{root}/{name}")
            except FileNotFoundError:
                continue
            except OSError as error:
                failure = error
        contents = {PARTITION_TYPES: json.dumps(dict(self.partition_types)).encode()} if self.partition_types else {}
        for name, content in (contents | dict.fromkeys(self.markers, b"")).items():
            try:
                filesystem.create_dir(posixpath.dirname(f"{root}/{name}"), recursive=True)
                with filesystem.open_output_stream(f"{root}/{name}") as stream:
                    stream.write(content)
            except OSError as error:
                if content or filesystem.get_file_info(f"{root}/{name}").type != pafs.FileType.File:
                    failure = error
        if failure is not None:
            raise failure

    def undo(self, filesystem: pafs.FileSystem, root: str) -> None:
        """Remove the new files that are in place. Repeating this has no effect."""
        for name in self.add:
            if filesystem.get_file_info(f"{root}/{name}").type == pafs.FileType.File:
                filesystem.delete_file(f"{root}/{name}")


def journal_of(filesystem: pafs.FileSystem, directory: str) -> tuple[Journal, bool] | None:
    """Return the journal of a job and whether it is committed; None before the commit began and after it ended."""
    for name, committed in ((COMMITTED, True), (PREPARED, False), (COMMITTED, True)):
        with suppress(FileNotFoundError), filesystem.open_input_stream(f"{directory}/{name}") as stream:
            try:
                return Journal.from_json(stream.read().decode(errors="replace")), committed
            except VariantFileError as error:
                raise error.at(file=f"{directory}/{name}") from None
    return None


def visible_files(filesystem: pafs.FileSystem, root: str) -> list[pafs.FileInfo]:
    """Return the files of `visible_entries`."""
    return [info for info in visible_entries(filesystem, root) if info.type == pafs.FileType.File]


def visible_entries(filesystem: pafs.FileSystem, root: str) -> list[pafs.FileInfo]:
    """Return the files and directories below a directory, without those that commits have hidden.

    A commit hides files that it has not put in place completely, and files that it has replaced.

    `filesystem` and `root`: the directory, or a partition directory below it. Journals of directories below apply, too.
    The listing is consistent; if other jobs commit all the time, it is the last one read.
    """
    root = root.rstrip("/")
    above = committed_directory(root)
    with read_errors(root or "/"):
        for _ in range(_LISTINGS):
            before = _stamp(filesystem, above)
            infos = everything_below(filesystem, root)
            hidden_by = hidden_files(filesystem, [*before[1], *(info.path for info in infos)])
            visible = [info for info in infos if info.path not in hidden_by]
            if _stamp(filesystem, above) == before:
                break
    for job in {hidden_by[info.path] for info in infos if info.path in hidden_by}:
        owner = job_owner(filesystem, job)
        if owner is not None and owner.is_gone():
            warnings.warn(
                f"a commit to {posixpath.dirname(posixpath.dirname(job))} was interrupted: its old and new files are "
                "both there, and engines that do not know the journal read rows twice; the next write to the "
                "directory, or optimize, completes or undoes the commit",
                UserWarning,
                stacklevel=2,
            )
    return visible


def of_current_files(read: Callable[[], _Result]) -> _Result:
    """Return the result of `read`, called again if a commit to a directory, or a vacuum, removed files meanwhile."""
    for attempt in range(_READS - 1):
        try:
            return read()
        except VariantFileError as error:
            if error.reason not in ("not-found", "files-changed", "conflict"):
                raise
        except TableError as error:
            if error.reason != "missing-file" or attempt > 0:  # a version is removed once
                raise
    return read()


def hidden_files(filesystem: pafs.FileSystem, paths: Iterable[str]) -> dict[str, str]:
    """Return the files that commits hide, each with the directory of the job; `paths`: the journals, among others."""
    hidden_by: dict[str, str] = {}
    for job in sorted({posixpath.dirname(path) for path in paths if _is_journal(path)}):
        if (state := journal_of(filesystem, job)) is not None:
            base = posixpath.dirname(posixpath.dirname(job))
            hidden_by |= {posixpath.join(base, name): job for name in (state[0].remove if state[1] else state[0].add)}
    return hidden_by


def job_owner(filesystem: pafs.FileSystem, job: str) -> JobOwner | None:
    """Return the process of a job; None if it is unknown."""
    with suppress(OSError, ValueError, TypeError), filesystem.open_input_stream(f"{job}/{OWNER}") as stream:
        return JobOwner.from_token(stream.read().decode())
    return None


def everything_below(filesystem: pafs.FileSystem, root: str) -> list[pafs.FileInfo]:
    """Return all files and directories below a directory; nothing if it does not exist.

    On a disk, each directory is listed once, by its own path if that is below the root: symbolic links may lead back,
    or twice to the same directory.
    """
    if not isinstance(filesystem, pafs.LocalFileSystem):
        return list(filesystem.get_file_info(pafs.FileSelector(root, recursive=True, allow_not_found=True)))
    seen: set[str] = set()
    paths: list[str] = []
    folders, links = deque([root or "/"]), deque[str]()
    while folders or links:
        folder = (folders or links).popleft()
        place = os.path.realpath(folder)
        if place in seen:
            continue
        seen.add(place)
        with read_errors(folder), suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                paths.append(posixpath.join(folder, entry.name))
                if entry.is_dir():
                    (links if entry.is_symlink() else folders).append(paths[-1])
    try:
        return list(filesystem.get_file_info(paths))
    except UnicodeEncodeError:
        for path in paths:
            path_text(path)
        raise


def fixed_part(pattern: str) -> str:
    """Return the directory above the first part of a path with glob characters."""
    parts = pattern.split("/")
    first = next(index for index, part in enumerate(parts) if any(character in part for character in "*?["))
    return "/".join(parts[:first]) or ("/" if pattern.startswith("/") else ".")


def glob_match(names: Sequence[str], patterns: Sequence[str]) -> bool:
    """Return whether the parts of a path match those of a glob, in which ``**`` is any number of parts.

    >>> glob_match(["logs", "2026", "a.json"], ["logs", "**", "*.json"]), glob_match(["logs", "a"], ["*"])
    (True, False)
    """
    if not patterns:
        return not names
    if patterns[0] == "**":
        return any(glob_match(names[skip:], patterns[1:]) for skip in range(len(names) + 1))
    if not names or not fnmatch.fnmatchcase(names[0], patterns[0]):
        return False
    return glob_match(names[1:], patterns[1:])


def matching_entries(filesystem: pafs.FileSystem, pattern: str) -> list[pafs.FileInfo]:
    """Return the visible files and directories that match a glob, by path, without those that are hidden by name."""
    base, parts = fixed_part(pattern), posixpath.normpath(pattern).split("/")
    infos = sorted(visible_entries(filesystem, base), key=lambda info: str(info.path))
    infos = [info for info in infos if glob_match(posixpath.normpath(info.path).split("/"), parts)]
    return [info for info in infos if not is_hidden(posixpath.relpath(info.path, base))]


def committed_directory(root: str) -> str:
    """Return the directory that commits write to, for a partition directory."""
    while "=" in posixpath.basename(root) and posixpath.dirname(root) not in ("", root):
        root = posixpath.dirname(root)
    return root


def _is_journal(path: str) -> bool:
    parts = path.split("/")
    return len(parts) > 2 and parts[-3] == TEMPORARY and parts[-1] in (PREPARED, COMMITTED)


def _stamp(filesystem: pafs.FileSystem, root: str) -> tuple[tuple[int | None, ...], frozenset[str]]:
    """Return modification times and the paths of journals: they change when a commit begins or ends."""
    temporary = f"{root}/{TEMPORARY}"
    names, is_local = [f"{root}/{SUCCESS}"], isinstance(filesystem, pafs.LocalFileSystem)
    if is_local:  # object stores have no directory times
        names += [root or "/", temporary]
    infos = filesystem.get_file_info(names)
    journals: frozenset[str] = frozenset()
    if not is_local or infos[-1].type == pafs.FileType.Directory:
        selector = pafs.FileSelector(temporary, recursive=True, allow_not_found=True)
        journals = frozenset(info.path for info in filesystem.get_file_info(selector) if _is_journal(info.path))
    return tuple(info.mtime_ns for info in infos), journals


def journals_in(filesystem: pafs.FileSystem, root: str) -> dict[str, Journal]:
    """Return the journals of the jobs that are committing to a directory, by the directory of the job."""
    states = {job: journal_of(filesystem, job) for job in map(posixpath.dirname, sorted(_stamp(filesystem, root)[1]))}
    return {job: state[0] for job, state in states.items() if state is not None}
