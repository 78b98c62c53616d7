"""A Delta table as a stream: the rows that are there, then the rows that each version appends.

Owns the offsets (versions) and what a micro-batch holds. Leaves the rows of a file to `delta_reader`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from parquet_variant.delta.log.segment import commit_path
from parquet_variant.delta.log.snapshot import Snapshot, snapshot
from parquet_variant.errors import DeltaError
from parquet_variant.spark.datasource.delta_reader import DeltaReader
from parquet_variant.spark.datasource.options import ReadOptions

# The offset before everything: its batch is a whole version, not the versions one by one.
_NOTHING = -1


class DeltaStreamReader(DataSourceStreamReader):
    """``spark.readStream.format("variant")`` on a Delta table.

    The first batch is the table as it is, or starts at ``startingVersion``; then every appended row comes once. A
    version that removes rows ends the query with an error.
    """

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self.options = options
        self.reader = DeltaReader(options, schema)

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        """Before everything, or before the version that the user named."""
        first = self.options.starting_version
        return {"version": _NOTHING if first is None else first - 1}

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:  # noqa: N802 - Spark's name
        """The newest version."""
        return {"version": max(self._snapshot().version, start["version"])}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """The files of a micro-batch; the same whenever it is asked for."""
        if start["version"] >= end["version"]:
            return []
        current = self._snapshot(end["version"])
        if start["version"] == _NOTHING:
            return self.reader.partitions_of(current)
        added = [
            file for version in range(start["version"] + 1, end["version"] + 1) for file in _appended(current, version)
        ]
        return self.reader.partitions_of(current, added)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a partition; runs in a task."""
        return self.reader.read(partition)

    def _snapshot(self, version: int | None = None) -> Snapshot:
        return snapshot(self.options.sources[0], version=version)


def _appended(current: Snapshot, version: int) -> list[Mapping[str, Any]]:
    """The files that a version adds; compaction adds no rows."""
    try:
        lines = current.storage.read(commit_path(version)).splitlines()
    except FileNotFoundError:
        raise DeltaError(
            f"version {version} is no longer in the log: start the stream with a new checkpoint",
            reason="missing-version",
        ) from None
    actions = [json.loads(line) for line in lines if line.strip()]
    for action in actions:
        if "remove" in action and action["remove"].get("dataChange", True):
            raise DeltaError(
                f"version {version} removes rows, which a stream of appended rows cannot tell: start it again with "
                f"startingVersion={version + 1}",
                reason="not-append",
            )
    return [
        {
            "path": add["path"],
            "partitionValues": add.get("partitionValues") or {},
            "deletionVector": add.get("deletionVector"),
            "size": add["size"],
        }
        for add in (action["add"] for action in actions if "add" in action)
        if add.get("dataChange", True)
    ]
