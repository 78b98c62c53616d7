"""The files of `_delta_log`: the commits and the checkpoint that make up a version.

Owns file names, the listing, `_last_checkpoint` and the choice of a checkpoint. Leaves the content of the files to
`file_actions` and their meaning to `replay`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable
from dataclasses import dataclass

import numpy as np

from parquet_variant.errors import DeltaError
from parquet_variant.tables.delta.protocol.actions import parse_json
from parquet_variant.tables.storage import Storage, StorageFile

LOG = "_delta_log"
LAST_CHECKPOINT = f"{LOG}/_last_checkpoint"

_COMMIT = re.compile(r"(\d{20})\.json")
_CLASSIC = re.compile(r"(\d{20})\.checkpoint\.parquet")
_PARTS = re.compile(r"(\d{20})\.checkpoint\.(\d{10})\.(\d{10})\.parquet")
_UUID = re.compile(r"(\d{20})\.checkpoint\.[0-9a-fA-F-]{36}\.(?:json|parquet)")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A complete checkpoint: its version and its files (several for a multi-part checkpoint)."""

    version: int
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Segment:
    """The files that make up a version."""

    version: int  # The table's version.
    checkpoint: Checkpoint | None  # The checkpoint where replay begins; None to begin at version 0.
    commits: tuple[StorageFile, ...]  # The commit files after the checkpoint, by version.
    # Modification time of the last commit file, or of the checkpoint if there is none, in milliseconds since 1970.
    modified: int


def commit_path(version: int) -> str:
    """Return the path of a commit file.

    >>> commit_path(42)
    '_delta_log/00000000000000000042.json'
    """
    return f"{LOG}/{version:020}.json"


def list_segment(storage: Storage, version: int | None = None, *, damaged: Collection[str] = ()) -> Segment:
    """Return the files that make up a version of a table.

    `version`: the version (default: the newest).
    `damaged`: files of checkpoints that must not be used.
    Raises `DeltaError`: reason ``"not-a-table"`` without a log, ``"no-such-version"`` if the version does not exist or
    is no longer in the log, ``"broken-log"`` if a commit file is missing.
    """
    hint = None if damaged else _last_checkpoint(storage)
    start = hint if hint is not None and (version is None or hint <= version) else None
    files = _list(storage, "" if start is None else f"{start:020}")
    commits, checkpoints = _classify(files)
    if start is not None and not any(c.version >= start for c in checkpoints):
        # The hint names a checkpoint that is gone, so the complete log must be listed.
        files = _list(storage, "")
        commits, checkpoints = _classify(files)
    if not commits and not checkpoints:
        raise DeltaError(f"{storage.uri} is not a Delta table: it has no {LOG}", reason="not-a-table", file=storage.uri)
    newest = max([*commits, *(c.version for c in checkpoints)])
    last_version = newest if version is None else version
    usable = [c for c in checkpoints if c.version <= last_version and not set(damaged) & set(c.files)]
    checkpoint = max(usable, key=lambda c: c.version) if usable else None
    first = 0 if checkpoint is None else checkpoint.version + 1
    if last_version > newest or last_version < 0 or (first == 0 and 0 not in commits):
        oldest = _oldest(commits, checkpoints)
        raise DeltaError(
            f"{storage.uri} has no version {last_version}: its log holds versions {oldest} to {newest}",
            reason="no-such-version",
            file=storage.uri,
        )
    missing = next((v for v in range(first, last_version + 1) if v not in commits), None)
    if missing is not None:
        raise DeltaError(
            f"version {last_version} cannot be read: the log lacks {commit_path(missing)}",
            reason="broken-log",
            file=storage.uri,
        )
    # PROTOCOL.md lets readers ignore log compaction files. Some writers left files that name removed data files.
    needed = tuple(commits[v] for v in range(first, last_version + 1))
    last = commits.get(last_version)
    if last is None and checkpoint is not None:
        last = next(f for f in files if f.path == checkpoint.files[0])
    return Segment(last_version, checkpoint, needed, last.modified if last is not None else 0)


def later_versions(storage: Storage, known_version: int) -> list[int]:
    """Return the versions after an existing one, ascending, for which the log has a commit file or a checkpoint."""
    commits, checkpoints = _classify(_list(storage, f"{max(known_version, 0):020}"))
    return sorted(version for version in {*commits, *(c.version for c in checkpoints)} if version > known_version)


def commit_times(storage: Storage) -> dict[int, int]:
    """Return the modification times of the commit files by version, ascending, in milliseconds since 1970.

    Clocks may be set back: a commit counts as later than the one before it, as in delta-spark.
    """
    commits, _ = _classify(_list(storage, ""))
    times: dict[int, int] = {}
    last = -1
    for version in sorted(commits):
        times[version] = last = max(commits[version].modified, last + 1)
    return times


def version_at(storage: Storage, timestamp: int, in_commit_since: int | None = None) -> int:
    """Return the newest version that was committed at or before a time.

    `timestamp`: milliseconds since 1970.
    `in_commit_since`: the version since which commits record their own time (``inCommitTimestamp``); the time of other
      commits is the modification time of their file.
    Raises `DeltaError`: reason ``"no-such-version"`` if every commit is later; ``"broken-log"`` if a commit does not
    record its time.
    """
    commits = commit_times(storage)
    recording = [v for v in commits if in_commit_since is not None and v >= in_commit_since]
    if recording and _recorded_time(storage, recording[0]) <= timestamp:
        # Recorded times only increase, so a binary search reads few commits.
        index = bisect_right(recording, timestamp, key=lambda version: _recorded_time(storage, version))
        return recording[index - 1]
    version = max((v for v in commits.keys() - recording if commits[v] <= timestamp), default=None)
    if version is None:
        time = np.datetime64(max(timestamp, -(2**62)), "ms")
        raise DeltaError(
            f"{storage.uri} has no version as old as {time} UTC: give a later time",
            reason="no-such-version",
            file=storage.uri,
        )
    return version


def in_commit_time(commit: bytes) -> int | None:
    """Return the time that a commit records; None if it records none.

    >>> in_commit_time(b'{"commitInfo":{"inCommitTimestamp":5}}')
    5
    """
    try:
        # PROTOCOL.md: with in-commit timestamps, the first action is the commitInfo, which has the time.
        return int(parse_json(commit.lstrip().partition(b"\n")[0])["commitInfo"]["inCommitTimestamp"])
    except (ValueError, KeyError, TypeError, OverflowError):
        return None


def _recorded_time(storage: Storage, version: int) -> int:
    path = commit_path(version)
    time = in_commit_time(storage.read(path))
    if time is None:
        raise DeltaError(
            f"{path} has no inCommitTimestamp, although the table enables in-commit timestamps",
            reason="broken-log",
            file=storage.uri,
        )
    return time


def _list(storage: Storage, start: str) -> list[StorageFile]:
    return [f for f in storage.list(LOG, start) if f.path.count("/") == 1]


def _classify(files: Iterable[StorageFile]) -> tuple[dict[int, StorageFile], list[Checkpoint]]:
    commits: dict[int, StorageFile] = {}
    checkpoints: list[Checkpoint] = []
    parts: dict[tuple[int, int], dict[int, str]] = {}
    for file in files:
        name = file.path.rpartition("/")[2]
        if match := _COMMIT.fullmatch(name):
            commits[int(match[1])] = file
        elif match := (_CLASSIC.fullmatch(name) or _UUID.fullmatch(name)):
            checkpoints.append(Checkpoint(int(match[1]), (file.path,)))
        elif match := _PARTS.fullmatch(name):
            parts.setdefault((int(match[1]), int(match[3])), {})[int(match[2])] = file.path
    for (version, count), paths in parts.items():
        # PROTOCOL.md: a multi-part checkpoint with a missing part must be ignored.
        if sorted(paths) == list(range(1, count + 1)):
            checkpoints.append(Checkpoint(version, tuple(paths[part] for part in sorted(paths))))
    return commits, checkpoints


def _last_checkpoint(storage: Storage) -> int | None:
    try:
        version = parse_json(storage.read(LAST_CHECKPOINT))["version"]
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        # The file is only a hint: without a readable one, the complete log is listed.
        return None
    return version if isinstance(version, int) and version >= 0 else None


def _oldest(commits: dict[int, StorageFile], checkpoints: list[Checkpoint]) -> int:
    if 0 in commits:
        return 0
    return min((c.version for c in checkpoints), default=min(commits, default=0))
