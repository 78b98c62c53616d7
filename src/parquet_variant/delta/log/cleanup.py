"""Cleaning up a log: what is older than the table keeps it (PROTOCOL.md, "Metadata Cleanup").

Owns which files of the log may go. Leaves data files to vacuum.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from parquet_variant.delta.log.file_actions import read_checkpoint_part
from parquet_variant.delta.log.segment import LOG, commit_times
from parquet_variant.delta.protocol.actions import now_millis
from parquet_variant.delta.protocol.table_properties import duration_millis
from parquet_variant.delta.storage import FileInfo, Storage

_DAY = 86_400_000
_DEFAULT_RETENTION = "interval 30 days"
_NAME = re.compile(r"(\d{20})\.(json|crc|checkpoint\..*|(\d{20})\.compacted\.json)")


def clean_log(storage: Storage, configuration: Mapping[str, str]) -> list[str]:
    """Delete what no version within ``delta.logRetentionDuration`` needs, if ``delta.enableExpiredLogCleanup`` lets it.

    Returns the files deleted.
    """
    if configuration.get("delta.enableExpiredLogCleanup", "true").lower() == "false":
        return []
    keep = duration_millis(configuration.get("delta.logRetentionDuration", _DEFAULT_RETENTION))
    cutoff = (now_millis() - keep) // _DAY * _DAY
    files: list[tuple[FileInfo, int, str]] = []
    for file in storage.list(LOG):
        match = _NAME.fullmatch(file.path.rpartition("/")[2])
        if match is not None and file.path.count("/") == 1:
            files.append((file, int(match[1]), match[2]))
    old = [version for version, time in commit_times(storage).items() if time <= cutoff]
    points = [v for _, v, kind in files if kind.startswith("checkpoint.parquet") or _is_v2(kind)]
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


def _is_v2(kind: str) -> bool:
    return bool(re.fullmatch(r"checkpoint\.[0-9a-fA-F-]{36}\.(json|parquet)", kind))


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
