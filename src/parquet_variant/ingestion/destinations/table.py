"""A table as the destination of an ingest: tasks write data files, and the driver commits them once.

Owns what is the same for all table formats. Leaves new tables, write plans and commits to the modules of the formats.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa

from parquet_variant.arrays.capsules import EXTENSION_METADATA
from parquet_variant.errors import TableError, VariantError
from parquet_variant.ingestion.destination import Destination, Work
from parquet_variant.ingestion.request import IngestRequest
from parquet_variant.ingestion.sources.splits import Split
from parquet_variant.ingestion.task import SplitRows, TaskPlan, WrittenSplits
from parquet_variant.io.staging import Staging
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.tables.commits import is_uncommitted
from parquet_variant.tables.write_plan import TableWritePlan
from parquet_variant.types.targets import VARIANT_STORAGE


class TableDestination(Destination):
    """A table that an ingest appends to or overwrites. A new table is planned when the tasks start.

    Data files are written to their final place, because no reader sees them before the commit. Only quarantined lines
    are staged, below the table's location.
    """

    def __init__(self, request: IngestRequest, location: str) -> None:
        super().__init__(request, Staging.into(location), _write)
        self._plan: TableWritePlan[Any] | None = None
        self._is_new = False
        # False if a commit may name the files of this job, so that they must not be removed.
        self._is_uncommitted = True

    @property
    def accepts_no_rows(self) -> bool:
        """Whether the table exists, or its schema is known."""
        return not self._is_new or self._request.schema is not None

    @abstractmethod
    def _plan_table(self, columns: pa.Schema) -> None:
        """Plan the table that the commit will create."""

    @abstractmethod
    def _write_plan(self, schema: ShreddingSchema, **options: Any) -> TableWritePlan[Any]:
        """Return the plan by which tasks write files."""

    @abstractmethod
    def _commit_files(self, files: list[Any]) -> list[str]:
        """Commit the files of all tasks, and return their paths relative to the table."""

    def work(self, plan: TaskPlan) -> Work:
        """Plan the table, and return the function that every task runs."""
        if self._is_new:
            variant = pa.field(self._request.column, VARIANT_STORAGE, metadata=EXTENSION_METADATA)
            fields = [variant if field.name == variant.name else field for field in plan.fields] or [variant]
            self._plan_table(pa.schema([*fields, *self._request.partition_by.fields]))
        self._staging = self._staging.begin()
        write_plan = self._write_plan(plan.schema, threads=plan.threads, encodings=plan.encodings)
        self._plan = replace(write_plan, job=f"{self._staging.job}-")
        return partial(_write, self._plan, self._request, plan, self._staging)

    def commit(self, written: Sequence[WrittenSplits]) -> list[str]:
        """Commit the files of all tasks as one version of the table."""
        bad = [file for part in written for file in part.files]
        try:
            paths = self._commit_files([file for part in written for file in part.adds])
        except BaseException as error:
            self._is_uncommitted = isinstance(error, VariantError) and is_uncommitted(error)
            raise
        self._plan = None
        try:
            if bad:
                self._staging.commit(bad, marker=False)
            else:
                self._staging.abort()
        except VariantError as error:  # the rows are committed
            warnings.warn(
                f"the rows are committed to {self.dest}, but the quarantined lines could not be written there: {error}",
                UserWarning,
                stacklevel=2,
            )
        return paths

    def abort(self) -> None:
        """Remove the files that this job wrote, unless a commit may name them; they are then left for maintenance."""
        with suppress(OSError, TableError):
            if self._plan is not None and self._is_uncommitted:
                self._plan.remove_files()
        super().abort()


def _write(
    write_plan: TableWritePlan[Any],
    request: IngestRequest,
    task_plan: TaskPlan,
    staging: Staging,
    task: int,
    attempt: int,
    splits: list[Split],
) -> WrittenSplits:
    """Write the data files of a task."""
    split_rows = SplitRows(splits, task_plan, request.text, staging, task, attempt)
    row_count = 0

    def columns() -> Iterator[dict[str, Any]]:
        nonlocal row_count
        for rows in split_rows:
            row_count += len(rows)
            yield {**rows.columns(request.column), **request.partition_by.values(rows.variants)}

    files = write_plan.write_files(columns())
    return split_rows.written((), row_count, sum(file.size for file in files), tuple(files))
