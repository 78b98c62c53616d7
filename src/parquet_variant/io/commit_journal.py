"""Which files of a directory count: the journal that a commit leaves beside its staged files until it is through.

A commit is several steps (move the new files in, remove the old ones), and a process may end between any two of them.
So it says first what it is about to do, in ``_temporary/<job>/prepared.json``; once all new files are in their places
it renames that to ``committed.json``, in one step. Until then the new files do not count, from then on the old ones do
not. Whoever comes later carries through what is committed and takes back what is not.

Owns the journal, and listing a directory by it. Leaves staging, modes, and whose job is dead to `staging`.
"""

from __future__ import annotations

import fnmatch
import json
import os
import posixpath
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass

import pyarrow.fs as pafs

from parquet_variant.errors import VariantFileError
from parquet_variant.io.filesystems import refuse_no_path

TEMPORARY = "_temporary"
PREPARED = "prepared.json"
COMMITTED = "committed.json"
_SUCCESS = "_SUCCESS"
# A directory that changes while it is listed is listed again.
_LISTINGS = 20


@dataclass(frozen=True, slots=True)
class Journal:
    """What a commit does to a directory; every path is below its root."""

    add: tuple[str, ...] = ()  # Files that are moved in.
    remove: tuple[str, ...] = ()  # Files that are no longer wanted.
    markers: tuple[str, ...] = ()  # Empty files that say that it is done.

    def to_json(self) -> str:
        """As it is written."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Journal:
        """Read it; whoever wrote it, it names nothing outside of its directory.

        Raises `VariantFileError` with reason ``"bad-journal"``.

        >>> journal = Journal(("new.parquet",), ("old.parquet",))
        >>> Journal.from_json(journal.to_json()) == journal
        True
        """
        try:
            journal = cls(**{name: tuple(paths) for name, paths in json.loads(text).items()})
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise _bad_journal(f"it cannot be read ({error})") from None
        for path in (*journal.add, *journal.remove, *journal.markers):
            if not isinstance(path, str) or not path or path.startswith("/") or ".." in path.split("/"):
                raise _bad_journal(f"it names {path!r}, which is not below its directory")
        return journal

    def carry_through(self, filesystem: pafs.FileSystem, root: str) -> None:
        """Do what is left to do after the switch; it may be done twice."""
        for name in self.remove:
            with suppress(FileNotFoundError):
                filesystem.delete_file(f"{root}/{name}")
        for name in self.markers:
            filesystem.create_dir(posixpath.dirname(f"{root}/{name}"), recursive=True)
            with filesystem.open_output_stream(f"{root}/{name}"):
                pass

    def take_back(self, filesystem: pafs.FileSystem, root: str) -> None:
        """Remove the new files that are in their places; it may be done twice."""
        for name in self.add:
            if filesystem.get_file_info(f"{root}/{name}").type == pafs.FileType.File:
                filesystem.delete_file(f"{root}/{name}")


def _bad_journal(why: str) -> VariantFileError:
    return VariantFileError(
        f"a commit left a journal in {TEMPORARY}/ that this package did not write: {why}; remove that directory",
        reason="bad-journal",
    )


def publish(filesystem: pafs.FileSystem, directory: str, journal: Journal) -> None:
    """Write ``prepared.json`` of a job's directory in one step."""
    draft = f"{directory}/draft.json"
    with filesystem.open_output_stream(draft) as stream:
        stream.write(journal.to_json().encode())
    filesystem.move(draft, f"{directory}/{PREPARED}")


def journal_of(filesystem: pafs.FileSystem, directory: str) -> tuple[Journal, bool] | None:
    """The journal of a job's directory and whether it is committed; None if its commit has not begun, or is through."""
    for name, committed in ((COMMITTED, True), (PREPARED, False), (COMMITTED, True)):
        with suppress(FileNotFoundError), filesystem.open_input_stream(f"{directory}/{name}") as stream:
            try:
                return Journal.from_json(stream.read().decode(errors="replace")), committed
            except VariantFileError as error:
                raise error.at(file=f"{directory}/{name}") from None
    return None


def files_that_count(filesystem: pafs.FileSystem, root: str) -> list[pafs.FileInfo]:
    """The files of `entries_that_count`."""
    return [info for info in entries_that_count(filesystem, root) if info.type == pafs.FileType.File]


def entries_that_count(filesystem: pafs.FileSystem, root: str) -> list[pafs.FileInfo]:
    """All files and directories below one, but files that a commit has not put there yet, or has removed already.

    `filesystem` and `root`: the directory, or one of partitions below it. Journals of directories below it hold, too.
    Returns as of one moment; of a directory into which others commit all the time, as it was listed last.
    """
    root = root.rstrip("/")
    above = _above(root)
    for _ in range(_LISTINGS):
        before = _stamp(filesystem, above)
        infos = everything_below(filesystem, root)
        jobs = {posixpath.dirname(info.path) for info in infos if _is_journal(info.path)} | before.jobs
        hidden = {path for job in jobs for path in _hidden(filesystem, job)}
        visible = [info for info in infos if info.path not in hidden]
        if _stamp(filesystem, above) == before:
            break
    return visible


def everything_below(filesystem: pafs.FileSystem, root: str) -> list[pafs.FileInfo]:
    """All files and directories below a directory; nothing, if there is none.

    On a disk each directory once, by the way with the fewest steps: symbolic links may lead back, or twice to one.
    """
    if not isinstance(filesystem, pafs.LocalFileSystem):
        return list(filesystem.get_file_info(pafs.FileSelector(root, recursive=True, allow_not_found=True)))
    seen: set[str] = set()
    paths: list[str] = []
    folders = deque([root or "/"])
    while folders:
        folder = folders.popleft()
        place = os.path.realpath(folder)
        if place in seen:
            continue
        seen.add(place)
        with suppress(FileNotFoundError), os.scandir(folder) as entries:
            for entry in entries:
                paths.append(posixpath.join(folder, entry.name))
                if entry.is_dir():
                    folders.append(paths[-1])
    try:
        return list(filesystem.get_file_info(paths))
    except UnicodeEncodeError:
        for path in paths:
            refuse_no_path(path)
        raise


def fixed_part(pattern: str) -> str:
    """The directory above the first part of a glob that is one."""
    parts = pattern.split("/")
    first = next(index for index, part in enumerate(parts) if any(character in part for character in "*?["))
    return "/".join(parts[:first]) or ("/" if pattern.startswith("/") else ".")


def glob_match(names: Sequence[str], patterns: Sequence[str]) -> bool:
    """Whether the parts of a path are those of a glob, in which ``**`` is any number of them.

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


def _hidden(filesystem: pafs.FileSystem, job: str) -> list[str]:
    own_journal = journal_of(filesystem, job)
    if own_journal is None:
        return []
    journal, committed = own_journal
    base = posixpath.dirname(posixpath.dirname(job))
    return [f"{base}/{name}" for name in (journal.remove if committed else journal.add)]


def _above(root: str) -> str:
    """The directory that a commit is into, where the one that is read is of a partition."""
    while "=" in posixpath.basename(root) and posixpath.dirname(root) not in ("", root):
        root = posixpath.dirname(root)
    return root


def _is_journal(path: str) -> bool:
    parts = path.split("/")
    return len(parts) > 2 and parts[-3] == TEMPORARY and parts[-1] in (PREPARED, COMMITTED)


@dataclass(frozen=True, slots=True)
class _Stamp:
    """What differs after a commit into a directory began or ended; and the jobs whose commit is under way."""

    changed: tuple[int | None, ...]
    journals: frozenset[str]

    @property
    def jobs(self) -> set[str]:
        return {posixpath.dirname(path) for path in self.journals}


def _stamp(filesystem: pafs.FileSystem, root: str) -> _Stamp:
    temporary = f"{root}/{TEMPORARY}"
    names, is_local = [f"{root}/{_SUCCESS}"], isinstance(filesystem, pafs.LocalFileSystem)
    if is_local:  # Elsewhere directories have no times, and to look for one takes two requests.
        names += [root or "/", temporary]
    infos = filesystem.get_file_info(names)
    journals: frozenset[str] = frozenset()
    if not is_local or infos[-1].type == pafs.FileType.Directory:
        below = pafs.FileSelector(temporary, recursive=True, allow_not_found=True)
        journals = frozenset(info.path for info in filesystem.get_file_info(below) if _is_journal(info.path))
    return _Stamp(tuple(info.mtime_ns for info in infos), journals)


def others(filesystem: pafs.FileSystem, root: str, own: str) -> Iterable[tuple[str, Journal]]:
    """The directories and journals of the other jobs that commit into a directory now."""
    for job in sorted(_stamp(filesystem, root).jobs - {own}):
        if (journal := journal_of(filesystem, job)) is not None:
            yield job, journal[0]
