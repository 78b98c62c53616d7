"""Which files of a directory count: the journal that a commit leaves beside its staged files until it is through.

A commit is several steps (move the new files in, remove the old ones), and a process may end between any two of them.
So it says first what it is about to do, in ``_temporary/<job>/prepared.json``; once all new files are in their places
it renames that to ``committed.json``, in one step. Until then the new files do not count, from then on the old ones do
not. Whoever comes later carries through what is committed and takes back what is not.

Owns the journal, and listing a directory by it. Leaves staging, modes, and whose job is dead to `staging`.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass

import pyarrow.fs as pafs

__all__ = ["COMMITTED", "PREPARED", "TEMPORARY", "Journal", "files_that_count", "journal_of", "others", "publish"]

TEMPORARY = "_temporary"
PREPARED = "prepared.json"
COMMITTED = "committed.json"
_SUCCESS = "_SUCCESS"
# A directory that changes while it is listed is listed again.
_LISTINGS = 20


@dataclass(frozen=True, slots=True)
class Journal:
    """What a commit does to a directory; every path is below its root.

    Parameters
    ----------
    add
        Files that are moved in.
    remove
        Files that are no longer wanted.
    markers
        Empty files that say that it is done.
    """

    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    markers: tuple[str, ...] = ()

    def to_json(self) -> str:
        """As it is written."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Journal:
        """Read it.

        Examples
        --------
        >>> journal = Journal(("new.parquet",), ("old.parquet",))
        >>> Journal.from_json(journal.to_json()) == journal
        True
        """
        return cls(**{name: tuple(paths) for name, paths in json.loads(text).items()})

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
            return Journal.from_json(stream.read().decode()), committed
    return None


def files_that_count(filesystem: pafs.FileSystem, root: str) -> list[pafs.FileInfo]:
    """Every file below a directory, but those that a commit has not put there yet, or has removed already.

    Parameters
    ----------
    filesystem, root
        The directory, or one of partitions below it. Journals of directories below it hold, too.

    Returns
    -------
    list of pyarrow.fs.FileInfo
        As of one moment; of a directory into which others commit all the time, as it was listed last.
    """
    root = root.rstrip("/")
    above = _above(root)
    for _ in range(_LISTINGS):
        before = _stamp(filesystem, above)
        infos = filesystem.get_file_info(pafs.FileSelector(root, recursive=True, allow_not_found=True))
        jobs = {posixpath.dirname(info.path) for info in infos if _is_journal(info.path)} | before.jobs
        hidden = {path for job in jobs for path in _hidden(filesystem, job)}
        found = [info for info in infos if info.type == pafs.FileType.File and info.path not in hidden]
        if _stamp(filesystem, above) == before:
            break
    return found


def _hidden(filesystem: pafs.FileSystem, job: str) -> list[str]:
    found = journal_of(filesystem, job)
    if found is None:
        return []
    journal, committed = found
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
    # Object stores have no times of directories: there only the file tells.
    infos = filesystem.get_file_info([root or "/", temporary, f"{root}/{_SUCCESS}"])
    journals: frozenset[str] = frozenset()
    if infos[1].type == pafs.FileType.Directory:
        below = pafs.FileSelector(temporary, recursive=True, allow_not_found=True)
        journals = frozenset(info.path for info in filesystem.get_file_info(below) if _is_journal(info.path))
    return _Stamp(tuple(info.mtime_ns for info in infos), journals)


def others(filesystem: pafs.FileSystem, root: str, own: str) -> Iterable[tuple[str, Journal]]:
    """The directories and journals of the other jobs that commit into a directory now."""
    for job in sorted(_stamp(filesystem, root).jobs - {own}):
        if (found := journal_of(filesystem, job)) is not None:
            yield job, found[0]
