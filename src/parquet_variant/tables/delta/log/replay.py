"""Action reconciliation: from the files of a log segment to the state of the table (PROTOCOL.md).

Owns which action wins. Leaves what the winning actions mean for reading to `snapshot`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from parquet_variant.errors import DeltaError, TableError, VariantError
from parquet_variant.io.parallel import in_order
from parquet_variant.kernels.arrow_buffers import from_numpy, to_numpy
from parquet_variant.support import arrow_compute as pc
from parquet_variant.tables.delta.file_locations import relative_path
from parquet_variant.tables.delta.log.file_actions import no_files, read_checkpoint_part, split_commits
from parquet_variant.tables.delta.log.segment import LOG, Checkpoint, Segment
from parquet_variant.tables.delta.protocol.actions import DomainMetadata, Metadata, Protocol, Txn
from parquet_variant.tables.delta.protocol.features import partition_names
from parquet_variant.tables.storage import LocalStorage, Storage, StorageFile, outside

_SIDECARS = f"{LOG}/_sidecars"
READERS = 16
PART_BYTES = 4 << 20
_HASHED_ROWS = 1 << 14
# The weight of a byte in the hash of a path, by its position.
_WEIGHTS = np.random.default_rng(7).integers(1, 1 << 63, 1024, dtype=np.uint64)


class DamagedCheckpointError(DeltaError):
    """A checkpoint that cannot be read, or that lacks what every checkpoint holds."""

    default_reason = "broken-log"


@dataclass
class State:
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


def replay(storage: Storage, segment: Segment, *, files: bool = True) -> State:
    """Return the state of a table at a segment's version.

    `files`: whether to build `State.files` and `State.tombstones`.
    Raises `DeltaError`: reason ``"broken-log"`` without protocol or metadata, or for actions that PROTOCOL.md does not
    allow; `DamagedCheckpointError` if the segment's checkpoint cannot be read.
    """
    state = State()
    tables: list[pa.Table] = []
    if segment.checkpoint is not None:
        tables.extend(_read_checkpoint(storage, segment.checkpoint, state, files))
    commit_tables, known_names = _apply_commits(storage, segment.commits, state, files)
    if state.protocol is None or state.metadata is None:
        missing = "protocol" if state.protocol is None else "metaData"
        raise DeltaError(f"the log of {storage.uri} has no {missing} action", reason="broken-log", file=storage.uri)
    if files:
        names = partition_names(state.protocol, state.metadata)
        if any(other != names for other in known_names):
            # File actions came before the metadata that defines how to read them: read these commits again.
            commit_tables, _ = _apply_commits(storage, segment.commits, State(), files, names)
        tables.extend(commit_tables)
        _reconcile(state, tables)
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
        keys = _with_vector(keys, vector)
    if keys.null_count:
        raise DeltaError("an add or remove action has no path", reason="broken-log")
    if _are_distinct(keys):
        return table
    encoded = pc.dictionary_encode(keys)
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.chunk(0)
    codes = to_numpy(encoded.indices)
    # Assigning to repeated indexes keeps the last value.
    last = np.empty(len(encoded.dictionary), dtype=np.int64)
    last[codes] = np.arange(len(codes))
    if len(last) == len(codes):
        return table
    last.sort()
    return table.take(from_numpy(last))


def _are_distinct(keys: pa.Array | pa.ChunkedArray) -> bool:
    """Return whether all strings are certainly distinct, by their hashes.

    Most logs name each file once, and a dictionary of all paths needs much memory.
    """
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


def _reconcile(state: State, tables: Sequence[pa.Table]) -> None:
    if not tables:
        return
    table = last_file_actions(pa.concat_tables(tables, promote_options="default"))
    is_add = table["isAdd"]
    if pc.all(is_add).as_py():
        state.files, state.tombstones = table, table.slice(0, 0)
    else:
        state.files, state.tombstones = table.filter(is_add), table.filter(pc.invert(is_add))


def _with_vector(keys: Any, vector: pa.ChunkedArray) -> pa.ChunkedArray:
    def part(name: str) -> Any:
        return pc.fill_null(pc.struct_field(vector, [name]).cast(pa.string()), "")

    identity = pc.binary_join_element_wise(keys, part("storageType"), part("pathOrInlineDv"), part("offset"), "\x00")
    return pc.if_else(vector.is_null(), keys, identity)


def _read_checkpoint(storage: Storage, checkpoint: Checkpoint, state: State, files: bool) -> list[pa.Table]:
    """Apply the actions of a checkpoint to a state, and return its file actions."""
    tables: list[pa.Table] = []
    for path in checkpoint.files:
        try:
            tables.extend(_read_checkpoint_file(storage, path, state, files))
        except TableError as error:
            if error.reason != "broken-log" or isinstance(error, DamagedCheckpointError):
                raise
            raise _damaged(path, error) from error
    if state.protocol is None or state.metadata is None:
        missing = "protocol" if state.protocol is None else "metaData"
        path = checkpoint.files[0]
        raise DamagedCheckpointError(f"checkpoint file {path} has no {missing} action", file=path)
    return tables


def _read_checkpoint_file(storage: Storage, path: str, state: State, files: bool) -> list[pa.Table]:
    tables: list[pa.Table] = []
    if path.endswith(".json"):
        lines = split_commits(storage.read(path))
        actions = lines.other_actions
        apply_actions(state, actions)
        if files and state.metadata is not None:
            tables.append(lines.table(partition_names(state.protocol, state.metadata)))
    else:
        actions, table = _read_part(storage, path, files=files)
        apply_actions(state, actions)
        if table is not None:
            tables.append(table)
    sidecars = [action["sidecar"]["path"] for action in actions if "sidecar" in action]
    if files:
        tables.extend(
            table
            for sidecar in sidecars
            if (table := _read_part(storage, _sidecar_path(storage, sidecar), files=True)[1]) is not None
        )
    return tables


def _sidecar_path(storage: Storage, sidecar: str) -> str:
    """Return the path of a sidecar, which must lie in the table's own directory of sidecars."""
    path = relative_path(storage, sidecar if "/" in sidecar else f"{_SIDECARS}/{sidecar}")
    if not path.startswith(f"{_SIDECARS}/"):
        raise outside(storage, sidecar)
    return path


def _read_part(storage: Storage, path: str, *, files: bool) -> tuple[list[dict[str, Any]], pa.Table | None]:
    try:
        return read_checkpoint_part(storage.open(path), files=files)
    except VariantError:
        raise
    except (OSError, pa.ArrowException, ValueError, KeyError, TypeError) as error:
        # Damage appears in many ways, for example as strings that are not UTF-8 or maps without keys.
        raise _damaged(path, error) from error


def _damaged(path: str, error: Exception) -> DamagedCheckpointError:
    cause = error.message if isinstance(error, VariantError) else str(error).split("\n", maxsplit=1)[0]
    return DamagedCheckpointError(f"checkpoint file {path} cannot be read: {cause}", file=path)


def _apply_commits(
    storage: Storage, commits: Sequence[StorageFile], state: State, files: bool, names: Sequence[str] | None = None
) -> tuple[list[pa.Table], list[Sequence[str]]]:
    """Apply commits to a state, and return their file actions.

    Each part of the log is read with the partition columns that are known by then; these are returned too. A part's
    text is released when its table exists, so that a large log is never in memory as text.
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
    ranges = [(commit, start) for commit in commits for start in range(0, max(commit.size, 1), PART_BYTES)]
    part: list[bytes] = []
    size = 0
    for (commit, start), text in zip(ranges, _read_ranges(storage, ranges), strict=True):
        is_end = start + PART_BYTES >= commit.size
        part.extend([text, b"\n"] if is_end else [text])
        size += len(text)
        if size >= PART_BYTES:
            joined = b"".join(part)
            cut = len(joined) if is_end else joined.rfind(b"\n") + 1
            yield joined[:cut]
            part, size = [joined[cut:]], len(joined) - cut
    yield b"".join(part)


def _read_ranges(storage: Storage, ranges: Sequence[tuple[StorageFile, int]]) -> Iterator[bytes]:
    """Yield ranges of commits in order; object stores are read by several threads, without reading far ahead."""

    def read(commit: StorageFile, start: int) -> bytes:
        if commit.size <= PART_BYTES:
            return storage.read(commit.path)
        return storage.read(commit.path, start, min(PART_BYTES, commit.size - start))

    threads = 1 if isinstance(storage, LocalStorage) else READERS
    return in_order(lambda place: read(*place), ranges, threads, ahead=0)
