"""JSON files into Parquet files, in a directory or one: tasks stage files, the driver moves them in, on any engine.

Owns these destinations of an ingest. Leaves the steps to `job`, files to `PartitionedFiles` and the moves
to `io.staging`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from parquet_variant.errors import VariantFileError
from parquet_variant.ingest.destination import Destination, FileDestination, Work
from parquet_variant.ingest.partitioned_files import PartitionedFiles
from parquet_variant.ingest.request import IngestRequest
from parquet_variant.ingest.splits import Split
from parquet_variant.ingest.task import SplitArrays, TaskPlan, WrittenSplits
from parquet_variant.io.filesystems import filesystem_of
from parquet_variant.io.staging import BAD_RECORDS, Staging, open_staging
from parquet_variant.kernels.shredding.json_batch import ShreddedRows


class ParquetDestination(Destination):
    """A directory of Parquet files, one a task and partition."""

    def work(self, plan: TaskPlan) -> Work:
        """What every task does."""
        self._staging = self._staging.begin()
        return partial(write_task, self._request, plan, self._staging)


class ParquetFileDestination(FileDestination, ParquetDestination):
    """One Parquet file, and beside it one of bad lines if there are any."""

    @property
    def bad_records_path(self) -> str:
        """The file of bad lines."""
        return f"{self.dest}.bad_records.ndjson"

    def commit(self, written: Sequence[WrittenSplits]) -> list[str]:
        """Move the file to its place."""
        staged = [file for part in written for file in part.files]
        bad = [file for file in staged if file.name.startswith(f"{BAD_RECORDS}/")]
        data = [file for file in staged if file not in bad]
        if not data:
            raise VariantFileError(f"no line is JSON: there is nothing to write into {self.dest}", reason="no-rows")
        for file, target in (*((each, self.bad_records_path) for each in bad), (data[0], self.dest)):
            filesystem, path = filesystem_of(file.path)
            filesystem.move(path, filesystem_of(target)[1])
        self._staging.discard()
        return [self.dest.rpartition("/")[2]]


def open_parquet(request: IngestRequest) -> ParquetDestination | None:
    """Look at the directory; None if it holds data and is to be left alone then.

    Raises `VariantFileError` as `open_staging`.
    """
    staging = open_staging(request.dest, request.mode)
    return None if staging is None else ParquetDestination(request, staging)


def write_task(
    request: IngestRequest, plan: TaskPlan, staging: Staging, task: int, attempt: int, splits: list[Split]
) -> WrittenSplits:
    """Stage the files of a task."""
    arrays = SplitArrays(splits, plan, request.text, staging, task, attempt)
    options = {**request.write, "threads": plan.threads, "encodings": plan.encodings}
    with PartitionedFiles(staging, arrays.directory, task, **options) as files:
        for rows in arrays:
            if isinstance(rows.shredded, ShreddedRows) and rows.beside is None and not request.partition_by:
                files.write_rows(request.column, rows.shredded)
                continue
            columns = rows.columns(request.column)
            for values, part in request.partition_by.split(rows.variants, columns):
                files.write(values, part)
        files.close()
    return arrays.written(tuple(files.files), files.rows, files.bytes)
