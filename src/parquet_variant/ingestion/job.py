"""The steps of an ingest, the same on every engine: plan, infer, write, commit; nothing is left when one fails.

Owns the order of the steps, their result, and the rows by which encodings are chosen once for all tasks (a task tries
only columns that have no values among them). Leaves the options to `request`, running the tasks to the engine
(`io.engine`; `spark.engine`), what a task does to `task`, what is written to `destinations`, and the choice of the
schema to `shredding`.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import chain
from math import ceil
from typing import Any

import pyarrow as pa

from parquet_variant.errors import VariantError, VariantFileError, without_secrets
from parquet_variant.ingestion.destinations.registry import open_destination
from parquet_variant.ingestion.json_column import beside_fields, plan_parts, split_rows, table_sources
from parquet_variant.ingestion.output_formats import FORMAT_RULES
from parquet_variant.ingestion.request import IngestRequest, Sources, TextOptions
from parquet_variant.ingestion.sources import codec_of, plan_splits, split_size, whole_splits
from parquet_variant.ingestion.splits import Split
from parquet_variant.ingestion.task import (
    Destination,
    ProfiledSplits,
    TaskPlan,
    WrittenSplits,
    first_rows,
    pack_splits,
    profile_splits,
)
from parquet_variant.io.engine import Engine
from parquet_variant.parquet.writing.conform import conform_table
from parquet_variant.parquet.writing.encodings import ColumnEncodings, known_encodings
from parquet_variant.parquet.writing.options import WriterOptions
from parquet_variant.schema.shredding_schema import ShreddingSchema
from parquet_variant.shredding.infer import infer
from parquet_variant.shredding.policies.decision import InferenceResult
from parquet_variant.shredding.profile import Profile
from parquet_variant.shredding.typed_texts import TypedText


@dataclass(frozen=True, slots=True)
class IngestResult:
    """What an ingest did.

    Parameters
    ----------
    dest
        The directory that was written; passwords and signatures of a URL are left out.
    files
        The Parquet files in it that this ingest wrote, as paths below `dest`.
    rows
        Rows written.
    bad_records
        Lines that were no JSON: quarantined, never dropped silently.
    bad_records_path
        The directory of the bad-records output (NDJSON); None where every line was good.
    bytes_read
        Bytes of JSON text, after decompression.
    bytes_written
        Bytes of the Parquet files.
    schema
        What was shredded; None if nothing was written.
    inference
        Why, path by path; None where the schema was given.
    typed_texts
        What became of strings that were to be dates, timestamps, UUIDs or binary.
    """

    dest: str
    files: tuple[str, ...]
    rows: int
    bad_records: int
    bad_records_path: str | None
    bytes_read: int
    bytes_written: int
    schema: ShreddingSchema | None
    inference: InferenceResult | None = None
    typed_texts: tuple[TypedText, ...] = ()

    def __post_init__(self) -> None:
        for name in ("dest", "bad_records_path"):
            if (text := getattr(self, name)) is not None:
                object.__setattr__(self, name, without_secrets(text))

    def __repr__(self) -> str:
        bad = f", {self.bad_records:,} bad ones in {self.bad_records_path}" if self.bad_records else ""
        sizes = f"{self.bytes_read:,} bytes of JSON, {self.bytes_written:,} bytes written"
        return f"<IngestResult {self.rows:,} rows in {len(self.files):,} files in {self.dest}{bad}; {sizes}>"

    def to_dict(self) -> dict[str, Any]:
        """The same in plain types, with the schema as DDL."""
        fields = {name: getattr(self, name) for name in self.__slots__ if name != "inference"}
        fields["files"] = list(self.files)
        fields["typed_texts"] = [asdict(each) for each in self.typed_texts]
        fields["schema"] = self.schema.to_ddl() if self.schema is not None else None
        return fields


_LARGEST_SPLIT = 128 << 20
_SMALLEST_SPLIT = 4 << 20
# What inference reads unless told otherwise: this much text, and of a large input an eighth. Parsing is what it costs.
# So much is read where the job is planned: a Spark job for it would take longer.
_SAMPLE_BYTES = 8 << 20
_LEAST_SHARE = 1 / 8
# Bytes of text to a byte of a compressed file, roughly.
_PACKED = 10
_LOOKED_AT = 64


class IngestJob:
    """An ingest whose sources were found and whose destination was opened; nothing is written before `run`.

    Raises `VariantFileError` or `DeltaError` for a source that is missing, or a destination that holds data or cannot
    be written.
    """

    def __init__(self, request: IngestRequest) -> None:
        self._rows = request.rows
        self._whole = _whole(request.sources, request.text) if request.rows is None else []
        # The tasks get their files by name.
        self._request = replace(request, sources=(), rows=None)
        self._destination = open_destination(self._request)

    def run(self, engine: Engine) -> IngestResult:
        """Do it: all of it, or nothing. Raises as `pv.ingest`."""
        destination = self._destination
        if destination is None:
            return IngestResult(self._request.dest, (), 0, 0, None, 0, 0, None)
        try:
            tasks = self._plan(engine)
            if self._is_one_task:
                tasks = [list(chain(*tasks))]
            fields = self._fields(tasks)
            inference = self._infer(engine, tasks) if self._request.schema is None else None
            schema = self._request.schema if inference is None else inference.schema
            assert schema is not None
            self._request.check_schema(schema)
            encodings = planned_encodings(self._request, schema, tasks)
            work = destination.work(TaskPlan(schema, _threads(engine, tasks), encodings, fields))
            written = engine.run("write", work, tasks)
            if not any(part.rows or part.bad for part in written):
                raise _no_value([] if self._request.text.of_dataframe else self._whole)
            committed = destination.commit(written)
        except BaseException:
            destination.abort()
            raise
        return _result(destination, committed, written, schema, inference)

    def _plan(self, engine: Engine) -> list[list[Split]]:
        if self._rows is None:
            return _plan(engine, self._whole, self._request.split_bytes, self._request.text)
        return [[split] for split in split_rows(self._rows, engine.parallelism)]

    @property
    def _is_one_task(self) -> bool:
        # Parts of a Vortex file are put together without other columns.
        text = self._request.text
        return self._request.one_file or (text.json_column is not None and self._request.dest.endswith(".vortex"))

    def _fields(self, tasks: list[list[Split]]) -> tuple[pa.Field, ...]:
        request = self._request
        column = request.text.json_column
        if column is None:
            return ()
        fields = beside_fields(tasks, column, request.column, request.text.layout.csv)
        taken = {field.name.lower() for field in fields}
        if twice := [name for name in request.partition_by.names if name.lower() in taken]:
            raise VariantError(
                f"partition_by gives {twice[0]!r}, a column of the table: choose another name", reason="bad-option"
            )
        return tuple(fields)

    def _infer(self, engine: Engine, tasks: list[list[Split]]) -> InferenceResult:
        text_bytes = sum(split_size(split) for task in tasks for split in task)
        if self._request.text.json_column is None:
            # One kind of file is the rule: of many, some tell.
            some = self._whole[:: ceil(len(self._whole) / _LOOKED_AT)]
            packed = sum(split_size(split) for split in some if codec_of(split.file))
            text_bytes = round(text_bytes * (1 + (_PACKED - 1) * packed / max(sum(map(split_size, some)), 1)))
        sample = self._request.text.sample
        if sample is None:
            sample = max(_LEAST_SHARE, min(1.0, _SAMPLE_BYTES / max(text_bytes, 1)))
        profiler = engine.local if round(sample * text_bytes) <= _SAMPLE_BYTES else engine
        return infer(_profile_tasks(profiler, tasks, replace(self._request.text, sample=sample)), self._request.policy)


def profile_sources(engine: Engine, sources: Sources, text: TextOptions) -> Profile:
    """Profile JSON files, as an ingest would (see `pv.profile`)."""
    named = [sources] if isinstance(sources, str | os.PathLike) else sources
    whole = _whole(named, text)
    profile = _profile_tasks(engine, _plan(engine, whole, None, text), text)
    if not profile.rows:
        raise _no_value(whole)
    return profile


def _whole(sources: Iterable[str | os.PathLike[str]], text: TextOptions) -> list[Split]:
    """The files, or tables."""
    return whole_splits(sources) if text.json_column is None else [Split(file) for file in table_sources(sources)]


def _profile_tasks(engine: Engine, tasks: list[list[Split]], text: TextOptions) -> Profile:
    work = partial(_profile, text, _threads(engine, tasks))
    return engine.reduce("infer the schema", work, tasks, ProfiledSplits.merge).profile


def _no_value(whole: list[Split]) -> VariantFileError:
    named = (", ".join(split.file for split in whole[:3]) + (", …" if len(whole) > 3 else "")) or "the rows"
    return VariantFileError(f"no JSON value in {named}: name files that hold some", reason="no-rows")


def _plan(engine: Engine, whole: list[Split], split_bytes: int | None, text: TextOptions) -> list[list[Split]]:
    files = [split.file for split in whole]
    if split_bytes is None:
        parts = whole if text.json_column is None else plan_parts(files, _LARGEST_SPLIT)
        share = ceil(sum(map(split_size, parts)) / engine.parallelism)
        split_bytes = min(max(share, _SMALLEST_SPLIT), _LARGEST_SPLIT)
    if text.json_column is not None:
        return pack_splits(plan_parts(files, split_bytes), split_bytes)
    return pack_splits(plan_splits(whole, split_bytes, text.layout), split_bytes)


def _threads(engine: Engine, tasks: Sequence[Any]) -> int:
    """How many threads each task has: what would be idle otherwise."""
    return max(1, min(engine.parallelism, os.cpu_count() or 1) // max(len(tasks), 1))


def _result(
    destination: Destination,
    files: Sequence[str],
    written: Sequence[WrittenSplits],
    schema: ShreddingSchema,
    inference: InferenceResult | None,
) -> IngestResult:
    bad = sum(part.bad for part in written)
    return IngestResult(
        dest=destination.dest,
        files=tuple(files),
        rows=sum(part.rows for part in written),
        bad_records=bad,
        bad_records_path=destination.bad_records_path if bad else None,
        bytes_read=sum(part.text_bytes for part in written),
        bytes_written=sum(part.file_bytes for part in written),
        schema=schema,
        inference=inference,
        typed_texts=TypedText.of_counts(sum((part.typed for part in written), Counter())),
    )


# Functions of this module, not closures: Spark pickles them by name.
def _profile(text: TextOptions, threads: int, task: int, attempt: int, splits: list[Split]) -> ProfiledSplits:
    return profile_splits(splits, text, threads)


# As many rows as are tried have rarely more text.
_TEXT_BYTES = 2 << 20


def planned_encodings(
    request: IngestRequest, schema: ShreddingSchema, tasks: Sequence[Sequence[Split]]
) -> ColumnEncodings | None:
    """The encodings of the columns that have values in the first rows; None where each task does better by itself.

    `request`: what is asked for.
    `tasks`: the splits of every task.
    """
    if not FORMAT_RULES[request.format].parquet_files or (len(tasks) == 1 and not request.partition_by):
        return None
    try:
        rows = first_rows(tasks[0], schema, request.text, _TEXT_BYTES)
    except VariantError:
        return None  # the task says what is wrong, in its words
    if rows is None or not len(rows):
        return None
    options = WriterOptions(
        **{name: request.write[name] for name in ("compression", "compression_level") if name in request.write}
    )
    table, _ = conform_table({request.column: rows}, ())
    return known_encodings(table, options.compression, options.compression_level)
