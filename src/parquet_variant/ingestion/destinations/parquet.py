"""JSON files into Parquet files, in a directory or one: tasks stage files, the driver moves them in, on any engine.

Owns these destinations of an ingest, and a task's files in partitions: one a partition, more where the task meets very
many. Leaves the steps to `job`, the values of partitions to `partition_by`, a file to `VariantWriter` and the moves to
`io.staging`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from parquet_variant.errors import VariantFileError
from parquet_variant.ingestion.request import IngestRequest
from parquet_variant.ingestion.splits import Split
from parquet_variant.ingestion.task import Destination, FileDestination, SplitArrays, TaskPlan, WrittenSplits
from parquet_variant.io.filesystems import filesystem_of
from parquet_variant.io.staging import BAD_RECORDS, StagedFile, Staging, open_staging
from parquet_variant.kernels.shredding.json_batch import ShreddedRows
from parquet_variant.parquet.writing.writer import VariantWriter
from parquet_variant.tables.partitions import partition_directory

# A file that is open holds a row group in memory; beyond this many the one that was used longest ago is closed.
MOST_OPEN_FILES = 100


class PartitionedFiles:
    """The files that a task attempt stages, by partition; a context that takes back what it wrote if it fails.

    `task` is the number that names the files, `options` are those of `VariantWriter`.
    """

    def __init__(self, staging: Staging, directory: str, task: int, **options: Any) -> None:
        self._staging, self._directory, self._task, self._options = staging, directory, task, options
        self._open: dict[str, VariantWriter] = {}
        self._stack = ExitStack()
        self.files: list[StagedFile] = []
        self.rows = self.bytes = 0

    def write(self, values: Mapping[str, str | None], columns: Mapping[str, Any]) -> None:
        """Write rows of one partition; its directory is the only place that says which."""
        self._writer(values).write_batch(columns)

    def write_rows(self, name: str, rows: ShreddedRows) -> None:
        """Write rows that are in no partition, of one Variant column."""
        self._writer({}).write_rows(name, rows)

    def _writer(self, values: Mapping[str, str | None]) -> VariantWriter:
        folder = partition_directory(values)
        if values and not folder:
            longest = max((text or "" for text in values.values()), key=len)
            raise VariantFileError(
                f"the partition value {longest[:60] + '…'!r} is too long for the name of a directory: partition by "
                "another path, or write a Delta table",
                reason="bad-partition-value",
            )
        writer = self._open.pop(folder, None)
        if writer is None:
            if len(self._open) >= MOST_OPEN_FILES:
                self._close(next(iter(self._open)))
            self._staging.check_running()  # the writer would make the directory again
            name = self._staging.file_name(self._task, len(self.files))
            self.files.append(StagedFile(self._directory, f"{folder}{name}"))
            writer = self._stack.enter_context(VariantWriter(self.files[-1].path, **self._options))
        self._open[folder] = writer  # the last in the row: used last
        return writer

    def close(self) -> None:
        """Finish all files."""
        for folder in list(self._open):
            self._close(folder)

    def _close(self, folder: str) -> None:
        info = self._open.pop(folder).close()
        self.rows += info.rows
        self.bytes += info.bytes

    def __enter__(self) -> PartitionedFiles:
        self._stack.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        try:
            if error[0] is None:
                self.close()
        finally:
            self._stack.__exit__(*error)


class ParquetFileDestination(FileDestination):
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


def open_parquet(request: IngestRequest) -> Destination | None:
    """Look at the directory or file; None if it holds data and is to be left alone then.

    Raises `VariantFileError` as `open_staging` or `FileDestination.open`.
    """
    if request.one_file:
        return ParquetFileDestination.open(request, write_task)
    staging = open_staging(request.dest, request.mode)
    return None if staging is None else Destination(request, staging, write_task)


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
