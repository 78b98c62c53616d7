"""A task's files in partitions: one a partition, more where the task meets very many partitions.

Owns which files are open. Leaves the values to `partition_by`, and a file to `VariantWriter`.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from parquet_variant.delta.data.partitions import partition_directory
from parquet_variant.errors import VariantFileError
from parquet_variant.io.staging import StagedFile, Staging
from parquet_variant.kernels.shredding.json_batch import ShreddedRows
from parquet_variant.parquet.writing.writer import VariantWriter

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
