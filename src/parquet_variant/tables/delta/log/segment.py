"""The files of `_delta_log`, and action reconciliation: from these files to the state of the table (PROTOCOL.md).

Owns file names, the listing, `_last_checkpoint`, the choice of a checkpoint, and which action wins. Leaves the content
of the files to `file_actions`, and what the winning actions mean for reading to `snapshot`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import field
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from parquet_variant.arrays.parts import one_chunk
from parquet_variant.errors import DeltaError, VariantError, first_line
from parquet_variant.io.parallel import in_order
from parquet_variant.kernels.arrow_buffers import from_numpy, to_numpy
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.support.records import Record
from parquet_variant.tables.delta.file_locations import relative_path
from parquet_variant.tables.delta.log.file_actions import no_files, read_checkpoint_part, split_commits
from parquet_variant.tables.delta.protocol.actions import DomainMetadata, Metadata, Protocol, Txn, parse_json
from parquet_variant.tables.delta.protocol.features import partition_names
from parquet_variant.tables.storage import LocalStorage, Storage, StorageFile, outside

LOG = "_delta_log"
LAST_CHECKPOINT = f"{LOG}/_last_checkpoint"
SIDECARS = f"{LOG}/_sidecars"

_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.(?:parquet|[0-9a-fA-F-]{36}\.(?:json|parquet))")
_PARTS = re.compile(r"(\d{20})\.checkpoint\.(\d{10})\.(\d{10})\.parquet")


class Checkpoint(Record):
    """A complete checkpoint: its version and its files (several for a multi-part checkpoint)."""

    version: int
    files: tuple[str, ...]


class Segment(Record):
    """The files that make up a version."""

    version: int  # The table's version.
    checkpoint: Checkpoint | None  # The checkpoint where replay begins; None to begin at version 0.
    commits: tuple[StorageFile, ...]  # The commit files after the checkpoint, by version.
    # Modification time of the last commit file, else of the checkpoint, in milliseconds since 1970.
    modified: int


def commit_path(version: int) -> str:
    """Return the path of a commit file."""
    return f"{LOG}/{version:020}.json"


def list_segment(storage: Storage, version: int | None = None, *, damaged: Collection[str] = ()) -> Segment:
    """Return the files that make up a version (default: the newest), without checkpoints that have `damaged` files.

    Raises `DeltaError`: reason ``"not-a-table"``; ``"no-such-version"``; ``"broken-log"`` if a commit file is missing.
    """
    hint = 0 if damaged else _last_checkpoint(storage)
    start = hint if version is None or hint <= version else 0
    files = list_log(storage, start)
    commits, checkpoints = classify(files)
    if start and not any(c.version >= start for c in checkpoints):
        # The hint names a checkpoint that is gone, so the complete log must be listed.
        files = list_log(storage)
        commits, checkpoints = classify(files)
    if not commits and not checkpoints:
        raise DeltaError(f"{storage.uri} is not a Delta table: it has no {LOG}", reason="not-a-table", file=storage.uri)
    newest = max([*commits, *(c.version for c in checkpoints)])
    last_version = newest if version is None else version
    usable = [c for c in checkpoints if c.version <= last_version and not set(damaged) & set(c.files)]
    checkpoint = max(usable, key=lambda c: c.version) if usable else None
    first = 0 if checkpoint is None else checkpoint.version + 1
    if last_version > newest or last_version < 0 or (first == 0 and 0 not in commits):
        oldest = 0 if 0 in commits else min((c.version for c in checkpoints), default=min(commits, default=0))
        problem = f"{storage.uri} has no version {last_version}: its log holds versions {oldest} to {newest}"
        raise DeltaError(problem, reason="no-such-version", file=storage.uri)
    missing = next((v for v in range(first, last_version + 1) if v not in commits), None)
    if missing is not None:
        problem = f"version {last_version} cannot be read: the log lacks {commit_path(missing)}"
        raise DeltaError(problem, reason="broken-log", file=storage.uri)
    # PROTOCOL.md lets readers ignore log compaction files. Some writers left files that name removed data files.
    needed = tuple(commits[v] for v in range(first, last_version + 1))
    last = commits.get(last_version)
    if last is None and checkpoint is not None:
        last = next(f for f in files if f.path == checkpoint.files[0])
    return Segment(last_version, checkpoint, needed, last.modified if last is not None else 0)


def later_versions(storage: Storage, known_version: int) -> list[int]:
    """Return the versions after an existing one, ascending, for which the log has a commit file or a checkpoint."""
    commits, checkpoints = classify(list_log(storage, max(known_version, 0)))
    return sorted(version for version in {*commits, *(c.version for c in checkpoints)} if version > known_version)


def commit_times(storage: Storage) -> dict[int, int]:
    """Return the modification times of the commit files by version, ascending, in milliseconds since 1970.

    Clocks may be set back: a commit counts as later than the one before it, as in delta-spark.
    """
    commits, _ = classify(list_log(storage))
    times: dict[int, int] = {}
    last = -1
    for version in sorted(commits):
        times[version] = last = max(commits[version].modified, last + 1)
    return times


def version_at(storage: Storage, timestamp: int, in_commit_since: int | None = None) -> int:
    """Return the newest version that was committed at or before a time, in milliseconds since 1970.

    `in_commit_since`: the version since which commits record their own time (``inCommitTimestamp``); the time of other
      commits is the modification time of their file.
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
        problem = f"{storage.uri} has no version as old as {time} UTC: give a later time"
        raise DeltaError(problem, reason="no-such-version", file=storage.uri)
    return version


def in_commit_time(commit: bytes) -> int | None:
    """Return the time that a commit records; None if it records none."""
    try:
        # PROTOCOL.md: with in-commit timestamps, the first action is the commitInfo, which has the time.
        return int(parse_json(commit.lstrip().partition(b"\n")[0])["commitInfo"]["inCommitTimestamp"])
    except (ValueError, KeyError, TypeError, OverflowError):
        return None


def _recorded_time(storage: Storage, version: int) -> int:
    path, time = commit_path(version), None
    with suppress(FileNotFoundError):
        time = in_commit_time(storage.read(path))
    if time is None:
        problem = f"{path} has no inCommitTimestamp or was removed, although the table enables in-commit timestamps"
        raise DeltaError(problem, reason="broken-log", file=storage.uri)
    return time


def list_log(storage: Storage, first: int = 0) -> list[StorageFile]:
    """Return the files of a log, from a version on, without those in directories such as that of sidecars."""
    return [f for f in storage.list(LOG, f"{first:020}" if first else "") if f.path.count("/") == 1]


def classify(files: Iterable[StorageFile]) -> tuple[dict[int, StorageFile], list[Checkpoint]]:
    """Return the commits by version, and the complete checkpoints."""
    commits: dict[int, StorageFile] = {}
    checkpoints: list[Checkpoint] = []
    parts: dict[tuple[int, int], dict[int, str]] = {}
    for file in files:
        name = file.path.rpartition("/")[2]
        if match := _COMMIT.fullmatch(name):
            commits[int(match[1])] = file
        elif match := _CHECKPOINT.fullmatch(name):
            checkpoints.append(Checkpoint(int(match[1]), (file.path,)))
        elif match := _PARTS.fullmatch(name):
            parts.setdefault((int(match[1]), int(match[3])), {})[int(match[2])] = file.path
    for (version, count), paths in parts.items():
        # PROTOCOL.md: a multi-part checkpoint with a missing part must be ignored.
        if sorted(paths) == list(range(1, count + 1)):
            checkpoints.append(Checkpoint(version, tuple(paths[part] for part in sorted(paths))))
    return commits, checkpoints


def _last_checkpoint(storage: Storage) -> int:
    """Return the version that the hint names; without a readable one, 0, for the complete log."""
    try:
        version = parse_json(storage.read(LAST_CHECKPOINT))["version"]
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return 0
    return max(version, 0) if isinstance(version, int) else 0


READERS = 16
PART_BYTES = 4 << 20
_HASHED_ROWS = 1 << 14
# The weight of a byte in the hash of a path, by its position.
_WEIGHTS = np.random.default_rng(7).integers(1, 1 << 63, 1024, dtype=np.uint64)


class DamagedCheckpointError(DeltaError):
    """A checkpoint that cannot be read, or that lacks what every checkpoint holds."""

    default_reason = "broken-log"


class State(Record, frozen=False):
    """The state of a table at a version."""

    # The newest of each.
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    # By application id, and by domain; removed domains are left out.
    txns: dict[str, Txn] = field(default_factory=dict)
    domains: dict[str, DomainMetadata] = field(default_factory=dict)
    # Adds and removes, as `FILE_SCHEMA`.
    files: pa.Table = field(default_factory=no_files)
    tombstones: pa.Table = field(default_factory=no_files)

    @property
    def missing(self) -> str | None:
        """The name of an action that every version has and this one lacks."""
        return "protocol" if self.protocol is None else "metaData" if self.metadata is None else None


def replay(storage: Storage, segment: Segment, *, files: bool = True) -> State:
    """Return the state of a table at a segment's version; `files`: with `State.files` and `State.tombstones`.

    Raises `DeltaError`: reason ``"broken-log"``; `DamagedCheckpointError` if the segment's checkpoint cannot be read.
    """
    state = State()
    tables: list[pa.Table] = []
    if segment.checkpoint is not None:
        tables.extend(_read_checkpoint(storage, segment.checkpoint, state, files))
    commit_tables, known_names = _apply_commits(storage, segment.commits, state, files)
    if state.missing:
        problem = f"the log of {storage.uri} has no {state.missing} action"
        raise DeltaError(problem, reason="broken-log", file=storage.uri)
    if files:
        names = partition_names(state.protocol, state.metadata)
        if any(other != names for other in known_names):
            # File actions came before the metadata that defines how to read them: read these commits again.
            commit_tables, _ = _apply_commits(storage, segment.commits, State(), files, names)
        tables.extend(commit_tables)
        if tables:
            table = last_file_actions(pa.concat_tables(tables, promote_options="default"))
            is_add, has_removes = table["isAdd"], not pc.all(table["isAdd"]).as_py()
            state.files = table.filter(is_add) if has_removes else table
            state.tombstones = table.filter(pc.invert(is_add)) if has_removes else table.slice(0, 0)
    return state


def apply_actions(state: State, actions: Iterable[dict[str, Any]]) -> None:
    """Apply parsed log lines other than file actions to a state, in order."""
    for action in actions:
        if (value := action.get("protocol")) is not None:
            state.protocol = Protocol.from_dict(value)
        elif (value := action.get("metaData")) is not None:
            state.metadata = Metadata.from_dict(value)
        elif (value := action.get("txn")) is not None:
            txn = Txn.from_dict(value)
            state.txns[txn.app_id] = txn
        elif (value := action.get("domainMetadata")) is not None:
            domain = DomainMetadata.from_dict(value)
            if domain.removed:
                state.domains.pop(domain.domain, None)
            else:
                state.domains[domain.domain] = domain


def last_file_actions(table: pa.Table) -> pa.Table:
    """Return the newest action of each logical file, identified by path and deletion vector, in log order."""
    if table.num_rows == 0:
        return table
    keys = table["path"]
    if pc.any(pc.match_substring(keys, "%")).as_py():
        # Writers differ in what they escape: `a%3D1` and `a=1` are the same file.
        keys = pa.array([None if p is None else unquote(p) for p in keys.to_pylist()], pa.string())
    vector = table["deletionVector"]
    if vector.null_count < len(vector):
        names = ("storageType", "pathOrInlineDv", "offset")
        parts = [pc.fill_null(pc.struct_field(vector, [name]).cast(pa.string()), "") for name in names]
        keys = pc.if_else(vector.is_null(), keys, pc.binary_join_element_wise(keys, *parts, "\x00"))
    if keys.null_count:
        raise DeltaError("an add or remove action has no path", reason="broken-log")
    if _are_distinct(keys):
        return table
    encoded = one_chunk(pc.dictionary_encode(keys))
    codes = to_numpy(encoded.indices)
    # Assigning to repeated indexes keeps the last value.
    last = np.empty(len(encoded.dictionary), dtype=np.int64)
    last[codes] = np.arange(len(codes))
    if len(last) == len(codes):
        return table
    last.sort()
    return table.take(from_numpy(last))


def _are_distinct(keys: pa.Array | pa.ChunkedArray) -> bool:
    """Return whether strings are certainly distinct, by hashes: a dictionary of all paths needs much memory."""
    hashes = []
    for chunk in keys.chunks if isinstance(keys, pa.ChunkedArray) else [keys]:
        for start in range(0, len(chunk), _HASHED_ROWS):
            part = chunk.slice(start, _HASHED_ROWS)
            offsets = np.frombuffer(part.buffers()[1], dtype=np.int32)[part.offset : part.offset + len(part) + 1]
            lengths = np.diff(offsets)
            if not lengths.all():
                return False  # `reduceat` is not a sum for empty ranges.
            characters = np.frombuffer(part.buffers()[2], dtype=np.uint8)[offsets[0] : offsets[-1]]
            starts = offsets[:-1] - offsets[0]
            positions = np.arange(len(characters)) - np.repeat(starts, lengths)
            hashes.append(np.add.reduceat(_WEIGHTS.take(positions, mode="wrap") * characters, starts))
    ordered = np.sort(np.concatenate(hashes))
    return bool((ordered[1:] != ordered[:-1]).all())


def _read_checkpoint(storage: Storage, checkpoint: Checkpoint, state: State, files: bool) -> list[pa.Table]:
    """Apply the actions of a checkpoint to a state, and return its file actions."""
    tables: list[pa.Table] = []
    paths = deque(checkpoint.files)  # Those of sidecars follow.
    while paths:
        path = paths.popleft()
        try:
            if path.endswith(".json"):
                lines = split_commits(storage.read(path))
                actions, table = lines.other_actions, None
                apply_actions(state, actions)
                if files:
                    table = lines.table(partition_names(state.protocol, state.metadata))
            else:
                actions, table = read_checkpoint_part(storage.open(path), files=files)
                apply_actions(state, actions)
            sidecars = [str(action["sidecar"]["path"]) for action in actions if files and "sidecar" in action]
        except (OSError, pa.ArrowException, ValueError, KeyError, TypeError) as error:
            # Damage appears in many ways, for example as strings that are not UTF-8 or maps without keys.
            if isinstance(error, VariantError) and error.reason != "broken-log":
                raise
            cause = error.message if isinstance(error, VariantError) else first_line(error)
            raise DamagedCheckpointError(f"checkpoint file {path} cannot be read: {cause}", file=path) from error
        tables += [] if table is None else [table]
        for name in sidecars:
            sidecar = relative_path(storage, name if "/" in name else f"{SIDECARS}/{name}")
            if not sidecar.startswith(f"{SIDECARS}/"):  # The table's own directory of sidecars.
                raise outside(storage, name)
            paths.append(sidecar)
    if state.missing:
        path = checkpoint.files[0]
        raise DamagedCheckpointError(f"checkpoint file {path} has no {state.missing} action", file=path)
    return tables


def _apply_commits(
    storage: Storage, commits: Sequence[StorageFile], state: State, files: bool, names: Sequence[str] | None = None
) -> tuple[list[pa.Table], list[Sequence[str]]]:
    """Apply commits to a state, and return their file actions, with the partition columns by which each part was read.

    A part's text is released when its table exists, so that a large log is never in memory as text.
    """
    tables: list[pa.Table] = []
    known_names: list[Sequence[str]] = []
    for text in _commit_texts(storage, commits):
        lines = split_commits(text)
        apply_actions(state, lines.other_actions)
        if files and lines.files:
            known_names.append(names or partition_names(state.protocol, state.metadata))
            tables.append(lines.table(known_names[-1]))
    return tables, known_names


def _commit_texts(storage: Storage, commits: Sequence[StorageFile]) -> Iterator[bytes]:
    """Yield the text of the commits in order, as whole lines, in parts of a size that suits the parser."""

    def read(commit: StorageFile, start: int) -> bytes:
        if commit.size <= PART_BYTES:
            return storage.read(commit.path)
        return storage.read(commit.path, start, min(PART_BYTES, commit.size - start))

    ranges = [(commit, start) for commit in commits for start in range(0, max(commit.size, 1), PART_BYTES)]
    # Object stores are read by several threads, without reading far ahead.
    threads = 1 if isinstance(storage, LocalStorage) else READERS
    contents = in_order(lambda place: read(*place), ranges, threads, ahead=0)
    part: list[bytes] = []
    size = 0
    for (commit, start), text in zip(ranges, contents, strict=True):
        is_end = start + PART_BYTES >= commit.size
        part.extend([text, b"\n"] if is_end else [text])
        size += len(text)
        if size >= PART_BYTES:
            joined = b"".join(part)
            cut = len(joined) if is_end else joined.rfind(b"\n") + 1
            yield joined[:cut]
            part, size = [joined[cut:]], len(joined) - cut
    yield b"".join(part)
