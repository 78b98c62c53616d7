"""The work of one task of an ingest on any engine: two passes over its splits, from text to a profile and to rows.

`batches` reads and parses the text, the engines run the tasks, and `destination` and the modules in `destinations`
write and commit the files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, fields, replace
from functools import partial, reduce
from typing import Any, TypeAlias

import pyarrow as pa

from parquet_variant.arrays.variant_array import VariantArray, trusted_array
from parquet_variant.files.parquet.writing.encodings import ColumnEncodings
from parquet_variant.inference.path_table import ProfiledData
from parquet_variant.inference.profile import Profile
from parquet_variant.ingestion.batches import chunk_results, steps
from parquet_variant.ingestion.option_paths import OtherTypes, SeenPaths
from parquet_variant.ingestion.request import IngestRequest, TextOptions
from parquet_variant.ingestion.result import ValueCounts
from parquet_variant.ingestion.sources.splits import Split
from parquet_variant.io.filesystems import filesystem_of, write_errors
from parquet_variant.io.staging import BAD_RECORDS, StagedFile, Staging
from parquet_variant.kernels.shredding.json_batch import ShreddedRows, shredded_rows
from parquet_variant.kernels.tapes.tape import Tape
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.support.fork_safety import cached_property
from parquet_variant.types.path import VariantPath

# Variants as the shredding kernel returns them, or combined into an array.
Shredded: TypeAlias = ShreddedRows | VariantArray


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """The plan by which all tasks of a job write their rows.

    `encodings`: those of the columns of Parquet files; None if every task chooses them.
    `fields`: all columns of the rows, if the JSON is a column of a table.
    `paths`: paths that options name, which the task looks for in its rows.
    `counts_other_types`: whether values are counted that do not have the type of the schema, which is that of a table.
    """

    request: IngestRequest
    schema: ShreddingSchema
    threads: int = 1
    encodings: ColumnEncodings | None = None
    fields: tuple[pa.Field, ...] = ()
    paths: frozenset[VariantPath] = frozenset()
    counts_other_types: bool = False


@dataclass(frozen=True, eq=False)
class TaskRows:
    """Rows that were parsed and shredded, and the rows of the table that contains the JSON column, if there is one."""

    shredded: Shredded
    table: pa.Table | None = None
    json_column: str | None = None

    def __len__(self) -> int:
        return len(self.shredded)

    @cached_property
    def variants(self) -> VariantArray:
        """The Variants as an array. `shredded` must not be used afterwards."""
        return _array(self.shredded)

    def columns(self, name: str) -> dict[str, Any]:
        """Return the columns to write, with the Variants under `name` in the place of the JSON column."""
        if self.table is None:
            return {name: self.variants}
        columns = dict(zip(self.table.column_names, self.table.columns, strict=True))
        columns[str(self.json_column)] = self.variants
        return {name if key == self.json_column else key: column for key, column in columns.items()}


@dataclass(frozen=True, slots=True)
class WrittenSplits:
    """The result of the second pass: files that are written and not committed. The results of tasks can be added.

    `files`: the staged data files, then the file of bad records if there are any.
    `adds`: data files in their final place in a table, for its log.
    `text_bytes`: size of the decompressed text that was read; `file_bytes`: size of the data files.
    `paths`, `other_types`: paths of options that no row has, and counts of values without the type of the table.
    """

    files: tuple[StagedFile, ...] = ()
    adds: tuple[Any, ...] = ()
    rows: int = 0
    bad: int = 0
    text_bytes: int = 0
    file_bytes: int = 0
    counts: ValueCounts = field(default_factory=ValueCounts)
    paths: SeenPaths = field(default_factory=SeenPaths)
    other_types: OtherTypes = field(default_factory=OtherTypes)

    def __add__(self, other: WrittenSplits) -> WrittenSplits:
        return WrittenSplits(*(getattr(self, part.name) + getattr(other, part.name) for part in fields(self)))


def profile_splits(splits: Sequence[Split], text: TextOptions, threads: int = 1) -> Profile:
    """Run the first pass: profile the paths of the valid rows. Lines that will be quarantined are skipped.

    Raises `JsonError` for an invalid line if ``on_error`` is ``"fail"``, with its file and line; `VariantFileError` for
    a file that cannot be read.
    """
    total, sample = Profile(), 1.0 if text.sample is None else text.sample
    for batch in chunk_results(splits, text.for_profile, Profile.of_tape, threads, sample):
        profile, data = reduce(Profile.merge, batch.results, Profile()), ProfiledData(text_bytes=batch.text_bytes)
        total = total.merge(replace(profile, typed_strings=batch.counts.typed, data=data))
    return total


class SplitRows:
    """The second pass of a task: an iterable of the rows of its splits, shredded.

    Invalid lines are written to a staged file during the iteration, which raises `JsonError` or `VariantFileError` as
    `profile_splits` does. `attempt` separates the files of the task from those of its other attempts.
    """

    def __init__(self, plan: TaskPlan, staging: Staging, task: int, attempt: int, splits: Sequence[Split]) -> None:
        self.plan, self.request, self.staging, self.task, self.splits = plan, plan.request, staging, task, splits
        self.directory = staging.attempt(task, attempt)
        self._quarantine = StagedFile(self.directory, f"{BAD_RECORDS}/{staging.file_name(task, extension='ndjson')}")
        other_types = OtherTypes.of(plan.schema) if plan.counts_other_types else OtherTypes()
        self._written = WrittenSplits(paths=SeenPaths(set(plan.paths)), other_types=other_types)

    def __iter__(self) -> Iterator[TaskRows]:
        bad_stream = None
        text, written = self.request.text, self._written
        work = partial(_shredded_tape, self.plan.schema, (written.paths, written.other_types))
        with ExitStack() as stack:
            for batch in chunk_results(self.splits, text, work, self.plan.threads):
                self._written = written = replace(
                    written,
                    bad=written.bad + len(batch.bad),
                    text_bytes=written.text_bytes + batch.text_bytes,
                    counts=written.counts + batch.counts,
                )
                if batch.bad:
                    if bad_stream is None:
                        stack.enter_context(write_errors(self._quarantine.path))
                        filesystem, path = filesystem_of(self._quarantine.path)
                        filesystem.create_dir(path.rpartition("/")[0], recursive=True)
                        bad_stream = stack.enter_context(filesystem.open_output_stream(path))
                    bad_stream.write("".join(f"{record.to_json()}\n" for record in batch.bad).encode())
                shredded = _joined(batch.results)
                if len(shredded):
                    yield TaskRows(shredded, batch.table, text.json_column)

    def written(self, files: Sequence[StagedFile] = (), **figures: Any) -> WrittenSplits:
        """Return the result of the pass, with the file of bad records if there are any.

        `figures`: `adds`, `rows` and `file_bytes`.
        """
        quarantine = (self._quarantine,) if self._written.bad else ()
        return replace(self._written, files=(*files, *quarantine), **figures)


def read_arrays(splits: Sequence[Split], text: TextOptions) -> Iterator[VariantArray]:
    """Yield the rows of some splits in batches, not shredded.

    Raises `JsonError` or `VariantFileError` as `profile_splits` does.
    """
    return (_array(_joined(step().results)) for step in steps(splits, text, partial(_shredded_tape, None, ())))


def first_rows(
    splits: Sequence[Split], schema: ShreddingSchema, text: TextOptions, text_bytes: int
) -> VariantArray | None:
    """Return the valid rows in about `text_bytes` at the start of some splits, shredded; None if there is no text.

    Raises `VariantError` as `profile_splits` does, but not for invalid lines.
    """
    lenient = replace(text, on_error="quarantine", chunk_bytes=text_bytes)
    step = next(steps(splits, lenient, partial(_shredded_tape, schema, ())), None)
    return None if step is None else _array(_joined(step().results))


def _shredded_tape(schema: ShreddingSchema | None, observers: Sequence[SeenPaths | OtherTypes], tape: Tape) -> Shredded:
    for observer in observers:
        observer.look(tape)
    return shredded_rows(tape, schema=schema, per_batch=True)


def _joined(parts: Sequence[Shredded]) -> Shredded:
    return parts[0] if len(parts) == 1 else VariantArray.concat(list(map(_array, parts)))


def _array(rows: Shredded) -> VariantArray:
    return rows if isinstance(rows, VariantArray) else trusted_array(rows.storage(), fits_files=True)
