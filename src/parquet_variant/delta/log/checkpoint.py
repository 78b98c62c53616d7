"""Writing a checkpoint: the whole state of a version in Parquet files (PROTOCOL.md, "Checkpoints", V1 and V2).

Owns the rows and columns of the file, `stats_parsed` with variants in Parquet form among them, `_last_checkpoint`, and
which files of the log a checkpoint lets go ("Metadata Cleanup"). Leaves reading checkpoints to `file_actions`, and data
files to vacuum.
"""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa

from parquet_variant import arrow_compute as pc
from parquet_variant.array.parts import one_chunk
from parquet_variant.delta.data.file_partitions import partition_column
from parquet_variant.delta.log.file_actions import FILE_SCHEMA, read_checkpoint_part
from parquet_variant.delta.log.segment import LAST_CHECKPOINT, LOG, commit_times
from parquet_variant.delta.log.snapshot import Snapshot, snapshot
from parquet_variant.delta.protocol.actions import Metadata, Txn, now_millis
from parquet_variant.delta.protocol.features import check_writable, supports
from parquet_variant.delta.protocol.table_properties import duration_millis
from parquet_variant.delta.statistics.stats_table import StatsTable, read_stats, stats_type, with_json_stats
from parquet_variant.delta.statistics.variant_stats import decode_bounds_array
from parquet_variant.encoding.cast.targets import VARIANT_STORAGE
from parquet_variant.errors import VariantError
from parquet_variant.parquet.writing.writer import VariantWriter
from parquet_variant.tables.path_bounds import parsed_bounds
from parquet_variant.tables.schema import StructType
from parquet_variant.tables.storage import FileInfo, Storage

_STRINGS = pa.map_(pa.string(), pa.string())
_LIST = pa.list_(pa.string())
_TYPES = {
    "protocol": pa.struct(
        [
            ("minReaderVersion", pa.int32()),
            ("minWriterVersion", pa.int32()),
            ("readerFeatures", _LIST),
            ("writerFeatures", _LIST),
        ]
    ),
    "metaData": pa.struct(
        [
            ("id", pa.string()),
            ("name", pa.string()),
            ("description", pa.string()),
            ("format", pa.struct([("provider", pa.string()), ("options", _STRINGS)])),
            ("schemaString", pa.string()),
            ("partitionColumns", _LIST),
            ("configuration", _STRINGS),
            ("createdTime", pa.int64()),
        ]
    ),
    "txn": pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())]),
    "checkpointMetadata": pa.struct([("version", pa.int64()), ("tags", _STRINGS)]),
    "sidecar": pa.struct(
        [("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64()), ("tags", _STRINGS)]
    ),
    "domainMetadata": pa.struct([("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())]),
}
_REMOVE_NAMES = (
    "path", "deletionTimestamp", "dataChange", "partitionValues", "size", "deletionVector", "baseRowId",
    "defaultRowCommitVersion",
)  # fmt: skip
_ADD_NAMES = tuple(n for n in FILE_SCHEMA.names if n not in ("isAdd", "deletionTimestamp"))
_DEFAULT_INTERVAL = 100
DEFAULT_RETENTION = "interval 1 week"


def checkpoint(
    table: str | os.PathLike[str] | Snapshot,
    *,
    stats_parsed: bool | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> str:
    """Write a checkpoint of the newest version.

    Parameters
    ----------
    table
        Path, URL or snapshot.
    stats_parsed
        Write statistics as typed columns too, those of variants as Variant columns with the Parquet annotation; by
        default as ``delta.checkpoint.writeStatsAsStruct`` says. Statistics as JSON are written unless
        ``delta.checkpoint.writeStatsAsJson`` is ``false``.
    storage_options
        Configuration of the object store.

    Returns
    -------
    str
        The file, relative to the table.

    Raises
    ------
    DeltaError
        As `snapshot`; ``"unsupported-feature"`` for a table that cannot be written here.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.delta.write(folder, {"v": pv.parse_json(['{"n": 1}'])})
    ...     pv.delta.checkpoint(folder)
    '_delta_log/00000000000000000000.checkpoint.parquet'
    """
    current = snapshot(table, storage_options=storage_options)
    check_writable(current.protocol, current.storage.uri)
    configuration = current.metadata.configuration
    if stats_parsed is None:
        stats_parsed = configuration.get("delta.checkpoint.writeStatsAsStruct", "false").lower() == "true"
    as_json = configuration.get("delta.checkpoint.writeStatsAsJson", "true").lower() != "false"
    # Deletion vectors need numRecords, in one form or the other.
    stats_parsed = stats_parsed or (not as_json and current.files["deletionVector"].null_count < current.num_files)
    if configuration.get("delta.checkpointPolicy") == "v2" and supports(current.protocol, "v2Checkpoint"):
        return _v2(current, as_json=as_json, stats_parsed=stats_parsed)
    rows = pa.concat_tables(
        [*_others(current), *_file_actions(current, as_json=as_json, stats_parsed=stats_parsed)],
        promote_options="default",
    )
    path = f"{LOG}/{current.version:020}.checkpoint.parquet"
    size = _put(current, path, rows)
    _hint(current, len(rows), size)
    return path


def _v2(current: Snapshot, *, as_json: bool, stats_parsed: bool) -> str:
    """A checkpoint of the V2 spec: files in a sidecar, all else in the checkpoint (PROTOCOL.md, "V2 Spec")."""
    files = _file_actions(current, as_json=as_json, stats_parsed=stats_parsed)
    table = pa.concat_tables(files, promote_options="default")
    name = f"{uuid.uuid4()}.parquet"
    size = _put(current, f"{LOG}/_sidecars/{name}", table)
    sidecar = {"path": name, "sizeInBytes": size, "modificationTime": now_millis(), "tags": None}
    rows = pa.concat_tables(
        [
            _actions("checkpointMetadata", [{"version": current.version, "tags": None}]),
            *_others(current),
            _actions("sidecar", [sidecar]),
        ],
        promote_options="default",
    )
    path = f"{LOG}/{current.version:020}.checkpoint.{uuid.uuid4()}.parquet"
    _hint(current, len(rows) + len(table), size + _put(current, path, rows))
    return path


def _put(current: Snapshot, path: str, rows: pa.Table) -> int:
    with current.storage.create(path) as local:
        with VariantWriter(local, compression="snappy", mode="overwrite") as writer:
            writer.write_batch(rows)
        return int(local.stat().st_size)


def _hint(current: Snapshot, rows: int, size: int) -> None:
    hint = {"version": current.version, "size": rows, "sizeInBytes": size, "numOfAddFiles": current.num_files}
    current.storage.put(LAST_CHECKPOINT, json.dumps(hint).encode())


def checkpoint_if_due(current: Snapshot, version: int) -> None:
    """Write a checkpoint if the version that was just committed is due for one (``delta.checkpointInterval``).

    A checkpoint only speeds up reading: what goes wrong here must not fail the commit, which stands.
    """
    try:
        interval = int(current.metadata.configuration.get("delta.checkpointInterval", _DEFAULT_INTERVAL))
    except ValueError:
        interval = _DEFAULT_INTERVAL
    if interval > 0 and version > 0 and version % interval == 0:
        with suppress(OSError, VariantError, pa.ArrowException):
            checkpoint(snapshot(current.storage.uri, version=version, storage_options=current.storage.options))
            clean_log(current.storage, current.metadata.configuration)


def _others(current: Snapshot) -> list[pa.Table]:
    return [
        _actions("protocol", [current.protocol.to_dict()]),
        _actions("metaData", [_metadata(current.metadata)]),
        _actions("txn", [txn.to_dict() for txn in _recent_txns(current)]),
        _actions("domainMetadata", [domain.to_dict() for domain in current.domains.values()]),
    ]


def _recent_txns(current: Snapshot) -> list[Txn]:
    """Application versions, without those that ``delta.setTransactionRetentionDuration`` lets go."""
    text = current.metadata.configuration.get("delta.setTransactionRetentionDuration")
    if text is None:
        return list(current.txns.values())
    since = now_millis() - duration_millis(text)
    return [txn for txn in current.txns.values() if txn.last_updated is None or txn.last_updated >= since]


def _file_actions(current: Snapshot, *, as_json: bool, stats_parsed: bool) -> list[pa.Table]:
    return [
        _files("add", current.files, _add_columns(current, as_json=as_json, stats_parsed=stats_parsed)),
        _files("remove", *_removes(current)),
    ]


def _metadata(metadata: Metadata) -> dict[str, Any]:
    action = metadata.to_dict()
    action["configuration"] = list(metadata.configuration.items())
    options = metadata.format.get("options")
    action["format"] = {
        "provider": str(metadata.format.get("provider", "parquet")),
        "options": [(key, str(value)) for key, value in options.items()] if isinstance(options, dict) else [],
    }
    return action


def _actions(name: str, rows: list[dict[str, Any]]) -> pa.Table:
    return pa.table({name: pa.array(rows, _TYPES[name])})


def _files(name: str, files: pa.Table, columns: dict[str, Any]) -> pa.Table:
    arrays = [one_chunk(column) for column in columns.values()]
    fields = [pa.field(key, array.type) for key, array in zip(columns, arrays, strict=True)]
    struct = pa.StructArray.from_arrays(arrays, fields=fields) if len(files) else pa.nulls(0, pa.struct(fields))
    return pa.table({name: struct})


def _add_columns(current: Snapshot, *, as_json: bool, stats_parsed: bool) -> dict[str, Any]:
    files = current.files
    columns = {name: files[name] for name in _ADD_NAMES if name != "stats"}
    # A checkpoint changes nothing by itself: streams that read it must not take its files for new ones.
    columns["dataChange"] = pa.array(np.zeros(len(files), dtype=bool))
    if as_json:
        columns["stats"] = with_json_stats(files, current.schema)["stats"].cast(pa.string())
    if stats_parsed:
        columns["stats_parsed"] = parsed_stats(files, current.schema)
        if current.partition_columns:
            columns["partitionValues_parsed"] = _parsed_partitions(current)
    return columns


def _removes(current: Snapshot) -> tuple[pa.Table, dict[str, Any]]:
    """Tombstones that vacuum may still need."""
    retention = duration_millis(
        current.metadata.configuration.get("delta.deletedFileRetentionDuration", DEFAULT_RETENTION)
    )
    stamps = pc.fill_null(current.tombstones["deletionTimestamp"], 0)
    kept = current.tombstones.filter(pc.greater(stamps, pa.scalar(now_millis() - retention)))
    return kept, {name: kept[name] for name in _REMOVE_NAMES}


def parsed_stats(files: pa.Table, schema: StructType) -> pa.StructArray:
    """The statistics of files in their original types; variants as Variant columns (RFC, "In Parquet")."""
    stats = read_stats(files, schema)
    kind = stats_type(schema, variants=VARIANT_STORAGE)
    return _typed(stats, kind, ())


def _typed(stats: StatsTable, kind: pa.StructType, place: tuple[str, ...]) -> pa.Array:
    children, fields = [], []
    for f in kind:
        here = (*place, f.name)
        if pa.types.is_struct(f.type) and f.type != VARIANT_STORAGE:
            if not f.type.num_fields:
                continue
            children.append(_typed(stats, f.type, here))
        elif f.type == VARIANT_STORAGE:
            children.append(_variant_bounds(stats, here))
        else:
            children.append(one_chunk(stats.get(here[0], here[1:])))
        fields.append(pa.field(f.name, children[-1].type, metadata=f.metadata))
    return pa.StructArray.from_arrays(children, fields=fields)


def _variant_bounds(stats: StatsTable, place: tuple[str, ...]) -> pa.Array:
    bounds = decode_bounds_array(one_chunk(stats.get(place[0], place[1:])))
    other = stats.parsed_variant(place[0], place[1:])
    if other is not None:
        bounds = pc.if_else(bounds.is_null(), parsed_bounds(other), bounds)
    pieces = [pc.fill_null(pc.struct_field(bounds, name).cast(pa.binary()), b"") for name in ("metadata", "value")]
    return pa.StructArray.from_arrays(pieces, fields=list(VARIANT_STORAGE), mask=bounds.is_null())


def _parsed_partitions(current: Snapshot) -> pa.Array:
    columns = {f.physical_name: partition_column(current.files, f) for f in current.partition_fields}
    return pa.StructArray.from_arrays(list(columns.values()), list(columns))


_DAY = 86_400_000
_LOG_RETENTION = "interval 30 days"
_POINT = re.compile(r"checkpoint\.([0-9a-fA-F-]{36}\.json|([0-9a-fA-F-]{36}\.)?parquet)")
_NAME = re.compile(r"(\d{20})\.(json|crc|checkpoint\..*|(\d{20})\.compacted\.json)")


def clean_log(storage: Storage, configuration: Mapping[str, str]) -> list[str]:
    """Delete what no version within ``delta.logRetentionDuration`` needs, if ``delta.enableExpiredLogCleanup`` lets it.

    Returns the files deleted.
    """
    if configuration.get("delta.enableExpiredLogCleanup", "true").lower() == "false":
        return []
    keep = duration_millis(configuration.get("delta.logRetentionDuration", _LOG_RETENTION))
    cutoff = (now_millis() - keep) // _DAY * _DAY
    files: list[tuple[FileInfo, int, str]] = []
    for file in storage.list(LOG):
        match = _NAME.fullmatch(file.path.rpartition("/")[2])
        if match is not None and file.path.count("/") == 1:
            files.append((file, int(match[1]), match[2]))
    old = [version for version, time in commit_times(storage).items() if time <= cutoff]
    points = [v for _, v, kind in files if _POINT.fullmatch(kind)]
    usable = [version for version in points if old and version <= max(old)]
    if not usable:
        return []
    first = max(usable)
    going = [
        file.path for file, version, kind in files
        if version < first or (kind.endswith("compacted.json") and version <= first)
    ]  # fmt: skip
    for path in going:
        storage.delete(path)
    return going + _clean_sidecars(storage, cutoff=now_millis() // _DAY * _DAY - _DAY)


def _clean_sidecars(storage: Storage, cutoff: int) -> list[str]:
    sidecars = [file for file in storage.list(f"{LOG}/_sidecars") if file.modified <= cutoff]
    if not sidecars:
        return []
    needed: set[str] = set()
    for file in storage.list(LOG):
        name = file.path.rpartition("/")[2]
        if ".checkpoint." not in name or file.path.count("/") != 1:
            continue
        if name.endswith(".json"):
            actions = [json.loads(line) for line in storage.read(file.path).split(b"\n") if line.strip()]
        else:
            actions = read_checkpoint_part(storage.open(file.path), files=False)[0]
        needed |= {each["sidecar"]["path"].rpartition("/")[2] for each in actions if each.get("sidecar")}
    going = [file.path for file in sidecars if file.path.rpartition("/")[2] not in needed]
    for path in going:
        storage.delete(path)
    return going
