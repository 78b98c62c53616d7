"""The file actions of a log as columns: commit JSON and checkpoint Parquet become one Arrow table.

Owns the canonical table of adds and removes (`FILE_SCHEMA`, with the names of PROTOCOL.md) and its two readers, fast
enough for a million files. Leaves which action wins to `segment`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json as pj
import pyarrow.parquet as pq

from parquet_variant.arrays.parts import empty_table
from parquet_variant.errors import DeltaError
from parquet_variant.kernels.arrow_buffers import from_bytes, from_numpy
from parquet_variant.layouts.parquet_reader import open_parquet
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.support.records import Record
from parquet_variant.tables.delta.protocol.actions import Add, DeletionVector, parse_json

_STRINGS = pa.map_(pa.string(), pa.string())
_DV = pa.struct({
    "storageType": pa.string(), "pathOrInlineDv": pa.string(), "offset": pa.int32(), "sizeInBytes": pa.int32(),
    "cardinality": pa.int64(),
})  # fmt: skip
FILE_SCHEMA = pa.schema({
    "isAdd": pa.bool_(), "path": pa.string(), "partitionValues": _STRINGS, "size": pa.int64(),
    "modificationTime": pa.int64(), "deletionTimestamp": pa.int64(), "dataChange": pa.bool_(),
    "stats": pa.large_string(), "tags": _STRINGS, "deletionVector": _DV, "baseRowId": pa.int64(),
    "defaultRowCommitVersion": pa.int64(), "clusteringProvider": pa.string(),
})  # fmt: skip
_NAMES = tuple(name for name in FILE_SCHEMA.names if name != "isAdd")
_OTHER_ACTIONS = ("protocol", "metaData", "txn", "domainMetadata", "checkpointMetadata", "sidecar")
_HEAD = re.compile(rb'[ \t]*\{[ \t\r]*"(\w+)"')
_FILE_KEYS = (b"add", b"remove", b"cdc")
_NEWLINE = 0x0A
# Arrow parses blocks in parallel.
_BLOCK = 2 << 20
_NULLS = 1 << 16
# Fields of file actions that are not read.
_IGNORED = {"extendedFileMetadata": pa.bool_()}


class CommitLines(Record):
    """The lines of concatenated commit files."""

    other_actions: list[dict[str, Any]]  # All actions except adds, removes and change data files, parsed, in order.
    files: bytes | memoryview  # The text of the other lines, in order.
    samples: tuple[bytes, ...] = ()  # The first add and the first remove among them.

    def table(self, partition_names: Sequence[str]) -> pa.Table:
        """Return the adds and removes, as `FILE_SCHEMA`, with the partition values of some physical names.

        Raises `DeltaError`: reason ``"broken-log"`` for a line that is not a file action.
        """
        if not self.files:
            return no_files()
        for read in (_as_samples, _with_any_fields):
            try:
                return _canonical_table(read(self, partition_names), partition_names)
            except pa.ArrowInvalid:
                # Lines that Arrow's parser refuses are parsed by Python.
                continue
        return rows_to_files(log_lines(bytes(self.files)))


def log_lines(data: bytes) -> list[dict[str, Any]]:
    """Return the parsed actions of a commit."""
    return [_load(line) for line in data.split(b"\n") if line.strip()]


def split_commits(data: bytes) -> CommitLines:
    r"""Separate the file actions of commits, of which there may be a million, from the other actions.

    >>> lines = split_commits(b'{"txn":{"appId":"a","version":1}}\n{"add":{"path":"x"}}\n')
    >>> lines.other_actions, lines.table([])["path"].to_pylist()
    ([{'txn': {'appId': 'a', 'version': 1}}], ['x'])
    """
    view = memoryview(data)
    characters = np.frombuffer(data, dtype=np.uint8)
    starts = np.concatenate([[0], np.flatnonzero(characters == _NEWLINE) + 1])
    ends = np.append(starts[1:], len(data))
    starts_with = []  # For adds and for removes, a mask of the lines.
    for head in (b'{"add":{', b'{"remove') if len(data) else ():
        mask = np.ones(len(starts), dtype=bool)
        for offset, character in enumerate(head):
            mask &= characters[np.minimum(starts + offset, len(characters) - 1)] == character
        starts_with.append(mask)
    other_actions: list[dict[str, Any]] = []
    pieces: list[memoryview] = []
    position = 0
    for index in np.flatnonzero(~np.logical_or.reduce(starts_with)).tolist() if starts_with else ():
        begin, end = int(starts[index]), int(ends[index])
        match = _HEAD.match(data, begin, end)
        if match is not None and match[1] in _FILE_KEYS:
            continue  # The writer put white space between the tokens.
        pieces.append(view[position:begin])
        position = end
        if line := data[begin:end].strip():
            other_actions.append(_load(line))
    pieces = [piece for piece in (*pieces, view[position:]) if piece]
    first_lines = [int(lines.argmax()) for lines in starts_with if lines.any()]
    samples = tuple(data[starts[index] : ends[index]] for index in first_lines)
    return CommitLines(other_actions, pieces[0] if len(pieces) == 1 else b"".join(pieces), samples)


def no_files() -> pa.Table:
    """Return an empty table of adds and removes, as `FILE_SCHEMA`."""
    return empty_table(FILE_SCHEMA)


def rows_to_files(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Return file actions that are parsed log lines (``{"add": {...}}`` or ``{"remove": {...}}``), as `FILE_SCHEMA`."""
    try:
        flat = []
        for row in rows:
            for key in ("add", "remove"):
                action = row.get(key)
                if action is not None:
                    values = {name: action.get(name) for name in _NAMES}
                    for name in ("partitionValues", "tags"):
                        values[name] = None if values[name] is None else list(values[name].items())
                    flat.append(values | {"isAdd": key == "add"})
        return pa.Table.from_pylist(flat, schema=FILE_SCHEMA)
    except (pa.ArrowException, AttributeError, TypeError, OverflowError) as error:
        raise DeltaError(f"an add or remove action has a wrong type: {error}", reason="broken-log") from error


def iter_adds(files: pa.Table) -> Iterator[Add]:
    """Yield the actions of rows of `FILE_SCHEMA`, which may lack columns.

    >>> [add.path for add in iter_adds(rows_to_files([{"add": {"path": "a", "size": 1}}]))]
    ['a']
    """
    for batch in files.to_batches(max_chunksize=1024):
        for row in batch.to_pylist():
            if row.get("size") is None:
                raise DeltaError(f"the add action of {row['path']} has no size", reason="broken-log")
            vector = row.get("deletionVector")
            yield Add(
                path=row["path"],
                partition_values=dict(row.get("partitionValues") or ()),
                size=row["size"],
                modification_time=row.get("modificationTime") or 0,
                data_change=row.get("dataChange") is not False,
                stats=row.get("stats"),
                tags=None if row.get("tags") is None else dict(row["tags"]),
                deletion_vector=None if vector is None else DeletionVector.from_dict(vector),
                base_row_id=row.get("baseRowId"),
                default_row_commit_version=row.get("defaultRowCommitVersion"),
                clustering_provider=row.get("clusteringProvider"),
            )


def read_checkpoint_part(source: Any, *, files: bool) -> tuple[list[dict[str, Any]], pa.Table | None]:
    """Return the actions of one Parquet file of a checkpoint, or of a sidecar: the other actions, then the files.

    These are as `FILE_SCHEMA`, with a column `stats_parsed` if statistics exist only in that form.
    """
    with open_parquet(source) as parquet:
        present = parquet.schema_arrow
        other_actions: list[dict[str, Any]] = []
        names = [name for name in _OTHER_ACTIONS if name in present.names]
        if names:
            table = parquet.read(columns=names)
            for name in names:
                column = table[name].drop_null()
                other_actions.extend({name: _json_value(value, column.type)} for value in column.to_pylist())
        if not files:
            return other_actions, None
        parts = [
            _checkpoint_files(parquet, present.field(key).type, key)
            for key in ("add", "remove")
            if key in present.names
        ]
        return other_actions, pa.concat_tables(parts, promote_options="default") if parts else no_files()


def _load(line: bytes) -> dict[str, Any]:
    try:
        action = parse_json(line)
    except ValueError as error:
        raise DeltaError(f"a log line is not JSON: {line[:80]!r}", reason="broken-log") from error
    if not isinstance(action, dict):
        raise DeltaError(f"a log line is not a JSON object: {line[:80]!r}", reason="broken-log")
    return action


def _as_samples(lines: CommitLines, partition_names: Sequence[str]) -> pa.Table:
    """Parse only the fields that the first actions have: every additional field costs time, even if it is absent."""
    kinds: dict[str, dict[str, pa.DataType]] = {}
    for sample in lines.samples:
        for key, action in _load(sample).items():
            if key not in ("add", "remove") or not isinstance(action, dict):
                raise pa.ArrowInvalid(f"unusual action: {key}")
            types = {f.name: f.type for f in FILE_SCHEMA} | _IGNORED
            partition = pa.struct([(name, pa.string()) for name in partition_names])
            types |= {"partitionValues": partition, "tags": pa.null()}
            kinds[key] = {name: types[name] for name in action if name in types}
    return _read_lines(lines, kinds, "error")


def _with_any_fields(lines: CommitLines, partition_names: Sequence[str]) -> pa.Table:
    if re.search(rb'"tags"\s*:\s*\{\s*"', lines.files):
        raise pa.ArrowInvalid("tags are maps of any keys")
    fields = {name: FILE_SCHEMA.field(name).type for name in _NAMES if name not in ("partitionValues", "tags")}
    if partition_names:
        fields["partitionValues"] = pa.struct([(name, pa.string()) for name in partition_names])
    return _read_lines(lines, {"add": fields, "remove": fields}, "ignore")


def _read_lines(lines: CommitLines, kinds: Mapping[str, Mapping[str, pa.DataType]], unexpected: str) -> pa.Table:
    schema = pa.schema([(kind, pa.struct(list(fields.items()))) for kind, fields in kinds.items()])
    return pj.read_json(
        pa.BufferReader(lines.files),
        read_options=pj.ReadOptions(block_size=_BLOCK),
        parse_options=pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior=unexpected),
    )


def _canonical_table(table: pa.Table, partition_names: Sequence[str]) -> pa.Table:
    """Return parsed lines as `FILE_SCHEMA`."""
    batches = []
    for batch in table.to_batches():
        kinds = {kind: batch[kind] for kind in batch.schema.names}
        valid = {kind: actions.is_valid() for kind, actions in kinds.items()}
        is_add = valid["add"] if "add" in valid else from_numpy(np.zeros(len(batch), dtype=bool))
        columns: list[pa.Array] = []
        for name, kind in zip(FILE_SCHEMA.names, FILE_SCHEMA.types, strict=True):
            children = [pc.struct_field(a, [name]) for a in kinds.values() if a.type.get_field_index(name) >= 0]
            if name == "isAdd":
                columns.append(is_add)
            elif name == "partitionValues":
                columns.append(_as_map(children, partition_names, len(batch)))
            elif name == "tags" or not children:
                columns.append(_nulls(kind, len(batch)))
            else:
                columns.append(children[0] if len(children) == 1 else pc.if_else(is_add, *children))
        part = pa.RecordBatch.from_arrays(columns, schema=FILE_SCHEMA)
        has_action = pc.or_(is_add, valid["remove"]) if "remove" in valid else is_add
        batches.append(part if has_action.true_count == len(part) else part.filter(has_action))
    return pa.Table.from_batches(batches, schema=FILE_SCHEMA)


def _nulls(kind: pa.DataType, rows: int) -> pa.Array:
    """Return nulls that share memory, because a large log has many columns that are null."""
    return _shared_nulls(kind).slice(0, rows) if rows <= _NULLS else pa.nulls(rows, kind)


@cache
def _shared_nulls(kind: pa.DataType) -> pa.Array:
    return pa.nulls(_NULLS, kind)


def _as_map(structs: Sequence[pa.StructArray], names: Sequence[str], rows: int) -> pa.Array:
    """Return structs of partition values, each for the rows where it is valid, as a map with all names in every row."""
    width = len(names)
    offsets = from_numpy(np.arange(rows + 1, dtype=np.int32) * width)
    if not width:
        return pa.MapArray.from_arrays(offsets, pa.nulls(0, pa.string()), pa.nulls(0, pa.string()))
    columns = [pc.coalesce(*(pc.struct_field(struct, [name]) for struct in structs)) for name in names if structs]
    values = pa.concat_arrays(columns) if structs else _nulls(pa.string(), rows * width)
    order = np.arange(rows * width).reshape(width, rows).T.ravel()
    keys = from_numpy(np.tile(np.arange(width, dtype=np.int32), rows))
    return pa.MapArray.from_arrays(
        offsets, from_bytes([name.encode() for name in names], pa.string()).take(keys), values.take(from_numpy(order))
    )


def _checkpoint_files(parquet: pq.ParquetFile, struct: pa.StructType, key: str) -> pa.Table:
    inside = {struct.field(i).name for i in range(struct.num_fields)}
    actions = parquet.read(columns=[f"{key}.{name}" for name in _NAMES if name in inside])[key]
    valid = actions.is_valid()
    actions = pa.chunked_array([chunk.drop_null() for chunk in actions.chunks], actions.type)
    rows = len(actions)
    columns: dict[str, Any] = {}
    for field in FILE_SCHEMA:
        if field.name == "isAdd":
            columns[field.name] = pa.repeat(pa.scalar(key == "add"), rows)
        elif field.name in inside:
            # Fields of deletion vectors are matched by name, because writers add fields.
            columns[field.name] = pc.struct_field(actions, [field.name]).cast(field.type)
        else:
            columns[field.name] = pa.nulls(rows, field.type)
    if key == "add" and "stats_parsed" in inside and columns["stats"].null_count:
        parsed = parquet.read(columns=["add.stats_parsed"])["add"].filter(valid)
        columns["stats_parsed"] = pc.struct_field(parsed, ["stats_parsed"])
    return pa.table(columns)


def _json_value(value: Any, kind: pa.DataType) -> Any:
    """Return nested values of Parquet as JSON holds them: maps as dicts, without absent fields."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {k: _json_value(v, kind.field(k).type) for k, v in value.items() if v is not None}
    if pa.types.is_map(kind):
        return {k: v for k, v in value if v is not None}
    return value
