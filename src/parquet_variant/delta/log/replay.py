"""Action reconciliation: from the files of a log segment to the state of the table (PROTOCOL.md).

Owns which action wins. Leaves what the winners mean for reading to `snapshot`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from parquet_variant import arrow_compute as pc
from parquet_variant.delta.data.paths import relative_path
from parquet_variant.delta.log.file_actions import no_files, read_checkpoint_part, split_commits
from parquet_variant.delta.log.segment import LOG, Segment
from parquet_variant.delta.protocol.actions import DomainMetadata, Metadata, Protocol, Txn
from parquet_variant.delta.protocol.features import partition_names
from parquet_variant.errors import DeltaError, VariantError
from parquet_variant.io.parallel import in_order
from parquet_variant.kernels.arrow_buffers import from_numpy, to_numpy
from parquet_variant.tables.storage import FileInfo, LocalStorage, Storage, outside

_SIDECARS = f"{LOG}/_sidecars"
READERS = 16
PART_BYTES = 4 << 20
_HASHED_ROWS = 1 << 14
# What a byte counts for in a path's hash, by its place.
_WEIGHTS = np.random.default_rng(7).integers(1, 1 << 63, 1024, dtype=np.uint64)


@dataclass
class State:
    """What a version of a table is made of."""

    # The newest of each.
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    # By application id, and by domain; removed domains are left out.
    txns: dict[str, Txn] = field(default_factory=dict)
    domains: dict[str, DomainMetadata] = field(default_factory=dict)
    # Adds, and removes, as `FILE_SCHEMA`.
    files: pa.Table = field(default_factory=no_files)
    tombstones: pa.Table = field(default_factory=no_files)


def replay(storage: Storage, segment: Segment, *, files: bool = True) -> State:
    """The state of a table at a segment's version.

    `files`: whether to build `State.files` and `State.tombstones`.
    Raises `DeltaError`: reason ``"broken-log"`` without protocol or metadata, or for actions that are not as
    PROTOCOL.md says.
    """
    state = State()
    tables: list[pa.Table] = []
    if segment.checkpoint is not None:
        for path in segment.checkpoint.files:
            tables.extend(_checkpoint(storage, path, state, files))
    files_of_commits, known = _commits(storage, segment.commits, state, files)
    if state.protocol is None or state.metadata is None:
        missing = "protocol" if state.protocol is None else "metaData"
        raise DeltaError(f"the log of {storage.uri} has no {missing} action", reason="broken-log", file=storage.uri)
    if files:
        names = partition_names(state.protocol, state.metadata)
        if any(other != names for other in known):
            # Files came before the metadata that says how to read them: rare enough to read them twice.
            files_of_commits, _ = _commits(storage, segment.commits, State(), files, names)
        tables.extend(files_of_commits)
        _reconcile(state, tables)
    return state


def apply_actions(state: State, actions: Iterable[dict[str, Any]]) -> None:
    """Let parsed log lines other than file actions win over what the state holds, in order."""
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
    """The newest action of every logical file, keyed by path and deletion vector, in log order."""
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
    if _all_differ(keys):
        return table
    encoded = pc.dictionary_encode(keys)
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.chunk(0)
    codes = to_numpy(encoded.indices)
    # Assignment by index keeps the last of repeated indexes.
    last = np.empty(len(encoded.dictionary), dtype=np.int64)
    last[codes] = np.arange(len(codes))
    if len(last) == len(codes):
        return table
    last.sort()
    return table.take(from_numpy(last))


def _all_differ(keys: pa.Array | pa.ChunkedArray) -> bool:
    """Whether all texts differ for certain, told by hashes: most logs repeat no file, and a dictionary is large."""
    hashes = []
    for chunk in keys.chunks if isinstance(keys, pa.ChunkedArray) else [keys]:
        for start in range(0, len(chunk), _HASHED_ROWS):
            part = chunk.slice(start, _HASHED_ROWS)
            at = np.frombuffer(part.buffers()[1], dtype=np.int32)[part.offset : part.offset + len(part) + 1]
            lengths = np.diff(at)
            if not lengths.all():
                return False  # A sum over nothing is not what `reduceat` gives.
            characters = np.frombuffer(part.buffers()[2], dtype=np.uint8)[at[0] : at[-1]]
            place = np.arange(len(characters)) - np.repeat(at[:-1] - at[0], lengths)
            hashes.append(np.add.reduceat(_WEIGHTS.take(place, mode="wrap") * characters, at[:-1] - at[0]))
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
        return pc.fill_null(pc.struct_field(vector, name).cast(pa.string()), "")

    identity = pc.binary_join_element_wise(keys, part("storageType"), part("pathOrInlineDv"), part("offset"), "\x00")
    return pc.if_else(vector.is_null(), keys, identity)


def _checkpoint(storage: Storage, path: str, state: State, files: bool) -> list[pa.Table]:
    tables: list[pa.Table] = []
    if path.endswith(".json"):
        lines = split_commits(storage.read(path))
        others = lines.others
        apply_actions(state, others)
        if files and state.metadata is not None:
            tables.append(lines.table(partition_names(state.protocol, state.metadata)))
    else:
        others, table = _read_part(storage, path, files=files)
        apply_actions(state, others)
        if table is not None:
            tables.append(table)
    sidecars = [action["sidecar"]["path"] for action in others if "sidecar" in action]
    if files:
        tables.extend(_read_part(storage, _sidecar_path(storage, each), files=True)[1] for each in sidecars)
    return tables


def _sidecar_path(storage: Storage, sidecar: str) -> str:
    """Where a sidecar lies: in the table's own directory of sidecars, wherever the checkpoint says."""
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
        # Damage shows in many ways: also as text that is not UTF-8, or as maps without keys.
        text = str(error).split("\n", maxsplit=1)[0]
        raise DeltaError(f"checkpoint file {path} cannot be read: {text}", reason="broken-log", file=path) from error


def _commits(
    storage: Storage, commits: Sequence[FileInfo], state: State, files: bool, names: Sequence[str] | None = None
) -> tuple[list[pa.Table], list[Sequence[str]]]:
    """Let commits win over a state; and their file actions, each part read with the partition columns known by then.

    A part's text goes as its table comes, so that a large log is never in memory as text.
    """
    tables: list[pa.Table] = []
    known: list[Sequence[str]] = []
    for text in _commit_texts(storage, commits):
        lines = split_commits(text)
        apply_actions(state, lines.others)
        if files and lines.files:
            known.append(names or partition_names(state.protocol, state.metadata))
            tables.append(lines.table(known[-1]))
    return tables, known


def _commit_texts(storage: Storage, commits: Sequence[FileInfo]) -> Iterator[bytes]:
    """The text of the commits, in order: whole lines, in parts that are worth a parser's start but not much memory."""
    ranges = [(commit, at) for commit in commits for at in range(0, max(commit.size, 1), PART_BYTES)]
    part: list[bytes] = []
    size = 0
    for (commit, at), text in zip(ranges, _read_ranges(storage, ranges), strict=True):
        ends = at + PART_BYTES >= commit.size
        part.extend([text, b"\n"] if ends else [text])
        size += len(text)
        if size >= PART_BYTES:
            joined = b"".join(part)
            cut = len(joined) if ends else joined.rfind(b"\n") + 1
            yield joined[:cut]
            part, size = [joined[cut:]], len(joined) - cut
    yield b"".join(part)


def _read_ranges(storage: Storage, ranges: Sequence[tuple[FileInfo, int]]) -> Iterator[bytes]:
    """Pieces of commits, in order; from object stores some at a time, and never many more than are asked for."""

    def read(commit: FileInfo, at: int) -> bytes:
        if commit.size <= PART_BYTES:
            return storage.read(commit.path)
        return storage.read(commit.path, at, min(PART_BYTES, commit.size - at))

    return in_order(lambda each: read(*each), ranges, 1 if isinstance(storage, LocalStorage) else READERS, ahead=0)
