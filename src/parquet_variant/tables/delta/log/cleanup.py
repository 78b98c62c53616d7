"""Removing files of the log that no version within the retention needs (PROTOCOL.md, "Metadata Cleanup").

Leaves data files to `maintenance.vacuum`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import pyarrow as pa

from parquet_variant.errors import VariantError
from parquet_variant.tables.delta.log.file_actions import log_lines, read_checkpoint_part
from parquet_variant.tables.delta.log.segment import LOG, commit_times
from parquet_variant.tables.delta.protocol.actions import now_millis
from parquet_variant.tables.delta.protocol.table_properties import duration_millis
from parquet_variant.tables.storage import Storage, StorageFile

_DAY = 86_400_000
_LOG_RETENTION = "interval 30 days"
_PROTECTED_BEFORE = "delta.requireCheckpointProtectionBeforeVersion"
_CHECKPOINT = re.compile(r"checkpoint\.([0-9a-fA-F-]{36}\.json|([0-9a-fA-F-]{36}\.)?parquet)")
_NAME = re.compile(r"(\d{20})\.(json|crc|checkpoint\..*|(\d{20})\.compacted\.json)")


def clean_log(storage: Storage, configuration: Mapping[str, str]) -> list[str]:
    """Delete files that no version within ``delta.logRetentionDuration`` needs, and return their paths.

    Nothing is deleted if ``delta.enableExpiredLogCleanup`` is ``false``.
    """
    if configuration.get("delta.enableExpiredLogCleanup", "true").lower() == "false":
        return []
    keep = duration_millis(configuration.get("delta.logRetentionDuration", _LOG_RETENTION))
    cutoff = (now_millis() - keep) // _DAY * _DAY
    files: list[tuple[StorageFile, int, str]] = []
    for file in storage.list(LOG):
        match = _NAME.fullmatch(file.path.rpartition("/")[2])
        if match is not None and file.path.count("/") == 1:
            files.append((file, int(match[1]), match[2]))
    expired = [version for version, time in commit_times(storage).items() if time <= cutoff]
    first = _first_needed(storage, files, max(expired, default=-1))
    # Older versions have features that this library may not know: all of them may go at once, or none.
    if first is None or first < _protected(configuration):
        return []
    removed = [
        file.path for file, version, kind in files
        if version < first or (kind.endswith("compacted.json") and version <= first)
    ]  # fmt: skip
    for path in removed:
        storage.delete(path)
    return removed + _clean_sidecars(storage, cutoff=now_millis() // _DAY * _DAY - _DAY)


def _protected(configuration: Mapping[str, str]) -> int:
    """Return the version before which the log may only be removed as a whole (feature ``checkpointProtection``)."""
    text = configuration.get(_PROTECTED_BEFORE, "0")
    return int(text) if text.isdecimal() else 0


def _first_needed(storage: Storage, files: list[tuple[StorageFile, int, str]], last_expired: int) -> int | None:
    """Return the version of the newest expired checkpoint that can be read; None if there is none."""
    points = [(version, file.path) for file, version, kind in files if _CHECKPOINT.fullmatch(kind)]
    for version, path in sorted(points, reverse=True):
        if version <= last_expired and _is_readable(storage, path):
            return version
    return None


def _is_readable(storage: Storage, path: str) -> bool:
    """Return whether a checkpoint can be read: the commits before a damaged one are still needed."""
    try:
        checkpoint_sidecars(storage, path)
    except (OSError, VariantError, pa.ArrowException, ValueError, KeyError, TypeError):
        return False
    return True


def checkpoint_sidecars(storage: Storage, path: str) -> set[str]:
    """Return the names of the sidecars of a checkpoint file."""
    if path.endswith(".json"):
        actions = log_lines(storage.read(path))
    else:
        actions = read_checkpoint_part(storage.open(path), files=False)[0]
    return {action["sidecar"]["path"].rpartition("/")[2] for action in actions if action.get("sidecar")}


def _clean_sidecars(storage: Storage, cutoff: int) -> list[str]:
    sidecars = [file for file in storage.list(f"{LOG}/_sidecars") if file.modified <= cutoff]
    if not sidecars:
        return []
    needed: set[str] = set()
    for file in storage.list(LOG):
        if ".checkpoint." in file.path.rpartition("/")[2] and file.path.count("/") == 1 and file.size:
            needed |= checkpoint_sidecars(storage, file.path)
    removed = [file.path for file in sidecars if file.path.rpartition("/")[2] not in needed]
    for path in removed:
        storage.delete(path)
    return removed
