"""Delta tables as the source of the data source: files of one version, pruned by the log; or a stream of what is added.

Owns the partitions and rows of a table's read, a stream's offsets (versions) and micro-batches: first the rows that are
there, then those that each version appends. Leaves pruning and deletion vectors to `delta`, and Spark's types to
`batch_reader`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from parquet_variant.delta.log.file_actions import log_lines
from parquet_variant.delta.log.segment import commit_path
from parquet_variant.delta.log.snapshot import Snapshot, snapshot
from parquet_variant.delta.protocol.actions import Add
from parquet_variant.delta.protocol.schema import schema_json
from parquet_variant.delta.reading.read import read_file, selected_schema
from parquet_variant.delta.reading.scan import DeltaScan, DeltaScanTask, scan
from parquet_variant.errors import DeltaError
from parquet_variant.spark.datasource.batch_reader import BatchReader, spark_batches
from parquet_variant.spark.datasource.options import ReadOptions
from parquet_variant.spark.task_errors import one_line


@dataclass
class DeltaPartition(InputPartition):
    """What one Spark task reads: some files of the version that the query began with."""

    scan: DeltaScan
    task: DeltaScanTask


def table_schema(options: ReadOptions) -> StructType:
    """The table's columns."""
    # Delta's and Spark's JSON forms of a schema are the same.
    return StructType.fromJson(json.loads(schema_json(_snapshot(options).schema)))


class DeltaReader(BatchReader):
    """``spark.read.format("variant")`` on a Delta table."""

    @one_line()
    def partitions(self) -> list[InputPartition]:
        """Files that may match."""
        return self.partitions_of(_snapshot(self.options))

    def partitions_of(self, current: Snapshot, files: Sequence[Add] | None = None) -> list[InputPartition]:
        """Files of a version: those that may match, or the given ones."""
        types = self._types()
        columns: dict[str, Any]
        if self.options.paths is not None:
            columns, column = self._selection()
        else:
            # Whole rows are read file by file; the scan only lists them.
            plain = [name for name, kind in types.items() if kind is not None and not pa.types.is_nested(kind)]
            columns, column = {name: name for name in plain}, None
            if not columns:
                columns, column = {"v": ("$", None)}, next(iter(types))
        query = scan(current, columns, self.options.where, column=column, zone=self.options.zone)
        size = self.options.partition_bytes
        if files is None:
            return [DeltaPartition(query, task) for task in query.tasks(size)]
        return [DeltaPartition(query, DeltaScanTask((file,), file.size)) for file in files]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a partition; runs in a task."""
        if not isinstance(partition, DeltaPartition):
            return  # Spark's stand-in for "no partitions"
        target = to_arrow_schema(self.schema, timezone="UTC")
        with one_line():
            for table in self._rows(partition):
                yield from spark_batches(table, target)

    def _rows(self, partition: DeltaPartition) -> Iterator[pa.Table]:
        if self.options.paths is not None:
            yield from partition.scan.read(partition.task)
            return
        current = partition.scan.current
        schema = selected_schema(current, self.schema.fieldNames())
        for file in partition.task.files:
            yield read_file(current, schema, file)


def _snapshot(options: ReadOptions) -> Snapshot:
    return snapshot(options.sources[0], version=options.version, timestamp=options.timestamp)


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


def _appended(current: Snapshot, version: int) -> list[Add]:
    """The files that a version adds; compaction adds no rows."""
    try:
        actions = log_lines(current.storage.read(commit_path(version)))
    except FileNotFoundError:
        raise DeltaError(
            f"version {version} is no longer in the log: start the stream with a new checkpoint",
            reason="missing-version",
        ) from None
    for action in actions:
        if "remove" in action and action["remove"].get("dataChange", True):
            raise DeltaError(
                f"version {version} removes rows, which a stream of appended rows cannot tell: start it again with "
                f"startingVersion={version + 1}",
                reason="not-append",
            )
    adds = [Add.from_dict({"dataChange": True} | action["add"]) for action in actions if "add" in action]
    return [add for add in adds if add.data_change]
