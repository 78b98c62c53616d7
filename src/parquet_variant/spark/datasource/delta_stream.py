"""Streams of Delta tables: the versions of the log, and the files that each appends.

`table_stream` implements what all table formats share.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql.types import StructType

from parquet_variant.errors import DeltaError
from parquet_variant.spark.datasource.delta_reader import DeltaReader
from parquet_variant.spark.datasource.options import ReadOptions
from parquet_variant.spark.datasource.table_stream import TableStreamReader
from parquet_variant.tables.delta.log.file_actions import iter_adds, log_lines
from parquet_variant.tables.delta.log.segment import commit_path
from parquet_variant.tables.delta.log.snapshot import Snapshot, snapshot
from parquet_variant.tables.delta.protocol.actions import Add
from parquet_variant.tables.delta.reading.read import PLACES


class DeltaStreamReader(TableStreamReader[Snapshot, Add]):
    """``spark.readStream.format("variant")`` on a Delta table."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        super().__init__(options, DeltaReader(options, schema))

    def newest(self) -> Snapshot:
        """See `TableStreamReader.newest`."""
        return snapshot(self.options.sources[0])

    def number(self, current: Snapshot) -> int:
        """Return the version of the log."""
        return current.version

    def at(self, newest: Snapshot, number: int) -> Snapshot:
        """See `TableStreamReader.at`."""
        return newest if newest.version == number else snapshot(self.options.sources[0], version=number)

    def files_of(self, current: Snapshot) -> list[Add]:
        """See `TableStreamReader.files_of`; the order must not depend on checkpoints of the log."""
        return sorted(iter_adds(current.files.select(PLACES)), key=lambda add: add.path)

    def before(self, newest: Snapshot, starting_version: int) -> int:
        """See `TableStreamReader.before`."""
        return starting_version - 1

    def versions(self, newest: Snapshot, start: int, end: int | None = None) -> Sequence[int]:
        """See `TableStreamReader.versions`."""
        return range(start + 1, (newest.version if end is None else end) + 1)

    def appended(self, newest: Snapshot, number: int) -> list[Add]:
        """Return the files whose rows a version appends; compaction appends none.

        Raises `DeltaError` for a version that removes rows, or that the log no longer contains.
        """
        try:
            actions = log_lines(newest.storage.read(commit_path(number)))
        except FileNotFoundError:
            raise DeltaError(
                f"version {number} is no longer in the log: start the stream with a new checkpoint",
                reason="missing-version",
            ) from None
        if any("remove" in action and action["remove"].get("dataChange", True) for action in actions):
            if self.options.skip_changes:
                return []
            raise DeltaError(
                f"version {number} removes rows, and a stream contains only appended rows: set the option "
                f"skipChangeCommits to true, or start a new stream with startingVersion={number + 1}",
                reason="not-append",
            )
        adds = [Add.from_dict({"dataChange": True} | action["add"]) for action in actions if "add" in action]
        return [add for add in adds if add.data_change]
